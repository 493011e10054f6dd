//! A collector that behaves as it is told, on a port of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tomo_protocol::{Assignment, Name, News, Since, Units};
use tomo_wire::report::ReportView;

/// What it does with requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Manner {
    /// What a collector does.
    Serves,
    /// It takes them and never answers.
    Hangs,
    /// It takes them and closes.
    Drops,
    /// It says no.
    Refuses(u16),
    /// It refuses each report, for good or not.
    RefusesReports { again: bool },
    /// It says this whatever it is asked.
    Says(String),
}

struct Inside {
    manner: Manner,
    assignment: Option<Assignment>,
    /// What the fleet has seen, in the order in which it was.
    seen: Vec<u32>,
    reports: Vec<Vec<u8>>,
    /// Up to where somebody said that he had heard the news.
    heard: u64,
    asked: usize,
    streams: Vec<TcpStream>,
    ends: bool,
}

struct Shared {
    inside: Mutex<Inside>,
    changed: Condvar,
}

/// The collector.
pub(crate) struct Stub {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A request, as far as it matters.
struct Request {
    path: String,
    body: Vec<u8>,
}

impl Stub {
    pub(crate) fn new(assignment: Option<Assignment>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let inside = Inside {
            manner: Manner::Serves,
            assignment,
            seen: Vec::new(),
            reports: Vec::new(),
            heard: 0,
            asked: 0,
            streams: Vec::new(),
            ends: false,
        };
        let shared = Arc::new(Shared {
            inside: Mutex::new(inside),
            changed: Condvar::new(),
        });
        let served = Arc::clone(&shared);
        let thread = std::thread::spawn(move || listen(&listener, &served));
        Self {
            address,
            shared,
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.shared.inside.lock().expect("nobody panicked")
    }

    pub(crate) fn behave(&self, manner: Manner) {
        self.lock().manner = manner;
    }

    /// From now on it says that this is to be observed.
    pub(crate) fn assign(&self, assignment: Assignment) {
        self.lock().assignment = Some(assignment);
    }

    /// The fleet has seen these.
    pub(crate) fn see(&self, units: impl IntoIterator<Item = u32>) {
        self.lock().seen.extend(units);
    }

    /// All reports so far, each as often as it came.
    pub(crate) fn arrivals(&self) -> Vec<Said> {
        let inside = self.lock();
        let each = inside.reports.iter();
        each.map(|report| Said::read(report)).collect()
    }

    /// All reports so far. What comes twice, as it may, is the same report.
    pub(crate) fn reports(&self) -> Vec<Said> {
        let mut different = Vec::new();
        for said in self.arrivals() {
            if !different.contains(&said) {
                different.push(said);
            }
        }
        different
    }

    /// Waits until something holds of the reports; an hour is never.
    pub(crate) fn wait(&self, wanted: impl Fn(&[Said], u64) -> bool) {
        self.wait_while(|inside| {
            let reports = inside.reports.iter();
            let said: Vec<Said> = reports.map(|report| Said::read(report)).collect();
            !wanted(&said, inside.heard)
        });
    }

    /// Waits until it was asked so often for anything; an hour is never.
    pub(crate) fn wait_until_asked(&self, times: usize) {
        self.wait_while(|inside| inside.asked < times);
    }

    fn wait_while(&self, mut missing: impl FnMut(&Inside) -> bool) {
        let patience = Duration::from_secs(120);
        let changed = &self.shared.changed;
        let waited = changed.wait_timeout_while(self.lock(), patience, |inside| missing(inside));
        assert!(
            !waited.expect("nobody panicked").1.timed_out(),
            "nothing came"
        );
    }

    /// How often it was asked for anything.
    pub(crate) fn asked(&self) -> usize {
        self.lock().asked
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        let mut inside = self.lock();
        inside.ends = true;
        for stream in inside.streams.drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        drop(inside);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    std::thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            let mut inside = shared.inside.lock().expect("nobody panicked");
            if inside.ends {
                return;
            }
            inside.streams.extend(stream.try_clone());
            drop(inside);
            scope.spawn(move || serve(stream, shared));
        }
    });
}

/// Answers one request after the other.
fn serve(stream: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let answer = answer(&request, shared);
        shared.changed.notify_all();
        match answer {
            Reply::Text(status, text) => {
                let length = text.len();
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
                );
                let written = reader.get_mut().write_all((head + &text).as_bytes());
                if written.is_err() {
                    return;
                }
            }
            // Until the other side has had enough of it, or the test is over.
            Reply::Silence => drop(reader.read(&mut [0])),
            // There is another handle on it, so that dropping this one closes nothing.
            Reply::Close => {
                let _ = reader.get_ref().shutdown(std::net::Shutdown::Both);
                return;
            }
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|length| *length > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader
            .read_line(&mut header)
            .ok()
            .filter(|length| *length > 0)?;
        let header = header.trim().to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if header.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { path, body })
}

enum Reply {
    Text(u16, String),
    Silence,
    Close,
}

fn answer(request: &Request, shared: &Shared) -> Reply {
    let mut inside = shared.inside.lock().expect("nobody panicked");
    inside.asked += 1;
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let since = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("since="));
    let since: Option<Since> = since.and_then(|since| since.replace("%3A", ":").parse().ok());
    let from = since
        .filter(|since| since.epoch == EPOCH)
        .map_or(0, |since| since.from);
    if path == tomo_protocol::paths::REPORTS && inside.manner != Manner::Hangs {
        let reports =
            ReportView::all(&request.body).map(|report| report.expect("a report").bytes.to_vec());
        inside.reports.extend(reports);
        inside.heard = inside.heard.max(from);
    }
    match inside.manner.clone() {
        Manner::Hangs => Reply::Silence,
        Manner::Drops => Reply::Close,
        Manner::Says(text) => Reply::Text(200, text),
        Manner::Refuses(status) => {
            let problem = json!({ "error": "no", "advice": "do not" });
            Reply::Text(status, problem.to_string())
        }
        manner if path == tomo_protocol::paths::REPORTS => {
            let news = inside.news(from);
            Reply::Text(200, verdicts(&request.body, &manner, &news).to_string())
        }
        _ => match inside.assignment.clone() {
            Some(assignment) if path == tomo_protocol::paths::ASSIGNMENT => {
                let news = inside.news(from);
                let assignment = Assignment { news, ..assignment };
                Reply::Text(200, serde_json::to_string(&assignment).expect("JSON"))
            }
            _ => Reply::Text(
                404,
                json!({ "error": "no such thing", "advice": "none" }).to_string(),
            ),
        },
    }
}

/// The name of its list of news.
const EPOCH: Name = Name(7);

impl Inside {
    fn news(&self, from: u64) -> News {
        let new = self.seen.iter().skip(from as usize);
        News {
            epoch: EPOCH,
            upto: self.seen.len() as u64,
            units: Units::of(new.copied()),
        }
    }
}

fn verdicts(body: &[u8], manner: &Manner, news: &News) -> Value {
    let each = ReportView::all(body).map(|report| {
        let header = report.expect("a report").header;
        let (run, sequence) = (header.run.get(), header.sequence.get());
        match manner {
            Manner::RefusesReports { again } => json!({
                "run": run, "sequence": sequence, "verdict": "refused", "why": "because", "again": again,
            }),
            _ => json!({ "run": run, "sequence": sequence, "verdict": "stored" }),
        }
    });
    json!({
        "verdicts": each.collect::<Vec<_>>(),
        "unread": null,
        "interval_ms": 50,
        "news": news,
    })
}

/// What a report said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) run: u64,
    pub(crate) sequence: u32,
    /// 0 running, 1 exited, 2 by a signal, 3 nobody saw it.
    pub(crate) outcome: u32,
    pub(crate) status: u32,
    pub(crate) instance: [u8; 16],
    pub(crate) hits: Vec<u32>,
    pub(crate) armed: u64,
    pub(crate) duration: u64,
    pub(crate) dropped: u32,
    pub(crate) unfit: u32,
    pub(crate) variant: u32,
}

impl Said {
    fn read(report: &[u8]) -> Self {
        let (view, rest) = ReportView::read(report).expect("a report");
        assert!(rest.is_empty());
        let header = view.header;
        assert_eq!(header.version(), env!("CARGO_PKG_VERSION"));
        Self {
            run: header.run.get(),
            sequence: header.sequence.get(),
            outcome: header.outcome.get(),
            status: header.status.get(),
            instance: header.instance,
            hits: view.hits.iter().map(|unit| unit.get()).collect(),
            armed: header.armed.get(),
            duration: header.duration.get(),
            dropped: header.dropped.get(),
            unfit: header.unfit.get(),
            variant: header.variant.get(),
        }
    }
}
