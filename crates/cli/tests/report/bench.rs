//! A directory with programs, their records, and a cache of its own, in which `tomo` runs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tomo_program::{
    ANALYSIS_VERSION, Cache, Headers, Key, Loaded, Model, Request, hexadecimal, load, text_of,
};
use tomo_wire::ModuleId;
use tomo_wire::plan::{Entry, Level, Plan, Tactic};
use tomo_wire::record::{LIVE, MARKS, Record};
use zerocopy::IntoBytes as _;

/// How a program is built of nothing but what is there.
pub(crate) const BARE: [&str; 4] = [
    "-nostdlib",
    "-nostartfiles",
    "-Wl,-e,main",
    "-Wl,--build-id",
];

/// The program whose blocks are known to the byte.
pub(crate) const SAMPLE: &str = include_str!("sample.s");
/// Starts of its blocks: five of `main`, three of `helper`, one of `unused`.
pub(crate) const BLOCKS: [u64; 9] = [
    0x1000, 0x1004, 0x100e, 0x1010, 0x1015, 0x1017, 0x101c, 0x101d, 0x101f,
];
/// Those that run if `main` is called with something else than 0.
pub(crate) const RAN: [u64; 6] = [0x1000, 0x1004, 0x100e, 0x1015, 0x1017, 0x101d];

pub(crate) struct Bench {
    directory: TempDir,
}

/// What a run of `tomo` said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// What was said where all went well.
    pub(crate) fn well(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        self.out
    }
}

/// A program that was built here.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) id: ModuleId,
    pub(crate) model: Model,
}

/// The units of a plan, and which of them were hit.
pub(crate) struct Seen {
    pub(crate) level: Level,
    /// Blocks with a probe, and whether they were hit.
    pub(crate) probes: Vec<(u64, bool)>,
    /// Blocks without.
    pub(crate) inferred: Vec<u64>,
    pub(crate) unknown: Vec<u64>,
    /// Edges with a probe.
    pub(crate) edges: Vec<(u64, u64, bool)>,
}

impl Seen {
    /// All blocks of the sample are probed, and these were hit.
    pub(crate) fn blocks(hit: &[u64]) -> Self {
        Self {
            level: Level::Block,
            probes: BLOCKS.map(|at| (at, hit.contains(&at))).to_vec(),
            inferred: Vec::new(),
            unknown: Vec::new(),
            edges: Vec::new(),
        }
    }

    fn units(&self) -> Vec<Entry> {
        let unit = |from: u64, to: u64, tactic: Tactic| Entry {
            from: from.into(),
            to: to.into(),
            tactic: (tactic as u32).into(),
            is_edge: u32::from(to != 0).into(),
        };
        let probes = self.probes.iter();
        let probes = probes.map(|(at, _)| unit(*at, 0, Tactic::Quadword));
        let edges = self.edges.iter();
        let edges = edges.map(|(from, to, _)| unit(*from, *to, Tactic::Retarget));
        let inferred = self
            .inferred
            .iter()
            .map(|at| unit(*at, 0, Tactic::Inferred));
        let unknown = self.unknown.iter().map(|at| unit(*at, 0, Tactic::NoPlace));
        probes.chain(edges).chain(inferred).chain(unknown).collect()
    }

    fn hits(&self) -> Vec<bool> {
        let blocks = self.probes.iter().map(|(_, hit)| *hit);
        blocks
            .chain(self.edges.iter().map(|(_, _, hit)| *hit))
            .collect()
    }

    /// The files of plan and record.
    pub(crate) fn files(&self, id: ModuleId, run: u8) -> (Vec<u8>, Vec<u8>) {
        let (units, hits) = (self.units(), self.hits());
        let plan = Plan::of(id, self.level, ANALYSIS_VERSION, &units);
        let probes = u32::try_from(hits.len()).expect("few");
        let record = Record::of(
            id,
            plan.name(),
            probes,
            [run; 16],
            1_700_000_000_000_000_000,
        );
        let mut bytes = vec![0; record.length() as usize];
        let header = record.sealed();
        bytes[..header.len()].copy_from_slice(&header);
        // One process was armed: the first of the counters.
        bytes[tomo_wire::record::LIVE as usize] = 1;
        for (byte, hit) in bytes[MARKS as usize..].iter_mut().zip(hits) {
            *byte = u8::from(hit);
        }
        ([plan.as_bytes(), units.as_bytes()].concat(), bytes)
    }
}

impl Bench {
    /// With the sample program and one run of it, in `tomo-out`.
    pub(crate) fn with_a_run() -> Self {
        let bench = Self::new();
        let program = bench.sample();
        bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
        bench
    }

    /// The same run, in which only functions were observed.
    pub(crate) fn with_functions() -> Self {
        let bench = Self::new();
        let program = bench.sample();
        let mut seen = Seen::blocks(&RAN);
        seen.level = Level::Function;
        seen.probes
            .retain(|(at, _)| [0x1000, 0x1017, 0x101f].contains(at));
        bench.run("tomo-out", 1, &program, &seen);
        bench
    }

    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self { directory }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Builds a program from a source, which is C or assembly by its name.
    pub(crate) fn build(&self, name: &str, file: &str, source: &str, flags: &[&str]) -> Program {
        self.build_by("cc", name, (file, source), flags)
    }

    pub(crate) fn build_by(
        &self,
        compiler: &str,
        name: &str,
        (file, source): (&str, &str),
        flags: &[&str],
    ) -> Program {
        fs::write(self.path(file), source).expect("written");
        let mut compiler = Command::new(compiler);
        compiler.current_dir(self.directory.path()).args(flags);
        let output = compiler
            .args(["-o", name, file])
            .output()
            .expect("cc or clang-19 runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        self.opened(self.path(name))
    }

    /// A program that is there.
    pub(crate) fn opened(&self, path: PathBuf) -> Program {
        let cache = Cache::at(self.path("cache"));
        let request = Request {
            path: &path,
            cache: Some(&cache),
            refresh: false,
            whole: true,
        };
        let Loaded { model, .. } = load(&request, &()).expect("a program");
        let id = identify(&path);
        Program { path, id, model }
    }

    /// A program of this assembly code alone, which is called `sample`.
    pub(crate) fn assembled(&self, source: &str) -> Program {
        self.build("sample", "sample.s", source, &BARE)
    }

    pub(crate) fn sample(&self) -> Program {
        self.sample_with("", "")
    }

    /// The sample, of whose source `old` is replaced by what makes the same code of it.
    pub(crate) fn sample_with(&self, old: &str, new: &str) -> Program {
        // Only clang's assembler has rows of line 0.
        let (compiler, source) = match old {
            "" => ("cc", SAMPLE.to_owned()),
            old => ("clang-19", SAMPLE.replacen(old, new, 1)),
        };
        let program = self.build_by(compiler, "sample", ("sample.s", &source), &BARE);
        let graphs = program.model.graphs().expect("a model");
        let functions = graphs.functions();
        let starts: BTreeSet<u64> = functions
            .flat_map(|function| function.blocks().map(|block| block.address().0))
            .collect();
        assert_eq!(starts, BTreeSet::from(BLOCKS));
        program
    }

    /// The folder of one run in `folder`, as `tomo cover` leaves it.
    pub(crate) fn run(&self, folder: &str, number: u8, program: &Program, seen: &Seen) {
        let run = self.path(folder).join(format!("run-{number}"));
        fs::create_dir_all(&run).expect("made");
        let (plan, record) = seen.files(program.id, number);
        fs::write(run.join("m.plan"), plan).expect("written");
        fs::write(run.join("m.record"), record).expect("written");
        let document = serde_json::json!({
            "schema": "tomo.run/1",
            "command": ["sample"],
            "program": text_of(&program.path),
            "modules": [{
                "path": text_of(&program.path),
                "build_id": hexadecimal(program.id.name()),
                "stem": "m",
            }],
            "started": "2023-11-14T22:13:20Z",
            "outcome": { "exit": 0 },
        });
        fs::write(run.join("run.json"), document.to_string()).expect("written");
    }

    /// As if no process had been observed in a run.
    pub(crate) fn forget_processes(&self, run: &str) {
        let path = self.path(run).join("m.record");
        let mut record = fs::read(&path).expect("there");
        record[LIVE as usize] = 0;
        fs::write(&path, record).expect("written");
    }

    /// The record of a single process beside that of [`Bench::run`].
    pub(crate) fn process(&self, folder: &str, number: u8, name: &str, record: &[u8]) {
        let run = self.path(folder).join(format!("run-{number}"));
        fs::write(run.join(format!("m.{name}.record")), record).expect("written");
    }

    /// Says of a run that it carried a part of the probes.
    pub(crate) fn carried_a_part(&self, run: &str) {
        let path = self.path(run).join("run.json");
        let text = fs::read_to_string(&path).expect("there");
        let mut document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        document["by_parts"] = true.into();
        fs::write(path, document.to_string()).expect("written");
    }

    pub(crate) fn tomo(&self, arguments: &[&str]) -> Said {
        self.said(Command::new(env!("CARGO_BIN_EXE_tomo")), arguments)
    }

    /// The same with a variable in the environment.
    pub(crate) fn tomo_with(&self, (name, value): (&str, &str), arguments: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
        command.env(name, value);
        self.said(command, arguments)
    }

    /// The same by a shell, in whose script it is called `$0`.
    pub(crate) fn shell(&self, script: &str, arguments: &[&str]) -> Said {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_tomo")]);
        self.said(command, arguments)
    }

    /// The same by a user who may not read everything, whoever runs the tests.
    pub(crate) fn tomo_as_nobody(&self, arguments: &[&str]) -> Said {
        let program = self.path("tomo-for-all");
        fs::copy(env!("CARGO_BIN_EXE_tomo"), &program).expect("copied");
        for path in [self.directory.path(), &program] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("ours");
        }
        let mut command = Command::new(program);
        if fs::metadata("/proc/self").is_ok_and(|ours| ours.uid() == 0) {
            command.uid(65_534).gid(65_534);
        }
        self.said(command, arguments)
    }

    fn said(&self, mut command: Command, arguments: &[&str]) -> Said {
        command.args(arguments).current_dir(self.directory.path());
        command.env("TOMO_CACHE_DIR", self.path("cache"));
        let output = command.output().expect("tomo runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// A table without the name of this directory; where its length broke lines, they are joined.
    pub(crate) fn table(&self, text: &str) -> String {
        let (table, notes) = text.split_once("\nall ").expect("a last row");
        self.clean(&format!("{table}\nall {}", notes.replace("\n  ", " ")))
    }

    /// A text without the name of this directory.
    pub(crate) fn clean(&self, text: &str) -> String {
        text.replace(self.directory.path().to_str().expect("UTF-8"), "DIR")
    }
}

pub(crate) fn identify(path: &Path) -> ModuleId {
    let bytes = fs::read(path).expect("there");
    let file = fs::File::open(path).expect("there");
    let headers = Headers::read(&file, bytes.len() as u64);
    let headers = headers.expect("readable").expect("ELF");
    let identity = headers.identity_of(&bytes);
    let id = match &identity.key {
        Key::BuildId(id) => ModuleId::by_build_id(id, identity.fingerprint),
        Key::Content(hash) => ModuleId::by_content(*hash, identity.fingerprint),
    };
    id.expect("an identity")
}
