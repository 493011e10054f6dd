//! One exchange with the collector, and what follows from the answer: reports that are settled leave the spool,
//! and what the fleet has seen is disposed of in the images, live (DIS §4.1: "an update every time it performs a
//! disseminate operation").

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::time::Duration;

use tomo_launch::Live;
use tomo_protocol::{
    Answer, Assignment, CampaignId, Client, ClientError, News, Since, What, paths,
};
use tomo_wire::report::ReportView;

use crate::assigned;
use crate::bake::{hear, heard};
use crate::known::{Known, image_path};
use crate::spool::Spool;
use crate::state::State;

/// How many reports that the collector cannot read are passed over, one after the other: who reads none of these reads none
/// that is made here.
const MOST_UNREAD: usize = 4;

/// What became of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Final reports that the collector has now, or had before.
    pub settled: u64,
    /// Final reports that it will never take.
    pub refused: u64,
    /// Probes that were disposed of because others have seen their units.
    pub disposed: u64,
}

impl Sent {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            settled: self.settled + other.settled,
            refused: self.refused + other.refused,
            disposed: self.disposed + other.disposed,
        }
    }
}

/// What an installation says to its collector and hears from it.
pub(crate) struct Channel<'s> {
    state: &'s State,
    client: &'s Client,
    known: Option<&'s Known>,
    /// The images, opened when there is something to dispose of.
    images: OnceCell<Images>,
    since: Option<Since>,
    /// The campaigns whose reports are not to be sent with the token that is shown, since others are for them.
    of_others: BTreeSet<CampaignId>,
    /// Whether such reports were left where they are.
    pub(crate) left: bool,
    pub(crate) sent: Sent,
    /// Why the collector did not take a report, the last time that it did not.
    pub(crate) refusal: Option<String>,
    /// Runs whose reports it could not read; another collector may, later.
    unread: BTreeSet<u64>,
    /// How many of them came one after the other.
    unread_on_end: usize,
    /// How long the collector wants reports apart.
    pub(crate) interval: Option<Duration>,
}

/// The images of a variant, live.
struct Images {
    /// For each module the unit of its first probe, and the image if it can be opened.
    modules: Vec<(u32, Option<Live>)>,
}

impl Images {
    fn open(state: &State, known: &Known) -> Self {
        let mut first = 0u32;
        let mut modules = Vec::new();
        for module in &known.modules {
            let image = image_path(state, &module.image);
            let live = Live::open(&image, &image_path(state, &module.disposals)).ok();
            let live = live.filter(|live| live.probes() == module.probes);
            modules.push((first, live));
            first = first.saturating_add(module.units);
        }
        Self { modules }
    }

    fn dispose(&self, unit: u32) -> bool {
        let behind = self.modules.partition_point(|(first, _)| *first <= unit);
        let module = behind.checked_sub(1).and_then(|at| self.modules.get(at));
        let Some((first, Some(live))) = module else {
            return false;
        };
        live.dispose(unit - first)
    }
}

impl<'s> Channel<'s> {
    pub(crate) fn new(state: &'s State, client: &'s Client, known: Option<&'s Known>) -> Self {
        Self {
            state,
            client,
            known,
            images: OnceCell::new(),
            since: known.and_then(|known| heard(state, known)),
            of_others: Known::of_others(state),
            left: false,
            sent: Sent::default(),
            refusal: None,
            unread: BTreeSet::new(),
            unread_on_end: 0,
            interval: None,
        }
    }

    /// Asks what is to be observed, and disposes of what the fleet has seen since.
    pub(crate) fn ask(&mut self) -> Result<Assignment, ClientError> {
        let path = paths::of_assignment(self.state.id(), self.since);
        let assignment: Assignment = self.client.get(&path)?;
        self.interval = Some(Duration::from_millis(assignment.interval_ms));
        self.of_others.remove(&assignment.campaign);
        let same = self.known.is_some_and(|known| {
            known.campaign == assignment.campaign && known.variant == assignment.variant
        });
        if same {
            self.take(&assignment.news);
        }
        Ok(assignment)
    }

    /// Sends reports, one behind the other.
    pub(crate) fn send(&mut self, reports: &[u8]) -> Result<Answer, ClientError> {
        let path = paths::of_reports(self.since);
        let answer: Answer = self.client.post_bytes(&path, reports)?;
        self.interval = Some(Duration::from_millis(answer.interval_ms));
        if let Some(news) = &answer.news {
            self.take(news);
        }
        if let Some(why) = &answer.unread {
            self.refusal = Some(format!(
                "it cannot read it ({why}); it waits for one that can"
            ));
        }
        Ok(answer)
    }

    /// Sends all that waits in the spool for this token; whether there was anything.
    pub(crate) fn empty_spool(&mut self) -> Result<bool, ClientError> {
        let spool = Spool::of(self.state);
        let (mut after, mut said) = (0, false);
        self.unread_on_end = 0;
        loop {
            let batch = spool.batch(after);
            let Some((last, _)) = batch.last() else {
                return Ok(said);
            };
            if self.unread_on_end >= MOST_UNREAD {
                return Ok(said);
            }
            after = *last;
            let mut sound = Vec::new();
            for (run, report) in batch {
                match ReportView::read(&report).map(|(view, _)| CampaignId(view.header.campaign)) {
                    Ok(campaign) if self.of_others.contains(&campaign) => self.left = true,
                    Ok(_) if self.unread.contains(&run) => {}
                    Ok(_) => sound.push((run, report)),
                    // A file that holds no report would keep those behind it from being read.
                    Err(_) => self.refuse(run, "its report was damaged on the disk".into()),
                }
            }
            if !sound.is_empty() {
                self.deliver(&sound)?;
                said = true;
            }
        }
    }

    /// Sends reports; where they are more than is taken at once, one by one. One that is so alone is never taken.
    fn deliver(&mut self, reports: &[(u64, Vec<u8>)]) -> Result<(), ClientError> {
        let bytes: Vec<&[u8]> = reports
            .iter()
            .map(|(_, report)| report.as_slice())
            .collect();
        match (self.send(&bytes.concat()), reports) {
            (Ok(answer), _) => {
                self.settle(reports, &answer);
                match answer.unread {
                    Some(_) => self.pass_over(reports, &answer)?,
                    None => self.unread_on_end = 0,
                }
            }
            (Err(error), [(run, _)]) if error.is_too_large() => {
                self.refuse(*run, error.to_string());
            }
            (Err(error), _) if error.is_too_large() => {
                for one in reports.chunks(1) {
                    if self.unread_on_end < MOST_UNREAD {
                        self.deliver(one)?;
                    }
                }
            }
            (Err(error), _) => return Err(error),
        }
        Ok(())
    }

    /// Sends what is behind the report that could not be read: the collector has not looked at it.
    fn pass_over(&mut self, sent: &[(u64, Vec<u8>)], answer: &Answer) -> Result<(), ClientError> {
        let is_read = |run: u64| answer.verdicts.iter().any(|verdict| verdict.run == run);
        let read = sent.iter().take_while(|(run, _)| is_read(*run)).count();
        let Some(((run, _), behind)) = sent[read..].split_first() else {
            return Ok(());
        };
        self.unread.insert(*run);
        if read > 0 {
            self.unread_on_end = 0;
        }
        self.unread_on_end += 1;
        match behind.is_empty() || self.unread_on_end >= MOST_UNREAD {
            true => Ok(()),
            false => self.deliver(behind),
        }
    }

    /// What was settled leaves the spool; what was refused for good, too, and is counted.
    fn settle(&mut self, sent: &[(u64, Vec<u8>)], answer: &Answer) {
        for (run, _) in sent {
            let verdict = answer.verdicts.iter().find(|verdict| verdict.run == *run);
            match verdict.map(|verdict| &verdict.what) {
                Some(What::Stored | What::Known) => {
                    self.sent.settled += u64::from(Spool::of(self.state).remove(*run));
                }
                Some(What::Refused { why, again: false }) => self.refuse(*run, why.clone()),
                // Not now; or the answer does not speak of it.
                Some(What::Refused { again: true, .. }) | None => {}
            }
        }
    }

    fn refuse(&mut self, run: u64, why: String) {
        if Spool::of(self.state).remove(run) {
            let _ = self.state.count_unfit(1);
            self.sent.refused += 1;
            self.refusal = Some(why);
        }
    }

    /// Disposes of what others have seen. News of units that there are not are no news.
    fn take(&mut self, news: &News) {
        let Some(known) = self.known else {
            return;
        };
        let Some(units) = assigned::units_of(news, known.total()) else {
            self.refusal = Some("its news name units that there are not".into());
            return;
        };
        if !units.is_empty() {
            let images = self.images.get_or_init(|| Images::open(self.state, known));
            let gone = units.iter().filter(|unit| images.dispose(*unit)).count();
            self.sent.disposed += gone as u64;
        }
        let since = news.since();
        if self.since != Some(since) && hear(self.state, known, &since.to_string()).is_ok() {
            self.since = Some(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use tomo_protocol::{Answer, Client, Settings, Verdict, What};
    use tomo_wire::report::{Follows, Outcome, Report, ReportView};
    use zerocopy::IntoBytes as _;
    use zerocopy::little_endian::U32;

    use super::Channel;
    use crate::spool::Spool;
    use crate::state::State;

    /// Bytes of a body that the collector here takes.
    const MOST: usize = 2000;

    fn report(run: u64, hits: u32) -> Vec<u8> {
        let hits: Vec<U32> = (0..hits).map(U32::new).collect();
        let mut report = Report::empty();
        report.run = run.into();
        report.outcome = (Outcome::Exited as u32).into();
        let follows = Follows {
            hits: hits.len() as u32,
            ..Follows::default()
        };
        let head = report.sealed_over(follows, hits.as_bytes());
        [head.as_slice(), hits.as_bytes()].concat()
    }

    /// The body of the next request.
    fn body(stream: &mut BufReader<TcpStream>) -> Vec<u8> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        body
    }

    fn verdicts(body: &[u8], is_unread: fn(u64) -> bool) -> Vec<u8> {
        let runs = ReportView::all(body).map(|report| report.unwrap().header.run.get());
        let runs: Vec<u64> = runs.collect();
        let all = runs.iter().take_while(|run| !is_unread(**run));
        let all = all.map(|&run| Verdict {
            run,
            sequence: 0,
            what: What::Stored,
        });
        let of_later = "it is of version 4, and this program knows version 3".to_owned();
        let answer = Answer {
            verdicts: all.collect(),
            unread: runs.iter().any(|run| is_unread(*run)).then_some(of_later),
            interval_ms: 1000,
            news: None,
        };
        serde_json::to_vec(&answer).unwrap()
    }

    /// Answers so many requests, as one that cannot read the reports of some runs.
    fn collect(listener: &TcpListener, requests: usize, is_unread: fn(u64) -> bool) {
        for stream in listener.incoming().take(requests) {
            let mut stream = BufReader::new(stream.unwrap());
            let body = body(&mut stream);
            let (status, text) = match body.len() > MOST {
                true => ("413 Payload Too Large", b"{}".to_vec()),
                false => ("200 OK", verdicts(&body, is_unread)),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                text.len()
            );
            let answer = [head.as_bytes(), &text].concat();
            stream.get_mut().write_all(&answer).unwrap();
        }
    }

    fn client(listener: &TcpListener) -> Client {
        let settings = Settings {
            url: format!("http://{}", listener.local_addr().unwrap()),
            token: None,
            authorities: None,
            timeout: Duration::from_secs(60),
        };
        Client::new(&settings).unwrap()
    }

    #[test]
    fn a_report_that_cannot_be_read_does_not_keep_others_from_being_sent() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        let spool = Spool::of(&state);
        for run in 1..=5 {
            spool.add(run, &report(run, 1)).unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = client(&listener);
        // All together, and those behind the second.
        let collector = std::thread::spawn(move || collect(&listener, 2, |run| run == 2));
        let mut channel = Channel::new(&state, &client, None);
        assert!(channel.empty_spool().unwrap());
        assert_eq!((channel.sent.settled, channel.sent.refused), (4, 0));
        assert!(channel.refusal.as_ref().unwrap().contains("version 4"));
        assert!(spool.len() == 1 && spool.has(2), "it waits");
        assert_eq!(state.lost().unfit, 0);
        collector.join().unwrap();
        // It is not sent to the same collector again; nobody listens any more.
        assert!(!channel.empty_spool().unwrap());
    }

    #[test]
    fn who_can_read_no_report_is_not_sent_all_of_them_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        let spool = Spool::of(&state);
        for run in 1..=100 {
            spool.add(run, &report(run, 1)).unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = client(&listener);
        let most = super::MOST_UNREAD;
        // Bodies that are too large are taken apart first.
        let collector = std::thread::spawn(move || collect(&listener, most + 1, |_| true));
        let mut channel = Channel::new(&state, &client, None);
        assert!(channel.empty_spool().unwrap());
        assert_eq!((spool.len(), channel.unread.len()), (100, most));
        collector.join().unwrap();
    }

    #[test]
    fn a_report_that_is_too_large_does_not_keep_others_from_being_sent() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        let spool = Spool::of(&state);
        for (run, hits) in [(1, 1), (2, 1000), (3, 1)] {
            spool.add(run, &report(run, hits)).unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = client(&listener);
        // Together, then one by one.
        let collector = std::thread::spawn(move || collect(&listener, 4, |_| false));
        let mut channel = Channel::new(&state, &client, None);
        assert!(channel.empty_spool().unwrap());
        assert_eq!((channel.sent.settled, channel.sent.refused), (2, 1));
        assert!(channel.refusal.unwrap().contains("413"));
        assert_eq!((spool.len(), state.lost().unfit), (0, 1));
        collector.join().unwrap();
    }
}
