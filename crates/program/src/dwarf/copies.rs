//! In which copy of a function's body each statement is, where copies were put in place of calls.
//!
//! DWARF 5 §3.3.8.2: bodies lie in each other as the calls did. Compilers mix the instructions of a call with those of the body, and
//! GCC has statements of either within the other's ranges, or of one copy within the next. So a statement is in a copy if the body
//! around it, the innermost if there are several, is of the function to which its line belongs: that which is declared nearest
//! before it, of all functions that the unit tells of. Others are in none. A copy is told from others by where it is entered, so that two units
//! that tell of the same code tell of the same copies. O(m log m) in rows and bodies, and in how deep these lie in each other.

use super::inlined::Call;
use super::origin::Found;
use super::statements::Stating;
use crate::{Address, Range};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A copy of a body, by where it is entered; `None` for what is in no body that was put in place of a call.
pub(super) type Entered = Option<Address>;

/// Bodies around a statement that are looked at, at most.
const DEEPEST: usize = 64;

/// Statements and bodies of one unit.
#[derive(Default)]
pub(super) struct Copies {
    statements: Vec<(Address, Stating)>,
    /// In the order of their entries: what lies in another comes behind it.
    bodies: Vec<Body>,
    settled: Vec<(Stating, Entered)>,
}

struct Body {
    range: Range,
    entered: Address,
    /// Of which of the unit's functions.
    function: u32,
}

impl Copies {
    pub(super) fn add_statement(&mut self, address: u64, stating: Stating) {
        self.statements.push((Address(address), stating));
    }

    pub(super) fn add_call(&mut self, call: &Call) {
        let body = |range: &Range| {
            Some(Body {
                range: *range,
                entered: Address(call.address),
                function: call.function?,
            })
        };
        let ranges = call.ranges.iter().filter(|range| !range.is_empty());
        self.bodies.extend(ranges.filter_map(body));
    }

    /// All statements, each once in each copy.
    pub(super) fn finish(mut self) -> Vec<(Stating, Entered)> {
        self.settled.sort_unstable();
        self.settled.dedup();
        self.settled
    }

    /// Finds out in which of the bodies that were added each statement is, given the unit's functions and the paths of its files.
    pub(super) fn settle(&mut self, functions: &Found, path: impl Fn(u64) -> String) {
        let mut declared = Declarations::of(functions, path);
        self.statements.sort_by_key(|it| it.0);
        let outer_first = |body: &Body| (body.range.start(), Reverse(body.range.end()));
        self.bodies.sort_by_key(outer_first);
        let mut bodies = self.bodies.drain(..).peekable();
        let mut open: Vec<Body> = Vec::new();
        for &(address, stating) in &self.statements {
            while let Some(body) = bodies.next_if(|body| body.range.start() <= address) {
                open.push(body);
            }
            while open.pop_if(|body| body.range.end() <= address).is_some() {}
            let (_, file, line) = stating;
            let around = open.iter().rev().take(DEEPEST);
            let mut around = around.filter(|body| body.range.end() > address);
            let owner = declared.before(file, line);
            let own =
                around.find(|body| owner.as_ref().is_some_and(|it| it.is_of(functions, body)));
            self.settled.push((stating, own.map(|body| body.entered)));
        }
    }
}

/// Where functions are declared.
struct Declarations<'f, P> {
    /// By path: lines, ascending.
    by_path: FxHashMap<&'f str, Vec<u32>>,
    path: P,
    /// The paths of files, as they are numbered, that are among these.
    known: FxHashMap<u64, Option<&'f str>>,
}

/// Where one is.
struct Declaration<'f> {
    path: &'f str,
    line: u32,
}

impl Declaration<'_> {
    fn is_of(&self, functions: &Found, body: &Body) -> bool {
        let function = functions.functions.get(body.function as usize);
        function.is_some_and(|it| it.line == self.line && it.file == self.path)
    }
}

impl<'f, P: Fn(u64) -> String> Declarations<'f, P> {
    fn of(functions: &'f Found, path: P) -> Self {
        let mut by_path: FxHashMap<&str, Vec<u32>> = FxHashMap::default();
        for function in &functions.functions {
            by_path
                .entry(&function.file)
                .or_default()
                .push(function.line);
        }
        for lines in by_path.values_mut() {
            lines.sort_unstable();
        }
        Self {
            by_path,
            path,
            known: FxHashMap::default(),
        }
    }

    /// The nearest declaration before this line.
    fn before(&mut self, file: u64, line: u32) -> Option<Declaration<'f>> {
        let (by_path, path) = (&self.by_path, &self.path);
        let known = self.known.entry(file);
        let find = || by_path.get_key_value(path(file).as_str()).map(|it| *it.0);
        let path = (*known.or_insert_with(find))?;
        let lines = self.by_path.get(path)?;
        let before = lines.partition_point(|it| *it <= line).checked_sub(1)?;
        let line = *lines.get(before)?;
        Some(Declaration { path, line })
    }
}
