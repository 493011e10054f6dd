//! The whole study on a small program with few runs: its tables say what a direct computation from the same
//! results says, and what it counts is there.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tomo_lab::disposal::{Results, Units, Way, fleet, read_subjects, render};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};
use tomo_testkit::tomo;

/// A list of one subject: a program of features, with flags and calls at blocks by dominators only.
fn subjects(folder: &Path) -> std::path::PathBuf {
    let plain = Recipe::new(Source::CFeatures, Compiler::Clang, Level::O2);
    let marked = [("flag", "inline-bool-flag"), ("call", "trace-pc-guard")].map(|(mark, kind)| {
        let mut recipe = plain.clone();
        recipe.extra = vec![
            format!("-fsanitize-coverage=bb,{kind}"),
            "-fno-sanitize-link-runtime".into(),
        ];
        recipe.with = vec!["study/marks.c"];
        let program = build(&recipe).expect("built").program;
        json!({ "units": "block-dom", "mark": mark, "program": program })
    });
    let program = build(&plain).expect("built").program;
    let runs = [json!({ "operations": 3 }), json!({})];
    let list = json!({ "schema": "tomo.subjects/1", "subjects": [{
        "name": "features", "plain": program, "inputs": { "runs": runs }, "marked": marked,
    }] });
    let path = folder.join("subjects.json");
    fs::write(&path, list.to_string()).expect("written");
    path
}

/// A table as rows of columns by name; of two columns with one name the first counts.
fn table(folder: &Path, name: &str) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(folder.join(name)).expect(name);
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().expect("heads").split(',').collect();
    let row = |line: &str| {
        let mut row = HashMap::new();
        for (head, cell) in heads.iter().zip(line.split(',')) {
            row.entry((*head).to_owned())
                .or_insert_with(|| cell.to_owned());
        }
        row
    };
    lines.map(row).collect()
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn tables_say_what_the_results_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("study");
    let list = subjects(folder.path());
    let said = Command::new(tomo::path().expect("tomo"))
        .args(["study", "disposal", "--rounds", "3", "--instances", "4"])
        .arg("--subjects")
        .arg(&list)
        .arg("--output")
        .arg(&output)
        .output()
        .expect("started");
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );

    let text = fs::read_to_string(output.join("results.json")).expect("results");
    let results: Results = serde_json::from_str(&text).expect("results");
    assert_eq!(results.faults, [""; 0]);
    the_times(&results, &output);
    the_redundancy(&results, &output);
    the_instances(&results, &output);
    // The page is made of the results alone.
    for (name, content) in render(&results).expect("rendered") {
        let written = fs::read_to_string(output.join(&name)).expect("a file");
        assert_eq!(written, content, "{name}");
        if name.ends_with(".svg") {
            roxmltree::Document::parse(&content).expect("a picture");
        }
    }
    let page = fs::read_to_string(output.join("disposal.md")).expect("the page");
    for number in [
        "Table 1", "Table 2", "Table 3", "Table 4", "Table 6", "Table 5", "Figure 2", "Figure 3",
        "Figure 4", "Figure 5",
    ] {
        assert!(page.contains(number), "{number}");
    }
}

fn the_times(results: &Results, output: &Path) {
    let [timed] = results.timed.as_slice() else {
        panic!("{:?}", results.timed);
    };
    let samples: HashMap<Way, &Vec<f64>> = timed.samples.iter().map(|(way, s)| (*way, s)).collect();
    // Two marked builds, at one of three kinds of units; our own ways at all three.
    assert_eq!(samples.len(), 2 + 2 + 3 * 3);
    assert!(
        samples
            .values()
            .all(|one| one.len() == 3 && one.iter().all(|s| *s > 0.0))
    );
    let bare = samples[&Way::Bare];
    let over = |way: Way| {
        let shares = samples[&way].iter().zip(bare).map(|(s, b)| (s - b) / b);
        format!("{:.1}", 100.0 * middle(shares.collect()))
    };
    for (name, units) in [
        ("table-2", Units::Block),
        ("table-3", Units::BlockDom),
        ("table-4", Units::Function),
    ] {
        let rows = table(output, &format!("{name}.csv"));
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["LD %"], over(Way::Covered(units)), "{name}");
        assert_eq!(rows[0]["armed %"], over(Way::Armed(units)), "{name}");
    }
    // Without a build there is no figure.
    assert_eq!(table(output, "table-2.csv")[0]["gain on call"], "");
    assert_ne!(table(output, "table-3.csv")[0]["gain on call"], "");
}

fn the_redundancy(results: &Results, output: &Path) {
    let [one] = results.redundancy.as_slice() else {
        panic!("{:?}", results.redundancy);
    };
    assert_eq!(one.units, Units::BlockDom);
    // Two runs that do the same.
    assert!(one.unique > 0 && one.unique.is_multiple_of(2) && one.executed > one.unique);
    let grouped = table(output, "redundancy.csv");
    assert_eq!(grouped[0]["run"], "features");
}

fn the_instances(results: &Results, output: &Path) {
    let rows = table(output, "table-5-features-pool.csv");
    let of = |technique, deployment| {
        let same = |one: &&fleet::Deployed| {
            one.source == fleet::Source::Pool
                && one.technique == technique
                && one.deployment == deployment
        };
        results.fleets.iter().find(same).expect("deployed")
    };
    for deployment in fleet::Deployment::ALL {
        let (local, all) = (
            of(fleet::Technique::Local, deployment),
            of(fleet::Technique::Collective, deployment),
        );
        assert_eq!(local.instances.len(), 4 * fleet::REPETITIONS);
        assert_eq!(local.probes, all.probes);
        // Every run does the same, so all of them together have seen what each has seen.
        let each = local.instances[0].recorded.expect("known");
        assert!(each > 0 && local.instances.iter().all(|one| one.recorded == Some(each)));
        assert_eq!(all.seen, [each; fleet::REPETITIONS]);
    }
    let one_by_one = of(fleet::Technique::Collective, fleet::Deployment::Sequential);
    let recorded: Vec<_> = one_by_one
        .instances
        .iter()
        .map(|one| one.recorded)
        .collect();
    // What the first of each repetition hits, nobody after it pays for.
    let first = one_by_one.seen[0];
    let expected = [Some(first), Some(0), Some(0), Some(0)];
    assert_eq!(recorded, [expected, expected].concat());
    let row = rows
        .iter()
        .find(|row| row["technique and deployment"] == "CD - sequential");
    let share = first as f64 / 4.0 / one_by_one.probes.expect("known") as f64;
    assert_eq!(
        row.expect("a row")["probes executed %"],
        format!("{:.1}", 100.0 * share)
    );
    simulated(results);
}

/// One after the other, in the simulation too, each probe records once.
fn simulated(results: &Results) {
    let same = |one: &&fleet::Deployed| {
        one.source == fleet::Source::Simulated && one.technique == fleet::Technique::Collective
    };
    let all: Vec<_> = results.fleets.iter().filter(same).collect();
    assert_eq!(all.len(), fleet::Deployment::ALL.len());
    let unique = results.redundancy[0].unique / 2;
    for one in all {
        let recorded: Vec<u64> = one.instances.iter().filter_map(|i| i.recorded).collect();
        assert_eq!(recorded.len(), 4 * fleet::REPETITIONS);
        assert_eq!(one.seen, [unique; fleet::REPETITIONS]);
        if one.deployment == fleet::Deployment::Sequential {
            assert_eq!(
                recorded.iter().sum::<u64>(),
                unique * fleet::REPETITIONS as u64
            );
        }
    }
}

#[test]
fn a_list_of_nothing_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("list.json");
    fs::write(
        &path,
        json!({ "schema": "tomo.subjects/1", "subjects": [] }).to_string(),
    )
    .expect("written");
    assert_eq!(read_subjects(&path).expect("a list"), []);
    let said = Command::new(tomo::path().expect("tomo"))
        .args(["study", "disposal", "--subjects"])
        .arg(&path)
        .arg("--output")
        .arg(folder.path().join("out"))
        .output()
        .expect("started");
    assert_eq!(said.status.code(), Some(2));
}
