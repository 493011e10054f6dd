//! A fleet of a thousand instances and one collector, over HTTP on this machine: how many reports a
//! second become durable, how long each takes, and what memory the collector needs.
//!
//! The collector is a process of its own (this program again, with `--serve`). The instances are
//! tasks with a connection each. They send at an even rate whatever the answers do, and latency is
//! counted from when a report was due, so that a collector that falls behind does not look good. Reports
//! have two kilobytes; a run sends ten, each of which says more than the one before. Both sides share
//! this machine's cores.
//!
//! Prints one JSON object a line. Run by `cargo bench -p tomo-collector --bench fleet`, and by `cargo xtask
//! bench collector`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tomo_collector::{Collector, Options, Server, Shutdown, Store};
use tomo_protocol::{
    Answer, Bound, Campaign, Client, NewCampaign, NewModule, NewToken, Plan, Policy, Profile,
    Program, Role, Settings, Strategy, Token, What, paths,
};
use tomo_wire::ModuleId;
use tomo_wire::plan::{self, Entry, Level, Tactic};
use tomo_wire::report::{Outcome, Report};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U32;

const INSTANCES: u64 = 1000;
/// Reports of each instance; at [`RATE`] they take this long together.
const REPORTS: u64 = 110;
/// Reports a second of all instances.
const RATE: f64 = 5500.0;
/// Reports of a run.
const OF_A_RUN: u64 = 10;
const UNITS: u32 = 20_000;
const VARIANTS: u32 = 8;
const PROBES: u64 = 5000;
const STEM: &str = "be01-0000000000000001";

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|one| one == "--serve") {
        return serve(Path::new(&arguments[at + 1]));
    }
    // Cargo passes --bench, and `cargo test --benches` does not: then there is nothing to do.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let mut server = Serving::start(folder.path())?;
    let measured = measure(&server, folder.path());
    server.end()?;
    measured
}

fn print(what: &str, value: f64, unit: &str, promise: &str) {
    // No text here holds anything that JSON would write otherwise than Rust does.
    println!(
        r#"{{"bench":"fleet","what":{what:?},"value":{value},"unit":{unit:?},"promise":{promise:?}}}"#
    );
}

/// Serves until its input ends.
fn serve(folder: &Path) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let store = Store::local(&folder.join("store"))?;
        let collector = Arc::new(Collector::open(store, Options::default()).await?);
        collector
            .ensure_administrator(&folder.join("admin.token"))
            .await?;
        collector.keep();
        let server = Server::bind(([127, 0, 0, 1], 0).into(), collector, None).await?;
        println!("http://{}", server.address()?);
        let shutdown = Shutdown::default();
        let ending = shutdown.clone();
        std::thread::spawn(move || {
            // Ends, or fails: either way nobody wants this any more.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            ending.end();
        });
        server.run(shutdown).await;
        Ok(())
    })
}

/// The collector's process. It ends when this does, whatever happens: its input is at its end then.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(folder: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--serve")
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        let output = child.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut url)?;
        let url = url.trim().to_owned();
        Ok(Self { child, url })
    }

    /// The most memory that it had at once, in megabytes.
    fn peak(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        Ok(kilobytes.ok_or("no peak")?.parse::<f64>()? / 1024.0)
    }

    /// Seconds of processor time so far.
    fn processor(&self) -> Result<f64, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(')').ok_or("no name")?;
        let times = fields.split_whitespace().skip(11).take(2);
        let ticks: Result<Vec<f64>, _> = times.map(str::parse::<f64>).collect();
        // Linux counts a hundred a second for programs, whatever its own clock does.
        Ok(ticks?.iter().sum::<f64>() / 100.0)
    }

    fn end(&mut self) -> Result<(), Failure> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        status
            .success()
            .then_some(())
            .ok_or_else(|| format!("the collector: {status}").into())
    }
}

fn client(url: &str, token: &str) -> Result<Client, Failure> {
    Ok(Client::new(&Settings {
        url: url.into(),
        token: Some(token.into()),
        authorities: None,
        timeout: Duration::from_secs(60),
    })?)
}

fn new_campaign(admin: &Client) -> Result<Campaign, Failure> {
    let module = ModuleId::by_build_id(&[0xbe, 1], 1).ok_or("an id")?;
    let entry = |unit: u32| Entry {
        from: u64::from(unit).into(),
        to: 0.into(),
        tactic: (Tactic::Quadword as u32).into(),
        is_edge: 0.into(),
    };
    let units: Vec<Entry> = (0..UNITS).map(entry).collect();
    let header = plan::Plan::of(module, Level::Block, 1, &units);
    let name = tomo_protocol::Name(header.name());
    let bytes = [header.as_bytes(), units.as_bytes()].concat();
    let program = Program {
        stem: STEM.into(),
        name: "prog".into(),
        build_id: None,
        size: 0,
        functions: 0,
        version: "0".into(),
    };
    let _: Program = admin.put(&paths::of_program(paths::PROGRAM, STEM), &program)?;
    let _: Plan = admin.put_bytes(&paths::of_plan(name), &bytes)?;
    let new = NewCampaign {
        name: "bench".into(),
        modules: vec![NewModule {
            stem: STEM.into(),
            level: "block".into(),
            placement: "all".into(),
            plan: name,
            clusters: Vec::new(),
            events: Vec::new(),
            only: None,
        }],
        strategy: Strategy::BalancedProbes,
        variants: VARIANTS,
        bound: Bound::Probes(PROBES),
        seed: 1,
        policy: Policy::default(),
        search: None,
    };
    Ok(admin.post(paths::CAMPAIGNS, &new)?)
}

fn measure(server: &Serving, folder: &Path) -> Result<(), Failure> {
    let admin = std::fs::read_to_string(folder.join("admin.token"))?;
    let admin = client(&server.url, admin.trim())?;
    let campaign = Arc::new(new_campaign(&admin)?);
    let new = NewToken {
        role: Role::Instance,
        note: String::new(),
    };
    let token: Token = admin.post(&paths::of_campaign(paths::TOKENS, campaign.id), &new)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let address = server.url.trim_start_matches("http://").to_owned();
    let (mut latencies, seconds) = runtime.block_on(fleet(&address, &token.token, &campaign))?;
    let count = latencies.len() as f64;
    let processor = server.processor()? / count * 1e6;
    latencies.sort_unstable();
    let at = |share: f64| {
        let index = (share * (count - 1.0)) as usize;
        latencies
            .get(index)
            .map_or(f64::NAN, |one| one.as_secs_f64() * 1000.0)
    };
    let profile: Profile = admin.get(&paths::of_campaign(paths::PROFILE, campaign.id))?;
    let expected = INSTANCES * REPORTS.div_ceil(OF_A_RUN);
    if profile.totals.runs != expected || count as u64 != INSTANCES * REPORTS {
        return Err(format!(
            "{count} answers and {} runs, not {expected}",
            profile.totals.runs
        )
        .into());
    }
    let size = report(&campaign, 0, 0).len();
    print("instances", INSTANCES as f64, "", "");
    print("bytes of a report", size as f64, "", "");
    print("reports made durable", count, "", "");
    print(
        "reports a second",
        count / seconds,
        "/s",
        ">= 5,000 a second",
    );
    print("half of them were answered within", at(0.5), "ms", "");
    print("99 of 100 were answered within", at(0.99), "ms", "< 100 ms");
    print("all were answered within", at(1.0), "ms", "");
    print(
        "processor time of the collector a report",
        processor,
        "µs",
        "",
    );
    print(
        "peak memory of the collector",
        server.peak()?,
        "MB",
        "< 500 MB",
    );
    Ok(())
}

/// Lets all instances send; gives how long each report took, and all of them together.
async fn fleet(
    address: &str,
    token: &str,
    campaign: &Arc<Campaign>,
) -> Result<(Vec<Duration>, f64), Failure> {
    let head = format!("HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n");
    let mut connections = Vec::new();
    for _ in 0..INSTANCES {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        connections.push(stream);
    }
    let begun = Instant::now();
    let mut instances = tokio::task::JoinSet::new();
    for (instance, stream) in (0..).zip(connections) {
        let (head, campaign) = (head.clone(), Arc::clone(campaign));
        instances.spawn(send_all(instance, stream, head, campaign, begun));
    }
    let mut latencies = Vec::new();
    while let Some(one) = instances.join_next().await {
        latencies.append(&mut one??);
    }
    Ok((latencies, begun.elapsed().as_secs_f64()))
}

async fn send_all(
    instance: u64,
    mut stream: TcpStream,
    head: String,
    campaign: Arc<Campaign>,
    begun: Instant,
) -> Result<Vec<Duration>, Failure> {
    let mut latencies = Vec::new();
    let mut buffer = Vec::new();
    let mut since = None;
    for number in 0..REPORTS {
        let due = begun + Duration::from_secs_f64((number * INSTANCES + instance) as f64 / RATE);
        let body = report(&campaign, instance, number);
        tokio::time::sleep_until(due).await;
        let path = paths::of_reports(since);
        let length = body.len();
        let mut request =
            format!("POST {path} {head}content-length: {length}\r\n\r\n").into_bytes();
        request.extend(&body);
        stream.write_all(&request).await?;
        let answer = answered(&mut stream, &mut buffer).await?;
        latencies.push(due.elapsed());
        since = answer.news.map(|news| news.since());
    }
    Ok(latencies)
}

/// Reads one answer, which must say that the report is stored.
async fn answered(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Answer, Failure> {
    buffer.clear();
    loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err("the collector closed the connection".into());
        }
        let text = std::str::from_utf8(buffer)?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.ok_or("an answer without a length")?.parse()?;
        if body.len() >= length {
            let answer: Answer = serde_json::from_str(body)?;
            let stored = answer.verdicts.iter().all(|one| one.what == What::Stored);
            return stored.then_some(answer).ok_or_else(|| text.into());
        }
    }
}

/// The report of an instance with this number: two kilobytes, a tenth of it new.
fn report(campaign: &Campaign, instance: u64, number: u64) -> Vec<u8> {
    let variant = (instance % u64::from(VARIANTS)) as u32;
    let mut report = Report::empty();
    report.campaign = campaign.id.0;
    report.plans = campaign.plans.0.into();
    report.instance[..8].copy_from_slice(&instance.to_le_bytes());
    report.run = (number / OF_A_RUN + 1).into();
    report.sequence = (number as u32 + 1).into();
    report.variant = variant.into();
    report.duration = (number * 1_000_000).into();
    report.armed = 1.into();
    let last = number % OF_A_RUN + 1 == OF_A_RUN;
    let outcome = if last {
        Outcome::Exited
    } else {
        Outcome::Running
    };
    report.outcome = (outcome as u32).into();
    report.version = Report::version_of("bench");
    let most = (2048 - size_of::<Report>()) / 4;
    let units = &campaign.variants[variant as usize].units;
    let skipped = (number * most as u64 / 10) % (PROBES - most as u64);
    let hits: Vec<U32> = units
        .iter()
        .skip(skipped as usize)
        .take(most)
        .map(Into::into)
        .collect();
    [report.sealed(&hits).as_slice(), hits.as_bytes()].concat()
}
