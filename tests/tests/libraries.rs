//! Profiles of a library: the same code says the same of itself in a library and in the executable, where it is held
//! against single steps.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::complete;
use tomo_testkit::tomo;

const FLAGS: [&str; 4] = ["-O2", "-g", "-fPIC", "-Dmain=features_main"];
/// Functions of which each module has its own.
const RUNTIME: [&str; 8] = [
    "_init",
    "_fini",
    "_start",
    "main",
    "deregister_tm_clones",
    "register_tm_clones",
    "__do_global_dtors_aux",
    "frame_dummy",
];

/// A program, and the library in which its code is, if it is in one.
struct Program {
    path: PathBuf,
    library: Option<PathBuf>,
    folder: tempfile::TempDir,
}

/// What gcc makes of `features.c` and what belongs to it.
fn features(more: &[&str]) -> PathBuf {
    let others = ["interpreter.c", "jumps.c"].map(source);
    let others = others.iter().map(String::as_str);
    let words: Vec<&str> = FLAGS.iter().copied().chain(others).collect();
    compiled("gcc", "features.c", &[&words, more, &["-lm"]].concat()).expect("built")
}

fn source(name: &str) -> String {
    format!("{}/programs/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn whole() -> Program {
    Program {
        path: features(&[&source("driving.c")]),
        library: None,
        folder: tempfile::tempdir().expect("a folder"),
    }
}

fn parted() -> Program {
    // Bound at the start, so that resolvers run before anything is observed, as in an executable.
    let library = features(&["-shared", "-Wl,-z,now"]);
    let linked = library.to_str().expect("a path");
    Program {
        path: compiled("gcc", "driving.c", &["-O2", linked]).expect("built"),
        library: Some(library),
        folder: tempfile::tempdir().expect("a folder"),
    }
}

impl Program {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tomo<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Output {
        let mut command = Command::new(tomo::path().expect("tomo"));
        command
            .env("TOMO_CACHE_DIR", self.file("cache"))
            .current_dir(self.folder.path())
            .args(words);
        complete(command, b"").expect("run")
    }

    /// What a command writes into the file that `options` end with.
    fn told(&self, command: &str, options: &[&str]) -> String {
        let mut words = vec![command.to_owned()];
        if let Some(library) = &self.library {
            words.extend(["--module".into(), library.display().to_string()]);
        }
        words.extend(options.iter().map(|&option| option.into()));
        let (file, program) = (self.file("told"), self.path.display().to_string());
        words.extend([file.display().to_string(), "--".into(), program]);
        let output = self.tomo(&words);
        let said = String::from_utf8_lossy(&output.stderr);
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{command}: {error}: {said}"))
    }

    fn document(&self, command: &str, options: &[&str]) -> Value {
        serde_json::from_str(&self.told(command, options)).expect("a document")
    }
}

fn list<'v>(of: &'v Value, key: &str) -> &'v [Value] {
    of[key].as_array().map_or(&[], Vec::as_slice)
}

/// What a document says of each function that is not the runtime's.
fn by_function<T>(
    document: &Value,
    key: &str,
    (named, said): (&str, impl Fn(&Value) -> T),
) -> BTreeMap<String, Vec<T>> {
    let mut all = BTreeMap::<String, Vec<T>>::new();
    for one in list(document, key) {
        let name = one[named].as_str().expect("a name").to_owned();
        if !RUNTIME.contains(&name.as_str()) {
            all.entry(name).or_default().push(said(one));
        }
    }
    all
}

/// What `said` makes of both programs' documents, which must be the same, and of some functions.
fn is_the_same<T: PartialEq + std::fmt::Debug>(
    (command, options): (&str, &[&str]),
    (key, named): (&str, &str),
    said: impl Fn(&Value) -> T,
) {
    let all = [whole(), parted()].map(|program| {
        let document = program.document(command, options);
        by_function(&document, key, (named, &said))
    });
    assert!(all[0].len() > 20, "{command}: {:?}", all[0].keys());
    assert_eq!(all[0], all[1], "{command}");
}

#[test]
fn counts_of_a_library_are_those_of_the_same_code_in_the_executable() {
    let counts = |function: &Value| {
        let blocks = list(function, "blocks").iter();
        blocks
            .map(|block| block["count"].as_u64())
            .collect::<Vec<_>>()
    };
    let options = ["--format", "json", "--to"];
    is_the_same(("count", &options), ("functions", "name"), counts);
}

#[test]
fn paths_of_a_library_are_those_of_the_same_code_in_the_executable() {
    let counts = |function: &Value| {
        let paths = list(function, "paths").iter();
        let mut counts: Vec<_> = paths.map(|path| path["count"].as_u64()).collect();
        counts.sort_unstable();
        (function["started"].clone(), function["cut"].clone(), counts)
    };
    let options = ["--format", "json", "--to"];
    is_the_same(("paths", &options), ("functions", "name"), counts);
}

#[test]
fn predicates_of_a_library_are_those_of_the_same_code_in_the_executable() {
    let cases = |site: &Value| {
        let cases = list(site, "predicates").iter();
        let each = cases.map(|case| (case["case"].clone(), case["true"].clone()));
        (site["line"].clone(), each.collect::<Vec<_>>())
    };
    let options = ["--json", "--to"];
    is_the_same(("predicates", &options), ("sites", "function"), cases);
}

/// Below the function that the executable calls.
#[test]
fn chains_of_a_library_are_those_of_the_same_code_in_the_executable() {
    const FIRST: &str = "features_main";
    let all = [whole(), parted()].map(|program| {
        let folded = program.told("chains", &["--folded"]);
        let below = folded.lines().filter_map(|line| line.split_once(FIRST));
        let mut below: Vec<String> = below.map(|(_, below)| below.to_owned()).collect();
        below.sort();
        below
    });
    assert!(all[0].len() > 20, "{:?}", all[0]);
    assert_eq!(all[0], all[1]);
}

/// How many blocks of each function ran, by its trace.
fn traced(program: &Program) -> BTreeMap<String, u64> {
    let mut words = vec!["trace".to_owned(), "-o".into(), "traces".into()];
    if let Some(library) = &program.library {
        words.extend(["--module".into(), library.display().to_string()]);
    }
    words.extend(["--".into(), program.path.display().to_string()]);
    program.tomo(&words);
    let mut made = std::fs::read_dir(program.file("traces")).expect("traces");
    let trace = made.next().expect("a trace").expect("a trace").path();
    let words = ["trace", "export", "--format", "folded"].map(OsStr::new);
    let output = program.tomo(words.into_iter().chain([trace.as_os_str()]));
    let text = String::from_utf8(output.stdout).expect("text");
    let mut ran = BTreeMap::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        let function = stack.rsplit(';').next().expect("a function").to_owned();
        if !RUNTIME.contains(&function.as_str()) {
            *ran.entry(function).or_default() += count.parse::<u64>().expect("a count");
        }
    }
    ran
}

#[test]
fn a_trace_of_a_library_is_that_of_the_same_code_in_the_executable() {
    let all = [whole(), parted()].map(|program| traced(&program));
    assert!(all[0].len() > 20, "{:?}", all[0]);
    assert_eq!(all[0], all[1]);
}

/// A program with a library in which functions jump to others by stubs.
fn by_stubs(linked: &str, interposed: &[&str]) -> Program {
    let library = compiled(
        "gcc",
        "stubs.c",
        &["-O2", "-g", "-fPIC", "-shared", "-DLIBRARY", linked],
    );
    let library = library.expect("built");
    let words = [interposed, &["-O2", library.to_str().expect("a path")]].concat();
    Program {
        path: compiled("gcc", "stubs.c", &words).expect("built"),
        library: Some(library),
        folder: tempfile::tempdir().expect("a folder"),
    }
}

/// Who jumps by a stub comes to the function once; and to another one, where the loader chose that.
#[test]
fn a_trace_follows_jumps_by_stubs_to_where_the_loader_led_them() {
    let direct = traced(&by_stubs("-Wl,-Bsymbolic", &[]));
    assert_eq!(direct.len(), 3, "{direct:?}");
    for bound in ["-Wl,-z,lazy", "-Wl,-z,now"] {
        assert_eq!(traced(&by_stubs(bound, &[])), direct, "{bound}");
        let interposed = traced(&by_stubs(bound, &["-DINTERPOSED", "-rdynamic"]));
        let names: Vec<&str> = interposed.keys().map(String::as_str).collect();
        assert_eq!(names, ["both", "first"], "{bound}: {interposed:?}");
    }
}

/// Of several modules none is guessed; what is none is said; and the program runs.
#[test]
fn what_is_not_one_module_is_said() {
    let program = parted();
    let path = program.path.display().to_string();
    for (name, said) in [
        ("lib", "names several modules"),
        ("nothing", "loads no module called"),
        ("/no/such/file", "/no/such/file: no such file or directory"),
        (
            "/etc/passwd",
            "/etc/passwd: is neither a program nor a shared library, and no folder",
        ),
    ] {
        let output = program.tomo(["count", "--module", name, "--", path.as_str()]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(said), "{name}: {error}");
        assert!(output.stdout.starts_with(b"before main"), "{name}");
    }
}

/// A folder may hold what is loaded at the start, as folders of programs' own libraries do.
#[test]
fn the_modules_of_a_folder_are_also_those_of_the_start() {
    let mut program = parted();
    let counts = |program: &Program| program.document("count", &["--format", "json", "--to"]);
    let of_library = counts(&program);
    let library = program.library.take().expect("a library");
    let folder = program.file("own");
    std::fs::create_dir(&folder).expect("a folder");
    std::os::unix::fs::symlink(library, folder.join("library.so")).expect("a link");
    program.library = Some(folder);
    assert_eq!(
        list(&counts(&program), "functions"),
        list(&of_library, "functions")
    );
}

/// The C library's own code goes from one module to the next while they are armed. It is armed when that is over: what is seen of a
/// function is all that it did, or nothing.
#[test]
fn the_c_library_is_armed_while_none_of_it_is_under_way() {
    let program = whole();
    let path = program.path.display().to_string();
    program.tomo(["cover", "--module", "libc.so.6", "-o", "run", "--", &path]);
    let report = program.tomo(["report", "run"]);
    let said = String::from_utf8_lossy(&report.stdout) + String::from_utf8_lossy(&report.stderr);
    assert!(said.contains("libc.so.6: Inferred from others: "), "{said}");
    assert!(!said.contains("fit no execution"), "{said}");
}

/// Breakpoints are put into executables; that is said, and the program runs.
#[test]
fn breakpoints_in_a_library_are_refused() {
    let program = parted();
    let path = program.path.display().to_string();
    let library = program.library.as_ref().expect("a library");
    let library = library.display().to_string();
    let words = [
        "trace",
        "--collect",
        "breakpoint",
        "--module",
        &library,
        "--",
        &path,
    ];
    let output = program.tomo(words);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("into the executable alone"), "{error}");
    assert!(output.stdout.starts_with(b"before main"), "{error}");
}

/// Who observes an executable alone is told of what came with it.
#[test]
fn a_library_that_comes_with_the_program_is_named() {
    let program = parted();
    let path = program.path.display().to_string();
    let output = program.tomo(["count", "--", path.as_str()]);
    let error = String::from_utf8_lossy(&output.stderr);
    let library = program.library.as_ref().expect("a library").display();
    let said = format!("{library} comes with it and was not counted: --module does that");
    assert!(error.contains(&said), "{error}");
}

/// The module may be the executable of processes below the command: what each of them did is added up.
#[test]
fn processes_below_the_command_count_together() {
    let program = whole();
    let path = program.path.display().to_string();
    let file = program.file("told").display().to_string();
    let counted = |module: &[&str], command: &[&str]| {
        let options = ["count", "--format", "json", "--to", &file];
        program.tomo([&options, module, &["--"], command].concat());
        let told = std::fs::read_to_string(program.file("told")).expect("told");
        let document = serde_json::from_str(&told).expect("a document");
        by_function(
            &document,
            "functions",
            ("name", |function: &Value| {
                let blocks = list(function, "blocks").iter();
                blocks
                    .filter_map(|block| block["count"].as_u64())
                    .sum::<u64>()
            }),
        )
    };
    let once = counted(&[], &[&path]);
    let line = format!("{path}; {path} & wait");
    let twice = counted(&["--module", &path], &["sh", "-c", &line]);
    let doubled = once.into_iter().map(|(name, counts)| {
        let counts: Vec<u64> = counts.into_iter().map(|count| 2 * count).collect();
        (name, counts)
    });
    assert_eq!(doubled.collect::<BTreeMap<_, _>>(), twice);
}

/// What a command builds before it tests it was not there to be chosen: that is said, of what was there and of what was not, and not
/// of what is the same as before.
#[test]
fn what_is_built_while_the_command_runs_is_said() {
    let [old, new, other] = ["-DEXITS=1", "-DEXITS=2", "-DEXITS=3"].map(|exits| {
        compiled("gcc", "manners.c", &["-O1", "-pthread", exits, "-ldl"]).expect("built")
    });
    let program = Program {
        path: PathBuf::new(),
        library: None,
        folder: tempfile::tempdir().expect("a folder"),
    };
    let (place, beside) = (program.file("built/program"), program.file("built/beside"));
    std::fs::create_dir(program.file("built")).expect("a folder");
    let shown = |path: &Path| path.display().to_string();
    let said = |module: &str, line: &str| {
        std::fs::copy(&old, &place).expect("copied");
        let folder = shown(&program.file("out"));
        let options = [
            "cover", "-o", &folder, "--module", module, "--", "sh", "-c", line,
        ];
        String::from_utf8(program.tomo(options).stderr).expect("text")
    };
    let folder = shown(&program.file("built"));
    let (place, beside) = (shown(&place), shown(&beside));
    let replaced = format!("cp -f {} {place}; {place} exit", shown(&new));
    let line = format!(
        "tomo: {place} was built while the command ran, and not observed as it is now: run it once more\n"
    );
    assert_eq!(said(&place, &replaced), line);
    assert_eq!(said(&folder, &replaced), line);
    let both = format!("{replaced}; cp {} {beside}", shown(&other));
    let told = said(&folder, &both);
    assert!(
        told.contains("beside and program were built while"),
        "{told}"
    );
    std::fs::remove_file(&beside).expect("removed");
    let same = format!("touch {place}; cp {place} {beside}; {place} exit");
    assert_eq!(said(&folder, &same), "");
    // Nor is what is ours, wherever it lies.
    let pool = format!("{folder}/pool");
    let options = [
        "cover", "--pool", &pool, "--module", &folder, "--", &place, "exit",
    ];
    let output = program.tomo(options);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// A library leads `gs`, by which probes that stay find what they write, to its own memory, and calls back: whatever it is linked by,
/// its memory stays its own, and the program is observed until then.
#[test]
fn who_sets_the_segment_register_keeps_its_memory() {
    let library = compiled("gcc", "boxed.c", &["-O2", "-shared", "-fPIC"]).expect("built");
    let path = library.to_str().expect("a path");
    let linked = compiled("gcc", "boxing.c", &["-O2", "-DLINKED", path]).expect("built");
    let loading = compiled("gcc", "boxing.c", &["-O2"]).expect("built");
    for (path, words) in [(linked, vec![]), (loading, vec![path])] {
        let program = Program {
            path,
            library: None,
            folder: tempfile::tempdir().expect("a folder"),
        };
        let name = program.path.to_str().expect("a path");
        let command = [&["--", name][..], &words].concat();
        for way in [
            &["count"][..],
            &["paths"],
            &["chains"],
            &["predicates", "--counts"],
            &["trace"],
            &["cover"],
        ] {
            let output = program.tomo([way, &["-o", "out"], &command].concat());
            let (out, errors) = [&output.stdout, &output.stderr]
                .map(|text| String::from_utf8_lossy(text))
                .into();
            assert!(
                out.starts_with("165852, 0 bytes changed\n"),
                "{way:?}: {out}{errors}"
            );
            assert!(output.status.success(), "{way:?}: {errors}");
            let is_told = errors.contains("sets the segment register gs");
            assert_eq!(is_told, way != ["cover"], "{way:?}: {errors}");
        }
    }
}
