//! Small real programs, built by the compilers of the machine, and what binutils say of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A directory in which programs are built; it goes when the value does.
pub(crate) struct Workshop {
    directory: TempDir,
}

impl Workshop {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self {
            directory: TempDir::new().expect("a directory for temporary files"),
        }
    }

    /// Where a file of that name is or goes.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles and links a source text; the extension of `source_name` says its language.
    pub(crate) fn build(
        &self,
        compiler: &str,
        flags: &[&str],
        source_name: &str,
        source: &str,
        name: &str,
    ) -> PathBuf {
        let (source_path, program) = (self.path(source_name), self.path(name));
        fs::write(&source_path, source).expect("a source file is written");
        let program_text = program.to_str().expect("a path in UTF-8");
        let mut arguments = flags.to_vec();
        let source_text = source_path.to_str().expect("a path in UTF-8");
        arguments.extend(["-o", program_text, source_text]);
        run(compiler, &arguments);
        program
    }
}

/// Fails with the name of the Debian package when a program is missing.
pub(crate) fn need(tool: &str, package: &str) {
    let found = Command::new(tool).arg("--version").output();
    let found = found.is_ok_and(|output| output.status.success());
    assert!(found, "{tool} cannot be run: install the package {package}");
}

/// Runs a program to its end; what it writes.
pub(crate) fn run(tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool)
        .args(arguments)
        .env("LC_ALL", "C")
        .output()
        .unwrap_or_else(|error| panic!("{tool} (from gcc or binutils) cannot be run: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16)
        .unwrap_or_else(|_| panic!("{text:?} is no hexadecimal number"))
}

/// (address, size, type, name without version) of all defined symbols that are functions,
/// indirect functions, objects or untyped, by readelf.
pub(crate) fn symbols(path: &Path) -> Vec<(u64, u64, String, String)> {
    let listing = run("readelf", &["-W", "--syms", "--dyn-syms", text(path)]);
    // Without the GNU ABI in the ELF header, readelf has no name for indirect functions.
    let listing = listing.replace("<OS specific>: 10", "IFUNC");
    let mut symbols: Vec<_> = listing.lines().filter_map(symbol).collect();
    symbols.sort();
    symbols.dedup();
    symbols
}

fn symbol(line: &str) -> Option<(u64, u64, String, String)> {
    let mut fields = line.split_whitespace();
    let index = fields.next()?.strip_suffix(':')?;
    index.parse::<u32>().ok()?;
    let (address, size, kind) = (fields.next()?, fields.next()?, fields.next()?);
    let section = fields.nth(2)?;
    let name = fields.next()?;
    let defined = section.parse::<u32>().is_ok();
    let wanted = ["FUNC", "IFUNC", "OBJECT", "NOTYPE"].contains(&kind);
    let size = size
        .strip_prefix("0x")
        .map_or_else(|| size.parse().ok(), |size| Some(hex(size)))?;
    let bare = name.split('@').next()?.to_owned();
    (defined && wanted).then(|| (hex(address), size, kind.to_owned(), bare))
}

/// What readelf says the loader writes where.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Relocations {
    /// Slot and address, of relative relocations and those against defined symbols.
    pub(crate) pointers: BTreeMap<u64, u64>,
    /// Slot and resolver.
    pub(crate) resolvers: BTreeMap<u64, u64>,
    /// Slot and the name of the import.
    pub(crate) imports: BTreeMap<u64, String>,
    /// Slots of packed relative relocations.
    pub(crate) packed: Vec<u64>,
}

/// All dynamic relocations of 64-bit slots, by readelf.
pub(crate) fn relocations(path: &Path) -> Relocations {
    let mut relocations = Relocations::default();
    let symbols = symbols(path);
    // From binutils 2.42 on slots of packed ones stand in a table, behind the entries that they come from, and before names.
    let mut in_table = false;
    for line in run("readelf", &["-W", "-r", text(path)]).lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        in_table = fields
            .first()
            .is_some_and(|first| *first == "Index:" || in_table);
        match fields[..] {
            ["Index:", ..] => {}
            [index, _, slot, ..] if in_table && index.ends_with(':') => {
                relocations.packed.push(hex(slot));
            }
            [slot, ..] if in_table => relocations.packed.push(hex(slot)),
            [slot] if slot.len() == 16 => relocations.packed.push(hex(slot)),
            [slot, _, "R_X86_64_RELATIVE", target] => {
                relocations.pointers.insert(hex(slot), hex(target));
            }
            [slot, _, "R_X86_64_IRELATIVE", target] => {
                relocations.resolvers.insert(hex(slot), hex(target));
            }
            [slot, _, kind, value, name, "+", addend] => {
                // An indirect function is shown by its name in place of its address.
                let indirect = value.strip_suffix("()");
                let named = indirect.and_then(|name| symbols.iter().find(|known| known.3 == name));
                let value = named.map_or_else(|| hex(value), |symbol| symbol.0);
                relocations.add_symbolic(slot, kind, value, name, hex(addend));
            }
            _ => {}
        }
    }
    relocations
}

impl Relocations {
    fn add_symbolic(&mut self, slot: &str, kind: &str, value: u64, name: &str, addend: u64) {
        let known = ["R_X86_64_64", "R_X86_64_GLOB_DAT", "R_X86_64_JUMP_SLOT"];
        let bare = name.split('@').next().unwrap_or(name);
        if !known.contains(&kind) {
        } else if value == 0 {
            self.imports.insert(hex(slot), bare.to_owned());
        } else {
            self.pointers.insert(hex(slot), value + addend);
        }
    }
}

/// Start and end of every unwind entry, by readelf.
pub(crate) fn frames(path: &Path) -> Vec<(u64, u64)> {
    let listing = run("readelf", &["-W", "--debug-dump=frames", text(path)]);
    let ranges = listing
        .lines()
        .filter_map(|line| line.split_once(" FDE ")?.1.split_once("pc="));
    let mut frames: Vec<(u64, u64)> = ranges
        .filter_map(|(_, range)| range.split_once(".."))
        .map(|(start, end)| (hex(start), hex(end.trim())))
        .filter(|(start, end)| start < end)
        .collect();
    frames.sort_unstable();
    frames.dedup();
    frames
}

/// Address and name of every PLT stub, by objdump.
pub(crate) fn stubs(path: &Path) -> BTreeMap<u64, String> {
    let listing = run("objdump", &["-d", "-w", text(path)]);
    let labels = listing
        .lines()
        .filter_map(|line| line.strip_suffix("@plt>:")?.split_once(" <"));
    labels
        .map(|(address, name)| {
            (
                hex(address),
                name.split('@').next().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}
