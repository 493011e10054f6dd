//! Processor time of whole processes, for benches.

use std::process::Command;

use anyhow::{Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// Processor seconds that a command takes, with all that it waits for.
///
/// # Errors
/// Where it cannot be started or fails.
pub fn seconds(command: &mut Command) -> Result<f64> {
    let before = children()?;
    let output = command.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?}: {}: {errors}",
        output.status
    );
    Ok(children()? - before)
}

/// Processor seconds of all children that have ended, and of theirs.
fn children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let spent = usage.user_time() + usage.system_time();
    Ok(spent.num_microseconds() as f64 / 1e6)
}

/// The middle one; of an even number the upper of the two.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_one_is_found_wherever_it_stands() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 3.0);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_command_that_fails_is_no_measurement() {
        assert!(seconds(&mut Command::new("true")).is_ok());
        assert!(seconds(&mut Command::new("false")).is_err());
    }
}
