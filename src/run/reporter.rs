//! Messages for people while a service works; the caller decides where they go.

use std::time::Duration;

pub trait Reporter {
    /// Reports a line about progress, which may be left out if progress is not shown.
    fn status(&self, line: &str);

    /// Reports a line that matters even if progress is not shown.
    fn warn(&self, line: &str);

    /// Reports the beginning of a wait for something outside the program.
    fn wait_for(&self, what: &str) -> Box<dyn Spinner + '_>;
}

/// A wait for something outside the program.
pub trait Spinner {
    /// Reports the current reason for the wait.
    fn set_message(&self, what: &str);

    /// Reports a line that matters and is not the reason for the wait.
    fn print(&self, line: &str);

    /// Reports how long the wait has lasted.
    fn set_elapsed(&self, after: Duration);

    /// Reports the end of the wait, with a last line.
    fn finish(self: Box<Self>, line: &str);
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

    fn wait_for(&self, what: &str) -> Box<dyn Spinner + '_> {
        tracing::info!("{what}");
        Box::new(Self)
    }
}

impl Spinner for LogReporter {
    fn set_message(&self, what: &str) {
        tracing::debug!("{what}");
    }

    fn print(&self, line: &str) {
        tracing::info!("{line}");
    }

    fn set_elapsed(&self, _after: Duration) {}

    fn finish(self: Box<Self>, line: &str) {
        tracing::info!("{line}");
    }
}
