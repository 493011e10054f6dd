//! All lines of blocks, held against the rows that `objdump` (binutils) decodes and the inlined calls that
//! `llvm-dwarfdump` (LLVM) finds.

use crate::build::{Built, C, CPP, build, tool};
use std::collections::BTreeSet;
use tomo_program::dwarf::{BlockLines, Position, Sections, block_lines, functions, lines};
use tomo_program::{Address, Range};
use tomo_testkit::inlined::calls;

/// Pieces of the program's functions, of all sizes up to 16 bytes, as if they were blocks.
pub(crate) fn pieces(sections: &Sections<'_>) -> Vec<Range> {
    let info = functions(sections);
    let mut ranges: Vec<Range> = info
        .functions
        .iter()
        .flat_map(|it| it.ranges.clone())
        .collect();
    ranges.sort_by_key(|range| range.start());
    let mut pieces: Vec<Range> = Vec::new();
    for range in ranges {
        let mut start = range
            .start()
            .0
            .max(pieces.last().map_or(0, |it| it.end().0));
        while start < range.end().0 {
            let size = (1 + pieces.len() as u64 % 16).min(range.end().0 - start);
            pieces.extend(Range::sized(Address(start), size));
            start += size;
        }
    }
    pieces
}

/// What is stated of one address: the file's last name, and the line.
pub(crate) type Statement = (u64, String, u32);

/// All rows with a statement, as objdump shows them: name, line, address, view, `x`; and all inlined calls.
fn expected(built: &Built) -> BTreeSet<Statement> {
    let text = tool("objdump", &["--dwarf=decodedline"], &built.program);
    let row = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let address = u64::from_str_radix(words.get(2)?.strip_prefix("0x")?, 16).ok()?;
        let number = words[1].parse().ok().filter(|&number| number > 0)?;
        (words.last() == Some(&"x")).then(|| (address, words[0].to_owned(), number))
    };
    let calls = calls(&built.program).expect("read");
    text.lines().filter_map(row).chain(calls).collect()
}

fn name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

pub(crate) fn shown(lines: &BlockLines, pieces: &[Range]) -> BTreeSet<Statement> {
    let of_piece = |(index, piece): (usize, &Range)| {
        let start = piece.start().0;
        let show = move |it: &Position| (start, name(&lines.files[it.file as usize]), it.line);
        lines.statements(index).iter().map(show)
    };
    pieces.iter().enumerate().flat_map(of_piece).collect()
}

/// The line of a call that was inlined is a line with code, though no row states it.
#[test]
fn calls_that_were_inlined_have_their_lines() {
    const CALLS: (&str, &str) = (
        "calls.c",
        "static inline int next(int x) { return x ? x * 3 : 7; }\nint main(int count, char **words) {\n    (void)words;\n    \
         return\n    next(\n    count);\n}\n",
    );
    for compiler in ["gcc", "clang-19"] {
        let built = build(compiler, &["-g", "-O2"], &[CALLS]);
        let calls = calls(&built.program).expect("read");
        assert!(!calls.is_empty(), "{compiler} inlines nothing");
        check(&built);
    }
}

/// What is inlined where a function begins has a row of its own at the same address; the function keeps its line. Of
/// LLVM's functions that row may be the only one: then they have the line of the call.
#[test]
fn a_function_begins_with_its_own_line_whatever_is_inlined_there() {
    const INLINED: (&str, &str) = (
        "inlined.h",
        "\n\n\n\n\n\n\nstatic inline int first(const int *x) {\n    return *x;\n}\n",
    );
    const BEGINS: (&str, &str) = (
        "begins.c",
        "#include \"inlined.h\"\n__attribute__((noinline)) int begins(const int *x) {\n    return first(x) + 1;\n}\n\
         int main(int count, char **words) {\n    (void)words;\n    return begins(&count);\n}\n",
    );
    for compiler in ["gcc", "clang-19"] {
        for flags in [["-g", "-O0"], ["-g", "-O1"], ["-g", "-O2"]] {
            let built = build(compiler, &flags, &[INLINED, BEGINS]);
            let place = begin_of_begins(&built);
            let lines = if compiler == "gcc" { 2..3 } else { 2..4 };
            assert!(
                place.0 == "begins.c" && lines.contains(&place.1),
                "{compiler} {flags:?} {place:?}"
            );
        }
    }
}

/// The file that the function is in has a higher number than the one whose function calls another that is inlined with it.
#[test]
fn a_function_begins_with_its_own_line_whatever_its_files_number() {
    const DEEPER: (&str, &str) = (
        "deeper.h",
        "static inline int second(const int *x) {\n    return *x;\n}\n",
    );
    const INLINED: (&str, &str) = (
        "inlined.h",
        "__attribute__((noinline)) static int earlier(int x) {\n    return x * 3;\n}\n\
         static inline int first(const int *x) {\n    return second(x);\n}\n",
    );
    const BEGINS: (&str, &str) = (
        "begins.c",
        "#include \"deeper.h\"\n#include \"inlined.h\"\nint uses(int x) { return earlier(x); }\n\
         __attribute__((noinline)) int begins(const int *x) {\n    return first(x) + 1;\n}\n\
         int main(int count, char **words) { (void)words; return begins(&count) + uses(count); }\n",
    );
    let flags = ["-g", "-O1", "-fno-toplevel-reorder"];
    let built = build("gcc", &flags, &[DEEPER, INLINED, BEGINS]);
    assert_eq!(begin_of_begins(&built), ("begins.c".into(), 4));
}

/// The file and the line that the function `begins` begins with.
fn begin_of_begins(built: &Built) -> (String, u32) {
    let bytes = built.bytes();
    let sections = Sections::read(&bytes);
    let info = functions(&sections);
    let mut functions = info.functions.iter();
    let begins = functions.find(|it| it.name.as_deref() == Some("begins"));
    let read = block_lines(&sections, &begins.expect("a function").ranges);
    let begin = read.begin(0).expect("a line");
    (name(&read.files[begin.file as usize]), begin.line)
}

/// Compares all pieces, and gives how many statements there were.
fn check(built: &Built) -> usize {
    let bytes = built.bytes();
    let sections = Sections::read(&bytes);
    let pieces = pieces(&sections);
    let read = block_lines(&sections, &pieces);
    assert_eq!(read.warnings, []);
    let piece_of = |address: u64| {
        let behind = pieces.partition_point(|piece| piece.start().0 <= address);
        let piece = pieces.get(behind.checked_sub(1)?)?;
        piece.contains(Address(address)).then(|| piece.start().0)
    };
    let in_piece = |(address, file, line): Statement| Some((piece_of(address)?, file, line));
    let expected: BTreeSet<_> = expected(built).into_iter().filter_map(in_piece).collect();
    assert_eq!(shown(&read, &pieces), expected);
    check_ends(&sections, &read, &pieces);
    expected.len()
}

/// The ends of pieces come from where [`lines`] says of each address.
fn check_ends(sections: &Sections<'_>, read: &BlockLines, pieces: &[Range]) {
    let first: Vec<_> = pieces.iter().map(|piece| piece.start()).collect();
    let last: Vec<_> = pieces
        .iter()
        .map(|piece| Address(piece.end().0 - 1))
        .collect();
    for (addresses, places) in [(first, &read.first), (last, &read.last)] {
        let lines = lines(sections, &addresses);
        let named = |files: &[String], at: &[Option<Position>]| -> Vec<_> {
            at.iter()
                .map(|at| at.map(|it| (files[it.file as usize].clone(), it.line)))
                .collect()
        };
        assert_eq!(named(&read.files, places), named(&lines.files, &lines.at));
    }
}

#[test]
fn c_by_both_compilers() {
    for compiler in ["gcc", "clang-19"] {
        for flags in [
            &["-g", "-O0"][..],
            &["-g", "-O2"],
            &["-g", "-O2", "-gdwarf-4"],
        ] {
            let count = check(&build(compiler, flags, &C));
            assert!(count > 25, "{count} by {compiler} {flags:?}");
        }
    }
}

#[test]
fn cpp_with_much_inlined() {
    for compiler in ["g++", "clang++-19"] {
        for types in ["-fno-debug-types-section", "-fdebug-types-section"] {
            let count = check(&build(compiler, &["-g", "-O2", types], &CPP));
            assert!(count > 25, "{count} by {compiler} {types}");
        }
    }
}

#[test]
fn no_debug_information_is_no_lines() {
    let built = build("gcc", &["-O1"], &C);
    let bytes = built.bytes();
    let blocks = [Range::sized(Address(0x1000), 8).expect("small")];
    let read = block_lines(&Sections::read(&bytes), &blocks);
    assert!(read.is_empty() && read.statements(0).is_empty() && read.statements(9).is_empty());
    assert_eq!((read.first, read.last), (vec![None], vec![None]));
}
