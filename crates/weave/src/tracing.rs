//! Which functions are traced, and with which witnesses: everything that tells, afterwards, block for block, what
//! each thread did in them.
//!
//! Three kinds of witnesses:
//!
//! - **On ways** (BL94 §4, DPT §4): what a function does between two calls is told by its own witnesses alone,
//!   placed and distributed by `tomo_plan::witnesses`. Nothing is believed of calls: each may be
//!   the last that is seen of the activation.
//! - **Arrivals**: who goes on after code that is not traced is told by what is done at the *entrances* of regions.
//!   Control that comes from within regions does not pass them: direct calls and jumps lead from region to region. So
//!   these tell just of callbacks, threads, signal handlers, returns from libraries, landing pads and second
//!   returns, and a program's calls of itself cost nothing.
//! - **Values**: how often control goes round a cycle is told by what is in a register where it comes in and leaves
//!   (`rounds.rs`), all by one run.
//!
//! A function is traced if it is exact, if control cannot come back to it unseen, and if its ways can be told apart. What it
//! calls and what calls it matters to the first of these, so the traced functions are the greatest
//! fixpoint: all candidates, from which those are taken that do not do, given the others.

pub(crate) mod breakpoints;
mod chart;
mod rounds;
mod subject;

use std::collections::HashMap;

use rayon::prelude::*;
use tomo_graph::Weight;
use tomo_plan::witnesses::{
    Distribution, DistributionError, Effort, Ends, Flow, FunctionId, Machines, Place, Program,
    Strategy, WitnessId, distribute, place,
};
use tomo_program::{Address, FunctionView, Graphs};
use tomo_wire::tracing::{self as wire, block};

use crate::WeaveError;
use crate::counting::Weights;
use crate::place::Surroundings;
use crate::staying::action::What;
use crate::staying::code::{Code, Wants};
use crate::staying::live::Liveness;
use crate::staying::region::{Call, Region};
use crate::staying::witness::Word;
use subject::{End, Subject};

/// Where witnesses may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// On ways of branches.
    Edge,
    /// At starts of blocks.
    Node,
    /// Wherever they are cheapest.
    #[default]
    Auto,
}

/// What a witness is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Collect {
    /// Code that is executed elsewhere, in place of the function's own.
    #[default]
    Detour,
    /// A breakpoint, which somebody outside of the process attends to. It is passed however control comes.
    Breakpoint,
}

/// How a program is traced.
#[derive(Clone, Copy, Debug)]
pub struct Tracing<'t> {
    /// What witnesses are made of.
    pub collect: Collect,
    /// In how many runs.
    pub runs: u32,
    /// How many witnesses a run may have on ways, or how many breakpoints at all; there are as many runs then as that
    /// takes. (Arrivals cannot be distributed: with breakpoints they have a run of their own then.)
    pub limit: Option<u32>,
    /// How they are distributed.
    pub strategy: Strategy,
    /// Where they may be.
    pub kind: Kind,
    /// How often things ran, as far as that is known.
    pub weights: &'t Weights,
    /// Names of the functions that are traced; all if there is none.
    pub functions: &'t [String],
}

/// What is traced, and how.
pub(crate) struct Traced<'f> {
    subjects: Vec<Subject<'f>>,
    distribution: Distribution,
    /// The run that counts each loop of each subject.
    counted: Vec<Vec<u32>>,
    /// Where each traced block is: its function and position there.
    places: HashMap<Address, (usize, usize)>,
    open: Vec<bool>,
    collect: Collect,
    /// The run of the first profile of the distribution.
    first_run: u32,
    /// Entries of the other functions.
    pub(crate) untraced: Vec<u64>,
}

/// All functions that can be traced of those that are wanted.
pub(crate) fn all<'f>(
    around: &Surroundings<'f>,
    graphs: &'f Graphs<'f>,
    tracing: &Tracing<'_>,
) -> Result<Traced<'f>, WeaveError> {
    let live = Liveness::of(around.text, graphs);
    let functions: Vec<_> = graphs.functions().collect();
    let mut names = tracing.functions.iter();
    let is_there = |name: &str| functions.iter().any(|function| is_called(function, name));
    if let Some(name) = names.find(|name| !is_there(name)) {
        return Err(WeaveError::NoSuchFunction(name.clone()));
    }
    let wanted = |function: &FunctionView<'_>| {
        let names = tracing.functions;
        names.is_empty() || names.iter().any(|name| is_called(function, name))
    };
    let subjects: Vec<_> = functions
        .par_iter()
        .map(|function| {
            let subject = |counts| Subject::of(around, &live, function, (tracing, counts));
            let told = |subject: &Subject<'_>| is_told(subject, tracing.kind).is_some();
            let counting = wanted(function).then(|| subject(counts_rounds(tracing)))??;
            match told(&counting) {
                true => Some(counting),
                false if counting.loops.rounds.is_empty() => None,
                false => subject(false).filter(told),
            }
        })
        .collect();
    let candidates: Vec<Subject<'f>> = subjects.into_iter().flatten().collect();
    let (subjects, places, open) = settle(around, candidates);
    if subjects.is_empty() {
        return Err(WeaveError::NothingTraced(tracing.functions.to_vec()));
    }
    let untraced = functions.iter().filter(|function| {
        let entry = function.entry();
        places
            .get(&entry)
            .is_none_or(|&(at, _)| subjects[at].entry() != entry)
    });
    let untraced = untraced.map(|function| function.entry().0).collect();
    let arrivals = match first_run(tracing) {
        0 => weight_of_arrivals(around, &subjects, &places, &open),
        _ => 0,
    };
    let (counted, besides) = counted(&subjects, tracing, arrivals);
    let distribution = distribution(&subjects, tracing, &besides)?;
    Ok(Traced {
        subjects,
        distribution,
        counted,
        places,
        open,
        collect: tracing.collect,
        first_run: first_run(tracing),
        untraced,
    })
}

/// Whether loops are counted: by code between the program's own, in as many runs as are asked for.
fn counts_rounds(tracing: &Tracing<'_>) -> bool {
    tracing.collect == Collect::Detour && tracing.limit.is_none()
}

/// The run of the first profile: arrivals have one of their own where that is bounded as a whole.
fn first_run(tracing: &Tracing<'_>) -> u32 {
    let is_alone = tracing.collect == Collect::Breakpoint && tracing.limit.is_some();
    u32::from(is_alone)
}

fn is_called(function: &FunctionView<'_>, name: &str) -> bool {
    let title = function.title();
    function.name() == Some(name) || title == name || tomo_program::is_called(&title, name)
}

/// The kind of witnesses by which the ways of a function can be told apart, if there is one.
fn is_told(subject: &Subject<'_>, kind: Kind) -> Option<Kind> {
    let program = Program::of_loose(vec![subject.loose()]).ok()?;
    let flow = Flow::of_function(&program, FunctionId(0), Ends::Returns);
    [kind, Kind::Auto].into_iter().find(|&kind| {
        let weight = |at| subject.weight(at, kind);
        place(&flow, weight, Effort::Forest).is_ok()
    })
}

type Places = HashMap<Address, (usize, usize)>;

/// Takes away what cannot be traced, until nothing is left that cannot.
fn settle<'f>(
    around: &Surroundings<'_>,
    mut subjects: Vec<Subject<'f>>,
) -> (Vec<Subject<'f>>, Places, Vec<bool>) {
    loop {
        let places: Places = subjects
            .iter()
            .enumerate()
            .flat_map(|(at, subject)| subject.starts().map(move |(n, start)| (start, (at, n))))
            .collect();
        let open = open(&subjects, &places);
        let does = |subject: &Subject<'_>| {
            let is_seen = |block: usize| subject.is_seen_arriving(block);
            subject
                .arrivals(around, |end| is_closed(end, &subjects, &places, &open))
                .into_iter()
                .all(is_seen)
        };
        let keeps: Vec<bool> = subjects.par_iter().map(does).collect();
        if keeps.iter().all(|keep| *keep) {
            return (subjects, places, open);
        }
        let mut keeps = keeps.into_iter();
        subjects.retain(|_| keeps.next().unwrap_or(false));
    }
}

/// Whether a call comes back straight from a traced function, if at all.
fn is_closed(end: &End, subjects: &[Subject<'_>], places: &Places, open: &[bool]) -> bool {
    let callee = end.callee.and_then(|callee| places.get(&callee));
    !end.twice && callee.is_some_and(|&(at, n)| subjects[at].entry_block() == n && !open[at])
}

/// Which functions control may leave for code that is not traced, so that they return by way of that. The least
/// fixpoint.
fn open(subjects: &[Subject<'_>], places: &Places) -> Vec<bool> {
    let mut open = vec![false; subjects.len()];
    loop {
        let mut changed = false;
        for (at, subject) in subjects.iter().enumerate() {
            let leads_away = |to: &Address| places.get(to).is_none_or(|&(other, _)| open[other]);
            let leaves = subject
                .ends
                .iter()
                .any(|end| end.leaves || end.tail.iter().any(leads_away));
            if leaves && !std::mem::replace(&mut open[at], true) {
                changed = true;
            }
        }
        if !changed {
            return open;
        }
    }
}

/// What recording all arrivals costs, as far as it is known how often things ran.
fn weight_of_arrivals(
    around: &Surroundings<'_>,
    subjects: &[Subject<'_>],
    places: &Places,
    open: &[bool],
) -> u64 {
    let mut calls: HashMap<Address, u64> = HashMap::new();
    let called = subjects.iter().flat_map(Subject::called);
    for (callee, times) in called {
        let sum = calls.entry(callee).or_default();
        *sum = sum.saturating_add(times);
    }
    let each = subjects.par_iter().map(|subject| {
        let arrivals = subject.arrivals(around, |end| is_closed(end, subjects, places, open));
        let weight = |block| subject.weight_of_arrivals(block, &calls);
        arrivals
            .into_iter()
            .map(weight)
            .fold(0, u64::saturating_add)
    });
    each.reduce(|| 0, u64::saturating_add)
}

/// Shares the loops that are counted, dearest first; which run has each, and what each then has to do, the first one
/// recording all arrivals besides.
fn counted(
    subjects: &[Subject<'_>],
    tracing: &Tracing<'_>,
    arrivals: u64,
) -> (Vec<Vec<u32>>, Vec<u64>) {
    let mut besides = vec![0u64; tracing.runs.max(1) as usize];
    besides[0] = arrivals;
    let rounds = subjects.iter().map(|subject| &subject.loops.rounds);
    let mut counted: Vec<Vec<u32>> = rounds.clone().map(|own| vec![0; own.len()]).collect();
    let mut all: Vec<(u64, usize, usize)> = Vec::new();
    for (at, own) in rounds.enumerate() {
        let weights = own.iter().map(|round| subjects[at].weight_of_values(round));
        all.extend(weights.enumerate().map(|(n, weight)| (weight, at, n)));
    }
    all.sort_by_key(|&(weight, at, n)| (std::cmp::Reverse(weight), at, n));
    for (weight, at, n) in all {
        let idlest = (0u32..).zip(&mut besides).min_by_key(|(_, load)| **load);
        if let Some((run, load)) = idlest {
            *load = load.saturating_add(weight);
            counted[at][n] = run;
        }
    }
    (counted, besides)
}

/// Shares the witnesses on ways; each run has something to do `besides`.
fn distribution(
    subjects: &[Subject<'_>],
    tracing: &Tracing<'_>,
    besides: &[u64],
) -> Result<Distribution, WeaveError> {
    let loose = subjects.iter().map(Subject::loose).collect();
    let program = Program::of_loose(loose);
    let program = program.map_err(|error| WeaveError::NotDistributed(error.to_string()))?;
    let kinds: Vec<Kind> = subjects
        .par_iter()
        .map(|subject| is_told(subject, tracing.kind).unwrap_or_default())
        .collect();
    let weight = |id: FunctionId, place: Place| -> Weight {
        subjects[id.index()].weight(place, kinds[id.index()])
    };
    let machines = Machines {
        count: tracing.runs,
        bound: tracing.limit,
        besides,
    };
    let distribution = distribute(&program, weight, tracing.strategy, machines, Ends::Returns);
    distribution.map_err(|error| match error {
        DistributionError::BoundTooSmall {
            function,
            needs,
            bound,
            ..
        } => WeaveError::BoundTooSmall {
            function: subjects[function.index()].function.title(),
            needs,
            bound,
        },
        other => WeaveError::NotDistributed(other.to_string()),
    })
}

/// What one run executes elsewhere.
#[derive(Default)]
pub(crate) struct Elsewhere {
    pub(crate) regions: Vec<Region>,
    pub(crate) calls: Vec<Call>,
}

impl<'f> Traced<'f> {
    /// How many runs it takes.
    pub(crate) fn profiles(&self) -> u32 {
        self.first_run + self.distribution.profiles().len().max(1) as u32
    }

    /// How control arrives at which blocks of a function.
    fn arrivals(&self, around: &Surroundings<'_>, subject: &Subject<'f>) -> Vec<usize> {
        subject.arrivals(around, |end| {
            is_closed(end, &self.subjects, &self.places, &self.open)
        })
    }

    /// What is executed elsewhere in the run of this profile; arrivals have the numbers of `chart`.
    pub(crate) fn elsewhere(&self, chart: &chart::Drawn, profile: u32) -> Elsewhere {
        let made: Vec<_> = self
            .subjects
            .par_iter()
            .enumerate()
            .map(|(at, subject)| {
                let mut wants = self.wants(FunctionId(at as u32), subject, profile);
                for told in chart.told[at].iter().filter(|told| told.run == profile) {
                    told.want(subject, &mut wants);
                }
                let first = chart.functions[at].first.get() as usize;
                let region = subject.region(&wants, |n| match profile {
                    0 => arrival(&chart.blocks[first + n]),
                    _ => None,
                });
                let is_needed = profile == 0 || wants.iter().any(|want| *want != Wants::default());
                let calls = subject.codes.iter().filter_map(Code::call);
                is_needed.then(|| (region, calls.collect::<Vec<_>>()))
            })
            .collect();
        let mut all = Elsewhere::default();
        for (region, calls) in made.into_iter().flatten() {
            all.regions.push(region);
            all.calls.extend(calls);
        }
        all
    }

    /// Whether a run has a witness on a way.
    fn is_in(&self, witness: WitnessId, run: u32) -> bool {
        let profiles = self.distribution.profiles_of(witness);
        run.checked_sub(self.first_run)
            .is_some_and(|profile| profiles.contains(&profile))
    }

    /// What each block of a function is to record.
    fn wants(&self, id: FunctionId, subject: &Subject<'f>, profile: u32) -> Vec<Wants> {
        let mut wants = vec![Wants::default(); subject.codes.len()];
        for (witness, place) in self.distribution.witnesses_of(id) {
            if !self.is_in(witness, profile) {
                continue;
            }
            let what = What::Witness(Word::Number(witness.0));
            match place {
                Place::Node(node) => wants[node.index()].start.push(what),
                Place::Edge(edge) => {
                    let edge = &subject.edges[edge.index()];
                    match edge.is_taken() {
                        true => wants[edge.from].taken.push(what),
                        false => wants[edge.from].not_taken.push(what),
                    }
                }
            }
        }
        wants
    }

    /// All that reconstruction needs.
    pub(crate) fn chart(&self, around: &Surroundings<'_>) -> chart::Drawn {
        chart::draw(self, around)
    }
}

/// What is recorded where control arrives at a block.
fn arrival(row: &wire::Block) -> Option<What> {
    let number = row.arrival.get();
    let word = match row.flags.get() & block::WITH_STACK {
        0 => Word::Number(number),
        _ => Word::WithStack(number),
    };
    (number != wire::NONE).then_some(What::Witness(word))
}
