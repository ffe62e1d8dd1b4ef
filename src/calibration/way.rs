//! The way in which runs were made: a calibration holds for no other.
//!
//! The input is the setup of a run, its limits, and the models of its agents. The output is the parts that have to be the same, and those
//! of another run that are not. The task, the constraints, the seed and the servers may differ.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crypto::Digest;
use protocol::core::Endpoint;
use protocol::text::{CanonicalKind, counted, escape};
use protocol::{ProtocolParams as _, RunSetup};

/// The limits of runs on tokens and cost.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunLimits {
    /// The most tokens of all calls together.
    pub tokens: Option<u64>,
    /// The highest cost of all calls together, in millionths of a US dollar.
    pub cost_micro_usd: Option<u64>,
}

impl fmt::Display for RunLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tokens, self.cost_micro_usd) {
            (None, None) => write!(f, "none"),
            (Some(tokens), None) => write!(f, "{}", counted(tokens, "token")),
            (None, Some(cost)) => write!(f, "{} USD", cost as f64 / 1e6),
            (Some(tokens), Some(cost)) => {
                write!(f, "{} or {} USD", counted(tokens, "token"), cost as f64 / 1e6)
            }
        }
    }
}

/// The parts of a run's way that are known before it begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KnownParts {
    /// The setup without the kind of answers, which a task may say, and without the models.
    Setup,
    /// Everything but the kind of answers.
    Models,
    All,
}

/// A way of making runs.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratedWay {
    pub protocol: String,
    /// The name of the roleset.
    pub roleset: String,
    /// The models of the agents as their servers name them, the arbiter's last.
    pub models: Vec<String>,
    /// The kind of answers.
    pub kind: CanonicalKind,
    /// The parameters of the protocol.
    pub params: Map<String, Value>,
    /// The digest of the agents with their instructions, and of the user's check.
    pub agents_sha256: Digest,
    /// Whether documents are searched.
    pub is_searching: bool,
    /// The limits on tokens and cost. A run that reaches them gives no answer, so they choose which answers are given.
    pub limits: RunLimits,
    /// The fields that are added to the requests of each agent; null where they are not known, as in a run from a bank.
    pub extras: Vec<Option<Map<String, Value>>>,
}

impl CalibratedWay {
    /// Returns the way of a run with this setup and these limits, on models at these endpoints.
    pub fn new(setup: &RunSetup, endpoints: &[Endpoint], limits: RunLimits) -> Self {
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
            params,
            agents_sha256: Digest::new(agents.as_bytes()),
            is_searching: setup.task.is_searched,
            limits,
            extras: endpoints.iter().map(Endpoint::extra_fields).collect(),
        }
    }

    /// Returns the parts in which another way differs, in words, if any does, as far as the other one is known.
    pub fn difference(&self, other: &Self, known: KnownParts) -> Option<String> {
        let parts = [
            ("protocol", true, self.protocol.clone(), other.protocol.clone()),
            ("roleset", true, self.roleset.clone(), other.roleset.clone()),
            ("model", known != KnownParts::Setup, self.models.join(", "), other.models.join(", ")),
            (
                "kind of answers",
                known == KnownParts::All,
                self.kind.name().to_owned(),
                other.kind.name().to_owned(),
            ),
        ];
        let mut differing: Vec<String> = parts
            .into_iter()
            .filter(|(_, is_compared, own, found)| *is_compared && own != found)
            .map(|(name, _, known, found)| {
                let [known, found] = [known, found].map(|value| escape::excerpt(&value));
                format!("the {name} is `{found}` and not `{known}`")
            })
            .collect();
        // Another protocol has other parameters and agents, which say nothing more.
        if self.protocol == other.protocol {
            differing.extend(self.parameters(other));
            if self.agents_sha256 != other.agents_sha256 {
                differing.push(
                    "the agents have other instructions, temperatures, lengths of replies or checks"
                        .to_owned(),
                );
            }
        }
        if self.is_searching != other.is_searching {
            differing.push("only one of the two searches documents".to_owned());
        }
        if self.limits != other.limits {
            differing
                .push(format!("the limits on tokens and cost are {} and not {}", other.limits, self.limits));
        }
        // Fields that are not known are no difference.
        let has_other_extras = self.extras.iter().zip(&other.extras).any(|extras| match extras {
            (Some(one), Some(other)) => one != other,
            (Some(_) | None, _) => false,
        });
        if known != KnownParts::Setup && has_other_extras {
            differing.push("the fields that are added to requests are others".to_owned());
        }
        if differing.is_empty() { None } else { Some(differing.join("; ")) }
    }

    /// Returns the parameters in which another way differs.
    fn parameters(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.params.keys().chain(other.params.keys()).collect();
        let mut differing = Vec::new();
        for name in names {
            if self.params.get(name) == other.params.get(name) {
                continue;
            }
            let [known, found] = [self, other].map(|way| match way.params.get(name) {
                Some(value) => format!("`{}`", escape::excerpt(&value.to_string())),
                None => "the default".to_owned(),
            });
            differing.push(format!("the parameter `{}` is {found} and not {known}", escape::excerpt(name)));
        }
        differing
    }
}
