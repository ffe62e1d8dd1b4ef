//! The two configuration files, and the settings of the project's file that count.
//!
//! The input is the two files, each read once. The output is one [`FileConfig`]. A project's file comes with the working folder, so
//! its settings that could harm a visitor count only with the visitor's trust. A command that starts, sends or writes anything uses
//! [`FileConfig::load`], which refuses such settings. A command that only reads uses [`FileConfig::load_to_read`], which leaves them
//! out. No setting of an untrusted folder gets past this module.

use std::path::Path;

use super::bounded_read::{PROJECT_FILE, config_folder};
use super::document::TomlDocument;
use super::error::ConfigError;
use super::file::FileConfig;
use super::trust::Claims;
use protocol::text::escape;

/// The user's own file in the user's configuration folder.
const USER_FILE: &str = "config.toml";

impl FileConfig {
    /// Reads the project's file over the user's file; a missing file is not an error.
    ///
    /// Returns [`ConfigError::Read`], [`ConfigError::File`] with the line, or [`ConfigError::Untrusted`].
    pub fn load() -> Result<Self, ConfigError> {
        Self::load_files(false)
    }

    /// Reads the files like [`Self::load`], for a command that starts, sends and writes nothing. Settings that need trust and do not
    /// have it are left out, with one line of warning.
    ///
    /// Returns [`ConfigError::Read`], or [`ConfigError::File`] with the line.
    pub fn load_to_read() -> Result<Self, ConfigError> {
        Self::load_files(true)
    }

    fn load_files(leaves_out: bool) -> Result<Self, ConfigError> {
        let user = Self::of_user()?;
        let document = TomlDocument::read(Path::new(PROJECT_FILE))?;
        let project = document.as_ref().map(Self::parse).transpose()?.unwrap_or_default();
        let Some(claims) = Claims::new(Path::new("."), document.as_ref(), &project, &user)? else {
            return Ok(project.merge_over(user));
        };
        match claims.require_trust() {
            Ok(()) => Ok(project.merge_over(user)),
            Err(ConfigError::Untrusted { .. }) if leaves_out => {
                warn_of(&claims);
                let Some(document) = document else { return Ok(user) };
                let project = Self::parse_some(&document, |key| !claims.names(key))?;
                Ok(project.merge_over(user))
            }
            Err(why) => Err(why),
        }
    }

    /// Reads only the user's own file.
    ///
    /// Returns [`ConfigError::Read`], or [`ConfigError::File`] with the line.
    pub fn of_user() -> Result<Self, ConfigError> {
        let Some(folder) = config_folder() else { return Ok(Self::default()) };
        let document = TomlDocument::read(&folder.join(USER_FILE))?;
        document.as_ref().map(Self::parse).transpose().map(Option::unwrap_or_default)
    }
}

/// Warns about claims without trust: settings are left out, and a link is only read through.
fn warn_of(claims: &Claims) {
    let named: Vec<String> = claims.claims.iter().map(ToString::to_string).collect();
    tracing::warn!(
        "settings left out, and links only read through, until you trust this folder with `consensus trust`: {}",
        escape::terminal(&named.join("; "))
    );
}
