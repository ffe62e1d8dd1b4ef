//! What each of the three writes, strictly read.
//!
//! In: a reply's text and the sources that may be cited. Out: a form whose every field is checked, or a
//! [`Violation`] for its author. Nothing is filled in. A quote that does not stand in its source is a
//! violation while there are attempts left; on the last one it voids its check or citation, and the rest
//! stands ([`Strictness`]).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::evidence::{Evidence, Source, Sources};
use super::findings::Findings;
use super::params::ConfidenceFrom;
use super::quotable::{QUOTE_CHARS, quotes};
use crate::core::BasisPoints;
use crate::protocol::contract::with_text;
use crate::protocol::turn::Valid;
use crate::text::{CanonicalKind, StrictValue, Violation, escape, extract, read_one};

/// The most checks or citations in one reply.
const EVIDENCE_MAX: usize = 8;
/// The longest claim, in characters.
const CLAIM_CHARS_MAX: usize = 300;
/// The longest reasoning, in characters; it is shown to the others when its author is the weakest.
const REASONING_CHARS_MAX: usize = 600;
/// The longest framing, in characters.
const FRAMING_CHARS_MAX: usize = 800;
/// The longest list of words to search for, in characters.
const SEARCH_CHARS_MAX: usize = 200;

/// What Pathos writes: what is meant.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Framing {
    /// What the user wants, for whom, and what a good answer must do.
    pub framing: String,
    /// Words to search the documents for.
    pub search: String,
    /// Why it reads the task so.
    pub reasoning: String,
    /// How sure it is to know what is meant.
    pub confidence: BasisPoints,
    /// Whether it would put its name to this; only where that word's probability is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// The probability of `yes` there, where the server told it; it counts in place of the confidence.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub measured: Option<BasisPoints>,
}

/// What Logos writes: the answer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// The answer.
    pub response: String,
    /// What it rests on.
    pub citations: Vec<Citation>,
    /// Why it is right.
    pub reasoning: String,
    /// How sure it is.
    pub confidence: BasisPoints,
    /// Whether it would put its name to this; only where that word's probability is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// The probability of `yes` there, where the server told it; it counts in place of the confidence.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub measured: Option<BasisPoints>,
}

/// Whether an author would put its name to what it wrote.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sound {
    /// It would.
    Yes,
    /// It would not.
    No,
}

/// A place that an answer rests on.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Citation {
    /// Which source.
    pub source: String,
    /// Its words.
    pub quote: String,
    /// Where they stand; filled in when they are found.
    #[serde(default, skip_deserializing)]
    pub evidence: Option<Evidence>,
}

/// What Ethos writes: whether the answer holds.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// Claims of the answer and demands of the task, held against their sources.
    pub checks: Vec<Check>,
    /// Whether the answer must not go out as it is.
    pub veto: bool,
    /// Why.
    pub reasoning: String,
    /// How sure it is that the answer is true and breaks no rule.
    pub confidence: BasisPoints,
    /// Whether it would put its name to this; only where that word's probability is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// The probability of `yes` there, where the server told it; it counts in place of the confidence.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub measured: Option<BasisPoints>,
}

/// One claim held against a source.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The claim or demand.
    pub claim: String,
    /// What became of it.
    pub verdict: CheckVerdict,
    /// Which source decides.
    pub source: String,
    /// Its words.
    pub quote: String,
    /// Where they stand; filled in when they are found.
    #[serde(default, skip_deserializing)]
    pub evidence: Option<Evidence>,
}

/// What became of a check.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// The answer agrees with the source.
    Holds,
    /// The answer contradicts the source, or breaks its demand.
    Fails,
    /// The source does not decide.
    Unknown,
}

/// Whether a false quote refuses a reply, or only voids what rests on it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Strictness {
    /// It is sent back.
    Refuse,
    /// There is no attempt left.
    Void,
}

impl Check {
    /// Whether it says more than that no source decides.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.verdict != CheckVerdict::Unknown
    }
}

impl Verification {
    /// Returns the checks that fail with evidence: what a veto can rest on.
    pub fn defects(&self) -> impl Iterator<Item = (&Check, &Evidence)> {
        let fails = self.checks.iter().filter(|check| check.verdict == CheckVerdict::Fails);
        fails.filter_map(|check| Some((check, check.evidence.as_ref()?)))
    }

    /// Compares the form with the thoughts before it, which may bind it.
    pub(super) fn keeps(&self, found: Findings) -> Result<(), Violation> {
        let fails = self.checks.iter().position(|check| check.verdict == CheckVerdict::Fails);
        let pointer = match (self.veto, fails) {
            _ if !found.all_kept => return Ok(()),
            (true, _) => "/veto".to_owned(),
            (false, Some(index)) => format!("/checks/{index}/verdict"),
            (false, None) => return Ok(()),
        };
        let message = "you have found above that everything is kept, and say here that it is not".to_owned();
        Err(Violation::Schema { pointer, message })
    }
}

/// Reads Pathos's reply.
pub(super) fn framing(reply: &str) -> Result<Valid<Framing>, Violation> {
    let mut valid: Valid<Framing> = read(reply)?;
    let Framing { framing, search, reasoning, .. } = &mut valid.content;
    for text in [&mut *framing, &mut *search, &mut *reasoning] {
        text.trim().to_owned().clone_into(text);
    }
    within("framing", framing, 1, FRAMING_CHARS_MAX)?;
    within("search", search, 0, SEARCH_CHARS_MAX)?;
    within("reasoning", reasoning, 0, REASONING_CHARS_MAX)?;
    Ok(valid)
}

/// Reads Logos's reply; its text is for the caller to judge.
pub(super) fn response(
    reply: &str,
    kind: CanonicalKind,
    sources: &Sources,
    strictness: Strictness,
) -> Result<Valid<Response>, Violation> {
    let mut valid: Valid<Response> = read_as(reply, kind)?;
    let Response { citations, reasoning, .. } = &mut valid.content;
    within("reasoning", reasoning, 0, REASONING_CHARS_MAX)?;
    at_most("citations", citations.len())?;
    for (index, citation) in citations.iter_mut().enumerate() {
        let at = format!("/citations/{index}");
        citation.evidence = evidence(sources, &at, &citation.source, &citation.quote, strictness)?;
    }
    Ok(valid)
}

/// Reads Ethos's reply.
pub(super) fn verification(
    reply: &str,
    sources: &Sources,
    strictness: Strictness,
) -> Result<Valid<Verification>, Violation> {
    let mut valid: Valid<Verification> = read(reply)?;
    let Verification { checks, reasoning, .. } = &mut valid.content;
    within("reasoning", reasoning, 0, REASONING_CHARS_MAX)?;
    at_most("checks", checks.len())?;
    if checks.is_empty() {
        let message = "nothing was checked; the task is a source too".to_owned();
        return Err(Violation::Schema { pointer: "/checks".to_owned(), message });
    }
    for (index, check) in checks.iter_mut().enumerate() {
        let at = format!("/checks/{index}");
        within(&format!("{at}/claim"), &check.claim, 1, CLAIM_CHARS_MAX)?;
        // What no source decides needs no words of one.
        let strictness = if check.is_decided() { strictness } else { Strictness::Void };
        check.evidence = evidence(sources, &at, &check.source, &check.quote, strictness)?;
    }
    Ok(valid)
}

fn read<T: DeserializeOwned>(reply: &str) -> Result<Valid<T>, Violation> {
    read_as(reply, CanonicalKind::Text)
}

/// Reads a form whose answer, if it has one, is of this kind.
fn read_as<T: DeserializeOwned>(reply: &str, kind: CanonicalKind) -> Result<Valid<T>, Violation> {
    let object = extract(reply)?.object;
    // A list in place of an object would be read by the order of its entries.
    let StrictValue(value) = read_one(object)?;
    for (name, field) in value.as_object().into_iter().flatten() {
        if field.as_array().is_some_and(|entries| entries.iter().any(Value::is_array)) {
            let message = "each entry is an object with named fields".to_owned();
            return Err(Violation::Schema { pointer: format!("/{}", escape::excerpt(name)), message });
        }
    }
    Ok(Valid { content: read_one(&with_text(object, kind))?, object: object.to_owned() })
}

fn within(field: &str, text: &str, min: usize, max: usize) -> Result<(), Violation> {
    let found = text.trim().chars().count();
    if (min..=max).contains(&found) {
        return Ok(());
    }
    let message = format!("it has {found} characters; {min} to {max} are allowed");
    Err(Violation::Schema { pointer: format!("/{}", field.trim_start_matches('/')), message })
}

fn at_most(field: &str, found: usize) -> Result<(), Violation> {
    if found <= EVIDENCE_MAX {
        return Ok(());
    }
    let message = format!("it has {found} entries; write the {EVIDENCE_MAX} that matter most");
    Err(Violation::Schema { pointer: format!("/{field}"), message })
}

fn evidence(
    sources: &Sources,
    at: &str,
    source: &str,
    words: &str,
    strictness: Strictness,
) -> Result<Option<Evidence>, Violation> {
    let refuse = |field: &str, message: String| match strictness {
        Strictness::Refuse => Err(Violation::Schema { pointer: format!("{at}/{field}"), message }),
        Strictness::Void => Ok(None),
    };
    let Some(known) = sources.get(source) else {
        let names = sources.names().collect::<Vec<_>>().join(", ");
        return refuse(
            "source",
            format!("there is no source `{}`; there is {names}", escape::excerpt(source)),
        );
    };
    let (min, max) = QUOTE_CHARS;
    if !(min..=max).contains(&words.trim().chars().count()) {
        return refuse("quote", format!("a quote has {min} to {max} characters"));
    }
    match known.find(words) {
        Some(found) => Ok(Some(found)),
        None => refuse(
            "quote",
            format!(
                "`{}` does not stand in {source}; copy its words letter for letter",
                escape::excerpt(words)
            ),
        ),
    }
}

// ===== Decoding schemas: only what servers are known to enforce =====

/// Returns the schema of Pathos's reply.
pub(super) fn framing_schema(from: ConfidenceFrom) -> Value {
    form(
        from,
        json!({
            "framing": string(1, FRAMING_CHARS_MAX),
            "search": string(0, SEARCH_CHARS_MAX),
            "reasoning": string(0, REASONING_CHARS_MAX),
        }),
    )
}

/// Returns the schema of Logos's reply, with that of its answer.
pub(super) fn response_schema(from: ConfidenceFrom, sources: &Sources, answer: &Value) -> Value {
    let citation = any_of(sources.all().iter().map(|source| object(&quoted(source, json!({})))));
    form(
        from,
        json!({
            "response": answer,
            "citations": {"type": "array", "items": citation, "maxItems": EVIDENCE_MAX},
            "reasoning": string(0, REASONING_CHARS_MAX),
        }),
    )
}

/// Returns the schema of Ethos's reply.
///
/// After thoughts that list what they found it has as many checks, and where all is kept, none that fails.
pub(super) fn verification_schema(from: ConfidenceFrom, sources: &Sources, found: Option<Findings>) -> Value {
    let all_kept = found.is_some_and(|found| found.all_kept);
    let verdicts: &[&str] = if all_kept { &["holds"] } else { &["holds", "fails"] };
    let veto =
        if all_kept { json!({"type": "boolean", "enum": [false]}) } else { json!({"type": "boolean"}) };
    let count = found.map_or(0, |found| found.count);
    let checks_max = if count == 0 { EVIDENCE_MAX } else { count.min(EVIDENCE_MAX) };
    let claim = || json!({"claim": string(1, CLAIM_CHARS_MAX)});
    let decided = sources.all().iter().map(|source| {
        let mut check = quoted(source, claim());
        check["verdict"] = json!({"type": "string", "enum": verdicts});
        object(&check)
    });
    let mut open = claim();
    open["source"] = json!({"type": "string", "enum": sources.names().collect::<Vec<_>>()});
    open["quote"] = json!({"type": "string", "enum": [""]});
    open["verdict"] = json!({"type": "string", "enum": ["unknown"]});
    let check = any_of(decided.chain([object(&open)]));
    form(
        from,
        json!({
            "checks": {"type": "array", "items": check, "minItems": 1, "maxItems": checks_max},
            "reasoning": string(0, REASONING_CHARS_MAX),
            "veto": veto,
        }),
    )
}

/// The field whose word is measured.
pub(super) const MEASURED: &str = "sound";

/// A form: its fields, and how sure its author is at the end.
fn form(from: ConfidenceFrom, mut fields: Value) -> Value {
    fields["confidence"] = confidence();
    if from == ConfidenceFrom::Logprob {
        fields[MEASURED] = json!({"type": "string", "enum": ["yes", "no"]});
    }
    object(&fields)
}

fn string(min: usize, max: usize) -> Value {
    json!({"type": "string", "minLength": min, "maxLength": max})
}

/// Adds a source and its words to these fields: one of its sentences, or any words if there are too many of them.
fn quoted(source: &Source, mut fields: Value) -> Value {
    fields["source"] = json!({"type": "string", "enum": [source.name]});
    fields["quote"] = match quotes(&source.text) {
        Some(quotes) => json!({"type": "string", "enum": quotes}),
        None => string(QUOTE_CHARS.0, QUOTE_CHARS.1),
    };
    fields
}

fn any_of(shapes: impl Iterator<Item = Value>) -> Value {
    json!({"anyOf": shapes.collect::<Vec<_>>()})
}

/// Steps of a twentieth: servers do not enforce bounds of numbers, and nobody is surer than that.
fn confidence() -> Value {
    let steps: Vec<f64> = (0..=20).map(|step| f64::from(step) / 20.0).collect();
    json!({"enum": steps})
}

fn object(fields: &Value) -> Value {
    let names: Vec<&String> = fields.as_object().into_iter().flat_map(|map| map.keys()).collect();
    json!({"type": "object", "properties": fields, "required": names, "additionalProperties": false})
}
