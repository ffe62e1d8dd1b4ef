//! The way in which runs were made: a calibration holds for no other.
//!
//! The input is the setup of a run and the models of its agents. The output is what has to be the same, and the parts that are not. The
//! task, the rules that it says, the seed and the servers may differ.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::core::Endpoint;
use crate::crypto::Digest;
use crate::protocol::{ProtocolParams as _, RulesVersion, RunSetup};
use crate::text::CanonicalKind;

/// A way of making runs.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratedWay {
    /// The protocol.
    pub protocol: String,
    /// The name of the roleset.
    pub roleset: String,
    /// The models of the agents as their servers name them, the arbiter's last.
    pub models: Vec<String>,
    /// The kind of answers.
    pub kind: CanonicalKind,
    /// The version of the protocol's rules.
    pub rules_version: RulesVersion,
    /// The parameters of the protocol.
    pub params: Map<String, Value>,
    /// The digest of the agents with their instructions, and of the user's check.
    pub agents_sha256: Digest,
}

impl CalibratedWay {
    /// Returns the way of a run with this setup, on models at these endpoints.
    #[must_use]
    pub fn new(setup: &RunSetup, endpoints: &[Endpoint]) -> Self {
        let mut params = setup.params.clone();
        if let Some(constraints) = params.constraints_mut() {
            constraints.clear();
        }
        let params = match json!(params) {
            Value::Object(params) => params,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        };
        let command = setup.check_command.as_ref().map(|check| &check.command);
        let agents = json!([setup.agents, setup.arbiter, command, setup.interpreter]).to_string();
        Self {
            protocol: setup.params.protocol().to_owned(),
            roleset: setup.roleset.clone(),
            models: endpoints.iter().map(|endpoint| endpoint.model().to_owned()).collect(),
            kind: setup.canonical.kind,
            rules_version: setup.rules_version,
            params,
            agents_sha256: Digest::new(agents.as_bytes()),
        }
    }

    /// Returns the parts in which another way differs, in words, if any does. Answers of any kind fit where `kind` is false.
    #[must_use]
    pub fn difference(&self, other: &Self, kind: bool) -> Option<String> {
        let parts = [
            ("protocol", self.protocol.clone(), other.protocol.clone()),
            ("roleset", self.roleset.clone(), other.roleset.clone()),
            ("model", self.models.join(", "), other.models.join(", ")),
            ("kind of answers", self.kind.name().to_owned(), other.kind.name().to_owned()),
            (
                "version of the rules",
                u32::from(self.rules_version).to_string(),
                u32::from(other.rules_version).to_string(),
            ),
        ];
        let counts = |name: &str| kind || name != "kind of answers";
        let mut differing: Vec<String> = parts
            .into_iter()
            .filter(|(name, known, found)| counts(name) && known != found)
            .map(|(name, known, found)| {
                format!("its {name} is `{found}`, and the calibration's is `{known}`")
            })
            .collect();
        // Another protocol has other parameters and agents, which say nothing more.
        if self.protocol == other.protocol {
            differing.extend(self.parameters(other));
            if self.agents_sha256 != other.agents_sha256 {
                differing.push("its agents have other instructions, temperatures or checks".to_owned());
            }
        }
        (!differing.is_empty()).then(|| differing.join("; "))
    }

    /// Returns the parameters in which another way differs.
    fn parameters(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.params.keys().chain(other.params.keys()).collect();
        let shown =
            |value: Option<&Value>| value.map_or("the default".to_owned(), |value| format!("`{value}`"));
        let differing = names.into_iter().filter(|name| self.params.get(*name) != other.params.get(*name));
        let told = |name: &String| {
            let [known, found] = [self, other].map(|way| shown(way.params.get(name)));
            format!("its parameter `{name}` is {found}, and the calibration's is {known}")
        };
        differing.map(told).collect()
    }
}
