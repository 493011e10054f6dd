//! The files that are ours: what git tracks or would add, as text.

use crate::house;
use anyhow::{Context, Result};
use std::path::Path;

/// One file, its path relative to the root, with `/` between the parts.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// Programs that are written to be analysed follow no manners.
    pub(crate) fn is_fixture(&self) -> bool {
        self.path.starts_with("tests/programs/")
    }
}

/// All files that read as text. Others (a fuzzer's finds) are nobody's prose.
pub(crate) fn all(root: &Path) -> Result<Vec<File>> {
    let arguments = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let listed = house::output(house::command("git")?.args(arguments).current_dir(root))?;
    let mut paths: Vec<_> = listed.split_terminator('\0').collect();
    paths.sort_unstable();
    paths.dedup();
    let read = paths.into_iter().map(|path| read(root, path));
    read.filter_map(Result::transpose).collect()
}

/// The Rust sources among them.
pub(crate) fn rust(root: &Path) -> Result<Vec<File>> {
    Ok(all(root)?.into_iter().filter(File::is_rust).collect())
}

fn read(root: &Path, path: &str) -> Result<Option<File>> {
    let whole = root.join(path);
    if !whole.is_file() {
        return Ok(None); // deleted, though git still tracks it
    }
    let bytes = std::fs::read(&whole).with_context(|| format!("cannot read {path}"))?;
    Ok(String::from_utf8(bytes).ok().map(|text| File {
        path: path.to_owned(),
        text,
    }))
}
