//! The keys of all members of a roster, and how they move to another machine together with all that they have signed.

mod key_folder;
mod portable;

pub use key_folder::{KeyFolder, ORCHESTRATOR, ROSTER_FILE, RUNS_MODEL};
pub use portable::{MovedKeys, export, import};
