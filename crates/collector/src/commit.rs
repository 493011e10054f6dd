//! Group commit: everything that arrives while a segment is being written goes into the next one, so
//! the number of synchronisations of the disk does not grow with the number of reports.
//!
//! One task writes. The state changes only after a segment is durable, and then before anybody is
//! answered: what was acknowledged is in both. Where writing fails nobody's report was taken, and all
//! are told so.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tomo_protocol::{CampaignId, InstanceId};
use tomo_wire::report::ReportView;

use crate::collector::Shared;
use crate::hunt::Edition;
use crate::observed::Observed;
use crate::segment::{Entry, Writer};
use crate::{Denial, StoreError};

/// Bytes of a segment from which on the next one is begun.
const LONGEST_SEGMENT: usize = 16 << 20;
/// Requests of one segment at most.
const MOST_REQUESTS: usize = 8192;

/// What is to be stored.
#[derive(Debug)]
pub(crate) enum Logged {
    /// A report, as it was received, after it was checked.
    Report(Bytes),
    /// An assignment.
    Assignment(InstanceId, u32),
    /// What a search decided.
    Edition(Edition),
}

impl Logged {
    fn write(&self, writer: &mut Writer, at: i64) {
        match self {
            Self::Report(bytes) => writer.report(bytes, at),
            Self::Assignment(instance, variant) => writer.assignment(*instance, *variant, at),
            // Its numbers and lists always can be put into bytes.
            Self::Edition(edition) => drop(writer.edition(edition, at)),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Report(bytes) => bytes.len() + 24,
            Self::Assignment(..) | Self::Edition(_) => 48,
        }
    }
}

/// What one request wants stored.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) observed: Arc<Observed>,
    pub(crate) logged: Vec<Logged>,
    /// When it was accepted.
    pub(crate) at: i64,
    pub(crate) done: oneshot::Sender<Result<(), Denial>>,
}

/// Where requests wait.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    sender: mpsc::Sender<Request>,
}

impl Queue {
    /// A queue for so many requests, and its other end.
    pub(crate) fn new(length: usize) -> (Self, mpsc::Receiver<Request>) {
        let (sender, receiver) = mpsc::channel(length.max(1));
        (Self { sender }, receiver)
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Stores something; comes back once it is durable and known.
    pub(crate) async fn store(
        &self,
        observed: &Arc<Observed>,
        logged: Vec<Logged>,
        at: i64,
    ) -> Result<(), Denial> {
        let (done, outcome) = oneshot::channel();
        let request = Request {
            observed: Arc::clone(observed),
            logged,
            at,
            done,
        };
        self.sender.try_send(request).map_err(|_| Denial::busy())?;
        outcome.await.unwrap_or_else(|_| Err(Denial::busy()))
    }
}

/// Writes what comes; once the end is announced, what is there still, and no more.
pub(crate) async fn run(shared: Arc<Shared>, mut requests: mpsc::Receiver<Request>) {
    let mut ending = false;
    loop {
        let batch = tokio::select! {
            biased;
            batch = next_batch(&mut requests) => batch,
            () = shared.ending.notified(), if !ending => {
                requests.close();
                ending = true;
                continue;
            }
        };
        match batch {
            Some(batch) => commit_all(&shared, batch).await,
            None => return,
        }
    }
}

async fn commit_all(shared: &Shared, batch: Vec<Request>) {
    let mut by_campaign: HashMap<CampaignId, Vec<Request>> = HashMap::new();
    for request in batch {
        let id = request.observed.campaign.id;
        by_campaign.entry(id).or_default().push(request);
    }
    let writes = by_campaign.into_values();
    futures::future::join_all(writes.map(|requests| commit(shared, requests))).await;
}

/// What is there by now; waits for the first of it.
async fn next_batch(requests: &mut mpsc::Receiver<Request>) -> Option<Vec<Request>> {
    let mut batch = vec![requests.recv().await?];
    let mut size = 0;
    while size < LONGEST_SEGMENT && batch.len() < MOST_REQUESTS {
        let Ok(request) = requests.try_recv() else {
            break;
        };
        size += request.logged.iter().map(Logged::size).sum::<usize>();
        batch.push(request);
    }
    Some(batch)
}

async fn commit(shared: &Shared, requests: Vec<Request>) {
    let Some(observed) = requests.first().map(|first| Arc::clone(&first.observed)) else {
        return;
    };
    let begun = Instant::now();
    let outcome = write(shared, &observed, &requests).await;
    shared.metrics.committed(begun.elapsed(), &outcome);
    let outcome = match outcome {
        Ok((name, size)) => {
            apply(&observed, name, size, &requests);
            Ok(())
        }
        Err(error) => {
            let campaign = observed.campaign.id;
            tracing::error!(%campaign, %error, requests = requests.len(), "reports were not stored");
            let mut live = observed.live();
            for logged in requests.iter().flat_map(|request| &request.logged) {
                match logged {
                    Logged::Assignment(instance, _) => live.forget(*instance),
                    Logged::Report(bytes) => {
                        if let Ok((report, _)) = ReportView::read(bytes) {
                            live.expect_no_more(InstanceId(report.header.instance));
                        }
                    }
                    Logged::Edition(_) => {}
                }
            }
            Err(Denial::from(&error))
        }
    };
    for request in requests {
        // Who asked may have gone.
        let _ = request.done.send(outcome.clone());
    }
}

/// Writes a segment; gives its name and its size.
async fn write(
    shared: &Shared,
    observed: &Observed,
    requests: &[Request],
) -> Result<(String, u64), StoreError> {
    let id = observed.campaign.id;
    let mut writer = Writer::new(id);
    for request in requests {
        for logged in &request.logged {
            logged.write(&mut writer, request.at);
        }
    }
    let bytes = writer.finish();
    let size = bytes.len() as u64;
    let name = shared.log_name(id, "segment");
    shared.put(&name, bytes.into()).await?;
    Ok((name, size))
}

/// Lets the state know what is durable.
fn apply(observed: &Observed, name: String, size: u64, requests: &[Request]) {
    let mut live = observed.live();
    for request in requests {
        for logged in &request.logged {
            let entry = match logged {
                Logged::Report(bytes) => match ReportView::read(bytes) {
                    Ok((report, _)) => Entry::Report(report),
                    // It was read before it was queued.
                    Err(_) => continue,
                },
                Logged::Assignment(instance, variant) => Entry::Assignment(*instance, *variant),
                Logged::Edition(edition) => Entry::Edition(edition.clone()),
            };
            observed.take(&mut live, entry, request.at);
        }
    }
    live.covered.insert(name, size);
    live.uncompacted += size;
}
