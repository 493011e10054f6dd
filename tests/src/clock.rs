//! Seconds of the processor rather than of the clock: what a computation takes on one core, whatever
//! else the machine has to do meanwhile.

use anyhow::Result;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// The seconds that the processor has spent on this process so far, in all its threads, by the
/// kernel's word.
///
/// # Errors
/// If the kernel does not tell.
pub fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let spent = usage.user_time() + usage.system_time();
    Ok(spent.num_microseconds() as f64 / 1e6)
}

/// What `run` gives, and the seconds that the processor spent on it.
///
/// # Errors
/// If the kernel does not tell.
pub fn timed<T>(run: impl FnOnce() -> T) -> Result<(T, f64)> {
    let before = cpu_seconds()?;
    let result = run();
    Ok((result, cpu_seconds()? - before))
}

#[cfg(test)]
mod tests {
    use super::{cpu_seconds, timed};

    /// Time never runs backwards, and work takes some of it sooner or later.
    #[test]
    fn work_takes_time() {
        let start = cpu_seconds().unwrap();
        let mut rounds = 0;
        loop {
            let (count, seconds) = timed(|| std::hint::black_box(0..10_000).count()).unwrap();
            assert!(count == 10_000 && seconds >= 0.0);
            rounds += 1;
            if cpu_seconds().unwrap() > start {
                break;
            }
            assert!(rounds < 10_000_000);
        }
    }
}
