//! The answer for code review and editors: SARIF 2.1.0 (OASIS standard, §3.27, result objects).

use serde_json::{Value, json};
use tomo_isolate::{Answer, Finding};

use super::text::truths;

/// The log.
pub(super) fn write(answer: &Answer) -> String {
    let results: Vec<Value> = (1..)
        .zip(&answer.findings)
        .map(|(rank, finding)| result(rank, finding))
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "tomo isolate",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [{
                    "id": "failure-predictor",
                    "shortDescription": { "text": "What is so more often in runs that fail." },
                }],
            }},
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

fn result(rank: usize, finding: &Finding) -> Value {
    let text = format!("{}: {}", finding.words.what, truths(finding));
    let mut result = json!({
        "ruleId": "failure-predictor",
        "level": if rank == 1 { "error" } else { "note" },
        "message": { "text": text },
        "rank": (finding.importance.value * 100.0),
        "partialFingerprints": { "predicate/v1": finding.id.to_string() },
    });
    let place = finding.line.as_ref().map(|line| {
        json!({
            "artifactLocation": { "uri": uri(&line.file) },
            "region": { "startLine": line.line.max(1) },
        })
    });
    let mut location = json!({
        "logicalLocations": [{ "name": finding.function, "kind": "function" }],
    });
    if let Some(place) = place {
        location["physicalLocation"] = place;
    }
    result["locations"] = json!([location]);
    result
}

/// A path as a URI (RFC 3986, §2.3): what is not unreserved is written by its number.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let each = path.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    let encoded: String = each.collect();
    match encoded.starts_with('/') {
        true => format!("file://{encoded}"),
        false => encoded,
    }
}
