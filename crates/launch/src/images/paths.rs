//! Images that count paths.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use tomo_program::{FunctionView, Progress};
use tomo_weave::{Ask, NamedPath, PathEnds, PathsOf, weave_paths};

use super::{Baked, ImageError, Images};
use crate::Observed;
use crate::variant::Carried;

/// The paths that are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChosenPaths {
    /// All.
    #[default]
    All,
    /// All of the functions with these entries.
    Of(BTreeSet<u64>),
    /// Some of the functions with these entries.
    Some(BTreeMap<u64, PathsOf>),
    /// All but some of the functions with these entries, and all of all others.
    AllBut(BTreeMap<u64, PathsOf>),
    /// All of the functions with these entries, which end as they ended elsewhere, and some of others.
    Drawn(BTreeMap<u64, PathEnds>, BTreeMap<u64, PathsOf>),
}

impl ChosenPaths {
    fn ask(&self, function: &FunctionView<'_>) -> Ask<'_> {
        let entry = function.entry().0;
        match self {
            Self::All => Ask::All,
            Self::Of(entries) if entries.contains(&entry) => Ask::All,
            Self::Of(_) => Ask::Nothing,
            Self::Some(paths) => paths.get(&entry).map_or(Ask::Nothing, Ask::Some),
            Self::AllBut(paths) => paths.get(&entry).map_or(Ask::All, Ask::Some),
            Self::Drawn(whole, paths) => match whole.get(&entry) {
                Some(ends) => Ask::Whole(ends),
                None => paths.get(&entry).map_or(Ask::Nothing, Ask::Some),
            },
        }
    }

    /// Names them; 0 where they are all.
    fn name(&self) -> u64 {
        let mut bytes = Vec::new();
        match self {
            Self::All => return 0,
            Self::Of(entries) => put(&mut bytes, 0, entries.iter().copied()),
            Self::Some(paths) => put_all(&mut bytes, 1, paths),
            Self::AllBut(paths) => put_all(&mut bytes, 2, paths),
            Self::Drawn(whole, paths) => {
                put(&mut bytes, 3, whole.keys().copied());
                whole.values().for_each(|ends| put_ends(&mut bytes, ends));
                put_all(&mut bytes, 4, paths);
            }
        }
        tomo_wire::checksum(&bytes)
    }
}

/// Appends a list, so that no two different ones look alike.
fn put(bytes: &mut Vec<u8>, kind: u64, numbers: impl ExactSizeIterator<Item = u64>) {
    let head = [kind, numbers.len() as u64];
    let all = head.into_iter().chain(numbers);
    bytes.extend(all.flat_map(u64::to_le_bytes));
}

fn put_all(bytes: &mut Vec<u8>, kind: u64, functions: &BTreeMap<u64, PathsOf>) {
    put(bytes, kind, functions.keys().copied());
    for paths in functions.values() {
        put(
            bytes,
            u64::from(paths.others),
            [paths.paths.len() as u64].into_iter(),
        );
        for NamedPath { blocks, end } in &paths.paths {
            // No block starts at the last address.
            put(bytes, end.unwrap_or(u64::MAX), blocks.iter().copied());
        }
        if let Some(ends) = &paths.ends {
            put_ends(bytes, ends);
        }
    }
}

fn put_ends(bytes: &mut Vec<u8>, ends: &PathEnds) {
    let broken = ends.broken.iter().flat_map(|(from, to)| [*from, *to]);
    let broken: Vec<u64> = broken.collect();
    put(bytes, 1, broken.into_iter());
    put(bytes, 1, ends.unfollowed.iter().copied());
}

impl Images {
    /// Makes the image in which paths are counted that are `chosen`, if it is not there: what is wrong with the choice
    /// is known then.
    ///
    /// # Errors
    /// Where there is none.
    pub fn can_follow(
        &self,
        module: &Observed,
        chosen: &ChosenPaths,
        progress: &dyn Progress,
    ) -> Result<(), ImageError> {
        // The first of a run's modules has its counters at the start of slabs.
        self.paths(module, 0, chosen, progress).map(drop)
    }

    /// The image in which those paths of `module` are counted that are `chosen`, for many runs to share, and the file
    /// that says what its counters count.
    ///
    /// # Errors
    /// Where there is none.
    pub fn following(
        &self,
        module: &Observed,
        chosen: &ChosenPaths,
        progress: &dyn Progress,
    ) -> Result<(Carried, PathBuf), ImageError> {
        let baked = self.paths(module, 0, chosen, progress)?;
        Ok((Carried::baked(&baked, module), baked.plan))
    }

    /// The image in which those paths of `module` are counted that are `chosen`, its counters `slab` bytes into each
    /// slab.
    pub(crate) fn paths(
        &self,
        module: &Observed,
        slab: u32,
        chosen: &ChosenPaths,
        progress: &dyn Progress,
    ) -> Result<Baked, ImageError> {
        let name = format!("paths-at{slab}-of{:x}", chosen.name());
        let ask = |function: &FunctionView<'_>| chosen.ask(function);
        self.staying(module, &name, "paths", progress, |of, bytes, model| {
            let (id, stamp) = (module.id, module.stamp);
            let woven = weave_paths(of, bytes, model, id, stamp, (None, slab), &ask)?;
            Ok((woven.image, woven.paths, woven.header))
        })
    }
}
