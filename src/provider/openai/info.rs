//! The facts that a server states about itself.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::Client;
use super::wire::Models;
use crate::provider::ProviderError;

/// The owners that vLLM and Ollama name for their models. These servers refuse a name that they do not list.
const BY_NAME: [&str; 2] = ["vllm", "library"];

/// The address of OpenAI's own models.
const OPENAI_URL: &str = "https://api.openai.com/";

/// The facts that a server states about itself.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServerInfo {
    /// The models that the server lists.
    pub models: Vec<String>,
    /// The names in `models` that stand for another one, each with its `root`, as vLLM reports it.
    #[serde(skip)]
    pub roots: BTreeMap<String, String>,
    /// Whether the server answers to these names alone.
    #[serde(skip)]
    pub names_decide: bool,
    /// The number of tokens in the context of the configured model, if the server reports it.
    pub context_tokens: Option<u64>,
    /// The program and version of the server, if it reports them (llama.cpp and vLLM do).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
}

/// The answer of a server that counts tokens.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenReport {
    count: Option<u64>,
    tokens: Vec<IgnoredAny>,
}

/// Asks the server to count the tokens of a text.
pub(super) async fn count_tokens(client: &Client, text: &str) -> Option<u64> {
    // Each of the two servers reads its own field and ignores the other's.
    let body = json!({"model": client.model(), "content": text, "prompt": text});
    let report: TokenReport = serde_json::from_str(&client.post("/tokenize", &body).await.ok()?).ok()?;
    // vLLM counts the tokens, and llama.cpp lists them.
    let count = report.count.unwrap_or(report.tokens.len() as u64);
    if count > 0 || text.is_empty() { Some(count) } else { None }
}

/// Fetches the facts of [`fetch`], and the version of the server's program.
pub(super) async fn describe(client: &Client) -> Result<ServerInfo, ProviderError> {
    let info = fetch(client).await?;
    let build = if let Some(build) = fetch_value(client, "/props").await["build_info"].as_str() {
        Some(format!("llama.cpp {build}"))
    } else {
        // vLLM names its version.
        fetch_value(client, "/version").await["version"].as_str().map(str::to_owned)
    };
    Ok(ServerInfo { build, ..info })
}

/// Fetches a document of a path that only some servers have, or null.
async fn fetch_value(client: &Client, path: &str) -> Value {
    let body = client.get(path).await.unwrap_or_default();
    serde_json::from_str(&body).unwrap_or_default()
}

/// Fetches the list of models, and the context length if the server reports it.
pub(super) async fn fetch(client: &Client) -> Result<ServerInfo, ProviderError> {
    let body = client.get("models").await?;
    let list: Models = serde_json::from_str(&body).map_err(|why| ProviderError::BadAnswer {
        url: client.base_url(),
        why: format!("its list of models cannot be read: {why}"),
    })?;
    let model = list.data.iter().find(|m| m.id == client.model()).or(list.data.first());
    let mut context_tokens =
        model.and_then(|m| m.max_model_len.or(m.meta.as_ref().and_then(|meta| meta.n_ctx)));
    if context_tokens.is_none() {
        let properties = fetch_value(client, "/props").await;
        context_tokens = properties["default_generation_settings"]["n_ctx"].as_u64();
    }
    let trained = model.and_then(|m| m.meta.as_ref()).and_then(|meta| meta.n_ctx_train);
    let mut owners = list.data.iter().map(|model| model.owned_by.as_deref());
    let names_decide = client.base_url().starts_with(OPENAI_URL)
        || owners.all(|owner| owner.is_some_and(|owner| BY_NAME.contains(&owner)));
    let named = list.data.iter().filter_map(|model| Some((model.id.clone(), model.root.clone()?)));
    Ok(ServerInfo {
        names_decide,
        roots: named.filter(|(id, root)| id != root && !root.is_empty()).collect(),
        models: list.data.into_iter().map(|m| m.id).collect(),
        context_tokens: context_tokens.or(trained),
        build: None,
    })
}
