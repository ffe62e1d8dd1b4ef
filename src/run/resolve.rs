//! The way from a roleset to its agents: the roleset with a person's settings, and the endpoints of its models.
//!
//! Runs, batches, reviews and servers go this way. Each caller reads its roleset before, and decides itself whether the check of a file has
//! to be trusted.

use std::path::Path;

use super::check::add_configured_check;
use super::error::RunError;
use super::reporter::Reporter;
use super::request::RolesetSettings;
use super::roleset::NamedRoleset;
use super::servers::{find_servers, launch};
use crate::config::{Chosen, FileConfig, Roleset, launch_command};
use crate::provider::launch::LaunchedServer;
use protocol::core::Endpoint;

/// Returns a roleset as its runs use it: with the requested members and parameters, and with the check of the configuration.
///
/// Returns [`RunError`] with a setting that the roleset cannot have. Members come before parameters.
pub fn resolve(
    found: &NamedRoleset,
    settings: &RolesetSettings,
    file: &FileConfig,
) -> Result<NamedRoleset, RunError> {
    let mut resolved = found.clone();
    let NamedRoleset { roleset, packs, .. } = &mut resolved;
    settings.seats.take(roleset, packs, &settings.redaction)?;
    settings.params.apply(roleset)?;
    add_configured_check(roleset, &settings.params, file);
    Ok(resolved)
}

/// Starts the server of a run with its log in `log`, if one is to be started, and finds one endpoint for each agent, the arbiter's last.
/// The address of the server is written into `chosen`.
///
/// Returns [`RunError`] if the server does not start, or a server or a model is missing.
pub async fn open_endpoints(
    chosen: &mut Chosen,
    file: &FileConfig,
    roleset: &Roleset,
    log: &Path,
    reporter: &dyn Reporter,
) -> Result<(Option<LaunchedServer>, Vec<Endpoint>), RunError> {
    let command = launch_command(chosen, file, Some(roleset))?;
    let server = launch(command.as_ref(), chosen, file, log, reporter).await?;
    let endpoints = find_servers(chosen, file, roleset, reporter).await?;
    Ok((server, endpoints))
}
