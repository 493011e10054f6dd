//! Complete data and searches on them, held against what is computed otherwise: from what a debugger sees that executes each
//! case instruction by instruction, by the definitions of the papers, in sets of runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tomo_export::predicates::Site;
use tomo_isolate::{Cases, Options, Score, Session, StepMade, Towards, Watch, Way};
use tomo_launch::Agent;
use tomo_profile::scores::Heuristic;
use tomo_testkit::corpus::{Workload, compiled};
use tomo_testkit::steps::{Kind, Outside, Trace, Transition, observe};
use tomo_wire::predicates::Kind as Looked;

struct Silent;

impl Watch for Silent {
    fn note(&mut self, _: &str) {}
    fn step(&mut self, _: usize, _: &StepMade, _: usize, _: usize) {}
}

/// Cases of which some fail: arguments, and whether the output is to be what it should not.
const CASES: [(&str, bool); 12] = [
    ("weigh 1 2 3", false),
    ("weigh 13 2", true),
    ("weigh 7 13 40", true),
    ("weigh 60 61 62 63", false),
    ("look 4 66", true),
    ("look 1 2 3", false),
    ("look", false),
    ("combine 60 70", true),
    ("combine 60 7", false),
    ("combine 6 70", false),
    ("weigh -5 5", false),
    ("look 66", true),
];

fn program(level: &str) -> PathBuf {
    compiled("gcc", "isolating.c", &[level, "-g"]).expect("built")
}

fn options(folder: &Path, program: &Path) -> Options {
    let lines: Vec<&str> = CASES.iter().map(|case| case.0).collect();
    options_with(folder, program, &lines)
}

fn options_with(folder: &Path, program: &Path, lines: &[&str]) -> Options {
    let right = compiled("gcc", "isolating.c", &["-O1", "-DRIGHT"]).expect("built");
    options_like(folder, program, &right, lines)
}

/// Cases that are to do what `right` does.
fn options_like(folder: &Path, program: &Path, right: &Path, lines: &[&str]) -> Options {
    let text = format!("%success like {}\n{}\n", right.display(), lines.join("\n"));
    let cases = folder.join("cases");
    std::fs::write(&cases, text).expect("written");
    Options {
        command: vec![program.into()],
        cases: Cases::read(&cases).expect("cases"),
        folder: folder.join("search"),
        cache: folder.join("cache"),
        runs: 500,
        survey: false,
        jobs: 2,
        towards: Towards::Forward,
        score: Score::By(Heuristic::TTest),
        seed: 1,
        steps: usize::MAX,
        most: u32::MAX,
        start: Vec::new(),
        focus: Vec::new(),
        exclude: Vec::new(),
        paths: false,
    }
}

/// In which cases a predicate was true, and in which its site was reached.
#[derive(Default)]
struct Truths {
    held: BTreeSet<usize>,
    seen: BTreeSet<usize>,
}

/// Far more steps than any case takes.
const LIMIT: u64 = 10_000_000;

/// What the debugger sees of each case.
fn traces(program: &Path) -> Vec<Trace> {
    let each = CASES.iter().map(|(arguments, _)| {
        let workload = Workload {
            args: arguments.split(' ').map(str::to_owned).collect(),
            ..Workload::default()
        };
        observe(program, &workload, Outside::Leap, LIMIT).expect("a trace")
    });
    each.collect()
}

/// Whether a predicate was true, by the debugger.
fn held(site: &Site, case: u8, trace: &Trace) -> bool {
    if site.kind == Looked::Branch {
        let passage = Transition {
            from: Some(site.address.0),
            to: Some(site.ways[usize::from(case)].0),
            kind: Kind::Flow,
        };
        return trace.transitions.contains_key(&passage);
    }
    let width = site.bits.trailing_zeros() as usize - 3;
    let results = trace.results.get(&site.address.0);
    results.is_some_and(|results| results[width][usize::from(case)] > 0)
}

/// In which cases a predicate of this site was true, and in which any of them was.
fn truths(site: &Site, case: u8, traces: &[Trace]) -> Truths {
    let cases = 0..site.told.len() as u8;
    let mut truths = Truths::default();
    for (number, trace) in traces.iter().enumerate() {
        if held(site, case, trace) {
            truths.held.insert(number);
        }
        if cases.clone().any(|case| held(site, case, trace)) {
            truths.seen.insert(number);
        }
    }
    truths
}

/// Importance (Liblit et al., PLDI 2005, §3.1 and §3.3), from sets.
fn importance(truths: &Truths, failing: &BTreeSet<usize>) -> f64 {
    let share = |set: &BTreeSet<usize>| set.intersection(failing).count() as f64 / set.len() as f64;
    let f = truths.held.intersection(failing).count() as f64;
    if f == 0.0 {
        return 0.0;
    }
    let increase = share(&truths.held) - share(&truths.seen);
    let sensitivity = f.ln() / (failing.len() as f64).ln();
    match increase > 0.0 && sensitivity > 0.0 {
        true => 2.0 / (1.0 / increase + 1.0 / sensitivity),
        false => 0.0,
    }
}

#[test]
fn complete_data_are_those_of_another_way_to_get_them() {
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let program = program(level);
        let options = options(folder.path(), &program);
        let agent = Agent::in_cache(&options.cache).expect("an agent");
        let session = Session::open(options, agent, &mut Silent).expect("a session");
        let fails: Vec<bool> = session.ends().iter().map(|end| !end.1).collect();
        let planted: Vec<bool> = CASES.iter().map(|case| case.1).collect();
        assert_eq!(fails, planted, "{level}");
        let failing: BTreeSet<usize> = (0..fails.len()).filter(|case| fails[*case]).collect();
        let complete = session.complete().expect("complete data");
        let stage = session.stage(&complete).expect("a stage");
        let traces = traces(&program);
        let mut compared = 0;
        for row in 0..complete.rows() {
            let Some((id, known)) = stage.known(row) else {
                continue;
            };
            let (site, case) = stage.site(row).expect("a site");
            let other = &truths(site, case, &traces);
            let count = |set: &BTreeSet<usize>, fails: bool| {
                set.iter()
                    .filter(|case| failing.contains(case) == fails)
                    .count() as u64
            };
            assert_eq!(known.failed_true, count(&other.held, true), "{level} {id}");
            assert_eq!(known.passed_true, count(&other.held, false), "{level} {id}");
            assert_eq!(known.failed_seen, count(&other.seen, true), "{level} {id}");
            assert_eq!(known.passed_seen, count(&other.seen, false), "{level} {id}");
            let other = importance(other, &failing);
            let own = stage.scores()[row];
            assert!(
                (own - other).abs() < 1e-12,
                "{level} {id}: {own}, not {other}"
            );
            compared += 1;
        }
        assert!(compared > 40, "{level}: {compared}");
    }
}

/// Rehearsed steps are those of a search on runs; whichever way it goes, what goes on to the end sees everything.
#[test]
fn a_rehearsal_makes_the_steps_of_a_search() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = program("-O0");
    let options = options(folder.path(), &program);
    let agent = Agent::in_cache(&options.cache).expect("an agent");
    let mut session = Session::open(options, agent, &mut Silent).expect("a session");
    let complete = session.complete().expect("complete data");
    let stage = session.stage(&complete).expect("a stage");
    let way = |towards, score| Way {
        towards,
        score,
        survey: false,
        runs: 500,
        seed: 1,
        to_the_end: true,
    };
    let usual = Score::By(Heuristic::TTest);
    for towards in [Towards::Forward, Towards::Backward, Towards::Both] {
        for score in [usual, Score::Bfs, Score::Random, Score::Oracle] {
            let rehearsal = stage.rehearse(&way(towards, score));
            let seen = rehearsal.steps.last().map(|step| step.seen);
            assert_eq!(seen, Some(stage.sites().0), "{towards:?} {score:?}");
            assert!(rehearsal.ended && rehearsal.found.is_some());
        }
    }
    let rehearsal = stage.rehearse(&way(Towards::Forward, usual));
    let answer = session.search(&mut Silent).expect("an answer");
    let made: Vec<usize> = answer.steps.iter().map(|step| step.sites).collect();
    let rehearsed: Vec<usize> = rehearsal.steps.iter().map(|step| step.sites).collect();
    assert_eq!(made, rehearsed);
}

/// Functions that no failing case enters cannot have anything that predicts failure: their turn comes when all others were
/// watched, and it comes.
#[test]
fn what_no_failing_case_enters_is_watched_last() {
    const IDLE: [&str; 3] = ["look_up", "table_of", "combine"];
    const ENTERED: [&str; 4] = ["main", "weigh", "clamp", "kind_of"];
    let folder = tempfile::tempdir().expect("a folder");
    let program = program("-O0");
    let lines = [
        "weigh 1 2 3",
        "weigh 13 2",
        "weigh 7 13 40",
        "look 4 5",
        "combine 60 7",
        "weigh 2",
    ];
    let options = options_with(folder.path(), &program, &lines);
    let agent = Agent::in_cache(&options.cache).expect("an agent");
    let session = Session::open(options, agent, &mut Silent).expect("a session");
    let complete = session.complete().expect("complete data");
    let stage = session.stage(&complete).expect("a stage");
    for score in [Score::Bfs, Score::By(Heuristic::FailCount)] {
        let rehearsal = stage.rehearse(&Way {
            towards: Towards::Forward,
            score,
            survey: false,
            runs: 500,
            seed: 1,
            to_the_end: true,
        });
        let (mut last, mut first) = (None, None);
        for (row, step) in rehearsal.watched.iter().enumerate() {
            let Some((site, _)) = stage.site(row).filter(|_| step.is_some()) else {
                continue;
            };
            let name = site.function.as_str();
            if IDLE.contains(&name) {
                first = first.min(*step).or(*step);
            } else if ENTERED.contains(&name) {
                last = last.max(*step);
            }
        }
        assert!(
            last.is_some() && first > last,
            "{score:?}: {last:?}, {first:?}"
        );
        assert_eq!(
            rehearsal.steps.last().map(|step| step.seen),
            Some(stage.sites().0)
        );
    }
}

/// Which functions each run of a survey enters is what the debugger sees.
#[test]
fn a_survey_sees_which_functions_cases_enter() {
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let program = program(level);
        let options = options(folder.path(), &program);
        let agent = Agent::in_cache(&options.cache).expect("an agent");
        let session = Session::open(options, agent, &mut Silent).expect("a session");
        let traces = traces(&program);
        let bytes = std::fs::read(&program).expect("the program");
        let binary = tomo_program::Binary::parse(&bytes).expect("a program");
        // The kernel enters there, before the debugger's first step.
        let begin = binary.entry().expect("an entry").0;
        let fails = session.ends().into_iter().map(|end| !end.1);
        let fails: Vec<bool> = fails.collect();
        let mut differ = 0;
        for (entry, known) in session.surveyed_functions() {
            let enters = |trace: &Trace| {
                let mut moves = trace.transitions.keys();
                entry == begin || moves.any(|one| one.to == Some(entry))
            };
            let count = |failing: bool| {
                let runs = traces.iter().zip(&fails);
                runs.filter(|(trace, fails)| **fails == failing && enters(trace))
                    .count() as u64
            };
            assert_eq!(known.failed_true, count(true), "{level} {entry:#x}");
            assert_eq!(known.passed_true, count(false), "{level} {entry:#x}");
            assert_eq!((known.failed, known.passed), (5, 7), "{level} {entry:#x}");
            let some = 1..known.failed + known.passed;
            differ += usize::from(some.contains(&(known.failed_true + known.passed_true)));
        }
        assert!(differ >= 3, "{level}: {differ}");
    }
}

fn forward(survey: bool) -> Way {
    Way {
        towards: Towards::Forward,
        score: Score::By(Heuristic::Ochiai),
        survey,
        runs: 500,
        seed: 1,
        to_the_end: true,
    }
}

/// The function that failing cases enter rather than others is where a search begins that has a survey; without one
/// it begins where the program does. On runs it makes the same steps.
#[test]
fn a_survey_leads_to_the_routine_at_once() {
    const SUSPECT: [&str; 2] = ["look_up", "table_of"];
    let folder = tempfile::tempdir().expect("a folder");
    let program = program("-O0");
    let lines = [
        "look 4 66",
        "look 66",
        "weigh 1 2 3",
        "look 1 2 3",
        "combine 60 7",
        "weigh -5 5",
    ];
    let mut options = options_with(folder.path(), &program, &lines);
    options.survey = true;
    options.score = Score::By(Heuristic::Ochiai);
    let agent = Agent::in_cache(&options.cache).expect("an agent");
    let mut session = Session::open(options, agent, &mut Silent).expect("a session");
    let complete = session.complete().expect("complete data");
    let stage = session.stage(&complete).expect("a stage");
    let first = |way: &Way| -> BTreeSet<bool> {
        let rehearsal = stage.rehearse(way);
        let watched = rehearsal.watched.iter().enumerate();
        let first = watched.filter(|(_, step)| **step == Some(0));
        let sites = first.filter_map(|(row, _)| stage.site(row));
        let suspect = sites.map(|(site, _)| SUSPECT.contains(&site.function.as_str()));
        suspect.collect()
    };
    assert_eq!(first(&forward(true)), BTreeSet::from([true]));
    assert_eq!(first(&forward(false)), BTreeSet::from([false]));
    let seen = |survey| {
        let rehearsal = stage.rehearse(&forward(survey));
        let found = rehearsal.steps[rehearsal.found.expect("found")].seen;
        assert_eq!(
            rehearsal.steps.last().map(|one| one.seen),
            Some(stage.sites().0)
        );
        found
    };
    assert!(seen(true) < seen(false), "{} {}", seen(true), seen(false));
    let rehearsal = stage.rehearse(&forward(true));
    let rehearsed: Vec<usize> = rehearsal.steps.iter().map(|step| step.sites).collect();
    let answer = session.search(&mut Silent).expect("an answer");
    let made: Vec<usize> = answer.steps.iter().map(|step| step.sites).collect();
    // On runs it ends where something predicts the failure perfectly.
    assert_eq!(made, rehearsed[..made.len()]);
    assert!(!made.is_empty());
}

/// What is behind a jump by a table, of which no branch tells, does not come last: it is as good as what leads to it.
#[test]
fn what_is_behind_a_jump_by_a_table_is_no_worse_than_the_jump() {
    let folder = tempfile::tempdir().expect("a folder");
    let build = |more: &[&str]| {
        let flags = [&["-O1", "-g", "-fno-tree-switch-conversion"], more].concat();
        compiled("gcc", "switching.c", &flags).expect("built")
    };
    let lines = [
        "3 7", "3 7 1", "3 8", "2 9", "0 4", "x", "", "x", "5 7", "6 1",
    ];
    let options = options_like(folder.path(), &build(&[]), &build(&["-DRIGHT"]), &lines);
    let agent = Agent::in_cache(&options.cache).expect("an agent");
    let session = Session::open(options, agent, &mut Silent).expect("a session");
    let complete = session.complete().expect("complete data");
    let stage = session.stage(&complete).expect("a stage");
    let rehearsal = stage.rehearse(&forward(true));
    let found = rehearsal.found.expect("found") as u32;
    let best = stage.site(stage.best()[0]).expect("a site").0;
    assert_eq!(best.function, "bent");
    let busy = rehearsal.watched.iter().enumerate().filter(|(row, _)| {
        let site = stage.site(*row);
        site.is_some_and(|(site, _)| site.function == "busy")
    });
    let busy = busy.filter_map(|(_, step)| *step).max();
    assert!(busy > Some(found), "{busy:?} {found}");
}

/// Nothing in functions that only failing cases enter tells them from others: first comes what decides whether they are
/// come to, and what is in them last.
#[test]
fn what_only_failing_cases_enter_leads_to_what_decides_about_it() {
    const DOOMED: [&str; 3] = ["give_up", "explain", "lines_of"];
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled("gcc", "doomed.c", &["-O1", "-g"]).expect("built");
    let lines = ["13 1", "1 2", "15 13", "7", "4 13", "11 12", "15"];
    let mut options = options_like(folder.path(), &program, &program, &lines);
    // Success is exit code 0.
    let cases = folder.path().join("plain");
    std::fs::write(&cases, lines.join("\n")).expect("written");
    options.cases = Cases::read(&cases).expect("cases");
    let agent = Agent::in_cache(&options.cache).expect("an agent");
    let session = Session::open(options, agent, &mut Silent).expect("a session");
    let complete = session.complete().expect("complete data");
    let stage = session.stage(&complete).expect("a stage");
    let rehearsal = stage.rehearse(&forward(true));
    assert_eq!(rehearsal.found, Some(0), "{:?}", rehearsal.steps);
    let (mut doomed, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (row, step) in rehearsal.watched.iter().enumerate() {
        let Some((site, _)) = stage.site(row).filter(|_| step.is_some()) else {
            continue;
        };
        match DOOMED.contains(&site.function.as_str()) {
            true => doomed.extend(*step),
            false => others.extend(*step),
        }
    }
    assert!(doomed.first() > others.last(), "{doomed:?} {others:?}");
    let seen = rehearsal.steps.last().map(|step| step.seen);
    assert_eq!(seen, Some(stage.sites().0));
}
