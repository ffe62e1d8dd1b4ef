//! The small schemas with which servers decode envelopes.
//!
//! Every object that such a schema admits is admitted by the full schema too. Model servers enforce only a part of JSON
//! Schema, silently ignore another part, and hang on a third. So nothing is used but `type`, `const`, `enum`,
//! `properties`, `required`, `additionalProperties`, `anyOf`, bounded `maxLength` and `items`, and anchored patterns.
//! Properties are in the order in which they are to be generated: a thought comes before the decision that follows from
//! it.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::envelope::{DETAIL_CHARS_MIN, SOLVED_MARKER};
use super::memo::Memo;
use super::schema::{ENVELOPE_VALUE, SchemaText};
use super::sentences::{sentence_list, sentences};
use super::shape::{closed, fixed, non_empty_string, of_types, string};
use super::{CanonicalKind, Canonicalizer, Constraint, DecimalSign, listed_sentences};

/// The longest generated strings for fields that are not the answer, in characters.
const SHORT_CHARS_MAX: usize = 120;
const LINE_CHARS_MAX: usize = 160;

/// The length from which a number may have been cut off by the grammar, in characters.
pub const NUMBER_CHARS_MAX: usize = 48;

/// The characters allowed inside a patterned line: those that need no escape in JSON, except `…`. The prompt's example
/// has `…` in place of each line, and small models copy what they see.
const PLAIN_CHARS: &str = r#"[^…"\\\x00-\x1F\x7F]"#;

/// The shortest line that says something, in characters.
const LINE_CHARS_MIN: usize = 8;

/// The line about the task in an envelope that points to its author's thoughts.
pub const AS_ABOVE: &str = "as above";

/// The message of a text that its author does not declare final, where no one reads it.
pub const OPEN: &str = "open";

/// The limits on what an agent may write in asks of one kind; see [`Decoder`].
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the ask, and none excludes another")]
pub struct Decoding<'a> {
    /// The name of the agent.
    pub role: &'a str,
    /// The domain of the agent.
    pub domain: &'a str,
    /// The name of the agent's peer.
    pub peer: &'a str,
    /// Whether this is a blind draft.
    pub is_blind: bool,
    /// Whether thoughts have been written down already, so that the decision need not wait for other fields.
    pub has_thought: bool,
    /// Whether the line about the task points to those thoughts, and says nothing again.
    pub points_to_thoughts: bool,
    /// Whether no one reads the message, so that it is a mark alone.
    pub is_unread: bool,
    /// The length of the private `thinking` field at the beginning of the envelope, in characters, if there is such a
    /// field.
    pub thinking_chars_max: Option<usize>,
    /// The number of things that the peer asked for.
    pub answers: usize,
    /// Whether the agent has an earlier answer, and so must say what changed it.
    pub has_answer: bool,
    /// Whether accepting would change the agent's answer, and so must come with a reason.
    pub accepting_changes: bool,
    /// The longest final text, in characters.
    pub text_chars_max: usize,
    /// The rules about the final text. Rules that a grammar can force are forced.
    pub constraints: &'a [Constraint],
}

/// The schemas for a server's structured decoding of envelopes of one kind.
///
/// Every object that such a schema admits is admitted by the full schema too. Only the handles that can be accepted
/// differ from turn to turn, so the rest is made once.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// The shape that accepts one of the peer's handles, as the text before and after the list of handles.
    accepting: (String, String),
    /// The shape that keeps the agent's own text by its handle, in the same two parts.
    keeping: (String, String),
    /// The shape that declares a text final by typing it.
    declaring: String,
    /// The shape that puts a text up for discussion.
    proposing: String,
    /// The shape without a text.
    working: String,
    is_blind: bool,
}

/// The commitments that the envelope of one ask may make.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// The peer's handles that can be accepted.
    pub acceptable: Vec<String>,
    /// The handle of the author's own text.
    pub own: Option<String>,
    /// Whether the author's thoughts ended with one of these handles, so that there is nothing left to write.
    pub is_decided: bool,
}

/// The placeholder for the handles. No schema text contains it.
const HANDLES: &str = "\u{1}handles";

impl Decoder {
    /// Returns the decoder of an ask, which does not change from turn to turn or between runs of one roleset.
    pub(crate) fn shared(
        memo: &Memo<Arc<Self>>,
        canonicalizer: &Canonicalizer,
        ask: &Decoding<'_>,
    ) -> Arc<Self> {
        memo.get(&format!("{canonicalizer:?} {ask:?}"), || Arc::new(Self::new(canonicalizer, ask)))
    }

    /// Creates the decoder of an ask, which does not change from turn to turn.
    pub fn new(canonicalizer: &Canonicalizer, ask: &Decoding<'_>) -> Self {
        let typed = Some(typed_text(canonicalizer, ask));
        Self {
            accepting: shape_with_handles(ask, ask.accepting_changes),
            keeping: shape_with_handles(ask, false),
            declaring: variant(ask, false, &["SOLVED"], typed.clone()).to_string(),
            proposing: variant(ask, false, &["PROPOSED", "READY_TO_SOLVE"], typed).to_string(),
            working: variant(ask, false, &["WORKING", "NEED_PEER"], None).to_string(),
            is_blind: ask.is_blind,
        }
    }

    /// Returns the schema of an ask with this offer. A blind draft has no handles.
    ///
    /// If there are handles of both agents, a final text is chosen by its handle, and a new text can be proposed. An
    /// agent that types its text again changes it by accident, or types its old text out of habit.
    ///
    /// # Panics
    ///
    /// Never: a JSON array replaces a whole JSON string, so the joined text is JSON.
    pub fn schema(&self, memo: &Memo<SchemaText>, offer: &Offer) -> SchemaText {
        let Offer { acceptable, own, is_decided } = offer;
        let mut shapes = Vec::new();
        if !acceptable.is_empty() {
            let (head, tail) = &self.accepting;
            shapes.push(format!("{head}{}{tail}", json!(acceptable)));
        }
        if !is_decided && (acceptable.is_empty() || own.is_none()) {
            shapes.push(self.declaring.clone());
        }
        if let Some(own) = own {
            let (head, tail) = &self.keeping;
            shapes.push(format!("{head}{}{tail}", json!([own])));
        }
        if !is_decided {
            shapes.push(self.proposing.clone());
        }
        // A blind draft commits to a text, because only then is it known what an agent thinks on its own.
        if !self.is_blind {
            shapes.push(self.working.clone());
        }
        let text = format!("{{\"anyOf\":[{}]}}", shapes.join(","));
        memo.get(&text, || SchemaText::from_json(text.clone()).expect("parts of JSON texts joined as JSON"))
    }
}

/// Returns a shape that names a handle, as the text before and after the list of handles.
fn shape_with_handles(ask: &Decoding<'_>, changes: bool) -> (String, String) {
    let handle = json!({"accepts": {"type": "string", "enum": HANDLES}});
    let shape = variant(ask, changes, &["SOLVED"], Some(closed(&handle))).to_string();
    let marker = Value::from(HANDLES).to_string();
    let (head, tail) = shape.split_once(&marker).unwrap_or((&shape, ""));
    (head.to_owned(), tail.to_owned())
}

/// Returns one shape of envelope from the statuses it may have and the final solution that goes with them.
///
/// `changes` says that this shape always changes the answer, and so must name a reason.
fn variant(ask: &Decoding<'_>, changes: bool, statuses: &[&str], final_solution: Option<Value>) -> Value {
    let mut fields = Map::new();
    fields.extend(ask.thinking_chars_max.map(|chars_max| ("thinking".to_owned(), string(chars_max))));
    fields.insert("role".to_owned(), fixed(ask.role));
    fields.insert("domain".to_owned(), fixed(ask.domain));
    let grounds = grounds(ask, changes);
    let decision = decision(statuses, final_solution);
    // A thought comes before the decision that follows from it. With thoughts written down, the decision comes first: a
    // small model that is cut off in a line about the task goes astray in what follows.
    let (first, second) = if ask.has_thought { (decision, grounds) } else { (grounds, decision) };
    fields.extend(first.into_iter().chain(second));
    fields.insert("public_message".to_owned(), public_message(statuses, ask.is_unread));
    // An agent that declares a text final has nothing left to ask.
    let needs_max = if statuses.contains(&"SOLVED") { 0 } else { 2 };
    let needs = json!({"type": "array", "items": string(SHORT_CHARS_MAX), "maxItems": needs_max});
    fields.insert("needs_from_peer".to_owned(), needs);
    fields.insert("handoff_to".to_owned(), fixed(ask.peer));
    closed(&Value::Object(fields))
}

/// Returns the fields for what an agent understood, checked, and changed.
fn grounds(ask: &Decoding<'_>, changes: bool) -> Map<String, Value> {
    let mut fields = Map::new();
    let understanding = if ask.points_to_thoughts { fixed(AS_ABOVE) } else { line(SHORT_CHARS_MAX) };
    fields.insert("task_understanding".to_owned(), understanding);
    fields.insert("artifact".to_owned(), artifact(ask.is_blind));
    fields.extend(meta(ask, changes).map(|meta| ("meta".to_owned(), meta)));
    fields
}

fn decision(statuses: &[&str], final_solution: Option<Value>) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("status".to_owned(), json!({"type": "string", "enum": statuses}));
    fields.extend(final_solution.map(|solution| ("final_solution".to_owned(), solution)));
    fields
}

fn public_message(statuses: &[&str], is_unread: bool) -> Value {
    let room = LINE_CHARS_MAX;
    let is_final = statuses.contains(&"SOLVED");
    if is_unread {
        fixed(if is_final { SOLVED_MARKER } else { OPEN })
    } else if is_final {
        json!({"type": "string", "pattern": format!(r"^\[SOLVED\] {PLAIN_CHARS}{{{LINE_CHARS_MIN},{room}}}$")})
    } else {
        // Without `[` there is no marker, and the first character already distinguishes the shapes.
        json!({"type": "string", "pattern": format!(r#"^[^…"\\\[\x00-\x1F\x7F]{{{LINE_CHARS_MIN},{room}}}$"#)})
    }
}

fn meta(ask: &Decoding<'_>, changes: bool) -> Option<Value> {
    let mut fields = Map::new();
    if ask.answers > 0 {
        let (count, item) = (ask.answers, non_empty_string(LINE_CHARS_MAX));
        let answers = json!({"type": "array", "items": item, "minItems": count, "maxItems": count});
        fields.insert("answers".to_owned(), answers);
    }
    if ask.has_answer {
        fields.insert("change".to_owned(), change(changes));
    }
    if fields.is_empty() { None } else { Some(closed(&Value::Object(fields))) }
}

/// Returns the schema of the named reason for a change. The kind `none` is not a reason if there is a change.
fn change(changes: bool) -> Value {
    let all = &ENVELOPE_VALUE["properties"]["meta"]["properties"]["change"]["properties"]["by"]["enum"];
    let kinds = all.as_array().into_iter().flatten().filter(|kind| !changes || *kind != "none");
    let by: Vec<&Value> = kinds.collect();
    let shortest = if changes { DETAIL_CHARS_MIN } else { 0 };
    let detail = json!({"type": "string", "minLength": shortest, "maxLength": LINE_CHARS_MAX});
    closed(&json!({"detail": detail, "by": {"type": "string", "enum": by}}))
}

fn artifact(is_blind: bool) -> Value {
    if is_blind {
        return closed(&json!({"type": fixed("results"), "content": {"enum": [{}]}}));
    }
    let kinds = &ENVELOPE_VALUE["properties"]["artifact"]["properties"]["type"]["enum"];
    closed(&json!({
        "type": {"type": "string", "enum": kinds},
        "content": closed(&json!({"summary": line(LINE_CHARS_MAX)})),
    }))
}

/// Returns the schema of a typed final text. Forms that a grammar can force are forced.
fn typed_text(canonicalizer: &Canonicalizer, ask: &Decoding<'_>) -> Value {
    let chars_max = ask.text_chars_max;
    let text = of_kind(canonicalizer, ask.constraints).unwrap_or_else(|| {
        let count = listed_sentences(canonicalizer.kind(), ask.constraints);
        if let Some(list) = count.and_then(|count| sentence_list(count, chars_max)) {
            return list;
        }
        match ask.constraints.iter().find_map(|rule| sentences(rule, chars_max)) {
            Some(pattern) => json!({"type": "string", "pattern": pattern}),
            None => non_empty_string(chars_max),
        }
    });
    closed(&json!({ "canonical_text": text }))
}

/// Returns the schema of an answer that is alone in a field, with at most `chars_max` characters.
pub fn answer_schema(canonicalizer: &Canonicalizer, constraints: &[Constraint], chars_max: usize) -> Value {
    of_kind(canonicalizer, constraints).unwrap_or_else(|| non_empty_string(chars_max))
}

/// Returns the schema of a text, if a grammar can force its kind.
fn of_kind(canonicalizer: &Canonicalizer, constraints: &[Constraint]) -> Option<Value> {
    match canonicalizer.kind() {
        CanonicalKind::Choice => {
            let choices: Vec<&str> = canonicalizer.choices().collect();
            Some(json!({"type": "string", "enum": choices}))
        }
        CanonicalKind::Number => {
            // A number that fills this room is refused as cut off, because a grammar closes a number that runs away.
            let (whole, rest) = (NUMBER_CHARS_MAX, NUMBER_CHARS_MAX);
            let decimals = if constraints.contains(&Constraint::Integer) {
                String::new()
            } else {
                let sign = match canonicalizer.decimal_sign() {
                    DecimalSign::Point => r"\.",
                    DecimalSign::Comma => ",",
                };
                format!("({sign}[0-9]{{1,{rest}}})?")
            };
            Some(json!({"type": "string", "pattern": format!("^-?[0-9]{{1,{whole}}}{decimals}$")}))
        }
        CanonicalKind::Json => Some(json_value(constraints)),
        CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Verbatim | CanonicalKind::Behaviour => {
            None
        }
    }
}

/// Returns the schema of an answer as a JSON value, which needs no escapes, in the form that a rule asks for.
///
/// A bare string is left out, because it would be read as the text of a JSON value.
fn json_value(constraints: &[Constraint]) -> Value {
    let schema = constraints.iter().find_map(Constraint::schema);
    schema.unwrap_or_else(|| of_types(&["object", "array", "number", "boolean"]))
}

fn line(chars_max: usize) -> Value {
    json!({"type": "string", "pattern": format!("^{PLAIN_CHARS}{{{LINE_CHARS_MIN},{chars_max}}}$")})
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::text::schema::compile;
    use crate::text::{CanonicalRule, Envelope};

    fn ask() -> Decoding<'static> {
        Decoding {
            role: "Writer",
            domain: "prose",
            peer: "Physicist",
            is_blind: false,
            has_thought: false,
            points_to_thoughts: false,
            is_unread: false,
            thinking_chars_max: None,
            answers: 2,
            has_answer: true,
            accepting_changes: true,
            text_chars_max: 500,
            constraints: &[],
        }
    }

    fn decoding(canonicalizer: &Canonicalizer, acceptable: &[String]) -> Value {
        let offer = Offer { acceptable: acceptable.to_vec(), ..Offer::default() };
        Decoder::new(canonicalizer, &ask()).schema(&Memo::default(), &offer).to_value()
    }

    /// Builds the smallest instance of a decoding schema: the variant `which`, first choices and shortest strings.
    fn instance(schema: &Value, which: usize) -> Value {
        if let Some(variants) = schema["anyOf"].as_array() {
            return instance(&variants[which], which);
        }
        if let Some(options) = schema["enum"].as_array() {
            return options[0].clone();
        }
        match schema["type"].as_str() {
            Some("object") => {
                let Some(fields) = schema["properties"].as_object() else { return json!({}) };
                fields.iter().map(|(k, v)| (k.clone(), instance(v, which))).collect::<Map<_, _>>().into()
            }
            Some("array") => {
                let count = schema["minItems"].as_u64().unwrap_or(0);
                (0..count).map(|_| instance(&schema["items"], which)).collect()
            }
            Some("number") => json!(7),
            Some("boolean") => json!(true),
            _ if schema["pattern"].as_str().is_some_and(|p| p.contains("SOLVED")) => {
                "[SOLVED] all is done".into()
            }
            _ if schema["pattern"].as_str().is_some_and(|p| p.contains("[0-9]")) => "7".into(),
            _ if schema["pattern"].is_string() => "all is done".into(),
            _ => "x".repeat(usize::try_from(schema["minLength"].as_u64().unwrap_or(1)).unwrap()).into(),
        }
    }

    #[test]
    fn every_decoded_shape_is_a_valid_envelope() {
        for kind in [CanonicalKind::Text, CanonicalKind::Number, CanonicalKind::Choice, CanonicalKind::Json] {
            let rule = CanonicalRule { choices: vec!["A".to_owned()], ..kind.into() };
            let canonicalizer = Canonicalizer::new(&rule);
            let handles = ["P2".to_owned()];
            let schema = decoding(&canonicalizer, &handles);
            let validator = compile(&schema);
            for which in 0..schema["anyOf"].as_array().unwrap().len() {
                let value = instance(&schema, which);
                assert!(validator.is_valid(&value), "{value}");
                Envelope::parse(&value.to_string()).unwrap();
            }
        }
    }

    #[test]
    fn decoding_uses_only_keywords_that_servers_enforce() {
        const ENFORCED: [&str; 12] = [
            "type",
            "const",
            "enum",
            "properties",
            "required",
            "additionalProperties",
            "anyOf",
            "items",
            "minItems",
            "maxItems",
            "minLength",
            "maxLength",
        ];
        fn walk(schema: &Value) {
            for (key, value) in schema.as_object().unwrap() {
                match key.as_str() {
                    "properties" => value.as_object().unwrap().values().for_each(walk),
                    "anyOf" => value.as_array().unwrap().iter().for_each(walk),
                    "items" => walk(value),
                    "pattern" => {
                        let pattern = value.as_str().unwrap();
                        assert!(pattern.starts_with('^') && pattern.ends_with('$'), "{pattern}");
                    }
                    other => assert!(ENFORCED.contains(&other), "{other}"),
                }
            }
            let bounds = schema["minLength"].as_u64().zip(schema["maxLength"].as_u64());
            assert!(bounds.is_none_or(|(min, max)| min <= max));
        }
        walk(&decoding(&Canonicalizer::new(&CanonicalRule::default()), &[]));
    }

    #[test]
    fn accepting_another_text_needs_a_reason() {
        let handles = ["P2".to_owned()];
        let schema = decoding(&Canonicalizer::new(&CanonicalRule::default()), &handles);
        let by =
            |which: usize| schema["anyOf"][which]["properties"]["meta"]["properties"]["change"].to_string();
        assert!(!by(0).contains("none") && by(1).contains("none"));
    }

    #[test]
    fn forms_that_a_grammar_can_force_are_forced() {
        let typed = |kind: CanonicalKind, rule: &str, text: Value| {
            let canonicalizer = Canonicalizer::new(&kind.into());
            let constraints = [Constraint::parse(rule).unwrap()];
            let schema = typed_text(&canonicalizer, &Decoding { constraints: &constraints, ..ask() });
            compile(&schema).is_valid(&json!({ "canonical_text": text }))
        };
        assert!(typed(CanonicalKind::Number, "integer", json!("12")));
        assert!(!typed(CanonicalKind::Number, "integer", json!("1.5")));
        assert!(typed(CanonicalKind::Json, "keys=a,b", json!({"a": 1, "b": [true]})));
        assert!(!typed(CanonicalKind::Json, "keys=a,b", json!({"a": 1})));
        for kind in [CanonicalKind::Lines, CanonicalKind::Verbatim] {
            assert!(typed(kind, "sentences=2", json!("One is here. Two is there!")));
            assert!(!typed(kind, "sentences=2", json!("One is here.")));
            // UAX #29 counts this as one sentence.
            assert!(!typed(kind, "sentences=2", json!("It is so. 3 apples fell.")));
        }
        assert!(typed(CanonicalKind::Text, "sentences=2", json!(["One is here.", "Two is there!"])));
        assert!(!typed(CanonicalKind::Text, "sentences=2", json!(["One is here."])));
        assert!(!typed(
            CanonicalKind::Text,
            "sentences=2",
            json!(["One is here. And here.", "Two is there!"])
        ));
        assert!(typed(CanonicalKind::Text, "sentences=1", json!("One is here.")));
    }

    #[test]
    fn a_blind_draft_offers_no_adoption() {
        let canonicalizer = Canonicalizer::new(&CanonicalRule::default());
        let text = decoding(&canonicalizer, &[]).to_string();
        assert!(!text.contains("accepts"));
    }
}
