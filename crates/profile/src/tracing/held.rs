//! What follows behind the last event of a thread, held back until it is known whether it came to that.

use super::walk::Sink;

/// How much is held back at most. More follows only where an end was passed over, as a system call's in a loop.
const MOST: usize = 1 << 20;

/// What a sink takes.
enum Told {
    Enter(u32, u32),
    Block(u32, u32),
}

/// A sink, and what it may come to take.
pub(super) struct Held<'s, S> {
    sink: &'s mut S,
    told: Vec<Told>,
    /// Whether no run has an event any more.
    pub(super) holds: bool,
}

impl<'s, S: Sink> Held<'s, S> {
    pub(super) fn of(sink: &'s mut S, holds: bool) -> Self {
        let told = Vec::new();
        Self { sink, told, holds }
    }

    pub(super) fn enter(&mut self, block: u32, depth: u32, is_certain: bool) {
        match self.holds && !is_certain {
            true => self.told.push(Told::Enter(block, depth)),
            false => self.sink.enter(block, depth),
        }
    }

    pub(super) fn block(&mut self, block: u32, depth: u32, is_certain: bool) {
        match self.holds && !is_certain {
            true => self.told.push(Told::Block(block, depth)),
            false => self.sink.block(block, depth),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.told.len() > MOST
    }

    /// Hands over what was held back if it `happened`; else it is gone, and it is told how many blocks that are.
    pub(super) fn finish(self, happened: bool) -> u64 {
        let mut gone = 0;
        for told in self.told {
            match told {
                Told::Enter(block, depth) if happened => self.sink.enter(block, depth),
                Told::Block(block, depth) if happened => self.sink.block(block, depth),
                Told::Enter(..) => {}
                Told::Block(..) => gone += 1,
            }
        }
        gone
    }
}
