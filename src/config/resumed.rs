//! The way from a journal's endpoints to those of a resumed run.
//!
//! The input is the journal's endpoints, and the present flags, environment and configuration. The output is the endpoints of the
//! resumed run. A journal is untrusted input: it never names a command to run, and a key goes only to a URL that the user names too.

use super::bedrock;
use super::chosen::{Chosen, require_safe_url};
use super::endpoints::{ServerPlace, find_place, only_model, open_ai};
use super::error::ConfigError;
use super::file::FileConfig;
use super::model_names::look_up_model;
use crate::provider::is_loopback;
use protocol::core::{Endpoint, Listing, OpenAiEndpoint, PRESETS};

/// Returns the endpoints of a resumed run, one for each of the journal's.
///
/// `searches` says whether documents that the journal names will be read and sent. A server on another machine must then be named
/// again, since a journal that came with a folder could name both.
///
/// `--base-url`, or a server that was launched for the resume, replaces the server that the run had; a run with several servers
/// keeps them.
///
/// Returns [`ConfigError::Usage`] with the missing flag, or [`ConfigError::Provider`] if the new server does not answer.
pub async fn resume_endpoints(
    before: &[Endpoint],
    searches: bool,
    chosen: &Chosen,
    file: &FileConfig,
) -> Result<Vec<Endpoint>, ConfigError> {
    let named = chosen.launched.as_ref().or(chosen.base_url.as_ref()).map(|url| url.trim_end_matches('/'));
    let replaced = match named {
        Some(url) => find_replaced(before, url)?,
        None => None,
    };
    let mut now = Vec::with_capacity(before.len());
    for endpoint in before {
        let endpoint = match (endpoint, named) {
            (Endpoint::OpenAi(old), Some(url)) if replaced.as_ref() == Some(&old.base_url) => {
                Endpoint::OpenAi(Box::new(move_endpoint(old, url, chosen, file).await?))
            }
            (
                Endpoint::OpenAi(_) | Endpoint::Bedrock(_) | Endpoint::Mock { .. } | Endpoint::Bank { .. },
                _,
            ) => endpoint.clone(),
        };
        require_known(&endpoint, searches, chosen, file)?;
        now.push(endpoint);
    }
    Ok(now)
}

/// Returns the URL of the server that is replaced, if one is.
fn find_replaced(before: &[Endpoint], url: &str) -> Result<Option<String>, ConfigError> {
    let servers: Vec<&OpenAiEndpoint> = open_ai(before).collect();
    if servers.iter().any(|server| server.base_url == url) {
        return Ok(None);
    }
    let launched = servers.iter().find(|server| server.launched);
    let mut urls: Vec<&String> = servers.iter().map(|server| &server.base_url).collect();
    urls.dedup();
    match (launched, urls.as_slice()) {
        (Some(server), _) => Ok(Some(server.base_url.clone())),
        (None, []) => Ok(None),
        (None, [one]) => Ok(Some(String::clone(one))),
        (None, several) => {
            let list: Vec<&str> = several.iter().map(|url| url.as_str()).collect();
            let why =
                format!("the run has several servers ({}), and {url} is not one of them", list.join(", "));
            Err(ConfigError::Usage(why))
        }
    }
}

/// Returns `old` at another address, as a new run would call it.
async fn move_endpoint(
    old: &OpenAiEndpoint,
    url: &str,
    chosen: &Chosen,
    file: &FileConfig,
) -> Result<OpenAiEndpoint, ConfigError> {
    let ServerPlace { api_key_env, api_key_file, .. } = find_place(chosen, file, None);
    let launched = chosen.launched.is_some();
    let mut new =
        OpenAiEndpoint { base_url: url.to_owned(), api_key_env, api_key_file, launched, ..old.clone() };
    require_safe_url(url, chosen.allows_http(file))?;
    if launched || old.launched {
        // A server that is started for a run may give its model any name.
        new.model = only_model(&new).await?;
    }
    new.listing = Listing::Unknown;
    if chosen.checks_names {
        look_up_model(&mut new).await?;
    }
    new.price = file.price_of("", new.provider(), &new.model);
    Ok(new)
}

/// Checks that an endpoint may be used again. A journal is not trusted, so a key goes only to a URL that the configuration, the
/// environment or a flag names too.
fn require_known(
    endpoint: &Endpoint,
    searches: bool,
    chosen: &Chosen,
    file: &FileConfig,
) -> Result<(), ConfigError> {
    let endpoint = match endpoint {
        Endpoint::OpenAi(endpoint) => endpoint,
        Endpoint::Bedrock(endpoint) => return bedrock::require_known(endpoint, chosen, file),
        Endpoint::Mock { .. } | Endpoint::Bank { .. } => return Ok(()),
    };
    let url = &endpoint.base_url;
    if endpoint.launched && chosen.launched.as_ref() != Some(url) {
        return Err(ConfigError::Usage(
            "this run had a server started for it; start one again with --launch COMMAND --model MODEL, or name a running one with --base-url URL".to_owned(),
        ));
    }
    require_safe_url(url, chosen.allows_http(file))?;
    let providers = PRESETS.iter().map(|p| p.name).chain(file.providers.keys().map(String::as_str));
    for provider in providers.map(Some).chain([None]) {
        let known = find_place(chosen, file, provider);
        if known.base_url.trim_end_matches('/') == url
            && known.api_key_env == endpoint.api_key_env
            && known.api_key_file == endpoint.api_key_file
        {
            return Ok(());
        }
    }
    let key = endpoint.api_key_env.as_ref().and_then(|name| std::env::var(name).ok());
    let is_here = reqwest::Url::parse(url).is_ok_and(|url| is_loopback(&url));
    let sends = if endpoint.api_key_file.is_some() || key.is_some_and(|key| !key.is_empty()) {
        "an API key"
    } else if searches && !is_here {
        "documents"
    } else {
        return Ok(());
    };
    let why = format!(
        "the journal sends {sends} to {url}, which no flag, variable or configuration file names; allow it with --base-url {url}"
    );
    Err(ConfigError::Usage(why))
}
