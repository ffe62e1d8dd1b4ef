//! The choices about servers from flags and the environment, and the defaults of every server.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;

use super::error::ConfigError;
use super::file::FileConfig;
use crate::provider::is_loopback;
use protocol::core::Timeouts;

/// The number of times that a request is repeated by default after a fault that may pass.
pub(super) const RETRIES: u32 = 4;

/// The choice of checking a model's name before the model is called.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NameCheck {
    /// The server is asked for the name, whatever it lists.
    #[default]
    Left,
    /// A name that the server does not list is refused, if the server goes by its listed names.
    Made,
}

/// The choices about servers from flags and the environment; files and rolesets come after them.
#[derive(Clone, Debug, Default)]
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
    /// The choice of checking a model's name before the model is called.
    pub names: NameCheck,
    /// The time to wait for a server that is not up yet; no wait if absent.
    pub wait: Option<Duration>,
    /// The mock script, if the run is scripted.
    pub mock_script: Option<String>,
    /// The folder of the batch whose replies take the place of calls, if there is one.
    pub bank: Option<PathBuf>,
}

/// The settings that apply to every kind of server.
pub(super) struct ServerDefaults {
    pub(super) stream: bool,
    pub(super) retries: u32,
    pub(super) timeouts: Timeouts,
    pub(super) calls_at_once: Option<NonZeroU32>,
}

/// Returns the settings from flags and files that apply to every server.
pub(super) fn common(chosen: &Chosen, file: &FileConfig) -> ServerDefaults {
    let mut timeouts = file.timeouts.unwrap_or_default();
    if let Some(total) = chosen.timeout {
        let total_ms = u64::try_from(total.as_millis()).unwrap_or(u64::MAX);
        timeouts = Timeouts { total_ms, first_byte_ms: timeouts.first_byte_ms.min(total_ms), ..timeouts };
    }
    let stream = !chosen.no_stream && file.stream.unwrap_or(true);
    let retries = file.retries.unwrap_or(RETRIES);
    ServerDefaults { stream, retries, timeouts, calls_at_once: file.calls_at_once }
}

/// Refuses URLs that would leak what is sent.
pub(super) fn check_url(base_url: &str, allow_http: bool) -> Result<(), ConfigError> {
    let refuse = |why: &str| Err(ConfigError::Usage(format!("base URL `{base_url}`: {why}")));
    let Ok(url) = Url::parse(base_url) else {
        return refuse("it must be a URL that begins with http:// or https://");
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
        "http" => refuse(
            "plain http to another machine can be read on the way; use https, or allow it with --allow-http",
        ),
        _ => refuse("it must begin with http:// or https://"),
    }
}
