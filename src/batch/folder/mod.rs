//! The folder of a batch: its division into shards, the paths of its files, and the manifest that explains it.
//!
//! The errors that stop a batch are here too, because every wing uses them. Nothing here knows what a run contains.

mod budget_note;
mod error;
pub(super) mod layout;
pub(super) mod manifest;
mod shard_id;
mod stray_files;

pub use budget_note::BudgetNote;
pub use error::BatchError;
pub use layout::{is_batch, redactions_file};
pub(super) use manifest::check_budget;
pub use manifest::{
    BatchNote, CommandNote, DataNote, Provenance, ServerNote, VariantNote, check_settings, mixed_variants,
    note, note_plan, note_servers, provenance, require_own_build,
};
pub use shard_id::ShardOf;
pub(super) use stray_files::require_no_stray_file;
pub use stray_files::stray_files;
