//! An explanation of each value with which a model is called: its origin, for people who ask why a server is called. Nothing is
//! decided here.

use super::bedrock;
use super::chosen::Chosen;
use super::document::{Setting, join_keys};
use super::endpoints::{ModelRef, find_place, known_providers};
use super::error::ConfigError;
use super::file::FileConfig;
use super::origin::{Origin, Sourced};
use protocol::core::{Endpoint, OpenAiEndpoint};

/// The settings of files that apply to every server.
const COMMON: [&str; 6] = ["stream", "retries", "calls_at_once", "leave_out", "timeouts", "allow_http"];

/// Returns every value with which an endpoint is called, with its origin; empty for scripted agents.
///
/// `own` is the model that the roleset names for the agent.
///
/// Returns [`ConfigError::Usage`] if the reference names no known provider.
pub fn explain(
    chosen: &Chosen,
    file: &FileConfig,
    own: Option<&str>,
    endpoint: &Endpoint,
) -> Result<Vec<Sourced>, ConfigError> {
    let (reference, origin) = match (&chosen.model, own, &file.model) {
        (Some(model), ..) => (model.as_str(), Origin::given("--model", "CONSENSUS_MODEL", model)),
        (None, Some(model), _) => (model, Origin::Roleset),
        (None, None, Some(model)) => (model.as_str(), Origin::of_setting(file, ["model"])),
        (None, None, None) => ("", Origin::Listed),
    };
    let ModelRef { provider, model } = ModelRef::parse(reference, &known_providers(file))?;
    let origin = if model.is_empty() { Origin::Listed } else { origin };
    let mut values = vec![Sourced::new("model", &endpoint.model(), origin)];
    match endpoint {
        Endpoint::Mock { .. } | Endpoint::Bank { .. } => return Ok(Vec::new()),
        Endpoint::OpenAi(endpoint) => {
            values.extend(explain_server(chosen, file, provider.as_deref(), endpoint));
        }
        Endpoint::Bedrock(endpoint) => values.extend(bedrock::explain(endpoint, file)),
    }
    values.extend(explain_flags(chosen));
    let known: Vec<String> = values.iter().map(|value| value.name.clone()).collect();
    for setting in file.settings() {
        if applies(setting, provider.as_deref(), chosen) && !known.contains(&setting.name()) {
            values.push(Sourced::from_setting(setting));
        }
    }
    Ok(values)
}

/// Returns whether a setting of a file applies to the server of this provider.
fn applies(setting: &Setting, provider: Option<&str>, chosen: &Chosen) -> bool {
    let keys: Vec<&str> = setting.keys.iter().map(String::as_str).collect();
    match keys[..] {
        ["providers", name, ..] => provider == Some(name) && chosen.base_url.is_none(),
        _ => COMMON.contains(&keys[0]),
    }
}

/// Returns the address of a server, the command that started it, and the name of its key.
fn explain_server(
    chosen: &Chosen,
    file: &FileConfig,
    provider: Option<&str>,
    endpoint: &OpenAiEndpoint,
) -> Vec<Sourced> {
    let place = find_place(chosen, file, provider);
    let from = if place.base_url.is_empty() { Origin::Port } else { place.url_from };
    // A provider's own setting has a longer name.
    let prefix = match (provider, &from) {
        (Some(name), Origin::File(_)) => join_keys(["providers", name]) + ".",
        (Some(_) | None, _) => String::new(),
    };
    let mut values = vec![Sourced::new(&format!("{prefix}base_url"), &endpoint.base_url, from)];
    if endpoint.launched {
        if let Some(command) = &chosen.launch {
            values.push(Sourced::new("launch", command, Origin::Flag("--launch")));
        } else if let Some(command) = &file.launch {
            values.push(Sourced::new("launch", command, Origin::of_setting(file, ["launch"])));
        }
    }
    if let Some(variable) = &endpoint.api_key_env {
        values.push(Sourced::new(&format!("{prefix}api_key_env"), variable, place.key_from));
    }
    if let Some(path) = &endpoint.api_key_file {
        values.push(Sourced::new(&format!("{prefix}api_key_file"), path, place.file_from));
    }
    values
}

/// Returns the values from flags that apply to every server.
fn explain_flags(chosen: &Chosen) -> Vec<Sourced> {
    let mut values = Vec::new();
    if chosen.no_stream {
        values.push(Sourced::new("stream", &false, Origin::Flag("--no-stream")));
    }
    if chosen.allow_http {
        values.push(Sourced::new("allow_http", &true, Origin::Flag("--allow-http")));
    }
    if let Some(total) = chosen.timeout {
        values.push(Sourced::new("timeouts.total_ms", &total.as_millis(), Origin::Flag("--timeout")));
    }
    values
}
