//! `tomo campaign`: what a fleet observes, and who may take part.

use std::ffi::OsString;
use std::fs;
use std::io::{Write as _, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use tomo_export::words::counted;
use tomo_protocol::{
    Bound, Calibration, Campaign, CampaignId, Choice, Client, KnownToken, Name, NewCampaign,
    NewModule, NewToken, Policy, Role, Search, Strategy, Summary, Token, Towards, paths,
};
use zerocopy::little_endian::U64;

use crate::calibrate::share;
use crate::fleet;
use crate::observe::What;
use crate::paths::Select;
use crate::program::{add_chains, add_paths, add_predicates, add_program, add_terrain};
use crate::remote::Remote;
use crate::saying;

/// Say what a fleet observes, and who takes part.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    remote: Remote,
}

#[derive(Subcommand)]
enum Command {
    New(New),
    Isolate(Isolate),
    List(List),
    Show(Show),
    Retire(Retire),
    Token(NewTokenOf),
}

/// Begin a campaign: share the probes of a program out over variants.
///
/// Each instance of the program gets one variant, which carries only a part of the probes; all variants
/// together are to see as much as can be. Prints the campaign's name, which the other commands take.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
struct New {
    /// What people call the campaign, and no other; by default as the program's file, with a number behind it where
    /// that is taken.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    what: What,

    /// Observe something else of the executable than which of its code runs: `predicates`, which way its branches went,
    /// and whether what its calls returned was negative, zero or positive; `paths`, how often its acyclic paths run;
    /// `chains`, by which chains of calls its functions are called, and how often.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["level", "placement", "disposal", "module", "overhead"])]
    observe: Option<Observe>,

    /// Observe only some paths, as `tomo paths --select` does: those in FILE, the N hottest of an earlier run, or what
    /// no earlier run has seen.
    #[arg(long, value_name = "FILE|hot:N|unseen", requires = "observe")]
    select: Option<Select>,

    /// Select by this earlier run, whose folder RUN is. May be given several times. Without it `hot:N` goes by the
    /// newest run of the same build in tomo-paths, and `unseen` by all of them.
    #[arg(long, value_name = "RUN", requires = "select")]
    of: Vec<PathBuf>,

    /// The most probes that one instance carries; all of them otherwise.
    #[arg(long, value_name = "N")]
    probes: Option<u64>,

    /// The share of its run time that one instance may lose, such as 1%, in place of a number of probes.
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "calibration", conflicts_with = "probes")]
    overhead: Option<f64>,

    /// What probes cost this program, as `tomo calibrate` measured it.
    #[arg(long, value_name = "FILE", requires = "overhead")]
    calibration: Option<PathBuf>,

    /// Over how many variants the probes are shared out; by default over as many as are needed for
    /// each probe to be in one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    variants: Option<u32>,

    /// Chains of calls that instances are to see whole, for the strategies for events: those of earlier runs, in FILE as
    /// `tomo chains --json` writes it. May be given several times. Without it they are all chains that the program's
    /// direct calls allow, if these are not too many.
    #[arg(long, value_name = "FILE", requires = "observe")]
    events: Vec<PathBuf>,

    /// How they are shared out; by default by `balanced-clusters` where paths or chains are observed, else by
    /// `balanced-probes`. Clusters are functions; of paths each counts as a probe. Of chains each function does, and clusters
    /// are what one function reaches that no other calls.
    #[arg(long, value_parser = strategies())]
    strategy: Option<Strategy>,

    /// Where the drawing of random numbers starts; the same gives the same variants.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Let instances report when so many newly hit probes have gathered.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    buffer: Option<u32>,

    /// Let instances report every so many seconds, whatever the collector would say.
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..))]
    interval: Option<u64>,

    /// Do not tell instances what others have seen: each probe is paid for by every instance.
    #[arg(long)]
    no_news: bool,

    /// The program.
    #[arg(value_name = "PROGRAM")]
    program: OsString,
}

const EXAMPLES: &str = "\
Examples:
  tomo campaign new --probes 200 ./prog            balanced over enough variants
  tomo campaign new --level function ./prog        all functions everywhere
  tomo campaign new --probes 500 --strategy balanced-clusters ./prog
  tomo campaign new --observe paths --probes 300 ./prog
  tomo campaign new --observe chains --probes 100 ./prog
  tomo campaign new --observe paths --select hot:20 --of tomo-paths/run-1 ./prog";

/// Begin a search for what predicts that a program fails: instances carry a few of its branches and results
/// at a time, and the next ones near those that tell failures from successes best.
///
/// Prints the campaign's name; `tomo fleet isolate` shows what was found. A run fails by its exit code, by a signal of its
/// own fault, or as it says itself (`tomo outcome`, `tomo run --stderr-regex`). Failures of different causes are
/// searched side by side.
#[derive(Args)]
struct Isolate {
    /// What people call the campaign, and no other; by default as the program's file, with a number behind it where
    /// that is taken.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The most predicates that one instance carries; where a plan has more it is shared out, and each instance carries one
    /// part after the other.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    probes: Option<u64>,

    /// Search from what always runs, or from where runs crash.
    #[arg(long, value_enum, default_value_t = DirectionName::Forward)]
    direction: DirectionName,

    /// By what the next predicate is chosen.
    #[arg(long, value_enum, default_value_t = ScoreName::Ttest)]
    score: ScoreName,

    /// Watch at most so many sites at a time for each cause.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    sites_per_step: u32,

    /// Go on after so many runs, though the test has not decided by then; of each part where a plan is shared out, and 512 at
    /// most.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(2..))]
    runs_per_step: u64,

    /// Let so many runs of one instance count in a step, as long as most others have made fewer.
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    instance_runs: u64,

    /// An exit code that is a success. May be given several times.
    #[arg(long, value_name = "CODE", default_value = "0", value_parser = clap::value_parser!(i32).range(0..=255))]
    success: Vec<i32>,

    /// The program.
    #[arg(value_name = "PROGRAM")]
    program: OsString,
}

/// What else is observed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Observe {
    Predicates,
    Paths,
    Chains,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DirectionName {
    Forward,
    Backward,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScoreName {
    Ttest,
    Importance,
    Maximp,
    Failcount,
    Bfs,
}

/// List the campaigns.
#[derive(Args)]
struct List {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Show what a campaign observes, and how its probes are shared out.
#[derive(Args)]
struct Show {
    /// The campaign, or how its name begins.
    campaign: String,

    /// As JSON, with all variants.
    #[arg(long)]
    json: bool,
}

/// End a campaign: it takes no reports any more and keeps what it has.
#[derive(Args)]
struct Retire {
    /// The campaign, or how its name begins.
    campaign: String,
}

/// Make a token for a campaign, list them, or withdraw one. It is printed once; the collector keeps only its hash.
#[derive(Args)]
#[command(name = "token")]
struct NewTokenOf {
    /// The campaign, or how its name begins.
    #[arg(required_unless_present = "withdraw")]
    campaign: Option<String>,

    /// What its bearer may do.
    #[arg(long, value_enum, default_value_t = RoleName::Instance)]
    role: RoleName,

    /// A note for people, kept beside the hash.
    #[arg(long, default_value = "")]
    note: String,

    /// Say all that there is to say, as JSON, with the hash that withdraws it.
    #[arg(long)]
    json: bool,

    /// List the campaign's tokens instead: their hashes, what they are for and when they were made.
    #[arg(long, conflicts_with_all = ["role", "note", "withdraw"])]
    list: bool,

    /// Withdraw the token with this hash instead.
    #[arg(long, value_name = "HASH", conflicts_with = "campaign")]
    withdraw: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RoleName {
    /// Take part.
    Instance,
    /// Read.
    Reader,
}

/// Strategies by their names.
fn strategies() -> impl TypedValueParser<Value = Strategy> {
    let names = PossibleValuesParser::new(Strategy::ALL.map(Strategy::name));
    names.try_map(|name| {
        let mut all = Strategy::ALL.into_iter();
        all.find(|one| one.name() == name).ok_or("no strategy")
    })
}

/// Does what the arguments ask for.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let client = arguments.remote.client()?;
    match &arguments.command {
        Command::New(new) => begin(&client, new),
        Command::Isolate(asked) => search(&client, asked),
        Command::List(list) => {
            let campaigns: Vec<Summary> = client.get(paths::CAMPAIGNS)?;
            if list.json {
                writeln!(stdout(), "{}", serde_json::to_string_pretty(&campaigns)?)?;
                return Ok(());
            }
            if campaigns.is_empty() {
                say!("tomo: there is no campaign; `tomo campaign new` begins one");
            }
            write!(stdout(), "{}", table(&campaigns))?;
            Ok(())
        }
        Command::Show(show) => {
            let campaign = campaign(&client, &show.campaign)?;
            if show.json {
                writeln!(stdout(), "{}", serde_json::to_string_pretty(&campaign)?)?;
                return Ok(());
            }
            write!(stdout(), "{}", described(&campaign))?;
            Ok(())
        }
        Command::Retire(retire) => {
            let id = find(&client, &retire.campaign)?;
            let summary: Summary = client.post(&paths::of_campaign(paths::RETIRE, id), &())?;
            writeln!(
                stdout(),
                "{} {} is retired",
                summary.id,
                saying::name(&summary.name)
            )?;
            Ok(())
        }
        Command::Token(token) => make_token(&client, token),
    }
}

fn begin(client: &Client, new: &New) -> Result<()> {
    let usual = match new.observe {
        Some(Observe::Paths | Observe::Chains) => Strategy::BalancedClusters,
        Some(Observe::Predicates) | None => Strategy::BalancedProbes,
    };
    let strategy = new.strategy.unwrap_or(usual);
    let clusters = strategy.is_for_clusters();
    if new.select.is_some() && new.observe != Some(Observe::Paths) {
        bail!("--select selects paths; say --observe paths");
    }
    if !new.events.is_empty()
        && (new.observe, strategy.is_for_events()) != (Some(Observe::Chains), true)
    {
        bail!("--events names chains; say --observe chains, and a --strategy for events");
    }
    let name = named(client, new.name.as_ref(), &new.program)?;
    let modules = match new.observe {
        Some(Observe::Chains) => vec![add_chains(client, &new.program, strategy, &new.events)?],
        Some(Observe::Predicates) => vec![add_predicates(client, &new.program, clusters)?],
        Some(Observe::Paths) => {
            let select = new
                .select
                .as_ref()
                .map(|select| (select, new.of.as_slice()));
            vec![add_paths(client, &new.program, clusters, select)?]
        }
        None => add_program(client, &new.program, &new.what, clusters)?,
    };
    let probes = match (new.overhead, &new.calibration) {
        (Some(share), Some(file)) => Some(affordable(file, share, &modules)?),
        _ => new.probes,
    };
    if probes == Some(0) {
        bail!("with no probes at all nothing is observed; say --probes 1 or more");
    }
    let bound = probes.map_or(Bound::None, Bound::Probes);
    say_too_large(&modules, probes);
    let variants = match (new.variants, probes) {
        (Some(variants), _) => variants,
        (None, None) => 1,
        // As many as are needed.
        (None, Some(_)) => 0,
    };
    let request = NewCampaign {
        name,
        modules,
        strategy,
        variants,
        bound,
        seed: new.seed,
        policy: Policy {
            buffer: new.buffer,
            interval_ms: new.interval.map(|seconds| seconds.saturating_mul(1000)),
            update_at_start: !new.no_news,
            piggyback: !new.no_news,
        },
        search: None,
    };
    let campaign: Campaign = client.post(paths::CAMPAIGNS, &request)?;
    let _ = write!(std::io::stderr(), "{}", described(&campaign));
    if campaign.left_out > 0 {
        let left = counted(campaign.left_out.into(), "probe", "probes");
        say!("tomo: {left} that an instance can carry found no variant; more --variants hold them");
    }
    writeln!(stdout(), "{}", campaign.id)?;
    Ok(())
}

/// What a campaign is called, so that no other has its name: as was asked for, or as the program, with a number behind it
/// if need be.
fn named(client: &Client, name: Option<&String>, program: &OsString) -> Result<String> {
    let campaigns: Vec<Summary> = client.get(paths::CAMPAIGNS)?;
    let is_taken = |name: &str| campaigns.iter().any(|one| one.name == name);
    if let Some(name) = name {
        if is_taken(name) {
            bail!("there is a campaign {name} already; choose another --name");
        }
        return Ok(name.clone());
    }
    let file = Path::new(program).file_name().unwrap_or_default();
    let file = saying::name(&file.to_string_lossy());
    let numbered = (2..).map(|number: u64| format!("{file}-{number}"));
    let mut names = std::iter::once(file.to_string()).chain(numbered);
    names.find(|name| !is_taken(name)).context("a name")
}

fn search(client: &Client, asked: &Isolate) -> Result<()> {
    let name = named(client, asked.name.as_ref(), &asked.program)?;
    let module = add_terrain(client, &asked.program)?;
    let request = NewCampaign {
        name,
        modules: vec![module],
        strategy: Strategy::BalancedProbes,
        variants: 0,
        bound: asked.probes.map_or(Bound::None, Bound::Probes),
        seed: 0,
        policy: Policy {
            buffer: None,
            // What a run shows counts when it has ended.
            interval_ms: Some(u64::MAX),
            update_at_start: true,
            piggyback: false,
        },
        search: Some(Search {
            choice: match asked.score {
                ScoreName::Ttest => Choice::Ttest,
                ScoreName::Importance => Choice::Importance,
                ScoreName::Maximp => Choice::Maximp,
                ScoreName::Failcount => Choice::Failcount,
                ScoreName::Bfs => Choice::Bfs,
            },
            towards: match asked.direction {
                DirectionName::Forward => Towards::Forward,
                DirectionName::Backward => Towards::Backward,
            },
            most_sites: asked.sites_per_step,
            most_runs: asked.runs_per_step,
            instance_runs: asked.instance_runs,
            success: asked.success.clone(),
        }),
    };
    let campaign: Campaign = client.post(paths::CAMPAIGNS, &request)?;
    let _ = write!(std::io::stderr(), "{}", described(&campaign));
    writeln!(stdout(), "{}", campaign.id)?;
    Ok(())
}

/// How many probes of these modules cost at most this share, as was measured.
fn affordable(file: &Path, share: f64, modules: &[NewModule]) -> Result<u64> {
    let place = || file.display().to_string();
    let text = fs::read_to_string(file).with_context(place)?;
    let calibration: Calibration = serde_json::from_str(&text).with_context(place)?;
    let plans: Vec<U64> = modules.iter().map(|module| module.plan.0.into()).collect();
    let plans = Name(tomo_wire::report::name_of_plans(&plans));
    let (probes, _) = calibration.probes(plans, share).with_context(place)?;
    if probes == 0 {
        bail!("{}: not even one probe keeps this bound", place());
    }
    Ok(probes.into())
}

/// Says how many clusters or events no variant can carry.
fn say_too_large(modules: &[NewModule], probes: Option<u64>) {
    let most = probes.unwrap_or(u64::MAX);
    let sets = |module: &NewModule| [module.clusters.clone(), module.events.clone()].concat();
    let sets: Vec<_> = modules.iter().flat_map(sets).collect();
    let large = sets.iter().filter(|set| set.len() > most);
    let probes: u64 = large.clone().map(|set| set.len()).sum();
    let large = large.count();
    if large > 0 {
        let all = sets.len();
        say!(
            "tomo: {large} of {all} clusters or events have more than the {most} probes that an instance carries, {probes} in all: they are in no variant"
        );
    }
}

fn make_token(client: &Client, new: &NewTokenOf) -> Result<()> {
    if let Some(hash) = &new.withdraw {
        let _: serde_json::Value = client.delete(&paths::of_token(hash))?;
        writeln!(stdout(), "withdrawn")?;
        return Ok(());
    }
    let id = find(client, new.campaign.as_deref().unwrap_or_default())?;
    if new.list {
        return list_tokens(client, id, new.json);
    }
    let role = match new.role {
        RoleName::Instance => Role::Instance,
        RoleName::Reader => Role::Reader,
    };
    let note = new.note.clone();
    let path = paths::of_campaign(paths::TOKENS, id);
    let token: Token = client.post(&path, &NewToken { role, note })?;
    match new.json {
        true => writeln!(stdout(), "{}", serde_json::to_string_pretty(&token)?)?,
        false => writeln!(stdout(), "{}", token.token)?,
    }
    Ok(())
}

fn list_tokens(client: &Client, id: CampaignId, json: bool) -> Result<()> {
    let tokens: Vec<KnownToken> = client.get(&paths::of_campaign(paths::TOKENS, id))?;
    if json {
        writeln!(stdout(), "{}", serde_json::to_string_pretty(&tokens)?)?;
        return Ok(());
    }
    if tokens.is_empty() {
        say!("tomo: the campaign has no token; `tomo campaign token` makes one");
    }
    for token in tokens {
        let (role, made) = (token.role.name(), fleet::time(token.created));
        let note = match token.note.as_str() {
            "" => String::new(),
            note => format!(": {note}"),
        };
        writeln!(stdout(), "{}\n  {role}, made {made}{note}", token.hash)?;
    }
    Ok(())
}

/// The campaign whose name is this, in full or as far as no other begins so.
pub(crate) fn find(client: &Client, name: &str) -> Result<CampaignId> {
    if let Ok(id) = name.parse() {
        return Ok(id);
    }
    if name.is_empty() {
        // All names begin so, and were there but one it would be meant.
        bail!("no campaign is called nothing; `tomo campaign list` shows those that there are");
    }
    let campaigns: Vec<Summary> = client.get(paths::CAMPAIGNS)?;
    let called = campaigns.iter().filter(|one| one.name == name);
    let mut found: Vec<&Summary> = called.collect();
    if found.is_empty() {
        let begins =
            |one: &&Summary| one.name.starts_with(name) || one.id.to_string().starts_with(name);
        found = campaigns.iter().filter(begins).collect();
    }
    match found.as_slice() {
        [one] => Ok(one.id),
        [] if campaigns.is_empty() => {
            bail!("there is no campaign {name}, nor any other; `tomo campaign new` begins one")
        }
        [] => bail!(
            "there is no campaign {name}; there are {}",
            names(&campaigns)
        ),
        several => bail!(
            "several campaigns are called {name}…: {}; say more of the name, or of its digits",
            names(several.iter().copied())
        ),
    }
}

/// What campaigns are called, in the order of their names, if they are not too many.
fn names<'s>(campaigns: impl IntoIterator<Item = &'s Summary>) -> String {
    const MOST: usize = 10;
    let mut names: Vec<&str> = campaigns.into_iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    let more = match names.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more (`tomo campaign list`)"),
    };
    names.truncate(MOST);
    saying::name(&names.join(", ")) + &more
}

/// A campaign, by its name.
pub(crate) fn campaign(client: &Client, name: &str) -> Result<Campaign> {
    let id = find(client, name)?;
    Ok(client.get(&paths::of_campaign(paths::CAMPAIGN, id))?)
}

fn table(campaigns: &[Summary]) -> String {
    let mut text = String::new();
    for one in campaigns {
        let state = if one.retired { "retired" } else { "" };
        let share = 100.0 * f64::from(one.seen) / f64::from(one.units.max(1));
        text += &format!(
            "{}  {:<20} {:>8} of {:>8} units seen ({share:.1} %)  {:>6} instances  {:>8} runs  {state}\n",
            one.id,
            saying::name(&one.name),
            one.seen,
            one.units,
            one.instances,
            one.runs
        );
    }
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

fn described(campaign: &Campaign) -> String {
    let mut text = format!(
        "campaign {} ({})\n",
        campaign.id,
        saying::name(&campaign.name)
    );
    for module in &campaign.modules {
        text += &format!(
            "  {}: {} probes, level {}, placement {}, plan {}\n",
            module.stem, module.probes, module.level, module.placement, module.plan
        );
    }
    if campaign.search.is_some() {
        return text + "  searched for what predicts failure; `tomo fleet isolate` shows it\n";
    }
    let sizes = campaign.variants.iter().map(|variant| variant.units.len());
    let (least, most) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
    text += &format!(
        "  {} over {} of {least} to {most} probes, by {}\n",
        counted(campaign.units.into(), "unit", "units"),
        counted(campaign.variants.len() as u64, "variant", "variants"),
        campaign.strategy.name()
    );
    text
}
