//! The oracle: what a program did, instruction by instruction.
//!
//! The program runs under `PTRACE_SINGLESTEP`, and after each step its instruction and stack
//! pointers are read. That is slow (some microseconds a step) and sure: no instruction is decoded,
//! so nothing here can share an error with what it judges. What a step was follows from the two
//! pointers alone: a call lowers the stack by one word that points just behind where it came from,
//! a return goes to such a word. See [`stack`] for the rules.
//!
//! Observed is the executable itself, from its entry point on, on its first thread. What runs
//! before (the loader, and functions it calls to choose implementations) is not; neither are
//! children and further threads, which run freely. What happens in libraries is recorded only as
//! "outside", and [`Outside`] says how it is got through. A program that raises SIGTRAP itself is
//! not for this oracle.

pub mod chains;
pub mod single;
pub mod stack;
mod tracee;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use rustc_hash::FxHashMap;

use crate::corpus::{Turn, Workload};
use chains::Follower;
use stack::{Pointers, Shadow};
use tracee::{Event, Tracee};

/// Why control passed from one instruction to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// On to the next instruction, or by a jump.
    Flow,
    /// By a call that is to return to this address (of the executable; none where it is outside).
    Call {
        /// The address behind the call.
        back: Option<u64>,
    },
    /// To the address behind a call.
    Return {
        /// Where that call instruction is; none where it is outside.
        call: Option<u64>,
    },
    /// From outside, by neither a call nor a return: an unwinder, `longjmp`, a jump.
    Landing {
        /// The call of the entered function that was unwound last; none where it is outside.
        call: Option<u64>,
    },
    /// Into a signal handler. The instruction it comes from was not executed.
    Signal,
    /// Back from a signal handler to the very instruction that was interrupted.
    Resume,
}

/// A passage of control, in addresses as the file states them; `None` is outside the executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transition {
    /// From which instruction.
    pub from: Option<u64>,
    /// To which instruction.
    pub to: Option<u64>,
    /// Why.
    pub kind: Kind,
}

/// How an observed run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// It was killed after as many steps as were allowed.
    Limit,
    /// It became another program.
    Replaced,
}

/// What one run did.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Every transition that begins or ends in the executable, with how often it happened.
    pub transitions: FxHashMap<Transition, u64>,
    /// What arrived behind calls, by where.
    pub results: FxHashMap<u64, Results>,
    /// Steps in all, outside ones too.
    pub steps: u64,
    /// How it ended.
    pub end: End,
    /// The instructions of the executable in the order in which they were executed, where that was asked for.
    pub order: Vec<u64>,
}

/// How often each sign was found in `rax` behind a call: negative, zero, positive; by how many of its bits
/// were looked at: 8, 16, 32, 64.
pub type Results = [[u64; 3]; 4];

/// Adds one result.
fn add_result(results: &mut Results, value: u64) {
    let parts = [
        i64::from(value as i8),
        i64::from(value as i16),
        i64::from(value as i32),
        value as i64,
    ];
    for (counts, part) in results.iter_mut().zip(parts) {
        counts[(part.signum() + 1) as usize] += 1;
    }
}

impl Trace {
    /// The addresses of all instructions of the executable that were executed.
    #[must_use]
    pub fn executed(&self) -> BTreeSet<u64> {
        let left = self.transitions.keys().filter(|t| t.kind != Kind::Signal);
        left.filter_map(|t| t.from).collect()
    }

    /// How many steps began at an instruction of the executable.
    #[must_use]
    pub fn steps_inside(&self) -> u64 {
        let left = self
            .transitions
            .iter()
            .filter(|(t, _)| t.kind != Kind::Signal);
        left.filter(|(t, _)| t.from.is_some())
            .map(|(_, count)| count)
            .sum()
    }

    /// Adds what another run of the same program did.
    pub fn merge(&mut self, other: &Self) {
        for (&transition, count) in &other.transitions {
            *self.transitions.entry(transition).or_default() += count;
        }
        for (&place, results) in &other.results {
            let sums = self.results.entry(place).or_default().as_flattened_mut();
            for (sum, count) in sums.iter_mut().zip(results.as_flattened()) {
                *sum += count;
            }
        }
        self.steps += other.steps;
    }
}

/// How to get through the code of libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// Step by step.
    Step,
    /// At full speed, while the executable's own code is not executable, so that whatever leads
    /// back into it faults at its first instruction. As exact, but that a landing just behind the
    /// call that was unwound looks like a return; and many times faster. Only for programs that
    /// neither fork nor have threads, and the stepped share alone is limited.
    Leap,
}

/// A passage of control as it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it was.
    pub passage: Transition,
    /// Where the newest word of the stack is afterwards.
    pub stack: u64,
}

/// Observes one run of `program` for at most `limit` steps (a leap counts as one).
///
/// # Errors
/// Where the program cannot be started, or the system does not let it be traced.
pub fn observe(program: &Path, workload: &Workload, way: Outside, limit: u64) -> Result<Trace> {
    observe_each(program, workload, way, limit, &mut |_| {})
}

/// The same, telling `each` step that begins or ends in the executable, in order.
///
/// # Errors
/// As for [`observe`].
pub fn observe_each(
    program: &Path,
    workload: &Workload,
    way: Outside,
    limit: u64,
    each: &mut dyn FnMut(&Step),
) -> Result<Trace> {
    let turn = Turn::wait()?;
    let tracee = Tracee::start(program, workload, turn.index())
        .with_context(|| format!("cannot trace {}", program.display()))?;
    Ok(Run::new(tracee, way, each).complete(limit)?.0)
}

/// The same, and in which order instructions were executed.
///
/// # Errors
/// As for [`observe`].
pub fn observe_in_order(
    program: &Path,
    workload: &Workload,
    way: Outside,
    limit: u64,
) -> Result<Trace> {
    let turn = Turn::wait()?;
    let tracee = Tracee::start(program, workload, turn.index())
        .with_context(|| format!("cannot trace {}", program.display()))?;
    let mut each = |_: &Step| {};
    let mut run = Run::new(tracee, way, &mut each);
    run.order = Some(Vec::new());
    Ok(run.complete(limit)?.0)
}

/// The same, followed by `follower`, which tells the chains of calls.
///
/// # Errors
/// As for [`observe`].
pub fn follow(
    program: &Path,
    workload: &Workload,
    way: Outside,
    limit: u64,
    follower: Follower,
) -> Result<(Trace, Follower)> {
    let turn = Turn::wait()?;
    let tracee = Tracee::start(program, workload, turn.index())
        .with_context(|| format!("cannot trace {}", program.display()))?;
    let mut each = |_: &Step| {};
    let mut run = Run::new(tracee, way, &mut each);
    run.follower = Some(follower);
    let (trace, follower) = run.complete(limit)?;
    Ok((trace, follower.context("nobody followed")?))
}

/// A run in progress.
struct Run<'e> {
    each: &'e mut dyn FnMut(&Step),
    tracee: Tracee,
    way: Outside,
    shadow: Shadow,
    transitions: FxHashMap<Transition, u64>,
    results: FxHashMap<u64, Results>,
    /// Where signals interrupted the program, the innermost last.
    interrupted: Vec<Pointers>,
    order: Option<Vec<u64>>,
    follower: Option<Follower>,
}

impl<'e> Run<'e> {
    fn new(tracee: Tracee, way: Outside, each: &'e mut dyn FnMut(&Step)) -> Self {
        Self {
            each,
            tracee,
            way,
            shadow: Shadow::default(),
            transitions: FxHashMap::default(),
            results: FxHashMap::default(),
            interrupted: Vec::new(),
            order: None,
            follower: None,
        }
    }

    fn complete(mut self, limit: u64) -> Result<(Trace, Option<Follower>)> {
        let mut at = self.tracee.pointers()?;
        let stated = self.tracee.stated(at.instruction);
        if let Some(follower) = &mut self.follower {
            follower.begin(stated);
        }
        let mut signal = None;
        let mut steps = 0;
        let end = loop {
            if steps == limit {
                break End::Limit;
            }
            match self.advance(at, signal.take())? {
                Event::Stepped(next) => {
                    let kind = self.classify(at, next);
                    self.record(at, next, kind);
                    (at, steps) = (next, steps + 1);
                }
                Event::Signalled(number) => {
                    // Within a leap it may have come far since it was last seen.
                    at = self.tracee.pointers()?;
                    signal = Some(number);
                    if let Some(next) = self.deliver(at, number)? {
                        signal = None;
                        at = next;
                    }
                }
                Event::Ended(end) => break end,
            }
        };
        let trace = Trace {
            transitions: self.transitions,
            results: self.results,
            steps,
            end,
            order: self.order.unwrap_or_default(),
        };
        Ok((trace, self.follower))
    }

    fn advance(&mut self, at: Pointers, signal: Option<i32>) -> Result<Event> {
        let outside = self.tracee.stated(at.instruction).is_none();
        if outside && self.way == Outside::Leap {
            // Only what is unwound within the leap tells where it may land.
            self.shadow.forget_unwound();
            self.tracee.leap(signal)
        } else {
            self.tracee.step(signal)
        }
    }

    /// Hands a signal over. Where a handler takes it, the program stands at the handler's first
    /// instruction afterwards; otherwise (it is ignored, or kills) the next step passes it on.
    fn deliver(&mut self, at: Pointers, signal: i32) -> Result<Option<Pointers>> {
        if !self.tracee.catches(signal)? {
            return Ok(None);
        }
        let Event::Stepped(next) = self.tracee.step(Some(signal))? else {
            anyhow::bail!("signal {signal} is caught, but no handler starts");
        };
        self.interrupted.push(at);
        let back = self.tracee.word(next.stack).unwrap_or(0);
        self.shadow.push(next.stack, None, back);
        self.record(at, next, Kind::Signal);
        Ok(Some(next))
    }

    fn classify(&mut self, at: Pointers, next: Pointers) -> Kind {
        if let Some(i) = self.interrupted.iter().rposition(|&p| p == next)
            && self.tracee.stated(at.instruction).is_none()
            && at.stack < next.stack
        {
            self.interrupted.truncate(i);
            self.shadow.resume_above(next.stack);
            return Kind::Resume;
        }
        let tracee = &self.tracee;
        let stated = |a: Option<u64>| a.and_then(|a| tracee.stated(a));
        match self.shadow.pass(at, next, |slot| tracee.word(slot)) {
            stack::Passage::Call { back } => Kind::Call {
                back: stated(Some(back)),
            },
            stack::Passage::Return { call } => Kind::Return { call: stated(call) },
            stack::Passage::Other if stated(Some(at.instruction)).is_none() => Kind::Landing {
                call: stated(self.shadow.last_unwound()),
            },
            stack::Passage::Other => Kind::Flow,
        }
    }

    fn record(&mut self, at: Pointers, next: Pointers, kind: Kind) {
        let from = self.tracee.stated(at.instruction);
        let to = self.tracee.stated(next.instruction);
        if let (Some(to), Kind::Return { .. } | Kind::Landing { .. }) = (to, kind) {
            add_result(self.results.entry(to).or_default(), self.tracee.result());
        }
        if let (Some(order), Some(from)) = (&mut self.order, from.filter(|_| kind != Kind::Signal))
        {
            order.push(from);
        }
        let back = || self.tracee.stated(self.tracee.word(next.stack)?);
        if let Some(follower) = &mut self.follower {
            let begins = to.is_some_and(|to| follower.is_entry(to));
            follower.step(&chains::Step {
                from,
                to,
                at,
                next,
                kind,
                back: begins.then(back).flatten(),
            });
        }
        if from.is_some() || to.is_some() {
            let passage = Transition { from, to, kind };
            *self.transitions.entry(passage).or_default() += 1;
            let stack = next.stack;
            (self.each)(&Step { passage, stack });
        }
    }
}
