//! Instances that are processes: started all at once, along the curve, or one after the other.

use std::time::{Duration, Instant};

use tomo_plan::disposal::Scenario;

use crate::disposal::StudyError;
use crate::disposal::fleet::Deployment;
use crate::disposal::measure::{Job, Meter, Ran, Running};

/// What a deployment of processes did.
#[derive(Debug, Default)]
pub(crate) struct Deployed {
    /// By instance.
    pub(crate) ran: Vec<Ran>,
    /// The most that ran at once.
    pub(crate) peak: usize,
}

/// The most instances of the paper's curve at once (DIS §4.2).
const PEAK: u32 = 15;

/// How long an instance that takes `seconds` of a processor runs while as many run as do at the peak.
pub(crate) fn at_the_peak(seconds: f64) -> Duration {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let crowd = f64::from(PEAK) / processors as f64;
    Duration::from_secs_f64(seconds * crowd.max(1.0))
}

/// Runs all `jobs`. `duration` is how long one of them takes while as many run as do at the peak; `after` is
/// told of each that has ended, in the order of starts, where they run one after the other.
pub(crate) fn deploy(
    meter: &Meter,
    jobs: &[Job],
    deployment: Deployment,
    duration: Duration,
    after: &mut dyn FnMut(usize) -> Result<(), StudyError>,
) -> Result<Deployed, StudyError> {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let scenario = scenario(deployment, jobs.len(), nanoseconds);
    let Some(starts) = scenario.starts(jobs.len())? else {
        let mut ran = Vec::new();
        for (instance, job) in jobs.iter().enumerate() {
            ran.push(meter.run(job)?);
            after(instance)?;
        }
        return Ok(Deployed { ran, peak: 1 });
    };
    let begin = Instant::now();
    let mut running = Vec::new();
    for (slot, (job, start)) in jobs.iter().zip(starts).enumerate() {
        let early = Duration::from_nanos(start).saturating_sub(begin.elapsed());
        std::thread::sleep(early);
        running.push((begin.elapsed().as_secs_f64(), meter.start(job, slot)?));
    }
    finish(running)
}

/// Waits for all of them.
fn finish(running: Vec<(f64, Running)>) -> Result<Deployed, StudyError> {
    let mut ran = Vec::new();
    let mut spans = Vec::new();
    for (start, one) in running {
        let one = one.finish()?;
        spans.push((start, start + one.measured.elapsed));
        ran.push(one);
    }
    Ok(Deployed {
        ran,
        peak: peak(&spans),
    })
}

/// The deployment as the planning library knows it, for instances that run for `duration`, in any unit of
/// time; too few instances for the curve start all at once.
pub(crate) fn scenario(deployment: Deployment, instances: usize, duration: u64) -> Scenario {
    match (deployment, Scenario::study(duration)) {
        (Deployment::Sequential, _) => Scenario::Sequential,
        (Deployment::Distributed, curve) if curve.starts(instances).is_ok() => curve,
        _ => Scenario::Concurrent,
    }
}

/// The most spans of time that have an instant in common.
fn peak(spans: &[(f64, f64)]) -> usize {
    let at = |time: f64| {
        let during = spans
            .iter()
            .filter(|(start, end)| *start <= time && time < *end);
        during.count()
    };
    spans.iter().map(|(start, _)| at(*start)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::peak;

    #[test]
    fn the_peak_is_where_most_spans_meet() {
        assert_eq!(peak(&[(0.0, 2.0), (1.0, 3.0), (2.0, 4.0)]), 2);
        assert_eq!(peak(&[(0.0, 9.0), (1.0, 3.0), (2.0, 4.0)]), 3);
        assert_eq!(peak(&[]), 0);
    }
}
