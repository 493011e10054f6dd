//! Earlier runs of the same build, in the folder in which a command puts its runs.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use tomo_launch::Observed;

/// The runs in `output` that have a file of this kind of `module`, the newest first. Runs that are made at the same
/// second are in the order of their names.
pub(crate) fn runs(output: &Path, module: &Observed, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(output).into_iter().flatten().flatten();
    let mut runs: Vec<(Reverse<u64>, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let seconds = name.to_str()?.strip_prefix("run-")?.split('-').next()?;
            let path = entry.path();
            let has_it = path.join(format!("{}.{kind}", module.stem)).is_file();
            (has_it && path.join("slabs").is_file())
                .then_some((Reverse(seconds.parse().ok()?), path))
        })
        .collect();
    runs.sort();
    runs.into_iter().map(|(_, path)| path).collect()
}
