//! What commands other than `tomo report` say of runs that are real ones.

use crate::bench::Bench;

/// One folder that is not there does not cost the crashes of another.
#[test]
fn crashes_of_one_folder_are_shown_without_those_of_another() {
    let bench = Bench::new();
    bench.build(
        "prog",
        "prog.c",
        "int main(void) { __builtin_trap(); }",
        &["-g"],
    );
    bench.tomo(&["cover", "--crashes", "-o", "out", "--", "./prog"]);
    let said = bench.tomo(&["crashes", "nowhere", "out"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        said.err,
        "tomo: left out: nowhere: no such file or directory\n"
    );
    assert!(said.out.contains("SIGILL"), "{}", said.out);
}

/// Where a name that is asked for is none of a chain, that is not left to be guessed.
#[test]
fn chains_that_nobody_has_are_told() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 0; }", &["-g"]);
    let words = "no chain of this run is one that --root, --leaf and --through ask for";
    for (name, is_none) in [("nobody", true), ("main", false)] {
        let said = bench.tomo(&["chains", "--root", name, "--", "./prog"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!(said.err.contains(words), is_none, "{}", said.err);
    }
}

#[test]
fn a_path_of_one_block_has_one() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 0; }", &["-g"]);
    let said = bench.tomo(&["paths", "--", "./prog"]);
    assert!(said.err.contains("main, 1 block\n"), "{}", said.err);
}

/// No witnesses at all are fewer than any trace takes, not as many as it likes.
#[test]
fn a_limit_of_nothing_is_refused() {
    let bench = Bench::new();
    let said = bench.tomo(&["trace", "--limit", "0", "--", "true"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(
        said.err.contains("invalid value '0' for '--limit <K>'"),
        "{}",
        said.err
    );
}
