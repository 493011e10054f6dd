//! Where a program crashes whose instructions are executed elsewhere: the frames are those of the same program of which
//! nothing is observed.

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tomo_launch::{
    Agent, Arming, CRASHES, Chosen, Crash, Images, Observed, Target, crashes, equip, new_folder,
    private_folder, read_live,
};
use tomo_testkit::corpus::compiled;
use tomo_weave::Asked;
use tomo_wire::image::Image;

/// A program, and what images of it need.
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
        let folder = tempfile::tempdir().expect("a folder");
        let cache = private_folder(&folder.path().join("cache")).expect("a cache");
        let target = Target::find_dynamic(program.as_os_str(), None).expect("a program");
        Self {
            module: Observed::of(&Chosen::executable(&target)).expect("a module"),
            images: Images::in_cache(&cache).expect("a cache"),
            agent: Agent::in_cache(&cache).expect("the agent"),
            program,
            folder,
        }
    }

    /// The crash of a run with these predicates observed; and what is told of it by who knows nothing of the image.
    fn crash(&self, name: &str, way: &str, asked: Asked) -> [Crash; 2] {
        let (carried, _) = self
            .images
            .marking(&self.module, asked, &())
            .expect("an image");
        if name == TAKEN {
            put_on_data(&carried.image);
        }
        let folder = self.folder.path().join(format!("{name}-{way}"));
        new_folder(&folder).expect("a folder");
        let roster = equip(&folder, [0; 16], std::slice::from_ref(&carried)).expect("a roster");
        let arming = Arming {
            agent: &self.agent,
            roster: &roster,
            sanitized: false,
            outside: None,
        };
        let status = Command::new(&self.program)
            .arg(way)
            .envs(arming.variables(|_| None))
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("run").signal().is_some(), "{way}");
        let files = std::fs::read_dir(&folder).expect("a folder").flatten();
        let mut files = files.map(|file| file.path());
        let is_record = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "record");
        let live = read_live(&files.find(is_record).expect("a record")).expect("a record");
        assert_eq!(
            (live.armed.get(), live.refused.get()),
            (1, 0),
            "{name} {way}"
        );
        let only = |images: &[PathBuf]| {
            let mut told = crashes(&folder.join(CRASHES), &self.program, images).expect("crashes");
            assert_eq!(told.kept.len(), 1, "{way}: {told:?}");
            told.kept.remove(0)
        };
        [only(std::slice::from_ref(&carried.image)), only(&[])]
    }
}

/// The runs in which something is where trampolines should be.
const TAKEN: &str = "taken";

/// Has an image's trampolines lie behind the code, where the module has its data.
fn put_on_data(image: &Path) {
    let mut file = std::fs::read(image).expect("an image");
    let header = Image::read(&file, file.len() as u64).expect("an image");
    let table = file.split_off(header.relocations.get() as usize);
    let [first, .., last] = [
        &header.regions()[0],
        &header.regions()[header.regions().len() - 1],
    ];
    let behind = last.address.get() + last.length.get() - first.address.get();
    let moved = header.relocate(&table, &mut file, behind.cast_signed(), |_| [0; 4]);
    let mut moved = moved.expect("within reach");
    moved.length = header.length;
    moved.relocations_length = header.relocations_length;
    moved.relocations_checksum = header.relocations_checksum;
    let sealed = moved.sealed();
    file[..sealed.len()].copy_from_slice(&sealed);
    file.extend(table);
    std::fs::write(image, file).expect("written");
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
                let [plain, _] = bench.crash("plain", way, Asked::Some(HashSet::new()));
                let [armed, naive] = bench.crash("armed", way, Asked::All);
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
                let [taken, _] = bench.crash(TAKEN, way, Asked::All);
                let found = own(&taken, &bench.program);
                assert_eq!(found, expected, "{compiler} {level} {way}: {taken:#x?}");
            }
        }
    }
    // What would be told otherwise was among it; what a handler has interrupted it was told itself, and so is who reads its stack.
    for way in ["behind", "between", "divides"] {
        assert!(elsewhere.contains(way), "{way}: {elsewhere:?}");
    }
}
