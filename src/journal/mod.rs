//! The journal: the append-only, hash-chained record of one run, and its only source of truth.
//!
//! One JSON line per record: `{"v":1,"run":…,"seq":n,"at":"RFC 3339","event":{…},"prev":"…"}`, where
//! `prev` is the SHA-256 of the previous line without its line break (64 zeros for the first). The
//! first record holds everything that the run started from, so that the file stands alone.
//!
//! Writing: one `write` per record, then `fdatasync` where the caller needs durability; the folder is
//! synced when the file is made. One writer at a time, by an advisory lock.
//!
//! Reading: a last line without its line break is what a crash leaves behind; it is reported and,
//! on resume, cut. Any other damage is an error with the line's number.
//!
//! Many runs that go on at once can share one file ([`SharedJournal`]): its lines are then those of all of them, in one chain.
//! Lines wait there for a common write, but for those of calls. In every journal a call is in the system's hands before its request
//! leaves: no death of the process hides a call that was paid for.
//!
//! This module never interprets a record: what follows from one is decided by the engine's run state.
//!
//! # Compatibility
//!
//! `v` is raised when a record's meaning changes or a field is added that an older reader must not
//! ignore. Readers refuse a `v` that they do not know, and unknown fields within one that they do.

mod chain;
mod entry;
mod error;
mod log;
mod reader;
mod shared;
mod writer;

pub(crate) use entry::between;
pub use entry::{Asked, Entry, Found, InBatch, InSession, Library, Limits, Record, Replied, RunSpec};
pub use error::JournalError;
pub use log::Log;
pub use reader::{Journal, PlacedRecord, read, read_shared};
pub use shared::{LockedJournal, RunWriter, SharedJournal};
pub use writer::Writer;

/// The journal's file name inside a run folder.
pub const FILE_NAME: &str = "journal.jsonl";

/// The name, beside it, of the table of what was redacted.
pub const REDACTIONS_FILE: &str = "redactions.json";

/// The name of the folder of sessions beside the folders of runs.
pub const SESSIONS_FOLDER: &str = "sessions";

/// The format version that this program writes.
pub const VERSION: u32 = 1;
