//! What a run showed of predicates, as a table for people and as a document for programs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tomo_export::predicates::{Id, Site, Sources, case_name};
use tomo_export::words::{grouped, notes};
use tomo_wire::predicates::{Kind, Recorded, Told, Width};

use super::Seen;
use crate::saying;

/// Sites with one of their predicates true, a line each; below it what was not seen. Where several sites are at one line of
/// the source each has its address with it.
pub(crate) fn table(seen: &Seen) -> String {
    let mut sources = Sources::default();
    let mut text = String::new();
    let mut at_lines: BTreeMap<String, usize> = BTreeMap::new();
    for line in seen
        .sites
        .sites
        .iter()
        .filter_map(|site| site.line.as_ref())
    {
        *at_lines.entry(line.short()).or_default() += 1;
    }
    for site in &seen.sites.sites {
        let values = values(seen, site);
        if values
            .iter()
            .any(|value| value.is_some_and(|value| value > 0))
        {
            text += &line(seen, site, &at_lines, &mut sources);
        }
    }
    text += &remarks(seen);
    text
}

fn values<'s>(seen: &'s Seen, site: &Site) -> &'s [Option<u64>] {
    let range = site.first..site.first + site.told.len();
    seen.values.get(range).unwrap_or_default()
}

/// A site: what was true of it, and where it is.
fn line(
    seen: &Seen,
    site: &Site,
    at_lines: &BTreeMap<String, usize>,
    sources: &mut Sources,
) -> String {
    let named = (0u8..).zip(values(seen, site));
    let cases: Vec<String> = named
        .filter_map(|(case, value)| {
            let name = case_name(site.kind, case).replace('-', " ");
            match (value, seen.sites.recorded) {
                (None, _) => Some(format!("{name}?")),
                (Some(0), _) => None,
                (Some(_), Recorded::Marks) => Some(name),
                (Some(count), Recorded::Counts) => Some(format!("{name} {}×", grouped(*count))),
            }
        })
        .collect();
    let address = format!("{:#x}", site.address.0);
    let place = match site.line.as_ref().map(|line| line.short()) {
        Some(line) if at_lines.get(&line).is_some_and(|sites| *sites > 1) => {
            format!("{line} {address}")
        }
        Some(line) => line,
        None => address,
    };
    let what = match (site.kind, &site.callee) {
        (Kind::Branch, _) => String::new(),
        (Kind::Result, Some(callee)) => {
            format!("{}() of {} bits: ", saying::name(callee), site.bits)
        }
        (Kind::Result, None) => format!("a call of {} bits: ", site.bits),
    };
    let source = site.line.as_ref().and_then(|line| sources.text(line));
    let source = source.map_or_else(String::new, |text| format!("  | {text}"));
    let function = saying::name(&site.function);
    format!("{place}  {function}  {what}{}{source}\n", cases.join(", "))
}

fn remarks(seen: &Seen) -> String {
    let rows = &seen.sites.rows;
    let told = |told: Told| rows.iter().filter(|row| row.told() == Some(told)).count() as u64;
    let was_true = |value: &&Option<u64>| value.is_some_and(|value| value > 0);
    let text = format!(
        "\n{} of {} predicates were true, of {} sites\n",
        grouped(seen.values.iter().filter(was_true).count() as u64),
        grouped(rows.len() as u64 - told(Told::Unasked)),
        grouped(rows.iter().filter(|row| row.case == 0).count() as u64)
    );
    text + &notes([
        (
            told(Told::BySite),
            "predicate is inferred from others",
            "predicates are inferred from others",
        ),
        (
            told(Told::NoPlace),
            "predicate cannot be observed: no probe fits",
            "predicates cannot be observed: no probe fits",
        ),
        (
            told(Told::Unknown),
            "predicate cannot be observed: too little is known of its function",
            "predicates cannot be observed: too little is known of their functions",
        ),
        (
            told(Told::Unasked),
            "predicate was not asked for",
            "predicates were not asked for",
        ),
        (
            seen.lost,
            "thread was not counted: no memory, disk or right to more counters",
            "threads were not counted: no memory, disk or right to more counters",
        ),
    ])
}

/// Everything, schema tomo.predicates/1.
pub(crate) fn document(seen: &Seen) -> Value {
    let mut sources = Sources::default();
    let sites: Vec<Value> = seen
        .sites
        .sites
        .iter()
        .map(|site| site_value(seen, site, &mut sources))
        .collect();
    json!({
        "schema": "tomo.predicates/1",
        "module": seen.located.path.to_string_lossy(),
        "recorded": match seen.sites.recorded {
            Recorded::Marks => "whether",
            Recorded::Counts => "counts",
        },
        "sites": sites,
        "lost_threads": seen.lost,
    })
}

fn site_value(seen: &Seen, site: &Site, sources: &mut Sources) -> Value {
    let text = site.line.as_ref().and_then(|line| sources.text(line));
    let id = |case| Id {
        kind: site.kind,
        site: site.address.0,
        case,
    };
    let cases = (0u8..).zip(values(seen, site)).zip(&site.told);
    let predicates = cases.map(|((case, value), told)| {
        let value = match seen.sites.recorded {
            Recorded::Marks => json!(value.map(|value| value > 0)),
            Recorded::Counts => json!(value),
        };
        let mut predicate = json!({
            "id": id(Some(case)).to_string(),
            "case": case_name(site.kind, case),
            "true": value,
            "how": how(*told),
        });
        let at = usize::from(case);
        if let (Kind::Branch, Some(way), Some(lead)) =
            (site.kind, site.ways.get(at), site.leads.get(at))
        {
            predicate["to"] = json!(format!("{:#x}", way.0));
            predicate["leads_to"] = json!(lead.as_ref().map(ToString::to_string));
        }
        predicate
    });
    let mut value = json!({
        "id": id(None).to_string(),
        "function": site.function,
        "line": site.line.as_ref().map(ToString::to_string),
        "source": text,
        "block": format!("{:#x}", site.block.0),
        "predicates": predicates.collect::<Vec<_>>(),
    });
    if site.kind == Kind::Result {
        value["callee"] = json!(site.callee);
        value["bits"] = json!(site.bits);
        value["width_by"] = json!(width(site.width));
    }
    value
}

fn how(told: Told) -> &'static str {
    match told {
        Told::Itself => "observed",
        Told::BySite => "inferred",
        Told::Unasked => "not asked for",
        Told::Unknown => "unobservable: too little is known of the function",
        Told::NoPlace => "unobservable: no probe fits",
    }
}

fn width(width: Width) -> &'static str {
    match width {
        Width::None => "none",
        Width::Used => "first use",
        Width::Elsewhere => "use elsewhere",
        Width::Whole => "whole register",
    }
}
