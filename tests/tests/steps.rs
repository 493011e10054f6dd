//! The oracle is held against programs of which every instruction is known.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};
use tempfile::TempDir;
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, Workload, build, compiled};
use tomo_testkit::steps::{End, Kind, Outside, Trace, Transition, observe, observe_in_order};

/// A program built from a file under `programs/oracle`, with the addresses of its symbols.
struct Toy {
    program: PathBuf,
    symbols: HashMap<String, u64>,
}

impl Toy {
    fn build(source: &str, args: &[&str]) -> Self {
        let program = compiled("gcc", &format!("oracle/{source}"), args).expect("built");
        let data = std::fs::read(&program).expect("built");
        let file = object::File::parse(&*data).expect("ELF");
        let named = |s: object::Symbol<'_, '_>| Some((s.name().ok()?.to_owned(), s.address()));
        let symbols = file.symbols().filter_map(named).collect();
        Self { program, symbols }
    }

    fn observe(&self, limit: u64) -> Trace {
        observe(&self.program, &Workload::default(), Outside::Step, limit).expect("traced")
    }

    fn count(&self, trace: &Trace, from: u64, to: u64, kind: Kind) -> u64 {
        let transition = Transition {
            from: Some(from),
            to: Some(to),
            kind,
        };
        trace.transitions.get(&transition).copied().unwrap_or(0)
    }
}

const FREESTANDING: [&str; 4] = ["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"];

#[test]
fn every_instruction_is_counted() {
    let toy = Toy::build("loop.s", &FREESTANDING);
    let trace = toy.observe(1_000);
    assert_eq!(trace.end, End::Exited(7));
    // The last instruction ends the program instead of being stepped over.
    assert_eq!(trace.steps, 2 + 3 * 10 + 2 + 4 + 3 + 2);
    assert_eq!(trace.steps_inside(), trace.steps);
    assert_eq!(trace.executed().len(), 2 + 3 + 2 + 4 + 1 + 2);
    let [start, round, behind, leaf, copy] =
        ["_start", "round", "behind", "leaf", "copy"].map(|name| toy.symbols[name]);
    assert_eq!(toy.count(&trace, start + 5, start + 7, Kind::Flow), 1);
    assert_eq!(toy.count(&trace, round + 4, round, Kind::Flow), 9);
    assert_eq!(toy.count(&trace, round + 4, behind - 5, Kind::Flow), 1);
    assert_eq!(
        toy.count(&trace, behind - 5, leaf, Kind::Call { back: Some(behind) }),
        1
    );
    assert_eq!(
        toy.count(
            &trace,
            leaf,
            behind,
            Kind::Return {
                call: Some(behind - 5)
            }
        ),
        1
    );
    assert_eq!(toy.count(&trace, copy, copy, Kind::Flow), 2);
}

#[test]
fn position_independent_code_has_stated_addresses() {
    let toy = Toy::build(
        "loop.s",
        &["-nostdlib", "-static-pie", "-Wl,--build-id=none"],
    );
    let trace = toy.observe(1_000);
    let round = toy.symbols["round"];
    assert_eq!(toy.count(&trace, round + 4, round, Kind::Flow), 9);
}

#[test]
fn a_run_is_cut_off_at_its_limit() {
    let toy = Toy::build("loop.s", &FREESTANDING);
    let trace = toy.observe(11);
    assert_eq!((trace.end, trace.steps), (End::Limit, 11));
    let round = toy.symbols["round"];
    assert_eq!(toy.count(&trace, round + 4, round, Kind::Flow), 3);
}

#[test]
fn signals_are_passed_on_and_recorded() {
    let toy = Toy::build("signal.c", &["-O1", "-g"]);
    let trace = toy.observe(1_000_000);
    assert_eq!(trace.end, End::Killed(15));
    let entered = |name: &str| {
        let to = Some(toy.symbols[name]);
        trace
            .transitions
            .iter()
            .filter(move |(t, _)| t.to == to && t.kind == Kind::Signal)
    };
    let (handler, count) = entered("handler").next().expect("the handler ran");
    assert_eq!(
        (handler.from, *count),
        (None, 1),
        "it interrupted kill, in the library"
    );
    let (leaver, count) = entered("leaver").next().expect("the other handler ran");
    let faults = toy.symbols["faults"];
    assert_eq!((leaver.from, *count), (Some(faults), 1));
    assert!(
        !trace.executed().contains(&faults),
        "what faults is not executed"
    );
    let landed = |t: &Transition| matches!(t.kind, Kind::Landing { .. }) && t.from.is_none();
    assert_eq!(
        trace.transitions.keys().filter(|t| landed(t)).count(),
        1,
        "the long jump"
    );
}

/// What both ways of getting through libraries must tell alike: everything that ends in the
/// executable. Only what it is called may differ, for callbacks, and behind calls.
fn arrivals(trace: &Trace) -> BTreeMap<(Option<u64>, u64, Option<Kind>), u64> {
    let mut arrivals = BTreeMap::new();
    for (seen, count) in &trace.transitions {
        let kind = match seen.kind {
            Kind::Call { .. } | Kind::Landing { call: None } if seen.from.is_none() => None,
            Kind::Return { call } if seen.from.is_none() => Some(Kind::Landing { call }),
            kind => Some(kind),
        };
        if let Some(to) = seen.to {
            *arrivals.entry((seen.from, to, kind)).or_default() += count;
        }
    }
    arrivals
}

fn assert_both_ways_agree(program: &Path) {
    let [steps, leaps] = [Outside::Step, Outside::Leap]
        .map(|way| observe(program, &Workload::default(), way, 10_000_000).expect("traced"));
    assert_eq!(steps.end, leaps.end);
    assert!(leaps.steps < steps.steps);
    assert_eq!(steps.steps_inside(), leaps.steps_inside());
    assert_eq!(steps.executed(), leaps.executed());
    let (steps, leaps) = (arrivals(&steps), arrivals(&leaps));
    let differ = |(seen, count): &(&_, &u64)| leaps.get(*seen) != Some(*count);
    let missing: Vec<_> = steps.iter().filter(differ).collect();
    let differ = |(seen, count): &(&_, &u64)| steps.get(*seen) != Some(*count);
    let more: Vec<_> = leaps.iter().filter(differ).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "{missing:x?}\n{more:x?}"
    );
}

#[test]
fn leaping_over_libraries_sees_what_stepping_sees() {
    let toy = Toy::build("signal.c", &["-O1", "-g"]);
    assert_both_ways_agree(&toy.program);
    let recipe = Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2);
    assert_both_ways_agree(&build(&recipe).expect("built").program);
}

#[test]
fn leaping_sees_exceptions_as_stepping_does() {
    let recipe = Recipe::new(Source::CppFeatures, Compiler::Gcc, Level::O0);
    assert_both_ways_agree(&build(&recipe).expect("built").program);
}

/// What is told of a program of the corpus was recorded once. Elsewhere the same program is stepped now. Low bits of
/// what its functions return may differ: they are those of addresses and numbers of processes.
#[test]
fn what_was_recorded_is_what_steps_see() {
    let recipe = Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2);
    let built = build(&recipe).expect("built");
    let elsewhere = TempDir::new().expect("directory");
    let copy = elsewhere.path().join("copy");
    std::fs::copy(&built.program, &copy).expect("copied");
    let [first, again, now] = [&built.program, &built.program, &copy].map(|program| {
        observe_in_order(program, &Workload::default(), Outside::Leap, 10_000_000).expect("traced")
    });
    assert!(first.order.len() > 1_000);
    let whole = |trace: &Trace| {
        let results = trace.results.iter();
        let whole = results.map(|(&place, &[.., whole])| (place, whole));
        whole.collect::<BTreeMap<_, _>>()
    };
    for other in [again, now] {
        assert!(other.order == first.order, "the order");
        assert!(other.transitions == first.transitions, "the passages");
        assert!(whole(&other) == whole(&first), "the results");
        assert_eq!((other.steps, other.end), (first.steps, first.end));
    }
}

#[test]
fn what_cannot_be_run_is_an_error() {
    let dir = TempDir::new().expect("directory");
    let text = dir.path().join("text");
    std::fs::write(&text, "no program").expect("written");
    assert!(observe(&text, &Workload::default(), Outside::Step, 10).is_err());
}
