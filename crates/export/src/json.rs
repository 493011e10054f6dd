//! One JSON document, schema `tomo.coverage/1`, with everything that is known.
//!
//! ```text
//! { "schema", "records", "created": nanoseconds since 1970,
//!   "left_out": { "lines", "files", "newer", "open", "unread" } where lines that the source marks are not shown, else null,
//!   "unseen": [ path of a module in which no process was observed ],
//!   "totals": { "lines" | "branches" | "functions" | "blocks": { "ran", "missed", "unknown" } },
//!   "modules": [ { "path", "build_id", "level", "totals", "remarks": [ … ],
//!       "unobserved": { "functions" | "blocks" | "bytes": { "part", "whole" }, "inferred" },
//!       "functions": [ { "name", "title", "address", "size", "file": index or null, "line",
//!           "state", "how", "totals",
//!           "blocks": [ { "address", "size", "state", "how",
//!               "edges": [ { "to", "kind", "state", "how" } ] } ] } ] } ],
//!   "files": [ { "path", "totals",
//!       "functions": [ { "name", "title", "line", "state", "how" } ],
//!       "lines": [ { "line", "state", "how" } ],
//!       "branches": [ { "line", "module": index, "block": address,
//!           "taken": { "state", "how" }, "not_taken": { "state", "how" } } ] } ] }
//! ```
//!
//! Of a module there are the functions of its code, as they were entered there; of a file those of the source, which ran
//! also where a body of theirs did that a compiler put in place of a call. `state` is `ran`, `not-run` or `unknown`; `how` is `observed`, `inferred` or `unobservable`; beside
//! them stands `"if_whole": true` where an inference holds only if the runs ended otherwise than by a
//! signal. Everything is written as it is visited; no copy of the document is made. (Structs are begun
//! with any length but 0, which `serde_json` takes for an empty object at once.)

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeStruct as _, Serializer};
use tomo_profile::merge::Finding;
use tomo_program::{BlockView, EdgeView, FunctionView, hexadecimal, text_of};

use crate::words::level_name;
use crate::{
    Branch, Brief, Copies, File, Function, LeftOut, Line, Module, Picture, Tally, Totals,
    Unobserved,
};

/// Writes the document.
///
/// # Errors
/// Where `out` cannot be written.
pub fn write(out: &mut dyn Write, picture: &Picture) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Document(picture))?;
    writeln!(out)
}

/// A list that is made while it is written.
struct List<F>(F);

impl<F, I> Serialize for List<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((self.0)())
    }
}

/// Declares what is written of each thing: its fields with their values.
macro_rules! written {
    ($($type:ty as $this:ident: { $($name:literal: $value:expr,)* })*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let $this = self;
                let mut fields = to.serialize_struct("", 1)?;
                $(fields.serialize_field($name, &$value)?;)*
                fields.end()
            }
        }
    )*};
}

struct Document<'p>(&'p Picture);

/// Something of a module.
struct In<'p, T>(&'p Module, T);

/// The functions of a module that are shown, with their blocks.
struct Functions<'p>(&'p Module);

struct Known(Finding);

struct Share((u64, u64));

written! {
    Document<'_> as it: {
        "schema": "tomo.coverage/1",
        "records": it.0.records,
        "created": it.0.created,
        "totals": it.0.totals(),
        "modules": it.0.modules,
        "left_out": it.0.left_out,
        "unseen": it.0.unseen.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "files": it.0.files,
    }
    Totals as it: {
        "lines": it.lines,
        "branches": it.branches,
        "functions": it.functions,
        "blocks": it.blocks,
    }
    Tally as it: { "ran": it.ran, "missed": it.missed, "unknown": it.unknown, }
    Module as it: {
        "path": text_of(it.path()),
        "build_id": it.model().build_id().map(hexadecimal),
        "level": level_name(it.findings.level),
        "totals": it.totals,
        "unobserved": it.unobserved,
        "remarks": it.remarks(),
        "functions": Functions(it),
    }
    Unobserved as it: {
        "functions": Share(it.functions),
        "blocks": Share(it.blocks),
        "bytes": Share(it.bytes),
        "inferred": it.inferred,
    }
    LeftOut as it: { "lines": it.lines, "files": it.files, "newer": it.newer, "open": it.open, "unread": it.unread, }
    Share as it: { "part": it.0.0, "whole": it.0.1, }
    File as it: {
        "path": it.path,
        "totals": it.totals,
        "functions": it.functions,
        "lines": it.lines,
        "branches": it.branches,
    }
    Branch as it: {
        "line": it.line,
        "module": it.module,
        "block": it.address.0,
        "taken": Known(it.taken),
        "not_taken": Known(it.not_taken),
    }
}

/// The fields that say what is known.
fn known<S: serde::ser::SerializeStruct>(fields: &mut S, finding: Finding) -> Result<(), S::Error> {
    let brief = Brief::from(finding);
    fields.serialize_field("state", brief.state)?;
    fields.serialize_field("how", brief.how)?;
    if brief.if_whole {
        fields.serialize_field("if_whole", &true)?;
    }
    Ok(())
}

impl Serialize for Known {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("", 1)?;
        known(&mut fields, self.0)?;
        fields.end()
    }
}

impl Serialize for Copies {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("", 1)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("title", &self.title)?;
        fields.serialize_field("line", &self.line)?;
        known(&mut fields, self.entered)?;
        fields.end()
    }
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("", 1)?;
        fields.serialize_field("line", &self.number)?;
        known(&mut fields, self.finding)?;
        fields.end()
    }
}

impl Serialize for Functions<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(module) = *self;
        let graphs = module.model().graphs().map_err(serde::ser::Error::custom)?;
        let shown = module.functions.iter().filter(|function| function.shown);
        to.collect_seq(shown.map(|function| In(module, (function, graphs.function(function.id)))))
    }
}

impl Serialize for In<'_, (&Function, Option<FunctionView<'_>>)> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(module, (function, view)) = *self;
        let mut fields = to.serialize_struct("", 1)?;
        fields.serialize_field("name", &view.and_then(|view| view.name()))?;
        fields.serialize_field("title", &function.title)?;
        fields.serialize_field("address", &function.entry.0)?;
        fields.serialize_field("size", &view.map_or(0, |view| view.size()))?;
        fields.serialize_field("file", &function.file)?;
        fields.serialize_field("line", &function.line)?;
        known(&mut fields, function.entered)?;
        fields.serialize_field("totals", &function.totals)?;
        let blocks = List(|| {
            view.into_iter()
                .flat_map(|view| view.blocks())
                .map(|it| In(module, it))
        });
        fields.serialize_field("blocks", &blocks)?;
        fields.end()
    }
}

impl Serialize for In<'_, BlockView<'_>> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(module, block) = self;
        let finding = module.findings.blocks.get(block.id().index());
        let mut fields = to.serialize_struct("", 1)?;
        fields.serialize_field("address", &block.address().0)?;
        fields.serialize_field("size", &block.size())?;
        known(&mut fields, finding.copied().unwrap_or(Finding::Unknown))?;
        let edges = List(|| block.successors().map(|edge| In(module, edge)));
        fields.serialize_field("edges", &edges)?;
        fields.end()
    }
}

impl Serialize for In<'_, EdgeView> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(module, edge) = self;
        let finding = module.findings.edges.get(edge.id.index());
        let mut fields = to.serialize_struct("", 1)?;
        fields.serialize_field("to", &edge.address.0)?;
        fields.serialize_field("kind", edge.kind.name())?;
        known(&mut fields, finding.copied().unwrap_or(Finding::Unknown))?;
        fields.end()
    }
}
