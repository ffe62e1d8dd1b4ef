//! The way from model references to endpoints: the server, the model and the key.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use reqwest::Url;

use super::bedrock::bedrock_endpoint;
use super::chosen::{Chosen, RETRIES, require_safe_url};
use super::error::ConfigError;
use super::file::FileConfig;
use super::model_names::look_up_model;
use super::origin::Origin;
use super::roleset::Roleset;
use crate::provider::launch::LaunchCommand;
use crate::provider::{Bank, MockScript, OpenAi, is_loopback};
use protocol::core::{BEDROCK, Dialect, Endpoint, Listing, OpenAiEndpoint, PRESETS, Preset, Price};

/// The time that a local port has to answer if no server is named.
const PROBE: Duration = Duration::from_millis(400);

/// The preset whose name stands for every server of its kind.
const OPENAI: &str = "openai";

/// The variable that holds the key of the server that `OPENAI_BASE_URL` names.
const OPENAI_API_KEY: &str = "OPENAI_API_KEY";

/// The variable that names the server, as other programs read it.
const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";

/// A model reference: `provider:model`, or a bare model name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ModelRef {
    /// The provider's name, if it is given.
    pub provider: Option<String>,
    /// The model's name; empty for any model that the server serves.
    pub model: String,
}

impl ModelRef {
    /// Parses a reference; `known` are the names that may come before the colon.
    ///
    /// A colon after anything else belongs to the model's name, as in `llama3.1:8b`.
    ///
    /// Returns [`ConfigError::Usage`] if the part before the colon looks like a misspelt provider.
    pub fn parse(text: &str, known: &[&str]) -> Result<Self, ConfigError> {
        let Some((head, model)) = text.split_once(':') else {
            return Ok(Self { provider: None, model: text.to_owned() });
        };
        if known.contains(&head) {
            return Ok(Self { provider: Some(head.to_owned()), model: model.to_owned() });
        }
        // One letter off is a slip; `llama3` is a model, not a misspelt `ollama`.
        match known.iter().find(|name| strsim::damerau_levenshtein(head, name) == 1) {
            Some(name) => {
                let message =
                    format!("model `{text}`: there is no provider `{head}`; did you mean `{name}:{model}`?");
                Err(ConfigError::Usage(message))
            }
            None => Ok(Self { provider: None, model: text.to_owned() }),
        }
    }
}

/// Returns one endpoint for each agent of the roleset, the arbiter's last.
///
/// Asks a server for its list of models if no model is named, and looks on the usual local ports if no server is named.
pub async fn resolve_endpoints(
    chosen: &Chosen,
    file: &FileConfig,
    roleset: &Roleset,
) -> Result<Vec<Endpoint>, ConfigError> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    let mut found_server = None;
    let scripts = assign_scripts(chosen, file, roleset)?;
    for (agent, script) in roleset.agents.iter().chain(&roleset.arbiter).zip(scripts) {
        if let Some(script) = script {
            endpoints.push(Endpoint::Mock { script });
            continue;
        }
        let reference = chosen.model.as_ref().or(agent.model.as_ref()).or(file.model.as_ref());
        let reference = reference.map_or("", String::as_str);
        if let Some(folder) = &chosen.bank {
            endpoints.push(bank_endpoint(folder, file, reference)?);
            continue;
        }
        if let Some(model) = bedrock_model(file, reference)? {
            endpoints.push(Endpoint::Bedrock(Box::new(bedrock_endpoint(chosen, file, &model)?)));
            continue;
        }
        let mut endpoint = draft(chosen, file, reference)?;
        if endpoint.base_url.is_empty() {
            endpoint.base_url = match &found_server {
                Some(url) => String::clone(url),
                None => probe(&endpoint).await?,
            };
            found_server = Some(endpoint.base_url.clone());
        }
        for url in endpoint.base_urls() {
            require_safe_url(url, chosen.allows_http(file))?;
        }
        if endpoint.model.is_empty() {
            let earlier = open_ai(&endpoints).find(|earlier| earlier.base_url == endpoint.base_url);
            endpoint.model = match earlier {
                Some(earlier) => earlier.model.clone(),
                None => only_model(&endpoint).await?,
            };
        }
        let known = open_ai(&endpoints)
            .find(|known| known.base_url == endpoint.base_url && known.model == endpoint.model);
        if let Some(known) = known {
            endpoint.listing = known.listing.clone();
        } else if chosen.checks_names {
            look_up_model(&mut endpoint).await?;
        }
        endpoint.price = file.price_of(reference, endpoint.provider(), &endpoint.model);
        endpoints.push(Endpoint::OpenAi(Box::new(endpoint)));
    }
    Ok(endpoints)
}

/// Returns the endpoints at OpenAI-compatible servers.
pub(super) fn open_ai(endpoints: &[Endpoint]) -> impl Iterator<Item = &OpenAiEndpoint> {
    endpoints.iter().filter_map(|endpoint| match endpoint {
        Endpoint::OpenAi(endpoint) => Some(&**endpoint),
        Endpoint::Bedrock(_) | Endpoint::Mock { .. } | Endpoint::Bank { .. } => None,
    })
}

/// Returns the endpoint of a model whose replies come from a bank; without a reference, that of the bank's first run.
fn bank_endpoint(folder: &Path, file: &FileConfig, reference: &str) -> Result<Endpoint, ConfigError> {
    let first = Bank::first_endpoint(folder)?;
    let model = ModelRef::parse(reference, &known_providers(file))?.model;
    let is_first = model.is_empty() || model == first.model();
    let price = if is_first { first.price() } else { file.price_of(reference, "", &model) };
    let model = if model.is_empty() { first.model().to_owned() } else { model };
    Ok(Endpoint::Bank { folder: folder.display().to_string(), model, price })
}

/// Returns the price of a model by its reference alone, before any server is asked for its model.
///
/// Returns [`ConfigError::Usage`] if the reference names no known provider.
pub fn expected_price(
    chosen: &Chosen,
    file: &FileConfig,
    reference: &str,
) -> Result<Option<Price>, ConfigError> {
    if let Some(model) = bedrock_model(file, reference)? {
        return Ok(file.price_of(reference, BEDROCK, &model));
    }
    let endpoint = draft(chosen, file, reference)?;
    Ok(file.price_of(reference, endpoint.provider(), &endpoint.model))
}

/// Returns each agent's script, the arbiter's last; `None` for agents that a model plays.
///
/// A script may play some agents and leave the others to a server, but only to a named one: a forgotten rule must not reach out into
/// the network.
///
/// Returns [`ConfigError::Usage`] if a script has a rule for an unknown agent, or leaves an agent without script and server.
fn assign_scripts(
    chosen: &Chosen,
    file: &FileConfig,
    roleset: &Roleset,
) -> Result<Vec<Option<String>>, ConfigError> {
    let names: Vec<&str> = roleset.agents.iter().chain(&roleset.arbiter).map(|a| a.name.as_str()).collect();
    let Some(text) = &chosen.mock_script else { return Ok(vec![None; names.len()]) };
    let script: MockScript = text.parse().map_err(ConfigError::Usage)?;
    if let Some(stranger) = script.agents().find(|agent| !names.contains(agent)) {
        let known = names.join(", ");
        return Err(ConfigError::Usage(format!(
            "the mock script has a rule for `{stranger}`, but the roleset's agents are {known}; name the right roleset with --roleset"
        )));
    }
    let has_server = chosen.model.is_some()
        || chosen.base_url.is_some()
        || chosen.launch.is_some()
        || file.launch.is_some();
    // An arbiter is asked only on deadlock, so most scripts have no rule for it.
    let unscripted = names.iter().take(roleset.agents.len()).find(|name| !script.plays(name));
    if let Some(name) = unscripted
        && !has_server
    {
        return Err(ConfigError::Usage(format!(
            "the mock script has no rule for `{name}`; add one, or name a server for it with --model, --base-url or --launch"
        )));
    }
    let mut scripts = Vec::new();
    for name in names {
        scripts.push(if script.plays(name) || !has_server { Some(text.clone()) } else { None });
    }
    Ok(scripts)
}

/// Returns the command of the server to start for a run of this roleset, if there is one.
///
/// A flag comes first, then the server that the environment or `--base-url` names instead, then the file.
///
/// Returns [`ConfigError::Usage`] or [`ConfigError::Launch`].
pub fn launch_command(
    chosen: &Chosen,
    file: &FileConfig,
    roleset: Option<&Roleset>,
) -> Result<Option<LaunchCommand>, ConfigError> {
    if let Some(roleset) = roleset
        && assign_scripts(chosen, file, roleset)?.iter().all(Option::is_some)
    {
        return Ok(None);
    }
    let is_named = chosen.base_url.is_some() || openai_base_url().is_some();
    let from_file = if is_named { None } else { file.launch.as_ref() };
    let Some(text) = chosen.launch.as_ref().or(from_file) else { return Ok(None) };
    let reference = chosen.model.as_ref().or(file.model.as_ref()).map_or("", String::as_str);
    let ModelRef { provider, model } = ModelRef::parse(reference, &known_providers(file))?;
    match (provider, &chosen.launch) {
        (None, _) => {
            let model = if model.is_empty() { None } else { Some(model.as_str()) };
            Ok(Some(LaunchCommand::parse(text, model)?))
        }
        (Some(_), None) => Ok(None),
        (Some(provider), Some(_)) => Err(ConfigError::Usage(format!(
            "--launch starts a server of its own, and `{provider}:` in --model names another; leave one of them out"
        ))),
    }
}

pub(super) fn known_providers(file: &FileConfig) -> Vec<&str> {
    let known = PRESETS.iter().map(|p| p.name).chain([BEDROCK]);
    known.chain(file.providers.keys().map(String::as_str)).collect()
}

/// Returns the model of a reference to Amazon Bedrock; `None` if it names another provider.
fn bedrock_model(file: &FileConfig, reference: &str) -> Result<Option<String>, ConfigError> {
    let ModelRef { provider, model } = ModelRef::parse(reference, &known_providers(file))?;
    let is_bedrock = provider.as_deref() == Some(BEDROCK) && !file.providers.contains_key(BEDROCK);
    Ok(if is_bedrock { Some(model) } else { None })
}

/// Fills in everything that is known without asking a server; the base URL may remain empty.
fn draft(chosen: &Chosen, file: &FileConfig, reference: &str) -> Result<OpenAiEndpoint, ConfigError> {
    let ModelRef { provider, model } = ModelRef::parse(reference, &known_providers(file))?;
    let place = find_place(chosen, file, provider.as_deref());
    let launched = provider.is_none() && chosen.launched.is_some();
    // A launched server is asked for the name of its one model, which may be a file name.
    let is_its_own = chosen.model.as_ref().or(file.model.as_ref()).is_some_and(|own| own == reference);
    let model = if launched && is_its_own { String::new() } else { model };
    let urls: Vec<&str> = place.base_url.split(',').map(str::trim).collect();
    let is_here = urls.iter().all(|url| Url::parse(url).is_ok_and(|url| is_loopback(&url)));
    let urls: Vec<&str> = urls.iter().map(|url| url.trim_end_matches('/')).collect();
    Ok(OpenAiEndpoint {
        base_url: urls.join(","),
        model,
        listing: Listing::Unknown,
        api_key_env: place.api_key_env,
        api_key_file: place.api_key_file,
        launched,
        dialect: place.dialect,
        stream: chosen.streams(file),
        retries: file.retries.unwrap_or(RETRIES),
        refused_at_once: chosen.refused_at_once && file.retries.is_none() && is_here,
        timeouts: chosen.timeouts(file),
        calls_at_once: place.calls_at_once.or(file.calls_at_once),
        price: None,
    })
}

/// A server and its key. A key goes only where the user sends it: to the URL it is configured with, never to an unknown program on a
/// usual port.
#[derive(Default)]
pub(super) struct ServerPlace {
    /// The base URL; empty if no server is named.
    pub(super) base_url: String,
    /// The origin of the base URL.
    pub(super) url_from: Origin,
    pub(super) api_key_env: Option<String>,
    /// The origin of the variable's name.
    pub(super) key_from: Origin,
    pub(super) api_key_file: Option<String>,
    /// The origin of the file's path.
    pub(super) file_from: Origin,
    pub(super) dialect: Dialect,
    pub(super) calls_at_once: Option<NonZeroU32>,
}

impl ServerPlace {
    /// Returns a server to which the user's own key goes.
    fn with_own_key(base_url: String, url_from: Origin, file: &FileConfig) -> Self {
        Self {
            base_url,
            url_from,
            api_key_env: file.api_key_env.clone().or(Some(OPENAI_API_KEY.to_owned())),
            key_from: Origin::of_setting(file, ["api_key_env"]),
            api_key_file: file.api_key_file.clone(),
            file_from: Origin::of_setting(file, ["api_key_file"]),
            ..Self::default()
        }
    }
}

/// Finds the server of a provider; without one, the server that flags, the environment or the files name.
pub(super) fn find_place(chosen: &Chosen, file: &FileConfig, provider: Option<&str>) -> ServerPlace {
    let preset = provider.and_then(|name| PRESETS.iter().find(|p| p.name == name));
    let mut dialect = preset.map(Preset::dialect).unwrap_or_default();
    dialect.leave_out.extend(file.leave_out.iter().flatten());
    if let Some(url) = &chosen.base_url {
        let url_from = Origin::given("--base-url", "CONSENSUS_BASE_URL", url);
        return ServerPlace { dialect, ..ServerPlace::with_own_key(url.clone(), url_from, file) };
    }
    if let Some((name, configured)) = provider.and_then(|name| file.providers.get_key_value(name)) {
        dialect.body.extend(configured.body.clone());
        dialect.leave_out.extend(&configured.leave_out);
        return ServerPlace {
            base_url: configured.base_url.clone(),
            url_from: Origin::of_setting(file, ["providers", name.as_str(), "base_url"]),
            api_key_env: configured.api_key_env.clone(),
            key_from: Origin::of_setting(file, ["providers", name.as_str(), "api_key_env"]),
            api_key_file: configured.api_key_file.clone(),
            file_from: Origin::of_setting(file, ["providers", name.as_str(), "api_key_file"]),
            dialect,
            calls_at_once: configured.calls_at_once,
        };
    }
    match preset {
        // `openai` is also the name of the interface. The environment says whose server it is, and another party's server is as
        // strict as most.
        Some(preset) if preset.name == OPENAI => match openai_base_url() {
            Some(url) => ServerPlace::with_own_key(url, Origin::Variable(OPENAI_BASE_URL), file),
            // A key that is configured beside a `base_url` belongs to that server.
            None if file.base_url.is_some() => ServerPlace {
                base_url: preset.base_url.to_owned(),
                api_key_env: Some(OPENAI_API_KEY.to_owned()),
                dialect,
                ..ServerPlace::default()
            },
            None => {
                let own = ServerPlace::with_own_key(preset.base_url.to_owned(), Origin::BuiltIn, file);
                ServerPlace { dialect, ..own }
            }
        },
        Some(preset) => ServerPlace {
            base_url: preset.base_url.to_owned(),
            api_key_env: preset.api_key_env.map(str::to_owned),
            dialect,
            ..ServerPlace::default()
        },
        None => unnamed_place(chosen, file),
    }
}

/// Returns the server that is meant where no provider is named.
fn unnamed_place(chosen: &Chosen, file: &FileConfig) -> ServerPlace {
    if let Some(url) = &chosen.launched {
        return ServerPlace { base_url: url.clone(), url_from: Origin::Launched, ..ServerPlace::default() };
    }
    if let Some(url) = openai_base_url() {
        return ServerPlace::with_own_key(url, Origin::Variable(OPENAI_BASE_URL), file);
    }
    match &file.base_url {
        Some(url) => ServerPlace::with_own_key(url.clone(), Origin::of_setting(file, ["base_url"]), file),
        None => ServerPlace::default(),
    }
}

fn openai_base_url() -> Option<String> {
    std::env::var(OPENAI_BASE_URL).ok().filter(|url| !url.is_empty())
}

/// Looks for a server on the usual local ports.
async fn probe(template: &OpenAiEndpoint) -> Result<String, ConfigError> {
    let mut tried = Vec::new();
    for preset in PRESETS.iter().filter(|p| p.probed) {
        let endpoint = OpenAiEndpoint { base_url: preset.base_url.to_owned(), ..template.clone() };
        let server = OpenAi::new(endpoint)?;
        if let Ok(Ok(_)) = tokio::time::timeout(PROBE, server.info()).await {
            tracing::info!("found a server at {} ({})", preset.base_url, preset.name);
            return Ok(preset.base_url.to_owned());
        }
        let port = Url::parse(preset.base_url).ok().and_then(|url| url.port()).unwrap_or(0);
        tried.push(format!("{port} {}", preset.name));
    }
    Err(ConfigError::NoServer { tried: tried.join(", ") })
}

/// Returns the only model that a server serves, or the first that it lists.
pub(super) async fn only_model(endpoint: &OpenAiEndpoint) -> Result<String, ConfigError> {
    let info = OpenAi::new(endpoint.clone())?.info().await?;
    info.models.into_iter().next().ok_or_else(|| {
        let message = format!("{} lists no model; name one with --model", endpoint.base_url);
        ConfigError::Usage(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 3] = ["openai", "ollama", "vllm"];

    #[test]
    fn model_name_colon_is_no_provider() {
        let parse = |text| ModelRef::parse(text, &KNOWN).unwrap();
        let reference = |provider: Option<&str>, model: &str| ModelRef {
            provider: provider.map(str::to_owned),
            model: model.to_owned(),
        };
        assert_eq!(parse("ollama:llama3.1:8b"), reference(Some("ollama"), "llama3.1:8b"));
        assert_eq!(parse("llama3.1:8b"), reference(None, "llama3.1:8b"));
        assert_eq!(parse("gpt-4o"), reference(None, "gpt-4o"));
        let message = ModelRef::parse("olama:x", &KNOWN).unwrap_err().to_string();
        assert!(message.contains("did you mean `ollama:x`"), "{message}");
    }

    #[test]
    fn urls_that_leak_are_refused() {
        assert!(require_safe_url("https://api.example.org/v1", false).is_ok());
        assert!(require_safe_url("http://127.0.0.1:8000/v1", false).is_ok());
        assert!(require_safe_url("http://[::1]:8000/v1", false).is_ok());
        assert!(require_safe_url("http://10.0.0.7/v1", false).is_err());
        assert!(require_safe_url("http://10.0.0.7/v1", true).is_ok());
        assert!(require_safe_url("file:///etc/passwd", true).is_err());
        let message = require_safe_url("https://me:s3cret@example.org/v1", true).unwrap_err().to_string();
        assert!(!message.contains("s3cret"), "{message}");
    }
}
