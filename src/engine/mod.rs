//! The engine, which performs the actions that a protocol asks for.
//!
//! ```text
//!  journal ──records──► run state (pure) ──asks that are owed──► engine ──► providers
//!     ▲                                                          │
//!     └──────── asked, replied, lost, executed, stopped ─────────┘
//! ```
//!
//! The [`RunState`] folds a journal's records into the state of the run: the machine, the calls that are owed, the
//! amounts that were spent. A live run, a resumed one, `verify` and `replay` all use it, so they cannot disagree. The
//! [`Engine`] performs what that state owes: budget check, record, call, record, and so on. It ends when the machine
//! finishes, a limit binds, a provider that the protocol needs fails, or the user stops it. Every way out leaves a
//! journal that is complete or can be resumed.

mod budget;
mod conduct;
mod drive;
mod error;
mod executing;
mod executions;
mod flight;
mod known;
mod log;
mod losses;
mod mismatch;
mod observer;
mod permits;
mod prepared;
mod redaction;
mod run_state;

pub use budget::{Budget, CallUsage, Exceeded, Reserve, Totals};
pub use drive::Engine;
pub use error::EngineError;
pub use executing::{ANSWER, Order, TASK, execute, require_plain_id};
pub use flight::StopRequest;
pub use mismatch::{Mismatch, ReplayError};
pub use observer::{RunEvent, RunObserver};
pub use prepared::{PreparedRun, Resumption, RunBuilder};
pub use redaction::{Redaction, RedactionPolicy};
pub use run_state::RunState;
