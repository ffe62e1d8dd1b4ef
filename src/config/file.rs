//! Configuration files: `./consensus.toml` and the user's own.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::bedrock::BedrockConfig;
use super::bounded;
use super::error::ConfigError;
use super::prices::{PriceConfig, listed_price};
use crate::provider::{Price, Timeouts};

/// The file that is looked for in the working folder.
pub const PROJECT_FILE: &str = "consensus.toml";

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
    /// [`ConfigError::Read`], [`ConfigError::File`] with the line.
    pub fn load() -> Result<Self, ConfigError> {
        let user = match config_folder() {
            Some(folder) => read(&folder.join("config.toml"))?,
            None => Self::default(),
        };
        Ok(read(Path::new(PROJECT_FILE))?.over(user))
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
        }
    }
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

fn read(path: &Path) -> Result<FileConfig, ConfigError> {
    let text = match bounded::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(FileConfig::default()),
        Err(source) => return Err(ConfigError::Read { path: path.to_owned(), source }),
    };
    let refuse = |why: String| ConfigError::File { path: path.to_owned(), why };
    let file: FileConfig = toml::from_str(&text).map_err(|e| refuse(e.to_string()))?;
    for (name, provider) in &file.providers {
        if let Some(field) = OWN_FIELDS.iter().find(|field| provider.body.contains_key(**field)) {
            return Err(refuse(format!("providers.{name}.body: `{field}` is set by the program")));
        }
    }
    Ok(file)
}
