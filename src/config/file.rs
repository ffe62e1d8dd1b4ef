//! Configuration files: `./consensus.toml` and the user's own.
//!
//! The input is the text of a file. The output is one [`FileConfig`], which records the place of each setting. The list of files,
//! and which of their settings count, are not decided here but in the module `sources`.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::document::{Setting, TomlDocument, join_keys};
use super::error::ConfigError;
use super::prices::{PriceConfig, listed_price};
use super::roleset::CHECK_TIMEOUT_MS;
use crate::sandbox::Access;
use protocol::CheckCommand;
use protocol::core::{OptionalParameter, Price, Timeouts};

/// The fields of a request that the program sets itself.
const OWN_FIELDS: [&str; 9] = [
    "model",
    "messages",
    "temperature",
    "seed",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
    "stream",
    "stream_options",
];

/// The content of a configuration file. Everything is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileConfig {
    pub model: Option<String>,
    /// The default base URL, up to and including `/v1`.
    pub base_url: Option<String>,
    /// The server to start for each run: a known one, or a command with `{port}` and `{model}`.
    pub launch: Option<String>,
    /// The environment variable that holds the API key.
    pub api_key_env: Option<String>,
    /// The file that holds the API key.
    pub api_key_file: Option<String>,
    pub roleset: Option<String>,
    pub rolesets_dir: Option<PathBuf>,
    /// The folder for run folders.
    pub runs_dir: Option<PathBuf>,
    pub stream: Option<bool>,
    /// The most repetitions of a request after a fault that may pass.
    pub retries: Option<u32>,
    /// The most calls that a run makes to one server at once.
    pub calls_at_once: Option<NonZeroU32>,
    /// The parameters that are left out of each request to any OpenAI-compatible server.
    pub leave_out: Option<BTreeSet<OptionalParameter>>,
    /// Whether plain HTTP to other machines is allowed.
    pub allow_http: Option<bool>,
    pub timeouts: Option<Timeouts>,
    /// Further providers, or other addresses of the known ones, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The settings for Amazon Bedrock.
    pub bedrock: BedrockConfig,
    /// A command that every final text must pass.
    pub check: Option<String>,
    /// The longest time for that command, in seconds.
    pub check_timeout_s: Option<u64>,
    /// What commands in the sandbox may do.
    pub sandbox: SandboxConfig,
    /// The prices in US dollars per million tokens, by `provider:name` as a model is referred to, or by its name.
    pub prices: BTreeMap<String, PriceConfig>,
    /// Every setting with its place, by its dotted name.
    #[serde(skip)]
    settings: BTreeMap<String, Setting>,
    /// Every variable that either file names for a key.
    #[serde(skip)]
    key_variables: BTreeSet<String>,
}

/// One provider of a configuration file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The base URL, up to and including `/v1`.
    pub base_url: String,
    /// The environment variable that holds the API key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// The file that holds the API key.
    #[serde(default)]
    pub api_key_file: Option<String>,
    /// The most calls that a run makes there at once.
    #[serde(default)]
    pub calls_at_once: Option<NonZeroU32>,
    /// Further fields of each request's body, such as `chat_template_kwargs`. They must not hold secrets, since they are recorded.
    #[serde(default)]
    pub body: Map<String, Value>,
    /// The parameters that are left out of each request.
    #[serde(default)]
    pub leave_out: BTreeSet<OptionalParameter>,
}

impl FileConfig {
    pub(super) fn parse(document: &TomlDocument) -> Result<Self, ConfigError> {
        Self::parse_some(document, |_| true)
    }

    /// Parses the outermost keys that `takes` accepts.
    pub(super) fn parse_some(
        document: &TomlDocument,
        takes: impl Fn(&str) -> bool,
    ) -> Result<Self, ConfigError> {
        let mut file: Self = document.parse(&takes)?;
        for (name, provider) in &file.providers {
            if let Some(field) = OWN_FIELDS.iter().find(|field| provider.body.contains_key(**field)) {
                let why = format!("providers.{name}.body: `{field}` is set by the program");
                return Err(ConfigError::File { path: document.path().to_owned(), why });
            }
        }
        let settings = document.settings()?.into_iter().filter(|setting| takes(&setting.keys[0]));
        file.settings = settings.map(|setting| (setting.name(), setting)).collect();
        let of_providers = file.providers.values().filter_map(|provider| provider.api_key_env.clone());
        file.key_variables = file.api_key_env.iter().cloned().chain(of_providers).collect();
        Ok(file)
    }

    /// Returns the setting with these keys, if a file has it.
    pub(super) fn setting<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Option<&Setting> {
        self.settings.get(&join_keys(keys))
    }

    /// Returns every setting of both files that counts, with its place.
    pub fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.settings.values()
    }

    /// Returns the check of final texts, if either file has one.
    pub fn check_command(&self) -> Option<CheckCommand> {
        let timeout_ms = self.check_timeout_s.map_or(CHECK_TIMEOUT_MS, |s| s.saturating_mul(1000));
        self.check.clone().map(|command| CheckCommand { command, timeout_ms })
    }

    /// Returns the environment variables that either file names for an API key.
    pub fn key_variables(&self) -> &BTreeSet<String> {
        &self.key_variables
    }

    /// Returns the price of a model: the one written here under its reference or its name alone, else the public price of this
    /// provider.
    pub fn price_of(&self, reference: &str, provider: &str, model: &str) -> Option<Price> {
        let own = self.prices.get(reference).or_else(|| self.prices.get(model));
        own.map(|price| price.0).or_else(|| listed_price(provider, model))
    }

    /// Fills in from `other` the settings that this file does not have.
    pub(super) fn merge_over(self, other: Self) -> Self {
        let mut providers = other.providers;
        providers.extend(self.providers);
        let mut prices = other.prices;
        prices.extend(self.prices);
        let replaced: BTreeSet<Vec<String>> =
            self.settings.values().map(|setting| replaced_keys(setting).to_vec()).collect();
        let mut settings = other.settings;
        settings.retain(|_, setting| !replaced.contains(replaced_keys(setting)));
        settings.extend(self.settings);
        let key_variables = self.key_variables.into_iter().chain(other.key_variables).collect();
        Self {
            model: self.model.or(other.model),
            // A file that names a server does not mean the server that another file starts.
            launch: self.launch.or(if self.base_url.is_some() { None } else { other.launch }),
            base_url: self.base_url.or(other.base_url),
            api_key_env: self.api_key_env.or(other.api_key_env),
            api_key_file: self.api_key_file.or(other.api_key_file),
            roleset: self.roleset.or(other.roleset),
            rolesets_dir: self.rolesets_dir.or(other.rolesets_dir),
            runs_dir: self.runs_dir.or(other.runs_dir),
            stream: self.stream.or(other.stream),
            retries: self.retries.or(other.retries),
            calls_at_once: self.calls_at_once.or(other.calls_at_once),
            leave_out: self.leave_out.or(other.leave_out),
            allow_http: self.allow_http.or(other.allow_http),
            timeouts: self.timeouts.or(other.timeouts),
            providers,
            bedrock: BedrockConfig {
                region: self.bedrock.region.or(other.bedrock.region),
                profile: self.bedrock.profile.or(other.bedrock.profile),
                base_url: self.bedrock.base_url.or(other.bedrock.base_url),
            },
            // A file that names a check means the time that it names itself.
            check_timeout_s: if self.check.is_some() {
                self.check_timeout_s
            } else {
                self.check_timeout_s.or(other.check_timeout_s)
            },
            check: self.check.or(other.check),
            sandbox: SandboxConfig {
                read: self.sandbox.read.or(other.sandbox.read),
                write: self.sandbox.write.or(other.sandbox.write),
                net: self.sandbox.net.or(other.sandbox.net),
            },
            prices,
            settings,
            key_variables,
        }
    }
}

/// Returns the keys of the part that a project's file replaces as a whole when it has this setting.
fn replaced_keys(setting: &Setting) -> &[String] {
    let keys = &setting.keys;
    match keys.first().map_or("", String::as_str) {
        "timeouts" => &keys[..1],
        "providers" | "prices" => &keys[..keys.len().min(2)],
        _ => keys,
    }
}

/// The table `[sandbox]` of a configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// Files and folders that commands may read; `~` is the home folder.
    pub read: Option<Vec<PathBuf>>,
    /// Files and folders that they may also write.
    pub write: Option<Vec<PathBuf>>,
    /// Whether they may use the network.
    pub net: Option<bool>,
}

impl SandboxConfig {
    /// Returns this access and a further one together. Places of a configuration that this machine does not have are left
    /// out, because the same file may serve several machines.
    pub fn and(&self, further: Access) -> Access {
        let mut access = further;
        access.read.extend(existing_places(self.read.as_deref()));
        access.write.extend(existing_places(self.write.as_deref()));
        access.net |= self.net.unwrap_or(false);
        access
    }
}

/// Returns the places that exist, with `~` at the start of a path replaced by the home folder.
fn existing_places(places: Option<&[PathBuf]>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in places.unwrap_or_default() {
        let path = match (path.strip_prefix("~"), etcetera::home_dir()) {
            (Ok(rest), Ok(home)) => home.join(rest),
            (Ok(_) | Err(_), _) => path.clone(),
        };
        if path.exists() {
            found.push(path);
        }
    }
    found
}

/// The table `[bedrock]` of a configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BedrockConfig {
    pub region: Option<String>,
    /// The profile in `~/.aws` whose credentials are used.
    pub profile: Option<String>,
    /// The URL of the service, if it is not the Region's public one: a private endpoint, or a test.
    pub base_url: Option<String>,
}
