//! One test for each thing that users do.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Output;

use serde_json::Value;
use tomo_protocol::{Answer, CALIBRATION_SCHEMA, Calibration, Cost, Name, Units, paths};
use tomo_testkit::corpus::compiled;

use crate::site::{Site, report};

/// Each connection is an open file, as are those of the store.
#[test]
fn connections_leave_files_for_the_store() {
    let site = Site::behind("ulimit -n 300");
    let address = &site.url["http://".len()..];
    let connect = |_| TcpStream::connect(address).expect("a connection");
    let held: Vec<TcpStream> = (0..400).map(connect).collect();
    let mut answers = held.into_iter().map(|mut stream| {
        let asked = b"GET /v1/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let mut said = String::new();
        let asked = stream.write_all(asked);
        let read = asked.and_then(|()| stream.read_to_string(&mut said));
        read.is_ok() && !said.is_empty()
    });
    let first = answers.next().expect("some");
    let turned_away = answers.filter(|answered| !answered).count();
    assert!(first && turned_away > 0, "{first} {turned_away}");
    site.campaign(&[]);
}

/// Where its file is for the moment says nothing to anybody.
#[test]
fn a_program_that_nobody_has_observed_is_called_by_its_name() {
    let site = Site::new();
    site.campaign(&["--name", "try"]);
    let early = site.output(&["fleet", "report", "try"]);
    let early = String::from_utf8_lossy(&early.stderr);
    let words = ": no process has been observed so far\n";
    assert!(early.ends_with(words) && !early.contains('/'), "{early}");
}

#[test]
fn a_fleet_from_the_campaign_to_the_report() {
    let mut site = Site::new();
    let (campaign, instance) = site.campaign(&["--probes", "3", "--name", "try"]);
    assert!(campaign.variants.len() > 1);
    let all = campaign
        .variants
        .iter()
        .flat_map(|variant| variant.units.iter());
    assert_eq!(
        Units::of(all),
        Units::below(campaign.units),
        "each probe is in a variant"
    );
    let mut seen = Vec::new();
    for (number, variant) in (0..).zip(&campaign.variants) {
        let hits: Vec<u32> = variant.units.iter().take(2).collect();
        seen.extend(&hits);
        let body = report(&campaign, number as u8 + 1, number, &hits);
        let answer: Answer = instance
            .post_bytes(paths::REPORTS, &body)
            .expect("an answer");
        assert!(
            answer
                .verdicts
                .iter()
                .all(|verdict| verdict.what.is_settled())
        );
    }
    let status = site.tomo(&["fleet", "status", "try"]);
    let seen = Units::of(seen).len();
    let expected = format!("{seen} of {} units seen", campaign.units);
    assert!(status.contains(&expected), "{status}");
    let text = site.tomo(&["fleet", "report", "try"]);
    assert!(text.contains("prog.c"), "{text}");
    assert!(
        text.contains(&format!("fleet: {} instances", campaign.variants.len())),
        "{text}"
    );
    assert!(text.contains("never seen: "), "{text}");
    assert_pages_say(&site, &text);
    let json = site.tomo(&[
        "fleet",
        "report",
        "try",
        "--format",
        "json",
        "--units",
        "units.json",
    ]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "tomo.coverage/1");
    let units = std::fs::read_to_string(site.path("units.json")).expect("a file");
    let units: tomo_protocol::Profile = serde_json::from_str(&units).expect("a profile");
    assert_eq!(units.seen.len() as u64, seen);
    assert!(
        site.tomo(&["fleet", "report", "try", "--format", "lcov"])
            .contains("DA:")
    );
    assert!(site.tomo(&["fleet", "growth", "try"]).lines().count() > 1);
    let picture = site.tomo(&["fleet", "growth", "try", "--svg", "-"]);
    roxmltree::Document::parse(&picture).expect("a picture");
    site.tomo(&["fleet", "growth", "try", "--svg", "growth.svg"]);
    assert!(std::fs::read_to_string(site.path("growth.svg")).is_ok_and(|file| file == picture));
    let list = site.tomo(&["campaign", "list"]);
    assert!(list.contains("try") && !list.contains("retired"), "{list}");
    site.tomo(&["campaign", "retire", "try"]);
    assert!(site.tomo(&["campaign", "list"]).contains("retired"));
    assert_eq!(site.end(), Some(0), "it ends well when it is told to");
}

/// Pages say the same of the fleet as what people read in the terminal.
fn assert_pages_say(site: &Site, text: &str) {
    site.tomo(&["fleet", "report", "try", "--html", "pages"]);
    let index = std::fs::read_to_string(site.path("pages/index.html")).expect("a page");
    let below = text
        .split_once("\nfleet: ")
        .expect("what is said of the fleet")
        .1;
    let below = below.trim();
    assert!(
        index.contains(&format!("<pre>fleet: {below}</pre>")),
        "{index}"
    );
}

/// A share of run time becomes a number of probes by what was measured, and by nothing else.
#[test]
fn a_bound_may_be_a_share_of_run_time() {
    let site = Site::new();
    let (all, _) = site.campaign(&[]);
    let half = all.units / 2;
    let cost = |probes, share| Cost {
        probes,
        share,
        low: share,
        high: share,
    };
    let measured = Calibration {
        schema: CALIBRATION_SCHEMA.into(),
        plans: all.plans,
        units: all.units,
        rounds: 9,
        confidence: 0.95,
        seconds: 1.0,
        points: vec![cost(0, 0.0), cost(half, 0.01), cost(all.units, 0.5)],
    };
    let write = |name: &str, calibration: &Calibration| {
        let text = serde_json::to_string(calibration).expect("JSON");
        std::fs::write(site.path(name), text).expect("a file");
    };
    write("measured", &measured);
    let bounded = |share, file| ["--overhead", share, "--calibration", file];
    let (campaign, _) = site.campaign(&bounded("1%", "measured"));
    let most = campaign.variants.iter().map(|variant| variant.units.len());
    assert_eq!(most.max(), Some(u64::from(half)));
    let new = |share, file| [&["campaign", "new", "./prog"], &bounded(share, file)[..]].concat();
    write(
        "noisy",
        &Calibration {
            points: vec![cost(0, 0.02), cost(all.units, 0.03)],
            ..measured.clone()
        },
    );
    let refusal = site.refusal(&new("1%", "noisy"));
    assert!(
        refusal.contains("more than the bound of 1.00 %"),
        "{refusal}"
    );
    let other = Calibration {
        plans: Name(all.plans.0 ^ 1),
        ..measured
    };
    write("other", &other);
    let refusal = site.refusal(&new("1%", "other"));
    assert!(refusal.contains("another build"), "{refusal}");
}

/// The collector's first two lines were read, and nobody will read another.
#[test]
fn a_collector_to_whom_nobody_listens_serves_on_and_ends_well() {
    let mut site = Site::new();
    site.campaign(&["--name", "still there"]);
    assert!(site.tomo(&["campaign", "list"]).contains("still there"));
    assert_eq!(site.end(), Some(0));
}

#[test]
fn what_every_instance_carries_is_reported_as_of_one_run() {
    let site = Site::new();
    let (campaign, instance) = site.campaign(&[]);
    assert_eq!(campaign.variants.len(), 1);
    let hits: Vec<u32> = (0..campaign.units).collect();
    let body = report(&campaign, 1, 0, &hits);
    let _: Answer = instance
        .post_bytes(paths::REPORTS, &body)
        .expect("an answer");
    let json = site.tomo(&["fleet", "report", "prog", "--format", "json"]);
    assert!(site.output(&["fleet", "report", "prog"]).status.success());
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["totals"]["blocks"]["missed"], 0);
    assert_eq!(
        json["modules"][0]["path"], "prog",
        "it is not told where it was for a moment"
    );
}

/// Who has two of one name can call neither by it.
#[test]
fn each_campaign_has_a_name_of_its_own() {
    let site = Site::new();
    site.campaign(&[]);
    site.campaign(&[]);
    let list = site.tomo(&["campaign", "list"]);
    for name in ["  prog  ", "  prog-2  "] {
        assert!(list.contains(name), "{list}");
    }
    for command in ["new", "isolate"] {
        let refused = site.refusal(&["campaign", command, "--name", "prog", "./prog"]);
        assert_eq!(
            refused,
            "tomo: there is a campaign prog already; choose another --name\n"
        );
    }
    site.tomo(&["fleet", "status", "prog-2"]);
}

#[test]
fn names_that_would_steer_a_terminal_are_refused() {
    let site = Site::new();
    for name in ["red\u{1b}[31m", "two\nlines", "turned\u{202e}"] {
        let refused = site.refusal(&["campaign", "new", "--name", name, "./prog"]);
        assert_eq!(
            refused,
            "tomo: the collector refused (422): the campaign's name holds letters that steer a terminal; leave them out\n"
        );
    }
    let token = ["campaign", "token", "prog", "--note", "a\u{7}"];
    site.campaign(&[]);
    assert!(site.refusal(&token).contains("steer a terminal"));
    // A file may be called so, and is to be observed all the same.
    std::fs::copy(site.path("prog"), site.path("p\n\u{1b}[0mq")).expect("a copy");
    site.tomo(&["campaign", "new", "./p\n\u{1b}[0mq"]);
    let list = site.tomo(&["campaign", "list"]);
    assert!(list.contains("p\u{fffd}\u{fffd}[0mq  "), "{list}");
}

#[test]
fn campaigns_are_found_by_how_their_names_begin() {
    let site = Site::new();
    let (long, _) = site.campaign(&["--name", "nightly-long"]);
    let (short, _) = site.campaign(&["--name", "nightly"]);
    site.campaign(&["--name", "weekly"]);
    let found = |name: &str| {
        let shown = site.tomo(&["campaign", "show", name, "--json"]);
        let shown: tomo_protocol::Campaign = serde_json::from_str(&shown).expect("a campaign");
        shown.id
    };
    assert_eq!(found("nightly-"), long.id);
    assert_eq!(
        found("nightly"),
        short.id,
        "what is called so goes before what begins so"
    );
    assert_eq!(found(&long.id.to_string()[..20]), long.id);
    assert_eq!(
        site.refusal(&["fleet", "status", "nigh"]),
        "tomo: several campaigns are called nigh…: nightly, nightly-long; say more of the name, or of its digits\n"
    );
    assert_eq!(
        site.refusal(&["fleet", "status", "daily"]),
        "tomo: there is no campaign daily; there are nightly, nightly-long, weekly\n"
    );
}

#[test]
fn programs_are_sent_once() {
    let site = Site::new();
    let first = site.tomo(&["program", "add", "./prog"]);
    assert_eq!(site.tomo(&["program", "add", "./prog"]), first);
    let list = site.tomo(&["program", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    assert_eq!(list[0]["name"], "prog");
}

#[test]
fn tokens_do_what_they_are_made_for_until_they_are_withdrawn() {
    let site = Site::new();
    site.campaign(&[]);
    let token = site.tomo(&["campaign", "token", "prog", "--role", "reader", "--json"]);
    let token: tomo_protocol::Token = serde_json::from_str(&token).expect("a token");
    std::fs::write(site.path("reader.token"), &token.token).expect("a file");
    let status = ["fleet", "status", "prog", "--token-file", "reader.token"];
    site.tomo(&status);
    let refused = site.refusal(&["campaign", "new", "./prog", "--token-file", "reader.token"]);
    assert!(refused.contains("403"), "{refused}");
    let list = ["campaign", "token", "prog", "--list"];
    site.tomo(&["campaign", "token", "prog", "--note", "the first ten"]);
    let listed = site.tomo(&list);
    let told: Vec<&str> = listed.lines().collect();
    // The first is that of the site's own instances; the last that was made is the last that is listed.
    assert_eq!(told.len(), 6, "{listed}");
    assert_eq!(told[2], token.hash);
    assert!(told[3].starts_with("  reader, made 20"), "{listed}");
    assert!(told[5].starts_with("  instance, made 20"), "{listed}");
    assert!(told[5].ends_with("Z: the first ten"), "{listed}");
    assert!(!listed.contains(&token.token));
    let refused = site.refusal(&[&list[..], &["--token-file", "reader.token"]].concat());
    assert!(refused.contains("403"), "{refused}");
    site.tomo(&["campaign", "token", "--withdraw", &token.hash]);
    assert!(site.refusal(&status).contains("401"));
    assert!(!site.tomo(&list).contains(&token.hash));
}

#[test]
fn errors_say_what_happened_and_what_to_do() {
    let site = Site::new();
    std::fs::write(site.path("none.token"), "wrong\n").expect("a file");
    std::fs::write(site.path("two.token"), "two words\n").expect("a file");
    let said = [
        site.refusal(&["fleet", "status", "nothing"]),
        site.refusal(&["campaign", "list", "--token-file", "none.token"]),
        site.refusal(&["campaign", "list", "--token-file", "two.token"]),
        site.refusal(&["campaign", "list", "--collector", "ftp://somewhere"]),
        site.refusal(&["campaign", "new", "--probes", "0", "./prog"]),
        site.refusal(&["campaign", "new", "./none"]),
        site.refusal(&["serve", "other", "--listen", "0.0.0.0:0"]),
    ];
    insta::assert_snapshot!(said.join(""));
}

/// Nothing would come of them, or nothing would ever be taken.
#[test]
fn numbers_without_a_sense_are_refused() {
    let site = Site::new();
    let of = |command: &[&str], flags: &[&str], value: &str| {
        for flag in flags {
            let words = [command, &[flag, value, "./prog"]].concat();
            let refused = site.refusal(&words);
            let said = format!("invalid value '{value}' for '{flag}");
            assert!(refused.contains(&said), "{words:?}: {refused}");
        }
    };
    let limits = [
        "--max-connections",
        "--max-instances",
        "--interval",
        "--reports-per-second",
        "--requests-per-second",
        "--max-store-mb",
    ];
    of(&["serve"], &limits, "0");
    let campaign = ["--buffer", "--interval", "--variants"];
    of(&["campaign", "new"], &campaign, "0");
    let search = [
        "--probes",
        "--sites-per-step",
        "--runs-per-step",
        "--instance-runs",
    ];
    of(&["campaign", "isolate"], &search, "0");
    of(&["campaign", "isolate"], &["--success"], "999");
    let cases = ["isolate", "--cases", "none"];
    of(&cases, &["--runs-per-step", "--jobs"], "0");
    of(&["run"], &["--policy"], "interval=0");
}

/// All names begin with nothing, that of the only campaign, too.
#[test]
fn no_campaign_is_called_nothing() {
    let site = Site::new();
    site.campaign(&[]);
    let refused = site.refusal(&["campaign", "retire", ""]);
    let said =
        "tomo: no campaign is called nothing; `tomo campaign list` shows those that there are\n";
    assert_eq!(refused, said);
}

#[test]
fn each_command_has_help() {
    let site = Site::new();
    let commands = [
        &["serve"][..],
        &["program", "add"],
        &["campaign", "new"],
        &["campaign", "token"],
        &["fleet", "status"],
        &["fleet", "report"],
        &["fleet", "growth"],
    ];
    let mut pages = String::new();
    for command in commands {
        pages += &site.tomo(&[command, &["--help"]].concat());
        pages += "\n";
    }
    insta::assert_snapshot!(pages);
}

/// What a program loads later is nothing that its file tells of.
#[test]
fn a_module_that_comes_later_is_observed_where_it_is_named() {
    let site = Site::new();
    let built = |source, flags: &[&str]| {
        let path = compiled("gcc", source, flags).expect("built");
        path.into_os_string().into_string().expect("text")
    };
    let program = built("loading.c", &["-pthread", "-g"]);
    let plugin = built("plugin.c", &["-shared", "-fPIC", "-g"]);
    let id = site.tomo(&["campaign", "new", &program, "--module", &plugin]);
    let token = site.tomo(&["campaign", "token", id.trim()]);
    std::fs::write(site.path("token"), token).expect("a file");
    let run = |flags: &[&str]| {
        let first = ["run", "--token-file", "token", "--state", "state"];
        let waits = ["--wait", "60", "--flush-timeout", "60"];
        let command = ["--", &program, "once", &plugin];
        site.output(&[&first[..], &waits, flags, &command].concat())
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let without = run(&[]);
    assert!(
        said(&without).contains("--module PATH"),
        "{}",
        said(&without)
    );
    let with = run(&["--module", &plugin]);
    assert_eq!((said(&with), with.stdout), (String::new(), without.stdout));
    let report = site.tomo(&["fleet", "report", id.trim(), "--format", "json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let lines = report["totals"]["lines"]["ran"].as_u64();
    assert!(lines.is_some_and(|lines| lines > 0), "{report}");
}
