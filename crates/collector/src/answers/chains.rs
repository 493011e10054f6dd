//! The chains of calls of all instances put together, by what they are.

use std::collections::{BTreeMap, HashMap};

use tomo_protocol::{Chain, VariantChains};
use tomo_wire::report::NO_ROOM;

use crate::state::State;

/// The chains of one variant.
#[derive(Default)]
struct Tree {
    /// By parent, way, site and function.
    index: HashMap<(u32, u32, u32, u32), u32>,
    chains: Vec<Chain>,
    /// Sums that stay at the largest number.
    calls: Vec<u64>,
}

impl Tree {
    /// Adds what an instance says of a chain; gives its number, from 1.
    fn add(&mut self, parent: u32, (way, site, unit): (u32, u32, u32), calls: u64) -> u32 {
        let next = self.chains.len() as u32 + 1;
        let number = *self.index.entry((parent, way, site, unit)).or_insert(next);
        if number == next {
            self.chains.push(Chain {
                parent,
                way,
                site,
                unit: (unit != NO_ROOM).then_some(unit),
                calls: None,
                instances: 0,
            });
            self.calls.push(0);
        }
        let at = number as usize - 1;
        self.chains[at].instances += 1;
        self.calls[at] = self.calls[at].saturating_add(calls);
        number
    }
}

/// The chains that each variant has shown. O(chains of all instances).
pub(super) fn of(state: &State) -> Vec<VariantChains> {
    let mut trees: BTreeMap<u32, Tree> = BTreeMap::new();
    for (_, instance) in state.instances() {
        // Of each of the instance's chains the variant, and the number there.
        let mut known: Vec<(u32, u32)> = Vec::new();
        for (step, above, calls) in instance.chained.all() {
            let above = above.and_then(|at| known.get(at).copied());
            let (variant, parent) = above.unwrap_or((step.above as u32, 0));
            let tree = trees.entry(variant).or_default();
            let number = tree.add(parent, (step.way, step.site, step.unit), calls);
            known.push((variant, number));
        }
    }
    let whole = |(variant, tree): (u32, Tree)| {
        let chains = tree.chains.into_iter().zip(tree.calls);
        let counted = chains.map(|(chain, calls)| Chain {
            calls: (calls < u64::MAX).then_some(calls),
            ..chain
        });
        VariantChains {
            variant,
            chains: counted.collect(),
        }
    };
    trees.into_iter().map(whole).collect()
}
