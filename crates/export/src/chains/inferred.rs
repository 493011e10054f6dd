//! Chains that may have run: each of their calls was seen somewhere, but no instance carried all of their functions.
//!
//! Source: PDT §4.2 and §5.3. What different variants show in parts can be put together to chains, and some of these are false:
//! what called in one run need not have been called in that way in another. So they are told apart from what was seen, always.
//!
//! The calls that were seen make a call graph of their own, whose chains are enumerated (`tomo_plan::chains`): from functions
//! that were entered from outside, to those that were not seen to call any other, without back edges.

use std::collections::{BTreeMap, BTreeSet};

use tomo_plan::chains::{Call, CallGraph, ChainsError, FunctionId};
use tomo_profile::chains::{Chains, Entered};

/// Chains that are looked at, at most.
const LOOKED_AT: usize = 100_000;

/// A chain that may have run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferredChain {
    /// The entries of the functions along it, the root first.
    pub functions: Vec<u64>,
    /// By which calls each is entered but the root.
    pub by: Vec<Entered>,
}

/// Chains that may have run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inferred {
    /// The chains, in the order of their roots.
    pub chains: Vec<InferredChain>,
    /// Whether there are more, at which nobody has looked.
    pub are_more: bool,
}

/// A call that was seen: who, where, whom.
type Seen = (u64, Entered, u64);

impl Inferred {
    /// What may have run, by the chains that were seen. `caller_at` is the function that an address belongs to; `carried` are the
    /// functions of each variant that was observed.
    ///
    /// # Errors
    /// Where there are too many calls.
    pub fn of(
        chains: &Chains,
        caller_at: &dyn Fn(u64) -> Option<u64>,
        carried: &[BTreeSet<u64>],
    ) -> Result<Self, ChainsError> {
        let (calls, roots) = seen(chains, caller_at);
        let entries: BTreeSet<u64> = calls
            .iter()
            .flat_map(|(caller, _, callee)| [*caller, *callee])
            .chain(roots.keys().copied())
            .collect();
        let entries: Vec<u64> = entries.into_iter().collect();
        let number = |entry: u64| FunctionId(entries.partition_point(|one| *one < entry) as u32);
        let mut sites: BTreeMap<Entered, u32> = BTreeMap::new();
        let mut of_site = Vec::new();
        let calls: Vec<Call> = calls
            .iter()
            .map(|(caller, by, callee)| {
                let next = sites.len() as u32;
                let site = *sites.entry(*by).or_insert(next);
                if site == next {
                    of_site.push(*by);
                }
                Call {
                    caller: number(*caller),
                    site,
                    callee: number(*callee),
                }
            })
            .collect();
        let graph = CallGraph::new(entries.len(), calls)?;
        let mut inferred = Self::default();
        let mut looked_at = 0;
        for (root, starts) in &roots {
            for calls in graph.chains(number(*root))?.iter() {
                if looked_at == LOOKED_AT {
                    inferred.are_more = true;
                    return Ok(inferred);
                }
                looked_at += 1;
                let callees = calls.iter().map(|call| entries[call.callee.index()]);
                let chain = InferredChain {
                    functions: std::iter::once(*root).chain(callees).collect(),
                    by: calls
                        .iter()
                        .map(|call| of_site[call.site as usize])
                        .collect(),
                };
                let is_carried = carried
                    .iter()
                    .any(|of| chain.functions.iter().all(|function| of.contains(function)));
                if !is_carried && !chain.was_seen(chains, starts) {
                    inferred.chains.push(chain);
                }
            }
        }
        Ok(inferred)
    }
}

impl InferredChain {
    /// Whether it ran from one of these chains on.
    fn was_seen(&self, chains: &Chains, starts: &[usize]) -> bool {
        starts.iter().any(|start| {
            let steps = self.by.iter().zip(self.functions.iter().skip(1));
            let mut steps = steps.map(|(by, function)| (*by, *function));
            let last = steps.try_fold(*start, |at, (by, function)| chains.child(at, by, function));
            last.is_some()
        })
    }
}

/// The calls that were seen, and where functions were entered from outside.
fn seen(
    chains: &Chains,
    caller_at: &dyn Fn(u64) -> Option<u64>,
) -> (BTreeSet<Seen>, BTreeMap<u64, Vec<usize>>) {
    let all = chains.all();
    let mut calls = BTreeSet::new();
    let mut roots: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (at, chain) in all.iter().enumerate().skip(1) {
        let above = all.get(chain.parent).map_or(0, |above| above.function);
        let (caller, by) = match chain.entered {
            Entered::Call(_) => (Some(above), chain.entered),
            Entered::Tail(jump) => (caller_at(jump), chain.entered),
            Entered::Unobserved(back) => (caller_at(back.wrapping_sub(1)), Entered::Call(back)),
            Entered::Outside(_) | Entered::Signal => {
                roots.entry(chain.function).or_default().push(at);
                continue;
            }
            Entered::Perhaps(_) | Entered::Unplaced(_) | Entered::NoRoom => continue,
        };
        calls.extend(caller.map(|caller| (caller, by, chain.function)));
    }
    (calls, roots)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tomo_profile::chains::{Chains, Meaning, Noted};
    use tomo_wire::chains::{Row, Way};

    use super::{Inferred, InferredChain};
    use tomo_profile::chains::Entered;

    /// Functions of sixteen bytes at 0x1000, 0x1010 and so on; the call behind which 5 is lies in the function.
    fn function_at(address: u64) -> Option<u64> {
        Some(address & !0xf)
    }

    /// A chain of a tree: parent, way, site, function, calls.
    type Said = (usize, Way, u32, u32, u64);

    /// The trees of variants that carry these functions.
    fn chains(trees: &[(&[u64], &[Said])]) -> Chains {
        let rows: Vec<Row> = (0..4)
            .map(|at| Row::of(0x1000 + 16 * at, false, 8))
            .collect();
        let mut chains = Chains::default();
        for (carried, tree) in trees {
            let noted = tree
                .iter()
                .map(|(parent, way, site, function, calls)| Noted {
                    parent: *parent,
                    way: *way as u32,
                    site: *site,
                    function: Some(*function),
                    calls: *calls,
                });
            let meaning = Meaning {
                origin: 0x1000,
                rows: &rows,
                function_at: &function_at,
                is_observed: &|entry| carried.contains(&entry),
                is_certain: &|_, _| true,
            };
            chains.add_noted(noted, &meaning);
        }
        chains
    }

    #[test]
    fn calls_seen_apart_make_a_chain_that_was_not_seen() {
        let (a, b, c) = (0x1000, 0x1010, 0x1020);
        // The one carries a and b, the other b and c; a calls b at 5, and b calls c at 0x15.
        let one = [(0, Way::Outside, 0, 0, 1), (1, Way::Call, 5, 1, 2)];
        let other = [(0, Way::Call, 5, 1, 1), (1, Way::Call, 0x15, 2, 7)];
        let chains = chains(&[(&[a, b], &one), (&[b, c], &other)]);
        let carried = [BTreeSet::from([a, b]), BTreeSet::from([b, c])];
        let inferred = Inferred::of(&chains, &function_at, &carried).expect("few calls");
        let expected = InferredChain {
            functions: vec![a, b, c],
            by: vec![Entered::Call(0x1005), Entered::Call(0x1015)],
        };
        assert_eq!(inferred.chains, [expected]);
        // Where a third carried all three, they were watched, and did not do it.
        let all = [BTreeSet::from([a, b, c])];
        let inferred = Inferred::of(&chains, &function_at, &all).expect("few calls");
        assert_eq!(inferred, Inferred::default());
    }

    #[test]
    fn what_was_seen_is_not_inferred() {
        let (a, b, c) = (0x1000, 0x1010, 0x1020);
        let whole = [
            (0, Way::Outside, 0, 0, 1),
            (1, Way::Call, 5, 1, 2),
            (2, Way::Call, 0x15, 2, 7),
        ];
        let chains = chains(&[(&[a, b, c], &whole)]);
        let inferred = Inferred::of(&chains, &function_at, &[]).expect("few calls");
        assert_eq!(inferred, Inferred::default());
    }
}
