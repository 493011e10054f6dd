//! `tomo crashes`: where runs crashed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tomo_export::words::counted;
use tomo_export::{Place, places};
use tomo_launch::{CRASHES, Crash, CrashedModule, End, Frame};
use tomo_program::read_regular;
use tomo_wire::{Refusal, of_schema};

/// Show where runs crashed: what each thread that got a fatal signal was doing, with source lines.
///
/// `tomo cover --crashes` keeps that, without core files or debuggers: the registers, a bounded part of
/// the stack and the list of modules, never anything of the heap. It is unwound here, by the unwind tables of
/// the program and its libraries.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Folders of runs.
    #[arg(value_name = "DIR", default_value = "tomo-out")]
    folders: Vec<PathBuf>,

    /// As JSON (schema tomo.crashes/1).
    #[arg(long)]
    json: bool,
}

/// Shows them.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut runs = Vec::new();
    for folder in &arguments.folders {
        match runs_in(folder) {
            Ok(found) => runs.extend(found),
            Err(error) => say!("tomo: left out: {error:#}"),
        }
    }
    if runs.is_empty() {
        bail!("no run in these folders kept its crashes (tomo cover --crashes)");
    }
    let mut documents = Vec::new();
    let mut text = String::new();
    let mut left = 0;
    for run in &runs {
        let about = read_regular(&run.join("run.json")).unwrap_or_default();
        let about: Value = serde_json::from_slice(&about).unwrap_or_default();
        let schema = about["schema"].as_str().unwrap_or_default();
        if let Err(version @ Refusal::Version { .. }) = of_schema(schema, "tomo.run/1") {
            say!("tomo: left out: {}: {version}", run.display());
            left += 1;
            continue;
        }
        let program = PathBuf::from(about["program"].as_str().unwrap_or_default());
        let crashes = match tomo_launch::crashes(&run.join(CRASHES), &program) {
            Ok(crashes) => crashes,
            Err(error) => {
                say!("tomo: left out: {error}");
                left += 1;
                continue;
            }
        };
        let ended = about["outcome"]["signal"].as_i64();
        if runs.len() > 1 && !crashes.kept.is_empty() {
            text += &format!("{}\n", run.display());
        }
        for crash in &crashes.kept {
            let places = placed(crash);
            text += &described(crash, &places, ended);
            documents.push(document(run, crash, &places, ended));
        }
        if crashes.more > 0 {
            text += &counted(
                crashes.more.into(),
                "more process crashed and was not kept\n",
                "more processes crashed and were not kept\n",
            );
        }
    }
    if left == runs.len() {
        bail!("nothing of these runs can be read");
    }
    if arguments.json {
        let document = json!({ "schema": "tomo.crashes/1", "crashes": documents });
        text = format!("{document:#}\n");
    } else if text.is_empty() {
        let runs = (runs.len() - left) as u64;
        text = counted(runs, "run, which did not crash\n", "runs, none crashed\n");
    }
    Ok(crate::saying::show(&text)?)
}

/// The runs in a folder, or the folder itself, that kept their crashes.
fn runs_in(folder: &Path) -> Result<Vec<PathBuf>> {
    if is_there(folder) {
        return Ok(vec![folder.to_path_buf()]);
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut runs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    runs.retain(|run| is_there(run));
    runs.sort();
    Ok(runs)
}

/// Whether a run has something that is called as the file of crashes is; what is no file is left out by name.
fn is_there(run: &Path) -> bool {
    run.join(CRASHES).exists()
}

/// Where the frames are, in their order.
fn placed(crash: &Crash) -> Vec<Vec<Place>> {
    let mut found = vec![vec![Place::default()]; crash.frames.len()];
    for (number, module) in crash.modules.iter().enumerate() {
        let mine: Vec<usize> = (0..crash.frames.len())
            .filter(|&at| crash.frames[at].module == Some(number))
            .collect();
        if mine.is_empty() {
            continue;
        }
        let addresses: Vec<u64> = mine.iter().map(|&at| crash.frames[at].address).collect();
        let named = places(&module.path, &module.build_id, &addresses);
        for (at, places) in mine.into_iter().zip(named) {
            found[at] = places;
        }
    }
    found
}

/// The name of a signal.
pub(crate) fn signal_name(signal: i32) -> String {
    let name = nix::sys::signal::Signal::try_from(signal).ok();
    name.map_or_else(|| format!("signal {signal}"), |name| name.to_string())
}

/// Whether that was the end of the run, as far as can be told.
fn fate(crash: &Crash, ended: Option<i64>) -> &'static str {
    match (ended, crash.handled) {
        (Some(_), _) => "",
        (None, true) => " (handled by the program, whose first process did not end by a signal)",
        (None, false) => " (of a process that is not the first)",
    }
}

/// The frames with their places: those of functions that were inlined stand for frames of their own.
fn shown<'c>(
    crash: &'c Crash,
    places: &'c [Vec<Place>],
) -> impl Iterator<Item = (&'c Frame, Option<&'c CrashedModule>, &'c Place)> {
    let frames = crash.frames.iter().zip(places);
    frames.flat_map(|(frame, places)| {
        let module = frame.module.and_then(|module| crash.modules.get(module));
        places.iter().map(move |place| (frame, module, place))
    })
}

fn described(crash: &Crash, places: &[Vec<Place>], ended: Option<i64>) -> String {
    let mut text = format!(
        "process {}, thread {}: {}{}{}\n",
        crash.process,
        crash.thread,
        signal_name(crash.signal),
        // What faults has an address; what was sent has none.
        match crash.code > 0 {
            true => format!(" at {:#x}", crash.address),
            false => String::new(),
        },
        fate(crash, ended)
    );
    for (number, (frame, module, place)) in shown(crash, places).enumerate() {
        let module = module.and_then(|module| module.path.file_name());
        let module = module.map_or("?".into(), |name| name.to_string_lossy());
        let function = place.function.as_deref().unwrap_or("?");
        let line = place.line.as_ref();
        let line = line.map_or_else(String::new, |line| format!(" at {line}"));
        let address = match place.is_inlined {
            true => "inlined".to_owned(),
            false => format!("{:#x}", frame.address),
        };
        text += &format!("  {number:>2}. {function}{line} ({module} {address})\n");
    }
    text += match crash.end {
        End::Whole => "",
        End::NoTable => "  further frames are unknown: no unwind table covers the last one\n",
        End::NoStack => "  further frames are unknown: no more of the stack was kept\n",
        End::TooMany => "  and more\n",
    };
    text
}

fn document(run: &Path, crash: &Crash, places: &[Vec<Place>], ended: Option<i64>) -> Value {
    let frames = shown(crash, places).map(|(frame, module, place)| {
        json!({
            "module": module.map(|module| module.path.to_string_lossy()),
            "build_id": module.map(|module| tomo_program::hexadecimal(&module.build_id)),
            "address": format!("{:#x}", frame.address),
            "function": place.function,
            "inlined": place.is_inlined,
            "file": place.line.as_ref().map(|line| &line.file),
            "line": place.line.as_ref().map(|line| line.line),
        })
    });
    json!({
        "run": run.to_string_lossy(),
        "process": crash.process,
        "thread": crash.thread,
        "signal": crash.signal,
        "code": crash.code,
        "address": (crash.code > 0).then(|| format!("{:#x}", crash.address)),
        "handled": crash.handled,
        "ended_by_signal": ended,
        "frames": frames.collect::<Vec<_>>(),
        "complete": crash.end == End::Whole,
    })
}
