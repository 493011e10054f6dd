//! The last word: the program has ended, its final report is in the spool, and whoever started it waits for
//! its exit code.
//!
//! So this is done by a thread of its own, at the usual priority (the reporter's is the lowest, and on a busy
//! machine it may not run for long), and is left to itself when the time is up. If the reporter is at the
//! same reports just then, they are sent twice and counted once.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tomo_protocol::{Client, ClientError};

use crate::channel::{Channel, Sent};
use crate::known::Known;
use crate::numbers;
use crate::state::State;

/// What became of the spool.
#[derive(Debug)]
pub(crate) struct Emptied {
    pub(crate) sent: Sent,
    /// Why the collector took a report never.
    pub(crate) refusal: Option<String>,
    pub(crate) result: Result<bool, ClientError>,
}

/// The thread, from outside.
#[derive(Debug)]
pub(crate) struct Farewell {
    done: Receiver<Emptied>,
    until: Instant,
}

impl Farewell {
    /// Starts to send what is in the spool, for so long at most. If there can be no thread, it stays there.
    pub(crate) fn start(
        state: State,
        client: Client,
        known: Option<Known>,
        within: Duration,
    ) -> Option<Self> {
        let until = Instant::now() + within;
        let (tell, done) = sync_channel(1);
        let work = move || {
            // Not before it is certain that no number is given twice.
            if numbers::settle(&state).is_err() {
                return;
            }
            let mut channel = Channel::new(&state, &client, known.as_ref());
            let result = channel.empty_spool();
            let _ = tell.send(Emptied {
                sent: channel.sent,
                refusal: channel.refusal.take(),
                result,
            });
        };
        let thread = thread::Builder::new().name("tomo-farewell".into());
        thread.spawn(work).ok().map(|_| Self { done, until })
    }

    /// How much time is left.
    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// What became of it, unless the time is up.
    pub(crate) fn wait(&self) -> Option<Emptied> {
        self.done.recv_timeout(self.left()).ok()
    }
}
