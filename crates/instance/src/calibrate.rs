//! What probes cost a program: whole runs of it, alone and with growing numbers of probes at random places, in turn,
//! by the processor time that the system counts (PDT §5.2; `tomo_protocol::Calibration` says what for).
//!
//! Each run with probes has a fresh image, so each pays what the first run of an installation pays; later
//! ones pay less. A round runs the program once in each way, so that what changes slowly on the machine
//! changes all of them alike; a cost is the median over the rounds of the difference to the same round's run
//! alone. Its interval is that of the sign test: from one order statistic to the other, whatever the
//! distribution (David, Nagaraja, *Order Statistics*, 2003, §7.1).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tomo_launch::{
    Agent, Arming, Carried, Ended, Extra, How, Images, Master, Observed, StartError, Target,
    VariantError, equip, from_outside, masters, new_folder, private_folder, start_with,
};
use tomo_protocol::{CALIBRATION_SCHEMA, Calibration, Cost, Name};
use tomo_wire::report::name_of_plans;
use zerocopy::little_endian::U64;

use crate::clock;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A module has no image, or one cannot be written.
    #[error(transparent)]
    Variant(#[from] VariantError),
    /// A module has no image.
    #[error(transparent)]
    Image(#[from] tomo_launch::ImageError),
    /// The program cannot be run.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A folder cannot be used.
    #[error("{path}: {1}", path = .0.display())]
    Folder(PathBuf, io::Error),
    /// There is nothing to place.
    #[error("the program has no place for a probe")]
    NoProbes,
    /// The program was not armed.
    #[error("the program was not armed, so nothing was measured: see what `tomo cover` says of it")]
    NotArmed,
    /// It ends otherwise than alone.
    #[error("the program does not do the same each time: it ended with {0:?}, and then with {1:?}")]
    Differs(Option<i32>, Option<i32>),
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// The program.
    pub target: &'a Target,
    /// What it is called.
    pub name: &'a OsStr,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// Its modules, in the order in which a campaign numbers their units.
    pub modules: &'a [Observed],
    /// What is observed.
    pub how: How,
    /// How often each number of probes is measured.
    pub rounds: u32,
}

/// How sure a cost should be.
const CONFIDENCE: f64 = 0.95;

/// Measures; `told` is called after each run with how many of how many are done. What is written meanwhile lies in
/// `cache` and is removed.
///
/// # Errors
/// Where the program cannot be armed or run.
pub fn calibrate(
    measured: &Measured<'_>,
    cache: &Path,
    told: &dyn Fn(u32, u32),
) -> Result<Calibration, CalibrateError> {
    let images = Images::in_cache(cache)?;
    let agent = Agent::in_cache(cache);
    let agent = agent.map_err(|error| {
        CalibrateError::Folder(cache.into(), io::Error::other(error.to_string()))
    })?;
    let modules = measured.modules.iter().map(|module| (module, measured.how));
    let masters = masters(modules, &images, &())?;
    let units: u32 = masters.iter().map(Master::probes).sum();
    if units == 0 {
        return Err(CalibrateError::NoProbes);
    }
    let folder = private_folder(&cache.join(format!("calibrate-{}", std::process::id())))?;
    let bench = Bench {
        measured,
        agent: &agent,
        masters: &masters,
        folder: &folder,
        units,
    };
    let result = bench.all(told);
    let _ = fs::remove_dir_all(&folder);
    result
}

struct Bench<'a> {
    measured: &'a Measured<'a>,
    agent: &'a Agent,
    masters: &'a [Master],
    folder: &'a Path,
    units: u32,
}

/// Numbers of probes to measure: none, and then each four times as many as the one before, up to all.
fn numbers(units: u32) -> Vec<u32> {
    let mut numbers = vec![units];
    while numbers.last().is_some_and(|number| *number >= 64) && numbers.len() < 6 {
        numbers.extend(numbers.last().map(|number| number / 4));
    }
    numbers.push(0);
    numbers.reverse();
    numbers
}

impl Bench<'_> {
    fn all(&self, told: &dyn Fn(u32, u32)) -> Result<Calibration, CalibrateError> {
        let numbers = numbers(self.units);
        let rounds = self.measured.rounds.max(1);
        let runs = rounds * (numbers.len() as u32 + 1);
        let mut done = 0;
        let mut step = || {
            done += 1;
            told(done, runs);
        };
        let (_, expected) = self.run(None)?;
        let mut alone = Vec::new();
        let mut shares = vec![Vec::new(); numbers.len()];
        for round in 0..rounds {
            let (base, code) = self.run(None)?;
            self.same(expected, code)?;
            step();
            alone.push(base);
            for (number, shares) in numbers.iter().zip(&mut shares) {
                let (seconds, code) = self.with(*number, u64::from(round))?;
                self.same(expected, code)?;
                step();
                shares.push((seconds - base) / base.max(f64::MIN_POSITIVE));
            }
        }
        let names: Vec<U64> = self.masters.iter().map(|one| one.plan().into()).collect();
        let each = numbers.into_iter().zip(shares);
        Ok(Calibration {
            schema: CALIBRATION_SCHEMA.into(),
            plans: Name(name_of_plans(&names)),
            units: self.units,
            rounds,
            confidence: interval(rounds as usize).1,
            seconds: median(&mut alone),
            points: each
                .map(|(probes, mut shares)| cost(probes, &mut shares))
                .collect(),
        })
    }

    fn same(&self, expected: Option<i32>, code: Option<i32>) -> Result<(), CalibrateError> {
        match expected == code {
            true => Ok(()),
            false => Err(CalibrateError::Differs(expected, code)),
        }
    }

    /// Processor seconds of a run with so many probes.
    fn with(&self, number: u32, round: u64) -> Result<(f64, Option<i32>), CalibrateError> {
        let chosen = chosen(self.units, number, round);
        let mut first = 0;
        let mut carried = Vec::new();
        for (module, master) in self.measured.modules.iter().zip(self.masters) {
            let image = self.folder.join(format!("{}.image", module.stem));
            master.write(&image, |probe| chosen[(first + probe) as usize])?;
            let (plan, probes) = (master.plan(), master.probes());
            carried.extend(Carried::of(&image, &module.stem, plan, probes));
            first += probes;
        }
        let run = self.folder.join("run");
        new_folder(&run)?;
        let roster = equip(&run, [0; 16], &carried)?;
        let outside = from_outside(self.measured.target, &carried, &run)?;
        let arming = Arming {
            agent: self.agent,
            roster: &roster,
            outside: outside.as_ref(),
        };
        let ran = self.run(Some(arming))?;
        let armed = carried.iter().any(|one| {
            let live = tomo_launch::read_live(&one.record(&run));
            live.is_ok_and(|live| live.armed.get() > 0)
        });
        fs::remove_dir_all(&run).map_err(|error| CalibrateError::Folder(run, error))?;
        if armed {
            Ok(ran)
        } else {
            Err(CalibrateError::NotArmed)
        }
    }

    /// Processor seconds of one run and how it ended; what it prints goes nowhere.
    fn run(&self, arming: Option<Arming<'_>>) -> Result<(f64, Option<i32>), CalibrateError> {
        let Measured {
            target,
            name,
            arguments,
            ..
        } = self.measured;
        let extra = Extra {
            input: Some(Stdio::null()),
            output: Some(Stdio::null()),
            errors: Some(Stdio::null()),
            ..Extra::default()
        };
        let before = clock::of_children();
        let ended = start_with(target, name, arguments, arming, extra)?.wait()?;
        let used = clock::of_children().saturating_sub(before);
        let code = match ended {
            Ended::Exited(code) => Some(code),
            Ended::Killed(_) => None,
        };
        Ok((used.as_secs_f64(), code))
    }
}

/// Which `number` of `units` probes are placed in a round: others in each, the same each time.
fn chosen(units: u32, number: u32, round: u64) -> Vec<bool> {
    // Floyd's algorithm (Bentley, Floyd, CACM 30(9), 1987), with numbers by Steele, Lea, Flood: SplitMix.
    let mut state = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(number);
    let mut below = |bound: u32| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * u128::from(bound)) >> 64) as usize
    };
    let mut chosen = vec![false; units as usize];
    for last in units.saturating_sub(number)..units {
        let one = below(last + 1);
        let free = if chosen[one] { last as usize } else { one };
        chosen[free] = true;
    }
    chosen
}

fn cost(probes: u32, shares: &mut [f64]) -> Cost {
    let share = median(shares);
    let (from, _) = interval(shares.len());
    Cost {
        probes,
        share,
        low: shares[from],
        high: shares[shares.len() - 1 - from],
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// Which order statistics of `count` values hold the median between them, counted from either end, and how sure
/// that is: as narrow as [`CONFIDENCE`] allows, or all there is.
fn interval(count: usize) -> (usize, f64) {
    // Half of 2^count ways that values fall on the sides of the median have at most `k` on one of them.
    let mut tail = 0.5f64.powi(count as i32);
    let (mut from, mut sure) = (0, 1.0 - 2.0 * tail);
    let mut ways = tail;
    for k in 1..count / 2 {
        ways *= (count - k + 1) as f64 / k as f64;
        tail += ways;
        if 1.0 - 2.0 * tail < CONFIDENCE {
            break;
        }
        (from, sure) = (k, 1.0 - 2.0 * tail);
    }
    (from, sure)
}

#[cfg(test)]
mod tests {
    use super::{chosen, cost, interval, numbers};

    #[test]
    fn as_many_probes_are_placed_as_asked_for() {
        for (units, number) in [(10, 0), (10, 3), (10, 10), (1000, 250)] {
            let placed = |round| chosen(units, number, round);
            let count = placed(1).iter().filter(|one| **one).count();
            assert_eq!(count, number as usize);
            assert_eq!(placed(1), placed(1));
            assert!(number == 0 || number == units || placed(1) != placed(2));
        }
    }

    /// By the table of the binomial distribution with one half.
    #[test]
    fn intervals_of_medians() {
        for (count, from, sure) in [
            (1, 0, 0.0),
            (6, 0, 0.96875),
            (11, 1, 0.98828),
            (21, 5, 0.97340),
        ] {
            let (k, confidence) = interval(count);
            assert_eq!(k, from, "{count}");
            assert!((confidence - sure).abs() < 1e-4, "{count}: {confidence}");
        }
    }

    #[test]
    fn a_cost_is_the_median_in_its_interval() {
        let mut shares = [0.5, 0.1, 0.3, 0.2, 0.4, 0.0];
        let cost = cost(7, &mut shares);
        assert_eq!((cost.low, cost.share, cost.high), (0.0, 0.25, 0.5));
    }

    #[test]
    fn numbers_grow_from_none_to_all() {
        assert_eq!(numbers(5), [0, 5]);
        assert_eq!(numbers(1600), [0, 25, 100, 400, 1600]);
        assert_eq!(numbers(1 << 20).len(), 7);
    }
}
