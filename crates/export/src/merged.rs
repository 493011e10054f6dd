//! Writing what was merged as one record folder, which every reader of records reads like any other.
//!
//! For each plan a pair of files, named by module and plan, and the [runs](crate::folder::bundle) that were merged, so that
//! what follows from a run alone is still told. The same records give the same folder in whatever order and grouping
//! they were merged. A `pool.json` says where the modules' files are.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tomo_profile::merge::{Marks, SEVERAL};
use tomo_profile::records::read_record;
use tomo_program::{hexadecimal, read_regular, text_of};
use tomo_wire::record::ENDING;

use crate::folder::{bundle, files, plain};
use crate::{Collected, Group};

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// Records of several builds of one program.
    #[error("{}: records of {builds} builds of it cannot be merged ({}); merge each build by itself", path.display(), ids.join(", "))]
    Builds {
        /// The program.
        path: PathBuf,
        /// How many.
        builds: usize,
        /// Their build ids.
        ids: Vec<String>,
    },
    /// The folder has records that would be mixed up with the merged ones.
    #[error("{}: holds other records than those that are merged; choose another folder", .0.display())]
    Occupied(PathBuf),
    /// The folder has marks that would be lost.
    #[error("{}: has seen what the runs that are merged have not; merge it, too (tomo merge -o FOLDER FOLDER RUN…), or choose another folder", .0.display())]
    Lost(PathBuf),
    /// A file cannot be written.
    #[error("{}: {}", .0.display(), plain(.1))]
    Io(PathBuf, io::Error),
}

/// Writes `collected` into the folder `out`, which is made if need be. Earlier merges of the same plans
/// are replaced, if nothing is lost by that.
///
/// # Errors
/// Where several builds of one program would be mixed, `out` holds other records or has seen more, or a file
/// cannot be written.
pub fn write_merged(collected: &Collected, out: &Path) -> Result<(), MergeError> {
    if let Some((path, builds)) = collected.conflicts().first() {
        return Err(MergeError::Builds {
            path: path.to_path_buf(),
            builds: builds.len(),
            ids: builds.iter().map(|id| hexadecimal(id.name())).collect(),
        });
    }
    if fs::metadata(out).is_ok_and(|found| !found.is_dir()) {
        return Err(failed(out)(io::ErrorKind::NotADirectory.into()));
    }
    let mut folder = fs::DirBuilder::new();
    folder.recursive(true).mode(0o700);
    folder.create(out).map_err(failed(out))?;
    let stems: Vec<String> = collected.groups.iter().map(stem).collect();
    let is_other = |name: &str| {
        let stem = name.strip_suffix(ENDING);
        stem.is_some_and(|name| stems.iter().all(|stem| stem != name))
    };
    if !files(out, is_other).map_err(failed(out))?.is_empty() {
        return Err(MergeError::Occupied(out.into()));
    }
    for (group, stem) in collected.groups.iter().zip(&stems) {
        if loses(&before(out, stem), group) {
            return Err(MergeError::Lost(out.into()));
        }
    }
    let mut modules = Vec::new();
    for (group, stem) in collected.groups.iter().zip(&stems) {
        write_group(group, out, stem)?;
        // Of several names for one file, the first: it does not depend on the order of records.
        if let Some(path) = group.paths.first() {
            modules.push(json!({
                "path": text_of(path),
                "build_id": group.module.build_id().map(hexadecimal),
                "stem": stem,
            }));
        }
    }
    let by_parts = collected.groups.iter().any(|group| group.by_parts);
    let mut document = json!({ "schema": "tomo.pool/1", "modules": modules });
    if by_parts {
        document["by_parts"] = true.into();
    }
    let path = out.join("pool.json");
    replace(out, &path, format!("{document:#}\n").as_bytes()).map_err(failed(&path))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> MergeError {
    let path = path.to_path_buf();
    move |error| MergeError::Io(path, error)
}

/// Writes what is known under one plan. Readers that come in between find each file whole, the old or the new one.
fn write_group(group: &Group, out: &Path, stem: &str) -> Result<(), MergeError> {
    let file = |ending: &str| out.join(format!("{stem}{ending}"));
    let (plan, record, runs) = (file(".plan"), file(ENDING), file(bundle::ENDING));
    let all = group.marks.to_record(group.module, group.kind);
    replace(out, &plan, &group.plan).map_err(failed(&plan))?;
    replace(out, &record, &all).map_err(failed(&record))?;
    if let [_, _, ..] = group.runs[..] {
        let bytes = bundle::write(&group.runs, group.module, group.kind);
        let written = bytes.and_then(|bytes| replace(out, &runs, &bytes));
        return written.map_err(failed(&runs));
    }
    match fs::remove_file(&runs) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&runs)(error)),
        _ => Ok(()),
    }
}

/// What an earlier merge has put there, as far as it can be read.
fn before(out: &Path, stem: &str) -> Vec<Marks> {
    let record = read_regular(&out.join(format!("{stem}{ENDING}")));
    let record = record.ok().and_then(|bytes| read_record(&bytes).ok());
    let (runs, _) = bundle::read(&out.join(format!("{stem}{}", bundle::ENDING)));
    let all = record.into_iter().chain(runs);
    all.map(|sighting| sighting.marks).collect()
}

/// Whether something of the same plan has marks that the other has not, or did more by itself than any of its runs.
fn loses(before: &[Marks], group: &Group) -> bool {
    let in_all = |old: &Marks| old.hits.is_subset(&group.marks.hits);
    let in_one = |old: &Marks| {
        let mut runs = group.runs.iter().filter(|run| run.run == old.run);
        runs.any(|run| old.hits.is_subset(&run.hits))
    };
    let of_one = |old: &Marks| old.run != SEVERAL;
    let mut before = before.iter();
    before.any(|old| !in_all(old) || of_one(old) && !in_one(old))
}

/// What names a group's files: the module, and the kind.
fn stem(group: &Group) -> String {
    let cut = if group.kind.cut { "-cut" } else { "" };
    let loose = if group.kind.loose { "-loose" } else { "" };
    format!(
        "{}-{:016x}-{:016x}{cut}{loose}",
        hexadecimal(group.module.name()),
        group.module.fingerprint.get(),
        group.kind.plan
    )
}

/// Whoever opens the file finds the old or the new one, whole.
fn replace(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
