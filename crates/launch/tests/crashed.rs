//! Where a program crashes whose instructions are executed elsewhere: the frames, and the registers with which it ends, are those of
//! the same program of which nothing is observed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tomo_launch::{
    Agent, Arming, CRASHES, Chosen, Crash, Images, Observed, Target, crashes, equip, new_folder,
    private_folder, read_live,
};
use tomo_testkit::corpus::compiled;
use tomo_weave::Asked;
use tomo_wire::PAGE;
use tomo_wire::crash::SIGNALS;
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

    /// The crash of a run with these predicates observed, and where the thread stood when fatal signals came.
    fn crash(&self, name: &str, way: &str, asked: Asked) -> (Crash, Vec<u64>) {
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
            outside: None,
        };
        let mut command = Command::new(&self.program);
        command.args(["stop", way]);
        command.envs(arming.variables(|_| None));
        let stood = watched(command.stdout(Stdio::null()));
        let files = std::fs::read_dir(&folder).expect("a folder").flatten();
        let mut files = files.map(|file| file.path());
        let is_record = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "record");
        let live = read_live(&files.find(is_record).expect("a record")).expect("a record");
        assert_eq!(
            (live.armed.get(), live.refused.get()),
            (1, 0),
            "{name} {way}"
        );
        let mut told = crashes(&folder.join(CRASHES), &self.program).expect("crashes");
        assert_eq!(told.kept.len(), 1, "{way}: {told:?}");
        (told.kept.remove(0), stood)
    }
}

/// Lets a program that stops itself run until a signal ends it: at which instruction it stood each time that one of those came that
/// are kept. (Who is traced from the start would not be armed.)
fn watched(program: &mut Command) -> Vec<u64> {
    let mut child = program.spawn().expect("started");
    let process = Pid::from_raw(child.id().cast_signed());
    let started = waitpid(process, Some(WaitPidFlag::WUNTRACED)).expect("a child");
    assert!(matches!(started, WaitStatus::Stopped(..)), "{started:?}");
    ptrace::seize(process, Options::PTRACE_O_EXITKILL).expect("ptrace");
    kill(process, Signal::SIGCONT).expect("continued");
    let mut stood = Vec::new();
    loop {
        let signal = match waitpid(process, None).expect("a child") {
            WaitStatus::Stopped(_, signal) => Some(signal),
            WaitStatus::PtraceEvent(..) => None,
            ended => break assert!(matches!(ended, WaitStatus::Signaled(..)), "{ended:?}"),
        };
        if signal.is_some_and(|signal| SIGNALS.contains(&(signal as i32))) {
            stood.push(ptrace::getregs(process).expect("registers").rip);
        }
        ptrace::cont(process, signal).expect("continued");
    }
    // Nobody is there any more.
    drop(child.wait());
    stood
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
                let (plain, _) = bench.crash("plain", way, Asked::Some(HashSet::new()));
                let expected = own(&plain, &bench.program);
                assert!(expected.len() > 2, "{compiler} {level} {way}: {plain:#x?}");
                for name in ["armed", TAKEN] {
                    let (told, stood) = bench.crash(name, way, Asked::All);
                    let what = format!("{compiler} {level} {way}, {name}: {told:#x?}");
                    assert_eq!(own(&told, &bench.program), expected, "{what}");
                    assert_eq!((told.signal, told.end), (plain.signal, plain.end), "{what}");
                    let [first, .., last] = stood[..] else {
                        panic!("{stood:x?}, {what}");
                    };
                    // Modules are loaded at pages, and the agent had it happen once more when it had looked.
                    if own(&plain, &bench.program)[0] == plain.frames[0].address {
                        assert_eq!(last % PAGE, expected[0] % PAGE, "{stood:x?}, {what}");
                    }
                    if first != last {
                        elsewhere.insert(way);
                    }
                }
            }
        }
    }
    // What would be told otherwise was among it.
    for way in ["behind", "between", "divides"] {
        assert!(elsewhere.contains(way), "{way}: {elsewhere:?}");
    }
}
