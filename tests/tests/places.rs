//! Places that refuse: file systems that allow no programs, that are full, that only can be read; no `/proc`;
//! containers that forbid system calls. The program runs as it does alone, and what went wrong is said in one line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;
use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, Pool, complete};
use tomo_testkit::{places, tomo};
use tomo_wire::record::{Live, Reason, RecordView};

const CODE: i32 = 6;

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let flags = ["-O2", "-pthread", "-ldl"];
    BUILT.get_or_init(|| compiled("gcc", "manners.c", &flags).expect("built"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder, and a cache in which the program's image is already.
struct Place {
    folder: TempDir,
    covering: Covering,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = folder.path().join("cache");
        let covering = Covering::cached_in(&cache).expect("a folder");
        let mut command = covering.command(&[]).expect("tomo");
        command.arg(program()).arg("exit");
        ran(&complete(command, b"").expect("run"));
        let place = Self { folder, covering };
        fs::create_dir(place.at()).expect("a folder");
        place
    }

    /// Where something is mounted.
    fn at(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    /// Runs a script where it may mount: `$AT` is an empty folder, `$TOMO` the command, `$PROGRAM` the
    /// program.
    fn run(&self, script: &str) -> Output {
        let mut shell = places::shell(script);
        shell.env("AT", self.at()).env("PROGRAM", program());
        shell.env("TOMO", tomo_testkit::tomo::path().expect("tomo"));
        shell.env("TOMO_CACHE_DIR", self.folder.path().join("cache"));
        shell.env_remove("LD_LIBRARY_PATH");
        complete(shell, b"").expect("run")
    }

    /// The same; the program runs, is not observed, and what is said holds `words`.
    fn says(&self, script: &str, words: &str) {
        let output = self.run(script);
        ran(&output);
        let said = text(&output.stderr);
        assert!(
            said.contains("not observed") && said.contains(words),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }

    /// What stands in the record that the script has copied to `$AT.record`.
    fn live(&self) -> Live {
        let bytes = fs::read(self.at().with_extension("record")).expect("a record");
        RecordView::read(&bytes).expect("a record").live
    }
}

/// It ran to its end, as always.
fn ran(output: &Output) {
    assert_eq!(output.status.code(), Some(CODE), "{output:?}");
    assert!(output.stdout.starts_with(b"exit "), "{output:?}");
}

#[test]
fn a_pool_where_nothing_may_be_executed_is_refused_and_the_program_runs() {
    let place = Place::new();
    let mount = "mount -t tmpfs -o noexec,mode=700 none $AT";
    let cover = format!("{mount}; $TOMO cover --pool $AT/pool -- $PROGRAM exit");
    place.says(&cover, "allows no programs to run (noexec)");
    let output = place.run(&format!("{mount}; $TOMO env --pool $AT/pool $PROGRAM"));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("(noexec); choose another folder"), "{said}");
}

/// The pool became so later; the agent lies elsewhere.
#[test]
fn a_pool_where_nothing_may_be_executed_any_more_hinders_nothing() {
    let place = Place::new();
    let output = place.run(
        "mount -t tmpfs -o mode=700 none $AT; eval \"$($TOMO env --pool $AT/pool $PROGRAM)\"; \
         cp $AT/pool/agent/*.so $AT.so; export LD_PRELOAD=$AT.so; \
         mount -o remount,noexec $AT; set +e; $PROGRAM exit; code=$?; \
         unset LD_PRELOAD; cp $AT/pool/*.record $AT.record; exit $code",
    );
    ran(&output);
    assert_eq!(text(&output.stderr), "");
    let live = place.live();
    let counts = (live.armed.get(), live.refused.get(), live.reason.get());
    assert_eq!(counts, (0, 1, Reason::NotMapped as u32));
}

/// The agent is not loaded from there, and images are not mapped from there, but from memory.
#[test]
fn a_cache_where_nothing_may_be_executed_does() {
    let place = Place::new();
    let output = place.run(
        "mount -t tmpfs -o noexec,mode=700 none $AT; export TOMO_CACHE_DIR=$AT/cache; set +e; \
         $TOMO cover -o $AT/out -- $PROGRAM exit; code=$?; cp $AT/out/*/*.record $AT.record; exit $code",
    );
    ran(&output);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(place.live().armed.get(), 1);
}

#[test]
fn a_file_system_that_is_full_hinders_nothing() {
    let place = Place::new();
    let (run, pool) = ("-o $AT/out", "--pool $AT/pool");
    for (size, full) in [
        ("size=4k", &[run, pool][..]),
        ("size=12k", &[run, pool]),
        // For records, but not for images.
        ("size=64k", &[pool]),
        ("nr_inodes=2", &[run, pool]),
    ] {
        let mount = format!("mount -t tmpfs -o mode=700,{size} none $AT");
        for how in full {
            let cover = format!("{mount}; $TOMO cover {how} -- $PROGRAM exit");
            let output = place.run(&cover);
            ran(&output);
            let said = text(&output.stderr);
            assert!(
                said.contains("no space left on device"),
                "{size} {how}: {said}"
            );
            assert_eq!(said.lines().count(), 1, "{size} {how}: {said}");
        }
        let cache =
            format!("{mount}; TOMO_CACHE_DIR=$AT/c $TOMO cover -o $AT.out -- $PROGRAM exit");
        place.says(&cache, "no space left on device");
    }
}

/// Records and images have their room from the beginning.
#[test]
fn a_file_system_that_fills_up_later_loses_nothing() {
    let place = Place::new();
    let output = place.run(
        "mount -t tmpfs -o size=4m,mode=700 none $AT; eval \"$($TOMO env --pool $AT/pool $PROGRAM)\"; \
         set +e; cat /dev/zero > $AT/rest 2> /dev/null; $PROGRAM exit; code=$?; \
         cp $AT/pool/*.record $AT.record; cp $AT/pool/*.plan $AT.plan; exit $code",
    );
    ran(&output);
    let (plan, record) = (
        place.at().with_extension("plan"),
        place.at().with_extension("record"),
    );
    let units = tomo_testkit::coverage::Units::read(&plan, &record).expect("a record");
    assert_eq!(units.hit, place.covering.only().expect("a record").hit);
}

#[test]
fn a_pool_that_can_only_be_read_hinders_nothing() {
    let place = Place::new();
    let mount = "mount -t tmpfs -o mode=700 none $AT; eval \"$($TOMO env --pool $AT/pool $PROGRAM)\"; \
                 mount -o remount,ro $AT";
    let armed = place.run(&format!("{mount}; $PROGRAM exit"));
    ran(&armed);
    assert_eq!(text(&armed.stderr), "");
    let cover = "unset LD_PRELOAD TOMO_ROSTER; $TOMO cover --pool $AT/pool -- $PROGRAM exit";
    place.says(&format!("{mount}; {cover}"), "read-only file system");
}

/// As in a container: everything can only be read, but for one folder.
#[test]
fn with_a_root_that_can_only_be_read_one_folder_is_enough() {
    let place = Place::new();
    let mount = "mount -t tmpfs -o mode=700 none $AT; mount -o remount,bind,ro /";
    let elsewhere = "TOMO_CACHE_DIR=/nowhere/cache $TOMO cover -o $AT/out -- $PROGRAM exit";
    place.says(&format!("{mount}; {elsewhere}"), "read-only file system");
    let output = place.run(&format!(
        "{mount}; export TOMO_CACHE_DIR=$AT/cache; set +e; $TOMO cover -o $AT/out -- $PROGRAM exit; \
         code=$?; [ -s $AT/out/*/*.record ] && $TOMO report $AT/out > /dev/null && exit $code"
    ));
    ran(&output);
    assert_eq!(text(&output.stderr), "");
}

/// A run's text is found by way of `/proc`, and copied where it is not; a pool's image is a file as any other.
#[test]
fn without_proc_programs_are_observed() {
    let place = Place::new();
    let hide = "mount -t tmpfs none /proc";
    let output = place.run(&format!(
        "{hide}; set +e; $TOMO cover -o $AT/out -- $PROGRAM exit; code=$?; \
         cp $AT/out/*/*.record $AT.record; exit $code"
    ));
    ran(&output);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(place.live().armed.get(), 1);
    let output = place.run(&format!(
        "eval \"$($TOMO env --pool $AT/pool $PROGRAM)\"; {hide}; set +e; $PROGRAM exit; code=$?; \
         cp $AT/pool/*.record $AT.record; exit $code"
    ));
    ran(&output);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(place.live().armed.get(), 1);
}

/// Numbers of system calls that containers forbid.
const PTRACE: &str = "101";
const MEMORY_FILE: &str = "319";
const READ_PROCESS: &str = "310";
/// Setting a mask in a way that there is not: so the agent asks whether it can read.
const LOOK: &str = "14:2147483647";

fn forbidding(calls: &[&str], command: &Command) -> Output {
    let forbidding = compiled("gcc", "forbidding.c", &["-O2"]).expect("built");
    let mut outer = Command::new(forbidding);
    outer.args(calls).arg("--");
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        outer.env(name, value.unwrap_or_default());
    }
    complete(outer, b"").expect("run")
}

/// Nobody is traced, so that may be forbidden.
#[test]
fn where_tracing_is_forbidden_programs_are_observed() {
    let place = Place::new();
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&["--fork", "shared"]).expect("tomo");
    command.arg(program()).arg("exit");
    let output = forbidding(&[PTRACE, READ_PROCESS], &command);
    ran(&output);
    assert_eq!(text(&output.stderr), "");
    let expected = place.covering.only().expect("a record").hit;
    assert_eq!(covering.only().expect("a record").hit, expected);
}

/// A run needs files in memory, a pool none.
#[test]
fn where_files_in_memory_are_forbidden_that_is_said_and_a_pool_does() {
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&[]).expect("tomo");
    command.arg(program()).arg("exit");
    let output = forbidding(&[MEMORY_FILE], &command);
    ran(&output);
    let said = text(&output.stderr);
    let words = ["not observed", "operation not permitted"];
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
    let pool = Pool::new(program()).expect("a pool");
    let mut command = pool.command(program());
    command.arg("exit");
    ran(&forbidding(&[MEMORY_FILE], &command));
    assert_eq!(pool.units().expect("a record").processes, 1);
}

/// Where a process cannot look for what signals have interrupted, it stays in its parent's record.
#[test]
fn where_a_process_may_not_look_at_its_stack_nothing_is_lost() {
    let program = compiled("gcc", "forking.c", &["-O2", "-pthread"]).expect("built");
    for calls in [[LOOK], [MEMORY_FILE]] {
        let pool = Pool::with(&["--fork", "separate"], &program).expect("a pool");
        let mut command = pool.command(&program);
        command.arg("one_child");
        let output = forbidding(&calls, &command);
        assert!(output.status.success(), "{output:?}");
        let processes = pool.processes().expect("records");
        let armed: Vec<_> = processes.iter().map(|units| units.processes).collect();
        match calls {
            [LOOK] => assert_eq!(armed, [2]),
            _ => assert_eq!(armed, [0; 0], "a copy of the text is such a file"),
        }
    }
}

/// A machine that stops at any time leaves no image of the right length with zeros in it.
#[test]
fn what_later_runs_execute_is_on_the_disk_before_it_has_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let [calls, pool, cache] = ["calls", "pool", "cache"].map(|name| folder.path().join(name));
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=fdatasync,rename,link,linkat", "-o"]);
    command.arg(&calls).arg(tomo::path().expect("tomo"));
    command.args(["env", "--pool"]).args([&pool, program()]);
    command.env("TOMO_CACHE_DIR", &cache);
    let output = complete(command, b"").expect("run");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let calls = fs::read_to_string(&calls).expect("read");
    let lasts = |call: &str| {
        let kinds = [".image\"", ".plan\"", ".disposals\"", ".so\""];
        kinds.iter().any(|kind| call.contains(kind))
    };
    let (mut synced, mut named) = (false, 0);
    for call in calls.lines() {
        if call.contains("fdatasync(") {
            synced = call.ends_with("= 0");
        } else if call.contains("rename(") || call.contains("link") {
            assert!(synced || !lasts(call), "{call}\n{calls}");
            named += usize::from(lasts(call));
            synced = false;
        }
    }
    // Three of the cache; image, plan and agent of the pool.
    assert_eq!(named, 6, "{calls}");
}
