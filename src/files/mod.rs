//! Files that are read within a limit and written whole, in folders that only the user can read; folders for
//! temporary use.
//!
//! The input is a path. The output is bytes, or an error of the system; where a file is too long, the error names the
//! limit. A device that never ends is not read for ever. Nothing here knows what a file is for.

mod bounded;
mod bundle;
mod closed;
mod folder;
mod growing;
mod own;
mod replacement;
mod scratch;
mod whole;

pub use bounded::{
    LARGE_BYTES_MAX, LINE_BYTES_MAX, SMALL_BYTES_MAX, is_damage, read, read_line, read_own, read_text,
};
pub use bundle::{unpack_bundle, write_bundle};
pub use closed::remove_tree;
pub use folder::{HeldFolder, is_same_place, private_folder};
pub use growing::{GrowingFile, LinePlace};
pub use own::{check_own, open_own, require_regular};
pub use replacement::Replacement;
pub use scratch::Scratch;
pub use whole::{is_unfinished, remove_unfinished, write_whole};
