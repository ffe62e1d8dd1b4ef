//! What a call used, what that costs, and how its reply came about: words that the journal and the providers share.

use serde::{Deserialize, Serialize};

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt: u64,
    /// Those of them that the server had computed before, as it reports.
    pub cached: u64,
    /// Tokens of the reply.
    pub completion: u64,
    /// Whether the server reported nothing, so that these are estimates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// What the call cost by its server's own account, in millionths of a US dollar, if the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
}

impl Usage {
    /// Returns what is taken for the usage of a call whose server counts nothing: three bytes a token.
    #[must_use]
    pub fn estimate(prompt: u64, reply_bytes: usize) -> Self {
        let completion = (reply_bytes as u64).div_ceil(3);
        Self { prompt, cached: 0, completion, estimated: true, cost_micro_usd: None }
    }

    /// Returns what the call cost: by its server's account, else by this price; none, if neither is known.
    #[must_use]
    pub fn cost(&self, price: Option<Price>) -> Option<u64> {
        let by_price = |price: Price| price.cost_micro_usd(self.prompt, self.cached, self.completion);
        self.cost_micro_usd.or(price.map(by_price))
    }
}

/// What tokens cost, in millionths of a US dollar per million tokens.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Prompt tokens.
    pub prompt: u64,
    /// Prompt tokens that the server had computed before.
    pub cached: u64,
    /// Completion tokens.
    pub completion: u64,
}

impl Price {
    /// Returns the cost of a call in millionths of a US dollar, rounded up.
    #[must_use]
    pub fn cost_micro_usd(&self, prompt: u64, cached: u64, completion: u64) -> u64 {
        let fresh = u128::from(prompt.saturating_sub(cached)) * u128::from(self.prompt);
        let reused = u128::from(cached.min(prompt)) * u128::from(self.cached);
        let written = u128::from(completion) * u128::from(self.completion);
        let micro = (fresh + reused + written).div_ceil(1_000_000);
        u64::try_from(micro).unwrap_or(u64::MAX)
    }
}

/// What a provider gave to one reply so that it can be asked about it later: the server's word, which nothing here checks.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The reply's name, at most 200 characters; so for all texts here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The configuration that the model ran with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<String>,
    /// When the reply was made, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// The request's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// How a server was held to a schema.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Structured {
    /// It was given the schema.
    JsonSchema,
    /// It was told to write some JSON object.
    JsonObject,
    /// Only the prompt asked for JSON.
    Prompt,
}
