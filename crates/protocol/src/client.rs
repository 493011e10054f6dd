//! A blocking client: one request at a time, each bounded in time, with a token that goes to no other
//! host than the one that was named.

use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::config::{AutoHeaderValue, Config};
use ureq::http::uri::Authority;
use ureq::http::{Response, StatusCode, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::WithBody;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body, RequestBuilder};

use crate::Problem;

/// Bytes of an answer in JSON at most, unless somebody bounds it further.
const LONGEST_ANSWER: u64 = 512 << 20;
/// Letters of what a collector says of a refusal at most.
const LONGEST_REASON: usize = 400;
/// Bytes of a model or of a program's file at most.
const LONGEST_FILE: u64 = 4 << 30;
/// Bytes of a file with a token at most.
const LONGEST_TOKEN: u64 = 4096;

/// How to reach a collector.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it is: `http://host:port` or `https://host:port`.
    pub url: String,
    /// The token to show, if any.
    pub token: Option<String>,
    /// A file with the certificates (PEM) of those who may vouch for the collector, instead of the
    /// system's.
    pub authorities: Option<PathBuf>,
    /// How long a request may take, all in all.
    pub timeout: Duration,
}

/// Why a file gives no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("the token's file {path}: {1}", path = .0.display())]
    Io(PathBuf, std::io::Error),
    /// It holds something else.
    #[error(
        "the token's file {}: does not hold one token, a line of letters, digits, dashes and the like",
        .0.display()
    )]
    Form(PathBuf),
}

/// The token that stands in a file, on its only line.
///
/// # Errors
/// Where it cannot be read, or holds no token.
pub fn read_token(path: &Path) -> Result<String, TokenError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_TOKEN).read_to_string(&mut text));
    read.map_err(|error| TokenError::Io(path.into(), error))?;
    let token = text.trim();
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_token
        .then(|| token.to_owned())
        .ok_or_else(|| TokenError::Form(path.into()))
}

/// Why a request had no success.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
    #[error(
        "{0:?} is no address of a collector: it starts with http:// or https:// and a host, and has a port from 1 to 65535 if any"
    )]
    Url(String),
    /// The certificates cannot be used.
    #[error("{path}: {1}", path = .0.display())]
    Authorities(PathBuf, String),
    /// Nobody answered, or not to the end.
    #[error("the collector at {url} cannot be reached: {why}")]
    Unreachable {
        /// Where.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// Somebody answered who cannot be taken for it: nobody vouches for him, or he speaks otherwise.
    #[error("who answers at {url} cannot be taken for the collector: {why}")]
    Stranger {
        /// Where.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// It said no.
    #[error("the collector refused ({status}): {}; {}", problem.error, problem.advice)]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said.
        problem: Problem,
        /// How long it asks to wait before the next try.
        retry_after: Option<Duration>,
    },
    /// The answer is not what it should be.
    #[error(
        "the collector at {url} gave an answer that this version of tomo does not understand: {why}"
    )]
    Answer {
        /// Where.
        url: String,
        /// What is wrong with it.
        why: String,
    },
}

impl ClientError {
    /// Whether the same request may have success later.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
            _ => false,
        }
    }

    /// Whether what was sent is more than the collector takes at once.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Refused { status: 413, .. })
    }

    /// How long the collector asks to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// A collector that can be asked. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    timeout: Duration,
    /// Bytes of an answer in JSON at most.
    longest: u64,
    url: String,
    bearer: Option<String>,
}

/// Bytes of the buffer of a connection for each way, which are written when it is made: a client that says and hears a few
/// hundred bytes beside a program pays for each page.
const BUFFER: usize = 16 << 10;

impl Client {
    /// A client with these settings. Nothing is sent yet.
    ///
    /// # Errors
    /// Where the address is none, or the certificates cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, ClientError> {
        let url = settings.url.trim_end_matches('/');
        let host = url.strip_prefix("http://");
        let secure = url.strip_prefix("https://");
        let host = host.or(secure).unwrap_or_default();
        if !is_host(host) {
            return Err(ClientError::Url(settings.url.clone()));
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .input_buffer_size(BUFFER)
            .output_buffer_size(BUFFER)
            .max_response_header_size(BUFFER)
            .user_agent(AutoHeaderValue::Provided(Arc::new(agent_name())));
        if secure.is_some() {
            config = config.tls_config(tls(settings.authorities.as_deref())?);
        }
        Ok(Self {
            agent: Agent::with_parts(config.build(), DefaultConnector::default(), Resolve),
            timeout: settings.timeout,
            longest: LONGEST_ANSWER,
            url: url.into(),
            bearer: settings
                .token
                .as_ref()
                .map(|token| format!("Bearer {token}")),
        })
    }

    /// The same with another time that a request may take.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self {
            timeout,
            ..self.clone()
        }
    }

    /// The same where an answer in JSON has so many bytes at most: who stands beside a program takes no more of its memory, whatever
    /// it is sent.
    #[must_use]
    pub fn taking_at_most(&self, bytes: u64) -> Self {
        Self {
            longest: bytes,
            ..self.clone()
        }
    }

    /// Where the collector is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks for something in JSON.
    ///
    /// # Errors
    /// Where there is no answer, or another one.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let bytes = self.get_bytes_up_to(path, self.longest)?;
        self.parse(&bytes)
    }

    /// Asks for bytes.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn get_bytes(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        self.get_bytes_up_to(path, LONGEST_FILE)
    }

    fn get_bytes_up_to(&self, path: &str, most: u64) -> Result<Vec<u8>, ClientError> {
        let request = self.with_head(self.agent.get(self.address(path)));
        self.finish(request.call(), most)
    }

    /// Sends something in JSON.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| self.odd(&error))?;
        let request = self.agent.post(self.address(path));
        self.send(request, "application/json", &body)
    }

    /// Sends reports, one behind the other.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn post_bytes<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &[u8],
    ) -> Result<T, ClientError> {
        let request = self.agent.post(self.address(path));
        self.send(request, "application/octet-stream", body)
    }

    /// Puts something in JSON in a place.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| self.odd(&error))?;
        let request = self.agent.put(self.address(path));
        self.send(request, "application/json", &body)
    }

    /// Puts bytes in a place.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn put_bytes<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &[u8],
    ) -> Result<T, ClientError> {
        let request = self.agent.put(self.address(path));
        self.send(request, "application/octet-stream", body)
    }

    /// Takes something away.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let request = self.with_head(self.agent.delete(self.address(path)));
        let bytes = self.finish(request.call(), self.longest)?;
        self.parse(&bytes)
    }

    fn send<T: DeserializeOwned>(
        &self,
        request: RequestBuilder<WithBody>,
        kind: &str,
        body: &[u8],
    ) -> Result<T, ClientError> {
        let request = self.with_head(request);
        let answer = request.content_type(kind).send(body);
        let bytes = self.finish(answer, self.longest)?;
        self.parse(&bytes)
    }

    /// With what all requests have: who asks, and how long it may take.
    fn with_head<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        let request = request.config().timeout_global(Some(self.timeout)).build();
        match &self.bearer {
            Some(bearer) => request.header("authorization", bearer),
            None => request,
        }
    }

    /// The body of an answer that is a success.
    fn finish(
        &self,
        answer: Result<Response<Body>, ureq::Error>,
        most: u64,
    ) -> Result<Vec<u8>, ClientError> {
        let failed = |error: ureq::Error| {
            let (url, why) = (self.url.clone(), plain(&error));
            match is_stranger(&error) {
                true => ClientError::Stranger { url, why },
                false => ClientError::Unreachable { url, why },
            }
        };
        let mut answer = answer.map_err(failed)?;
        let status = answer.status();
        let wait = retry_after(&answer);
        let body = answer.body_mut().with_config().limit(most).read_to_vec();
        let body = body.map_err(failed)?;
        if status.is_success() {
            return Ok(body);
        }
        Err(ClientError::Refused {
            status: status.as_u16(),
            problem: serde_json::from_slice(&body).map_or_else(|_| stranger(status), in_a_line),
            retry_after: wait,
        })
    }

    fn parse<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(bytes).map_err(|error| self.odd(&error))
    }

    fn odd(&self, error: &serde_json::Error) -> ClientError {
        ClientError::Answer {
            url: self.url.clone(),
            why: error.to_string(),
        }
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

/// Whether this is a host and perhaps its port. One that is none would be taken for the usual one, whose owner would be shown the
/// token.
fn is_host(text: &str) -> bool {
    let Ok(authority) = text.parse::<Authority>() else {
        return false;
    };
    let port = text.strip_prefix(authority.host());
    let is_port = |port: &str| {
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        digits && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    match port {
        Some("") => !authority.host().is_empty(),
        Some(port) => port.strip_prefix(':').is_some_and(is_port) && !authority.host().is_empty(),
        // Somebody is named before it.
        None => false,
    }
}

fn agent_name() -> String {
    format!("tomo/{}", env!("CARGO_PKG_VERSION"))
}

/// Finds hosts as the system does, in a thread of its own since that may take long; but an address that is one already is
/// taken as it is.
#[derive(Debug)]
struct Resolve;

impl Resolver for Resolve {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let timeout = match host.parse::<IpAddr>() {
            Ok(_) => NextTimeout {
                after: ureq::unversioned::transport::time::Duration::NotHappening,
                ..timeout
            },
            Err(_) => timeout,
        };
        DefaultResolver::default().resolve(uri, config, timeout)
    }
}

/// What a collector says of a refusal, in one line that is no longer than it takes.
fn in_a_line(problem: Problem) -> Problem {
    let line = |text: String| {
        let plain = text.chars().map(|letter| match letter {
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
            other => other,
        });
        plain.take(LONGEST_REASON).collect()
    };
    Problem {
        error: line(problem.error),
        advice: line(problem.advice),
    }
}

/// What to say of a refusal that does not come from a collector.
fn stranger(status: StatusCode) -> Problem {
    Problem {
        error: format!("the answer was {status}, without a reason"),
        advice: "see whether the address is that of a collector".into(),
    }
}

fn retry_after(answer: &Response<Body>) -> Option<Duration> {
    let value = answer.headers().get("retry-after")?;
    let seconds: u64 = value.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn plain(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "it took too long".into(),
        ureq::Error::HostNotFound => "there is no such host".into(),
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// Whether somebody answered, but not as a collector would: the network does not do that.
fn is_stranger(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Protocol(_) | ureq::Error::Tls(_) | ureq::Error::Rustls(_) => true,
        ureq::Error::Io(error) => {
            let cause = error.get_ref();
            cause.is_some_and(|cause| cause.is::<rustls::Error>())
        }
        _ => false,
    }
}

/// Who may vouch for a collector: those in the file, or those whom the system trusts.
fn tls(authorities: Option<&Path>) -> Result<TlsConfig, ClientError> {
    let refused = |why: String| {
        let path = authorities.unwrap_or(Path::new("the system's certificates"));
        ClientError::Authorities(path.into(), why)
    };
    let certificates: Vec<Certificate<'static>> = match authorities {
        Some(path) => {
            let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
            let items = ureq::tls::parse_pem(&text);
            let certificates = items.filter_map(|item| match item {
                Ok(ureq::tls::PemItem::Certificate(certificate)) => Some(Ok(certificate)),
                Ok(_) => None,
                Err(error) => Some(Err(refused(error.to_string()))),
            });
            certificates.collect::<Result<_, _>>()?
        }
        None => {
            let found = rustls_native_certs::load_native_certs().certs;
            let owned = |der: &[u8]| Certificate::from_der(der).to_owned();
            found.iter().map(|der| owned(der)).collect()
        }
    };
    if certificates.is_empty() {
        return Err(refused("holds no certificates".into()));
    }
    let provider = rustls::crypto::ring::default_provider();
    Ok(TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(provider))
        .root_certs(RootCerts::new_with_certs(&certificates))
        .build())
}

#[cfg(test)]
mod tests {
    use super::{Client, ClientError, Settings, read_token};
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::time::Duration;

    fn settings(url: &str) -> Settings {
        Settings {
            url: url.into(),
            token: Some("secret".into()),
            authorities: None,
            timeout: Duration::from_secs(20),
        }
    }

    #[test]
    fn what_is_said_of_a_refusal_is_a_line() {
        let advice = "x".repeat(5000);
        let body = format!("{{\"error\":\"busy\\ntomo: all is well\",\"advice\":\"{advice}\"}}");
        let (refused, _) = answered(&with_body("400 Bad", &body));
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("busy tomo: all is well; xxx"), "{said}");
        assert!(said.len() < 1000 && !said.contains('\n'), "{said}");
    }

    #[test]
    fn more_than_is_wanted_is_not_taken() {
        let answer = with_body("200 OK", &format!("\"{}\"", "x".repeat(100_000)));
        let (taken, _) = answered(&answer);
        assert_eq!(taken.expect("taken").len(), 100_000);
        let (refused, _) = answered_to(|client| client.taking_at_most(1000), &answer);
        assert!(
            matches!(refused, Err(ClientError::Unreachable { .. })),
            "{refused:?}"
        );
    }

    #[test]
    fn only_addresses_of_hosts_are_taken() {
        for url in [
            "",
            "collector",
            "ftp://host",
            "http://",
            "http://a/b",
            "http://u:p@h",
            "http://a b",
            "http://:80",
            "http://a:",
            "http://a:0",
            "http://a:+80",
            "http://a:99999",
            "https://[::1]:65536",
            "http://a:80:81",
        ] {
            let error = Client::new(&settings(url)).unwrap_err();
            assert!(matches!(error, ClientError::Url(_)), "{url}");
        }
        for url in [
            "http://127.0.0.1:1/",
            "http://[::1]:65535",
            "http://a-b.c",
            "http://[::1]",
        ] {
            assert!(Client::new(&settings(url)).is_ok(), "{url}");
        }
    }

    #[test]
    fn nobody_at_the_address_is_a_temporary_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let client = Client::new(&settings(&format!("http://{address}"))).unwrap();
        let error = client.get::<String>("/v1/health").unwrap_err();
        assert!(error.is_temporary(), "{error}");
        assert!(error.to_string().contains("cannot be reached"), "{error}");
    }

    /// An answer with this body.
    fn with_body(status: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}")
    }

    /// What the client makes of this answer, and what it had sent.
    fn answered(answer: &str) -> (Result<String, ClientError>, String) {
        answered_to(|client| client, answer)
    }

    /// What the client that is made of the usual one makes of it.
    fn answered_to(
        made: impl FnOnce(Client) -> Client,
        answer: &str,
    ) -> (Result<String, ClientError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = answer.to_owned();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                request.push(byte[0]);
            }
            // Who has heard enough hangs up.
            let _ = stream.write_all(answer.as_bytes());
            String::from_utf8(request).unwrap()
        });
        let client = made(Client::new(&settings(&format!("http://{address}"))).unwrap());
        let result = client.get("/v1/x");
        (result, server.join().unwrap())
    }

    #[test]
    fn the_token_is_shown_and_the_body_read() {
        let (result, sent) = answered("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\"hi\"");
        assert_eq!(result.unwrap(), "hi");
        assert!(sent.starts_with("GET /v1/x HTTP/1.1\r\n"), "{sent}");
        assert!(sent.contains("authorization: Bearer secret\r\n"), "{sent}");
    }

    #[test]
    fn refusals_say_what_happened_and_what_to_do() {
        let (result, _) = answered(
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 33\r\n\r\n\
             {\"error\":\"busy\",\"advice\":\"wait\"}  ",
        );
        let error = result.unwrap_err();
        assert_eq!(error.to_string(), "the collector refused (429): busy; wait");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        assert!(error.is_temporary());
        let (result, _) = answered("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno");
        let error = result.unwrap_err();
        assert!(error.to_string().contains("address"), "{error}");
        assert!(!error.is_temporary());
    }

    #[test]
    fn redirections_are_not_followed() {
        let (result, _) = answered(
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
        );
        let error = result.unwrap_err();
        assert!(
            matches!(error, ClientError::Refused { status: 302, .. }),
            "{error}"
        );
    }

    #[test]
    fn other_answers_are_named_so() {
        let (result, _) = answered("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]");
        assert!(matches!(result, Err(ClientError::Answer { .. })));
    }

    #[test]
    fn a_tokens_file_holds_one_token() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let of = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            read_token(file.path())
        };
        assert_eq!(of("tomo_abc-1\n").unwrap(), "tomo_abc-1");
        for text in ["", "\n", "two words", "a\nb"] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains("one token"), "{error}");
        }
        assert!(read_token("no/such/file".as_ref()).is_err());
    }
}
