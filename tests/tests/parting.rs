//! Programs that change their own text, let themselves be traced, or close a sandbox do under observation what they do alone,
//! and what could not be observed is said.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, Pool, complete};
use tomo_wire::counting::USED;

/// The program of scenarios.
fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("gcc", "parting.c", &["-O2", "-w", "-pthread"]).expect("built"))
}

fn run(mut command: Command, scenario: &str) -> Output {
    command.arg(program()).arg(scenario);
    complete(command, b"").expect("run")
}

fn alone(scenario: &str) -> Output {
    run(Command::new("env"), scenario)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where in the program's file this function begins.
fn address_of(function: &str) -> u64 {
    let output = Command::new("nm").arg(program()).output().expect("nm");
    let symbols = text(&output.stdout);
    let line = symbols
        .lines()
        .find(|line| line.ends_with(&format!(" {function}")));
    let address = line.and_then(|line| line.split(' ').next());
    u64::from_str_radix(address.expect("a symbol"), 16).expect("a number")
}

/// Output and exit code are as alone; gives what `tomo cover` with these options says.
fn does_the_same(options: &[&str], scenario: &str) -> String {
    let covering = Covering::new().expect("a folder");
    let options = [&["--verbose"], options].concat();
    let command = covering.command(&options).expect("tomo");
    let (expected, got) = (alone(scenario), run(command, scenario));
    let what = format!("{scenario} {options:?}");
    assert_eq!(text(&got.stdout), text(&expected.stdout), "{what}");
    assert_eq!(got.status.code(), expected.status.code(), "{what}");
    text(&got.stderr)
}

const WAYS: [&[&str]; 3] = [&[], &["--level", "edge"], &["--fork", "separate"]];

/// What is said of a program that could not be observed.
const UNOBSERVED: &str = "tomo: a program was started without the environment (LD_PRELOAD, TOMO_ROSTER) or the right to it, or with raised rights, and so not observed\n";

/// Traps come back without a system call.
#[test]
fn traps_in_a_sandbox_that_no_handler_may_return_in_disturb_nothing() {
    for options in WAYS {
        let said = does_the_same(options, "sandboxed");
        let (before, _) = said.split_once(" traps, ").expect("how many traps");
        let traps = before.rsplit(' ').next().and_then(|n| n.parse().ok());
        assert!(traps >= Some(20_usize), "{said}");
        assert!(!said.contains("not observed"), "{said}");
        does_the_same(options, "sandboxed_child");
    }
}

/// Who is called by the C library is looked for on the stack, by a call that sandboxes allow.
#[test]
fn calls_from_outside_in_a_narrow_sandbox_disturb_nothing() {
    let covering = Covering::new().expect("a folder");
    let expected = alone("called_back");
    assert_eq!(expected.status.code(), Some(3));
    for command in ["cover", "count", "paths", "chains", "predicates"] {
        let mut observing = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        let output = covering.output().join(command);
        observing.args([command, "-o"]).arg(output).arg("--");
        let got = run(observing, "called_back");
        assert_eq!(text(&got.stdout), text(&expected.stdout), "{command}");
        let said = text(&got.stderr);
        assert_eq!(got.status.code(), Some(3), "{command}: {said}");
    }
}

#[test]
fn a_child_that_is_traced_meets_no_trap_of_ours() {
    for options in WAYS {
        let said = does_the_same(options, "traced");
        let words = "processes: it runs under a debugger or another tracer, which would take";
        assert!(said.contains(words), "{said}");
    }
}

/// Debuggers start programs so. The text that the child runs is its parent's, which goes on being observed.
#[test]
fn a_child_that_is_traced_in_its_parents_memory_leaves_that_its_probes() {
    for options in [&[][..], &["--level", "function"], &["--crashes"]] {
        let covering = Covering::new().expect("a folder");
        let got = run(covering.command(options).expect("tomo"), "traced_guest");
        assert_eq!(text(&got.stdout), text(&alone("traced_guest").stdout));
        assert_eq!(text(&got.stderr), "", "{options:?}");
        let hit = covering.only().expect("a record").hit;
        for function in ["dense", "work1", "work2", "pick2"] {
            let address = address_of(function);
            assert!(hit.contains(&address), "{options:?}: {function}");
        }
    }
    for options in WAYS {
        assert_eq!(
            does_the_same(options, "traced_guest").find("debugger"),
            None
        );
        // Who is told that he is traced already, and who finds no program to become, is traced from then on.
        for scenario in ["traced_twice", "traced_in_vain"] {
            let said = does_the_same(options, scenario);
            assert!(said.contains("it runs under a debugger"), "{said}");
        }
    }
}

#[test]
fn a_program_that_changes_its_text_has_it_for_itself() {
    for options in WAYS {
        let said = does_the_same(options, "patches");
        let words = "the program changed or moved its own text, and has had it back since";
        assert!(said.contains(words), "{said}");
    }
    let pool = Pool::new(program()).expect("a pool");
    let expected = alone("patches");
    for _ in 0..3 {
        let mut command = pool.command(program());
        command.arg("patches");
        let got = complete(command, b"").expect("run");
        assert_eq!(text(&got.stdout), text(&expected.stdout));
        assert_eq!(got.status.code(), expected.status.code());
    }
}

/// Nor does who looks at the run later take its record for all that happened.
#[test]
fn what_is_shown_of_it_later_says_so() {
    let covering = Covering::new().expect("a folder");
    let tomo = || {
        let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", covering.output());
        command
    };
    for (command, shows) in [
        ("count", &["count", "--format", "json", "--show"][..]),
        ("paths", &["paths", "--format", "json", "--show"]),
        ("trace", &["trace", "stats"]),
    ] {
        let output = covering.output().join(command);
        let mut observing = tomo();
        observing.args([command, "-o"]).arg(&output).arg("--");
        run(observing, "patches");
        let runs = std::fs::read_dir(&output).expect("a folder");
        let mut showing = tomo();
        showing
            .args(shows)
            .args(runs.map(|run| run.expect("a run").path()));
        let shown = complete(showing, b"").expect("shown");
        let said = text(&shown.stderr);
        assert!(said.contains("has had it back"), "{command}: {said}");
        let told = text(&shown.stdout);
        match serde_json::from_str::<serde_json::Value>(&told) {
            Ok(document) => {
                let missed = document["not_observed"][0].as_str();
                assert!(missed.is_some_and(|missed| missed.contains("has had it back")));
            }
            Err(_) => assert!(command == "trace" && !told.contains("complete"), "{told}"),
        }
    }
}

/// Such a program has no path, and what the system calls the executable is the loader.
#[test]
fn a_program_that_the_loader_was_told_to_start_has_its_own_text_back() {
    let pool = Pool::new(program()).expect("a pool");
    let armed = pool.command(program());
    for scenario in ["patches", "traced"] {
        let expected = alone(scenario);
        let mut command = Command::new("/lib64/ld-linux-x86-64.so.2");
        command.envs(
            armed
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let got = run(command, scenario);
        assert_eq!(text(&got.stdout), text(&expected.stdout), "{scenario}");
        assert_eq!(got.status.code(), expected.status.code(), "{scenario}");
    }
    assert!(pool.units().expect("a record").processes > 1);
}

/// The probes that it copied along with its text could not remove themselves from the copy.
#[test]
fn a_program_that_moves_its_text_runs_on() {
    let vanishing = ["cover", "cover --level edge", "cover --fork separate"];
    let staying = ["count", "paths", "chains", "predicates --counts", "trace"];
    for flags in [&[][..], &["-DREMAPPED"]] {
        let program = compiled("gcc", "moving.c", &[&["-O2", "-w"], flags].concat());
        let program = program.expect("built");
        for said in of_program(&program, &vanishing, 5) {
            let words = "the program changed or moved its own text, and has had it back since";
            assert!(said.contains(words), "{said}");
        }
        for said in of_program(&program, &staying, 5) {
            assert!(!said.contains("has had it back"), "{said}");
        }
        of_program(&program, &["predicates"], 5);
    }
}

/// With its paths counted a program does what it does alone.
fn does_the_same_with_paths(scenario: &str) {
    let covering = Covering::new().expect("a folder");
    let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
    command.args(["paths", "-o"]).arg(covering.output());
    command.arg("--");
    let (expected, got) = (alone(scenario), run(command, scenario));
    assert_eq!(text(&got.stdout), text(&expected.stdout));
    assert_eq!(got.status.code(), expected.status.code());
    let said = text(&got.stderr);
    assert!(!said.contains("not counted"), "{said}");
}

#[test]
fn shadows_of_stacks_are_not_locked_into_memory() {
    does_the_same_with_paths("locks");
}

#[test]
fn who_walks_through_memory_leaves_shadows_alone() {
    does_the_same_with_paths("walks");
}

/// What is ours counts, too, and is not the program's.
#[test]
fn limits_that_a_program_sets_are_for_its_own_memory() {
    does_the_same_with_paths("bounds");
    does_the_same(&[], "bounds");
}

/// Where the header of a program lies in its text, others find its file there.
#[test]
fn the_page_of_a_programs_header_stays_its_own() {
    let flags = ["-O2", "-Wl,-z,noseparate-code", "-Wl,--build-id"];
    let program = compiled("gcc", "named.c", &flags).expect("built");
    let ways = ["cover", "cover --fork separate", "count", "paths"];
    let said = of_program(&program, &ways, 4);
    assert!(
        said.iter().all(|said| !said.contains("not observed")),
        "{said:?}"
    );
}

/// What a command that keeps its results in `covering` says of a scenario, which ends with 7.
fn said_of(covering: &Covering, command: &str, scenario: &str) -> String {
    let mut observing = Command::new(tomo_testkit::tomo::path().expect("tomo"));
    let output = covering.output().join(command);
    observing.args([command, "-o"]).arg(output).arg("--");
    observing.env("ROOT", covering.output());
    let got = run(observing, scenario);
    let said = text(&got.stderr);
    assert_eq!(got.status.code(), Some(7), "{scenario} {command}: {said}");
    said
}

/// How often `counted` was called, as `tomo count` says.
fn calls_of_counted(said: &str) -> Option<&str> {
    let line = said.lines().find(|line| line.ends_with(" counted"))?;
    line.split_whitespace().next()
}

/// What threads without a slab do is lost, which is said, and nothing else is.
#[test]
fn threads_for_which_there_is_no_room_leave_other_counts_alone() {
    let covering = Covering::new().expect("a folder");
    let said = said_of(&covering, "count", "limited");
    assert_eq!(calls_of_counted(&said), Some("3000000"), "{said}");
    assert!(said.contains("3 threads were not counted"), "{said}");
    for command in ["paths", "chains", "predicates", "trace"] {
        said_of(&covering, command, "limited");
    }
}

/// Nobody opens the file of slabs any more who has become another user or has another root.
#[test]
fn threads_and_processes_of_who_gives_up_root_are_counted() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for (scenario, calls) in [
        ("drops", 29_000),
        ("returns", 58_000),
        ("moves_out", 29_000),
    ] {
        let covering = Covering::new().expect("a folder");
        let observed = |command: &str| {
            let said = said_of(&covering, command, scenario);
            let lost = said.contains("threads were not");
            assert!(!lost, "{scenario} {command}: {said}");
            said
        };
        let said = observed("count");
        let expected = calls.to_string();
        assert_eq!(calls_of_counted(&said), Some(&*expected), "{scenario}");
        let said = observed("paths");
        let expected = format!("counted: 1 of 1 paths ran, {calls} times in all");
        assert!(said.contains(&expected), "{scenario}: {said}");
        let said = observed("chains");
        let of = |line: &str| -> Option<u32> {
            let (calls, chain) = line.trim_start().split_once("  ")?;
            chain.starts_with("counted ").then(|| calls.parse().ok())?
        };
        let sum: u32 = said.lines().filter_map(of).sum();
        assert_eq!(sum, calls, "{scenario}: {said}");
        observed("predicates");
    }
}

/// What is started after root was given up is told to load the agent, and can; it may not know what is to be observed, which is said.
#[test]
fn who_gives_up_root_starts_programs_that_say_nothing_of_us() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let passable = Permissions::from_mode(0o711);
    fs::set_permissions(folder.path(), passable).expect("set");
    for what in ["leaves", "raises"] {
        let expected = alone(what);
        assert_eq!(expected.status.code(), Some(3));
        let same = |got: Output, said: &str| {
            assert_eq!(text(&got.stderr), text(&expected.stderr) + said);
            assert_eq!(text(&got.stdout), text(&expected.stdout));
            assert_eq!(got.status.code(), expected.status.code());
        };
        let covering = Covering::cached_in(&folder.path().join("cache")).expect("a folder");
        let got = run(covering.command(&[]).expect("tomo"), what);
        same(got, UNOBSERVED);
        let pool = folder.path().join(format!("pool-{what}"));
        let options = ["--pool", &pool.to_string_lossy()];
        // Of what runs of a pool could not observe its report tells.
        same(run(covering.command(&options).expect("tomo"), what), "");
    }
}

/// `ldd` has the loader say what it would load, and that is asked to load the agent.
#[test]
fn ldd_lists_what_it_lists_without_us() {
    let listed = |mut command: Command| {
        command.args(["ldd", "/bin/bash"]);
        let got = complete(command, b"").expect("ldd");
        assert!(got.status.success(), "{}", text(&got.stderr));
        let names = text(&got.stdout);
        let names = names
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let alone = listed(Command::new("env"));
    assert!(
        alone.iter().any(|name| name.starts_with("libc.so")),
        "{alone:?}"
    );
    let covering = Covering::new().expect("a folder");
    assert_eq!(listed(covering.command(&[]).expect("tomo")), alone);
}

/// Nor does who asks so find that in its own environment afterwards.
#[test]
fn who_asks_what_a_program_would_load_keeps_its_environment() {
    let expected = text(&alone("lists").stdout);
    assert!(expected.ends_with("ended 0\nas before 1\n"), "{expected}");
    for options in WAYS {
        does_the_same(options, "lists");
    }
}

/// What is started after another root was entered is told to load the agent, and cannot.
#[test]
fn who_enters_another_root_starts_programs_that_say_nothing_of_us() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let copy = |from: &str, to: &str| {
        let to = root.path().join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        fs::copy(from, to).expect("copied");
    };
    let listed = Command::new("ldd").arg(program()).output().expect("ldd");
    let listed = text(&listed.stdout);
    let libraries = listed.split_whitespace();
    libraries
        .filter(|word| word.starts_with('/'))
        .for_each(|library| copy(library, library));
    copy(&program().to_string_lossy(), "program");
    let inside = |mut command: Command| {
        command.env("ROOT", root.path());
        run(command, "shuts_in")
    };
    let covering = Covering::new().expect("a folder");
    let (expected, got) = (
        inside(Command::new("env")),
        inside(covering.command(&[]).expect("tomo")),
    );
    assert_eq!(
        expected.status.code(),
        Some(3),
        "{}",
        text(&expected.stderr)
    );
    assert_eq!(text(&got.stderr), text(&expected.stderr) + UNOBSERVED);
    assert_eq!(text(&got.stdout), text(&expected.stdout));
    assert_eq!(got.status.code(), expected.status.code());
}

/// Alone and observed in each of these ways a program says the same; gives what `tomo` says of it.
fn say_the_same(source: &str, ways: &[&str], expected: i32) -> Vec<String> {
    let program = compiled("gcc", source, &["-O2", "-w", "-pthread"]).expect("built");
    of_program(&program, ways, expected)
}

/// The same, of a program that was built.
fn of_program(program: &Path, ways: &[&str], expected: i32) -> Vec<String> {
    let alone = complete(Command::new(program), b"").expect("run");
    assert_eq!(alone.status.code(), Some(expected));
    let covering = Covering::new().expect("a folder");
    let tomo = tomo_testkit::tomo::path().expect("tomo");
    let observed = |words: &&str| {
        let mut command = Command::new(tomo);
        let output = covering.output().join(words.replace(' ', "-"));
        command.args(words.split(' ')).arg("-o").arg(output);
        command.arg("--").arg(program);
        let got = complete(command, b"").expect("run");
        let said = text(&got.stderr);
        assert_eq!(text(&got.stdout), text(&alone.stdout), "{words}: {said}");
        assert_eq!(got.status.code(), Some(expected), "{words}: {said}");
        said
    };
    ways.iter().map(observed).collect()
}

/// The kernel looks at where a thread is when it interrupts it: code that it has begin anew is left as and where it is.
#[test]
fn sequences_that_the_kernel_restarts_are_left_alone() {
    let ways = [
        "cover",
        "cover --level edge",
        "cover --disposal none",
        "count",
        "paths",
        "chains",
        "predicates",
        "trace",
    ];
    say_the_same("restartable.c", &ways, 0);
}

/// What belongs to threads is not where the program has something of its own.
#[test]
fn who_uses_the_segment_of_probes_that_stay_is_not_observed_by_them() {
    let ways = ["count", "paths", "chains", "trace", "predicates --counts"];
    for said in say_the_same("segment.c", &ways, 7) {
        assert!(
            said.contains("works with the segment register gs"),
            "{said}"
        );
    }
    for said in say_the_same("segment.c", &["cover", "predicates"], 7) {
        assert!(!said.contains("gs"), "{said}");
    }
}

/// A constant that happens to read as such an instruction is no use of the segment, whoever wrote the code around it.
#[test]
fn constants_among_code_are_no_use_of_the_segment() {
    let ways = ["count", "paths", "chains", "trace", "predicates --counts"];
    for more in ["-DNATIVE", "-DFOREIGN"] {
        let program = compiled("gcc", "amongcode.c", &["-O2", more]).expect("built");
        for said in of_program(&program, &ways, 6) {
            assert!(!said.contains("segment register"), "{more}: {said}");
        }
    }
}

/// The stack of a thread ends where the C library has what it knows of it, and what borders on it is nobody's to read.
#[test]
fn a_stack_is_not_searched_beyond_its_end() {
    assert_eq!(text(&alone("bordering").stdout), "pages 0\n");
    for options in WAYS {
        does_the_same(options, "bordering");
    }
}

/// Each has a track of its own, and counters.
#[test]
fn threads_that_c11_makes_are_threads() {
    say_the_same("c11.c", &["cover", "count", "paths", "chains"], 5);
    let program = compiled("gcc", "c11.c", &["-O2", "-pthread"]).expect("built");
    let folder = tempfile::tempdir().expect("a folder");
    let tomo = |arguments: &[&str], path: &Path| {
        let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        command.args(arguments).arg(path);
        command
    };
    let mut tracing = tomo(&["trace", "-o"], folder.path());
    tracing.arg("--").arg(&program);
    assert_eq!(complete(tracing, b"").expect("run").status.code(), Some(5));
    let run = fs::read_dir(folder.path()).expect("read").next();
    let run = run.expect("a run").expect("read").path();
    let told = complete(tomo(&["trace", "stats"], &run), b"").expect("run");
    let told = text(&told.stdout) + &text(&told.stderr);
    let threads = told.lines().filter(|line| line.starts_with("thread "));
    assert_eq!(threads.count(), 4, "{told}");
}

/// Signals use the stack pointer, be it that the program's own code reads it no more.
#[test]
fn signals_find_a_stack_where_the_program_is_about_to_take_another() {
    let ways = ["count", "paths", "chains", "predicates --counts", "trace"];
    say_the_same("restoring.c", &ways, 4);
}

/// Who is gone is asked by numbers, which mean others elsewhere.
#[test]
fn a_process_in_another_namespace_takes_no_slab_of_the_living() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
    command.args(["count", "-o"]).arg(folder.path()).arg("--");
    let got = run(command, "namespaced");
    assert_eq!(text(&got.stdout), text(&alone("namespaced").stdout));
    let ran = fs::read_dir(folder.path()).expect("read").next();
    let slabs = ran.expect("a run").expect("read").path().join("slabs");
    let bytes = fs::read(slabs).expect("slabs");
    let used = bytes.get(USED as usize..).and_then(<[u8]>::first_chunk);
    assert_eq!(used.copied().map(u64::from_le_bytes), Some(2));
}

/// What is started without our names could not be observed; what could not be started is nothing.
#[test]
fn programs_that_are_started_without_the_environment_are_counted() {
    let words = "4 programs were started without the environment";
    assert_eq!(alone("scrubs").status.code(), Some(4));
    for options in WAYS {
        let said = does_the_same(options, "scrubs");
        assert!(said.contains(words), "{said}");
    }
    for command in ["count", "trace"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut observing = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        observing.args([command, "-o"]).arg(folder.path()).arg("--");
        let said = text(&run(observing, "scrubs").stderr);
        assert!(said.contains(words), "{command}: {said}");
    }
    let covering = Covering::new().expect("a folder");
    let command = covering.command(&[]).expect("tomo");
    run(command, "scrubs");
    let mut report = Command::new(tomo_testkit::tomo::path().expect("tomo"));
    report.arg("report").arg(covering.output());
    let reported = complete(report, b"").expect("a report");
    let said = text(&reported.stderr);
    assert!(said.contains(words), "{said}");
}

/// What tomo puts into the environment takes no room from arguments: whom it would leave too little is started without.
#[test]
fn arguments_have_as_much_room_as_without() {
    let words = "3 programs were started without the environment";
    assert_eq!(text(&alone("fills").stdout), "too long 1\n");
    assert_eq!(alone("fills").status.code(), Some(0));
    for options in WAYS {
        let said = does_the_same(options, "fills");
        assert!(said.contains(words), "{said}");
    }
}

/// Who only asks whether there are sandboxes is in none: masks, actions and children are watched as before.
#[test]
fn who_asks_for_a_sandbox_and_gets_none_is_in_none() {
    let expected = "refused 1\nknown 1\nchild 3\nfault 1\ntrapped 1\n";
    assert!(text(&alone("asks").stdout).starts_with(expected));
    for options in WAYS {
        does_the_same(options, "asks");
    }
}

#[test]
fn a_limit_is_changed_where_the_old_one_goes() {
    assert!(text(&alone("swaps_limits").stdout).contains("soft 1048576"));
    does_the_same(&[], "swaps_limits");
    does_the_same_with_paths("swaps_limits");
}

/// A process is told from one of another namespace that has its number.
#[test]
fn the_first_processes_of_two_namespaces_have_records_of_their_own() {
    let covering = Covering::new().expect("a folder");
    let command = covering.command(&["--fork", "separate"]).expect("tomo");
    let (expected, got) = (alone("first_ones"), run(command, "first_ones"));
    assert_eq!(text(&got.stdout), text(&expected.stdout));
    assert_eq!(got.status.code(), Some(3), "needs to be root");
    let ran = fs::read_dir(covering.output()).expect("read").next();
    let folder = fs::read_dir(ran.expect("a run").expect("read").path());
    let names = folder
        .expect("read")
        .map(|file| file.expect("read").file_name());
    let names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    for ending in [".1.record", ".1-2.record"] {
        assert!(names.iter().any(|name| name.ends_with(ending)), "{names:?}");
    }
}

#[test]
fn a_process_that_is_forked_on_a_small_stack_runs_on() {
    assert!(text(&alone("forks_on_a_small_stack").stdout).contains("ended 42"));
    for options in [&[][..], &["--level", "edge"]] {
        does_the_same(options, "forks_on_a_small_stack");
    }
}
