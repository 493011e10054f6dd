//! The answer of a fleet's search, in the words in which that of one machine is told.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tomo_export::predicates::{Id, Sites};
use tomo_protocol::Group;

use crate::answer::{self, Answer};
use crate::state::{Known, StepMade};

/// What the search for one cause came to, of the module with these sites.
#[must_use]
pub fn fleet_answer(sites: &Sites, module: PathBuf, group: &Group, all: u32) -> Answer {
    let known: BTreeMap<usize, Known> = group
        .known
        .iter()
        .map(|known| (known.row as usize, of_fleet(known)))
        .collect();
    let best = answer::best(&known);
    let name = |row: Option<u32>| {
        let row = sites.rows.get(row? as usize)?;
        Some(Id::of(row)?.to_string())
    };
    let steps = group.steps.iter().map(|step| StepMade {
        sites: step.sites as usize,
        runs: step.runs as usize,
        why: match name(step.chosen) {
            Some(name) => format!("near {name}"),
            None => "more of the same".into(),
        },
        best: step.best,
        predictor: name(step.predictor),
        slower: None,
    });
    Answer {
        findings: answer::findings(sites, &best, &known, &known),
        failures: group.failures as usize,
        successes: group.successes as usize,
        flaky: 0,
        steps: steps.collect(),
        seen: group.seen as usize,
        sites: all as usize,
        complete: group.done,
        vanished: false,
        lone: answer::has_lone(&known),
        module,
    }
}

fn of_fleet(known: &tomo_protocol::Known) -> Known {
    Known {
        failed_true: known.failed_true,
        passed_true: known.passed_true,
        failed_seen: known.failed_seen,
        passed_seen: known.passed_seen,
        failed: known.failed,
        passed: known.passed,
        step: known.step,
    }
}
