//! Cases run with some sites armed, and what that says of their predicates.

use std::collections::{BTreeMap, HashMap};

use tomo_export::predicates::Id;
use tomo_launch::{Arming, Carried, Chosen, Observed, equip, new_folder, read_record};
use tomo_profile::scores::Outcome;
use tomo_weave::Asked;
use tomo_wire::predicates::{Predicates, Recorded, Row, values};
use tomo_wire::record::Reason;

use crate::Watch;
use crate::asked::IsolateError;
use crate::many::each;
use crate::session::{Session, flaky_words};
use crate::state::Known;

/// A run with what it showed.
struct Shown {
    case: usize,
    outcome: Outcome,
    seconds: f64,
    /// By mark; nothing where it was not armed.
    marks: Option<Vec<u8>>,
    why_not: Option<String>,
}

/// What a step's runs showed.
pub(crate) struct Watched {
    pub(crate) known: BTreeMap<usize, Known>,
    pub(crate) runs: usize,
    pub(crate) slower: Option<f64>,
    /// Cases that ended otherwise than before.
    flaky: Vec<usize>,
}

impl Session {
    /// Runs `cases` with these sites armed.
    pub(crate) fn watch(
        &mut self,
        sites: &[usize],
        cases: &[usize],
        watch: &mut dyn Watch,
    ) -> Result<Watched, IsolateError> {
        let watched = self.watch_quietly(sites, cases)?;
        for &case in &watched.flaky {
            if !self.state.flaky.contains(&case) {
                self.state.flaky.push(case);
                watch.note(&flaky_words(self.options.cases.cases[case].line));
            }
        }
        Ok(watched)
    }

    pub(crate) fn watch_quietly(
        &self,
        sites: &[usize],
        cases: &[usize],
    ) -> Result<Watched, IsolateError> {
        let path = &self.module.path;
        let now = Observed::of(&Chosen {
            path: path.clone(),
            late: false,
            placed: None,
        });
        let now = now.map_err(|error| IsolateError::Io(path.clone(), error))?;
        if now.id != self.module.id || now.stamp != self.module.stamp {
            return Err(IsolateError::Changed(path.clone()));
        }
        let asked = sites.iter().flat_map(|&site| {
            let site = &self.sites.sites[site];
            let (kind, site, case) = (site.kind, site.address.0, None);
            Id { kind, site, case }.predicates()
        });
        let asked = Asked::Some(asked.collect());
        let (carried, file) = self.images.marking(&self.module, asked, &())?;
        let bytes = std::fs::read(&file).map_err(|error| IsolateError::Io(file.clone(), error))?;
        let (header, rows) =
            Predicates::read(&bytes).map_err(|refusal| IsolateError::Predicates(refusal.into()))?;
        let shown = each(cases.len(), self.options.jobs, |number| {
            self.armed(cases[number], &carried)
        });
        let shown: Vec<Shown> = shown.into_iter().collect::<Result<_, _>>()?;
        // A step's image serves that step alone.
        let _ = std::fs::remove_file(&carried.image);
        let _ = std::fs::remove_file(&file);
        if shown.iter().all(|shown| shown.marks.is_none()) {
            let why = shown.iter().find_map(|shown| shown.why_not.clone());
            return Err(IsolateError::NotArmed(
                why.map_or_else(String::new, |why| format!(": {why}")),
            ));
        }
        Ok(self.tally(sites, &shown, (header.recorded(), rows)))
    }

    /// Runs a case armed.
    fn armed(&self, case: usize, carried: &Carried) -> Result<Shown, IsolateError> {
        let folder = self
            .folder
            .join(format!("run-{}-{case}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        new_folder(&folder)?;
        let roster = equip(&folder, [0; 16], std::slice::from_ref(carried))?;
        let arming = Arming {
            agent: &self.agent,
            roster: &roster,
            sanitized: false,
        };
        let variables = arming.variables(|name| std::env::var_os(name));
        let labelled = self.labelled(case, &variables);
        let read = read_record(&carried.record(&folder), |view| {
            let why = Reason::from_number(view.live.reason.get()).map(Reason::words);
            let armed = view.live.armed.get() > 0 && view.live.refused.get() == 0;
            (armed.then(|| view.marks.to_vec()), why.map(str::to_owned))
        });
        let _ = std::fs::remove_dir_all(&folder);
        let (ran, outcome) = labelled?;
        let (marks, why_not) = read?;
        Ok(Shown {
            case,
            outcome,
            seconds: ran.took.as_secs_f64(),
            marks,
            why_not,
        })
    }

    /// What runs say of the predicates of these sites, told by marks as `rows` have it.
    fn tally(
        &self,
        sites: &[usize],
        shown: &[Shown],
        (recorded, rows): (Recorded, &[Row]),
    ) -> Watched {
        let here: HashMap<(u8, u64, u8), usize> = rows
            .iter()
            .enumerate()
            .map(|(at, row)| ((row.kind, row.site.get(), row.case), at))
            .collect();
        let mut known: BTreeMap<usize, Known> = BTreeMap::new();
        let armed = || shown.iter().filter(|shown| shown.marks.is_some());
        let failed = armed()
            .filter(|shown| shown.outcome == Outcome::Failure)
            .count() as u64;
        let passed = armed().count() as u64 - failed;
        for run in armed() {
            let marks = run.marks.as_deref().unwrap_or_default();
            let mut truth = vec![None; rows.len()];
            let mark = |probe: u32| {
                marks
                    .get(probe as usize)
                    .map_or(0, |mark| u64::from(*mark != 0))
            };
            values(rows, recorded, mark, &mut truth);
            for site in sites.iter().map(|&site| &self.sites.sites[site]) {
                let truths = (site.first..site.first + site.told.len()).map(|row| {
                    let row = &self.sites.rows[row];
                    let at = here.get(&(row.kind, row.site.get(), row.case));
                    at.and_then(|&at| truth[at]).is_some_and(|value| value > 0)
                });
                let truths: Vec<bool> = truths.collect();
                for (row, truth) in (site.first..).zip(&truths) {
                    let known = known.entry(row).or_insert(Known {
                        failed,
                        passed,
                        ..Known::default()
                    });
                    add(known, run.outcome, truths.contains(&true), *truth);
                }
            }
        }
        let plain = |case: usize| &self.state.plain[case];
        let before: f64 = armed().map(|shown| plain(shown.case).seconds).sum();
        let with: f64 = armed().map(|shown| shown.seconds).sum();
        let differ =
            armed().filter(|shown| plain(shown.case).passed != (shown.outcome == Outcome::Success));
        Watched {
            known,
            runs: shown.len(),
            slower: (before > LEAST).then_some(with / before),
            flaky: differ.map(|shown| shown.case).collect(),
        }
    }
}

/// Seconds that runs must take in all so that something can be said of how much slower they are.
const LEAST: f64 = 0.5;

fn add(known: &mut Known, outcome: Outcome, seen: bool, truth: bool) {
    let (seen_sum, true_sum) = match outcome {
        Outcome::Failure => (&mut known.failed_seen, &mut known.failed_true),
        Outcome::Success => (&mut known.passed_seen, &mut known.passed_true),
    };
    *seen_sum += u64::from(seen);
    *true_sum += u64::from(truth);
}
