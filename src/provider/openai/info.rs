//! The facts that a server states about itself.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::Client;
use super::wire::{Model, Models};
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

/// The properties of llama.cpp, of which two matter here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Props {
    default_generation_settings: Settings,
    build_info: Option<String>,
}

/// The version of vLLM.
#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    n_ctx: Option<u64>,
}

/// The server's report on a text: llama.cpp lists the tokens, vLLM counts them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokenized {
    count: Option<u64>,
    tokens: Vec<IgnoredAny>,
}

/// Asks the server to count the tokens of a text.
pub(super) async fn count_tokens(client: &Client, text: &str) -> Option<u64> {
    // Each of the two servers reads its own field and ignores the other's.
    let body = json!({"model": client.model(), "content": text, "prompt": text});
    let said: Tokenized = serde_json::from_str(&client.post("/tokenize", &body).await.ok()?).ok()?;
    said.count.or(Some(said.tokens.len() as u64)).filter(|&count| count > 0 || text.is_empty())
}

/// Fetches the facts of [`fetch`], and the version of the server's program.
pub(super) async fn describe(client: &Client) -> Result<ServerInfo, ProviderError> {
    let info = fetch(client).await?;
    let props = client.get("/props").await.ok();
    let props: Option<Props> = props.and_then(|body| serde_json::from_str(&body).ok());
    let build = if let Some(build) = props.and_then(|props| props.build_info) {
        Some(format!("llama.cpp {build}"))
    } else {
        let said = client.get("/version").await.ok();
        let said: Option<Version> = said.and_then(|body| serde_json::from_str(&body).ok());
        said.map(|said| said.version)
    };
    Ok(ServerInfo { build, ..info })
}

/// Fetches the list of models, and the context length if the server reports it.
pub(super) async fn fetch(client: &Client) -> Result<ServerInfo, ProviderError> {
    let body = client.get("models").await?;
    let bad = |e: serde_json::Error| ProviderError::BadAnswer {
        url: client.base_url(),
        why: format!("its list of models cannot be read: {e}"),
    };
    let list: Models = serde_json::from_str(&body).map_err(bad)?;
    let model = list.data.iter().find(|m| m.id == client.model()).or(list.data.first());
    let mut context_tokens =
        model.and_then(|m| m.max_model_len.or(m.meta.as_ref().and_then(|meta| meta.n_ctx)));
    if context_tokens.is_none()
        && let Ok(body) = client.get("/props").await
    {
        let props: Props = serde_json::from_str(&body).unwrap_or_default();
        context_tokens = props.default_generation_settings.n_ctx;
    }
    let trained = model.and_then(|m| m.meta.as_ref()).and_then(|meta| meta.n_ctx_train);
    let is_by_name = |model: &Model| model.owned_by.as_deref().is_some_and(|by| BY_NAME.contains(&by));
    let names_decide = client.base_url().starts_with(OPENAI_URL) || list.data.iter().all(is_by_name);
    let named = list.data.iter().filter_map(|model| Some((model.id.clone(), model.root.clone()?)));
    Ok(ServerInfo {
        names_decide,
        roots: named.filter(|(id, root)| id != root && !root.is_empty()).collect(),
        models: list.data.into_iter().map(|m| m.id).collect(),
        context_tokens: context_tokens.or(trained),
        build: None,
    })
}
