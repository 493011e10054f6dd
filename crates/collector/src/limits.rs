//! How much is taken from whom, and how often instances are to report.
//!
//! Load is shed in three steps: answers tell instances to wait longer before they report again, so
//! that all of them together stay below a rate; who asks too often is told to wait (429); and when
//! the queue before the disk is full, everybody is (503), or the memory for bodies is, whoever sends a long one.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// What is taken at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a body of reports.
    pub report_body: usize,
    /// Bytes of all bodies of reports that are not stored yet, beyond the first few of each: one body at least finds room.
    pub bodies: usize,
    /// Reports of one body.
    pub reports_per_body: usize,
    /// Bytes of an uploaded model, file or plan, and of an administrator's request.
    pub upload: usize,
    /// Requests a second with one token, on average; twice as many at once.
    pub requests_per_second: u32,
    /// Reports a second that instances are paced to, all together.
    pub reports_per_second: u32,
    /// How long instances wait between reports where nothing makes them wait longer.
    pub interval: Duration,
    /// Connections at once.
    pub connections: usize,
    /// How long a client may take to send a request's head, and its next bytes, and to read the next of an answer.
    pub patience: Duration,
    /// Instances of one campaign.
    pub instances: usize,
    /// Bodies that wait to be stored.
    pub queue: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            report_body: 8 << 20,
            bodies: 256 << 20,
            reports_per_body: 1000,
            upload: 1 << 30,
            requests_per_second: 20_000,
            reports_per_second: 2000,
            interval: Duration::from_secs(10),
            connections: 10_000,
            patience: Duration::from_secs(30),
            instances: 1_000_000,
            queue: 4096,
        }
    }
}

impl Limits {
    /// How long instances are to wait, when there are so many, and so many bodies wait to be stored.
    pub(crate) fn pace(&self, instances: u64, waiting: usize) -> Duration {
        let rate = u64::from(self.reports_per_second.max(1));
        let even = Duration::from_millis(instances.saturating_mul(1000) / rate);
        let paced = self.interval.max(even);
        // From a half full queue on, twice as long; when it is nearly full, four times.
        let factor = match waiting * 4 / self.queue.max(1) {
            0 | 1 => 1,
            2 => 2,
            _ => 4,
        };
        (paced * factor).min(Duration::from_secs(3600))
    }
}

/// A bucket per key, which fills at an even rate.
#[derive(Debug)]
pub(crate) struct Buckets {
    rate: f64,
    buckets: Mutex<HashMap<String, (f64, Instant)>>,
}

impl Buckets {
    /// So many a second for each key, and twice as many at once.
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            rate: f64::from(per_second.max(1)),
            buckets: Mutex::default(),
        }
    }

    /// Whether this key may do something now. Keys are hashes of valid tokens, so there are few.
    pub(crate) fn take(&self, key: &str, now: Instant) -> bool {
        let mut buckets = self.buckets.lock();
        if !buckets.contains_key(key) {
            buckets.insert(key.to_owned(), (2.0 * self.rate, now));
        }
        let Some((left, last)) = buckets.get_mut(key) else {
            return true;
        };
        let gone_by = now.saturating_duration_since(*last).as_secs_f64();
        *left = (*left + gone_by * self.rate).min(2.0 * self.rate);
        *last = now;
        let granted = *left >= 1.0;
        if granted {
            *left -= 1.0;
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::{Buckets, Limits};
    use std::time::{Duration, Instant};

    #[test]
    fn a_token_gets_its_rate_and_no_more() {
        let buckets = Buckets::new(10);
        let start = Instant::now();
        let granted = |key, at| (0..100).filter(|_| buckets.take(key, at)).count();
        assert_eq!(granted("a", start), 20);
        assert_eq!(granted("b", start), 20);
        assert_eq!(granted("a", start + Duration::from_millis(500)), 5);
        assert_eq!(granted("a", start + Duration::from_secs(60)), 20);
        assert_eq!(granted("a", start), 0, "an earlier time gives nothing");
    }

    #[test]
    fn instances_are_paced_by_their_number_and_by_the_queue() {
        let limits = Limits::default();
        assert_eq!(limits.pace(0, 0), limits.interval);
        assert_eq!(limits.pace(1000, 0), limits.interval);
        assert_eq!(limits.pace(200_000, 0), Duration::from_secs(100));
        assert_eq!(limits.pace(1000, limits.queue / 2), limits.interval * 2);
        assert_eq!(limits.pace(1000, limits.queue), limits.interval * 4);
        assert_eq!(limits.pace(u64::MAX, 0), Duration::from_secs(3600));
    }
}
