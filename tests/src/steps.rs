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
//!
//! Of a program of the corpus each run is stepped once; who asks for it again is told what was recorded (`steps/recorded.rs`).

pub mod chains;
mod recorded;
mod run;
pub mod single;
pub mod stack;
mod tracee;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use rustc_hash::FxHashMap;

use crate::corpus::Workload;
use chains::Follower;

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

/// What was seen of a run that is under way.
#[derive(Default)]
struct Seen {
    transitions: FxHashMap<Transition, u64>,
    results: FxHashMap<u64, Results>,
}

impl Seen {
    fn add(&mut self, moment: &Moment) {
        if let (Some(to), Kind::Return { .. } | Kind::Landing { .. }) = (moment.to, moment.kind) {
            add_result(self.results.entry(to).or_default(), moment.result);
        }
        if let Some(step) = moment.step() {
            *self.transitions.entry(step.passage).or_default() += 1;
        }
    }

    fn ended(self, ran: Ran) -> Trace {
        Trace {
            transitions: self.transitions,
            results: self.results,
            steps: ran.steps,
            end: ran.end,
            order: Vec::new(),
        }
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

/// A step with all that anybody asks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    from: Option<u64>,
    to: Option<u64>,
    kind: Kind,
    /// Where the newest word of the stack was before.
    stack_before: u64,
    /// Where it is afterwards.
    stack: u64,
    /// Where that word points, as the file states it, if that is code of the executable.
    back: Option<u64>,
    /// What is in `rax` afterwards.
    result: u64,
}

impl Moment {
    /// As others may see it, if it begins or ends in the executable.
    fn step(&self) -> Option<Step> {
        let &Self {
            from,
            to,
            kind,
            stack,
            ..
        } = self;
        let passage = Transition { from, to, kind };
        (from.is_some() || to.is_some()).then_some(Step { passage, stack })
    }
}

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ran {
    steps: u64,
    end: End,
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
    let mut seen = Seen::default();
    let ran = recorded::each_moment(program, workload, way, limit, &mut |moment| {
        seen.add(moment);
        if let Some(step) = moment.step() {
            each(&step);
        }
    })?;
    Ok(seen.ended(ran))
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
    let mut order = Vec::new();
    let trace = observe_each(program, workload, way, limit, &mut |step| {
        let passage = step.passage;
        order.extend(passage.from.filter(|_| passage.kind != Kind::Signal));
    })?;
    Ok(Trace { order, ..trace })
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
    mut follower: Follower,
) -> Result<(Trace, Follower)> {
    let mut seen = Seen::default();
    let mut begun = false;
    let ran = recorded::each_moment(program, workload, way, limit, &mut |moment| {
        if !std::mem::replace(&mut begun, true) {
            follower.begin(moment.from);
        }
        follower.step(moment);
        seen.add(moment);
    })?;
    Ok((seen.ended(ran), follower))
}
