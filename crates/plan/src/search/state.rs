//! The state of a search as plain data, to be saved between iterations that take days.

use serde::{Deserialize, Serialize};

use super::Icdg;

/// Which way the search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// From what always runs to what depends on the best predicate (ABI §4.1).
    Forward,
    /// From crashes, also to what decides about the best predicate's block (ABI §4.2).
    Backward,
}

/// All that a search knows, apart from its graph. Numbers are those of sites and predicates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Sites and predicates of the graph, to tell another program's state.
    pub size: (u32, u32),
    /// Which way the search goes.
    pub direction: Direction,
    /// Sites of which there are data, in the order in which they were watched.
    pub monitored: Vec<u32>,
    /// Predicates whose vicinity has been added, in order.
    pub explored: Vec<u32>,
    /// Sites that are watched now.
    pub plan: Vec<u32>,
    /// Sites that are to be watched next, since the plan was full or somebody put them off.
    pub pending: Vec<u32>,
    /// The most sites to be watched at once.
    pub most: u32,
    /// Where to go on looking for routines that nothing led to.
    pub next_routine: u32,
    /// Routines that were surveyed, ascending: of each it is known already in which runs it was entered.
    #[serde(default)]
    pub surveyed: Vec<u32>,
    /// Routines of these that only failing runs enter, ascending.
    #[serde(default)]
    pub doomed: Vec<u32>,
    /// Routines that no failing run enters, ascending.
    #[serde(default)]
    pub idle: Vec<u32>,
}

/// Why a state is not one of this graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// It is of a graph of another size.
    #[error("the state is of {found:?} sites and predicates, the program has {expected:?}")]
    OtherProgram {
        /// What the state says.
        found: (u32, u32),
        /// What the graph has.
        expected: (u32, u32),
    },
    /// It names a site or a predicate that there is not.
    #[error("the state names {0}, which there is not")]
    NoSuchNumber(u32),
    /// It lists a site or a predicate twice.
    #[error("the state lists {0} twice")]
    Twice(u32),
}

impl State {
    pub(super) fn new(icdg: &Icdg, direction: Direction) -> Self {
        Self {
            size: size(icdg),
            direction,
            monitored: Vec::new(),
            explored: Vec::new(),
            plan: Vec::new(),
            pending: Vec::new(),
            most: u32::MAX,
            next_routine: 0,
            surveyed: Vec::new(),
            doomed: Vec::new(),
            idle: Vec::new(),
        }
    }

    /// That this is a state of `icdg`.
    pub(super) fn check(&self, icdg: &Icdg) -> Result<(), StateError> {
        let expected = size(icdg);
        if self.size != expected {
            return Err(StateError::OtherProgram {
                found: self.size,
                expected,
            });
        }
        let sites = self.monitored.iter().chain(&self.plan).chain(&self.pending);
        once_each(sites, expected.0)?;
        let routines = icdg.routine_count();
        for known in [&self.surveyed, &self.doomed, &self.idle] {
            once_each(known.iter(), routines)?;
        }
        once_each(self.explored.iter(), expected.1.saturating_add(routines))
    }
}

fn size(icdg: &Icdg) -> (u32, u32) {
    (icdg.site_count() as u32, icdg.predicate_count() as u32)
}

fn once_each<'s>(numbers: impl Iterator<Item = &'s u32>, below: u32) -> Result<(), StateError> {
    let mut seen = vec![false; below as usize];
    for &number in numbers {
        let seen = seen
            .get_mut(number as usize)
            .ok_or(StateError::NoSuchNumber(number))?;
        if std::mem::replace(seen, true) {
            return Err(StateError::Twice(number));
        }
    }
    Ok(())
}
