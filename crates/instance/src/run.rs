//! One run: a folder of its own with the records that the program writes into, and what reports are made
//! of. The images are the installation's, so a probe that this run hits is gone for all of its runs.
//!
//! The folder is locked as long as the launcher lives, and stays until the run's final report is in the spool;
//! whoever finds one that is not locked finishes it (`leftover.rs`).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::fcntl::Flock;
use serde::{Deserialize, Serialize};
use tomo_launch::{Ended, equip, read_record};
use tomo_protocol::{CampaignId, InstanceId, Name};
use tomo_wire::record::Live;
use tomo_wire::report::{Outcome, Report};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U32;

use crate::clock;
use crate::known::Known;
use crate::state::{State, StateError, replace};

/// What a run's reports say from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) campaign: CampaignId,
    plans: Name,
    variant: u32,
    /// Nanoseconds since 1970 by this machine's clock.
    started: i64,
    modules: Vec<Part>,
}

/// A module of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    /// What its record is called.
    stem: String,
    /// The unit of its first probe.
    first: u32,
}

/// What changes from report to report; kept in the folder for those who finish what others began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Of the last report.
    pub(crate) sequence: u32,
    /// How long the program has run.
    pub(crate) duration: Duration,
    /// Processor time that it has used.
    pub(crate) cpu: Duration,
    /// Its process, and when that was started; see [`clock::birth`].
    pub(crate) process: u32,
    pub(crate) birth: u64,
}

/// A folder of a run, whoever's it is.
#[derive(Clone, Debug)]
pub(crate) struct RunFolder {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) description: Description,
}

/// What happened to a module in a run.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The module's build.
    pub stem: String,
    /// What the agent says of it.
    pub live: Live,
    /// How many probes the run hit.
    pub hits: usize,
}

impl RunFolder {
    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder of a run as it was left.
    pub(crate) fn found(number: u64, path: &Path) -> Option<Self> {
        let bytes = fs::read(path.join("run.json")).ok()?;
        Some(Self {
            number,
            path: path.into(),
            description: serde_json::from_slice(&bytes).ok()?,
        })
    }

    /// How far it was when somebody last wrote it down.
    pub(crate) fn progress(&self) -> Progress {
        let bytes = fs::read(self.file("progress")).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Whether the program is still there. Where its launcher was killed before it wrote down which process that is,
    /// the agent says which it was in.
    pub(crate) fn is_alive(&self) -> bool {
        let Progress { process, birth, .. } = self.progress();
        if process != 0 {
            return clock::birth(process) == Some(birth);
        }
        let armed = |one: &Observed| u32::try_from(one.live.process.get()).ok();
        let modules = self.look().1;
        let mut processes = modules
            .iter()
            .filter_map(armed)
            .filter(|process| *process != 0);
        processes.any(|process| clock::birth(process).is_some())
    }

    /// Writes down how far it is.
    pub(crate) fn note(&self, progress: &Progress) -> io::Result<()> {
        replace(&self.file("progress"), &serde_json::to_vec(progress)?)
    }

    /// What the program has hit so far, ascending, and what the agent says of each module. A record that cannot
    /// be read says nothing.
    pub(crate) fn look(&self) -> (Vec<U32>, Vec<Observed>) {
        let mut hits = Vec::new();
        let mut modules = Vec::new();
        for part in &self.description.modules {
            let record = self.file(&format!("{}.record", part.stem));
            let before = hits.len();
            let live = read_record(&record, |view| {
                let marks = (part.first..).zip(view.marks);
                let hit = marks.filter(|(_, mark)| **mark != 0);
                hits.extend(hit.map(|(unit, _)| U32::from(unit)));
                view.live
            });
            if let Ok(live) = live {
                modules.push(Observed {
                    stem: part.stem.clone(),
                    live,
                    hits: hits.len() - before,
                });
            }
        }
        (hits, modules)
    }

    /// The run's report, as things stand.
    pub(crate) fn report(
        &self,
        instance: InstanceId,
        dropped: u64,
        progress: &Progress,
        ended: (Outcome, i32),
    ) -> Vec<u8> {
        self.report_of(&self.look(), instance, dropped, progress, ended)
    }

    /// The run's report on what was seen when somebody looked.
    fn report_of(
        &self,
        (hits, modules): &(Vec<U32>, Vec<Observed>),
        instance: InstanceId,
        dropped: u64,
        progress: &Progress,
        (outcome, status): (Outcome, i32),
    ) -> Vec<u8> {
        let sum = |count: fn(&Live) -> u64| modules.iter().map(|one| count(&one.live)).sum::<u64>();
        let refusing = modules.iter().find(|one| one.live.refused.get() > 0);
        let mut report = Report::empty();
        report.campaign = self.description.campaign.0;
        report.instance = instance.0;
        report.plans = self.description.plans.0.into();
        report.run = self.number.into();
        report.sequence = progress.sequence.into();
        report.variant = self.description.variant.into();
        report.started = self.description.started.into();
        report.duration = nanoseconds(progress.duration).into();
        report.cpu = nanoseconds(progress.cpu).into();
        report.armed = sum(|live| live.armed.get()).into();
        report.refused = sum(|live| live.refused.get()).into();
        report.reason = refusing.map_or(0, |one| one.live.reason.get()).into();
        report.errno = refusing.map_or(0, |one| one.live.errno.get()).into();
        report.outcome = (outcome as u32).into();
        report.status = status.cast_unsigned().into();
        report.dropped = dropped.into();
        report.version = Report::version_of(env!("CARGO_PKG_VERSION"));
        [report.sealed(hits).as_slice(), hits.as_bytes()].concat()
    }

    /// The folder is not needed any more.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A run of this process.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) folder: RunFolder,
    /// What arms the program.
    pub(crate) roster: PathBuf,
    began: Instant,
    children: Duration,
    _lock: Flock<File>,
}

impl Run {
    /// Begins a run that carries what is known. `None` where no image can be used.
    pub(crate) fn begin(state: &State, known: &Known) -> Result<Option<Self>, StateError> {
        let carried = known.carried(state);
        if carried.is_empty() {
            return Ok(None);
        }
        let (number, path, lock) = state.next_run()?;
        let made = Self::make(state, known, (number, &path, lock), &carried);
        if made.is_err() {
            let _ = fs::remove_dir_all(&path);
        }
        made.map(Some)
    }

    fn make(
        state: &State,
        known: &Known,
        (number, path, lock): (u64, &Path, Flock<File>),
        carried: &[tomo_launch::Carried],
    ) -> Result<Self, StateError> {
        let io = |error| StateError::Io(path.into(), error);
        let mut first = 0u32;
        let mut modules = Vec::new();
        for module in &known.modules {
            if carried.iter().any(|one| one.stem == module.stem) {
                let stem = module.stem.clone();
                modules.push(Part { stem, first });
            }
            first = first.saturating_add(module.probes);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let description = Description {
            campaign: known.campaign,
            plans: known.plans,
            variant: known.variant,
            started: now.map_or(0, |since| since.as_nanos() as i64),
            modules,
        };
        let text = serde_json::to_vec(&description).map_err(|error| io(error.into()))?;
        replace(&path.join("run.json"), &text).map_err(io)?;
        let mut id = state.id().0;
        for (to, from) in id.iter_mut().zip(number.to_be_bytes()) {
            *to = from;
        }
        Ok(Self {
            roster: equip(path, id, carried)?,
            folder: RunFolder {
                number,
                path: path.into(),
                description,
            },
            began: Instant::now(),
            children: clock::of_children(),
            _lock: lock,
        })
    }

    /// The program runs.
    pub(crate) fn started(&mut self, process: u32) {
        self.began = Instant::now();
        let progress = Progress {
            process,
            birth: clock::birth(process).unwrap_or(0),
            ..Progress::default()
        };
        let _ = self.folder.note(&progress);
    }

    /// When the program was started.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// The run's last report, and what was observed of each module; the program has ended.
    pub(crate) fn last_report(&self, state: &State, ended: Ended) -> (Vec<u8>, Vec<Observed>) {
        let mut progress = self.folder.progress();
        progress.sequence = progress.sequence.saturating_add(1);
        progress.duration = self.began.elapsed();
        progress.cpu = clock::of_children().saturating_sub(self.children);
        let outcome = match ended {
            Ended::Exited(code) => (Outcome::Exited, code),
            Ended::Killed(signal) => (Outcome::Signal, signal),
        };
        let seen = self.folder.look();
        let (id, dropped) = (state.id(), state.dropped());
        let report = self
            .folder
            .report_of(&seen, id, dropped, &progress, outcome);
        (report, seen.1)
    }
}
