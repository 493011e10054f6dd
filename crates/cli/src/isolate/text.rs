//! The answer for people, at a terminal.

use std::fmt::Write as _;

use tomo_export::words::{counted, grouped};
use tomo_isolate::{Answer, Finding};

/// What a search is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Cases, which are run when the search is called.
    Cases,
    /// Runs of a fleet, which come when they come.
    Runs,
}

/// The answer in words.
pub(crate) fn write(answer: &Answer, of: Of) -> String {
    let mut text = format!("{}\n\n", answer.verdict());
    for (rank, finding) in (1..).zip(&answer.findings) {
        write_finding(&mut text, rank, finding);
    }
    text += &summary(answer, of);
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
    let found = match finding.step {
        0 => String::new(),
        step => format!(" found in step {step},"),
    };
    let inferred = words.inferred.as_ref();
    let inferred = inferred.map_or_else(String::new, |how| format!("; inferred: {how}"));
    let _ = writeln!(
        text,
        "   Importance {:.3} ({:.3} to {:.3}),{found} {} in {}{inferred}",
        importance.value, importance.low, importance.high, finding.id, finding.function,
    );
    let here = finding.line.as_ref().map_or(0, |line| line.line);
    for (line, source) in &finding.source {
        let sign = if *line == here { '>' } else { ' ' };
        let _ = writeln!(text, "   {sign} {line:>5} | {source}");
    }
    text.push('\n');
}

/// How the search got there.
fn summary(answer: &Answer, of: Of) -> String {
    let (one, many, did_not, more) = match of {
        Of::Cases => (
            "case fails",
            "cases fail",
            "do not",
            "called again, it goes on",
        ),
        Of::Runs => (
            "run failed",
            "runs failed",
            "did not",
            "it goes on as more runs are reported",
        ),
    };
    let mut text = format!(
        "{}, {} {}. {} of {} sites were watched{}{}\n",
        counted(answer.failures as u64, one, many),
        grouped(answer.successes as u64),
        did_not,
        grouped(answer.seen as u64),
        grouped(answer.sites as u64),
        answer.in_steps(),
        if answer.steps.is_empty() { '.' } else { ':' },
    );
    for (number, step) in (1..).zip(&answer.steps) {
        let _ = writeln!(
            text,
            "  {number}. {}, best {:.3}; then {}",
            counted(step.sites as u64, "site", "sites"),
            step.best,
            step.why
        );
    }
    if answer.flaky > 0 {
        let flaky = counted(answer.flaky as u64, "case does", "cases do");
        let _ = writeln!(text, "{flaky} not always end alike.");
    }
    if !answer.complete {
        let _ = writeln!(text, "The search is not at its end; {more}.");
    }
    text
}
