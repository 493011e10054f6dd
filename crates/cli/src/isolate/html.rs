//! The answer as a page that needs nothing else.

use std::fmt::Write as _;

use tomo_export::markup;
use tomo_isolate::{Answer, Finding};

use super::text::truths;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
    p,h1{overflow-wrap:anywhere}pre{background:#f4f4f4;padding:.5rem;overflow-x:auto}.here{background:#ffe08a}\
    table{border-collapse:collapse}td,th{padding:.2rem .8rem;text-align:left;border-bottom:1px solid #ddd}\
    @media(prefers-color-scheme:dark){body{color:#ddd;background:#1b1b1b}pre{background:#2a2a2a}.here{background:#6b5200}}";

/// The page.
pub(super) fn write(answer: &Answer) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>What predicts the failure</title>\
         <style>{STYLE}</style></head><body>\n<h1>What predicts the failure</h1>\n<p>{}</p>\n<ol>\n",
        markup::escaped(&answer.verdict())
    );
    for finding in &answer.findings {
        write_finding(&mut page, finding);
    }
    page += "</ol>\n<h2>How the search went</h2>\n<table><tr><th>Step</th><th>Sites</th><th>Runs</th><th>Best</th><th>Then</th></tr>\n";
    for (number, step) in (1..).zip(&answer.steps) {
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "<tr><td>{number}</td><td>{}</td><td>{}</td><td>{:.3}</td><td>{}</td></tr>",
            step.sites,
            step.runs,
            step.best,
            markup::escaped(&step.why)
        );
    }
    let _ = writeln!(
        page,
        "</table>\n<p>{} cases fail, {} do not; {} of {} sites were watched.</p>\n</body></html>",
        answer.failures, answer.successes, answer.seen, answer.sites
    );
    page
}

fn write_finding(page: &mut String, finding: &Finding) {
    let words = &finding.words;
    let _ = writeln!(
        page,
        "<li><p><b>{}</b>: {}: {}. Importance {:.3} ({:.3} to {:.3}).{}</p>",
        markup::escaped(&words.place),
        markup::escaped(&words.what),
        truths(finding),
        finding.importance.value,
        finding.importance.low,
        finding.importance.high,
        words
            .inferred
            .as_ref()
            .map_or_else(String::new, |how| format!(
                " Inferred: {}.",
                markup::escaped(how)
            )),
    );
    let here = finding.line.as_ref().map_or(0, |line| line.line);
    page.push_str("<pre>");
    for (line, source) in &finding.source {
        let class = if *line == here { " class=\"here\"" } else { "" };
        let source = markup::escaped(source);
        let _ = writeln!(page, "<span{class}>{line:>5}  {source}</span>");
    }
    page.push_str("</pre></li>\n");
}
