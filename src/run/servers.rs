//! The servers of a run, with the one that is started for it, the script of mock agents, and the prices for a cost limit. All of them are
//! known before a run starts.

use std::path::Path;
use std::time::{Duration, Instant};

use super::error::RunError;
use super::reporter::Reporter;
use super::task::read;
use crate::config::{Chosen, ConfigError, FileConfig, Roleset, resolve_endpoints};
use crate::journal::Limits;
use crate::provider::launch::{LaunchCommand, LaunchedServer};
use crate::provider::{MockScript, OpenAi, ProviderError};
use protocol::core::Endpoint;
use protocol::text::escape;

/// The name of the server's log inside a run folder.
pub const SERVER_LOG: &str = "server.log";

/// The time between two checks of a server that is waited for.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Returns the script of mock agents, from its file or made from their single answer; `None` without either.
///
/// Returns [`RunError::Usage`] if the file cannot be read, or is not a script.
pub fn mock_script(path: Option<&Path>, answer: Option<&str>) -> Result<Option<String>, RunError> {
    if let Some(path) = path {
        let script = read(path)?;
        let parsed = script.parse::<MockScript>();
        parsed.map_err(|e| RunError::Usage(format!("`{}`: {e}", path.display())))?;
        return Ok(Some(script));
    }
    Ok(answer.map(|answer| serde_json::json!({"policy": "honest", "answer": answer}).to_string()))
}

/// Starts the requested server, if there is one, and writes its address into `chosen`.
pub async fn launch(
    command: Option<&LaunchCommand>,
    chosen: &mut Chosen,
    file: &FileConfig,
    log: &Path,
    reporter: &dyn Reporter,
) -> Result<Option<LaunchedServer>, RunError> {
    let Some(command) = command else { return Ok(None) };
    let spinner = reporter.wait_for(&format!("starting {command}; its log is {}", log.display()));
    let timeouts = file.timeouts.unwrap_or_default();
    let keys = file.key_variables();
    let server =
        LaunchedServer::start(command, log, timeouts, keys, |after| spinner.set_elapsed(after)).await?;
    spinner.finish(&format!("the server is ready at {}", server.base_url()));
    chosen.launched = Some(server.base_url().to_owned());
    Ok(Some(server))
}

/// Finds one endpoint for each agent, the arbiter's last. Waits for a server that is not up yet, if that was requested.
///
/// Returns [`RunError`] if a server or a model is missing.
pub async fn find_servers(
    chosen: &Chosen,
    file: &FileConfig,
    roleset: &Roleset,
    reporter: &dyn Reporter,
) -> Result<Vec<Endpoint>, RunError> {
    let Some(patience) = chosen.wait else { return Ok(resolve_endpoints(chosen, file, roleset).await?) };
    let began = Instant::now();
    let mut spinner: Option<Box<dyn Reporter + '_>> = None;
    loop {
        let why = match resolve_endpoints(chosen, file, roleset).await {
            Ok(endpoints) => match find_absent(&endpoints).await {
                None => {
                    if let Some(spinner) = spinner {
                        spinner.finish("the server is up");
                    }
                    return Ok(endpoints);
                }
                Some(why) => why.into(),
            },
            Err(why) if is_absent(&why) => why,
            Err(why) => return Err(why.into()),
        };
        if began.elapsed() >= patience {
            if let Some(spinner) = spinner {
                spinner.finish("the server did not come up");
            }
            return Err(why.into());
        }
        let spinner = spinner.get_or_insert_with(|| reporter.wait_for("waiting for the server"));
        spinner.status(&escape::terminal(&why.to_string()));
        spinner.set_elapsed(began.elapsed());
        tokio::time::sleep(ASK_EVERY.min(patience.saturating_sub(began.elapsed()))).await;
    }
}

/// Returns why one of these servers cannot be asked yet, if one cannot.
async fn find_absent(endpoints: &[Endpoint]) -> Option<ProviderError> {
    for endpoint in endpoints {
        if let Endpoint::OpenAi(endpoint) = endpoint
            && let Ok(server) = OpenAi::new((**endpoint).clone())
            && let Err(why) = server.info().await
            && is_not_there(&why)
        {
            return Some(why);
        }
    }
    None
}

/// Returns whether the error may pass once a server is up.
fn is_absent(why: &ConfigError) -> bool {
    matches!(why, ConfigError::NoServer { .. })
        || matches!(why, ConfigError::Provider(why) if is_not_there(why))
}

fn is_not_there(why: &ProviderError) -> bool {
    why.is_loading() || matches!(why, ProviderError::Unreachable { .. } | ProviderError::TimedOut { .. })
}

/// Refuses a cost limit that could never take effect because a price is missing.
///
/// Returns [`RunError::Usage`], with the missing lines of configuration.
pub fn check_prices(limits: Limits, endpoints: &[Endpoint]) -> Result<(), RunError> {
    if limits.cost_micro_usd_max.is_none() {
        return Ok(());
    }
    match endpoints.iter().find(|endpoint| endpoint.price().is_none()) {
        None => Ok(()),
        Some(endpoint) => {
            let label = endpoint.label();
            Err(RunError::Usage(format!(
                "--max-cost needs the price of {label}; add it to consensus.toml, such as\n\n  [prices.\"MODEL\"]\n  prompt = 0.15      # US dollars per million tokens\n  completion = 0.60"
            )))
        }
    }
}
