//! One run: a folder of its own with the records that the program writes into, and what reports are made
//! of. The images are the installation's, so a probe that this run hits is gone for all of its runs.
//!
//! The folder is locked as long as the launcher lives, and stays until the run's final report is in the spool;
//! whoever finds one that is not locked finishes it (`leftover.rs`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::fcntl::Flock;
use serde::{Deserialize, Serialize};
use tomo_export::chains::trees;
use tomo_launch::{
    CRASHES, Ended, Outside, SLABS, Seen, Target, crashes, equip, from_outside, read_live,
};
use tomo_protocol::{CampaignId, InstanceId, Name, Units};
use tomo_wire::counting::sums;
use tomo_wire::predicates::{Predicates, Row, values};
use tomo_wire::record::{Live, Reason};
use tomo_wire::report::{
    Follows, Frame, Link, MOST_FRAMES, NO_ROOM, Outcome, Report, ReportView, Told,
};
use tomo_wire::tally::{NONE, Tally};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::{U32, U64};

use crate::clock;
use crate::forest::Forest;
use crate::known::{Known, image_path};
use crate::spool::Spool;
use crate::state::{Lost, State, StateError, replace};

/// What a run's reports say from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) campaign: CampaignId,
    /// Who ran it: the folder may have become another installation's since, by being copied. Absent where a tomo wrote it that
    /// did not know of that.
    instance: Option<InstanceId>,
    plans: Name,
    variant: u32,
    /// Nanoseconds since 1970 by this machine's clock.
    started: i64,
    modules: Vec<Part>,
    /// The program's file, which unwinding needs.
    program: PathBuf,
}

/// A module of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    /// What its record is called.
    stem: String,
    /// The unit of its first probe, or predicate.
    first: u32,
    /// Its image, and where predicates are observed the file that says what marks mean.
    image: PathBuf,
    predicates: Option<PathBuf>,
    /// Where it is counted: the file that says which unit each counter counts.
    tally: Option<PathBuf>,
    /// Whether it is by chains of calls.
    has_chains: bool,
    /// Which predicates are told of.
    wanted: Option<Units>,
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

/// What the program has hit so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hit {
    /// The units, ascending.
    pub(crate) units: Vec<U32>,
    /// How often each, where that is counted.
    counts: Vec<U64>,
    /// By which chains of calls, where they are noted.
    links: Vec<Link>,
}

/// A folder of a run, whoever's it is.
#[derive(Clone, Debug)]
pub(crate) struct RunFolder {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    /// Who ran it.
    instance: InstanceId,
    pub(crate) description: Description,
}

/// What a look at a run tells.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    pub(crate) hit: Hit,
    /// What was observed of each module of which that can be told.
    pub(crate) modules: Vec<Observed>,
    /// Of which others it cannot be told, and why.
    pub(crate) unread: Vec<String>,
}

/// A file is missing or damaged without which it is not known what a record means.
struct Unreadable(PathBuf);

impl Unreadable {
    /// What was read of the file at `path`.
    fn or<T, E>(path: &Path, read: Result<T, E>) -> Result<T, Self> {
        read.map_err(|_| Self(path.into()))
    }
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

impl Observed {
    /// Whether a process with the agent has loaded the module.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.live.armed.get() > 0 || self.live.refused.get() > 0
    }
}

impl RunFolder {
    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder of a run as it was left.
    pub(crate) fn found(state: &State, number: u64, path: &Path) -> Option<Self> {
        let bytes = fs::read(path.join(DESCRIPTION)).ok()?;
        let description: Description = serde_json::from_slice(&bytes).ok()?;
        Some(Self {
            number,
            path: path.into(),
            instance: description.instance.unwrap_or(state.id()),
            description,
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
        let armed = |part| u32::try_from(self.live(part)?.process.get()).ok();
        let parts = self.description.modules.iter();
        let mut processes = parts.filter_map(armed).filter(|process| *process != 0);
        processes.any(|process| clock::birth(process).is_some())
    }

    /// Writes down how far it is.
    pub(crate) fn note(&self, progress: &Progress) -> io::Result<()> {
        replace(&self.file("progress"), &serde_json::to_vec(progress)?)
    }

    /// What the program has hit so far, and what the agent says of each module. A record that cannot be read says
    /// nothing; nor does one of which it cannot be read what it means, for then nobody knows what was not hit.
    pub(crate) fn look(&self) -> Looked {
        let mut looked = Looked::default();
        for part in &self.description.modules {
            let before = looked.hit.units.len();
            let live = match &part.tally {
                Some(tally) => self.live(part).map(|live| {
                    let lost = self.count(part, tally, &mut looked.hit)?;
                    Ok(counted(live, lost))
                }),
                None => Seen::read(&self.record(part)).ok().map(|seen| {
                    looked.hit.units.extend(part.told(seen.hits)?);
                    Ok(seen.live)
                }),
            };
            match live {
                Some(Ok(live)) => looked.modules.push(Observed {
                    stem: part.stem.clone(),
                    live,
                    hits: looked.hit.units.len() - before,
                }),
                Some(Err(Unreadable(path))) => looked.unread.push(format!(
                    "{} was not observed: {} is missing or damaged",
                    part.stem,
                    path.display()
                )),
                None => {}
            }
        }
        looked
    }

    fn record(&self, part: &Part) -> PathBuf {
        self.file(&format!("{}.record", part.stem))
    }

    /// What the agent says of a module.
    fn live(&self, part: &Part) -> Option<Live> {
        read_live(&self.record(part)).ok()
    }

    /// Adds what the counters of a module, or its trees of calls, say, and gives how many threads they say nothing of. What
    /// adds up to more than 64 bits hold is told as the largest number.
    fn count(&self, part: &Part, tally: &Path, hit: &mut Hit) -> Result<u64, Unreadable> {
        let bytes = Unreadable::or(tally, fs::read(tally))?;
        let (header, units) = Unreadable::or(tally, Tally::read(&bytes))?;
        let mut all: BTreeMap<u32, u64> = BTreeMap::new();
        let mut add = |unit: u32, count: u64| {
            let sum = all.entry(unit).or_default();
            *sum = sum.saturating_add(count);
        };
        let slabs = self.file(SLABS);
        let lost = match part.has_chains {
            true => {
                let mut forest = Forest::default();
                let read = trees(&slabs, |nodes| forest.add(nodes, units, part.first));
                let lost = Unreadable::or(&slabs, read)?;
                hit.links = forest.links();
                let called = hit.links.iter().filter(|link| link.unit.get() != NO_ROOM);
                called.for_each(|link| add(link.unit.get(), link.calls.get()));
                lost
            }
            false => {
                let mut counted = vec![0; units.len()];
                let bytes = Unreadable::or(&slabs, fs::read(&slabs))?;
                let summed = sums(&bytes, header.at.get(), &mut counted);
                let summed = Unreadable::or(&slabs, summed)?;
                let told = units
                    .iter()
                    .zip(counted)
                    .filter(|(unit, _)| unit.get() != NONE);
                told.for_each(|(unit, count)| add(part.first + unit.get(), count));
                summed.lost
            }
        };
        all.retain(|_, count| *count > 0);
        hit.units.extend(all.keys().map(|unit| U32::new(*unit)));
        hit.counts
            .extend(all.values().map(|count| U64::new(*count)));
        Ok(lost)
    }

    /// The run's report, as things stand.
    pub(crate) fn report(&self, lost: Lost, progress: &Progress, ended: (Outcome, i32)) -> Vec<u8> {
        self.report_of(&self.look(), lost, progress, ended)
    }

    /// What the program itself, or its output, told of how it went; and the name of its words, which stay here.
    fn told(&self) -> (Told, u64) {
        let mut text = Vec::new();
        if let Ok(file) = File::open(self.file(OUTCOME)) {
            // What was read before an error is told, too.
            let _ = file.take(LONGEST).read_to_end(&mut text);
        }
        told(&text)
    }

    /// Where the run crashed, if it did: the signal, and the frames. Nothing of the stack is told.
    fn crash(&self, process: u32) -> Option<(u32, Vec<Frame>)> {
        let crashes = crashes(&self.file(CRASHES), &self.description.program).ok()?;
        let mut kept = crashes.kept.into_iter();
        let first = kept.next()?;
        let crash = match first.process == process {
            true => first,
            false => kept.find(|one| one.process == process).unwrap_or(first),
        };
        let frame = |frame: &tomo_launch::Frame| match frame.module {
            Some(module) => Frame::of(&crash.modules[module].build_id, frame.address),
            // Where a thread went astray is no place, and the address tells of this machine alone.
            None => Frame::of(&[], 0),
        };
        let most = MOST_FRAMES as usize;
        let frames = crash.frames.iter().take(most).map(frame).collect();
        Some((crash.signal.cast_unsigned(), frames))
    }

    /// The run's report on what was seen when somebody looked.
    fn report_of(
        &self,
        Looked { hit, modules, .. }: &Looked,
        lost: Lost,
        progress: &Progress,
        (outcome, status): (Outcome, i32),
    ) -> Vec<u8> {
        let sum = |count: fn(&Live) -> u64| modules.iter().map(|one| count(&one.live)).sum::<u64>();
        let refusing = modules.iter().find(|one| one.live.refused.get() > 0);
        let mut report = Report::empty();
        report.campaign = self.description.campaign.0;
        report.instance = self.instance.0;
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
        let count = |lost: u64| u32::try_from(lost).unwrap_or(u32::MAX).into();
        report.dropped = count(lost.dropped);
        report.unfit = count(lost.unfit);
        report.version = Report::version_of(env!("CARGO_PKG_VERSION"));
        let mut frames = Vec::new();
        if outcome.is_final() {
            let (told, cause) = self.told();
            report.told = (told as u32).into();
            report.cause = cause.into();
            let is_fine = (outcome, status) == (Outcome::Exited, 0) && told != Told::Failure;
            if !is_fine && let Some((signal, found)) = self.crash(progress.process) {
                report.signal = signal.into();
                frames = found;
            }
        }
        let follows = Follows {
            hits: hit.units.len() as u32,
            counts: hit.counts.len() as u32,
            links: hit.links.len() as u32,
            frames: frames.len() as u32,
        };
        let body = [
            hit.units.as_bytes(),
            hit.counts.as_bytes(),
            hit.links.as_bytes(),
            frames.as_bytes(),
        ];
        let body = body.concat();
        let head = report.sealed_over(follows, &body);
        [head.as_slice(), &body].concat()
    }

    /// Hands the final report over to the spool, and the folder is gone. Somebody may send the report before that, and
    /// whoever then finds the folder is not to say anything else of the run; so the folder has it first.
    pub(crate) fn finish(&self, state: &State, report: &[u8]) -> Result<(), StateError> {
        let path = self.file(FINAL);
        replace(&path, report).map_err(|error| StateError::Io(path, error))?;
        Spool::of(state).add(self.number, report)?;
        self.remove();
        Ok(())
    }

    /// The final report, if it was made before.
    pub(crate) fn finished(&self) -> Option<Vec<u8>> {
        let report = fs::read(self.file(FINAL)).ok()?;
        ReportView::read(&report).is_ok().then_some(report)
    }

    /// The folder is not needed any more. What tells of the run goes first, for nobody to make something of the rest.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(self.file(DESCRIPTION));
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Part {
    /// The units of which this tells that these probes were hit, ascending.
    fn told(&self, hits: Vec<u32>) -> Result<impl Iterator<Item = U32>, Unreadable> {
        let hit = match &self.predicates {
            None => hits,
            Some(path) => {
                let file = Unreadable::or(path, fs::read(path))?;
                let (header, rows) = Unreadable::or(path, Predicates::read(&file))?;
                true_rows(&header, rows, &hits)
            }
        };
        let wanted = |unit: &u32| self.wanted.as_ref().is_none_or(|units| units.has(*unit));
        let told = hit.into_iter().filter(wanted);
        Ok(told.map(|unit| U32::from(self.first + unit)))
    }
}

/// What tells of a run, in its folder.
const DESCRIPTION: &str = "run.json";
/// Its final report, there.
const FINAL: &str = "report";
/// What the program may tell how it went into, in the folder of its run.
const OUTCOME: &str = "outcome";
/// Bytes of it that are read.
const LONGEST: u64 = 4096;

/// What this tells of how a run went, and the name of its words. They are in whichever encoding the program speaks, and may be cut.
fn told(text: &[u8]) -> (Told, u64) {
    let text = text.trim_ascii();
    let end = text.iter().position(u8::is_ascii_whitespace);
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let words = rest.trim_ascii();
    match word {
        b"success" => (Told::Success, 0),
        b"failure" if words.is_empty() => (Told::Failure, 0),
        b"failure" => (Told::Failure, tomo_wire::checksum(words).max(1)),
        _ => (Told::Nothing, 0),
    }
}

/// What the agent says of a module, so many of whose threads were not counted.
fn counted(live: Live, lost: u64) -> Live {
    match lost {
        0 => live,
        _ => Live {
            refused: (live.refused.get().saturating_add(lost)).into(),
            reason: (Reason::NoSlab as u32).into(),
            reasons: (live.reasons.get() | Reason::NoSlab.bit()).into(),
            ..live
        },
    }
}

/// The rows that were true where these probes were hit.
fn true_rows(header: &Predicates, rows: &[Row], hits: &[u32]) -> Vec<u32> {
    let mark = |probe: u32| u64::from(hits.binary_search(&probe).is_ok());
    let mut truths = vec![None; rows.len()];
    values(rows, header.recorded(), mark, &mut truths);
    let each = (0..).zip(truths);
    let held = each.filter(|(_, value)| value.is_some_and(|value| value > 0));
    held.map(|(row, _)| row).collect()
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
    /// What arms it if it is linked statically.
    pub(crate) outside: Option<Outside>,
    began: Instant,
    children: Duration,
    _lock: Flock<File>,
}

impl Run {
    /// Begins a run that carries what is known. `None` where no image can be used.
    pub(crate) fn begin(
        state: &State,
        known: &Known,
        program: &Target,
    ) -> Result<Option<Self>, StateError> {
        let carried = known.carried(state);
        if carried.is_empty() {
            return Ok(None);
        }
        let (number, path, lock) = state.next_run()?;
        let made = Self::make((state, known, program), (number, &path, lock), &carried);
        if made.is_err() {
            let _ = fs::remove_dir_all(&path);
        }
        made.map(Some)
    }

    fn make(
        (state, known, program): (&State, &Known, &Target),
        (number, path, lock): (u64, &Path, Flock<File>),
        carried: &[tomo_launch::Carried],
    ) -> Result<Self, StateError> {
        let io = |error| StateError::Io(path.into(), error);
        let mut first = 0u32;
        let mut modules = Vec::new();
        for module in &known.modules {
            if carried.iter().any(|one| one.stem == module.stem) {
                let predicates = module.predicates.as_ref();
                let tally = module.tally.as_ref();
                modules.push(Part {
                    stem: module.stem.clone(),
                    first,
                    image: image_path(state, &module.image),
                    predicates: predicates.map(|name| image_path(state, name)),
                    tally: tally.map(|name| image_path(state, name)),
                    has_chains: module.memory.is_some(),
                    wanted: module.wanted.clone(),
                });
            }
            first = first.saturating_add(module.units);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let description = Description {
            campaign: known.campaign,
            instance: Some(state.id()),
            plans: known.plans,
            variant: known.variant,
            started: now.map_or(0, |since| since.as_nanos() as i64),
            modules,
            program: program.executable.clone(),
        };
        let text = serde_json::to_vec(&description).map_err(|error| io(error.into()))?;
        replace(&path.join(DESCRIPTION), &text).map_err(io)?;
        let mut id = state.id().0;
        for (to, from) in id.iter_mut().zip(number.to_be_bytes()) {
            *to = from;
        }
        Ok(Self {
            roster: equip(path, id, carried)?,
            outside: from_outside(program, carried, path)?,
            folder: RunFolder {
                number,
                path: path.into(),
                instance: state.id(),
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

    /// The file into which the program may tell how it went.
    pub(crate) fn outcome(&self) -> PathBuf {
        self.folder.file(OUTCOME)
    }

    /// When the program was started.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// The run's last report, and what was observed of each module; the program has ended.
    pub(crate) fn last_report(&self, state: &State, ended: Ended) -> (Vec<u8>, Looked) {
        let mut progress = self.folder.progress();
        progress.sequence = progress.sequence.saturating_add(1);
        progress.duration = self.began.elapsed();
        progress.cpu = clock::of_children().saturating_sub(self.children);
        let outcome = match ended {
            Ended::Exited(code) => (Outcome::Exited, code),
            Ended::Killed(signal) => (Outcome::Signal, signal),
        };
        let seen = self.folder.look();
        let report = self
            .folder
            .report_of(&seen, state.lost(), &progress, outcome);
        (report, seen)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Description, RunFolder, told};
    use crate::leftover;
    use crate::spool::Spool;
    use crate::state::{Lost, State};
    use tomo_protocol::{CampaignId, Name};
    use tomo_wire::report::{Outcome, Told};

    /// Of a run without modules.
    fn begun(state: &State) -> RunFolder {
        let (number, path, _lock) = state.next_run().unwrap();
        let description = Description {
            campaign: CampaignId([1; 16]),
            instance: Some(state.id()),
            plans: Name(1),
            variant: 0,
            started: 0,
            modules: Vec::new(),
            program: "/bin/true".into(),
        };
        let text = serde_json::to_vec(&description).unwrap();
        fs::write(path.join("run.json"), text).unwrap();
        RunFolder::found(state, number, &path).unwrap()
    }

    #[test]
    fn a_launcher_that_is_killed_at_its_end_leaves_a_run_that_ended_as_it_did() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        let run = begun(&state);
        let ended = (Outcome::Exited, 7);
        let report = run.report(Lost::default(), &run.progress(), ended);
        let (spool, aside) = (state.file("spool"), state.file("aside"));
        // It comes as far as to the spool, and not further.
        fs::rename(&spool, &aside).unwrap();
        run.finish(&state, &report).unwrap_err();
        fs::rename(&aside, &spool).unwrap();
        leftover::gather(&state);
        let sent = Spool::of(&state).batch(0);
        assert_eq!(sent, [(run.number, report)]);
        assert!(!run.path.exists());
        // Nobody makes anything of a folder that was being removed.
        let run = begun(&state);
        fs::remove_file(run.path.join("run.json")).unwrap();
        leftover::gather(&state);
        assert!(!run.path.exists() && Spool::of(&state).len() == 1);
    }

    #[test]
    fn what_is_told_may_be_of_any_bytes() {
        let name = |words: &[u8]| tomo_wire::checksum(words).max(1);
        assert_eq!(told(b"success\n"), (Told::Success, 0));
        assert_eq!(told(b"failure"), (Told::Failure, 0));
        assert_eq!(told(b"\n failure  a b \n"), (Told::Failure, name(b"a b")));
        let latin = b"failure caf\xe9\n";
        assert_eq!(told(latin), (Told::Failure, name(b"caf\xe9")));
        let cut = [b"failure ".as_slice(), &[b'w'; 4087], b"\xc3"].concat();
        assert_eq!(told(&cut).0, Told::Failure);
        for nothing in [b"".as_slice(), b" ", b"failures x", b"\xff\xff"] {
            assert_eq!(told(nothing), (Told::Nothing, 0));
        }
    }
}
