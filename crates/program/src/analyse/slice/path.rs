//! One way back from an indirect jump: the target as a function of the state so far back, and what
//! branches on the way have proven.

use iced_x86::ConditionCode;

use super::effect::{Effect, Flags, RSP};
use super::guard::{Guard, Interval, is_bounded, narrow, view};
use super::search::{LARGEST_TABLE, Mode, Solution};
use super::value::{Atom, Linear, low_mask};
use crate::analyse::state::BlockRef;

/// Guards carried along a path.
const MOST_GUARDS: usize = 6;

/// One way back from the jump, and what is known on it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Path {
    pub(super) at: BlockRef,
    pub(super) target: Linear,
    pub(super) guards: Vec<Guard>,
    /// Conditions on flags that are set further back.
    pub(super) pending: Vec<ConditionCode>,
    pub(super) index: Option<Interval>,
    pub(super) guarded: bool,
    /// What the index is computed from, as long as that may tell whether it can be negative.
    pub(super) scaled: Option<Linear>,
    pub(super) may_be_negative: bool,
    /// What the target and the guards are made of.
    pub(super) uses: Uses,
}

/// What may change a path's values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Uses {
    /// Registers, a bit each.
    pub(super) registers: u16,
    /// Whether memory is read.
    pub(super) memory: bool,
}

impl Path {
    pub(super) fn substitute(&mut self, replace: &mut dyn FnMut(&Atom) -> Option<Linear>) {
        if let Some(target) = self.target.map(replace) {
            self.target = target;
        }
        if let Some(new) = self.scaled.as_ref().and_then(|scaled| scaled.map(replace)) {
            self.scale(new);
        }
        self.guards
            .retain_mut(|guard| match guard.value.map(replace) {
                None => true,
                Some(value) => renew(guard, &value),
            });
    }

    pub(super) fn substitute_register(&mut self, register: u8, value: &Linear) {
        self.substitute(&mut |atom| (*atom == Atom::Register(register)).then(|| value.clone()));
    }

    /// Whether going back over the instruction changes anything of the path.
    pub(super) fn is_touched_by(&self, effect: &Effect) -> bool {
        !self.pending.is_empty() && effect.flags != Flags::Kept
            || effect
                .registers
                .iter()
                .any(|(register, _)| self.uses.registers >> register & 1 != 0)
            || self.uses.memory
                && (effect.store.is_some() || effect.writes_anywhere || effect.writes_everything)
    }

    /// Notes anew what the values are made of.
    pub(super) fn note_uses(&mut self) {
        let mut uses = Uses::default();
        let mut note = |atom: &Atom| {
            match atom {
                Atom::Register(number) => uses.registers |= 1 << number,
                Atom::Load { .. } => uses.memory = true,
                _ => {}
            }
            false
        };
        self.target.any(&mut note);
        if let Some(scaled) = &self.scaled {
            scaled.any(&mut note);
        }
        self.guards.iter().for_each(|guard| {
            guard.value.any(&mut note);
        });
        self.uses = uses;
    }

    /// Loads that may have changed no longer equal loads made before; guards on them are lost.
    pub(super) fn spoil(&mut self, changed: &dyn Fn(&Linear) -> bool) {
        let mut is_changed = |atom: &Atom| matches!(atom, Atom::Load { address, stale: false, .. } if changed(address));
        self.guards
            .retain(|guard| !guard.value.any(&mut is_changed));
        let spoiled = self.target.map(&mut |atom| match atom {
            Atom::Load {
                address,
                size,
                stale: false,
            } if changed(address) => Some(Linear::atom(Atom::Load {
                address: address.clone(),
                size: *size,
                stale: true,
            })),
            _ => None,
        });
        self.target = spoiled.unwrap_or_else(|| std::mem::take(&mut self.target));
    }

    /// What a foreign hand may have done to the frame: guards on memory are lost, and what an index
    /// was loaded from no longer equals what was compared. Bases and pointers that were spilled stay.
    pub(super) fn distrust_variables(&mut self, is_frame: &dyn Fn(&Linear) -> bool) {
        self.guards.retain(|guard| {
            !guard
                .value
                .any(&mut |atom| matches!(atom, Atom::Load { .. }))
        });
        let aged = self.target.map(&mut |atom| match atom {
            Atom::Load {
                address,
                size,
                stale,
            } => Some(Linear::atom(Atom::Load {
                address: age_indices(address, is_frame)?,
                size: *size,
                stale: *stale,
            })),
            _ => None,
        });
        self.target = aged.unwrap_or_else(|| std::mem::take(&mut self.target));
    }

    pub(super) fn add_guard(&mut self, mut new: Guard) {
        if let Some(old) = self
            .guards
            .iter_mut()
            .find(|old| old.value == new.value && old.bits == new.bits)
        {
            old.interval = old.interval.intersect(new.interval, new.bits);
            return;
        }
        if self.guards.len() >= MOST_GUARDS {
            let is_spare = |guard: &Guard| !is_half_bound(&self.target, guard);
            let spare = self.guards.iter().position(is_spare);
            self.guards.remove(spare.unwrap_or(0));
        }
        new.interval.low &= low_mask(new.bits);
        self.guards.push(new);
    }

    /// Tells the index from the rest as soon as that can be done; then guards no longer matter.
    pub(super) fn simplify(&mut self, mode: Mode) {
        if self.index.is_none() {
            match mode {
                Mode::Guarded => self.find_guarded_index(),
                Mode::Scaled => self.find_scaled_index(),
                Mode::Pointer | Mode::Entry => {}
            }
        }
        if self.index.is_some() || mode != Mode::Guarded {
            self.guards.clear();
            self.pending.clear();
        }
        self.note_uses();
    }

    pub(super) fn find_guarded_index(&mut self) {
        let useful = self
            .guards
            .iter()
            .filter(|guard| guard.interval.count <= LARGEST_TABLE);
        let found = useful.into_iter().find_map(|guard| {
            let bounded = self
                .target
                .map(&mut |atom| is_bounded(atom, guard).then(|| as_index(atom)))?;
            Some((bounded, guard.interval))
        });
        if let Some((target, interval)) = found {
            self.target = target;
            self.index = Some(interval);
            self.guarded = true;
        }
    }

    /// Whether a guard bounds the lower part of a register in the target: what writes that will tell of the rest.
    pub(super) fn awaits_width(&self) -> bool {
        self.guards
            .iter()
            .any(|guard| is_half_bound(&self.target, guard))
    }

    /// The index is what is multiplied in the address of a load.
    pub(super) fn find_scaled_index(&mut self) {
        let mut found = None;
        self.target.any(&mut |atom| {
            if let Atom::Load { address, .. } = atom {
                let mut scaled = address.terms.iter().filter_map(scale_of);
                if let (Some(only), None) = (scaled.next(), scaled.next()) {
                    found = Some(only);
                }
            }
            false
        });
        let Some((index, step)) = found else { return };
        let number = Linear::atom(Atom::Index).times(step);
        if let Some(target) = self
            .target
            .map(&mut |atom| (*atom == index).then(|| number.clone()))
        {
            self.target = target;
            self.index = Some(Interval {
                low: 0,
                count: u128::from(low_mask(index.width()) / step) + 1,
            });
            self.scale(Linear::atom(index));
        }
    }

    /// Notes what the index is computed from: a register, whose value is not known yet, or what tells whether it can be negative.
    fn scale(&mut self, from: Linear) {
        self.may_be_negative = !is_never_negative(&from);
        let is_open = matches!(from.as_atom(), Some(Atom::Register(_)));
        self.scaled = Some(from).filter(|_| is_open);
    }

    /// Whether the target is eight bytes of memory as they are, of an indexed table only if that will do. What is in the
    /// function's frame was put there by itself.
    pub(super) fn is_loaded_pointer(&self, mode: Mode, is_frame: impl Fn(&Linear) -> bool) -> bool {
        let Some(Atom::Load {
            address, size: 8, ..
        }) = self.target.as_atom()
        else {
            return false;
        };
        let is_plain = address.terms.iter().all(|(_, factor)| *factor == 1);
        (mode == Mode::Entry || is_plain) && !is_frame(address)
    }

    /// Whether the target, at the function's entry, is an argument: in a register, or behind the return address.
    pub(super) fn is_argument(&self) -> bool {
        match self.target.as_atom() {
            Some(Atom::Register(_)) => true,
            Some(Atom::Load {
                address,
                size: 8,
                stale: false,
            }) => is_based_on(address, RSP) && address.constant.cast_signed() >= 8,
            _ => false,
        }
    }

    /// Whether the target is what some unknown instruction gave (the result of a call, say).
    pub(super) fn is_found_pointer(&self, mode: Mode) -> bool {
        mode.asks_for_origin() && matches!(self.target.as_atom(), Some(Atom::Opaque(_)))
    }

    /// What the path gives once it is solved.
    pub(super) fn solution(&self) -> Solution {
        Solution {
            target: self.target.clone(),
            index: self.index,
            guarded: self.guarded,
            may_be_negative: self.may_be_negative,
        }
    }

    /// Whether no further substitution can solve the path.
    pub(super) fn is_hopeless(&self) -> bool {
        self.target.any(&mut |atom| matches!(atom, Atom::Opaque(_)))
    }
}

/// Whether the guard bounds the lower part of a register in the target, to what a table may have entries for.
fn is_half_bound(target: &Linear, guard: &Guard) -> bool {
    let is_register = matches!(guard.value.as_atom(), Some(Atom::Register(_)));
    guard.bits < 64
        && guard.interval.count <= LARGEST_TABLE
        && is_register
        && target.any(&mut |atom| guard.value.as_atom() == Some(atom))
}

/// The index of a table, where a part of an address is one, and what it is a multiple of: a mask may have left it scaled.
fn scale_of((atom, factor): &(Atom, u64)) -> Option<(Atom, u64)> {
    let is_size = |size: u64| matches!(size, 2 | 4 | 8);
    let step = match atom {
        _ if is_size(*factor) => 1,
        Atom::And(_, mask) if has_no_gap(*mask) => 1 << mask.trailing_zeros(),
        _ => return None,
    };
    is_size(factor.wrapping_mul(step)).then(|| (atom.clone(), step))
}

/// Whether the bits of a mask, which has some, are next to each other.
fn has_no_gap(mask: u64) -> bool {
    mask.count_ones() == 64 - mask.leading_zeros() - mask.trailing_zeros()
}

/// Whether the value is that of fewer bits than a register has, without a sign.
fn is_never_negative(value: &Linear) -> bool {
    match value.as_atom() {
        Some(Atom::Zero(bits, _)) => *bits < 64,
        Some(Atom::Load { size, .. }) => *size < 8,
        Some(Atom::And(_, mask)) => mask.cast_signed() >= 0,
        Some(Atom::Shift(_, count)) => *count > 0,
        _ => false,
    }
}

/// Whether the address is that register plus a constant.
pub(super) fn is_based_on(address: &Linear, register: u8) -> bool {
    matches!(address.terms[..], [(Atom::Register(number), 1)] if number == register)
}

/// What a bounded atom is of the index, which stands for the value that the guard bounds.
fn as_index(atom: &Atom) -> Linear {
    let (_, bits, bias, signed) = view(atom);
    let index = Linear::atom(Atom::Index).plus_constant(bias);
    if signed {
        index.sign_extended(bits)
    } else {
        index.zero_extended(bits)
    }
}

/// The address of a load with all that is no base made stale where it comes from the frame; `None`
/// if nothing does. A base is eight bytes as they are, not multiplied.
fn age_indices(address: &Linear, is_frame: &dyn Fn(&Linear) -> bool) -> Option<Linear> {
    age_terms(address, &|atom, factor| {
        let is_base = factor == 1 && matches!(atom, Atom::Load { size: 8, .. });
        if is_base { None } else { age(atom, is_frame) }
    })
}

/// The sum of what `age` makes of its atoms; `None` if that is nothing.
fn age_terms(sum: &Linear, age: &dyn Fn(&Atom, u64) -> Option<Linear>) -> Option<Linear> {
    let mut changed = false;
    let mut aged = Linear::constant(sum.constant);
    for (atom, factor) in &sum.terms {
        let new = age(atom, *factor);
        changed |= new.is_some();
        aged = aged.plus(&new.unwrap_or_else(|| Linear::atom(atom.clone())), *factor);
    }
    changed.then_some(aged)
}

/// The atom with loads from the frame made stale, but for those that only say where another one
/// loads from; `None` if there are none.
fn age(atom: &Atom, is_frame: &dyn Fn(&Linear) -> bool) -> Option<Linear> {
    let all = |inner: &Linear| age_terms(inner, &|atom, _| age(atom, is_frame));
    match atom {
        Atom::Load {
            address,
            size,
            stale: false,
        } if is_frame(address) => Some(Linear::atom(Atom::Load {
            address: address.clone(),
            size: *size,
            stale: true,
        })),
        Atom::Zero(bits, inner) => Some(all(inner)?.zero_extended(*bits)),
        Atom::Sign(bits, inner) => Some(all(inner)?.sign_extended(*bits)),
        Atom::And(inner, mask) => Some(all(inner)?.masked(*mask)),
        Atom::Shift(inner, count) => Some(all(inner)?.shifted_right(*count)),
        _ => None,
    }
}

/// Brings a guard whose value has changed into normal form; whether it still says anything of use. What
/// has grown beyond use could bound only a target that has, too; mixed values double with every step.
fn renew(guard: &mut Guard, value: &Linear) -> bool {
    match narrow(value.zero_extended(guard.bits), guard.bits, guard.interval) {
        Some(new) if !new.value.is_too_large() => {
            *guard = new;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(target: Linear) -> Path {
        let at = BlockRef {
            fragment: 0,
            block: 0,
        };
        let (guards, pending) = (Vec::new(), Vec::new());
        Path {
            at,
            target,
            guards,
            pending,
            index: None,
            guarded: false,
            scaled: None,
            may_be_negative: false,
            uses: Uses::default(),
        }
    }

    fn at_most_five(register: u8) -> Guard {
        let interval = Interval { low: 0, count: 6 };
        narrow(Linear::register(register), 64, interval).expect("it says something")
    }

    /// What a step of mixing makes of a register, in terms of it and the next one, of three.
    fn mixed(register: u8) -> Linear {
        let own = Linear::register(register);
        own.clone()
            .plus(&own.shifted_right(7), 1)
            .plus(&Linear::register((register + 1) % 3), 3)
    }

    #[test]
    fn guards_on_what_is_mixed_again_and_again_do_not_grow() {
        let mut path = path(Linear::register(9));
        path.add_guard(at_most_five(0));
        path.add_guard(at_most_five(8));
        for _ in 0..100 {
            path.substitute(&mut |atom| match atom {
                Atom::Register(register) if *register < 3 => Some(mixed(*register)),
                _ => None,
            });
            assert!(path.guards.iter().all(|guard| !guard.value.is_too_large()));
        }
        assert_eq!(path.guards, [at_most_five(8)]);
    }
}
