//! The choices about servers from flags and the environment, with which the settings of files are completed.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;

use super::error::ConfigError;
use super::file::FileConfig;
use crate::provider::is_loopback;
use protocol::core::Timeouts;

/// The number of times that a request is repeated by default after a fault that may pass.
pub(super) const RETRIES: u32 = 4;

/// The choices about servers from flags and the environment; files and rolesets come after them.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag, and none excludes another")]
pub struct Chosen {
    /// `--model`.
    pub model: Option<String>,
    /// `--base-url`.
    pub base_url: Option<String>,
    /// `--launch`.
    pub launch: Option<String>,
    /// The base URL of the server that was started, once it is up.
    pub launched: Option<String>,
    /// `--no-stream`.
    pub no_stream: bool,
    /// `--allow-http`.
    pub allow_http: bool,
    /// `--timeout`, for a whole reply.
    pub timeout: Option<Duration>,
    /// Whether to give up at once on a server of this machine that refuses connections, unless `retries` is set.
    pub refused_at_once: bool,
    /// Whether a model is refused that its server does not list, if the server goes by its listed names.
    pub checks_names: bool,
    /// The time to wait for a server that is not up yet; no wait if absent.
    pub wait: Option<Duration>,
    /// The mock script, if the run is scripted.
    pub mock_script: Option<String>,
    /// The folder of the batch whose replies take the place of calls, if there is one.
    pub bank: Option<PathBuf>,
}

impl Chosen {
    /// Returns whether plain HTTP to other machines is allowed.
    pub(super) fn allows_http(&self, file: &FileConfig) -> bool {
        self.allow_http || file.allow_http.unwrap_or(false)
    }

    /// Returns whether replies are streamed.
    pub(super) fn streams(&self, file: &FileConfig) -> bool {
        !self.no_stream && file.stream.unwrap_or(true)
    }

    /// Returns the timeouts of every server.
    pub(super) fn timeouts(&self, file: &FileConfig) -> Timeouts {
        let timeouts = file.timeouts.unwrap_or_default();
        let Some(total) = self.timeout else { return timeouts };
        let total_ms = u64::try_from(total.as_millis()).unwrap_or(u64::MAX);
        Timeouts { total_ms, first_byte_ms: timeouts.first_byte_ms.min(total_ms), ..timeouts }
    }
}

/// Refuses URLs that would leak what is sent.
pub(super) fn require_safe_url(base_url: &str, allow_http: bool) -> Result<(), ConfigError> {
    let Ok(url) = Url::parse(base_url) else {
        return refuse_url(base_url, "it must be a URL that begins with http:// or https://");
    };
    if !url.username().is_empty() || url.password().is_some() {
        // The URL is not shown, since it holds a secret.
        let why = "the base URL holds a user name or password; leave it out, and put the key where it belongs, such as OPENAI_API_KEY";
        return Err(ConfigError::Usage(why.to_owned()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(ConfigError::Usage(
            "the base URL has a `?` or `#` part, which may hold a key; leave it out".to_owned(),
        ));
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback(&url) || allow_http => Ok(()),
        "http" => refuse_url(
            base_url,
            "plain http to another machine can be read on the way; use https, or allow it with --allow-http",
        ),
        _ => refuse_url(base_url, "it must begin with http:// or https://"),
    }
}

fn refuse_url(base_url: &str, why: &str) -> Result<(), ConfigError> {
    Err(ConfigError::Usage(format!("base URL `{base_url}`: {why}")))
}
