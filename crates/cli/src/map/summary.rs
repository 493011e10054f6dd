//! The summary of a program, for people.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use tomo_program::elf::FileKind;
use tomo_program::{Loaded, Resolution, Summary, hexadecimal};

use super::numbers::{counted, grouped, share, size, time};

/// A model and how long it took to come by.
pub(crate) struct About<'a> {
    pub(crate) path: &'a Path,
    pub(crate) loaded: &'a Loaded,
    pub(crate) seconds: f64,
}

/// What people call a kind of file.
fn kind_in_words(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Executable => "executable",
        FileKind::PositionIndependentExecutable => "position-independent executable",
        FileKind::SharedObject => "shared library",
    }
}

/// Writes the summary in lines of at most `width` columns, where words allow.
pub(crate) fn write(out: &mut dyn Write, about: &About<'_>, width: usize) -> Result<()> {
    let model = &about.loaded.model;
    let summary = model.summary();
    writeln!(out, "{}", about.path.display())?;
    write!(
        out,
        "{}, {}",
        kind_in_words(summary.kind()),
        size(summary.file_size)
    )?;
    match model.build_id() {
        Some(id) => writeln!(out, ", build id {}", hexadecimal(id))?,
        None => writeln!(out, ", no build id")?,
    }
    writeln!(out)?;
    for row in rows(summary) {
        row.write(out, width)?;
    }
    write_reasons(out, summary)?;
    write_warnings(out, about, width)?;
    writeln!(out, "\n{}", origin(about))?;
    Ok(())
}

/// A line of the table: what, how many, and what to say about it.
struct Row {
    what: &'static str,
    count: u64,
    remarks: Vec<String>,
}

/// Columns before the remarks.
const REMARKS: usize = 34;

impl Row {
    fn new(what: &'static str, count: u64, remarks: impl IntoIterator<Item = String>) -> Self {
        Self {
            what,
            count,
            remarks: remarks.into_iter().collect(),
        }
    }

    /// Writes the row; remarks that do not fit go below the others.
    fn write(&self, out: &mut dyn Write, width: usize) -> Result<()> {
        let mut line = format!("  {:<16} {:>12}", self.what, grouped(self.count));
        let mut column = REMARKS;
        let mut fresh = true;
        for remark in &self.remarks {
            let length = remark.chars().count();
            if !fresh && column + length > width {
                writeln!(out, "{}", line.trim_end())?;
                line.clear();
                column = REMARKS;
                fresh = true;
            }
            let gap = if fresh {
                REMARKS.saturating_sub(line.chars().count())
            } else {
                2
            };
            line.extend(std::iter::repeat_n(' ', gap));
            line.push_str(remark);
            column += length + 2;
            fresh = false;
        }
        Ok(writeln!(out, "{}", line.trim_end())?)
    }
}

fn rows(summary: &Summary) -> Vec<Row> {
    let mut rows = graph_rows(summary);
    rows.extend(site_rows(summary));
    if summary.blocks_with_lines > 0 {
        let files = format!("in {}", counted(summary.files, "file", "files"));
        let known = format!(
            "{} of blocks",
            share(summary.blocks_with_lines, summary.blocks)
        );
        rows.push(Row::new(
            "source lines",
            summary.blocks_with_lines,
            [known, files],
        ));
    }
    rows
}

fn graph_rows(summary: &Summary) -> Vec<Row> {
    let named = |name: &str, part: u64, whole: u64| format!("{name} {}", share(part, whole));
    let status = [
        ("exact", summary.exact),
        ("partial", summary.partial),
        ("opaque", summary.opaque),
    ];
    let status = status.into_iter().filter(|(_, count)| *count > 0);
    let each = |what: &str, count: u64| {
        format!(
            "{:.1} {what} each",
            count as f64 / summary.blocks.max(1) as f64
        )
    };
    vec![
        Row::new(
            "functions",
            summary.functions,
            status.map(|(name, count)| named(name, count, summary.functions)),
        ),
        Row::new(
            "bytes of text",
            summary.text_bytes,
            [
                named("exact", summary.text_bytes_exact, summary.text_bytes),
                named("padding", summary.padding_bytes, summary.text_bytes),
            ],
        ),
        Row::new(
            "blocks",
            summary.blocks,
            [each("instructions", summary.instructions)],
        ),
        Row::new("edges", summary.edges, []),
        Row::new(
            "indirect jumps",
            summary.indirect_jumps,
            jump_remarks(summary),
        ),
    ]
}

/// How many indirect jumps are resolved, and in which ways.
fn jump_remarks(summary: &Summary) -> Vec<String> {
    if summary.indirect_jumps == 0 {
        return Vec::new();
    }
    let resolved = share(summary.indirect_jumps_resolved, summary.indirect_jumps);
    let ways = summary.resolutions();
    let ways = ways
        .iter()
        .filter(|(resolution, _)| *resolution != Resolution::Unresolved);
    let words = |(resolution, count): &(Resolution, u64)| match resolution {
        Resolution::GuardedTable => counted(*count, "guarded table", "guarded tables"),
        Resolution::MeasuredTable => counted(*count, "measured table", "measured tables"),
        Resolution::Labels => counted(*count, "label table", "label tables"),
        Resolution::TailCall => counted(*count, "tail call", "tail calls"),
        Resolution::Unresolved => counted(*count, "unresolved", "unresolved"),
    };
    let ways = ways.map(words);
    std::iter::once(format!("resolved {resolved}"))
        .chain(ways)
        .collect()
}

fn site_rows(summary: &Summary) -> Vec<Row> {
    let some = |name: &str, count: u64| (count > 0).then(|| format!("{name} {}", grouped(count)));
    let calls = [
        some("imported", summary.calls_imported),
        some("indirect", summary.calls_indirect),
    ];
    let probes = [
        format!("detour {}", share(summary.blocks_detour, summary.blocks)),
        format!("trap only {}", share(summary.blocks_trap, summary.blocks)),
        format!("none {}", share(summary.blocks_unpatchable, summary.blocks)),
    ];
    let places = summary.blocks_detour + summary.blocks_trap;
    vec![
        Row::new(
            "call sites",
            summary.call_sites,
            calls.into_iter().flatten(),
        ),
        Row::new("branch sites", summary.branch_sites, []),
        Row::new("return sites", summary.return_sites, []),
        Row::new("probe places", places, probes),
    ]
}

fn write_reasons(out: &mut dyn Write, summary: &Summary) -> Result<()> {
    let reasons = summary.reasons();
    if reasons.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nNot exact, because")?;
    for (reason, count) in reasons {
        writeln!(out, "  {:>10}  {}", grouped(count), reason.sentence())?;
    }
    Ok(())
}

/// Warnings that are shown; the JSON summary has all.
const SHOWN_WARNINGS: usize = 10;

fn write_warnings(out: &mut dyn Write, about: &About<'_>, width: usize) -> Result<()> {
    let warnings = about.loaded.model.warnings()?;
    if warnings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nWarnings")?;
    for warning in warnings.iter().take(SHOWN_WARNINGS) {
        write_wrapped(out, warning, width)?;
    }
    match warnings.len().saturating_sub(SHOWN_WARNINGS) {
        0 => Ok(()),
        more => Ok(writeln!(out, "  and {more} more (--format json has all)")?),
    }
}

/// Writes `text` behind two spaces, its further lines behind four. It comes from outside, so what a
/// terminal would obey is escaped.
fn write_wrapped(out: &mut dyn Write, text: &str, width: usize) -> Result<()> {
    let mut line = String::from(" ");
    for word in text.split_whitespace() {
        let word: String = word
            .chars()
            .flat_map(|c| {
                if c.is_control() {
                    c.escape_debug().collect()
                } else {
                    vec![c]
                }
            })
            .collect();
        if line.chars().count() + 1 + word.chars().count() > width && line.trim().len() > 1 {
            writeln!(out, "{line}")?;
            line = String::from("   ");
        }
        line.push(' ');
        line.push_str(&word);
    }
    Ok(writeln!(out, "{line}")?)
}

/// Where the model comes from.
fn origin(about: &About<'_>) -> String {
    let summary = about.loaded.model.summary();
    let (took, memory) = (
        time(summary.analysis_seconds),
        size(summary.analysis_peak_memory_bytes),
    );
    if about.loaded.cached {
        format!(
            "Read from the cache in {}; the analysis took {took} and {memory}.",
            time(about.seconds)
        )
    } else {
        format!("Analysed in {took} with {memory} of memory.")
    }
}
