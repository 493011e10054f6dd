//! Chains as one document (schema `tomo.chains/1`): a tree, parents before their children.

use serde_json::{Value, json};
use tomo_profile::chains::{Chain, Entered};
use tomo_program::{Address, Graphs, ModelError};

use super::Called;

/// All chains, and what was not observed.
///
/// # Errors
/// Where the model is damaged.
pub fn document(called: &Called) -> Result<Value, ModelError> {
    let graphs = called.located.model.graphs()?;
    let all = called.chains.all();
    let inclusive = called.chains.inclusive();
    let chains = all.iter().zip(&inclusive).skip(1);
    let chains = chains.map(|(chain, inclusive)| row(&graphs, chain, *inclusive));
    let named = |entry: u64| {
        let function = graphs.function_starting_at(Address(entry));
        function.map(|function| function.title())
    };
    let mut entries: Vec<(u64, bool)> = called.observed.iter().map(|(e, l)| (*e, *l)).collect();
    entries.sort_unstable();
    let functions = entries.iter().map(|(entry, leaf)| {
        json!({ "address": format!("{entry:#x}"), "name": named(*entry), "leaf": leaf })
    });
    let others = graphs.functions().map(|function| function.entry().0);
    let others = others.filter(|entry| !called.observed.contains_key(entry));
    let unobserved =
        others.map(|entry| json!({ "address": format!("{entry:#x}"), "name": named(entry) }));
    Ok(json!({
        "schema": "tomo.chains/1",
        "chains": chains.collect::<Vec<_>>(),
        "functions": functions.collect::<Vec<_>>(),
        "unobserved": unobserved.collect::<Vec<_>>(),
        "lost_threads": called.lost_threads,
    }))
}

fn row(graphs: &Graphs<'_>, chain: &Chain, inclusive: u64) -> Value {
    let (way, site) = match chain.entered {
        Entered::Call(back) => ("call", Some(back)),
        Entered::Perhaps(back) => ("perhaps", Some(back)),
        Entered::Tail(jump) => ("tail-call", Some(jump)),
        Entered::Unobserved(back) => ("unobserved", Some(back)),
        Entered::Outside(back) => ("outside", back),
        Entered::Signal => ("signal", None),
        Entered::Unplaced(back) => ("unplaced", Some(back)),
        Entered::NoRoom => ("no-room", None),
    };
    let function = graphs.function_starting_at(Address(chain.function));
    json!({
        // The root has no row: the first chain is number 1.
        "parent": chain.parent,
        "way": way,
        "site": site.map(|site| format!("{site:#x}")),
        "function": format!("{:#x}", chain.function),
        "name": function.map(|function| function.title()),
        "calls": chain.calls,
        "inclusive": inclusive,
    })
}
