//! Distribution: every strategy yields what the criterion accepts, within its bound.

use tomo_graph::{NodeId, Weight};
use tomo_plan::witnesses::check::{Dice, Shape, program};
use tomo_plan::witnesses::{
    Call, Criterion, Distribution, DistributionError, Ends, Function, FunctionId, Machines, Place,
    Program, Strategy, distribute,
};

use super::graphs::{alone, graph, named};

const STRATEGIES: [Strategy; 3] = [
    Strategy::FineGrained,
    Strategy::FunctionWise,
    Strategy::Grouped,
];

const SHAPE: Shape = Shape {
    functions: 6,
    nodes: 16,
    several_targets: false,
    halts: false,
};

fn weight(function: FunctionId, place: Place) -> Weight {
    let number = match place {
        Place::Node(node) => u64::from(node.0) * 2,
        Place::Edge(edge) => u64::from(edge.0) * 2 + 1,
    };
    Weight::Finite(1 + Dice(u64::from(function.0) << 32 | number).roll() % 10)
}

fn check(program: &Program, made: &Distribution, machines: Machines, ends: Ends) {
    let proof = Criterion::of(program, made, ends);
    assert!(proof.is_ok(), "{:?}: {program:?} {made:?}", proof.err());
    for profile in made.profiles() {
        assert!(profile.machine < machines.count);
        let bound = machines.bound.unwrap_or(u32::MAX) as usize;
        assert!(profile.witnesses.len() <= bound, "{made:?}");
    }
}

#[test]
fn distributions_satisfy_the_criterion() {
    let mut dice = Dice(21);
    let (mut done, mut small, mut none) = (0, 0, 0);
    for round in 0..1500 {
        let program = program(&mut dice, SHAPE);
        let machines = Machines {
            count: 1 + dice.below(5) as u32,
            bound: (round % 2 == 0).then(|| 1 + dice.below(9) as u32),
            besides: &[],
        };
        let ends = [Ends::All, Ends::Returns][round % 3 % 2];
        let strategy = STRATEGIES[round % 3];
        match distribute(&program, weight, strategy, machines, ends) {
            Ok(made) => {
                done += 1;
                check(&program, &made, machines, ends);
            }
            Err(DistributionError::BoundTooSmall { needs, bound, .. }) => {
                small += 1;
                assert!(needs > bound as usize);
            }
            // A recursive call in a node that then chooses to leave.
            Err(DistributionError::NotRealizable { function, .. }) => {
                none += 1;
                assert!(program.recursive(function, function) || program.entered_again(function));
            }
            Err(other) => panic!("{other}"),
        }
    }
    println!("{done} done, {small} bounds too small, {none} not realizable");
    assert!(done > 700 && small > 50 && none < 300);
}

/// Three machines never do more each than one alone, and together the strategies differ.
#[test]
fn machines_share_the_load() {
    let mut dice = Dice(22);
    let mut sums = [[0u64; 3]; 3];
    for _ in 0..300 {
        let program = program(&mut dice, SHAPE);
        for (strategy, sums) in STRATEGIES.into_iter().zip(&mut sums) {
            for (count, sum) in [1, 2, 4].into_iter().zip(sums) {
                let machines = Machines {
                    count,
                    bound: None,
                    besides: &[],
                };
                let made = distribute(&program, weight, strategy, machines, Ends::Returns);
                let loads = made.map(|made| made.loads(count, weight));
                *sum += loads.unwrap_or_default().into_iter().max().unwrap_or(0);
            }
        }
    }
    for (strategy, sums) in STRATEGIES.iter().zip(sums) {
        println!("{strategy:?}: dearest of 1, 2, 4 machines {sums:?}");
        assert!(
            sums[1] < sums[0] && sums[2] < sums[1],
            "{strategy:?} {sums:?}"
        );
    }
    let [fine, by_function, grouped] = sums;
    assert!(grouped[1] < by_function[1].min(fine[1]), "{sums:?}");
    assert!(grouped[2] < by_function[2].min(fine[2]), "{sums:?}");
}

/// Two loops with a branch each in a loop around both are one group; still each machine gets one of them.
#[test]
fn the_busiest_gives_parts_of_its_groups_away() {
    let (graph, _) = named("a>b b>c b>d c>e d>e e>b e>f f>g f>h g>i h>i i>f i>a i>z");
    let program = alone(&graph);
    let inner = |node: NodeId| u64::from((1..=8).contains(&node.0));
    let weight = |_, place| match place {
        Place::Node(node) => Weight::Finite(1 + 100 * inner(node)),
        Place::Edge(edge) => {
            let (from, to) = graph.edges()[edge.index()];
            let is_way_on = from.0 == 4 && to.0 == 5 || from.0 == 8 && to.0 != 5;
            Weight::Finite(1 + 100 * inner(from).min(inner(to)) * u64::from(!is_way_on))
        }
    };
    // Also beside a third one that has more to do than both, and nothing to give.
    for (count, besides) in [(2, &[][..]), (3, &[9_999])] {
        let machines = Machines {
            count,
            bound: None,
            besides,
        };
        let made = |strategy| {
            let made = distribute(&program, weight, strategy, machines, Ends::All);
            made.expect("all places are allowed")
        };
        let busiest = |made: &Distribution| made.loads(count, weight).into_iter().max();
        let (whole, parts) = (made(Strategy::FunctionWise), made(Strategy::Grouped));
        check(&program, &parts, machines, Ends::All);
        let (whole, parts) = (busiest(&whole).unwrap_or(0), busiest(&parts).unwrap_or(0));
        assert!(whole >= 400, "{whole}");
        assert!(parts * 10 <= whole * 6, "{parts} of {whole}");
    }
}

/// Two diamonds in a row, entered once: one job each, one machine each.
#[test]
fn fine_grained_splits_a_function() {
    let (graph, _) = named("a>b a>c b>d c>d d>e d>f e>g f>g");
    let program = alone(&graph);
    let one = |_, _| Weight::Finite(1);
    let machines = Machines {
        count: 2,
        bound: None,
        besides: &[],
    };
    let loads = |strategy| {
        let made = distribute(&program, one, strategy, machines, Ends::All);
        made.expect("all places are allowed").loads(2, one)
    };
    assert_eq!(loads(Strategy::FineGrained), [1, 1]);
    assert_eq!(loads(Strategy::Grouped), [1, 1]);
    assert_eq!(loads(Strategy::FunctionWise), [2, 0]);
}

/// What a machine has to do besides is counted: it gets no more witnesses until the others have as much.
#[test]
fn who_has_something_to_do_besides_gets_less() {
    let (graph, _) = named("a>b a>c b>d c>d d>e d>f e>g f>g g>h g>i h>j i>j");
    let program = alone(&graph);
    let one = |_, _| Weight::Finite(1);
    let loads = |besides: &[u64]| {
        let machines = Machines {
            count: 2,
            bound: None,
            besides,
        };
        let made = distribute(&program, one, Strategy::FineGrained, machines, Ends::All);
        made.expect("all places are allowed").loads(2, one)
    };
    assert_eq!(loads(&[]), [2, 1]);
    assert_eq!(loads(&[1]), [1, 2]);
    assert_eq!(loads(&[9]), [0, 3]);
    assert_eq!(loads(&[0, 9]), [3, 0]);
}

#[test]
fn what_cannot_be_distributed_is_said() {
    let (graph_of_two, _) = named("a>b a>c b>d c>d");
    let program = alone(&graph_of_two);
    let ask = |machines, weight: Weight| {
        let strategy = Strategy::FineGrained;
        distribute(&program, |_, _| weight, strategy, machines, Ends::All)
    };
    let machines = |count, bound| Machines {
        count,
        bound,
        besides: &[],
    };
    let one = Weight::Finite(1);
    assert_eq!(
        ask(machines(0, None), one),
        Err(DistributionError::NoMachines)
    );
    assert!(matches!(
        ask(machines(1, None), Weight::Infinite),
        Err(DistributionError::NotRealizable { .. })
    ));
    assert!(matches!(
        ask(machines(1, Some(0)), one),
        Err(DistributionError::BoundTooSmall {
            needs: 1,
            bound: 0,
            ..
        })
    ));
}

/// A call with several targets is told by their entries, or refused.
#[test]
fn targets_are_told_by_their_entries() {
    let leaf = || Function::leaf(graph(1, &[]));
    let call = Call {
        node: NodeId(0),
        targets: vec![FunctionId(1), FunctionId(2)],
    };
    let main = Function {
        calls: vec![call],
        ..leaf()
    };
    let program = Program::new(vec![main, leaf(), leaf()], FunctionId(0)).expect("a program");
    let machines = Machines {
        count: 2,
        bound: None,
        besides: &[],
    };
    let one = |_, _| Weight::Finite(1);
    let made = distribute(&program, one, Strategy::Grouped, machines, Ends::All);
    let made = made.expect("entries are allowed");
    assert_eq!(made.sites().len(), 2);
    check(&program, &made, machines, Ends::All);
    let never = |_, _| Weight::Infinite;
    let refused = distribute(&program, never, Strategy::Grouped, machines, Ends::All);
    assert_eq!(
        refused,
        Err(DistributionError::UnpatchableEntry(FunctionId(1)))
    );
}
