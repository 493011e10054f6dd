//! Which blocks of a function are executed elsewhere as a whole.
//!
//! A block can be moved if all its instructions can (but a call at its end, which stays), and if it can be entered: where
//! control may arrive from anywhere but a direct branch of a moved block, a jump to its new place must fit over
//! bytes that nobody executes any more. What cannot be moved may be what others rely on, so the set is the
//! greatest fixpoint: all candidates, from which those are taken that do not get along with the rest.

use tomo_program::{EdgeKind, FunctionView};

use super::code::Code;
use crate::place::Surroundings;
use crate::window::JUMP_BYTES;

/// Blocks of a function by number.
#[derive(Debug)]
pub(crate) struct MovedBlocks {
    is_moved: Vec<bool>,
    /// Which of these the module's text leads to.
    is_entrance: Vec<bool>,
}

impl MovedBlocks {
    /// None of so many.
    pub(crate) fn none(count: usize) -> Self {
        Self {
            is_moved: vec![false; count],
            is_entrance: vec![false; count],
        }
    }

    /// All blocks of the function that can be moved. `codes` are its blocks.
    pub(crate) fn of(
        around: &Surroundings<'_>,
        function: &FunctionView<'_>,
        codes: &[Code<'_>],
    ) -> Self {
        let blocks: Vec<_> = function.blocks().collect();
        let mut within = vec![Vec::new(); blocks.len()];
        let mut from_elsewhere: Vec<bool> = codes
            .iter()
            .map(|code| around.ways.outer.has(code.start()))
            .collect();
        for edge in function.edges() {
            let from = function.position_of(edge.from);
            let to = edge.block().and_then(|block| function.position_of(block));
            let (Some(from), Some(to)) = (from, to) else {
                continue;
            };
            let direct = matches!(
                edge.kind,
                EdgeKind::Fallthrough | EdgeKind::Taken | EdgeKind::NotTaken | EdgeKind::Jump
            );
            match direct {
                true => within[to].push(from),
                false => from_elsewhere[to] = true,
            }
        }
        let mut moved = Self::none(blocks.len());
        moved.is_moved = codes.iter().map(Code::is_movable).collect();
        loop {
            for (block, into) in within.iter().enumerate() {
                let from_unmoved = into.iter().any(|&from| !moved.is_moved[from]);
                moved.is_entrance[block] =
                    moved.is_moved[block] && (from_elsewhere[block] || from_unmoved);
            }
            let stuck: Vec<usize> = (0..codes.len())
                .filter(|&block| moved.is_entrance[block] && !moved.has_room(around, codes, block))
                .collect();
            if stuck.is_empty() {
                return moved;
            }
            for block in stuck {
                moved.is_moved[block] = false;
            }
        }
    }

    pub(crate) fn has(&self, block: usize) -> bool {
        self.is_moved.get(block).is_some_and(|moved| *moved)
    }

    pub(crate) fn is_entrance(&self, block: usize) -> bool {
        self.is_entrance
            .get(block)
            .is_some_and(|entrance| *entrance)
    }

    /// Whether a jump fits at the start of an entrance: over bytes of blocks that are moved and of filling behind them, none
    /// of which is entered.
    fn has_room(&self, around: &Surroundings<'_>, codes: &[Code<'_>], block: usize) -> bool {
        let start = codes[block].start();
        if around.ways.outer.has_inside(start, JUMP_BYTES) {
            return false;
        }
        let end = start.wrapping_add(JUMP_BYTES);
        let mut free = start;
        for (number, code) in codes.iter().enumerate().skip(block) {
            if free >= end {
                return true;
            }
            let enters = number != block && self.is_entrance[number];
            if code.start() != free || !self.is_moved[number] || enters {
                return false;
            }
            free = code.end_of_free();
            if code.keeps_call() {
                break;
            }
        }
        free >= end
    }
}
