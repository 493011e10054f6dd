//! `tomo fleet`: what a fleet has seen.

mod chains;
mod isolate;
mod paths;
mod plot;
mod predicates;
mod records;
mod status;
mod words;

pub(crate) use words::time;

use std::io::{Write as _, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use tomo_protocol::{Campaign, Client, Growth, ModuleOf, PATHS, Profile, paths as api};

use crate::campaign;
use crate::remote::Remote;
use crate::report;
use crate::saying;
use crate::session::answer;
use crate::temporary::Temporary;

/// Show what a fleet has seen.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    remote: Remote,
}

#[derive(Subcommand)]
enum Command {
    Status(Status),
    Report(Box<Report>),
    Growth(GrowthOf),
    Isolate(isolate::Isolate),
}

/// Show how a campaign stands, and each of its instances.
#[derive(Args)]
struct Status {
    /// The campaign, or how its name begins.
    campaign: String,

    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Show which functions, lines, branches and blocks ran anywhere in the fleet.
///
/// All that `tomo report` shows, of all instances together; then, unless the format is one for other
/// programs, when what was seen was seen first and how many instances reported it (others need not look for what is known),
/// and for what was never seen, for how long and by how many instances it was watched. "Not run" means: never seen by those who
/// watched. Of a campaign over paths it shows how often each ran, as `tomo paths` does, and of one over chains of calls
/// which were called, as `tomo chains` does, and which can be inferred but may be false; of one over predicates which
/// were true, as `tomo predicates` does (text or JSON).
#[derive(Args)]
struct Report {
    /// The campaign, or how its name begins.
    campaign: String,

    /// Write the numbers of each unit, as JSON, to FILE (- for standard output).
    #[arg(long, value_name = "FILE")]
    units: Option<PathBuf>,

    #[command(flatten)]
    show: report::Show,
}

/// Show how coverage grew over time: what all instances together have reported, and each, which need not look for what is known.
#[derive(Args)]
struct GrowthOf {
    /// The campaign, or how its name begins.
    campaign: String,

    /// As JSON: all points, in nanoseconds since 1970.
    #[arg(long)]
    json: bool,

    /// Draw the curves into FILE (- for standard output), as SVG.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    svg: Option<PathBuf>,
}

/// Does what the arguments ask for.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let client = arguments.remote.client()?;
    match &arguments.command {
        Command::Status(asked) => {
            let Campaign { id, name, .. } = campaign::campaign(&client, &asked.campaign)?;
            let numbers = client.get(&api::of_campaign(api::STATUS, id))?;
            match asked.json {
                true => writeln!(stdout(), "{}", serde_json::to_string_pretty(&numbers)?)?,
                false => saying::show(&status::text(&name, &numbers))?,
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Report(asked) => show_report(&client, asked),
        Command::Isolate(asked) => isolate::run(&client, asked),
        Command::Growth(asked) => {
            let Campaign { id, name, .. } = campaign::campaign(&client, &asked.campaign)?;
            let growth: Growth = client.get(&api::of_campaign(api::GROWTH, id))?;
            match (asked.json, &asked.svg) {
                (true, _) => writeln!(stdout(), "{}", serde_json::to_string_pretty(&growth)?)?,
                (_, Some(path)) => {
                    answer(Some(path), plot::growth(&name, &growth).as_bytes())?;
                }
                (_, None) => write!(stdout(), "{}", words::growth(&growth))?,
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What a campaign that counts has counted.
fn show_counted(
    client: &Client,
    (campaign, profile, module): (&Campaign, &Profile, &ModuleOf),
    folder: &Path,
    show: &report::Show,
) -> Result<()> {
    let with_profile = |text: String| Ok(text + &words::profile(profile));
    if module.level == PATHS {
        let seen = paths::seen(client, campaign, profile, module, folder)?;
        return show.write_plain(|| with_profile(seen.text()?), || seen.json());
    }
    let seen = chains::seen(client, campaign, profile, module, folder)?;
    show.write_plain(|| with_profile(seen.text()?), || seen.json())
}

fn show_report(client: &Client, asked: &Report) -> Result<ExitCode> {
    let campaign = campaign::campaign(client, &asked.campaign)?;
    let profile: Profile = client.get(&api::of_campaign(api::PROFILE, campaign.id))?;
    let folder = Temporary::new().context("a folder for the records")?;
    if let Some(path) = &asked.units {
        let text = serde_json::to_string_pretty(&profile)?;
        answer(Some(path), (text + "\n").as_bytes())?;
    }
    if let [module] = campaign.modules.as_slice()
        && campaign.is_counted()
    {
        let all = (&campaign, &profile, module);
        show_counted(client, all, folder.path(), &asked.show)?;
        return Ok(ExitCode::SUCCESS);
    }
    if campaign
        .modules
        .iter()
        .all(|module| module.level == "predicate")
    {
        let seen = predicates::seen(client, &campaign, &profile, folder.path())?;
        let text = || Ok(predicates::text(&seen) + &words::profile(&profile));
        asked
            .show
            .write_plain(text, || Ok(predicates::json(&seen)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let records = records::write(client, &campaign, &profile, folder.path())?;
    let about = words::profile(&profile);
    let source = report::Source {
        folders: &[records.folder],
        programs: &records.programs,
        passing: true,
        strict: false,
        about: about.trim(),
    };
    let code = asked.show.run(&source)?;
    if asked.show.is_for_people() {
        write!(stdout(), "{about}")?;
    }
    Ok(code)
}
