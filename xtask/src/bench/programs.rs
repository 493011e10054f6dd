//! The programs that are measured: what Debian 12 ships, stripped, from small to large; what the
//! tests build from sources, at -O2; our own command; and the library that is rustc, the largest of
//! all.

use crate::house;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// A program to measure, if it is there.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) path: Option<PathBuf>,
}

const COMMANDS: [&str; 6] = ["xz", "bash", "perl", "git", "python3.11", "gdb"];

const LIBRARIES: [(&str, &str); 3] = [
    ("liblzma", "/usr/lib/x86_64-linux-gnu/liblzma.so.5"),
    (
        "libpython3.11",
        "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
    ),
    ("libLLVM-14", "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"),
];

/// All programs, with `tomo` itself among them.
pub(super) fn all(tomo: &Path) -> Result<Vec<Program>> {
    let commands = COMMANDS.map(|name| program(name, Some(Path::new("/usr/bin").join(name))));
    let libraries = LIBRARIES.map(|(name, path)| program(name, Some(path.into())));
    let ours = program("tomo (with lines)", Some(tomo.to_owned()));
    let rustc = program("rustc_driver", rustc_driver()?);
    Ok(commands
        .into_iter()
        .chain(libraries)
        .chain([ours, rustc])
        .chain(corpus()?)
        .collect())
}

/// The programs of the tests' corpus.
fn corpus() -> Result<Vec<Program>> {
    let example = ["-p", "tomo-testkit", "--example", "corpus"];
    let printed = house::output(house::cargo(&["run", "-q"])?.args(example))?;
    let lines = printed.lines().filter_map(|line| line.split_once('\t'));
    Ok(lines
        .map(|(name, path)| program(name, Some(path.into())))
        .collect())
}

fn program(name: &str, path: Option<PathBuf>) -> Program {
    Program {
        name: name.to_owned(),
        path: path.filter(|path| path.is_file()),
    }
}

/// The shared library that holds the compiler, by the toolchain's own word.
fn rustc_driver() -> Result<Option<PathBuf>> {
    let sysroot = house::output(house::command("rustc")?.args(["--print", "sysroot"]))?;
    let folder = Path::new(sysroot.trim_end()).join("lib");
    let mut paths = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.find(|path| is_driver(path)))
}

fn is_driver(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("librustc_driver") && name.ends_with(".so")
}
