//! The figures of a server, for Prometheus: those of all its runs, and its own.
//!
//! The input is the rows of ended runs, and each request that was answered. The output is one text. The figures of runs are those that
//! `--metrics-file` writes, over all runs of the folder. The server's own begin at zero with each start.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};

use crate::report::{ResultFields, RunFigures};

/// The upper bounds of the buckets for times, in seconds.
const SECONDS: [f64; 12] = [0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1800.0, 3600.0];

/// The figures of a server.
#[derive(Debug)]
pub(in crate::serve) struct ServerFigures {
    registry: Registry,
    runs: RunFigures,
    requests: IntCounterVec,
    seconds: HistogramVec,
    live: IntGaugeVec,
}

impl ServerFigures {
    /// Begins to count.
    pub(super) fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let requests = Opts::new("consensus_server_requests", "Requests, by path and status.");
        let requests = IntCounterVec::new(requests, &["path", "status"])?;
        registry.register(Box::new(requests.clone()))?;
        let help = "Seconds until the head of the answer was there.";
        let seconds = HistogramOpts::new("consensus_server_seconds", help).buckets(SECONDS.to_vec());
        let seconds = HistogramVec::new(seconds, &["path"])?;
        registry.register(Box::new(seconds.clone()))?;
        let live = Opts::new("consensus_server_runs", "Runs that wait or are under way.");
        let live = IntGaugeVec::new(live, &["state"])?;
        registry.register(Box::new(live.clone()))?;
        Ok(Self { runs: RunFigures::new(&registry)?, registry, requests, seconds, live })
    }

    /// Counts a run, from its row of results.
    pub(super) fn count_run(&self, row: &[u8]) {
        // A row that is no result is found by `consensus verify`.
        if let Ok(run) = serde_json::from_slice::<ResultFields>(row) {
            self.runs.add(&run);
        }
    }

    /// Counts a request that was answered.
    pub(in crate::serve) fn count_request(&self, path: &str, status: u16, took: Duration) {
        self.requests.with_label_values(&[path, &status.to_string()]).inc();
        self.seconds.with_label_values(&[path]).observe(took.as_secs_f64());
    }

    /// Returns the figures as text, with the number of runs that wait and that are under way.
    pub(super) fn text(&self, waiting: usize, under_way: usize) -> Result<String, prometheus::Error> {
        for (state, count) in [("waiting", waiting), ("under_way", under_way)] {
            self.live.with_label_values(&[state]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}
