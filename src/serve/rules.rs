//! The rules of a server, which do not change while it runs.

use super::guard::Guard;

/// The beginning of the name of each model.
pub(super) const PREFIX: &str = "consensus/";

/// A roleset that is served.
#[derive(Clone, Debug)]
pub struct ServedRoleset {
    /// The name.
    pub name: String,
    /// The description, by its author.
    pub description: String,
    /// Whether its agents review changes. Then it is no model.
    pub is_for_changes: bool,
}

/// The rules of a server.
#[derive(Debug)]
pub(super) struct ServerRules {
    pub(super) guard: Guard,
    pub(super) rolesets: Vec<ServedRoleset>,
    /// The names of the models on which callers may put a roleset.
    pub(super) allowed: Vec<String>,
}

impl ServerRules {
    /// Returns the rolesets that answer questions, or those that review changes.
    pub(super) fn rolesets(&self, is_for_changes: bool) -> impl Iterator<Item = &ServedRoleset> {
        self.rolesets.iter().filter(move |served| served.is_for_changes == is_for_changes)
    }

    /// Returns the names of the models, each with its roleset.
    pub(super) fn models(&self) -> impl Iterator<Item = (String, &ServedRoleset)> {
        self.rolesets(false).map(|served| (format!("{PREFIX}{}", served.name), served))
    }
}
