//! The names of models: what a server's list says about one, and when two are the same.

use serde::{Deserialize, Serialize};

/// What a server's list of models says about the name of one.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Listing {
    /// There is no list.
    #[default]
    Unknown,
    /// The name stands for this model: its `root`, or else the name in the list.
    As(String),
    /// The name is not in the list, and this is the only model that is.
    Only(String),
    /// The name is not in the list, and several are.
    Absent,
}

impl Listing {
    pub(super) fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// Returns the model that answers, if the list says it.
    pub fn model(&self) -> Option<&str> {
        match self {
            Self::As(model) | Self::Only(model) => Some(model),
            Self::Unknown | Self::Absent => None,
        }
    }
}

/// Returns the part of a model's name by which two names are compared. Folders in front of it, the ending of its file and capitals
/// are no part of it.
pub fn bare_model(name: &str) -> String {
    let bare = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    bare.strip_suffix(".gguf").unwrap_or(&bare).to_owned()
}

#[cfg(test)]
mod tests {
    use super::bare_model;

    #[test]
    fn folder_ending_and_capitals_do_not_count() {
        let name = "qwen2.5-7b";
        for written in ["Qwen/Qwen2.5-7B", "/models/qwen2.5-7b.gguf", "qwen2.5-7B"] {
            assert_eq!(bare_model(written), name);
        }
        assert_ne!(bare_model("llama3.1:8b"), bare_model("llama3.1:70b"));
    }
}
