//! The forms that the three agents write, read strictly.
//!
//! The input is a reply's text and the sources that may be cited. The output is a form whose every field is checked, or a [`Violation`] for
//! its author. Nothing is filled in. A quote that is not in its source is a violation while there are attempts left. On the last attempt it
//! only voids its check or citation, and the rest remains.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::evidence::{Evidence, Source, Sources};
use super::findings::Findings;
use super::params::ConfidenceFrom;
use super::quotable::{QUOTE_CHARS, quotes};
use crate::contract::with_text;
use crate::core::BasisPoints;
use crate::text::{CanonicalKind, StrictValue, Violation, escape, extract, read_one};
use crate::turn::Valid;

/// The maximum number of checks or citations in one reply.
const EVIDENCE_MAX: usize = 8;
/// The maximum length of a claim, in characters.
const CLAIM_CHARS_MAX: usize = 300;
/// The maximum length of the reasoning, in characters. The others see it when its author is the weakest.
const REASONING_CHARS_MAX: usize = 600;
/// The maximum length of the framing, in characters.
const FRAMING_CHARS_MAX: usize = 800;
/// The maximum length of the search words, in characters.
const SEARCH_CHARS_MAX: usize = 200;
/// The maximum length of a framing that is only shown, in characters.
const BRIEF_FRAMING_CHARS_MAX: usize = 300;
/// The maximum number of checks in a verification that is only shown.
const BRIEF_CHECKS_MAX: usize = 2;

/// The form of Pathos: the intent of the task.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Framing {
    /// The framing: the user's wish, for whom it is, and what a good answer must do.
    pub framing: String,
    /// The words to search the documents for.
    pub search: String,
    /// The reason for this reading of the task.
    pub reasoning: String,
    /// The confidence of Pathos that it knows the intent, 0 to 1.
    pub confidence: BasisPoints,
    /// Whether Pathos would put its name to this; present only where that word's probability is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// The probability of `yes` in that field, where the server reported it. It counts in place of the confidence.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub measured: Option<BasisPoints>,
}

/// The form of Logos: the answer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// The answer.
    pub response: String,
    /// The citations that the answer rests on.
    pub citations: Vec<Citation>,
    /// The reason why the answer is right.
    pub reasoning: String,
    /// The confidence of Logos in its answer, 0 to 1.
    pub confidence: BasisPoints,
    /// Whether Logos would put its name to this; present only where that word's probability is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// The probability of `yes` in that field, where the server reported it. It counts in place of the confidence.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub measured: Option<BasisPoints>,
}

/// Whether an author would put its name to its text.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sound {
    /// The author would.
    Yes,
    /// The author would not.
    No,
}

/// A place that an answer rests on.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Citation {
    /// The name of the source.
    pub source: String,
    pub quote: String,
    /// The place of the words; filled in when they are found.
    #[serde(default, skip_deserializing)]
    pub evidence: Option<Evidence>,
}

/// The form of Ethos: whether the answer holds.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// The claims of the answer and the demands of the task, each compared with a source.
    pub checks: Vec<Check>,
    /// Whether the answer must not go out as it is.
    pub veto: bool,
    /// The reason for the verdict.
    pub reasoning: String,
    /// The confidence of Ethos that the answer is true and breaks no rule, 0 to 1.
    pub confidence: BasisPoints,
    /// Whether Ethos would put its name to this; present only where that word's probability is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// The probability of `yes` in that field, where the server reported it. It counts in place of the confidence.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub measured: Option<BasisPoints>,
}

/// One claim or demand, compared with a source.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The claim or demand.
    pub claim: String,
    pub verdict: CheckVerdict,
    /// The name of the source that decides.
    pub source: String,
    pub quote: String,
    /// The place of the words; filled in when they are found.
    #[serde(default, skip_deserializing)]
    pub evidence: Option<Evidence>,
}

/// The verdict of a check.
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

impl Check {
    /// Returns whether a source decides the check.
    pub fn is_decided(&self) -> bool {
        self.verdict != CheckVerdict::Unknown
    }
}

impl Verification {
    /// Returns the checks that fail with evidence, on which a veto can rest.
    pub fn defects(&self) -> impl Iterator<Item = (&Check, &Evidence)> {
        let fails = self.checks.iter().filter(|check| check.verdict == CheckVerdict::Fails);
        fails.filter_map(|check| Some((check, check.evidence.as_ref()?)))
    }

    /// Checks that the form agrees with the thoughts before it, where they bind it.
    pub(super) fn require_agreement_with(&self, found: Findings) -> Result<(), Violation> {
        if !found.all_kept {
            return Ok(());
        }
        let fails = self.checks.iter().position(|check| check.verdict == CheckVerdict::Fails);
        let pointer = match (self.veto, fails) {
            (true, _) => "/veto".to_owned(),
            (false, Some(index)) => format!("/checks/{index}/verdict"),
            (false, None) => return Ok(()),
        };
        let message = "you have found above that everything is kept, and say here that it is not".to_owned();
        Err(Violation::Schema { pointer, message })
    }
}

/// Reads Pathos's reply.
pub(super) fn read_framing(reply: &str) -> Result<Valid<Framing>, Violation> {
    let mut valid: Valid<Framing> = read(reply)?;
    let Framing { framing, search, reasoning, .. } = &mut valid.content;
    for text in [&mut *framing, &mut *search, &mut *reasoning] {
        text.trim().to_owned().clone_into(text);
    }
    require_length("framing", framing, 1, FRAMING_CHARS_MAX)?;
    require_length("search", search, 0, SEARCH_CHARS_MAX)?;
    require_length("reasoning", reasoning, 0, REASONING_CHARS_MAX)?;
    Ok(valid)
}

/// Reads Logos's reply. The caller judges the text of the answer.
pub(super) fn read_response(
    reply: &str,
    kind: CanonicalKind,
    sources: &Sources,
    is_last_attempt: bool,
) -> Result<Valid<Response>, Violation> {
    let mut valid: Valid<Response> = read_as(reply, kind)?;
    let Response { citations, reasoning, .. } = &mut valid.content;
    require_length("reasoning", reasoning, 0, REASONING_CHARS_MAX)?;
    require_count("citations", citations.len())?;
    for (index, citation) in citations.iter_mut().enumerate() {
        let at = format!("/citations/{index}");
        citation.evidence = find_evidence(sources, &at, &citation.source, &citation.quote, is_last_attempt)?;
    }
    Ok(valid)
}

/// Reads Ethos's reply.
pub(super) fn read_verification(
    reply: &str,
    sources: &Sources,
    is_last_attempt: bool,
) -> Result<Valid<Verification>, Violation> {
    let mut valid: Valid<Verification> = read(reply)?;
    let Verification { checks, reasoning, .. } = &mut valid.content;
    require_length("reasoning", reasoning, 0, REASONING_CHARS_MAX)?;
    require_count("checks", checks.len())?;
    if checks.is_empty() {
        let message = "nothing was checked; the task is a source too".to_owned();
        return Err(Violation::Schema { pointer: "/checks".to_owned(), message });
    }
    for (index, check) in checks.iter_mut().enumerate() {
        let at = format!("/checks/{index}");
        require_length(&format!("{at}/claim"), &check.claim, 1, CLAIM_CHARS_MAX)?;
        // A check that no source decides needs no quote.
        let may_be_void = is_last_attempt || !check.is_decided();
        check.evidence = find_evidence(sources, &at, &check.source, &check.quote, may_be_void)?;
    }
    Ok(valid)
}

/// Checks that a form has the measured word where it is wanted, and only there.
pub(super) fn check_sound(from: ConfidenceFrom, sound: Option<Sound>) -> Result<(), Violation> {
    let message = match (from, sound) {
        (ConfidenceFrom::Logprob, None) => "it is missing",
        (ConfidenceFrom::Verbalised, Some(_)) => "there is no such field",
        (ConfidenceFrom::Logprob, Some(_)) | (ConfidenceFrom::Verbalised, None) => return Ok(()),
    };
    Err(Violation::Schema { pointer: format!("/{MEASURED}"), message: message.to_owned() })
}

fn read<T: DeserializeOwned>(reply: &str) -> Result<Valid<T>, Violation> {
    read_as(reply, CanonicalKind::Text)
}

/// Reads a form. Its answer, if it has one, is of this kind.
fn read_as<T: DeserializeOwned>(reply: &str, kind: CanonicalKind) -> Result<Valid<T>, Violation> {
    let object = extract(reply)?.object;
    // A list in place of an object would be read by the order of its entries, so it is refused.
    let StrictValue(value) = read_one(object)?;
    for (name, field) in value.as_object().into_iter().flatten() {
        if field.as_array().is_some_and(|entries| entries.iter().any(Value::is_array)) {
            let message = "each entry is an object with named fields".to_owned();
            return Err(Violation::Schema { pointer: format!("/{}", escape::excerpt(name)), message });
        }
    }
    Ok(Valid { content: read_one(&with_text(object, kind))?, object: object.to_owned() })
}

fn require_length(field: &str, text: &str, min: usize, max: usize) -> Result<(), Violation> {
    let found = text.trim().chars().count();
    if (min..=max).contains(&found) {
        return Ok(());
    }
    let message = format!("it has {found} characters; {min} to {max} are allowed");
    Err(Violation::Schema { pointer: format!("/{}", field.trim_start_matches('/')), message })
}

fn require_count(field: &str, found: usize) -> Result<(), Violation> {
    if found <= EVIDENCE_MAX {
        return Ok(());
    }
    let message = format!("it has {found} entries; write the {EVIDENCE_MAX} that matter most");
    Err(Violation::Schema { pointer: format!("/{field}"), message })
}

fn find_evidence(
    sources: &Sources,
    at: &str,
    source: &str,
    words: &str,
    may_be_void: bool,
) -> Result<Option<Evidence>, Violation> {
    let (min, max) = QUOTE_CHARS;
    let (field, message) = if let Some(known) = sources.get(source) {
        if !(min..=max).contains(&words.trim().chars().count()) {
            ("quote", format!("a quote has {min} to {max} characters"))
        } else if let Some(found) = known.find(words) {
            return Ok(Some(found));
        } else {
            let words = escape::excerpt(words);
            ("quote", format!("`{words}` does not stand in {source}; copy its words letter for letter"))
        }
    } else {
        let (source, names) = (escape::excerpt(source), sources.names().collect::<Vec<_>>().join(", "));
        ("source", format!("there is no source `{source}`; there is {names}"))
    };
    if may_be_void {
        return Ok(None);
    }
    Err(Violation::Schema { pointer: format!("{at}/{field}"), message })
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

/// Returns the schema of a framing that is only shown: it has no search words and no reasoning, which would cost tokens.
pub(super) fn brief_framing_schema() -> Value {
    let nothing = json!({"type": "string", "enum": [""]});
    form(
        ConfidenceFrom::Verbalised,
        json!({"framing": string(1, BRIEF_FRAMING_CHARS_MAX), "search": nothing, "reasoning": nothing}),
    )
}

/// Returns the schema of Logos's reply, which contains the schema of its answer and at least `citations_min` citations.
pub(super) fn response_schema(
    from: ConfidenceFrom,
    sources: &Sources,
    answer: &Value,
    citations_min: usize,
) -> Value {
    let citation = any_of(sources.all().iter().map(|source| object(&quoted(source, json!({})))));
    let mut citations = json!({"type": "array", "items": citation, "maxItems": EVIDENCE_MAX});
    if citations_min > 0 {
        citations["minItems"] = citations_min.into();
    }
    form(
        from,
        json!({"response": answer, "citations": citations, "reasoning": string(0, REASONING_CHARS_MAX)}),
    )
}

/// Returns the schema of Ethos's reply.
///
/// After thoughts that list findings, the form has at most as many checks. Where all is kept, no check can fail.
pub(super) fn verification_schema(from: ConfidenceFrom, sources: &Sources, found: Option<Findings>) -> Value {
    let all_kept = found.is_some_and(|found| found.all_kept);
    let verdicts: &[&str] = if all_kept { &["holds"] } else { &["holds", "fails"] };
    let veto =
        if all_kept { json!({"type": "boolean", "enum": [false]}) } else { json!({"type": "boolean"}) };
    let count = found.map_or(0, |found| found.count);
    let checks_max = if count == 0 { EVIDENCE_MAX } else { count.min(EVIDENCE_MAX) };
    checks_schema(from, sources, verdicts, &veto, checks_max)
}

/// Returns the schema of a verification that is only shown, which has few checks.
pub(super) fn brief_verification_schema(sources: &Sources) -> Value {
    let veto = json!({"type": "boolean"});
    checks_schema(ConfidenceFrom::Verbalised, sources, &["holds", "fails"], &veto, BRIEF_CHECKS_MAX)
}

fn checks_schema(
    from: ConfidenceFrom,
    sources: &Sources,
    verdicts: &[&str],
    veto: &Value,
    checks_max: usize,
) -> Value {
    let claim = json!({"claim": string(1, CLAIM_CHARS_MAX)});
    let decided = sources.all().iter().map(|source| {
        let mut check = quoted(source, claim.clone());
        check["verdict"] = json!({"type": "string", "enum": verdicts});
        object(&check)
    });
    let mut open = claim.clone();
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

/// The name of the field whose word is measured.
pub(super) const MEASURED: &str = "sound";

/// Returns the schema of a form: its fields, and at the end its author's confidence.
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

/// Adds a source and its words to these fields. The words are one of its sentences, or any words if there are too many sentences.
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

/// Returns the allowed confidences, in steps of a twentieth. Servers do not enforce bounds of numbers, and no agent is surer than that.
fn confidence() -> Value {
    let steps: Vec<f64> = (0..=20).map(|step| f64::from(step) / 20.0).collect();
    json!({"enum": steps})
}

fn object(fields: &Value) -> Value {
    let names: Vec<&String> = fields.as_object().into_iter().flat_map(|map| map.keys()).collect();
    json!({"type": "object", "properties": fields, "required": names, "additionalProperties": false})
}
