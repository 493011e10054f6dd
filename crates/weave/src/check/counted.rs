//! The checker of images with counters: proves that the program does what it did, and that nothing else is counted than
//! is said.
//!
//! It walks the module's text and the image side by side, from everywhere that control may come from outside. Where
//! the text is as it was, instructions are executed in place, and none of them may have a changed byte. Where
//! it leads into the trampolines, what is executed there is compared with the module's text instruction by
//! instruction, along every branch, until control is back at the very instruction where the module would be. In
//! between there may be jumps, and increments of counters whose registers and flags nobody looks at (asked by the
//! definition of liveness: is there a path to somebody who does?).
//!
//! So no place of the trampolines stands for two places of the module, no changed byte is met, and no matter what
//! was planned, the program cannot tell the difference. Linear but for liveness.

mod acts;
mod looked;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory};
use tomo_program::{Address, Binary, Callee, EdgeKind, Graphs, Model, Status};
use tomo_wire::ModuleId;
use tomo_wire::counting::{Counters, Row};
use tomo_wire::image::Image;

use super::chained::Entries;
use super::moved::means_the_same;
use super::paths::PathPlan;
use super::predicates::{Came, Notes};
use super::traced::Records;
use super::trampolines::MIDDLE;
use super::{Flaw, at};
use crate::WeaveError;
use crate::staying::live::Set;
use crate::text::Text;

/// What was proven of an image with counters, or with other probes that stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountersChecked {
    /// Jumps and calls in the text that lead into the trampolines.
    pub entrances: usize,
    /// Instructions that are executed elsewhere.
    pub moved: usize,
    /// Places where a counter is incremented, or something else done for what is observed.
    pub increments: usize,
    /// Bytes of text that differ from the module's.
    pub changed: usize,
}

/// Proves that the files `image` and `counters` are right for the module in the file `bytes`.
///
/// # Errors
/// The first thing that is not.
pub fn check_counters(
    (image, counters): (&[u8], &[u8]),
    bytes: &[u8],
    binary: &Binary<'_>,
    model: &Model,
) -> Result<CountersChecked, Flaw> {
    let header = Image::read(image, image.len() as u64).map_err(Flaw::Image)?;
    let (counters, rows) = Counters::read(counters).map_err(Flaw::Plan)?;
    let text = Text::read(bytes)?;
    belongs(&header, (counters.name(), counters.module), &text)?;
    let graphs = model.graphs().map_err(WeaveError::from)?;
    let what = Observes::Counters {
        slab: counters.at.get(),
        rows,
    };
    let mut walk = Walk::of((image, header), &text, &graphs, binary, what);
    walk.complete()?;
    walk.finish()
}

/// What an image does beside what the module does.
#[derive(Clone, Copy)]
pub(super) enum Observes<'a> {
    /// What stands in the walk's notes alone.
    Noted,
    /// Counters, from so many bytes into a slab on.
    Counters { slab: u32, rows: &'a [Row] },
    /// Paths.
    Paths(PathPlan<'a>),
    /// Chains of calls, by functions' entries.
    Chains(&'a Entries),
}

impl Observes<'_> {
    /// How many things must be observed somewhere.
    fn len(&self) -> usize {
        match self {
            Self::Noted => 0,
            Self::Counters { rows, .. } => rows.len(),
            Self::Paths(plan) => plan.functions.len(),
            Self::Chains(entries) => entries.len(),
        }
    }

    /// Where the thing with this number is.
    fn place(&self, number: usize) -> Address {
        Address(match self {
            Self::Noted | Self::Chains(_) => 0,
            Self::Counters { rows, .. } => rows.get(number).map_or(0, |row| row.from.get()),
            Self::Paths(plan) => plan.functions.get(number).map_or(0, |one| one.entry.get()),
        })
    }
}

/// Whether the image is of the plan of this name, of this module, and made of its text.
pub(super) fn belongs(
    header: &Image,
    (plan, module): (u64, ModuleId),
    text: &Text,
) -> Result<(), Flaw> {
    if header.plan.get() != plan || header.module != module {
        return Err(Flaw::Mismatch("the image is of another plan"));
    }
    match text.is_of(header) {
        true => Ok(()),
        false => Err(Flaw::Mismatch(
            "the image's regions are not the module's text",
        )),
    }
}

/// Where control may come from somewhere that is not a direct branch of a function all of which is known.
pub(super) fn arrivals(graphs: &Graphs<'_>, binary: &Binary<'_>) -> BTreeSet<Address> {
    let mut all: BTreeSet<Address> = binary.symbols().iter().map(|s| s.address).collect();
    all.extend(binary.pointer_slots().iter().map(|slot| slot.1));
    all.extend(binary.initial_functions());
    all.extend(binary.entry());
    for function in graphs.functions() {
        let exact = function.status() == Status::Exact;
        all.insert(function.entry());
        for block in function.blocks().filter(|_| !exact) {
            all.insert(block.address());
        }
        for edge in function.edges() {
            let branches = matches!(
                edge.kind,
                EdgeKind::Fallthrough | EdgeKind::NotTaken | EdgeKind::Taken | EdgeKind::Jump
            );
            if !(exact && branches && edge.block().is_some()) {
                all.insert(edge.address);
            }
        }
        for call in function.calls() {
            if let Callee::Function(entry) = call.callee() {
                all.insert(entry);
            }
        }
    }
    // The rest is not the module's own flow: data, filling, or code of which nothing is known.
    all.retain(|address| graphs.block_at(*address).is_some());
    all
}

/// Where control may be.
enum At {
    /// In the module's text.
    Place(Address),
    /// In the trampolines at a spot, where the module would be at an address, behind the instruction at another.
    Elsewhere(i64, Address, Came, Address),
}

/// Code of the trampolines.
pub(super) struct Trampolines<'a> {
    /// Its spot: the distance from the first region's start.
    start: i64,
    code: &'a [u8],
}

impl<'a> Trampolines<'a> {
    pub(super) fn from(&self, spot: i64) -> Option<&'a [u8]> {
        let offset = usize::try_from(spot - self.start).ok()?;
        self.code.get(offset..).filter(|rest| !rest.is_empty())
    }

    /// How many bytes into it a spot is.
    fn offset(&self, spot: i64) -> usize {
        (spot - self.start) as usize
    }

    fn has(&self, spot: i64) -> bool {
        self.from(spot).is_some()
    }
}

/// An instruction with its bytes, without what says where an operand is relative to it.
pub(super) struct Decoded {
    pub(super) instruction: Instruction,
    bytes: Vec<u8>,
}

impl Decoded {
    /// The first of `code`, which lies at `spot`.
    pub(super) fn of(spot: i64, code: &[u8]) -> Option<Self> {
        let start = (MIDDLE + spot) as u64;
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let mut bytes = code.get(..instruction.len())?.to_vec();
        if instruction.is_ip_rel_memory_operand() {
            let field = decoder
                .get_constant_offsets(&instruction)
                .displacement_offset();
            bytes.get_mut(field..field + 4)?.fill(0);
        }
        (!instruction.is_invalid()).then_some(Self { instruction, bytes })
    }

    pub(super) fn target(&self) -> i64 {
        self.instruction.near_branch_target() as i64 - MIDDLE
    }

    fn is_direct_call(&self) -> bool {
        self.instruction.code() == Code::Call_rel32_64 && self.instruction.len() == 5
    }

    fn is_jump(&self) -> bool {
        self.instruction.is_jmp_short_or_near()
    }

    /// Whether it is a branch with a condition on the flags.
    fn is_branch(&self) -> bool {
        self.instruction.is_jcc_short_or_near()
    }
}

/// Where control is behind what the module does not do.
pub(super) struct Behind {
    pub(super) spot: i64,
    /// Whether the function was left.
    pub(super) leaves: bool,
}

pub(super) struct Walk<'a> {
    image: &'a [u8],
    pub(super) header: Image,
    pub(super) text: &'a Text,
    pub(super) graphs: &'a Graphs<'a>,
    pub(super) what: Observes<'a>,
    pub(super) trampolines: Trampolines<'a>,
    pub(super) factory: InstructionInfoFactory,
    /// What is executed in the module's text, entrances too.
    pub(super) in_place: HashSet<Address>,
    /// Those of them to which control comes from nowhere that is known, but by entrances that nobody needs.
    pub(super) needless: HashSet<Address>,
    needed: bool,
    /// Where control comes there from an instruction that is executed, and not from outside.
    pub(super) flowed: HashSet<Address>,
    /// For each instruction of the trampolines the place of the module that it stands for.
    elsewhere: HashMap<i64, Address>,
    pub(super) entrances: BTreeSet<Address>,
    /// Bytes that are changed from an address on: an entrance's jump, or a short one and the jump to which it leads.
    pub(super) changes: BTreeMap<Address, u64>,
    /// Branches in the text that lead into the trampolines when they are taken.
    pub(super) leads: HashSet<Address>,
    /// Where control comes back to from the trampolines.
    pub(super) returned: HashSet<Address>,
    pub(super) counted: Vec<bool>,
    /// The instruction that was executed last.
    from: Address,
    /// Where in the trampolines sums of paths stand.
    pub(super) sums: Vec<Range<usize>>,
    waiting: Vec<At>,
    looked_at: HashMap<(Address, Set), bool>,
    pub(super) increments: usize,
    /// What is noted of predicates, if that is what is recorded.
    pub(super) notes: Option<Notes>,
    /// What witnesses are to record.
    pub(super) records: Records,
}

impl<'a> Walk<'a> {
    /// A walk of this image, before the first step.
    pub(super) fn of(
        (image, header): (&'a [u8], Image),
        text: &'a Text,
        graphs: &'a Graphs<'a>,
        binary: &Binary<'_>,
        what: Observes<'a>,
    ) -> Self {
        let start = header.trampolines.get() as usize;
        let end = start + header.trampolines_length.get() as usize;
        let arrivals = arrivals(graphs, binary).into_iter();
        Self {
            image,
            text,
            graphs,
            what,
            trampolines: Trampolines {
                start: header.distance.get(),
                code: image.get(start..end).unwrap_or_default(),
            },
            header,
            factory: InstructionInfoFactory::new(),
            in_place: HashSet::new(),
            needless: HashSet::new(),
            needed: true,
            flowed: HashSet::new(),
            elsewhere: HashMap::new(),
            entrances: BTreeSet::new(),
            changes: BTreeMap::new(),
            leads: HashSet::new(),
            returned: HashSet::new(),
            counted: vec![false; what.len()],
            from: Address(0),
            sums: Vec::new(),
            waiting: arrivals.map(At::Place).collect(),
            looked_at: HashMap::new(),
            increments: 0,
            notes: None,
            records: Records::default(),
        }
    }

    /// Goes everywhere.
    pub(super) fn complete(&mut self) -> Result<(), Flaw> {
        self.all()?;
        self.needed = false;
        self.unreached()
    }
}

impl Walk<'_> {
    pub(super) fn spot(&self, address: Address) -> i64 {
        address.0.wrapping_sub(self.text.origin()) as i64
    }

    pub(super) fn address(&self, spot: i64) -> Address {
        Address(self.text.origin().wrapping_add(spot as u64))
    }

    /// The module's instruction at `address`.
    pub(super) fn original(&self, address: Address) -> Option<Decoded> {
        Decoded::of(self.spot(address), self.text.from(address)?)
    }

    /// The image's text from `address`.
    pub(super) fn patched(&self, address: Address) -> Option<&[u8]> {
        self.text.patched((&self.header, self.image), address)
    }

    /// Goes on until nothing waits.
    fn all(&mut self) -> Result<(), Flaw> {
        while let Some(next) = self.waiting.pop() {
            match next {
                At::Place(address) => self.place(address)?,
                At::Elsewhere(spot, address, came, from) => {
                    self.from = from;
                    self.elsewhere(spot, address, came)?;
                }
            }
        }
        Ok(())
    }

    /// Bytes of the text that differ from the module's.
    fn changed(&self) -> impl Iterator<Item = Address> {
        self.text.regions.iter().flat_map(|region| {
            let start = Address(region.address);
            let patched = self.patched(start).unwrap_or_default();
            let pairs = (0u64..).zip(patched.iter().zip(&region.bytes));
            let differ = pairs.filter(|(_, (is, was))| is != was);
            differ.map(move |(offset, _)| start.wrapping_add(offset))
        })
    }

    /// Whether a byte lies in no entrance.
    fn is_strange(&self, address: Address) -> bool {
        let before = self.changes.range(..=address).next_back();
        before.is_none_or(|(start, length)| start.wrapping_add(*length) <= address)
    }

    /// Entrances that nobody needs, since all who go there know where they lead, must be right all the same.
    fn unreached(&mut self) -> Result<(), Flaw> {
        let changed: Vec<Address> = self
            .changed()
            .filter(|here| self.is_strange(*here))
            .collect();
        // The jump to which a short one leads stands among bytes of another block: they are not for themselves.
        let is_short = |here: &Address| {
            let start = self.instruction_at(*here);
            start.is_some_and(|start| self.by_way_of(start).is_some()) && !self.ends_jump(*here)
        };
        let (short, others): (Vec<Address>, Vec<Address>) = changed.into_iter().partition(is_short);
        for here in short.into_iter().chain(others) {
            if self.is_strange(here) {
                self.waiting
                    .extend(self.instruction_at(here).map(At::Place));
                self.all()?;
            }
        }
        Ok(())
    }

    /// Whether the byte seems to end a jump into the trampolines: then it may look like anything. It is looked at later.
    fn ends_jump(&self, here: Address) -> bool {
        (1..5).any(|back| {
            let start = Address(here.0.wrapping_sub(back));
            let code = self.patched(start).filter(|_| self.is_strange(start));
            let jump = code.and_then(|code| Decoded::of(self.spot(start), code));
            let jump = jump.filter(|jump| jump.is_jump() && jump.bytes.len() == 5);
            jump.is_some_and(|jump| self.trampolines.has(jump.target()))
        })
    }

    /// The jump to which a short one at `address` leads, if the image has one there.
    pub(super) fn by_way_of(&self, address: Address) -> Option<(Address, Decoded)> {
        let short = Decoded::of(self.spot(address), self.patched(address)?)?;
        let there = self.address(short.target());
        let long = Decoded::of(short.target(), self.patched(there)?)?;
        let leads = short.is_jump() && short.bytes.len() == 2 && long.is_jump();
        (leads && long.bytes.len() == 5).then_some((there, long))
    }

    /// Where the instruction of a block starts that has the byte at `address`.
    fn instruction_at(&self, address: Address) -> Option<Address> {
        let mut here = self.graphs.block_at(address)?.address();
        loop {
            let next = here.wrapping_add(self.original(here)?.instruction.len() as u64);
            if next > address {
                return Some(here);
            }
            here = next;
        }
    }

    /// Control is in the module's text.
    fn place(&mut self, address: Address) -> Result<(), Flaw> {
        if self.graphs.block_at(address).is_none() || !self.in_place.insert(address) {
            return Ok(());
        }
        if !self.needed {
            self.needless.insert(address);
        }
        let wrong = |what| at(address, what);
        let was = self.original(address);
        let was = was.ok_or(wrong("control arrives where no instruction is"))?;
        let length = was.instruction.len();
        let is = self.patched(address).and_then(|is| is.get(..length));
        let same = self.text.from(address).and_then(|text| text.get(..length)) == is;
        if !same && self.leads_from(address, &was) {
            self.flow([Some(address.wrapping_add(length as u64)), None]);
            return Ok(());
        }
        let is = self.patched(address).unwrap_or_default();
        if !same {
            let is = match self.by_way_of(address) {
                Some((there, is)) => {
                    self.changes.insert(address, 2);
                    self.changes.insert(there, 5);
                    is
                }
                None => {
                    let is = Decoded::of(self.spot(address), is).filter(|is| is.bytes.len() == 5);
                    self.changes.insert(address, 5);
                    is.ok_or(wrong("a changed byte is executed"))?
                }
            };
            let stands_for = match (is.is_jump(), was.is_direct_call() && is.is_direct_call()) {
                (true, _) => address,
                // What is behind it is among the arrivals.
                (_, true) => self.address(was.target()),
                _ => return Err(wrong("a changed byte is executed")),
            };
            self.entrances.insert(address);
            match is.is_jump() {
                true => self.records.from_text.insert(is.target()),
                false => self.records.from_within.insert(is.target()),
            };
            let came = Came::Text(address);
            self.waiting
                .push(At::Elsewhere(is.target(), stands_for, came, stands_for));
            return Ok(());
        }
        let next = address.wrapping_add(length as u64);
        let target = self.address(was.target());
        let ways = match was.instruction.flow_control() {
            FlowControl::Next => [Some(next), None],
            FlowControl::ConditionalBranch => [Some(next), Some(target)],
            FlowControl::UnconditionalBranch => [Some(target), None],
            // Where calls lead and come back to is among the arrivals.
            _ => [None, None],
        };
        self.flow(ways);
        Ok(())
    }

    /// Control goes on in the module's text.
    fn flow(&mut self, ways: [Option<Address>; 2]) {
        let ways = ways.into_iter().flatten();
        self.flowed.extend(ways.clone());
        self.waiting.extend(ways.map(At::Place));
    }

    /// Whether the branch at `address`, for the rest as it was, leads into the trampolines when it is taken. Only where it
    /// is noted who comes from there. Where an entrance lies over its beginning, nobody comes there yet.
    fn leads_from(&mut self, address: Address, was: &Decoded) -> bool {
        let spot = self.spot(address);
        let length = was.bytes.len();
        let rest = length.saturating_sub(4);
        let mut bytes = was.bytes.clone();
        let patched = self.patched(address).and_then(|is| is.get(..length));
        let Some(patched) = patched.filter(|_| was.instruction.is_jcc_near()) else {
            return false;
        };
        bytes[rest..].copy_from_slice(&patched[rest..]);
        let covered = |at: usize| !self.needed && !self.is_strange(address.wrapping_add(at as u64));
        let same = (0..rest).all(|at| patched[at] == bytes[at] || covered(at));
        let is = Decoded::of(spot, &bytes).filter(|_| same);
        let (Some(is), Some(notes)) = (is, &mut self.notes) else {
            return false;
        };
        let leads = self.trampolines.has(is.target());
        if leads {
            notes.branch(spot, address);
            let came = Came::Way(spot, address, true);
            let target = self.address(was.target());
            self.leads.insert(address);
            self.changes.insert(address.wrapping_add(rest as u64), 4);
            self.waiting
                .push(At::Elsewhere(is.target(), target, came, address));
        }
        leads
    }

    /// Control is in the trampolines, where the module would be at `address`.
    fn elsewhere(&mut self, spot: i64, address: Address, came: Came) -> Result<(), Flaw> {
        let (mut spot, mut address, mut came) = (spot, address, came);
        let mut left = false;
        // Where it was since it executed an instruction of the module.
        let mut idle = HashSet::new();
        loop {
            if !self.trampolines.has(spot) {
                return self.back(spot, address);
            }
            if let Some(notes) = &mut self.notes {
                notes.arrive(spot, came);
            }
            match self.elsewhere.insert(spot, address) {
                None => {}
                Some(before) if self.without_jumps(before) == self.without_jumps(address) => {
                    let stuck = idle.contains(&spot) && !self.jumps_in_a_circle(address);
                    return match stuck {
                        true => Err(at(address, "control never goes on")),
                        false => Ok(()),
                    };
                }
                Some(_) => return Err(at(address, "two places share code")),
            }
            idle.insert(spot);
            let code = self.trampolines.from(spot).unwrap_or_default();
            if let Observes::Chains(functions) = self.what
                && let Some(behind) = self.step_of_chains(functions, spot, address)?
            {
                (spot, left) = (behind.spot, behind.leaves);
                continue;
            }
            if let Some(length) = self.act(spot, code, address)? {
                if let Some(notes) = &self.notes {
                    came = notes.behind(spot, came);
                }
                spot += length as i64;
                continue;
            }
            let is = Decoded::of(spot, code).ok_or(at(address, "it leads to no instruction"))?;
            if is.is_jump() {
                (spot, came) = (is.target(), Came::Other);
                self.records.from_within.insert(spot);
                continue;
            }
            address = self.without_jumps(address);
            if !left && self.must_leave(&is.instruction, address) {
                return Err(at(address, "a function is left, and that is not noted"));
            }
            left = false;
            idle.clear();
            self.from = address;
            match self
                .step(&is, spot, address)
                .map_err(|what| at(address, what))?
            {
                Some(next) => {
                    came = match is.is_branch() {
                        true => Came::Way(spot, address, false),
                        false => Came::Other,
                    };
                    (spot, address) = (spot + is.instruction.len() as i64, next);
                }
                None => return Ok(()),
            }
        }
    }

    /// Control leaves the trampolines for a spot of the module.
    fn back(&mut self, spot: i64, address: Address) -> Result<(), Flaw> {
        let there = self.address(spot);
        if !self.jumps(address).any(|step| step == there) {
            return Err(at(address, "control goes on at another place"));
        }
        self.flowed.insert(there);
        self.returned.insert(there);
        self.waiting.push(At::Place(there));
        Ok(())
    }

    /// Where control is after the direct jumps at `address`.
    fn without_jumps(&self, address: Address) -> Address {
        self.jumps(address).last().unwrap_or(address)
    }

    /// `address`, and where the direct jumps from there lead, one after the other. Who jumps in a circle stays in it.
    pub(super) fn jumps(&self, address: Address) -> impl Iterator<Item = Address> {
        let next = |&here: &Address| {
            let jump = self.original(here).filter(Decoded::is_jump)?;
            Some(self.address(jump.target()))
        };
        std::iter::successors(Some(address), next).take(64)
    }

    fn jumps_in_a_circle(&self, address: Address) -> bool {
        let last = self.without_jumps(address);
        self.original(last).is_some_and(|one| one.is_jump())
    }

    /// An instruction of the trampolines stands for that at `address`; where the module would be behind it.
    fn step(
        &mut self,
        is: &Decoded,
        spot: i64,
        address: Address,
    ) -> Result<Option<Address>, &'static str> {
        let was = self.original(address).ok_or("there is no instruction")?;
        if let Some(notes) = &mut self.notes {
            notes.copy(spot, address);
        }
        let next = address.wrapping_add(was.instruction.len() as u64);
        if was.instruction.flow_control() == FlowControl::ConditionalBranch {
            if !is.is_branch()
                || !was.is_branch()
                || is.instruction.condition_code() != was.instruction.condition_code()
            {
                return Err("it branches otherwise");
            }
            let target = self.address(was.target());
            if let Some(notes) = &mut self.notes {
                notes.branch(spot, address);
            }
            self.records.from_within.insert(is.target());
            let came = Came::Way(spot, address, true);
            self.waiting
                .push(At::Elsewhere(is.target(), target, came, address));
            return Ok(Some(next));
        }
        let runs_on = means_the_same(&is.instruction, &was.instruction)?;
        match is.bytes == was.bytes {
            true => Ok(runs_on.then_some(next)),
            false => Err("it executes other bytes"),
        }
    }

    pub(super) fn is_in_block(&self, start: Address, address: Address) -> bool {
        let block = self.graphs.block_at(start);
        block.is_some_and(|b| b.address() == start && b.range().contains(address))
    }

    /// All that is changed is an entrance, and all counters count.
    pub(super) fn finish(self) -> Result<CountersChecked, Flaw> {
        let mut free = Address(0);
        for (&start, &length) in &self.changes {
            if start < free {
                return Err(at(start, "two entrances overlap"));
            }
            free = start.wrapping_add(length);
        }
        if let Some(here) = self.changed().find(|here| self.is_strange(*here)) {
            return Err(at(here, "a byte differs where no entrance is"));
        }
        match self.counted.iter().position(|counted| !counted) {
            Some(number) => Err(match self.what {
                Observes::Chains(_) => Flaw::Mismatch("a function never enters"),
                what => at(what.place(number), "a counter is never incremented"),
            }),
            None => Ok(CountersChecked {
                entrances: self.entrances.len(),
                moved: self.elsewhere.len(),
                increments: self.increments,
                changed: self.changed().count(),
            }),
        }
    }
}
