//! A directory with programs and a cache of its own, in which `tomo` runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use tomo_program::{Cache, Facts, Function, Headers, Key, Model};

/// Where `tomo` runs.
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

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl Said {
    /// What was said where all went well.
    pub(crate) fn well(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        self.out
    }

    /// The one line that was said where it did not.
    pub(crate) fn refusal(self) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(
            self.err.starts_with("tomo: ") && self.err.ends_with('\n'),
            "{self:?}"
        );
        self.err.trim_end().to_owned()
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `tomo` with these arguments, in this directory and with its cache.
    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.directory.path());
        command
            .env("TOMO_CACHE_DIR", self.path("cache"))
            .env("PATH", self.directory.path());
        command
    }

    pub(crate) fn tomo(&self, arguments: &[&str]) -> Said {
        let program = Path::new(env!("CARGO_BIN_EXE_tomo"));
        self.command(program, arguments)
            .output()
            .expect("tomo runs")
            .into()
    }

    /// The same by a user who may not read everything, whoever runs the tests.
    pub(crate) fn tomo_as_nobody(&self, arguments: &[&str]) -> Said {
        let program = self.path("tomo-for-all");
        fs::copy(env!("CARGO_BIN_EXE_tomo"), &program).expect("copied");
        for path in [self.directory.path(), &program] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("ours");
        }
        let mut command = self.command(&program, arguments);
        if fs::metadata("/proc/self")
            .is_ok_and(|ours| std::os::unix::fs::MetadataExt::uid(&ours) == 0)
        {
            command.uid(65_534).gid(65_534);
        }
        command.output().expect("tomo runs").into()
    }

    /// Whether anything has been kept in the cache.
    pub(crate) fn cache_is_untouched(&self) -> bool {
        !self.path("cache").exists()
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("written");
    }

    /// A file that passes for a program, whose model, as if analysed before, is this one: what
    /// `tomo` shows of it depends on no compiler and no analysis.
    pub(crate) fn program_with(&self, name: &str, functions: Vec<Function>, facts: Facts) {
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        self.write(name, &bytes);
        let file = fs::File::open(self.path(name)).expect("just written");
        let headers = Headers::read(&file, bytes.len() as u64)
            .expect("readable")
            .expect("ELF headers");
        let identity = headers.identity_of(&bytes);
        let Key::Content(content) = identity.key else {
            panic!("it has no build id");
        };
        let facts = Facts {
            fingerprint: identity.fingerprint,
            content,
            ..facts
        };
        let cache = Cache::at(self.path("cache"));
        cache
            .keep(&identity, &Model::build(functions, facts))
            .expect("kept");
    }

    /// A program compiled from C.
    pub(crate) fn compile(&self, name: &str, source: &str, flags: &[&str]) -> Vec<u8> {
        self.write("source.c", source.as_bytes());
        let mut compiler = Command::new("cc");
        compiler
            .args(flags)
            .arg("-o")
            .arg(self.path(name))
            .arg(self.path("source.c"));
        assert!(compiler.status().expect("cc runs").success());
        fs::read(self.path(name)).expect("compiled")
    }
}
