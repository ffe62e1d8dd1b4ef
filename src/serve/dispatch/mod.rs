//! The way of a request to its run, in whatever form it came.
//!
//! ```text
//!  form of a request ──► requested run ──► app state ──► dispatcher ──► scheduler of the batch
//!                                              ▲              │
//!                                              └── its run ◄──┘
//! ```
//!
//! The input is requests. The output is runs for the scheduler, and for each request the run that answers it, or a refusal.

mod app_state;
mod dispatcher;
mod requested_run;
mod served_variant;
mod submission;

pub(super) use app_state::AppState;
pub(super) use dispatcher::{Dispatcher, KEYED, is_continued};
pub(super) use requested_run::{
    AnswerFormat, Extension, GivenContent, RequestedRun, RunSettings, Speaker, SpokenMessage, canonical_of,
    read_body, read_text, require_name,
};
pub(super) use served_variant::DEPTH_HEADER;
pub(super) use submission::SubmissionOutcome;
