//! Every program of the corpus, with everything that can be asked for.

use std::path::Path;

use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build, compiled, given};
use tomo_weave::{Asked, Options, Placement};
use tomo_wire::chains::Functions;
use tomo_wire::disposal::DisposalsView;
use tomo_wire::plan::{Entry, PlanView, Tactic};
use tomo_wire::predicates::{Predicates, Recorded, Told};

use crate::moved::{self, Added};
use crate::woven::{Program, all_options};

/// Weaves `program` in all ways; every image must be proven, every plan have all units once.
fn prove(name: &str, program: &Program) {
    let mut units = std::collections::HashMap::new();
    for options in all_options() {
        let woven = program.weave(&options);
        let checked = program.check(&woven);
        let checked = checked.unwrap_or_else(|flaw| panic!("{name}, {options:?}: {flaw}"));
        let plan = PlanView::read(&woven.plan).expect("a plan");
        assert_eq!(checked.windows, plan.header.probes.get() as usize);
        let moved = moved::prove(name, program, &woven.image, Added::Sums);
        assert_eq!(moved > 0, woven.counts.of(Tactic::Staying) > 0, "{name}");
        assert_eq!(woven.counts.units() as usize, plan.units.len());
        assert_eq!(woven.header.plan.get(), plan.name);
        let may_trap = [Tactic::Trap, Tactic::Held, Tactic::HeldHop].map(|tactic| tactic as u32);
        let traps = |unit: &Entry| may_trap.contains(&unit.tactic.get());
        assert!(
            options.traps || !plan.units.iter().any(traps),
            "{name}, {options:?}"
        );
        // Fewer probes, and as many units.
        let same = *units.entry(options.level).or_insert(plan.units.len());
        assert_eq!(same, plan.units.len(), "{name}, {options:?}");
        assert_has_all_units(name, program, &options, &plan);
    }
}

/// At block level every block of the model is a unit; with a probe each where all are asked for.
fn assert_has_all_units(name: &str, program: &Program, options: &Options, plan: &PlanView<'_>) {
    let graphs = program.model.graphs().expect("graphs");
    let mut said: Vec<(u64, u64)> = plan
        .units
        .iter()
        .map(|unit| (unit.from.get(), unit.to.get()))
        .collect();
    said.sort_unstable();
    let count = said.len();
    said.dedup();
    assert_eq!(said.len(), count, "{name}, {options:?}: a unit twice");
    if options.level == tomo_wire::plan::Level::Function {
        assert_eq!(count, graphs.functions().len(), "{name}");
        return;
    }
    let missing = graphs
        .functions()
        .flat_map(|function| function.blocks())
        .find(|block| said.binary_search(&(block.address().0, 0)).is_err());
    assert!(missing.is_none(), "{name}, {options:?}: {missing:?}");
    let inferred_block = plan
        .units
        .iter()
        .any(|unit| unit.is_edge.get() == 0 && unit.tactic.get() == Tactic::Inferred as u32);
    assert!(options.placement == Placement::Reduced || !inferred_block);
}

/// The image that counts must be proven too, and most instructions executed elsewhere.
fn prove_counters(name: &str, program: &Program) {
    let woven = program.weave_counters();
    let checked = program.check_counters(&woven.image, &woven.counters);
    let checked = checked.unwrap_or_else(|flaw| panic!("{name}, counters: {flaw}"));
    assert!(
        checked.entrances > 0 && checked.increments > 0,
        "{checked:?}"
    );
    assert!(checked.moved > checked.increments, "{checked:?}");
    assert!(
        moved::prove(name, program, &woven.image, Added::Sums) > 0,
        "{name}"
    );
}

/// Images that observe all predicates, or every seventh site, must be proven; of the predicates
/// of functions that are known all but one in 25 can be observed at least.
fn prove_predicates(name: &str, program: &Program) {
    let prove = |recorded, asked| {
        let woven = program.weave_predicates(recorded, asked);
        let checked = program.check_predicates(&woven.image, &woven.predicates);
        let checked = checked.unwrap_or_else(|flaw| panic!("{name}, {recorded:?}: {flaw}"));
        assert!(checked.actions > 0, "{name}: {checked:?}");
        assert!(
            moved::prove(name, program, &woven.image, Added::Sums) > 0,
            "{name}"
        );
        woven
    };
    let woven = prove(Recorded::Marks, Asked::All);
    prove(Recorded::Counts, Asked::All);
    let (_, rows) = Predicates::read(&woven.predicates).expect("predicates");
    let sites = rows.iter().filter(|row| row.site.get() % 7 == 0);
    let some = sites.filter_map(|row| Some((row.kind()?, row.site.get(), row.case)));
    prove(Recorded::Marks, Asked::Some(some.collect()));
    let count = |told: Told| rows.iter().filter(|row| row.told() == Some(told)).count();
    let (without, with) = (count(Told::NoPlace), count(Told::Itself));
    assert!(
        without * 25 < with,
        "{name}: {without} without, {with} with"
    );
    // Without optimisation a result is stored before it is looked at, which may fault.
    let inferred = count(Told::BySite) > 0;
    assert!(inferred || name.ends_with("O0"), "{name}");
}

/// So must that which notes chains.
fn prove_chains(name: &str, program: &Program) {
    let woven = program.weave_chains();
    let checked = program.check_chains(&woven.image, &woven.functions);
    let checked = checked.unwrap_or_else(|flaw| panic!("{name}, chains: {flaw}"));
    assert!(
        checked.entrances > 0 && checked.increments > 0,
        "{checked:?}"
    );
    assert!(
        moved::prove(name, program, &woven.image, Added::Chains) > 0,
        "{name}"
    );
    // Of every second function alone, with the others as gaps.
    let graphs = program.model.graphs().expect("graphs");
    let some: std::collections::BTreeSet<u64> = graphs
        .functions()
        .step_by(2)
        .map(|function| function.entry().0)
        .collect();
    let woven = program.weave_chains_of(&|entry| some.contains(&entry));
    let (_, rows) = Functions::read(&woven.functions).expect("functions");
    assert!(!rows.is_empty() && rows.iter().all(|row| some.contains(&row.entry.get())));
    let checked = program.check_chains(&woven.image, &woven.functions);
    checked.unwrap_or_else(|flaw| panic!("{name}, some chains: {flaw}"));
}

fn prove_recipe(recipe: &Recipe) {
    let built = build(recipe).expect("a program of the corpus");
    let program = Program::read(&built.program);
    prove(&built.name, &program);
    prove_counters(&built.name, &program);
    prove_predicates(&built.name, &program);
    prove_chains(&built.name, &program);
}

#[test]
fn feature_programs_with_chains() {
    for source in [Source::CppFeatures, Source::RustFeatures] {
        for recipe in Recipe::family(source) {
            let built = build(&recipe).expect("a program of the corpus");
            prove_chains(&built.name, &Program::read(&built.program));
        }
    }
}

#[test]
fn feature_programs() {
    for source in [Source::CFeatures, Source::CppFeatures, Source::RustFeatures] {
        for recipe in Recipe::family(source) {
            prove_recipe(&recipe);
        }
    }
}

#[test]
fn lua_and_bzip2_and_a_program_at_its_stated_address() {
    prove_recipe(&Recipe::new(Source::Lua, Compiler::Gcc, Level::O2));
    prove_recipe(&Recipe::new(Source::Bzip2, Compiler::Clang, Level::O3));
    prove_recipe(&Recipe {
        pie: false,
        ..Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2)
    });
}

/// Linkers put all that is not written to into one segment if they are asked to, which starts where the module does.
#[test]
fn a_program_whose_code_starts_with_its_headers() {
    for position in ["-pie", "-no-pie"] {
        let flags = ["-O2", "-Wl,-z,noseparate-code", position];
        let path = compiled("gcc", "isolating.c", &flags).expect("built");
        let program = Program::read(&path);
        assert_eq!(
            program
                .weave(&Options::of(tomo_wire::plan::Level::Block))
                .header
                .regions()
                .len(),
            1
        );
        prove(position, &program);
        prove_counters(position, &program);
        prove_predicates(position, &program);
        prove_chains(position, &program);
    }
}

/// What is executed elsewhere uses the data that it used, however far behind the code that is.
#[test]
fn a_program_with_more_data_than_half_a_jump_reaches() {
    let path = compiled("gcc", "spacious.c", &["-O2"]).expect("built");
    let program = Program::read(&path);
    prove("spacious", &program);
    prove_counters("spacious", &program);
    prove_chains("spacious", &program);
}

/// Every way to probe is met in a program that is proven above, so that none goes untried.
#[test]
fn every_tactic_is_used() {
    let recipe = Recipe::new(Source::Lua, Compiler::Gcc, Level::O2);
    let built = build(&recipe).expect("a program of the corpus");
    let options = Options::of(tomo_wire::plan::Level::Edge);
    let stays = Options {
        stays: true,
        ..options
    };
    let program = Program::read(&built.program);
    let [goes, stays] = [options, stays].map(|options| program.weave(&options).counts);
    for tactic in Tactic::ALL.into_iter().filter(|tactic| tactic.is_probe()) {
        let counts = if tactic == Tactic::Staying {
            &stays
        } else {
            &goes
        };
        assert!(counts.of(tactic) > 0, "{tactic:?}: {counts:?}");
    }
}

/// Some of the short jumps lead to others, as far as filling with room for a long one is.
#[test]
fn filling_far_away_is_reached() {
    let recipe = Recipe::new(Source::Lua, Compiler::Gcc, Level::O2);
    let program = Program::read(&build(&recipe).expect("a program of the corpus").program);
    let woven = program.weave(&Options::of(tomo_wire::plan::Level::Edge));
    let disposals = DisposalsView::read(&woven.disposals, &woven.header).expect("disposals");
    let slots = disposals.iter().map(|(_, row)| row.slot.get());
    let byte = |slot: u32| {
        let at = woven.header.text_at(slot, 1).expect("a place in the text");
        woven.image[at as usize]
    };
    let [mut long, mut short] = [0, 0];
    for slot in slots.filter(|slot| *slot != 0) {
        match byte(slot) {
            0xe9 => long += 1,
            0xeb => short += 1,
            other => panic!("{slot:#x} has {other:#x}"),
        }
    }
    assert!(
        long > 500 && short > 20,
        "{long} long jumps, {short} short ones"
    );
}

#[test]
fn large_programs() {
    prove_recipe(&Recipe::new(Source::Sqlite, Compiler::Clang, Level::O2));
    prove_recipe(&Recipe::new(Source::Zstd, Compiler::Gcc, Level::O3));
}

#[test]
#[ignore = "takes minutes: cargo xtask bench truth --all"]
fn the_whole_corpus() {
    for source in [Source::Lua, Source::Sqlite, Source::Bzip2, Source::Zstd] {
        for recipe in Recipe::family(source) {
            prove_recipe(&recipe);
        }
    }
}

#[test]
#[ignore = "takes minutes, and what there is differs from machine to machine: cargo xtask bench truth --all"]
fn programs_of_the_system() {
    let paths = ["/usr/bin/bash", "/usr/bin/python3.11", "/usr/bin/git"].map(Path::new);
    let there: Vec<&Path> = paths.into_iter().filter(|path| path.exists()).collect();
    assert!(!there.is_empty(), "none of {paths:?}");
    for path in there {
        let (name, program) = (path.display().to_string(), Program::read(path));
        prove(&name, &program);
        prove_counters(&name, &program);
        prove_predicates(&name, &program);
    }
}

#[test]
#[ignore = "cargo xtask held names the program"]
fn images_are_proven_for_the_named_program() {
    let built = given().expect("a named program");
    prove(&built.name, &Program::read(&built.program));
}
