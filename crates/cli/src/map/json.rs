//! The summary of a program as one JSON document, schema `tomo.map/1`.

use std::io::Write;

use anyhow::Result;
use serde_json::{Map, Value, json};
use tomo_program::elf::FileKind;
use tomo_program::{Summary, hexadecimal, peak_memory_bytes};

use super::summary::About;

/// Writes the document.
pub(crate) fn write_summary(out: &mut dyn Write, about: &About<'_>) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, &document(about)?)?;
    Ok(writeln!(out)?)
}

fn document(about: &About<'_>) -> Result<Value> {
    let model = &about.loaded.model;
    let summary = model.summary();
    let mut document = json!({
        "schema": "tomo.map/1",
        "path": about.path.to_string_lossy(),
        "build_id": model.build_id().map(hexadecimal),
        "fingerprint": format!("{:016x}", model.fingerprint()),
        "kind": kind_name(summary.kind()),
        "file_bytes": summary.file_size,
        "text_bytes": summary.text_bytes,
        "text_bytes_exact": summary.text_bytes_exact,
        "padding_bytes": summary.padding_bytes,
        "files": summary.files,
        "imports": summary.imports,
        "warnings": model.warnings()?.iter().collect::<Vec<_>>(),
        "cached": about.loaded.cached,
        "analysis_seconds": summary.analysis_seconds,
        "analysis_peak_memory_bytes": summary.analysis_peak_memory_bytes,
        "seconds": about.seconds,
        "peak_memory_bytes": peak_memory_bytes(),
        "model_bytes": model.as_bytes().len(),
    });
    if let (Some(document), Value::Object(counts)) = (document.as_object_mut(), counts(summary)) {
        document.extend(counts);
    }
    Ok(document)
}

/// What can be counted.
fn counts(summary: &Summary) -> Value {
    json!({
        "functions": {
            "total": summary.functions,
            "exact": summary.exact,
            "partial": summary.partial,
            "opaque": summary.opaque,
            "named": summary.named,
        },
        "reasons": named_counts(summary.reasons().into_iter().map(|(reason, count)| (reason.name(), count))),
        "blocks": summary.blocks,
        "instructions": summary.instructions,
        "blocks_with_lines": summary.blocks_with_lines,
        "edges": summary.edges,
        "edges_by_kind": named_counts(summary.edge_kinds().into_iter().map(|(kind, count)| (kind.name(), count))),
        "indirect_jumps": {
            "total": summary.indirect_jumps,
            "resolved": summary.indirect_jumps_resolved,
            "by_resolution": named_counts(summary.resolutions().into_iter().map(|(way, count)| (way.name(), count))),
        },
        "call_sites": summary.call_sites,
        "calls_imported": summary.calls_imported,
        "calls_indirect": summary.calls_indirect,
        "branch_sites": summary.branch_sites,
        "return_sites": summary.return_sites,
        "patchability": {
            "detour": summary.blocks_detour,
            "trap": summary.blocks_trap,
            "none": summary.blocks_unpatchable,
        },
    })
}

fn named_counts(counts: impl Iterator<Item = (&'static str, u64)>) -> Value {
    counts
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect::<Map<_, _>>()
        .into()
}

fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Executable => "executable",
        FileKind::PositionIndependentExecutable => "position-independent-executable",
        FileKind::SharedObject => "shared-object",
    }
}
