//! An explanation of each value with which a model is called: its origin, for people who ask why a server is called. Nothing is
//! decided here.

use super::bedrock;
use super::chosen::Chosen;
use super::document::Setting;
use super::endpoints::{ModelRef, known_providers, place};
use super::error::ConfigError;
use super::file::FileConfig;
use super::origin::{Origin, Sourced};
use protocol::core::{Endpoint, OpenAiEndpoint};

/// The settings of files that apply to every server.
pub(super) const COMMON: [&str; 6] =
    ["stream", "retries", "calls_at_once", "leave_out", "timeouts", "allow_http"];

/// Returns every value with which an endpoint is called, with its origin; empty for scripted agents.
///
/// `own` is the model that the roleset names for the agent.
///
/// # Errors
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
    let mut told = vec![Sourced::new("model", &endpoint.model(), origin)];
    match endpoint {
        Endpoint::Mock(_) | Endpoint::Bank(_) => return Ok(Vec::new()),
        Endpoint::OpenAi(endpoint) => of_server(chosen, file, provider.as_deref(), endpoint, &mut told),
        Endpoint::Bedrock(endpoint) => told.extend(bedrock::explain(endpoint, file)),
    }
    told.extend(of_flags(chosen));
    let known: Vec<String> = told.iter().map(|value| value.name.clone()).collect();
    let holds = |setting: &&Setting| {
        let keys: Vec<&str> = setting.keys.iter().map(String::as_str).collect();
        let is_of_provider = match keys[..] {
            ["providers", name, ..] => provider.as_deref() == Some(name) && chosen.base_url.is_none(),
            _ => COMMON.contains(&keys[0]),
        };
        is_of_provider && !known.contains(&setting.name())
    };
    told.extend(file.settings().filter(holds).map(Sourced::from_setting));
    Ok(told)
}

/// Adds the address of a server, the command that started it, and the name of its key.
pub(super) fn of_server(
    chosen: &Chosen,
    file: &FileConfig,
    provider: Option<&str>,
    endpoint: &OpenAiEndpoint,
    told: &mut Vec<Sourced>,
) {
    let place = place(chosen, file, provider);
    let from = if place.base_url.is_empty() { Origin::Port } else { place.url_from };
    // A provider's own setting has a longer name.
    let name = |key: &str| match (provider, &from) {
        (Some(name), Origin::File(_)) => super::document::dotted(["providers", name, key]),
        _ => key.to_owned(),
    };
    told.push(Sourced::new(&name("base_url"), &endpoint.base_url, from.clone()));
    if let Some(command) = chosen.launch.as_ref().or(file.launch.as_ref()).filter(|_| endpoint.launched) {
        let given = chosen.launch.as_ref().map(|_| Origin::Flag("--launch"));
        let origin = given.unwrap_or_else(|| Origin::of_setting(file, ["launch"]));
        told.push(Sourced::new("launch", command, origin));
    }
    if let Some(variable) = &endpoint.api_key_env {
        told.push(Sourced::new(&name("api_key_env"), variable, place.key_from));
    }
    if let Some(path) = &endpoint.api_key_file {
        told.push(Sourced::new(&name("api_key_file"), path, place.file_from));
    }
}

/// Returns the values from flags that apply to every server.
pub(super) fn of_flags(chosen: &Chosen) -> Vec<Sourced> {
    let stream = chosen.no_stream.then(|| Sourced::new("stream", &false, Origin::Flag("--no-stream")));
    let http = chosen.allow_http.then(|| Sourced::new("allow_http", &true, Origin::Flag("--allow-http")));
    let total = chosen
        .timeout
        .map(|total| Sourced::new("timeouts.total_ms", &total.as_millis(), Origin::Flag("--timeout")));
    stream.into_iter().chain(http).chain(total).collect()
}
