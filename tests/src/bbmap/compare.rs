//! The comparison of two sets of flow graphs, the compiler's and the model's.
//!
//! Every function of the compiler's map is looked up in the model by its entry; one that is missing
//! counts with all its blocks and edges as missed. Functions that only the model has (start-up code,
//! precompiled libraries) are not covered by the map and say nothing.
//!
//! One thing is not in the map and cannot be: which calls the *exception table* covers. LLVM writes one
//! table entry for a run of invocations with the same landing pad, and the entry also covers the calls
//! between them that it knows not to throw (`EHStreamer::computeCallSiteTable`). The unwinder would go
//! to the pad from there, so a model that reads the table has an edge that the compiler's graph has
//! not. Such an edge is set aside, and counted, if and only if the map itself explains it: in layout
//! order, the nearest invocations before and behind the call both have exactly that pad.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{
    graph::{Edge, Normal},
    model::ModelFunction,
    program::Program,
    refine::{Oddity, Refined, refine},
    returns::cut_calls_that_never_return,
};

/// How many things both sides have, and how many only one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Both sides have it.
    pub common: usize,
    /// Only the model has it.
    pub only_model: usize,
    /// Only the compiler has it.
    pub only_compiler: usize,
}

impl Score {
    fn add<T: Ord>(&mut self, compiler: &BTreeSet<T>, model: &BTreeSet<T>) {
        let common = compiler.intersection(model).count();
        self.common += common;
        self.only_model += model.len() - common;
        self.only_compiler += compiler.len() - common;
    }

    /// The share of the model's that the compiler confirms; 1 if the model has none.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.common, self.only_model)
    }

    /// The share of the compiler's that the model has; 1 if the compiler has none.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.common, self.only_compiler)
    }

    /// The sum of two scores.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            common: self.common + other.common,
            only_model: self.only_model + other.only_model,
            only_compiler: self.only_compiler + other.only_compiler,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of blocks are far below 2^53"
)]
fn share(hits: usize, misses: usize) -> f64 {
    if misses == 0 {
        1.0
    } else {
        hits as f64 / (hits + misses) as f64
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (precision, recall) = (100.0 * self.precision(), 100.0 * self.recall());
        write!(
            f,
            "{} common, precision {precision:.3} %, recall {recall:.3} %",
            self.common
        )
    }
}

/// One thing in which the two sides differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The model has no function at this entry.
    NoFunction,
    /// A block of the compiler's that the model has not.
    MissingBlock(u64),
    /// A block of the model's that the compiler has not.
    ExtraBlock(u64),
    /// An edge of the compiler's that the model has not.
    MissingEdge(u64, u64),
    /// An edge of the model's that the compiler has not.
    ExtraEdge(u64, u64),
    /// The compiler's map contradicts the bytes.
    Odd(Oddity),
}

impl What {
    /// Where it is, or begins; nowhere for a function as a whole.
    #[must_use]
    pub fn address(self) -> Option<u64> {
        match self {
            Self::NoFunction => None,
            Self::MissingBlock(at) | Self::ExtraBlock(at) => Some(at),
            Self::MissingEdge(from, _) | Self::ExtraEdge(from, _) => Some(from),
            Self::Odd(oddity) => Some(oddity.address()),
        }
    }
}

/// A difference, with where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The function's name by the symbol table.
    pub function: String,
    /// Its entry.
    pub entry: u64,
    /// Whether the model says that it knows all of the function.
    pub exact: bool,
    /// What differs.
    pub what: What,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = if self.exact { "exact" } else { "not exact" };
        write!(
            f,
            "{} at {:#x} ({status}): {:x?}",
            self.function, self.entry, self.what
        )
    }
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Functions in the map.
    pub functions: usize,
    /// Those among them that the model calls exact.
    pub exact: usize,
    /// Block starts over all functions of the map.
    pub starts: Score,
    /// Edges over all functions of the map.
    pub edges: Score,
    /// Everything that differs, by function.
    pub differences: Vec<Difference>,
    /// Calls behind which the map goes on though it proves that they never return.
    pub never_return: usize,
    /// The model's edges to landing pads that one table entry over several calls explains.
    pub merged_ranges: usize,
}

impl Comparison {
    /// What differs in functions that the model calls exact, and functions it has not at all.
    pub fn in_exact(&self) -> impl Iterator<Item = &Difference> {
        self.differences
            .iter()
            .filter(|difference| difference.exact)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "functions: {}, of which {} exact",
            self.functions, self.exact
        )?;
        writeln!(f, "blocks: {}", self.starts)?;
        writeln!(f, "edges: {}", self.edges)?;
        let (cut, merged) = (self.never_return, self.merged_ranges);
        write!(
            f,
            "set aside: {cut} calls that never return, {merged} landing pads of merged ranges"
        )
    }
}

/// Holds the model against the compiler's map of the same program.
#[must_use]
pub fn compare(program: &Program, model: &BTreeMap<u64, ModelFunction>) -> Comparison {
    let refined = program.functions.iter().map(|function| {
        (
            function.entry,
            refine(function, |address| program.code_at(address)),
        )
    });
    let mut compiler: BTreeMap<u64, Refined> = refined.collect();
    let never = cut_calls_that_never_return(&mut compiler);
    for refined in compiler.values_mut() {
        refined
            .graph
            .skip_padding(|start, end| program.padding(start, end));
    }
    let mut out = Comparison {
        never_return: never.len(),
        ..Comparison::default()
    };
    for (&entry, refined) in &compiler {
        let model = model
            .get(&entry)
            .map(|model| out.same_form(model, refined, &never, program));
        out.function(program.name(entry), refined, model);
    }
    out
}

impl Comparison {
    fn function(&mut self, name: String, refined: &Refined, model: Option<ModelFunction>) {
        self.functions += 1;
        let exact = model.as_ref().is_some_and(|model| model.exact);
        self.exact += usize::from(exact);
        let mut found: Vec<What> = refined.oddities.iter().copied().map(What::Odd).collect();
        found.extend(model.is_none().then_some(What::NoFunction));
        let theirs = refined.graph.normal();
        let ours = model.map(|model| model.graph.normal()).unwrap_or_default();
        self.starts.add(&theirs.starts, &ours.starts);
        self.edges.add(&theirs.edges, &ours.edges);
        differences(&theirs, &ours, &mut found);
        let entry = refined.graph.entry;
        let difference = |what| Difference {
            function: name.clone(),
            entry,
            exact,
            what,
        };
        self.differences.extend(found.into_iter().map(difference));
    }

    /// Brings a function of the model to what the compiler's map can say of it.
    fn same_form(
        &mut self,
        model: &ModelFunction,
        refined: &Refined,
        never: &BTreeSet<u64>,
        program: &Program,
    ) -> ModelFunction {
        let mut model = model.clone();
        model.cut_behind(never);
        let invocations = Invocations::of(refined);
        let before = model.graph.edges.len();
        model.graph.edges.retain(|edge| !invocations.explain(edge));
        self.merged_ranges += before - model.graph.edges.len();
        model
            .graph
            .skip_padding(|start, end| program.padding(start, end));
        model
    }
}

fn differences(theirs: &Normal, ours: &Normal, found: &mut Vec<What>) {
    found.extend(
        theirs
            .starts
            .difference(&ours.starts)
            .map(|&at| What::MissingBlock(at)),
    );
    found.extend(
        ours.starts
            .difference(&theirs.starts)
            .map(|&at| What::ExtraBlock(at)),
    );
    found.extend(
        theirs
            .edges
            .difference(&ours.edges)
            .map(|&(a, b)| What::MissingEdge(a, b)),
    );
    found.extend(
        ours.edges
            .difference(&theirs.edges)
            .map(|&(a, b)| What::ExtraEdge(a, b)),
    );
}

/// The calls of a function that the compiler's map has landing pads for, by the address behind them.
struct Invocations(BTreeMap<u64, BTreeSet<u64>>);

impl Invocations {
    fn of(refined: &Refined) -> Self {
        let mut calls: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for edge in &refined.graph.edges {
            if let Some(end) = edge.thrown_at {
                calls.entry(end).or_default().insert(edge.to);
            }
        }
        Self(calls)
    }

    /// Whether an edge of the model's is only there because one table entry covers several calls.
    fn explain(&self, edge: &Edge) -> bool {
        let Some(end) = edge.thrown_at else {
            return false;
        };
        let before = self.0.range(..end).next_back();
        let behind = self.0.range(end + 1..).next();
        let only = |call: Option<(&u64, &BTreeSet<u64>)>| {
            call.is_some_and(|(_, pads)| pads.len() == 1 && pads.contains(&edge.to))
        };
        !self.0.contains_key(&end) && only(before) && only(behind)
    }
}

#[cfg(test)]
mod tests;
