//! The way of each cell of a batch to its result: many runs at once, within limits, until all are done or further calls would fail.
//!
//! ```text
//!  tasks ──► scheduler ──cells──► open run ──► grade ──► line of results
//!                ▲                    │
//!                └─ circuit breaker ◄─┘ calls that failed
//! ```
//!
//! The plan of a batch is what the scheduler would do, counted before anything is spent.

mod batch_plan;
mod circuit_breaker;
mod grading;
mod open_run;
mod scheduler;

pub use batch_plan::{BatchPlan, Sum, VariantPlan};
pub use grading::CommandGrader;
pub use open_run::Options;
pub use scheduler::{BatchObserver, run};
