//! Where a model is called, as data: the journal records it, and presets fill in its fields.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::listing::{Listing, bare_model};
use super::parameter::OptionalParameter;
use super::usage::Price;

/// The place where one agent's model is called. It holds no secret: keys are named, not stored.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "provider", rename_all = "snake_case", deny_unknown_fields)]
pub enum Endpoint {
    /// An OpenAI-compatible server.
    #[serde(rename = "openai")]
    OpenAi(Box<OpenAiEndpoint>),
    /// A model of Amazon Bedrock.
    Bedrock(Box<BedrockEndpoint>),
    /// A script that plays the model.
    Mock {
        /// The script, with one JSON line per rule, so that the journal is complete by itself.
        script: String,
    },
    /// The replies of an earlier batch, in place of the model.
    Bank {
        /// The folder of the batch, as the user named it.
        folder: String,
        /// The model whose replies are given.
        model: String,
        /// The price of a token of that model, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        price: Option<Price>,
    },
}

/// The words between a model and its place in a label.
const AT: &str = " at ";
const FROM_BANK: &str = " from the bank ";

/// The model and the place of a script.
pub const MOCK: &str = "mock";

impl Endpoint {
    /// Returns the model and its server as a person would name them.
    pub fn label(&self) -> String {
        match self {
            Self::OpenAi(endpoint) => format!("{}{AT}{}", endpoint.model, endpoint.base_url),
            Self::Bedrock(endpoint) => format!("{}{AT}{}", endpoint.model, endpoint.base_url),
            Self::Mock { .. } => MOCK.to_owned(),
            Self::Bank { folder, model, .. } => format!("{model}{FROM_BANK}{folder}"),
        }
    }

    /// Returns the model in a label, as [`Self::label`] makes it.
    pub fn model_in(label: &str) -> &str {
        let ends = [AT, FROM_BANK].iter().filter_map(|place| label.find(place));
        &label[..ends.min().unwrap_or(label.len())]
    }

    /// Returns the name of the kind of server: that of a preset if the URL is the preset's own, otherwise `openai`.
    pub fn provider(&self) -> &'static str {
        match self {
            Self::OpenAi(endpoint) => match endpoint.provider() {
                "" => "openai",
                preset => preset,
            },
            Self::Bedrock(_) => BEDROCK,
            Self::Mock { .. } => "mock",
            Self::Bank { .. } => "bank",
        }
    }

    /// Returns the extra fields in the body of each request, if they are known. A bank does not say those of its requests.
    pub fn extra_fields(&self) -> Option<Map<String, Value>> {
        match self {
            Self::OpenAi(endpoint) => Some(endpoint.dialect.body.clone()),
            Self::Bedrock(_) | Self::Mock { .. } => Some(Map::new()),
            Self::Bank { .. } => None,
        }
    }

    /// Returns the parameters that are left out of each request.
    pub fn leave_out(&self) -> impl Iterator<Item = OptionalParameter> {
        let dialect = match self {
            Self::OpenAi(endpoint) => Some(&endpoint.dialect),
            Self::Bedrock(_) | Self::Mock { .. } | Self::Bank { .. } => None,
        };
        dialect.into_iter().flat_map(|dialect| dialect.leave_out.iter().copied())
    }

    /// Returns the name of the model alone.
    pub fn model(&self) -> &str {
        match self {
            Self::OpenAi(endpoint) => &endpoint.model,
            Self::Bedrock(endpoint) => &endpoint.model,
            Self::Mock { .. } => MOCK,
            Self::Bank { model, .. } => model,
        }
    }

    /// Returns the model that answers: the one that the server lists for the name, else the one that a reply names, else the name.
    /// Returns `None` for a script, which plays each agent as a model of its own.
    pub fn answering<'a>(&'a self, said: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::OpenAi(endpoint) => Some(endpoint.listing.model().or(said).unwrap_or(&endpoint.model)),
            Self::Bedrock(endpoint) => Some(said.unwrap_or(&endpoint.model)),
            Self::Mock { .. } => None,
            Self::Bank { model, .. } if model == MOCK => None,
            Self::Bank { model, .. } => Some(said.unwrap_or(model)),
        }
    }

    /// Returns the model as which a reply counts where agents are compared. A name that a server does not list and repeats in its reply is
    /// the caller's own, so all such names at one place count as one.
    pub fn source<'a>(&'a self, said: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::OpenAi(endpoint)
                if endpoint.listing == Listing::Absent
                    && said.is_none_or(|said| bare_model(said) == bare_model(&endpoint.model)) =>
            {
                Some(&endpoint.base_url)
            }
            Self::OpenAi(_) | Self::Bedrock(_) | Self::Mock { .. } | Self::Bank { .. } => {
                self.answering(said)
            }
        }
    }

    /// Returns why the name of the model is not to be relied on, if the server does not list it.
    pub fn unlisted(&self) -> Option<String> {
        let Self::OpenAi(endpoint) = self else { return None };
        let OpenAiEndpoint { base_url, model, listing, .. } = &**endpoint;
        match listing {
            Listing::Unknown | Listing::As(_) => None,
            Listing::Only(only) => {
                Some(format!("{base_url} does not list `{model}`; `{only}` answers for it"))
            }
            Listing::Absent => Some(format!(
                "{base_url} does not list `{model}`; the model is the one that its replies name"
            )),
        }
    }

    /// Returns the address of the server, without secrets, `mock` for a script, or the folder of a bank.
    pub fn place(&self) -> &str {
        match self {
            Self::OpenAi(endpoint) => &endpoint.base_url,
            Self::Bedrock(endpoint) => &endpoint.base_url,
            Self::Mock { .. } => MOCK,
            Self::Bank { folder, .. } => folder,
        }
    }

    /// Returns the address of the server and the most calls that it takes at once, or `None` if it takes any number.
    pub fn calls_at_once(&self) -> Option<(&str, usize)> {
        let (url, most) = match self {
            Self::OpenAi(endpoint) => (&endpoint.base_url, endpoint.calls_at_once?),
            Self::Bedrock(endpoint) => (&endpoint.base_url, endpoint.calls_at_once?),
            Self::Mock { .. } | Self::Bank { .. } => return None,
        };
        Some((url, usize::try_from(most.get()).unwrap_or(usize::MAX)))
    }

    /// Returns true if this program started the server.
    pub fn is_launched(&self) -> bool {
        match self {
            Self::OpenAi(endpoint) => endpoint.launched,
            Self::Bedrock(_) | Self::Mock { .. } | Self::Bank { .. } => false,
        }
    }

    /// Returns the price of a token, if one is known.
    pub fn price(&self) -> Option<Price> {
        match self {
            Self::OpenAi(endpoint) => endpoint.price,
            Self::Bedrock(endpoint) => endpoint.price,
            // A script costs nothing.
            Self::Mock { .. } => Some(Price::default()),
            Self::Bank { price, .. } => *price,
        }
    }
}

/// An OpenAI-compatible server, and the settings for talking to it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAiEndpoint {
    /// The URL up to and including `/v1`, without credentials. Several URLs of servers that serve the same model are
    /// separated by commas.
    pub base_url: String,
    /// The name of the model on that server.
    pub model: String,
    /// What the server's list of models says about the name.
    #[serde(default, skip_serializing_if = "Listing::is_unknown")]
    pub listing: Listing,
    /// The environment variable that holds the key, if one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The file that holds the key, if one is needed and no variable is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<String>,
    /// Whether this program started the server. The port of such a server means nothing to a later process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub launched: bool,
    /// The additions to the common request that this kind of server needs.
    #[serde(default, skip_serializing_if = "Dialect::is_plain")]
    pub dialect: Dialect,
    pub stream: bool,
    /// The most repetitions of a request after status 408, 429 or 5xx, or a connection fault.
    pub retries: u32,
    /// Whether a refused connection ends the call at once: a server on this machine that is not running will not
    /// start by itself. The flag is for this process alone and is never recorded.
    #[serde(skip)]
    pub refused_at_once: bool,
    /// The time-outs of a call.
    pub timeouts: Timeouts,
    /// The most calls that a run makes to the server at once; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_at_once: Option<NonZeroU32>,
    /// The price of tokens, for the cost and for `--max-cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl OpenAiEndpoint {
    /// Returns the URL of each of its servers.
    pub fn base_urls(&self) -> impl Iterator<Item = &str> {
        self.base_url.split(',')
    }

    /// Returns the name of the preset that has this URL, or an empty text if no preset has it.
    pub fn provider(&self) -> &'static str {
        PRESETS.iter().find(|preset| preset.base_url == self.base_url).map_or("", |preset| preset.name)
    }

    /// Returns a server of which only the URL is known: no key, no model, no retries.
    pub fn bare(base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            model: String::new(),
            listing: Listing::Unknown,
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

/// A model of Amazon Bedrock, called through the Converse interface. Credentials are looked up at the time of the
/// call, as AWS tools do.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BedrockEndpoint {
    /// The URL of the service in the Region, without a path.
    pub base_url: String,
    /// The Region, which is part of each signature.
    pub region: String,
    /// The identifier of the model or of an inference profile, or the ARN of either.
    pub model: String,
    /// The profile in `~/.aws` whose credentials are used; `None` for the choice that AWS makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    pub stream: bool,
    /// The most repetitions of a request after status 408, 429 or 5xx, or a connection fault.
    pub retries: u32,
    /// The time-outs of a call.
    pub timeouts: Timeouts,
    /// The most calls that a run makes to the service at once; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_at_once: Option<NonZeroU32>,
    /// The price of tokens, for the cost and for `--max-cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// The additions to the common request that a kind of server needs. It holds no secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// Whether a schema is sent as a hint only, for servers that would refuse most of JSON Schema otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lenient_schema: bool,
    /// The extra fields of the request's body.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub body: Map<String, Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The parameters that are left out of every request.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub leave_out: BTreeSet<OptionalParameter>,
}

impl Dialect {
    fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// The time-outs of a call, in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// The longest wait for a connection.
    pub connect_ms: u64,
    /// The longest wait for the first byte of a streamed reply. The server processes the prompt in this time.
    pub first_byte_ms: u64,
    /// The longest wait between two parts of a reply.
    pub idle_ms: u64,
    /// The longest time for the whole reply.
    pub total_ms: u64,
    /// The longest wait for a launched server to be ready, and for any other server that reports that it is still
    /// loading its model. Large models are read from slow disks in this time.
    #[serde(skip_serializing_if = "is_default_ready")]
    pub ready_ms: u64,
}

/// The default time that a server may take to load its model.
const READY_MS: u64 = 1_800_000;

/// Returns true for the default. Few servers need another value, and a journal records only what is unusual.
fn is_default_ready(ready_ms: &u64) -> bool {
    *ready_ms == READY_MS
}

impl Default for Timeouts {
    /// Returns time-outs that are long enough for a small model on two processor cores.
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

/// A kind of server that people run, under the name that model references use.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name before the colon in `ollama:llama3.1`.
    pub name: &'static str,
    /// The default address of such a server.
    pub base_url: &'static str,
    /// The environment variable that holds its key, if it needs one.
    pub api_key_env: Option<&'static str>,
    /// Whether its usual port is probed when nothing is configured.
    pub probed: bool,
    /// Whether it takes a schema as a hint only; see [`Dialect::lenient_schema`].
    pub lenient_schema: bool,
    /// The extra fields of the request's body, as a JSON object. The text is empty if there are no extra fields.
    pub body: &'static str,
    pub headers: &'static [(&'static str, &'static str)],
}

/// The values that most servers share: a local server without a key and without additions of its own.
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
/// - `openai` in its strict mode refuses a schema with a choice at its root, such as ours. As a hint it takes any
///   schema, and replies are validated here all the same.
/// - `openrouter` sends a request to the cheapest of its providers. `require_parameters` excludes providers that
///   would drop the schema, and `usage.include` makes it report the cost of each call.
/// - `bedrock-openai` is the part of Amazon Bedrock that speaks this dialect, with a key of Bedrock's own. Other
///   Regions have other URLs. Models that only Bedrock's own interface serves are not available here.
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
    /// Returns the additions to the common request that this kind of server needs.
    ///
    /// # Panics
    ///
    /// If a body in the table is not a JSON object. A test reads every one.
    pub fn dialect(&self) -> Dialect {
        let body = if self.body.is_empty() { "{}" } else { self.body };
        Dialect {
            lenient_schema: self.lenient_schema,
            body: serde_json::from_str(body).expect("bodies in the table are JSON objects (tested)"),
            headers: self.headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
            leave_out: BTreeSet::new(),
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
    fn a_label_says_its_model() {
        let bank =
            Endpoint::Bank { folder: "kept at home".to_owned(), model: "tiny".to_owned(), price: None };
        for endpoint in [bank, Endpoint::Mock { script: String::new() }] {
            assert_eq!(Endpoint::model_in(&endpoint.label()), endpoint.model());
        }
        assert_eq!(Endpoint::model_in("qwen:7b at http://127.0.0.1:8000/v1"), "qwen:7b");
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
