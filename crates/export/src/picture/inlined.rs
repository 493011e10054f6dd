//! Functions whose bodies were put in place of calls: they were entered where such a body was, too.
//!
//! A function of the source is one, whether compilers kept code of its own, put it where it was called, or both: what all of
//! them have in common is the [name in the source](source_name).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tomo_profile::merge::Finding;
use tomo_program::{demangle, source_name, without_parameters};

use super::{Copies, Line, Totals};

/// A function with bodies in one module.
pub(super) struct Bodies {
    pub(super) name: Box<str>,
    /// Where it is declared.
    pub(super) line: u32,
    /// Whether any of them was entered.
    pub(super) entered: Finding,
    /// Whether any process was observed with the module.
    pub(super) observed: bool,
}

/// Adds what is known of bodies to the functions of their file; those without code of their own are added themselves.
pub(super) fn add(functions: &mut Vec<Copies>, bodies: Vec<Bodies>) {
    let own = Own::of(functions);
    let mut others: BTreeMap<(u32, String), (Box<str>, Finding)> = BTreeMap::new();
    // Where nothing ran nothing is known, which takes nothing of what others tell.
    let (observed, unobserved): (Vec<_>, Vec<_>) = bodies.into_iter().partition(|it| it.observed);
    for body in observed {
        match own.find(functions, &body) {
            Some(at) => functions[at].enter(body.entered),
            None => {
                let other = others.entry(body.place());
                let other = other.or_insert_with(|| (body.name, Finding::default()));
                other.1 = other.1.or(body.entered);
            }
        }
    }
    for body in unobserved {
        if own.find(functions, &body).is_none() {
            let other = others.entry(body.place());
            other.or_insert_with(|| (body.name, Finding::Unknown));
        }
    }
    let others = others.into_iter();
    functions.extend(others.map(|((line, _), (name, entered))| Copies {
        of: Vec::new(),
        title: demangle(&name).unwrap_or_else(|| name.to_string()),
        name: Some(name),
        line,
        entered,
        totals: Totals {
            functions: [entered].into_iter().collect(),
            ..Totals::default()
        },
    }));
}

impl Bodies {
    fn place(&self) -> (u32, String) {
        (self.line, source_name(&self.name).into_owned())
    }
}

/// Functions begin where they are declared; gives those of which that is no line with code the first that is one, if they have any: no
/// further than to the next function.
pub(super) fn place(functions: &mut [Copies], lines: &[Line]) {
    let mut starts: Vec<u32> = functions.iter().map(|one| one.line).collect();
    starts.sort_unstable();
    for one in functions.iter_mut().filter(|one| one.line > 0) {
        let next = starts.get(starts.partition_point(|start| *start <= one.line));
        let at = lines.partition_point(|line| line.number < one.line);
        let first = lines.get(at).map(|line| line.number);
        if let Some(first) = first.filter(|first| next.is_none_or(|next| first < next)) {
            one.line = first;
        }
    }
}

/// Functions with code of their own.
struct Own {
    /// By name in the source.
    by_name: FxHashMap<String, usize>,
    by_line: FxHashMap<u32, Vec<usize>>,
    /// How long the name of each is for people, without parameters.
    lengths: Vec<usize>,
}

impl Own {
    fn of(functions: &[Copies]) -> Self {
        let (mut by_name, mut by_line) = (FxHashMap::default(), FxHashMap::default());
        for (at, one) in functions.iter().enumerate() {
            let all: &mut Vec<usize> = by_line.entry(one.line).or_default();
            all.push(at);
            let Some(name) = one.name.as_deref() else {
                continue;
            };
            by_name.entry(source_name(name).into_owned()).or_insert(at);
        }
        let length = |one: &Copies| without_parameters(&one.title).len();
        Self {
            by_name,
            by_line,
            lengths: functions.iter().map(length).collect(),
        }
    }

    /// The one that a body is of. GCC states no linkage name of what other units cannot call.
    fn find(&self, functions: &[Copies], body: &Bodies) -> Option<usize> {
        if let Some(at) = self.by_name.get(source_name(&body.name).as_ref()) {
            return Some(*at);
        }
        let there = self.by_line.get(&body.line)?.iter().copied();
        let title = |at: usize| &functions[at].title[..self.lengths[at]];
        let mut called = there.filter(|at| ends_with(title(*at), &body.name));
        called.next().filter(|_| called.next().is_none())
    }
}

/// Whether this is the last part of a function's name for people, without parameters.
fn ends_with(title: &str, name: &str) -> bool {
    let before = title.strip_suffix(name);
    before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

impl Copies {
    fn enter(&mut self, entered: Finding) {
        self.entered = self.entered.or(entered);
        self.totals.functions = [self.entered].into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::without_parameters;

    fn ends_with(title: &str, name: &str) -> bool {
        super::ends_with(without_parameters(title), name)
    }

    #[test]
    fn names_without_their_scopes_are_known() {
        let title = "(anonymous namespace)::Visitor::operator()(int) const";
        assert!(ends_with(title, "operator()"));
        assert!(ends_with("ns::depth<3>(int)", "depth<3>"));
        assert!(ends_with("plain", "plain"));
        assert!(!ends_with("ns::undo(int)", "do"));
        assert!(!ends_with("ns::f(ns::g)", "g"));
    }
}
