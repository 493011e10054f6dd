//! Cases run with some sites armed, and what that says of their predicates.

use std::collections::BTreeMap;

use tomo_export::predicates::Id;
use tomo_launch::{Arming, Carried, Chosen, Observed, equip, new_folder, read_record};
use tomo_profile::scores::Outcome;
use tomo_weave::Asked;
use tomo_wire::predicates::{Predicates, Recorded, Row};
use tomo_wire::record::Reason;

use crate::Watch;
use crate::asked::IsolateError;
use crate::many::each;
use crate::session::{Session, flaky_words};
use crate::state::Known;
use crate::tallied::{Tally, Teller};

/// A run with what it showed.
pub(crate) struct Shown {
    pub(crate) case: usize,
    pub(crate) outcome: Outcome,
    pub(crate) seconds: f64,
    /// By mark; nothing where it was not armed.
    pub(crate) marks: Option<Vec<u8>>,
    why_not: Option<String>,
}

/// What marks are: what they record, and the rows of the module.
type Meaning = (Recorded, Vec<Row>);

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
        let fails = |case: &&usize| !self.state.plain[**case].passed;
        let failing = cases.iter().filter(fails).count();
        let mut before = self.state.known.values();
        let is_news = self.state.known.is_empty() || before.any(|known| known.failed > 0);
        if is_news && failing > 0 && watched.known.values().all(|known| known.failed == 0) {
            watch.note(&format!(
                "none of the {failing} failing cases fails while it is observed: nothing can be learnt from this step"
            ));
        }
        Ok(watched)
    }

    pub(crate) fn watch_quietly(
        &self,
        sites: &[usize],
        cases: &[usize],
    ) -> Result<Watched, IsolateError> {
        let (shown, (recorded, rows)) = self.show(sites, cases)?;
        Ok(self.tally(sites, &shown, (recorded, &rows)))
    }

    /// That the program is still the same.
    pub(crate) fn same(&self) -> Result<(), IsolateError> {
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
        Ok(())
    }

    /// What each of these cases shows with these sites armed, and what its marks mean.
    pub(crate) fn show(
        &self,
        sites: &[usize],
        cases: &[usize],
    ) -> Result<(Vec<Shown>, Meaning), IsolateError> {
        self.same()?;
        let asked = sites.iter().flat_map(|&site| {
            let site = &self.sites.sites[site];
            let (kind, site, case) = (site.kind, site.address.0, None);
            Id { kind, site, case }.predicates()
        });
        let asked = Asked::Some(asked.collect());
        let (carried, file) = self.markings.of(asked)?;
        let bytes = std::fs::read(&file).map_err(|error| IsolateError::Io(file.clone(), error))?;
        let (header, rows) =
            Predicates::read(&bytes).map_err(|refusal| IsolateError::Predicates(refusal.into()))?;
        let told = (header.recorded(), rows.to_vec());
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
        Ok((shown, told))
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
            outside: None,
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
        let armed = || shown.iter().filter(|shown| shown.marks.is_some());
        let teller = Teller::of(recorded, rows);
        let mut tally = Tally::new(&teller);
        for run in armed() {
            tally.add(run.marks.as_deref().unwrap_or_default(), run.outcome);
        }
        let rows = sites.iter().flat_map(|&site| {
            let site = &self.sites.sites[site];
            site.first..site.first + site.told.len()
        });
        let known = rows.map(|row| (row, tally.known(&self.sites.rows[row])));
        let known = known.collect();
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
