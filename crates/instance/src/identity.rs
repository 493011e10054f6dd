//! Who an installation is: a random number, drawn once for the place where the folder lies.
//!
//! Folders are copied: in the image of a machine or of a container, by a backup that comes back. Copies would then give the
//! numbers of runs that others have given, and of two runs of one number a collector counts one. So it is written down where the
//! folder was when the number was drawn, and a folder that is found elsewhere draws anew. One that was only moved to
//! another file system does, too: that costs the fleet nothing but an installation that is not heard of again.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::sys::statfs::fstatfs;
use tomo_protocol::InstanceId;

use crate::state::{StateError, at, lockable, replace, temporary, write};

/// The name of the file with the number.
const INSTANCE: &str = "instance";
/// The name of the one that says where that was when the number was drawn.
const PLACE: &str = "place";

/// Who the installation with this folder is. It is drawn if that is not known; whoever draws first has drawn for
/// all. `lock` is the lock of what changes in the folder.
pub(crate) fn identity(folder: &Path, lock: &Path) -> Result<InstanceId, StateError> {
    let path = folder.join(INSTANCE);
    if read(&path)?.is_none() {
        let drawn = draw(&path)?;
        let linked = fs::hard_link(&drawn, &path);
        let _ = fs::remove_file(&drawn);
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked.map_err(at(&path))?,
        }
    }
    if let Some(id) = found(folder)? {
        return Ok(id);
    }
    let file = lockable(lock).map_err(at(lock))?;
    let _lock = Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, error)| StateError::Io(lock.into(), error.into()))?;
    // Somebody else may have been here in the meantime.
    if let Some(id) = found(folder)? {
        return Ok(id);
    }
    let drawn = draw(&path)?;
    fs::rename(&drawn, &path).map_err(at(&path))?;
    settle(folder, &path)?;
    read(&path)?.ok_or_else(|| none(&path))
}

/// The number, unless it was drawn for another place. Where none is written down it is this one, from now on.
fn found(folder: &Path) -> Result<Option<InstanceId>, StateError> {
    let path = folder.join(INSTANCE);
    let id = read(&path)?.ok_or_else(|| none(&path))?;
    let Ok(noted) = fs::read_to_string(folder.join(PLACE)) else {
        settle(folder, &path)?;
        return Ok(Some(id));
    };
    Ok((noted == place(&path)?).then_some(id))
}

/// Writes down that the number is of this place.
fn settle(folder: &Path, path: &Path) -> Result<(), StateError> {
    let note = folder.join(PLACE);
    replace(&note, place(path)?.as_bytes()).map_err(at(&note))
}

/// Draws a number into a file of its own, which is on the disk then: an instance that lost its number would be another one, or
/// none.
fn draw(path: &Path) -> Result<std::path::PathBuf, StateError> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| at(path)(io::Error::other(error.to_string())))?;
    let temporary = temporary(path);
    let written = write(&temporary, InstanceId(id).to_string().as_bytes());
    let kept = written.and_then(|file| file.sync_all());
    if let Err(error) = kept {
        let _ = fs::remove_file(&temporary);
        return Err(at(path)(error));
    }
    Ok(temporary)
}

fn read(path: &Path) -> Result<Option<InstanceId>, StateError> {
    match fs::read_to_string(path) {
        Ok(text) => text.trim().parse().map(Some).map_err(|_| none(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

fn none(path: &Path) -> StateError {
    StateError::Form(path.into(), INSTANCE)
}

/// What names the place of a file: the machine, and the file in it. What a copy has of its own.
fn place(path: &Path) -> Result<String, StateError> {
    let file = File::open(path).map_err(at(path))?;
    let inode = match has_lasting_numbers(&file) {
        true => file.metadata().map_err(at(path))?.ino(),
        false => 0,
    };
    let named = format!("{}\n{inode}", machine());
    Ok(format!("{:016x}", tomo_wire::checksum(named.as_bytes())))
}

/// What names this machine; a container that has no name of this kind, as most have none, is told by what it is called.
fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let id = read("/etc/machine-id");
    match id.trim() {
        "" | "uninitialized" => read("/proc/sys/kernel/hostname"),
        id => id.to_owned(),
    }
}

/// Whether files keep their numbers in this file system. Those that are served by a process or another machine may not.
fn has_lasting_numbers(file: &File) -> bool {
    const SMB2: i64 = 0xfe53_4d42;
    const CIFS: i64 = 0xff53_4d42;
    const PLAN9: i64 = 0x0102_1997;
    let served = [
        libc::FUSE_SUPER_MAGIC,
        libc::SMB_SUPER_MAGIC,
        SMB2,
        CIFS,
        PLAN9,
    ];
    fstatfs(file).is_ok_and(|system| !served.contains(&system.filesystem_type().0))
}

#[cfg(test)]
mod tests {
    use super::{INSTANCE, PLACE};
    use crate::state::State;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;
    use tomo_protocol::InstanceId;

    fn id(folder: &Path) -> InstanceId {
        State::open(folder).expect("a state").id()
    }

    #[test]
    fn an_installation_stays_who_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let first = id(folder.path());
        assert_eq!(first, id(folder.path()));
        let other = tempfile::tempdir().unwrap();
        assert_ne!(first, id(other.path()));
        let moved = other.path().join("moved");
        fs::rename(folder.path(), &moved).unwrap();
        assert_eq!(
            first,
            id(&moved),
            "it is where it was, whatever it is called"
        );
        fs::write(moved.join(INSTANCE), "nonsense").unwrap();
        let error = State::open(&moved).unwrap_err().to_string();
        assert!(error.contains("begin anew"), "{error}");
    }

    #[test]
    fn a_copy_is_another_installation_and_the_same_for_all_who_open_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = id(folder.path());
        let copy = tempfile::tempdir().unwrap();
        for name in [INSTANCE, PLACE] {
            fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
        }
        let open = || id(copy.path());
        let all: BTreeSet<InstanceId> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let [other] = Vec::from_iter(all)[..] else {
            panic!("all of them are one");
        };
        assert_ne!(first, other);
        assert_eq!((id(folder.path()), id(copy.path())), (first, other));
    }

    #[test]
    fn a_folder_of_before_is_of_this_place() {
        let folder = tempfile::tempdir().unwrap();
        let first = id(folder.path());
        fs::remove_file(folder.path().join(PLACE)).unwrap();
        assert_eq!(first, id(folder.path()));
        assert!(folder.path().join(PLACE).exists());
    }
}
