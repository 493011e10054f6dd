//! Numbers of runs: each is given once, whatever happens to the system, and yet a run waits for no disk.
//!
//! Numbers are reserved in blocks, and only that is seen to the disk: `reserved` says below which number all may have been
//! given. The next one is in `next-run`, with the system's start in which it was written; where that is another one,
//! the system went down, and numbers go on behind the block.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::state::{State, StateError, at, read_number, replace, replace_durably};

/// Numbers that are reserved at once, in line with the blocks in which collectors fold runs: 1 to 64, 65 to 128, and so on.
const BLOCK: u64 = 64;

/// Takes the next number. The caller holds the state's lock.
pub(crate) fn take(state: &State) -> Result<u64, StateError> {
    let (next, boot) = (state.file("next-run"), boot());
    let reserved = state.file("reserved");
    let before = read_number(&reserved)?.unwrap_or(1).max(1);
    let noted = volatile(&next, &boot).filter(|number| *number <= before);
    let number = noted.unwrap_or(before);
    if number >= before {
        let blocks = (number - 1) / BLOCK + 1;
        let behind = blocks.saturating_mul(BLOCK).saturating_add(1);
        replace_durably(&reserved, behind.to_string().as_bytes()).map_err(at(&reserved))?;
    }
    note(&next, number.saturating_add(1), &boot).map_err(at(&next))?;
    Ok(number)
}

/// Sees to it that no number that was given is given again, even if the system goes down. Before anything
/// is sent.
pub(crate) fn settle(state: &State) -> io::Result<()> {
    let (settled, boot) = (state.file("settled"), boot());
    let reserved = match read_number(&state.file("reserved")) {
        Ok(Some(reserved)) => reserved,
        // None was given yet.
        Ok(None) => return Ok(()),
        Err(error) => return Err(io::Error::other(error)),
    };
    if volatile(&settled, &boot) == Some(reserved) {
        return Ok(());
    }
    // The file is; that it is in the folder must be, too.
    File::open(state.folder())?.sync_all()?;
    note(&settled, reserved, &boot)
}

/// A number that holds until the system starts anew.
fn volatile(path: &Path, boot: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let (number, written) = text.trim().split_once(' ')?;
    (written == boot && !boot.is_empty()).then_some(())?;
    number.parse().ok()
}

fn note(path: &Path, number: u64, boot: &str) -> io::Result<()> {
    replace(path, format!("{number} {boot}").as_bytes())
}

/// This start of the system; empty where it cannot be told from others.
fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, settle, take};
    use crate::state::State;
    use std::fs;

    #[test]
    fn after_the_system_went_down_numbers_go_on_behind_those_that_were_reserved() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        let numbers: Vec<u64> = (0..3).map(|_| take(&state).unwrap()).collect();
        assert_eq!(numbers, [1, 2, 3]);
        // What was not seen to the disk is as it once was, or not whole, or not there.
        for (round, left) in ["2 another-start", "", "7"].into_iter().enumerate() {
            fs::write(folder.path().join("next-run"), left).unwrap();
            let first = BLOCK * (round as u64 + 1) + 1;
            assert_eq!(take(&state).unwrap(), first, "{left:?}");
            assert_eq!(take(&state).unwrap(), first + 1);
        }
        fs::remove_file(folder.path().join("next-run")).unwrap();
        assert_eq!(take(&state).unwrap(), 4 * BLOCK + 1);
        // An older tomo's were not in line.
        fs::write(folder.path().join("reserved"), (6 * BLOCK).to_string()).unwrap();
        fs::remove_file(folder.path().join("next-run")).unwrap();
        let after: Vec<u64> = (0..3).map(|_| take(&state).unwrap()).collect();
        assert_eq!(after, [6 * BLOCK, 6 * BLOCK + 1, 6 * BLOCK + 2]);
    }

    #[test]
    fn numbers_go_on_from_block_to_block() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        for number in 1..=3 * BLOCK {
            assert_eq!(take(&state).unwrap(), number);
        }
    }

    #[test]
    fn what_is_settled_is_settled_for_its_block_and_this_start() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        let settled = || fs::read_to_string(folder.path().join("settled")).unwrap();
        settle(&state).unwrap();
        assert!(!folder.path().join("settled").exists(), "none was given");
        take(&state).unwrap();
        settle(&state).unwrap();
        let first = settled();
        assert!(first.starts_with("65 "), "{first}");
        for _ in 0..BLOCK {
            take(&state).unwrap();
        }
        assert_eq!(settled(), first);
        settle(&state).unwrap();
        assert!(settled().starts_with("129 "));
        fs::write(folder.path().join("settled"), "129 another-start").unwrap();
        settle(&state).unwrap();
        assert!(!settled().contains("another"));
    }
}
