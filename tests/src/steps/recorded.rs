//! Runs of the corpus's programs, kept on disk: each is stepped once, however many tests ask for it.
//!
//! Such a program does the same each time: its addresses, its environment and its input are always the same. A
//! record is named after all of that and after this oracle's own source, so that none goes stale; whoever comes first
//! makes it, and everyone, that one too, is told what is in it.

use std::fs::File;
use std::hash::Hasher;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use xxhash_rust::xxh3::Xxh3;
use zstd::stream::{read::Decoder, write::Encoder};

use super::run::step_through;
use super::{End, Kind, Moment, Outside, Ran};
use crate::corpus::{Workload, directory, kept};

/// What decides what a step is called.
const ORACLE: [&[u8]; 5] = [
    include_bytes!("../steps.rs"),
    include_bytes!("recorded.rs"),
    include_bytes!("run.rs"),
    include_bytes!("stack.rs"),
    include_bytes!("tracee.rs"),
];

/// Tells each step of a run of at most `limit` steps, in order.
pub(super) fn each_moment(
    program: &Path,
    workload: &Workload,
    way: Outside,
    limit: u64,
    each: &mut dyn FnMut(&Moment),
) -> Result<Ran> {
    if !program.starts_with(directory()?) || workload.cwd.is_some() {
        return step_through(program, workload, way, limit, each);
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let hash = hash(program, workload, way, limit)?;
    let file = kept(&format!("steps-{name}-{hash:016x}"), "moments", |file| {
        record(file, |each| {
            step_through(program, workload, way, limit, each)
        })
    })?;
    replay(&file, each).with_context(|| format!("{}", file.display()))
}

/// Of all that decides what a run does. An argument may name a file: what is in it does, too.
fn hash(program: &Path, workload: &Workload, way: Outside, limit: u64) -> Result<u64> {
    let mut hash = Xxh3::new();
    let mut add = |bytes: &[u8]| {
        hash.write_usize(bytes.len());
        hash.write(bytes);
    };
    ORACLE.iter().for_each(|source| add(source));
    // It comes with the C library, which decides in which order it calls back.
    add(&std::fs::read("/lib64/ld-linux-x86-64.so.2").unwrap_or_default());
    add(program.as_os_str().as_encoded_bytes());
    add(&std::fs::read(program)?);
    for argument in &workload.args {
        add(argument.as_bytes());
        add(&std::fs::read(argument).unwrap_or_default());
    }
    add(workload.stdin.as_deref().unwrap_or_default());
    add(format!("{way:?} {limit}").as_bytes());
    Ok(hash.finish())
}

/// A step, or the end, as numbers: from, to, kind, its address, the stack before and after, the word on it, `rax`.
type Words = [u64; 8];

const NONE: u64 = u64::MAX;
/// In the place of a kind: the run is over. With the steps, the way it ended and its number.
const OVER: u64 = 6;

/// Writes what `run` tells to `file`.
fn record(file: &Path, run: impl FnOnce(&mut dyn FnMut(&Moment)) -> Result<Ran>) -> Result<()> {
    let mut file = Encoder::new(BufWriter::new(File::create(file)?), 1)?;
    let mut written = Ok(());
    let mut write = |words: Words| file.write_all(words.map(u64::to_le_bytes).as_flattened());
    let ran = run(&mut |moment| {
        if written.is_ok() {
            written = write(moment_as_words(moment));
        }
    })?;
    written?;
    write(end_as_words(ran))?;
    Ok(file.finish()?.flush()?)
}

/// Tells what was written to `file`.
fn replay(file: &Path, each: &mut dyn FnMut(&Moment)) -> Result<Ran> {
    let mut file = BufReader::new(Decoder::new(File::open(file)?)?);
    let mut bytes = [[0; 8]; 8];
    loop {
        file.read_exact(bytes.as_flattened_mut())
            .context("a record ends early")?;
        let words = bytes.map(u64::from_le_bytes);
        if words[2] == OVER {
            ensure!(file.read(&mut [0])? == 0, "a record goes on behind its end");
            return end_of(words);
        }
        each(&moment_of(words)?);
    }
}

fn moment_as_words(moment: &Moment) -> Words {
    let or_none = |address: Option<u64>| address.unwrap_or(NONE);
    let (kind, place) = match moment.kind {
        Kind::Flow => (0, None),
        Kind::Call { back } => (1, back),
        Kind::Return { call } => (2, call),
        Kind::Landing { call } => (3, call),
        Kind::Signal => (4, None),
        Kind::Resume => (5, None),
    };
    [
        or_none(moment.from),
        or_none(moment.to),
        kind,
        or_none(place),
        moment.stack_before,
        moment.stack,
        or_none(moment.back),
        moment.result,
    ]
}

fn moment_of(words: Words) -> Result<Moment> {
    let [from, to, kind, place, stack_before, stack, back, result] = words;
    let or_none = |address| (address != NONE).then_some(address);
    let place = or_none(place);
    Ok(Moment {
        from: or_none(from),
        to: or_none(to),
        kind: match kind {
            0 => Kind::Flow,
            1 => Kind::Call { back: place },
            2 => Kind::Return { call: place },
            3 => Kind::Landing { call: place },
            4 => Kind::Signal,
            5 => Kind::Resume,
            other => bail!("no kind of step: {other}"),
        },
        stack_before,
        stack,
        back: or_none(back),
        result,
    })
}

fn end_as_words(ran: Ran) -> Words {
    let (end, number) = match ran.end {
        End::Exited(code) => (0, code),
        End::Killed(signal) => (1, signal),
        End::Limit => (2, 0),
        End::Replaced => (3, 0),
    };
    let number = u64::from(number.cast_unsigned());
    [ran.steps, end, OVER, number, 0, 0, 0, 0]
}

fn end_of(words: Words) -> Result<Ran> {
    let [steps, end, _, number, ..] = words;
    let number = u32::try_from(number)?.cast_signed();
    Ok(Ran {
        steps,
        end: match end {
            0 => End::Exited(number),
            1 => End::Killed(number),
            2 => End::Limit,
            3 => End::Replaced,
            other => bail!("no end of a run: {other}"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments() -> Vec<Moment> {
        let kinds = [
            Kind::Flow,
            Kind::Call { back: Some(3) },
            Kind::Call { back: None },
            Kind::Return { call: Some(4) },
            Kind::Landing { call: None },
            Kind::Signal,
            Kind::Resume,
        ];
        let moment = |(i, kind)| Moment {
            from: (i != 2).then_some(i),
            to: (i != 3).then_some(i + 100),
            kind,
            stack_before: u64::MAX - i,
            stack: i << 40,
            back: (i != 4).then_some(5),
            result: i.wrapping_neg(),
        };
        (0..).zip(kinds).map(moment).collect()
    }

    #[test]
    fn what_is_replayed_was_recorded_and_what_was_cut_is_an_error() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("moments");
        let ends = [End::Exited(-1), End::Killed(11), End::Limit, End::Replaced];
        for end in ends {
            let ran = Ran { steps: 6, end };
            record(&file, |each| {
                moments().iter().for_each(each);
                Ok(ran)
            })?;
            let mut seen = Vec::new();
            let ended = replay(&file, &mut |moment| seen.push(*moment))?;
            assert_eq!((seen, ended), (moments(), ran));
        }
        let whole = std::fs::read(&file)?;
        for length in 0..whole.len() {
            std::fs::write(&file, &whole[..length])?;
            assert!(replay(&file, &mut |_| {}).is_err(), "{length} bytes");
        }
        Ok(())
    }
}
