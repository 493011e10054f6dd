//! `tomo serve`: the collector of a fleet.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tomo_collector::{Collector, Identity, Limits, Options, Retention, Server, Shutdown, Store};

/// Serve as the collector of a fleet.
///
/// One process, which keeps everything in the folder DIR and needs no other service. What it has
/// acknowledged is on disk. At the first start it writes the administrator's token to DIR/admin.token; where that file
/// is removed, the next start writes a new one, and the old one is worth nothing.
/// SIGTERM and SIGINT end it as soon as all that it has taken is stored. Several may serve one folder: each learns
/// within seconds what the others have taken.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder that everything is kept in.
    #[arg(value_name = "DIR", default_value = "tomo-collector")]
    folder: PathBuf,

    /// Where to listen; with port 0 the system chooses one, which the first line of output says.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7272")]
    listen: SocketAddr,

    /// The file with the certificate chain (PEM) to serve with TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The file with the certificate's key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Serve without TLS although others can reach the address: tokens can then be read on the way.
    #[arg(long)]
    without_tls: bool,

    /// Remove retired campaigns after so many days; they are kept for ever otherwise.
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<u64>,

    /// Let the store grow to so many megabytes; then new reports are refused.
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    max_store_mb: Option<u64>,

    /// Tell instances to wait so many seconds between reports, and longer under load.
    #[arg(long, value_name = "SECS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,

    /// Pace instances so that all of them together send so many reports a second.
    #[arg(long, value_name = "N", default_value_t = Limits::default().reports_per_second, value_parser = clap::value_parser!(u32).range(1..))]
    reports_per_second: u32,

    /// Answer so many requests a second with one token.
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests_per_second, value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_second: u32,

    /// Take so many instances into one campaign.
    #[arg(long, value_name = "N", default_value_t = Limits::default().instances, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    max_instances: usize,

    /// Hold so many connections at once, or as many as the limit on open files (ulimit -n) allows.
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    max_connections: usize,

    /// How to log, on standard error: a line an event.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,

    /// Which events to log.
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    log_level: LogLevel,
}

const EXAMPLES: &str = "\
Example, on one machine:
  tomo serve &
  export TOMO_TOKEN_FILE=tomo-collector/admin.token
  tomo campaign new --name try --probes 100 ./prog
  tomo campaign token CAMPAIGN > instance.token
  tomo run --token-file instance.token --wait 10 -- ./prog its arguments
  tomo fleet report CAMPAIGN

Exit code: 0 once it was told to end, 2 where it cannot serve.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

impl Arguments {
    fn options(&self) -> Options {
        let days = |days: u64| Duration::from_secs(days.saturating_mul(24 * 3600));
        Options {
            limits: Limits {
                interval: Duration::from_secs(self.interval),
                reports_per_second: self.reports_per_second,
                requests_per_second: self.requests_per_second,
                instances: self.max_instances,
                connections: connections(self.max_connections),
                ..Limits::default()
            },
            retention: Retention {
                keep: self.keep_days.map(days),
                most_bytes: self
                    .max_store_mb
                    .map_or(u64::MAX, |mb| mb.saturating_mul(1 << 20)),
                ..Retention::default()
            },
            ..Options::default()
        }
    }

    /// Certificate and key, if there are any.
    fn identity(&self) -> Result<Option<Identity>> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            if !self.listen.ip().is_loopback() && !self.without_tls {
                bail!(
                    "others can reach {}, and tokens would go there in the clear: give --tls-cert and --tls-key, or say --without-tls",
                    self.listen
                );
            }
            return Ok(None);
        };
        Ok(Some(Identity::read(certificate, key)?))
    }

    fn log(&self) {
        let level = match self.log_level {
            LogLevel::Error => tracing::Level::ERROR,
            LogLevel::Warn => tracing::Level::WARN,
            LogLevel::Info => tracing::Level::INFO,
            LogLevel::Debug => tracing::Level::DEBUG,
        };
        let log = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(std::io::stderr)
            .with_ansi(false);
        match self.log_format {
            LogFormat::Text => log.init(),
            LogFormat::Json => log.json().init(),
        }
    }
}

/// Serves until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let identity = arguments.identity()?;
    let store = Store::local(&arguments.folder.join("store"))?;
    arguments.log();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().build().context("starting to serve")?;
    runtime.block_on(serve(arguments, store, identity))
}

async fn serve(arguments: &Arguments, store: Store, identity: Option<Identity>) -> Result<()> {
    let scheme = if identity.is_some() { "https" } else { "http" };
    let collector = Arc::new(Collector::open(store, arguments.options()).await?);
    let token = arguments.folder.join("admin.token");
    collector.ensure_administrator(&token).await?;
    collector.keep();
    let server = Server::bind(arguments.listen, collector, identity).await?;
    let shutdown = Shutdown::default();
    end_on_signals(&shutdown).context("asking for signals")?;
    say(&format!(
        "listening at {scheme}://{}\nthe administrator's token is in {}\n",
        server.address()?,
        token.display()
    ));
    server.run(shutdown).await;
    tracing::info!("ended; all that was taken is stored");
    Ok(())
}

/// How many connections of those asked for may be open at once. Each is an open file, and so many files are always to be
/// had for the store; the limit is raised to that as far as the system allows.
fn connections(asked: usize) -> usize {
    const STORE: u64 = 256;
    let needed = (asked as u64).saturating_add(STORE);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return asked;
    };
    let raised = soft.max(needed.min(hard));
    let open = match setrlimit(Resource::RLIMIT_NOFILE, raised, hard) {
        Ok(()) => raised,
        Err(_) => soft,
    };
    // Where there is room for next to nothing, half of it.
    let most = open.saturating_sub(STORE).max(open / 2).max(1);
    if most < asked as u64 {
        tracing::warn!("at most {most} connections at once: {open} files may be open (ulimit -n)");
    }
    asked.min(usize::try_from(most).unwrap_or(asked))
}

/// Says it on standard output. Who started us may have stopped to listen, which is no reason to end.
fn say(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
}

fn end_on_signals(shutdown: &Shutdown) -> std::io::Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let (mut signals, shutdown) = (signal(kind)?, shutdown.clone());
        tokio::spawn(async move {
            if signals.recv().await.is_some() {
                shutdown.end();
            }
        });
    }
    Ok(())
}
