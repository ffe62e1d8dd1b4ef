//! The check that a server has a model, before any request to the model.
//!
//! The input is an endpoint whose model was named. The output is nothing, or the nearest names. The check applies only to servers
//! that list their models and go by those names. llama.cpp answers to any name, and a router knows more models than it lists.

use std::time::Duration;

use super::error::ConfigError;
use super::nearest::did_you_mean;
use crate::core::OpenAiEndpoint;
use crate::provider::{OpenAi, ServerInfo};
use crate::text::escape;

/// The time that a list may take; a list that does not come decides nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most names that are shown.
const SHOWN_MAX: usize = 8;

/// The tag that Ollama appends to a name without one.
const IMPLIED_TAG: &str = ":latest";

/// Refuses a model that the server would not know.
///
/// # Errors
///
/// Returns [`ConfigError::Usage`] with the nearest names.
pub(super) async fn check_name(endpoint: &OpenAiEndpoint) -> Result<(), ConfigError> {
    let asked = OpenAi::new(endpoint.clone())?;
    let Ok(Ok(info)) = tokio::time::timeout(PATIENCE, asked.info()).await else { return Ok(()) };
    if is_known(&info, &endpoint.model) {
        return Ok(());
    }
    let models = info.models.iter().map(String::as_str);
    let hint = did_you_mean(&endpoint.model, models.clone());
    let shown: Vec<String> = models.take(SHOWN_MAX).map(|model| format!("`{model}`")).collect();
    let more = info.models.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(ConfigError::Usage(escape::one_line(&format!(
        "{} has no model `{}`; it lists {}{more}; --no-model-check calls it anyway{hint}",
        endpoint.base_url,
        endpoint.model,
        shown.join(", "),
    ))))
}

fn is_known(info: &ServerInfo, model: &str) -> bool {
    let is_it = |listed: &String| {
        listed == model || listed.strip_suffix(IMPLIED_TAG).is_some_and(|listed| listed == model)
    };
    !info.names_decide || info.models.is_empty() || info.models.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_list_that_decides_refuses_a_name() {
        let info = |names_decide, models: &[&str]| ServerInfo {
            names_decide,
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            ..ServerInfo::default()
        };
        assert!(is_known(&info(true, &["a", "b"]), "b"));
        assert!(is_known(&info(true, &["llama3.1:latest"]), "llama3.1"), "Ollama's tag is implied");
        assert!(!is_known(&info(true, &["llama3.1:8b"]), "llama3.1"));
        assert!(is_known(&info(false, &["a"]), "x"), "llama.cpp answers to any name");
        assert!(is_known(&info(true, &[]), "x"), "no list decides nothing");
    }
}
