//! Which functions cases enter: what is known of a program before any of its sites is watched.
//!
//! Source: ABI §2.2 has HOLMES begin with what runs at the level of functions; here that one look is the beginning of a search
//! of predicates. A probe at each function's entry tells, which vanishes when it is hit, so that all of them together cost
//! next to nothing. *The function was entered* is then a predicate of which each run of the program could
//! have been the one: its score tells where to begin. And no predicate of a function can be true in a failing
//! case where none of these enters it: its turn comes last. Nor does any in a function
//! that only failing cases enter tell them from others, for no other comes to it: what decides whether the function is come to
//! may. Functions that cannot have such a probe may be entered.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tomo_launch::{
    Arming, Carried, How, Images, Master, equip, masters, new_folder, private_folder, read_record,
};
use tomo_profile::scores::Outcome;
use tomo_weave::Placement;
use tomo_wire::plan::{Level, PlanView};

use crate::asked::IsolateError;
use crate::many::each;
use crate::session::Session;
use crate::state::Known;

/// A function, and in how many runs of the survey it was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entered {
    /// Its entry, as the module states it.
    pub(crate) entry: u64,
    /// Failed runs in which it was entered.
    pub(crate) failed: u64,
    /// Successful runs in which it was entered.
    pub(crate) passed: u64,
}

/// What the cases of a survey showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Survey {
    /// By entry, ascending.
    pub(crate) functions: Vec<Entered>,
    /// Failed runs that were observed.
    pub(crate) failed: u64,
    /// Successful runs that were observed.
    pub(crate) passed: u64,
}

impl Survey {
    /// What is known of the predicate that the function at `entry` was entered, if there was a probe.
    pub(crate) fn known(&self, entry: u64) -> Option<Known> {
        let functions = &self.functions;
        let found = functions.binary_search_by_key(&entry, |function| function.entry);
        let function = &functions[found.ok()?];
        Some(Known {
            failed_true: function.failed,
            passed_true: function.passed,
            // Each run could have entered it.
            failed_seen: self.failed,
            passed_seen: self.passed,
            failed: self.failed,
            passed: self.passed,
            step: 0,
        })
    }

    /// Whether no failing case enters the function at `entry`.
    pub(crate) fn is_idle(&self, entry: u64) -> bool {
        let known = self.known(entry);
        known.is_some_and(|known| known.failed > 0 && known.failed_true == 0)
    }

    /// Whether only failing cases enter the function at `entry`.
    pub(crate) fn is_doomed(&self, entry: u64) -> bool {
        let known = self.known(entry);
        known.is_some_and(|known| {
            known.passed > 0 && known.passed_true == 0 && known.failed_true > 0
        })
    }

    /// Of these functions, ascending, with what each run hit.
    fn of(entries: &[u64], runs: &[(Outcome, Vec<u8>)]) -> Self {
        let count = |outcome| runs.iter().filter(|run| run.0 == outcome).count() as u64;
        let functions = entries.iter().enumerate().map(|(probe, &entry)| {
            let hit = |run: &&(Outcome, Vec<u8>)| run.1.get(probe).is_some_and(|mark| *mark != 0);
            let entered = |outcome| {
                let runs = runs.iter().filter(|run| run.0 == outcome);
                runs.filter(hit).count() as u64
            };
            Entered {
                entry,
                failed: entered(Outcome::Failure),
                passed: entered(Outcome::Success),
            }
        });
        let mut functions: Vec<Entered> = functions.collect();
        functions.sort_by_key(|function| function.entry);
        Self {
            functions,
            failed: count(Outcome::Failure),
            passed: count(Outcome::Success),
        }
    }
}

impl Session {
    /// Runs these cases once, with a probe at each function's entry.
    pub(crate) fn survey(&self, cases: &[usize]) -> Result<Survey, IsolateError> {
        let images = Images::in_cache(&self.options.cache)?;
        let how = How {
            level: Level::Function,
            placement: Placement::All,
            stays: false,
        };
        let masters = masters([(&self.module, how)], &images, &())?;
        let Some(master) = masters.first() else {
            return Ok(Survey::default());
        };
        let path = master.plan_path();
        let io = |error| IsolateError::Io(path.into(), error);
        let bytes = std::fs::read(path).map_err(io)?;
        let plan = PlanView::read(&bytes).map_err(|refusal| io(std::io::Error::other(refusal)))?;
        // Units with probes come first.
        let probed = plan.units.iter().take(master.probes() as usize);
        let entries: Vec<u64> = probed.map(|unit| unit.from.get()).collect();
        let folder = self.folder.join(format!("survey-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let folder = private_folder(&folder)?;
        let runs = self.entered(master, cases, &folder);
        let _ = std::fs::remove_dir_all(&folder);
        Ok(Survey::of(&entries, &runs?))
    }

    /// How these cases ended, and which probes each of them hit; those that were not observed are left out.
    fn entered(
        &self,
        master: &Master,
        cases: &[usize],
        folder: &Path,
    ) -> Result<Vec<(Outcome, Vec<u8>)>, IsolateError> {
        let image = folder.join("image");
        master.write(&image, |_| true)?;
        let (stem, probes) = (self.module.stem.as_str(), master.probes());
        let Some(carried) = Carried::of(&image, stem, master.plan(), probes) else {
            return Ok(Vec::new());
        };
        // Each run tells by itself what it entered.
        let carried = Carried {
            alone: true,
            late: self.module.late,
            ..carried
        };
        let seen = each(cases.len(), self.options.jobs, |number| {
            let run = folder.join(format!("run-{number}"));
            new_folder(&run)?;
            let roster = equip(&run, [0; 16], std::slice::from_ref(&carried))?;
            let arming = Arming {
                agent: &self.agent,
                roster: &roster,
                outside: None,
            };
            let variables = arming.variables(|name| std::env::var_os(name));
            let (_, outcome) = self.labelled(cases[number], &variables)?;
            let marks = read_record(&carried.record(&run), |view| {
                let armed = view.live.armed.get() > 0 && view.live.refused.get() == 0;
                armed.then(|| view.marks.to_vec())
            })?;
            let _ = std::fs::remove_dir_all(&run);
            Ok::<_, IsolateError>(marks.map(|marks| (outcome, marks)))
        });
        let seen = seen.into_iter().filter_map(Result::transpose);
        seen.collect()
    }
}
