//! One run, from a person's request to its result: the run is prepared, driven and finished. A batch prepares its runs in its own
//! columns, and uses the parts.
//!
//! ```text
//!  RunRequest ──► choose the roleset ──► setup ──► server, endpoints ──► chunk plan ──► PreparedRun ──► Engine
//!                                                                                                        │
//!                              result.json, transcript, session ◄──── drive to the end ◄─────────────────┘
//! ```
//!
//! Notices for people go to [`Notices`], which the caller provides. Nothing is printed here, and no signal is caught.

mod answer_file;
mod at_once;
mod calibrations;
mod check;
mod chunking;
mod documents;
mod error;
mod finish;
mod folders;
mod launch;
mod notices;
mod parameters;
mod pilots;
mod piped;
mod prepare;
mod redaction;
mod request;
mod rerun;
mod resume;
mod roleset;
mod run_id;
mod seats;
mod servers;
mod session;
mod spoken;
mod task;

pub use answer_file::AnswerFile;
pub use at_once::{AtOnce, at_once};
pub use calibrations::{CalibrationRequest, ReadCalibration};
pub use check::sandbox_for;
pub(crate) use check::{add_configured_check, require_trusted};
pub use documents::open as open_documents;
pub use error::RunError;
pub use finish::{FinishedRun, drive, note_in_session, restore};
pub use folders::{
    find_resumable, find_run, folder_name, folder_of_runs, rolesets_folders, run_folders, runs_folder,
};
pub use launch::{SERVER_LOG, launch};
pub use notices::{Notices, Traced, Waiting};
pub use parameters::{CheckChange, FlagOverride, ParamChanges, refuse};
pub use pilots::{BY_PILOT, modes_of_pilot, named_models, planned_modes};
pub use prepare::{ReadyRun, RunDraft, draft, introduce, prepare};
pub use redaction::sought;
pub use request::{ChunkRequest, MockChoice, ReadInPieces, RedactRequest, RunRequest, SeatRequest};
pub use rerun::{Again, MadeAgain, make_again, repeatable, require_check_given};
pub use resume::{ResumeRequest, ResumedRun, only_under, prepare_resume};
pub use roleset::{NamedRoleset, RolesetChoice, of_its_kind, read_named};
pub use run_id::RunId;
pub use seats::require_unlike_voters;
pub use servers::{check_prices, find_servers, mock_script};
pub use session::{SESSION_DOCUMENT, Session, SessionError, SessionSays, SessionTurn, session_names};
pub use spoken::add_spoken_rules;
pub use task::TaskSource;
