//! What follows from a single run is told of many, too, whether they are reported together or were merged before.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use tomo_wire::plan::Level;
use tomo_wire::record::{LIVE, Live};
use zerocopy::FromBytes as _;

use crate::bench::{Bench, Program, Seen};
use crate::formats::json;

/// A function that may pass a block by, and then goes round a loop that is entered at two places.
const SOURCE: &str = "
        .text
        .globl main
        .type main, @function
main:   .cfi_startproc
        test %edi, %edi
        je .Lby
        mov $7, %eax
.Lby:   test %esi, %esi
        je .Linto
        nop
        jmp .Ltail
.Linto: mov $9, %eax
.Ltail: dec %edx
        jne .Linto
        ret
        .cfi_endproc
        .size main, .-main
        .section .note.GNU-stack, \"\", @progbits
";
/// Its blocks: the entry, and what may be passed by.
const ENTRY: u64 = 0x1000;
const BODY: u64 = 0x1004;
/// The second fork, and the way from there to the end of the loop.
const FORK: u64 = 0x1009;
const STRAIGHT: u64 = 0x100d;
/// The loop.
const INTO: u64 = 0x1010;
const TAIL: u64 = 0x1015;
const END: u64 = 0x1019;
const ALL: [u64; 7] = [ENTRY, BODY, FORK, STRAIGHT, INTO, TAIL, END];

/// All blocks but `unwatched` are probed, and these were hit.
fn seen(unwatched: &[u64], hit: &[u64]) -> Seen {
    let watched = ALL.into_iter().filter(|at| !unwatched.contains(at));
    Seen {
        level: Level::Block,
        probes: watched.map(|at| (at, hit.contains(&at))).collect(),
        inferred: unwatched.to_vec(),
        unknown: Vec::new(),
        edges: Vec::new(),
    }
}

fn bench() -> (Bench, Program) {
    let bench = Bench::new();
    let program = bench.assembled(SOURCE);
    let graphs = program.model.graphs().expect("a model");
    let blocks = graphs.functions().flat_map(|function| function.blocks());
    let starts: Vec<u64> = blocks.map(|block| block.address().0).collect();
    assert_eq!(starts, ALL);
    (bench, program)
}

/// The states of all edges, by the blocks that they leave and enter.
fn edges(document: &Value) -> BTreeMap<(u64, u64), String> {
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let functions = list(&document["modules"][0]["functions"]);
    let blocks = functions
        .iter()
        .flat_map(|function| list(&function["blocks"]));
    let of_block = |block: Value| {
        let from = block["address"].as_u64().expect("an address");
        let to = |edge: &Value| edge["to"].as_u64().unwrap_or_default();
        let state = |edge: &Value| edge["state"].as_str().expect("a state").to_owned();
        let edges = list(&block["edges"]).into_iter();
        edges.map(move |edge| ((from, to(&edge)), state(&edge)))
    };
    blocks.flat_map(of_block).collect()
}

/// Two runs of which the one passes by what the other runs.
fn with_two_runs(bench: &Bench, program: &Program) {
    let straight = [ENTRY, FORK, STRAIGHT, TAIL, END];
    bench.run("by", 1, program, &seen(&[], &straight));
    let through = [&straight[..], &[BODY]].concat();
    bench.run("through", 2, program, &seen(&[], &through));
}

#[test]
fn sides_that_one_run_tells_are_told_of_all() {
    let (bench, program) = bench();
    with_two_runs(&bench, &program);
    let of = |folders: &[&str]| edges(&json(&bench, folders));
    let sides = |folders: &[&str]| {
        let edges = of(folders);
        [BODY, FORK].map(|to| edges[&(ENTRY, to)].clone())
    };
    assert_eq!(sides(&["by"]), ["not-run", "ran"]);
    assert_eq!(sides(&["through"]), ["ran", "unknown"]);
    assert_eq!(sides(&["by", "through"]), ["ran", "ran"]);
    // Merged before, in one step or in several, and by others once more, they tell the same.
    bench.tomo(&["merge", "-o", "one", "by"]).well();
    bench.tomo(&["merge", "-o", "two", "through", "one"]).well();
    bench
        .tomo(&["merge", "-o", "all", "two", "one", "by"])
        .well();
    let together = json(&bench, &["by", "through"]);
    for merged in ["two", "all"] {
        assert_eq!(json(&bench, &[merged]), together, "{merged}");
    }
    assert_eq!(json(&bench, &["two", "all", "by"]), together);
}

const PARENT: [u64; 3] = [STRAIGHT, TAIL, END];
/// Of a process that is forked in [`STRAIGHT`], and goes round the loop.
const FORKED: [u64; 3] = [TAIL, INTO, END];
const UNWATCHED: [u64; 3] = [ENTRY, BODY, FORK];

/// The record of a process that was forked, and perhaps killed.
fn forked(program: &Program, killed: bool) -> Vec<u8> {
    let (_, mut record) = seen(&UNWATCHED, &FORKED).files(program.id, 1);
    let live = &mut record[LIVE as usize..][..size_of::<Live>()];
    let live = Live::mut_from_bytes(live).expect("as long");
    live.outcome = if killed { 2 } else { 1 }.into();
    live.forked = 1.into();
    record
}

/// A process that is forked in the midst of a function has not come there from its entry. What its marks would tell of a
/// run is told of its run, and that began elsewhere; so it is where the process was killed and the others were not.
#[test]
fn a_forked_process_is_read_with_the_one_that_it_comes_from() {
    for killed in [false, true] {
        let (bench, program) = bench();
        bench.run("out", 1, &program, &seen(&UNWATCHED, &PARENT));
        bench.process("out", 1, "4711", &forked(&program, killed));
        let told = edges(&json(&bench, &["out"]));
        assert_eq!(told[&(FORK, STRAIGHT)], "ran");
        assert_eq!(told[&(FORK, INTO)], "unknown", "killed: {killed}");
        // Of a run of its own the same marks tell it.
        bench.run("other", 2, &program, &seen(&UNWATCHED, &FORKED));
        let told = edges(&json(&bench, &["out", "other"]));
        assert_eq!(told[&(FORK, INTO)], "ran");
    }
}

#[test]
fn of_a_forked_process_alone_nothing_is_inferred() {
    let (bench, program) = bench();
    bench.run("out", 1, &program, &seen(&UNWATCHED, &PARENT));
    bench.process("out", 1, "4711", &forked(&program, false));
    let together = json(&bench, &["out"]);
    let is_said = |document: &Value| document.to_string().contains("Of forked processes without");
    assert!(!is_said(&together));
    let record = "out/run-1/m.4711.record";
    let alone = json(&bench, &[record]);
    assert!(is_said(&alone));
    let told = edges(&alone);
    assert_eq!(told[&(FORK, INTO)], "unknown");
    assert_eq!(told[&(FORK, STRAIGHT)], "not-run");
    // This way it went, having begun behind the start of the block that it leaves.
    assert_eq!(told[&(STRAIGHT, TAIL)], "unknown");
    let blocks = &alone["totals"]["blocks"];
    let known = ["ran", "missed", "unknown"].map(|what| blocks[what].as_u64().expect("a number"));
    assert_eq!(known, [3, 1, 3]);
    // Merged by itself it remains what it is, until it is put together with its run.
    bench.tomo(&["merge", "-o", "merged", record]).well();
    assert_eq!(json(&bench, &["merged"]), alone);
    let shared = "out/run-1/m.record";
    bench.tomo(&["merge", "-o", "shared", shared]).well();
    assert_eq!(
        edges(&json(&bench, &["merged", "shared"])),
        edges(&together)
    );
}

/// The only file of a folder whose name ends so.
fn the_only(bench: &Bench, folder: &str, ending: &str) -> std::path::PathBuf {
    let entries = fs::read_dir(bench.path(folder)).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found = paths.filter(|path| path.to_string_lossy().ends_with(ending));
    let only = found.next().expect("a file");
    assert_eq!(found.next(), None);
    only
}

/// Of merged runs that cannot be read it is said, and what all saw together stands in their record.
#[test]
fn merged_runs_that_are_damaged_are_named_and_lose_no_block() {
    let (bench, program) = bench();
    with_two_runs(&bench, &program);
    bench.tomo(&["merge", "-o", "all", "by", "through"]).well();
    let whole = json(&bench, &["all"]);
    let path = the_only(&bench, "all", ".runs");
    let bytes = fs::read(&path).expect("readable");
    let mut damaged: Vec<Vec<u8>> = (0..bytes.len()).map(|end| bytes[..end].to_vec()).collect();
    damaged.push(b"nothing of the kind".to_vec());
    damaged.push([&bytes[..], b"more"].concat());
    for (at, bytes) in damaged
        .iter()
        .enumerate()
        .step_by(7)
        .chain([(0, &damaged[0])])
    {
        fs::write(&path, bytes).expect("written");
        let said = bench.tomo(&["report", "all", "--format", "json"]);
        assert_eq!(said.code, Some(0), "{at}");
        let told: Value = serde_json::from_str(&said.out).expect("JSON");
        for what in ["lines", "functions", "blocks"] {
            assert_eq!(told["totals"][what], whole["totals"][what], "{at}");
        }
        assert_eq!(said.err.lines().count(), 1, "{at}: {}", said.err);
        assert!(said.err.contains(".runs: "), "{at}: {}", said.err);
    }
    // With the runs themselves they are made anew.
    bench.tomo(&["merge", "-o", "all", "by", "through"]).well();
    assert_eq!(json(&bench, &["all"]), whole);
}

/// Merged runs beside which another plan lies are left out, like records.
#[test]
fn merged_runs_of_another_plan_are_left_out() {
    let (bench, program) = bench();
    with_two_runs(&bench, &program);
    bench.tomo(&["merge", "-o", "all", "by", "through"]).well();
    for (number, hit) in [(3, &[ENTRY][..]), (4, &[ENTRY, BODY])] {
        let folder = format!("other{number}");
        bench.run(&folder, number, &program, &seen(&[END], hit));
    }
    bench
        .tomo(&["merge", "-o", "others", "other3", "other4"])
        .well();
    let theirs = the_only(&bench, "others", ".runs");
    fs::copy(theirs, the_only(&bench, "all", ".runs")).expect("copied");
    let said = bench.tomo(&["report", "all", "--format", "json"]);
    assert_eq!(said.code, Some(0));
    assert!(said.err.contains("another plan"), "{}", said.err);
}

/// What one run did alone is not given up for what several did together.
#[test]
fn a_merge_does_not_take_the_place_of_one_that_tells_more() {
    let (bench, program) = bench();
    with_two_runs(&bench, &program);
    bench.tomo(&["merge", "-o", "all", "by"]).well();
    let before = json(&bench, &["all"]);
    let refused = bench.tomo(&["merge", "-o", "all", "through"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("merge it, too"), "{}", refused.err);
    assert_eq!(json(&bench, &["all"]), before);
}

#[test]
fn how_many_probes_were_hit_is_told_of_a_run_and_of_a_pool() {
    let bench = Bench::new();
    let source = "int main(int n, char **v) { return n > 1 ? v[1][0] == 'x' : 0; }";
    bench.build("prog", "prog.c", source, &["-g"]);
    let hit = |words: &[&str]| {
        let said = bench.tomo(words).err;
        let (hit, processes) = said.split_once(" probes hit, ").expect("numbers");
        let hit: u32 = hit
            .split(' ')
            .rev()
            .nth(2)
            .and_then(|n| n.parse().ok())
            .expect("hit");
        (hit, processes.contains("2 processes"))
    };
    let (alone, _) = hit(&["cover", "-v", "--", "./prog"]);
    assert_eq!(
        hit(&["cover", "-v", "--pool", "p", "--", "./prog"]),
        (alone, false)
    );
    let (more, two) = hit(&["cover", "-v", "--pool", "p", "--", "./prog", "x"]);
    assert!(more > alone && two);
}

/// As `execvp` does: shells run such a file, and `env`.
#[test]
fn a_script_that_names_no_interpreter_is_run_by_a_shell() {
    let bench = Bench::new();
    let script = "echo \"$0 $#: $2\"; exit 3\n";
    fs::write(bench.path("script"), script).expect("written");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(bench.path("script"), executable).expect("set");
    let said = bench.tomo(&["cover", "--", "./script", "one", "two words"]);
    assert_eq!((&*said.out, &*said.err), ("./script 2: two words\n", ""));
    assert_eq!(said.code, Some(3));
    let text = bench.tomo(&["report", "tomo-out"]).out;
    assert!(text.contains("sh"), "{text}");
    // Neither is it an interpreter.
    fs::write(bench.path("script"), "#!./text\nexit 4\n").expect("written");
    fs::write(bench.path("text"), "exit 5\n").expect("written");
    fs::set_permissions(bench.path("text"), fs::Permissions::from_mode(0o755)).expect("set");
    assert_eq!(bench.tomo(&["cover", "--", "./script"]).code, Some(4));
}

#[test]
fn that_there_are_no_lines_is_told_with_counts_by_line() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 0; }", &[]);
    for format in ["lcov", "source"] {
        let said = bench.tomo(&["count", "--format", format, "--to", "to", "--", "./prog"]);
        assert!(said.err.contains("prog has no line tables"), "{}", said.err);
    }
}
