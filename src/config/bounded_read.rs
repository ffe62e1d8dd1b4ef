//! The folders in which a user keeps the files of this program, and the reading of such files up to a size that none of them reaches.
//!
//! A device without end is not read for ever. No roleset or pack is read through a link that leads out of the working folder, since a
//! folder from elsewhere could otherwise put any file of its user into a prompt.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use super::link_targets::follow_links;
use crate::files::{SMALL_BYTES_MAX, read_text};

/// The file that is looked for in the working folder.
pub const PROJECT_FILE: &str = "consensus.toml";

/// Returns the user's configuration folder, `$XDG_CONFIG_HOME/consensus` on every system.
pub fn config_folder() -> Option<PathBuf> {
    etcetera::base_strategy::Xdg::new().ok().map(|xdg| xdg.config_dir().join("consensus"))
}

/// Returns the folder for records that are kept.
pub fn state_folder() -> Option<PathBuf> {
    etcetera::base_strategy::Xdg::new().ok()?.state_dir().map(|folder| folder.join("consensus"))
}

/// Returns the folder for files that can be made again.
pub fn cache_folder() -> Option<PathBuf> {
    etcetera::base_strategy::Xdg::new().ok().map(|xdg| xdg.cache_dir().join("consensus"))
}

/// Reads a roleset or a pack.
///
/// Returns the errors of [`read_to_string`], or an error for a link out of the working folder.
pub(super) fn read_roleset_file(path: &Path) -> std::io::Result<String> {
    if leads_out(path)? {
        let why = "it is a link that leads out of this folder; replace it with a copy, or name the folder itself with --rolesets-dir";
        return Err(Error::new(ErrorKind::PermissionDenied, why));
    }
    read_to_string(path)
}

/// Reads a configuration file, a roleset or a pack.
///
/// Returns any error in reading the file, [`ErrorKind::FileTooLarge`] if it is too long, or [`ErrorKind::InvalidData`] if it is not
/// UTF-8.
pub(super) fn read_to_string(path: &Path) -> std::io::Result<String> {
    read_text(path, SMALL_BYTES_MAX)
}

/// Returns whether a path that begins in the working folder ends outside it. The user's own configuration may link anywhere.
fn leads_out(path: &Path) -> std::io::Result<bool> {
    let folder = std::env::current_dir()?.canonicalize()?;
    let is_own = config_folder().is_some_and(|own| path.starts_with(own));
    // The folder counts by where it is, not by the words that lead to it.
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let begins_here = parent.canonicalize().is_ok_and(|parent| parent.starts_with(&folder))
        || path.is_relative() && !path.starts_with("..");
    Ok(begins_here && !is_own && follow_links(&folder, path).is_outside)
}
