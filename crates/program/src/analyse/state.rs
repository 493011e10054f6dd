//! What the analysis knows at a moment: fragments, which of them make a function, what indirect
//! jumps reach, and what control can reach at all.

use rustc_hash::FxHashMap;

use super::code::Pos;
use super::explore::{Exit, RawBlock};
use super::fragment::{self, Fragment, Tables};
use crate::unwind::UnwindEntry;
use crate::{Address, EdgeKind, Resolution};

/// What is known of one indirect jump, by the end of its block.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Resolved {
    /// How it is known.
    pub(crate) resolution: Resolution,
    /// Where it leads inside its function, in the order of the table, each once.
    pub(crate) targets: Vec<Pos>,
    /// First and last entry of the tables that it reads.
    pub(crate) tables: Vec<(Address, Address)>,
}

impl Resolved {
    /// Nothing is known.
    pub(crate) fn not() -> Self {
        Self {
            resolution: Resolution::Unresolved,
            targets: Vec::new(),
            tables: Vec::new(),
        }
    }
}

/// A block: its fragment and its index there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct BlockRef {
    /// Index of the fragment.
    pub(crate) fragment: u32,
    /// Index in [`Fragment::blocks`].
    pub(crate) block: u32,
}

/// Bytes of code in whose starts [`State::find`] searches; a power of two.
const PAGE: u32 = 256;

/// The state of the analysis.
pub(crate) struct State<'a> {
    /// What the file's tables say.
    pub(crate) tables: &'a Tables<'a>,
    /// All fragments, by start.
    pub(crate) fragments: Vec<Fragment>,
    /// Their starts, close together for searching.
    starts: Vec<Pos>,
    /// For every page of [`PAGE`] bytes how many starts are before it.
    before: Vec<u32>,
    /// For every unwind entry its first and its last landing pad.
    pads: Vec<Option<(Pos, Pos)>>,
    /// For every fragment the one with the entry of its function; itself for most.
    pub(crate) owner: Vec<u32>,
    /// The further fragments of functions that have some, by owner.
    pub(crate) parts: FxHashMap<u32, Vec<u32>>,
    /// Indirect jumps that were examined, by the end of their block.
    pub(crate) jumps: FxHashMap<Pos, Resolved>,
    /// Whether jumps have settled once, so that the compiler's view waits for none that is still unknown.
    pub(crate) has_settled: bool,
    /// What control reaches, and which functions return.
    pub(crate) reach: super::returns::Reach,
}

impl<'a> State<'a> {
    /// A state that knows only what the tables say.
    pub(crate) fn new(tables: &'a Tables<'a>) -> Self {
        let mut state = Self {
            tables,
            fragments: fragment::stated(tables),
            starts: Vec::new(),
            before: Vec::new(),
            pads: tables
                .unwind
                .functions
                .iter()
                .map(|entry| pads(tables, entry))
                .collect(),
            owner: Vec::new(),
            parts: FxHashMap::default(),
            jumps: FxHashMap::default(),
            has_settled: false,
            reach: super::returns::Reach::default(),
        };
        state.note_starts();
        state
    }

    /// Must follow every change of the list of fragments.
    pub(crate) fn note_starts(&mut self) {
        self.starts.clear();
        self.starts
            .extend(self.fragments.iter().map(|fragment| fragment.start));
        self.before.clear();
        for (index, start) in (0..).zip(&self.starts) {
            let page = (start.0 / PAGE) as usize;
            self.before.resize(self.before.len().max(page + 1), index);
        }
    }

    /// The starts among which the first one behind `pos` is, and how many are before those.
    fn starts_around(&self, pos: Pos) -> (usize, &[Pos]) {
        let page = (pos.0 / PAGE) as usize;
        let count = |page: usize| self.before.get(page).map(|&count| count as usize);
        let from = count(page).unwrap_or(self.starts.len());
        let to = count(page + 1).unwrap_or(self.starts.len());
        (from, &self.starts[from..to])
    }

    /// The fragment that holds `pos`.
    pub(crate) fn find(&self, pos: Pos) -> Option<usize> {
        let (before, near) = self.starts_around(pos);
        let after = before + near.partition_point(|&start| start <= pos);
        after
            .checked_sub(1)
            .filter(|&index| pos < self.fragments[index].end)
    }

    /// The block that starts at `pos`; `near` is the fragment to try first.
    pub(crate) fn block_at(&self, pos: Pos, near: u32) -> Option<BlockRef> {
        let home = &self.fragments[near as usize];
        let index = if home.start <= pos && pos < home.end {
            near as usize
        } else {
            self.find(pos)?
        };
        let block = self.fragments[index].block_at(pos)?;
        Some(BlockRef {
            fragment: u32::try_from(index).ok()?,
            block: u32::try_from(block).ok()?,
        })
    }

    /// The block itself.
    pub(crate) fn block(&self, at: BlockRef) -> RawBlock {
        self.fragments[at.fragment as usize].blocks[at.block as usize]
    }

    /// The blocks of a fragment that control reaches.
    pub(crate) fn reached_in(&self, fragment: u32) -> impl Iterator<Item = (BlockRef, RawBlock)> {
        let blocks = (0..).zip(&self.fragments[fragment as usize].blocks);
        let blocks = blocks.map(move |(block, raw)| (BlockRef { fragment, block }, *raw));
        blocks.filter(|(at, _)| self.reach.reaches(*at))
    }

    /// The function, by its owner, that holds a fragment.
    pub(crate) fn owner_of(&self, fragment: u32) -> u32 {
        self.owner[fragment as usize]
    }

    /// The fragments of the function whose owner is given, that one first.
    pub(crate) fn fragments_of(&self, owner: u32) -> impl Iterator<Item = u32> {
        std::iter::once(owner).chain(self.parts.get(&owner).into_iter().flatten().copied())
    }

    /// The unwind entries of a fragment.
    pub(crate) fn unwind_entries(&self, fragment: u32) -> &'a [UnwindEntry] {
        let (first, last) = self.fragments[fragment as usize].unwind;
        &self.tables.unwind.functions[first as usize..last as usize]
    }

    /// The landing pads that the unwind entries of a fragment state, where some are outside of it.
    pub(crate) fn pads_of_crossing(&self, fragment: u32) -> impl Iterator<Item = Pos> {
        let home = &self.fragments[fragment as usize];
        let (first, last) = (home.unwind.0 as usize, home.unwind.1 as usize);
        let spans = self.pads[first..last].iter();
        let entries = self.unwind_entries(fragment).iter().zip(spans);
        let crossing = entries.filter(|(_, span)| {
            span.is_some_and(|(first, last)| first < home.start || last >= home.end)
        });
        crossing.flat_map(|(entry, _)| landing_pads(self.tables, entry))
    }

    /// The landing pad for a call that ends at `end`, if exceptions can land in the function.
    pub(crate) fn landing_pad(&self, fragment: u32, end: Pos) -> Option<Pos> {
        let inside = self.tables.code.address(Pos(end.0.checked_sub(1)?));
        let mut entries = self.unwind_entries(fragment).iter();
        let entry =
            entries.find(|entry| !entry.call_sites.is_empty() && entry.range.contains(inside))?;
        let after = entry
            .call_sites
            .partition_point(|site| site.range.start() <= inside);
        let site = &entry.call_sites[after.checked_sub(1)?];
        if !site.range.contains(inside) {
            return None;
        }
        self.tables.code.pos(site.landing_pad?)
    }

    /// Whether the block's call leads just behind itself (to learn where it runs, or to change the
    /// return address), where nothing says that there is a function.
    pub(crate) fn calls_itself_inside(&self, block: RawBlock, target: Pos) -> bool {
        let near = target >= block.end && target.since(block.end) < 16;
        near && self.find(target).is_some_and(|fragment| {
            let evidence = self.fragments[fragment].evidence;
            !(evidence.is_named() || evidence.pointed)
        })
    }

    /// Where control goes on if an instruction of the block faults, which is no call.
    fn pad_of_faults(&self, at: BlockRef) -> Option<Pos> {
        let entries = self.unwind_entries(at.fragment).iter();
        let mut raising =
            entries.filter(|entry| entry.asynchronous && !entry.call_sites.is_empty());
        raising.next()?;
        self.landing_pad(at.fragment, self.block(at).end)
    }

    /// Calls `visit` with every way out of a block that stays in code of this file: the target and
    /// why. Calls fall through whether or not the callee returns; the caller decides.
    pub(crate) fn ways_out(&self, at: BlockRef, mut visit: impl FnMut(Pos, EdgeKind)) {
        let block = self.block(at);
        // What comes back needs nothing that is not there.
        if !block.exit.is_call()
            && block.exit != Exit::Return
            && let Some(pad) = self.pad_of_faults(at)
        {
            visit(pad, EdgeKind::LandingPad);
        }
        match block.exit {
            Exit::Fallthrough => visit(block.end, EdgeKind::Fallthrough),
            Exit::Branch(target) => {
                visit(target, EdgeKind::Taken);
                visit(block.end, EdgeKind::NotTaken);
            }
            Exit::BranchOutside => visit(block.end, EdgeKind::NotTaken),
            Exit::Jump(target) => visit(target, EdgeKind::Jump),
            Exit::Call(_) | Exit::CallImport(_) | Exit::CallIndirect => {
                visit(block.end, EdgeKind::CallFallthrough);
                if let Some(pad) = self.landing_pad(at.fragment, block.end) {
                    visit(pad, EdgeKind::LandingPad);
                }
            }
            Exit::JumpIndirect => {
                let Some(resolved) = self.jumps.get(&block.end) else {
                    return;
                };
                let labels = resolved.resolution == Resolution::Labels;
                let kind = if labels {
                    EdgeKind::ComputedGoto
                } else {
                    EdgeKind::JumpTable
                };
                resolved
                    .targets
                    .iter()
                    .for_each(|&target| visit(target, kind));
            }
            Exit::JumpImport(_)
            | Exit::JumpResolved
            | Exit::JumpOutside
            | Exit::Return
            | Exit::Stop
            | Exit::Broken => {}
        }
    }
}

/// Where exceptions land that pass the instructions of an unwind entry.
fn landing_pads(tables: &Tables<'_>, entry: &UnwindEntry) -> impl Iterator<Item = Pos> {
    let pads = entry.call_sites.iter().filter_map(|site| site.landing_pad);
    pads.filter_map(|pad| tables.code.pos(pad))
}

/// The first and the last of them.
fn pads(tables: &Tables<'_>, entry: &UnwindEntry) -> Option<(Pos, Pos)> {
    let first = landing_pads(tables, entry).min()?;
    Some((first, landing_pads(tables, entry).max()?))
}
