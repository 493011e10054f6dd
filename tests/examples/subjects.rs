//! Builds what the studies run: lua, sqlite and bzip2 by clang at -O2, alone and with marks that stay
//! (`programs/study/marks.c`), and prints a list of them for `tomo study --subjects`.

use anyhow::Result;
use serde_json::{Value, json};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};

/// What the programs are called, what they are built from, and what they are run on.
const PROGRAMS: [(&str, Source, &str); 3] = [
    ("lua", Source::Lua, "lua"),
    ("sqlite", Source::Sqlite, "sql"),
    ("bzip2", Source::Bzip2, "text"),
];
/// Which units have a mark, and how clang is told so. Without `no-prune` it leaves out what dominators
/// and post-dominators tell.
const UNITS: [(&str, &str); 3] = [
    ("block", "bb,no-prune"),
    ("block-dom", "bb"),
    ("function", "func"),
];
const MARKS: [(&str, &str); 2] = [("flag", "inline-bool-flag"), ("call", "trace-pc-guard")];

fn main() -> Result<()> {
    let subjects: Vec<Value> = PROGRAMS.into_iter().map(subject).collect::<Result<_>>()?;
    let list = json!({ "schema": "tomo.subjects/1", "subjects": subjects });
    println!("{list:#}");
    Ok(())
}

fn subject((name, source, inputs): (&str, Source, &str)) -> Result<Value> {
    let plain = Recipe::new(source, Compiler::Clang, Level::O2);
    let mut marked = Vec::new();
    for (units, option) in UNITS {
        for (mark, kind) in MARKS {
            let mut recipe = plain.clone();
            recipe.extra = vec![
                format!("-fsanitize-coverage={option},{kind}"),
                "-fno-sanitize-link-runtime".into(),
            ];
            recipe.with = vec!["study/marks.c"];
            let program = build(&recipe)?.program;
            marked.push(json!({ "units": units, "mark": mark, "program": program }));
        }
    }
    let plain = build(&plain)?.program;
    Ok(json!({ "name": name, "inputs": inputs, "plain": plain, "marked": marked }))
}
