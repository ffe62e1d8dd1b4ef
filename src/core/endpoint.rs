//! Where a model is called, as data: what the journal records and what presets fill in.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::usage::Price;

/// Where one agent's model is called. Holds no secret: keys are named, not stored.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "provider", rename_all = "snake_case")]
pub enum Endpoint {
    /// An OpenAI-compatible server.
    #[serde(rename = "openai")]
    OpenAi(Box<OpenAiEndpoint>),
    /// A model of Amazon Bedrock.
    Bedrock(Box<BedrockEndpoint>),
    /// A script.
    Mock(MockEndpoint),
}

impl Endpoint {
    /// Returns provider and model as a person would name them.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::OpenAi(endpoint) => format!("{} at {}", endpoint.model, endpoint.base_url),
            Self::Bedrock(endpoint) => format!("{} at {}", endpoint.model, endpoint.base_url),
            Self::Mock(_) => "mock".to_owned(),
        }
    }

    /// Returns the name of the kind of server: a preset's if the URL is its own, else `openai`.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        match self {
            Self::OpenAi(endpoint) => {
                Some(endpoint.provider()).filter(|name| !name.is_empty()).unwrap_or("openai")
            }
            Self::Bedrock(_) => BEDROCK,
            Self::Mock(_) => "mock",
        }
    }

    /// Returns the name of the model alone.
    #[must_use]
    pub fn model(&self) -> &str {
        match self {
            Self::OpenAi(endpoint) => &endpoint.model,
            Self::Bedrock(endpoint) => &endpoint.model,
            Self::Mock(_) => "mock",
        }
    }

    /// Returns where the server is, without secrets; `mock` for a script.
    #[must_use]
    pub fn place(&self) -> &str {
        match self {
            Self::OpenAi(endpoint) => &endpoint.base_url,
            Self::Bedrock(endpoint) => &endpoint.base_url,
            Self::Mock(_) => "mock",
        }
    }

    /// Returns where the server is, and how many calls it takes at once at most; none, if it takes any number.
    #[must_use]
    pub fn calls_at_once(&self) -> Option<(&str, usize)> {
        let (url, most) = match self {
            Self::OpenAi(endpoint) => (&endpoint.base_url, endpoint.calls_at_once?),
            Self::Bedrock(endpoint) => (&endpoint.base_url, endpoint.calls_at_once?),
            Self::Mock(_) => return None,
        };
        Some((url, usize::try_from(most.get()).unwrap_or(usize::MAX)))
    }

    /// Returns true if this program started the server.
    #[must_use]
    pub fn is_launched(&self) -> bool {
        match self {
            Self::OpenAi(endpoint) => endpoint.launched,
            Self::Bedrock(_) | Self::Mock(_) => false,
        }
    }

    /// Returns the price of a token, if one is known.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        match self {
            Self::OpenAi(endpoint) => endpoint.price,
            Self::Bedrock(endpoint) => endpoint.price,
            // A script costs nothing.
            Self::Mock(_) => Some(Price::default()),
        }
    }
}

/// An OpenAI-compatible server and how to talk to it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAiEndpoint {
    /// URL up to and including `/v1`, without credentials; several, separated by commas, of servers that serve the same.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// Environment variable that holds the key, if one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// File that holds the key, if one is needed and no variable is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<String>,
    /// Whether this program started the server, so that its port means nothing to a later one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub launched: bool,
    /// What this kind of server wants besides the common request.
    #[serde(default, skip_serializing_if = "Dialect::is_plain")]
    pub dialect: Dialect,
    /// Whether replies are streamed.
    pub stream: bool,
    /// Requests repeated at most after 408, 429, 5xx and connection faults.
    pub retries: u32,
    /// Whether a connection that is refused ends the call at once: a server of this machine that is not there does not come by
    /// itself. It is for this process alone, and in no record.
    #[serde(skip)]
    pub refused_at_once: bool,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// The most calls that a run makes there at once; none for as many as there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_at_once: Option<NonZeroU32>,
    /// Price of tokens, for cost and for `--max-cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl OpenAiEndpoint {
    /// The URL of each of its servers.
    pub fn base_urls(&self) -> impl Iterator<Item = &str> {
        self.base_url.split(',')
    }

    /// Returns the name of the preset whose URL this is; empty if it is none's.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        PRESETS.iter().find(|preset| preset.base_url == self.base_url).map_or("", |preset| preset.name)
    }

    /// Returns a server about which nothing is known but its URL: no key, no model, no retries.
    #[must_use]
    pub fn bare(base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            model: String::new(),
            api_key_env: None,
            api_key_file: None,
            launched: false,
            dialect: Dialect::default(),
            stream: true,
            retries: 0,
            refused_at_once: false,
            timeouts: Timeouts::default(),
            calls_at_once: None,
            price: None,
        }
    }
}

/// The name before the colon in `bedrock:amazon.nova-lite-v1:0`.
pub const BEDROCK: &str = "bedrock";

/// A model of Amazon Bedrock, called through its Converse interface. Credentials are looked for when it is called,
/// as AWS tools do.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BedrockEndpoint {
    /// URL of the service in the Region, without a path.
    pub base_url: String,
    /// The Region, which is part of a signature.
    pub region: String,
    /// The model's identifier, an inference profile's, or the ARN of either.
    pub model: String,
    /// The profile in `~/.aws` whose credentials are used; none for AWS's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Whether replies are streamed.
    pub stream: bool,
    /// Requests repeated at most after 408, 429, 5xx and connection faults.
    pub retries: u32,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// The most calls that a run makes there at once; none for as many as there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_at_once: Option<NonZeroU32>,
    /// Price of tokens, for cost and for `--max-cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// What a kind of server wants besides the common request. Holds no secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// Whether a schema is sent as a wish: for servers that refuse most of JSON Schema otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lenient_schema: bool,
    /// Further fields of the request's body.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub body: Map<String, Value>,
    /// Further headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl Dialect {
    fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// How long to wait for what, in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// For a connection.
    pub connect_ms: u64,
    /// For the first byte of a streamed reply; prompts are computed in this time.
    pub first_byte_ms: u64,
    /// Between two parts of a reply.
    pub idle_ms: u64,
    /// For the whole reply.
    pub total_ms: u64,
    /// For a launched server to be ready, and for any other that says it still loads its model; large models are
    /// read from slow disks in this time.
    #[serde(skip_serializing_if = "is_default_ready")]
    pub ready_ms: u64,
}

/// How long a server may take to load its model by default.
const READY_MS: u64 = 1_800_000;

/// Few servers need another, and a journal says what is not usual.
fn is_default_ready(ready_ms: &u64) -> bool {
    *ready_ms == READY_MS
}

impl Default for Timeouts {
    /// Long enough for a small model on two processor cores.
    fn default() -> Self {
        Self {
            connect_ms: 10_000,
            first_byte_ms: 300_000,
            idle_ms: 120_000,
            total_ms: 1_800_000,
            ready_ms: READY_MS,
        }
    }
}

/// A scripted provider.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MockEndpoint {
    /// The script, one JSON line per rule, so that the journal stands alone.
    pub script: String,
}

/// A kind of server that people run, by the name used in model references.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name before the colon in `ollama:llama3.1`.
    pub name: &'static str,
    /// Where such a server listens by default.
    pub base_url: &'static str,
    /// Environment variable that holds its key, if it wants one.
    pub api_key_env: Option<&'static str>,
    /// Whether to look for it on its usual port when nothing is configured.
    pub probed: bool,
    /// Whether it takes a schema as a wish only; see [`Dialect::lenient_schema`].
    pub lenient_schema: bool,
    /// Further fields of the request's body, as a JSON object; empty for none.
    pub body: &'static str,
    /// Further headers.
    pub headers: &'static [(&'static str, &'static str)],
}

/// What most servers are: local, without a key, with nothing of their own.
const LOCAL: Preset = Preset {
    name: "",
    base_url: "",
    api_key_env: None,
    probed: true,
    lenient_schema: false,
    body: "",
    headers: &[],
};

/// The servers that are known by name. They differ in data only.
///
/// - `openai` in its strict mode refuses a schema with a choice at its root, as ours has; as a wish it
///   takes any, and replies are validated here all the same.
/// - `openrouter` sends a request to whichever of its providers is cheapest; `require_parameters`
///   keeps it from those that would drop the schema, and `usage.include` makes it say what each call cost.
/// - `bedrock-openai` is the part of Amazon Bedrock that speaks this dialect, with a key of Bedrock's own; other
///   Regions are other URLs, and models that only Bedrock's own interface serves are not here.
/// - `vllm`, `llamacpp`, `ollama` and `lmstudio` take a schema as `response_format` and need nothing more.
pub const PRESETS: [Preset; 7] = [
    Preset {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        api_key_env: Some("OPENAI_API_KEY"),
        probed: false,
        lenient_schema: true,
        ..LOCAL
    },
    Preset {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        api_key_env: Some("OPENROUTER_API_KEY"),
        probed: false,
        body: r#"{"provider":{"require_parameters":true},"usage":{"include":true}}"#,
        headers: &[("x-title", "consensus")],
        ..LOCAL
    },
    Preset {
        name: "bedrock-openai",
        base_url: "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
        api_key_env: Some("AWS_BEARER_TOKEN_BEDROCK"),
        probed: false,
        lenient_schema: true,
        ..LOCAL
    },
    Preset { name: "vllm", base_url: "http://127.0.0.1:8000/v1", ..LOCAL },
    Preset { name: "llamacpp", base_url: "http://127.0.0.1:8080/v1", ..LOCAL },
    Preset { name: "ollama", base_url: "http://127.0.0.1:11434/v1", ..LOCAL },
    Preset { name: "lmstudio", base_url: "http://127.0.0.1:1234/v1", ..LOCAL },
];

impl Preset {
    /// Returns what this kind of server wants besides the common request.
    ///
    /// # Panics
    ///
    /// If a body in the table is no JSON object; every one is read by a test.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        let body = if self.body.is_empty() { "{}" } else { self.body };
        Dialect {
            lenient_schema: self.lenient_schema,
            body: serde_json::from_str(body).expect("bodies in the table are JSON objects (tested)"),
            headers: self.headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_a_dialect_and_a_url() {
        for preset in PRESETS {
            assert!(preset.base_url.ends_with("/v1"), "{}", preset.name);
            assert!(!preset.dialect().body.contains_key("model"), "{}", preset.name);
        }
    }

    #[test]
    fn cost_is_exact_and_rounds_up() {
        let price = Price { prompt: 2_500_000, cached: 1_250_000, completion: 10_000_000 };
        assert_eq!(price.cost_micro_usd(1000, 0, 100), 2500 + 1000);
        assert_eq!(price.cost_micro_usd(1000, 1000, 0), 1250);
        assert_eq!(price.cost_micro_usd(1, 0, 0), 3);
        assert_eq!(Price::default().cost_micro_usd(u64::MAX, 0, u64::MAX), 0);
    }
}
