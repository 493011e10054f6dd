//! What the rows of one line program state of blocks (DWARF 5 §6.2.2): see [`block_lines`](super::block_lines()) for what each is for.

use super::copies::{Copies, Entered};
use super::inlined::Call;
use super::line_program::Row;
use super::origin::Found;
use crate::{Address, Range};

/// What is to be told of statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// In which blocks they are.
    #[default]
    Blocks,
    /// Also in which copies of bodies.
    Copies,
}

/// Blocks, by index.
pub(super) type Blocks = std::ops::Range<u32>;

/// Which blocks the rows of one program lie in.
pub(super) struct Statements<'q> {
    blocks: &'q [Range],
    /// The block that the row before was in, or the next one: rows mostly ascend.
    near: usize,
    found: Vec<Stating>,
    /// In which copies of bodies these are, if that is asked for.
    copies: Option<Copies>,
    /// The statement at the first byte of a block that has been met last, with its address.
    opening: Option<(u64, Stating)>,
    /// Those behind which another row has the same address.
    begun: Vec<Stating>,
    /// Calls whose bodies are entered at the first byte of a block.
    entered: Vec<Stating>,
    /// File and line of the last row that has a line.
    before: Option<(u64, u64)>,
    /// Whether GCC wrote the rows, and whether it did not optimise: else they do not tell what goes on.
    pub(super) by_gnu: bool,
    pub(super) is_plain: bool,
    /// Where the sequence that is being read starts.
    start: Option<u64>,
    /// Those that have been read.
    sequences: Vec<Range>,
    /// Blocks with a row at their first byte, and whether the row before the last of these has another line.
    turned: Vec<(u32, bool)>,
    /// Where statements are.
    stated: Vec<u64>,
    /// Where code of no line begins.
    unstated: Vec<u64>,
    /// Blocks that have such, and no statement: compilers made them common to several places.
    common: Vec<u32>,
}

/// Whether any of these, which ascend, is in a range.
fn has_any(all: &[u64], range: Range) -> bool {
    let first = all.partition_point(|it| *it < range.start().0);
    all.get(first).is_some_and(|it| *it < range.end().0)
}

/// Block, file as the program numbers it, line.
pub(super) type Stating = (u32, u64, u32);

impl<'q> Statements<'q> {
    pub(super) fn new(blocks: &'q [Range], told: Told) -> Self {
        Self {
            blocks,
            near: 0,
            found: Vec::new(),
            copies: (told == Told::Copies).then(Copies::default),
            opening: None,
            begun: Vec::new(),
            entered: Vec::new(),
            before: None,
            by_gnu: false,
            is_plain: false,
            start: None,
            sequences: Vec::new(),
            turned: Vec::new(),
            stated: Vec::new(),
            unstated: Vec::new(),
            common: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, address: u64, row: Row) {
        let opening = self.opening.take_if(|(at, (_, file, line))| {
            let same = (*file, u64::from(*line)) == (row.file, row.line);
            *at != address || !same
        });
        self.begun
            .extend(opening.filter(|it| it.0 == address).map(|it| it.1));
        let found = self.state(address, row);
        if let Some((copies, (stating, _))) = self.copies.as_mut().zip(found) {
            copies.add_statement(address, stating);
        }
        if self.opening.is_none() {
            self.opening = found.filter(|it| it.1).map(|it| (address, it.0));
        }
        self.turn(address, row);
        self.start.get_or_insert(address);
        if row.line == 0 {
            self.unstated.push(address);
        } else if row.is_statement {
            self.stated.push(address);
        }
    }

    /// All rows have been read.
    pub(super) fn sort(&mut self) {
        self.stated.sort_unstable();
        let unstated = std::mem::take(&mut self.unstated).into_iter();
        let blocks = unstated.filter_map(|address| self.find(Address(address)));
        self.common = blocks.collect();
        self.common.sort_unstable();
        self.common.dedup();
        let (stated, blocks) = (&self.stated, self.blocks);
        self.common
            .retain(|block| !has_any(stated, blocks[*block as usize]));
    }

    /// A sequence ends.
    pub(super) fn end(&mut self, address: u64) {
        self.before = None;
        let start = self.start.take();
        let sequence = start.and_then(|start| Range::new(Address(start), Address(address)));
        self.sequences.extend(sequence);
    }

    /// Notes whether a block begins with another line than that of the row before. Code of no line in between is in nobody's way.
    fn turn(&mut self, address: u64, row: Row) {
        if row.line == 0 {
            return;
        }
        let line = (row.file, row.line);
        let turned = self.before.replace(line) != Some(line);
        let Some(block) = self.beginning_at(address) else {
            return;
        };
        match self.turned.last_mut().filter(|last| last.0 == block) {
            Some(last) => last.1 = turned,
            None => self.turned.push((block, turned)),
        }
    }

    /// Notes what is stated, and says whether it is at the first byte of a block.
    fn state(&mut self, address: u64, row: Row) -> Option<(Stating, bool)> {
        let line = u32::try_from(row.line).ok().filter(|&line| line != 0);
        let line = line.filter(|_| row.is_statement)?;
        let block = self.find(Address(address))?;
        let found = (block, row.file, line);
        if self.found.last() != Some(&found) {
            self.found.push(found);
        }
        let start = self.blocks.get(block as usize)?.start().0;
        Some((found, start == address))
    }

    /// Notes a call whose body is entered at some place; says in which block that is.
    pub(super) fn enter(&mut self, call: &Call) -> Option<u32> {
        let block = self.find(Address(call.address));
        let found = call.place.and_then(|(file, line)| {
            let row = Row {
                file,
                line,
                is_statement: true,
            };
            self.state(call.address, row)
        });
        self.entered.extend(found.filter(|it| it.1).map(|it| it.0));
        if let Some(copies) = &mut self.copies {
            if let Some((stating, _)) = found {
                copies.add_statement(call.address, stating);
            }
            copies.add_call(call);
        }
        block
    }

    /// All calls have been entered of which these are the functions.
    pub(super) fn settle(&mut self, functions: &Found, path: impl Fn(u64) -> String) {
        if let Some(copies) = &mut self.copies {
            copies.settle(functions, path);
        }
    }

    pub(super) fn beginning_at(&mut self, address: u64) -> Option<u32> {
        let block = self.find(Address(address))?;
        let start = self.blocks.get(block as usize)?.start();
        (start.0 == address).then_some(block)
    }

    /// Passes on the blocks in which there is code of a body that has this range, and whether they are sure to run only if that does.
    /// One that begins before it runs it as well, if something of it is stated there.
    pub(super) fn pieces(&self, range: Range, is_whole: bool, pass: &mut impl FnMut(Blocks, bool)) {
        if range.is_empty() {
            return;
        }
        let within = self.within(range);
        let before = within.start.checked_sub(1);
        let before = before.zip(before.and_then(|at| self.blocks.get(at as usize)));
        if let Some((at, block)) = before.filter(|(_, block)| block.end() > range.start()) {
            let end = block.end().min(range.end());
            let shared = Range::new(range.start(), end);
            let is_stated = shared.is_some_and(|shared| has_any(&self.stated, shared));
            pass(at..at + 1, is_stated);
        }
        let first = self.common.partition_point(|block| *block < within.start);
        let mut start = within.start;
        let common = self.common[first..].iter();
        for &block in common.take_while(|it| within.contains(it)) {
            pass(start..block, is_whole);
            pass(block..block + 1, false);
            start = block + 1;
        }
        pass(start..within.end, is_whole);
    }

    /// The blocks that begin in a range.
    fn within(&self, range: Range) -> Blocks {
        let number = |address: Address| {
            let before = self.blocks.partition_point(|it| it.start() < address);
            u32::try_from(before).unwrap_or(u32::MAX)
        };
        number(range.start())..number(range.end())
    }

    fn find(&mut self, address: Address) -> Option<u32> {
        let is_near = |at: usize| {
            let after_last = at == 0 || self.blocks[at - 1].end() <= address;
            after_last && self.blocks.get(at).is_none_or(|it| address < it.end())
        };
        let near = [self.near, self.near + 1]
            .into_iter()
            .find(|&at| at <= self.blocks.len() && is_near(at));
        self.near = near.unwrap_or_else(|| self.blocks.partition_point(|it| it.end() <= address));
        let block = self.blocks.get(self.near)?;
        block
            .contains(address)
            .then(|| u32::try_from(self.near).ok())?
    }

    pub(super) fn finish(self, path: impl Fn(u64) -> String) -> Stated {
        let mut files: Vec<u64> = self.found.iter().map(|&(_, file, _)| file).collect();
        files.sort_unstable();
        files.dedup();
        let turned = match self.by_gnu {
            true if self.is_plain => Vec::new(),
            true => {
                let all = self.sequences.iter();
                all.map(|sequence| self.within(*sequence)).collect()
            }
            false => {
                let turned = self.turned.iter().filter(|it| it.1);
                turned.map(|it| it.0..it.0 + 1).collect()
            }
        };
        Stated {
            files: files.into_iter().map(|file| (file, path(file))).collect(),
            copies: self.copies.map(Copies::finish).unwrap_or_default(),
            found: self.found,
            begun: self.begun,
            entered: self.entered,
            turned,
        }
    }
}

/// What one program states, by file.
pub(super) struct Stated {
    pub(super) files: Vec<(u64, String)>,
    pub(super) found: Vec<Stating>,
    pub(super) copies: Vec<(Stating, Entered)>,
    pub(super) begun: Vec<Stating>,
    pub(super) entered: Vec<Stating>,
    pub(super) turned: Vec<Blocks>,
}
