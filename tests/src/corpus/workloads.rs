//! How the programs of the corpus are run: little work that touches much code.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::sources::own;
use super::{Source, Workload};

/// The workloads of one program, which is built already.
pub(super) fn of(source: Source, program: &Path) -> Result<Vec<Workload>> {
    Ok(match source {
        Source::Lua => vec![file("drivers/workload.lua")],
        Source::Sqlite => vec![file("drivers/workload.sql")],
        Source::Bzip2 => bzip2(program)?,
        Source::Zstd => vec![Workload {
            stdin: Some(text(1_500)),
            ..Workload::default()
        }],
        Source::CFeatures | Source::CppFeatures | Source::RustFeatures => vec![Workload::default()],
    })
}

fn file(name: &str) -> Workload {
    Workload {
        args: vec![own(name).display().to_string()],
        ..Workload::default()
    }
}

/// Text, random bytes, one long run, an archive that is broken, and the help text.
fn bzip2(program: &Path) -> Result<Vec<Workload>> {
    let run = |args: &[&str], stdin| Workload {
        args: args.iter().map(|&a| a.to_owned()).collect(),
        stdin: Some(stdin),
        cwd: None,
    };
    let archive = filter(program, &["-1c"], &text(1_200))?;
    let broken = [&archive[..archive.len() / 2], &[0; 64]].concat();
    Ok(vec![
        run(&["-1c"], text(1_200)),
        run(&["-9zc"], noise(100)),
        run(&["-zcv"], vec![b'a'; 2_000]),
        run(&["-dc"], archive.clone()),
        run(&["-dcs"], archive.clone()),
        run(&["-tvv"], archive),
        run(&["-dc"], broken),
        run(&["--help"], Vec::new()),
        run(&["-k", "no such file"], Vec::new()),
    ])
}

/// What `program` makes of `input`.
fn filter(program: &Path, args: &[&str], input: &[u8]) -> Result<Vec<u8>> {
    let mut command = Command::new(program);
    let mut child = command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    // Its input is short enough for a pipe to hold, so nobody waits for anybody.
    child.stdin.take().context("no pipe")?.write_all(input)?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{} fails", program.display());
    Ok(output.stdout)
}

/// A linear congruential generator (Knuth's MMIX constants): the same bytes on every machine.
fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1_u64), |x| {
        Some(
            x.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407),
        )
    })
    .map(|x| x >> 33)
}

/// `size` bytes without any pattern.
fn noise(size: usize) -> Vec<u8> {
    numbers().map(|x| x.to_le_bytes()[0]).take(size).collect()
}

/// `size` bytes that look like text: words of different frequency.
fn text(size: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "the",
        "slice",
        "of",
        "a",
        "program",
        "that",
        "runs",
        "in",
        "field",
        "observes",
        "block",
        "and",
        "edge",
        "profile",
        "tomograph",
        "\n",
    ];
    let word = |x: u64| WORDS[(x % 16).min(x / 16 % 16) as usize];
    let bytes = numbers().flat_map(|x| format!("{} ", word(x)).into_bytes());
    bytes.take(size).collect()
}
