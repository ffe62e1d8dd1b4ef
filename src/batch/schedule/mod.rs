//! The way of each cell of a batch to its result: many runs at once, within limits, until all are done or further calls would fail.
//!
//! ```text
//!  tasks ──► scheduler ──cells──► open run ──► grade ──► line of results
//!                ▲                    │
//!                └─ circuit breaker ◄─┘ calls that failed
//! ```
//!
//! Votes that share a budget of tokens stop after two samples each. Then rounds follow, and each is a pass over the runs that it permits one
//! more sample. The plan of a batch is what the scheduler would do, counted before anything is spent.

mod batch_plan;
mod circuit_breaker;
mod grading;
mod open_run;
mod rounds;
mod scheduler;

pub use batch_plan::{BatchPlan, Sum, VariantPlan};
pub use grading::CommandGrader;
pub use open_run::Options;
pub use scheduler::{BatchObserver, run};
