//! What a fleet has seen of chains of calls: those that instances noted, each of what it carried, and those that may have run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tomo_export::chains::{Called, Inferred, InferredChain, document};
use tomo_export::words::counted;
use tomo_profile::chains::{Chains, Entered, Meaning, Noted};
use tomo_program::{Address, Callee, EdgeKind, Graphs, Resolution};
use tomo_protocol::{Campaign, Client, ModuleOf, Profile, VariantChains};
use tomo_wire::chains::{Functions, Row};

use super::records::{Planned, planned};
use crate::chains::{notes, rows as table};

/// Inferred chains that are shown, and functions of each.
const SHOWN: usize = 20;
const FRAMES: usize = 6;

/// The chains of a fleet.
pub(super) struct Seen<'p> {
    profile: &'p Profile,
    called: Called,
    inferred: Inferred,
}

/// The chains of all variants put together: of each with what it carried as all that it could see.
pub(super) fn seen<'p>(
    client: &Client,
    campaign: &Campaign,
    profile: &'p Profile,
    module: &ModuleOf,
    folder: &Path,
) -> Result<Seen<'p>> {
    let Planned { plan, located, .. } = planned(client, module, folder, |plan| {
        Ok(Functions::read(plan)?.0.module)
    })?;
    let (header, rows) = Functions::read(&plan).map_err(anyhow::Error::msg)?;
    let graphs = located.model.graphs()?;
    let function_at = |address: u64| {
        let function = graphs.function_at(Address(address))?;
        Some(function.entry().0)
    };
    ensure!(
        profile.chains.iter().all(is_tree),
        "the collector's chains are no trees"
    );
    let ways = Ways::of(&graphs, rows);
    let mut chains = Chains::default();
    for one in &profile.chains {
        let carried = carried(campaign, one.variant, rows);
        let meaning = Meaning {
            origin: header.origin.get(),
            rows,
            function_at: &function_at,
            is_observed: &|entry| carried.contains(&entry),
            is_certain: &|back, callee| ways.is_certain(back, callee, &carried),
        };
        let noted = one.chains.iter().map(|chain| Noted {
            parent: chain.parent as usize,
            way: chain.way,
            site: chain.site,
            function: chain.unit,
            calls: chain.calls.unwrap_or(0),
        });
        chains.add_noted(noted, &meaning);
    }
    let mut noted = profile.chains.iter().flat_map(|one| &one.chains);
    ensure!(
        noted.all(|chain| chain.calls.is_some()) && chains.calls().is_some(),
        "calls add up to more than 64 bits hold: some instance reports numbers that cannot be"
    );
    let observed = profile
        .variants
        .iter()
        .filter(|of| of.totals.runs > of.totals.unobserved);
    let variants: Vec<BTreeSet<u64>> = observed
        .map(|of| carried(campaign, of.variant, rows))
        .collect();
    let inferred = Inferred::of(&chains, &function_at, &variants)?;
    let is_carried = |row: &&Row| variants.iter().any(|of| of.contains(&row.entry.get()));
    let watched = rows.iter().filter(is_carried);
    let watched: HashMap<u64, bool> = watched
        .map(|row| (row.entry.get(), row.leaf.get() != 0))
        .collect();
    Ok(Seen {
        profile,
        called: Called {
            located,
            chains,
            observed: watched,
            lost_threads: 0,
        },
        inferred,
    })
}

/// Whether each chain goes on from one before it.
fn is_tree(all: &VariantChains) -> bool {
    (0..).zip(&all.chains).all(|(at, chain)| chain.parent <= at)
}

/// The entries of the functions that a variant carries.
fn carried(campaign: &Campaign, variant: u32, rows: &[Row]) -> BTreeSet<u64> {
    let units = campaign.variants.get(variant as usize);
    let units = units.into_iter().flat_map(|variant| variant.units.iter());
    let row = |unit: u32| rows.get(unit as usize);
    units.filter_map(row).map(|row| row.entry.get()).collect()
}

/// How functions come to be entered that their callers did not call themselves: by tail calls.
struct Ways {
    /// The functions that can be observed.
    observable: HashSet<u64>,
    /// Whom direct calls call, by where they return to.
    called: HashMap<u64, u64>,
    /// Who jumps to a function.
    jumping: HashMap<u64, Vec<u64>>,
    /// Who jumps to who knows whom.
    anywhere: Vec<u64>,
}

impl Ways {
    fn of(graphs: &Graphs<'_>, rows: &[Row]) -> Self {
        let mut ways = Self {
            observable: rows.iter().map(|row| row.entry.get()).collect(),
            called: HashMap::new(),
            jumping: HashMap::new(),
            anywhere: Vec::new(),
        };
        for function in graphs.functions() {
            let entry = function.entry().0;
            for call in function.calls() {
                let back = graphs
                    .block(call.block())
                    .map(|block| block.range().end().0);
                if let (Some(back), Callee::Function(callee)) = (back, call.callee()) {
                    ways.called.insert(back, callee.0);
                }
            }
            let tails = function
                .edges()
                .filter(|edge| edge.kind == EdgeKind::TailCall);
            for edge in tails {
                ways.jumping.entry(edge.address.0).or_default().push(entry);
            }
            let mut jumps = function.indirect_jumps();
            if jumps
                .any(|jump| jump.resolution() == Resolution::TailCall && jump.import().is_none())
            {
                ways.anywhere.push(entry);
            }
        }
        ways
    }

    /// Whether the call that returns to `back` called this function itself, and no tail call of another led there that
    /// could be observed and was not carried.
    fn is_certain(&self, back: u64, callee: u64, carried: &BTreeSet<u64>) -> bool {
        let is_hidden = |by: &u64| self.observable.contains(by) && !carried.contains(by);
        let jumping = self.jumping.get(&callee).into_iter().flatten();
        self.called.get(&back) == Some(&callee) || !jumping.chain(&self.anywhere).any(is_hidden)
    }
}

impl Seen<'_> {
    /// The chains that were called most, and the inferred ones, told apart.
    pub(super) fn text(&self) -> Result<String> {
        let mut text = table(&self.called.stacks()?);
        text += &notes(&self.called, 0);
        let Inferred { chains, are_more } = &self.inferred;
        if chains.is_empty() {
            return Ok(text);
        }
        let least = if *are_more { "at least " } else { "" };
        text += &format!(
            "\ninferred, and perhaps false: {least}{} chains, each of whose calls was seen, but by no instance that carried all their functions\n",
            chains.len()
        );
        let graphs = self.called.located.model.graphs()?;
        for chain in chains.iter().take(SHOWN) {
            let names = chain
                .functions
                .iter()
                .rev()
                .map(|entry| title(&graphs, *entry));
            let names: Vec<String> = names.collect();
            let shown = names.get(..FRAMES).unwrap_or(&names);
            text += &format!("{:>16}  {}", "?", shown.join(" ← "));
            text += &match names.len() - shown.len() {
                0 => "\n".to_owned(),
                more => format!(" ← {more} more\n"),
            };
        }
        if let Some(more) = chains.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            let more = counted(more as u64, "more chain", "more chains");
            text += &format!("{:>16}  {more}\n", "");
        }
        Ok(text)
    }

    /// The document of chains (schema tomo.chains/1), with the inferred ones apart from those that were seen.
    pub(super) fn json(&self) -> Result<String> {
        let mut document = document(&self.called)?;
        let graphs = self.called.located.model.graphs()?;
        let inferred = self.inferred.chains.iter().map(|chain| row(&graphs, chain));
        document["inferred"] = json!({
            "chains": inferred.collect::<Vec<_>>(),
            "are_more": self.inferred.are_more,
        });
        let totals = &self.profile.totals;
        document["fleet"] = json!({
            "campaign": self.profile.campaign,
            "instances": self.profile.instances,
            "runs": totals.runs,
            "duration": totals.duration,
        });
        Ok(format!("{document:#}\n"))
    }
}

fn title(graphs: &Graphs<'_>, entry: u64) -> String {
    let function = graphs.function_starting_at(Address(entry));
    function.map_or_else(|| format!("{entry:#x}"), |function| function.title())
}

/// A chain that may have run, the root first.
fn row(graphs: &Graphs<'_>, chain: &InferredChain) -> Value {
    let by = chain.by.iter().map(|by| match by {
        Entered::Call(back) => json!({ "way": "call", "site": format!("{back:#x}") }),
        Entered::Tail(jump) => json!({ "way": "tail-call", "site": format!("{jump:#x}") }),
        _ => Value::Null,
    });
    let functions = chain
        .functions
        .iter()
        .map(|entry| json!({ "address": format!("{entry:#x}"), "name": title(graphs, *entry) }));
    json!({
        "functions": functions.collect::<Vec<_>>(),
        "by": by.collect::<Vec<_>>(),
    })
}
