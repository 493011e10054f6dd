//! Chains of calls with names, and written as people know them.
//!
//! | what | file |
//! |---|---|
//! | what the threads of a run noted | `chains/read.rs` |
//! | some of the chains | `chains/choose.rs` |
//! | the direct calls of a program, and a run's chains along them | `chains/calls.rs` |
//! | chains that may have run, put together of what different runs have shown | `chains/inferred.rs` |
//! | chains as they are shown | `chains/stacks.rs` |
//! | a line a chain, as flame graph tools read it | `chains/folded.rs` |
//! | a flame graph | `chains/flame.rs` |
//! | the format of pprof | `chains/pprof.rs` |
//! | one document | `chains/document.rs` |
//!
//! The weight of a chain is how often it was called, nothing else: neither time nor instructions.

mod calls;
mod choose;
mod document;
mod flame;
mod folded;
mod inferred;
mod pprof;
mod read;
mod stacks;

use std::collections::HashMap;

use tomo_profile::chains::{Chains, Entered};
use tomo_program::{Address, CallView, Graphs, ModelError};

pub use calls::{Calls, RanChain, RanChains};
pub use choose::Choice;
pub use document::document;
pub use flame::write as write_flame_graph;
pub use folded::write as write_folded;
pub use inferred::{Inferred, InferredChain};
pub use pprof::write as write_pprof;
pub use read::{ReadError, Tree, trees};
pub use stacks::{Stack, Stacks};

use crate::Located;

/// The chains of runs of one module.
#[derive(Debug)]
pub struct Called {
    /// The module's file and model.
    pub located: Located,
    /// The chains.
    pub chains: Chains,
    /// The entries of the functions that were observed, with whether they are leaves.
    pub observed: HashMap<u64, bool>,
    /// Threads that were not observed.
    pub lost_threads: u64,
}

/// What is shown of a step of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Its name, by number.
    pub name: u32,
    /// The function's entry; 0 for what is no observed function.
    pub function: u64,
    /// Where in the function the next frame was called from; 0 in the last frame, and where that is not known.
    pub at: u64,
}

impl Called {
    /// The chains with their names.
    ///
    /// # Errors
    /// Where the model is damaged.
    pub fn stacks(&self) -> Result<Stacks, ModelError> {
        let graphs = self.located.model.graphs()?;
        let mut names = Names::of(&graphs);
        let mut stacks = Stacks::default();
        // By chain: the step in front of its innermost frame, and that frame, of which the next chain tells where it calls.
        let mut ends: Vec<(usize, Option<Frame>)> = vec![(0, None)];
        for chain in self.chains.all().iter().skip(1) {
            let (before, last) = ends.get(chain.parent).copied().unwrap_or_default();
            let at = calls_at(chain.entered);
            let before = last.map_or(before, |last| stacks.step(before, Frame { at, ..last }));
            let gap = names.gap(chain.entered, chain.parent == 0);
            let gap = gap.map(|gap| Frame {
                name: names.number(gap),
                function: 0,
                at: 0,
            });
            let function = (chain.entered != Entered::NoRoom).then(|| Frame {
                name: names.function(chain.function),
                function: chain.function,
                at: 0,
            });
            let end = match (gap, function) {
                (Some(gap), Some(function)) => (stacks.step(before, gap), Some(function)),
                (one, other) => (before, one.or(other)),
            };
            if chain.calls > 0 {
                let last = end.1.map_or(end.0, |frame| stacks.step(end.0, frame));
                stacks.add(last, chain.calls);
            }
            ends.push(end);
        }
        (stacks.names, stacks.symbols) = (names.names, names.symbols);
        Ok(stacks)
    }

    /// Calls of functions with nobody knows what above them, and of what they called.
    #[must_use]
    pub fn unplaced(&self) -> u64 {
        let all = self.chains.all().iter().zip(self.chains.inclusive());
        let unplaced = all.filter(|(chain, _)| matches!(chain.entered, Entered::Unplaced(_)));
        unplaced.map(|(_, calls)| calls).sum()
    }

    /// Calls by chains for which there was no room.
    #[must_use]
    pub fn without_room(&self) -> u64 {
        let all = self.chains.all().iter();
        let lost = all.filter(|chain| chain.entered == Entered::NoRoom);
        lost.map(|chain| chain.calls).sum()
    }
}

/// Where in the function above it was called from; 0 where that is not known.
fn calls_at(entered: Entered) -> u64 {
    match entered {
        Entered::Call(back) | Entered::Perhaps(back) | Entered::Outside(Some(back)) => {
            back.wrapping_sub(1)
        }
        Entered::Tail(jump) => jump,
        _ => 0,
    }
}

/// Names by number, each once.
struct Names<'g> {
    graphs: &'g Graphs<'g>,
    names: Vec<String>,
    symbols: HashMap<u32, String>,
    numbers: HashMap<String, u32>,
    functions: HashMap<u64, u32>,
    calls: HashMap<u64, CallView<'g>>,
}

impl<'g> Names<'g> {
    fn of(graphs: &'g Graphs<'g>) -> Self {
        let calls = graphs.functions().flat_map(|function| {
            let calls = function.calls();
            calls.map(|call| (call.block(), call))
        });
        let behind = |(block, call)| {
            let end = graphs.block(block).map(|block| block.range().end().0);
            end.map(|end| (end, call))
        };
        Self {
            graphs,
            names: Vec::new(),
            symbols: HashMap::new(),
            numbers: HashMap::new(),
            functions: HashMap::new(),
            calls: calls.filter_map(behind).collect(),
        }
    }

    fn number(&mut self, name: String) -> u32 {
        let next = self.names.len() as u32;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }

    fn function(&mut self, entry: u64) -> u32 {
        if let Some(known) = self.functions.get(&entry) {
            return *known;
        }
        let function = self.graphs.function_starting_at(Address(entry));
        let title = function.map_or_else(|| format!("{entry:#x}"), |function| function.title());
        let number = self.number(title);
        if let Some(symbol) = function.and_then(|function| function.name()) {
            self.symbols.entry(number).or_insert_with(|| symbol.into());
        }
        self.functions.insert(entry, number);
        number
    }

    /// What stands between a function and the one above it, or before the first.
    fn gap(&self, entered: Entered, is_first: bool) -> Option<String> {
        match entered {
            Entered::Call(_) | Entered::Tail(_) => None,
            Entered::Outside(_) if is_first => None,
            Entered::Outside(back) => {
                let call = back.and_then(|back| self.calls.get(&back));
                let import = call.and_then(CallView::import);
                let name = import.and_then(|name| name.split('@').next());
                Some(format!("[{}]", name.unwrap_or("outside")))
            }
            Entered::Unobserved(back) => {
                let caller = self.graphs.function_at(Address(back.wrapping_sub(1)));
                let name = caller.map_or_else(|| "unobserved".into(), |caller| caller.title());
                Some(format!("[{name}]"))
            }
            Entered::Perhaps(_) => Some("[perhaps others]".into()),
            Entered::Signal => Some("[signal]".into()),
            Entered::Unplaced(_) => Some("[unplaced]".into()),
            Entered::NoRoom => Some("[no room]".into()),
        }
    }
}
