//! Programs built in every way that the reader distinguishes, against readelf and objdump.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::build::{Workshop, need, run};
use crate::{build, check};
use tomo_program::elf::{Binary, FileKind, PltTarget, SymbolKind};
use tomo_program::{Address, unwind};

/// Imports, pointers, an indirect function, initialisers and every kind of data.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int one(void) { return 1; }
static int two(void) { return 2; }
int (*const table[])(void) = { one, two };
int (*changing[])(void) = { two, one };
int written = 7;
static int empty[100];
static int (*choose(void))(void) { return one; }
int either(void) __attribute__((ifunc("choose")));
int (*outside)(const char *) = puts;
__attribute__((constructor)) static void begin(void) { written++; }
__attribute__((destructor)) static void finish(void) { empty[1]++; }
__attribute__((noinline)) int work(int n) {
    char *text = malloc(n + 1);
    text[n] = 0;
    int sum = table[n & 1]() + changing[n & 1]() + either() + empty[n];
    printf("%s%d\n", text + n, sum);
    free(text);
    return outside("done") + sum;
}
#ifndef LIBRARY
int main(int count, char **words) { (void)words; return work(count) & 1; }
#endif
"#;

/// What must hold of a build, as binutils see it.
fn agrees(path: &Path) {
    let data = fs::read(path).expect("the program was built");
    let binary = Binary::parse(&data).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    assert_eq!(binary.warnings(), [], "{path:?}");
    check::promises(&binary);
    assert_eq!(
        symbols(&binary),
        build::symbols(path),
        "symbols of {path:?}"
    );
    relocations_agree(&binary, path);
    stubs_agree(&binary, path);
    let unwind = unwind::read(&binary);
    assert_eq!(unwind.warnings, [], "{path:?}");
    check::unwind_promises(&binary, &unwind);
    let ranges = unwind.functions.iter().map(|entry| entry.range);
    let ranges: Vec<_> = ranges
        .map(|range| (range.start().0, range.end().0))
        .collect();
    assert_eq!(ranges, build::frames(path), "unwind entries of {path:?}");
}

fn symbols(binary: &Binary<'_>) -> Vec<(u64, u64, String, String)> {
    let kind = |kind| match kind {
        SymbolKind::Function => "FUNC",
        SymbolKind::IndirectFunction => "IFUNC",
        SymbolKind::Object => "OBJECT",
        SymbolKind::Untyped => "NOTYPE",
    };
    let bare = |name: &str| name.split('@').next().unwrap_or_default().to_owned();
    let all = binary.symbols().iter();
    let mut symbols: Vec<_> = all
        .map(|symbol| {
            (
                symbol.address.0,
                symbol.size,
                kind(symbol.kind).to_owned(),
                bare(symbol.name),
            )
        })
        .collect();
    symbols.sort();
    symbols.dedup();
    symbols
}

fn relocations_agree(binary: &Binary<'_>, path: &Path) {
    let expected = build::relocations(path);
    let mut found: BTreeMap<u64, u64> = binary
        .pointer_slots()
        .iter()
        .map(|&(slot, target)| (slot.0, target.0))
        .collect();
    for slot in &expected.packed {
        let target = found.remove(slot);
        let stored = binary.data_at(Address(*slot)).and_then(<[u8]>::first_chunk);
        assert!(target.is_some(), "packed slot {slot:#x} of {path:?}");
        assert_eq!(target, stored.map(|bytes| u64::from_le_bytes(*bytes)));
    }
    let resolvers: BTreeMap<u64, u64> = binary
        .resolver_slots()
        .iter()
        .map(|&(slot, target)| (slot.0, target.0))
        .collect();
    // A symbol that is an indirect function is a plain symbol to readelf.
    let merged = |a: &BTreeMap<u64, u64>, b: &BTreeMap<u64, u64>| -> BTreeMap<u64, u64> {
        a.iter()
            .chain(b)
            .map(|(&slot, &target)| (slot, target))
            .collect()
    };
    assert_eq!(
        merged(&found, &resolvers),
        merged(&expected.pointers, &expected.resolvers),
        "pointers of {path:?}"
    );
    for (slot, name) in &expected.imports {
        let import = binary
            .import_in_slot(Address(*slot))
            .map(|index| index as usize);
        let found = import
            .and_then(|index| binary.imports().get(index))
            .map(|import| import.name);
        assert_eq!(found, Some(name.as_str()), "slot {slot:#x} of {path:?}");
    }
}

fn stubs_agree(binary: &Binary<'_>, path: &Path) {
    let target = |target| match target {
        PltTarget::Import(index) => binary.imports()[index as usize].name.to_owned(),
        PltTarget::Function(address) | PltTarget::Resolver(address) => {
            // binutils name these by their symbol, or *ABS* and the resolver where it has none.
            assert!(binary.is_code(address));
            String::from("*")
        }
        // Static programs have one through a slot that stays zero; objdump does not name it.
        PltTarget::Unknown => String::from("unknown"),
        PltTarget::Header => String::from("header"),
    };
    let found: BTreeMap<u64, String> = binary
        .plt()
        .iter()
        .map(|stub| (stub.range.start().0, target(stub.target)))
        .collect();
    for (address, name) in build::stubs(path) {
        let found = found.get(&address).map(String::as_str);
        let matches = found == Some("*") || found == Some(name.as_str());
        assert!(
            matches,
            "stub {address:#x} of {path:?}: {found:?}, not {name:?}"
        );
    }
}

/// Compiler flags of each build, with the kind of file that results.
const BUILDS: [(&str, &[&str], FileKind); 11] = [
    ("pie", &[], FileKind::PositionIndependentExecutable),
    (
        "pie-lazy",
        &["-Wl,-z,lazy", "-fcf-protection=none"],
        FileKind::PositionIndependentExecutable,
    ),
    (
        "pie-ibt",
        &["-Wl,-z,lazy", "-fcf-protection=full", "-Wl,-z,ibtplt"],
        FileKind::PositionIndependentExecutable,
    ),
    (
        "pie-now-ibt",
        &["-Wl,-z,now", "-fcf-protection=full", "-Wl,-z,ibtplt"],
        FileKind::PositionIndependentExecutable,
    ),
    (
        "packed",
        &["-Wl,-z,pack-relative-relocs"],
        FileKind::PositionIndependentExecutable,
    ),
    ("fixed", &["-no-pie", "-fno-pie"], FileKind::Executable),
    ("static", &["-static"], FileKind::Executable),
    (
        "static-pie",
        &["-static-pie"],
        FileKind::PositionIndependentExecutable,
    ),
    (
        "joined",
        &["-Wl,-z,noseparate-code", "-Wl,--hash-style=sysv"],
        FileKind::PositionIndependentExecutable,
    ),
    (
        "library",
        &["-shared", "-fPIC", "-DLIBRARY"],
        FileKind::SharedObject,
    ),
    (
        "named-library",
        &[
            "-shared",
            "-fPIC",
            "-DLIBRARY",
            "-Wl,-soname,x.so",
            "-Wl,-z,norelro",
        ],
        FileKind::SharedObject,
    ),
];

#[test]
fn agrees_with_binutils_on_every_build() {
    let workshop = Workshop::new();
    for (name, flags, kind) in BUILDS {
        let flags: Vec<&str> = flags.iter().copied().chain(["-O1"]).collect();
        let path = workshop.build("gcc", &flags, "plain.c", SOURCE, name);
        agrees(&path);
        let data = fs::read(&path).expect("built above");
        let binary = Binary::parse(&data).expect("parsed above");
        assert_eq!(binary.kind(), kind, "{name}");
        assert_eq!(
            binary.is_position_independent(),
            kind != FileKind::Executable,
            "{name}"
        );
        assert!(binary.build_id().is_some_and(|id| id.len() == 20), "{name}");
        knows_its_data(&binary, name);
        let path = path.to_str().expect("a path in UTF-8");
        let stripped = workshop.path("stripped");
        run(
            "strip",
            &["-o", stripped.to_str().expect("a path in UTF-8"), path],
        );
        agrees(&stripped);
    }
}

/// What the source says of each object.
fn knows_its_data(binary: &Binary<'_>, build: &str) {
    let find = |name: &str| {
        let symbol = binary.symbols().iter().find(|symbol| symbol.name == name);
        symbol
            .unwrap_or_else(|| panic!("{name} in {build}"))
            .address
    };
    assert!(
        binary.constant_at(find("table")).is_some(),
        "{build}: a constant table"
    );
    assert!(
        binary.constant_at(find("changing")).is_none(),
        "{build}: a table that changes"
    );
    assert!(binary.data_at(find("changing")).is_some(), "{build}");
    assert!(binary.constant_at(find("empty")).is_none(), "{build}: .bss");
    assert!(binary.data_at(find("empty")).is_none(), "{build}: .bss");
    assert!(
        binary.is_code(find("work")) && !binary.is_code(find("written")),
        "{build}"
    );
    let initial = binary.initial_functions();
    for name in ["begin", "finish"] {
        assert!(
            initial.contains(&find(name)),
            "{build}: {name} is in an array of initialisers"
        );
    }
    let start = binary
        .symbols()
        .iter()
        .find(|symbol| symbol.name == "_start");
    assert_eq!(
        start.map(|start| start.address),
        start.and(binary.entry()),
        "{build}"
    );
}

#[test]
fn agrees_with_binutils_on_what_lld_links() {
    need("clang-19", "clang-19");
    need("ld.lld-19", "lld-19");
    let workshop = Workshop::new();
    let builds: [(&str, &[&str]); 5] = [
        ("lld", &[]),
        ("lld-ibt", &["-fcf-protection=full", "-Wl,-z,force-ibt"]),
        ("lld-fixed", &["-no-pie"]),
        ("lld-static", &["-static"]),
        (
            "lld-packed",
            &["-Wl,--pack-dyn-relocs=relr", "-Wl,--no-rosegment"],
        ),
    ];
    for (name, flags) in builds {
        let flags: Vec<&str> = flags
            .iter()
            .copied()
            .chain(["-O1", "-fuse-ld=lld-19", "-Wl,--build-id"])
            .collect();
        agrees(&workshop.build("clang-19", &flags, "plain.c", SOURCE, name));
    }
}

/// The same program as if its section headers had been removed.
fn without_sections(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    data[0x28..0x30].fill(0); // e_shoff
    data[0x3c..0x40].fill(0); // e_shnum, e_shstrndx
    data
}

#[test]
fn needs_no_section_headers() {
    let workshop = Workshop::new();
    for (name, flags, kind) in BUILDS {
        let flags: Vec<&str> = flags.iter().copied().chain(["-O1", "-s"]).collect();
        let path = workshop.build("gcc", &flags, "plain.c", SOURCE, name);
        let data = fs::read(&path).expect("built above");
        let bare_data = without_sections(&data);
        let whole = Binary::parse(&data).expect("a program");
        let bare = Binary::parse(&bare_data).expect("a program without section headers");
        assert_eq!(bare.warnings(), [], "{name}");
        check::promises(&bare);
        assert_eq!(bare.kind(), kind, "{name}");
        assert_eq!(bare.build_id(), whole.build_id(), "{name}");
        assert_eq!(bare.imports(), whole.imports(), "{name}");
        assert_eq!(bare.symbols(), whole.symbols(), "{name}");
        assert_eq!(bare.pointer_slots(), whole.pointer_slots(), "{name}");
        let code = whole
            .code()
            .iter()
            .all(|region| bare.code_at(region.range.start()).is_some());
        assert!(code, "{name}: all code is still code");
        if name != "static" {
            // Static programs have their initialisers and IRELATIVE relocations in sections alone.
            assert_eq!(bare.resolver_slots(), whole.resolver_slots(), "{name}");
            assert_eq!(
                bare.initial_functions(),
                whole.initial_functions(),
                "{name}"
            );
        }
        for stub in bare.plt() {
            assert_eq!(
                whole.plt_stub(stub.range.start()).map(|stub| stub.target),
                Some(stub.target)
            );
        }
        if name == "static" {
            // It registers its table by a call, and nothing but the section header says where.
            continue;
        }
        let (with, without) = (unwind::read(&whole), unwind::read(&bare));
        assert_eq!(with.functions, without.functions, "{name}");
        assert_eq!(without.warnings, [], "{name}");
    }
}

#[test]
fn stubs_are_found_without_section_headers() {
    let workshop = Workshop::new();
    for (name, flags) in [
        ("lazy", "-fcf-protection=none"),
        ("ibt", "-fcf-protection=full"),
    ] {
        let flags = [flags, "-Wl,-z,lazy", "-O1"];
        let path = workshop.build("gcc", &flags, "plain.c", SOURCE, name);
        let data = without_sections(&fs::read(&path).expect("built above"));
        let binary = Binary::parse(&data).expect("a program");
        let imports = binary.plt().iter().filter_map(|stub| match stub.target {
            PltTarget::Import(index) => Some(binary.imports()[index as usize].name),
            _ => None,
        });
        let imports: Vec<&str> = imports.collect();
        for wanted in ["free", "malloc", "printf"] {
            assert!(imports.contains(&wanted), "{name}: {wanted} in {imports:?}");
        }
    }
}

#[test]
fn compressed_sections_are_decompressed() {
    let workshop = Workshop::new();
    for format in ["zlib", "zlib-gnu", "zstd"] {
        let path = workshop.build("gcc", &["-g", "-gz=none"], "plain.c", SOURCE, "plain");
        let plain = fs::read(&path).expect("built above");
        let compressed = workshop.path(format);
        let option = format!("--compress-debug-sections={format}");
        let (from, to) = (path.to_str(), compressed.to_str());
        let (from, to) = (from.expect("UTF-8"), to.expect("UTF-8"));
        run("objcopy", &[&option, from, to]);
        let data = fs::read(&compressed).expect("copied above");
        assert_ne!(data, plain, "{format}");
        let (plain, packed) = (Binary::parse(&plain), Binary::parse(&data));
        let (plain, packed) = (plain.expect("a program"), packed.expect("a program"));
        for name in [".debug_info", ".debug_str", ".debug_line"] {
            let expected = plain.section(name).expect("debug information");
            let found = packed.section(name).expect("compressed debug information");
            assert_eq!(found.data, expected.data, "{format} {name}");
        }
    }
}

#[test]
fn imports_have_versions() {
    let workshop = Workshop::new();
    let path = workshop.build("gcc", &[], "plain.c", SOURCE, "plain");
    let data = fs::read(path).expect("built above");
    let binary = Binary::parse(&data).expect("a program");
    let printf = binary
        .imports()
        .iter()
        .find(|import| import.name == "printf");
    let printf = printf.expect("printf is imported");
    assert!(
        printf
            .version
            .is_some_and(|version| version.starts_with("GLIBC_2.")),
        "{printf:?}"
    );
}
