//! The answer for programs, schema tomo.isolate/1.

use serde_json::{Value, json};
use tomo_isolate::{Answer, Finding};

/// The document.
pub(crate) fn write(answer: &Answer) -> String {
    let findings: Vec<Value> = answer.findings.iter().map(finding).collect();
    let steps: Vec<Value> = answer
        .steps
        .iter()
        .map(|step| {
            json!({
                "sites": step.sites,
                "runs": step.runs,
                "best": step.best,
                "predictor": step.predictor,
                "then": step.why,
                "slowdown": step.slower,
            })
        })
        .collect();
    let document = json!({
        "schema": "tomo.isolate/1",
        "module": answer.module.to_string_lossy(),
        "verdict": answer.verdict(),
        "complete": answer.complete,
        "failures": answer.failures,
        "successes": answer.successes,
        "flaky": answer.flaky,
        "sites": answer.sites,
        "sites_seen": answer.seen,
        "findings": findings,
        "steps": steps,
    });
    format!("{document:#}\n")
}

fn finding(finding: &Finding) -> Value {
    let known = &finding.known;
    json!({
        "id": finding.id.to_string(),
        "function": finding.function,
        "file": finding.line.as_ref().map(|line| &line.file),
        "line": finding.line.as_ref().map(|line| line.line),
        "what": finding.words.what,
        "inferred": finding.words.inferred,
        "importance": {
            "value": finding.importance.value,
            "low": finding.importance.low,
            "high": finding.importance.high,
        },
        "failures": { "true": known.failed_true, "observed": known.failed_seen, "all": known.failed },
        "successes": { "true": known.passed_true, "observed": known.passed_seen, "all": known.passed },
        "step": finding.step,
    })
}
