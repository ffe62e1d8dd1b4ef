//! Single settings of a roleset, changed by their paths.
//!
//! The input is a roleset, and paths such as `params.adopt` with their values. The output is the roleset with these values, checked
//! like its file, or every mistake. The names and instructions of agents belong to the roleset and are not changed here, but in a
//! copy.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check::check_value;
use super::error::{ConfigError, Problem};
use super::roleset::Roleset;

/// A setting of a roleset, as it is typed: `PATH=VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSetting {
    /// The names on the path, such as `params` and `adopt`.
    pub path: Vec<String>,
    pub value: Value,
}

impl PathSetting {
    /// Parses a setting. A value that is not JSON is taken as a string.
    ///
    /// Returns the fault in the setting.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (path, value) = text.split_once('=').ok_or("write PATH=VALUE, such as params.adopt=text")?;
        let path: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
        let is_own = match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["params" | "canonical", _] | ["redact" | "redact_patterns"] => true,
            ["agents", _, key] | ["arbiter", key] => {
                matches!(key, "model" | "domain" | "temperature" | "max_tokens")
            }
            _ => false,
        };
        if !is_own {
            return Err("a path is params.NAME, canonical.NAME, agents.AGENT.temperature (or max_tokens, model, domain), \
                        arbiter.temperature, redact or redact_patterns"
                .to_owned());
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        Ok(Self { path, value })
    }

    /// Returns the path, as it is typed.
    pub fn name(&self) -> String {
        self.path.join(".")
    }
}

/// Replaces settings of a roleset.
///
/// Returns [`ConfigError::Roleset`] with every setting that does not exist or has an impossible value.
pub fn set(roleset: &Roleset, settings: &[PathSetting]) -> Result<Roleset, ConfigError> {
    let mut value = serde_json::to_value(roleset).unwrap_or_default();
    let mut problems = Vec::new();
    for setting in settings {
        match find_place(&mut value, &setting.path) {
            Some(place) => *place = setting.value.clone(),
            None => {
                problems.push(Problem::new(
                    "--set",
                    &setting.name(),
                    "there is no such agent in this roleset",
                ));
            }
        }
    }
    if problems.is_empty() {
        check_value("the roleset with --set", value).map_err(ConfigError::Roleset)
    } else {
        Err(ConfigError::Roleset(problems))
    }
}

/// Returns the place that a path leads to; it is made if the object around it exists.
fn find_place<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value) };
    let next = match value {
        Value::Array(agents) => agents.iter_mut().find(|agent| agent["name"] == first.as_str())?,
        Value::Object(fields) => fields.entry(first.clone()).or_insert(Value::Null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    find_place(next, rest)
}

/// Returns the differences between two rolesets: each value that differs, by its JSON pointer, or null for a value that is gone.
pub fn differences(before: &Roleset, after: &Roleset) -> BTreeMap<String, Value> {
    let (before, mut after) = (leaves(before), leaves(after));
    let gone: Vec<String> = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
    after.retain(|name, value| before.get(name) != Some(value));
    after.extend(gone.into_iter().map(|name| (name, Value::Null)));
    after
}

/// Returns the values that contain no others, each by its JSON pointer.
fn leaves(roleset: &Roleset) -> BTreeMap<String, Value> {
    let mut leaves = BTreeMap::new();
    collect(&serde_json::to_value(roleset).unwrap_or_default(), String::new(), &mut leaves);
    leaves
}

fn collect(value: &Value, at: String, leaves: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                collect(value, format!("{at}/{name}"), leaves);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{at}/{index}"), leaves);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            leaves.insert(at, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{find_roleset, load_roleset};

    fn solver_checker() -> Roleset {
        load_roleset(&find_roleset("solver_checker", &[]).unwrap()).unwrap().0
    }

    #[test]
    fn setting_is_changed_by_path_and_checked() {
        let parse = |text: &str| PathSetting::parse(text).unwrap();
        let set_all = |texts: &[&str]| {
            let settings: Vec<PathSetting> = texts.iter().map(|text| parse(text)).collect();
            set(&solver_checker(), &settings)
        };
        let roleset = set_all(&["params.adopt=text", "agents.Checker.temperature=0.2"]).unwrap();
        let changes = differences(&solver_checker(), &roleset);
        let expected = [("/agents/1/temperature", 0.2.into()), ("/params/adopt", "text".into())];
        assert_eq!(changes, expected.map(|(name, value): (&str, Value)| (name.to_owned(), value)).into());
        for (text, part) in [
            ("params.adpot=text", "did you mean `adopt`"),
            ("params.max_rounds=0", "max_rounds"),
            ("agents.Nemo.temperature=1", "no such agent"),
        ] {
            let why = set_all(&[text]).unwrap_err().to_string();
            assert!(why.contains(part), "{text}: {why}");
        }
        assert!(PathSetting::parse("agents.Solver.pack=x").unwrap_err().contains("a path is"));
        assert!(PathSetting::parse("params").unwrap_err().contains("PATH=VALUE"));
    }
}
