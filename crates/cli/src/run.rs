//! `tomo run`: an instance of a fleet.

use std::ffi::OsString;
use std::io::{Write as _, stdout};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use tomo_export::words::counted;
use tomo_instance::{Happened, Instance, Options, State};
use tomo_launch::Target;
use tomo_program::Cache;
use tomo_protocol::{Policy, Settings, read_token};
use tomo_wire::record::Refusals;

use crate::session::{NOT_LOADED, failing, share, started_without, why};

/// Run a program as one of a fleet: with the few probes that its collector assigned to this
/// installation.
///
/// The program starts at once, with what was prepared in an earlier run; the first run only prepares
/// (see --wait). What it hits is reported while it runs and at its end, and what others have
/// seen is no longer instrumented here either, at once. What is sent is numbers: which probes were hit, and
/// how often where they count, for how long the program ran, how it ended, and where it crashed; PRIVACY.md has the whole list.
#[derive(Args)]
#[command(after_long_help = EXAMPLES, args_override_self = true)]
pub(crate) struct Arguments {
    /// Where the collector is: http://HOST:PORT or https://HOST:PORT.
    #[arg(
        long,
        value_name = "URL",
        env = "TOMO_COLLECTOR",
        default_value = "http://127.0.0.1:7272"
    )]
    collector: String,

    /// The file with this fleet's token, on one line (see `tomo campaign token`).
    #[arg(long, value_name = "FILE", env = "TOMO_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    /// The file with the certificates (PEM) of those who may vouch for the collector, instead of the
    /// system's.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// Where this installation keeps who it is, what it observes, and what it could not send yet. By
    /// default a folder below $XDG_STATE_HOME or ~/.local/state, one for each collector and token.
    #[arg(long, value_name = "DIR", env = "TOMO_STATE_DIR")]
    state: Option<PathBuf>,

    /// When to report: `start` (what others have seen is heard at the start, and what was hit sent at
    /// the end), `buffer=N` (with every N new hits), `interval=SECS`; as the campaign says by default.
    #[arg(long, value_name = "POLICY")]
    policy: Option<When>,

    /// Let the first run wait so long for its assignment and the preparation.
    #[arg(long, value_name = "SECS", default_value = "0", value_parser = seconds)]
    wait: Duration,

    /// Wait so long at the end until the last report is sent. What is not sent then is sent by the
    /// next run.
    #[arg(long, value_name = "SECS", default_value = "0.3", value_parser = seconds)]
    flush_timeout: Duration,

    /// Take a run for a failure in which a line of the program's errors matches REGEX; the first group, or else all that
    /// matches, tells one cause from another. The errors then go through a pipe, which a process of tomo's own reads to its end
    /// where children outlive the program.
    #[arg(long, value_name = "REGEX", value_parser = regex::Regex::new)]
    stderr_regex: Option<regex::Regex>,

    /// Observe this program wherever the command starts it, in place of the command itself: a shell, a build, a
    /// script that starts a service. All of it is one run, which ends as the command does; a program that is
    /// started often and gone in a moment then pays for its probes alone.
    #[arg(long, value_name = "FILE", conflicts_with = "flush_only")]
    program: Option<OsString>,

    /// Observe this module, too, which the program loads later (dlopen), if it is one of the campaign's; or those in this folder.
    #[arg(long, value_name = "PATH", conflicts_with = "flush_only")]
    module: Vec<String>,

    /// Only ask what is to be observed and prepare for it; the program is not run.
    #[arg(long, conflicts_with = "flush_only")]
    prepare: bool,

    /// Only send what earlier runs could not; no program is run.
    #[arg(long)]
    flush_only: bool,

    /// Say afterwards what was observed and sent, and what the network kept from being sent.
    #[arg(short, long)]
    verbose: bool,

    /// The program and its arguments; with --program, the command that starts it.
    #[arg(
        required_unless_present = "flush_only",
        trailing_var_arg = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  tomo run --collector http://host:7272 --token-file t -- ./prog --its-flags
  tomo run --collector http://host:7272 --token-file t --prepare -- ./prog
  tomo run --collector http://host:7272 --token-file t --program git -- bash
  tomo run --collector http://host:7272 --token-file t --flush-only

Exit code: the program's own; 128 and its number where a signal ended it; 127
where it is not found; 2 where it is not run at all. Whatever goes wrong on our
side, the program runs. What somebody should do something about is said in one
line on standard error at its end, as where nobody vouches for who answers; that
the network is gone is not.";

/// When reports are sent.
#[derive(Clone, Copy, Debug)]
struct When(Policy);

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usual = Policy::default();
        // As good as never: a day is the longest that is waited.
        let never = Some(u64::MAX);
        let policy = match text.split_once('=') {
            None if text == "start" => Policy {
                interval_ms: never,
                ..usual
            },
            Some(("buffer", number)) => Policy {
                buffer: Some(
                    number
                        .parse()
                        .ok()
                        .filter(|n| *n > 0)
                        .ok_or("buffer=N takes a number from 1")?,
                ),
                interval_ms: never,
                ..usual
            },
            Some(("interval", length)) => Policy {
                interval_ms: Some(
                    Some(seconds(length)?.as_millis() as u64)
                        .filter(|length| *length > 0)
                        .ok_or("interval=SECS takes a time from 0.001")?,
                ),
                ..usual
            },
            _ => return Err("say `start`, `buffer=N` or `interval=SECS`".into()),
        };
        Ok(Self(policy))
    }
}

/// A length of time in seconds, with a fraction if need be.
fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is no number of seconds"))?;
    let time = Duration::try_from_secs_f64(number).ok();
    time.filter(|time| *time <= Duration::from_secs(24 * 3600))
        .ok_or_else(|| format!("{text:?} is no length of time up to a day"))
}

/// Runs the program; gives its exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    tomo_launch::keep_going();
    let [name, rest @ ..] = arguments.command.as_slice() else {
        return flush(arguments);
    };
    let path = std::env::var_os("PATH");
    let path = path.as_deref();
    let program = arguments.program.as_ref();
    // What others start is armed by the agent.
    let program = program.map(|program| Target::find_dynamic(program, path));
    let program = program.transpose().context("--program")?;
    let target = match Target::find(name, path) {
        Err(error) if error.is_missing() => {
            say!("tomo: {error}");
            return Ok(ExitCode::from(127));
        }
        found => found?,
    };
    let observed = program.as_ref().unwrap_or(&target);
    if arguments.prepare {
        let instance = instance(arguments)?;
        instance.prepare(observed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.flush_only {
        bail!("--flush-only runs no program");
    }
    tomo_launch::is_to_start(arguments.command.len());
    let instance = match instance(arguments) {
        Ok(instance) => instance,
        Err(error) => {
            let ended = tomo_launch::run(&target, name, rest, None)?;
            let file = observed.executable.display();
            say!("tomo: {file} was not observed: {error:#}");
            return Ok(ExitCode::from(ended.code()));
        }
    };
    let (ended, happened) = instance.run(&tomo_instance::Command {
        target: &target,
        name,
        arguments: rest,
        program: program.as_ref(),
    })?;
    if happened.is_preparing {
        prepare_apart(arguments);
    }
    tell(arguments, &happened);
    Ok(ExitCode::from(ended.code()))
}

fn flush(arguments: &Arguments) -> Result<ExitCode> {
    let happened = instance(arguments)?.flush()?;
    for words in happened.problems.iter().chain(&happened.hindrances) {
        say!("tomo: {words}");
    }
    let (sent, refused) = (happened.sent.settled, happened.sent.refused);
    let waiting = happened.waiting;
    writeln!(
        stdout(),
        "{} sent, {refused} refused, {waiting} waiting",
        counted(sent, "report", "reports")
    )?;
    Ok(ExitCode::SUCCESS)
}

fn instance(arguments: &Arguments) -> Result<Instance> {
    let token = arguments
        .token_file
        .as_deref()
        .map(read_token)
        .transpose()?;
    let variable = |name: &str| std::env::var_os(name);
    let state = match &arguments.state {
        Some(state) => state.clone(),
        None => State::default_folder(variable, &arguments.collector, token.as_deref())
            .context("there is no home folder: name a folder with --state")?,
    };
    let cache = Cache::from_environment(variable);
    let cache = cache.context("there is no cache directory: set TOMO_CACHE_DIR")?;
    let options = Options {
        collector: Settings {
            url: arguments.collector.clone(),
            token,
            authorities: arguments.ca_file.clone(),
            timeout: Duration::from_secs(30),
        },
        state,
        cache: cache.directory().to_path_buf(),
        later: arguments.module.clone(),
        policy: arguments.policy.map(|When(policy)| policy),
        wait: arguments.wait,
        flush: arguments.flush_timeout,
        failing: arguments.stderr_regex.clone(),
    };
    Ok(Instance::open(options)?)
}

/// A program that ended before it was prepared for the runs to come is not kept waiting for it, nor would a run
/// ever be observed if all are so short: it is finished in a process of its own, at the lowest priority.
fn prepare_apart(arguments: &Arguments) {
    let Ok(tomo) = std::env::current_exe() else {
        return;
    };
    let mut command = Command::new(tomo);
    command
        .args(["run", "--prepare", "--collector"])
        .arg(&arguments.collector);
    let files = [
        ("--token-file", &arguments.token_file),
        ("--ca-file", &arguments.ca_file),
        ("--state", &arguments.state),
    ];
    for (flag, path) in files {
        if let Some(path) = path {
            command.arg(flag).arg(path);
        }
    }
    if let Some(program) = &arguments.program {
        command.arg("--program").arg(program);
    }
    for module in &arguments.module {
        command.arg("--module").arg(module);
    }
    command.arg("--").args(&arguments.command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // If it cannot be started, the next run that is long enough prepares.
    let _ = command.spawn();
}

/// What somebody should know; with --verbose also what passes by itself.
fn tell(arguments: &Arguments, happened: &Happened) {
    for problem in &happened.problems {
        say!("tomo: {problem}");
    }
    for module in &happened.modules {
        let live = &module.live;
        let refusals = Refusals::of(live);
        if refusals.count > 0 {
            say!(
                "tomo: {} was {} in {}: {}",
                module.stem,
                failing(refusals),
                share(refusals, live.armed.get()),
                why(refusals)
            );
        }
        // A session need not start the program, nor the program load what comes later.
        let may_be_absent = arguments.program.is_some() || !arguments.module.is_empty();
        if !module.is_loaded() && !happened.is_of_other_build && !may_be_absent {
            say!("tomo: {} {NOT_LOADED}", module.stem);
        }
        if arguments.verbose {
            say!(
                "tomo: {}: {} hit, {}",
                module.stem,
                counted(module.hits as u64, "probe", "probes"),
                counted(live.armed.get(), "process", "processes")
            );
        }
    }
    let without = happened.modules.iter();
    let without = without.map(|module| module.live.without.get()).sum();
    if let Some(words) = started_without(without) {
        say!("tomo: {words}");
    }
    if arguments.verbose {
        for hindrance in &happened.hindrances {
            say!("tomo: {hindrance}");
        }
        if !happened.carried && happened.problems.is_empty() {
            say!("tomo: not observed: nothing was prepared yet");
        }
        let (sent, waiting) = (happened.sent, happened.waiting);
        say!(
            "tomo: {} while it ran, {} sent, {waiting} waiting, {} disposed of",
            counted(happened.reports, "report", "reports"),
            counted(sent.settled, "final report", "final reports"),
            counted(sent.disposed, "probe", "probes")
        );
    }
}
