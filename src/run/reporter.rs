//! Messages for people while a service works; the caller decides where they go.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::engine::RunObserver;
use crate::report::RunResult;
use protocol::core::Endpoint;

/// A receiver of messages.
pub trait Reporter {
    /// Reports a line about progress, which may be left out if progress is not shown. In a wait, the line is the current reason for it.
    fn status(&self, line: &str);

    /// Reports a line that matters even if progress is not shown.
    fn warn(&self, line: &str);

    /// Reports the beginning of a wait for something outside the program, and returns the reporter of this wait.
    fn wait_for(&self, what: &str) -> Box<dyn Reporter + '_>;

    /// Reports how long a wait has lasted.
    fn set_elapsed(&self, _after: Duration) {}

    /// Reports the end of a wait, with a last line.
    fn finish(self: Box<Self>, line: &str) {
        self.status(line);
    }

    /// Makes an observer of one run, which is dropped when the run has ended.
    fn observe_run(&self) -> Box<dyn RunObserver + '_> {
        Box::new(())
    }

    /// Reports the end of a run, with its folder and the endpoints of its models.
    fn report_run(&self, _result: &RunResult, _dir: &Path, _endpoints: &[Endpoint]) {}

    /// Reports a row for programs that follow the work. An error in writing it ends the work.
    fn report_row(&self, _row: &Value) -> std::io::Result<()> {
        Ok(())
    }
}

/// A receiver that sends messages to the log.
#[derive(Clone, Copy, Debug)]
pub struct LogReporter;

impl Reporter for LogReporter {
    fn status(&self, line: &str) {
        tracing::info!("{line}");
    }

    fn warn(&self, line: &str) {
        tracing::warn!("{line}");
    }

    fn wait_for(&self, what: &str) -> Box<dyn Reporter + '_> {
        tracing::info!("{what}");
        Box::new(Self)
    }
}
