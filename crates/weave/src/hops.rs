//! Gives out the filling of a program to those that need it for a hop (`tactics/hop.rs`).
//!
//! Filling is scarce: first come blocks, which would trap otherwise, then edges, which would not be
//! observed; what is left goes to jumps that would be held, and so restored by three stores in place of
//! one, each of which costs as much as the rest of a first hit. Each takes the first free place within its reach, by address; for places of one size this
//! greedy choice serves as many as can be (each has a span of addresses that it reaches, all spans are
//! equally long). Linear, since reach is short, but for a sort. Who reaches none may still get there by way of short jumps in filling
//! that has room for nothing else: before any jump is spared its hold.

use tomo_program::{Address, Range};
use tomo_wire::plan::Tactic;

use crate::place::{Placed, Unit, Wish};
use crate::tactics::hop;
use crate::window::{JUMP_BYTES, WORD_BYTES, Window, writes_word};

/// How far behind a place a hop may lead at most, and how far before it.
const REACH: u64 = 130;

/// What is left of the filling, by address.
pub(crate) struct Filling {
    free: Vec<(u64, u64)>,
    /// Where gaps start, covered or not.
    starts: Vec<u64>,
}

impl Filling {
    /// The gaps without what the windows of `probes`, which are in order, cover or write.
    pub(crate) fn of(gaps: &[Range], probes: &[Unit]) -> Self {
        let windows: Vec<Window> = probes.iter().map(|unit| unit.window).collect();
        let free = gaps.iter().map(|gap| {
            let (mut start, mut end) = (gap.start().0, gap.end().0);
            let near = windows.partition_point(|w| w.end().0 + WORD_BYTES <= start);
            for window in windows[near..].iter() {
                let (from, to) = written(*window);
                if from >= end {
                    break;
                }
                if from <= start {
                    start = start.max(to);
                } else {
                    end = end.min(from);
                }
            }
            (start, end.max(start))
        });
        Self {
            free: free.collect(),
            starts: gaps.iter().map(|gap| gap.start().0).collect(),
        }
    }

    /// What is left.
    fn rest(&self) -> Vec<Range> {
        let free = self.free.iter();
        free.filter_map(|(start, end)| Range::new(Address(*start), Address(*end)))
            .filter(|free| !free.is_empty())
            .collect()
    }

    /// The first place that a short jump or branch ending at `end` reaches.
    fn take(&mut self, end: Address) -> Option<Address> {
        let near = self.free.partition_point(|free| free.1 + REACH < end.0);
        let reached = |free: &&mut (u64, u64)| {
            free.1 - free.0 >= JUMP_BYTES && hop::displacement(end, Address(free.0)).is_some()
        };
        let within = |free: &&mut (u64, u64)| free.0 <= end.0 + REACH;
        let found = self.free[near..]
            .iter_mut()
            .take_while(within)
            .find(reached)?;
        let slot = Address(found.0);
        found.0 += JUMP_BYTES;
        Some(slot)
    }

    /// Takes the byte that a short jump has in filling, if it has one there: in which, to be given back. `None` where that
    /// is not free.
    fn reach_into(&mut self, window: Window) -> Option<Option<usize>> {
        let second = window.start.0 + 1;
        let Ok(at) = self.starts.binary_search(&second) else {
            return Some(None);
        };
        let free = self.free.get_mut(at)?;
        if free.0 != second || free.1 <= second {
            return None;
        }
        free.0 += 1;
        Some(Some(at))
    }

    /// Gives back what [`Self::reach_into`] took.
    fn leave(&mut self, reached: Option<usize>) {
        if let Some(free) = reached.and_then(|at| self.free.get_mut(at)) {
            free.0 -= 1;
        }
    }

    /// A place that a short jump or branch ending at `end` gets to by way of so many others at most, and where these are: each
    /// as far as it can be on the way down or up, in filling of which a long jump would leave as much.
    fn take_far(&mut self, end: Address, relays: &mut [Address]) -> Option<Address> {
        let (first, rest) = relays.split_first_mut()?;
        for upwards in [false, true] {
            let Some(at) = self.farthest(end, upwards) else {
                continue;
            };
            self.free[at].1 -= hop::BYTES;
            let relay = Address(self.free[at].1);
            let behind = relay.wrapping_add(hop::BYTES);
            if let Some(slot) = self.take(behind).or_else(|| self.take_far(behind, rest)) {
                *first = relay;
                return Some(slot);
            }
            self.free[at].1 += hop::BYTES;
            rest.fill(Address(0));
        }
        None
    }

    /// The farthest place for a relay that a short jump or branch ending at `end` reaches on one side.
    fn farthest(&self, end: Address, upwards: bool) -> Option<usize> {
        let first = self.free.partition_point(|free| free.1 + REACH < end.0);
        let count = self.free[first..].partition_point(|free| free.0 <= end.0 + REACH);
        let fits = |at: &usize| {
            let (start, until) = self.free[*at];
            let is_there = (start >= end.0) == upwards;
            let spare = (until - start) % JUMP_BYTES >= hop::BYTES;
            let relay = Address(until.wrapping_sub(hop::BYTES));
            is_there && spare && hop::displacement(end, relay).is_some()
        };
        let mut near = first..first + count;
        match upwards {
            true => near.rfind(fits),
            false => near.find(fits),
        }
    }

    /// The filling directly behind `window`, which reaches into it, if all of it from `end` on is free
    /// and has room.
    fn take_own(&mut self, window: Window, end: Address) -> Option<Address> {
        let behind = window.end();
        let index = self.free.binary_search_by_key(&behind.0, |free| free.0);
        let free = self.free.get_mut(index.ok()?)?;
        let fits = free.1 - end.0 >= JUMP_BYTES && self.starts.binary_search(&end.0).is_ok();
        fits.then(|| free.0 = end.0 + JUMP_BYTES)?;
        Some(end)
    }
}

/// The bytes that restoring a window writes.
fn written(window: Window) -> (u64, u64) {
    let start = window.start.0;
    if writes_word(window.tactic) {
        let word = start - start % WORD_BYTES;
        (word, word + WORD_BYTES)
    } else {
        (start, window.end().0)
    }
}

/// What gives a place for a short jump or branch that ends at an address, and by way of which relays.
type Take = fn(&mut Filling, Address, &mut [Address]) -> Option<Address>;

/// What becomes of jumps beside a hop whose restoration would write its bytes, since it writes all of their word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// They are held.
    Held,
    /// Nothing: there is no hop.
    Kept,
    /// They become hops as well, or there is no hop.
    Hop,
}

/// One round of giving out filling.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    take: Take,
    beside: Beside,
}

impl Round {
    /// Gives what is in reach.
    const fn near(beside: Beside) -> Self {
        let take: Take = |filling, end, _| filling.take(end);
        Self { take, beside }
    }

    /// Gives what relays reach.
    const fn far(beside: Beside) -> Self {
        let take: Take = Filling::take_far;
        Self { take, beside }
    }
}

/// How filling is given out.
pub(crate) const ROUNDS: &[Round] = &[Round::near(Beside::Held), Round::far(Beside::Held)];

/// The same where nothing may be held: what is sure is not given up for what may be.
pub(crate) const WITHOUT_TRAPS: &[Round] = &[
    Round::near(Beside::Kept),
    Round::far(Beside::Kept),
    Round::near(Beside::Hop),
];

/// Serves the wishes of `units`, of which the first `probes` have windows that are in order and
/// apart. Whether anything was given.
pub(crate) fn give(units: &mut [Unit], probes: usize, filling: &mut Filling, round: Round) -> bool {
    let blocks = serve_blocks(&mut units[..probes], filling, round);
    let edges = serve_edges(units, probes, filling, round);
    blocks || edges
}

fn serve_blocks(probes: &mut [Unit], filling: &mut Filling, round: Round) -> bool {
    let mut given = false;
    for index in 0..probes.len() {
        let next = probes.get(index + 1).map(|next| next.window);
        let unit = &probes[index];
        let longer = Window::new(unit.window.start, hop::tactic(unit.window.start));
        if unit.wish != Wish::Block || next.is_some_and(|next| next.overlaps(longer)) {
            continue;
        }
        if !make_way(probes, longer, filling, round.beside) {
            continue;
        }
        let Some(reached) = filling.reach_into(longer) else {
            continue;
        };
        let unit = &mut probes[index];
        match (round.take)(filling, longer.end(), &mut unit.relays) {
            Some(slot) => {
                serve(unit, longer, slot);
                given = true;
            }
            None => filling.leave(reached),
        }
    }
    given
}

/// Whether nothing beside `hop` is in its way, or what is has been made a hop too. Where nothing is held, it is not either.
fn make_way(probes: &mut [Unit], hop: Window, filling: &mut Filling, beside: Beside) -> bool {
    if beside == Beside::Held {
        return true;
    }
    if hop.tactic == Tactic::HeldHop {
        return false;
    }
    let near = in_word(probes, hop, |unit| unit.window);
    let mut disturbed = probes[near]
        .iter_mut()
        .filter(|unit| hop.disturbs(unit.window));
    disturbed.all(|unit| beside == Beside::Hop && spare(unit, filling))
}

/// Which of `all`, which are in order, have windows that begin in the word in which `window` begins.
fn in_word<T>(all: &[T], window: Window, own: impl Fn(&T) -> Window) -> std::ops::Range<usize> {
    let word = |window: Window| window.start.0 / WORD_BYTES;
    let first = all.partition_point(|one| word(own(one)) < word(window));
    let count = all[first..].partition_point(|one| word(own(one)) == word(window));
    first..first + count
}

fn serve_edges(units: &mut [Unit], probes: usize, filling: &mut Filling, round: Round) -> bool {
    let windows: Vec<Window> = units[..probes].iter().map(|unit| unit.window).collect();
    let mut given = false;
    for unit in &mut units[probes..] {
        let window = Window::new(unit.window.start, Tactic::ShortRetarget);
        let after = windows.partition_point(|other| other.start <= window.start);
        let mut near = windows[after.saturating_sub(1)..].iter().take(2);
        if unit.wish != Wish::Edge || near.any(|other| other.overlaps(window)) {
            continue;
        }
        let beside = &windows[in_word(&windows, window, |other| *other)];
        if round.beside != Beside::Held && beside.iter().any(|other| window.disturbs(*other)) {
            continue;
        }
        if let Some(slot) = (round.take)(filling, window.end(), &mut unit.relays) {
            serve(unit, window, slot);
            given = true;
        }
    }
    given
}

/// Serves the wishes of the units of one function from its own filling, for good: what others get is what is left then. The
/// units with probes come first afterwards.
pub(crate) fn give_own(placed: &mut Placed) {
    let Placed { units, gaps } = placed;
    gaps.sort_unstable_by_key(|gap| gap.start());
    units.sort_by_key(|unit| (!unit.window.tactic.is_probe(), unit.window.start));
    let probes = units.partition_point(|unit| unit.window.tactic.is_probe());
    let mut filling = Filling::of(gaps, &units[..probes]);
    if give(units, probes, &mut filling, ROUNDS[0]) {
        *gaps = filling.rest();
    }
}

/// Gives what is left to jumps that are held. A shorter window is in nobody's way.
pub(crate) fn spare_holds(probes: &mut [Unit], filling: &mut Filling) {
    for unit in probes {
        if unit.window.tactic == Tactic::Held {
            spare(unit, filling);
        }
    }
}

/// Makes a hop of a jump, if there is filling for it.
fn spare(unit: &mut Unit, filling: &mut Filling) -> bool {
    let start = unit.window.start;
    let hop = Window::new(start, Tactic::Hop);
    // Behind a prefix there is no hop: it would come back into the midst of an instruction.
    let whole = matches!(unit.window.tactic, Tactic::Quadword | Tactic::Held);
    if !whole || hop::tactic(start) != hop.tactic {
        return false;
    }
    let own = filling.take_own(unit.window, hop.end());
    let slot = own.or_else(|| filling.take(hop.end()));
    slot.inspect(|slot| serve(unit, hop, *slot)).is_some()
}

fn serve(unit: &mut Unit, window: Window, slot: Address) {
    unit.window = window;
    unit.slot = slot;
    unit.refusal = None;
    unit.wish = Wish::None;
}
