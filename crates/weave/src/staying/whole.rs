//! Which blocks of a function are executed elsewhere as a whole.
//!
//! A block can be moved if all its instructions can (but a call at its end, which stays), and if it can be entered: where
//! control may arrive from anywhere but a direct branch of a moved block, a jump to its new place must fit over
//! bytes that nobody executes any more; or a short jump, to such bytes nearby that have room for the jump (behind a
//! call there is often but `leave; ret`). What cannot be moved may be what others rely on, so the set is the
//! greatest fixpoint: all candidates, from which those are taken that do not get along with the rest.

use tomo_program::{Address, EdgeKind, FunctionView};

use super::code::Code;
use crate::place::Surroundings;
use crate::tactics::hop;
use crate::window::JUMP_BYTES;

/// Blocks of a function by number.
#[derive(Debug)]
pub(crate) struct MovedBlocks {
    is_moved: Vec<bool>,
    /// Where the module's text leads to them.
    entrances: Vec<Option<Entrance>>,
}

/// Where the module's text leads into a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entrance {
    /// The first byte of the block.
    pub(crate) at: Address,
    /// Where the jump stands, if there is room for a short one only here.
    pub(crate) by: Option<Address>,
}

impl Entrance {
    /// One with room for a jump.
    pub(crate) fn at(at: Address) -> Self {
        Self { at, by: None }
    }

    /// Bytes that are changed here.
    fn length(self) -> u64 {
        match self.by {
            None => JUMP_BYTES,
            Some(_) => hop::BYTES,
        }
    }
}

impl MovedBlocks {
    /// None of so many.
    pub(crate) fn none(count: usize) -> Self {
        Self {
            is_moved: vec![false; count],
            entrances: vec![None; count],
        }
    }

    /// All blocks of the function that can be moved. `codes` are its blocks.
    pub(crate) fn of(
        around: &Surroundings<'_>,
        function: &FunctionView<'_>,
        codes: &[Code<'_>],
    ) -> Self {
        Self::among(around, function, codes, &vec![true; codes.len()])
    }

    /// Those of the `wanted` blocks that can be moved while all others stay.
    pub(crate) fn among(
        around: &Surroundings<'_>,
        function: &FunctionView<'_>,
        codes: &[Code<'_>],
        wanted: &[bool],
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
        let movable = codes.iter().map(Code::is_movable).zip(wanted);
        moved.is_moved = movable
            .map(|(movable, wanted)| movable && *wanted)
            .collect();
        loop {
            for (block, into) in within.iter().enumerate() {
                let from_unmoved = into.iter().any(|&from| !moved.is_moved[from]);
                let enters = moved.is_moved[block] && (from_elsewhere[block] || from_unmoved);
                moved.entrances[block] = enters.then(|| Entrance::at(codes[block].start()));
            }
            let stuck = moved.without_room(around, codes);
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

    pub(crate) fn entrance(&self, block: usize) -> Option<Entrance> {
        self.entrances.get(block).copied().flatten()
    }

    /// Gives each entrance its place; those for which there is none.
    fn without_room(&mut self, around: &Surroundings<'_>, codes: &[Code<'_>]) -> Vec<usize> {
        let entrances = (0..codes.len()).filter(|&block| self.entrances[block].is_some());
        let (short, mut stuck): (Vec<usize>, Vec<usize>) = entrances
            .filter(|&block| !self.has_room(around, codes, block, JUMP_BYTES))
            .partition(|&block| self.has_room(around, codes, block, hop::BYTES));
        // Those who need more than there is may be moved no longer, and then nobody needs it.
        if !stuck.is_empty() || short.is_empty() {
            return stuck;
        }
        for &block in &short {
            let at = codes[block].start();
            self.entrances[block] = Some(Entrance { at, by: Some(at) });
        }
        let mut spare = self.spare(around, codes);
        for block in short {
            let at = codes[block].start();
            // What looks as before cannot be told from what is as before.
            let before = around.text.chunk(at).unwrap_or_default();
            let by = take(&mut spare, at.wrapping_add(hop::BYTES), before);
            match by {
                Some(_) => self.entrances[block] = Some(Entrance { at, by }),
                None => stuck.push(block),
            }
        }
        stuck
    }

    /// Bytes of moved blocks and of filling behind them that no entrance takes and where nobody enters, as starts and ends by
    /// address.
    fn spare(&self, around: &Surroundings<'_>, codes: &[Code<'_>]) -> Vec<(Address, Address)> {
        let mut all: Vec<(Address, Address)> = Vec::new();
        let mut taken = Address(0);
        for (block, code) in codes.iter().enumerate() {
            if !self.is_moved[block] {
                continue;
            }
            if let Some(entrance) = self.entrances[block] {
                taken = entrance.at.wrapping_add(entrance.length());
            }
            let (mut start, end) = (code.start().max(taken), code.end_of_free());
            while start < end {
                let next = start.wrapping_add(1);
                match all.last_mut().filter(|last| last.1 == start) {
                    _ if around.ways.outer.has(start) => {}
                    Some(last) => last.1 = next,
                    None => all.push((start, next)),
                }
                start = next;
            }
        }
        all
    }

    /// Whether so many bytes fit at the start of an entrance: over bytes of blocks that are moved and of filling behind
    /// them, none of which is entered.
    fn has_room(
        &self,
        around: &Surroundings<'_>,
        codes: &[Code<'_>],
        block: usize,
        length: u64,
    ) -> bool {
        let start = codes[block].start();
        if around.ways.outer.has_inside(start, length) {
            return false;
        }
        let end = start.wrapping_add(length);
        let mut free = start;
        for (number, code) in codes.iter().enumerate().skip(block) {
            if free >= end {
                return true;
            }
            let enters = number != block && self.entrances[number].is_some();
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

/// The first place for a jump that a short jump which ends at `end` reaches, other than with the bytes `before`.
fn take(
    spare: &mut [(Address, Address)],
    end: Address,
    before: [u8; hop::BYTES as usize],
) -> Option<Address> {
    let farthest = Address(end.0.saturating_sub(i8::MIN.unsigned_abs().into()));
    spare.iter_mut().find_map(|(from, to)| {
        let first = (*from).max(farthest);
        let slot = [first, first.wrapping_add(1)].into_iter().find(|slot| {
            let near = hop::displacement(end, *slot).map(i8::cast_unsigned);
            near.is_some_and(|near| [hop::SHORT_JUMP, near] != before)
        })?;
        let behind = slot.wrapping_add(JUMP_BYTES);
        (behind <= *to).then(|| {
            *from = behind;
            slot
        })
    })
}
