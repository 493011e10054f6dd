//! Files and folders that nobody else can write.
//!
//! An image is code that the program will run, and a roster says which image: whoever can write one
//! of them, replace it, or replace a folder above it, commands the program. So they are made for
//! their owner alone, and what others could have put there is refused.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{IFlags, fstatfs, ioctl_getflags, ioctl_setflags};
use tomo_program::{CLOSED, PASSABLE, make_folder};

/// Why a folder is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum NotPrivate {
    /// The system said no.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// It belongs to somebody else.
    #[error("{}: belongs to another user; images are code, so they must be your own", .0.display())]
    Foreign(PathBuf),
    /// Others may write it.
    #[error("{}: others may write there; images are code, so only you may (chmod go-w)", .0.display())]
    Writable(PathBuf),
}

/// A file that its owner may write and everybody may read.
const FOR_ALL: u32 = 0o644;
/// How old a file is that nobody writes any more.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);
const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Makes `folder` for this user alone where it is missing, and checks it and every folder above.
/// Gives its real path.
///
/// # Errors
/// Where it cannot be made, or where somebody else could change what is in it.
pub(crate) fn folder(path: &Path) -> Result<PathBuf, NotPrivate> {
    provided(path, CLOSED)
}

/// The same, and others may pass through: a folder with the agent, of whose file other users' processes know once they are
/// started by one that was armed. All else in it is for its owner alone.
///
/// # Errors
/// As for [`folder`].
pub(crate) fn passage(path: &Path) -> Result<PathBuf, NotPrivate> {
    provided(path, PASSABLE)
}

fn provided(path: &Path, mode: u32) -> Result<PathBuf, NotPrivate> {
    let io = |error| NotPrivate::Io(path.into(), error);
    make_folder(path, mode).map_err(io)?;
    let real = fs::canonicalize(path).map_err(io)?;
    keep_in_place(&File::open(&real).map_err(io)?);
    check(&real)?;
    Ok(real)
}

/// Checks that `real`, without symbolic links, belongs to this user, and that nobody else can
/// replace it or what is in it.
fn check(real: &Path) -> Result<(), NotPrivate> {
    let me = nix::unistd::geteuid().as_raw();
    let status = |path: &Path| fs::metadata(path).map_err(|e| NotPrivate::Io(path.into(), e));
    let own = status(real)?;
    if own.uid() != me {
        return Err(NotPrivate::Foreign(real.into()));
    }
    if own.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(NotPrivate::Writable(real.into()));
    }
    for above in real.ancestors().skip(1) {
        let found = status(above)?;
        if found.uid() != me && found.uid() != 0 {
            return Err(NotPrivate::Foreign(above.into()));
        }
        // In a sticky folder others may write, but not rename or remove what is mine.
        if found.mode() & WRITABLE_BY_OTHERS != 0 && found.mode() & STICKY == 0 {
            return Err(NotPrivate::Writable(above.into()));
        }
    }
    Ok(())
}

/// Whether a file belongs to this user and only they may write it.
pub(crate) fn is_private(found: &Metadata) -> bool {
    found.is_file()
        && found.uid() == nix::unistd::geteuid().as_raw()
        && found.mode() & WRITABLE_BY_OTHERS == 0
}

/// A new file for this user alone; it must not exist.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    keep_in_place(&file);
    Ok(file)
}

/// What is stored in a new file, or in those that will be made in a folder, stays where it is on the disk, as far as that can be had.
/// Btrfs would put each page elsewhere that is stored once more, and needs room for that whatever was set aside: where there is
/// none left, a store into a mapped page ends the program that makes it.
pub(crate) fn keep_in_place(file: &File) {
    const BTRFS: i64 = 0x9123_683e;
    if fstatfs(file).is_ok_and(|found| found.f_type == BTRFS)
        && let Ok(flags) = ioctl_getflags(file)
    {
        let _ = ioctl_setflags(file, flags | IFlags::NOCOW);
    }
}

/// Opens a file of this user's, which is no symbolic link. Of a pipe it is not waited for who writes into it.
pub(crate) fn open(path: &Path, write: bool) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(path)?;
    if is_private(&file.metadata()?) {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "belongs to another user, or others may write it",
        ))
    }
}

/// Writes a file at once: whoever opens `path` finds the old content or the new one, whole.
pub(crate) fn replace(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    by_way_of(path, |temporary| {
        write_all(temporary, parts)?;
        fs::rename(temporary, path)
    })
}

/// The same for what later runs execute, or rely on: it is on the disk before it has its name. A machine that stops
/// just now would else leave a file of the right length, and zeros in it.
pub(crate) fn install(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    sweep(path);
    by_way_of(path, |temporary| {
        write_all(temporary, parts)?.sync_data()?;
        fs::rename(temporary, path)
    })
}

/// [Installs](install) a file that others may read.
pub(crate) fn install_for_all(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    by_way_of(path, |temporary| {
        let file = write_all(temporary, parts)?;
        file.set_permissions(Permissions::from_mode(FOR_ALL))?;
        file.sync_data()?;
        fs::rename(temporary, path)
    })
}

/// Whether a file is [private](is_private), and may be read by all.
pub(crate) fn is_for_all(found: &Metadata) -> bool {
    is_private(found) && found.mode() & FOR_ALL == FOR_ALL
}

/// [Installs](install) a file unless there is one.
pub(crate) fn provide(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    provide_by(path, |temporary| write_all(temporary, parts))
}

/// The same of a file that `write` makes.
pub(crate) fn provide_by(
    path: &Path,
    write: impl FnOnce(&Path) -> io::Result<File>,
) -> io::Result<()> {
    let written = by_way_of(path, |temporary| {
        write(temporary)?.sync_data()?;
        fs::hard_link(temporary, path)
    });
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Does `write` with a name beside `path`, of which nothing is left.
fn by_way_of(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary(path);
    let written = write(&temporary);
    // Gone already if it was renamed.
    let _ = fs::remove_file(&temporary);
    written
}

fn write_all(path: &Path, parts: &[&[u8]]) -> io::Result<File> {
    let mut file = create(path)?;
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    allocate(&file, length as u64)?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    Ok(file)
}

/// Has the disk set aside room for `length` bytes, so that no store into the mapped file can fail
/// later: that would end the program that makes it.
pub(crate) fn allocate(file: &File, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    let length = nix::libc::off_t::try_from(length).map_err(io::Error::other)?;
    Ok(nix::fcntl::posix_fallocate(file, 0, length)?)
}

/// Removes what processes that were killed have left beside `path` of files that they wrote. That a process is gone is
/// believed only after a day: it may be one that cannot be seen from here.
fn sweep(path: &Path) {
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(writer) else {
            continue;
        };
        let is_old = |found: &Metadata| {
            let age = found.modified().ok().and_then(|time| time.elapsed().ok());
            is_private(found) && age.is_some_and(|age| age > ABANDONED)
        };
        let is_gone = !Path::new("/proc").join(process.to_string()).exists();
        if is_gone && entry.metadata().is_ok_and(|found| is_old(&found)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The process that writes the file that is called so for the time being: see [`temporary`].
fn writer(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix('.')?.rsplitn(3, '.');
    let _: u64 = parts.next()?.parse().ok()?;
    let process = parts.next()?.parse().ok()?;
    parts.next().map(|_| process)
}

/// A name beside `path` that no other thread or process uses.
fn temporary(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{number}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_the_killed_have_left_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut gone = std::process::Command::new("true").spawn().expect("run");
        let dead = gone.id();
        gone.wait().expect("gone");
        let here = std::process::id();
        let day = SystemTime::now() - 2 * ABANDONED;
        let made = |name: String, time| {
            let file = create(&folder.path().join(&name)).expect("made");
            file.set_modified(time).expect("ours");
            name
        };
        let left = [
            made(format!(".a.image.{dead}.0"), SystemTime::now()),
            made(format!(".a.image.{here}.0"), day),
            made(format!("a.image.{dead}.0"), day),
            made(".a.image".to_owned(), day),
        ];
        let swept = made(format!(".other.plan.{dead}.12"), day);
        install(&folder.path().join("b.image"), &[b"it"]).expect("written");
        assert!(!folder.path().join(swept).exists());
        for name in left {
            assert!(folder.path().join(&name).exists(), "{name}");
        }
        assert_eq!(
            fs::read(folder.path().join("b.image")).expect("there"),
            b"it"
        );
    }
}
