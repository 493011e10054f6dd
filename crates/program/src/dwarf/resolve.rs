//! From subprogram entries to functions: follows abstract origins and specifications, and joins what
//! is said of one function in several places.
//!
//! DWARF 5 §3.3.8.2: an out-of-line instance owns what is particular to it (its code) and refers to
//! the abstract instance for the rest, which may stand in another unit (link-time optimisation), and
//! may itself complete a declaration (§2.13.2).

use super::results::{Stated, Types};
use super::subprogram::{Subprogram, UnitFunctions};
use super::troubles::Troubles;
use super::unit::Context;
use super::{DebugFunction, DebugInfo, Prototype, ResultKind};
use gimli::{DebugInfoOffset, Section};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Instance, abstract instance, definition, declaration: no chain is longer than a few.
const MOST_STEPS: usize = 16;

/// Follows all references. `units` are those of `context`, in the same order.
pub(super) fn resolve<'a>(
    context: &Context<'a>,
    units: &[UnitFunctions<'a>],
    troubles: &mut Troubles,
) -> DebugInfo {
    let resolver = Resolver {
        context,
        units,
        foreign: foreign_types(context, units),
    };
    let whole: Vec<Vec<Whole<'_>>> = units
        .par_iter()
        .enumerate()
        .map(|(index, unit)| {
            unit.subprograms
                .iter()
                .map(|it| resolver.whole(index, it))
                .collect()
        })
        .collect();
    let mut names = Names::new(context);
    let mut info = DebugInfo::default();
    for whole in whole.iter().flatten() {
        declare(&mut info.external, whole, &mut names);
    }
    let mut defined: Vec<&Whole<'_>> = whole
        .iter()
        .flatten()
        .filter(|it| it.code.entry.is_some())
        .collect();
    // Stable, so that of several functions with one entry the first in the file comes first.
    defined.sort_by_key(|it| it.code.entry);
    for one in defined.chunk_by(|a, b| a.code.entry == b.code.entry) {
        info.functions.extend(join(one, &mut names));
    }
    if names.left_out > 0 {
        let what = "the names of all functions together are impossibly long, some are left out";
        troubles.add(".debug_info", 0, what, &names.left_out);
    }
    info
}

/// A subprogram with all that it refers to.
struct Whole<'a> {
    code: &'a Subprogram<'a>,
    name: Option<&'a [u8]>,
    linkage_name: Option<&'a [u8]>,
    is_external: bool,
    is_global: bool,
    prototype: Prototype,
}

impl<'a> Whole<'a> {
    fn called(&self) -> Option<&'a [u8]> {
        self.linkage_name.or(self.name)
    }
}

struct Resolver<'r, 'a> {
    context: &'r Context<'a>,
    units: &'r [UnitFunctions<'a>],
    foreign: FxHashMap<usize, Stated>,
}

impl<'r> Resolver<'r, '_> {
    fn whole(&self, unit: usize, code: &'r Subprogram<'r>) -> Whole<'r> {
        let mut whole = Whole {
            code,
            name: code.name,
            linkage_name: code.linkage_name,
            is_external: code.is_external,
            is_global: code.is_global,
            prototype: Prototype {
                result: ResultKind::Unknown,
                noreturn: code.noreturn,
            },
        };
        let mut result = code.result;
        let mut last = Some((unit, code));
        let mut steps = 0;
        while let Some(origin) = last.and_then(|(_, it)| it.origin) {
            steps += 1;
            last = self.find(origin).filter(|_| steps < MOST_STEPS);
            let Some((_, it)) = last else { break };
            whole.name = whole.name.or(it.name);
            whole.linkage_name = whole.linkage_name.or(it.linkage_name);
            whole.is_external |= it.is_external;
            // A method's definition stands outside of its class.
            whole.is_global &= it.is_global;
            whole.prototype.noreturn |= it.noreturn;
            if result == Stated::Nothing {
                result = it.result;
            }
        }
        let states_results = last.is_some_and(|(unit, _)| self.units[unit].states_results);
        self.conclude(&mut whole.prototype, result, states_results);
        whole
    }

    fn find(&self, offset: DebugInfoOffset) -> Option<(usize, &'r Subprogram<'r>)> {
        let (index, _) = self.context.unit_of(offset)?;
        let subprograms = &self.units[index].subprograms;
        let found = subprograms
            .binary_search_by_key(&offset.0, |it| it.offset.0)
            .ok()?;
        Some((index, &subprograms[found]))
    }

    fn conclude(&self, prototype: &mut Prototype, mut result: Stated, states_results: bool) {
        if let Stated::Elsewhere(offset) = result {
            result = self
                .foreign
                .get(&offset.0)
                .copied()
                .unwrap_or(Stated::Unclear);
        }
        prototype.noreturn |= result == Stated::Never;
        prototype.result = match result {
            Stated::Nothing if states_results => ResultKind::Void,
            Stated::Nothing | Stated::Unclear | Stated::Elsewhere(_) => ResultKind::Unknown,
            Stated::Void | Stated::Never => ResultKind::Void,
            Stated::Value => ResultKind::Value,
        };
    }
}

/// The types that units refer to in other units.
fn foreign_types(context: &Context<'_>, units: &[UnitFunctions<'_>]) -> FxHashMap<usize, Stated> {
    let mut offsets: Vec<usize> = units
        .iter()
        .flat_map(|unit| &unit.subprograms)
        .filter_map(|it| match it.result {
            Stated::Elsewhere(offset) => Some(offset.0),
            _ => None,
        })
        .collect();
    offsets.sort_unstable();
    offsets.dedup();
    let unit_of = |offset: &usize| {
        context
            .unit_of(DebugInfoOffset(*offset))
            .map(|(unit, _)| unit)
    };
    let groups: Vec<&[usize]> = offsets.chunk_by(|a, b| unit_of(a) == unit_of(b)).collect();
    groups
        .into_par_iter()
        .flat_map_iter(|group| types_of_one_unit(context, group))
        .collect()
}

fn types_of_one_unit(context: &Context<'_>, offsets: &[usize]) -> Vec<(usize, Stated)> {
    let unit = offsets
        .first()
        .and_then(|&offset| context.unit_of(DebugInfoOffset(offset)));
    let Some(open) = unit.and_then(|(unit, _)| context.open(context.headers[unit]).ok()) else {
        return Vec::new();
    };
    let mut types = Types::new(context, &open);
    let mut stated = |&offset: &usize| {
        let at = DebugInfoOffset(offset).to_unit_offset(&open.unit.header);
        (offset, at.map_or(Stated::Unclear, |at| types.at(at)))
    };
    offsets.iter().map(&mut stated).collect()
}

/// Adds what callers in other files are told.
fn declare(external: &mut FxHashMap<String, Prototype>, it: &Whole<'_>, names: &mut Names) {
    let name = it.linkage_name.or(it.name.filter(|_| it.is_global));
    let Some(name) = name.filter(|_| it.is_external) else {
        return;
    };
    if let Ok(name) = std::str::from_utf8(name)
        && let Some(known) = external.get_mut(name)
    {
        *known = known.and(it.prototype);
    } else if let Some(name) = names.take(name) {
        external.insert(name, it.prototype);
    }
}

/// Makes one function of all that have the same entry: one function seen in several units, or several
/// that the linker folded into one.
fn join(all: &[&Whole<'_>], names: &mut Names) -> Option<DebugFunction> {
    let first = all.first()?;
    let name = all.iter().find_map(|it| it.called());
    let mut prototype = first.prototype;
    for it in &all[1..] {
        let is_same = it.called().is_none() || it.called() == name;
        prototype = if is_same {
            prototype.and(it.prototype)
        } else {
            prototype.or(it.prototype)
        };
    }
    Some(DebugFunction {
        entry: first.code.entry?,
        ranges: first.code.ranges.clone(),
        name: name.and_then(|name| names.take(name)),
        prototype,
    })
}

/// Makes names, but not more bytes of them than the sections could sensibly have meant: many
/// subprograms may refer to one long text.
struct Names {
    budget: usize,
    left_out: usize,
}

impl Names {
    /// A name is long because it is of one function; a short one, of many.
    const FREE: usize = 64;

    fn new(context: &Context<'_>) -> Self {
        let sections = [
            context.dwarf.debug_info.reader().len(),
            context.dwarf.debug_str.reader().len(),
            context.dwarf.debug_line_str.reader().len(),
        ];
        Self {
            budget: sections.iter().sum::<usize>().saturating_mul(4),
            left_out: 0,
        }
    }

    fn take(&mut self, name: &[u8]) -> Option<String> {
        match self
            .budget
            .checked_sub(name.len().saturating_sub(Self::FREE))
        {
            Some(rest) => self.budget = rest,
            None => {
                self.left_out += 1;
                return None;
            }
        }
        Some(String::from_utf8_lossy(name).into_owned())
    }
}
