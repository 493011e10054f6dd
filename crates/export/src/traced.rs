//! Traces: what each thread of a program did, block for block, from the tracks of one run or of several.
//!
//! | what | file |
//! |---|---|
//! | the folder of a trace read | this |
//! | tracks as they are kept | `traced/packed.rs` |
//! | tracks as they are recorded | `traced/live.rs` |
//! | tracks taken while the program runs | `traced/taking.rs` |
//! | activations, one inside the other | `traced/calls.rs` |
//! | what things are called | `traced/names.rs` |
//! | a thread's calls as a tree | `traced/tree.rs` |
//! | where two traces part, and what is around a step | `traced/differ.rs` |
//! | formats of other programs | `traced/formats.rs` |
//! | room that processes which are over give back | `traced/over.rs` |

mod calls;
mod differ;
mod formats;
mod live;
mod names;
mod over;
mod packed;
mod taking;
mod tree;

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tomo_profile::tracing::{Atlas, AtlasError, Cut, Ended, Lane, Sink, Thread, walk};
use tomo_program::{Cache, Progress, open_regular, read_regular};
use tomo_wire::record::{Live, MARKS, Reason};
use tomo_wire::tracing::ChartView;
use tomo_wire::{Refusal, of_schema};

use crate::{Located, ModuleError, locate};

pub use calls::{Activation, Calls, Visitor};
pub use differ::{Around, Blocks, Visits};
pub use formats::{Callgrind, Events, Folded, Lines};
pub use names::{Named, Names};
pub use packed::{Packer, Recorded};
pub use taking::Taking;
pub use tomo_profile::tracing;
pub use tree::{Shown, Tree};

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file cannot be read.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, std::io::Error),
    /// It is not what a trace's folder has.
    #[error("{path}: {1}", path = .0.display())]
    Refused(PathBuf, Refusal),
    /// It says nothing of a trace.
    #[error("{path}: it is no trace", path = .0.display())]
    NoTrace(PathBuf),
    /// It is another folder.
    #[error("{path} is no trace; a trace's folder is called trace-…", path = .0.display())]
    NoFolder(PathBuf),
    /// Runs are missing.
    #[error("{path}: {1} of {2} runs are there: run it once more, as a whole", path = .0.display())]
    Missing(PathBuf, usize, usize),
    /// A run was recorded by another plan.
    #[error("{path}: it was recorded by another plan than the others", path = .0.display())]
    OtherPlan(PathBuf),
    /// There is no model.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The chart cannot be used.
    #[error(transparent)]
    Atlas(#[from] AtlasError),
}

/// One run of the traced program.
#[derive(Debug)]
pub struct TracedRun {
    /// Its folder.
    pub path: PathBuf,
    /// Whether it ended by itself, and had room for all that it did.
    pub exited: bool,
    /// How it ended, as its folder says.
    pub outcome: Value,
    /// The record of the module.
    pub record: PathBuf,
    /// Whether its process had its text back before its end, so that nothing more was recorded.
    pub had_text_back: bool,
    /// Bytes that what was recorded takes on the disk.
    pub size: u64,
    /// What was recorded.
    pub recorded: Recorded,
}

/// A program that was traced.
#[derive(Debug)]
pub struct Traced {
    /// Its file and model.
    pub located: Located,
    /// What was run.
    pub command: Vec<String>,
    /// What the runs were seen to do differently.
    pub differences: Vec<String>,
    /// The runs, in the order of profiles.
    pub runs: Vec<TracedRun>,
    chart: Vec<u8>,
}

/// What one thread recorded in all runs.
#[derive(Debug)]
pub struct TracedThread {
    /// Its number, by when it was made.
    pub serial: u32,
    /// Its process, in the first run.
    pub process: u32,
    /// The same by run; with no words where the run has no such thread.
    pub runs: Vec<Thread>,
}

impl TracedThread {
    /// By run, what those recorded of whom this thread is the copy, until it was that, the first of them first. `None` if it is
    /// nobody's, or if that is not there as a whole.
    fn inherited(&self, threads: &[Self]) -> Option<Vec<Vec<u32>>> {
        let words = (0..self.runs.len()).map(|run| {
            let mut pieces: Vec<&[u32]> = Vec::new();
            let mut now = &self.runs[run];
            while let Some(origin) = now.origin.filter(|origin| origin.serial < now.serial) {
                let place = threads.binary_search_by_key(&origin.serial, |one| one.serial);
                now = &threads[place.ok()?].runs[run];
                let count = usize::try_from(origin.words)
                    .ok()?
                    .checked_sub(now.before)?;
                pieces.push(now.words.get(..count)?);
            }
            let is_whole = !pieces.is_empty() && now.origin.is_none();
            is_whole.then(|| pieces.into_iter().rev().flatten().copied().collect())
        });
        words.collect()
    }
}

impl Traced {
    /// The trace in the folder at `path`.
    ///
    /// # Errors
    /// Where there is none, or something of it is missing.
    pub fn read(
        path: &Path,
        program: Option<&Path>,
        cache: Option<&Cache>,
        progress: &dyn Progress,
    ) -> Result<Self, TraceError> {
        let document = path.join("trace.json");
        let none = || TraceError::NoTrace(document.clone());
        if path.is_dir() && !document.exists() {
            return Err(TraceError::NoFolder(path.into()));
        }
        let text = file(&document)?;
        let stated: Value = serde_json::from_slice(&text).map_err(|_| none())?;
        match of_schema(
            stated["schema"].as_str().unwrap_or_default(),
            "tomo.trace/1",
        ) {
            Ok(()) => {}
            Err(version @ Refusal::Version { .. }) => {
                return Err(TraceError::Refused(document, version));
            }
            Err(_) => return Err(none()),
        }
        let stem = stated["stem"].as_str().ok_or_else(none)?;
        let module = stated["module"].as_str();
        let module = module.or_else(|| stated["program"].as_str());
        let module = module.ok_or_else(none)?;
        let words = |value: &Value| -> Vec<String> {
            let list = value.as_array().into_iter().flatten();
            list.filter_map(|word| Some(word.as_str()?.to_owned()))
                .collect()
        };
        let names = words(&stated["runs"]);
        let mut runs = Vec::new();
        let mut chart = Vec::new();
        for name in &names {
            let folder = path.join(name);
            let place = folder.join(format!("{stem}.chart"));
            let own = file(&place)?;
            if chart.is_empty() {
                chart = own;
            } else if chart != own {
                return Err(TraceError::OtherPlan(folder));
            }
            runs.push(TracedRun::read(folder, stem)?);
        }
        let place = path.join(format!("{stem}.chart"));
        let view = ChartView::read(&chart).map_err(|why| TraceError::Refused(place, why))?;
        let wanted = view.header.profiles.get() as usize;
        if runs.len() != wanted {
            return Err(TraceError::Missing(path.into(), runs.len(), wanted));
        }
        let places = program.into_iter().chain([Path::new(module)]);
        let located = locate(view.header.module, places, cache, progress)?;
        Ok(Self {
            located,
            command: words(&stated["command"]),
            differences: words(&stated["differences"]),
            runs,
            chart,
        })
    }

    /// What is known of the program.
    ///
    /// # Errors
    /// Where the chart is damaged.
    pub fn atlas(&self) -> Result<Atlas<'_>, TraceError> {
        let refused = |why| TraceError::Refused(self.located.path.clone(), why);
        let view = ChartView::read(&self.chart).map_err(refused)?;
        Ok(Atlas::of(view)?)
    }

    /// The threads of the first run with what the others recorded of them.
    #[must_use]
    pub fn threads(&self, atlas: &Atlas<'_>) -> Vec<TracedThread> {
        let mut threads: BTreeMap<u32, TracedThread> = BTreeMap::new();
        for (number, run) in self.runs.iter().enumerate() {
            let slabs = run.recorded.slabs.iter();
            for thread in slabs.flat_map(|words| atlas.threads(words)) {
                let known = threads.entry(thread.serial);
                let known = known.or_insert_with(|| TracedThread {
                    serial: thread.serial,
                    process: thread.process,
                    runs: vec![Thread::default(); self.runs.len()],
                });
                known.runs[number] = thread;
            }
        }
        threads.into_values().collect()
    }

    /// Hands to `sink` what a thread did, which is one of all `threads`.
    pub fn walk<S: Sink>(
        &self,
        atlas: &Atlas<'_>,
        threads: &[TracedThread],
        thread: &TracedThread,
        sink: &mut S,
    ) -> Ended {
        let is_copy = thread.runs.iter().any(|run| run.origin.is_some());
        let inherited = thread.inherited(threads);
        let followed = inherited.and_then(|words| self.walk_behind(atlas, &words, thread, sink));
        followed.unwrap_or_else(|| {
            let nothing = vec![Vec::new(); self.runs.len()];
            let ended = self.walk_behind(atlas, &nothing, thread, sink);
            Ended {
                is_orphan: is_copy,
                ..ended.unwrap_or_default()
            }
        })
    }

    /// The same for a thread that has these words of each run from others.
    fn walk_behind<S: Sink>(
        &self,
        atlas: &Atlas<'_>,
        inherited: &[Vec<u32>],
        thread: &TracedThread,
        sink: &mut S,
    ) -> Option<Ended> {
        let parts = inherited.iter().zip(&thread.runs);
        let mut lanes: Vec<Lane> = parts
            .map(|(before, own)| Lane::of(atlas, before, &own.words))
            .collect();
        let exited = self.runs.iter().all(|run| run.exited && !run.had_text_back);
        let is_broken = lanes.iter().any(|lane| lane.is_broken);
        let cut = match thread.serial {
            _ if !exited || is_broken => Cut::Anywhere,
            0 => Cut::Nowhere,
            _ => Cut::AtExit,
        };
        let origin = atlas.chart.header.origin.get();
        let named = self.runs.iter().flat_map(|run| &run.recorded.handlers);
        let mut handlers: Vec<u64> = named.map(|from| origin.wrapping_add(*from)).collect();
        handlers.sort_unstable();
        walk(atlas, &mut lanes, &handlers, cut, sink)
    }
}

impl TracedRun {
    fn read(path: PathBuf, stem: &str) -> Result<Self, TraceError> {
        let stated: Value = serde_json::from_slice(&file(&path.join("run.json"))?)
            .map_err(|_| TraceError::NoTrace(path.clone()))?;
        let outcome = stated["outcome"].clone();
        let (size, recorded) = taking::recorded(&path)?;
        let record = path.join(format!("{stem}.record"));
        let live = head(&record).ok().and_then(|head| Live::read(&head).ok());
        let reason = live.and_then(|live| Reason::from_number(live.reason.get()));
        Ok(Self {
            had_text_back: reason == Some(Reason::Patched),
            record,
            size,
            exited: outcome.get("exit").is_some() && !recorded.is_cut && recorded.full == 0,
            recorded,
            outcome,
            path,
        })
    }
}

/// The file of those that were taken.
const PACKED: &str = "tracks.zst";

/// What stands before the marks of a record.
fn head(record: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    open_regular(record)?.take(MARKS).read_to_end(&mut head)?;
    Ok(head)
}

fn file(path: &Path) -> Result<Vec<u8>, TraceError> {
    read_regular(path).map_err(|error| TraceError::Io(path.into(), error))
}
