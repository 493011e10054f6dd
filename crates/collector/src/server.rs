//! Sockets: connections that are bounded in number and in time, TLS, and an end that loses nothing.
//!
//! Each connection is a task. At the end no connection is accepted any more, those that are open
//! finish the request that they are at, and what waits to be stored is stored.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Collector;
use crate::api;

/// How long open connections may take to finish at the end.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long to wait when the system gives no connection, for want of file descriptors mostly.
const BREATH: Duration = Duration::from_millis(50);

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("{0}: {1}")]
    Bind(SocketAddr, io::Error),
}

/// Why the certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is not what it should be.
    #[error("{path}: {1}", path = .0.display())]
    Pem(PathBuf, String),
    /// The key does not fit, or the like.
    #[error("certificate and key cannot be used: {0}")]
    Rustls(#[from] tokio_rustls::rustls::Error),
}

/// What a server shows of itself to be believed.
#[derive(Clone)]
pub struct Identity {
    config: Arc<ServerConfig>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// The certificate chain and the key in these files (PEM).
    ///
    /// # Errors
    /// Where one cannot be read, or they do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let wrong = |path: &Path, why: String| TlsError::Pem(path.into(), why);
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong(certificate, "holds no certificate".into()));
        }
        let secret = PrivateKeyDer::from_pem_file(key);
        let secret = secret.map_err(|error| wrong(key, error.to_string()))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, secret)?;
        Ok(Self {
            config: Arc::new(config),
        })
    }
}

/// Tells a server to end.
#[derive(Clone, Debug)]
pub struct Shutdown {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Shutdown {
    /// Ends the server, as soon as all that it has taken is stored.
    pub fn end(&self) {
        self.sender.send_replace(true);
    }

    async fn ended(&self) {
        // The sender is kept here, so it does not vanish.
        let _ = self.sender.subscribe().wait_for(|ended| *ended).await;
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    collector: Arc<Collector>,
    identity: Option<Identity>,
}

impl Server {
    /// Listens at this address.
    ///
    /// # Errors
    /// Where it cannot be used.
    pub async fn bind(
        address: SocketAddr,
        collector: Arc<Collector>,
        identity: Option<Identity>,
    ) -> Result<Self, ServeError> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| ServeError::Bind(address, error))?;
        Ok(Self {
            listener,
            collector,
            identity,
        })
    }

    /// Where it listens; tells which port the system chose.
    ///
    /// # Errors
    /// Where the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is told to end.
    pub async fn run(self, shutdown: Shutdown) {
        let limits = self.collector.shared.options.limits;
        let room = Arc::new(Semaphore::new(limits.connections));
        let router = api::router(&self.collector);
        let tls = self
            .identity
            .map(|identity| TlsAcceptor::from(identity.config));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.ended() => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(BREATH).await;
                continue;
            };
            let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
                self.collector.shared.metrics.turned_away.inc();
                continue;
            };
            let connection = Connection {
                collector: Arc::clone(&self.collector),
                tls: tls.clone(),
                router: router.clone(),
                shutdown: shutdown.clone(),
            };
            connections.spawn(async move {
                connection.serve(stream).await;
                drop(permit);
            });
        }
        drop(self.listener);
        let farewell = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
            tracing::warn!("some connections did not end in time");
        }
        self.collector.close().await;
    }
}

struct Connection {
    collector: Arc<Collector>,
    tls: Option<TlsAcceptor>,
    router: axum::Router,
    shutdown: Shutdown,
}

impl Connection {
    async fn serve(self, stream: TcpStream) {
        let gauge = self.collector.shared.metrics.connections.clone();
        gauge.inc();
        // Answers are written at once, so there is nothing to gather.
        let _ = stream.set_nodelay(true);
        let patience = self.collector.shared.options.limits.patience;
        let mut stream = TimeoutStream::new(stream);
        // Who asks and does not read the answers is given up, too.
        stream.set_write_timeout(Some(patience));
        let stream = Box::pin(stream);
        match self.tls.clone() {
            None => self.speak(stream).await,
            Some(tls) => match tokio::time::timeout(patience, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.speak(stream).await,
                _ => {
                    self.collector.shared.metrics.turned_away.inc();
                }
            },
        }
        gauge.dec();
    }

    async fn speak(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let patience = self.collector.shared.options.limits.patience;
        let service = TowerToHyperService::new(self.router);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => {}
            () = self.shutdown.ended() => {
                connection.as_mut().graceful_shutdown();
                // It ends with the request that it is at; how, matters to nobody any more.
                let _ = connection.await;
            }
        }
    }
}
