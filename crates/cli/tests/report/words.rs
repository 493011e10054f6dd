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
