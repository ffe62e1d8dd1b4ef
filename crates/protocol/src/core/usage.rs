//! The usage and the cost of a call, and the way its reply came about. The journal and the providers share these types.

use serde::{Deserialize, Serialize};

/// The tokens of one call.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// The tokens of the prompt.
    pub prompt: u64,
    /// Prompt tokens that the server reports as computed before.
    pub cached: u64,
    /// The tokens of the reply.
    pub completion: u64,
    /// Whether the server reported nothing, so that the counts are estimates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// The cost that the server itself reports, in millionths of a US dollar, if it reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
}

impl Usage {
    /// Returns the estimated usage of a call whose server counts nothing: one token for every three bytes of the
    /// reply.
    pub fn estimate(prompt: u64, reply_bytes: usize) -> Self {
        let completion = (reply_bytes as u64).div_ceil(3);
        Self { prompt, cached: 0, completion, estimated: true, cost_micro_usd: None }
    }

    /// Returns the cost of the call as the server reports it, or else by this price; `None` if neither is known.
    pub fn cost(&self, price: Option<Price>) -> Option<u64> {
        match (self.cost_micro_usd, price) {
            (Some(cost), _) => Some(cost),
            (None, Some(price)) => Some(price.cost_micro_usd(self.prompt, self.cached, self.completion)),
            (None, None) => None,
        }
    }
}

/// The price of tokens, in millionths of a US dollar per million tokens.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The price of prompt tokens.
    pub prompt: u64,
    /// The price of prompt tokens that the server had computed before.
    pub cached: u64,
    /// The price of completion tokens.
    pub completion: u64,
}

impl Price {
    /// Returns the cost of a call in millionths of a US dollar, rounded up.
    pub fn cost_micro_usd(&self, prompt: u64, cached: u64, completion: u64) -> u64 {
        let fresh = u128::from(prompt.saturating_sub(cached)) * u128::from(self.prompt);
        let reused = u128::from(cached.min(prompt)) * u128::from(self.cached);
        let written = u128::from(completion) * u128::from(self.completion);
        let micro = (fresh + reused + written).div_ceil(1_000_000);
        u64::try_from(micro).unwrap_or(u64::MAX)
    }
}

/// The data by which a provider can be asked about a reply later. It is the server's word; nothing here checks it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The name of the reply, at most 200 characters long, as are all texts here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The configuration that the model ran with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<String>,
    /// The time at which the reply was made, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// The name of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// How a server was made to follow a schema.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Structured {
    /// The server was given the schema.
    JsonSchema,
    /// The server was asked to write some JSON object.
    JsonObject,
    /// Only the prompt asked for JSON.
    Prompt,
}
