//! The opinion of a reviewer on a change, with the model that formed it. A vote names both by one digest.
//!
//! The input is an opinion and the place where its model was called. The output is the digest that is signed with the
//! vote, so that neither can be changed afterwards. An opinion that no model formed is digested alone, in the form of
//! the first version, and so are all opinions of that version. Whether a vote counts is never decided here.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::message::Vote;
use super::opinion::Opinion;
use crypto::Digest;

/// The size limit of the name of a model, and of an endpoint, in bytes.
pub const MODEL_BYTES_MAX: usize = 512;

/// The type of the data behind a vote's digest, if a model formed the opinion. A bare opinion is the first form.
pub const VOTE_TYPE: &str = "https://github.com/consensus-cli/consensus/vote/v2";

/// A model, and the place where it was called.
///
/// The fields are in alphabetical order, so they are written in canonical form.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ModelAt {
    /// The address of the server; `mock` for a script.
    pub endpoint: String,
    /// The name of the model, as the server knows it; `mock` for a script.
    pub model: String,
}

/// An opinion, and the model that formed it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ModelOpinion {
    /// The opinion.
    pub opinion: Opinion,
    /// The model. It is `None` if no model was asked.
    pub model: Option<ModelAt>,
}

impl ModelAt {
    /// Returns a model with this name at this endpoint. A name that is too long is cut.
    pub fn new(endpoint: &str, model: &str) -> Self {
        Self { endpoint: cut(endpoint), model: cut(model) }
    }

    /// Returns true if both names are short enough to be read.
    pub(super) fn is_bounded(&self) -> bool {
        self.endpoint.len() <= MODEL_BYTES_MAX && self.model.len() <= MODEL_BYTES_MAX
    }
}

fn cut(name: &str) -> String {
    name[..name.floor_char_boundary(MODEL_BYTES_MAX)].to_owned()
}

impl fmt::Display for ModelAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.model)?;
        if self.endpoint == self.model { Ok(()) } else { write!(f, " at {}", self.endpoint) }
    }
}

impl ModelOpinion {
    /// Returns an opinion that a model formed.
    pub fn by(model: ModelAt, opinion: Opinion) -> Self {
        Self { opinion, model: Some(model) }
    }

    /// Returns the SHA-256 of the canonical JSON. For an opinion without a model, this is the digest of the opinion
    /// alone.
    ///
    /// # Panics
    ///
    /// Never: every opinion has a JSON form.
    pub fn digest(&self) -> Digest {
        let Self { opinion, model } = self;
        let Some(model) = model else { return opinion.digest() };
        // The keys are in alphabetical order, as in the canonical form.
        let named = json!({"model": model, "opinion": opinion, "predicateType": VOTE_TYPE});
        Digest::new(named.to_string().as_bytes())
    }

    /// Returns the vote that the opinion counts as.
    pub fn vote(&self) -> Vote {
        self.opinion.vote()
    }
}

impl From<Opinion> for ModelOpinion {
    fn from(opinion: Opinion) -> Self {
        Self { opinion, model: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yes() -> Opinion {
        Opinion::Approve { confidence: 9000, notes: "fine".to_owned() }
    }

    /// The digest is that of canonical JSON.
    #[test]
    fn digest_covers_model_and_endpoint() {
        let reading = ModelOpinion::by(ModelAt::new("http://127.0.0.1:1/v1", "qwen"), yes());
        let json = serde_json::json!({
            "predicateType": VOTE_TYPE,
            "opinion": yes(),
            "model": {"model": "qwen", "endpoint": "http://127.0.0.1:1/v1"},
        });
        assert_eq!(Digest::new(&serde_json_canonicalizer::to_vec(&json).unwrap()), reading.digest());
        let other = |endpoint, model| ModelOpinion::by(ModelAt::new(endpoint, model), yes()).digest();
        assert_ne!(other("http://127.0.0.1:2/v1", "qwen"), reading.digest());
        assert_ne!(other("http://127.0.0.1:1/v1", "llama"), reading.digest());
    }

    /// An opinion without a model is named as in the first version.
    #[test]
    fn opinion_without_model_keeps_its_digest() {
        assert_eq!(ModelOpinion::from(yes()).digest(), yes().digest());
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let long = ModelAt::new(&"é".repeat(400), &"x".repeat(9000));
        assert!(long.is_bounded() && long.endpoint.len() == MODEL_BYTES_MAX, "{long}");
        assert_eq!(ModelAt::new("mock", "mock").to_string(), "mock");
        assert_eq!(ModelAt::new("http://a/v1", "qwen").to_string(), "qwen at http://a/v1");
    }
}
