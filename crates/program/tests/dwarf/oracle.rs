//! The functions of a program as `readelf` (binutils) shows its debug information: another reader, and
//! the rules written down as the DWARF specification has them.

use crate::build::tool;
use std::collections::BTreeMap;
use std::path::Path;
use tomo_program::dwarf::ResultKind;

#[derive(Debug, Default)]
struct Entry {
    tag: String,
    unit: u64,
    attributes: BTreeMap<String, String>,
}

/// A function with code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) entry: u64,
    /// Unless its code is in several ranges.
    pub(crate) end: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) result: ResultKind,
    pub(crate) noreturn: bool,
}

/// All entries of `.debug_info`, by offset.
pub(crate) struct Entries(BTreeMap<u64, Entry>);

/// Reads the program's functions, by entry.
pub(crate) fn functions(program: &Path) -> BTreeMap<u64, Function> {
    let entries = Entries::of(program);
    let symbols = symbols(program);
    let mut functions = BTreeMap::new();
    for entry in entries
        .0
        .values()
        .filter(|it| it.tag == "DW_TAG_subprogram")
    {
        let name = entries.inherited(entry, "DW_AT_linkage_name");
        let name = name
            .or_else(|| entries.inherited(entry, "DW_AT_name"))
            .map(text);
        let Some((start, end)) = code(entry, name.as_deref(), &symbols) else {
            continue;
        };
        if start == 0 {
            continue;
        }
        let noreturn = entries.inherited(entry, "DW_AT_noreturn").is_some();
        let (result, never) = entries.result(entry);
        let noreturn = noreturn || never;
        functions.insert(
            start,
            Function {
                entry: start,
                end,
                name,
                result,
                noreturn,
            },
        );
    }
    functions
}

/// Where a function's code starts, and where it ends if it is in one piece. (The range lists that
/// binutils 2.40 shows are not all there are, so those functions are entered where their symbol is.)
fn code(
    entry: &Entry,
    name: Option<&str>,
    symbols: &BTreeMap<String, u64>,
) -> Option<(u64, Option<u64>)> {
    if entry.attributes.contains_key("DW_AT_ranges") {
        return Some((*symbols.get(name?)?, None));
    }
    let low = entry.attributes.get("DW_AT_low_pc")?;
    let low = number(low.rsplit_once("): ").map_or(low, |(_, address)| address))?;
    let high = number(entry.attributes.get("DW_AT_high_pc")?)?;
    // Before DWARF 4 it is an address.
    Some((low, Some(if high >= low { high } else { low + high })))
}

/// The addresses of symbols, by name.
fn symbols(program: &Path) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let (address, rest) = line.split_once(' ')?;
        Some((
            rest.get(2..)?.to_owned(),
            u64::from_str_radix(address, 16).ok()?,
        ))
    };
    tool("nm", &["--defined-only"], program)
        .lines()
        .filter_map(line)
        .collect()
}

impl Entries {
    fn of(program: &Path) -> Self {
        let mut entries: BTreeMap<u64, Entry> = BTreeMap::new();
        let mut unit = 0;
        let mut current = 0;
        for line in tool("readelf", &["--debug-dump=info"], program).lines() {
            let line = line.trim_start();
            if let Some(offset) = line.strip_prefix("Compilation Unit @ offset ") {
                unit = number(offset.trim_end_matches(':')).expect("a unit's offset");
            } else if let Some((place, tag)) = line.split_once(" (DW_TAG_")
                && place.contains(">: Abbrev Number: ")
            {
                let offset = place.split(['<', '>']).nth(3).expect("an entry's offset");
                current = u64::from_str_radix(offset, 16).expect("an entry's offset");
                let tag = format!("DW_TAG_{}", tag.trim_end_matches(')'));
                entries.insert(
                    current,
                    Entry {
                        tag,
                        unit,
                        ..Entry::default()
                    },
                );
            } else if let Some((_, attribute)) = line.split_once(">   DW_AT_")
                && let Some((name, value)) = attribute.split_once(':')
            {
                let name = format!("DW_AT_{}", name.trim());
                let entry = entries
                    .get_mut(&current)
                    .expect("attributes follow an entry");
                entry.attributes.insert(name, value.trim().to_owned());
            }
        }
        Self(entries)
    }

    /// The attribute of an entry, or of the one that it completes or is an instance of.
    fn inherited<'e>(&'e self, entry: &'e Entry, name: &str) -> Option<&'e str> {
        self.chain(entry)
            .iter()
            .find_map(|it| it.attributes.get(name))
            .map(String::as_str)
    }

    fn chain<'e>(&'e self, entry: &'e Entry) -> Vec<&'e Entry> {
        let mut chain = vec![entry];
        loop {
            let last = chain[chain.len() - 1];
            let origin = last.attributes.get("DW_AT_abstract_origin");
            let Some(origin) = origin.or_else(|| last.attributes.get("DW_AT_specification")) else {
                return chain;
            };
            chain.push(&self.0[&reference(origin)]);
        }
    }

    /// What a function returns, and whether that is Rust's `!`.
    fn result(&self, entry: &Entry) -> (ResultKind, bool) {
        let mut stated = self.inherited(entry, "DW_AT_type");
        if stated.is_none() {
            let last = self.chain(entry).pop().expect("the entry itself");
            let known = self.states_results(last.unit);
            return (
                if known {
                    ResultKind::Void
                } else {
                    ResultKind::Unknown
                },
                false,
            );
        }
        while let Some(at) = stated {
            let of = &self.0[&reference(at)];
            let name = of.attributes.get("DW_AT_name").map(|name| text(name));
            match (of.tag.as_str(), name.as_deref()) {
                ("DW_TAG_typedef" | "DW_TAG_const_type", _) => {
                    stated = of.attributes.get("DW_AT_type").map(String::as_str);
                }
                ("DW_TAG_base_type", Some("!")) => return (ResultKind::Void, true),
                ("DW_TAG_unspecified_type", Some("auto")) => return (ResultKind::Unknown, false),
                _ => return (ResultKind::Value, false),
            }
        }
        (ResultKind::Void, false)
    }

    /// Whether a unit has any function's type, or just line tables.
    fn states_results(&self, unit: u64) -> bool {
        let functions = ["DW_TAG_subprogram", "DW_TAG_formal_parameter"];
        self.0
            .values()
            .filter(|it| it.unit == unit && functions.contains(&it.tag.as_str()))
            .any(|it| {
                let has = |name| it.attributes.contains_key(name);
                has("DW_AT_type") || (has("DW_AT_prototyped") && !has("DW_AT_declaration"))
            })
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.split_whitespace().next()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The entry that `<0x123>` is about.
fn reference(text: &str) -> u64 {
    let digits = text
        .split(['<', '>'])
        .nth(1)
        .expect("a reference")
        .trim_start_matches("alt ");
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).expect("an offset")
}

/// The text behind `(indirect string, offset: 0x1): text`.
fn text(shown: &str) -> String {
    let is_indirect = shown.starts_with("(ind");
    let text = shown
        .split_once("): ")
        .filter(|_| is_indirect)
        .map_or(shown, |(_, text)| text);
    text.to_owned()
}
