//! `tomo report`: what ran, from the records of runs and pools.

mod gather;
mod processes;
mod text;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use tomo_export::{Paths, Picture, Tally, cobertura, drcov, html, json, lcov};

use crate::bar::Bar;
use crate::saying;
use crate::session::{answer, is_stdout};

use gather::Gatherer;
pub(crate) use gather::say_refused;

/// Show which functions, lines, branches and blocks ran.
///
/// Reads what `tomo cover` and `tomo env` recorded, of any number of runs and pools, also of ones
/// that still run. What is truncated, damaged or of another build is named and left out.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folders with records: what was given to `tomo cover` as --output or --pool; or single records.
    #[arg(value_name = "DIR", default_value = "tomo-out")]
    folders: Vec<PathBuf>,

    #[command(flatten)]
    show: Show,

    /// List processes instead of files: those that have records of their own, because they were observed
    /// with --fork separate.
    #[arg(long, conflicts_with_all = ["format", "html", "open", "functions", "files", "show_missing_lines", "fail_under_lines", "fail_under_functions", "fail_under_branches"])]
    processes: bool,

    /// Where the program, or one of its libraries, is now, if it has moved since.
    #[arg(long, value_name = "PATH")]
    program: Vec<PathBuf>,

    /// Exit with code 1 if a record or a folder was left out, for whatever reason.
    #[arg(long)]
    strict: bool,
}

/// Of what is shown what ran.
pub(crate) struct Source<'a> {
    /// Folders with records.
    pub(crate) folders: &'a [PathBuf],
    /// Where programs may be.
    pub(crate) programs: &'a [PathBuf],
    /// Whether they are there for a moment only, so that they are called by their last names.
    pub(crate) passing: bool,
    /// Whether it is a failure to leave something out.
    pub(crate) strict: bool,
    /// What pages say of where the records are from; nothing if it is empty.
    pub(crate) about: &'a str,
}

/// What is shown, and how.
#[derive(Args)]
pub(crate) struct Show {
    /// How to write what is shown.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Write to FILE (a folder for html; - for standard output) instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write HTML pages with the source coloured to DIR, beside what else is shown.
    #[arg(long, value_name = "DIR")]
    html: Option<PathBuf>,

    /// Show the HTML pages in the browser; they go to tomo-html unless --html says otherwise.
    #[arg(long)]
    open: bool,

    /// Show only source files whose path matches GLOB: ./src, 'src/**/*.c', '*.h', /usr/include. What
    /// begins with ./ is in this folder; src is any folder of that name, those of libraries too.
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// Leave out source files whose path matches GLOB.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Leave out lines that the source marks: LCOV_EXCL_LINE, LCOV_EXCL_START to LCOV_EXCL_STOP; their branches alone:
    /// LCOV_EXCL_BR_LINE, _BR_START, _BR_STOP. GCOV and GCOVR may stand for LCOV.
    #[arg(long)]
    exclude_marked: bool,

    /// Where source paths start with A, let them start with B instead.
    #[arg(long, value_name = "A:B")]
    replace_src_path: Vec<String>,

    /// Exit with code 1 if fewer than N percent of the lines ran.
    #[arg(long, value_name = "N", value_parser = percentage)]
    fail_under_lines: Option<Percent>,

    /// Exit with code 1 if fewer than N percent of the functions ran. Where the source of any is known, those of others, as the
    /// C library's that start a program, do not count.
    #[arg(long, value_name = "N", value_parser = percentage)]
    fail_under_functions: Option<Percent>,

    /// Exit with code 1 if fewer than N percent of the sides of branches were taken, of those that count for functions.
    #[arg(long, value_name = "N", value_parser = percentage)]
    fail_under_branches: Option<Percent>,

    /// List functions below their files.
    #[arg(short = 'l', long)]
    functions: bool,

    /// List below each file the lines that did not run; in ranges there are lines without code, too.
    #[arg(long)]
    show_missing_lines: bool,

    /// List all files, however many there are; folders alone beyond a hundred otherwise.
    #[arg(long)]
    files: bool,
}

const EXAMPLES: &str = "\
Examples:
  tomo report                                  the runs in tomo-out
  tomo report pool out --html cov --open       runs and a pool, in the browser
  tomo report --include ./src --functions      only the program's own source
  tomo report --format lcov -o cov.info        for genhtml, codecov and the like
  tomo report --processes                      what each ran (--fork separate)
  tomo report tomo-out/run-*/*.4711.record     that, and no more, in full
  tomo report --show-missing-lines             what is left to be tested
  tomo report --fail-under-lines 80            exit code 1 if fewer ran

A line ran if a block of machine code ran that begins a statement of it, or that
enters the body of a call in it. A function ran if it was entered, or its body
was that a compiler put in place of a call. What could not be observed counts
neither as run nor as missed; each report says how much that is, and how much
was inferred. Branches at lines without code count where no source line is
known. A branch is a conditional jump: the cases of a switch that jumps by a
table are none, but their lines tell which of them ran.

genhtml from version 2 on wants --ignore-errors inconsistent: in optimised code
a line may have run, and none of its branches have been reached.

Exit code: 0; 1 where less ran than demanded, or something was left out under
--strict; 2 where nothing could be reported or written.";

/// How to write what is shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table by folder and file, for people.
    Text,
    /// One JSON document with everything that is known (tomo.coverage/1).
    Json,
    /// lcov's tracefile.
    Lcov,
    /// Cobertura's XML.
    Cobertura,
    /// drcov's log, version 2, for Lighthouse and other tools of reverse engineers.
    Drcov,
    /// Pages with the source coloured, in the folder that --output names.
    Html,
}

impl Show {
    /// Writes what has no lines of its own to show: as text or as JSON, for there are no other formats of it.
    pub(crate) fn write_plain(
        &self,
        text: impl FnOnce() -> Result<String>,
        json: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        if let Some(flag) = self.about_lines() {
            bail!("there are no lines of it, so {flag} has nothing to go by");
        }
        let written = match self.format {
            Format::Text => text()?,
            Format::Json => json()?,
            _ => bail!("there is no such format of it; say --format text or --format json"),
        };
        answer(self.output(), written.as_bytes())
    }
}

impl Show {
    /// A flag that was given and is about source lines.
    fn about_lines(&self) -> Option<&'static str> {
        let given = [
            ("--html", self.html.is_some()),
            ("--open", self.open),
            ("--include", !self.include.is_empty()),
            ("--exclude", !self.exclude.is_empty()),
            ("--exclude-marked", self.exclude_marked),
            ("--fail-under-lines", self.fail_under_lines.is_some()),
            (
                "--fail-under-functions",
                self.fail_under_functions.is_some(),
            ),
            ("--fail-under-branches", self.fail_under_branches.is_some()),
        ];
        let flag = given.into_iter().find(|(_, given)| *given);
        flag.map(|(name, _)| name)
    }
}

/// A share in percent, as it was said: 8.8 of a hundred are 88 of a thousand, whatever binary fractions make of it.
#[derive(Clone)]
struct Percent {
    text: Box<str>,
    digits: u64,
    scale: u64,
}

impl Percent {
    /// Whether at least this share are `part` of `whole`.
    fn is_reached(&self, part: u64, whole: u64) -> bool {
        u128::from(part) * 100 * u128::from(self.scale)
            >= u128::from(self.digits) * u128::from(whole)
    }
}

fn percentage(text: &str) -> Result<Percent, String> {
    /// Digits behind the point, at most.
    const PLACES: usize = 15;
    let text = text.trim_end_matches('%');
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part}");
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || digits.is_empty() {
        return Err("no number".into());
    }
    let scale = 10_u64.pow(part.len().min(PLACES) as u32);
    match digits.parse::<u64>() {
        Ok(digits) if part.len() <= PLACES && digits <= 100 * scale => Ok(Percent {
            text: text.into(),
            digits,
            scale,
        }),
        _ => Err("not between 0 and 100, or of more than 15 places".into()),
    }
}

/// Does what the arguments ask for.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments {
        folders,
        program,
        show,
        processes,
        strict,
    } = arguments;
    for path in program {
        std::fs::metadata(path).with_context(|| format!("--program {}", path.display()))?;
    }
    let source = Source {
        folders,
        programs: program,
        passing: false,
        strict: *strict,
        about: "",
    };
    match processes {
        true => show.processes(&source),
        false => show.run(&source),
    }
}

impl Show {
    /// Shows a table of the processes that have records of their own in these folders.
    fn processes(&self, source: &Source<'_>) -> Result<ExitCode> {
        let paths = self.paths()?;
        let bar = Bar::new();
        let mut gatherer = Gatherer::new(source, &paths, &bar);
        let rows = processes::rows(source.folders, &mut gatherer)?;
        bar.finish();
        self.put(&|out, look| Ok(rows.write(out, look)?))?;
        Ok(ExitCode::from(u8::from(gatherer.fails())))
    }

    /// The source files that are shown.
    fn paths(&self) -> Result<Paths> {
        let here = std::env::current_dir().context("the current folder")?;
        let (include, exclude) = (&self.include, &self.exclude);
        let paths = Paths::new(include, exclude, &self.replace_src_path, &here)?;
        Ok(paths.leaving_out_marked(self.exclude_marked))
    }

    /// Shows these records.
    pub(crate) fn run(&self, source: &Source<'_>) -> Result<ExitCode> {
        let paths = self.paths()?;
        let bar = Bar::new();
        if self.format == Format::Html && self.output().is_some() && self.html.is_some() {
            bail!("pages go to one folder: name it by --output or by --html");
        }
        if self.format == Format::Html && self.output.is_some() && self.output().is_none() {
            bail!("pages are many files: name a folder for them by --output");
        }
        let mut gatherer = Gatherer::new(source, &paths, &bar);
        let picture = gatherer.gather(source.folders)?;
        let is_left_out = picture.left_out.is_some_and(|it| it.lines > 0);
        if !paths.takes_unknown() && picture.files.is_empty() && !is_left_out {
            say!("tomo: no source file matches --include");
        }
        for program in gatherer.unused_programs() {
            let program = program.display();
            say!("tomo: --program {program}: none of the records that are shown is of this file");
        }
        for replacement in paths.unused() {
            say!("tomo: no source file's name begins as in --replace-src-path {replacement}");
        }
        let pages = self.pages();
        let index = match &pages {
            Some(folder) => Some(html::write(folder, &picture, source.about, &bar)?),
            None => None,
        };
        bar.finish();
        if let (Some(index), None, None) = (&index, &self.html, self.output()) {
            say!("tomo: the pages begin at {}", index.display());
        }
        if self.format != Format::Html {
            self.show(&picture)?;
        }
        if let Some(index) = index.filter(|_| self.open)
            && let Err(error) = open(&index)
        {
            // What was asked for is there, and the rest is still to be said.
            say!("tomo: {error:#}");
        }
        let verdict = self.verdict(&picture);
        Ok(match gatherer.fails() {
            true => ExitCode::from(1),
            false => verdict,
        })
    }

    /// The file, or for pages the folder, that is to be written instead of standard output.
    fn output(&self) -> Option<&Path> {
        let output = self.output.as_deref();
        output.filter(|path| !is_stdout(path))
    }

    /// Whether people read what is shown, and on standard output.
    pub(crate) fn is_for_people(&self) -> bool {
        self.format == Format::Text && self.output().is_none()
    }

    /// The folder for pages, if any are wanted.
    fn pages(&self) -> Option<PathBuf> {
        let asked = self.format == Format::Html;
        let output = self.output().filter(|_| asked).map(PathBuf::from);
        let usual = (asked || self.open).then(|| "tomo-html".into());
        self.html.clone().or(output).or(usual)
    }

    fn show(&self, picture: &Picture) -> Result<()> {
        let terminal = self.output().is_none() && io::stdout().is_terminal();
        if terminal && self.format == Format::Drcov {
            bail!("drcov is binary; write it to a file with --output");
        }
        if self.format == Format::Drcov && !drcov::has_blocks(picture) {
            bail!("drcov lists blocks, and only functions were observed");
        }
        self.put(&|out, look| self.write(out, picture, look))?;
        if matches!(self.format, Format::Lcov | Format::Drcov) {
            // They have no place for it.
            for reservation in picture.reservations() {
                say!("tomo: {reservation}");
            }
        }
        Ok(())
    }

    /// Has `write` write to where the output goes.
    fn put(&self, write: &dyn Fn(&mut dyn Write, Look) -> Result<()>) -> Result<()> {
        let Some(path) = self.output() else {
            let stdout = io::stdout();
            let look = Look::of_stdout(stdout.is_terminal());
            let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
            write(&mut out, look)?;
            return Ok(out.flush()?);
        };
        let context = || format!("writing {}", path.display());
        let file = File::create(path).with_context(context)?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let written = write(&mut out, Look::plain()).and_then(|()| Ok(out.flush()?));
        if written.is_err() && path.is_file() {
            // Half a report could be taken for a whole one.
            let _ = std::fs::remove_file(path);
        }
        written.with_context(context)
    }

    fn write(&self, out: &mut dyn Write, picture: &Picture, look: Look) -> Result<()> {
        match self.format {
            Format::Text | Format::Html => {
                let detail = text::Detail {
                    functions: self.functions,
                    missed: self.show_missing_lines,
                    files: self.files || self.functions || self.show_missing_lines,
                };
                text::write(out, picture, detail, look)?;
            }
            Format::Json => json::write(out, picture)?,
            Format::Lcov => lcov::write(out, picture)?,
            Format::Cobertura => cobertura::write(out, picture)?,
            Format::Drcov => drcov::write(out, picture)?,
        }
        Ok(())
    }

    /// Whether enough ran of all that something is demanded of.
    fn verdict(&self, picture: &Picture) -> ExitCode {
        let totals = picture.totals_of_source();
        let demanded = [
            (&self.fail_under_lines, totals.lines, "line", "lines ran"),
            (
                &self.fail_under_functions,
                totals.functions,
                "function",
                "functions ran",
            ),
            (
                &self.fail_under_branches,
                totals.branches,
                "branch",
                "sides of branches were taken",
            ),
        ];
        let mut is_enough = true;
        for (demanded, tally, one, many) in demanded {
            if let Some(demanded) = demanded
                && let Err(why) = enough(demanded, tally, one, many)
            {
                say!("tomo: {why}");
                is_enough = false;
            }
        }
        ExitCode::from(u8::from(!is_enough))
    }
}

/// Whether at least so many percent ran of those of which it is known; else what is to be said.
fn enough(demanded: &Percent, tally: Tally, one: &str, many: &str) -> Result<(), String> {
    let (ran, known) = (tally.ran, tally.known());
    if known == 0 {
        return Err(format!(
            "no {one} is known, so it cannot be said how many {many}"
        ));
    }
    if demanded.is_reached(ran, known) {
        return Ok(());
    }
    // Nor is a share said to be what it has not reached.
    let tenths = ran * 1000 / known;
    let (percent, tenth) = (tenths / 10, tenths % 10);
    Err(format!(
        "{ran} of {known} {many} ({percent}.{tenth} %), {} % are demanded",
        demanded.text
    ))
}

/// How the table may look.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    /// Columns to fill.
    pub(crate) width: usize,
    /// Whether to use colours.
    pub(crate) colours: bool,
    /// Whether names are cut where there is no room for them; else they have lines of their own.
    pub(crate) cuts: bool,
}

impl Look {
    fn plain() -> Self {
        Self {
            width: 80,
            colours: false,
            cuts: false,
        }
    }

    /// Colours are for terminals whose user did not say no (no-color.org).
    fn of_stdout(terminal: bool) -> Self {
        let width = saying::columns();
        if !terminal {
            return Self {
                width,
                ..Self::plain()
            };
        }
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            width,
            colours: !refused && console::colors_enabled(),
            cuts: true,
        }
    }
}

/// Shows a page in whatever the desktop uses for that.
fn open(index: &Path) -> Result<()> {
    let path = index.canonicalize()?;
    let mut command = Command::new("xdg-open");
    command
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let status = command.stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => bail!(
            "xdg-open shows no pages here; they are in {}",
            index.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::percentage;

    #[test]
    fn a_share_is_reached_exactly() {
        let reached =
            |text: &str, part, whole| percentage(text).map(|it| it.is_reached(part, whole));
        for (text, part, whole, expected) in [
            ("8.8", 33, 375, true),
            ("8.81", 33, 375, false),
            ("58", 29, 50, true),
            ("100%", 7, 7, true),
            ("100", u64::MAX - 1, u64::MAX, false),
            ("0", 0, 9, true),
        ] {
            assert_eq!(reached(text, part, whole), Ok(expected), "{text}");
        }
        for bad in [
            "",
            ".",
            "-1",
            "100.1",
            "101",
            "1e1",
            "nan",
            "0.0000000000000001",
        ] {
            assert!(percentage(bad).is_err(), "{bad}");
        }
    }
}
