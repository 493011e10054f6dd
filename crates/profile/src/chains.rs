//! The tree of calls of a run, from those of its threads (`tomo_wire::chains`).
//!
//! What a thread notes are facts at its instructions; what they mean is concluded here. A function was entered *from
//! a call of the function above* it if the return address lies in that. If it lies in one that is not observed, there
//! is a *gap*: that one was active in between. If it lies in one that is observed, which then would have been noted, the
//! tree was not that of the stack any more (programs that switch stacks by themselves, processes that go on after
//! `fork`): such a chain is *unplaced*, what comes above it unknown, and nothing is made up.
//!
//! O(nodes).

use std::collections::HashMap;

use tomo_wire::chains::{LOST, MARK, Node, Row, Way, number_of};

/// How a function was entered, in addresses as the module states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entered {
    /// By a call of the function above that returns to this address.
    Call(u64),
    /// By a jump at this address, out of the function above.
    Tail(u64),
    /// By a call that returns to this address, of a function that is not observed and was active below
    /// the one above.
    Unobserved(u64),
    /// From outside of the module, where the call led that returns to this address, if that is known.
    Outside(Option<u64>),
    /// As a signal's handler.
    Signal,
    /// From this call, with nobody knows what above it.
    Unplaced(u64),
    /// By chains for which there was no room.
    NoRoom,
}

/// A chain: that of its parent, and one function more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Which chain it goes on from, by number; itself for the root, which is number 0.
    pub parent: usize,
    /// How.
    pub entered: Entered,
    /// The function's entry; 0 for the root, and where there was no room.
    pub function: u64,
    /// How often.
    pub calls: u64,
}

/// The chains of a run, parents before their children.
#[derive(Clone, Debug)]
pub struct Chains {
    chains: Vec<Chain>,
    index: HashMap<(usize, Entered, u64), usize>,
}

/// What the addresses of a module are.
#[derive(Clone, Copy)]
pub struct Meaning<'m> {
    /// Where its text starts, from which sites are counted.
    pub origin: u64,
    /// The functions that are observed, by number.
    pub rows: &'m [Row],
    /// The entry of the function that an address belongs to.
    pub function_at: &'m dyn Fn(u64) -> Option<u64>,
    /// Whether the function with this entry is observed.
    pub is_observed: &'m dyn Fn(u64) -> bool,
}

impl Default for Chains {
    fn default() -> Self {
        let root = Chain {
            parent: 0,
            entered: Entered::Outside(None),
            function: 0,
            calls: 0,
        };
        Self {
            chains: vec![root],
            index: HashMap::new(),
        }
    }
}

impl Chains {
    /// All of them; the first is the root.
    #[must_use]
    pub fn all(&self) -> &[Chain] {
        &self.chains
    }

    /// Adds what one thread noted. What was not finished, or is no tree, is left out.
    pub fn add(&mut self, nodes: &[Node], meaning: &Meaning<'_>) {
        // Which chain each node is.
        let mut known: Vec<Option<usize>> = vec![None; nodes.len()];
        if let Some(root) = known.first_mut() {
            *root = Some(0);
        }
        for (at, node) in nodes.iter().enumerate().skip(1) {
            if number_of(LOST) == Some(at) {
                if node.count.get() > 0 {
                    self.add_calls(0, Entered::NoRoom, 0, node.count.get());
                }
                continue;
            }
            let parent = number_of(node.parent.get()).filter(|parent| *parent < at);
            let parent = parent.and_then(|parent| known.get(parent).copied().flatten());
            let row = meaning.rows.get(node.function.get() as usize);
            let way = Way::from_number(node.way.get());
            let (Some(parent), Some(row), Some(way)) = (parent, row, way) else {
                continue;
            };
            let entered = self.entered(parent, way, node.site.get(), meaning);
            let parent = match entered {
                Entered::Unplaced(_) => 0,
                _ => parent,
            };
            let chain = self.add_calls(parent, entered, row.entry.get(), node.count.get());
            known[at] = Some(chain);
        }
    }

    fn entered(&self, parent: usize, way: Way, site: u32, meaning: &Meaning<'_>) -> Entered {
        let address = meaning.origin.wrapping_add((site & !MARK).into());
        match way {
            Way::Tail => Entered::Tail(address),
            Way::Signal => Entered::Signal,
            Way::Outside | Way::None => Entered::Outside((site != 0).then_some(address)),
            Way::Call => {
                let caller = (meaning.function_at)(address.wrapping_sub(1));
                let above = self.chains[parent].function;
                match caller {
                    Some(caller) if caller == above => Entered::Call(address),
                    Some(caller) if (meaning.is_observed)(caller) => Entered::Unplaced(address),
                    _ => Entered::Unobserved(address),
                }
            }
        }
    }

    fn add_calls(&mut self, parent: usize, entered: Entered, function: u64, calls: u64) -> usize {
        let next = self.chains.len();
        let key = (parent, entered, function);
        let found = *self.index.entry(key).or_insert(next);
        if found == next {
            self.chains.push(Chain {
                parent,
                entered,
                function,
                calls: 0,
            });
        }
        self.chains[found].calls += calls;
        found
    }

    /// The steps of a chain, the outermost first.
    #[must_use]
    pub fn steps(&self, chain: usize) -> Vec<&Chain> {
        let mut steps = Vec::new();
        let mut at = chain;
        while let Some(step) = self.chains.get(at).filter(|_| at != 0) {
            steps.push(step);
            at = step.parent;
        }
        steps.reverse();
        steps
    }

    /// For each chain the calls of all that go on from it, its own included.
    #[must_use]
    pub fn inclusive(&self) -> Vec<u64> {
        let mut sums: Vec<u64> = self.chains.iter().map(|chain| chain.calls).collect();
        for at in (1..self.chains.len()).rev() {
            sums[self.chains[at].parent] += sums[at];
        }
        sums
    }
}
