//! The rules of a server, which do not change while it runs.
//!
//! The name of a model is that of a roleset, and behind `@` it may name the model on which the roleset runs.

use crate::serve::http::{ApiError, Guard};
use protocol::text::escape;

/// The beginning of the name of each model.
pub(in crate::serve) const PREFIX: &str = "consensus/";

/// A roleset that is served.
#[derive(Clone, Debug)]
pub struct ServedRoleset {
    pub name: String,
    /// The description, by its author.
    pub description: String,
    /// Whether its agents review changes. Then it is no model.
    pub is_for_changes: bool,
}

/// The rules of a server.
#[derive(Debug)]
pub(in crate::serve) struct ServerRules {
    pub(in crate::serve) guard: Guard,
    pub(in crate::serve) rolesets: Vec<ServedRoleset>,
    /// The names of the models on which callers may put a roleset.
    pub(in crate::serve) allowed: Vec<String>,
}

impl ServerRules {
    /// Returns the rolesets that answer questions, or those that review changes.
    pub(in crate::serve) fn rolesets(&self, is_for_changes: bool) -> impl Iterator<Item = &ServedRoleset> {
        self.rolesets.iter().filter(move |served| served.is_for_changes == is_for_changes)
    }

    /// Returns the names of the models, each with its roleset.
    pub(in crate::serve) fn models(&self) -> impl Iterator<Item = (String, &ServedRoleset)> {
        self.rolesets(false).map(|served| (format!("{PREFIX}{}", served.name), served))
    }

    /// Refuses the name of a roleset that is not served for this purpose.
    pub(in crate::serve) fn require_served(&self, name: &str, is_review: bool) -> Result<(), ApiError> {
        let (roleset, _) = split_name(name);
        if self.rolesets(is_review).any(|served| served.name == roleset) {
            return Ok(());
        }
        let name = escape::excerpt(name);
        let why = if is_review {
            format!("there is no roleset `{name}` of reviewers")
        } else {
            format!("there is no model `{name}`; GET /v1/models lists all")
        };
        Err(ApiError::unknown("model_not_found", why))
    }
}

/// Returns the roleset and the model that a name stands for.
pub(in crate::serve) fn split_name(name: &str) -> (&str, Option<&str>) {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    match name.split_once('@') {
        Some((roleset, model)) => (roleset, Some(model)),
        None => (name, None),
    }
}
