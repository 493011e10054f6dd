//! Text for a compressor: lines that look like a log.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use super::{Case, Numbers, Scale, Task, Work};

const LINES: u64 = 120_000;

/// One run over a large file. A compressor is no server, and is not studied in a fleet.
pub(super) fn work(name: &str, folder: &Path, scale: Scale) -> io::Result<Work> {
    let path = folder.join("log");
    let lines = scale.of(LINES);
    fs::write(&path, log(lines))?;
    Ok(Work {
        tasks: vec![Task {
            name: name.to_owned(),
            cases: vec![Case {
                arguments: vec!["-c".into()],
                stdin: Some(path),
                operations: lines,
            }],
        }],
        configurations: Vec::new(),
    })
}

fn log(lines: u64) -> String {
    let mut numbers = Numbers::new(1);
    let mut text = String::new();
    for line in 0..lines {
        let (place, took) = (numbers.below(256), numbers.below(4096));
        let part = place % 7;
        let _ = writeln!(text, "{line} served /part/{place}/of/{part} in {took} us");
    }
    text
}
