//! The variables that a launched server does not inherit: the keys of other services.
//!
//! The input is the variables that are set, and the names that the configuration has for keys. The output is the names
//! to leave out. A model server on this machine needs no API key, and may print its environment into a log. This is
//! order, not a barrier: a program of the same user can find other ways to a secret. Values are never read here.

use std::collections::BTreeSet;
use std::ffi::OsString;

use protocol::core::PRESETS;

/// Variables that hold a secret or lead to one, whatever the configuration says.
const SECRETS: [&str; 11] = [
    "API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
];

/// The endings of the names of further variables that hold secrets.
const ENDINGS: [&str; 4] = ["_API_KEY", "_ACCESS_KEY_ID", "_SECRET_ACCESS_KEY", "_SESSION_TOKEN"];

/// The variable with the digest that makes a folder trusted, which concerns this program alone.
const TRUST: &str = "CONSENSUS_TRUST";

/// The variables that a server needs to fetch its model, and gets in any case.
const OWN: [&str; 2] = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"];

/// Returns the variables of this process that a server does not get. `named` contains those of the configuration.
pub(super) fn withheld_variables(named: &BTreeSet<String>) -> Vec<OsString> {
    let set = std::env::vars_os().map(|(name, _)| name);
    set.filter(|name| is_withheld(&name.to_string_lossy(), named)).collect()
}

fn is_withheld(name: &str, named: &BTreeSet<String>) -> bool {
    if OWN.contains(&name) {
        return false;
    }
    let upper = name.to_ascii_uppercase();
    named.contains(name)
        || name == TRUST
        || PRESETS.iter().any(|preset| preset.api_key_env == Some(name))
        || SECRETS.contains(&upper.as_str())
        || ENDINGS.iter().any(|ending| upper.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A variable that a server needs is not withheld.
    #[test]
    fn keys_are_withheld_from_server() {
        let named = BTreeSet::from(["LAB_PASS".to_owned(), "HF_TOKEN".to_owned()]);
        for name in
            ["OPENAI_API_KEY", "openrouter_api_key", "AWS_SESSION_TOKEN", "LAB_PASS", "X_API_KEY", TRUST]
        {
            assert!(is_withheld(name, &named), "{name}");
        }
        for name in ["PATH", "HF_TOKEN", "HF_HOME", "CUDA_VISIBLE_DEVICES", "AWS_REGION", "LAB_PASSAGE"] {
            assert!(!is_withheld(name, &named), "{name}");
        }
        for preset in PRESETS {
            assert!(preset.api_key_env.is_none_or(|name| is_withheld(name, &named)), "{}", preset.name);
        }
    }
}
