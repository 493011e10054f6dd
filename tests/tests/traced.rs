//! Armed programs below debuggers, tracers and emulators: they run as they do there alone. What takes the
//! probes' traps for its own, or does not see code change, is told by the record as the reason why nothing was observed;
//! what only watches hinders nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, Pool, complete};
use tomo_testkit::tomo;
use tomo_wire::record::{Live, Reason, RecordView};

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let flags = ["-O2", "-pthread", "-ldl"];
    BUILT.get_or_init(|| compiled("gcc", "manners.c", &flags).expect("built"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the program itself prints: its lines, without those of who watches it.
fn its_lines(output: &Output) -> Vec<String> {
    let shown = text(&output.stdout);
    let ours = [
        "exit ", "thread ", "handler ", "after ", "child ", "parent ", "ended ",
    ];
    let is_ours = |line: &&str| ours.iter().any(|start| line.starts_with(start));
    shown.lines().filter(is_ours).map(String::from).collect()
}

fn live(pool: &Pool) -> Live {
    let record = fs::read(pool.file("record").expect("a record")).expect("read");
    RecordView::read(&record).expect("a record").live
}

/// Runs a scenario below `watcher`, alone and armed by a pool's environment, which must look the same;
/// gives what was recorded.
fn watched(watcher: &str, arguments: &[&str], scenario: &str) -> Live {
    let pool = Pool::new(program()).expect("a pool");
    let run = |mut command: Command| {
        command.args(arguments).arg(program()).arg(scenario);
        complete(command, b"").expect("run")
    };
    let alone = run(Command::new(watcher));
    let armed = run(pool.command(Path::new(watcher)));
    assert_eq!(its_lines(&armed), its_lines(&alone), "{watcher} {scenario}");
    assert!(!its_lines(&alone).is_empty(), "{watcher} {scenario}");
    assert_eq!(armed.status.code(), alone.status.code(), "{watcher}");
    assert_eq!(text(&armed.stderr), text(&alone.stderr), "{watcher}");
    live(&pool)
}

fn is_refused(live: &Live, reason: Reason) {
    let refused = (live.armed.get(), live.refused.get(), live.reason.get());
    assert_eq!(refused, (0, 1, reason as u32));
}

/// gdb runs a program, and says nothing in the middle of its lines.
const GDB: [&str; 8] = [
    "-batch",
    "-ex",
    "set print thread-events off",
    "-ex",
    "set print inferior-events off",
    "-ex",
    "run",
    "--args",
];

#[test]
fn under_gdb_nothing_is_armed_and_the_program_runs() {
    for scenario in ["exit", "threads", "forked"] {
        let live = watched("gdb", &GDB, scenario);
        is_refused(&live, Reason::Traced);
    }
}

/// A debugger could not put breakpoints into text that is shared.
#[test]
fn breakpoints_hold_in_the_environment_of_a_pool() {
    let pool = Pool::new(program()).expect("a pool");
    let mut command = pool.command(Path::new("gdb"));
    let steps = ["break main", "run", "continue"];
    command.arg("-batch");
    command.args(steps.iter().flat_map(|step| ["-ex", step]));
    command.arg("--args").arg(program()).arg("exit");
    let output = complete(command, b"").expect("run");
    let shown = text(&output.stdout);
    assert!(shown.contains("Breakpoint 1, "), "{shown}");
    assert!(shown.contains("exited with code 06"), "{shown}");
}

/// What gdb starts is the module that was asked for: the reason is gdb, and not the loader, in which gdb has a breakpoint.
#[test]
fn a_program_below_a_covered_gdb_is_told_to_be_debugged() {
    let covering = Covering::new().expect("a folder");
    let module = program().to_string_lossy();
    let mut command = covering.command(&["--module", &module]).expect("tomo");
    command.arg("gdb").args(GDB).arg(program()).arg("exit");
    let output = complete(command, b"").expect("run");
    assert!(text(&output.stdout).contains("exited with code 06"));
    let said = text(&output.stderr);
    assert!(said.contains("it runs under a debugger"), "{said}");
}

/// Who debugs `tomo` and goes on with the program learns why it was not observed.
#[test]
fn a_program_that_is_debugged_below_tomo_is_named() {
    let covering = Covering::new().expect("a folder");
    let tomo = covering.command(&[]).expect("tomo");
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-ex", "set follow-fork-mode child"]);
    gdb.args(["-ex", "set detach-on-fork on", "-ex", "run", "--args"]);
    gdb.arg(tomo.get_program()).args(tomo.get_args());
    gdb.arg(program()).arg("exit");
    // Else the first process that it starts is the loader, which it asks for libraries.
    gdb.env_remove("LD_LIBRARY_PATH");
    for (name, value) in tomo.get_envs() {
        gdb.env(name, value.unwrap_or_default());
    }
    let output = complete(gdb, b"").expect("run");
    let said = text(&output.stderr);
    assert_eq!(its_lines(&output).len(), 1, "{said}{:?}", output);
    assert!(
        said.contains("not observed: it runs under a debugger"),
        "{said}"
    );
}

#[test]
fn under_ltrace_nothing_is_armed_and_the_program_runs() {
    let live = watched("ltrace", &["-o", "/dev/null"], "threads");
    is_refused(&live, Reason::Traced);
}

/// strace hands all signals on, those of probes too.
#[test]
fn strace_watches_and_hinders_nothing() {
    let strace = ["-f", "-o", "/dev/null"];
    for scenario in ["threads", "full_mask", "forked"] {
        let live = watched("strace", &strace, scenario);
        assert_eq!((live.armed.get(), live.refused.get()), (1, 0), "{scenario}");
    }
    let hits = |watcher: Option<&str>| {
        let covering = Covering::new().expect("a folder");
        let tomo = covering.command(&[]).expect("tomo");
        let mut command = match watcher {
            Some(watcher) => {
                let mut command = Command::new(watcher);
                command.args(strace).arg(tomo.get_program());
                command
            }
            None => Command::new(tomo.get_program()),
        };
        command.args(tomo.get_args()).arg(program()).arg("forked");
        for (name, value) in tomo.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let output = complete(command, b"").expect("run");
        assert_eq!(text(&output.stderr), "");
        covering.only().expect("a record").hit
    };
    assert_eq!(hits(Some("strace")), hits(None));
}

#[test]
fn in_valgrind_nothing_is_armed_and_the_program_runs() {
    let live = watched("valgrind", &["--quiet"], "exit");
    is_refused(&live, Reason::Emulated);
}

/// Nor are its library's functions attended to as where probes may come, by calls of which it would say that they make no sense.
#[test]
fn in_valgrind_nothing_is_expected_to_come_later() {
    let covering = Covering::new().expect("a folder");
    let mut tomo = Command::new(tomo::path().expect("tomo"));
    tomo.args(["cover", "-o"])
        .arg(covering.output())
        .arg("--module")
        .arg(program())
        .args(["--", "valgrind", "--quiet"])
        .arg(program())
        .arg("alternate_stack");
    let mut alone = Command::new(program());
    alone.arg("alternate_stack");
    let [observed, alone] = [tomo, alone].map(|command| complete(command, b"").expect("run"));
    assert_eq!(its_lines(&observed), its_lines(&alone));
    assert_eq!(observed.status.code(), alone.status.code());
    let said = text(&observed.stderr);
    let lines: Vec<_> = said.lines().collect();
    assert!(
        lines.len() == 1 && said.contains("runs in Valgrind"),
        "{said}"
    );
}

/// Valgrind complains of the program's wrong addresses, with the numbers of processes, and of nothing that we ask.
#[test]
fn in_valgrind_what_is_wrongly_addressed_is_told_as_alone() {
    let pool = Pool::new(program()).expect("a pool");
    let run = |mut command: Command| {
        command.arg("--quiet").arg(program()).arg("nowhere_at_all");
        complete(command, b"").expect("run")
    };
    let alone = run(Command::new("valgrind"));
    let armed = run(pool.command(Path::new("valgrind")));
    assert_eq!(text(&armed.stdout), text(&alone.stdout));
    assert_eq!(armed.status.code(), alone.status.code());
    let said = text(&armed.stderr);
    assert!(!said.contains("unknown"), "{said}");
    is_refused(&live(&pool), Reason::Emulated);
}

/// So do programs in containers that were built for another processor than the machine has.
#[test]
fn in_qemu_nothing_is_armed_and_the_program_runs() {
    for scenario in ["exit", "threads"] {
        let live = watched("qemu-x86_64", &[], scenario);
        is_refused(&live, Reason::Emulated);
    }
}
