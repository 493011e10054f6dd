//! The hottest paths as a table, and the source of each of their functions with a column for each path: marked is what
//! it runs along.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use tomo_program::{FunctionId, FunctionView};
use tomo_wire::paths::Asked;

use super::{Followed, Hot, LinesOf};
use crate::FunctionPaths;
use crate::predicates::Sources;
use crate::words::{counted, notes};

/// Functions whose source is shown at most.
const SOURCES: usize = 3;

/// Writes the `most` hottest paths of functions that please `is_asked`, whose names are `written` as that does.
///
/// # Errors
/// Where `out` cannot be written, or the model is damaged.
pub fn write(
    out: &mut dyn Write,
    followed: &Followed,
    is_asked: &dyn Fn(&FunctionView<'_>) -> bool,
    most: usize,
    written: &dyn Fn(&str) -> String,
) -> io::Result<()> {
    let graphs = followed.graphs().map_err(io::Error::other)?;
    let title = |function: &FunctionPaths| {
        let view = graphs.function(function.function);
        view.map_or_else(String::new, |view| written(&view.title()))
    };
    let (hot, all) = followed.hottest(&graphs, is_asked);
    let shown = hot.get(..most).unwrap_or(&hot);
    writeln!(out, "{:>4} {:>16} {:>7}  function", "path", "ran", "share")?;
    for (number, hot) in (1..).zip(shown) {
        let share = 100.0 * hot.executed as f64 / all.max(1) as f64;
        let (count, title) = (hot.path.count, title(hot.function));
        let blocks = match hot.path.blocks.len() {
            1 => "1 block".into(),
            many => format!("{many} blocks"),
        };
        writeln!(
            out,
            "{number:>4} {count:>16} {share:>6.2}%  {title}, {blocks}"
        )?;
    }
    if let Some(more) = hot.len().checked_sub(shown.len()).filter(|more| *more > 0) {
        writeln!(out, "{:>4} {:>16} {:>7}  {more} more paths ran", "", "", "")?;
    }
    let blocks = shown.iter().flat_map(|hot| &hot.path.blocks);
    let lines = followed.lines_of(&graphs, blocks.copied());
    let mut sources = Sources::default();
    for function in in_order(shown).into_iter().take(SOURCES) {
        let paths = (1..).zip(shown);
        let paths: Vec<(usize, &Hot<'_>)> = paths
            .filter(|(_, hot)| hot.function.function == function.function)
            .collect();
        write_function(
            out,
            followed,
            (&title(function), &lines, &mut sources),
            &paths,
        )?;
    }
    write_rest(out, followed)
}

/// The functions of these paths, each once.
fn in_order<'f>(hot: &[Hot<'f>]) -> Vec<&'f FunctionPaths> {
    let mut seen: BTreeSet<FunctionId> = BTreeSet::new();
    let functions = hot.iter().map(|hot| hot.function);
    functions.filter(|one| seen.insert(one.function)).collect()
}

/// A function: how much of it ran, and its lines with a column for each path.
fn write_function(
    out: &mut dyn Write,
    followed: &Followed,
    (title, lines, sources): (&str, &LinesOf, &mut Sources),
    paths: &[(usize, &Hot<'_>)],
) -> io::Result<()> {
    let Some((_, first)) = paths.first() else {
        return Ok(());
    };
    let function = first.function;
    let possible = function
        .possible
        .map_or_else(|| "more than 2^64".into(), |possible| possible.to_string());
    let (ran, times) = (function.ran.len(), function.completed());
    let said = match (function.asked, followed.cut(function)) {
        (Some(Asked::All), Some(cut)) => {
            format!("{ran} of {possible} paths ran, {times} times in all, {cut} cut")
        }
        (Some(Asked::All), None) => format!(
            "{ran} of {possible} paths ran, {times} times in all, how many were cut is not known"
        ),
        (Some(Asked::Named), _) => {
            let asked = ran + function.idle.len();
            format!("{ran} of {asked} paths asked for ran, {times} times in all")
        }
        (Some(Asked::Others), _) => {
            format!("{ran} paths ran that earlier runs had not seen, {times} times in all")
        }
        (None, _) => {
            let ran = counted(ran as u64, "path", "paths");
            format!("{ran} ran, {times} times in all, of those that one run or another has counted")
        }
    };
    writeln!(out, "\n{title}: {said}")?;
    let mut files: BTreeMap<&str, BTreeMap<u32, BTreeSet<usize>>> = BTreeMap::new();
    for (number, hot) in paths {
        for (file, line) in hot.path.blocks.iter().flat_map(|block| lines.of(*block)) {
            let line = files.entry(file).or_default().entry(line).or_default();
            line.insert(*number);
        }
    }
    let numbers: Vec<usize> = paths.iter().map(|(number, _)| *number).collect();
    for (file, marked) in files {
        write_file(out, (file, sources), &marked, &numbers)?;
    }
    Ok(())
}

fn write_file(
    out: &mut dyn Write,
    (file, sources): (&str, &mut Sources),
    marked: &BTreeMap<u32, BTreeSet<usize>>,
    numbers: &[usize],
) -> io::Result<()> {
    let heads: String = numbers
        .iter()
        .map(|number| format!("{number:>3}"))
        .collect();
    writeln!(out, "{heads}  {file}")?;
    let mut before = None;
    for (line, paths) in marked {
        if before.is_some_and(|before: u32| before + 1 < *line) {
            writeln!(out, "{:>width$}", "…", width = 3 * numbers.len())?;
        }
        before = Some(*line);
        let marks = numbers.iter().map(|number| match paths.contains(number) {
            true => "  *",
            false => "   ",
        });
        let marks: String = marks.collect();
        let text = sources.line(file, *line).unwrap_or_default();
        writeln!(out, "{marks} {line:>6}  {text}")?;
    }
    Ok(())
}

/// What is not known.
fn write_rest(out: &mut dyn Write, followed: &Followed) -> io::Result<()> {
    let mut reasons: BTreeMap<_, u64> = BTreeMap::new();
    for (_, reason) in &followed.counts.left {
        *reasons.entry(*reason).or_default() += 1;
    }
    if !reasons.is_empty() {
        writeln!(out)?;
    }
    for (reason, count) in reasons {
        let functions = counted(count, "function was", "functions were");
        writeln!(out, "{functions} not followed: {}", reason.words())?;
    }
    let functions = followed.counts.functions.iter();
    let unlike = functions
        .filter(|function| function.asked.is_none())
        .count();
    let rest = notes([
        (
            unlike as u64,
            "function has had other paths counted in one run than in another: its counts are the least that can be",
            "functions have had other paths counted in one run than in another: their counts are the least that can be",
        ),
        (
            followed.counts.contradictory.len() as u64,
            "function has counters that are not those of its paths",
            "functions have counters that are not those of their paths",
        ),
        (
            followed.lost,
            "thread was not followed: no memory, disk or right to more counters",
            "threads were not followed: no memory, disk or right to more counters",
        ),
        (
            followed.forks,
            "forked process went on along a path of its parent, and ended it too",
            "forked processes went on along paths of their parents, and ended them too",
        ),
    ]);
    out.write_all(rest.as_bytes())
}
