//! What the demo says.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Result, Write as _, stdout};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tomo_protocol::{Numbers, Profile};

use super::work::Work;

/// Lines on standard output, with a bar below them on a terminal.
pub(crate) struct Lines {
    bar: ProgressBar,
    begun: Instant,
}

impl Lines {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("  {wide_bar} {pos} of {len}") {
            bar.set_style(style);
        }
        Self {
            bar,
            begun: Instant::now(),
        }
    }

    /// A step begins.
    pub(crate) fn step(&self, what: &str) -> Result<()> {
        self.bar.finish_and_clear();
        let seconds = self.begun.elapsed().as_secs();
        writeln!(stdout(), "\n[{seconds:>3} s] {what}")
    }

    pub(crate) fn say(&self, line: &str) -> Result<()> {
        self.bar.finish_and_clear();
        writeln!(stdout(), "  {line}")
    }

    pub(crate) fn progress(&self, done: u32, all: u32) {
        if self.bar.is_finished() {
            self.bar.reset();
        }
        self.bar.set_length(all.into());
        self.bar.set_position(done.into());
    }
}

fn percent(part: usize, all: usize) -> f64 {
    if all == 0 {
        return 0.0;
    }
    100.0 * part as f64 / all as f64
}

/// What the fleet saw, beside what there was to see.
pub(crate) fn result(
    lines: &Lines,
    seen: &Profile,
    truth: &Profile,
    status: &Numbers,
    took: Duration,
) -> Result<()> {
    lines.step("One profile of all instances")?;
    let set =
        |profile: &Profile| -> BTreeSet<u32> { profile.seen.iter().map(|one| one.unit).collect() };
    let (fleet, full) = (set(seen), set(truth));
    let (both, all) = (fleet.intersection(&full).count(), full.len());
    let only = fleet.difference(&full).count();
    let runs = seen.totals.runs;
    lines.say(&format!(
        "{} instances, {runs} runs in {:.0} s: {} of {} blocks seen.",
        seen.instances,
        took.as_secs_f64(),
        fleet.len(),
        seen.units
    ))?;
    lines.say(&format!(
        "Full instrumentation sees {all} in the same work: the fleet saw {:.1} % of these, and {only} that full\n  \
         instrumentation did not meet in its runs. {} blocks were in some instance's share ({:.1} %).",
        percent(both, all), status.carried, percent(status.carried as usize, seen.units as usize)
    ))?;
    let watched: Duration = Duration::from_nanos(seen.totals.duration);
    let unseen: u64 = seen
        .unseen
        .iter()
        .filter(|group| group.instances > 0)
        .map(|group| group.units.len())
        .sum();
    lines.say(&format!(
        "{unseen} blocks were watched and never ran, in {:.1} s of runs all together.",
        watched.as_secs_f64()
    ))
}

/// What each instance paid.
pub(crate) fn instances(
    lines: &Lines,
    status: &Numbers,
    alone: &BTreeMap<String, f64>,
    work: &[Work],
) -> Result<()> {
    lines.step("What each instance paid")?;
    lines.say("instance      runs  probes hit   CPU s   alone s   ratio")?;
    let (mut all, mut all_alone) = (0.0, 0.0);
    for one in &status.instances {
        let cpu = Duration::from_nanos(one.totals.cpu).as_secs_f64();
        let name = one.instance.to_string();
        let alone = alone.get(&name).copied().unwrap_or(f64::NAN);
        (all, all_alone) = (all + cpu, all_alone + alone);
        lines.say(&format!(
            "{}  {:>6}  {:>10}  {cpu:>6.2}  {alone:>8.2}  {:>6.3}",
            &name[..12],
            one.totals.runs,
            one.hits,
            cpu / alone
        ))?;
    }
    lines.say(&format!(
        "all                             {all:>6.2}  {all_alone:>8.2}  {:>6.3}",
        all / all_alone
    ))?;
    let noise = work.iter().map(|one| one.noise).fold(0.0, f64::max);
    lines.say(&format!(
        "Two runs of the same work without any probe differ by up to {:.1} % on this machine just now.",
        100.0 * noise
    ))
}
