//! The pages.

use std::fmt::Write as _;

use super::branches;
use super::table::{self, row};
use super::{FOOT, PAGES, head, module_page, summary};
use crate::markup::Text;
use crate::picture::shown;
use crate::source;
use crate::{Branch, File, Line, Module, Picture, Totals};

/// The index: all folders and files, and modules by function.
pub(super) fn index(picture: &Picture, about: &str, names: &[String]) -> String {
    let mut out = head("Coverage");
    let _ = write!(
        out,
        "<h1>Coverage</h1>\n<p>{}</p>\n",
        Text(&summary(picture))
    );
    if !about.is_empty() {
        let _ = writeln!(out, "<pre>{}</pre>", Text(about));
    }
    out.push_str(table::HEAD);
    row(&mut out, "all", "all", None, &picture.totals());
    let mut names = names.iter();
    for (folder, files) in picture.folders() {
        row(&mut out, "folder", &folder.name, None, &folder.totals);
        for file in &files {
            let link = names.next().map(|name| format!("{PAGES}/{name}"));
            row(&mut out, "file", &file.name, link.as_deref(), &file.totals);
        }
    }
    if picture.elsewhere != Totals::default() {
        row(
            &mut out,
            "folder",
            "(no source line known)",
            None,
            &picture.elsewhere,
        );
    }
    out.push_str(table::END);
    out.push_str("<h1>Modules</h1>\n");
    out.push_str(table::HEAD);
    for (index, module) in picture.modules.iter().enumerate() {
        let link = format!("{PAGES}/{}", module_page(index));
        let name = module.path().display().to_string();
        row(&mut out, "folder", &name, Some(&link), &module.totals);
    }
    out.push_str(table::END);
    remarks(&mut out, &picture.remarks());
    out + FOOT
}

fn remarks(out: &mut String, remarks: &[String]) {
    out.push_str("<ul>\n");
    for remark in remarks {
        let _ = writeln!(out, "<li>{}</li>", Text(remark));
    }
    out.push_str("</ul>\n");
}

/// A module's functions.
pub(super) fn functions(picture: &Picture, module: &Module) -> String {
    let path = module.path().display().to_string();
    let mut out = head(&path);
    let _ = write!(
        out,
        "<p><a href=\"../index.html\">all</a></p>\n<h1>{}</h1>\n",
        Text(&path)
    );
    remarks(&mut out, &module.remarks());
    out.push_str(table::HEAD);
    for function in module.functions.iter().filter(|function| function.shown) {
        let file = function
            .file
            .and_then(|file| picture.files.get(file as usize));
        let place = file.map(|file| format!("  {}:{}", shown(&file.path), function.line));
        let name = format!("{}{}", function.title, place.unwrap_or_default());
        row(&mut out, "", &name, None, &function.totals);
    }
    out.push_str(table::END);
    out + FOOT
}

const LEGEND: &str = "<p class=\"legend\"><span class=\"ran\">ran</span><span class=\"part\">a side of a branch missing</span>\
     <span class=\"missed\">did not run</span><span class=\"unknown\">could not be observed</span>\
     <span class=\"inferred\">inferred</span></p>\n";

/// A source file.
pub(super) fn source(picture: &Picture, file: &File) -> String {
    let path = shown(&file.path);
    let mut out = head(&path);
    let _ = write!(
        out,
        "<p><a href=\"../index.html\">all</a></p>\n<h1>{}</h1>\n",
        Text(&path)
    );
    out.push_str(table::HEAD);
    row(&mut out, "all", "this file", None, &file.totals);
    out.push_str(table::END);
    function_list(&mut out, file);
    let text = source::read(&file.place);
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let lines = match &text {
        Ok(text) => text.lines().collect(),
        Err(why) => {
            let _ = writeln!(out, "<p>The source is not shown: {}.</p>", Text(why));
            Vec::new()
        }
    };
    let last = file.lines.last().map_or(0, |line| line.number as usize);
    if text.is_ok() && last > lines.len() {
        out.push_str(
            "<p>The source has changed: it has fewer lines than the program knows of.</p>\n",
        );
    }
    if text.is_ok() && picture.is_newer(&file.place) {
        out.push_str(
            "<p>The source was written after the program: where it has changed, lines are told of others.</p>\n",
        );
    }
    out.push_str(LEGEND);
    code(&mut out, file, &lines);
    out + FOOT
}

fn function_list(out: &mut String, file: &File) {
    if file.functions.is_empty() {
        return;
    }
    out.push_str("<details><summary>functions</summary>\n");
    out.push_str(table::HEAD);
    for function in &file.functions {
        let link = format!("#{}", function.line);
        row(out, "", &function.title, Some(&link), &function.totals);
    }
    out.push_str(table::END);
    out.push_str("</details>\n");
}

/// All lines of the source; without a source those with code.
fn code(out: &mut String, file: &File, source: &[&str]) {
    out.push_str("<div class=\"wide\"><table class=\"code\"><tbody>\n");
    let mut known = file.lines.iter().peekable();
    let mut branches = file.branches.as_slice();
    for (number, text) in (1_u32..).zip(source) {
        let line = known.next_if(|line| line.number == number);
        write_line(out, number, text, line, take(&mut branches, number));
    }
    // What the source does not have, or no longer has.
    for line in known {
        let here = take(&mut branches, line.number);
        write_line(out, line.number, "", Some(line), here);
    }
    out.push_str("</tbody></table></div>\n");
}

/// The branches of a line, of those that are left; earlier ones come from lines without code.
fn take<'b>(branches: &mut &'b [Branch], line: u32) -> &'b [Branch] {
    let before = branches.partition_point(|branch| branch.line < line);
    let upto = branches.partition_point(|branch| branch.line <= line);
    let here = &branches[before..upto];
    *branches = &branches[upto..];
    here
}

fn write_line(out: &mut String, number: u32, text: &str, line: Option<&Line>, branches: &[Branch]) {
    let class = class(line, branches);
    let _ = write!(
        out,
        "<tr class=\"{class}\" id=\"{number}\"><td>{number}</td><td class=\"b\">"
    );
    branches::write(out, branches);
    let _ = writeln!(out, "</td><td>{}</td></tr>", Text(text));
}

fn class(line: Option<&Line>, branches: &[Branch]) -> String {
    let Some(line) = line else {
        return String::new();
    };
    let sides = || branches.iter().flat_map(|it| [it.taken, it.not_taken]);
    let half = sides().any(|side| side.ran() == Some(false));
    let colour = match line.finding.ran() {
        Some(true) if half => "part",
        Some(true) => "ran",
        Some(false) => "missed",
        None => "unknown",
    };
    let inferred = if line.finding.is_inferred() {
        " inferred"
    } else {
        ""
    };
    format!("{colour}{inferred}")
}
