//! What the programs work on: the same bytes on every machine.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::cases::Work;

const LOOP: &str = "local t, s = {}, 0
for i = 1, 60000000 do local k = i % 1000; t[k] = (t[k] or 0) + i % 7; if k == 3 then s = s + #tostring(i) end end
print(s)
";
const SHORT: &str = "local t = {}
for i = 1, 2000 do t[i] = tostring(i * i) end
table.sort(t)
print(#t, table.concat(t, ',', 1, 5))
";
const QUERIES: &str = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1600000) INSERT INTO t SELECT x, 'row ' || x, x * 0.5 FROM n;
CREATE INDEX i ON t(b);
SELECT count(*), sum(c), max(length(b)) FROM t WHERE b LIKE '%7%';
UPDATE t SET c = c + 1 WHERE a % 3 = 0;
SELECT count(DISTINCT b) FROM t;
";
const FEW_QUERIES: &str = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
INSERT INTO t(b) VALUES ('one'), ('two'), ('three');
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300) INSERT INTO t(b) SELECT 'row ' || x FROM n;
SELECT count(*), max(b) FROM t WHERE a > 2;
";
const PYTHON: &str = "d = {}
for i in range(7000000):
    d[i % 1000] = d.get(i % 1000, 0) + len(str(i))
print(sum(d.values()))
";
const IMPORTS: &str = "import argparse, asyncio, ast, csv, ctypes, decimal, difflib, email.message, http.client, json, logging.config, pickle, sqlite3, tarfile, unittest, xml.dom.minidom, zipfile";

fn file(folder: &Path, name: &str, text: &str) -> Result<Work> {
    let path = folder.join(name);
    fs::write(&path, text)?;
    Ok(Work {
        arguments: vec![path.display().to_string()],
        ..Work::default()
    })
}

pub(crate) fn lua_loop(folder: &Path) -> Result<Work> {
    file(folder, "long.lua", LOOP)
}

pub(crate) fn lua_short(folder: &Path) -> Result<Work> {
    file(folder, "short.lua", SHORT)
}

pub(crate) fn queries(folder: &Path) -> Result<Work> {
    file(folder, "long.sql", QUERIES)
}

pub(crate) fn few_queries(folder: &Path) -> Result<Work> {
    file(folder, "short.sql", FEW_QUERIES)
}

pub(crate) fn python_loop(folder: &Path) -> Result<Work> {
    file(folder, "loop.py", PYTHON)
}

pub(crate) fn imports(_: &Path) -> Result<Work> {
    Ok(Work {
        arguments: vec!["-c".into(), IMPORTS.into()],
        ..Work::default()
    })
}

/// Lines that look like a log.
fn text(lines: u32) -> String {
    let mut text = String::new();
    let mut state = 1u32;
    for line in 0..lines {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (place, took) = (state >> 24, state >> 12 & 0xfff);
        let _ = writeln!(
            text,
            "{line} served /part/{place}/of/{} in {took} us",
            place % 7
        );
    }
    text
}

pub(crate) fn text_to_compress(folder: &Path) -> Result<Work> {
    let path = folder.join("log");
    fs::write(&path, text(500_000))?;
    Ok(Work {
        arguments: vec!["-c".into()],
        input: Some(path),
        ..Work::default()
    })
}

/// Lines of which four parts are to be printed in another order.
pub(crate) fn text_to_rewrite(folder: &Path) -> Result<Work> {
    let path = folder.join("lines");
    fs::write(&path, text(400_000))?;
    let pattern = r"(\w+) /part/(\d+)/of/(\d) in (\d+) us";
    let arguments = ["-o", pattern, "-r", "$4 $2 $1 $3"].map(str::to_owned);
    let file = path.display().to_string();
    Ok(Work {
        arguments: arguments.into_iter().chain([file]).collect(),
        ..Work::default()
    })
}

/// A work tree of many files under git.
pub(crate) fn work_tree(folder: &Path) -> Result<Work> {
    let tree = folder.join("tree");
    for number in 0..40_000 {
        let place = tree.join(format!("d{}/e{}", number % 40, number % 7));
        fs::create_dir_all(&place)?;
        fs::write(place.join(format!("{number}.txt")), format!("{number}\n"))?;
    }
    for arguments in [&["init", "-q"][..], &["add", "."]] {
        let mut command = Command::new("git");
        let status = command.args(arguments).current_dir(&tree).status()?;
        ensure!(status.success(), "git {arguments:?}");
    }
    Ok(Work {
        arguments: vec!["status".into(), "--short".into()],
        folder: Some(tree),
        ..Work::default()
    })
}

/// A file of some hundred functions, to be compiled.
pub(crate) fn large_source(folder: &Path) -> Result<Work> {
    let mut text = String::new();
    for n in 0..300 {
        writeln!(
            text,
            "static int f{n}(int x) {{ int s = {n}; for (int i = 0; i < x; i++) {{ if (i & {n}) s += i * x; else s ^= i; }} switch (s & 7) {{ case 1: return s + 1; case 2: return x; case 5: return s * 3; default: return s; }} }}"
        )?;
    }
    text.push_str("int main(int c, char **v) { (void)v; return 0");
    for n in 0..300 {
        write!(text, " + f{n}(c)")?;
    }
    text.push_str("; }\n");
    let source: PathBuf = folder.join("large.c");
    fs::write(&source, text)?;
    let (source, output) = (source.display().to_string(), folder.join("large.o"));
    let output = output.display().to_string();
    Ok(Work {
        arguments: ["-c", "-O1", &source, "-o", &output]
            .map(str::to_owned)
            .into(),
        ..Work::default()
    })
}
