//! The folders in which a user keeps the files of this program.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;

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
