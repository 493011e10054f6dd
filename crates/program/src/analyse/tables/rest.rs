//! What is known of jumps for which no table was found, from the labels and constants that the function holds.

use iced_x86::{Decoder, DecoderOptions, Instruction};
use rustc_hash::FxHashSet;

use super::{MOST_BIAS, Reader};
use crate::analyse::code::Pos;
use crate::analyse::constants::{Constant, constants_of, gives_away};
use crate::analyse::slice::value::sign_extend;
use crate::analyse::state::Resolved;
use crate::{Address, Resolution};

impl Reader<'_, '_> {
    /// What is known of jumps that read no table which could be found.
    pub(super) fn without_table(
        &self,
        constants: &[Constant],
        claimed: &FxHashSet<Address>,
    ) -> Resolved {
        let targets = self.labels(|word| !self.words.contains(&word));
        if !self.bases.is_empty() && self.gives_a_label_away() {
            return Resolved::not();
        }
        let open = constants
            .iter()
            .filter(|constant| !claimed.contains(&constant.address));
        // A table of addresses holds nothing but labels, which are all known.
        let unread = if targets.is_empty() {
            open.filter(|&&constant| self.may_be_table(constant))
                .count()
        } else {
            open.filter(|&&constant| self.may_be_offsets(constant.address, constant.address))
                .count()
        };
        match (unread, targets.is_empty()) {
            (0, true) => Resolved {
                resolution: Resolution::TailCall,
                targets,
                tables: Vec::new(),
            },
            // Those in tables that other jumps read are labels too.
            (0, false) => Resolved {
                resolution: Resolution::Labels,
                targets: self.labels(|_| true),
                tables: Vec::new(),
            },
            _ => Resolved::not(),
        }
    }

    /// The function's inner addresses that its instructions materialise.
    pub(super) fn inner_labels_in_code(&self) -> Vec<Pos> {
        let state = self.state;
        let parts = || {
            state
                .fragments_of(self.owner)
                .map(|part| &state.fragments[part as usize])
        };
        let is_inside = |pos: Pos| parts().any(|part| pos > part.start && pos < part.end);
        parts()
            .flat_map(|part| &part.taken)
            .copied()
            .filter(|&pos| is_inside(pos))
            .collect()
    }

    /// Whether the function reads what is at one of its inner addresses, which is data then, or pushes one, to which somebody else
    /// comes back then (as OCaml's code does with where exceptions are handled).
    fn gives_a_label_away(&self) -> bool {
        let code = self.state.tables.code;
        let mut fragments = self.state.fragments_of(self.owner);
        fragments.any(|fragment| {
            let blocks = &self.state.fragments[fragment as usize].blocks;
            blocks.iter().any(|block| {
                let bytes = code.bytes(block.start, block.end);
                gives_away(bytes, code.address(block.start), |address| {
                    let pos = code.pos(address);
                    pos.is_some_and(|pos| self.bases.contains(&pos))
                })
            })
        })
    }

    /// The function's inner addresses that code holds, or words of data that are `wanted`.
    fn labels(&self, wanted: impl Fn(Address) -> bool) -> Vec<Pos> {
        let mut labels = self.bases.clone();
        for part in self.state.fragments_of(self.owner) {
            let own = &self.state.fragments[part as usize];
            let words = self.landmarks.labels_in(own.start, own.end).iter();
            labels.extend(words.filter(|label| wanted(label.1)).map(|label| label.0));
        }
        labels.sort_unstable();
        labels.dedup();
        labels.retain(|&label| self.is_own_instruction(label));
        labels
    }

    /// Addresses of memory that never changes which the function's instructions materialise.
    pub(super) fn constants(&self) -> Vec<Constant> {
        let code = self.state.tables.code;
        let mut constants = Vec::new();
        let mut instruction = Instruction::default();
        for fragment in self.state.fragments_of(self.owner) {
            for (_, raw) in self.state.reached_in(fragment) {
                let bytes = code.bytes(raw.start, raw.end);
                let mut decoder =
                    Decoder::with_ip(64, bytes, code.address(raw.start).0, DecoderOptions::NONE);
                while decoder.can_decode() {
                    decoder.decode_out(&mut instruction);
                    constants.extend(constants_of(
                        &instruction,
                        code.binary.is_position_independent(),
                    ));
                }
            }
        }
        constants.sort_unstable();
        constants.dedup();
        constants.retain(|constant| {
            constant.indexed || code.binary.constant_at(constant.address).is_some()
        });
        constants
    }

    /// Whether a jump table of this function could lie at `constant`.
    pub(super) fn may_be_table(&self, constant: Constant) -> bool {
        let words = if constant.indexed { MOST_BIAS } else { 1 };
        let place = |word: i64| constant.address.wrapping_add((8 * word).cast_unsigned());
        (0..words).any(|word| self.may_be_entry(constant.address, place(word)))
    }

    /// Whether the word at `place` could be an entry of a table of addresses, or of one of offsets.
    fn may_be_entry(&self, base: Address, place: Address) -> bool {
        self.load(place, 8)
            .is_some_and(|pointer| self.is_inner(Address(pointer)))
            || self.may_be_offsets(base, place)
    }

    /// Whether the word at `place` could be an offset that counts from `base` or from a label.
    pub(super) fn may_be_offsets(&self, base: Address, place: Address) -> bool {
        let Some(offset) = self.load(place, 4).map(|offset| sign_extend(offset, 32)) else {
            return false;
        };
        let labels = self
            .bases
            .iter()
            .map(|&label| self.state.tables.code.address(label));
        std::iter::once(base)
            .chain(labels)
            .any(|base| self.is_inner(base.wrapping_add(offset)))
    }

    /// Whether an instruction of the function but for its entry may be at `target`.
    fn is_inner(&self, target: Address) -> bool {
        let entry = self.state.fragments[self.owner as usize].start;
        let pos = self.state.tables.code.pos(target);
        pos.is_some_and(|pos| pos != entry && self.is_own_instruction(pos))
    }
}
