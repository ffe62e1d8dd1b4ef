//! One run, from a person's request to its result: the run is prepared, driven and finished. Batches, reviews and
//! servers prepare their rolesets by the same [`resolve()`].
//!
//! ```text
//!  RunRequest ──► choose the roleset ──► setup ──► server, endpoints ──► chunk plan ──► PreparedRun ──► Engine
//!                                                                                                        │
//!                              result.json, transcript, session ◄──── drive to the end ◄─────────────────┘
//! ```
//!
//! Messages for people go to the [`Reporter`] of the caller. Nothing is printed here, and no signal is caught.

mod at_once;
mod calibrations;
mod check;
mod chunking;
mod error;
mod finish;
mod folders;
mod parameters;
mod pilots;
mod piped;
mod prepare;
mod redaction;
mod reporter;
mod request;
mod rerun;
mod resolve;
mod resume;
mod roleset;
mod seats;
mod servers;
mod session;
mod task;

pub use crate::config::SeatRequest;
pub use at_once::{at_once, find_shortage};
pub use calibrations::{CalibrationRequest, ReadCalibration};
pub(crate) use check::require_trusted;
pub use check::sandbox_for;
pub use error::RunError;
pub use finish::{AnswerFile, FinishedRun, drive, note_in_session, restore};
pub use folders::{
    find_resumable, find_run, folder_name, folder_of_runs, rolesets_folders, run_folders, runs_folder,
};
pub use parameters::{FlagOverride, ParamChanges, add_demands, require_flag};
pub use pilots::{BY_PILOT, modes_of_pilot, named_models, plan_modes};
pub use prepare::{RunDraft, draft, introduce};
pub use redaction::redaction_policy;
pub use reporter::{LogReporter, Reporter};
pub use request::{
    ChunkRequest, MockChoice, ReadInPieces, RedactRequest, RolesetSettings, RunId, RunRequest,
};
pub use rerun::{ExecutionKind, Reexecution, reexecute, repeatable_executions, require_check_given};
pub use resolve::{open_endpoints, resolve};
pub use resume::{ResumeRequest, explain_fixed_limits, prepare_resume};
pub use roleset::{NamedRoleset, RolesetChoice, read_named, resolve_vote_name};
pub use seats::require_unlike_voters;
pub use servers::{SERVER_LOG, check_prices, find_servers, launch, mock_script};
pub use session::{SESSION_DOCUMENT, Session, SessionError, SessionSays, SessionTurn, session_names};
pub use task::{TaskSource, open_documents};
