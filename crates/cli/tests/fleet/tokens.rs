//! One folder of state that is used with one token after the other.

use std::process::Output;

use tomo_testkit::corpus::compiled;

use crate::instances::Fleet;
use crate::site::Site;

/// A fleet, and a second campaign over the same program with a token of its own.
struct Two {
    fleet: Fleet,
    other: String,
}

impl Two {
    fn new() -> Self {
        let program = compiled("gcc", "patient.c", &["-O2"]).expect("built");
        let fleet = Fleet::of(Site::new(), program, &["campaign", "new", "--name", "one"]);
        let path = fleet.program.to_str().expect("UTF-8").to_owned();
        let words = ["campaign", "new", "--name", "two", &path];
        let other = fleet.site.tomo(&words).trim().to_owned();
        let two = Self { fleet, other };
        two.make_token(&two.other, "other.token");
        two
    }

    fn make_token(&self, campaign: &str, file: &str) {
        let token = self.fleet.site.tomo(&["campaign", "token", campaign]);
        std::fs::write(self.fleet.site.path(file), token).expect("a token");
    }

    /// `tomo run` in the same state, with the token in this file.
    fn tomo(&self, token: &str, flags: &[&str]) -> Output {
        let file = self.fleet.site.path(token);
        let token = ["--token-file", file.to_str().expect("UTF-8")];
        let output = self.fleet.tomo(0, &[&token, flags].concat(), &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said, "");
        output
    }

    /// Sends what waits; what is said of it, on both streams.
    fn flush(&self, token: &str) -> String {
        let file = self.fleet.site.path(token);
        let flags = [
            "--token-file",
            file.to_str().expect("UTF-8"),
            "--flush-only",
        ];
        let output = self.fleet.instance(0, &flags).output().expect("tomo");
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).expect("text")
    }

    /// How many runs a campaign has heard of.
    fn runs(&self, campaign: &str) -> u64 {
        let status = self
            .fleet
            .site
            .tomo(&["fleet", "status", campaign, "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        status["totals"]["runs"].as_u64().expect("a number")
    }
}

#[test]
fn no_run_is_lost_where_tokens_take_turns() {
    let two = Two::new();
    for token in ["instance.token", "other.token"] {
        two.tomo(token, &["--prepare"]);
    }
    for _ in 0..3 {
        two.tomo("instance.token", &[]);
        two.tomo("other.token", &[]);
    }
    assert_eq!((two.runs(&two.fleet.id), two.runs(&two.other)), (3, 3));
}

#[test]
fn what_waits_is_sent_with_a_token_of_its_campaign_alone() {
    let two = Two::new();
    two.tomo("instance.token", &["--prepare"]);
    two.tomo("instance.token", &["--collector", "http://127.0.0.1:1"]);
    // The first run with another token only prepares, and sends nothing that is not its own.
    two.tomo("other.token", &[]);
    assert_eq!(
        two.flush("other.token"),
        "0 reports sent, 0 refused, 1 waiting\n\
         tomo: reports wait that are of campaigns with other tokens: they are sent with those\n"
    );
    assert_eq!(two.runs(&two.other), 0);
    // Another token of its campaign will do.
    two.make_token(&two.fleet.id, "renewed.token");
    assert_eq!(
        two.flush("renewed.token"),
        "1 report sent, 0 refused, 0 waiting\n"
    );
    assert_eq!(two.runs(&two.fleet.id), 1);
}
