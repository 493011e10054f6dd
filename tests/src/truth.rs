//! The judge: a model is held against what a program was seen to do.
//!
//! The rule has no exceptions. Of a function that the model says it knows exactly, every executed
//! instruction lies in a known block and on a known boundary, and every executed passage of control
//! is a known edge, a call to an entry, a return behind a call that is known to fall through, or a
//! signal. What is passed over (functions that are not exact, PLT stubs, which are no functions) is
//! counted, and a test demands that enough was checked.
//!
//! The model comes as the lines that `tomo map --format jsonl` prints, the passages from [`steps`].
//! Boundaries inside a block are those of decoding it from its start.
//!
//! [`steps`]: crate::steps

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context, Result, ensure};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use object::{Object, ObjectSegment};
use serde::Deserialize;

use crate::steps::{Kind, Trace, Transition};

/// A model, block by block.
pub struct Model {
    blocks: BTreeMap<u64, Block>,
    entries: BTreeSet<u64>,
    /// Bytes of functions with whether they are exact: start to (end, exact).
    ranges: BTreeMap<u64, (u64, bool)>,
}

struct Block {
    end: u64,
    exact: bool,
    /// Starts of its instructions.
    instructions: BTreeMap<u64, Instruction>,
    successors: BTreeSet<(u64, String)>,
}

#[derive(Deserialize)]
struct Line {
    address: u64,
    size: u64,
    status: String,
    #[serde(default)]
    ranges: Vec<RangeLine>,
    blocks: Vec<BlockLine>,
}

#[derive(Deserialize)]
struct RangeLine {
    address: u64,
    size: u64,
}

#[derive(Deserialize)]
struct BlockLine {
    address: u64,
    size: u64,
    successors: Vec<SuccessorLine>,
}

#[derive(Deserialize)]
struct SuccessorLine {
    address: u64,
    kind: String,
}

/// What is wrong with one passage, or one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What was seen.
    pub seen: Transition,
    /// What the model says against it.
    pub why: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place =
            |address: Option<u64>| address.map_or("outside".to_owned(), |a| format!("{a:#x}"));
        let Transition { from, to, kind } = self.seen;
        write!(
            f,
            "{} → {} ({kind:?}): {}",
            place(from),
            place(to),
            self.why
        )
    }
}

/// What the judge looked at, and what it found wrong.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Different passages that were checked.
    pub checked: usize,
    /// Different passages that concern no exact function.
    pub passed_over: usize,
    /// Exact functions of which something was executed.
    pub functions: usize,
    /// All that is wrong.
    pub violations: Vec<Violation>,
}

impl Model {
    /// Reads the lines of `tomo map --format jsonl` for the program whose file's bytes are `program`.
    ///
    /// # Errors
    /// If the lines are not of that form, or a block is not in the file.
    pub fn read(lines: &[u8], program: &[u8]) -> Result<Self> {
        let file = object::File::parse(program)?;
        let (blocks, entries, ranges) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let mut model = Self {
            blocks,
            entries,
            ranges,
        };
        for line in lines
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            model.add(&serde_json::from_slice(line)?, &file)?;
        }
        ensure!(!model.blocks.is_empty(), "the model has no blocks");
        Ok(model)
    }

    fn add(&mut self, line: &Line, file: &object::File<'_>) -> Result<()> {
        let exact = line.status == "exact";
        self.entries.insert(line.address);
        self.ranges
            .insert(line.address, (line.address + line.size, exact));
        for range in &line.ranges {
            self.ranges
                .insert(range.address, (range.address + range.size, exact));
        }
        for block in &line.blocks {
            let end = block.address + block.size;
            let successors = block
                .successors
                .iter()
                .map(|to| (to.address, to.kind.clone()))
                .collect();
            let instructions = decode(file, block.address, end)?;
            let new = Block {
                end,
                exact,
                instructions,
                successors,
            };
            ensure!(
                self.blocks.insert(block.address, new).is_none(),
                "two blocks at {:#x}",
                block.address
            );
        }
        Ok(())
    }

    fn block(&self, address: u64) -> Option<&Block> {
        let (_, block) = self.blocks.range(..=address).next_back()?;
        (address < block.end).then_some(block)
    }

    /// Whether the address lies in the bytes of an exact function.
    fn is_exact(&self, address: u64) -> bool {
        let before = self.ranges.range(..=address).next_back();
        before.is_some_and(|(_, &(end, exact))| address < end && exact)
            || self.block(address).is_some_and(|block| block.exact)
    }

    /// The edges between blocks that a run passed, each as the starts of the block it leaves and of
    /// the one it enters.
    #[must_use]
    pub fn edges(&self, trace: &Trace) -> BTreeSet<(u64, u64)> {
        let flows = trace.transitions.keys().filter(|t| t.kind == Kind::Flow);
        let ends = flows.filter_map(|t| Some((t.from?, t.to?)));
        ends.filter_map(|(from, to)| {
            let (start, block) = self.blocks.range(..=from).next_back()?;
            let passes = from < block.end && self.blocks.contains_key(&to);
            passes.then_some((*start, to))
        })
        .collect()
    }

    /// Holds the model against what was seen.
    #[must_use]
    pub fn judge(&self, trace: &Trace) -> Verdict {
        let mut verdict = Verdict::default();
        for &seen in trace.transitions.keys() {
            let ends = [seen.from, seen.to];
            if !ends
                .into_iter()
                .flatten()
                .any(|address| self.is_exact(address))
            {
                verdict.passed_over += 1;
                continue;
            }
            verdict.checked += 1;
            if let Err(why) = self.check(seen) {
                verdict.violations.push(Violation { seen, why });
            }
        }
        let executed = trace.executed();
        let reached = self
            .entries
            .iter()
            .filter(|&&entry| self.is_exact(entry) && executed.contains(&entry));
        verdict.functions = reached.count();
        verdict.violations.sort_by_key(|violation| violation.seen);
        verdict
    }

    fn check(&self, seen: Transition) -> Result<(), &'static str> {
        let interrupted = matches!(seen.kind, Kind::Signal);
        if let Some(from) = seen.from.filter(|&from| self.is_exact(from)) {
            let block = self.block(from).ok_or("left from no known block")?;
            let instruction = block
                .instructions
                .get(&from)
                .ok_or("left from no known boundary")?;
            if !interrupted {
                self.check_leaving(seen, block, instruction)?;
            }
        }
        match seen.to.filter(|&to| self.is_exact(to)) {
            Some(to) => self.check_arriving(seen, to),
            None => Ok(()),
        }
    }

    /// Whether control may leave the instruction that way.
    fn check_leaving(
        &self,
        seen: Transition,
        block: &Block,
        last: &Instruction,
    ) -> Result<(), &'static str> {
        let is_last = last.next_ip() == block.end;
        if !is_last {
            let repeats = seen.to == seen.from && last.is_string_instruction();
            let goes_on = seen.kind == Kind::Flow && seen.to == Some(last.next_ip());
            return if goes_on || repeats {
                Ok(())
            } else {
                Err("leaves a block in its middle")
            };
        }
        match (seen.kind, seen.to) {
            (Kind::Call { .. }, _) if is_call(last) => Ok(()),
            (Kind::Return { .. }, _) if last.flow_control() == FlowControl::Return => Ok(()),
            (Kind::Flow, Some(to)) => {
                let repeats = seen.to == seen.from && last.is_string_instruction();
                let is_edge = |(at, kind): &(u64, String)| *at == to && is_jump(kind);
                let leaves = last.flow_control() == FlowControl::IndirectBranch
                    && self.is_other_entry(block, to);
                if repeats || leaves || block.successors.iter().any(is_edge) {
                    Ok(())
                } else {
                    Err("no such edge")
                }
            }
            (Kind::Flow, None) if last.flow_control() == FlowControl::IndirectBranch => Ok(()),
            // Back to whoever entered by something else than a call: the loader, a tail call.
            (Kind::Flow, None) if last.flow_control() == FlowControl::Return => Ok(()),
            _ => Err("the last instruction of the block does no such thing"),
        }
    }

    /// Whether `to` is where a tail call through a pointer may lead: an entry, or no function at all
    /// (a PLT stub), and the jump has no edge inside its function, or such to labels alone, which it may as well not take.
    fn is_other_entry(&self, block: &Block, to: u64) -> bool {
        let mut kinds = block.successors.iter().map(|(_, kind)| kind);
        kinds.all(|kind| kind == "computed-goto")
            && (self.entries.contains(&to) || self.block(to).is_none())
    }

    /// Whether control may arrive at `to`, in an exact function, that way.
    fn check_arriving(&self, seen: Transition, to: u64) -> Result<(), &'static str> {
        let block = self.block(to).ok_or("arrives in no known block")?;
        if !block.instructions.contains_key(&to) {
            return Err("arrives at no known boundary");
        }
        let is_start = self.blocks.contains_key(&to);
        let inner = seen
            .from
            .is_some_and(|from| self.block(from).is_some_and(|own| own.end == block.end));
        match seen.kind {
            Kind::Resume => Ok(()),
            Kind::Flow if inner && !is_start => Ok(()),
            Kind::Flow if is_start => self.check_entering(seen, to),
            Kind::Call { .. } | Kind::Signal if self.entries.contains(&to) => Ok(()),
            // A landing pad may stand just behind the call that throws.
            Kind::Return { call: Some(call) } if is_start && seen.from.is_none() => self
                .check_link(call, to, "call-fallthrough")
                .or_else(|_| self.check_link(call, to, "landing-pad")),
            Kind::Return { call: Some(call) } if is_start => {
                self.check_link(call, to, "call-fallthrough")
            }
            Kind::Landing { call } if is_start => {
                // A function that was entered by a jump from outside is not landed in; behind a
                // call that returned before, `longjmp` arrives.
                if self.entries.contains(&to) || self.is_behind_returning_call(to) {
                    return Ok(());
                }
                let call = call.ok_or("arrives in the middle from outside, out of no call")?;
                self.check_link(call, to, "landing-pad")
            }
            _ => Err("arrives where nothing may arrive that way"),
        }
    }

    /// Whether a jump may enter an exact function at the block `to`. Out of an exact function its
    /// edge was checked already; out of any other place it must be a known edge, or to an entry:
    /// else not every way into the entered function is known.
    fn check_entering(&self, seen: Transition, to: u64) -> Result<(), &'static str> {
        let from = seen.from.and_then(|from| self.block(from));
        let known = from.is_some_and(|block| {
            block.exact
                || block
                    .successors
                    .iter()
                    .any(|(at, kind)| *at == to && is_jump(kind))
        });
        if known || self.entries.contains(&to) {
            Ok(())
        } else {
            Err("enters an exact function by no known edge")
        }
    }

    /// Whether the bytes before `to` are a call that is known to return there.
    fn is_behind_returning_call(&self, to: u64) -> bool {
        let before = self
            .block(to.wrapping_sub(1))
            .filter(|block| block.end == to);
        before.is_some_and(|block| {
            block
                .successors
                .contains(&(to, "call-fallthrough".to_owned()))
        })
    }

    /// Whether the block of the call at `call` has such an edge to `to`.
    fn check_link(&self, call: u64, to: u64, kind: &str) -> Result<(), &'static str> {
        let Some(block) = self.block(call).filter(|block| block.exact) else {
            return Ok(());
        };
        let linked = block
            .successors
            .iter()
            .any(|(at, known)| *at == to && known == kind);
        if linked {
            Ok(())
        } else {
            Err("comes back from a call by no known edge")
        }
    }
}

impl Verdict {
    /// Adds what was found of another run.
    pub fn merge(&mut self, other: Self) {
        self.checked += other.checked;
        self.passed_over += other.passed_over;
        self.functions = self.functions.max(other.functions);
        self.violations.extend(other.violations);
    }
}

fn is_call(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}

fn is_jump(kind: &str) -> bool {
    !matches!(kind, "call-fallthrough" | "landing-pad")
}

/// The instructions from `start` to `end`.
fn decode(file: &object::File<'_>, start: u64, end: u64) -> Result<BTreeMap<u64, Instruction>> {
    let holds = |segment: &object::Segment<'_, '_>| {
        segment.address() <= start && end <= segment.address() + segment.size()
    };
    let segment = file
        .segments()
        .find(holds)
        .with_context(|| format!("no segment holds {start:#x}"))?;
    let (skip, size) = (start - segment.address(), usize::try_from(end - start)?);
    let bytes = segment
        .data()?
        .get(usize::try_from(skip)?..)
        .context("cut off")?;
    let mut decoder = Decoder::with_ip(
        64,
        bytes.get(..size).context("cut off")?,
        start,
        DecoderOptions::NONE,
    );
    let mut instructions = BTreeMap::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        ensure!(
            !instruction.is_invalid(),
            "no instruction at {:#x}",
            instruction.ip()
        );
        instructions.insert(instruction.ip(), instruction);
    }
    Ok(instructions)
}
