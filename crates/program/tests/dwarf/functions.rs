//! Functions, their names, bytes and results.

use crate::build::{Built, C, CPP, RUST, build, tool};
use crate::oracle;
use std::collections::BTreeMap;
use tomo_program::Address;
use tomo_program::dwarf::{DebugFunction, DebugInfo, Prototype, ResultKind, Sections, functions};

const VOID: Prototype = Prototype {
    result: ResultKind::Void,
    noreturn: false,
};
const VALUE: Prototype = Prototype {
    result: ResultKind::Value,
    noreturn: false,
};
const NORETURN: Prototype = Prototype {
    result: ResultKind::Void,
    noreturn: true,
};

fn read(built: &Built) -> DebugInfo {
    functions(&Sections::read(&built.bytes()))
}

fn find<'i>(info: &'i DebugInfo, name: &str) -> &'i DebugFunction {
    let has_name = |it: &&DebugFunction| it.name.as_deref() == Some(name);
    info.functions
        .iter()
        .find(has_name)
        .unwrap_or_else(|| panic!("{name} is missing"))
}

/// The only function whose (mangled) name has `part` in it.
fn containing<'i>(info: &'i DebugInfo, part: &str) -> &'i DebugFunction {
    let has_part = |it: &&DebugFunction| it.name.as_ref().is_some_and(|name| name.contains(part));
    let mut found = info.functions.iter().filter(has_part);
    let function = found.next().unwrap_or_else(|| panic!("{part} is missing"));
    assert_eq!(found.next(), None, "{part} is in several names");
    function
}

/// Holds what was read against `readelf`'s reading of the same file, and its symbols.
fn check(built: &Built) -> DebugInfo {
    let info = read(built);
    assert_eq!(info.warnings, []);
    assert!(info.has_lines);
    assert!(
        info.functions
            .windows(2)
            .all(|pair| pair[0].entry < pair[1].entry),
        "sorted, unique"
    );
    check_against_readelf(built, &info);
    check_symbols(built, &info);
    info
}

fn check_against_readelf(built: &Built, info: &DebugInfo) {
    let read: BTreeMap<u64, oracle::Function> = info.functions.iter().map(shown).collect();
    let expected = oracle::functions(&built.program);
    assert_eq!(
        read.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>()
    );
    for (entry, function) in &expected {
        assert_eq!(&read[entry], function);
    }
}

fn shown(function: &DebugFunction) -> (u64, oracle::Function) {
    let end = match function.ranges[..] {
        [range] => Some(range.end().0),
        _ => None,
    };
    let shown = oracle::Function {
        entry: function.entry.0,
        end,
        name: function.name.clone(),
        result: function.prototype.result,
        noreturn: function.prototype.noreturn,
    };
    (function.entry.0, shown)
}

/// Each function read is a symbol of the same name, and the part with its entry has its size.
fn check_symbols(built: &Built, info: &DebugInfo) {
    let symbols = tool("nm", &["--print-size", "--defined-only"], &built.program);
    let symbols: Vec<Vec<&str>> = symbols
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for function in &info.functions {
        let at = format!("{:016x}", function.entry.0);
        let here: Vec<_> = symbols
            .iter()
            .filter(|it| it.len() == 4 && it[0] == at)
            .collect();
        let name = function
            .name
            .as_deref()
            .expect("all these functions have names");
        // Link-time optimisation and cloning add suffixes, constructors are called C4 in one and C1
        // and C2 in the other.
        let called = |symbol: &str| {
            symbol.split('.').next() == name.split('.').next()
                || name.starts_with("_ZN5Shape")
                || name.starts_with("_ZN6Square")
                || !name.starts_with('_')
        };
        assert!(
            here.iter().any(|it| called(it[3])),
            "{name} at {at}: {here:?}"
        );
        let first = function
            .ranges
            .iter()
            .find(|it| it.start() == function.entry);
        let size = format!("{:016x}", first.expect("the entry starts a range").size());
        assert!(
            here.iter().any(|it| it[1] == size),
            "{name}: size {size}, {here:?}"
        );
    }
}

fn check_c(built: &Built) -> DebugInfo {
    let info = check(built);
    assert_eq!(find(&info, "main").prototype, VALUE);
    assert_eq!(find(&info, "split").prototype, VALUE);
    assert_eq!(find(&info, "rare").prototype, VOID);
    info
}

#[test]
fn c_by_gcc_and_clang_in_all_versions() {
    for compiler in ["gcc", "clang-19"] {
        for version in ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
            for level in ["-O0", "-O2"] {
                check_c(&build(compiler, &["-g", version, level], &C));
            }
        }
    }
}

#[test]
fn c_by_its_source() {
    for flags in [["-g", "-O0"], ["-g", "-O1"]] {
        let info = check_c(&build("gcc", &[&flags[..], &["-fno-inline"]].concat(), &C));
        for name in ["by_another_name", "inlined_and_not", "unused"] {
            assert_eq!(find(&info, name).prototype, VOID, "{name}");
        }
        for name in ["a_pointer", "a_function_pointer", "a_pair", "elsewhere"] {
            assert_eq!(find(&info, name).prototype, VALUE, "{name}");
        }
        assert_eq!(find(&info, "die").prototype, NORETURN);
        assert!(find(&info, "die_quietly").prototype.noreturn);
        let hidden = info
            .functions
            .iter()
            .filter(|it| it.name.as_deref() == Some("hidden"));
        let mut results: Vec<_> = hidden.map(|it| it.prototype).collect();
        results.sort_by_key(|it| it.result == ResultKind::Value);
        assert_eq!(results, [VOID, VALUE], "two static functions of one name");
    }
}

#[test]
fn what_is_only_declared_is_known_by_name() {
    let info = read(&build("gcc", &["-g", "-O2"], &C));
    assert!(info.external["abort"].noreturn);
    assert!(info.external["exit"].noreturn);
    assert_eq!(info.external["exit"].result, ResultKind::Void);
    assert_eq!(info.external["puts"], VALUE);
    assert_eq!(info.external["die"], NORETURN);
    assert_eq!(info.external["main"], VALUE);
    assert!(
        !info.external.contains_key("hidden"),
        "static functions are nobody else's"
    );
}

#[test]
fn sections_of_functions_and_those_thrown_away() {
    for (compiler, linker) in [("gcc", "-fuse-ld=bfd"), ("clang-19", "-fuse-ld=lld-19")] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let flags = [
                "-g",
                version,
                "-O2",
                "-ffunction-sections",
                "-Wl,--gc-sections",
                linker,
            ];
            if linker.contains("lld") && !has_lld() {
                continue;
            }
            let built = build(compiler, &flags, &C);
            let info = read(&built);
            assert!(
                info.functions
                    .iter()
                    .all(|it| it.name.as_deref() != Some("unused"))
            );
            assert!(info.functions.iter().all(|it| it.entry > Address(0x200)));
            check_c(&built);
        }
    }
}

fn has_lld() -> bool {
    std::process::Command::new("ld.lld-19")
        .arg("--version")
        .output()
        .is_ok()
}

#[test]
fn compressed_sections_hold_the_same() {
    let plain = read(&build("gcc", &["-g", "-O2"], &C));
    for flag in ["-gz=zlib", "-gz=zlib-gnu"] {
        let built = build("gcc", &["-g", "-O2", flag], &C);
        let headers = tool("readelf", &["--sections", "--wide"], &built.program);
        let is_compressed = |line: &str| {
            line.contains(".zdebug_info") || (line.contains(".debug_info") && line.contains(" C "))
        };
        assert!(headers.lines().any(is_compressed), "{headers}");
        let compressed = read(&built);
        assert_eq!(compressed.functions, plain.functions);
        assert_eq!(compressed.external, plain.external);
        assert_eq!(compressed.warnings, []);
    }
}

#[test]
fn link_time_optimisation_refers_across_units() {
    for (compiler, flags) in [
        ("gcc", &["-g", "-O2", "-flto"][..]),
        ("gcc", &["-g", "-O2", "-flto", "-gdwarf-4", "-fno-inline"]),
    ] {
        let built = build(compiler, flags, &C);
        let info = check_c(&built);
        assert!(info.external["exit"].noreturn);
    }
    let info = check(&build("g++", &["-g", "-O1", "-flto", "-fno-inline"], &CPP));
    assert_eq!(find(&info, "_ZNK5Shape4areaEv").prototype, VALUE);
}

#[test]
fn split_functions_have_all_their_ranges() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let flags = [
            "-g",
            version,
            "-O2",
            "-freorder-blocks-and-partition",
            "-fno-ipa-cp",
        ];
        let built = build("gcc", &flags, &C);
        let info = check_c(&built);
        let split = find(&info, "split");
        assert_eq!(split.ranges.len(), 2, "{split:?}");
        let symbols = tool("nm", &["--print-size"], &built.program);
        let cold = symbols
            .lines()
            .find(|line| line.ends_with(" split.cold"))
            .expect("a cold part");
        let start = u64::from_str_radix(&cold[..16], 16).expect("an address");
        let size = u64::from_str_radix(&cold[17..33], 16).expect("a size");
        assert_eq!(
            (split.ranges[1].start().0, split.ranges[1].size()),
            (start, size)
        );
        assert_eq!(split.entry, split.ranges[0].start());
    }
}

#[test]
fn members_specialisations_and_lambdas() {
    for compiler in ["g++", "clang++-19"] {
        for flags in [["-g", "-O0"], ["-g", "-O2"], ["-gdwarf-4", "-O1"]] {
            let info = check(&build(compiler, &flags, &CPP));
            for name in ["_ZN5Shape4growEi", "_ZN5ShapeD2Ev"] {
                assert_eq!(prototype(&info, name), VOID, "{name}");
            }
            for name in ["_ZNK5Shape4areaEv", "_ZN5Shape5countEv", "plain_name"] {
                assert_eq!(prototype(&info, name), VALUE, "{name}");
            }
            for name in ["_ZN5Shape4failEv", "_ZN5outer5inner5leaveEi"] {
                assert_eq!(prototype(&info, name), NORETURN, "{name}");
                assert!(info.external[name].noreturn, "{name}");
            }
            assert_eq!(containing(&info, "5twice").prototype, VALUE);
            assert_eq!(containing(&info, "nothing_of").prototype, VOID);
            assert_eq!(info.external["plain_name"], VALUE);
            assert!(
                !info.external.contains_key("area"),
                "a method is not known by its bare name"
            );
        }
    }
}

#[test]
fn types_in_units_of_their_own() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let built = build("g++", &[version, "-O1", "-fdebug-types-section"], &CPP);
        let info = read(&built);
        assert_eq!(info.warnings, []);
        for (name, expected) in [
            ("_ZNK5Shape4areaEv", VALUE),
            ("_ZN5Shape4growEi", VOID),
            ("_ZN5Shape4failEv", NORETURN),
        ] {
            assert_eq!(prototype(&info, name), expected, "{name}");
        }
    }
}

/// The prototype of a function; destructors and constructors have several instances.
fn prototype(info: &DebugInfo, name: &str) -> Prototype {
    let other = name.replace("D2E", "D4E");
    let is_it = |it: &&DebugFunction| {
        it.name
            .as_deref()
            .is_some_and(|called| called == name || called == other)
    };
    info.functions
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{name} is missing"))
        .prototype
}

#[test]
fn rust_units_and_never() {
    for flags in [
        ["-g", "-Copt-level=0"],
        ["-g", "-Copt-level=2"],
        ["-g", "-Cdebuginfo=2"],
    ] {
        let built = build(
            "rustc",
            &[&flags[..], &["--edition", "2024"]].concat(),
            &RUST,
        );
        let info = read(&built);
        assert_eq!(info.warnings, []);
        check_against_readelf(&built, &info);
        assert_eq!(containing(&info, "Counter3add").prototype, VOID);
        assert_eq!(containing(&info, "Counter3get").prototype, VALUE);
        assert_eq!(containing(&info, "7give_up").prototype, NORETURN);
        assert_eq!(containing(&info, "4main7nothing").prototype, VOID);
        assert_eq!(find(&info, "plain").prototype, VALUE);
        assert_eq!(containing(&info, "main..Shape$GT$4area").prototype, VALUE);
        assert_eq!(containing(&info, "main..Shape$GT$4grow").prototype, VOID);
    }
}

#[test]
fn line_tables_only_say_nothing_about_results() {
    for (compiler, flag) in [("gcc", "-g1"), ("clang-19", "-gmlt"), ("g++", "-g1")] {
        let built = build(
            compiler,
            &[flag, "-O1"],
            if compiler == "g++" { &CPP } else { &C[..] },
        );
        let info = read(&built);
        assert!(!info.functions.is_empty());
        for function in &info.functions {
            assert_eq!(
                function.prototype.result,
                ResultKind::Unknown,
                "{function:?}"
            );
        }
        assert_eq!(info.warnings, []);
    }
    let flags = ["-Cdebuginfo=1", "-Copt-level=1", "--edition", "2024"];
    let info = read(&build("rustc", &flags, &RUST));
    let add = containing(&info, "Counter3add").prototype;
    assert_eq!(
        add,
        Prototype {
            result: ResultKind::Unknown,
            noreturn: false
        }
    );
    assert!(containing(&info, "7give_up").prototype.noreturn);
}

#[test]
fn assembly_has_no_results() {
    let source = ".text\n.globl f\n.type f,@function\nf: ret\n.size f,.-f\n.globl main\n\
                  .type main,@function\nmain: call f\nxor %eax,%eax\nret\n.size main,.-main\n";
    let info = read(&build("gcc", &["-g"], &[("a.s", source)]));
    assert!(info.has_lines);
    for function in &info.functions {
        assert_eq!(function.prototype, Prototype::default(), "{function:?}");
    }
}

#[test]
fn split_debug_information_is_said_to_be_missing() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let built = build("gcc", &["-g", version, "-gsplit-dwarf", "-O1"], &C);
        let info = read(&built);
        assert_eq!(info.functions, []);
        assert!(info.has_lines);
        let warnings: Vec<String> = info.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].contains(".dwo") && warnings[0].contains("and 1 more"),
            "{warnings:?}"
        );
    }
}

#[test]
fn no_debug_information_is_no_trouble() {
    let built = build("gcc", &["-O1", "-s"], &C);
    let bytes = built.bytes();
    let sections = Sections::read(&bytes);
    assert!(sections.is_empty());
    let info = functions(&sections);
    assert!(info.functions.is_empty() && info.external.is_empty() && !info.has_lines);
    assert_eq!(info.warnings, []);
}
