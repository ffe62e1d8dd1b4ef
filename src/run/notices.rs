//! Notices for people while a service works; the caller decides where they go.

use std::time::Duration;

/// A receiver of notices.
pub trait Notices {
    /// Reports a line about progress, which may be left out if progress is not shown.
    fn status(&self, line: &str);

    /// Reports a line that matters even if progress is not shown.
    fn warn(&self, line: &str);

    /// Reports the beginning of a wait for something outside the program.
    fn wait_for(&self, what: &str) -> Box<dyn Waiting + '_>;
}

/// A receiver that sends notices to the log.
#[derive(Clone, Copy, Debug)]
pub struct Traced;

impl Notices for Traced {
    fn status(&self, line: &str) {
        tracing::info!("{line}");
    }

    fn warn(&self, line: &str) {
        tracing::warn!("{line}");
    }

    fn wait_for(&self, what: &str) -> Box<dyn Waiting + '_> {
        tracing::info!("{what}");
        Box::new(Self)
    }
}

impl Waiting for Traced {
    fn now(&self, what: &str) {
        tracing::debug!("{what}");
    }

    fn tell(&self, line: &str) {
        tracing::info!("{line}");
    }

    fn since(&self, _after: Duration) {}

    fn done(self: Box<Self>, line: &str) {
        tracing::info!("{line}");
    }
}

/// A wait for something outside the program.
pub trait Waiting {
    /// Reports the current reason for the wait.
    fn now(&self, what: &str);

    /// Reports a line that matters and is not the reason for the wait.
    fn tell(&self, line: &str);

    /// Reports how long the wait has lasted.
    fn since(&self, after: Duration);

    /// Reports the end of the wait, with a last line.
    fn done(self: Box<Self>, line: &str);
}
