//! The start of a run's model server, with reports on how long it takes.

use std::path::Path;
use std::time::Duration;

use super::error::RunError;
use super::notices::Notices;
use crate::config::{Chosen, FileConfig};
use crate::provider::launch::{LaunchCommand, Launched};

/// The name of the server's log inside a run folder.
pub const SERVER_LOG: &str = "server.log";

/// Starts the requested server, if there is one, and writes its address into `chosen`.
pub async fn launch(
    command: Option<&LaunchCommand>,
    chosen: &mut Chosen,
    file: &FileConfig,
    log: &Path,
    notices: &dyn Notices,
) -> Result<Option<Launched>, RunError> {
    let Some(command) = command else { return Ok(None) };
    let waiting = notices.wait_for(&format!("starting {command}; its log is {}", log.display()));
    let timeouts = file.timeouts.unwrap_or_default();
    let since = |after: Duration| waiting.since(after);
    let server = Launched::start(command, log, timeouts, file.key_variables(), since).await?;
    waiting.done(&format!("the server is ready at {}", server.base_url()));
    chosen.launched = Some(server.base_url().to_owned());
    Ok(Some(server))
}
