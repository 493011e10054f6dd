//! The comparison of what the analysis says with what a fixture expects.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tomo_program::{Address, Callee, EdgeKind, Facts, Function, Status, analyse};

use crate::build::Built;
use crate::expect::{Expected, Fixture};

/// Builds a fixture and fails, with everything that differs, unless its expectation is met.
pub(crate) fn check(path: &Path) {
    let source = fs::read_to_string(path).expect("the fixture is read");
    let fixture = Fixture::parse(&source);
    assert!(!fixture.functions.is_empty(), "the fixture expects nothing");
    let built = Built::new(path, &fixture.command);
    let mut differences = Vec::new();
    compare(&fixture, &built, &built.bytes(), true, &mut differences);
    let mut bare = Vec::new();
    compare(&fixture, &built, &built.stripped(), false, &mut bare);
    differences.extend(bare.iter().map(|line| format!("stripped: {line}")));
    assert!(
        differences.is_empty(),
        "{}:\n{}",
        path.display(),
        differences.join("\n")
    );
}

fn compare(fixture: &Fixture, built: &Built, file: &[u8], named: bool, out: &mut Vec<String>) {
    let (functions, facts) = analyse(file, &()).expect("the program is analysed");
    for function in &functions {
        is_consistent(function, out);
    }
    for expected in &fixture.functions {
        let entry = Address(built.place(&expected.name));
        let found = functions.iter().find(|function| function.entry == entry);
        let needed = named || fixture.stripped.contains(&expected.name);
        match found {
            Some(function) if expected.status == "absent" => {
                out.push(format!("{} is there: {:?}", expected.name, function.status));
            }
            Some(function) => one(expected, function, built, &facts, out),
            None if needed && expected.status != "absent" => {
                out.push(format!("{} is not found", expected.name));
            }
            None => {}
        }
    }
}

/// What must hold of every graph, whatever the program.
fn is_consistent(function: &Function, out: &mut Vec<String>) {
    let starts: BTreeSet<Address> = function.blocks.iter().map(|b| b.range.start()).collect();
    for pair in function.blocks.windows(2) {
        if pair[0].range.end() > pair[1].range.start() {
            out.push(format!("{}: blocks {pair:?} overlap", function.entry));
        }
    }
    for edge in &function.edges {
        if edge.kind.is_intraprocedural() && !starts.contains(&edge.to) {
            out.push(format!("{}: {edge:?} leads to no block", function.entry));
        }
    }
}

fn one(
    expected: &Expected,
    function: &Function,
    built: &Built,
    facts: &Facts,
    out: &mut Vec<String>,
) {
    let name = &expected.name;
    let is_exact = function.status == Status::Exact;
    let as_expected = match expected.status.as_str() {
        "exact" => is_exact,
        "not exact" => !is_exact,
        "sound" => true,
        status => format!("{:?}", function.status) == status,
    };
    if !as_expected {
        let (found, wanted) = (function.status, &expected.status);
        out.push(format!("{name} is {found:?}, expected {wanted}"));
    }
    if function.returns == expected.never_returns && expected.status != "not exact" {
        out.push(format!("{name}: returns is {}", function.returns));
    }
    if !expected.blocks.is_empty() && (is_exact || expected.status != "sound") {
        compare_graphs(expected, function, built, out);
    }
    for (label, resolution) in &expected.resolutions {
        let at = Address(built.place(label));
        let jump = function
            .indirect_jumps
            .iter()
            .find(|jump| function.blocks[jump.block as usize].range.start() == at);
        let found = jump.map(|jump| format!("{:?}", jump.resolution));
        if found.as_ref() != Some(resolution) {
            out.push(format!("{name}: {label} is resolved by {found:?}"));
        }
    }
    compare_pads(expected, function, built, facts, out);
    if let Some(count) = expected.table {
        let found = table_targets(function);
        if found != count {
            out.push(format!(
                "{name}: {found} targets of tables, expected {count}"
            ));
        }
    }
}

fn table_targets(function: &Function) -> usize {
    let entries = function.edges.iter();
    let entries = entries.filter(|edge| edge.kind == EdgeKind::JumpTable);
    entries.map(|edge| edge.to).collect::<BTreeSet<_>>().len()
}

fn compare_graphs(expected: &Expected, function: &Function, built: &Built, out: &mut Vec<String>) {
    let mut wanted = BTreeSet::new();
    for (block, ways) in &expected.blocks {
        let from = built.place(block);
        wanted.insert(Fact::Block(from));
        for (kind, to) in ways {
            wanted.insert(Fact::Way(from, kind.clone(), built.place(to)));
        }
    }
    let starts = function.blocks.iter().map(|block| block.range.start().0);
    let mut found: BTreeSet<Fact> = starts.map(Fact::Block).collect();
    found.extend(function.edges.iter().map(|edge| {
        let from = function.blocks[edge.from as usize].range.start().0;
        Fact::Way(from, word(edge.kind).to_owned(), edge.to.0)
    }));
    let labels: BTreeMap<u64, &str> = built
        .places
        .iter()
        .map(|(label, address)| (*address, label.as_str()))
        .collect();
    let say = |fact: &Fact| fact.text(&labels);
    let name = &expected.name;
    out.extend(
        wanted
            .difference(&found)
            .map(|fact| format!("{name}: missing {}", say(fact))),
    );
    out.extend(
        found
            .difference(&wanted)
            .map(|fact| format!("{name}: unexpected {}", say(fact))),
    );
}

/// A block by its start, or a way out of it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Block(u64),
    Way(u64, String, u64),
}

impl Fact {
    fn text(&self, labels: &BTreeMap<u64, &str>) -> String {
        let place = |at: &u64| format!("{at:#x} {}", labels.get(at).unwrap_or(&"(no label)"));
        match self {
            Self::Block(at) => format!("block {}", place(at)),
            Self::Way(from, kind, to) => format!("edge {} {kind} {}", place(from), place(to)),
        }
    }
}

fn word(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Fallthrough => "fallthrough",
        EdgeKind::Taken => "taken",
        EdgeKind::NotTaken => "not-taken",
        EdgeKind::Jump => "jump",
        EdgeKind::JumpTable => "jump-table",
        EdgeKind::ComputedGoto => "computed-goto",
        EdgeKind::CallFallthrough => "call-fallthrough",
        EdgeKind::LandingPad => "landing-pad",
        EdgeKind::TailCall => "tail-call",
        EdgeKind::JumpInto => "jump-into",
    }
}

/// Every call of the callees named has a landing pad, and no other call has one.
fn compare_pads(
    expected: &Expected,
    function: &Function,
    built: &Built,
    facts: &Facts,
    out: &mut Vec<String>,
) {
    let Some(wanted) = &expected.pads else { return };
    for call in &function.calls {
        let callee = match call.callee {
            Callee::Function(at) => built.places.iter().find(|place| *place.1 == at.0),
            Callee::Import(_) | Callee::Indirect => None,
        };
        let callee = match call.callee {
            Callee::Import(import) => facts.imports.get(import as usize).map(String::as_str),
            _ => callee.map(|place| place.0.as_str()),
        };
        let has_pad = function
            .edges
            .iter()
            .any(|edge| edge.from == call.block && edge.kind == EdgeKind::LandingPad);
        let wants_pad = callee.is_some_and(|callee| wanted.iter().any(|name| name == callee));
        if has_pad != wants_pad {
            let name = &expected.name;
            let at = call.address;
            out.push(format!(
                "{name}: the call of {callee:?} at {at}: landing pad is {has_pad}"
            ));
        }
    }
}
