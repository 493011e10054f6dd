//! A site: a machine on which the program is installed, with a cache and states of its own.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;
use tomo_launch::{Chosen, How, Images, Master, Observed, Target, masters};
use tomo_protocol::{AssignedModule, Assignment, CampaignId, Name, News, Policy, Units};
use tomo_testkit::corpus::compiled;
use tomo_weave::Placement;
use tomo_wire::plan::{Level, PlanView};
use tomo_wire::report::name_of_plans;

/// The program: see `tests/programs/patient.c`.
pub(crate) fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("gcc", "patient.c", &["-O2"]).expect("built"))
}

/// What the program prints for this input when nobody looks.
pub(crate) fn alone(input: &str) -> Vec<u8> {
    finish(Command::new(program()), input).stdout
}

/// The same, linked statically.
fn static_program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("gcc", "patient.c", &["-O2", "-static"]).expect("built"))
}

pub(crate) struct Site {
    folder: TempDir,
    /// The program that is run.
    pub(crate) program: &'static Path,
    is_static: bool,
}

/// The master image of this program at block level.
fn master(program: &Path, cache: &Path) -> (String, Master) {
    let images = Images::in_cache(cache).expect("a cache");
    let target = Target::find(program.as_os_str(), None).expect("a program");
    let module = Observed::of(&Chosen::executable(&target)).expect("a module");
    let how = How {
        level: Level::Block,
        placement: Placement::All,
        stays: false,
    };
    let made = masters([(&module, how)], &images, &()).expect("an image");
    (module.stem.clone(), made.into_iter().next().expect("one"))
}

/// The functions that the program's source has.
fn own_functions(program: &Path) -> Vec<Range<u64>> {
    const NAMES: [&str; 5] = ["main", "first", "second", "third", "fourth"];
    let output = Command::new("nm").arg("-S").arg(program).output();
    let symbols = String::from_utf8(output.expect("nm").stdout).expect("text");
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let own = symbols.lines().filter_map(|line| {
        let [start, size, _, name] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let (start, size) = (number(start)?, number(size)?);
        NAMES.contains(&name).then_some(start..start + size)
    });
    own.collect()
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(program(), false)
    }

    fn with(program: &'static Path, is_static: bool) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            program,
            is_static,
        }
    }

    /// One with the program linked statically.
    pub(crate) fn of_static() -> Self {
        Self::with(static_program(), true)
    }

    /// One with the program as usual, and one where no agent can be loaded into it.
    pub(crate) fn each() -> [Self; 2] {
        [Self::new(), Self::of_static()]
    }

    /// Another build of the program.
    pub(crate) fn other_build(&self) -> PathBuf {
        let flags: &[_] = match self.is_static {
            true => &["-O1", "-static"],
            false => &["-O1"],
        };
        compiled("gcc", "patient.c", flags).expect("built")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// The folder of the state with this name.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An assignment of those probes of the program of which this is true. Of a static program only its source's own are assigned:
    /// what its C library executes depends on where the system puts its stack.
    pub(crate) fn assignment(&self, wanted: impl Fn(u32) -> bool) -> Assignment {
        let (stem, master) = master(self.program, &self.cache());
        let plan = std::fs::read(master.plan_path()).expect("a plan");
        let places = PlanView::read(&plan).expect("a plan").units;
        let own = own_functions(self.program);
        let is_assigned = |probe: &u32| {
            let place = places[*probe as usize].from.get();
            let is_own = !self.is_static || own.iter().any(|function| function.contains(&place));
            is_own && wanted(*probe)
        };
        let (plan, probes) = (Name(master.plan()), master.probes());
        Assignment {
            campaign: CampaignId([5; 16]),
            plans: Name(name_of_plans(&[plan.0.into()])),
            modules: vec![AssignedModule {
                stem,
                level: "block".into(),
                placement: "all".into(),
                plan,
                probes,
            }],
            variant: 4,
            units: Units::of((0..probes).filter(is_assigned)),
            policy: Policy::default(),
            interval_ms: 60_000,
            news: News {
                epoch: Name(0),
                upto: 0,
                units: Units::default(),
            },
        }
    }

    /// `tomo run` with this state and these flags, ready for a program.
    pub(crate) fn tomo(&self, url: &str, state: &str, flags: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
        command
            .env("TOMO_CACHE_DIR", self.cache())
            .env_remove("TOMO_STATE_DIR")
            .args([
                "run",
                "--collector",
                url,
                "--flush-timeout",
                "60",
                "--state",
            ])
            .arg(self.state(state))
            .args(flags);
        command
    }

    /// The program under `tomo run`.
    pub(crate) fn command(&self, url: &str, state: &str, flags: &[&str]) -> Command {
        let mut command = self.tomo(url, state, flags);
        command.arg("--").arg(self.program);
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, url: &str, state: &str, flags: &[&str], input: &str) -> Output {
        finish(self.command(url, state, flags), input)
    }

    /// Fetches the assignment and prepares.
    pub(crate) fn prepare(&self, url: &str, state: &str) {
        let output = self.run(url, state, &["--prepare"], "");
        assert!(output.status.success(), "{}", errors(&output));
    }

    /// Sends what waits; what it says of it.
    pub(crate) fn flush(&self, url: &str, state: &str) -> String {
        let output = finish(self.tomo(url, state, &["--flush-only"]), "");
        assert!(output.status.success(), "{}", errors(&output));
        String::from_utf8(output.stdout).expect("text")
    }

    /// How many files or folders there are in a folder of the state.
    pub(crate) fn count(&self, state: &str, folder: &str) -> usize {
        let entries = std::fs::read_dir(self.state(state).join(folder));
        entries.map_or(0, Iterator::count)
    }
}

/// Starts a command whose input and output are held here.
pub(crate) fn started(mut command: Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started")
}

pub(crate) fn finish(command: Command, input: &str) -> Output {
    tomo_testkit::coverage::complete(command, input.as_bytes()).expect("run")
}

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
