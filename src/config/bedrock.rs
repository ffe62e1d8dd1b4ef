//! The way from a reference such as `bedrock:amazon.nova-lite-v1:0` to an endpoint: its Region, its URL and its profile.
//!
//! The input is flags, `[bedrock]` of a configuration file, and the settings of AWS tools: `AWS_REGION`, `AWS_DEFAULT_REGION`,
//! `AWS_ENDPOINT_URL_BEDROCK_RUNTIME`, `AWS_PROFILE`, and the Region of a profile in `~/.aws/config`. The output is an endpoint
//! without any secret. Credentials are not read here, but when a model is called.

use std::path::PathBuf;

use etcetera::home_dir;
use ini::Ini;

use super::chosen::{Chosen, RETRIES, require_safe_url};
use super::error::ConfigError;
use super::file::FileConfig;
use super::origin::{Origin, Sourced};
use protocol::core::{BEDROCK, BedrockEndpoint};

/// Returns the endpoint of a model.
///
/// Returns [`ConfigError::Usage`] if the model or the Region is not named, or if a URL would leak what is sent.
pub(super) fn bedrock_endpoint(
    chosen: &Chosen,
    file: &FileConfig,
    model: &str,
) -> Result<BedrockEndpoint, ConfigError> {
    if model.is_empty() {
        return usage("name the model after `bedrock:`, such as bedrock:amazon.nova-lite-v1:0");
    }
    if chosen.base_url.is_some() || chosen.launch.is_some() {
        return usage(
            "--base-url and --launch are for servers that speak OpenAI's interface; `bedrock:` takes its URL from `[bedrock] base_url` or AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        );
    }
    if [".", ".."].contains(&model) {
        return usage("`.` and `..` are not model names");
    }
    let profile = file.bedrock.profile.clone();
    if let Some(name) = profile.clone().or_else(|| variable("AWS_PROFILE"))
        && !has_profile(&name)
    {
        let why = format!("there is no AWS profile `{name}` in ~/.aws/config or ~/.aws/credentials");
        return Err(ConfigError::Usage(why));
    }
    let Some(region) = region(file) else {
        return usage(
            "no AWS Region for `bedrock:`; set AWS_REGION, or `region` in [bedrock] of consensus.toml",
        );
    };
    let base_url = base_url(file, &region)?;
    require_safe_url(&base_url, chosen.allows_http(file))?;
    Ok(BedrockEndpoint {
        base_url,
        region,
        model: model.to_owned(),
        profile,
        stream: chosen.streams(file),
        retries: file.retries.unwrap_or(RETRIES),
        timeouts: chosen.timeouts(file),
        calls_at_once: file.calls_at_once,
        price: file.price_of(&format!("{BEDROCK}:{model}"), BEDROCK, model),
    })
}

fn usage<T>(why: &str) -> Result<T, ConfigError> {
    Err(ConfigError::Usage(why.to_owned()))
}

/// Checks that a journal's endpoint may be used again. A journal is not trusted, so it must not choose where a signed request or a
/// key goes, or whose credentials are used.
///
/// Returns [`ConfigError::Usage`] with the setting to make.
pub(super) fn require_known(
    endpoint: &BedrockEndpoint,
    chosen: &Chosen,
    file: &FileConfig,
) -> Result<(), ConfigError> {
    let expected = base_url(file, &endpoint.region)?;
    let url = &endpoint.base_url;
    if *url != expected {
        let why = format!(
            "the journal calls Bedrock at {url}, and the configuration at {expected}; set `base_url` in [bedrock] of consensus.toml to the journal's URL to continue there"
        );
        return Err(ConfigError::Usage(why));
    }
    if endpoint.profile != file.bedrock.profile {
        let why = format!(
            "the journal names the AWS profile {}, and `profile` in [bedrock] of consensus.toml is {}; make them the same",
            endpoint.profile.as_deref().unwrap_or("none"),
            file.bedrock.profile.as_deref().unwrap_or("none")
        );
        return Err(ConfigError::Usage(why));
    }
    require_safe_url(url, chosen.allows_http(file))
}

/// Returns the values with which an endpoint is called, each with its origin.
pub(super) fn explain(endpoint: &BedrockEndpoint, file: &FileConfig) -> Vec<Sourced> {
    let region = find_origin(file, "region", &["AWS_REGION", "AWS_DEFAULT_REGION"], Origin::AwsFile);
    let base_url = find_origin(file, "base_url", &["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"], Origin::BuiltIn);
    let mut values = vec![
        Sourced::new("bedrock.base_url", &endpoint.base_url, base_url),
        Sourced::new("bedrock.region", &endpoint.region, region),
    ];
    if let Some(profile) = endpoint.profile.clone().or_else(|| variable("AWS_PROFILE")) {
        let origin = find_origin(file, "profile", &["AWS_PROFILE"], Origin::BuiltIn);
        values.push(Sourced::new("bedrock.profile", &profile, origin));
    }
    values
}

/// Returns the origin of a setting of `[bedrock]`: the file, one of these variables, or `other`.
fn find_origin(file: &FileConfig, key: &str, variables: &[&'static str], other: Origin) -> Origin {
    if let Some(setting) = file.setting(["bedrock", key]) {
        return Origin::File(setting.place());
    }
    match variables.iter().find(|name| variable(name).is_some()) {
        Some(name) => Origin::Variable(name),
        None => other,
    }
}

/// Returns the base URL of the service in a Region.
fn base_url(file: &FileConfig, region: &str) -> Result<String, ConfigError> {
    let named = file.bedrock.base_url.clone().or_else(|| variable("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"));
    if let Some(url) = named {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    // The Region becomes a part of the host.
    if !region.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        return Err(ConfigError::Usage(format!(
            "`{region}` is not an AWS Region; a Region looks like eu-central-1"
        )));
    }
    Ok(format!("https://bedrock-runtime.{region}.amazonaws.com"))
}

fn region(file: &FileConfig) -> Option<String> {
    let own = file.bedrock.region.clone();
    own.or_else(|| variable("AWS_REGION"))
        .or_else(|| variable("AWS_DEFAULT_REGION"))
        .or_else(|| profile_region(file))
}

/// Returns the Region of the profile in AWS's own configuration, if there is one.
fn profile_region(file: &FileConfig) -> Option<String> {
    let profile = file.bedrock.profile.clone().or_else(|| variable("AWS_PROFILE"));
    let section = section_name(profile.as_deref().unwrap_or("default"));
    read_aws_file("AWS_CONFIG_FILE", "config")?.get_from(Some(section), "region").map(str::to_owned)
}

/// Returns whether one of AWS's own files has a profile.
fn has_profile(name: &str) -> bool {
    has_section("AWS_CONFIG_FILE", "config", &section_name(name))
        || has_section("AWS_SHARED_CREDENTIALS_FILE", "credentials", name)
}

fn has_section(variable: &str, file: &str, section: &str) -> bool {
    read_aws_file(variable, file).is_some_and(|file| file.section(Some(section)).is_some())
}

/// Returns the name of a profile's section in `~/.aws/config`.
fn section_name(profile: &str) -> String {
    if profile == "default" { profile.to_owned() } else { format!("profile {profile}") }
}

/// Reads one of AWS's own files, whose place may be set by a variable.
fn read_aws_file(place: &str, name: &str) -> Option<Ini> {
    let path = match variable(place) {
        Some(path) => PathBuf::from(path),
        None => home_dir().ok()?.join(".aws").join(name),
    };
    Ini::load_from_file(path).ok()
}

/// Returns an environment variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
