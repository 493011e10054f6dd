//! What benches print: one JSON object a line, between lines for people; and how a table ends.

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;

/// The measurements in what a bench printed: the lines that are JSON objects, or end with one (the
/// test runner's dots come before them).
pub(super) fn read<Row: DeserializeOwned>(printed: &str) -> Result<Vec<Row>> {
    let objects = |line| str::find(line, '{').map(|at| &line[at..]);
    let lines = printed.lines().filter_map(objects);
    lines
        .map(|line| {
            serde_json::from_str(line).with_context(|| format!("not a measurement: {line}"))
        })
        .collect()
}

/// The sentence below a table of promises.
pub(super) fn verdict(broken: usize) -> String {
    match broken {
        0 => "All promises are kept.".into(),
        1 => "1 promise is not kept.".into(),
        _ => format!("{broken} promises are not kept."),
    }
}

#[cfg(test)]
mod tests {
    use super::{read, verdict};

    #[test]
    fn lines_for_people_are_passed_over_and_what_is_no_measurement_is_refused() {
        let printed = "hello\n{}\n..{}\n";
        assert_eq!(read::<serde_json::Value>(printed).unwrap().len(), 2);
        assert!(read::<serde_json::Value>("{1}").is_err());
    }

    #[test]
    fn one_promise_is_not_many() {
        let said = [0, 1, 2].map(verdict);
        assert_eq!(said[0], "All promises are kept.");
        assert_eq!(said[1], "1 promise is not kept.");
        assert_eq!(said[2], "2 promises are not kept.");
    }
}
