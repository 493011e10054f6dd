//! The checker of images with chains: the walk of `counted.rs`, in which what the module does not do are the steps of
//! `step.rs`. Besides that the program cannot tell the difference it proves that the tree of calls is kept:
//!
//! - whoever comes to an observed function's entry from outside of it enters, with its own number, and nobody else does;
//! - it comes straight to the code that enters, which has the function's name in front of it;
//! - no return of one that is no leaf is executed but behind leaving it;
//! - what is announced, landed in and jumped from is where the module is.

use std::collections::HashMap;

use iced_x86::{FlowControl, Instruction};
use tomo_program::{Address, Binary, Model};
use tomo_wire::chains::{Functions, MARK, NAME, NONE, WAY_BITS, way_of};
use tomo_wire::image::Image;

use super::counted::{Behind, CountersChecked, Decoded, Observes, Walk, belongs};
use super::step::{Found, Step, read};
use super::trampolines::MIDDLE;
use super::{Flaw, at};
use crate::WeaveError;
use crate::staying::live::Set;
use crate::text::Text;

/// Proves that the files `image` and `functions` are right for the module in the file `bytes`.
///
/// # Errors
/// The first thing that is not.
pub fn check_chains(
    (image, functions): (&[u8], &[u8]),
    bytes: &[u8],
    binary: &Binary<'_>,
    model: &Model,
) -> Result<CountersChecked, Flaw> {
    let header = Image::read(image, image.len() as u64).map_err(Flaw::Image)?;
    let (functions, rows) = Functions::read(functions).map_err(Flaw::Plan)?;
    let text = Text::read(bytes)?;
    belongs(&header, (functions.name(), functions.module), &text)?;
    if functions.origin.get() != text.origin() {
        return Err(Flaw::Mismatch(
            "image, functions and module do not belong together",
        ));
    }
    let graphs = model.graphs().map_err(WeaveError::from)?;
    let by_entry: Entries = (0u32..)
        .zip(rows)
        .map(|(number, row)| {
            (
                Address(row.entry.get()),
                (number, row.leaf.get() != 0, row.depth.get()),
            )
        })
        .collect();
    let what = Observes::Chains(&by_entry);
    let mut walk = Walk::of((image, header), &text, &graphs, binary, what);
    walk.complete()?;
    walk.finish()
}

/// Functions by entry: their numbers, whether they are leaves, and how deep their calls are.
pub(super) type Entries = HashMap<Address, (u32, bool, u32)>;

impl Walk<'_> {
    /// The step at a spot.
    fn step_at(&self, spot: i64) -> Option<Found> {
        let instruction = |spot| {
            let code = self.trampolines.from(spot)?;
            let instruction = decode(spot, code)?;
            Some((instruction, spot + instruction.len() as i64))
        };
        let target = |branch: &Instruction| branch.near_branch_target() as i64 - MIDDLE;
        read(spot, &instruction, &target)
    }

    /// The step that is made at `spot`, if one is, where the module would be at `address`.
    pub(super) fn step_of_chains(
        &mut self,
        functions: &Entries,
        spot: i64,
        address: Address,
    ) -> Result<Option<Behind>, Flaw> {
        let Some(found) = self.step_at(spot) else {
            return Ok(None);
        };
        let wrong = |what| at(address, what);
        let places: Vec<Address> = self.jumps(address).collect();
        let right = match &found.step {
            Step::Enter {
                number,
                leaf,
                depth,
            } => {
                let own = (*number, *leaf, *depth);
                let is_own = |place: &Address| {
                    functions.get(place) == Some(&own) && self.is_named(*place, spot)
                };
                let right = places.iter().any(is_own);
                if right {
                    self.counted[*number as usize] = true;
                }
                right
            }
            Step::Leave => true,
            Step::Announce(site) => self.is_announced(*site, &places),
            Step::Land(number) => {
                let own = self.function_of(address);
                let own = own.and_then(|function| functions.get(&function));
                own.map_or((NONE, false), |own| (own.0, own.1)) == (*number, false)
            }
            Step::Jump(site, push) => {
                let place = self.site(*site);
                let same = self
                    .original(place)
                    .is_some_and(|was| reads_alike(&was, push));
                place == address && same
            }
            Step::Tail {
                site,
                way,
                leaf,
                to,
            } => self.is_followed(functions, (*site, *way, *leaf, *to), &places),
        };
        if !right {
            return Err(wrong("a step in the tree of calls is another one's"));
        }
        let changes = found.changes;
        if changes != Set::NONE && self.is_looked_at(address, changes) {
            return Err(wrong("somebody looks at what a step changes"));
        }
        self.increments += 1;
        Ok(Some(Behind {
            spot: found.behind,
            leaves: matches!(
                found.step,
                Step::Leave | Step::Jump(..) | Step::Tail { .. } | Step::Announce(_)
            ),
        }))
    }

    fn site(&self, site: u32) -> Address {
        self.address((site & !MARK).into())
    }

    fn function_of(&self, address: Address) -> Option<Address> {
        Some(self.graphs.function_at(address)?.entry())
    }

    /// Whether a call or tail call at that site follows from one of these places.
    fn is_announced(&self, site: u32, places: &[Address]) -> bool {
        let place = self.site(site);
        if site & MARK == 0 {
            let block = self.graphs.block_at(place.wrapping_add(u64::MAX));
            return block.is_some_and(|block| {
                block.range().end() == place
                    && places.iter().any(|here| block.range().contains(*here))
            });
        }
        self.jumps_from(place, places)
    }

    /// Whether the jump at `place` is one of these places, or leads there.
    fn jumps_from(&self, place: Address, places: &[Address]) -> bool {
        let to = self.original(place).map(|jump| self.address(jump.target()));
        places.contains(&place) || to.is_some_and(|to| places.contains(&to))
    }

    /// Whether a tail call leads behind the entering of the function that the module jumps to.
    fn is_followed(
        &self,
        functions: &Entries,
        (site, way, leaf, to): (u32, u8, bool, i64),
        places: &[Address],
    ) -> bool {
        let place = self.site(site);
        let Some(target) = self.original(place).map(|jump| self.address(jump.target())) else {
            return false;
        };
        let Some(&(number, own, depth)) = functions.get(&target) else {
            return false;
        };
        let entered = self.door_of(target).and_then(|door| self.step_at(door));
        let enters = Step::Enter {
            number,
            leaf,
            depth,
        };
        let behind = entered.filter(|found| found.step == enters);
        own == leaf
            && way == (site as u8 ^ way_of(number)) & WAY_BITS
            && behind.is_some_and(|found| found.behind == to)
            && self.jumps_from(place, places)
    }

    /// Where the jump at an entry leads.
    fn door_of(&self, entry: Address) -> Option<i64> {
        let by_way = self.by_way_of(entry).map(|(_, jump)| jump);
        let jump = by_way.or_else(|| Decoded::of(self.spot(entry), self.patched(entry)?))?;
        Some(jump.target())
    }

    /// Whether the jump at an entry leads to `door`, in front of which stands its name.
    fn is_named(&self, entry: Address, door: i64) -> bool {
        let name = self.trampolines.from(door - NAME as i64);
        let name = name.and_then(|bytes| bytes.first_chunk());
        let name = name.map(|bytes: &[u8; NAME]| u32::from_le_bytes(*bytes).into());
        self.door_of(entry) == Some(door) && name == Some(self.spot(entry))
    }

    /// Whether nothing but leaving the function may come before this instruction.
    pub(super) fn must_leave(&self, is: &Instruction, address: Address) -> bool {
        let Observes::Chains(functions) = self.what else {
            return false;
        };
        let own = self.function_of(address);
        let own = own.and_then(|function| functions.get(&function));
        is.flow_control() == FlowControl::Return && own.is_some_and(|(_, leaf, _)| !leaf)
    }
}

fn decode(spot: i64, code: &[u8]) -> Option<Instruction> {
    Some(Decoded::of(spot, code)?.instruction)
}

/// Whether a push reads what an indirect jump reads.
fn reads_alike(jump: &Decoded, push: &Instruction) -> bool {
    let jump = &jump.instruction;
    let memory = |of: &Instruction| {
        (
            of.memory_base(),
            of.memory_index(),
            of.memory_index_scale(),
            of.memory_displacement64(),
            of.memory_segment(),
        )
    };
    jump.flow_control() == FlowControl::IndirectBranch
        && jump.op0_kind() == push.op0_kind()
        && jump.op0_register() == push.op0_register()
        && (jump.op0_kind() == iced_x86::OpKind::Register || memory(jump) == memory(push))
}
