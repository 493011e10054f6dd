//! One thread run along its events.
//!
//! A thread that is the copy of another one, which forked, has its callers from that one. So it is run along from the beginning of
//! that one, and what comes of it is handed over from where it is a thread of its own.
//!
//! Invariant: what was handed to the sink is passed by every execution that agrees with the events. Blocks that follow
//! from others without an event in between are handed over with those. Behind the last event a run may have ended anywhere, by a
//! signal or a system call: what follows there is [held back](super::held), until control is known to have left the program for good.

use std::collections::HashMap;

use tomo_wire::tracing::{NONE as NOTHING, block, way};

use super::Atlas;
use super::ended::{Divergence, Ended};
use super::held::Held;
use super::lane::{Event, Lane, NONE};
use super::waiting::{Frame, Resume};
use crate::reconstruction::Verdict;

/// Takes what happened.
pub trait Sink {
    /// A function is entered at this block, `depth` calls deep.
    fn enter(&mut self, _block: u32, _depth: u32) {}
    /// A block begins, `depth` calls deep.
    fn block(&mut self, block: u32, depth: u32);
}

impl<F: FnMut(u32, u32)> Sink for F {
    fn block(&mut self, block: u32, depth: u32) {
        self(block, depth);
    }
}

/// Where records may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Where the program has exited.
    Nowhere,
    /// There, or where the thread has come to its end before.
    AtExit,
    /// Anywhere.
    Anywhere,
}

/// Blocks in a row without an event, at most.
const QUIET: u64 = 1 << 28;
/// Rounds of a loop, at most: more take hours.
const MOST_ROUNDS: u64 = 1 << 40;

struct Walk<'w, 'c, S> {
    atlas: &'w Atlas<'c>,
    lanes: &'w mut [Lane],
    /// Where signal handlers are.
    handlers: &'w [u64],
    sink: Held<'w, S>,
    cut: Cut,
    /// Whether it is another thread still, of which this one will be the copy.
    is_another: bool,
    stack: Vec<Frame>,
    /// Who called at a given place of the stack what comes back twice: depth and block of the activation, by where
    /// it came back to and the stack pointer there.
    marks: HashMap<(u32, u32), (usize, u64)>,
    /// How often activations still go round loops that registers count: of each its depth, and how many rounds, if that is known.
    rounds: Vec<(usize, Option<u64>)>,
    ended: Ended,
    /// Whether the next block that begins is certain, too.
    is_next_certain: bool,
    quiet: u64,
    last: u32,
    entered: u64,
    serials: Vec<u64>,
    serial: u64,
}

/// What is next.
enum Next {
    /// This block begins.
    Block(u32),
    /// Code that is not traced.
    Outside,
    /// What a signal handler has interrupted.
    Resume(Resume),
    Stop,
}

/// Runs a thread along its events in all runs, in the order of profiles.
/// `handlers` are the addresses of functions that may be signal handlers, ascending. `None`, with nothing handed over, where what the
/// thread has from others does not lead to where it is its own.
pub fn walk<S: Sink>(
    atlas: &Atlas<'_>,
    lanes: &mut [Lane],
    handlers: &[u64],
    cut: Cut,
    sink: &mut S,
) -> Option<Ended> {
    let lanes_inherit = lanes.iter().any(|lane| lane.inherited > 0);
    let holds = lanes.iter().all(|lane| lane.peek().is_none());
    let mut walk = Walk {
        atlas,
        lanes,
        handlers,
        sink: Held::of(sink, holds),
        cut,
        is_another: lanes_inherit,
        stack: vec![Frame::Outside],
        marks: HashMap::new(),
        rounds: Vec::new(),
        ended: Ended::default(),
        is_next_certain: false,
        quiet: 0,
        last: NONE,
        entered: 0,
        serials: vec![0],
        serial: 0,
    };
    let mut next = Next::Outside;
    loop {
        next = match next {
            Next::Block(block) => walk.run(block),
            Next::Outside => walk.outside(),
            Next::Resume(Resume::Run(block)) => walk.run(block),
            Next::Resume(Resume::End(block)) => walk.end(block),
            Next::Resume(Resume::Choose(block)) => walk.choose(block),
            Next::Resume(Resume::Arrive(block)) => walk.arrive(block),
            Next::Resume(Resume::Enter(block)) => walk.enter_seen(block),
            Next::Resume(Resume::Go(block, way)) => {
                walk.go_on((block, way), Resume::Go(block, way))
            }
            Next::Stop => break,
        };
    }
    let Walk {
        mut ended, sink, ..
    } = walk;
    let told = ended.steps;
    ended.steps -= sink.finish(ended.divergence.is_none());
    ended.is_open = cut == Cut::AtExit && ended.certain < told && ended.divergence.is_none();
    (!walk.is_another).then_some(ended)
}

impl<S: Sink> Walk<'_, '_, S> {
    fn push(&mut self, frame: Frame) {
        self.stack.push(frame);
        self.serials.push(self.serial);
        self.entered += 1;
        self.serial = self.entered;
    }

    fn pop(&mut self) -> Option<Frame> {
        let frame = self.stack.pop()?;
        self.serial = self.serials.pop().unwrap_or(0);
        Some(frame)
    }

    fn stop(&mut self, why: Divergence) -> Next {
        self.ended.divergence = Some(why);
        Next::Stop
    }

    fn differs(&mut self, run: usize) -> Next {
        let lane = &self.lanes[run];
        let position = lane.position.saturating_sub(lane.inherited);
        match self.lanes[run].peek() {
            // A system call may have ended it, if no run goes on.
            None if self.is_cut() || self.lanes.iter().all(|lane| lane.peek().is_none()) => {
                self.stop(Divergence::Ends { run })
            }
            _ => self.stop(Divergence::Differs {
                run,
                position,
                block: self.last,
            }),
        }
    }

    /// An event was passed: all blocks that have begun are certain, and the one that begins next.
    fn passed(&mut self) {
        self.quiet = 0;
        self.ended.certain = self.ended.steps;
        self.is_next_certain = true;
        self.sink.holds = self.lanes.iter().all(|lane| lane.peek().is_none());
    }

    /// Whether the ends of records say nothing.
    fn is_cut(&self) -> bool {
        self.cut != Cut::Nowhere
    }

    /// A block begins; what follows it.
    fn run(&mut self, block: u32) -> Next {
        let row = self.atlas.block(block);
        if let Some(next) = self.interruption_at(block, false) {
            return next;
        }
        if let Err(next) = self.pass(row.witness.get(), Resume::Run(block)) {
            return next;
        }
        self.ended.steps += 1;
        self.last = block;
        let is_certain = std::mem::take(&mut self.is_next_certain);
        if is_certain {
            self.ended.certain = self.ended.steps;
        }
        if !self.is_another {
            self.sink.block(block, self.depth(), is_certain);
        }
        self.quiet += 1;
        if self.sink.is_full() {
            return self.stop(Divergence::Ends { run: 0 });
        }
        if self.quiet > QUIET {
            return self.stop(Divergence::Endless { block });
        }
        if let Some(next) = self.interruption_at(block, true) {
            return next;
        }
        self.end(block)
    }

    /// What follows a block that has begun.
    fn end(&mut self, block: u32) -> Next {
        let row = self.atlas.block(block);
        let flags = row.flags.get();
        if flags & (block::CALLS | block::CALLS_ON) != 0 {
            self.push(Frame::Caller(block));
            let callee = row.callee.get();
            return match flags & block::CALLS_SEEN {
                0 => self.enter(callee),
                _ => self.enter_seen(callee),
            };
        }
        if flags & block::CALLS_AWAY != 0 {
            self.push(Frame::Caller(block));
            self.push(Frame::Outside);
            return Next::Outside;
        }
        self.choose(block)
    }

    /// The way out of a block that calls nothing.
    fn choose(&mut self, block: u32) -> Next {
        let atlas = self.atlas;
        if let Some(next) = self.round(block) {
            return next;
        }
        let flags = atlas.block(block).flags.get();
        let number = match &atlas.deciders[block as usize] {
            None => 0,
            Some(decider) => {
                let function = atlas.function_of(block);
                let is_open = self.is_cut() && !self.went_on();
                let lanes = &*self.lanes;
                let head = |profile: u32| lanes[profile as usize].head(function);
                match decider.decide(head, is_open) {
                    Verdict::Way(way) => way as usize,
                    Verdict::Unknown => {
                        let run = lanes.iter().position(|lane| lane.peek().is_none());
                        return self.stop(Divergence::Ends {
                            run: run.unwrap_or(0),
                        });
                    }
                    Verdict::Contradiction(run) => match self.interruption(Resume::Choose(block)) {
                        Some(next) => return next,
                        None => return self.differs(run as usize),
                    },
                }
            }
        };
        if let Some((way, _)) = atlas.inner(block).nth(number) {
            return self.go(block, way);
        }
        let mut ways = atlas.chart.ways_of(block).iter();
        match ways.position(|way| way.flags.get() & way::TAIL != 0) {
            Some(way) => {
                self.tell_entered(atlas.chart.ways_of(block)[way].to.get());
                self.go(block, way)
            }
            None if flags & block::RETURNS != 0 => self.leave(),
            None if flags & block::LEAVES != 0 => self.leave_away(),
            // Nothing follows an instruction that ends the program, but what a handler does.
            None => match self.lanes.iter().position(|lane| lane.peek().is_some()) {
                Some(run) => {
                    let handler = self.interruption(Resume::Choose(block));
                    handler.unwrap_or_else(|| self.differs(run))
                }
                None => self.come_to_end(),
            },
        }
    }

    /// No event tells more, and control is where none need: unless it ended before it came here.
    fn come_to_end(&mut self) -> Next {
        match self.cut {
            Cut::Anywhere if self.ended.certain < self.ended.steps => {
                self.stop(Divergence::Ends { run: 0 })
            }
            _ => Next::Stop,
        }
    }

    /// Whether the thread is known to have left the function, or called, after this: in each run something else than a
    /// witness of the function follows, and it is not what a signal handler may begin with. Who was to pass one
    /// first has passed it then.
    fn went_on(&self) -> bool {
        self.lanes.iter().all(|lane| match lane.peek() {
            Some(Event::Arrival { block, .. }) => !self.is_handler(block),
            Some(Event::Own(_) | Event::Value { .. }) => true,
            Some(Event::Signal { .. }) | None => false,
        })
    }

    /// Whether a signal handler begins with this block.
    fn is_handler(&self, block: u32) -> bool {
        let address = self.atlas.block(block).address.get();
        self.handlers.binary_search(&address).is_ok()
    }

    /// The way round, of an activation that still goes round a loop.
    fn round(&mut self, block: u32) -> Option<Next> {
        let (atlas, depth) = (self.atlas, self.stack.len());
        while self.rounds.last().is_some_and(|(at, _)| *at > depth) {
            self.rounds.pop();
        }
        let (_, left) = self.rounds.last_mut().filter(|(at, _)| *at == depth)?;
        let mut ways = atlas.chart.ways_of(block).iter();
        let to = ways.find(|way| way.flags.get() & way::ROUND != 0)?.to.get();
        let Some(left) = left else {
            return Some(self.unfinished(block));
        };
        if *left == 0 {
            return None;
        }
        if atlas.block(to).flags.get() & block::HEAD != 0 {
            *left -= 1;
            self.quiet = 0;
        }
        Some(Next::Block(to))
    }

    /// In a loop that was left unseen.
    fn unfinished(&mut self, block: u32) -> Next {
        match self.interruption(Resume::Choose(block)) {
            Some(next) => {
                self.ended.unfinished += 1;
                next
            }
            None => self.differs(0),
        }
    }

    /// Along this of a block's ways.
    fn go(&mut self, from: u32, way: usize) -> Next {
        let value = self.atlas.chart.ways_of(from)[way].value.get();
        let resume = match value {
            NOTHING => Resume::Choose(from),
            _ => Resume::Go(from, way),
        };
        if let Err(next) = self.pass_value(value, Resume::Choose(from)) {
            return next;
        }
        self.go_on((from, way), resume)
    }

    /// The same, when the value on it was passed.
    fn go_on(&mut self, (from, way): (u32, usize), resume: Resume) -> Next {
        let way = &self.atlas.chart.ways_of(from)[way];
        if let Err(next) = self.pass(way.witness.get(), resume) {
            return next;
        }
        let to = way.to.get();
        match way.flags.get() & way::BY_ADDRESS {
            0 => Next::Block(to),
            _ => self.arrive(to),
        }
    }

    /// Passes a witness with a value in the run that holds it. Coming into a loop, the next one of the function is that of leaving it,
    /// and how often it goes round is known; else it is left unseen.
    fn pass_value(&mut self, witness: u32, resume: Resume) -> Result<(), Next> {
        if witness == NOTHING {
            return Ok(());
        }
        let atlas = self.atlas;
        let held = atlas.chart.witnesses[witness as usize].get();
        let mut runs = 0..self.lanes.len();
        let run = runs.find(|run| held >> run & 1 != 0);
        let known = atlas.chart.value(witness);
        let super::Witness::Value { function } = atlas.witnesses[witness as usize] else {
            return Err(self.differs(0));
        };
        let (Some(run), Some(known)) = (run, known) else {
            return Err(self.differs(0));
        };
        let value = match self.lanes[run].peek() {
            Some(Event::Value { witness: at, value }) if at == witness => value,
            _ => {
                return Err(match self.interruption(resume) {
                    Some(next) => next,
                    None => self.differs(run),
                });
            }
        };
        let next = self.lanes[run].pass_value(function);
        self.passed();
        let depth = self.stack.len();
        if known.leaves() {
            self.rounds.pop_if(|(at, _)| *at == depth);
            return Ok(());
        }
        let next = next.and_then(|(behind, left)| Some((atlas.chart.value(behind)?, left)));
        let left = next.filter(|(behind, _)| behind.leaves() && behind.head == known.head);
        let rounds = left.map(|(behind, left)| behind.rounds((known, value), left));
        if rounds.is_some_and(|rounds| rounds.is_none_or(|rounds| rounds > MOST_ROUNDS)) {
            return Err(self.differs(run));
        }
        while self.rounds.pop_if(|(at, _)| *at >= depth).is_some() {}
        self.rounds.push((depth, rounds.flatten()));
        Ok(())
    }

    /// At a block by its address.
    fn arrive(&mut self, block: u32) -> Next {
        let row = self.atlas.block(block);
        if row.arrival.get() == NOTHING {
            return Next::Block(block);
        }
        match self.lanes[0].peek() {
            Some(Event::Arrival { block: at, stack }) if at == block => {
                self.take(block, stack);
                Next::Block(block)
            }
            _ => match self.interruption(Resume::Arrive(block)) {
                Some(next) => next,
                None => self.differs(0),
            },
        }
    }

    /// Passes an arrival.
    fn take(&mut self, block: u32, stack: u32) {
        self.lanes[0].pass_other();
        self.passed();
        if self.atlas.block(block).flags.get() & block::WITH_STACK != 0 {
            let place = (self.stack.len(), self.serial);
            self.marks.insert((block, stack), place);
        }
    }

    /// Passes a witness in all runs that hold it. What comes instead, where it is not next.
    fn pass(&mut self, witness: u32, resume: Resume) -> Result<(), Next> {
        if witness == NOTHING {
            return Ok(());
        }
        let function = match self.atlas.witnesses[witness as usize] {
            super::Witness::Own { function } => function,
            _ => return Err(self.differs(0)),
        };
        let held = self.atlas.chart.witnesses[witness as usize].get();
        for run in 0..self.lanes.len() {
            if held >> run & 1 != 0 && self.lanes[run].peek() != Some(Event::Own(witness)) {
                return Err(match self.interruption(resume) {
                    Some(next) => next,
                    None => self.differs(run),
                });
            }
        }
        for run in 0..self.lanes.len() {
            if held >> run & 1 != 0 {
                self.lanes[run].pass_own(function);
            }
        }
        self.passed();
        Ok(())
    }

    /// A signal handler, if it is one that comes next and is known to come in this block, before its first instruction
    /// or behind that. Nothing says the how manieth time, so it is counted with the others.
    fn interruption_at(&mut self, block: u32, is_behind: bool) -> Option<Next> {
        let came = Some((block, is_behind));
        let resume = match is_behind {
            false => Resume::Run(block),
            true => Resume::End(block),
        };
        match self.lanes[0].peek() {
            Some(Event::Signal { came: at }) if at == came => self.interruption(resume),
            _ => None,
        }
    }

    /// A signal handler, if it is one that comes next.
    fn interruption(&mut self, resume: Resume) -> Option<Next> {
        if let Some(Event::Signal { .. }) = self.lanes[0].peek() {
            self.lanes[0].pass_other();
        }
        let Some(Event::Arrival { block, stack }) = self.lanes[0].peek() else {
            return None;
        };
        if !self.is_handler(block) {
            return None;
        }
        self.ended.interruptions += 1;
        self.push(Frame::Interrupted(resume));
        self.take(block, stack);
        Some(self.enter(block))
    }

    /// Control returns to who waits.
    fn leave(&mut self) -> Next {
        match self.pop() {
            Some(Frame::Caller(caller)) => self.back(caller),
            Some(Frame::Outside) => {
                self.push(Frame::Outside);
                Next::Outside
            }
            Some(Frame::Interrupted(resume)) => Next::Resume(resume),
            None => Next::Stop,
        }
    }

    /// Control leaves for code that is not traced, which returns in place of the function.
    fn leave_away(&mut self) -> Next {
        if self.stack.last() != Some(&Frame::Outside) {
            self.push(Frame::Outside);
        }
        Next::Outside
    }

    /// Behind the call in which this block ends.
    fn back(&mut self, caller: u32) -> Next {
        match self.behind(caller) {
            Some(behind) => self.arrive(behind),
            // It was not to come back.
            None => self.differs(0),
        }
    }

    fn behind(&self, caller: u32) -> Option<u32> {
        let mut ways = self.atlas.chart.ways_of(caller).iter();
        let way = ways.find(|way| way.flags.get() & way::BEHIND != 0)?;
        Some(way.to.get())
    }

    /// The thread is its own from here on, with those who wait on the stack that it has a copy of.
    fn becomes_own(&mut self) {
        self.is_another = false;
        self.quiet = 0;
        self.ended = Ended {
            inferred: self.ended.inferred,
            ..Ended::default()
        };
        for (depth, frame) in (0..).zip(self.stack.iter().skip(1)) {
            match frame {
                Frame::Caller(block) => self.sink.enter(*block, depth, true),
                Frame::Interrupted(resume) => self.sink.enter(resume.block(), depth, true),
                Frame::Outside => {}
            }
        }
    }

    /// In code that is not traced: an arrival tells what comes of it.
    fn outside(&mut self) -> Next {
        if self.is_another && self.lanes[0].is_at_own() {
            // It has forked, which is all that was left to do in all runs.
            if !self.lanes.iter().all(Lane::is_at_own) {
                return self.differs(0);
            }
            self.becomes_own();
        }
        let mut is_placed = false;
        if let Some(Event::Signal { came }) = self.lanes[0].peek() {
            self.lanes[0].pass_other();
            is_placed = came.is_none();
        }
        let Some(event) = self.lanes[0].peek() else {
            self.ended.is_outside = true;
            return match self.lanes.iter().position(|lane| lane.peek().is_some()) {
                Some(_) if self.is_cut() => self.stop(Divergence::Ends { run: 0 }),
                Some(run) => self.differs(run),
                None => self.come_to_end(),
            };
        };
        let Event::Arrival { block, stack } = event else {
            return self.back_from_handler();
        };
        let flags = self.atlas.block(block).flags.get();
        if let Some(depth) = self.returns_to(block) {
            self.unwind(depth);
        } else if let Some(depth) = self.lands_in(block) {
            self.unwind(depth);
        } else if let Some(depth) = self.marked(block, stack) {
            while self.stack.len() > depth {
                self.pop();
            }
        } else if flags & block::ENTRY == 0
            && let Some(depth) = self.waits_for(block)
        {
            self.ended.inferred += 1;
            self.unwind(depth);
        } else {
            // It may have come before control left for where it is now.
            if self.is_handler(block) && !is_placed {
                self.ended.interruptions += 1;
            }
            self.take(block, stack);
            return self.enter(block);
        }
        self.take(block, stack);
        Next::Block(block)
    }

    /// What is witnessed next is not come to by its address: a handler has returned, by way of code that is not traced.
    fn back_from_handler(&mut self) -> Next {
        let [.., Frame::Interrupted(resume), Frame::Outside] = self.stack[..] else {
            return self.differs(0);
        };
        self.unwind(self.stack.len() - 2);
        Next::Resume(resume)
    }

    fn depth(&self) -> u32 {
        self.stack.len() as u32 - 1
    }

    /// A new activation begins at this block.
    fn enter(&mut self, block: u32) -> Next {
        self.tell_entered(block);
        Next::Block(block)
    }

    fn tell_entered(&mut self, block: u32) {
        if !self.is_another {
            let depth = self.depth();
            self.sink.enter(block, depth, self.is_next_certain);
        }
    }

    /// The same, where that is witnessed.
    fn enter_seen(&mut self, block: u32) -> Next {
        match self.lanes[0].peek() {
            Some(Event::Arrival { block: at, stack }) if at == block => {
                self.take(block, stack);
                self.enter(block)
            }
            _ => match self.interruption(Resume::Enter(block)) {
                Some(next) => next,
                None => self.differs(0),
            },
        }
    }

    /// Down to the activation that waits at this depth, which goes on.
    fn unwind(&mut self, depth: usize) {
        while self.stack.len() > depth {
            self.pop();
        }
    }

    /// Whether who waits first waits for this: the call returns.
    fn returns_to(&self, block: u32) -> Option<usize> {
        let depth = self.stack.len().checked_sub(2)?;
        match self.stack.get(depth) {
            Some(Frame::Caller(caller)) if self.behind(*caller) == Some(block) => Some(depth),
            _ => None,
        }
    }

    /// The innermost activation that lands here. An unwinder goes from the inside out, and stops at the first call
    /// for which its function has a landing pad; who waits at the same call lands at the same pad.
    fn lands_in(&self, block: u32) -> Option<usize> {
        let lands = |frame: &Frame| match frame {
            Frame::Caller(caller) => {
                let mut ways = self.atlas.chart.ways_of(*caller).iter();
                ways.any(|way| way.flags.get() & way::PAD != 0 && way.to.get() == block)
            }
            _ => false,
        };
        self.stack.iter().rposition(lands)
    }

    /// The activation that has come by here with this stack before.
    fn marked(&self, block: u32, stack: u32) -> Option<usize> {
        let (depth, serial) = *self.marks.get(&(block, stack))?;
        (self.serials.get(depth).or(Some(&self.serial)) == Some(&serial)).then_some(depth)
    }

    /// The innermost activation that waits for this.
    fn waits_for(&self, block: u32) -> Option<usize> {
        let waits = |frame: &Frame| match frame {
            Frame::Caller(caller) => self.behind(*caller) == Some(block),
            _ => false,
        };
        self.stack.iter().rposition(waits)
    }
}
