//! Where two traces part.

use super::calls::{Activation, Visitor};

/// The blocks of a thread, in order.
#[derive(Default)]
pub struct Blocks {
    /// Numbers in the chart.
    pub blocks: Vec<u32>,
}

impl Visitor for Blocks {
    fn block(&mut self, stack: &[Activation], _: u64) {
        self.blocks.extend(stack.last().map(|last| last.block));
    }
}

/// What is around one step of a thread.
pub struct Around {
    /// The step.
    pub step: u64,
    /// How many blocks before it are kept.
    pub before: usize,
    /// And behind.
    pub behind: u64,
    /// The blocks, with their steps.
    pub blocks: Vec<(u64, u32)>,
    /// Who was active then.
    pub stack: Vec<Activation>,
}

impl Around {
    /// What is around the step of this number.
    #[must_use]
    pub fn of(step: u64, before: usize, behind: u64) -> Self {
        Self {
            step,
            before,
            behind,
            blocks: Vec::new(),
            stack: Vec::new(),
        }
    }
}

impl Visitor for Around {
    fn block(&mut self, stack: &[Activation], step: u64) {
        if step > self.step.saturating_add(self.behind) {
            return;
        }
        if self.blocks.len() > 2 * self.before + self.behind as usize + 2 && step <= self.step {
            self.blocks.drain(..self.before);
        }
        self.blocks
            .extend(stack.last().map(|last| (step, last.block)));
        if step <= self.step {
            self.stack.clear();
            self.stack.extend_from_slice(stack);
        }
    }
}

/// Finds the step of the n-th visit of a line.
pub struct Visits<'v> {
    /// Whether a block is of that line.
    pub is_there: &'v dyn Fn(u32) -> bool,
    /// Which visit.
    pub wanted: u64,
    /// How many there were.
    pub visits: u64,
    /// The step, once it is found.
    pub step: Option<u64>,
    /// The block before.
    pub last: Option<u32>,
}

impl Visitor for Visits<'_> {
    fn block(&mut self, stack: &[Activation], step: u64) {
        let Some(block) = stack.last().map(|last| last.block) else {
            return;
        };
        // Several blocks of one line in a row are one visit.
        let was_there = self
            .last
            .is_some_and(|last| last != block && (self.is_there)(last));
        if (self.is_there)(block) && !was_there {
            self.visits += 1;
            if self.visits == self.wanted {
                self.step = Some(step);
            }
        }
        self.last = Some(block);
    }
}
