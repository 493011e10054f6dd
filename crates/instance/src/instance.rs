//! All of it together: a program is run and observed; or what it will need is only prepared; or what earlier runs
//! left is only reported.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use regex::Regex;
use tomo_launch::{
    Agent, AgentError, Arming, Ended, Extra, ImageError, Images, StartError, Started, Target,
};
use tomo_protocol::{Client, ClientError, Policy, Settings};

use crate::bake::{BakeError, bake, remove_others};
use crate::channel::{Channel, Sent};
use crate::farewell::{Emptied, Farewell};
use crate::installed::Installed;
use crate::known::Known;
use crate::listening::Listening;
use crate::reporter::{Context, Outcomes, Reporter};
use crate::run::{Observed, Run};
use crate::spool::Spool;
use crate::state::{State, StateError};
use crate::{leftover, numbers, unmade};

/// How long to wait before a collector that did not answer is asked again by who waits for it, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Bytes of what a collector may answer. What is assigned takes a few for each unit of the program, of which large ones have millions.
const LONGEST_ANSWER: u64 = 64 << 20;

/// What an installation is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The collector, and how long a request may take while the program runs.
    pub collector: Settings,
    /// The folder of the state.
    pub state: PathBuf,
    /// The folder of models, images and the agent.
    pub cache: PathBuf,
    /// Files of modules that the program may load later, and folders of them: they are observed as well.
    pub later: Vec<String>,
    /// When to send and to hear, in place of what the campaign says.
    pub policy: Option<Policy>,
    /// How long the start may wait for a first assignment.
    pub wait: Duration,
    /// How long the end may wait for the last report to be sent.
    pub flush: Duration,
    /// What in a line of the program's errors says that the run fails.
    pub failing: Option<Regex>,
}

/// Why nothing can be observed or sent.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// The state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The collector cannot be asked, or refuses.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Images cannot be kept.
    #[error(transparent)]
    Images(#[from] ImageError),
    /// The agent cannot be kept.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The assignment cannot be made into images.
    #[error(transparent)]
    Bake(#[from] BakeError),
    /// The collector did not answer in time.
    #[error("the collector did not answer within {0:?}, or preparing took longer")]
    TooLate(Duration),
}

/// What happened besides the program.
#[derive(Debug, Default)]
pub struct Happened {
    /// Whether the program was started with probes.
    pub carried: bool,
    /// Whether the images for the next run were not done when the program had ended: somebody may go on with
    /// [`Instance::prepare`].
    pub is_preparing: bool,
    /// What was observed of each module.
    pub modules: Vec<Observed>,
    /// Whether a module was not observed since the program is another build than the one that is to be: a problem says so.
    pub is_of_other_build: bool,
    /// Reports that were taken while the program ran.
    pub reports: u64,
    /// What became of final reports, and what was disposed of.
    pub sent: Sent,
    /// Final reports that wait.
    pub waiting: usize,
    /// What somebody must do something about.
    pub problems: Vec<String>,
    /// What passes by itself: the network, or a collector that is busy.
    pub hindrances: Vec<String>,
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// What is started, and what it is called.
    pub target: &'a Target,
    /// What it calls itself.
    pub name: &'a OsStr,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// The program that is observed, if it is not what is started but what that starts, as often as it likes: a
    /// session.
    pub program: Option<&'a Target>,
}

impl Command<'_> {
    /// The program that is observed.
    fn observed(&self) -> &Target {
        self.program.unwrap_or(self.target)
    }
}

/// An installation.
#[derive(Clone, Debug)]
pub struct Instance {
    state: State,
    client: Client,
    quick: Client,
    images: Images,
    agent: Agent,
    options: Options,
}

impl Instance {
    /// The installation that these options tell of. Nothing is sent yet.
    ///
    /// # Errors
    /// Where its folders cannot be used, or the address is none.
    pub fn open(options: Options) -> Result<Self, InstanceError> {
        let client = Client::new(&options.collector)?.taking_at_most(LONGEST_ANSWER);
        Ok(Self {
            state: State::open(&options.state)?.shown(options.collector.token.as_deref()),
            quick: client.within(options.flush.max(Duration::from_millis(1))),
            client,
            images: Images::in_cache(&options.cache)?,
            agent: Agent::in_cache(&options.cache)?,
            options,
        })
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Runs a command to its end, its program observed as far as that is possible at once.
    ///
    /// # Errors
    /// Where it does not start, or cannot be waited for.
    pub fn run(&self, command: &Command<'_>) -> Result<(Ended, Happened), StartError> {
        let mut happened = Happened::default();
        let program = command.observed();
        let known = self.known(program, &mut happened);
        let lacking = self.lacking(known.as_ref());
        let mut run = known.as_ref().and_then(|known| {
            let run = Run::begin(&self.state, known, program);
            run.unwrap_or_else(|error| {
                happened.problems.push(error.to_string());
                None
            })
        });
        happened.carried = run.is_some();
        let arming = run.as_ref().map(|run| Arming {
            agent: &self.agent,
            roster: &run.roster,
            outside: run.outside.as_ref(),
        });
        let mut extra = Extra::default();
        if let Some(run) = &run {
            let outcome = run.outcome().into_os_string();
            extra
                .variables
                .push((tomo_wire::environment::OUTCOME, outcome));
            if self.options.failing.is_some() {
                extra.errors = Some(Stdio::piped());
            }
        }
        let Command {
            target,
            name,
            arguments,
            ..
        } = *command;
        let started = tomo_launch::start_with(target, name, arguments, arming, extra);
        let mut started = started.inspect_err(|_| {
            if let Some(run) = &run {
                run.folder.remove();
            }
        })?;
        if let Some(run) = &mut run {
            run.started(started.process());
        }
        let listening = run.as_ref().and_then(|run| {
            let (pattern, errors) = (self.options.failing.clone()?, started.take_errors()?);
            Listening::start(pattern, errors, run.outcome())
        });
        let ended = self.wait((started, listening), program, known, run, &mut happened)?;
        happened.waiting = Spool::of(&self.state).len();
        // What is wrong with what is made anew comes before what was wrong with the old.
        if let Some(why) = unmade::noted(&self.state).or(lacking) {
            happened.complain(why);
        }
        happened.look_for_other_builds(&self.installed(program));
        Ok((ended, happened))
    }

    /// Waits for the program, with a reporter beside it; then reports for the last time.
    fn wait(
        &self,
        (started, listening): (Started, Option<Listening>),
        target: &Target,
        known: Option<Known>,
        run: Option<Run>,
        happened: &mut Happened,
    ) -> Result<Ended, StartError> {
        let reporter = Reporter::start(Context {
            state: self.state.clone(),
            client: self.client.clone(),
            images: self.images.clone(),
            program: self.installed(target),
            known: known.clone(),
            run: run.as_ref().map(|run| (run.folder.clone(), run.began())),
            policy: self.options.policy,
        });
        let ended = started.wait()?;
        if let Some(listening) = listening {
            listening.finish(self.options.flush);
        }
        if let Some(reporter) = &reporter {
            reporter.stop();
        }
        if let Some(run) = &run {
            let (report, looked) = run.last_report(&self.state, ended);
            happened.modules = looked.modules;
            happened.problems.extend(looked.unread);
            // If it cannot be kept the folder stays, for a later run to report.
            if let Err(error) = run.folder.finish(&self.state, &report) {
                happened.problems.push(error.to_string());
            }
        }
        self.part(reporter, known, happened);
        if let Some(run) = &run
            && let Err(error) = Spool::of(&self.state).sync(run.folder.number)
        {
            happened.problems.push(error.to_string());
        }
        remove_others(&self.state);
        Ok(ended)
    }

    /// Sends the last report and hears what the reporter did, as far as there is time.
    fn part(&self, reporter: Option<Reporter>, known: Option<Known>, happened: &mut Happened) {
        let (state, client) = (self.state.clone(), self.quick.clone());
        let farewell = Farewell::start(state, client, known, self.options.flush);
        let (Some(farewell), Some(reporter)) = (farewell, reporter) else {
            return happened.problems.push("no thread could be started".into());
        };
        let emptied = farewell.wait();
        match reporter.finish(farewell.left()) {
            Ok(outcomes) => happened.tell(outcomes),
            Err(late) => happened.is_preparing = late.is_baking,
        }
        match emptied {
            Some(emptied) => happened.hear(emptied),
            None => {
                let late = "the collector did not answer in time";
                happened.hindrances.push(late.into());
            }
        }
    }

    /// What is known; if nothing is, the first assignment, if there is time to wait for it.
    fn known(&self, target: &Target, happened: &mut Happened) -> Option<Known> {
        let known = Known::read(&self.state);
        let is_whole = |known: &Known| known.is_whole(&self.state);
        if known.as_ref().is_some_and(is_whole) || self.options.wait.is_zero() {
            return known;
        }
        match self.prepare_within(target, self.options.wait) {
            Ok(()) => Known::read(&self.state),
            Err(error) => {
                happened.hindrances.push(error.to_string());
                known
            }
        }
    }

    /// What keeps the run from being observed, if something was prepared for it.
    fn lacking(&self, known: Option<&Known>) -> Option<String> {
        let carried = known.map_or(0, |known| known.carried(&self.state).len());
        let lacks = match known {
            Some(known) => carried < known.modules.len(),
            None => Known::is_unreadable(&self.state),
        };
        let what = match carried {
            0 => "not observed",
            _ => "observed in part only",
        };
        lacks.then(|| {
            format!(
                "{what}: what was prepared here was prepared by another build of tomo, or has been damaged; it is made anew for the next runs (at once: tomo run --prepare)"
            )
        })
    }

    fn prepare_within(&self, target: &Target, time: Duration) -> Result<(), InstanceError> {
        let until = Instant::now() + time;
        let (tell, told) = sync_channel(1);
        let (instance, target) = (self.clone(), target.clone());
        let work = move || {
            let _ = tell.send(instance.prepare_until(&target, until));
        };
        let late = || InstanceError::TooLate(time);
        let thread = thread::Builder::new().name("tomo-prepare".into());
        thread.spawn(work).map_err(|_| late())?;
        told.recv_timeout(time).map_err(|_| late())?
    }

    /// Prepares as soon as the collector answers, if it does so in time.
    fn prepare_until(&self, target: &Target, until: Instant) -> Result<(), InstanceError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.prepare(target) {
                Err(InstanceError::Client(error)) if error.is_temporary() => error,
                done => return done,
            };
            let wait = error.retry_after().unwrap_or_default().max(pause);
            if wait >= until.saturating_duration_since(Instant::now()) {
                return Err(error.into());
            }
            thread::sleep(wait);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Asks the collector what is to be observed of `target`, and makes the images for the runs to come, at the lowest
    /// priority from here on.
    ///
    /// # Errors
    /// Where it does not answer, or its assignment is not for this program.
    pub fn prepare(&self, target: &Target) -> Result<(), InstanceError> {
        let _ = rustix::process::setpriority_process(None, 19);
        let known = Known::read(&self.state);
        let mut channel = Channel::new(&self.state, &self.client, known.as_ref());
        let assignment = channel.ask()?;
        let program = self.installed(target);
        bake(&self.state, &self.images, &program, &assignment)?;
        remove_others(&self.state);
        // What has been made already was made for the program as it was then.
        let stems = assignment.modules.iter().map(|module| module.stem.as_str());
        Ok(program.has(stems)?)
    }

    /// The program as it is installed.
    fn installed(&self, target: &Target) -> Installed {
        Installed::new(target, &self.options.later)
    }

    /// Sends what earlier runs left.
    ///
    /// # Errors
    /// Where the collector does not take it.
    pub fn flush(&self) -> Result<Happened, InstanceError> {
        numbers::settle(&self.state)
            .map_err(|error| StateError::Io(self.state.file("reserved"), error))?;
        leftover::gather(&self.state);
        let known = Known::read(&self.state);
        let mut channel = Channel::new(&self.state, &self.client, known.as_ref());
        if known.is_none() && !Known::of_others(&self.state).is_empty() {
            // What waits may be for this token's campaign, which nobody has asked for yet.
            channel.ask()?;
        }
        channel.empty_spool()?;
        let mut happened = Happened {
            sent: channel.sent,
            waiting: Spool::of(&self.state).len(),
            ..Happened::default()
        };
        if channel.left {
            let left =
                "reports wait that are of campaigns with other tokens: they are sent with those";
            happened.hindrances.push(left.into());
        }
        happened.problems.extend(channel.refusal);
        Ok(happened)
    }
}

impl Happened {
    fn tell(&mut self, outcomes: Outcomes) {
        self.reports = outcomes.reports;
        self.sent = self.sent.and(outcomes.sent);
        self.fail(outcomes.unreachable);
        if let Some(error) = outcomes.baking {
            self.complain(error.to_string());
        }
        self.refuse(outcomes.refusal);
    }

    /// Where a module was not loaded with the agent, looks whether the program has been replaced since it was prepared for.
    fn look_for_other_builds(&mut self, program: &Installed) {
        let unseen = self.modules.iter().filter(|module| !module.is_loaded());
        let mut unseen = unseen.map(|module| module.stem.as_str()).peekable();
        if unseen.peek().is_none() {
            return;
        }
        if let Err(BakeError::NotAccepted(why)) = program.has(unseen) {
            self.is_of_other_build = true;
            self.complain(why.to_string());
        }
    }

    /// Somebody must do something about this. What was said already is not said again.
    fn complain(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn hear(&mut self, emptied: Emptied) {
        self.sent = self.sent.and(emptied.sent);
        self.fail(emptied.result.err());
        self.refuse(emptied.refusal);
    }

    /// The collector could not be asked. What was said already is not said again.
    fn fail(&mut self, error: Option<ClientError>) {
        let Some(error) = error else {
            return;
        };
        let list = match error.is_temporary() {
            true => &mut self.hindrances,
            false => &mut self.problems,
        };
        let said = error.to_string();
        if !list.contains(&said) {
            list.push(said);
        }
    }

    fn refuse(&mut self, why: Option<String>) {
        if let Some(why) = why {
            self.complain(format!("the collector refused a report: {why}"));
        }
    }
}
