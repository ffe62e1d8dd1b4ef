//! The models that a server lists, compared with the one that was named, before any request to the model.
//!
//! The input is an endpoint. The output is the endpoint with the model that answers, or the nearest names. A name is refused only where
//! the server goes by the names that it lists: llama.cpp answers to any name, and a router knows more models than it lists. There, a
//! name that is not listed leads to a warning.

use std::time::Duration;

use super::error::{ConfigError, did_you_mean};
use crate::provider::{OpenAi, ServerInfo};
use protocol::core::{Endpoint, Listing, OpenAiEndpoint, bare_model};
use protocol::text::escape;

/// The time that a list may take; a list that does not come decides nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most names that are shown.
const SHOWN_MAX: usize = 8;

/// The tag that Ollama appends to a name without one.
const IMPLIED_TAG: &str = ":latest";

/// Fills in the model of an endpoint, as its server lists it.
///
/// Returns [`ConfigError::Usage`] with the nearest names if the server would not know the model.
pub(super) async fn look_up_model(endpoint: &mut OpenAiEndpoint) -> Result<(), ConfigError> {
    let server = OpenAi::new(endpoint.clone())?;
    let Ok(Ok(info)) = tokio::time::timeout(PATIENCE, server.info()).await else { return Ok(()) };
    endpoint.listing = match (find_listed(&info, &endpoint.model), info.models.as_slice()) {
        (_, []) => Listing::Unknown,
        (Some(name), _) => Listing::As(root_of(&info, name)),
        (None, _) if info.names_decide => return Err(refuse_model(&info, endpoint)),
        (None, [only]) => Listing::Only(root_of(&info, only)),
        (None, _) => Listing::Absent,
    };
    if let Some(unlisted) = Endpoint::OpenAi(Box::new(endpoint.clone())).unlisted() {
        let models = escape::one_line(&list_models(&info));
        tracing::warn!("{}; it lists {models}", escape::one_line(&unlisted));
    }
    Ok(())
}

fn root_of(info: &ServerInfo, name: &str) -> String {
    info.roots.get(name).map_or(name, String::as_str).to_owned()
}

/// Returns the name in the list that is this model.
fn find_listed<'a>(info: &'a ServerInfo, model: &str) -> Option<&'a str> {
    let exact = info.models.iter().find(|listed| {
        *listed == model || listed.strip_suffix(IMPLIED_TAG).is_some_and(|listed| listed == model)
    });
    if let Some(listed) = exact {
        return Some(listed);
    }
    // Gemini lists `models/gemini-2.5-flash`, and is asked for `gemini-2.5-flash`.
    let mut same = info.models.iter().filter(|listed| bare_model(listed) == bare_model(model));
    match (same.next(), same.next()) {
        (Some(listed), None) => Some(listed),
        (Some(_), Some(_)) | (None, _) => None,
    }
}

fn refuse_model(info: &ServerInfo, endpoint: &OpenAiEndpoint) -> ConfigError {
    let hint = did_you_mean(&endpoint.model, info.models.iter().map(String::as_str));
    ConfigError::Usage(escape::one_line(&format!(
        "{} has no model `{}`; it lists {}; --no-model-check calls it anyway{hint}",
        endpoint.base_url,
        endpoint.model,
        list_models(info),
    )))
}

/// Returns the first names that a server lists, and the number of the others.
fn list_models(info: &ServerInfo) -> String {
    let shown: Vec<String> = info.models.iter().take(SHOWN_MAX).map(|model| format!("`{model}`")).collect();
    let more = info.models.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_name_is_the_same_model() {
        let info = |models: &[&str]| ServerInfo {
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            ..ServerInfo::default()
        };
        for (models, model, expected) in [
            (&["a", "b"][..], "b", Some("b")),
            (&["llama3.1:latest"], "llama3.1", Some("llama3.1:latest")),
            (&["llama3.1:8b"], "llama3.1", None),
            (&["models/gemini-2.5-flash", "models/x"], "gemini-2.5-flash", Some("models/gemini-2.5-flash")),
            (&["one/x", "two/x"], "x", None),
            (&["/models/Qwen2.5.gguf"], "qwen2.5", Some("/models/Qwen2.5.gguf")),
            (&[], "x", None),
        ] {
            assert_eq!(find_listed(&info(models), model), expected, "{model} of {models:?}");
        }
    }
}
