//! Which executable a command is, and whether it can be observed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{AccessFlags, eaccess};
use tomo_program::is_static;

use crate::modules::is_loader;

/// A command that can be started and observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path of the command.
    pub command: PathBuf,
    /// Whether it is a script that names no interpreter that can be, so that it takes a shell to start it, as `execvp(3)` does.
    pub by_shell: bool,
    /// What runs, and is observed: the same, or the interpreter of a script.
    pub executable: PathBuf,
    /// The dynamic loader that the executable asks for; empty if it asks for none.
    pub interpreter: PathBuf,
}

/// Why a command cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// There is no such command.
    #[error("{}: no such program", .0.display())]
    NotFound(PathBuf),
    /// There is, but it cannot be run.
    #[error("{path}: {1}", path = .0.display())]
    Unusable(PathBuf, io::Error),
    /// It is neither a program for this system nor a script.
    #[error("{}: is no 64-bit x86 Linux program and no script", .0.display())]
    Foreign(PathBuf),
    /// Nothing loads libraries into it.
    #[error(
        "{}: is statically linked, so no agent can be loaded into it; `tomo cover`, `tomo trace` and, in campaigns of coverage, `tomo run` observe such programs where they start them themselves",
        .0.display()
    )]
    Static(PathBuf),
    /// Nothing starts it: it is loaded by programs.
    #[error(
        "{}: is a shared library, and no program; name it by --module, with a program that loads it",
        .0.display()
    )]
    Library(PathBuf),
    /// It is what loads programs.
    #[error("{}: is a dynamic loader; name the program that it is to load", .0.display())]
    Loader(PathBuf),
    /// It runs with another user's or group's rights, or with capabilities.
    #[error(
        "{path}: runs with raised privileges ({1}); the loader lets nothing into such programs, and nothing is armed in them",
        path = .0.display()
    )]
    Privileged(PathBuf, &'static str),
    /// The loader that it names is not there, so the system cannot start it.
    #[error("{path}: its dynamic loader, {loader}, is not there", path = .0.display(), loader = .1.display())]
    NoLoader(PathBuf, PathBuf),
    /// Interpreters that are scripts themselves, too many of them.
    #[error("{}: its interpreters are scripts, one after the other", .0.display())]
    Nested(PathBuf),
}

impl TargetError {
    /// Whether there is nothing to start, for which shells exit with 127.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::NoLoader(..))
    }
}

/// What runs scripts that name no interpreter.
const SHELL: &str = "/bin/sh";

/// Scripts that may be run by scripts, as the kernel counts.
const DEEPEST: usize = 5;

/// Options of loaders with which they load and start a program: those that the next word belongs to, and those that stand alone.
const WITH_VALUE: [&str; 6] = [
    "--library-path",
    "--glibc-hwcaps-prepend",
    "--glibc-hwcaps-mask",
    "--audit",
    "--preload",
    "--argv0",
];
const PLAIN: [&str; 1] = ["--inhibit-cache"];

impl Target {
    /// The program that `loader`, a dynamic loader that is called by hand, is to load, as its `arguments` say (`ld.so(8)`).
    ///
    /// # Errors
    /// Where they name none that can be observed.
    pub fn loaded_by(loader: &OsStr, arguments: &[OsString]) -> Result<Self, TargetError> {
        let command = PathBuf::from(loader);
        let mut rest = arguments.iter();
        let program = loop {
            match rest.next() {
                Some(option) if WITH_VALUE.iter().any(|one| option == one) => _ = rest.next(),
                Some(option) if PLAIN.iter().any(|one| option == one) => {}
                Some(program) if !program.as_bytes().starts_with(b"-") => break program,
                // It loads nothing, or it is not known how.
                _ => return Err(TargetError::Loader(command)),
            }
        };
        match look(Path::new(program))? {
            Kind::Program(interpreter) if !interpreter.as_os_str().is_empty() => Ok(Self {
                by_shell: false,
                executable: program.into(),
                interpreter: command.clone(),
                command,
            }),
            _ => Err(TargetError::Loader(command)),
        }
    }

    /// Whether nothing can be loaded into it.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.interpreter.as_os_str().is_empty()
    }

    /// The program that a shell would run for `command`, found on `path` unless it has a slash. It may be linked statically: then
    /// no loader is named.
    ///
    /// # Errors
    /// Where there is none, or it cannot be observed.
    pub fn find(command: &OsStr, path: Option<&OsStr>) -> Result<Self, TargetError> {
        let command = locate(command, path)?;
        let mut executable = command.clone();
        let mut by_shell = false;
        for _ in 0..DEEPEST {
            match look(&executable)? {
                Kind::Program(interpreter) => {
                    return Ok(Self {
                        command,
                        by_shell,
                        executable,
                        interpreter,
                    });
                }
                Kind::Script(interpreter) => executable = through_env(interpreter, path)?,
                // The kernel starts neither it nor a script that names it.
                Kind::Text => {
                    by_shell = true;
                    executable = SHELL.into();
                }
            }
        }
        Err(TargetError::Nested(command))
    }

    /// What is executed to start it, called as `name` if that is its own choice, without the arguments; and what that is called.
    pub(crate) fn start<'n>(&self, name: &'n OsStr) -> (Command, &'n OsStr) {
        let (program, name) = match self.by_shell {
            true => (Path::new(SHELL), OsStr::new(SHELL)),
            false => (&*self.command, name),
        };
        let mut command = Command::new(program);
        command.arg0(name);
        if self.by_shell {
            command.arg(&self.command);
        }
        (command, name)
    }

    /// The same where an agent is to be loaded into the program, which takes one that is linked dynamically.
    ///
    /// # Errors
    /// Where there is none, or it cannot be observed so.
    pub fn find_dynamic(command: &OsStr, path: Option<&OsStr>) -> Result<Self, TargetError> {
        match Self::find(command, path)? {
            found if found.is_static() => Err(TargetError::Static(found.executable)),
            found => Ok(found),
        }
    }
}

fn locate(command: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, TargetError> {
    if command.as_bytes().contains(&b'/') {
        return Ok(command.into());
    }
    on_path(command, path).ok_or_else(|| TargetError::NotFound(command.into()))
}

/// The first file of this name in the folders of `path` that this process may execute, as `execvp(3)` finds it, where no path is set,
/// too.
#[must_use]
pub fn on_path(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    const WITHOUT: &str = "/bin:/usr/bin";
    std::env::split_paths(path.unwrap_or(OsStr::new(WITHOUT)))
        .map(|folder| folder.join(name))
        .find(|candidate| fs::metadata(candidate).is_ok_and(|found| is_runnable(candidate, &found)))
}

fn is_runnable(path: &Path, found: &Metadata) -> bool {
    found.is_file() && eaccess(path, AccessFlags::X_OK).is_ok()
}

enum Kind {
    /// With its dynamic loader, if it has one.
    Program(PathBuf),
    Script(Interpreter),
    /// Perhaps a script that names no interpreter.
    Text,
}

/// What the first line of a script names.
struct Interpreter {
    path: PathBuf,
    argument: Option<OsString>,
}

/// `#!/usr/bin/env python3` runs python3.
fn through_env(interpreter: Interpreter, path: Option<&OsStr>) -> Result<PathBuf, TargetError> {
    let is_env = interpreter.path.file_name() == Some(OsStr::new("env"));
    match interpreter.argument {
        Some(command) if is_env => {
            let text = command.to_string_lossy();
            let words = text.split_whitespace();
            let plain = |word: &&str| !word.starts_with('-') && !word.contains('=');
            let command = words.into_iter().find(plain).unwrap_or("env").to_owned();
            locate(OsStr::new(&command), path)
        }
        _ => Ok(interpreter.path),
    }
}

fn look(path: &Path) -> Result<Kind, TargetError> {
    let unusable = |error| match error {
        error if io::Error::kind(&error) == io::ErrorKind::NotFound => {
            TargetError::NotFound(path.into())
        }
        error if error.kind() == io::ErrorKind::UnexpectedEof => {
            let cut = io::Error::new(
                error.kind(),
                "is cut short: its headers name what lies behind its end",
            );
            TargetError::Unusable(path.into(), cut)
        }
        error => TargetError::Unusable(path.into(), error),
    };
    let found = fs::metadata(path).map_err(unusable)?;
    if !is_runnable(path, &found) {
        return Err(unusable(match found.is_dir() {
            true => io::ErrorKind::IsADirectory.into(),
            false => io::Error::new(io::ErrorKind::PermissionDenied, "is not executable"),
        }));
    }
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let unreadable = "may be executed but not read, so it cannot be observed";
            unusable(io::Error::new(error.kind(), unreadable))
        }
        _ => unusable(error),
    })?;
    let mut head = [0; 256];
    let read = file.read_at(&mut head, 0).map_err(unusable)?;
    let head = &head[..read];
    if let Some(line) = head.strip_prefix(b"#!") {
        return Ok(script(line).unwrap_or(Kind::Text));
    }
    // As shells tell it: the first line of what is no script has a zero byte.
    let first = head.split(|byte| *byte == b'\n').next();
    if !first.is_some_and(|line| line.contains(&0)) {
        return Ok(Kind::Text);
    }
    let header = Header::read(head).ok_or_else(|| TargetError::Foreign(path.into()))?;
    if let Some(how) = privileges(path, &found) {
        return Err(TargetError::Privileged(path.into(), how));
    }
    let interpreter = header.interpreter(&file).map_err(unusable)?;
    match interpreter {
        Some(loader) if !loader.exists() => Err(TargetError::NoLoader(path.into(), loader)),
        None if fs::canonicalize(path).is_ok_and(|real| is_loader(&real)) => {
            Err(TargetError::Loader(path.into()))
        }
        loader => match (loader, is_static(&file)) {
            (_, true) => Ok(Kind::Program(PathBuf::new())),
            (Some(loader), false) => Ok(Kind::Program(loader)),
            (None, false) => Err(TargetError::Library(path.into())),
        },
    }
}

fn script(line: &[u8]) -> Option<Kind> {
    let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace);
    let (path, argument) = line.split_at(end.unwrap_or(line.len()));
    let argument = argument.trim_ascii();
    Some(Kind::Script(Interpreter {
        path: (!path.is_empty()).then(|| OsStr::from_bytes(path).into())?,
        argument: (!argument.is_empty()).then(|| OsStr::from_bytes(argument).into()),
    }))
}

/// How a program would get more rights than who starts it has.
fn privileges(path: &Path, found: &Metadata) -> Option<&'static str> {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2010;
    let me = (
        nix::unistd::geteuid().as_raw(),
        nix::unistd::getegid().as_raw(),
    );
    let mode = found.permissions().mode();
    if mode & SET_USER != 0 && found.uid() != me.0 {
        Some("set-user-ID")
    } else if mode & SET_GROUP == SET_GROUP && found.gid() != me.1 {
        Some("set-group-ID")
    } else if me.0 != 0 && has_capabilities(path) {
        Some("file capabilities")
    } else {
        None
    }
}

fn has_capabilities(path: &Path) -> bool {
    xattr::get(path, "security.capability").is_ok_and(|value| value.is_some())
}

/// What of an ELF header tells where the program headers are.
struct Header {
    offset: u64,
    count: u16,
}

/// Bytes of a program header; the kernel starts nothing that says otherwise.
const PROGRAM_HEADER: u16 = 56;

impl Header {
    /// Of a 64-bit little-endian x86-64 executable or shared object.
    fn read(head: &[u8]) -> Option<Self> {
        let short = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
        let elf = head.starts_with(b"\x7fELF\x02\x01");
        let (kind, machine) = (short(16)?, short(18)?);
        let offset = u64::from_le_bytes(head.get(32..40)?.try_into().ok()?);
        let is_sized = short(54)? == PROGRAM_HEADER;
        (elf && is_sized && (kind == 2 || kind == 3) && machine == 62).then_some(Self {
            offset,
            count: short(56)?,
        })
    }

    /// The loader that the file names.
    fn interpreter(&self, file: &File) -> io::Result<Option<PathBuf>> {
        const DYNAMIC: [u8; 4] = 2_u32.to_le_bytes();
        const INTERPRETER: [u8; 4] = 3_u32.to_le_bytes();
        let size = usize::from(PROGRAM_HEADER);
        let mut table = vec![0; size * usize::from(self.count)];
        file.read_exact_at(&mut table, self.offset)?;
        let entries = || table.chunks_exact(size);
        let word = |entry: &[u8], at: usize| {
            let bytes = entry
                .get(at..at + 8)
                .and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        // What is loaded is told from what is not by the dynamic section, if there is one.
        let length = file.metadata()?.len();
        let is_missing = |entry: &[u8]| word(entry, 8).saturating_add(word(entry, 32)) > length;
        if entries().any(|entry| entry.starts_with(&DYNAMIC) && is_missing(entry)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(entry) = entries().find(|entry| entry.starts_with(&INTERPRETER)) else {
            return Ok(None);
        };
        let mut path = vec![0; word(entry, 32).min(4096) as usize];
        file.read_exact_at(&mut path, word(entry, 8))?;
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Some(OsStr::from_bytes(path).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Target, TargetError};
    use std::ffi::OsStr;

    fn refused(flags: &[&str]) -> Option<TargetError> {
        let folder = tempfile::tempdir().expect("a folder");
        let [source, built] = ["source.c", "built"].map(|name| folder.path().join(name));
        std::fs::write(&source, "void _start(void) {}\n").expect("written");
        let mut compiler = std::process::Command::new("gcc");
        compiler.arg(&source).args(flags).arg("-o").arg(&built);
        assert!(compiler.status().expect("gcc").success());
        Target::find_dynamic(built.as_os_str(), None).err()
    }

    /// They name no loader either, as static programs do not.
    #[test]
    fn shared_libraries_are_said_to_be_such() {
        let library = ["-shared", "-fPIC", "-D_start=function", "-Wl,-e,0"];
        let needs = [&library[..], &["-Wl,--no-as-needed", "-lc"]].concat();
        let alone = [&library[..], &["-nostdlib"]].concat();
        for flags in [needs, alone] {
            let error = refused(&flags);
            assert!(matches!(error, Some(TargetError::Library(_))), "{error:?}");
        }
        let named = refused(&["-shared", "-fPIC", "-nostdlib", "-Wl,-soname,one"]);
        assert!(matches!(named, Some(TargetError::Library(_))), "{named:?}");
        for flag in ["-static", "-static-pie"] {
            let error = refused(&[flag, "-nostdlib", "-fPIE"]);
            assert!(matches!(error, Some(TargetError::Static(_))), "{error:?}");
        }
    }

    #[test]
    fn of_a_loader_the_program_is_found_that_it_is_to_load() {
        let loader = OsStr::new("/lib64/ld-linux-x86-64.so.2");
        let error = Target::find(loader, None).err();
        assert!(matches!(error, Some(TargetError::Loader(_))), "{error:?}");
        let loaded = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| word.into()).collect();
            Target::loaded_by(loader, &words)
        };
        for words in [
            &["/bin/true", "--list"][..],
            &["--argv0", "other", "--inhibit-cache", "/bin/true"],
        ] {
            let found = loaded(words).expect("a program");
            assert_eq!(found.executable, std::path::Path::new("/bin/true"));
            assert_eq!(
                (&*found.command, &*found.interpreter),
                (loader.as_ref(), loader.as_ref())
            );
        }
        for words in [
            &["--list", "/bin/true"][..],
            &["--argv0"],
            &[],
            &["/no/program"],
        ] {
            assert!(loaded(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_name_is_looked_for_where_execvp_looks() {
        let there = super::on_path(OsStr::new("sh"), None).expect("a shell");
        assert_eq!(there, std::path::Path::new("/bin/sh"));
        let folder = tempfile::tempdir().expect("a folder");
        // What may not be executed hides nothing behind it.
        std::fs::write(folder.path().join("sh"), "text").expect("written");
        let path = format!("{}:/usr/bin", folder.path().display());
        let found = super::on_path(OsStr::new("sh"), Some(path.as_ref()));
        assert_eq!(found.as_deref(), Some("/usr/bin/sh".as_ref()));
        assert_eq!(super::on_path(OsStr::new("no-such-program"), None), None);
    }

    /// Nobody is denied anything of a text; it only is not marked as a program.
    #[test]
    fn a_file_that_is_not_executable_is_said_to_be_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("text");
        std::fs::write(&text, "words\n").expect("written");
        let why = |path: &OsStr| {
            Target::find_dynamic(path, None)
                .err()
                .map(|error| error.to_string())
        };
        let said = format!("{}: is not executable", text.display());
        assert_eq!(why(text.as_os_str()), Some(said));
        let said = format!("{}: is a directory", folder.path().display());
        assert_eq!(why(folder.path().as_os_str()), Some(said));
    }

    /// The first header is that of a program whose loader's name, and nothing else, lies behind it.
    fn program_with_loader(name: &str) -> Vec<u8> {
        let mut bytes = vec![0; 120];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        for (at, value) in [(16, 3), (18, 62), (32, 64), (54, 56), (56, 1), (64, 3)] {
            bytes[at] = value;
        }
        bytes[64 + 8] = 120;
        bytes[64 + 32] = name.len() as u8;
        bytes.extend(name.as_bytes());
        bytes
    }

    #[test]
    fn a_program_without_its_loader_or_end_is_said_to_be_so() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("program");
        let refused = |bytes: &[u8]| {
            std::fs::write(&program, bytes).expect("written");
            let runnable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&program, runnable).expect("made runnable");
            let error = Target::find_dynamic(program.as_os_str(), None).err()?;
            Some((error.is_missing(), error.to_string()))
        };
        let name = program.display();
        let bytes = program_with_loader("/no/ld.so");
        let said = format!("{name}: its dynamic loader, /no/ld.so, is not there");
        assert_eq!(refused(&bytes), Some((true, said)));
        let said = format!("{name}: is cut short: its headers name what lies behind its end");
        assert_eq!(refused(&bytes[..100]), Some((false, said.clone())));
        let mut bytes = program_with_loader("what is needed");
        bytes[64] = 2;
        assert_eq!(refused(&bytes[..122]), Some((false, said)));
        let mut bytes = program_with_loader("/proc/self/exe");
        assert_eq!(refused(&bytes), None);
        // A table of them would take gigabytes, and no kernel reads it.
        bytes[54..58].fill(0xff);
        let said = format!("{name}: is no 64-bit x86 Linux program and no script");
        assert_eq!(refused(&bytes), Some((false, said)));
    }
}
