//! A collector in this process, on a port of the loopback that the system chooses.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tomo_collector::{Collector, Limits, Options, Server, Shutdown, Store};
use tomo_protocol::{Client, Settings, read_token};

/// The collector.
pub(crate) struct Serving {
    url: String,
    token: PathBuf,
    shutdown: Shutdown,
    thread: Option<JoinHandle<()>>,
}

/// Starts it, its store in `folder`.
pub(crate) fn start(folder: &Path) -> Result<Serving> {
    std::fs::create_dir(folder)?;
    let token = folder.join("admin.token");
    let shutdown = Shutdown::default();
    let (tell, told) = std::sync::mpsc::channel();
    let (folder, file, ending) = (folder.to_path_buf(), token.clone(), shutdown.clone());
    let thread = std::thread::spawn(move || {
        let runtime = match tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
        {
            Ok(runtime) => runtime,
            Err(error) => return drop(tell.send(Err(error.into()))),
        };
        runtime.block_on(async {
            match bound(&folder, &file).await {
                Ok((server, address)) => {
                    let _ = tell.send(Ok(address));
                    server.run(ending).await;
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        });
    });
    let address = told.recv().map_err(|_| anyhow!("the collector ended"))?;
    let address = address.context("starting a collector")?;
    Ok(Serving {
        url: format!("http://{address}"),
        token,
        shutdown,
        thread: Some(thread),
    })
}

async fn bound(folder: &Path, token: &Path) -> Result<(Server, SocketAddr)> {
    let limits = Limits {
        // A fleet that lives for seconds tells the others sooner than one that lives for years.
        interval: Duration::from_millis(200),
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let collector = Collector::open(Store::local(&folder.join("store"))?, options).await?;
    collector.ensure_administrator(token).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::bind(address, Arc::new(collector), None).await?;
    let address = server.address()?;
    Ok((server, address))
}

impl Serving {
    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A client that may do everything.
    pub(crate) fn administrator(&self) -> Result<Client> {
        let settings = Settings {
            url: self.url.clone(),
            token: Some(read_token(&self.token)?),
            authorities: None,
            timeout: Duration::from_secs(60),
        };
        Ok(Client::new(&settings)?)
    }

    /// Ends it, and waits until it has.
    pub(crate) fn end(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.shutdown.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}
