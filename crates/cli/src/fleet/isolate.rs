//! `tomo fleet isolate`: what predicts the failures of a fleet.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tomo_export::predicates::Sites;
use tomo_export::words::counted;
use tomo_export::{Located, Place, places};
use tomo_isolate::{Answer, fleet_answer};
use tomo_program::hexadecimal;
use tomo_protocol::{Campaign, Cause, Client, CrashFrame, Found, Group, paths};
use tomo_wire::predicates::Predicates;

use super::records::{self, Planned};
use crate::campaign;
use crate::crashes::signal_name;
use crate::isolate::{json as document, text};
use crate::saying;
use crate::temporary::Temporary;

/// Show what predicts failure: for each cause the ranked answer, as `tomo isolate` tells it.
///
/// Causes are told apart by where runs crashed, by their signal or exit code, or by what the program said of
/// itself. Each has a search of its own. The search goes on first, as far as what is known leads it.
#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Isolate {
    /// The campaign, or how its name begins.
    campaign: String,

    /// As JSON (schema tomo.fleet-isolate/1).
    #[arg(long)]
    json: bool,
}

const EXIT_CODES: &str = "\
Exit code: 0 where something was found for some cause, 1 where nothing is known
so far, as before anything has failed, 2 where nothing could be asked.";

/// Shows it; the exit code says whether something was found.
pub(super) fn run(client: &Client, asked: &Isolate) -> Result<ExitCode> {
    let campaign = campaign::campaign(client, &asked.campaign)?;
    let found: Found = client.get(&paths::of_campaign(paths::SEARCH, campaign.id))?;
    let [module] = campaign.modules.as_slice() else {
        bail!("a search observes one module");
    };
    let folder = Temporary::new().context("a folder for the program")?;
    let Planned {
        plan,
        path,
        located,
    } = records::planned(client, module, folder.path(), |plan| {
        Ok(Predicates::read(plan)?.0.module)
    })?;
    let sites = Sites::read(&located, &plan)?;
    let answers: Vec<(&Group, Answer)> = found
        .groups
        .iter()
        .map(|group| {
            let name = path.file_name().unwrap_or_default();
            let answer = fleet_answer(&sites, name.into(), group, found.sites);
            (group, answer)
        })
        .collect();
    let text = match asked.json {
        true => as_json(&campaign, &found, &answers, &located),
        false => as_text(&found, &answers, &located),
    };
    saying::show(&text)?;
    let nothing = answers.iter().all(|(_, answer)| answer.findings.is_empty());
    Ok(ExitCode::from(u8::from(nothing)))
}

/// What runs of a group have in common, in words.
fn cause(cause: &Cause, located: &Located) -> String {
    match cause {
        Cause::Crash { signal, frames } => {
            let mut text = signal_name(*signal);
            for frame in named(frames, located).iter().take(5) {
                text += &format!("\n    {frame}");
            }
            text
        }
        Cause::Signal { signal } => signal_name(*signal),
        Cause::Exit { code } => format!("exit code {code}"),
        Cause::Told { words } => format!("told by the program or its errors (words {words})"),
    }
}

/// Frames in words, as far as they are in the module whose file is there.
fn named(frames: &[CrashFrame], located: &Located) -> Vec<String> {
    let id = located.id.build_id().unwrap_or_default();
    let mine = hexadecimal(id);
    let addresses: Vec<u64> = frames.iter().map(|frame| frame.address).collect();
    let found = places(&located.path, id, &addresses);
    let each = frames.iter().zip(found);
    each.flat_map(|(frame, places)| match frame.build_id == mine {
        true => places.iter().map(|place| spoken(frame, place)).collect(),
        false => {
            let id = frame.build_id.get(..12).unwrap_or(&frame.build_id);
            vec![format!("{:#x} in the module {id}", frame.address)]
        }
    })
    .collect()
}

fn spoken(frame: &CrashFrame, place: &Place) -> String {
    let address = || format!("{:#x}", frame.address);
    let function = place.function.clone().unwrap_or_else(address);
    match &place.line {
        Some(line) => format!("{function} at {line}"),
        None => function,
    }
}

fn as_text(found: &Found, answers: &[(&Group, Answer)], located: &Located) -> String {
    let mut text = String::new();
    if answers.is_empty() {
        text += "No run has failed so far.\n";
    }
    for (number, (group, answer)) in (1..).zip(answers) {
        text += &format!(
            "Cause {number}: {}\n{} on {} failed so.\n\n",
            cause(&group.cause, located),
            counted(group.failures, "run", "runs"),
            counted(group.instances, "instance", "instances")
        );
        text += &match group.steps.is_empty() && answer.findings.is_empty() && !group.done {
            true => waits(group),
            false => text::write(answer, text::Of::Runs),
        };
        if group.waits {
            text += "Its search waits until another one is over.\n";
        }
        text.push('\n');
    }
    text += &format!(
        "What instances carry has changed {}.",
        counted(found.edition.into(), "time", "times")
    );
    if found.unlabelled > 0 {
        text.push(' ');
        text += &counted(
            found.unlabelled,
            "run was ended from outside, or nobody saw its end, and does not count.",
            "runs were ended from outside, or nobody saw their end, and do not count.",
        );
    }
    if found.beyond_share > 0 {
        text.push(' ');
        text += &counted(
            found.beyond_share,
            "run does not count, as its instance has had its share.",
            "runs do not count, as their instances have had their share.",
        );
    }
    text.push('\n');
    text
}

/// What is to be said of a search before its first step is over.
fn waits(group: &Group) -> String {
    format!(
        "No step of its search is over yet: {} and {} were reported.\n",
        counted(group.failures, "run that failed so", "runs that failed so"),
        counted(group.successes, "that did not", "that did not")
    )
}

fn as_json(
    campaign: &Campaign,
    found: &Found,
    answers: &[(&Group, Answer)],
    located: &Located,
) -> String {
    let groups = answers.iter().map(|(group, answer)| {
        let frames = match &group.cause {
            Cause::Crash { frames, .. } => named(frames, located),
            _ => Vec::new(),
        };
        let answer: Value = serde_json::from_str(&document::write(answer)).unwrap_or_default();
        json!({
            "cause": group.cause,
            "where": frames,
            "instances": group.instances,
            "waits": group.waits,
            "answer": answer,
        })
    });
    let document = json!({
        "schema": "tomo.fleet-isolate/1",
        "campaign": campaign.id,
        "edition": found.edition,
        "unlabelled": found.unlabelled,
        "beyond_share": found.beyond_share,
        "groups": groups.collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}
