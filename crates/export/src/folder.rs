//! Record folders: what a run, a pool or a merge left behind.
//!
//! A folder holds pairs `STEM.plan`, `STEM.record`, and perhaps a [manifest]; runs are
//! folders `run-…` in it. Processes that were kept separate have records `STEM.PROCESS.record` under the same
//! plan; runs that were merged stand in `STEM.runs` ([`bundle`]). Records are read a few at a time; of each
//! [run](runs) a bit is kept for each probe, an eighth of its record. A plan is read once, however many records
//! name it: where the plan beside one record is damaged and that beside another is not, both records count.

pub(crate) mod bundle;
mod manifest;
mod record;
mod runs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use tomo_profile::merge::Marks;
use tomo_profile::records::{Kind, RecordError, Sighting, read_plan};
use tomo_program::{Progress, open_regular};
use tomo_wire::ModuleId;
use tomo_wire::plan::Plan as Header;
use tomo_wire::record::{ENDING, MARKS, stem_of};

use manifest::{Manifest, Wrong};
use runs::Runs;

/// Records that are read before they are merged and their memory is freed.
const BATCH: usize = 16;
/// Something that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The file or folder.
    pub path: PathBuf,
    /// Why, in words.
    pub why: String,
}

/// What all records of one plan say together.
#[derive(Clone, Debug)]
pub struct Group {
    /// The plan, and whether the runs were cut.
    pub kind: Kind,
    /// The module that was observed.
    pub module: ModuleId,
    /// The plan's file.
    pub plan: Vec<u8>,
    /// The merged marks.
    pub marks: Marks,
    /// Those of each run by itself, in the order of their names; of runs that were merged before without being kept,
    /// together.
    pub runs: Vec<Marks>,
    /// Whether runs carried different parts of the probes, as in a fleet. A probe that was not hit then
    /// says nothing of the runs that did not carry it.
    pub by_parts: bool,
    /// Where the module's file was, as manifests say.
    pub paths: BTreeSet<PathBuf>,
    /// The records, each once: their runs, and when they were made.
    pub records: BTreeSet<([u8; 16], i64)>,
}

impl Group {
    /// Whether no process has been observed, so that silence says nothing.
    #[must_use]
    pub fn is_unseen(&self) -> bool {
        self.marks.live.armed == 0 && self.marks.hits.is_clear()
    }
}

/// What folders hold.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// Merged records, by plan.
    pub groups: Vec<Group>,
    /// What was left out.
    pub refused: Vec<Refused>,
}

impl Collected {
    /// Paths at which several builds were observed, with those builds.
    #[must_use]
    pub fn conflicts(&self) -> Vec<(&Path, Vec<ModuleId>)> {
        let mut builds: BTreeMap<&Path, Vec<ModuleId>> = BTreeMap::new();
        for group in &self.groups {
            for path in &group.paths {
                let known = builds.entry(path).or_default();
                if !known.contains(&group.module) {
                    known.push(group.module);
                }
            }
        }
        builds.retain(|_, modules| modules.len() > 1);
        builds.into_iter().collect()
    }
}

/// A folder that holds records.
struct Place {
    records: Vec<PathBuf>,
    manifest: Manifest,
}

/// A record's file.
struct Candidate<'m> {
    path: PathBuf,
    manifest: &'m Manifest,
}

/// Reads and merges all records in `folders` and one level of runs below; some of them may be single records.
#[must_use]
pub fn collect(folders: &[PathBuf], progress: &dyn Progress) -> Collected {
    let mut collector = Collector::default();
    let places: Vec<Place> = folders
        .iter()
        .flat_map(|folder| collector.places(folder))
        .collect();
    let candidates: Vec<Candidate<'_>> = places
        .iter()
        .flat_map(|place| {
            let manifest = &place.manifest;
            let records = place.records.iter().cloned();
            records.map(move |path| Candidate { path, manifest })
        })
        .collect();
    progress.stage("reading records", candidates.len() as u64);
    for batch in candidates.chunks(BATCH) {
        let read: Vec<_> = batch.par_iter().map(read).collect();
        for (candidate, (sightings, problem)) in batch.iter().zip(read) {
            collector.add(candidate, sightings, problem);
            progress.advance(1);
        }
    }
    collector.finish()
}

/// The records in `folders` that are of one process each, with what their names call it.
#[must_use]
pub fn single_processes(folders: &[PathBuf]) -> Vec<(String, PathBuf)> {
    let mut collector = Collector::default();
    let places = folders.iter().flat_map(|folder| collector.places(folder));
    let records: Vec<PathBuf> = places.flat_map(|place| place.records).collect();
    let process = |record: PathBuf| {
        let name = record.file_stem()?.to_str()?;
        let process = name.strip_prefix(stem_of(name))?.strip_prefix('.')?;
        Some((process.to_owned(), record))
    };
    records.into_iter().filter_map(process).collect()
}

/// The entries of `folder` whose name pleases, sorted.
pub(crate) fn files(
    folder: &Path,
    pleases: impl Fn(&str) -> bool,
) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.flatten();
    let mut paths: Vec<_> = entries
        .filter(|entry| pleases(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    Ok(paths)
}

/// The content of a file as far as it goes, which `length` tells by the page that it begins with: it may have been made as
/// long as somebody likes. What only has the name of a file, as a pipe that nobody writes to, is not waited for.
fn content(path: &Path, length: impl Fn(&[u8]) -> u64) -> std::io::Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(MARKS).read_to_end(&mut bytes)?;
    let rest = length(&bytes).saturating_sub(bytes.len() as u64);
    file.take(rest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How long a plan is by its header.
fn length_of_plan(start: &[u8]) -> u64 {
    Header::read(start, u64::MAX).map_or(0, |plan| plan.length())
}

/// What is to be said of a record of a command that has files of its own where coverage has a plan.
fn of_another_command(plan: &Path) -> Option<String> {
    let all = [
        ("counters", "count"),
        ("paths", "paths"),
        ("predicates", "predicates"),
        ("functions", "chains"),
    ];
    let is_there = |ending: &str| plan.with_extension(ending).is_file();
    let (_, command) = all.into_iter().find(|(ending, _)| is_there(ending))?;
    Some(format!(
        "it is of `tomo {command}`, not of coverage: `tomo {command} --show` shows its run"
    ))
}

/// What the files of a record's module and plan are called, without their endings.
fn stem(record: &Path) -> String {
    let name = record.file_stem().unwrap_or_default().to_string_lossy();
    stem_of(&name).to_owned()
}

/// What a file says, as far as it can be read, and what is wrong with the rest.
fn read(candidate: &Candidate<'_>) -> (Vec<Sighting>, Option<String>) {
    if candidate.path.to_string_lossy().ends_with(bundle::ENDING) {
        return bundle::read(&candidate.path);
    }
    match record::read(&candidate.path, candidate.manifest.signal()) {
        Ok(sighting) => (vec![sighting], None),
        Err(why) => (Vec::new(), Some(why)),
    }
}

/// A plan that some record has shown to be sound.
struct Plan {
    /// Its module and number of probes.
    shape: (ModuleId, usize),
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Collector {
    plans: BTreeMap<u64, Plan>,
    runs: Runs,
    refused: Vec<Refused>,
}

impl Collector {
    fn refuse(&mut self, path: &Path, why: impl ToString) {
        self.refused.push(Refused {
            path: path.into(),
            why: why.to_string(),
        });
    }

    /// The folders in which there may be records of `given`, a folder or one record.
    fn places(&mut self, given: &Path) -> Vec<Place> {
        if given.is_file() {
            let folder = match given.parent() {
                Some(folder) if folder != Path::new("") => folder,
                _ => Path::new("."),
            };
            return vec![self.place(folder, vec![given.into()])];
        }
        let runs = match files(given, |name| name.starts_with("run-")) {
            Ok(runs) => runs.into_iter().filter(|path| path.is_dir()),
            Err(error) => {
                self.refuse(given, plain(&error));
                return Vec::new();
            }
        };
        let is_record = |name: &str| name.ends_with(ENDING) || name.ends_with(bundle::ENDING);
        let mut places = Vec::new();
        let mut any = false;
        for folder in [given.to_path_buf()].into_iter().chain(runs) {
            match files(&folder, is_record) {
                Ok(records) => {
                    any |= !records.is_empty();
                    places.push(self.place(&folder, records));
                }
                Err(error) => self.refuse(&folder, plain(&error)),
            }
        }
        if !any {
            self.refuse(given, "holds no records");
        }
        places
    }

    fn place(&mut self, folder: &Path, mut records: Vec<PathBuf>) -> Place {
        let (manifest, problem) = Manifest::read(folder);
        match problem {
            Some((path, Wrong::Lost(why))) => self.refuse(&path, why),
            Some((path, Wrong::Version(why))) => {
                self.refuse(&path, format!("{why}; records beside it are left out"));
                records.clear();
            }
            None => {}
        }
        Place { records, manifest }
    }

    /// Adds what a file says. Of one that says what cannot be, nothing more is believed.
    fn add(
        &mut self,
        candidate: &Candidate<'_>,
        sightings: Vec<Sighting>,
        problem: Option<String>,
    ) {
        let mut sightings = sightings.into_iter();
        let wrong = sightings.find_map(|sighting| self.join(candidate, sighting).err());
        if let Some(why) = wrong.or(problem) {
            self.refuse(&candidate.path, why);
        }
    }

    fn join(&mut self, candidate: &Candidate<'_>, sighting: Sighting) -> Result<(), String> {
        self.learn_plan(&candidate.path, &sighting)?;
        let path = candidate.manifest.path_of(&stem(&candidate.path));
        let by_parts = candidate.manifest.is_by_parts();
        match self.runs.add(sighting, by_parts, path) {
            true => Ok(()),
            false => Err(RecordError::Contradiction.to_string()),
        }
    }

    /// Sees to it that the plan of a record is known and fits it.
    fn learn_plan(&mut self, record: &Path, sighting: &Sighting) -> Result<(), String> {
        let name = sighting.kind.plan;
        let shape = (sighting.module, sighting.marks.hits.len());
        if let Some(plan) = self.plans.get(&name) {
            let fits = plan.shape == shape;
            return fits
                .then_some(())
                .ok_or(RecordError::Contradiction.to_string());
        }
        let path = record.with_file_name(format!("{}.plan", stem(record)));
        let bytes =
            content(&path, length_of_plan).map_err(|error| match of_another_command(&path) {
                Some(words) => words,
                None => format!("its plan {}: {}", path.display(), plain(&error)),
            })?;
        read_plan(&bytes, sighting).map_err(|error| error.to_string())?;
        self.plans.insert(name, Plan { shape, bytes });
        Ok(())
    }

    fn finish(self) -> Collected {
        let mut groups = self.runs.groups();
        for group in &mut groups {
            let plan = self.plans.get(&group.kind.plan);
            group.plan = plan.map(|plan| plan.bytes.clone()).unwrap_or_default();
        }
        Collected {
            groups,
            refused: self.refused,
        }
    }
}

/// What a system error says, without its number.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let message = text.split(" (os error").next().unwrap_or_default();
    let mut letters = message.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}
