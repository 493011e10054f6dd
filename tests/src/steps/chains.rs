//! The oracle of call chains: which activation of which function was entered from where, step by step.
//!
//! An *activation* begins where control arrives at a function's entry by a call, or by a jump of another
//! function; it lasts until its *slot*, the word of the stack with its return address, is given back. So the
//! stack pointer alone says which activations are left, be it by a return, an exception or `longjmp`. Nothing
//! here knows how chains are recorded.
//!
//! - A chain is the path of activations that are under way, each with the **way** by which it was entered.
//! - A *tail call* is a jump to an entry while the stack pointer is at the slot: the new activation lies below
//!   that which it replaces. Where one of the same function is in the same run of tail calls it
//!   goes back to that, so that loops of tail calls do not make chains longer.
//! - Functions that are not observed are no part of a chain; what they call is entered from their call.
//! - Where code outside calls back, the way names the call by which the chain went outside.
//! - A signal's handler lies below the function that was interrupted, or that called it where it calls nothing
//!   itself (a *leaf*).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{Kind, Moment};

/// How an activation was entered. Addresses are as the file states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// By a call that is to return to this address.
    Call(u64),
    /// By the jump at this address, which replaced the activation above.
    Tail(u64),
    /// From outside, which was called by what is to return to this address.
    Outside(Option<u64>),
    /// As the handler of a signal.
    Signal,
}

/// Which function an address belongs to, by ranges of addresses.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    /// Start of a range: its end and the function's entry.
    ranges: BTreeMap<u64, (u64, u64)>,
    entries: BTreeSet<u64>,
}

#[derive(Deserialize)]
struct Line {
    address: u64,
    size: u64,
    #[serde(default)]
    ranges: Vec<RangeLine>,
}

#[derive(Deserialize)]
struct RangeLine {
    address: u64,
    size: u64,
}

impl Functions {
    /// Those that `tomo map --format jsonl` tells of.
    ///
    /// # Errors
    /// If the lines are not of that form.
    pub fn read(lines: &[u8]) -> Result<Self> {
        let mut functions = Self::default();
        let lines = lines.split(|&byte| byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            let line: Line = serde_json::from_slice(line).context("a line of the map")?;
            functions.entries.insert(line.address);
            let whole = RangeLine {
                address: line.address,
                size: line.size,
            };
            for range in line.ranges.iter().chain([&whole]) {
                let end = range.address + range.size;
                functions.ranges.insert(range.address, (end, line.address));
            }
        }
        Ok(functions)
    }

    /// The entry of the function that an address belongs to.
    #[must_use]
    pub fn of(&self, address: u64) -> Option<u64> {
        let (_, &(end, entry)) = self.ranges.range(..=address).next_back()?;
        (address < end).then_some(entry)
    }

    fn is_entry(&self, address: u64) -> bool {
        self.entries.contains(&address)
    }
}

/// What is observed: entries of functions, and which of them are leaves.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Their entries, with whether they are leaves.
    pub functions: HashMap<u64, bool>,
}

/// A chain: entries of functions, each with the way it was entered, the outermost first.
pub type Chain = Vec<(Way, u64)>;

#[derive(Clone, Debug)]
struct Node {
    parent: usize,
    way: Way,
    function: u64,
    count: u64,
}

/// An activation under way.
#[derive(Clone, Copy, Debug)]
struct Frame {
    slot: u64,
    function: u64,
    /// Its node, or that of the innermost observed activation around it.
    node: usize,
    observed: bool,
    leaf: bool,
    /// Behind the call that it made last, while that is known.
    calls: Option<u64>,
}

/// Follows a run.
pub struct Follower {
    functions: Functions,
    observed: Observed,
    nodes: Vec<Node>,
    index: HashMap<(usize, Way, u64), usize>,
    frames: Vec<Frame>,
    /// For each signal whose handler runs, how many activations there were, and the stack pointer.
    signals: Vec<(usize, u64)>,
}

impl Follower {
    /// Of a run that has not begun.
    #[must_use]
    pub fn new(functions: Functions, observed: Observed) -> Self {
        let root = Node {
            parent: 0,
            way: Way::Outside(None),
            function: 0,
            count: 0,
        };
        Self {
            functions,
            observed,
            nodes: vec![root],
            index: HashMap::new(),
            frames: Vec::new(),
            signals: Vec::new(),
        }
    }

    /// The chains that were entered, with how often.
    #[must_use]
    pub fn chains(&self) -> BTreeMap<Chain, u64> {
        let entered = self.nodes.iter().enumerate().skip(1);
        let mut chains = BTreeMap::new();
        for (at, node) in entered {
            let mut chain = Chain::new();
            let mut at = at;
            while at != 0 {
                chain.push((self.nodes[at].way, self.nodes[at].function));
                at = self.nodes[at].parent;
            }
            chain.reverse();
            *chains.entry(chain).or_default() += node.count;
        }
        chains
    }

    /// The run begins, in a function that nobody called: it has no return address to give back.
    pub(super) fn begin(&mut self, stated: Option<u64>) {
        if let Some(entry) = stated.filter(|&entry| self.functions.is_entry(entry)) {
            self.enter(Way::Outside(None), entry, u64::MAX);
        }
    }

    pub(super) fn step(&mut self, step: &Moment) {
        match step.kind {
            Kind::Signal => {
                self.signals.push((self.frames.len(), step.stack_before));
                if let Some(to) = step.to.filter(|&to| self.functions.is_entry(to)) {
                    self.interrupt(to, step.stack);
                }
                return;
            }
            Kind::Resume => {
                let kept = self.signals.pop().map_or(0, |(frames, _)| frames);
                self.frames.truncate(kept);
                return;
            }
            _ => {}
        }
        self.leave(step);
        self.note_call(step);
        let entered = step.to.filter(|&to| self.functions.is_entry(to));
        match (step.kind, entered) {
            (Kind::Call { .. }, Some(to)) => self.enter(self.way(step.back), to, step.stack),
            (Kind::Flow, Some(to)) => self.jump(step, to),
            (Kind::Landing { .. }, Some(to)) => {
                self.enter(self.way(step.back), to, step.stack);
            }
            (Kind::Flow, None) => self.jump_away(step),
            _ => {}
        }
    }

    /// Activations whose slots were given back are over.
    fn leave(&mut self, step: &Moment) {
        let stack = step.stack;
        // Out of a handler for good.
        while self.signals.pop_if(|(_, then)| *then < stack).is_some() {}
        let kept = self.signals.last().map_or(0, |(frames, _)| *frames);
        while self.frames.len() > kept && self.frames.pop_if(|f| f.slot < stack).is_some() {}
    }

    /// The innermost activation, if the step comes from it.
    fn own(&mut self, step: &Moment) -> Option<&mut Frame> {
        let function = self.functions.of(step.from?)?;
        self.frames.last_mut().filter(|f| f.function == function)
    }

    fn note_call(&mut self, step: &Moment) {
        let Kind::Call { back: Some(back) } = step.kind else {
            return;
        };
        if let Some(own) = self.own(step) {
            own.calls = Some(back);
        }
    }

    /// How a function was entered whose return address is this.
    fn way(&self, back: Option<u64>) -> Way {
        let observed = self.frames.iter().rev().find(|frame| frame.observed);
        match back {
            Some(back) => Way::Call(back),
            None => Way::Outside(observed.and_then(|frame| frame.calls)),
        }
    }

    /// A jump to the entry `to`.
    fn jump(&mut self, step: &Moment, to: u64) {
        if step.from.and_then(|from| self.functions.of(from)) == Some(to) {
            return;
        }
        let slot = step.stack;
        let from = step.from.unwrap_or_default();
        let own = self.own(step).copied().filter(|own| own.slot == slot);
        let Some(own) = own else {
            return self.enter(self.way(step.back), to, slot);
        };
        self.frames.pop();
        let follows = self.observed.functions.contains_key(&to);
        match own.observed && follows {
            true => self.follow(own.node, Way::Tail(from), to, slot),
            false => self.enter(self.way(step.back), to, slot),
        }
    }

    /// A jump to what is no entry: out of the function for good, or into another's middle.
    fn jump_away(&mut self, step: &Moment) {
        let to = step.to.and_then(|to| self.functions.of(to));
        let slot = step.stack;
        let from = step.from.and_then(|from| self.functions.of(from));
        let Some(own) = self.own(step).filter(|_| from != to) else {
            return;
        };
        match to {
            Some(other) => own.function = other,
            None if own.slot == slot => {
                self.frames.pop();
            }
            None => {}
        }
    }

    fn enter(&mut self, way: Way, function: u64, slot: u64) {
        let above = self.frames.last().map_or(0, |frame| frame.node);
        let Some(&leaf) = self.observed.functions.get(&function) else {
            self.frames.push(Frame {
                slot,
                function,
                node: above,
                observed: false,
                leaf: false,
                calls: None,
            });
            return;
        };
        let node = self.child(above, way, function);
        self.push(node, function, slot, leaf);
    }

    /// A tail call out of the activation of `node`.
    fn follow(&mut self, node: usize, way: Way, function: u64, slot: u64) {
        let leaf = self.observed.functions.get(&function).copied();
        let mut run = node;
        loop {
            if self.nodes[run].function == function {
                break;
            }
            if !matches!(self.nodes[run].way, Way::Tail(_)) {
                run = self.child(node, way, function);
                break;
            }
            run = self.nodes[run].parent;
        }
        self.push(run, function, slot, leaf.unwrap_or(false));
    }

    fn interrupt(&mut self, function: u64, slot: u64) {
        let leaves = self.frames.pop_if(|frame| frame.leaf);
        self.enter(Way::Signal, function, slot);
        if let (Some(leaf), Some(handler)) = (leaves, self.frames.pop()) {
            self.frames.extend([leaf, handler]);
        }
    }

    fn push(&mut self, node: usize, function: u64, slot: u64, leaf: bool) {
        self.nodes[node].count += 1;
        self.frames.push(Frame {
            slot,
            function,
            node,
            observed: true,
            leaf,
            calls: None,
        });
    }

    fn child(&mut self, parent: usize, way: Way, function: u64) -> usize {
        let next = self.nodes.len();
        let found = *self.index.entry((parent, way, function)).or_insert(next);
        if found == next {
            self.nodes.push(Node {
                parent,
                way,
                function,
                count: 0,
            });
        }
        found
    }
}
