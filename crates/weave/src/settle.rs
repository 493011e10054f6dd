//! Last word over all windows of a program: none overlaps another, and none is in a word that another
//! one's restoration writes.
//!
//! Functions are placed one by one, in parallel; where two meet, in a word or in the filling between
//! them, is decided here, in one walk over the windows by address. Windows do not overlap, so the
//! nearest on either side is the only one that can be in the way.

use rayon::prelude::*;
use tomo_program::{Address, Range};
use tomo_wire::plan::Tactic;

use crate::counts::Refusal;
use crate::hops;
use crate::place::{Unit, Wish};
use crate::window::{Window, in_one_fetch};

/// Sorts the units: those with a probe by window, then the others by address; gives out the filling. `kept` are
/// windows that are changed for good, by address, none of which overlaps a unit's; `traps` is whether an `int3` may be met.
/// Returns how many have a probe. O(n log n).
pub(crate) fn settle(units: &mut [Unit], gaps: &[Range], kept: &[Window], traps: bool) -> usize {
    let mut probes = sort(units);
    if drop_overlapping(&mut units[..probes]) {
        probes = sort(units);
    }
    let mut filling = hops::Filling::of(gaps, &units[..probes]);
    let rounds = if traps {
        hops::ROUNDS
    } else {
        hops::WITHOUT_TRAPS
    };
    for round in rounds {
        if hops::give(units, probes, &mut filling, *round) {
            probes = sort(units);
        }
    }
    if !traps {
        probes = without_traps(units, probes);
    }
    hold_disturbed(&mut units[..probes], kept);
    hops::spare_holds(&mut units[..probes], &mut filling);
    match traps {
        true => probes,
        false => without_traps(units, probes),
    }
}

/// Whether an `int3` may be met at a probe: at traps, and at detours that are restored behind a hold.
pub(crate) fn may_trap(tactic: Tactic) -> bool {
    matches!(tactic, Tactic::Held | Tactic::HeldHop | Tactic::Trap)
}

/// Gives up the probes at which an `int3` may be met. Returns how many have a probe.
fn without_traps(units: &mut [Unit], probes: usize) -> usize {
    for unit in &mut units[..probes] {
        if may_trap(unit.window.tactic) {
            unit.window = Window::new(unit.window.start, Tactic::NoPlace);
            unit.refusal = Some(Refusal::NoSignals);
        }
    }
    sort(units)
}

fn sort(units: &mut [Unit]) -> usize {
    units.par_sort_unstable_by_key(|unit| {
        let probe = unit.window.tactic.is_probe();
        (!probe, unit.window.start, unit.from, unit.to)
    });
    units.partition_point(|unit| unit.window.tactic.is_probe())
}

/// The later of two windows that overlap is given up. Only a model in which functions share bytes
/// can bring this about.
fn drop_overlapping(units: &mut [Unit]) -> bool {
    let mut dropped = false;
    let mut end = Address(0);
    for unit in units {
        if unit.window.start < end {
            unit.window = Window::new(unit.window.start, Tactic::NoPlace);
            unit.refusal = Some(Refusal::Taken);
            unit.wish = Wish::None;
            dropped = true;
        } else {
            end = unit.end();
        }
    }
    dropped
}

/// Who writes a whole word, and has somebody else in it, is restored behind a hold instead: a word
/// lies in a line. Behind a prefix there can be no hold, so the jump moves before it, or is a trap.
fn hold_disturbed(units: &mut [Unit], kept: &[Window]) {
    // Moving takes a byte of the word before, which may be that of a prefixed jump too: backwards.
    for index in (0..units.len()).rev() {
        let window = units[index].window;
        if window.tactic == Tactic::Prefixed && is_disturbed(units, index, kept) {
            move_before_prefix(&mut units[index]);
        }
    }
    for index in 0..units.len() {
        if units[index].window.tactic == Tactic::Quadword && is_disturbed(units, index, kept) {
            units[index].window.tactic = Tactic::Held;
        }
    }
}

fn is_disturbed(units: &[Unit], index: usize, kept: &[Window]) -> bool {
    let window = units[index].window;
    let before = index.checked_sub(1).and_then(|index| units.get(index));
    let near = before.into_iter().chain(units.get(index + 1));
    let behind = kept.partition_point(|one| one.start < window.start);
    let kept = kept[behind.saturating_sub(1)..].iter().take(2).copied();
    near.map(|unit| unit.window)
        .chain(kept)
        .any(|near| near.disturbs(window))
}

fn move_before_prefix(unit: &mut Unit) {
    let start = Address(unit.window.start.0 - 1);
    if in_one_fetch(start) {
        unit.window = Window::new(start, Tactic::Held);
    } else {
        unit.window = Window::new(start, Tactic::Trap);
        unit.refusal = Some(Refusal::CrossesFetch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A jump at 0x1003, in one word; and a block at 0x1000, of which a short jump alone would fit.
    fn neighbours() -> Vec<Unit> {
        let sure = Window::new(Address(0x1003), Tactic::Quadword);
        let short = Window::new(Address(0x1000), Tactic::Trap);
        let wishing = Unit {
            wish: Wish::Block,
            ..Unit::block(Address(0x1000), short, Some(Refusal::TooShort))
        };
        vec![wishing, Unit::block(Address(0x1003), sure, None)]
    }

    /// The tactics of the units, by address, with so much filling behind them.
    fn settled(traps: bool, filling: u64) -> Vec<Tactic> {
        let gap = Range::new(Address(0x1010), Address(0x1010 + filling)).expect("a range");
        let mut units = neighbours();
        settle(&mut units, &[gap], &[], traps);
        units.sort_by_key(|unit| unit.from);
        units.iter().map(|unit| unit.window.tactic).collect()
    }

    #[test]
    fn what_stands_behind_a_prefix_becomes_no_hop() {
        let gap = Range::new(Address(0x1020), Address(0x1040)).expect("a range");
        let mut units = neighbours();
        units[1].window = Window::new(Address(0x1003), Tactic::Prefixed);
        settle(&mut units, &[gap], &[], false);
        let tactics: Vec<Tactic> = units.iter().map(|unit| unit.window.tactic).collect();
        assert_eq!(tactics, [Tactic::Prefixed, Tactic::NoPlace]);
    }

    #[test]
    fn where_traps_may_be_a_jump_is_held_beside_one() {
        assert_eq!(settled(true, 0), [Tactic::Trap, Tactic::Held]);
        assert_eq!(settled(true, 5), [Tactic::Hop, Tactic::Held]);
        assert_eq!(settled(true, 10), [Tactic::Hop, Tactic::Hop]);
    }

    #[test]
    fn where_no_trap_may_be_what_is_sure_is_not_given_up() {
        assert_eq!(settled(false, 0), [Tactic::NoPlace, Tactic::Quadword]);
        assert_eq!(settled(false, 5), [Tactic::NoPlace, Tactic::Hop]);
        assert_eq!(settled(false, 10), [Tactic::Hop, Tactic::Hop]);
    }
}
