//! The script of mock agents, and the prices that a cost limit needs: both are known before a run starts.

use std::path::Path;

use super::error::RunError;
use super::task::read;
use crate::core::Endpoint;
use crate::journal::Limits;
use crate::provider::MockScript;

/// Returns the script of mock agents, from its file or made of the one answer that they give; none without either.
///
/// # Errors
///
/// [`RunError::Usage`] if the file cannot be read, or holds no script.
pub fn mock_script(path: Option<&Path>, answer: Option<&str>) -> Result<Option<String>, RunError> {
    if let Some(path) = path {
        let script = read(path)?;
        let parsed = script.parse::<MockScript>();
        parsed.map_err(|e| RunError::Usage(format!("`{}`: {e}", path.display())))?;
        return Ok(Some(script));
    }
    Ok(answer.map(|answer| serde_json::json!({"policy": "honest", "answer": answer}).to_string()))
}

/// Refuses a cost limit that could never bind because a price is missing.
///
/// # Errors
///
/// [`RunError::Usage`], with the lines of configuration that are missing.
pub fn check_prices(limits: Limits, endpoints: &[Endpoint]) -> Result<(), RunError> {
    let unpriced = endpoints.iter().find(|e| e.price().is_none());
    match unpriced.filter(|_| limits.cost_micro_usd_max.is_some()) {
        None => Ok(()),
        Some(endpoint) => {
            let label = endpoint.label();
            Err(RunError::Usage(format!(
                "--max-cost needs the price of {label}; add it to consensus.toml, such as\n\n  [prices.\"MODEL\"]\n  prompt = 0.15      # US dollars per million tokens\n  completion = 0.60"
            )))
        }
    }
}
