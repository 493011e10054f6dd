//! Which modules are observed: the executable and what comes with it, or those that are named.
//!
//! What comes with an executable is its own code in libraries: those outside of the system's folders, whatever
//! search path leads there, and those that are called after it (libpython3.11 of python3.11, libperl of perl). A library
//! in a folder below the system's is its own only if it, or a library of its own, names it: others are parts of the
//! system's libraries (libpulsecommon of libpulse). The rest of the system is shared with everybody and observed on request only.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memchr::memmem;
use tomo_program::{Headers, Identity, Key, Needed, hexadecimal, is_static_in};
use tomo_wire::{FileStamp, ModuleId};

use crate::{Placed, Target};

/// What to observe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The executable and what comes with it.
    Own,
    /// The modules whose file names contain one of these, or whose paths these are; [`EVERY`](Self::EVERY) means all that are
    /// there at the start.
    Named(Vec<String>),
}

impl Choice {
    /// The name of all modules of the start, but for the loader.
    pub const EVERY: &str = "all";

    /// All of them.
    #[must_use]
    pub fn every() -> Self {
        Self::Named(vec![Self::EVERY.into()])
    }
}

/// A module to observe.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Its file, symbolic links followed.
    pub path: PathBuf,
    /// Which module it is.
    pub id: ModuleId,
    /// What files that belong to it are called.
    pub stem: String,
    /// The file as it is now.
    pub stamp: FileStamp,
    /// Whether the program may load it after its start.
    pub late: bool,
    /// Where the loader puts it, if that was asked.
    pub placed: Option<Placed>,
}

/// A module that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its file.
    pub path: PathBuf,
    /// Whether the program does not load it at its start, and so later if at all.
    pub late: bool,
    /// Where the loader puts it, if that was asked.
    pub placed: Option<Placed>,
}

impl Chosen {
    /// The executable, which is loaded far away from everything else.
    #[must_use]
    pub fn executable(target: &Target) -> Self {
        Self {
            path: target.executable.clone(),
            late: false,
            placed: None,
        }
    }
}

impl Observed {
    /// The module that was chosen.
    ///
    /// # Errors
    /// Where it cannot be read or is no ELF file.
    pub fn of(chosen: &Chosen) -> io::Result<Self> {
        let path = fs::canonicalize(&chosen.path)?;
        let file = File::open(&path)?;
        let found = file.metadata()?;
        let headers = Headers::read(&file, found.len())?;
        let headers = headers.ok_or_else(|| io::Error::other("is no ELF file"))?;
        let identity = match headers.identity() {
            Some(identity) => identity,
            None => headers.identity_of(&fs::read(&path)?),
        };
        let long = || io::Error::other("has a build id that is too long");
        Ok(Self {
            id: module_id(&identity).ok_or_else(long)?,
            stem: identity.file_stem(),
            stamp: stamp_of(&found),
            late: chosen.late,
            placed: chosen.placed,
            path,
        })
    }

    /// Whether it is `target` itself, and that is linked statically.
    pub(crate) fn is_program(&self, target: &Target) -> bool {
        let is_same = || fs::canonicalize(&target.executable).is_ok_and(|path| path == self.path);
        target.is_static() && is_same()
    }

    /// Its build id, or the hash of its content if it has none, in hexadecimal digits.
    #[must_use]
    pub fn name(&self) -> String {
        hexadecimal(self.id.name())
    }

    /// What its images in the cache are called after: the module, and where it has no build id the file that it is. The
    /// agent takes an image of such a module for that of one file, and of no copy.
    pub(crate) fn cached_as(&self) -> String {
        match self.id.build_id() {
            Some(_) => self.stem.clone(),
            None => format!("{}-of{:x}", self.stem, self.stamp.checksum()),
        }
    }

    /// Whether code of the module with these bytes runs where no trap may be met: with all signals blocked by system calls of its
    /// own, which nothing can keep from it (C libraries and their loaders, and the runtimes of
    /// sanitizers and of Go, wherever they are linked in), or at the end of a piece of a stack, where a signal's frame has no room. In
    /// a static program there is nobody who would handle one.
    pub(crate) fn bears_no_traps(&self, bytes: &[u8]) -> bool {
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        let holds = |text: &&[u8]| memmem::find(bytes, text).is_some();
        let is_library = C_LIBRARIES.iter().any(|start| name.starts_with(start));
        is_library || is_loader(&self.path) || is_static_in(bytes) || RUNTIMES.iter().any(holds)
    }
}

/// What the names of C libraries start with.
const C_LIBRARIES: [&[u8]; 3] = [b"libc.so", b"libc-", b"libpthread"];
/// And what those of their loaders do. Before glibc 2.34 `ld-linux-x86-64.so.2` is a link to `ld-2.31.so`.
const LOADERS: [&[u8]; 3] = [b"ld-linux", b"ld-musl", b"ld-2."];
/// What modules hold that have a sanitizer's runtime or Go's in them, the names of its sources, in messages; what QEMU says that
/// runs programs of other processors: it blocks all signals in what its handlers come back to; and what the runtime of stacks in
/// pieces (gcc's `-fsplit-stack`) says, which is linked into each module that has them: what such a stack has no room for lands
/// in its runtime's own data, and a frame with all wide registers takes more than it keeps free.
const RUNTIMES: [&[u8]; 4] = [
    b"sanitizer_common/sanitizer_",
    b"\xff Go buildinf:",
    b"qemu: uncaught target signal",
    b"unable to allocate additional stack space",
];

/// What tells of a file that it is still the one that was looked at.
pub(crate) fn stamp_of(found: &Metadata) -> FileStamp {
    // As the agent has them: what is centuries away wraps.
    let nanoseconds =
        |seconds: i64, more: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(more);
    FileStamp {
        device: found.dev().into(),
        inode: found.ino().into(),
        length: found.len().into(),
        modified: nanoseconds(found.mtime(), found.mtime_nsec()).into(),
        changed: nanoseconds(found.ctime(), found.ctime_nsec()).into(),
    }
}

/// An identity as formats state it.
fn module_id(identity: &Identity) -> Option<ModuleId> {
    match &identity.key {
        Key::BuildId(id) => ModuleId::by_build_id(id, identity.fingerprint),
        Key::Content(hash) => ModuleId::by_content(*hash, identity.fingerprint),
    }
}

/// What there is to observe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The modules.
    pub chosen: Vec<Chosen>,
    /// Names that mean none.
    pub missing: Vec<String>,
}

/// The modules of `target` that `choice` means, the executable first if it is one of them. A name
/// that no module has that is loaded at the start may be the path of a file or of a folder of modules that
/// come later; one that is neither is given back as missing.
///
/// # Errors
/// Where the loader cannot be asked.
pub fn modules(target: &Target, choice: &Choice) -> io::Result<Found> {
    let executable = &target.executable;
    let mut chosen = vec![Chosen::executable(target)];
    let mut missing = Vec::new();
    let mut libraries = match choice {
        _ if target.is_static() => Vec::new(),
        Choice::Own if needs_only_the_system(executable) => Vec::new(),
        _ => libraries(target)?,
    };
    match choice {
        Choice::Own => {
            libraries.retain(|library| comes_with(executable, &library.path));
            let paths: Vec<_> = libraries.iter().map(|one| one.path.as_path()).collect();
            let others = of_others(executable, &paths, needed_by);
            libraries.retain(|one| !others.contains(&one.path));
            chosen.extend(libraries);
        }
        Choice::Named(names) => {
            chosen.extend(libraries);
            let all = std::mem::take(&mut chosen);
            for name in names {
                let named = named(name, &all);
                if named.is_empty() {
                    missing.push(name.clone());
                }
                chosen.extend(named);
            }
        }
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|one| seen.insert(fs::canonicalize(&one.path).unwrap_or(one.path.clone())));
    Ok(Found { chosen, missing })
}

/// What `name` means, of the modules of the start or of those that may come later.
fn named(name: &str, at_start: &[Chosen]) -> Vec<Chosen> {
    let is_named = |one: &&Chosen| match name {
        Choice::EVERY => !is_loader(&one.path),
        _ => file_name(&one.path).to_string_lossy().contains(name),
    };
    match is_path(Path::new(name)) {
        true => modules_at(Path::new(name), at_start),
        false => at_start.iter().filter(is_named).cloned().collect(),
    }
}

/// The modules at `path`, or in the folder `path` and those below it: those of the start, but for the loader, and
/// those that may come later.
fn modules_at(path: &Path, at_start: &[Chosen]) -> Vec<Chosen> {
    let mut files = files_at(path);
    files.retain(|file| is_module(file));
    files.sort();
    let real = |path: &Path| fs::canonicalize(path).ok();
    let there: BTreeSet<_> = files.iter().filter_map(|file| real(file)).collect();
    let is_there = |one: &&Chosen| real(&one.path).is_some_and(|path| there.contains(&path));
    let is_meant = |one: &&Chosen| !(is_loader(&one.path) && path.is_dir());
    let early = at_start.iter().filter(is_there).filter(is_meant).cloned();
    let known: BTreeSet<_> = at_start.iter().map(|one| real(&one.path)).collect();
    let late = files.iter().filter(|file| !known.contains(&real(file)));
    let late = late.map(|path| Chosen {
        path: path.clone(),
        late: true,
        placed: None,
    });
    early.chain(late).collect()
}

/// What is in a folder, and in the folders below it that are no links; the path itself if it is none.
pub(crate) fn files_at(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else {
        return vec![path.to_path_buf()];
    };
    let below = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files_at(&entry.path()),
        _ => vec![entry.path()],
    };
    entries.flatten().flat_map(below).collect()
}

/// Whether what was named is a path, and not a part of the names of files.
#[must_use]
pub fn is_path(name: &Path) -> bool {
    let name = name.as_os_str().as_bytes();
    name.contains(&b'/') || name == b"." || name == b".."
}

/// Whether the file is an ELF shared object or program. What linkers take (`*.o`), which folders of builds are full of,
/// is neither.
pub(crate) fn is_module(path: &Path) -> bool {
    let read = || -> io::Result<bool> {
        // To open what is no file, such as a named pipe, might wait for somebody.
        let about = fs::metadata(path)?;
        if !about.is_file() {
            return Ok(false);
        }
        let headers = Headers::read(&File::open(path)?, about.len())?;
        Ok(headers.is_some_and(|headers| headers.is_loaded()))
    };
    read().unwrap_or(false)
}

/// The libraries that the loader would load at the start.
fn libraries(target: &Target) -> io::Result<Vec<Chosen>> {
    let output = Command::new(&target.interpreter)
        .arg("--list")
        .arg(&target.executable)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let listed: Vec<_> = lines.filter_map(listed).collect();
    let lowest = listed.iter().filter_map(|(_, base)| *base).min();
    let modules = listed.len();
    let each = listed.into_iter().map(|(path, base)| Chosen {
        path,
        late: false,
        placed: base.zip(lowest).map(|(base, lowest)| Placed {
            base,
            lowest,
            modules,
        }),
    });
    Ok(each.collect())
}

/// Path and address in a line such as `libm.so.6 => /lib/libm.so.6 (0x00007f…)`.
fn listed(line: &[u8]) -> Option<(PathBuf, Option<u64>)> {
    let line = line.trim_ascii();
    let start = line
        .windows(4)
        .position(|w| w == b" => ")
        .map_or(0, |at| at + 4);
    let rest = line.get(start..)?;
    let end = rest.windows(4).rposition(|w| w == b" (0x")?;
    let path = Path::new(OsStr::from_bytes(rest.get(..end)?));
    let digits = str::from_utf8(rest.get(end + 4..)?).ok()?.strip_suffix(')');
    let base = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    // What the loader found by a relative path is told so; what has no file at all by its name alone.
    let is_file = path.components().nth(1).is_some();
    Some((is_file.then(|| std::path::absolute(path).ok())??, base))
}

/// The folders whose libraries belong to the system.
const SYSTEM: [&str; 8] = [
    "/lib",
    "/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/local/lib",
    "/usr/local/lib/x86_64-linux-gnu",
];

/// What no program brings along: the C library and the compilers' runtimes, which need only one another.
const RUNTIME: [&[u8]; 12] = [
    b"libc.so.6",
    b"libm.so.6",
    b"libmvec.so.1",
    b"libdl.so.2",
    b"librt.so.1",
    b"libpthread.so.0",
    b"libresolv.so.2",
    b"libutil.so.1",
    b"libgcc_s.so.1",
    b"libstdc++.so.6",
    b"libatomic.so.1",
    b"ld-linux-x86-64.so.2",
];

/// Whether no library can come with the executable, so that the loader need not be asked, which is
/// as long as a short program takes.
fn needs_only_the_system(executable: &Path) -> bool {
    let told = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let needed = File::open(executable)
        .ok()
        .and_then(|file| Needed::of(&file));
    needed.is_some_and(|needed| {
        !needed.searches
            && needed
                .names
                .iter()
                .all(|name| RUNTIME.contains(&name.as_slice()))
            && !["LD_LIBRARY_PATH", "LD_AUDIT"].into_iter().any(told)
    })
}

fn comes_with(executable: &Path, library: &Path) -> bool {
    if RUNTIME.contains(&file_name(library).as_bytes()) {
        return false;
    }
    !is_of_the_system(library) || is_called_after(executable, library)
}

/// Those of the libraries that come with an executable which only the system's own libraries need: they lie in folders of the system's
/// that the loader does not search by itself (`/usr/lib/x86_64-linux-gnu/pulseaudio`), and neither the executable nor another library
/// that comes with it names them. `names` tells what a file names.
fn of_others(
    executable: &Path,
    libraries: &[&Path],
    names: impl Fn(&Path) -> Vec<Vec<u8>>,
) -> BTreeSet<PathBuf> {
    let is_private = |path: &&Path| SYSTEM.iter().any(|system| path.starts_with(system));
    let (mut others, own): (Vec<&Path>, Vec<&Path>) =
        libraries.iter().partition(|it| is_private(it));
    let mut fresh = own;
    fresh.push(executable);
    while !others.is_empty() && !fresh.is_empty() {
        let named: BTreeSet<Vec<u8>> = fresh.iter().flat_map(|path| names(path)).collect();
        let is_named = |path: &&Path| named.contains(file_name(path).as_bytes());
        (fresh, others) = others.into_iter().partition(is_named);
    }
    others.into_iter().map(Path::to_owned).collect()
}

/// What a file names to its loader.
fn needed_by(path: &Path) -> Vec<Vec<u8>> {
    let needed = File::open(path).ok().and_then(|file| Needed::of(&file));
    needed.unwrap_or_default().names
}

/// Whether the library is in one of the system's folders, be it for processors like this one (`ld.so(8)`, "Hardware capabilities"). A
/// search path relative to a program of the system's may lead there, too.
fn is_of_the_system(library: &Path) -> bool {
    let is_special = |folder: &&Path| folder.file_name() == Some(OsStr::new("glibc-hwcaps"));
    let special = library.ancestors().find(is_special);
    let folder = special.unwrap_or(library).parent();
    let folder = folder.unwrap_or(Path::new("/"));
    let is_one = |folder: &Path| SYSTEM.iter().any(|system| folder == Path::new(system));
    is_one(folder) || fs::canonicalize(folder).is_ok_and(|real| is_one(&real))
}

fn file_name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

fn is_called_after(executable: &Path, library: &Path) -> bool {
    let real = fs::canonicalize(executable).unwrap_or_else(|_| executable.into());
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let (Some(program), Some(library)) = (name(&real), name(library)) else {
        return false;
    };
    // As libperl of perl, libswipl of swipl, and libruby-3.1 of ruby3.1.
    let Some(own) = library.strip_prefix("lib") else {
        return false;
    };
    let joined = own.replace('-', "");
    let behind = |own: &str, next: &[char]| {
        own.strip_prefix(&program)
            .is_some_and(|rest| rest.starts_with(next))
    };
    behind(own, &['.', '-']) || behind(&joined, &['.'])
}

/// Whether the library is a dynamic loader.
pub(crate) fn is_loader(library: &Path) -> bool {
    let name = library.file_name().unwrap_or_default().as_bytes();
    LOADERS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::{comes_with, is_called_after, is_loader, listed, of_others, stamp_of};
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_file_of_the_far_future_has_a_stamp() {
        let file = tempfile::tempfile().expect("a file");
        let far = UNIX_EPOCH + Duration::from_secs(12_000_000_000);
        file.set_modified(far).expect("ours");
        let found = file.metadata().expect("a file");
        let modified = i128::from(found.mtime()) * 1_000_000_000;
        assert_eq!(stamp_of(&found).modified.get(), modified as i64);
    }

    #[test]
    fn what_only_the_systems_libraries_need_is_theirs() {
        let names = |path: &Path| -> Vec<Vec<u8>> {
            let needed: &[&str] = match path.to_str().unwrap_or_default() {
                "/usr/bin/prog" => &["liba.so", "libsound.so", "libc.so.6"],
                "/usr/lib/prog/liba.so" => &["libb.so"],
                "/opt/prog/libd.so" => &["libe.so"],
                _ => &[],
            };
            needed.iter().map(|name| name.as_bytes().to_vec()).collect()
        };
        let [own, next, other, far, late] = [
            "/usr/lib/prog/liba.so",
            "/usr/lib/prog/libb.so",
            "/usr/lib/x86_64-linux-gnu/sound/libcommon.so",
            "/opt/prog/libd.so",
            "/usr/lib/other/libe.so",
        ]
        .map(Path::new);
        let others = |libraries: &[&Path]| -> Vec<_> {
            let others = of_others(Path::new("/usr/bin/prog"), libraries, names);
            others.into_iter().collect()
        };
        assert_eq!(others(&[next, other, own]), [other]);
        assert_eq!(others(&[late, next]), [late, next]);
        assert!(others(&[late, far]).is_empty());
        assert_eq!(others(&[other]), [other]);
        assert!(others(&[]).is_empty());
    }

    #[test]
    fn loaders_are_known_by_their_names() {
        for name in ["ld-linux-x86-64.so.2", "ld-2.31.so", "ld-musl-x86_64.so.1"] {
            assert!(is_loader(&Path::new("/lib").join(name)), "{name}");
        }
        for name in ["ld-gold.so", "ldb.so", "libld-2.31.so", "ld-", ""] {
            assert!(!is_loader(&Path::new("/lib").join(name)), "{name}");
        }
    }

    #[test]
    fn lines_of_the_loader_name_files() {
        let path = |line: &str| listed(line.as_bytes()).map(|(path, _)| path);
        let absolute = Path::new("/lib/libm.so.6");
        assert_eq!(
            path("\tlibm.so.6 => /lib/libm.so.6 (0x1000)").as_deref(),
            Some(absolute)
        );
        assert_eq!(path("\t/lib/libm.so.6 (0x1000)").as_deref(), Some(absolute));
        let here = std::env::current_dir().expect("a folder");
        assert_eq!(
            path("\tliba.so => rel/liba.so (0x1000)"),
            Some(here.join("rel/liba.so"))
        );
        assert_eq!(path("\t./liba.so (0x1000)"), Some(here.join("liba.so")));
        assert_eq!(path("\tlinux-vdso.so.1 (0x1000)"), None);
        assert_eq!(path("\tliba.so => not found"), None);
    }

    #[test]
    fn the_systems_libraries_come_with_nobody_by_whatever_way_they_are_found() {
        let comes = |library: &str| comes_with(Path::new("/usr/bin/true"), Path::new(library));
        assert!(!comes("/usr/lib/libz.so.1"));
        assert!(!comes("/usr/bin/../lib/libz.so.1"));
        assert!(!comes("/usr/lib/../lib/libz.so.1"));
        assert!(!comes(
            "/usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3/libz.so.1"
        ));
        assert!(comes("/usr/bin/../lib/of-its-own/libz.so.1"));
        assert!(comes("/usr/bin/libz.so.1"));
        assert!(comes("/usr/lib/libtrue-1.so"));
    }

    #[test]
    fn libraries_are_called_after_their_program() {
        let called =
            |program: &str, library: &str| is_called_after(Path::new(program), Path::new(library));
        assert!(called("/no/python3.11", "/lib/libpython3.11.so.1.0"));
        assert!(called("/no/perl", "/lib/libperl.so.5.36"));
        assert!(called("/no/gs", "/lib/libgs-9.so"));
        assert!(called("/no/ruby3.1", "/lib/libruby-3.1.so.3.1"));
        assert!(!called("/no/ruby3.1", "/lib/libruby-3.10.so.3.10"));
        assert!(!called("/no/git", "/lib/libgit2.so.1.5"));
    }
}
