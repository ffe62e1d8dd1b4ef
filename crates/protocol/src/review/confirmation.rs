//! The confirmation of findings: each reviewer judges what the others have found, without their names and their verdicts.
//!
//! The input is the forms of all reviewers, and a reply. The output is the claims that a reviewer judges, the schema of its form, and which
//! claims it confirms. A claim without an answer is refused, and one that is not confirmed stays a finding.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::form::{Finding, PartReview};
use crate::text::{StrictValue, Violation, closed, escape, extract, read_one};
use crate::turn::Valid;

/// The number of the draft, in a call, by which a reviewer judges the findings of others. Its review has the number 0.
pub(crate) const CONFIRMATION: u32 = 1;

/// A finding with the reviewers that have confirmed it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReviewedFinding {
    /// The name of the reviewer that has found it.
    pub reviewer: String,
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// The number of other reviewers that have judged it.
    pub judged_by: usize,
    /// The names of those that have confirmed it; empty if none has.
    pub confirmed_by: Vec<String>,
}

impl ReviewedFinding {
    /// Returns true if others have judged this finding, and none has confirmed it.
    pub fn is_doubted(&self) -> bool {
        self.judged_by > 0 && self.confirmed_by.is_empty()
    }
}

/// A finding that another reviewer judges.
#[derive(Clone, Copy, Debug)]
pub(super) struct JudgedFinding<'a> {
    /// The reviewer that has found it.
    pub(super) author: usize,
    /// Its place among the findings of its author on the part.
    pub(super) place: usize,
    pub(super) finding: &'a Finding,
}

/// Returns what all reviewers but this one have found in a part, in the order of the reviewers.
pub(super) fn claims(
    forms: &[BTreeMap<usize, Option<PartReview>>],
    reviewer: usize,
    part: usize,
) -> Vec<JudgedFinding<'_>> {
    let mut claims = Vec::new();
    for (author, forms) in forms.iter().enumerate() {
        if author == reviewer {
            continue;
        }
        let Some(Some(form)) = forms.get(&part) else { continue };
        let findings = form.findings.iter().enumerate();
        claims.extend(findings.map(|(place, finding)| JudgedFinding { author, place, finding }));
    }
    claims
}

/// Returns the name of a claim in a form.
pub(super) fn claim_name(at: usize) -> String {
    format!("claim_{}", at + 1)
}

/// Returns the schema of a form on so many claims.
pub(super) fn confirmation_schema(claims: usize) -> Value {
    let answers: Map<String, Value> =
        (0..claims).map(|at| (claim_name(at), json!({"enum": ["yes", "no"]}))).collect();
    closed(&Value::Object(answers))
}

/// Reads a form: whether each claim is confirmed.
pub(super) fn read_confirmation(reply: &str, claims: usize) -> Result<Valid<Vec<bool>>, Violation> {
    let object = extract(reply)?.object;
    let StrictValue(value) = read_one(object)?;
    let answers = value.as_object().map(Map::len).unwrap_or_default();
    let mut content = Vec::new();
    for at in 0..claims {
        let name = claim_name(at);
        match value.get(&name).and_then(Value::as_str) {
            Some("yes") => content.push(true),
            Some("no") => content.push(false),
            Some(_) | None => {
                return Err(Violation::schema(&format!("/{name}"), "answer each claim with `yes` or `no`"));
            }
        }
    }
    if answers > claims {
        let message = format!("answer the {claims} claims, and nothing else");
        return Err(Violation::schema("/", escape::message(&message)));
    }
    Ok(Valid { content, object: object.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::schema::compile;

    #[test]
    fn every_claim_is_answered() {
        let read = |text: &str| read_confirmation(text, 2).map(|valid| valid.content);
        assert_eq!(read("{\"claim_1\": \"yes\", \"claim_2\": \"no\"}").unwrap(), [true, false]);
        for bad in [
            "{\"claim_1\": \"yes\"}",
            "{\"claim_1\": \"yes\", \"claim_2\": \"maybe\"}",
            "{\"claim_1\": \"yes\", \"claim_2\": \"no\", \"claim_3\": \"no\"}",
            "yes",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let schema = compile(&confirmation_schema(2));
        assert!(schema.is_valid(&json!({"claim_1": "yes", "claim_2": "no"})));
        assert!(!schema.is_valid(&json!({"claim_1": "yes"})));
    }
}
