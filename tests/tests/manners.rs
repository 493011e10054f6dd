//! Covered programs do what they do alone: output, exit code, signal; whatever they do with signals,
//! threads, processes and stacks. And what they did is recorded, however they end.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build, compiled};
use tomo_testkit::coverage::{Covering, Units, complete};

/// The program of scenarios.
fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("gcc", &["-O2", "-pthread"]))
}

/// The program of scenarios, built otherwise.
fn built(compiler: &str, flags: &[&str]) -> PathBuf {
    compiled(compiler, "manners.c", &[flags, &["-ldl"]].concat()).expect("built")
}

fn alone(scenario: &str) -> Output {
    let mut command = Command::new(program());
    command.arg(scenario);
    complete(command, b"").expect("run")
}

fn covered(covering: &Covering, options: &[&str], scenario: &str) -> Output {
    let mut command = covering.command(options).expect("tomo");
    command.arg(program()).arg(scenario);
    complete(command, b"").expect("run")
}

/// A program built otherwise does a scenario covered as it does it alone, and is recorded.
fn does_the_same(program: &Path, scenario: &str) {
    let run = |mut command: Command| {
        command.arg(program).arg(scenario);
        complete(command, b"").expect("run")
    };
    let covering = Covering::new().expect("a folder");
    let expected = run(Command::new("env"));
    let got = run(covering.command(&[]).expect("tomo"));
    let what = format!("{} {scenario}", program.display());
    assert_eq!(code(&got), code(&expected), "{what}");
    assert_eq!(got.stdout, expected.stdout, "{what}");
    assert!(covering.only().expect("a record").hit.len() > 10, "{what}");
}

/// The exit code that a shell would give it.
fn code(output: &Output) -> Option<i32> {
    let signal = output.status.signal().map(|signal| 128 + signal);
    signal.or(output.status.code())
}

/// Runs a scenario alone and covered; everything that shows must be the same.
fn is_undisturbed(options: &[&str], scenario: &str) -> Units {
    let covering = Covering::new().expect("a folder");
    let (expected, got) = (alone(scenario), covered(&covering, options, scenario));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&got.stdout), text(&expected.stdout), "{scenario}");
    assert_eq!(text(&got.stderr), text(&expected.stderr), "{scenario}");
    assert_eq!(code(&got), code(&expected), "{scenario}");
    let units = covering.only().expect("a record");
    assert!(units.processes >= 1, "{scenario}: not armed");
    assert!(units.hit.len() > 5, "{scenario}: {} hits", units.hit.len());
    units
}

macro_rules! undisturbed {
    ($($(#[$doc:meta])* fn $name:ident: $scenario:literal)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            is_undisturbed(&[], $scenario);
            is_undisturbed(&["--level", "function"], $scenario);
        }
    )*};
}

undisturbed! {
    fn a_program_that_handles_sigtrap_gets_its_own: "trap_handled"
    fn a_program_that_ignores_sigtrap_survives_it: "trap_ignored"
    fn sigtrap_is_the_programs_by_whatever_name_it_asks: "trap_by_other_names"
    fn a_sigtrap_that_is_handled_once_ends_the_program_the_next_time: "trap_once"
    fn a_raised_sigtrap_ends_the_program: "trap_raised"
    fn a_breakpoint_of_the_programs_own_ends_it: "trap_own"
    fn what_is_wrongly_addressed_is_told_as_alone: "nowhere_at_all"
    fn a_program_that_blocks_all_signals_runs_on: "blocked"
    fn handlers_that_block_all_signals_run_new_code: "full_mask"
    fn masks_for_the_time_of_a_wait_do_not_hide_traps: "suspended"
    fn sigwait_and_signalfd_get_their_signals: "waited"
    fn handlers_on_alternate_stacks_run_new_code: "alternate_stack"
    fn a_stack_for_handlers_that_is_set_once_stays_set: "disarmed_stack"
    fn threads_meet_in_new_code: "threads"
    fn a_thread_on_a_tiny_stack_runs_new_code: "tiny_stack"
    fn coroutines_run_new_code: "contexts"
    fn forked_children_without_exec_run_on: "forked"
    fn a_vforked_child_runs_another_program: "vforked"
    fn spawned_children_run: "spawned"
    fn a_program_that_executes_itself_runs_on: "executed"
    fn a_program_that_exits_at_once_is_recorded: "exits_at_once"
    fn a_program_that_aborts_is_recorded: "aborts"
    fn a_program_that_crashes_is_recorded: "crashes"
    fn a_program_that_is_killed_is_recorded: "killed"
    fn long_jumps_out_of_handlers_land: "jumps"
    fn a_program_that_loads_libraries_runs_on: "loads"
}

/// It is not observed, of which `tomo` tells after the end.
#[test]
fn a_program_executed_without_environment_runs_on() {
    for options in [&[][..], &["--level", "function"]] {
        let covering = Covering::new().expect("a folder");
        let (expected, got) = (
            alone("executed_bare"),
            covered(&covering, options, "executed_bare"),
        );
        assert_eq!(got.stdout, expected.stdout);
        assert_eq!(code(&got), code(&expected));
        let said = "tomo: a program was started without the environment (LD_PRELOAD, TOMO_ROSTER) or the right to it, or with raised rights, and so not observed\n";
        assert_eq!(String::from_utf8_lossy(&got.stderr), said);
        assert!(covering.only().expect("a record").hit.len() > 5);
    }
}

/// Traps leave all registers as they were, and wide ones, too, where the processor has them.
#[test]
fn registers_survive_traps() {
    is_undisturbed(&[], "registers");
    let covering = Covering::new().expect("a folder");
    let told = covered(&covering, &["--verbose"], "registers");
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    let (before, _) = told.split_once(" traps, ").expect("how many traps");
    let traps: usize = before
        .rsplit(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    assert!(traps >= 14, "{told}");
}

/// Eight threads at once leave the same record as one alone, but for what only one of them ran.
#[test]
fn threads_lose_no_hit() {
    let many = is_undisturbed(&[], "threads");
    let one = is_undisturbed(&[], "one_thread");
    let work: BTreeSet<u64> = work_blocks(&one);
    assert!(work.len() > 50, "{}", work.len());
    let lost: Vec<_> = work.difference(&many.hit).collect();
    assert!(lost.is_empty(), "{lost:x?}");
    assert_eq!(work, work_blocks(&many));
}

/// The blocks that were hit in functions that all threads run.
fn work_blocks(units: &Units) -> BTreeSet<u64> {
    let output = Command::new("nm").arg("-S").arg(program()).output();
    let symbols = String::from_utf8(output.expect("nm").stdout).expect("names");
    let ranges = symbols.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [start, size, _, name] = words.as_slice() else {
            return None;
        };
        let ours = ["leaf", "pick", "work"].iter().any(|w| name.starts_with(w));
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        ours.then_some((number(start)?, number(size)?))
    });
    let ranges: Vec<_> = ranges.collect();
    let inside = |unit: &&u64| {
        ranges
            .iter()
            .any(|(start, size)| unit.wrapping_sub(*start) < *size)
    };
    units.hit.iter().filter(inside).copied().collect()
}

/// A server never ends by itself: its record is there while it runs, a SIGTERM to `tomo` reaches it,
/// and the exit code tells of it.
#[test]
fn a_server_is_recorded_while_it_runs_and_ends_on_sigterm() {
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&[]).expect("tomo");
    command.arg(program()).arg("serves").stdout(Stdio::piped());
    let mut server = command.spawn().expect("started");
    let mut line = String::new();
    let output = server.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert!(line.starts_with("serving"), "{line}");
    let units = covering.only().expect("a record");
    assert!(units.hit.len() > 10 && units.processes == 1);
    let pid = nix::unistd::Pid::from_raw(server.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("sent");
    assert_eq!(server.wait().expect("ended").code(), Some(128 + 15));
}

/// Whatever signal somebody sends to `tomo`, the program gets it.
#[test]
fn signals_are_passed_on() {
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&[]).expect("tomo");
    command.arg(program()).arg("told").stdout(Stdio::piped());
    let mut told = command.spawn().expect("started");
    let mut lines = BufReader::new(told.stdout.take().expect("a pipe")).lines();
    let mut line = || lines.next().expect("a line").expect("read");
    assert_eq!(line(), "waiting");
    let named = [1, 2, 3, 6, 10, 12, 14, 16, 24, 26, 27, 28, 29, 30];
    for signal in named.into_iter().chain(34..=64).chain([15]) {
        let number = format!("-{signal}");
        let pid = told.id().to_string();
        let sent = Command::new("kill").args([number, pid]).status();
        assert!(sent.expect("kill").success());
        assert_eq!(line(), signal.to_string());
    }
    assert_eq!(told.wait().expect("ended").code(), Some(0));
    assert!(covering.only().expect("a record").hit.len() > 5);
}

/// What the program sends to its group arrives once, and nothing that it sends to its parent comes back.
#[test]
fn what_a_program_sends_does_not_come_back() {
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&[]).expect("tomo");
    command.arg(program()).arg("sends").stdout(Stdio::piped());
    let mut sends = command.process_group(0).spawn().expect("started");
    let lines = BufReader::new(sends.stdout.take().expect("a pipe")).lines();
    let mut lines = lines.map(|line| line.expect("read"));
    assert_eq!(lines.next().as_deref(), Some("sent"));
    let pid = sends.id().to_string();
    let sent = Command::new("kill").args(["-64", &pid]).status();
    assert!(sent.expect("kill").success());
    assert_eq!(lines.collect::<Vec<_>>(), ["34", "36", "64"]);
    assert_eq!(sends.wait().expect("ended").code(), Some(0));
}

/// What it sends to its parent alone reaches who started `tomo`.
#[test]
fn what_a_program_sends_to_its_parent_arrives_there() {
    let covering = Covering::new().expect("a folder");
    let expected = {
        let mut command = Command::new(program());
        command.arg("hears").arg(program()).arg("sends_apart");
        complete(command, b"").expect("run")
    };
    let output = complete(started_by(&covering, "hears", "sends_apart"), b"").expect("run");
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text(&expected), "sent 1\nended 3\nheard 7\n");
    assert_eq!(text(&output), text(&expected));
}

/// `tomo cover` of a scenario, started by another one.
fn started_by(covering: &Covering, by: &str, scenario: &str) -> Command {
    let covered = covering.command(&[]).expect("tomo");
    let mut command = Command::new(program());
    command.arg(by).arg(covered.get_program());
    command.args(covered.get_args());
    let set = |(name, value): (_, Option<_>)| Some((name, value?));
    command.envs(covered.get_envs().filter_map(set));
    command.arg(program()).arg(scenario);
    command
}

/// An alarm that was set before `tomo` was executed rings for `tomo` alone.
#[test]
fn an_alarm_set_before_ends_the_program() {
    let covering = Covering::new().expect("a folder");
    let output = complete(started_by(&covering, "alarm", "serves"), b"").expect("run");
    assert_eq!(output.status.code(), Some(128 + 14));
    assert_eq!(covering.only().expect("a record").processes, 1);
}

/// Runs a command on a terminal of its own until it serves, then does something with that; prints the exit code. After a minute
/// it ends all of it.
const ON_A_TERMINAL: &str = "\
import os, pty, signal, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
def give_up(*_):
    for below in open(f'/proc/{child}/task/{child}/children').read().split():
        os.kill(int(below), signal.SIGKILL)
    os.kill(child, signal.SIGKILL)
signal.signal(signal.SIGALRM, give_up)
signal.alarm(60)
seen = b''
while b'serving' not in seen:
    seen += os.read(terminal, 1024)
if sys.argv[1] == 'hangup':
    os.close(terminal)
else:
    os.write(terminal, b'\\x03')
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

/// What a terminal tells only `tomo`: that it is gone, and `^C` where the program has a group of its own. By that `tomo` ends, too.
#[test]
fn what_only_tomo_hears_of_a_terminal_reaches_the_program() {
    for (what, scenario, code) in [
        ("hangup", "serves", 128 + 1),
        ("hangup", "serves_apart", 128 + 1),
        ("interrupt", "serves", -2),
        ("interrupt", "serves_apart", -2),
    ] {
        let covering = Covering::new().expect("a folder");
        let covered = covering.command(&[]).expect("tomo");
        let mut command = Command::new("python3");
        command.args(["-c", ON_A_TERMINAL, what]);
        command.arg(covered.get_program()).args(covered.get_args());
        let set = |(name, value): (_, Option<_>)| Some((name, value?));
        command.envs(covered.get_envs().filter_map(set));
        command.arg(program()).arg(scenario);
        let output = complete(command, b"").expect("run");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed.trim(), code.to_string(), "{what} {scenario}");
    }
}

/// Each process adds to the one record: a program that forks, and one that runs itself.
#[test]
fn processes_of_one_program_share_a_record() {
    let units = is_undisturbed(&[], "executed");
    assert_eq!(units.processes, 2);
    let forked = is_undisturbed(&[], "forked");
    let parent = is_undisturbed(&[], "exits_at_once");
    assert!(work_blocks(&forked).len() > work_blocks(&parent).len());
}

#[test]
fn a_long_command_line_changes_nothing() {
    let words: Vec<String> = (0..12_000).map(|word| word.to_string()).collect();
    for tomo in ["cover", "count"] {
        let covering = Covering::new().expect("a folder");
        let mut command = match tomo {
            "cover" => covering.command(&[]).expect("tomo"),
            _ => {
                let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
                command.current_dir(covering.output().parent().expect("a folder"));
                command.args([tomo, "--"]);
                command
            }
        };
        command.arg(program()).arg("exits_at_once").args(&words);
        let output = complete(command, b"").expect("run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            code(&output),
            code(&alone("exits_at_once")),
            "{tomo}: {said}"
        );
        assert!(!said.contains("panicked"), "{tomo}: {said}");
    }
}

/// What `exits_at_once` does with words of so many bytes in all, if the system takes them.
fn with_words(covering: &Covering, bytes: usize) -> Option<Output> {
    const LONGEST: usize = 100_000;
    let mut command = covering.command(&[]).expect("tomo");
    command.arg(program()).arg("exits_at_once");
    command.args(std::iter::repeat_n("x".repeat(LONGEST), bytes / LONGEST));
    command.arg("x".repeat(bytes % LONGEST));
    complete(command, b"").ok()
}

/// The system takes what `tomo` is told, and not that with our environment besides.
#[test]
fn where_arguments_leave_no_room_for_ours_the_program_runs_alone() {
    let covering = Covering::new().expect("a folder");
    let (mut most, mut too_many) = (0, 8 << 20);
    let mut last = None;
    while too_many - most > 1 {
        let bytes = usize::midpoint(most, too_many);
        match with_words(&covering, bytes) {
            Some(output) => (most, last) = (bytes, Some(output)),
            None => too_many = bytes,
        }
    }
    let (got, expected) = (last.expect("run"), alone("exits_at_once"));
    assert_eq!(code(&got), code(&expected));
    assert_eq!(got.stdout, expected.stdout);
    let said = String::from_utf8_lossy(&got.stderr);
    assert!(
        said.contains("its arguments leave no room for ours"),
        "{said}"
    );
}

/// The agent is loaded, and told nothing.
#[test]
fn where_only_the_agent_is_handed_on_all_is_as_without_it() {
    let run = |mut command: Command, scenario: &str| {
        command.args(["env", "-u", "TOMO_ROSTER"]);
        command.arg(program()).arg(scenario);
        complete(command, b"").expect("run")
    };
    for scenario in ["contexts", "suspended", "spawned", "trap_once", "threads"] {
        let covering = Covering::new().expect("a folder");
        let got = run(covering.command(&[]).expect("tomo"), scenario);
        let expected = run(Command::new("env"), scenario);
        assert_eq!(got.stdout, expected.stdout, "{scenario}");
        assert_eq!(code(&got), code(&expected), "{scenario}");
    }
}

/// Bundled programs are started so. It is the program that is observed, and not its loader.
#[test]
fn a_program_for_which_its_loader_is_called_is_covered() {
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    for scenario in ["threads", "forked", "jumps", "exit"] {
        let run = |mut command: Command| {
            command.args([LOADER, "--argv0", "it"]).arg(program());
            command.arg(scenario);
            complete(command, b"").expect("run")
        };
        let covering = Covering::new().expect("a folder");
        let expected = run(Command::new("env"));
        let got = run(covering.command(&[]).expect("tomo"));
        assert_eq!(got.stdout, expected.stdout, "{scenario}");
        assert_eq!(code(&got), code(&expected), "{scenario}");
        let units = covering.only().expect("a record");
        assert!(units.hit.len() > 10, "{scenario}");
    }
}

/// By what takes an agent.
#[test]
fn a_static_program_is_refused_with_its_reason() {
    let program = built("gcc", &["-O1", "-static", "-pthread", "-w"]);
    for command in ["count", "paths", "chains", "predicates"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tomo = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        tomo.env("TOMO_CACHE_DIR", folder.path()).arg(command);
        tomo.arg("-o").arg(folder.path().join("out")).arg(&program);
        let output = complete(tomo, b"").expect("run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(said.contains("statically linked"), "{command}: {said}");
    }
}

#[test]
fn stripped_programs_and_fixed_addresses_are_covered() {
    for flags in [
        ["-O2", "-pthread", "-s"],
        ["-O2", "-pthread", "-no-pie"],
        ["-O0", "-pthread", "-fcf-protection=full"],
    ] {
        let program = built("gcc", &flags);
        for scenario in ["threads", "jumps", "forked"] {
            let covering = Covering::new().expect("a folder");
            let mut command = covering.command(&[]).expect("tomo");
            command.arg(&program).arg(scenario);
            let got = complete(command, b"").expect("run");
            let expected = alone(scenario);
            assert_eq!(code(&got), code(&expected), "{flags:?} {scenario}");
            assert_eq!(got.stdout, expected.stdout, "{flags:?} {scenario}");
            assert!(covering.only().expect("a record").hit.len() > 10);
        }
    }
}

/// The C library blocks all signals by system calls of its own; in it there is no trap.
#[test]
fn all_modules_can_be_observed_the_c_library_too() {
    for scenario in [
        "threads",
        "spawned",
        "full_mask",
        "forked",
        "aborts",
        "loads",
        "jumps",
    ] {
        let covering = Covering::new().expect("a folder");
        let expected = alone(scenario);
        let got = covered(&covering, &["--module", "all"], scenario);
        assert_eq!(code(&got), code(&expected), "{scenario}");
        assert_eq!(got.stdout, expected.stdout, "{scenario}");
        let all = covering.each().expect("records");
        assert!(all.len() >= 2 && all.iter().all(|units| units.hit.len() > 10));
        assert!(all.iter().any(|units| units.traps == 0), "the C library");
    }
}

/// What a run changes is its own and in memory; the rest is mapped as the cache has it, by nobody for writing.
#[test]
fn only_its_text_is_a_runs_own() {
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&[]).expect("tomo");
    command.args(["cat", "/proc/self/maps"]);
    let output = complete(command, b"").expect("run");
    let maps = String::from_utf8(output.stdout).expect("text");
    let ways = |name: &str| -> Vec<&str> {
        let lines = maps.lines().filter(|line| line.contains(name));
        let way = lines.filter_map(|line| line.split(' ').nth(1));
        way.collect()
    };
    let (text, image) = (ways("memfd:tomo:text"), ways(".image"));
    assert!(text.contains(&"r-xs") && text.contains(&"rw-s"), "{maps}");
    assert!(image.contains(&"r-xs"), "{maps}");
    assert!(image.iter().all(|way| !way.contains('w')), "{maps}");
    assert!(ways("").iter().all(|way| !way.contains("wx")), "{maps}");
}

/// What is thrown passes through code that is probed, also that of the language's own runtime.
#[test]
fn exceptions_and_panics_pass_through_probed_code() {
    for (source, compiler) in [
        (Source::CppFeatures, Compiler::Gcc),
        (Source::CppFeatures, Compiler::Clang),
        (Source::RustFeatures, Compiler::Rustc),
    ] {
        let built = build(&Recipe::new(source, compiler, Level::O2)).expect("built");
        for options in [&[][..], &["--module", "all"], &["--level", "edge"]] {
            let covering = Covering::new().expect("a folder");
            for workload in &built.workloads {
                let mut alone = Command::new(&built.program);
                alone.args(&workload.args);
                let input = workload.stdin.as_deref().unwrap_or_default();
                let expected = complete(alone, input).expect("run");
                let got = covering
                    .run(options, &built.program, workload)
                    .expect("run");
                let name = &built.name;
                assert_eq!(code(&got), code(&expected), "{name} {options:?}");
                assert_eq!(got.stdout, expected.stdout, "{name} {options:?}");
            }
            assert!(covering.all().is_ok_and(|units| !units.hit.is_empty()));
        }
    }
}

/// What its handlers of signals come back to blocks all signals.
#[test]
fn programs_that_qemu_runs_take_signals() {
    let run = |mut command: Command| {
        let guest = program();
        command.args([
            "qemu-x86_64".as_ref(),
            guest.as_os_str(),
            "suspended".as_ref(),
        ]);
        complete(command, b"").expect("run")
    };
    let expected = run(Command::new("env"));
    let covering = Covering::new().expect("a folder");
    let got = run(covering.command(&[]).expect("tomo"));
    assert_eq!(code(&got), code(&expected));
    assert_eq!(got.stdout, expected.stdout);
    assert!(covering.only().expect("a record").hit.len() > 1000);
}

/// The program's C library is not glibc: other signals, other loader.
#[test]
fn programs_of_another_c_library_are_covered() {
    let program = built("musl-gcc", &["-O2", "-w"]);
    for scenario in [
        "threads",
        "forked",
        "blocked",
        "full_mask",
        "suspended",
        "trap_handled",
        "trap_once",
    ] {
        does_the_same(&program, scenario);
    }
}

/// Functions of ours that stand before none tell the program that the system lacks them.
#[test]
fn what_the_c_library_lacks_is_lacking() {
    let program = built("musl-gcc", &["-O2", "-w"]);
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&[]).expect("tomo");
    command.arg(&program).arg("lacking");
    let got = complete(command, b"").expect("run");
    let told = String::from_utf8_lossy(&got.stdout);
    assert_eq!(told, "pkey_mprotect 1\nepoll_pwait2 1\n");
    assert_eq!(code(&got), Some(3));
}
