//! How a collector is reached: what all commands for the fleet have in common.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use tomo_protocol::{Client, Settings, read_token};

/// How long a request may take; models of large programs are large.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Where the collector is, and who asks.
#[derive(Args)]
pub(crate) struct Remote {
    /// Where the collector is: http://HOST:PORT or https://HOST:PORT.
    #[arg(
        long,
        value_name = "URL",
        env = "TOMO_COLLECTOR",
        hide_env_values = true,
        default_value = "http://127.0.0.1:7272",
        global = true
    )]
    collector: String,

    /// The file with the token, on one line: admin.token in the collector's folder, or one that
    /// `tomo campaign token` made.
    #[arg(
        long,
        value_name = "FILE",
        env = "TOMO_TOKEN_FILE",
        hide_env_values = true,
        global = true
    )]
    token_file: Option<PathBuf>,

    /// The file with the certificates (PEM) of those who may vouch for the collector, instead of the
    /// system's.
    #[arg(long, value_name = "FILE", global = true)]
    ca_file: Option<PathBuf>,
}

impl Remote {
    /// A client for it.
    pub(crate) fn client(&self) -> Result<Client> {
        let token = self.token_file.as_deref().map(read_token).transpose()?;
        Ok(Client::new(&Settings {
            url: self.collector.clone(),
            token,
            authorities: self.ca_file.clone(),
            timeout: TIMEOUT,
        })?)
    }
}
