//! Coverage over time (DIS Figure 5), of instances that all start at once: for each, and for all together.

use serde::{Deserialize, Serialize};
use tomo_plan::disposal::Workload;

use super::Source;

/// How many probes were hit by when: (seconds, probes), a step each, ascending.
pub type Curve = Vec<(f64, u64)>;

/// One program's curves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The program.
    pub program: String,
    /// Where this comes from: what runs do by themselves, or what a collector heard and when.
    pub source: Source,
    /// By instance.
    pub instances: Vec<Curve>,
    /// Of all of them together.
    pub together: Curve,
}

/// When a level was reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// So many probes.
    pub level: u64,
    /// When all together had seen them, in seconds.
    pub together: f64,
    /// When the first instance had.
    pub first: f64,
}

impl Curves {
    /// Of these runs, whose times are in `second`s of so many units.
    #[must_use]
    pub fn of(program: &str, runs: &[&Workload], second: f64) -> Self {
        let seconds = |at: u64| at as f64 / second;
        let steps = |hits: &mut dyn Iterator<Item = u64>| {
            (1..).zip(hits).map(|(n, at)| (seconds(at), n)).collect()
        };
        let instances = runs
            .iter()
            .map(|run| steps(&mut run.hits.iter().map(|hit| hit.at)));
        let mut first = std::collections::BTreeMap::new();
        for hit in runs.iter().flat_map(|run| &run.hits) {
            let at = first.entry(hit.probe).or_insert(hit.at);
            *at = (*at).min(hit.at);
        }
        let mut times: Vec<u64> = first.into_values().collect();
        times.sort_unstable();
        Self {
            program: program.into(),
            source: Source::Simulated,
            instances: instances.collect(),
            together: steps(&mut times.into_iter()),
        }
    }

    /// When this share of what the best instance saw in the end was reached.
    #[must_use]
    pub fn reached(&self, share: f64) -> Option<Reached> {
        let best = self.instances.iter().map(Vec::len).max()?;
        let level = (best as f64 * share) as usize;
        let at = |curve: &Curve| Some(curve.get(level.checked_sub(1)?)?.0);
        let first = self
            .instances
            .iter()
            .filter_map(at)
            .min_by(f64::total_cmp)?;
        Some(Reached {
            level: level as u64,
            together: at(&self.together)?,
            first,
        })
    }
}

#[cfg(test)]
mod tests {
    use tomo_plan::disposal::{Hit, Workload};

    use super::Curves;

    #[test]
    fn together_instances_see_more_and_sooner() {
        let run = |hits: &[(u64, u32)]| Workload {
            length: 9,
            hits: hits
                .iter()
                .map(|&(at, probe)| Hit {
                    at,
                    probe,
                    times: 1,
                })
                .collect(),
        };
        let (one, two) = (run(&[(1, 0), (4, 1), (6, 2)]), run(&[(2, 1), (3, 2)]));
        let curves = Curves::of("p", &[&one, &two], 2.0);
        assert_eq!(curves.instances[0], [(0.5, 1), (2.0, 2), (3.0, 3)]);
        assert_eq!(curves.together, [(0.5, 1), (1.0, 2), (1.5, 3)]);
        let reached = curves.reached(1.0).expect("a level");
        assert_eq!(
            (reached.level, reached.together, reached.first),
            (3, 1.5, 3.0)
        );
    }
}
