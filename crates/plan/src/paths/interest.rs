//! Which paths are of interest, as the set of ways on them.
//!
//! Source: SPP §3 (EI, the set of edges of all paths of interest), §1 and §6 (residual profiling:
//! only what has not been seen). O(ways of the paths listed), and for the residual O(nodes + arcs)
//! more.
//!
//! A path all of whose ways are in the set is told apart, whether it was listed or not: the set
//! stands for the smallest such family around the paths listed.
//!
//! The residual is found by counting, not by listing what is left: a way is on an unseen path just
//! if more paths lead along it than were seen there.

use std::collections::HashSet;

use super::numbering::{count_paths, count_paths_to};
use super::{ArcId, PathDag, PathError};

/// The ways on paths of interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interest {
    on: Vec<bool>,
}

impl Interest {
    /// Everything.
    #[must_use]
    pub fn all(dag: &PathDag) -> Self {
        Self {
            on: vec![true; dag.arcs().len()],
        }
    }

    /// The paths listed, each by its ways.
    ///
    /// # Errors
    /// If one of them is no path of `dag`.
    pub fn of<P: AsRef<[ArcId]>>(
        dag: &PathDag,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, PathError> {
        let mut on = vec![false; dag.arcs().len()];
        for (at, path) in paths.into_iter().enumerate() {
            let path = path.as_ref();
            dag.path_along(path).ok_or(PathError::NoSuchPath(at))?;
            path.iter().for_each(|id| on[id.index()] = true);
        }
        Ok(Self { on })
    }

    /// The paths that are not among those seen, each of these given by its ways.
    ///
    /// # Errors
    /// If one of them is no path of `dag`.
    pub fn unseen<P: AsRef<[ArcId]>>(
        dag: &PathDag,
        seen: impl IntoIterator<Item = P>,
    ) -> Result<Self, PathError> {
        let mut seen_along = vec![0u128; dag.arcs().len()];
        let mut known = HashSet::new();
        for (at, path) in seen.into_iter().enumerate() {
            let path = path.as_ref();
            dag.path_along(path).ok_or(PathError::NoSuchPath(at))?;
            if known.insert(path.to_vec()) {
                path.iter().for_each(|id| seen_along[id.index()] += 1);
            }
        }
        let (from, to) = (count_paths(dag), count_paths_to(dag));
        let is_open = |(arc, seen): (&super::DagArc, u128)| {
            let before = to[arc.from.index()];
            let paths = before.and_then(|paths| paths.checked_mul(from[arc.to.index()]?));
            paths.is_none_or(|paths| paths > seen)
        };
        let arcs = dag.arcs().iter().zip(seen_along);
        Ok(Self {
            on: arcs.map(is_open).collect(),
        })
    }

    /// Whether a way is on a path of interest (SPP's EI).
    #[must_use]
    pub fn has(&self, id: ArcId) -> bool {
        self.on[id.index()]
    }

    /// Whether all ways of a path are.
    #[must_use]
    pub fn has_path(&self, arcs: &[ArcId]) -> bool {
        arcs.iter().all(|&id| self.has(id))
    }

    /// Whether no path is of interest.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.on.contains(&true)
    }
}
