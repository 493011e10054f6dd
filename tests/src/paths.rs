//! The oracle of paths: what each activation of each function ran along, from single steps.
//!
//! An activation begins where a function's entry is reached from outside of it, and is known by where the stack's
//! newest word, the return address, is then: everything it does happens at or below, and it is over once the stack
//! is above. Its blocks are noted one after the other, and cut where the definition of paths says that one ends. The
//! definition is given, as a list of such edges; that the pieces are acyclic is checked, not believed.
//!
//! Blocks come from `tomo map`, passages from [`steps`](crate::steps).

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::steps::{Kind, Step};

/// What an edge does to the path that comes along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// It is the path's last edge; the next path begins behind it.
    Edge,
    /// The path ends in front of it.
    Before,
    /// The path that was run is cut; another begins behind it.
    Cut,
}

/// How a path ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Last {
    /// By leaving the function, or in front of an edge.
    Exit,
    /// With the edge to this block.
    Edge(u64),
}

/// A path: the blocks it ran along, and how it ended.
pub type Path = (Vec<u64>, Last);

/// What the activations of a function did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Complete paths, with how often each ran.
    pub paths: BTreeMap<Path, u64>,
    /// Paths that came to no end.
    pub cut: u64,
    /// Paths that visit a block twice, which none may.
    pub cyclic: u64,
}

/// Where the paths of a function end.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// For edges by the starts of their blocks.
    pub edges: HashMap<(u64, u64), End>,
    /// Blocks that are on no path.
    pub unfollowed: HashSet<u64>,
}

#[derive(Deserialize)]
struct Line {
    address: u64,
    blocks: Vec<BlockLine>,
}

#[derive(Deserialize)]
struct BlockLine {
    address: u64,
    size: u64,
    instructions: u64,
    successors: Vec<Successor>,
}

#[derive(Deserialize)]
struct Successor {
    address: u64,
    kind: String,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    function: u64,
    start: u64,
    end: u64,
}

/// An activation under way.
#[derive(Debug)]
struct Activation {
    function: u64,
    /// Where its return address is.
    slot: u64,
    /// The blocks of the path so far; empty once it has ended.
    blocks: Vec<u64>,
}

/// Something on the stack of what is under way.
#[derive(Debug)]
enum Frame {
    Activation(Activation),
    /// A signal's handler was entered here.
    Signal,
}

/// Follows all activations of some functions.
#[derive(Debug)]
pub struct Follower {
    blocks: BTreeMap<u64, Block>,
    /// Between blocks of one function, by their starts.
    edges: HashSet<(u64, u64)>,
    ends: HashMap<u64, Ends>,
    frames: Vec<Frame>,
    ran: HashMap<u64, Ran>,
    /// Whether a step was taken yet: to the first instruction none led.
    has_begun: bool,
}

impl Follower {
    /// Follows the functions of which `ends` are given, in the program whose `tomo map` lines these are.
    ///
    /// # Errors
    /// If the lines are not of that form.
    pub fn new(lines: &[u8], ends: HashMap<u64, Ends>) -> Result<Self> {
        let (mut blocks, mut edges) = (BTreeMap::new(), HashSet::new());
        let lines = lines.split(|&byte| byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            let line: Line = serde_json::from_slice(line)?;
            for block in line.blocks {
                ensure!(block.instructions > 0, "an empty block");
                let (start, end) = (block.address, block.address + block.size);
                let function = line.address;
                let own = block.successors.iter().filter(|to| to.kind != "tail-call");
                edges.extend(own.map(|to| (start, to.address)));
                blocks.insert(
                    start,
                    Block {
                        function,
                        start,
                        end,
                    },
                );
            }
        }
        Ok(Self {
            blocks,
            edges,
            ends,
            frames: Vec::new(),
            ran: HashMap::new(),
            has_begun: false,
        })
    }

    fn block(&self, address: u64) -> Option<Block> {
        let (_, block) = self.blocks.range(..=address).next_back()?;
        (address < block.end).then_some(*block)
    }

    fn follows(&self, function: u64) -> bool {
        self.ends.contains_key(&function)
    }

    /// Takes a step into account.
    pub fn step(&mut self, step: &Step) {
        let passage = step.passage;
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let first = passage.from.filter(|_| is_first);
        if let Some((first, block)) = first.and_then(|first| Some((first, self.block(first)?))) {
            self.arrive(first, block, None, step.stack);
        }
        match passage.kind {
            Kind::Signal => self.frames.push(Frame::Signal),
            Kind::Resume => {
                self.leave_while(|frame| !matches!(frame, Frame::Signal));
                self.frames.pop();
                return;
            }
            _ => {
                let from = passage.from.and_then(|from| self.block(from));
                let to = passage.to.and_then(|to| self.block(to));
                let flows = passage.kind == Kind::Flow;
                if flows && self.flows_on(from, passage.from, to, passage.to) {
                    return;
                }
                match (from, passage.kind) {
                    (Some(from), Kind::Call { .. }) => self.call(from),
                    // Of a function that is not followed not all bytes need to be known; where it has left, the stack will tell.
                    (Some(from), Kind::Flow) if to.is_none() && !self.follows(from.function) => {}
                    (Some(from), _) => self.leave(from),
                    (None, _) => {}
                }
                self.unwind_to(step.stack);
            }
        }
        if let Some((to, block)) = passage.to.and_then(|to| Some((to, self.block(to)?))) {
            self.arrive(to, block, passage.from, step.stack);
        }
    }

    /// Whether control stays within a function, by no call: then it is noted.
    fn flows_on(
        &mut self,
        from: Option<Block>,
        left: Option<u64>,
        to: Option<Block>,
        reached: Option<u64>,
    ) -> bool {
        let (Some(from), Some(to), Some(left), Some(reached)) = (from, to, left, reached) else {
            return false;
        };
        if from.function != to.function {
            return false;
        }
        // Within a block, or again an instruction that repeats itself; what else goes back to its block's start goes
        // along an edge.
        let is_edge = self.edges.contains(&(from.start, to.start));
        let loops = is_edge && from.start == to.start;
        if from.start == to.start && (reached > left || (reached == left && !loops)) {
            return true;
        }
        let Some(Frame::Activation(top)) = self.frames.last() else {
            return false;
        };
        if top.function != to.function {
            return false;
        }
        // Of a function that is not followed not all blocks and edges need to be known.
        if !self.follows(to.function) && reached != to.function {
            return true;
        }
        // By no edge it is the function itself that is called, in place of its activation.
        if reached != to.start || !is_edge {
            return false;
        }
        self.pass(to.start);
        true
    }

    /// The activation on top makes a call from the block `from`.
    fn call(&mut self, from: Block) {
        let Some(Frame::Activation(top)) = self.frames.last_mut() else {
            return;
        };
        let Some(ends) = self.ends.get(&from.function) else {
            return;
        };
        let before = ends
            .edges
            .iter()
            .any(|((of, _), end)| *of == from.start && *end == End::Before);
        if top.function == from.function && before && !top.blocks.is_empty() {
            let blocks = std::mem::take(&mut top.blocks);
            note(
                self.ran.entry(from.function).or_default(),
                blocks,
                Last::Exit,
            );
        }
    }

    /// The activation on top goes on to the block that starts at `to`.
    fn pass(&mut self, to: u64) {
        let Some(Frame::Activation(top)) = self.frames.last_mut() else {
            return;
        };
        let Some(ends) = self.ends.get(&top.function) else {
            return;
        };
        let ran = self.ran.entry(top.function).or_default();
        let last = top.blocks.last().copied();
        let end = last.and_then(|from| ends.edges.get(&(from, to)));
        let next = match ends.unfollowed.contains(&to) {
            true => Vec::new(),
            false => vec![to],
        };
        match end {
            None if last.is_some() => top.blocks.push(to),
            None => top.blocks = next,
            Some(End::Edge) => note(
                ran,
                std::mem::replace(&mut top.blocks, next),
                Last::Edge(to),
            ),
            Some(End::Before) => note(ran, std::mem::replace(&mut top.blocks, next), Last::Exit),
            Some(End::Cut) => {
                ran.cut += 1;
                top.blocks = next;
            }
        }
    }

    /// The activation on top leaves its function from the block `from`, which is no call.
    fn leave(&mut self, from: Block) {
        let Some(Frame::Activation(top)) = self.frames.last() else {
            return;
        };
        if top.function != from.function {
            return;
        }
        if let Some(Frame::Activation(top)) = self.frames.pop()
            && self.ends.contains_key(&top.function)
            && !top.blocks.is_empty()
        {
            note(
                self.ran.entry(top.function).or_default(),
                top.blocks,
                Last::Exit,
            );
        }
    }

    /// All activations are over whose return address is below `stack`.
    fn unwind_to(&mut self, stack: u64) {
        self.leave_while(|frame| match frame {
            Frame::Activation(one) => one.slot < stack,
            Frame::Signal => false,
        });
    }

    /// Cuts activations.
    fn leave_while(&mut self, gone: impl Fn(&Frame) -> bool) {
        while let Some(frame) = self.frames.pop_if(|frame| gone(frame)) {
            if let Frame::Activation(one) = frame {
                self.cut(&one);
            }
        }
    }

    fn cut(&mut self, activation: &Activation) {
        if self.ends.contains_key(&activation.function) && !activation.blocks.is_empty() {
            self.ran.entry(activation.function).or_default().cut += 1;
        }
    }

    /// Control comes to `to` from elsewhere.
    fn arrive(&mut self, to: u64, block: Block, from: Option<u64>, stack: u64) {
        if to == block.function {
            let ends = self.ends.get(&block.function);
            let unfollowed = ends.is_some_and(|ends| ends.unfollowed.contains(&to));
            self.frames.push(Frame::Activation(Activation {
                function: block.function,
                slot: stack,
                blocks: if unfollowed { Vec::new() } else { vec![to] },
            }));
            return;
        }
        if from.is_some_and(|from| self.block(from).is_none()) && to != block.start {
            return;
        }
        // Behind a call, or in a landing pad: of the innermost activation that has this frame.
        let is_its = |frame: &Frame| matches!(frame, Frame::Activation(one) if one.function == block.function && one.slot >= stack);
        let Some(at) = self.frames.iter().rposition(is_its) else {
            return;
        };
        while self.frames.len() > at + 1 {
            if let Some(Frame::Activation(gone)) = self.frames.pop() {
                self.cut(&gone);
            }
        }
        self.return_to(block);
    }

    /// The activation on top goes on in a block behind a call or in a landing pad.
    fn return_to(&mut self, block: Block) {
        let Some(Frame::Activation(top)) = self.frames.last_mut() else {
            return;
        };
        let last = top.blocks.last().copied();
        let left = last.and_then(|last| self.blocks.get(&last));
        let known =
            |ends: &Ends| last.is_some_and(|last| ends.edges.contains_key(&(last, block.start)));
        let is_known = self.ends.get(&top.function).is_some_and(known);
        // From a call that comes back more than once another path is under way.
        if left.is_some_and(|left| left.end != block.start) && !is_known {
            let function = top.function;
            top.blocks = vec![block.start];
            if self.ends.contains_key(&function) {
                self.ran.entry(function).or_default().cut += 1;
            }
            return;
        }
        self.pass(block.start);
    }

    /// What all functions did: what is still under way is cut.
    #[must_use]
    pub fn finish(mut self) -> HashMap<u64, Ran> {
        self.leave_while(|_| true);
        self.ran
    }
}

/// Notes a complete path.
fn note(ran: &mut Ran, blocks: Vec<u64>, last: Last) {
    let mut sorted = blocks.clone();
    sorted.sort_unstable();
    ran.cyclic += u64::from(sorted.windows(2).any(|two| two[0] == two[1]));
    *ran.paths.entry((blocks, last)).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{Ends, Follower, Last};
    use crate::steps::{Kind, Step, Transition};

    /// A function that is followed, and one of which neither all edges nor all bytes are known, which calls it and is called by it.
    const LINES: &[u8] = br#"
        {"address":256,"blocks":[
            {"address":256,"size":16,"instructions":2,"successors":[{"address":272,"kind":"call-fallthrough"}]},
            {"address":272,"size":16,"instructions":2,"successors":[]}]}
        {"address":512,"blocks":[
            {"address":512,"size":16,"instructions":2,"successors":[]},
            {"address":528,"size":16,"instructions":2,"successors":[]}]}"#;

    #[test]
    fn an_activation_goes_on_behind_what_is_not_known_of_another_function() {
        let lines: Vec<u8> = LINES.to_vec();
        let lines = String::from_utf8(lines)
            .expect("text")
            .replace("\n            ", "");
        let ends = HashMap::from([(256, Ends::default())]);
        let mut follower = Follower::new(lines.as_bytes(), ends).expect("lines");
        let call = |back| Kind::Call { back: Some(back) };
        let back = |call| Kind::Return { call: Some(call) };
        let steps = [
            (64, 512, call(72), 0x1000),
            (520, 256, call(528), 0xf00),
            (264, 512, call(272), 0xe00),
            // By an edge that nobody knows; to bytes that nobody knows, and back.
            (520, 528, Kind::Flow, 0xd00),
            (536, 600, Kind::Flow, 0xd00),
            (608, 516, Kind::Flow, 0xd00),
            (520, 272, back(264), 0xe08),
            (280, 528, back(520), 0xf08),
        ];
        for (from, to, kind, stack) in steps {
            let (from, to) = (Some(from), Some(to));
            let passage = Transition { from, to, kind };
            follower.step(&Step { passage, stack });
        }
        let ran = follower.finish();
        let ran = ran.get(&256).expect("it ran");
        let only = (&(vec![256, 272], Last::Exit), &1);
        assert_eq!(ran.paths.iter().collect::<Vec<_>>(), [only]);
        assert_eq!((ran.cut, ran.cyclic), (0, 0));
    }
}
