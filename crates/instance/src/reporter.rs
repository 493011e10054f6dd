//! The thread that talks to the collector while the program runs: at the start, then by policy (DIS §4.1: when a
//! buffer of newly hit probes is full, or at regular intervals). The last word is said by `farewell.rs`.
//!
//! It runs at the lowest priority and only ever looks at the records, which the program writes anyway, so
//! the program does not notice it. It never gives up for good while the program runs, and asks ever more
//! rarely where nobody answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tomo_launch::Images;
use tomo_protocol::{Client, ClientError, Policy};
use tomo_wire::report::Outcome;

use crate::bake::{BakeError, bake};
use crate::channel::{Channel, Sent};
use crate::clock;
use crate::installed::Installed;
use crate::known::Known;
use crate::run::{Progress, RunFolder};
use crate::state::State;
use crate::{leftover, numbers};

/// How often the records are looked at where a buffer of hits is to be sent once it is full.
const LOOK: Duration = Duration::from_millis(100);
/// The shortest and the longest time between two reports, whatever policy and collector say.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Where neither says anything.
const USUAL: Duration = Duration::from_secs(10);
/// How long to wait after the first exchange that failed, and after many.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What the thread needs.
pub(crate) struct Context {
    pub(crate) state: State,
    pub(crate) client: Client,
    pub(crate) images: Images,
    pub(crate) program: Installed,
    /// What the run carries.
    pub(crate) known: Option<Known>,
    /// The run, if it is observed, and when it began.
    pub(crate) run: Option<(RunFolder, Instant)>,
    pub(crate) policy: Option<Policy>,
}

/// What the thread did.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) sent: Sent,
    /// Reports that the collector took while the program ran.
    pub(crate) reports: u64,
    /// Why it could not be asked, the last time.
    pub(crate) unreachable: Option<ClientError>,
    /// Why its assignment was not made into images.
    pub(crate) baking: Option<BakeError>,
    /// Why it took a report never.
    pub(crate) refusal: Option<String>,
}

/// The thread was not done in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    /// Whether it was making the images for the next run.
    pub(crate) is_baking: bool,
}

/// The thread, from outside.
#[derive(Debug)]
pub(crate) struct Reporter {
    stop: SyncSender<()>,
    done: Receiver<Outcomes>,
    is_baking: Arc<AtomicBool>,
}

impl Reporter {
    /// Starts the thread. If there can be none, nothing is reported in this run.
    pub(crate) fn start(context: Context) -> Option<Self> {
        let (stop, stopped) = sync_channel(1);
        let (tell, done) = sync_channel(1);
        let is_baking = Arc::new(AtomicBool::new(false));
        let baking = Arc::clone(&is_baking);
        let work = move || {
            // Threads that the analysis starts from here inherit it.
            let _ = rustix::process::setpriority_process(None, 19);
            let _ = tell.send(Work::of(&context, &baking).all(&stopped));
        };
        let thread = thread::Builder::new().name("tomo-reporter".into());
        let thread = thread.spawn(work).ok()?;
        drop(thread);
        Some(Self {
            stop,
            done,
            is_baking,
        })
    }

    /// The program has ended: there is nothing more to do by policy.
    pub(crate) fn stop(&self) {
        let _ = self.stop.try_send(());
    }

    /// What the thread did, unless it is not done within this time; it is then left to itself.
    pub(crate) fn finish(self, within: Duration) -> Result<Outcomes, Late> {
        let outcomes = self.done.recv_timeout(within);
        outcomes.map_err(|_| Late {
            is_baking: self.is_baking.load(Ordering::Relaxed),
        })
    }
}

struct Work<'c> {
    context: &'c Context,
    channel: Channel<'c>,
    policy: Policy,
    outcomes: Outcomes,
    /// Exchanges that failed, one after the other.
    failures: u32,
    is_baking: &'c AtomicBool,
}

impl<'c> Work<'c> {
    fn of(context: &'c Context, is_baking: &'c AtomicBool) -> Self {
        let known = context.known.as_ref();
        let policy = context.policy.or(known.map(|known| known.policy));
        let mut channel = Channel::new(&context.state, &context.client, known);
        channel.interval = known.map(|known| Duration::from_millis(known.interval_ms));
        Self {
            context,
            channel,
            policy: policy.unwrap_or_default(),
            outcomes: Outcomes::default(),
            failures: 0,
            is_baking,
        }
    }

    fn all(mut self, stopped: &Receiver<()>) -> Outcomes {
        // Without this a number might be given again, and two runs be taken for one.
        if numbers::settle(&self.context.state).is_ok() {
            let runs = matches!(stopped.try_recv(), Err(TryRecvError::Empty));
            self.begin(runs);
            if runs {
                self.while_it_runs(stopped);
            }
        }
        self.outcomes.sent = self.channel.sent;
        self.outcomes.refusal = self.channel.refusal.take();
        self.outcomes
    }

    /// What earlier runs left, unless the program has ended already and that is sent with its last word; and what is
    /// to be observed from now on.
    fn begin(&mut self, runs: bool) {
        leftover::gather(&self.context.state);
        if runs {
            let emptied = self.channel.empty_spool();
            self.note(emptied);
        }
        let Context {
            state,
            images,
            program,
            known,
            ..
        } = self.context;
        let is_prepared = known
            .as_ref()
            .is_some_and(|known| known.is_whole_throughout(state));
        if is_prepared && !self.policy.update_at_start {
            return;
        }
        match self.channel.ask() {
            Ok(assignment) => {
                self.is_baking.store(true, Ordering::Relaxed);
                self.outcomes.baking = bake(state, images, program, &assignment).err();
                self.is_baking.store(false, Ordering::Relaxed);
            }
            Err(error) => self.note(Err(error)),
        }
    }

    /// Reports by policy until the program has ended.
    fn while_it_runs(&mut self, stopped: &Receiver<()>) {
        let Some((folder, began)) = &self.context.run else {
            let _ = stopped.recv();
            return;
        };
        let mut last = Instant::now();
        let mut told = 0;
        loop {
            let due = self.interval().max(self.pause());
            let left = due.saturating_sub(last.elapsed());
            let looks = self.policy.buffer.is_some() && self.failures == 0;
            let wait = if looks { left.min(LOOK) } else { left };
            match stopped.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
            let full = |buffer: u32| folder.look().hit.units.len() >= told + buffer.max(1) as usize;
            let gap = last.elapsed() >= SHORTEST;
            let is_full = looks && gap && self.policy.buffer.is_some_and(full);
            if is_full || last.elapsed() >= due {
                last = Instant::now();
                told = self.report(folder, *began).unwrap_or(told);
            }
        }
    }

    /// Says how the run stands; gives how many hits that were, if the collector has heard it.
    fn report(&mut self, folder: &RunFolder, began: Instant) -> Option<usize> {
        let mut progress: Progress = folder.progress();
        progress.sequence = progress.sequence.saturating_add(1);
        progress.duration = began.elapsed();
        progress.cpu = clock::of_process(progress.process).unwrap_or(progress.cpu);
        // What is sent must be lower than what comes later, whoever sends that.
        folder.note(&progress).ok()?;
        let state = &self.context.state;
        let running = (Outcome::Running, 0);
        let report = folder.report(state.lost(), &progress, running);
        let hits =
            tomo_wire::report::ReportView::read(&report).map_or(0, |(view, _)| view.hits.len());
        let sent = self.channel.send(&report).map(|_| true);
        let heard = sent.is_ok();
        self.outcomes.reports += u64::from(heard);
        self.note(sent);
        if heard {
            let emptied = self.channel.empty_spool();
            self.note(emptied);
        }
        heard.then_some(hits)
    }

    /// Notes how an exchange went, if there was one.
    fn note(&mut self, exchange: Result<bool, ClientError>) {
        match exchange {
            Ok(true) => {
                self.failures = 0;
                self.outcomes.unreachable = None;
            }
            Ok(false) => {}
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                self.outcomes.unreachable = Some(error);
            }
        }
    }

    /// The time between two reports.
    fn interval(&self) -> Duration {
        let policy = self.policy.interval_ms.map(Duration::from_millis);
        let interval = policy.or(self.channel.interval).unwrap_or(USUAL);
        interval.clamp(SHORTEST, LONGEST)
    }

    /// How long to leave a collector alone that did not answer, or asked for it.
    fn pause(&self) -> Duration {
        let Some(error) = &self.outcomes.unreachable else {
            return Duration::ZERO;
        };
        if !error.is_temporary() {
            return LONGEST_PAUSE;
        }
        let doubled = FIRST_PAUSE * 2u32.saturating_pow(self.failures.min(16));
        let asked = error.retry_after().unwrap_or_default();
        doubled.max(asked).min(LONGEST_PAUSE)
    }
}
