//! What people read, word for word.

use crate::bench::Bench;
use crate::sample;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.program_with("demo", sample::functions(), sample::facts());
    bench
}

/// `text` without the time that this run took.
fn timeless(text: &str) -> String {
    let words = text.split("Read from the cache in ").collect::<Vec<_>>();
    let [before, after] = words[..] else {
        panic!("where the model comes from: {text}")
    };
    let after = after.split_once(';').expect("then the analysis").1;
    format!("{before}Read from the cache in TIME;{after}")
}

#[test]
fn summary() {
    insta::assert_snapshot!(timeless(&bench().tomo(&["map", "./demo"]).well()));
}

#[test]
fn one_function() {
    insta::assert_snapshot!(
        "function_exact",
        bench()
            .tomo(&["map", "./demo", "--function", "spin"])
            .well()
    );
    insta::assert_snapshot!(
        "function_partial",
        bench()
            .tomo(&["map", "./demo", "--function", "second"])
            .well()
    );
    insta::assert_snapshot!(
        "function_opaque",
        bench()
            .tomo(&["map", "./demo", "--function", "0x1070"])
            .well()
    );
}

#[test]
fn all_functions() {
    insta::assert_snapshot!(bench().tomo(&["map", "./demo", "--functions"]).well());
}

#[test]
fn dot() {
    let bench = bench();
    insta::assert_snapshot!(
        "dot_function",
        bench
            .tomo(&["map", "./demo", "-f", "spin", "--format", "dot"])
            .well()
    );
    insta::assert_snapshot!(
        "dot_calls",
        bench.tomo(&["map", "./demo", "--format", "dot"]).well()
    );
}

#[test]
fn jsonl() {
    insta::assert_snapshot!(bench().tomo(&["map", "./demo", "--format", "jsonl"]).well());
}

#[test]
fn help() {
    insta::assert_snapshot!("help", bench().tomo(&["--help"]).well());
    insta::assert_snapshot!("help_map", bench().tomo(&["map", "--help"]).well());
}

#[test]
fn lines_fit_eighty_columns() {
    let bench = bench();
    for arguments in [
        &["map", "./demo"][..],
        &["map", "./demo", "-f", "spin"],
        &["map", "./demo", "-f", "second"],
    ] {
        let page = bench.tomo(arguments).well();
        let longest = page
            .lines()
            .max_by_key(|line| line.chars().count())
            .expect("lines");
        assert!(longest.chars().count() <= 80, "{longest}");
    }
}

/// Names come from outside: none makes a terminal do anything.
#[test]
fn names_do_not_reach_the_terminal_as_commands() {
    let bench = Bench::new();
    let mut functions = sample::functions();
    functions[0].name = Some("\x1b[2J\x07\u{9b}evil".into());
    let mut facts = sample::facts();
    facts.warnings = vec!["a\x1b]0;title\x07b\u{9b}c".into()];
    facts.lines.files = vec!["/src/\x1b[31m.c".into()];
    facts.imports = vec!["\x1b[1m".into(), "\x07".into()];
    bench.program_with("demo", functions, facts);
    for arguments in [
        &["-l"][..],
        &["-f", "0x1000"],
        &[],
        &["-f", "0x1000", "--format", "dot"],
        &["--format", "dot"],
    ] {
        let page = bench.tomo(&[&["map", "demo"], arguments].concat()).well();
        let control = page
            .chars()
            .find(|letter| letter.is_control() && *letter != '\n');
        assert_eq!(control, None, "{arguments:?}: {page}");
    }
}
