//! Installations of a program that take part in a campaign.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tomo_protocol::{Campaign, Client, Profile, Settings};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build, compiled};

use crate::site::Site;

/// A campaign over a program, and the token of its instances.
pub(crate) struct Fleet {
    pub(crate) site: Site,
    pub(crate) program: PathBuf,
    pub(crate) id: String,
    token: PathBuf,
}

impl Fleet {
    /// Over a program of the tests'.
    pub(crate) fn new(source: &str, words: &[&str]) -> Self {
        let program = compiled("gcc", source, &["-O0", "-g"]).expect("built");
        Self::of(Site::new(), program, words)
    }

    /// What these words begin, over this program.
    pub(crate) fn of(site: Site, program: PathBuf, words: &[&str]) -> Self {
        let path = program.to_str().expect("UTF-8").to_owned();
        let id = site.tomo(&[words, &[&path]].concat()).trim().to_owned();
        let token = site.path("instance.token");
        std::fs::write(&token, site.tomo(&["campaign", "token", &id])).expect("a token");
        Self {
            site,
            program,
            id,
            token,
        }
    }

    /// `tomo run` on the installation with this number.
    pub(crate) fn tomo(&self, instance: usize, flags: &[&str], words: &[&str]) -> Output {
        let mut command = self.instance(instance, flags);
        command.arg("--").arg(&self.program).args(words);
        command.output().expect("tomo")
    }

    /// A session of a shell, whose first word is the program's path.
    pub(crate) fn session(&self, instance: usize, script: &str, words: &[String]) -> Output {
        let mut command = self.instance(instance, &["--program"]);
        command.arg(&self.program).args(["--", "sh", "-c", script]);
        command.arg(&self.program).args(words);
        command.output().expect("tomo")
    }

    /// The same, ready for a program.
    pub(crate) fn instance(&self, instance: usize, flags: &[&str]) -> Command {
        self.instance_within("60", instance, flags)
    }

    /// The same, where the end waits for so many seconds at most.
    pub(crate) fn instance_within(
        &self,
        seconds: &str,
        instance: usize,
        flags: &[&str],
    ) -> Command {
        self.instance_at(&self.site.url, seconds, instance, flags)
    }

    /// The same, where a collector is asked at this address.
    pub(crate) fn instance_at(
        &self,
        url: &str,
        seconds: &str,
        instance: usize,
        flags: &[&str],
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
        command
            .args(["run", "--collector", url, "--token-file"])
            .arg(&self.token)
            .args(["--flush-timeout", seconds, "--state"])
            .arg(self.site.path(&format!("state-{instance}")))
            .args(flags)
            .env("TOMO_CACHE_DIR", self.site.path("cache"));
        command
    }

    /// All runs of `subject` on each of so many installations.
    pub(crate) fn run_all(&self, subject: &Subject, instances: usize) {
        for instance in 0..instances {
            self.prepare(instance);
            for words in &subject.runs {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let output = self.tomo(instance, &[], &words);
                assert!(output.status.success(), "{output:?}");
            }
        }
    }

    /// The campaign.
    pub(crate) fn campaign(&self) -> Campaign {
        let shown = self.site.tomo(&["campaign", "show", &self.id, "--json"]);
        serde_json::from_str(&shown).expect("a campaign")
    }

    /// The report, and what the collector has of each unit.
    pub(crate) fn reported(&self) -> (Value, Profile) {
        let words = [
            "fleet",
            "report",
            &self.id,
            "--format",
            "json",
            "--units",
            "units.json",
        ];
        let document = serde_json::from_str(&self.site.tomo(&words)).expect("JSON");
        let units = std::fs::read(self.site.path("units.json")).expect("a file");
        (document, serde_json::from_slice(&units).expect("a profile"))
    }

    /// Fetches what is to be observed.
    pub(crate) fn prepare(&self, instance: usize) {
        let output = self.tomo(instance, &["--prepare"], &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }

    /// A client that takes part by itself.
    pub(crate) fn client(&self) -> Client {
        let settings = Settings {
            url: self.site.url.clone(),
            token: Some(
                std::fs::read_to_string(&self.token)
                    .expect("a token")
                    .trim()
                    .to_owned(),
            ),
            authorities: None,
            timeout: Duration::from_secs(60),
        };
        Client::new(&settings).expect("a client")
    }
}

/// A program, and the words of some runs of it that do the same each time.
pub(crate) struct Subject {
    pub(crate) program: PathBuf,
    pub(crate) runs: Vec<Vec<String>>,
}

/// bzip2, which compresses and expands files in `site`.
pub(crate) fn bzip2(site: &Site) -> Subject {
    let recipe = Recipe::new(Source::Bzip2, Compiler::Gcc, Level::O2);
    let program = build(&recipe).expect("bzip2").program;
    let words = |number: usize| format!("{number} {} of {}\n", number * number % 77, number % 13);
    let text: String = (0..2000).map(words).collect();
    let (plain, runs) = (site.path("plain"), site.path("repeated"));
    std::fs::write(&plain, text).expect("a file");
    std::fs::write(&runs, "a".repeat(5000)).expect("a file");
    let compressed = Command::new(&program).arg("-c").arg(&plain).output();
    let compressed = compressed.expect("bzip2").stdout;
    let packed = site.path("packed.bz2");
    std::fs::write(&packed, compressed).expect("a file");
    let run = |flags: &str, file: &PathBuf| vec![flags.to_owned(), file.display().to_string()];
    Subject {
        program,
        runs: vec![run("-c", &plain), run("-c1", &runs), run("-dc", &packed)],
    }
}
