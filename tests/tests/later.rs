//! Modules that a program loads after its start: what they do is recorded as if they had been there from the
//! start, and nothing of the program changes.

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;
use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, Pool, Units, complete};
use tomo_wire::record::Reason;

struct Built {
    folder: TempDir,
    compiler: &'static str,
}

impl Built {
    fn new() -> Self {
        Self::by("gcc", &[])
    }

    /// By this compiler, the program with these flags.
    fn by(compiler: &'static str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let built = Self { folder, compiler };
        built.compile("loading", "loading.c", &[&["-pthread"], flags].concat());
        built.library("first");
        built
    }

    fn compile(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let flags = [&["-O2"], flags, &["-ldl"]].concat();
        let built = compiled(self.compiler, source, &flags).expect("built");
        let to = self.path(name);
        std::fs::copy(built, &to).expect("copied");
        to
    }

    /// A library of its own, in a folder of its own.
    fn library(&self, folder: &str) -> PathBuf {
        std::fs::create_dir(self.path(folder)).expect("a folder");
        let name = format!("{folder}/plugin.so");
        self.compile(&name, "plugin.c", &["-shared", "-fPIC"])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    /// Runs `loading` alone and covered.
    fn run(&self, options: &[&str], arguments: &[&str]) -> (Output, Output, Covering) {
        let mut alone = Command::new(self.path("loading"));
        alone.args(arguments);
        let expected = complete(alone, b"").expect("run");
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(options).expect("tomo");
        command.arg(self.path("loading")).args(arguments);
        let got = complete(command, b"").expect("run");
        (expected, got, covering)
    }

    /// The same; everything that shows must be the same.
    fn is_undisturbed(&self, options: &[&str], arguments: &[&str]) -> Covering {
        let (expected, got, covering) = self.run(options, arguments);
        let shows = |output: &Output| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (
                text(&output.stdout),
                text(&output.stderr),
                output.status.code(),
            )
        };
        assert_eq!(shows(&got), shows(&expected), "{arguments:?}");
        covering
    }

    /// What is recorded of it when the program has it from the start.
    fn loaded_at_the_start(&self) -> Units {
        let path = self.text("first/plugin.so");
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(&["--module", &path]).expect("tomo");
        // Not in the environment of tomo, which has another C library perhaps.
        let load = "LD_PRELOAD=\"$LD_PRELOAD:$0\" exec \"$@\"";
        command.args(["sh", "-c", load, &path]);
        command.arg(self.path("loading")).args(["once", &path]);
        complete(command, b"").expect("run");
        covering.only().expect("one record")
    }

    /// What is recorded of the first library when it is loaded as `how` says.
    fn loaded(&self, how: &str) -> Units {
        let path = self.text("first/plugin.so");
        let covering = self.is_undisturbed(&["--module", &path], &[how, &path]);
        covering.only().expect("one record")
    }
}

/// The same calls in a program that has the library from the start leave the same record.
#[test]
fn a_library_that_is_loaded_later_is_recorded_as_from_the_start() {
    let built = Built::new();
    let later = built.loaded("once");
    assert!(later.hit.len() > 15, "{} hits", later.hit.len());
    assert_eq!(later.hit, built.loaded_at_the_start().hit);
}

/// That all are observed that are there at the start does not keep it from that.
#[test]
fn what_is_named_besides_all_is_recorded() {
    let built = Built::new();
    let path = built.text("first/plugin.so");
    let options = ["--module", "all", "--module", &path];
    let covering = built.is_undisturbed(&options, &["once", &path]);
    let each = covering.each().expect("records");
    let once = built.loaded("once");
    assert!(each.iter().any(|units| units.hit == once.hit));
    assert!(each.len() > 1, "{}", each.len());
}

#[test]
fn a_library_that_is_closed_and_loaded_again_runs_on() {
    let built = Built::new();
    let again = built.loaded("again");
    assert_eq!(again.processes, 1, "a process counts once");
    let once = built.loaded("once");
    assert!(again.hit.is_superset(&once.hit));
    let begin_and_end = again.hit.difference(&once.hit).count();
    assert!(begin_and_end <= 3, "{begin_and_end}");
}

/// lld lets code begin in the middle of a page, the first part of which is in no segment.
#[test]
fn a_library_whose_code_begins_within_a_page_stays_while_others_come_and_go() {
    let built = Built::by("clang-19", &[]);
    let other = built.library("other");
    let flags = ["-shared", "-fPIC", "-fuse-ld=lld-19"];
    let path = built.compile("first/plugin.so", "plugin.c", &flags);
    let bytes = std::fs::read(&path).expect("the library");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    // Program headers are behind the file's own: kind and flags, offset, address.
    let mut headers = (64..).step_by(56).take(bytes[56].into());
    let code = headers.find(|at| word(*at) == 1 | 5 << 32).expect("code");
    assert_ne!(word(code + 16) % 4096, 0, "lld has changed its ways");
    let (path, other) = (
        built.text("first/plugin.so"),
        other.to_string_lossy().into_owned(),
    );
    let covering = built.is_undisturbed(&["--module", &path], &["beside", &path, &other]);
    let units = covering.only().expect("one record");
    assert!(units.hit.len() > 15, "{} hits", units.hit.len());
}

#[test]
fn a_library_that_is_loaded_while_all_signals_are_blocked_runs() {
    let built = Built::new();
    assert_eq!(built.loaded("blocked").hit, built.loaded("once").hit);
}

#[test]
fn children_use_and_load_libraries() {
    let built = Built::new();
    assert!(
        built
            .loaded("forked")
            .hit
            .is_superset(&built.loaded("once").hit)
    );
}

/// Each process that loads it has it in its own record.
#[test]
fn children_that_are_separate_load_libraries() {
    let built = Built::new();
    let path = built.text("first/plugin.so");
    let options = ["--module", &path, "--fork", "separate"];
    for (how, wanted) in [("forked", 3), ("reloaded", 2)] {
        let covering = built.is_undisturbed(&options, &[how, &path]);
        let all = covering.all().expect("records");
        assert_eq!(all.hit, built.loaded(how).hit);
        let processes = covering.processes().expect("records");
        let armed: Vec<_> = processes.iter().map(|units| units.processes).collect();
        assert_eq!(armed, vec![1; wanted], "{how}");
    }
}

/// All that its code reaches is taken but for a hole, in which its trampolines are put then.
#[test]
fn a_library_whose_place_is_taken_is_observed_from_where_there_is_room() {
    let built = Built::new();
    let once = built.loaded("once");
    assert_eq!(built.loaded("crowded:once").hit, once.hit);
    assert_eq!(built.loaded("crowded:blocked").hit, once.hit);
    let again = built.loaded("again").hit;
    assert_eq!(built.loaded("crowded:again").hit, again);
    assert_eq!(
        built.loaded("crowded:threads").hit,
        built.loaded("threads").hit
    );
    let path = built.text("first/plugin.so");
    for options in [
        ["--level", "edge"],
        ["--placement", "reduced"],
        ["--disposal", "none"],
    ] {
        let options = [&["--module", &path][..], &options].concat();
        let [crowded, free] = ["crowded:once", "once"].map(|how| {
            let covering = built.is_undisturbed(&options, &[how, &path]);
            covering.only().expect("one record")
        });
        assert_eq!(crowded.hit, free.hit, "{options:?}");
        assert_eq!(crowded.taken, free.taken, "{options:?}");
    }
}

#[test]
fn children_that_are_separate_have_what_was_put_elsewhere() {
    let built = Built::new();
    let path = built.text("first/plugin.so");
    let options = ["--module", &path, "--fork", "separate"];
    let [free, crowded] = ["forked", "crowded:forked"].map(|how| {
        let covering = built.is_undisturbed(&options, &[how, &path]);
        let processes = covering.processes().expect("records").into_iter();
        processes.map(|units| units.hit).collect::<Vec<_>>()
    });
    assert_eq!(free.len(), 3);
    assert_eq!(crowded, free);
}

/// Probes that vanished from the pool's image are not brought back, and those that are left do as before.
#[test]
fn what_has_vanished_from_a_pool_stays_away_where_a_library_is_put_elsewhere() {
    let built = Built::new();
    let path = built.text("first/plugin.so");
    let loading = built.path("loading");
    let pool = Pool::with(&["--module", &path], &loading).expect("a pool");
    let run = |how: &str| {
        let mut command = pool.command(&loading);
        command.args([how, &path]);
        let output = complete(command, b"").expect("run");
        assert!(output.status.success(), "{how}: {output:?}");
        (output.stdout, pool.units().expect("a record"))
    };
    let mut alone = Command::new(&loading);
    alone.args(["once", &path]);
    let expected = complete(alone, b"").expect("run").stdout;
    let (said, before) = run("few");
    assert_eq!(said, b"few\n");
    let (said, crowded) = run("crowded:once");
    assert_eq!(said, expected);
    let (said, after) = run("once");
    assert_eq!(said, expected);
    let once = built.loaded("once");
    assert!(
        before.hit.len() > 3 && before.hit.is_subset(&once.hit),
        "{before:?}"
    );
    assert!(before.hit.len() < once.hit.len(), "{before:?}");
    assert_eq!(crowded.hit, once.hit);
    assert_eq!(after.hit, once.hit);
}

/// Where nothing at all is free the library runs as it is, and that is said.
#[test]
fn a_library_for_which_there_is_no_room_runs_as_it_is() {
    let built = Built::new();
    let path = built.text("first/plugin.so");
    let (expected, got, covering) = built.run(&["--module", &path], &["full:once", &path]);
    assert_eq!(got.stdout, expected.stdout);
    let said = String::from_utf8_lossy(&got.stderr);
    assert!(
        said.contains("the memory that its trampolines need is taken"),
        "{said}"
    );
    let (found, once) = (covering.only().expect("one record"), built.loaded("once"));
    assert!(found.hit.len() < once.hit.len() && found.hit.is_subset(&once.hit));
}

#[test]
fn modules_that_musl_loads_later_are_covered() {
    let built = Built::by("musl-gcc", &[]);
    let once = built.loaded("once");
    assert_eq!(once.hit, built.loaded_at_the_start().hit);
    assert_eq!(built.loaded("blocked").hit, once.hit);
    assert!(built.loaded("again").hit.is_superset(&once.hit));
    assert!(built.loaded("forked").hit.is_superset(&once.hit));
    assert!(built.loaded("threads").hit.is_superset(&once.hit));
}

/// A musl whose function for debuggers is followed by something else than filling: there is no room for a jump.
#[test]
fn where_the_loader_does_not_tell_of_modules_that_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let loader = folder.path().join("ld.so");
    let mut bytes = std::fs::read("/lib/ld-musl-x86_64.so.1").expect("musl");
    let output = Command::new("nm")
        .args(["-D", "/lib/ld-musl-x86_64.so.1"])
        .output();
    let symbols = String::from_utf8(output.expect("nm").stdout).expect("names");
    let line = symbols
        .lines()
        .find(|line| line.ends_with(" _dl_debug_state"));
    let start = line
        .and_then(|line| line.split(' ').next())
        .expect("the function");
    let at = usize::from_str_radix(start, 16).expect("a number");
    const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let at = at
        + if bytes[at..].starts_with(&ENDBR64) {
            4
        } else {
            0
        };
    assert_eq!(
        bytes[at], 0xc3,
        "it lies in the file where it lies in memory"
    );
    bytes[at + 1] = 0xc3;
    std::fs::write(&loader, bytes).expect("written");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&loader, private).expect("set");
    let flag = format!("-Wl,--dynamic-linker={}", loader.display());
    let built = Built::by("musl-gcc", &[&flag]);
    let path = built.text("first/plugin.so");
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&["--module", &path]).expect("tomo");
    command.arg(built.path("loading")).args(["once", &path]);
    let output = complete(command, b"").expect("run");
    let mut alone = Command::new(built.path("loading"));
    alone.args(["once", &path]);
    assert_eq!(output.stdout, complete(alone, b"").expect("run").stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("loader does not tell of modules"), "{said}");
}

#[test]
fn copies_of_a_library_in_a_folder_are_one_module() {
    let built = Built::new();
    let (folder, copy) = (built.text("first"), built.text("first/copy.so"));
    std::fs::copy(built.path("first/plugin.so"), &copy).expect("copied");
    let once = built.loaded("once");
    for path in [built.text("first/plugin.so"), copy] {
        let covering = built.is_undisturbed(&["--module", &folder], &["once", &path]);
        assert_eq!(covering.only().expect("one record").hit, once.hit);
    }
}

/// As packages of Python have them. A pipe that nobody writes to is none.
#[test]
fn the_modules_of_a_folder_are_also_those_below_it() {
    let built = Built::new();
    std::fs::create_dir(built.path("package")).expect("a folder");
    built.library("package/core");
    nix::unistd::mkfifo(&built.path("package/pipe"), nix::sys::stat::Mode::S_IRWXU)
        .expect("a pipe");
    let plugin = built.text("package/core/plugin.so");
    let arguments = ["once", &plugin];
    let once = built.is_undisturbed(&["--module", &plugin], &arguments);
    let all = built.is_undisturbed(&["--module", &built.text("package")], &arguments);
    let hit = |covering: &Covering| covering.only().expect("one record").hit;
    assert_eq!(hit(&all), hit(&once));
    assert!(!hit(&all).is_empty());
}

/// The folder of a build, named as it is from within; what linkers take is in it, too.
#[test]
fn a_folder_of_modules_may_hold_objects_and_be_the_one_where_we_are() {
    let built = Built::new();
    let object = built.compile("first/plugin.o", "plugin.c", &["-c", "-fPIC"]);
    assert!(object.is_file());
    let library = built.text("first/plugin.so");
    for name in [".", "./", "..", "../first"] {
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(&["--module", name]).expect("tomo");
        command.current_dir(built.path("first"));
        command.arg(built.path("loading")).args(["once", &library]);
        let output = complete(command, b"").expect("run");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
        let hit = covering.all().expect("records").hit;
        assert!(!hit.is_empty(), "{name}");
    }
}

/// Several libraries of a folder, loaded by threads at once.
#[test]
fn threads_load_the_libraries_of_a_folder() {
    let built = Built::new();
    std::fs::create_dir(built.path("all")).expect("a folder");
    let names: Vec<_> = (0..6)
        .map(|number| format!("all/plugin{number}.so"))
        .collect();
    for (number, name) in names.iter().enumerate() {
        let define = format!("-Dhalf=half{number}");
        built.compile(name, "plugin.c", &["-shared", "-fPIC", &define, "-g"]);
    }
    let folder = built.text("all");
    let paths: Vec<_> = names.iter().map(|name| built.text(name)).collect();
    let arguments: Vec<_> = ["threads"]
        .into_iter()
        .chain(paths.iter().map(String::as_str))
        .collect();
    let covering = built.is_undisturbed(&["--module", &folder], &arguments);
    let all = covering.each().expect("records");
    assert_eq!(all.len(), paths.len());
    let armed = all.iter().filter(|units| units.hit.len() > 15).count();
    assert_eq!(armed, paths.len(), "{all:?}");
}

/// Python's own modules come as libraries, most of them later.
#[test]
fn python_and_its_modules_are_covered() {
    let find = "import sysconfig; print(sysconfig.get_path('platstdlib') + '/lib-dynload')";
    let output = Command::new("/usr/bin/python3").args(["-c", find]).output();
    let printed = String::from_utf8(output.expect("python3").stdout).expect("a path");
    let folder = printed.trim();
    let script = "import json, ctypes, decimal, bz2, lzma, hashlib, queue; \
                  print(json.dumps([1, None]), decimal.Decimal(2).sqrt(), \
                  len(lzma.compress(bz2.compress(b'x' * 9999))), hashlib.md5(b'x').hexdigest())";
    let arguments = ["-c", script];
    let mut alone = Command::new("/usr/bin/python3");
    alone.args(arguments);
    let expected = complete(alone, b"").expect("run");
    let wanted = [
        "_json.",
        "_ctypes.",
        "_decimal.",
        "_bz2.",
        "_lzma.",
        "_hashlib.",
    ];
    let entries = std::fs::read_dir(folder).expect("read").flatten();
    let names = entries.map(|entry| entry.path().to_string_lossy().into_owned());
    let ours = names.filter(|name| wanted.iter().any(|part| name.contains(part)));
    let options: Vec<_> = ours
        .flat_map(|name| ["--module".to_owned(), name])
        .collect();
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&options).expect("tomo");
    command.arg("/usr/bin/python3").args(arguments);
    let got = complete(command, b"").expect("run");
    assert_eq!(String::from_utf8_lossy(&got.stderr), "");
    assert_eq!(got.stdout, expected.stdout);
    let all = covering.each().expect("records");
    let ran = all
        .iter()
        .filter(|units| units.processes == 1 && units.hit.len() > 10);
    assert!(ran.count() >= 4, "{all:?}");
}

/// Of modules that come later, if at all, it is said where none came.
#[test]
fn that_nothing_was_loaded_of_what_was_named_is_said() {
    let built = Built::new();
    std::fs::create_dir(built.path("all")).expect("a folder");
    let flags = |define| ["-shared", "-fPIC", define, "-g"];
    for (name, define) in [("all/a.so", "-Dhalf=a"), ("all/b.so", "-Dhalf=b")] {
        built.compile(name, "plugin.c", &flags(define));
    }
    let [first, a, all] = ["first/plugin.so", "all/a.so", "all"].map(|name| built.text(name));
    let said = |module: &str, loaded: &str| {
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(&["--module", module]).expect("tomo");
        command.arg(built.path("loading")).args(["once", loaded]);
        let output = complete(command, b"").expect("run");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let single = said(&first, &a);
    let wanted = format!("{first} was not observed: no process loaded both it and the agent");
    assert!(single.contains(&wanted), "{single}");
    let several = said(&all, &first);
    let wanted = format!("{a} and 1 other were not observed: no process loaded both one of them");
    assert!(several.contains(&wanted), "{several}");
    assert_eq!(said(&all, &a), "", "one of them was loaded");
}

/// A module whose place another one has taken gets nothing more in a child, even where its text is longer.
#[test]
fn children_have_the_libraries_that_are_there_now() {
    let built = Built::new();
    let shared = |define| ["-shared", "-fPIC", "-w", define];
    let [a, b] = [("a.so", "-DLONG"), ("b.so", "-DSHORT")]
        .map(|(name, define)| built.compile(name, "swapping.c", &shared(define)));
    let program = built.compile("swapping", "swapping.c", &[]);
    let run = |mut command: Command| {
        command.arg(&program).args([&a, &b]);
        complete(command, b"").expect("run")
    };
    let alone = run(Command::new("env"));
    assert_eq!(alone.status.code(), Some(3));
    let covering = Covering::new().expect("a folder");
    let [a_text, b_text] = [&a, &b].map(|path| path.to_string_lossy().into_owned());
    let options = ["--module", &a_text, "--module", &b_text];
    for forks in [&[][..], &["--fork", "separate"]] {
        let options = [&options[..], forks].concat();
        let got = run(covering.command(&options).expect("tomo"));
        assert_eq!(got.stdout, alone.stdout, "{forks:?}");
        assert_eq!(got.status.code(), Some(3), "{forks:?}");
    }
}

/// The paths of two libraries without a build id.
fn without_build_ids(built: &Built) -> [String; 2] {
    let flags = ["-shared", "-fPIC", "-Wl,--build-id=none"];
    ["one", "another"].map(|name| {
        let define = format!("-DNAME={name}");
        let flags = [&flags[..], &[&define]].concat();
        let path = built.compile(&format!("{name}.so"), "plugin.c", &flags);
        path.to_string_lossy().into_owned()
    })
}

/// A library is looked at once, and nothing is left of that where it is not observed.
#[test]
fn libraries_that_are_none_of_ours_leave_nothing_mapped() {
    let built = Built::new();
    let [one, another] = without_build_ids(&built);
    let covering = built.is_undisturbed(&["--module", &one], &["mappings", &one, &another]);
    assert!(covering.only().expect("one record").hit.len() > 15);
}

/// What comes again to where it was is remembered once, however often it does, in its parent's record or in its own.
#[test]
fn a_library_that_is_loaded_over_and_over_is_recorded() {
    let built = Built::new();
    let path = built.text("first/plugin.so");
    let once = built.loaded("once");
    for options in [&[][..], &["--fork", "separate"], &["--disposal", "none"]] {
        let options = [&["--module", &path], options].concat();
        let covering = built.is_undisturbed(&options, &["often", &path]);
        assert_eq!(
            covering.all().expect("records").hit,
            once.hit,
            "{options:?}"
        );
    }
}

/// Where it comes each time to another place the table of those ends at some time, which is said.
#[test]
fn a_library_that_is_loaded_at_a_thousand_places_is_refused_from_then_on() {
    let built = Built::new();
    let path = built.text("first/plugin.so");
    let (_, watched, covering) = built.run(&["--module", &path], &["elsewhere", &path]);
    let (found, once) = (covering.only().expect("one record"), built.loaded("once"));
    assert!(found.hit.len() < once.hit.len() && found.hit.is_subset(&once.hit));
    let said = String::from_utf8_lossy(&watched.stderr);
    assert!(said.contains(Reason::TooMany.words()), "{said}");
}

#[test]
fn a_library_among_thousands_is_recorded() {
    const OTHERS: usize = 4200;
    let built = Built::new();
    let flags = [
        "-shared",
        "-fPIC",
        "-s",
        "-nostdlib",
        "-Wl,-z,noseparate-code",
    ];
    let other = built.compile("other.so", "plugin.c", &flags);
    std::fs::create_dir(built.path("others")).expect("a folder");
    for number in 0..OTHERS {
        let to = built.path(&format!("others/{number}.so"));
        std::fs::copy(&other, to).expect("copied");
    }
    let (path, others) = (built.text("first/plugin.so"), built.text("others"));
    let arguments = ["among", &path, &others, &OTHERS.to_string()];
    let covering = built.is_undisturbed(&["--module", &path], &arguments);
    let once = built.loaded("once");
    assert_eq!(covering.only().expect("one record").hit, once.hit);
}

/// What could not be observed when it came is not tried again: threads may be at work in it.
#[test]
fn a_library_that_could_not_be_observed_at_first_stays_as_it_is() {
    let built = Built::new();
    let [one, another] = without_build_ids(&built);
    for options in [
        &["--module", &one][..],
        &["--fork", "separate", "--module", &one],
    ] {
        let (expected, got, _) = built.run(options, &["scarce", &one, &another]);
        assert_eq!(got.stdout, expected.stdout);
        assert_eq!(got.status.code(), Some(0));
        let said = String::from_utf8_lossy(&got.stderr).into_owned();
        assert!(said.contains("was not observed: "), "{said}");
    }
}

/// Where memory that could be written is never executed (systemd's `MemoryDenyWriteExecute`).
#[test]
fn libraries_that_come_where_no_code_may_be_written_are_observed() {
    let built = Built::new();
    assert_eq!(built.loaded("denied").hit, built.loaded("once").hit);
}
