//! Telling the way out of a branch from what comes next (DPT Figure 8).

use tomo_plan::witnesses::WitnessId;
use tomo_plan::witnesses::criterion::{Decision, Head};

use super::code::NONE;

/// What tells the ways of a branch apart. Heads are witnesses, or [`NONE`] for the end.
#[derive(Debug)]
pub(crate) struct Decider {
    kind: Kind,
    /// Whether heads are those of whole profiles, not of the function's own witnesses.
    pub(super) is_whole: bool,
}

#[derive(Debug)]
enum Kind {
    One {
        profile: u32,
        /// Heads, ascending, and beside them the way that each follows.
        heads: Vec<u32>,
        ways: Vec<u32>,
    },
    Pairs {
        by: Vec<u32>,
        sets: Vec<(u32, Vec<Vec<u32>>)>,
    },
}

/// What a decider says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// This way was taken.
    Way(u32),
    /// The run may have been cut off before it tells.
    Unknown,
    /// No way agrees with what comes next in this profile.
    Contradiction(u32),
}

impl Decider {
    pub(super) fn of_branch(decision: &Decision) -> Self {
        Self {
            kind: kind(decision),
            is_whole: false,
        }
    }

    pub(super) fn of_call(decision: &Decision) -> Self {
        Self {
            kind: kind(decision),
            is_whole: true,
        }
    }

    /// That of a branch, where heads are called what `number` calls them.
    pub(crate) fn named(decision: &Decision, number: impl Fn(WitnessId) -> u32) -> Self {
        let mut decider = Self::of_branch(decision);
        let rename = |heads: &mut Vec<u32>| {
            for head in heads.iter_mut().filter(|head| **head != NONE) {
                *head = number(WitnessId(*head));
            }
        };
        match &mut decider.kind {
            Kind::One { heads, ways, .. } => {
                rename(heads);
                let mut both: Vec<_> = heads.iter().copied().zip(ways.iter().copied()).collect();
                both.sort_unstable();
                (*heads, *ways) = both.into_iter().unzip();
            }
            Kind::Pairs { sets, .. } => {
                for heads in sets.iter_mut().flat_map(|(_, sets)| sets) {
                    rename(heads);
                    heads.sort_unstable();
                }
            }
        }
        decider
    }

    /// The way that follows from `head`, a function from profiles to what comes next there. If
    /// `open`, the end of a record says nothing.
    pub(crate) fn decide(&self, head: impl Fn(u32) -> u32, open: bool) -> Verdict {
        match &self.kind {
            Kind::One {
                profile,
                heads,
                ways,
            } => {
                let next = head(*profile);
                if open && next == NONE {
                    return Verdict::Unknown;
                }
                position(heads, next).map_or(Verdict::Contradiction(*profile), |at| {
                    Verdict::Way(ways[at])
                })
            }
            Kind::Pairs { by, sets } if open => eliminate(by, sets, head),
            Kind::Pairs { by, sets } => contest(by, sets, head),
        }
    }
}

/// Where `next` is in an ascending list. Most lists have two or three entries.
fn position(heads: &[u32], next: u32) -> Option<usize> {
    if heads.len() <= 8 {
        heads.iter().position(|&head| head == next)
    } else {
        heads.binary_search(&next).ok()
    }
}

type Sets = [(u32, Vec<Vec<u32>>)];

fn may_follow(sets: &Sets, profile: u32, way: usize, next: u32) -> bool {
    let set = sets.iter().find(|each| each.0 == profile);
    set.is_some_and(|set| position(&set.1[way], next).is_some())
}

fn width(sets: &Sets) -> usize {
    sets.first().map_or(0, |set| set.1.len())
}

/// Compares the ways two by two; the one that was taken wins against every other.
fn contest(by: &[u32], sets: &Sets, head: impl Fn(u32) -> u32) -> Verdict {
    let mut winner = 0;
    for other in 1..width(sets) {
        let profile = by[other * (other - 1) / 2 + winner];
        if !may_follow(sets, profile, winner, head(profile)) {
            winner = other;
        }
    }
    let refuted = |profile: &u32| {
        let pair =
            |other: usize| other.max(winner) * (other.max(winner) - 1) / 2 + other.min(winner);
        let regards = (0..width(sets)).any(|other| other != winner && by[pair(other)] == *profile);
        regards && !may_follow(sets, *profile, winner, head(*profile))
    };
    let profiles = sets.iter().map(|set| set.0);
    match profiles.into_iter().find(refuted) {
        Some(profile) => Verdict::Contradiction(profile),
        None => Verdict::Way(winner as u32),
    }
}

/// Rules out what an event contradicts, wherever there is one.
fn eliminate(by: &[u32], sets: &Sets, head: impl Fn(u32) -> u32) -> Verdict {
    let mut alive = vec![true; width(sets)];
    let mut last = by.first().copied().unwrap_or(0);
    for other in 1..alive.len() {
        for one in 0..other {
            let profile = by[other * (other - 1) / 2 + one];
            let next = head(profile);
            if next == NONE {
                continue;
            }
            for way in [one, other] {
                if alive[way] && !may_follow(sets, profile, way, next) {
                    alive[way] = false;
                    last = profile;
                }
            }
        }
    }
    let mut left = (0..alive.len()).filter(|&way| alive[way]);
    match (left.next(), left.next()) {
        (Some(way), None) => Verdict::Way(way as u32),
        (Some(_), Some(_)) => Verdict::Unknown,
        (None, _) => Verdict::Contradiction(last),
    }
}

fn number(head: &Head) -> u32 {
    head.map_or(NONE, |witness| witness.0)
}

fn kind(decision: &Decision) -> Kind {
    match decision {
        Decision::One { profile, table } => {
            let mut rows: Vec<(u32, u32)> = table
                .iter()
                .map(|(head, way)| (number(head), *way))
                .collect();
            rows.sort_unstable();
            let (heads, ways) = rows.into_iter().unzip();
            Kind::One {
                profile: *profile,
                heads,
                ways,
            }
        }
        Decision::Pairs { by, sets } => {
            let numbers = |set: &Vec<Head>| {
                let mut numbers: Vec<u32> = set.iter().map(number).collect();
                numbers.sort_unstable();
                numbers
            };
            let sets = sets
                .iter()
                .map(|(profile, sets)| (*profile, sets.iter().map(numbers).collect()));
            Kind::Pairs {
                by: by.clone(),
                sets: sets.collect(),
            }
        }
    }
}
