//! The table for people: folders, files, functions; below it what could not be observed.
//!
//! It fits the terminal: where there is no room for numbers and shares in all columns, the shares
//! alone remain, from the right to the left; names are cut in the middle at last. In a file, which can be made as wide
//! as one likes, they are whole: where there is no room for them they have lines of their own.

use std::io::{self, Write};

use console::{Style, measure_text_width};
use tomo_export::words::{grouped, level_name};
use tomo_export::{File, Function, Module, Picture, Tally, Totals};
use tomo_wire::plan::Level;

use super::Look;
use crate::saying;

/// What to list.
#[derive(Clone, Copy)]
pub(super) struct Detail {
    /// Functions below their files.
    pub(super) functions: bool,
    /// The lines that did not run, below their files.
    pub(super) missed: bool,
    /// All files, however many.
    pub(super) files: bool,
}

/// Where a table would have no column.
const NOTHING: &str = "Nothing of what was asked for could be observed.";
/// Where it would have no row.
const LEFT_OUT: &str = "Nothing of what was observed is shown.";
/// Files beyond which only folders are listed.
const MOST_FILES: usize = 100;
/// Functions of a module without lines that are listed unasked.
const MOST_FUNCTIONS: usize = 30;

/// Writes the table.
pub(super) fn write(
    out: &mut dyn Write,
    picture: &Picture,
    detail: Detail,
    look: Look,
) -> io::Result<()> {
    write_title(out, picture)?;
    if tallies(&picture.totals()).iter().all(|it| it.known() == 0) {
        let mut functions = picture.modules.iter().flat_map(|it| &it.functions);
        let is_shown = !picture.files.is_empty() || functions.any(|function| function.shown);
        let why = if is_shown { NOTHING } else { LEFT_OUT };
        let notes = [why.to_owned()].into_iter().chain(picture.remarks());
        return notes
            .into_iter()
            .try_for_each(|note| wrapped(out, &note, 0, look.width));
    }
    let (mut table, mut notes) = (Table::default(), Vec::new());
    if !picture.files.is_empty() {
        fill_with_files(&mut table, picture, detail, &mut notes);
    }
    for module in &picture.modules {
        if !module.has_lines || picture.files.is_empty() {
            fill_with_functions(&mut table, module, detail, &mut notes);
        }
    }
    if picture.files.is_empty() || picture.elsewhere != Totals::default() {
        let elsewhere = !picture.files.is_empty();
        if elsewhere {
            table.push(Kind::Folder, "(no source line known)", picture.elsewhere);
        }
    }
    table.push(Kind::All, "all", picture.totals());
    table.write(out, look)?;
    writeln!(out)?;
    notes.extend(unknown(picture));
    notes.extend(picture.remarks());
    notes
        .iter()
        .try_for_each(|note| wrapped(out, note, 0, look.width))
}

fn write_title(out: &mut dyn Write, picture: &Picture) -> io::Result<()> {
    let plural = |count: usize, what: &str| {
        let end = if count == 1 { "" } else { "s" };
        format!("{} {what}{end}", grouped(count as u64))
    };
    writeln!(
        out,
        "{} of {}, {} level\n",
        plural(picture.records, "record"),
        plural(picture.modules.len(), "module"),
        level_name(picture.level())
    )
}

/// Lines and branches of which nothing is known.
fn unknown(picture: &Picture) -> Option<String> {
    let totals = picture.totals();
    let parts = [
        (totals.lines.unknown, ["line", "lines"]),
        (
            totals.branches.unknown,
            ["side of a branch", "sides of branches"],
        ),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, [one, many])| {
            let what = if *count == 1 { one } else { many };
            format!("{} {what}", grouped(*count))
        })
        .collect();
    let hint = match totals.branches.unknown > 0 && picture.level() < Level::Edge {
        true => " (--level edge observes branches)",
        false => "",
    };
    (!parts.is_empty()).then(|| {
        format!(
            "Neither counted as run nor as missed, since unknown: {}{hint}.",
            parts.join(", ")
        )
    })
}

fn fill_with_files(table: &mut Table, picture: &Picture, detail: Detail, notes: &mut Vec<String>) {
    let all = detail.files || picture.files.len() <= MOST_FILES;
    let mut files = picture.files.iter();
    for (folder, rows) in picture.folders() {
        table.push(Kind::Folder, &folder.name, folder.totals);
        for row in rows {
            let file = files.next();
            if all {
                table.push(Kind::File, &row.name, row.totals);
            }
            let missed = file.map(File::missed).unwrap_or_default();
            if detail.missed && !missed.is_empty() {
                table.push_note(&format!("not run: {}", ranges(&missed)));
            }
            let functions = file.iter().flat_map(|file| &file.functions);
            for function in functions.filter(|_| detail.functions) {
                table.push(Kind::Function, &function.title, function.totals);
            }
        }
    }
    if !all {
        let count = grouped(picture.files.len() as u64);
        notes.push(format!(
            "Folders alone are shown; --files lists all {count} files."
        ));
    }
}

/// Lines in words: `3, 7-9`.
fn ranges(lines: &[(u32, u32)]) -> String {
    let words = lines.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The functions of a module whose lines are not known: those that ran most of their blocks first.
fn fill_with_functions(
    table: &mut Table,
    module: &Module,
    detail: Detail,
    notes: &mut Vec<String>,
) {
    table.push(
        Kind::Folder,
        &module.path().to_string_lossy(),
        module.totals,
    );
    let shown = |function: &&Function| function.shown && function.file.is_none();
    let mut functions: Vec<&Function> = module.functions.iter().filter(shown).collect();
    let order = |it: &&Function| {
        let (blocks, entered) = (&it.totals.blocks, it.entered);
        (
            std::cmp::Reverse((blocks.ran, entered, blocks.missed)),
            it.entry,
        )
    };
    functions.sort_by_key(order);
    let most = match detail.functions {
        true => functions.len(),
        false => MOST_FUNCTIONS,
    };
    for function in functions.iter().take(most) {
        table.push(Kind::File, &function.title, function.totals);
    }
    if let more @ 1.. = functions.len().saturating_sub(most) {
        let (more, path) = (grouped(more as u64), module.path().display());
        notes.push(format!(
            "{path} has {more} more functions; --functions lists all."
        ));
    }
}

/// What a row is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Title,
    Folder,
    File,
    Note,
    Function,
    All,
}

impl Kind {
    fn indent(self) -> usize {
        match self {
            Self::Title | Self::Folder | Self::All => 0,
            Self::File => 2,
            Self::Note | Self::Function => 4,
        }
    }

    fn has_numbers(self) -> bool {
        !matches!(self, Self::Title | Self::Note)
    }
}

/// Names, and how much of each ran.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<(Kind, String, Totals)>,
}

const NAMES: [&str; 4] = ["lines", "branches", "functions", "blocks"];

fn tallies(totals: &Totals) -> [Tally; 4] {
    [
        totals.lines,
        totals.branches,
        totals.functions,
        totals.blocks,
    ]
}

/// Columns of names below which numbers make room.
const LEAST_NAME: usize = 24;

/// How a column is shown.
#[derive(Clone, Copy)]
struct Column {
    index: usize,
    /// Columns of the numbers; 0 where only shares are shown.
    fraction: usize,
}

/// Columns of a share: `99.9 %`.
const SHARE: usize = 6;
const GAP: usize = 3;

impl Column {
    fn width(self) -> usize {
        let numbers = match self.fraction {
            0 => 0,
            width => width + 1,
        };
        (numbers + SHARE).max(NAMES[self.index].len())
    }
}

impl Table {
    /// A row without numbers.
    pub(super) fn push_title(&mut self, name: &str) {
        self.push(Kind::Title, name, Totals::default());
    }

    /// What is said of the file above.
    fn push_note(&mut self, text: &str) {
        self.push(Kind::Note, text, Totals::default());
    }

    pub(super) fn push(&mut self, kind: Kind, name: &str, totals: Totals) {
        self.rows.push((kind, saying::name(name), totals));
    }

    /// Columns of the longest name that has numbers beside it.
    fn longest_name(&self) -> usize {
        let rows = self.rows.iter().filter(|row| row.0.has_numbers());
        let names = rows.map(|(kind, name, _)| kind.indent() + measure_text_width(name));
        names.max().unwrap_or(0)
    }

    /// The columns that have anything, as wide as there is room for.
    fn columns(&self, width: usize) -> Vec<Column> {
        let known = |index: usize| move |row: &(Kind, String, Totals)| tallies(&row.2)[index];
        let widest = |index: usize| {
            let cells = self.rows.iter().map(known(index));
            cells
                .map(|it| it.fraction().chars().count())
                .max()
                .unwrap_or(0)
        };
        let mut columns: Vec<Column> = (0..NAMES.len())
            .filter(|&index| self.rows.iter().map(known(index)).any(|it| it.known() > 0))
            .map(|index| Column {
                index,
                fraction: widest(index),
            })
            .collect();
        let wanted = self.longest_name().min(LEAST_NAME);
        // The numbers of lines stay whatever happens.
        for index in (1..columns.len()).rev() {
            if width_of(&columns) + wanted > width {
                columns[index].fraction = 0;
            }
        }
        columns
    }

    pub(super) fn write(&self, out: &mut dyn Write, look: Look) -> io::Result<()> {
        let columns = self.columns(look.width);
        let room = look.width.saturating_sub(width_of(&columns));
        let names = self.longest_name().min(room);
        let heads = columns.iter().map(|column| {
            let (name, width) = (NAMES[column.index], column.width());
            format!("{:GAP$}{name:>width$}", "")
        });
        let line = format!("{:names$}{}", "", heads.collect::<String>());
        writeln!(out, "{}", styled(&line, Style::new().dim(), look))?;
        for (kind, name, totals) in &self.rows {
            if *kind == Kind::All {
                writeln!(out)?;
            }
            if *kind == Kind::Title {
                let name = match look.cuts {
                    true => cut(name, look.width),
                    false => name.clone(),
                };
                writeln!(out, "{}", styled(&name, Style::new().bold(), look))?;
                continue;
            }
            let indent = kind.indent();
            if *kind == Kind::Note {
                wrapped(out, name, indent, look.width)?;
                continue;
            }
            let room = names.saturating_sub(indent);
            let name = match look.cuts {
                true => cut(name, room),
                false if measure_text_width(name) > room => {
                    writeln!(out, "{:indent$}{name}", "")?;
                    String::new()
                }
                false => name.clone(),
            };
            let padding = names.saturating_sub(indent + measure_text_width(&name));
            let name = match kind {
                Kind::Folder | Kind::All => styled(&name, Style::new().bold(), look),
                _ => name,
            };
            write!(out, "{:indent$}{name}{:padding$}", "", "")?;
            for column in &columns {
                let cell = cell(tallies(totals)[column.index], *column, look);
                write!(out, "{:GAP$}{cell}", "")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

fn width_of(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width() + GAP).sum()
}

fn cell(tally: Tally, column: Column, look: Look) -> String {
    let share = format!("{:>SHARE$}", tally.percent());
    let padding = column.width() - SHARE - column.fraction - usize::from(column.fraction > 0);
    let style = match tally.share() {
        _ if tally.known() == 0 => Style::new().dim(),
        0.9.. => Style::new().green(),
        0.5.. => Style::new().yellow(),
        _ => Style::new().red(),
    };
    let share = styled(&share, style, look);
    let numbers = match column.fraction {
        0 => String::new(),
        // A dash is said once.
        width if tally.known() == 0 => format!("{:width$} ", ""),
        width => format!("{:>width$} ", tally.fraction()),
    };
    format!("{:padding$}{numbers}{share}", "")
}

fn styled(text: &str, style: Style, look: Look) -> String {
    style.force_styling(look.colours).apply_to(text).to_string()
}

/// A name of at most `width` columns, without its middle if need be: the end tells most.
fn cut(name: &str, width: usize) -> String {
    if measure_text_width(name) <= width {
        return name.to_owned();
    }
    let letters: Vec<char> = name.chars().collect();
    let start = width / 3;
    let mut end = letters.len();
    let fits = |end: usize| {
        let text: String = letters[..start].iter().chain(&letters[end..]).collect();
        measure_text_width(&text) < width
    };
    while end > start && fits(end - 1) {
        end -= 1;
    }
    let (start, end) = (&letters[..start.min(letters.len())], &letters[end..]);
    start.iter().chain(&['…']).chain(end).collect()
}

/// A sentence behind so many columns, its further lines indented. A number stays with its sign of percent.
fn wrapped(out: &mut dyn Write, text: &str, indent: usize, width: usize) -> io::Result<()> {
    let text = saying::name(text).replace(" %", "\u{a0}%");
    let further = indent + 2;
    let mut line = " ".repeat(indent);
    for word in text.split(' ') {
        let used = measure_text_width(&line);
        if used > further && used + 1 + measure_text_width(word) > width {
            writeln!(out, "{}", line.replace('\u{a0}', " "))?;
            line = " ".repeat(further);
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{}", line.replace('\u{a0}', " "))
}
