//! A run, step by step: what each step was.

use std::path::Path;

use anyhow::{Context, Result};

use super::stack::{self, Pointers, Shadow};
use super::tracee::{Event, Tracee};
use super::{End, Kind, Moment, Outside, Ran};
use crate::corpus::{Turn, Workload};

/// Runs `program` for at most `limit` steps and tells each of them.
pub(super) fn step_through(
    program: &Path,
    workload: &Workload,
    way: Outside,
    limit: u64,
    each: &mut dyn FnMut(&Moment),
) -> Result<Ran> {
    let turn = Turn::wait()?;
    let tracee = Tracee::start(program, workload, turn.index())
        .with_context(|| format!("cannot trace {}", program.display()))?;
    let run = Run {
        each,
        tracee,
        way,
        shadow: Shadow::default(),
        interrupted: Vec::new(),
    };
    run.complete(limit)
}

/// A run in progress.
struct Run<'e> {
    each: &'e mut dyn FnMut(&Moment),
    tracee: Tracee,
    way: Outside,
    shadow: Shadow,
    /// Where signals interrupted the program, the innermost last.
    interrupted: Vec<Pointers>,
}

impl Run<'_> {
    fn complete(mut self, limit: u64) -> Result<Ran> {
        let mut at = self.tracee.pointers()?;
        let mut signal = None;
        let mut steps = 0;
        let end = loop {
            if steps == limit {
                break End::Limit;
            }
            match self.advance(at, signal.take())? {
                Event::Stepped(next) => {
                    let kind = self.classify(at, next);
                    self.tell(at, next, kind);
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
        Ok(Ran { steps, end })
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
        self.tell(at, next, Kind::Signal);
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

    fn tell(&mut self, at: Pointers, next: Pointers, kind: Kind) {
        let tracee = &self.tracee;
        (self.each)(&Moment {
            from: tracee.stated(at.instruction),
            to: tracee.stated(next.instruction),
            kind,
            stack_before: at.stack,
            stack: next.stack,
            back: tracee.word(next.stack).and_then(|back| tracee.stated(back)),
            result: tracee.result(),
        });
    }
}
