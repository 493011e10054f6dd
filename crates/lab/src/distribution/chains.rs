//! Which chains of direct calls ran, from what `tomo chains` tells of each run.
//!
//! The tree of a run is cut where a function was not called directly; each piece starts at a *root*, and its ways down are the
//! chains (PDT §5.1). A chain is *complete*, and an event, if it ends in a function that calls no other directly; what leads
//! back into the chain is not taken, as in the paper.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use tomo_plan::chains::{Call, CallGraph, FunctionId};
use tomo_plan::distribution::UnitId;
use tomo_profile::award::{Events, Run};
use tomo_program::{Address, Callee, EdgeKind, FunctionView, Graphs};

use crate::disposal::StudyError;

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

/// A chain: its root and the sites of its calls, as the program's call graph numbers their units.
type Units = Vec<UnitId>;

/// All that is known of the field, in units from 0 on.
#[derive(Debug)]
pub struct Field {
    /// How many units there are.
    pub units: usize,
    /// Chains that ran somewhere, in the field or in house.
    pub events: Events,
    /// Those that ran in house.
    pub house: Vec<Units>,
    /// For each root all that it reaches.
    pub clusters: Vec<Units>,
    /// What ran in the field: of each run the chains that nothing goes on from, one after the other.
    pub runs: Vec<Run>,
    /// How many chains ran in the field, in house, and in both.
    pub chains: [usize; 3],
}

/// Where a direct call is: whether it is a jump, the address behind it or the start of the jump's block, and whom it calls.
type Site = (bool, u64, u64);

/// Collects what runs did.
pub struct Walk<'g> {
    graphs: &'g Graphs<'g>,
    graph: CallGraph,
    /// Numbers of direct calls.
    sites: HashMap<Site, u32>,
    /// Functions, by entry.
    functions: HashMap<u64, FunctionId>,
    /// Functions that nobody calls directly, and such as were entered otherwise in house.
    roots: BTreeSet<FunctionId>,
    /// Complete chains.
    house: BTreeSet<Units>,
    /// Per run its instance and all its chains, complete or not.
    field: Vec<(usize, BTreeSet<Units>)>,
    /// Those of them that are complete.
    complete: BTreeSet<Units>,
}

/// A chain under way.
#[derive(Clone, Default)]
struct Open {
    functions: Vec<FunctionId>,
    units: Units,
    /// A call back into the chain: nothing below it is of any.
    is_over: bool,
    /// Whether another chain goes on from it.
    goes_on: bool,
}

impl<'g> Walk<'g> {
    /// Of runs of this program.
    ///
    /// # Errors
    /// Where it has too many functions and calls.
    pub fn of(graphs: &'g Graphs<'g>) -> Result<Self, StudyError> {
        let functions = graphs.functions().enumerate();
        let functions: HashMap<u64, FunctionId> = functions
            .map(|(at, function)| (function.entry().0, FunctionId(at as u32)))
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
        let roots = functions.values().copied();
        Ok(Self {
            graphs,
            graph: CallGraph::new(functions.len(), calls)?,
            sites,
            roots: roots.filter(|one| !called.contains(one)).collect(),
            functions,
            house: BTreeSet::new(),
            field: Vec::new(),
            complete: BTreeSet::new(),
        })
    }

    /// Takes a run in house into account: what `tomo chains --json` tells of it.
    ///
    /// # Errors
    /// Where it is no such document.
    pub fn in_house(&mut self, document: &[u8]) -> Result<(), StudyError> {
        let (chains, roots) = self.chains(document)?;
        self.roots.extend(roots);
        let complete = chains.into_iter().filter(|(_, is_complete)| *is_complete);
        self.house.extend(complete.map(|(units, _)| units));
        Ok(())
    }

    /// Takes a run of an instance into account.
    ///
    /// # Errors
    /// As [`Self::in_house`].
    pub fn in_field(&mut self, instance: usize, document: &[u8]) -> Result<(), StudyError> {
        let (chains, _) = self.chains(document)?;
        let complete = chains.iter().filter(|(_, is_complete)| **is_complete);
        self.complete
            .extend(complete.map(|(units, _)| units.clone()));
        self.field.push((instance, chains.into_keys().collect()));
        Ok(())
    }

    /// The chains of a run that nothing goes on from, and whether each is complete; and the functions they start at.
    fn chains(
        &self,
        document: &[u8],
    ) -> Result<(BTreeMap<Units, bool>, BTreeSet<FunctionId>), StudyError> {
        let document: Document = serde_json::from_slice(document)?;
        let mut open: Vec<Open> = vec![Open::default()];
        let mut roots = BTreeSet::new();
        for row in &document.chains {
            let next = self.entered(row, &mut open);
            roots.extend(next.functions.first().filter(|_| next.functions.len() == 1));
            open.push(next);
        }
        let mut chains = BTreeMap::new();
        for one in open.into_iter().filter(|one| !one.is_over && !one.goes_on) {
            if let Some(last) = one.functions.last() {
                let is_complete = self.calls_none(*last, &one.functions);
                *chains.entry(one.units).or_default() |= is_complete;
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

    /// All that is known, in units of which each can be of use.
    ///
    /// # Errors
    /// Where there are too many.
    pub fn finish(self) -> Result<Field, StudyError> {
        let clusters = self.roots.iter().map(|root| self.graph.cluster(*root));
        let clusters: Vec<Units> = clusters.collect::<Result<_, _>>()?;
        let in_field = self.field.iter().flat_map(|(_, chains)| chains);
        let chains = self.house.iter().chain(in_field);
        let used: BTreeSet<UnitId> = clusters.iter().chain(chains).flatten().copied().collect();
        let numbers: HashMap<UnitId, UnitId> = (0..)
            .zip(&used)
            .map(|(number, unit)| (*unit, UnitId(number)))
            .collect();
        let renamed = |units: &Units| units.iter().map(|unit| numbers[unit]).collect::<Units>();
        let both = self.house.intersection(&self.complete).count();
        let all = self.house.union(&self.complete).map(renamed);
        // A chain begins with the entry of its root, as events do, so none is found where one ends and another begins.
        let runs = self.field.iter().map(|(instance, chains)| Run {
            instance: *instance,
            trace: chains.iter().flat_map(&renamed).collect(),
        });
        Ok(Field {
            units: used.len(),
            chains: [self.complete.len(), self.house.len(), both],
            house: self.house.iter().map(renamed).collect(),
            clusters: clusters.iter().map(renamed).collect(),
            runs: runs.collect(),
            events: Events::new(used.len(), all)?,
        })
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
