//! Where a program crashes whose instructions are executed elsewhere: the frames are those of the same program of which
//! nothing is observed.

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tomo_launch::{
    Agent, Arming, CRASHES, Chosen, Crash, Images, Observed, Target, crashes, equip, new_folder,
    private_folder,
};
use tomo_testkit::corpus::compiled;
use tomo_weave::Asked;

/// A program, and what images of one of its modules need.
struct Bench {
    folder: tempfile::TempDir,
    program: PathBuf,
    module: Observed,
    images: Images,
    agent: Agent,
}

impl Bench {
    fn new(compiler: &str, level: &str) -> Self {
        let program = compiled(compiler, "crashing_moved.c", &[level, "-g"]).expect("built");
        let target = Target::find(program.as_os_str(), None).expect("a program");
        Self::of(program, &Chosen::executable(&target))
    }

    /// A program that loads a library, which crashes.
    fn with_library(compiler: &str) -> Self {
        let program = compiled(compiler, "loading.c", &["-O2", "-pthread"]).expect("built");
        let flags = ["-O2", "-shared", "-fPIC", "-DCRASHES"];
        let path = compiled(compiler, "plugin.c", &flags).expect("built");
        let (late, placed) = (true, None);
        Self::of(program, &Chosen { path, late, placed })
    }

    fn of(program: PathBuf, chosen: &Chosen) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = private_folder(&folder.path().join("cache")).expect("a cache");
        Self {
            module: Observed::of(chosen).expect("a module"),
            images: Images::in_cache(&cache).expect("a cache"),
            agent: Agent::in_cache(&cache).expect("the agent"),
            program,
            folder,
        }
    }

    /// The crash of a run with these predicates observed; and what is told of it by who knows nothing of the image.
    fn crash(&self, name: &str, words: &[&str], asked: Asked) -> [Crash; 2] {
        let (carried, _) = self
            .images
            .marking(&self.module, asked, &())
            .expect("an image");
        let folder = self.folder.path().join(format!("{name}-{}", words[0]));
        new_folder(&folder).expect("a folder");
        let roster = equip(&folder, [0; 16], std::slice::from_ref(&carried)).expect("a roster");
        let arming = Arming {
            agent: &self.agent,
            roster: &roster,
            sanitized: false,
        };
        let status = Command::new(&self.program)
            .args(words)
            .envs(arming.variables(|_| None))
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("run").signal().is_some(), "{words:?}");
        let only = |images: &[PathBuf]| {
            let mut told = crashes(&folder.join(CRASHES), &self.program, images).expect("crashes");
            assert_eq!(told.kept.len(), 1, "{words:?}: {told:?}");
            told.kept.remove(0)
        };
        [only(std::slice::from_ref(&carried.image)), only(&[])]
    }
}

/// The frames that are in the program's file.
fn own(crash: &Crash, program: &Path) -> Vec<u64> {
    let is_own = |module: usize| crash.modules[module].path == program;
    let own = crash
        .frames
        .iter()
        .filter(|frame| frame.module.is_some_and(is_own));
    own.map(|frame| frame.address).collect()
}

#[test]
fn crashes_in_moved_instructions_are_told_where_they_were() {
    const WAYS: [&str; 6] = [
        "behind",
        "between",
        "divides",
        "compares",
        "sums",
        "interrupted",
    ];
    let mut elsewhere = HashSet::new();
    for compiler in ["gcc", "clang-19"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let bench = Bench::new(compiler, level);
            for way in WAYS {
                let [plain, _] = bench.crash("plain", &[way], Asked::Some(HashSet::new()));
                let [armed, naive] = bench.crash("armed", &[way], Asked::All);
                let expected = own(&plain, &bench.program);
                assert!(expected.len() > 2, "{compiler} {level} {way}: {plain:#x?}");
                let found = own(&armed, &bench.program);
                assert_eq!(found, expected, "{compiler} {level} {way}: {armed:#x?}");
                assert_eq!(
                    (armed.signal, armed.end),
                    (plain.signal, plain.end),
                    "{way}"
                );
                if own(&naive, &bench.program) != expected {
                    elsewhere.insert(way);
                }
            }
        }
    }
    // What would be told otherwise was among it.
    for way in ["behind", "between", "divides", "interrupted"] {
        assert!(elsewhere.contains(way), "{way}: {elsewhere:?}");
    }
}

/// The library's trampolines are not where its image says, since that place is taken.
#[test]
fn a_crash_in_what_was_put_elsewhere_is_told_where_it_was() {
    for compiler in ["gcc", "clang-19"] {
        let bench = Bench::with_library(compiler);
        let path = bench.module.path.to_str().expect("a name");
        let [plain, _] = bench.crash("plain", &["once", path], Asked::Some(HashSet::new()));
        let expected = own(&plain, &bench.module.path);
        assert!(expected.len() > 1, "{compiler}: {plain:#x?}");
        for way in ["once", "crowded:once"] {
            let [armed, naive] = bench.crash("armed", &[way, path], Asked::All);
            let found = own(&armed, &bench.module.path);
            assert_eq!(found, expected, "{compiler} {way}: {armed:#x?}");
            let told = own(&naive, &bench.module.path);
            assert_ne!(told, expected, "{compiler} {way}: it is executed elsewhere");
        }
    }
}
