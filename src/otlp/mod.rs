//! Traces of runs, for collectors of OpenTelemetry.
//!
//! ```text
//!  records of a run that has ended ──► spans ──► collector, over HTTP
//! ```
//!
//! The input is the records of a run. The output is its spans, by the conventions for generative AI: the run, its agents, and their calls.
//! They follow from the records alone, ids included, so a run that was killed and resumed has the same spans as one that was not. They are
//! sent once, when the run has ended for good. A collector that cannot be reached is worth a warning and changes nothing about the run.

mod collector;
mod error;
mod queue;
mod spans;

pub use collector::{Collector, HEADERS_VARIABLE};
pub use error::OtlpError;
pub use queue::{SpanQueue, SpanTask};
pub use spans::spans;
