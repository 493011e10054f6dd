//! In which copy of a function's body each statement is, where copies were put in place of calls.
//!
//! DWARF 5 §3.3.8.2: bodies lie in each other as the calls did. Compilers mix the instructions of a call with those of the body, and
//! GCC has statements of either within the other's ranges, or of one copy within the next. So a statement is in a copy if the body
//! around it, the innermost if there are several, is of the function to which its line belongs: that which is declared nearest
//! before it, of all functions that the unit tells of; behind a closure, or what else is declared within another function, that may be the one
//! before. Others are in none. A copy is told from others by where it is entered, so that two units
//! that tell of the same code tell of the same copies. O(m log m) in rows and bodies, and in how deep these lie in each other.

use super::inlined::Call;
use super::origin::Found;
use super::statements::Stating;
use crate::{Address, Range};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A copy of a body, by where it is entered; `None` for what is in no body that was put in place of a call.
pub(super) type Entered = Option<Address>;

/// Bodies around a statement that are looked at, at most, and declarations before its line.
const DEEPEST: usize = 64;
const CLOSURES: usize = 8;

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
            let around = around.filter(|body| body.range.end() > address);
            let own = declared.before(file, line).find_map(|declaration| {
                let mut around = around.clone();
                around.find(|body| declaration.is_of(functions, body))
            });
            self.settled.push((stating, own.map(|body| body.entered)));
        }
    }
}

/// Where functions are declared.
struct Declarations<'f, P> {
    /// By path: lines, ascending, and whether what is declared there is within another function.
    by_path: FxHashMap<&'f str, Vec<(u32, bool)>>,
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
        let mut by_path: FxHashMap<&str, Vec<(u32, bool)>> = FxHashMap::default();
        for function in &functions.functions {
            let lines = by_path.entry(&function.file).or_default();
            lines.push((function.line, is_within(&function.name)));
        }
        for lines in by_path.values_mut() {
            // Of those of one line what is within no other comes first.
            lines.sort_unstable();
            lines.dedup_by_key(|it| it.0);
        }
        Self {
            by_path,
            path,
            known: FxHashMap::default(),
        }
    }

    /// The nearest declaration before this line, and the ones before that as long as all behind them are within other functions.
    fn before(&mut self, file: u64, line: u32) -> impl Iterator<Item = Declaration<'f>> {
        let (by_path, path) = (&self.by_path, &self.path);
        let known = self.known.entry(file);
        let find = || by_path.get_key_value(path(file).as_str()).map(|it| *it.0);
        let found = known.or_insert_with(find).and_then(|path| {
            let lines = self.by_path.get(path)?;
            let before = lines.partition_point(|it| it.0 <= line);
            Some((path, lines.get(..before)?))
        });
        let (path, lines) = found.unwrap_or_default();
        let mut goes_on = true;
        let nearest = lines.iter().rev().take(CLOSURES);
        let nearest = nearest.take_while(move |it| std::mem::replace(&mut goes_on, it.1));
        nearest.map(move |&(line, _)| Declaration { path, line })
    }
}

/// Whether a function of this name is within another one: closures of Rust, mangled or not, and what the names of C++ have in a function (Itanium
/// C++ ABI, `<local-name>`).
fn is_within(name: &str) -> bool {
    let is_rust = name.starts_with("_R") && name.contains("NC");
    is_rust || name.starts_with("_ZZ") || name.contains("closure")
}

#[cfg(test)]
mod tests {
    use super::{Copies, Entered};
    use crate::dwarf::inlined::Call;
    use crate::dwarf::origin::{Declared, Found};
    use crate::{Address, Range};

    fn found(functions: &[(&str, u32)]) -> Found {
        let declared = functions.iter().map(|(name, line)| Declared {
            name: (*name).into(),
            file: "a".into(),
            line: *line,
        });
        Found {
            functions: declared.collect(),
            ..Found::default()
        }
    }

    /// In which copies the line is that is stated at these addresses, each in a block of its own.
    fn copies(functions: &[(&str, u32)], bodies: &[(u64, u64, u32)], line: u32) -> Vec<Entered> {
        let mut copies = Copies::default();
        for &(start, length, function) in bodies {
            copies.add_call(&Call {
                address: start,
                is_stated: true,
                ranges: vec![Range::sized(Address(start), length).expect("small")],
                place: None,
                function: Some(function),
            });
        }
        for at in 0..4_u32 {
            copies.add_statement(u64::from(at) * 10, (at, 1, line));
        }
        copies.settle(&found(functions), |_| "a".into());
        copies.finish().into_iter().map(|it| it.1).collect()
    }

    #[test]
    fn statements_are_in_the_copy_of_their_own_function() {
        let functions = [("outer", 10), ("inner", 20)];
        // One body, in it another one from 10 on, and a second one from 30 on.
        let bodies = [(0, 30, 0), (10, 10, 1), (30, 10, 1)];
        let at = |address: u64| Some(Address(address));
        assert_eq!(
            copies(&functions, &bodies, 25),
            [None, at(10), None, at(30)]
        );
        assert_eq!(copies(&functions, &bodies, 15), [at(0), at(0), at(0), None]);
        assert_eq!(copies(&functions, &bodies, 5), [None; 4]);
    }

    #[test]
    fn what_is_behind_a_closure_is_in_the_function_around_it() {
        let bodies = [(0, 40, 0), (10, 10, 1)];
        let at = |address: u64| Some(Address(address));
        for (closure, behind) in [
            ("_ZN1m5twice28_$u7b$$u7b$closure$u7d$$u7d$17h0E", at(0)),
            ("_RNCNvC1m5twice0B3_", at(0)),
            ("_ZZ5twiceiENKUliE_clEi", at(0)),
            ("other", None),
        ] {
            let functions = [("twice", 10), (closure, 20)];
            let expected = [behind, at(10), behind, behind];
            assert_eq!(copies(&functions, &bodies, 25), expected, "{closure}");
        }
    }
}
