//! Where each value came from by which a model is called: a flag, a variable, a file, or the program itself.
//!
//! In: what was chosen, what the files say, and the endpoint that came of it. Out: each value with its origin, for
//! people who ask why a server is called. Nothing is decided here: the order of precedence is that of
//! [`resolve_endpoints`], and the origin of an address or key is noted where it is chosen.
//!
//! [`resolve_endpoints`]: super::resolve_endpoints

use std::fmt;

use super::bedrock;
use super::document::Setting;
use super::endpoints::{Chosen, ModelRef, known_providers, place};
use super::error::ConfigError;
use super::file::FileConfig;
use crate::core::{Endpoint, OpenAiEndpoint};

/// Settings of files that hold for every server.
const COMMON: [&str; 5] = ["stream", "retries", "calls_at_once", "timeouts", "allow_http"];

/// What set a value.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Origin {
    /// A flag of the command line.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// A configuration file, with the line.
    File(String),
    /// The roleset.
    Roleset,
    /// AWS's own configuration file.
    AwsFile,
    /// The server that was started for this.
    Launched,
    /// The list of models of the server.
    Listed,
    /// A server that answered on one of the usual ports.
    Port,
    /// The program.
    #[default]
    BuiltIn,
}

impl Origin {
    /// Returns the origin of a value that a flag or its variable gave.
    #[must_use]
    pub fn given(flag: &'static str, variable: &'static str, value: &str) -> Self {
        // A flag that repeats its variable changes nothing.
        if std::env::var(variable).is_ok_and(|set| set == value) {
            Self::Variable(variable)
        } else {
            Self::Flag(flag)
        }
    }

    /// Returns the origin of a value that a file may have set, and otherwise the program.
    #[must_use]
    pub fn of_setting<'a>(file: &FileConfig, keys: impl IntoIterator<Item = &'a str>) -> Self {
        file.setting(keys).map_or(Self::BuiltIn, |setting| Self::File(setting.place()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File(place) => f.write_str(place),
            Self::Roleset => f.write_str("the roleset"),
            Self::AwsFile => f.write_str("the configuration file of AWS"),
            Self::Launched => f.write_str("the server that was started"),
            Self::Listed => f.write_str("the server's list of models"),
            Self::Port => f.write_str("a usual port of this machine"),
            Self::BuiltIn => f.write_str("the program's default"),
        }
    }
}

/// A value with its origin.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sourced {
    /// The setting's name, as a configuration file has it.
    pub name: String,
    /// Its value.
    pub value: String,
    /// What set it.
    pub origin: Origin,
}

impl Sourced {
    pub(super) fn new(name: &str, value: &impl ToString, origin: Origin) -> Self {
        Self { name: name.to_owned(), value: value.to_string(), origin }
    }

    fn of(setting: &Setting) -> Self {
        Self::new(&setting.name(), &setting.value, Origin::File(setting.place()))
    }
}

/// Returns every value by which an endpoint is called, with its origin; none for scripted agents.
///
/// `own` is the model that the roleset names for the agent.
///
/// # Errors
///
/// [`ConfigError::Usage`] if the reference names no known provider.
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
        Endpoint::Mock(_) => return Ok(Vec::new()),
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
    told.extend(file.settings().filter(holds).map(Sourced::of));
    Ok(told)
}

/// Adds the address of a server, the command that started it, and the name of its key.
fn of_server(
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

/// Returns what flags say about every server.
fn of_flags(chosen: &Chosen) -> Vec<Sourced> {
    let stream = chosen.no_stream.then(|| Sourced::new("stream", &false, Origin::Flag("--no-stream")));
    let http = chosen.allow_http.then(|| Sourced::new("allow_http", &true, Origin::Flag("--allow-http")));
    let total = chosen
        .timeout
        .map(|total| Sourced::new("timeouts.total_ms", &total.as_millis(), Origin::Flag("--timeout")));
    stream.into_iter().chain(http).chain(total).collect()
}
