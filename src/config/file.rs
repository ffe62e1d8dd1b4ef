//! Configuration files: `./consensus.toml` and the user's own.
//!
//! In: the two files, each read once. Out: one [`FileConfig`], which knows where each setting was made. A project's
//! file comes with the folder that one stands in, so its settings that could harm its visitor count only with trust:
//! a command that starts, sends or writes anything uses [`FileConfig::load`], which refuses them, and one that only
//! reads uses [`FileConfig::load_to_read`], which leaves them out. No setting of an untrusted folder gets past here.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::bedrock::BedrockConfig;
use super::document::{Document, Setting, dotted};
use super::error::ConfigError;
use super::prices::{PriceConfig, listed_price};
use super::trust::Claims;
use crate::core::{Price, Timeouts};
use crate::text::quote;

/// The file that is looked for in the working folder.
pub const PROJECT_FILE: &str = "consensus.toml";

/// The user's own file in the user's configuration folder.
const USER_FILE: &str = "config.toml";

/// Fields of a request that the program sets itself.
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

/// What a configuration file may say. Everything is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileConfig {
    /// Default model reference.
    pub model: Option<String>,
    /// Default base URL, up to and including `/v1`.
    pub base_url: Option<String>,
    /// The server to start for each run: a known one, or a command with `{port}` and `{model}`.
    pub launch: Option<String>,
    /// Environment variable that holds the API key.
    pub api_key_env: Option<String>,
    /// File that holds the API key.
    pub api_key_file: Option<String>,
    /// Default roleset.
    pub roleset: Option<String>,
    /// Folder with rolesets.
    pub rolesets_dir: Option<PathBuf>,
    /// Folder for run folders.
    pub runs_dir: Option<PathBuf>,
    /// Whether replies are streamed.
    pub stream: Option<bool>,
    /// Requests repeated at most after a fault that may pass.
    pub retries: Option<u32>,
    /// The most calls that a run makes to one server at once.
    pub calls_at_once: Option<NonZeroU32>,
    /// Whether plain HTTP to other machines is allowed.
    pub allow_http: Option<bool>,
    /// Time-outs.
    pub timeouts: Option<Timeouts>,
    /// Further providers, or other addresses of the known ones, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// How Amazon Bedrock is called.
    pub bedrock: BedrockConfig,
    /// Prices in US dollars per million tokens, by `provider:name` as a model is referred to, or by its name.
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
    /// Base URL, up to and including `/v1`.
    pub base_url: String,
    /// Environment variable that holds the API key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// File that holds the API key.
    #[serde(default)]
    pub api_key_file: Option<String>,
    /// The most calls that a run makes there at once.
    #[serde(default)]
    pub calls_at_once: Option<NonZeroU32>,
    /// Further fields of each request's body, such as `chat_template_kwargs`. No secrets: they are
    /// recorded.
    #[serde(default)]
    pub body: Map<String, Value>,
}

impl FileConfig {
    /// Reads the project's file over the user's file; files that do not exist are no mistake.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Read`], [`ConfigError::File`] with the line, [`ConfigError::Untrusted`].
    pub fn load() -> Result<Self, ConfigError> {
        let Sources { user, project, claims, .. } = Sources::read()?;
        claims.as_ref().map_or(Ok(()), Claims::require)?;
        Ok(project.over(user))
    }

    /// As [`Self::load`], for a command that starts, sends and writes nothing: settings that need trust and have none
    /// are left out, with one line of warning.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Read`], [`ConfigError::File`] with the line.
    pub fn load_to_read() -> Result<Self, ConfigError> {
        let Sources { user, project, claims, document } = Sources::read()?;
        let Some(claims) = claims else { return Ok(project.over(user)) };
        match claims.require() {
            Ok(()) => Ok(project.over(user)),
            Err(ConfigError::Untrusted { .. }) => {
                let is_kept = |key: &str| !claims.names(key);
                warn_of(&claims);
                let kept = document.map(|document| Self::parse_some(&document, is_kept)).transpose()?;
                Ok(kept.unwrap_or_default().over(user))
            }
            Err(other) => Err(other),
        }
    }

    /// Reads the user's own file alone.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Read`], [`ConfigError::File`] with the line.
    pub fn of_user() -> Result<Self, ConfigError> {
        let Some(folder) = config_folder() else { return Ok(Self::default()) };
        let document = Document::read(&folder.join(USER_FILE))?;
        document.as_ref().map(Self::parse).transpose().map(Option::unwrap_or_default)
    }

    /// Returns what a file says.
    pub(super) fn parse(document: &Document) -> Result<Self, ConfigError> {
        Self::parse_some(document, |_| true)
    }

    fn parse_some(document: &Document, is_kept: impl Fn(&str) -> bool) -> Result<Self, ConfigError> {
        let mut file: Self = document.parse(&is_kept)?;
        for (name, provider) in &file.providers {
            if let Some(field) = OWN_FIELDS.iter().find(|field| provider.body.contains_key(**field)) {
                let why = format!("providers.{name}.body: `{field}` is set by the program");
                return Err(ConfigError::File { path: document.path().to_owned(), why });
            }
        }
        let settings = document.settings()?.into_iter().filter(|setting| is_kept(&setting.keys[0]));
        file.settings = settings.map(|setting| (setting.name(), setting)).collect();
        let of_providers = file.providers.values().filter_map(|provider| provider.api_key_env.clone());
        file.key_variables = file.api_key_env.iter().cloned().chain(of_providers).collect();
        Ok(file)
    }

    /// Returns the setting of this name, given by its keys, if a file has it.
    pub(super) fn setting<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Option<&Setting> {
        self.settings.get(&dotted(keys))
    }

    /// Returns every setting of both files that counts, with its place.
    pub fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.settings.values()
    }

    /// Returns the environment variables that either file names for an API key.
    #[must_use]
    pub fn key_variables(&self) -> &BTreeSet<String> {
        &self.key_variables
    }

    /// Returns the price of a model: as written here by the reference that names it or by its name alone, else the
    /// public one of this provider.
    #[must_use]
    pub fn price_of(&self, reference: &str, provider: &str, model: &str) -> Option<Price> {
        let own = self.prices.get(reference).or_else(|| self.prices.get(model));
        own.map(|price| price.0).or_else(|| listed_price(provider, model))
    }

    /// Fills in from `other` what this file does not say.
    fn over(self, other: Self) -> Self {
        let mut providers = other.providers;
        providers.extend(self.providers);
        let mut prices = other.prices;
        prices.extend(self.prices);
        let replaced: BTreeSet<Vec<String>> =
            self.settings.values().map(|setting| whole(setting).to_vec()).collect();
        let mut settings = other.settings;
        settings.retain(|_, setting| !replaced.contains(whole(setting)));
        settings.extend(self.settings);
        let key_variables = self.key_variables.into_iter().chain(other.key_variables).collect();
        Self {
            model: self.model.or(other.model),
            // Who names a server here does not mean the one that is started there.
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
            allow_http: self.allow_http.or(other.allow_http),
            timeouts: self.timeouts.or(other.timeouts),
            providers,
            bedrock: BedrockConfig {
                region: self.bedrock.region.or(other.bedrock.region),
                profile: self.bedrock.profile.or(other.bedrock.profile),
                base_url: self.bedrock.base_url.or(other.bedrock.base_url),
            },
            prices,
            settings,
            key_variables,
        }
    }
}

/// The two files as they are, before the question of trust.
struct Sources {
    user: FileConfig,
    project: FileConfig,
    /// The project's file as it was read.
    document: Option<Document>,
    /// What of the folder needs trust.
    claims: Option<Claims>,
}

impl Sources {
    fn read() -> Result<Self, ConfigError> {
        let user = FileConfig::of_user()?;
        let document = Document::read(Path::new(PROJECT_FILE))?;
        let project = document.as_ref().map(FileConfig::parse).transpose()?.unwrap_or_default();
        let claims = Claims::of(Path::new("."), document.as_ref(), &project, &user)?;
        Ok(Self { user, project, document, claims })
    }
}

/// Returns the keys of what a project's file replaces as a whole when it has this setting.
fn whole(setting: &Setting) -> &[String] {
    let keys = &setting.keys;
    match keys.first().map_or("", String::as_str) {
        "timeouts" => &keys[..1],
        "providers" | "prices" => &keys[..keys.len().min(2)],
        _ => keys,
    }
}

/// Warns of what needs trust and has none: settings are left out, and a link is only read through.
fn warn_of(claims: &Claims) {
    let named: Vec<String> = claims.claims.iter().map(ToString::to_string).collect();
    tracing::warn!(
        "left out, or only read through, until you trust this folder with `consensus trust`: {}",
        quote::terminal(&named.join("; "))
    );
}

/// Returns the user's configuration folder, `$XDG_CONFIG_HOME/consensus` on every system.
#[must_use]
pub fn config_folder() -> Option<PathBuf> {
    etcetera::base_strategy::Xdg::new().ok().map(|xdg| xdg.config_dir().join("consensus"))
}

/// Returns the folder for what can be made again.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    etcetera::base_strategy::Xdg::new().ok().map(|xdg| xdg.cache_dir().join("consensus"))
}
