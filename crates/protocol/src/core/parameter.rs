//! The parameters of a request that a server may do without.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A parameter that may be left out of a request. The limit of tokens is not one of them, because without it a reply has no end.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionalParameter {
    /// How far a reply may differ from the likeliest one.
    Temperature,
    /// The start of the server's random numbers.
    Seed,
    /// The share of likely tokens that are drawn from.
    TopP,
    /// The wish for counts of tokens at the end of a stream.
    StreamOptions,
    /// The wish for the probabilities of tokens.
    Logprobs,
    /// The form of a reply.
    ResponseFormat,
}

impl OptionalParameter {
    pub const ALL: [Self; 6] = [
        Self::Temperature,
        Self::Seed,
        Self::TopP,
        Self::StreamOptions,
        Self::Logprobs,
        Self::ResponseFormat,
    ];

    /// Returns the name in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::Seed => "seed",
            Self::TopP => "top_p",
            Self::StreamOptions => "stream_options",
            Self::Logprobs => "logprobs",
            Self::ResponseFormat => "response_format",
        }
    }

    /// Returns true if it decides how replies are drawn.
    pub fn is_of_sampling(self) -> bool {
        matches!(self, Self::Temperature | Self::Seed | Self::TopP)
    }
}

impl fmt::Display for OptionalParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
