//! The direct calls of a program, and the chains of a run along them, from what `tomo chains` tells of it.
//!
//! The tree of a run is cut where a function was not called directly; each piece starts at a *root*, and its ways down are the
//! chains (PDT §5.1). A chain is *complete*, and an event, if it ends in a function that calls no other directly; what leads
//! back into the chain is not taken, as in the paper.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use tomo_plan::chains::{Call, CallGraph, ChainsError, FunctionId};
use tomo_plan::distribution::UnitId;
use tomo_program::{Address, Callee, EdgeKind, FunctionView, Graphs};

/// What is read of a document of chains (schema tomo.chains/1).
#[derive(Deserialize)]
struct Document {
    chains: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    parent: usize,
    way: String,
    site: Option<String>,
    function: String,
}

/// Where a direct call is: whether it is a jump, the address behind it or the start of the jump's block, and whom it calls.
type Site = (bool, u64, u64);

/// The direct calls of a program, with what observes each.
pub struct Calls<'g> {
    graphs: &'g Graphs<'g>,
    graph: CallGraph,
    /// Numbers of direct calls.
    sites: HashMap<Site, u32>,
    /// Functions, by entry; and entries, by function.
    functions: HashMap<u64, FunctionId>,
    entries: Vec<u64>,
    uncalled: BTreeSet<FunctionId>,
}

/// A chain that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RanChain {
    /// The functions along it, the root first.
    pub functions: Vec<FunctionId>,
    /// Whether it ends in a function that calls no other.
    pub is_complete: bool,
}

/// The chains of a run that nothing goes on from, by the units that observe them: the root's entry, and the sites.
pub type RanChains = BTreeMap<Vec<UnitId>, RanChain>;

/// A chain under way.
#[derive(Clone, Default)]
struct Open {
    functions: Vec<FunctionId>,
    units: Vec<UnitId>,
    /// A call back into the chain: nothing below it is of any.
    is_over: bool,
    /// Whether another chain goes on from it.
    goes_on: bool,
}

impl<'g> Calls<'g> {
    /// Of this program.
    ///
    /// # Errors
    /// Where it has too many functions and calls.
    pub fn of(graphs: &'g Graphs<'g>) -> Result<Self, ChainsError> {
        let entries: Vec<u64> = graphs.functions().map(|one| one.entry().0).collect();
        let functions: HashMap<u64, FunctionId> = (0..)
            .zip(&entries)
            .map(|(at, entry)| (*entry, FunctionId(at)))
            .collect();
        let (mut sites, mut calls) = (HashMap::new(), Vec::new());
        for function in graphs.functions() {
            for site in direct_calls(graphs, &function) {
                let Some(callee) = functions.get(&site.2) else {
                    continue;
                };
                let next = sites.len() as u32;
                calls.push(Call {
                    caller: functions[&function.entry().0],
                    site: *sites.entry(site).or_insert(next),
                    callee: *callee,
                });
            }
        }
        let called: BTreeSet<FunctionId> = calls.iter().map(|call| call.callee).collect();
        let uncalled = functions.values().copied();
        Ok(Self {
            graphs,
            graph: CallGraph::new(functions.len(), calls)?,
            sites,
            uncalled: uncalled.filter(|one| !called.contains(one)).collect(),
            functions,
            entries,
        })
    }

    /// Who calls whom, and where.
    #[must_use]
    pub fn graph(&self) -> &CallGraph {
        &self.graph
    }

    /// The functions that nobody calls directly.
    #[must_use]
    pub fn uncalled(&self) -> &BTreeSet<FunctionId> {
        &self.uncalled
    }

    /// For each function that nobody calls directly the entries of those that it reaches, itself included: PDT's clusters
    /// (§5.2).
    ///
    /// # Errors
    /// None, where the graph is sound.
    pub fn clusters(&self) -> Result<Vec<Vec<u64>>, ChainsError> {
        let reached = self.uncalled.iter().map(|root| self.graph.reached(*root));
        reached
            .map(|reached| Ok(self.entries_of(reached?)))
            .collect()
    }

    /// The chains from functions that nobody calls directly, by the entries of their functions (PDT §5.2); `None` if there are
    /// more than `most`.
    ///
    /// # Errors
    /// None, where the graph is sound.
    pub fn possible(&self, most: u64) -> Result<Option<Vec<Vec<u64>>>, ChainsError> {
        let (mut count, mut all) = (0_u64, Vec::new());
        for root in &self.uncalled {
            let chains = self.graph.chains(*root)?;
            let own = chains.count().exact();
            count = own
                .and_then(|own| count.checked_add(own))
                .unwrap_or(u64::MAX);
            if count > most {
                return Ok(None);
            }
            all.extend(chains.iter().map(|calls| {
                let callees = calls.iter().map(|call| call.callee);
                self.entries_of(std::iter::once(*root).chain(callees))
            }));
        }
        Ok(Some(all))
    }

    /// The complete chains of a run, by the entries of their functions; from what `tomo chains --json` tells of it.
    ///
    /// # Errors
    /// Where it is no such document.
    pub fn complete(&self, document: &[u8]) -> Result<Vec<Vec<u64>>, serde_json::Error> {
        let (chains, _) = self.ran(document)?;
        let complete = chains.into_values().filter(|chain| chain.is_complete);
        Ok(complete
            .map(|chain| self.entries_of(chain.functions))
            .collect())
    }

    fn entries_of(&self, functions: impl IntoIterator<Item = FunctionId>) -> Vec<u64> {
        let entry = |one: FunctionId| self.entries.get(one.index()).copied();
        functions.into_iter().filter_map(entry).collect()
    }

    /// The chains of a run that nothing goes on from, and the functions they start at; from what `tomo chains --json` tells
    /// of it.
    ///
    /// # Errors
    /// Where it is no such document.
    pub fn ran(
        &self,
        document: &[u8],
    ) -> Result<(RanChains, BTreeSet<FunctionId>), serde_json::Error> {
        let document: Document = serde_json::from_slice(document)?;
        let mut open: Vec<Open> = vec![Open::default()];
        let mut roots = BTreeSet::new();
        for row in &document.chains {
            let next = self.entered(row, &mut open);
            roots.extend(next.functions.first().filter(|_| next.functions.len() == 1));
            open.push(next);
        }
        let mut chains = RanChains::new();
        for one in open.into_iter().filter(|one| !one.is_over && !one.goes_on) {
            if let Some(last) = one.functions.last() {
                let is_complete = self.calls_none(*last, &one.functions);
                let ran = RanChain {
                    functions: one.functions,
                    is_complete: false,
                };
                chains.entry(one.units).or_insert(ran).is_complete |= is_complete;
            }
        }
        Ok((chains, roots))
    }

    /// What a row of a run's tree adds to the chain above it, or the chain that it starts.
    fn entered(&self, row: &Row, open: &mut [Open]) -> Open {
        let Some(&function) = address(&row.function).and_then(|entry| self.functions.get(&entry))
        else {
            return Open::default();
        };
        let root = || Open {
            functions: vec![function],
            units: vec![self.graph.entry_unit(function)],
            ..Open::default()
        };
        let Some(above) = open.get_mut(row.parent) else {
            return root();
        };
        let Some(site) = self.site(row) else {
            return root();
        };
        if above.is_over || above.functions.contains(&function) {
            return Open {
                is_over: true,
                ..Open::default()
            };
        }
        if above.functions.is_empty() {
            return root();
        }
        above.goes_on = true;
        let mut next = above.clone();
        next.goes_on = false;
        next.functions.push(function);
        next.units.push(self.graph.site_unit(site));
        next
    }

    /// The number of the direct call by which a row was entered, if it was.
    fn site(&self, row: &Row) -> Option<u32> {
        let (at, entry) = (address(row.site.as_deref()?)?, address(&row.function)?);
        let site = match row.way.as_str() {
            "call" => (false, at, entry),
            "tail-call" => (true, self.graphs.block_at(Address(at))?.address().0, entry),
            _ => return None,
        };
        self.sites.get(&site).copied()
    }

    /// Whether a function calls no other than those of the chain that it ends.
    fn calls_none(&self, function: FunctionId, chain: &[FunctionId]) -> bool {
        let mut calls = self.graph.calls(function).iter();
        calls.all(|call| chain.contains(&call.callee))
    }
}

/// The direct calls of a function.
fn direct_calls(graphs: &Graphs<'_>, function: &FunctionView<'_>) -> Vec<Site> {
    let calls = function.calls().filter_map(|call| match call.callee() {
        Callee::Function(callee) => {
            let behind = graphs.block(call.block())?.range().end();
            Some((false, behind.0, callee.0))
        }
        Callee::Import(_) | Callee::Indirect => None,
    });
    let jumps = function.edges().filter_map(|edge| {
        let block = graphs.block(edge.from)?;
        let is_tail = edge.kind == EdgeKind::TailCall;
        is_tail.then_some((true, block.address().0, edge.address.0))
    });
    calls.chain(jumps).collect()
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
