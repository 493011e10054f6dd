//! Adaptive search: its vicinities by definition, completeness, resuming, the examples of ABI §4.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tomo_graph::check::{Entropy, generate};
use tomo_graph::{ControlDependence, DepthFirst, EdgeId, FlowGraph, Graph, NodeId, PostDominators};
use tomo_plan::random::Random;
use tomo_plan::search::{
    Direction, Icdg, IcdgError, Oracle, PredicateId, Routine, Search, SiteId, SiteKind, State,
    StateError, Step, at_random, breadth_first,
};

/// ABI Figure 1a. B1 = 0 decides about B2 = 1 and B4 = 3; B2 about B5 = 4 and B6 = 5; B3 = 2 follows.
fn figure_1() -> Routine {
    let edges = [(0, 1), (0, 3), (1, 4), (1, 5), (4, 2), (5, 2)];
    let edges = edges.map(|(from, to)| (NodeId(from), NodeId(to)));
    let graph = FlowGraph::new(6, NodeId(0), edges).expect("a graph");
    // A value is looked at in each block but B1, as if each called something.
    Routine {
        values: (1..6).map(|node| (NodeId(node), 3)).collect(),
        root: true,
        ..Routine::new(graph)
    }
}

fn blocks(icdg: &Icdg, sites: impl Iterator<Item = SiteId>) -> BTreeSet<u32> {
    sites.map(|site| icdg.place(site).1.0).collect()
}

/// The predicate of the branch in a block that leads along its `way`-th edge.
fn branch(icdg: &Icdg, node: u32, way: usize) -> PredicateId {
    let site = icdg
        .sites_at(0, NodeId(node))
        .find(|&site| icdg.kind(site) == SiteKind::Branch);
    icdg.predicates(site.expect("a branch"))
        .nth(way)
        .expect("a way")
}

#[test]
fn abi_figure_1_forward() {
    let icdg = Icdg::of(&[figure_1()]).expect("a program");
    let mut search = Search::forward(&icdg);
    assert_eq!(blocks(&icdg, search.plan()), BTreeSet::from([0]));
    // B1 true is best: B2 and B3 are next, B5 and B6 are not until there are data of B2.
    let best = branch(&icdg, 0, 0);
    assert_eq!(search.step(|_| Some(best)), Step::Explored(best));
    assert_eq!(blocks(&icdg, search.plan()), BTreeSet::from([1, 2]));
    let best = branch(&icdg, 1, 1);
    assert_eq!(search.step(|_| Some(best)), Step::Explored(best));
    assert_eq!(blocks(&icdg, search.plan()), BTreeSet::from([5]));
}

#[test]
fn abi_figure_1_backward() {
    let icdg = Icdg::of(&[figure_1()]).expect("a program");
    // A crash in B3: the branch at B1 is the last point at which it could have been averted.
    let mut search = Search::backward(&icdg, &[(0, NodeId(2))]);
    assert_eq!(blocks(&icdg, search.plan()), BTreeSet::from([0]));
    let best = branch(&icdg, 0, 0);
    search.step(|_| Some(best));
    assert_eq!(blocks(&icdg, search.plan()), BTreeSet::from([1, 2]));
}

#[test]
fn callers_decide_about_what_a_routine_always_runs() {
    let mut main = figure_1();
    main.calls = vec![(NodeId(4), 1)];
    let callee = FlowGraph::new(1, NodeId(0), []).expect("a graph");
    let callee = Routine {
        values: vec![(NodeId(0), 3)],
        ..Routine::new(callee)
    };
    let icdg = Icdg::of(&[main, callee]).expect("a program");
    let search = Search::backward(&icdg, &[(1, NodeId(0))]);
    assert_eq!(blocks(&icdg, search.plan()), BTreeSet::from([1]));
    let mut search = Search::starting(&icdg, Direction::Forward, &[]);
    search.explore(branch(&icdg, 1, 0));
    let places: Vec<_> = search.plan().map(|site| icdg.place(site)).collect();
    assert_eq!(places, [(0, NodeId(4)), (1, NodeId(0))]);
}

/// Of what only failing runs enter the branches near and far that decide whether it is come to, through others of the kind, and
/// not through what no failing run enters.
#[test]
fn the_entry_of_what_only_failing_runs_enter_leads_to_what_decides_about_it() {
    let mut main = figure_1();
    main.calls = vec![(NodeId(2), 1)];
    let mut idle = figure_1();
    idle.calls = vec![(NodeId(4), 1)];
    let mut doomed = figure_1();
    doomed.calls = vec![(NodeId(4), 2)];
    let icdg = Icdg::of(&[main, doomed, figure_1(), idle]).expect("a program");
    let search = Search::starting(&icdg, Direction::Forward, &[]);
    let mut search = search.surveyed(0..4).doomed([1, 2], [3]);
    let entry = icdg.entry(2);
    assert_eq!(search.step(|_| Some(entry)), Step::Explored(entry));
    let places: Vec<_> = search.plan().map(|site| icdg.place(site)).collect();
    assert_eq!(places, [(0, NodeId(0))]);
}

/// A program of a few small routines that call each other, recursion included.
fn program(bytes: &[u8]) -> Vec<Routine> {
    let mut entropy = Entropy::new(bytes);
    let count = 1 + entropy.below(4);
    let routine = |number: usize| {
        let graph = generate(&mut entropy, 8);
        let mut pick = |most: usize| -> Vec<(NodeId, u32)> {
            let nodes = graph.node_count();
            (0..entropy.below(most))
                .map(|_| {
                    (
                        NodeId(entropy.below(nodes) as u32),
                        entropy.below(count) as u32,
                    )
                })
                .collect()
        };
        let (calls, mut values) = (pick(5), pick(4));
        values.iter_mut().for_each(|value| value.1 = 3);
        Routine {
            graph,
            calls,
            values,
            root: number == 0,
        }
    };
    (0..count).map(routine).collect()
}

/// Blocks that depend on an edge, and those that follow an endless region's entry without choice.
fn dependents(routine: &Routine, edge: EdgeId) -> Vec<NodeId> {
    let graph = &routine.graph;
    let post = PostDominators::of(graph);
    let control = ControlDependence::of(graph, &post);
    let depend = graph.nodes().filter(|&node| control.depends(node, edge));
    with_endless(graph, &post, depend.collect())
}

fn with_endless(graph: &FlowGraph, post: &PostDominators, mut blocks: Vec<NodeId>) -> Vec<NodeId> {
    let mut at = 0;
    while let Some(&block) = blocks.get(at) {
        let only: Vec<_> = graph.successors(block).collect();
        if post.endless().contains(&block) && only.len() == 1 {
            let follow = graph.nodes().filter(|&node| {
                post.post_dominates(node, only[0]) && !post.strictly_post_dominates(node, block)
            });
            let new: Vec<_> = follow.filter(|node| !blocks.contains(node)).collect();
            blocks.extend(new);
        }
        at += 1;
    }
    blocks
}

/// The blocks that a call of the routine always runs.
fn always(routine: &Routine) -> Vec<NodeId> {
    let graph = &routine.graph;
    let post = PostDominators::of(graph);
    let walk = DepthFirst::of(graph);
    let first = graph
        .nodes()
        .filter(|&node| walk.is_reachable(node) && post.post_dominates(node, graph.entry()));
    with_endless(graph, &post, first.collect())
}

/// The sites that a forward step must add, by definition, which passes from these blocks into what they call, but not into
/// routines that are `closed`.
fn expected(
    routines: &[Routine],
    icdg: &Icdg,
    from: (usize, Vec<NodeId>),
    closed: &BTreeSet<u32>,
) -> BTreeSet<SiteId> {
    let mut sites = BTreeSet::new();
    let mut entered = closed.clone();
    let mut open = vec![from];
    while let Some((number, blocks)) = open.pop() {
        for block in blocks {
            sites.extend(icdg.sites_at(number as u32, block));
            for &(_, callee) in routines[number].calls.iter().filter(|call| call.0 == block) {
                if entered.insert(callee) {
                    open.push((callee as usize, always(&routines[callee as usize])));
                }
            }
        }
    }
    sites
}

/// The predicate that control goes along this edge, where there is another way.
fn way(routine: &Routine, icdg: &Icdg, number: u32, edge: EdgeId) -> Option<PredicateId> {
    let from = routine.graph.source(edge);
    let mut ways = routine.graph.out_edges(from);
    let way = ways.position(|hop| hop.edge == edge)?;
    let mut sites = icdg.sites_at(number, from);
    let site = sites.find(|&site| icdg.kind(site) == SiteKind::Branch)?;
    icdg.predicates(site).nth(way)
}

/// A search that knows of some routines when they are entered, and of nothing else.
fn surveyed(icdg: &Icdg, direction: Direction, seed: u64) -> Search<'_> {
    let some = (0..icdg.routine_count()).filter(|at| seed >> (at % 64) & 1 == 1);
    let search = Search::starting(icdg, direction, &[]).surveyed(some);
    let every = |third: u32| (0..icdg.routine_count()).filter(move |at| at % 3 == third);
    search.doomed(every(0), every(1))
}

/// The sites that control can get to from the roots.
fn reachable(routines: &[Routine], icdg: &Icdg) -> BTreeSet<SiteId> {
    let mut sites = BTreeSet::new();
    let mut seen = BTreeSet::from([0u32]);
    let mut open = vec![0u32];
    while let Some(number) = open.pop() {
        let routine = &routines[number as usize];
        let walk = DepthFirst::of(&routine.graph);
        for &block in walk.preorder() {
            sites.extend(icdg.sites_at(number, block));
            let calls = routine.calls.iter().filter(|call| call.0 == block);
            open.extend(
                calls
                    .map(|call| call.1)
                    .filter(|&callee| seen.insert(callee)),
            );
        }
    }
    sites
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn forward_vicinities_are_those_of_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        let routines = program(&bytes);
        let icdg = Icdg::of(&routines).expect("a program");
        for (number, routine) in routines.iter().enumerate() {
            for edge in (0..routine.graph.edge_count() as u32).map(EdgeId) {
                let Some(predicate) = way(routine, &icdg, number as u32, edge) else { continue };
                let mut search = Search::starting(&icdg, Direction::Forward, &[]);
                search.explore(predicate);
                let found: BTreeSet<SiteId> = search.plan().collect();
                let blocks = dependents(routine, edge);
                prop_assert_eq!(found, expected(&routines, &icdg, (number, blocks), &BTreeSet::new()));
            }
        }
    }

    #[test]
    fn vicinities_end_where_what_was_surveyed_begins(
        bytes in prop::collection::vec(any::<u8>(), 0..160), which: u8,
    ) {
        let routines = program(&bytes);
        let icdg = Icdg::of(&routines).expect("a program");
        let closed: BTreeSet<u32> = (0..routines.len() as u32).filter(|at| which >> at & 1 == 1).collect();
        let begin = || Search::starting(&icdg, Direction::Forward, &[]).surveyed(closed.iter().copied());
        for (number, routine) in routines.iter().enumerate() {
            let mut search = begin();
            let entry = icdg.entry(number as u32);
            prop_assert_eq!(icdg.entered(entry), Some(number as u32));
            prop_assert_eq!(search.candidates().any(|one| one == entry), closed.contains(&(number as u32)));
            search.explore(entry);
            let found: BTreeSet<SiteId> = search.plan().collect();
            prop_assert_eq!(found, expected(&routines, &icdg, (number, always(routine)), &closed));
            for edge in (0..routine.graph.edge_count() as u32).map(EdgeId) {
                let Some(predicate) = way(routine, &icdg, number as u32, edge) else { continue };
                let mut search = begin();
                search.explore(predicate);
                let found: BTreeSet<SiteId> = search.plan().collect();
                prop_assert_eq!(found, expected(&routines, &icdg, (number, dependents(routine, edge)), &closed));
            }
        }
    }

    #[test]
    fn what_decides_about_a_site_is_what_its_block_depends_on(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        let routines = program(&bytes);
        let icdg = Icdg::of(&routines).expect("a program");
        let mut deciders = icdg.deciders(|site| site.0 % 3 > 0);
        for site in (0..icdg.site_count() as u32).map(SiteId) {
            let (number, node) = icdg.place(site);
            let routine = &routines[number as usize];
            let post = PostDominators::of(&routine.graph);
            let control = ControlDependence::of(&routine.graph, &post);
            let edges = (0..routine.graph.edge_count() as u32).map(EdgeId);
            let mut decide: BTreeSet<PredicateId> = edges
                .filter(|&edge| control.depends(node, edge))
                .filter_map(|edge| way(routine, &icdg, number, edge))
                .collect();
            let walk = DepthFirst::of(&routine.graph);
            if walk.is_reachable(node) && post.post_dominates(node, routine.graph.entry()) {
                decide.insert(icdg.entry(number));
            }
            let wanted = site.0 % 3 > 0;
            let found: BTreeSet<PredicateId> = deciders.remove(&site).into_iter().flatten().collect();
            prop_assert_eq!(found, if wanted { decide } else { BTreeSet::new() });
        }
    }

    #[test]
    fn every_site_is_watched_once_sooner_or_later(
        bytes in prop::collection::vec(any::<u8>(), 0..160), seed: u64, most in 1u32..6, crash: u8,
    ) {
        let routines = program(&bytes);
        let icdg = Icdg::of(&routines).expect("a program");
        let crash = (u32::from(crash) % routines.len() as u32, NodeId(u32::from(crash) % 3));
        for search in [
            Search::forward(&icdg), Search::backward(&icdg, &[crash]),
            Search::forward(&icdg).limited(most), Search::backward(&icdg, &[crash]).limited(most),
            surveyed(&icdg, Direction::Forward, seed), surveyed(&icdg, Direction::Backward, seed).limited(most),
        ] {
            let bound = search.state().most;
            let mut random = Random::new(seed);
            let mut search = search;
            let mut steps = 0;
            loop {
                let mut asked = 0;
                let step = search.step(|candidates| {
                    asked += 1;
                    at_random(&mut random, candidates)
                });
                // What leads nowhere is struck out after the first of it that was chosen.
                prop_assert!(asked <= 2);
                if step == Step::Done {
                    break;
                }
                prop_assert!((1..=bound as usize).contains(&search.plan().len()));
                steps += 1;
                prop_assert!(steps <= 4 * icdg.site_count() + 8);
            }
            let watched = &search.state().monitored;
            prop_assert_eq!(watched.len(), icdg.site_count());
            prop_assert_eq!(watched.iter().collect::<BTreeSet<_>>().len(), icdg.site_count());
        }
    }

    #[test]
    fn what_the_entry_reaches_comes_before_any_stray(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        let routines = program(&bytes);
        let icdg = Icdg::of(&routines).expect("a program");
        let main = &routines[0].graph;
        let walk = DepthFirst::of(main);
        let crash = *walk.preorder().last().expect("the entry");
        for mut search in [Search::forward(&icdg), Search::backward(&icdg, &[(0, crash)])] {
            let strayed = |step: Step| matches!(step, Step::Strayed | Step::Done);
            while !strayed(search.step(|candidates| breadth_first(candidates))) {}
            let watched: BTreeSet<SiteId> = search.state().monitored.iter().copied().map(SiteId).collect();
            let missing: Vec<_> = reachable(&routines, &icdg).difference(&watched).copied().collect();
            prop_assert!(missing.is_empty(), "{missing:?}");
        }
    }

    #[test]
    fn a_saved_search_goes_on_as_if_nothing_had_been(
        bytes in prop::collection::vec(any::<u8>(), 0..160), crash in 0u32..8, most in 1u32..9,
    ) {
        let routines = program(&bytes);
        let icdg = Icdg::of(&routines).expect("a program");
        let search = Search::backward(&icdg, &[(0, NodeId(crash))]).limited(most);
        let mut search = search.surveyed((0..crash / 2).map(|routine| 2 * routine));
        loop {
            let saved = serde_json::to_string(search.state()).expect("plain data");
            let state: State = serde_json::from_str(&saved).expect("the same");
            let mut resumed = Search::resume(&icdg, state).expect("of this program");
            let step = search.step(|candidates| candidates.last());
            prop_assert_eq!(resumed.step(|candidates| candidates.last()), step);
            prop_assert_eq!(resumed.state(), search.state());
            if step == Step::Done {
                break;
            }
        }
    }

    #[test]
    fn the_oracle_knows_the_shortest_way(bytes in prop::collection::vec(any::<u8>(), 0..96), target: u32) {
        let routines = program(&bytes);
        let icdg = Icdg::of(&routines).expect("a program");
        prop_assume!(icdg.predicate_count() > 0);
        let target = PredicateId(target % icdg.predicate_count() as u32);
        let oracle = Oracle::of(&icdg, target);
        let all: Vec<PredicateId> = (0..icdg.predicate_count() as u32).map(PredicateId).collect();
        let vicinity = |&predicate: &PredicateId| -> Vec<SiteId> {
            let mut search = Search::starting(&icdg, Direction::Forward, &[]);
            search.explore(predicate);
            search.plan().collect()
        };
        let vicinities: Vec<_> = all.iter().map(vicinity).collect();
        // Bellman and Ford: as many rounds as there are predicates.
        let mut far: Vec<Option<u64>> = vec![None; all.len()];
        for _ in 0..all.len() {
            for (predicate, sites) in all.iter().zip(&vicinities) {
                let onward = sites.iter().flat_map(|&site| {
                    let here = (site == icdg.site_of(target)).then_some(0);
                    here.into_iter().chain(icdg.predicates(site).filter_map(|p| far[p.0 as usize]))
                });
                let best = onward.min().map(|rest| rest + sites.len() as u64);
                far[predicate.0 as usize] = best;
            }
        }
        for predicate in all {
            prop_assert_eq!(oracle.distance(predicate), far[predicate.0 as usize]);
        }
    }
}

#[test]
fn a_person_may_overrule_the_search() {
    let icdg = Icdg::of(&[figure_1()]).expect("a program");
    let mut search = Search::forward(&icdg);
    let wanted: Vec<SiteId> = icdg.sites_at(0, NodeId(5)).collect();
    search.watch(&wanted);
    assert_eq!(blocks(&icdg, search.plan()), BTreeSet::from([0, 5]));
    search.put_off(&wanted);
    assert_eq!(blocks(&icdg, search.plan()), BTreeSet::from([0]));
    assert_eq!(
        search.explore(branch(&icdg, 0, 1)),
        Step::Explored(branch(&icdg, 0, 1))
    );
    assert_eq!(blocks(&icdg, search.plan()), BTreeSet::from([3]));
    // What was put off has its turn.
    assert_eq!(
        search.step(|candidates| breadth_first(candidates)),
        Step::Continued
    );
    assert_eq!(blocks(&icdg, search.plan()), BTreeSet::from([5]));
}

#[test]
fn states_of_other_programs_are_refused() {
    let icdg = Icdg::of(&[figure_1()]).expect("a program");
    let state = Search::forward(&icdg).state().clone();
    let refuse = |change: &dyn Fn(&mut State)| {
        let mut state = state.clone();
        change(&mut state);
        Search::resume(&icdg, state).err()
    };
    let other = refuse(&|state| state.size.0 += 1);
    assert!(matches!(other, Some(StateError::OtherProgram { .. })));
    let none = refuse(&|state| state.pending.push(99));
    assert_eq!(none, Some(StateError::NoSuchNumber(99)));
    let none = refuse(&|state| state.surveyed.push(1));
    assert_eq!(none, Some(StateError::NoSuchNumber(1)));
    let twice = refuse(&|state| state.monitored.extend(state.plan.clone()));
    assert!(matches!(twice, Some(StateError::Twice(_))));
}

#[test]
fn programs_that_name_what_there_is_not_are_refused() {
    let mut bad = figure_1();
    bad.calls.push((NodeId(0), 1));
    let error = IcdgError::NoSuchRoutine {
        routine: 0,
        callee: 1,
    };
    assert_eq!(Icdg::of(&[bad]).err(), Some(error));
    let mut bad = figure_1();
    bad.values.push((NodeId(6), 3));
    assert!(matches!(
        Icdg::of(&[bad]).err(),
        Some(IcdgError::NoSuchBlock { .. })
    ));
    let nothing = Icdg::of(&[]).expect("nothing");
    assert_eq!(Search::forward(&nothing).step(|_| None), Step::Done);
}
