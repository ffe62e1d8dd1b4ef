//! What a server says about itself.

use serde::{Deserialize, Serialize};

use super::client::Client;
use super::wire::Models;
use crate::provider::ProviderError;

/// What a server says about itself.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServerInfo {
    /// The models that it lists.
    pub models: Vec<String>,
    /// Tokens that fit into the context of the configured model, if the server tells.
    pub context_tokens: Option<u64>,
}

/// llama.cpp's properties, of which one matters here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Props {
    default_generation_settings: Settings,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    n_ctx: Option<u64>,
}

/// Fetches the list of models, and the context length where the server has it.
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
    Ok(ServerInfo {
        models: list.data.into_iter().map(|m| m.id).collect(),
        context_tokens: context_tokens.or(trained),
    })
}
