//! The answer for people, at a terminal.

use std::fmt::Write as _;

use tomo_export::words::grouped;
use tomo_isolate::{Answer, Finding};

/// The answer in words.
pub(crate) fn write(answer: &Answer) -> String {
    let mut text = format!("{}\n\n", answer.verdict());
    for (rank, finding) in (1..).zip(&answer.findings) {
        write_finding(&mut text, rank, finding);
    }
    text += &summary(answer);
    text
}

/// In how many runs it was true.
pub(super) fn truths(finding: &Finding) -> String {
    let known = &finding.known;
    format!(
        "{} of {} failures, {} of {} successes",
        grouped(known.failed_true),
        grouped(known.failed),
        grouped(known.passed_true),
        grouped(known.passed)
    )
}

fn write_finding(text: &mut String, rank: usize, finding: &Finding) {
    let words = &finding.words;
    let importance = finding.importance;
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{rank}. {}: {}: {}",
        words.place,
        words.what,
        truths(finding)
    );
    let inferred = words.inferred.as_ref();
    let inferred = inferred.map_or_else(String::new, |how| format!("; inferred: {how}"));
    let _ = writeln!(
        text,
        "   Importance {:.3} ({:.3} to {:.3}), found in step {}, {} in {}{inferred}",
        importance.value,
        importance.low,
        importance.high,
        finding.step,
        finding.id,
        finding.function,
    );
    let here = finding.line.as_ref().map_or(0, |line| line.line);
    for (line, source) in &finding.source {
        let sign = if *line == here { '>' } else { ' ' };
        let _ = writeln!(text, "   {sign} {line:>5} | {source}");
    }
    text.push('\n');
}

/// How the search got there.
fn summary(answer: &Answer) -> String {
    let mut text = format!(
        "{} cases fail, {} do not. {} of {} sites were watched in {} steps:\n",
        grouped(answer.failures as u64),
        grouped(answer.successes as u64),
        grouped(answer.seen as u64),
        grouped(answer.sites as u64),
        answer.steps.len()
    );
    for (number, step) in (1..).zip(&answer.steps) {
        let _ = writeln!(
            text,
            "  {number}. {} sites, best {:.3}; then {}",
            grouped(step.sites as u64),
            step.best,
            step.why
        );
    }
    if answer.flaky > 0 {
        let _ = writeln!(text, "{} cases do not always end alike.", answer.flaky);
    }
    if !answer.complete {
        text += "The search is not at its end; called again, it goes on.\n";
    }
    text
}
