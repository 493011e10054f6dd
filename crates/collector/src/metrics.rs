//! Numbers for Prometheus.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::StoreError;

/// A reason or a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Of {
    pub(crate) what: String,
}

/// What an HTTP answer was.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Answered {
    pub(crate) path: String,
    pub(crate) status: u16,
}

/// All numbers.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Reports, by what became of them: stored, known, or why they were refused.
    pub(crate) reports: Family<Of, Counter>,
    /// Answers, by path and status.
    pub(crate) answers: Family<Answered, Counter>,
    /// Objects of the log that cannot be used, or not to the end.
    pub(crate) damaged: Counter,
    /// Bytes of the store.
    stored: Gauge<i64>,
    /// Connections.
    pub(crate) connections: Gauge<i64>,
    /// Connections that were turned away or given up.
    pub(crate) turned_away: Counter,
    /// Segments and bytes that could not be written.
    failed_commits: Counter,
    commit_seconds: Histogram,
    request_seconds: Histogram,
    /// Snapshots that were written.
    pub(crate) compactions: Counter,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let buckets = || exponential_buckets(0.0005, 2.0, 14);
        let mut metrics = Self {
            registry: Registry::with_prefix("tomo"),
            reports: Family::default(),
            answers: Family::default(),
            damaged: Counter::default(),
            stored: Gauge::<i64>::default(),
            connections: Gauge::<i64>::default(),
            turned_away: Counter::default(),
            failed_commits: Counter::default(),
            commit_seconds: Histogram::new(buckets()),
            request_seconds: Histogram::new(buckets()),
            compactions: Counter::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let Self { registry, .. } = self;
        registry.register(
            "reports",
            "Reports, by what became of them",
            self.reports.clone(),
        );
        registry.register(
            "answers",
            "HTTP answers, by path and status",
            self.answers.clone(),
        );
        registry.register(
            "log_damaged",
            "Objects of the log that cannot be used, or not to the end",
            self.damaged.clone(),
        );
        registry.register("store_bytes", "Bytes of the store", self.stored.clone());
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "connections_turned_away",
            "Connections that were turned away",
            self.turned_away.clone(),
        );
        registry.register(
            "commits_failed",
            "Segments that could not be written",
            self.failed_commits.clone(),
        );
        registry.register(
            "commit_seconds",
            "Time to make a segment durable",
            self.commit_seconds.clone(),
        );
        registry.register(
            "request_seconds",
            "Time to answer a request",
            self.request_seconds.clone(),
        );
        registry.register("compactions", "Snapshots written", self.compactions.clone());
    }

    pub(crate) fn report(&self, what: &str, count: u64) {
        let what = what.to_owned();
        self.reports.get_or_create(&Of { what }).inc_by(count);
    }

    pub(crate) fn committed(&self, took: Duration, outcome: &Result<(String, u64), StoreError>) {
        self.commit_seconds.observe(took.as_secs_f64());
        if outcome.is_err() {
            self.failed_commits.inc();
        }
    }

    pub(crate) fn answered(&self, path: String, status: u16, took: Duration) {
        self.answers.get_or_create(&Answered { path, status }).inc();
        self.request_seconds.observe(took.as_secs_f64());
    }

    /// All of it in the form that Prometheus reads.
    pub(crate) fn text(&self, stored: u64) -> Result<String, std::fmt::Error> {
        self.stored.set(i64::try_from(stored).unwrap_or(i64::MAX));
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
