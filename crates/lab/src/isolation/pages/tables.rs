//! The tables.

use super::super::results::{Results, Searched, Studied};
use super::{by_program, mean, table};
use crate::table::{Table, count, number, percent};

/// Heuristics, in the order of the paper's Table 2, then what goes on from it.
const WAYS: [&str; 14] = [
    "failcount",
    "importance",
    "maximp",
    "ttest",
    "ochiai",
    "random",
    "bfs",
    "oracle",
    "backward importance",
    "backward bfs",
    "both importance",
    "ttest surveyed",
    "ochiai surveyed",
    "both ochiai surveyed",
];

fn searched<'s>(one: &'s Studied, way: &str) -> Option<&'s Searched> {
    one.searched.iter().find(|searched| searched.way == way)
}

/// Whether a way found a predictor as good as the best in all trials.
pub(super) fn found(one: &Studied, way: &str) -> bool {
    searched(one, way).is_some_and(|searched| searched.found == searched.trials)
}

/// The share of the sites that it had seen then.
pub(super) fn share(one: &Studied, way: &str) -> Option<f64> {
    let searched = searched(one, way).filter(|searched| searched.found > 0)?;
    Some(searched.seen / one.observable.max(1) as f64)
}

/// The same where the entries that a survey observed count as sites, all of them seen.
pub(super) fn share_with_entries(one: &Studied, way: &str) -> Option<f64> {
    let seen = share(one, way)? * one.observable.max(1) as f64;
    let all = one.observable.max(1) + one.entries;
    Some((seen + one.entries as f64) / all as f64)
}

/// Table 1.
pub(super) fn programs(results: &Results) -> Table {
    let mut made = table(
        "isolation-table-1",
        "Table 1, ours: programs",
        &[
            "program",
            "#variants",
            "#lines",
            "#sites",
            "#observable",
            "#entries",
            "#cases",
        ],
    );
    for (name, variants) in by_program(results) {
        let first = variants[0];
        made.rows.push(vec![
            name.into(),
            count(variants.len() as u64),
            count(first.lines as u64),
            count(first.sites as u64),
            percent(Some(first.observable as f64 / first.sites.max(1) as f64)) + " %",
            count(first.entries as u64),
            count((first.failures + first.successes) as u64),
        ]);
    }
    made
}

/// Variants, one by one.
pub(super) fn variants(results: &Results) -> Table {
    let columns = [
        "program",
        "variant",
        "what is wrong",
        "shows",
        "#fail",
        "#of",
        "#best",
        "#as good",
        "#steps",
        "#seen, %",
    ];
    let mut made = table(
        "isolation-variants",
        "Variants, and the search by ttest",
        &columns,
    );
    for one in &results.studied {
        let place = if one.is_far { "far" } else { "near" };
        let kind = if one.crashes { "crash" } else { "output" };
        let steps = searched(one, "ttest").filter(|searched| searched.found > 0);
        made.rows.push(vec![
            one.subject.clone(),
            one.variant.clone(),
            one.what.clone(),
            format!("{kind}, {place}"),
            count(one.failures as u64),
            count((one.failures + one.successes) as u64),
            number(Some(one.best)),
            count(one.equals as u64),
            steps.map_or_else(
                || "not found".into(),
                |searched| format!("{:.0}", searched.steps),
            ),
            percent(share(one, "ttest")),
        ]);
    }
    made
}

/// A row of a program: a mean of its variants for each way.
fn means(
    results: &Results,
    made: &mut Table,
    of: impl Fn(&Studied, &str) -> Option<f64>,
    write: impl Fn(Option<f64>) -> String,
) {
    let row = |name: &str, variants: &[&Studied]| {
        let cells = WAYS.map(|way| write(mean(variants.iter().filter_map(|one| of(one, way)))));
        std::iter::once(name.to_owned()).chain(cells).collect()
    };
    for (name, variants) in by_program(results) {
        made.rows.push(row(name, &variants));
    }
    let all: Vec<&Studied> = results.studied.iter().collect();
    made.rows.push(row("overall", &all));
}

fn columns() -> Vec<String> {
    let ways = WAYS.iter().map(|way| format!("#{way}"));
    std::iter::once("program".to_owned()).chain(ways).collect()
}

/// Figure 4, as a table, for all ways.
pub(super) fn shares(results: &Results) -> Table {
    let columns = columns();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut made = table(
        "isolation-figure-4",
        "Figure 4, ours: sites seen until a predictor as good as the best was found, percent, mean of the variants in which it was",
        &columns,
    );
    means(results, &mut made, share, percent);
    let cells = WAYS.map(|way| {
        let found = results.studied.iter().filter(|one| found(one, way)).count();
        let gone = results
            .studied
            .iter()
            .filter(|one| searched(one, way).is_some());
        format!("{found} of {}", gone.count())
    });
    let row = std::iter::once("found in".to_owned()).chain(cells);
    made.rows.push(row.collect());
    made
}

/// Table 2.
pub(super) fn steps(results: &Results) -> Table {
    let columns = columns();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut made = table(
        "isolation-table-2",
        "Table 2, ours: steps until then, and sites in a step, mean of the variants in which it was found",
        &columns,
    );
    let both = |steps: Option<f64>| steps.map_or_else(String::new, |steps| format!("{steps:.1}"));
    let is_found =
        |one: &Studied, way: &str| found(one, way).then(|| searched(one, way).cloned())?;
    means(
        results,
        &mut made,
        |one, way| Some(is_found(one, way)?.steps),
        both,
    );
    let rows = made.rows.len();
    means(
        results,
        &mut made,
        |one, way| Some(is_found(one, way)?.sites),
        both,
    );
    for (at, row) in made.rows.iter_mut().enumerate() {
        let what = if at < rows { "steps" } else { "sites" };
        row[0] = format!("{}, {what}", row[0]);
    }
    made
}

/// Table 3.
pub(super) fn overhead(results: &Results) -> Table {
    let columns = [
        "program",
        "#complete",
        "#adaptive (ttest)",
        "#steps",
        "as rehearsed",
        "ended",
        "what it said",
    ];
    let mut made = table(
        "isolation-table-3",
        "Table 3, ours: overhead on short runs",
        &columns,
    );
    for (name, variants) in by_program(results) {
        let complete = mean(variants.iter().map(|one| one.slower));
        let Some(real) = variants.iter().find_map(|one| one.real.as_ref()) else {
            continue;
        };
        let word = |is: bool| if is { "yes" } else { "no" };
        made.rows.push(vec![
            name.into(),
            number(complete),
            number(real.slower),
            count(real.steps as u64),
            word(real.as_rehearsed).into(),
            word(real.complete).into(),
            real.verdict.replace('|', "\\|"),
        ]);
    }
    made
}

/// What sampling sees.
pub(super) fn sampling(results: &Results) -> Table {
    let columns = [
        "program",
        "#1/100 found",
        "#reached, %",
        "#1/1,000 found",
        "#reached, %",
    ];
    let mut made = table(
        "isolation-sampling",
        "Sampling, against complete monitoring",
        &columns,
    );
    for (name, variants) in by_program(results) {
        let mut row = vec![name.to_owned()];
        for one_in in [100, 1000] {
            let all = variants.iter().flat_map(|one| {
                let sampled = one.sampled.iter().filter(move |one| one.one_in == one_in);
                sampled.map(move |sampled| (sampled, one.best))
            });
            let all: Vec<_> = all.collect();
            let found: usize = all.iter().map(|one| one.0.found).sum();
            let draws: usize = all.iter().map(|one| one.0.draws).sum();
            row.push(format!("{found} of {draws}"));
            let reached = all.iter().filter(|one| one.1 > 0.0);
            row.push(percent(mean(reached.map(|one| one.0.reached / one.1))));
        }
        made.rows.push(row);
    }
    made
}

/// Two faults at once.
pub(super) fn several(results: &Results) -> Table {
    let columns = [
        "program",
        "fault",
        "#cases that fail by it",
        "#together: sites, %",
        "#steps",
        "#apart: sites, %",
        "#steps",
    ];
    let mut made = table("isolation-several", "Two faults at once", &columns);
    for one in &results.several {
        for (number, fault) in one.faults.iter().enumerate() {
            let mut row = vec![
                one.subject.clone(),
                fault.clone(),
                count(one.failures[number] as u64),
            ];
            for way in [&one.together, &one.apart] {
                let sites =
                    way[number].map(|(sites, _)| sites as f64 / one.observable.max(1) as f64);
                row.push(percent(sites));
                row.push(
                    way[number]
                        .map_or_else(|| "not found".into(), |(_, steps)| count(steps as u64)),
                );
            }
            made.rows.push(row);
        }
    }
    made
}

/// HOLMES.
pub(super) fn walks(results: &Results) -> Table {
    let columns = [
        "program",
        "#found",
        "#in the first step",
        "#stuck",
        "#sites seen where found, %",
        "#ttest, of the same, %",
    ];
    let mut made = table("isolation-holmes", "Function by function", &columns);
    for (name, variants) in by_program(results) {
        let walked = variants.iter().filter_map(|one| Some((*one, one.walked?)));
        let walked: Vec<_> = walked.collect();
        let found: Vec<_> = walked.iter().filter(|one| one.1.found).collect();
        let at_once = found.iter().filter(|one| one.1.steps == 1).count();
        let shares = found
            .iter()
            .map(|one| one.1.seen as f64 / one.0.observable.max(1) as f64);
        let same = found.iter().filter_map(|one| share(one.0, "ttest"));
        made.rows.push(vec![
            name.into(),
            format!("{} of {}", found.len(), walked.len()),
            count(at_once as u64),
            count(walked.iter().filter(|one| one.1.stuck).count() as u64),
            percent(mean(shares)),
            percent(mean(same)),
        ]);
    }
    made
}
