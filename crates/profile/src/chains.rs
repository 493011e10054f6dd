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
    /// By what the function above called, from the call that returns to this address: perhaps by tail calls of functions
    /// that are not observed here, but could be.
    Perhaps(u64),
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
    calls: Option<u64>,
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
    /// Whether the call that returns to the first address leads to the function with the second entry by itself: true
    /// where all are observed that can be.
    pub is_certain: &'m dyn Fn(u64, u64) -> bool,
}

/// What a tree says of a chain, before anything is concluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The number of the chain above, in the same tree.
    pub parent: usize,
    /// How the function was entered, as its number ([`Way`]), and from where.
    pub way: u32,
    /// From where, in bytes from the start of the text.
    pub site: u32,
    /// The number of the function; none where there was no room.
    pub function: Option<u32>,
    /// How often.
    pub calls: u64,
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
            calls: Some(0),
        }
    }
}

impl Chains {
    /// All of them; the first is the root.
    #[must_use]
    pub fn all(&self) -> &[Chain] {
        &self.chains
    }

    /// The calls of all together; none where they are more than 64 bits hold, which is the most that a chain then has.
    #[must_use]
    pub fn calls(&self) -> Option<u64> {
        self.calls
    }

    /// Adds what one thread noted. What was not finished, or is no tree, is left out.
    pub fn add(&mut self, nodes: &[Node], meaning: &Meaning<'_>) {
        let noted = nodes.iter().enumerate().skip(1).map(|(at, node)| {
            let function = match number_of(LOST) == Some(at) {
                true => None,
                false => Some(node.function.get()),
            };
            Noted {
                parent: number_of(node.parent.get()).unwrap_or(usize::MAX),
                way: node.way.get(),
                site: node.site.get(),
                function,
                calls: node.count.get(),
            }
        });
        self.add_noted(noted, meaning);
    }

    /// Adds a tree, from its number 1 on: number 0 is the root.
    pub fn add_noted(&mut self, noted: impl IntoIterator<Item = Noted>, meaning: &Meaning<'_>) {
        // Which chain each is.
        let mut known: Vec<Option<usize>> = vec![Some(0)];
        for one in noted {
            let chain = self.add_one(&one, &known, meaning);
            known.push(chain);
        }
    }

    /// Adds the chains of another run of the same module.
    pub fn merge(&mut self, other: &Self) {
        // Which chain here each of those is.
        let mut known = vec![0];
        for chain in other.chains.iter().skip(1) {
            let parent = known[chain.parent];
            known.push(self.add_calls(parent, chain.entered, chain.function, chain.calls));
        }
    }

    fn add_one(
        &mut self,
        one: &Noted,
        known: &[Option<usize>],
        meaning: &Meaning<'_>,
    ) -> Option<usize> {
        let Some(function) = one.function else {
            if one.calls > 0 {
                self.add_calls(0, Entered::NoRoom, 0, one.calls);
            }
            return None;
        };
        let parent = known.get(one.parent).copied().flatten()?;
        let row = meaning.rows.get(function as usize)?;
        let way = Way::from_number(one.way)?;
        let entered = self.entered(parent, way, (one.site, row.entry.get()), meaning);
        let parent = match entered {
            Entered::Unplaced(_) => 0,
            _ => parent,
        };
        Some(self.add_calls(parent, entered, row.entry.get(), one.calls))
    }

    fn entered(
        &self,
        parent: usize,
        way: Way,
        (site, function): (u32, u64),
        meaning: &Meaning<'_>,
    ) -> Entered {
        let address = meaning.origin.wrapping_add((site & !MARK).into());
        match way {
            Way::Tail => Entered::Tail(address),
            Way::Signal => Entered::Signal,
            Way::Outside | Way::None => Entered::Outside((site != 0).then_some(address)),
            Way::Call => {
                let caller = (meaning.function_at)(address.wrapping_sub(1));
                let above = self.chains[parent].function;
                match caller {
                    Some(caller) if caller == above => {
                        match (meaning.is_certain)(address, function) {
                            true => Entered::Call(address),
                            false => Entered::Perhaps(address),
                        }
                    }
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
        let chain = &mut self.chains[found];
        chain.calls = chain.calls.saturating_add(calls);
        self.calls = self.calls.and_then(|all| all.checked_add(calls));
        found
    }

    /// The chain that goes on from this one so, by number.
    #[must_use]
    pub fn child(&self, parent: usize, entered: Entered, function: u64) -> Option<usize> {
        self.index.get(&(parent, entered, function)).copied()
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
            let sum = sums[at];
            let above = &mut sums[self.chains[at].parent];
            *above = above.saturating_add(sum);
        }
        sums
    }
}
