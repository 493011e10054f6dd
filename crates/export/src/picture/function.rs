//! One function: its lines, branches and blocks.

use tomo_profile::merge::Finding;
use tomo_program::dwarf::Position;
use tomo_program::{BlockView, EdgeKind, FunctionView, is_thunk};
use tomo_wire::checksum;

use super::copies::shape;
use super::{Branch, Function, Tally, Totals};
use crate::Findings;
use crate::lines::Lines;
use crate::marked::Marked;

/// Where the blocks of a module come from.
pub(super) struct Source<'a> {
    pub(super) lines: &'a Lines,
    /// The files of `lines`.
    pub(super) files: &'a [SourceFile],
    /// For each file of the picture, what its source leaves out; nothing where that is not asked for.
    pub(super) marked: &'a [Marked],
}

/// A file of a module.
pub(super) struct SourceFile {
    /// The one in the picture, unless it is not shown.
    pub(super) shown: Option<u32>,
    /// A checksum of its name, the same in all modules.
    pub(super) identity: u64,
}

impl Source<'_> {
    /// The lines that belong to a block, in files that are shown.
    fn statements(&self, block: BlockView<'_>) -> impl Iterator<Item = Position> {
        let all = self.lines.statements(block).iter();
        all.filter_map(|position| self.in_file(*position))
    }

    fn shown(&self, position: Position) -> Option<Position> {
        self.in_file(position).filter(|it| !self.is_marked(*it))
    }

    /// A position as all modules have it.
    fn place_of(&self, position: Position) -> Option<(u64, u32)> {
        let file = self.files.get(position.file as usize)?;
        Some((file.identity, position.line))
    }

    /// The position in a file that is shown, though not all of it may be.
    fn in_file(&self, position: Position) -> Option<Position> {
        let file = self.files.get(position.file as usize)?.shown;
        file.map(|file| Position { file, ..position })
    }

    fn is_marked(&self, position: Position) -> bool {
        let marked = self.marked.get(position.file as usize);
        marked.is_some_and(|marked| marked.has_line(position.line))
    }

    /// Whether the branch that ends a block is left out as the source marks it.
    pub(super) fn leaves_out_branch_of(&self, block: BlockView<'_>) -> bool {
        let place = self.lines.last(block).and_then(|place| self.in_file(place));
        place.is_some_and(|place| {
            let marked = self.marked.get(place.file as usize);
            marked.is_some_and(|marked| marked.has_branches(place.line))
        })
    }
}

/// What the picture takes from one function.
pub(super) struct Read {
    pub(super) function: Function,
    /// Its name for linkers.
    pub(super) name: Option<Box<str>>,
    /// Lines of files that are shown, each once.
    pub(super) lines: Vec<(Position, Finding)>,
    /// Lines of these files that their source leaves out.
    pub(super) marked: Vec<Position>,
    /// Branches, with their files.
    pub(super) branches: Vec<(u32, Branch)>,
    /// Sides of branches that come from no known file.
    pub(super) nowhere: Tally,
}

pub(super) fn read(
    function: FunctionView<'_>,
    module: u32,
    findings: &Findings,
    source: &Source<'_>,
    takes_unknown: bool,
) -> Read {
    let of_block = |block: BlockView<'_>| finding(&findings.blocks, block.id().index());
    let mut lines: Vec<(Position, Finding)> = Vec::new();
    let mut marked = Vec::new();
    for block in function.blocks() {
        let found = of_block(block);
        for position in source.statements(block) {
            match source.is_marked(position) {
                true => marked.push(position),
                false => lines.push((position, found)),
            }
        }
    }
    keep_greatest(&mut lines);
    lift(&mut lines, function, source, of_block);
    // The source has no functions that only adjust an object's address, whatever line is stated of them.
    let start = function
        .entry_block()
        .filter(|_| !function.name().is_some_and(is_thunk))
        .and_then(|block| source.lines.begin(block));
    let place = start.and_then(|position| source.shown(position));
    let entered = finding(&findings.functions, function.id().index());
    let mut read = Read {
        function: Function {
            id: function.id(),
            title: function.title(),
            also: String::new(),
            entry: function.entry(),
            file: place.map(|place| place.file),
            line: place.map_or(0, |place| place.line),
            entered,
            shown: place.is_some() || (start.is_none() && takes_unknown),
            totals: Totals {
                lines: lines.iter().map(|(_, finding)| *finding).collect(),
                functions: [entered].into_iter().collect(),
                blocks: function.blocks().map(of_block).collect(),
                branches: Tally::default(),
            },
        },
        name: function.name().map(Box::from),
        lines,
        marked,
        branches: Vec::new(),
        nowhere: Tally::default(),
    };
    let whose = read.whose(
        module,
        start.and_then(|start| source.place_of(start)),
        shape(function),
    );
    for block in function
        .blocks()
        .filter(|block| !source.leaves_out_branch_of(*block))
    {
        if let Some(mut branch) = branch(block, module, findings) {
            let offset = branch.address.0.wrapping_sub(function.entry().0);
            branch.copy = checksum(&[whose, offset].map(u64::to_le_bytes).concat());
            read.add_branch(branch, source.lines.last(block), source);
        }
    }
    read
}

/// Lines that begin in one block and with which another goes on ran if that did.
fn lift(
    lines: &mut [(Position, Finding)],
    function: FunctionView<'_>,
    source: &Source<'_>,
    of_block: impl Fn(BlockView<'_>) -> Finding,
) {
    for block in function.blocks() {
        let found = of_block(block);
        let line = source.lines.goes_on(block);
        let line = line.filter(|_| found.ran() == Some(true));
        let Some(position) = line.and_then(|line| source.shown(line)) else {
            continue;
        };
        if let Ok(at) = lines.binary_search_by_key(&position, |line| line.0) {
            lines[at].1 = lines[at].1.or(found);
        }
    }
}

impl Read {
    /// A checksum of what the function shares with its copies of the same shape, and with no other one: name and place, whether that is
    /// shown or not.
    fn whose(&self, module: u32, place: Option<(u64, u32)>, shape: u64) -> u64 {
        let [file, line, name] = match (place, &self.name) {
            (Some((file, line)), Some(name)) => [file, line.into(), checksum(name.as_bytes())],
            _ => [u64::MAX, module.into(), self.function.entry.0],
        };
        checksum(&[file, line, name, shape].map(u64::to_le_bytes).concat())
    }

    fn add_branch(&mut self, mut branch: Branch, place: Option<Position>, source: &Source<'_>) {
        let sides: Tally = branch.sides().into_iter().collect();
        self.function.totals.branches = self.function.totals.branches + sides;
        match place {
            None => self.nowhere = self.nowhere + sides,
            Some(place) => {
                if let Some(place) = source.shown(place) {
                    branch.line = place.line;
                    self.branches.push((place.file, branch));
                }
            }
        }
    }
}

pub(super) fn finding(all: &[Finding], index: usize) -> Finding {
    all.get(index).copied().unwrap_or(Finding::Unknown)
}

/// The conditional branch that ends a block.
pub(super) fn branch(block: BlockView<'_>, module: u32, findings: &Findings) -> Option<Branch> {
    let side = |kind: EdgeKind| {
        let edge = block.successors().find(|edge| edge.kind == kind)?;
        Some(finding(&findings.edges, edge.id.index()))
    };
    Some(Branch {
        line: 0,
        module,
        address: block.address(),
        copy: 0,
        block: finding(&findings.blocks, block.id().index()),
        taken: side(EdgeKind::Taken)?,
        not_taken: side(EdgeKind::NotTaken)?,
    })
}

/// Of several findings of one line, what holds of all together.
pub(super) fn keep_greatest<P: Copy + Ord>(lines: &mut Vec<(P, Finding)>) {
    lines.sort_unstable();
    // Of equal places the last is the greatest, and the first is the one that is kept.
    lines.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.or(next.1);
        }
        same
    });
}
