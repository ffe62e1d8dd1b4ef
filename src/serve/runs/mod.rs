//! The runs of a server, those that wait or are under way and those that are over, and the rules for all of them.
//!
//! The input is the events and the ends of runs, and requests about them. The output is the state of each run, its records, and its answer
//! before it has a form. Each caller sees its own runs, and uses what its token allows in a day. No run begins here.

mod cancelled;
mod figures;
pub(super) mod handlers;
mod known_run;
mod live_run;
mod open_calls;
mod past_run;
mod rules;
mod run_reply;
mod service;
mod spending;
mod subscription;

pub(super) use cancelled::CancelledKeys;
pub(super) use known_run::{
    CallersRun, IdInPath, OpenRunState, all_lines, cancel, find, in_background, past_row, past_rows, run_id,
};
pub(super) use live_run::{LiveRun, RunEnd, RunOrigin, RunProgress};
pub(super) use open_calls::{AgentCall, LOOK_EVERY, OpenCalls};
pub(super) use past_run::{PastRun, RECORDS, journal_of};
pub use rules::ServedRoleset;
pub(super) use rules::{PREFIX, ServerRules, split_name};
pub(super) use run_reply::{ReplyForm, RunReply, TokenUse};
pub(super) use service::{ServerFiles, Service};
pub(super) use subscription::Subscription;
