//! Reconstructed traces equal executions, of thousands of random programs; what is inconsistent is
//! an error; what was cut short is told as far as it is certain.

use tomo_graph::Weight;
use tomo_plan::witnesses::check::{self, Dice, Execution, Shape, execute, program, record};
use tomo_plan::witnesses::{
    Criterion, Distribution, Ends, FunctionId, Machines, Place, Program, Strategy, WitnessId,
    distribute,
};
use tomo_profile::reconstruction::{Ending, Reconstructor, TraceError};

const STRATEGIES: [Strategy; 3] = [
    Strategy::FineGrained,
    Strategy::FunctionWise,
    Strategy::Grouped,
];
const STEPS: usize = 300;

fn ending(execution: &Execution) -> Ending {
    match execution.ending {
        check::Ending::Returned => Ending::Returned,
        check::Ending::Halted => Ending::Halted,
        check::Ending::Cut => Ending::Cut,
    }
}

/// Edges and nodes, only edges, or only nodes; some cannot carry a probe.
fn weight(kind: u64, seed: u64, function: FunctionId, place: Place) -> Weight {
    let (number, is_node) = match place {
        Place::Node(node) => (node.0, true),
        Place::Edge(edge) => (edge.0, false),
    };
    let key = u64::from(function.0) << 33 | u64::from(number) << 1 | u64::from(is_node);
    let roll = Dice(seed ^ key).roll();
    let allowed = match kind {
        0 => !roll.is_multiple_of(8),
        1 => !is_node,
        _ => is_node,
    };
    match allowed {
        true => Weight::Finite(1 + roll / 8 % 20),
        false => Weight::Infinite,
    }
}

struct Case {
    program: Program,
    distribution: Distribution,
    criterion: Criterion,
}

/// A program with a distribution, or none if it has none at the allowed places.
fn case(dice: &mut Dice, shape: Shape) -> Option<Case> {
    let program = program(dice, shape);
    let (kind, seed) = (dice.roll() % 3, dice.roll());
    let strategy = STRATEGIES[dice.below(3)];
    let machines = Machines {
        count: 1 + dice.below(4) as u32,
        bound: (dice.below(3) == 0).then(|| 2 + dice.below(8) as u32),
        besides: &[],
    };
    let ends = if dice.below(2) == 0 {
        Ends::All
    } else {
        Ends::Returns
    };
    let weight = |function, place| weight(kind, seed, function, place);
    let distribution = distribute(&program, weight, strategy, machines, ends).ok()?;
    let criterion = Criterion::of(&program, &distribution, ends);
    let criterion = criterion
        .unwrap_or_else(|undecided| panic!("{undecided}: {program:?} {distribution:?} {ends:?}"));
    Some(Case {
        program,
        distribution,
        criterion,
    })
}

const SHAPE: Shape = Shape {
    functions: 6,
    nodes: 9,
    several_targets: true,
    halts: true,
};

#[test]
fn traces_equal_executions() {
    let mut dice = Dice(1);
    let (mut cases, mut whole, mut halted, mut part) = (0, 0, 0, 0);
    for _ in 0..6000 {
        let Some(case) = case(&mut dice, SHAPE) else {
            continue;
        };
        cases += 1;
        let made = Reconstructor::new(&case.program, &case.distribution, &case.criterion);
        for _ in 0..3 {
            let execution = execute(&case.program, &mut dice, STEPS);
            let partial = record(&case.distribution, &execution.steps);
            let trace = made.trace(&partial, ending(&execution));
            let trace = trace.unwrap_or_else(|error| {
                panic!(
                    "{error}: {:?} {:?} {execution:?} {partial:?}",
                    case.program, case.distribution
                )
            });
            let told = &execution.steps[..trace.steps.len().min(execution.steps.len())];
            assert_eq!(trace.steps, told, "{:?} {partial:?}", case.program);
            let is_told = execution.ending == check::Ending::Returned
                || execution.ending == check::Ending::Halted && case.criterion.ends() == Ends::All;
            if is_told {
                assert!(trace.is_complete, "{:?}", case.program);
                assert_eq!(trace.steps.len(), execution.steps.len());
                whole += 1;
                halted += usize::from(execution.ending == check::Ending::Halted);
            } else {
                part += 1;
            }
        }
    }
    println!("{cases} programs, {whole} whole traces, {halted} of them halted, {part} in part");
    assert!(cases > 3000 && whole > 6000 && halted > 1000 && part > 1000);
}

/// What was cut short is never told wrongly, also where profiles end at different steps; how much of
/// it is told, and that something is.
#[test]
fn cut_runs_are_told_as_far_as_certain() {
    let mut dice = Dice(2);
    let (mut told, mut of) = ([0; 2], [0; 2]);
    for _ in 0..3000 {
        let Some(case) = case(&mut dice, SHAPE) else {
            continue;
        };
        let made = Reconstructor::new(&case.program, &case.distribution, &case.criterion);
        let execution = execute(&case.program, &mut dice, STEPS);
        let cut = dice.below(execution.steps.len() + 1);
        let mut partial = record(&case.distribution, &execution.steps[..cut]);
        let differ = dice.below(3) / 2;
        if differ == 1 {
            let earlier = dice.below(cut + 1);
            let shorter = record(&case.distribution, &execution.steps[..earlier]);
            let one = dice.below(partial.len());
            partial[one].clone_from(&shorter[one]);
        }
        let trace = made.trace(&partial, Ending::Cut).expect("a part of a run");
        assert!(trace.steps.len() <= cut && !trace.is_complete);
        assert_eq!(trace.steps, execution.steps[..trace.steps.len()]);
        told[differ] += trace.steps.len();
        of[differ] += cut;
    }
    println!("{told:?} of {of:?} steps told, where profiles end alike or not");
    assert!(
        told[0] * 3 > of[0] && told[1] * 5 > of[1],
        "{told:?} of {of:?}"
    );
}

/// Damaged partial traces give an error, or a trace that leaves just these; never a panic.
#[test]
fn damaged_traces_are_errors() {
    let mut dice = Dice(3);
    let (mut errors, mut traces) = (0, 0);
    for _ in 0..3000 {
        let Some(case) = case(&mut dice, SHAPE) else {
            continue;
        };
        let made = Reconstructor::new(&case.program, &case.distribution, &case.criterion);
        let execution = execute(&case.program, &mut dice, STEPS);
        let mut partial = record(&case.distribution, &execution.steps);
        for _ in 0..1 + dice.below(2) {
            damage(&mut dice, &case.distribution, &mut partial);
        }
        let how = [Ending::Returned, Ending::Halted, Ending::Cut][dice.below(3)];
        match made.with_limit(10_000).trace(&partial, how) {
            Err(error) => {
                errors += 1;
                assert!(!error.to_string().is_empty());
            }
            Ok(trace) if trace.is_complete => {
                traces += 1;
                assert_eq!(record(&case.distribution, &trace.steps), partial);
            }
            Ok(trace) => {
                let left = record(&case.distribution, &trace.steps);
                assert!(
                    left.iter()
                        .zip(&partial)
                        .all(|(left, all)| all.starts_with(left))
                );
            }
        }
    }
    println!("{errors} errors, {traces} traces");
    assert!(errors > 500, "{errors}");
}

fn damage(dice: &mut Dice, distribution: &Distribution, partial: &mut [Vec<WitnessId>]) {
    let profile = dice.below(partial.len());
    let Some(trace) = partial.get_mut(profile) else {
        return;
    };
    let any = WitnessId(dice.below(distribution.sites().len() + 2) as u32);
    let at = dice.below(trace.len());
    match dice.below(5) {
        0 => trace.truncate(at),
        1 => trace.insert(at, any),
        2 if at < trace.len() => trace[at] = any,
        3 if at + 1 < trace.len() => trace.swap(at, at + 1),
        _ if at < trace.len() => {
            trace.remove(at);
        }
        _ => trace.push(any),
    }
}

/// DPT Figure 9: each two of three ways share a profile; the run is b3, b1, b2.
mod figure_9 {
    use super::*;
    use tomo_graph::{FlowGraph, NodeId};
    use tomo_plan::witnesses::{Function, Step};
    use tomo_profile::reconstruction::Position;

    const B: [NodeId; 5] = [NodeId(1), NodeId(2), NodeId(3), NodeId(4), NodeId(5)];

    fn made() -> (Reconstructor, Distribution) {
        // entry is 0, b0 to b4 are 1 to 5, exit is 6.
        let edges = [
            (0, 1),
            (1, 2),
            (1, 3),
            (1, 4),
            (1, 6),
            (2, 5),
            (3, 5),
            (4, 5),
            (5, 1),
        ];
        let edges = edges.map(|(from, to)| (NodeId(from), NodeId(to)));
        let graph = FlowGraph::new(7, NodeId(0), edges).expect("a graph");
        let program = Program::new(vec![Function::leaf(graph)], FunctionId(0)).expect("a program");
        let node = |number: usize| (FunctionId(0), Place::Node(B[number]));
        let profiles = [
            (0, vec![node(1), node(3)]),
            (1, vec![node(1), node(2)]),
            (2, vec![node(2), node(3)]),
        ];
        let distribution = Distribution::new(&profiles);
        let criterion = Criterion::of(&program, &distribution, Ends::All).expect("realizable");
        (
            Reconstructor::new(&program, &distribution, &criterion),
            distribution,
        )
    }

    fn blocks(steps: &[Step]) -> Vec<u32> {
        steps.iter().map(|step| step.node.0).collect()
    }

    // The witnesses are numbered by place: b1, b2, b3.
    const B1: WitnessId = WitnessId(0);
    const B2: WitnessId = WitnessId(1);
    const B3: WitnessId = WitnessId(2);

    fn partial() -> Vec<Vec<WitnessId>> {
        vec![vec![B3, B1], vec![B1, B2], vec![B3, B2]]
    }

    #[test]
    fn is_reconstructed() {
        let (made, _) = made();
        let trace = made
            .trace(&partial(), Ending::Returned)
            .expect("consistent");
        assert_eq!(blocks(&trace.steps), [0, 1, 4, 5, 1, 2, 5, 1, 3, 5, 1, 6]);
        assert!(trace.is_complete);
    }

    #[test]
    fn cut_short_is_certain_up_to_the_last_event() {
        let (made, _) = made();
        let trace = made.trace(&partial(), Ending::Cut).expect("consistent");
        assert_eq!(blocks(&trace.steps), [0, 1, 4, 5, 1, 2, 5, 1, 3]);
        assert!(!trace.is_complete);
    }

    #[test]
    fn errors_name_profile_and_position() {
        let (made, _) = made();
        let ask = |partial: &[Vec<WitnessId>]| made.trace(partial, Ending::Returned).err();
        let at = |profile, event| Position { profile, event };
        let counts = TraceError::Profiles {
            given: 2,
            profiles: 3,
        };
        assert_eq!(ask(&partial()[..2]), Some(counts));
        let mut foreign = partial();
        foreign[1][1] = B3;
        let witness = B3;
        assert_eq!(
            ask(&foreign),
            Some(TraceError::Foreign {
                at: at(1, 1),
                witness
            })
        );
        let mut short = partial();
        short[2].pop();
        // Profile 2 says that neither b2 nor b3 comes, profile 1 that b2 does.
        let no_way = TraceError::NoWay {
            at: at(1, 1),
            function: FunctionId(0),
            node: B[0],
        };
        assert_eq!(ask(&short), Some(no_way));
        let mut swapped = partial();
        swapped[2].swap(0, 1);
        assert!(ask(&swapped).is_some());
        let mut long = partial();
        long[0].push(B1);
        assert!(ask(&long).is_some());
        let (made, limited) = (made.with_limit(5), partial());
        let refused = made.trace(&limited, Ending::Returned);
        assert!(matches!(refused, Err(TraceError::TooLong { .. })));
        let halted = super::figure_9::made().0.trace(&partial(), Ending::Halted);
        assert!(matches!(halted, Err(TraceError::WrongEnd { .. })));
    }
}
