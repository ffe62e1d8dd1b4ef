//! The runs of a batch or a server whose spans are to be sent.
//!
//! The input is the ids of runs that have ended. The output is their spans, one run after another, beside the runs that are under way. A
//! collector that is slow holds no run up.

use std::path::Path;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::collector::Collector;
use super::error::OtlpError;
use crate::journal::{Record, RunPlaces, read_from};

/// The time that is left for the last spans when the runs have ended.
const LAST: Duration = Duration::from_secs(30);

/// The name of the records in an error.
const RECORDS: &str = "the records of a run";

/// The way to the task that sends spans.
#[derive(Clone, Debug)]
pub struct SpanQueue(mpsc::UnboundedSender<Uuid>);

impl SpanQueue {
    /// Starts the task that sends the spans of runs in the journal at `path`.
    ///
    /// Returns [`OtlpError::Journal`] if the journal cannot be opened.
    pub fn start(path: &Path, collector: Collector) -> Result<(Self, SpanTask), OtlpError> {
        let places = RunPlaces::open(path)?;
        let (sender, runs) = mpsc::unbounded_channel();
        Ok((Self(sender), SpanTask(tokio::spawn(send_all(places, runs, collector)))))
    }

    /// Adds a run whose last record is in the journal.
    pub fn add(&self, run: Uuid) {
        // The task ends with the last queue.
        let _ = self.0.send(run);
    }
}

/// The task that sends spans.
#[derive(Debug)]
pub struct SpanTask(JoinHandle<()>);

impl SpanTask {
    /// Waits until all spans are sent, for half a minute at most. All queues must be gone by then.
    pub async fn end(self) {
        let abort = self.0.abort_handle();
        if tokio::time::timeout(LAST, self.0).await.is_err() {
            abort.abort();
            tracing::warn!("the collector is slow, and the spans of some runs were not sent");
        }
    }
}

async fn send_all(mut places: RunPlaces, mut runs: mpsc::UnboundedReceiver<Uuid>, collector: Collector) {
    while let Some(run) = runs.recv().await {
        let sent = match read_records(&mut places, run) {
            Ok(records) => collector.send(&records).await,
            Err(why) => Err(why),
        };
        if let Err(why) = sent {
            tracing::warn!(%run, "{why}");
        }
    }
}

fn read_records(places: &mut RunPlaces, run: Uuid) -> Result<Vec<Record>, OtlpError> {
    let lines = places.all_lines_of(&run.to_string())?;
    Ok(read_from(&*lines, Path::new(RECORDS))?.records)
}
