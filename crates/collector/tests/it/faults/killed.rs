//! A server process that is killed at random moments, a hundred times, under load.
//!
//! The server is this test program itself, run again with [`served_until_killed`] alone. When it is
//! killed depends on how many answers have come so far, a random number, while several senders go on
//! sending: so it may be in the middle of anything.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tomo_collector::{Options, Retention, Store};
use tomo_protocol::{Answer, Bound, Campaign, Client, Profile, Role, What, paths};

use crate::fleet::{Word, add_program, client, request, serve, token};

const FOLDER: &str = "TOMO_TEST_COLLECTOR_FOLDER";
const SENDERS: u8 = 4;

/// The server of the other test: compacts all the time, so that it is killed in the middle of that, too.
#[test]
#[ignore = "a server for another test, which runs it as a process of its own and kills it"]
fn served_until_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let options = Options {
        retention: Retention {
            compact_from: 2000,
            every: Duration::from_millis(1),
            ..Retention::default()
        },
        ..Options::default()
    };
    let store = Store::local(&folder.join("store")).expect("a store");
    let served = serve(store, options, &folder.join("admin.token"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    println!("serves at {}", served.url);
    runtime.block_on(async {
        loop {
            served
                .collector
                .keep_once()
                .await
                .expect("the store is sound");
            tokio::task::yield_now().await;
        }
    });
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args([
                "--ignored",
                "--exact",
                "--nocapture",
                "faults::killed::served_until_killed",
            ])
            .env(FOLDER, folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let url = lines
            .find_map(|line| {
                line.ok()?
                    .split_once("serves at ")
                    .map(|(_, url)| url.to_owned())
            })
            .expect("an address");
        Self { child, url }
    }

    fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }
}

/// Sends the runs from `first` on, one after the other, until the server is gone. Gives the number of
/// the first that was not acknowledged.
fn send(
    client: &Client,
    campaign: &Campaign,
    instance: u8,
    first: u64,
    told: &mpsc::Sender<()>,
) -> u64 {
    for run in first.. {
        let hits = [instance.into(), 10 + run as u32 % 200];
        let body = Word::of(instance, run, &hits).report(campaign);
        match client.post_bytes::<Answer>(paths::REPORTS, &body) {
            Ok(answer) => assert!(!matches!(answer.verdicts[0].what, What::Refused { .. })),
            Err(error) if error.is_temporary() => return run,
            Err(error) => panic!("{error}"),
        }
        // The other end goes when it has heard enough.
        let _ = told.send(());
    }
    unreachable!("runs without end")
}

#[test]
fn a_collector_killed_a_hundred_times_loses_nothing_acknowledged_and_counts_nothing_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path());
    let admin = std::fs::read_to_string(folder.path().join("admin.token")).expect("a token");
    let admin = admin.trim().to_owned();
    let first = client(&server.url, Some(&admin));
    let plan = add_program(&first, 300);
    let new = request(plan, 1, Bound::None);
    let campaign: Campaign = first.post(paths::CAMPAIGNS, &new).expect("a campaign");
    let instances = token(&first, campaign.id, Role::Instance);
    server.kill();
    let mut next = [1_u64; SENDERS as usize];
    let mut random = 7_u64;
    for _ in 0..100 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let enough = (random >> 33) as usize % 40;
        let server = Server::start(folder.path());
        let (told, heard) = mpsc::channel();
        let client = client(&server.url, Some(&instances));
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (client, campaign, told) = (client.clone(), campaign.clone(), told.clone());
                let from = next[usize::from(sender)];
                std::thread::spawn(move || send(&client, &campaign, sender + 1, from, &told))
            })
            .collect();
        assert_eq!(heard.iter().take(enough).count(), enough);
        server.kill();
        for (next, sender) in next.iter_mut().zip(senders) {
            *next = sender.join().expect("no panic");
        }
    }
    check(folder.path(), &admin, &campaign, &next);
}

/// All that was acknowledged is there; what was not may be, once. Sending it all again adds the rest.
fn check(folder: &Path, admin: &str, campaign: &Campaign, next: &[u64]) {
    let store = Store::local(&folder.join("store")).expect("a store");
    let served = serve(store, Options::default(), &folder.join("admin.token"));
    let admin = client(&served.url, Some(admin));
    let profile = || -> Profile {
        admin
            .get(&paths::of_campaign(paths::PROFILE, campaign.id))
            .expect("a profile")
    };
    let acknowledged: u64 = next.iter().map(|next| next - 1).sum();
    let told = profile().totals;
    let possible = acknowledged..=acknowledged + 100 * u64::from(SENDERS);
    assert!(
        possible.contains(&told.runs),
        "{acknowledged} {}",
        told.runs
    );
    assert_eq!(told.duration, told.runs * 1_000_000_000);
    let instance = client(
        &served.url,
        Some(&token(&admin, campaign.id, Role::Instance)),
    );
    for (sender, next) in (1..).zip(next) {
        for run in 1..=*next {
            let hits = [u32::from(sender), 10 + run as u32 % 200];
            let body = Word::of(sender, run, &hits).report(campaign);
            let answer: Answer = instance
                .post_bytes(paths::REPORTS, &body)
                .expect("an answer");
            if run < *next {
                assert_eq!(
                    answer.verdicts[0].what,
                    What::Known,
                    "run {run} of {sender}"
                );
            }
        }
    }
    let told = profile().totals;
    assert_eq!(told.runs, next.iter().sum::<u64>());
    assert_eq!(told.duration, told.runs * 1_000_000_000);
    served.shutdown.end();
    served.thread.join().expect("an end");
}
