//! Graphs for Graphviz: the blocks of one function, or the calls between functions.

use std::collections::BTreeSet;
use std::io::{self, Write};

use tomo_program::{Callee, EdgeKind, EdgeView, FunctionView, Graphs};

/// `text` as a quoted identifier of the dot language.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            letter if letter.is_control() => {
                quoted.extend(letter.escape_unicode().filter(|c| *c != '\\'))
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Writes the control-flow graph of `function`.
pub(crate) fn write_function(out: &mut dyn Write, function: FunctionView<'_>) -> io::Result<()> {
    writeln!(out, "digraph {} {{", quoted(&function.title()))?;
    writeln!(out, "  node [shape=box, fontname=\"monospace\"];")?;
    for block in function.blocks() {
        let source = block.source().map_or(String::new(), |source| {
            format!(
                "\\n{}:{}",
                quoted(short(source.file)).trim_matches('"'),
                source.line
            )
        });
        let shape = if block.address() == function.entry() {
            ", peripheries=2"
        } else {
            ""
        };
        let count = block.instructions();
        writeln!(
            out,
            "  \"{}\" [label=\"{0}\\n{} instructions{source}\"{shape}];",
            block.address(),
            count
        )?;
    }
    for edge in function.edges() {
        write_edge(out, &function, &edge)?;
    }
    writeln!(out, "}}")
}

fn write_edge(out: &mut dyn Write, function: &FunctionView<'_>, edge: &EdgeView) -> io::Result<()> {
    let Some(from) = function.block(edge.from) else {
        return Ok(());
    };
    let style = match edge.kind {
        EdgeKind::Fallthrough | EdgeKind::CallFallthrough => ", style=dashed",
        EdgeKind::LandingPad => ", style=dotted, color=red",
        EdgeKind::TailCall | EdgeKind::JumpInto => ", color=blue",
        _ => "",
    };
    writeln!(
        out,
        "  \"{}\" -> \"{}\" [label=\"{}\"{style}];",
        from.address(),
        edge.address,
        edge.kind.name()
    )
}

/// The last part of a path.
fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Writes the call graph: functions, what they import, calls and tail calls between them.
pub(crate) fn write_calls(out: &mut dyn Write, graphs: &Graphs<'_>) -> io::Result<()> {
    writeln!(out, "digraph calls {{\n  node [shape=box];")?;
    for function in graphs.functions() {
        let node = function.entry();
        writeln!(out, "  \"{node}\" [label={}];", quoted(&function.title()))?;
        let callees: BTreeSet<String> = function
            .calls()
            .filter_map(|call| match call.callee() {
                Callee::Function(entry) => Some(quoted(&entry.to_string())),
                Callee::Import(_) => call.import().map(quoted),
                Callee::Indirect => None,
            })
            .collect();
        for callee in callees {
            writeln!(out, "  \"{node}\" -> {callee};")?;
        }
        let tail_calls = function
            .edges()
            .filter(|edge| edge.kind == EdgeKind::TailCall);
        for target in tail_calls.map(|edge| edge.address).collect::<BTreeSet<_>>() {
            writeln!(out, "  \"{node}\" -> \"{target}\" [style=dashed];")?;
        }
    }
    writeln!(out, "}}")
}
