//! One reconstruction: the program is run along its partial traces.
//!
//! Invariants. Each profile's cursor is where its whole trace goes on; the cursor of a function in a
//! profile is the first event of that function at or behind it. Steps that were pushed are passed by
//! every execution that agrees with the partial traces and goes on far enough.

use tomo_graph::{EdgeId, NodeId};
use tomo_plan::witnesses::{Ends, FunctionId, Step, WitnessId};

use super::code::{Block, Code, HALT, NONE, RETURN};
use super::decide::Verdict;
use super::error::{Position, TraceError};
use super::{Ending, Trace};

/// Where to go on when a callee returns.
#[derive(Clone, Copy, Debug)]
struct Frame {
    block: u32,
    /// The next call of that block.
    site: u32,
    /// Branches that this activation passed without an event, when `consumed` events had been read.
    quiet: u32,
    consumed: u64,
}

/// What came of an attempt to go on.
enum Next {
    Go,
    /// The record does not reach further.
    Stop,
    /// The run has ended here.
    End(Ending),
}

pub(super) struct Run<'r> {
    code: &'r Code,
    partial: &'r [Vec<WitnessId>],
    ending: Ending,
    /// Whether the end of a partial trace says nothing.
    open: bool,
    /// Per profile: how many events have been read.
    cursors: Vec<u32>,
    /// Per function and profile: the next event of that function.
    heads: Vec<u32>,
    /// Per profile and event: the next event of the same function.
    following: Vec<Vec<u32>>,
    steps: Vec<Step>,
    most: usize,
    /// How many steps are certain even if nothing follows.
    certain: usize,
    stack: Vec<Frame>,
    /// How deep the stack has been at least since the last event.
    floor: usize,
    at: Frame,
}

impl<'r> Run<'r> {
    pub(super) fn new(
        code: &'r Code,
        partial: &'r [Vec<WitnessId>],
        ending: Ending,
        most: usize,
    ) -> Result<Self, TraceError> {
        if partial.len() != code.profiles {
            return Err(TraceError::Profiles {
                given: partial.len(),
                profiles: code.profiles,
            });
        }
        let open = match ending {
            Ending::Returned => false,
            Ending::Halted => code.ends != Some(Ends::All),
            Ending::Cut => true,
        };
        let at = Frame {
            block: code.main,
            site: 0,
            quiet: 0,
            consumed: 0,
        };
        let mut run = Self {
            code,
            partial,
            ending,
            open,
            cursors: vec![0; partial.len()],
            heads: vec![NONE; code.sizes.len() * partial.len()],
            following: Vec::with_capacity(partial.len()),
            steps: Vec::new(),
            most,
            certain: 0,
            stack: Vec::new(),
            floor: 0,
            at,
        };
        for profile in 0..partial.len() {
            run.link(profile)?;
        }
        Ok(run)
    }

    /// Links each event of a partial trace to the next of the same function.
    fn link(&mut self, profile: usize) -> Result<(), TraceError> {
        let events = &self.partial[profile];
        let width = self.partial.len();
        if events.len() >= NONE as usize {
            let event = events.len();
            return Err(TraceError::TooLong {
                at: Position { profile, event },
            });
        }
        let mut following = vec![NONE; events.len()];
        for (event, &witness) in events.iter().enumerate().rev() {
            let known = self.code.function_of.get(witness.index());
            let held = known.filter(|_| self.code.holders(witness.0).contains(&(profile as u32)));
            let Some(&function) = held else {
                let at = Position { profile, event };
                return Err(TraceError::Foreign { at, witness });
            };
            let head = &mut self.heads[function as usize * width + profile];
            following[event] = std::mem::replace(head, event as u32);
        }
        self.following.push(following);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Trace, TraceError> {
        let mut next = self.enter(self.code.main, None, NONE)?;
        while matches!(next, Next::Go) {
            if self.steps.len() >= self.most {
                return Err(TraceError::TooLong {
                    at: self.position(0),
                });
            }
            next = self.advance()?;
        }
        let ended = match next {
            Next::End(how) => Some(how),
            _ => None,
        };
        self.conclude(ended)
    }

    /// Runs the next call of the current block, or leaves it.
    fn advance(&mut self) -> Result<Next, TraceError> {
        let code = self.code;
        let block = code.blocks[self.at.block as usize];
        let site = block.calls.0 + self.at.site;
        if site < block.calls.1 {
            return self.call(&block, site);
        }
        let (from, to) = block.ways;
        let mut way = 0;
        if block.decider != NONE {
            self.at.quiet += 1;
            if self.at.quiet > code.sizes[block.function as usize] {
                return self.endless(&block);
            }
            match self.decide(&block, block.decider)? {
                Some(told) => way = told,
                None => return Ok(Next::Stop),
            }
        }
        if from + way >= to {
            // Behind calls that never come back there is no way on; nothing gets here.
            return Ok(Next::End(Ending::Halted));
        }
        let way = code.ways[(from + way) as usize];
        match way.to {
            RETURN => Ok(self.leave()),
            HALT => Ok(Next::End(Ending::Halted)),
            to => {
                self.at.site = 0;
                self.at.block = to;
                self.enter(to, Some(EdgeId(way.edge)), way.witness)
            }
        }
    }

    fn call(&mut self, block: &Block, site: u32) -> Result<Next, TraceError> {
        let called = self.code.sites[site as usize];
        let mut target = 0;
        if called.decider != NONE {
            match self.decide(block, called.decider)? {
                Some(told) => target = told,
                None => return Ok(Next::Stop),
            }
        }
        let entry = self.code.targets[(called.targets.0 + target) as usize];
        self.at.site += 1;
        self.stack.push(self.at);
        if self.stack.len() - self.floor > self.code.sites.len() {
            return self.endless(block);
        }
        self.at = Frame {
            block: entry,
            site: 0,
            quiet: 0,
            consumed: self.at.consumed,
        };
        self.enter(entry, None, NONE)
    }

    fn leave(&mut self) -> Next {
        let Some(caller) = self.stack.pop() else {
            return Next::End(Ending::Returned);
        };
        self.floor = self.floor.min(self.stack.len());
        let consumed = self.at.consumed;
        self.at = caller;
        if caller.consumed != consumed {
            self.at.quiet = 0;
            self.at.consumed = consumed;
        }
        Next::Go
    }

    /// Reads the witnesses on the way into a block, and pushes it.
    fn enter(&mut self, block: u32, by: Option<EdgeId>, edge: u32) -> Result<Next, TraceError> {
        let code = self.code;
        let Block {
            function,
            node,
            witness,
            ..
        } = code.blocks[block as usize];
        let mut read = false;
        for witness in [edge, witness] {
            if witness != NONE {
                if !self.read(function, witness)? {
                    return Ok(Next::Stop);
                }
                read = true;
            }
        }
        self.steps.push(Step {
            function: FunctionId(function),
            node: NodeId(node),
            by,
        });
        if read {
            self.certain = self.steps.len();
        }
        Ok(Next::Go)
    }

    /// Reads a witness from every profile that holds it. False if the record has ended before.
    fn read(&mut self, function: u32, witness: u32) -> Result<bool, TraceError> {
        let code = self.code;
        let width = self.partial.len();
        for &profile in code.holders(witness) {
            let profile = profile as usize;
            let expected = WitnessId(witness);
            match self.partial[profile].get(self.cursors[profile] as usize) {
                Some(&found) if found == expected => {}
                Some(&found) => {
                    let at = self.position(profile);
                    return Err(TraceError::Mismatch {
                        at,
                        expected,
                        found,
                    });
                }
                None if self.open => return Ok(false),
                None => {
                    let at = self.position(profile);
                    return Err(TraceError::Truncated { at, expected });
                }
            }
        }
        for &profile in code.holders(witness) {
            let profile = profile as usize;
            let event = self.cursors[profile];
            self.cursors[profile] = event + 1;
            self.heads[function as usize * width + profile] =
                self.following[profile][event as usize];
        }
        self.at.consumed += 1;
        self.at.quiet = 0;
        self.floor = self.stack.len();
        Ok(true)
    }

    /// The way that the decider tells, or `None` if the record ends before it can.
    fn decide(&self, block: &Block, decider: u32) -> Result<Option<u32>, TraceError> {
        let decider = &self.code.deciders[decider as usize];
        let head = |profile: u32| self.head(block.function, profile, decider.is_whole);
        match decider.decide(head, self.open) {
            Verdict::Way(way) => Ok(Some(way)),
            Verdict::Unknown => Ok(None),
            Verdict::Contradiction(profile) => Err(TraceError::NoWay {
                at: self.position(profile as usize),
                function: FunctionId(block.function),
                node: NodeId(block.node),
            }),
        }
    }

    /// What comes next in a profile, of the function or at all.
    fn head(&self, function: u32, profile: u32, is_whole: bool) -> u32 {
        let profile = profile as usize;
        let event = match is_whole {
            true => self.cursors[profile],
            false => self.heads[function as usize * self.partial.len() + profile],
        };
        let witness = self.partial[profile].get(event as usize);
        witness.map_or(NONE, |witness| witness.0)
    }

    /// The run would go round for ever. If it was cut short it may have, behind the last event.
    fn endless(&self, block: &Block) -> Result<Next, TraceError> {
        if self.open && self.leftover().is_none() {
            return Ok(Next::Stop);
        }
        Err(TraceError::Endless {
            at: self.leftover().unwrap_or(self.position(0)),
            function: FunctionId(block.function),
            node: NodeId(block.node),
        })
    }

    fn position(&self, profile: usize) -> Position {
        let event = self.cursors.get(profile).map_or(0, |&event| event as usize);
        Position { profile, event }
    }

    /// The first event that has not been read.
    fn leftover(&self) -> Option<Position> {
        let mut profiles = 0..self.partial.len();
        profiles
            .find(|&profile| (self.cursors[profile] as usize) < self.partial[profile].len())
            .map(|profile| self.position(profile))
    }

    /// The trace, given how the run ended; `None` if the record ended before.
    fn conclude(mut self, ended: Option<Ending>) -> Result<Trace, TraceError> {
        let leftover = self.leftover();
        let Some(ended) = ended else {
            if leftover.is_none() {
                self.steps.truncate(self.certain);
            }
            return Ok(self.trace(false));
        };
        if let Some(at) = leftover {
            return Err(TraceError::Leftover { at });
        }
        if self.ending == Ending::Cut {
            self.steps.truncate(self.certain);
            return Ok(self.trace(false));
        }
        if self.ending != ended {
            let block = self.code.blocks[self.at.block as usize];
            return Err(TraceError::WrongEnd {
                at: self.position(0),
                function: FunctionId(block.function),
                node: NodeId(block.node),
            });
        }
        Ok(self.trace(true))
    }

    fn trace(self, is_complete: bool) -> Trace {
        Trace {
            steps: self.steps,
            is_complete,
        }
    }
}
