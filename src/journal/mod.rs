//! The journal: the append-only, hash-chained record of one run, and its only source of truth.
//!
//! There is one JSON line per record: `{"v":1,"run":…,"seq":n,"at":"RFC 3339","event":{…},"prev":"…"}`, where `prev`
//! is the SHA-256 of the previous line without its line break (64 zeros for the first). The first record holds
//! everything that the run started from, so the file is complete by itself.
//!
//! Writing takes one `write` per record, then `fdatasync` where the caller needs durability; the folder is synced
//! when the file is made. An advisory lock admits one writer at a time.
//!
//! Reading reports a last line without its line break, which a crash leaves behind; on resume, that line is cut. Any
//! other damage is an error with the number of the line.
//!
//! Many runs at once can share one file ([`SharedJournal`]), whose lines then form one chain of all their records.
//! Each of these lines also holds `run_prev`, the SHA-256 of the line before it of the same run, so the lines of one run are a chain
//! by themselves. Lines wait there for a common write, except those of calls. In every journal a call is handed to the system before
//! its request leaves: even if the process dies, a call that was paid for is on record.
//!
//! The lines of old runs can be removed from a shared journal. The others keep their bytes, and a list beside the journal names the gaps
//! in its chain. Only where the manifest of the folder says that a server removes old runs is such a list taken.
//!
//! This module never interprets a record: the engine's run state decides what follows from one.
//!
//! # Compatibility
//!
//! An opening record names the build that wrote it. A record of another build is refused, and never called damaged: it may follow other
//! rules. This is found before the chain is checked, because the chain of another build may be made otherwise.

mod chain;
mod ends;
mod entry;
mod error;
mod gaps;
mod log;
mod reader;
mod removal;
mod run_places;
mod shared;
mod writer;

pub use ends::read_ends;
pub(crate) use entry::between;
pub use entry::{
    Asked, Entry, Executed, Executor, Found, InBatch, InSession, LeftOut, Library, Limits, LostCall, Record,
    Replied, RunSpec,
};
pub use error::JournalError;
pub use gaps::{GapRule, RemovedLines, has_removals};
pub use log::Log;
pub use reader::{Journal, PlacedRecord, read, read_from, read_shared, read_with_gaps, require_own_build};
pub use run_places::RunPlaces;
pub use shared::{LockedJournal, RunWriter, SharedJournal};
pub use writer::Writer;

/// The journal's file name inside a run folder.
pub const FILE_NAME: &str = "journal.jsonl";

/// The name of the manifest beside the journals of a batch or a server.
pub const BATCH_FILE: &str = "batch.json";

/// The name of the file beside the journal that holds the table of redactions.
pub const REDACTIONS_FILE: &str = "redactions.json";

/// The name of the folder of sessions beside the folders of runs.
pub const SESSIONS_FOLDER: &str = "sessions";

/// The format version that this program writes.
pub const VERSION: u32 = 1;
