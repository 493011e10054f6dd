//! Witnesses of one function: on edges, on nodes, or on both, as the weights allow.
//!
//! Sources: BL94 (edges outside a maximum spanning tree); DPT §5 (nodes), whose Figure 11 does not
//! keep its promise (see `printed/figure_11.rs`).
//!
//! **One construction for all kinds of places.** Every state of the [`Flow`] is split into a way in
//! and a way out, joined by an arc that stands for its node; edges are arcs from out to in. A place
//! without probe weighs [`Weight::Infinite`], as does whatever is no place. A maximum spanning
//! forest takes infinite arcs first, then the others by weight; the finite arcs that close a cycle
//! are the witnesses. With infinite nodes this is the spanning tree of BL94, with infinite
//! edges a placement on nodes.
//!
//! **It is realizable whenever anything is.** Call *blob* what infinite arcs connect. The
//! finite arcs without witness form a forest over the blobs. Suppose two ways from a branch lead
//! to the same first witness. Both walks start in the branch's blob and end in that of the shared
//! place, so in a forest they take the same finite arcs, in the same order. Up to the first of them
//! (or else the shared place) both keep to infinite arcs, and so they clash there even if every
//! finite place is a witness. ∎ So the placement is checked only where infinite arcs close cycles,
//! and what is then found is the proof that no placement exists.
//!
//! **Tracing and counting** differ in the graph: a function that is entered once needs no arc from
//! exit to entry, so a lone `if` needs one witness where it needs two counters; recursion adds arcs.
//!
//! The forest breaks every undirected cycle, also those that are neither directed nor a diamond,
//! and finding the cheapest set that breaks just these is NP-complete (Maheswari 1976, in DPT §3.2).
//! So witnesses that turn out not to be needed are taken away, dearest first ([`Effort::Pruned`]),
//! or the optimum is searched for (`exact.rs`). O(m log m) for the forest.

use tomo_graph::{NodeId, Weight, maximum_forest};

use super::exact;
use super::first::{Clash, Firsts};
use super::flow::{Flow, Move, NO_PLACE, Place};
use super::prune::prune;

/// How hard to try for a cheap placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// The spanning forest as it is.
    Forest,
    /// Without what is not needed, as far as this many looked-at moves allow.
    Pruned(u64),
    /// The cheapest there is, if a search of so many nodes finds and proves it; else as `Pruned`.
    Exact(u64),
}

/// Where a function's witnesses go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The witnesses, ascending.
    pub witnesses: Vec<Place>,
    /// The sum of their weights; `u64::MAX` if that does not fit.
    pub cost: u64,
    /// Whether it is proven that there is none cheaper (in the sense of the criterion).
    pub is_optimal: bool,
}

impl Placement {
    fn nothing() -> Self {
        Self {
            witnesses: Vec::new(),
            cost: 0,
            is_optimal: true,
        }
    }
}

/// No set of witnesses at the allowed places tells these ways apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no witness can tell ways {} and {} out of {:?} apart", clash.ways.0, clash.ways.1, clash.node)]
pub struct NotRealizable {
    /// Two ways that clash even if every allowed place is a witness.
    pub clash: Clash,
}

/// Places witnesses so that the function's record tells every way that its branches took.
/// `weight` says how often a place is passed, as a rule; infinite if it cannot carry a probe.
pub fn place(
    flow: &Flow,
    weight: impl Fn(Place) -> Weight,
    effort: Effort,
) -> Result<Placement, NotRealizable> {
    if flow.fork_states().is_empty() {
        return Ok(Placement::nothing());
    }
    let weights: Vec<Weight> = (0..flow.places() as u32)
        .map(|number| weight(flow.place(number)))
        .collect();
    let (mut witness, tangled) = forest(flow, &weights);
    if tangled && let Some(left) = clash(flow, &witness) {
        let finite = |weight: &Weight| *weight != Weight::Infinite;
        let all: Vec<bool> = weights.iter().map(finite).collect();
        let clash = clash(flow, &all).unwrap_or(left);
        return Err(NotRealizable { clash });
    }
    match effort {
        Effort::Forest => return Ok(summed(flow, &weights, &witness, false)),
        Effort::Pruned(budget) => prune_all(flow, &weights, &mut witness, budget),
        Effort::Exact(nodes) => {
            prune_all(flow, &weights, &mut witness, u64::MAX);
            let optimum = exact::improve(flow, &weights, &mut witness, nodes);
            return Ok(summed(flow, &weights, &witness, optimum));
        }
    }
    Ok(summed(flow, &weights, &witness, false))
}

/// Whether the witnesses tell every way apart; if not, two that they do not.
pub fn verify(flow: &Flow, witnesses: &[Place]) -> Result<(), Clash> {
    let mut witness = vec![false; flow.places()];
    for &place in witnesses {
        witness[flow.number(place) as usize] = true;
    }
    clash(flow, &witness).map_or(Ok(()), Err)
}

pub(super) fn clash(flow: &Flow, witness: &[bool]) -> Option<Clash> {
    let mut firsts = Firsts::new(flow);
    let is_witness = |place: u32| witness[place as usize];
    let mut forks = flow.fork_states().iter();
    forks.find_map(|&fork| firsts.clash(fork, &is_witness, |_| true))
}

/// The chords of a maximum spanning forest, by place, and whether infinite arcs close a cycle.
fn forest(flow: &Flow, weights: &[Weight]) -> (Vec<bool>, bool) {
    let weight = |place: u32| match place {
        NO_PLACE => Weight::Infinite,
        place => weights[place as usize],
    };
    let mut arcs = Vec::new();
    let mut places = Vec::new();
    for state in 0..flow.states() as u32 {
        let (into, out) = (NodeId(2 * state), NodeId(2 * state + 1));
        let inner = flow.entering(state);
        arcs.push((into, out, weight(inner)));
        places.push(inner);
        for &Move { to, place } in flow.moves(state) {
            arcs.push((out, NodeId(2 * to), weight(place)));
            places.push(place);
        }
    }
    let taken = maximum_forest(2 * flow.states(), &arcs);
    let mut witness = vec![false; weights.len()];
    let mut tangled = false;
    for ((taken, (.., weight)), place) in taken.into_iter().zip(arcs).zip(places) {
        match weight {
            _ if taken => {}
            Weight::Finite(_) => witness[place as usize] = true,
            Weight::Infinite => tangled = true,
        }
    }
    (witness, tangled)
}

fn prune_all(flow: &Flow, weights: &[Weight], witness: &mut [bool], budget: u64) {
    let order = dearest_first(weights, witness);
    prune(
        flow,
        witness,
        &order,
        budget,
        &mut |firsts, fork, witness| {
            let is_witness = |place: u32| witness[place as usize];
            firsts.clash(fork, &is_witness, |_| true).is_some()
        },
    );
}

/// The witnesses by falling weight.
pub(super) fn dearest_first(weights: &[Weight], witness: &[bool]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..witness.len() as u32)
        .filter(|&place| witness[place as usize])
        .collect();
    order.sort_by_key(|&place| std::cmp::Reverse(weights[place as usize]));
    order
}

/// The sum of the weights of all witnesses.
pub(super) fn cost(weights: &[Weight], witness: &[bool]) -> u64 {
    let each = weights.iter().zip(witness).filter(|(_, witness)| **witness);
    each.fold(0, |sum: u64, (weight, _)| match weight {
        Weight::Finite(weight) => sum.saturating_add(*weight),
        Weight::Infinite => u64::MAX,
    })
}

fn summed(flow: &Flow, weights: &[Weight], witness: &[bool], is_optimal: bool) -> Placement {
    let is_witness = |place: &u32| witness[*place as usize];
    let numbers = (0..witness.len() as u32).filter(is_witness);
    Placement {
        witnesses: numbers.map(|number| flow.place(number)).collect(),
        cost: cost(weights, witness),
        is_optimal,
    }
}
