//! Cobertura's XML, by its public DTD (`coverage-04.dtd`), as GitLab, Jenkins and Azure read it.
//!
//! A folder is a package, a file a class. Only what is known counts, and all that is counted is there, so
//! that whoever adds up lines comes to the sums that are stated. Where only functions were observed the lines
//! are those that they begin at. A comment says what could not be observed and what was inferred, since the
//! format has no place for either.

use std::io::{self, Write};

use crate::markup::{Attribute, Text};
use crate::{Branch, File, Picture, Tally, Totals};

/// Writes the document.
///
/// # Errors
/// Where `out` cannot be written.
pub fn write(out: &mut dyn Write, picture: &Picture) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<!DOCTYPE coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">"
    )?;
    for remark in picture.remarks() {
        // Two hyphens would end the comment; of three the first time parts two.
        let remark = remark.replace("--", "- -").replace("--", "- -");
        writeln!(out, "<!-- {} -->", Text(&remark))?;
    }
    let totals = picture.totals_of(&picture.files);
    let (lines, branches) = (&totals.lines, &totals.branches);
    writeln!(
        out,
        "<coverage {} lines-covered=\"{}\" lines-valid=\"{}\" branches-covered=\"{}\" branches-valid=\"{}\" \
         complexity=\"0\" version=\"tomo {}\" timestamp=\"{}\">",
        rates(&totals),
        lines.ran,
        lines.known(),
        branches.ran,
        branches.known(),
        env!("CARGO_PKG_VERSION"),
        picture.created.max(0) / 1_000_000_000,
    )?;
    let root = root(picture);
    let shown = if root.is_empty() { "." } else { root };
    writeln!(out, "<sources><source>{}</source></sources>", Text(shown))?;
    writeln!(out, "<packages>")?;
    let folder = |file: &File| {
        file.path
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .to_owned()
    };
    for files in picture
        .files
        .chunk_by(|one, next| folder(one) == folder(next))
    {
        write_package(out, picture, &folder(&files[0]), files, root)?;
    }
    writeln!(out, "</packages>\n</coverage>")
}

fn rates(totals: &Totals) -> String {
    let (lines, branches) = (rate(totals.lines), rate(totals.branches));
    format!("line-rate=\"{lines:.4}\" branch-rate=\"{branches:.4}\"")
}

/// A share of which only all is 1, and only nothing is 0, with four places.
fn rate(tally: Tally) -> f64 {
    let share = tally.share();
    match (tally.ran, tally.missed) {
        (0, _) | (_, 0) => share,
        _ => share.clamp(0.0001, 0.9999),
    }
}

/// The folder that all files are in, with its `/`; empty where there is none.
fn root(picture: &Picture) -> &str {
    let mut paths = picture.files.iter().map(|file| file.path.as_str());
    let Some(first) = paths.next() else {
        return "";
    };
    let mut end = first.rfind('/').map_or(0, |at| at + 1);
    for path in paths {
        while !path.starts_with(&first[..end]) {
            end = first[..end - 1].rfind('/').map_or(0, |at| at + 1);
        }
    }
    &first[..end]
}

fn write_package(
    out: &mut dyn Write,
    picture: &Picture,
    folder: &str,
    files: &[File],
    root: &str,
) -> io::Result<()> {
    let totals = picture.totals_of(files);
    let name = folder
        .strip_prefix(root)
        .unwrap_or_default()
        .replace('/', ".");
    let name = if name.is_empty() { "." } else { &name };
    writeln!(
        out,
        "<package name=\"{}\" {} complexity=\"0\">\n<classes>",
        Attribute(name),
        rates(&totals)
    )?;
    for file in files {
        write_class(out, picture, file, root)?;
    }
    writeln!(out, "</classes>\n</package>")
}

fn write_class(out: &mut dyn Write, picture: &Picture, file: &File, root: &str) -> io::Result<()> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let path = file.path.strip_prefix(root).unwrap_or(&file.path);
    writeln!(
        out,
        "<class name=\"{}\" filename=\"{}\" {} complexity=\"0\">\n<methods>",
        Attribute(name),
        Attribute(path),
        rates(&picture.totals_of(std::slice::from_ref(file)))
    )?;
    for function in &file.functions {
        let Some(ran) = function.entered.ran() else {
            continue;
        };
        writeln!(
            out,
            "<method name=\"{}\" signature=\"\" {} complexity=\"0\"><lines><line number=\"{}\" hits=\"{}\"/></lines></method>",
            Attribute(&function.title),
            rates(&function.totals),
            function.line,
            u8::from(ran)
        )?;
    }
    writeln!(out, "</methods>\n<lines>")?;
    let mut branches = file.branches.as_slice();
    for line in picture.lines_of(file).iter() {
        let before = branches.partition_point(|branch| branch.line < line.number);
        let upto = branches.partition_point(|branch| branch.line <= line.number);
        let here = &branches[before..upto];
        branches = &branches[upto..];
        if let Some(ran) = line.finding.ran() {
            write_line(out, line.number, ran, here)?;
        }
    }
    writeln!(out, "</lines>\n</class>")
}

fn write_line(out: &mut dyn Write, number: u32, ran: bool, branches: &[Branch]) -> io::Result<()> {
    let hits = u8::from(ran);
    // A condition is a branch of which a side is known, and has as many as are.
    let sides = |branch: &Branch| branch.sides().into_iter().collect::<Tally>();
    let conditions = branches.iter().map(sides).filter(|it| it.known() > 0);
    let conditions: Vec<Tally> = conditions.collect();
    if conditions.is_empty() {
        return writeln!(
            out,
            "<line number=\"{number}\" hits=\"{hits}\" branch=\"false\"/>"
        );
    }
    let sum = conditions
        .iter()
        .fold(Tally::default(), |all, it| all + *it);
    let (hit, all) = (sum.ran, sum.known());
    writeln!(
        out,
        "<line number=\"{number}\" hits=\"{hits}\" branch=\"true\" condition-coverage=\"{}% ({hit}/{all})\"><conditions>",
        hit * 100 / all
    )?;
    for (index, sides) in conditions.iter().enumerate() {
        let percent = sides.ran * 100 / sides.known();
        writeln!(
            out,
            "<condition number=\"{index}\" type=\"jump\" coverage=\"{percent}%\"/>"
        )?;
    }
    writeln!(out, "</conditions></line>")
}
