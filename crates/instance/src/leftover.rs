//! Runs whose launcher did not come to the end: it was killed, or the system went down.
//!
//! Their folders are there and not locked. Once the program's process is gone too (a program outlives the
//! launcher that is killed, and goes on recording), what it recorded becomes the final report.

use tomo_wire::report::Outcome;

use crate::run::RunFolder;
use crate::spool::Spool;
use crate::state::{State, numbered};

/// Moves what such runs recorded into the spool. What cannot be read is counted as dropped.
pub(crate) fn gather(state: &State) {
    for (number, path) in numbered(&state.file("runs")) {
        let Some(_lock) = state.lock_left(&path) else {
            continue;
        };
        let Some(folder) = RunFolder::found(state, number, &path) else {
            // Whoever began it did not come as far as starting the program.
            let _ = std::fs::remove_dir_all(&path);
            continue;
        };
        let report = match folder.finished() {
            // The report may have been sent already, and is not to say anything else now.
            Some(report) => report,
            None if folder.is_alive() => continue,
            None if Spool::of(state).has(number) => {
                folder.remove();
                continue;
            }
            None => {
                let mut progress = folder.progress();
                progress.sequence = progress.sequence.saturating_add(1);
                folder.report(state.lost(), &progress, (Outcome::Unseen, 0))
            }
        };
        // If there is no room for it now, there may be at the next run.
        let _ = folder.finish(state, &report);
    }
}
