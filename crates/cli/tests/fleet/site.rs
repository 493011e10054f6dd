//! A folder with a program, a cache, and a collector that serves until the test is over.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tomo_protocol::{Campaign, Client, Settings};
use tomo_wire::report::{Outcome, Report};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U32;

const SOURCE: &str = "\
extern int puts(const char *);
static int odd(int n) { return n % 2 ? puts(\"odd\") : 0; }
int main(int n, char **v) { return v[0] && odd(n) < 0; }
";

pub(crate) struct Site {
    pub(crate) folder: TempDir,
    pub(crate) url: String,
    server: Option<Child>,
}

impl Site {
    /// A collector on a port of its own, and `prog`, built with debug information.
    pub(crate) fn new() -> Self {
        Self::behind("")
    }

    /// The same, where the shell that starts the collector says this before.
    pub(crate) fn behind(said: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("prog.c"), SOURCE).expect("a source");
        let built = Command::new("gcc")
            .args(["-g", "-O0", "-o", "prog", "prog.c"])
            .current_dir(folder.path())
            .status()
            .expect("gcc (apt-get install gcc)");
        assert!(built.success());
        let mut site = Self {
            folder,
            url: String::new(),
            server: None,
        };
        let serve = "serve fleet --listen 127.0.0.1:0 --log-level error";
        let serve = site.command(&serve.split(' ').collect::<Vec<_>>());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{said}\nexec \"$@\""), "-"]);
        shell.arg(serve.get_program()).args(serve.get_args());
        for (name, value) in serve.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        let mut server = shell
            .current_dir(site.folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a collector");
        let output = BufReader::new(server.stdout.take().expect("its output"));
        let mut lines = output.lines().map(|line| line.expect("text"));
        let first = lines.next().expect("a line");
        site.url = first
            .strip_prefix("listening at ")
            .expect("an address")
            .to_owned();
        let second = lines.next().expect("a line");
        assert_eq!(second, "the administrator's token is in fleet/admin.token");
        site.server = Some(server);
        site
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("TOMO_CACHE_DIR", self.folder.path().join("cache"))
            .env("TOMO_COLLECTOR", &self.url)
            .env("TOMO_TOKEN_FILE", "fleet/admin.token");
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("tomo")
    }

    /// What tomo prints where all goes well.
    pub(crate) fn tomo(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The line that tomo prints where something goes wrong.
    pub(crate) fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let error = String::from_utf8(output.stderr).expect("text");
        error.replace(&self.url, "URL")
    }

    /// A campaign over `prog`, and a client with a token of one of its instances.
    pub(crate) fn campaign(&self, flags: &[&str]) -> (Campaign, Client) {
        let id = self.tomo(&[&["campaign", "new", "./prog"], flags].concat());
        let shown = self.tomo(&["campaign", "show", id.trim(), "--json"]);
        let campaign: Campaign = serde_json::from_str(&shown).expect("a campaign");
        let token = self.tomo(&["campaign", "token", id.trim()]);
        let client = Client::new(&Settings {
            url: self.url.clone(),
            token: Some(token.trim().to_owned()),
            authorities: None,
            timeout: Duration::from_secs(60),
        });
        (campaign, client.expect("a client"))
    }

    /// Tells the collector to end; gives its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let mut server = self.server.take().expect("a collector");
        let id = Pid::from_raw(i32::try_from(server.id()).expect("an id"));
        kill(id, Signal::SIGTERM).expect("a signal");
        server.wait().expect("an end").code()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // It may be gone already; either way it is waited for.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// The report of an instance's only run: what it hit, in a second and a half.
pub(crate) fn report(campaign: &Campaign, instance: u8, variant: u32, hits: &[u32]) -> Vec<u8> {
    let mut report = Report::empty();
    report.campaign = campaign.id.0;
    report.plans = campaign.plans.0.into();
    report.instance = [instance; 16];
    report.run = 1.into();
    report.sequence = 1.into();
    report.variant = variant.into();
    report.outcome = (Outcome::Exited as u32).into();
    report.duration = 1_500_000_000.into();
    report.armed = 1.into();
    report.version = Report::version_of(env!("CARGO_PKG_VERSION"));
    let hits: Vec<U32> = hits.iter().map(|&hit| hit.into()).collect();
    [report.sealed(&hits).as_slice(), hits.as_bytes()].concat()
}
