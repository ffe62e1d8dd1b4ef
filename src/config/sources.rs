//! The two configuration files, and what of the project's counts.
//!
//! In: the two files, each read once. Out: one [`FileConfig`]. A project's
//! file comes with the folder that one stands in, so its settings that could harm its visitor count only with trust:
//! a command that starts, sends or writes anything uses [`FileConfig::load`], which refuses them, and one that only
//! reads uses [`FileConfig::load_to_read`], which leaves them out. No setting of an untrusted folder gets past here.

use std::path::Path;

use super::document::TomlDocument;
use super::error::ConfigError;
use super::file::FileConfig;
use super::folders::{PROJECT_FILE, config_folder};
use super::trust::Claims;
use crate::text::escape;

/// The user's own file in the user's configuration folder.
const USER_FILE: &str = "config.toml";

impl FileConfig {
    /// Reads the project's file over the user's file; files that do not exist are no mistake.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Read`], [`ConfigError::File`] with the line, [`ConfigError::Untrusted`].
    pub fn load() -> Result<Self, ConfigError> {
        let Sources { user, project, claims, .. } = Sources::read()?;
        claims.as_ref().map_or(Ok(()), Claims::require)?;
        Ok(project.over(user))
    }

    /// As [`Self::load`], for a command that starts, sends and writes nothing: settings that need trust and have none
    /// are left out, with one line of warning.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Read`], [`ConfigError::File`] with the line.
    pub fn load_to_read() -> Result<Self, ConfigError> {
        let Sources { user, project, claims, document } = Sources::read()?;
        let Some(claims) = claims else { return Ok(project.over(user)) };
        match claims.require() {
            Ok(()) => Ok(project.over(user)),
            Err(ConfigError::Untrusted { .. }) => {
                let is_kept = |key: &str| !claims.names(key);
                warn_of(&claims);
                let kept = document.map(|document| Self::parse_some(&document, is_kept)).transpose()?;
                Ok(kept.unwrap_or_default().over(user))
            }
            Err(other) => Err(other),
        }
    }

    /// Reads the user's own file alone.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Read`], [`ConfigError::File`] with the line.
    pub fn of_user() -> Result<Self, ConfigError> {
        let Some(folder) = config_folder() else { return Ok(Self::default()) };
        let document = TomlDocument::read(&folder.join(USER_FILE))?;
        document.as_ref().map(Self::parse).transpose().map(Option::unwrap_or_default)
    }
}

/// The two files as they are, before the question of trust.
struct Sources {
    user: FileConfig,
    project: FileConfig,
    /// The project's file as it was read.
    document: Option<TomlDocument>,
    /// What of the folder needs trust.
    claims: Option<Claims>,
}

impl Sources {
    fn read() -> Result<Self, ConfigError> {
        let user = FileConfig::of_user()?;
        let document = TomlDocument::read(Path::new(PROJECT_FILE))?;
        let project = document.as_ref().map(FileConfig::parse).transpose()?.unwrap_or_default();
        let claims = Claims::new(Path::new("."), document.as_ref(), &project, &user)?;
        Ok(Self { user, project, document, claims })
    }
}

/// Warns of what needs trust and has none: settings are left out, and a link is only read through.
fn warn_of(claims: &Claims) {
    let named: Vec<String> = claims.claims.iter().map(ToString::to_string).collect();
    tracing::warn!(
        "left out, or only read through, until you trust this folder with `consensus trust`: {}",
        escape::terminal(&named.join("; "))
    );
}
