//! The `tomo` command: flags in, words out.
//!
//! Exit codes: 0 where all went well, 2 where something that was asked for could not be done; then one line
//! on standard error says what and where.

/// A line on standard error: see [`saying::line`].
macro_rules! say {
    ($($line:tt)*) => {
        $crate::saying::line(format_args!($($line)*))
    };
}

mod bar;
mod calibrate;
mod campaign;
mod chains;
mod completions;
mod count;
mod cover;
mod crashes;
mod demo;
mod earlier;
mod fleet;
mod isolate;
mod map;
mod merge;
mod observe;
mod options;
mod outcome;
mod paths;
mod predicates;
mod program;
mod remote;
mod report;
mod run;
mod saying;
mod serve;
mod session;
mod study;
mod temporary;
mod threads;
mod trace;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args as _, FromArgMatches as _, Parser, Subcommand};
use mimalloc::MiMalloc;
use tomo_launch::Sparing;

/// The analysis makes and drops millions of small values; the system's allocator takes a fifth longer.
#[global_allocator]
static ALLOCATOR: Sparing<MiMalloc> = Sparing(MiMalloc);

/// Profile native programs as they are, in the field.
///
/// Tomograph works on unmodified x86-64 Linux programs and shared libraries: no recompiling, no
/// source changes. Start with `tomo map PROGRAM`.
#[derive(Parser)]
#[command(
    name = "tomo",
    version,
    arg_required_else_help = true,
    max_term_width = 80
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Map(map::Arguments),
    Cover(cover::Arguments),
    Run(run::Arguments),
    Demo(demo::Arguments),
    Calibrate(calibrate::Arguments),
    Env(cover::environment::Arguments),
    Count(count::Arguments),
    Paths(paths::Arguments),
    Predicates(predicates::Arguments),
    Trace(trace::Arguments),
    Isolate(isolate::Arguments),
    Chains(chains::Arguments),
    Report(report::Arguments),
    Merge(merge::Arguments),
    Crashes(crashes::Arguments),
    Outcome(outcome::Arguments),
    Serve(serve::Arguments),
    Program(program::Arguments),
    Campaign(campaign::Arguments),
    Fleet(fleet::Arguments),
    #[command(subcommand)]
    Study(study::Study),
    Completions(completions::Arguments),
    /// Pass standard input on; `tomo run` calls this for what outlives its program.
    #[command(name = tomo_instance::PASS_ON, hide = true)]
    PassOn,
    /// End what is left of runs; `tomo isolate` calls this for when it is ended itself.
    #[command(name = tomo_isolate::END_GROUPS, hide = true)]
    EndGroups,
}

fn main() -> ExitCode {
    let say_so = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say_so(panic);
        tomo_launch::end_for_the_program("this is a bug in tomo");
    }));
    /// Bytes of a stack as it usually is.
    const USUAL: usize = 8 << 20;
    /// The exit code of who panics.
    const PANICKED: u8 = 101;
    if tomo_launch::is_stack_small() {
        let elsewhere = std::thread::Builder::new()
            .stack_size(USUAL)
            .spawn(complete);
        if let Ok(thread) = elsewhere {
            // Whatever it has done by its panic is not done twice.
            return thread.join().unwrap_or(ExitCode::from(PANICKED));
        }
    }
    complete()
}

/// The exit code that shells give what was interrupted.
const INTERRUPTED: u8 = 128 + 2;

/// Does what the command line says.
fn complete() -> ExitCode {
    threads::leave_some();
    let given = given();
    let asked = asked(&given).unwrap_or_else(|| Arguments::parse_from(given).command);
    let outcome = match asked {
        Command::Map(arguments) => map::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Cover(arguments) => cover::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Completions(arguments) => completions::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Demo(arguments) => demo::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Env(arguments) => cover::environment::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Count(arguments) => count::run(&arguments),
        Command::Paths(arguments) => paths::run(&arguments),
        Command::Predicates(arguments) => predicates::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Isolate(arguments) => isolate::run(&arguments),
        Command::Chains(arguments) => chains::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Crashes(arguments) => crashes::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Outcome(arguments) => outcome::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Program(arguments) => program::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Campaign(arguments) => campaign::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Fleet(arguments) => fleet::run(&arguments),
        Command::Study(study) => study::run(&study).map(|()| ExitCode::SUCCESS),
        Command::PassOn => {
            let passed = tomo_instance::pass_on_alone();
            passed.map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Command::EndGroups => {
            let ended = tomo_isolate::end_groups();
            ended.map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
    };
    match outcome {
        Ok(code) => {
            if code == ExitCode::from(INTERRUPTED) {
                let _ = std::io::stdout().flush();
                tomo_launch::end_if_interrupted();
            }
            code
        }
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say!("tomo: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The flags that say where records go, of which there is one.
const PLACES: [&str; 2] = ["output", "pool"];

/// The command line, with the flags that the environment states; without them where they are none, so that the program
/// runs whatever they are.
fn given() -> Vec<OsString> {
    let plain: Vec<OsString> = std::env::args_os().collect();
    let options = std::env::var_os(tomo_wire::environment::OPTIONS);
    let with = options::with_options(plain.clone(), options.as_deref(), &[]);
    if with == plain || asked(&with).is_some() || Arguments::try_parse_from(&plain).is_err() {
        return with;
    }
    let Err(error) = Arguments::try_parse_from(&with) else {
        return with;
    };
    if error.kind() == clap::error::ErrorKind::ArgumentConflict {
        // Where records go is said by the flags, in another way.
        let placed = options::with_options(plain.clone(), options.as_deref(), &PLACES);
        if Arguments::try_parse_from(&placed).is_ok() {
            return placed;
        }
    }
    say!(
        "tomo: {} is left out: {}",
        tomo_wire::environment::OPTIONS,
        options::in_one_line(&error.to_string())
    );
    plain
}

/// What is asked of one of the commands that stand between a user and a program: without the flags of all others,
/// which take as long to be put together as a short program runs. Whatever is not understood, and every question for help,
/// is left to those who know them all.
fn asked(given: &[OsString]) -> Option<Command> {
    type Flags = fn(clap::Command) -> clap::Command;
    let known: [(&str, Flags); 7] = [
        ("cover", cover::Arguments::augment_args),
        ("run", run::Arguments::augment_args),
        ("outcome", outcome::Arguments::augment_args),
        ("count", count::Arguments::augment_args),
        ("paths", paths::Arguments::augment_args),
        ("predicates", predicates::Arguments::augment_args),
        ("chains", chains::Arguments::augment_args),
    ];
    let word = given.get(1)?;
    let (name, flags) = known.into_iter().find(|(name, _)| word == name)?;
    let alone = flags(clap::Command::new(name));
    let all = clap::Command::new("tomo").subcommand(alone);
    let matches = all.try_get_matches_from(given).ok()?;
    Command::from_arg_matches(&matches).ok()
}

/// Whether the reader of our output has enough of it (`tomo … | head`).
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    /// Of all commands below this one: what stands below their options, line by line, with its width.
    fn wide(command: &clap::Command, to: &mut Vec<String>) {
        let notes = command.get_after_long_help().map(ToString::to_string);
        let lines = notes.iter().flat_map(|notes| notes.lines());
        let wide = lines.filter(|line| line.chars().count() > 80);
        to.extend(wide.map(|line| format!("{}: {line}", command.get_name())));
        for below in command.get_subcommands() {
            self::wide(below, to);
        }
    }

    fn is_asked(line: &str) -> bool {
        let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
        super::asked(&words).is_some()
    }

    #[test]
    fn commands_that_start_programs_are_understood_without_the_others() {
        for line in [
            "tomo cover -o a -o b --level edge -- ./program --its-flags",
            "tomo run --token-file t -- ./program",
            "tomo outcome failure words",
            "tomo count -- ./program",
            "tomo paths --select hot:2 -- ./program",
            "tomo predicates --counts -- ./program",
            "tomo chains --leaf f -- ./program",
        ] {
            assert!(is_asked(line), "{line}");
        }
    }

    #[test]
    fn help_and_errors_come_from_who_knows_all_commands() {
        for line in [
            "tomo",
            "tomo cover --help",
            "tomo cover",
            "tomo cover --no-such -- x",
            "tomo --version",
        ] {
            assert!(!is_asked(line), "{line}");
        }
    }

    #[test]
    fn help_fits_a_terminal_of_eighty_columns() {
        let mut found = Vec::new();
        wide(&super::Arguments::command(), &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
