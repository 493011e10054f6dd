//! HTML: an index of folders and files, and a page for each source file with its lines coloured.
//!
//! The pages need nothing but themselves: no network, no script. Colours follow the reader's choice of
//! light or dark. What is inferred has a dotted edge, what could not be observed is grey and says so.
//! Everything that comes from outside passes through `Text` of `markup.rs`.

mod branches;
mod page;
mod style;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use tomo_program::{Progress, open_regular};

use crate::folder::{files, plain};
use crate::markup::Text;
use crate::words::{counted, level_name};
use crate::{File, Picture};

/// Pages that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// A file that cannot be written, and why.
    #[error("{}: {}", .0.display(), plain(.1))]
    Unwritten(PathBuf, io::Error),
    /// What is there is somebody else's.
    #[error("{} is no page of an earlier report; name another folder", .0.display())]
    Foreign(PathBuf),
}

/// Where the folder of pages is, in the folder that is written.
const PAGES: &str = "files";

/// Writes `index.html` and the pages into `folder`, which is made if need be; returns the index's path. The index says what
/// is said `about` the whole, lines of text, if anything is.
///
/// # Errors
/// Where a file cannot be written, or an `index.html` is there that is of no report; then nothing is.
pub fn write(
    folder: &Path,
    picture: &Picture,
    about: &str,
    progress: &dyn Progress,
) -> Result<PathBuf, HtmlError> {
    let index = folder.join("index.html");
    if index.exists() && !is_page(&index, true) {
        return Err(HtmlError::Foreign(index));
    }
    let pages = folder.join(PAGES);
    fs::create_dir_all(&pages).map_err(|error| HtmlError::Unwritten(pages.clone(), error))?;
    let names = names(picture);
    progress.stage("writing pages", picture.files.len() as u64);
    picture
        .files
        .par_iter()
        .zip(&names)
        .try_for_each(|(file, name)| {
            let text = page::source(picture, file);
            progress.advance(1);
            put(pages.join(name), &text)
        })?;
    for (index, module) in picture.modules.iter().enumerate() {
        put(
            pages.join(module_page(index)),
            &page::functions(picture, module),
        )?;
    }
    let modules = (0..picture.modules.len()).map(module_page);
    remove_others(&pages, &names.iter().cloned().chain(modules).collect())?;
    put(index.clone(), &page::index(picture, about, &names))?;
    Ok(index)
}

fn put(path: PathBuf, text: &str) -> Result<(), HtmlError> {
    fs::write(&path, text).map_err(|error| HtmlError::Unwritten(path, error))
}

/// Whether a file begins as pages do; of one that a full disk has cut, where `cut` ones will do, as far as it goes.
fn is_page(path: &Path, cut: bool) -> bool {
    let head = head("");
    let start = head.split("<title>").next().unwrap_or_default();
    let mut bytes = Vec::new();
    let read =
        open_regular(path).and_then(|file| file.take(start.len() as u64).read_to_end(&mut bytes));
    let is_whole = bytes.len() == start.len();
    read.is_ok() && start.as_bytes().starts_with(&bytes) && (cut || is_whole)
}

/// Removes pages of an earlier report that are not among `written`: what has the name of one, and begins as one does.
fn remove_others(pages: &Path, written: &BTreeSet<String>) -> Result<(), HtmlError> {
    let is_other = |name: &str| {
        let is_named = name.starts_with("s-") || name.starts_with("module-");
        is_named && name.ends_with(".html") && !written.contains(name)
    };
    let unwritten = |path: &Path| {
        let path = path.to_owned();
        move |error| HtmlError::Unwritten(path, error)
    };
    let others = files(pages, is_other).map_err(unwritten(pages))?;
    for path in others.into_iter().filter(|path| is_page(path, false)) {
        fs::remove_file(&path).map_err(unwritten(&path))?;
    }
    Ok(())
}

fn module_page(index: usize) -> String {
    format!("module-{index}.html")
}

/// The names of the files' pages: what is readable of their last name, and a number where several
/// files would get the same. They depend on nothing but the files, so links stay.
fn names(picture: &Picture) -> Vec<String> {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let name = |file: &File| {
        let plain = |letter: char| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => letter,
            _ => '_',
        };
        let last = file.path.rsplit('/').next().unwrap_or_default();
        let readable: String = last.chars().map(plain).take(100).collect();
        // File systems that do not tell case apart would mix two pages up.
        let count = taken.entry(readable.to_lowercase()).or_default();
        *count += 1;
        match *count {
            1 => format!("s-{readable}.html"),
            more => format!("s-{readable}~{more}.html"),
        }
    };
    picture.files.iter().map(name).collect()
}

/// What stands at the top of each page.
fn head(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n",
        Text(title),
        style::STYLE
    )
}

const FOOT: &str = "</body>\n</html>\n";

/// One line about the whole.
fn summary(picture: &Picture) -> String {
    let (modules, records) = (picture.modules.len() as u64, picture.records as u64);
    format!(
        "{} of {}, {} level",
        counted(records, "record", "records"),
        counted(modules, "module", "modules"),
        level_name(picture.level())
    )
}
