//! Two faults at once (ABI §5.4): one search for all failures, and one for those of each, which are told by how runs end.

use tomo_isolate::{Complete, End, Rehearsal, Session};

use super::IsolationError;
use super::results::Several;
use super::run::{Laboratory, goal};
use super::subject::{Subject, Variant};
use super::ways::USUAL;

/// The program with the first fault that makes it crash and the first that does not, if it has both.
pub(super) fn several(
    laboratory: &Laboratory<'_>,
    subject: &Subject,
) -> Result<Option<Several>, IsolationError> {
    let first = |crashes| subject.variants.iter().find(|one| one.crashes == crashes);
    let (Some(crash), Some(output)) = (first(true), first(false)) else {
        return Ok(None);
    };
    let session = laboratory.session(subject, &[crash, output])?;
    let complete = session.complete()?;
    Ok(Some(compared(
        subject,
        [crash, output],
        &session,
        &complete,
    )?))
}

fn compared(
    subject: &Subject,
    faults: [&Variant; 2],
    session: &Session,
    complete: &Complete,
) -> Result<Several, IsolationError> {
    let ends = session.ends();
    let is_crash = |case: usize| matches!(ends[case].0, End::Killed(_) | End::Hung);
    let all = session.stage(complete)?;
    let together = USUAL.rehearse(&all, true);
    let mut several = Several {
        subject: subject.name.clone(),
        faults: faults.iter().map(|fault| fault.name.clone()).collect(),
        failures: Vec::new(),
        together: Vec::new(),
        apart: Vec::new(),
        observable: all.sites().0,
    };
    for crashes in [true, false] {
        let own = complete.only(|case| ends[case].1 || is_crash(case) == crashes);
        let failing = own.cases.iter().filter(|case| !ends[case.0].1).count();
        let stage = session.stage(&own)?;
        let rows = goal(&stage);
        let apart = USUAL.rehearse(&stage, true);
        several.failures.push(failing);
        several.together.push(until(&together, &rows));
        several.apart.push(until(&apart, &rows));
    }
    Ok(several)
}

/// Sites and steps until one of these rows had been watched.
fn until(rehearsal: &Rehearsal, rows: &[usize]) -> Option<(usize, usize)> {
    let steps = rows
        .iter()
        .filter_map(|row| rehearsal.watched.get(*row).copied().flatten());
    let step = steps.min()? as usize;
    Some((rehearsal.steps.get(step)?.seen, step + 1))
}
