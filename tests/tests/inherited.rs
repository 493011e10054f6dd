//! A program that `tomo` starts finds what it would have found without: signals, files, variables, limits, the place of the first
//! process; and whoever started `tomo` sees it end as the program has.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, complete};
use tomo_testkit::places;

/// What was ignored before is ignored in the program, what was not is not; and how it ended is known.
#[test]
fn signals_are_ignored_as_without() {
    for prefix in [
        "",
        "trap '' PIPE; ",
        "trap '' CHLD; ",
        "trap '' PIPE CHLD HUP; ",
    ] {
        let command = "bash -c 'grep SigIgn /proc/$$/status; exit 3'";
        is_as_without(&format!("{prefix}exec {command}"), command, Some(3));
    }
}

/// Who was to ignore a signal may handle it all the same.
#[test]
fn signals_that_were_ignored_reach_who_handles_them() {
    let command = "perl -e '$| = 1; $SIG{$ARGV[0]} = sub { exit 5 }; print \"ready\\n\"; sleep 1 for 1..100' --";
    for signal in ["HUP", "INT", "USR1"] {
        let command = format!("{command} {signal}");
        let line = format!(
            "trap '' {signal}; coproc A {{ exec {command}; }}; told=$A_PID; read ready <&${{A[0]}}; kill -{signal} $told; wait $told"
        );
        is_as_without(&line, &command, Some(5));
    }
}

/// With what is interrupted in it a shell leaves its loop, as long as it sees that it was.
#[test]
fn loops_are_left_as_without() {
    let command = "bash -c 'kill -INT 0; sleep 100'";
    let line = format!("setsid --wait bash -c \"for turn in 1 2; do {command}; echo $turn; done\"");
    is_as_without(&line, command, None);
    let command = "bash -c 'kill -INT $$'";
    is_as_without(&format!("{command}; echo $?; exit 3"), command, Some(3));
}

/// What names the program by its number names it, and nobody else's number is changed.
#[test]
fn variables_that_name_a_process_name_the_program() {
    let tomo = tomo_testkit::tomo::path().expect("tomo").display();
    let asks = "[ $LISTEN_PID-$WATCHDOG_PID-$SYSTEMD_EXEC_PID = $$-1234567- ] && echo $LISTEN_FDS $LEFT && exit 3";
    for command in ["cover", "trace"] {
        let covering = Covering::new().expect("a folder");
        let output = covering.output();
        let words = format!(
            "{tomo} {command} -o {} -- bash -c '{asks}'",
            output.display()
        );
        let line = format!(
            "export LISTEN_PID=$$ LISTEN_FDS=2 WATCHDOG_PID=1234567 LEFT=left; unset SYSTEMD_EXEC_PID; exec {words}"
        );
        let mut shell = Command::new("bash");
        shell.args(["-c", &line]).env("TOMO_CACHE_DIR", &output);
        let ended = complete(shell, b"").expect("run");
        assert_eq!(ended.stdout, b"2 left\n", "{command}: {ended:?}");
        assert_eq!(ended.status.code(), Some(3), "{command}");
    }
    // What cannot be executed is said as ever.
    let covering = Covering::new().expect("a folder");
    let line = format!(
        "export LISTEN_PID=$$; exec {tomo} cover -o {} -- /etc/passwd",
        covering.output().display()
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &line]);
    let refused = complete(shell, b"").expect("run");
    assert!(
        !refused.status.success() && !refused.stderr.is_empty(),
        "{refused:?}"
    );
}

/// With all that no library would write, then in the same order; what the programs need that it starts comes behind.
#[test]
fn the_environment_is_the_one_that_it_would_be() {
    let program = compiled("gcc", "variables.c", &["-O2"]).expect("built");
    let covering = Covering::new().expect("a folder");
    let output = covering.output();
    let written = |before: &[&OsStr]| {
        let mut command = Command::new(&program);
        command.args(before).arg(&program);
        command.env("TOMO_CACHE_DIR", &output);
        let ended = complete(command, b"").expect("run");
        assert!(ended.status.success(), "{ended:?}");
        ended.stdout
    };
    let alone = written(&[]);
    assert!(alone.starts_with(b"Z=1.\nB=2.\nnaked.\n.\n=odd.\nB=3.\n"));
    let tomo = tomo_testkit::tomo::path().expect("tomo");
    for command in ["cover", "trace"] {
        let words = [tomo.as_ref(), command.as_ref(), "-o".as_ref()];
        let output = output.join(command);
        let observed = written(&[&words[..], &[output.as_ref(), "--".as_ref()]].concat());
        let (theirs, ours) = observed.split_at(alone.len().min(observed.len()));
        let ours = String::from_utf8_lossy(ours);
        assert_eq!(theirs, alone, "{command}: {ours}");
        let is_ours = |line: &str| {
            ["LD_PRELOAD=", "TOMO_", "ASAN_OPTIONS="]
                .iter()
                .any(|it| line.starts_with(it))
        };
        assert!(ours.lines().all(is_ours), "{command}: {ours}");
    }
}

/// What observes already is replaced, which is said: it would seem as if nothing had run.
#[test]
fn an_observation_within_another_is_said() {
    let program = compiled("gcc", "variables.c", &["-O2"]).expect("built");
    let covering = Covering::new().expect("a folder");
    let pool = covering.output().join("pool");
    let started = |words: &[&str]| {
        let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", covering.output());
        command.env("TOMO_ROSTER", pool.join("roster"));
        command.args(words).arg(&program);
        let ended = complete(command, b"").expect("run");
        String::from_utf8(ended.stderr).expect("text")
    };
    let path = |name: &str| covering.output().join(name).display().to_string();
    let (pool, another, out) = (path("pool"), path("another"), path("out"));
    assert_eq!(started(&["env", "--pool", &pool]), "");
    assert_eq!(started(&["cover", "--pool", &pool, "--"]), "");
    for words in [
        &["env", "--pool", &another][..],
        &["cover", "-o", &out, "--"],
    ] {
        let said = started(words);
        assert!(
            said.starts_with("tomo: this replaced the observation around it"),
            "{said}"
        );
    }
}

/// As the first process of a container it asks how those end whose parents have ended.
#[test]
fn nobody_is_left_behind_by_the_first_process() {
    let command = "bash -c 'for turn in 1 2 3; do ended=$(sleep 0 >/dev/null & echo $!); while [ -e /proc/$ended ]; do :; done; done; exit 4'";
    let covering = Covering::new().expect("a folder");
    let tomo = tomo_testkit::tomo::path().expect("tomo").display();
    let output = covering.output();
    let first = places::first(&format!(
        "exec {tomo} cover -o {} -- {command}",
        output.display()
    ));
    let ended = complete(first, b"").expect("run");
    assert_eq!(ended.status.code(), Some(4), "{ended:?}");
}

/// Standard files that were closed before are closed in the program.
#[test]
fn closed_files_are_closed_as_without() {
    for closed in ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"] {
        let command = "bash -c 'ls /proc/$$/fd >$OPEN; echo >&1'";
        is_as_without(&format!("exec {command} {closed}"), command, None);
    }
}

/// A line of a shell does what it does without if `tomo cover` starts the `command` in it: its output, what it writes to
/// `$OPEN`, and its code, which is `expected` if that is given.
fn is_as_without(line: &str, command: &str, expected: Option<i32>) {
    let covering = Covering::new().expect("a folder");
    let folder = tempfile::tempdir().expect("a folder");
    let open = folder.path().join("open");
    let done = |line: &str| {
        let _ = std::fs::remove_file(&open);
        let mut shell = Command::new("bash");
        shell.args(["-c", line]).env("OPEN", &open);
        let output = complete(shell, b"").expect("run");
        let files = std::fs::read_to_string(&open).unwrap_or_default();
        let text = String::from_utf8(output.stdout).expect("text");
        (text, files, output.status.code())
    };
    let tomo = tomo_testkit::tomo::path().expect("tomo").display();
    let covered = format!(
        "{tomo} cover -o {} -- {command}",
        covering.output().display()
    );
    let alone = done(line);
    assert_eq!(done(&line.replace(command, &covered)), alone, "{line}");
    assert!(
        expected.is_none_or(|code| alone.2 == Some(code)),
        "{line}: {alone:?}"
    );
}

/// Whatever the system grants `tomo`, the program runs, with the limits that were set.
#[test]
fn where_there_is_little_memory_the_program_runs() {
    let asks = "sh -c 'for what in d v s; do ulimit -S$what; ulimit -H$what; done; exit 3'";
    for limit in ["-d 20000", "-S -d 3000", "-v 200000", "-s 32", "-S -s 48"] {
        runs_within(limit, asks, 3);
    }
    // It has too many functions to be understood within that.
    for limit in ["-d 20000", "-v 200000", "-S -d 20000"] {
        runs_within(limit, "python3 -c 'print(1); exit(4)'", 4);
    }
}

/// A group of processes that may take so much memory together, removed in the end.
struct Group(PathBuf);

impl Group {
    /// None where this process may not make any, as in most containers.
    fn with_memory(bytes: u64) -> Option<Self> {
        let name = format!("tomo-test-{}", std::process::id());
        let limits = ["memory/NAME/memory.limit_in_bytes", "NAME/memory.max"];
        limits.into_iter().find_map(|limit| {
            let limit = Path::new("/sys/fs/cgroup").join(limit.replace("NAME", &name));
            let folder = limit.parent()?;
            std::fs::create_dir(folder).ok()?;
            let group = Self(folder.into());
            std::fs::write(&limit, bytes.to_string()).ok()?;
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).expect("removed");
    }
}

/// The system would end `tomo` if it took more than a container has, and leave the program behind that never ran.
#[test]
fn where_a_container_has_little_memory_the_program_runs() {
    let Some(group) = Group::with_memory(64 << 20) else {
        eprintln!("not tested: this process may not limit the memory of others");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("sh");
    command.args(["-c", r#"echo $$ > "$0/cgroup.procs"; exec "$@""#]);
    command.arg(&group.0);
    command.arg(tomo_testkit::tomo::path().expect("tomo"));
    command.env("TOMO_CACHE_DIR", folder.path());
    command.args(["cover", "-o"]).arg(folder.path().join("out"));
    command.args([
        "--module",
        "all",
        "--",
        "python3",
        "-c",
        "print(1); exit(4)",
    ]);
    let ran = complete(command, b"").expect("run");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(4), "{said}");
    assert_eq!(ran.stdout, b"1\n", "{said}");
    assert!(
        said.contains("too little memory (a container's limit)"),
        "{said}"
    );
}

/// Where `tomo` gets no more memory once the program runs, its end is still the program's.
#[test]
fn a_program_ends_as_it_does_where_memory_runs_out_behind_it() {
    let covering = Covering::new().expect("a folder");
    let program = compiled("gcc", "memory.c", &[]).expect("built");
    let counted = |arguments: &[&str]| {
        // Where there is a limit, `tomo` takes no memory in advance.
        let mut counting = Command::new("bash");
        counting.args(["-c", r#"ulimit -v 2000000; exec "$0" "$@""#]);
        counting.arg(tomo_testkit::tomo::path().expect("tomo"));
        counting.env("TOMO_CACHE_DIR", covering.output());
        counting.args(["count", "-o"]).arg(covering.output());
        counting.arg("--").arg(&program).args(arguments);
        let counted = complete(counting, b"").expect("run");
        let said = String::from_utf8_lossy(&counted.stderr).into_owned();
        (counted.status.code(), said)
    };
    let looked_at = |said: &str| !said.contains("what was recorded was not looked at");
    // The first one weaves, and leaves free what is large enough for the next.
    let (code, said) = counted(&["return"]);
    assert!(code == Some(5) && looked_at(&said), "{code:?}: {said}");
    for (end, expected) in [("return", 5), ("SIGTERM", 128 + 15)] {
        let (code, said) = counted(&[end, "without memory"]);
        assert!(
            code == Some(expected) && !looked_at(&said),
            "{code:?}: {said}"
        );
    }
}

/// Where there may be no process more, the program is this one, and ignores what it would have ignored.
#[test]
fn where_there_is_no_room_for_a_process_the_program_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let tomo = tomo_testkit::tomo::path().expect("tomo");
    std::fs::copy(tomo, folder.path().join("tomo")).expect("copied");
    // Root may have as many as it likes.
    let script = r#"
        set -e; cd "$1"; export TOMO_CACHE_DIR="$1/cache" HOME="$1"
        observed='./tomo cover -o before -- bash -c true; trap "" HUP; ulimit -u 1; exec ./tomo cover -o out -- bash -c "\
            while read name value; do [ \$name != SigIgn: ] || exit \$((0x\$value & 1 ? 7 : 3)); done < /proc/\$\$/status"'
        [ $(id -u) != 0 ] || { chown -R 54321 .; alone="setpriv --reuid 54321 --regid 54321 --clear-groups"; }
        exec $alone bash -c "$observed""#;
    let mut shell = Command::new("bash");
    shell.args(["-c", script, "bash"]).arg(folder.path());
    let ended = complete(shell, b"").expect("run");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(7), "{said}");
    assert!(said.contains("no room for another process"), "{said}");
}

/// What is usually done by several threads is done by one.
#[test]
fn where_there_is_no_room_for_a_thread_a_program_is_analysed_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let tomo = tomo_testkit::tomo::path().expect("tomo");
    std::fs::copy(tomo, folder.path().join("tomo")).expect("copied");
    let map = |limit: &str| {
        let script = r#"
            set -e; cd "$1"; export HOME="$1"
            [ $(id -u) != 0 ] || { chown -R 54322 .; alone="setpriv --reuid 54322 --regid 54322 --clear-groups"; }
            exec $alone bash -c "$2 exec ./tomo map --no-cache --format jsonl /bin/bash""#;
        let mut shell = Command::new("bash");
        shell
            .args(["-c", script, "bash"])
            .arg(folder.path())
            .arg(limit);
        let ended = complete(shell, b"").expect("run");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{said}");
        assert_eq!(said, "");
        ended.stdout
    };
    let usual = map("");
    assert!(!usual.is_empty() && map("ulimit -u 1;") == usual);
}

/// A command covered within a limit does what it does within that alone.
fn runs_within(limit: &str, command: &str, expected: i32) {
    let covering = Covering::new().expect("a folder");
    let output = covering.output();
    let shell = |command: &str| {
        let line = format!("ulimit -c 0 {limit}; exec {command}");
        let mut shell = Command::new("bash");
        shell.args(["-c", &line]).env("TOMO_CACHE_DIR", &output);
        complete(shell, b"").expect("run")
    };
    let tomo = tomo_testkit::tomo::path().expect("tomo").display();
    let covered = shell(&format!(
        "{tomo} cover -o {} -- {command}",
        output.display()
    ));
    let alone = shell(command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&covered.stderr);
    assert_eq!(alone.status.code(), Some(expected), "{limit}");
    assert_eq!(covered.status.code(), Some(expected), "{limit}: {said}");
    let (covered, alone) = (text(&covered.stdout), text(&alone.stdout));
    assert_eq!(covered, alone, "{limit}: {said}");
}
