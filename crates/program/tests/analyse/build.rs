//! Fixtures made into programs, and where their labels are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A program built from a fixture; its files go when the value does.
pub(crate) struct Built {
    directory: TempDir,
    /// Addresses by symbol and label, stubs by `NAME@plt`.
    pub(crate) places: BTreeMap<String, u64>,
}

impl Built {
    /// Compiles, notes where the labels are and takes them out.
    pub(crate) fn new(source: &Path, command: &[String]) -> Self {
        let directory = TempDir::new().expect("a directory for temporary files");
        let linked = text(&directory.path().join("linked"));
        let (compiler, flags) = command.split_first().expect("a `built by` line");
        let mut arguments: Vec<&str> = flags.iter().map(String::as_str).collect();
        let source = text(source);
        arguments.extend([source.as_str(), "-o", &linked]);
        run(compiler, &arguments);
        let mut places = symbols(&run("nm", &["--no-demangle", &linked]));
        places.extend(stubs(&run(
            "objdump",
            &["-d", "--no-show-raw-insn", &linked],
        )));
        let built = Self { directory, places };
        let bare = text(&built.path("bare"));
        run("objcopy", &["-w", "--strip-symbol=L*", &linked, &bare]);
        built
    }

    /// The program as an analyst gets it, but with the functions' symbols.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.path("bare")).expect("the program is read")
    }

    /// The same program without symbols.
    pub(crate) fn stripped(&self) -> Vec<u8> {
        let (from, to) = (text(&self.path("bare")), text(&self.path("stripped")));
        run("strip", &["-o", &to, &from]);
        fs::read(to).expect("the stripped program is read")
    }

    /// The address of a place as fixtures write it.
    pub(crate) fn place(&self, label: &str) -> u64 {
        let (name, offset) = label.split_once('+').unwrap_or((label, "0"));
        let offset: u64 = offset.parse().expect("an offset in bytes");
        let base = self.places.get(name);
        base.unwrap_or_else(|| panic!("there is no label {name}")) + offset
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// Runs a program to its end; what it writes.
pub(crate) fn run(tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool)
        .args(arguments)
        .env("LC_ALL", "C")
        .output()
        .unwrap_or_else(|error| panic!("{tool} cannot be run: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("plain text")
}

/// `0000000000001000 T f`
fn symbols(listing: &str) -> BTreeMap<String, u64> {
    let symbol = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((words.nth(1)?.to_owned(), address))
    };
    listing.lines().filter_map(symbol).collect()
}

/// `0000000000001030 <abort@plt>:`
fn stubs(listing: &str) -> impl Iterator<Item = (String, u64)> {
    listing.lines().filter_map(|line| {
        let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
        let is_stub = name.ends_with("@plt");
        let address = u64::from_str_radix(address, 16).ok()?;
        is_stub.then(|| (name.to_owned(), address))
    })
}
