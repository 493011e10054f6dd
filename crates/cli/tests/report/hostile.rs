//! Records that are cut, damaged or foreign: each is named and left out, and the rest is reported.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use tomo_wire::record::{Field, Reason, live_offset};

use crate::bench::{Bench, RAN, Seen};

#[test]
fn a_record_cut_anywhere_is_named_and_the_rest_merges() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&RAN));
    let expected = bench.tomo(&["report", "out", "--format", "lcov"]).well();
    let (plan, record) = Seen::blocks(&[0x1010]).files(program.id, 9);
    let ends: Vec<usize> = (0..record.len())
        .step_by(61)
        .chain([record.len() - 1])
        .collect();
    for end in &ends {
        let stem = bench.path("out").join(format!("cut-{end}"));
        fs::write(stem.with_extension("record"), &record[..*end]).expect("written");
        fs::write(stem.with_extension("plan"), &plan).expect("written");
    }
    let said = bench.tomo(&["report", "out", "--format", "lcov"]);
    assert_eq!((said.code, said.out), (Some(0), expected));
    assert_eq!(said.err.lines().count(), ends.len());
    for (end, line) in ends.iter().zip(&ends) {
        assert!(
            said.err.contains(&format!("cut-{end}.record: it is ")),
            "{line}"
        );
    }
}

/// A run, and the second beside it is there to be spoiled; with the report of the first alone.
fn beside_one_that_is_sound() -> (Bench, String) {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&RAN));
    let expected = bench.tomo(&["report", "out", "--format", "lcov"]).well();
    bench.run("out", 2, &program, &Seen::blocks(&[0x1010]));
    (bench, expected)
}

/// One record that is cut costs a merge that record, and nothing else.
#[test]
fn a_merge_goes_on_without_a_record_that_is_cut() {
    let (bench, expected) = beside_one_that_is_sound();
    let path = bench.path("out/run-2/m.record");
    let record = fs::read(&path).expect("there");
    for end in [0, 1, 100, 4096, record.len() - 1] {
        fs::write(&path, &record[..end]).expect("written");
        let merged = format!("merged-{end}");
        let said = bench.tomo(&["merge", "-o", &merged, "out"]);
        assert_eq!(said.code, Some(0));
        assert!(said.err.contains("run-2/m.record: it is "), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1);
        let report = bench.tomo(&["report", &merged, "--format", "lcov"]);
        assert_eq!(report.well(), expected);
    }
}

/// What some processes did nobody knows; a report that does not say so would make it less than it is.
#[test]
fn processes_that_were_not_observed_are_told() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&RAN));
    let path = bench.path("out/run-1/m.record");
    let mut record = fs::read(&path).expect("there");
    let mut says = |last: Reason, reasons: &[Reason], words: &[&str]| {
        let reasons = reasons.iter().map(|reason| reason.bit() as u32).sum();
        let fields = [Field::Refused, Field::Reason, Field::Reasons];
        for (field, value) in fields.into_iter().zip([2, last as u32, reasons]) {
            let at = live_offset(field) as usize;
            record[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        fs::write(&path, &record).expect("written");
        let said = bench.tomo(&["report", "out"]);
        assert_eq!(said.code, Some(0));
        assert!(words.iter().all(|it| said.err.contains(it)), "{}", said.err);
    };
    let debugger = "it runs under a debugger";
    // As records of before have it.
    let all = format!("sample: not observed in 2 of 3 processes of a run: {debugger}");
    says(Reason::Traced, &[], &[&all]);
    says(Reason::Traced, &[Reason::Traced], &[&all]);
    let both = [Reason::Traced, Reason::Emulated];
    let begin = "not observed in 2 of 3 processes of a run: for several reasons: ";
    says(
        Reason::Emulated,
        &both,
        &[begin, debugger, "; it runs in Valgrind"],
    );
    // Who has its text back was armed before, and is in both figures.
    let begin = "not observed in 2 processes of a run: for several reasons: ";
    let mixed = [Reason::Traced, Reason::Patched];
    says(
        Reason::Traced,
        &mixed,
        &[begin, debugger, "has had it back"],
    );
    says(
        Reason::Patched,
        &mixed[1..],
        &["in 2 of 2 processes of a run: the program changed"],
    );
}

#[test]
fn plans_that_are_damaged_or_missing() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&RAN));
    bench.run("out", 2, &program, &Seen::blocks(&[0x1000]));
    bench.run("out", 3, &program, &Seen::blocks(&[0x1000]));
    let plan = |number: u8| bench.path(format!("out/run-{number}/m.plan"));
    // The plan of the first record is damaged, that of the second is the same one, and sound.
    let mut bytes = fs::read(plan(1)).expect("there");
    *bytes.last_mut().expect("not empty") ^= 1;
    fs::write(plan(1), bytes).expect("written");
    fs::remove_file(plan(3)).expect("there");
    let said = bench.tomo(&["report", "out"]);
    assert_eq!(said.code, Some(0));
    let complaints: Vec<_> = said.err.lines().collect();
    assert_eq!(
        complaints.len(),
        1,
        "the third finds its plan beside another record: {complaints:?}"
    );
    assert!(complaints[0].contains("run-1") && complaints[0].contains("checksum"));
    assert!(said.out.starts_with("2 records"), "{}", said.out);
}

/// Half a document could be taken for a whole one.
#[test]
fn what_there_is_no_room_for_is_not_left_in_part() {
    let bench = Bench::with_a_run();
    bench.tomo(&["report"]).well();
    let script = r#"trap "" XFSZ; ulimit -f 1; exec "$0" "$@""#;
    let said = bench.shell(script, &["report", "--format", "json", "-o", "all.json"]);
    assert_eq!(said.code, Some(2));
    assert_eq!(said.err, "tomo: writing all.json: file too large\n");
    assert!(!bench.path("all.json").exists());
    let said = bench.tomo(&["report", "--format", "json", "-o", "/dev/full"]);
    assert_eq!(
        said.err,
        "tomo: writing /dev/full: no space left on device\n"
    );
    assert!(std::path::Path::new("/dev/full").exists());
}

#[test]
fn nothing_to_report() {
    let bench = Bench::new();
    let program = bench.sample();
    let refused = |arguments: &[&str], lines: &[&str]| {
        let said = bench.tomo(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
        let err = bench.clean(&said.err);
        assert_eq!(err.lines().collect::<Vec<_>>(), lines);
    };
    let last = "tomo: there is nothing to report";
    refused(
        &["report"],
        &["tomo: tomo-out: no such file or directory", last],
    );
    fs::create_dir(bench.path("empty")).expect("made");
    refused(
        &["report", "empty"],
        &["tomo: empty: holds no records", last],
    );
    refused(
        &["merge", "-o", "m", "empty"],
        &[
            "tomo: empty: holds no records",
            "tomo: there is nothing to merge",
        ],
    );
    bench.run("out", 1, &program, &Seen::blocks(&RAN));
    fs::write(bench.path("out/run-1/m.record"), b"hello").expect("written");
    refused(
        &["report", "out"],
        &[
            "tomo: out/run-1/m.record: it is no file of this kind that tomo has made",
            last,
        ],
    );
}

/// The program is gone, is another build, or has moved.
#[test]
fn programs_that_changed() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&RAN));
    let expected = bench.tomo(&["report", "out"]).well();
    fs::rename(&program.path, bench.path("moved")).expect("ours");
    let said = bench.tomo(&["report", "out"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains("sample: no such file or directory"),
        "{}",
        said.err
    );
    fs::copy(env!("CARGO_BIN_EXE_tomo"), &program.path).expect("copied");
    let said = bench.tomo(&["report", "out"]);
    assert!(said.err.contains("is another build by now"), "{}", said.err);
    let moved = bench
        .tomo(&["report", "out", "--program", "./moved"])
        .well();
    let moved = bench.table(&moved).replace("./moved", "DIR/sample");
    assert_eq!(moved, bench.table(&expected));
}

/// The build id stays when a program is stripped.
#[test]
fn stripped_since() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&RAN));
    fs::copy(&program.path, bench.path("whole")).expect("copied");
    let mut strip = Command::new("strip");
    let status = strip.arg(&program.path).status();
    assert!(status.expect("strip (Debian package binutils)").success());
    let said = bench.tomo(&["report", "out"]);
    assert_eq!(said.code, Some(2));
    let words = "sample: was stripped or changed otherwise since, though its build id is the same";
    assert!(said.err.contains(words), "{}", said.err);
    let report = ["report", "out", "--program", "./whole", "--program"];
    let said = bench.tomo(&[&report[..], &[env!("CARGO_BIN_EXE_tomo")]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let words = "tomo: none of the records that are shown is of this file";
    assert_eq!(said.err.matches("none of the records").count(), 1);
    assert!(said.err.contains(words), "{}", said.err);
}

/// Units that the module does not have.
#[test]
fn plans_of_something_else() {
    let bench = Bench::new();
    let program = bench.sample();
    for stranger in [0x1001, 0x9000, 0] {
        let mut seen = Seen::blocks(&RAN);
        seen.probes.push((stranger, true));
        bench.run(&format!("out-{stranger}"), 1, &program, &seen);
        let said = bench.tomo(&["report", &format!("out-{stranger}")]);
        assert_eq!(said.code, Some(2));
        assert!(
            said.err
                .contains(&format!("a unit at {stranger:#x} that the module has not")),
            "{}",
            said.err
        );
    }
}

/// Names that a program could choose to break out of a format.
#[test]
fn hostile_names_stay_names() {
    let bench = Bench::new();
    let source = crate::bench::SAMPLE
        .replace("/src/demo/a.c", "/src/<script>&\\\"'.c")
        .replace("unused", "\"a<b>&\\033[31m\"");
    let program = bench.assembled(&source);
    bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
    let xml = bench.tomo(&["report", "--format", "cobertura"]).well();
    crate::formats::document(&xml);
    crate::formats::lcov(&bench.tomo(&["report", "--format", "lcov"]).well());
    crate::formats::json(&bench, &[]);
    let table = bench
        .tomo(&["report", "--functions", "--html", "pages"])
        .well();
    assert!(
        !table.contains('\u{1b}') && table.contains("a<b>&"),
        "{table}"
    );
    for page in crate::pages::pages(&bench.path("pages")) {
        let text = fs::read_to_string(&page).expect("a page");
        assert!(
            !text.contains("<script") && !text.contains("a<b>"),
            "{}",
            page.display()
        );
    }
}

/// Readers of XML make spaces of tabs and line breaks in attributes, unless they are written as references.
#[test]
fn tabs_and_line_breaks_of_names_are_those_of_files_in_cobertura_too() {
    let bench = Bench::new();
    let source = crate::bench::SAMPLE.replace("/src/demo/a.c", "/src/a\\tb/c\\nd.c");
    let program = bench.assembled(&source);
    bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
    let xml = bench.tomo(&["report", "--format", "cobertura"]).well();
    let document = crate::formats::document(&xml);
    let classes = document.descendants().filter(|it| it.has_tag_name("class"));
    let names: Vec<_> = classes.filter_map(|it| it.attribute("name")).collect();
    assert!(names.contains(&"c\nd.c"), "{names:?}");
    let root = document.descendants().find(|it| it.has_tag_name("source"));
    let root = root.and_then(|it| it.text()).expect("a root");
    let paths = document
        .descendants()
        .filter_map(|it| it.attribute("filename"));
    let paths: Vec<_> = paths.map(|path| format!("{root}{path}")).collect();
    assert!(
        paths.iter().any(|path| path == "/src/a\tb/c\nd.c"),
        "{paths:?}"
    );
}

/// A document that was cut, or is another, is named in words of ours; the record beside it counts.
#[test]
fn documents_that_cannot_be_parsed_are_told() {
    let (bench, _) = beside_one_that_is_sound();
    let path = bench.path("out/run-2/run.json");
    let whole = fs::read_to_string(&path).expect("there");
    let cases = [
        (&whole[..whole.len() / 2], "it is cut short"),
        ("", "it is cut short"),
        (
            "{\n}}",
            "it is no file of this kind that tomo has made: see line 2, column 2",
        ),
    ];
    for (text, words) in cases {
        fs::write(&path, text).expect("written");
        let said = bench.tomo(&["report", "out", "--format", "lcov"]);
        let first = format!("tomo: out/run-2/run.json: {words}\n");
        assert!(said.err.starts_with(&first), "{}", said.err);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
}

/// What a newer tomo says of records may change what they mean.
#[test]
fn documents_of_a_newer_version_are_told() {
    let (bench, expected) = beside_one_that_is_sound();
    let path = bench.path("out/run-2/run.json");
    let text = fs::read_to_string(&path).expect("there");
    fs::write(&path, text.replace("tomo.run/1", "tomo.run/99")).expect("written");
    let said = bench.tomo(&["report", "out", "--format", "lcov"]);
    assert_eq!((said.code, said.out), (Some(0), expected));
    let words = "tomo: out/run-2/run.json: it has format version 99, and this program knows version 1: a newer tomo has made it, and can read it; records beside it are left out\n";
    assert_eq!(said.err, words);
    bench.tomo(&["merge", "-o", "both", "out"]);
    let path = bench.path("both/pool.json");
    let text = fs::read_to_string(&path).expect("there");
    fs::write(&path, text.replace("tomo.pool/1", "tomo.pool/99")).expect("written");
    for words in [&["report", "both"][..], &["merge", "-o", "again", "both"]] {
        let said = bench.tomo(words);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
        assert!(
            said.err
                .starts_with("tomo: both/pool.json: it has format version 99")
        );
        assert_eq!(said.err.lines().count(), 2, "{}", said.err);
    }
}

/// A pipe to which nobody writes would be waited for for ever.
#[test]
fn what_is_no_file_is_named_and_not_waited_for() {
    let bench = Bench::with_a_run();
    let expected = bench.tomo(&["report", "--format", "lcov"]).well();
    let pipes = ["tomo-out/run-1/pipe.record", "tomo-out/pool.json"].map(|pipe| bench.path(pipe));
    let made = Command::new("mkfifo").args(&pipes).status();
    assert!(made.expect("mkfifo").success());
    let said = bench.tomo(&["report", "--format", "lcov"]);
    assert_eq!((said.code, said.out), (Some(0), expected));
    assert_eq!(
        said.err,
        "tomo: tomo-out/pool.json: it is no file\ntomo: tomo-out/run-1/pipe.record: it is no file\n"
    );
}

/// A run that may not be read is not one that there is not.
#[test]
fn runs_that_cannot_be_read_are_named() {
    let bench = Bench::with_a_run();
    let program = bench.sample();
    for number in [2, 3] {
        bench.run("tomo-out", number, &program, &Seen::blocks(&RAN));
    }
    for (path, mode) in [("run-2", 0), ("run-3/run.json", 0), ("run-1", 0o755)] {
        let path = bench.path("tomo-out").join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    }
    let said = bench.tomo_as_nobody(&["report", "--format", "lcov"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for path in ["tomo-out/run-2", "tomo-out/run-3/run.json"] {
        let complaint = format!("tomo: {path}: permission denied\n");
        assert!(said.err.contains(&complaint), "{}", said.err);
    }
}

/// A folder of another command is told by the file that it has where coverage has a plan.
#[test]
fn records_of_other_commands_are_told() {
    let bench = Bench::with_a_run();
    let run = bench.path("tomo-out/run-1");
    let mut file = run.join("m.plan");
    for (kind, command) in [
        ("counters", "count"),
        ("paths", "paths"),
        ("predicates", "predicates"),
        ("functions", "chains"),
    ] {
        let other = run.join("m").with_extension(kind);
        fs::rename(&file, &other).expect("ours");
        file = other;
        let said = bench.tomo(&["report"]);
        assert_eq!(said.code, Some(2));
        let complaint = format!(
            "m.record: it is of `tomo {command}`, not of coverage: `tomo {command} --show` shows its run\n"
        );
        assert!(said.err.contains(&complaint), "{}", said.err);
    }
}

/// Folders and files may be called anything but text; sources and programs there are found all the same.
#[test]
fn paths_that_are_no_text_are_kept_to_the_byte() {
    let bench = Bench::new();
    let folder = bench.path(OsStr::from_bytes(b"nu-\xff"));
    fs::create_dir(&folder).expect("made");
    fs::write(folder.join("demo.c"), "int main(void) { return 7 - 7; }\n").expect("written");
    let program = folder.join(OsStr::from_bytes(b"demo-\xfe"));
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-O0", "demo.c", "-o"]).arg(&program);
    let built = compiler.current_dir(&folder).status().expect("cc");
    assert!(built.success());
    let program = bench.opened(program);
    let graphs = program.model.graphs().expect("a model");
    let blocks = graphs.functions().flat_map(|function| function.blocks());
    let probes = blocks.map(|block| (block.address().0, true)).collect();
    let seen = Seen {
        probes,
        ..Seen::blocks(&[])
    };
    bench.run("out", 1, &program, &seen);
    bench.tomo(&["merge", "-o", "merged", "out"]).well();
    for records in ["out", "merged"] {
        let lcov = ["report", records, "--format", "lcov", "-o", "lcov"];
        bench.tomo(&lcov).well();
        let lcov = fs::read(bench.path("lcov")).expect("written");
        let name = [b"\nSF:", folder.as_os_str().as_bytes(), b"/demo.c\n"].concat();
        assert!(
            lcov.windows(name.len()).any(|part| part == name),
            "{records}"
        );
        let pages = format!("pages-{records}");
        bench
            .tomo(&["report", records, "--format", "html", "-o", &pages])
            .well();
        let mut pages = crate::pages::pages(&bench.path(&pages)).into_iter();
        let shown = |page| {
            fs::read_to_string(page)
                .expect("a page")
                .contains("return 7 - 7;")
        };
        assert!(pages.any(shown), "{records}");
    }
}

/// Text formats keep them apart, too, and those of bytes have them as they are.
#[test]
fn paths_that_differ_in_what_is_no_text_are_not_mixed() {
    let bench = Bench::new();
    let mut names = Vec::new();
    for (number, byte) in [(1, 0xfe), (2, 0xff)] {
        let folder = bench.path(OsStr::from_bytes(&[b'd', byte]));
        fs::create_dir(&folder).expect("made");
        fs::write(folder.join("demo.c"), "int main(void) { return 0; }\n").expect("written");
        let program = folder.join("demo");
        let mut compiler = Command::new("cc");
        let source = folder.join("demo.c");
        compiler
            .args(["-g", "-O0"])
            .arg(&source)
            .arg("-o")
            .arg(&program);
        assert!(compiler.status().expect("cc").success());
        let program = bench.opened(program);
        let graphs = program.model.graphs().expect("a model");
        let blocks = graphs.functions().flat_map(|function| function.blocks());
        let probes = blocks.map(|block| (block.address().0, true)).collect();
        let seen = Seen {
            probes,
            ..Seen::blocks(&[])
        };
        bench.run("tomo-out", number, &program, &seen);
        names.push((source, program.path.clone()));
    }
    let document = crate::formats::json(&bench, &[]);
    let paths = |list: &str| -> Vec<String> {
        let list = document[list].as_array().expect("a list").iter();
        list.map(|one| one["path"].as_str().expect("a path").to_owned())
            .collect()
    };
    let (sources, programs): (Vec<_>, Vec<_>) = names.iter().cloned().unzip();
    let stated = |texts: Vec<String>| -> Vec<_> {
        texts
            .iter()
            .map(|text| tomo_program::path_of(text))
            .collect()
    };
    assert_eq!(stated(paths("files")), sources);
    assert_eq!(stated(paths("modules")), programs);
    let xml = bench.tomo(&["report", "--format", "cobertura"]).well();
    let classes = xml.lines().filter(|line| line.starts_with("<class "));
    let classes: std::collections::BTreeSet<&str> = classes.collect();
    assert_eq!(classes.len(), 2, "{xml}");
    let table = bench.tomo(&["report"]).well();
    let folders = table.lines().filter(|line| line.contains("/d\u{fffd} "));
    assert_eq!(folders.count(), 2, "{table}");
    bench
        .tomo(&["report", "--format", "drcov", "-o", "log"])
        .well();
    let log = fs::read(bench.path("log")).expect("written");
    for program in &programs {
        let line = [b", ", program.as_os_str().as_bytes(), b"\n"].concat();
        assert!(log.windows(line.len()).any(|part| part == line));
    }
}

/// A file is as long as somebody has made it, and is read as far as its header says that it goes.
#[test]
fn what_lies_behind_the_end_of_a_file_is_not_read() {
    let bench = Bench::with_a_run();
    let expected = bench.tomo(&["report", "--format", "lcov"]).well();
    fs::write(bench.path("tomo-out/run-1/crashes"), "").expect("written");
    for name in ["m.record", "m.plan", "crashes"] {
        let path = bench.path("tomo-out/run-1").join(name);
        let file = fs::File::options().write(true).open(path).expect("there");
        file.set_len(1 << 40).expect("a hole");
    }
    // Where somebody tried there would be no memory.
    let script = r#"ulimit -v 67108864; exec "$0" "$@""#;
    let said = bench.shell(script, &["report", "--format", "lcov"]);
    assert_eq!(said.well(), expected);
    let said = bench.shell(script, &["crashes"]);
    let words = "crashes: it is no file of this kind that tomo has made\n";
    assert!(said.err.contains(words), "{}", said.err);
}

/// Text that runs from right to left would show a name as another one.
#[test]
fn names_do_not_turn_the_text_of_a_table_around() {
    let bench = Bench::new();
    let program = bench.sample_with("/src/demo/a.c", "/src/demo/\u{202e}c.a");
    bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
    let table = bench.tomo(&["report"]).well();
    assert!(
        table.contains("\u{fffd}c.a") && !table.contains('\u{202e}'),
        "{table}"
    );
}
