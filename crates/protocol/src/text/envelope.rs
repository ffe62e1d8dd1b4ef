//! The envelope that an agent writes in one turn, as types.

use serde::{Deserialize, Serialize};

use super::{FinalText, StrictValue, Violation, extract, read_one, schema};

/// The mark in `public_message` that must accompany the status SOLVED, and no other status.
pub const SOLVED_MARKER: &str = "[SOLVED]";

/// The mark in `public_message` that gives the peer the floor.
const CONTACT_MARKER: &str = "[CONTACT]";

/// One turn of one agent, as the schema `envelope` describes it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The agent's name.
    pub role: String,
    /// The agent's domain, as a short label.
    pub domain: String,
    /// The task in the agent's own words.
    pub task_understanding: String,
    /// The agent's duties to the protocol besides its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// One or two lines for the peer.
    pub public_message: String,
    /// The work product that supports the answer.
    pub artifact: Artifact,
    /// The things that the peer must answer, at most three.
    pub needs_from_peer: Vec<String>,
    /// The name of the agent that should speak next: the peer's, or the author's own or nothing to continue alone.
    pub handoff_to: String,
    /// Free labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// A request to the people who read the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The agent's progress.
    pub status: Status,
    /// The answer, or the handle of the answer that is adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_solution: Option<FinalSolution>,
}

/// The progress of an agent, in ascending order of commitment.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// The agent is still thinking, and commits to nothing.
    Working,
    /// The agent cannot continue without its peer.
    NeedPeer,
    /// The agent offers an answer for discussion.
    Proposed,
    /// The agent would declare its answer final if the peer agrees.
    ReadyToSolve,
    /// The agent declares its answer final.
    Solved,
}

/// A work product.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// One of the eight types in the schema.
    #[serde(rename = "type")]
    pub kind: String,
    /// A JSON object.
    pub content: StrictValue,
}

/// The duties of an agent to the protocol besides its answer.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// One answer for each thing that the peer asked for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// The reason why the agent changed its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<AnswerChange>,
}

/// The named reason for a changed answer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerChange {
    /// The kind of reason.
    pub by: ChangeBy,
    /// The objection, check, constraint or evidence, and why it matters.
    pub detail: String,
}

/// The kinds of reasons that can make an agent change its answer.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeBy {
    /// The agent keeps its answer.
    None,
    /// An objection of the peer.
    Objection,
    /// A check of the agent's own: a calculation, a test, a second look.
    Check,
    /// A constraint of the task that the old answer broke.
    Constraint,
    /// A fact that the agent did not have before.
    Evidence,
}

/// The shortest detail that can name a reason, in characters.
pub(super) const DETAIL_CHARS_MIN: usize = 8;

impl AnswerChange {
    /// Returns true if a reason is named: a kind other than `none`, and words that say which.
    ///
    /// Characters are counted as a server's grammar counts them. A model that is bound by the grammar, and is refused
    /// for what the grammar let pass, writes the same again until its turns are used up.
    pub fn names_a_reason(&self) -> bool {
        let detail = &self.detail;
        let says_something = detail.chars().any(char::is_alphanumeric);
        self.by != ChangeBy::None && says_something && detail.chars().count() >= DETAIL_CHARS_MIN
    }
}

/// The answer itself, or the handle of the peer's answer.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FinalSolution {
    /// The complete final text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical_text: Option<FinalText>,
    /// The handle of the peer's proposal that is adopted unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts: Option<String>,
    /// The digest of the canonical text, which the controller fills in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// An envelope as it was found in a reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) envelope: Envelope,
    /// The object's text without the wrappers: the agent's own text, unless a `thinking` field was taken out.
    pub(crate) object: String,
}

impl Envelope {
    /// Reads the one envelope in `reply`.
    ///
    /// Repeated and unknown keys are refused during parsing, before anything is a generic value. The object is then
    /// validated against the schema `envelope`.
    ///
    /// # Errors
    ///
    /// A [`Violation`] in words for the author of the reply.
    pub fn parse(reply: &str) -> Result<Self, Violation> {
        Self::parse_with(reply, false).map(|parsed| parsed.envelope)
    }

    /// Reads an envelope as [`Envelope::parse`] does. `with_thinking` demands a leading `thinking` field and drops it.
    pub(crate) fn parse_with(reply: &str, with_thinking: bool) -> Result<Parsed, Violation> {
        let found = extract(reply)?;
        if with_thinking {
            let StrictValue(mut value) = read_one(found.object)?;
            let thinking = value.as_object_mut().and_then(|map| map.shift_remove("thinking"));
            if !thinking.is_some_and(|t| t.is_string()) {
                let message = "the first field must be `thinking`, a string".to_owned();
                return Err(Violation::Json { message });
            }
            let object = value.to_string();
            let envelope = read_one(&object)?;
            schema::validate_envelope(&value)?;
            return Ok(Parsed { envelope, object });
        }
        let envelope = read_one(found.object)?;
        let StrictValue(value) = read_one(found.object)?;
        schema::validate_envelope(&value)?;
        Ok(Parsed { envelope, object: found.object.to_owned() })
    }

    /// Returns true if `public_message` carries the marker `[SOLVED]`.
    pub fn has_solved_marker(&self) -> bool {
        self.public_message.contains(SOLVED_MARKER)
    }

    /// Returns true if the envelope gives the floor to the agent named `peer`.
    ///
    /// A plain WORKING keeps the floor. `[CONTACT]`, NEED_PEER, a request, a hand-off, and every status from PROPOSED
    /// on give it away.
    pub fn gives_floor_to(&self, peer: &str) -> bool {
        self.status != Status::Working || self.handoff_to == peer || self.calls_for_peer()
    }

    /// Returns true if the author wants something from its peer: `[CONTACT]`, NEED_PEER, or a request.
    pub fn calls_for_peer(&self) -> bool {
        self.status == Status::NeedPeer
            || self.public_message.contains(CONTACT_MARKER)
            || !self.needs_from_peer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOLVED: &str = r#"{"role":"A","domain":"d","task_understanding":"t","public_message":"[SOLVED] done",
        "artifact":{"type":"results","content":{}},"needs_from_peer":[],"handoff_to":"B",
        "status":"SOLVED","final_solution":{"canonical_text":"4"}}"#;

    #[track_caller]
    fn refused(reply: &str, part: &str) {
        let message = Envelope::parse(reply).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }

    #[test]
    fn the_required_fields_are_enough() {
        let envelope = Envelope::parse(SOLVED).unwrap();
        assert_eq!(envelope.status, Status::Solved);
        assert!(envelope.has_solved_marker());
        assert!(envelope.gives_floor_to("B"));
    }

    #[test]
    fn repeated_unknown_and_missing_keys_are_refused() {
        refused(&SOLVED.replace("\"role\":\"A\"", "\"role\":\"A\",\"role\":\"B\""), "duplicate field `role`");
        refused(&SOLVED.replace("\"role\":\"A\"", "\"role\":\"A\",\"vote\":1"), "unknown field `vote`");
        refused(&SOLVED.replace("\"domain\":\"d\",", ""), "missing field `domain`");
        refused(&SOLVED.replace("\"content\":{}", "\"content\":{\"a\":1,\"a\":2}"), "duplicate field `a`");
        refused(&SOLVED.replace("{\"canonical_text\":\"4\"}", "null"), "/final_solution");
    }

    #[test]
    fn two_objects_and_trailing_text_are_refused() {
        assert_eq!(Envelope::parse(&format!("{SOLVED}{SOLVED}")), Err(Violation::SeveralObjects));
        refused(&format!("{SOLVED} I hope this helps!"), "I hope this helps!");
    }

    #[test]
    fn the_thinking_field_is_dropped_unread() {
        let with = SOLVED.replacen('{', "{\"thinking\":\"2+2, so 4\",", 1);
        let parsed = Envelope::parse_with(&with, true).unwrap();
        assert!(!parsed.object.contains("2+2"));
        assert_eq!(parsed.envelope, Envelope::parse(SOLVED).unwrap());
        refused(&with, "unknown field `thinking`");
        assert!(Envelope::parse_with(SOLVED, true).is_err());
    }

    #[test]
    fn a_reason_needs_a_kind_and_words() {
        let change = |by, detail: &str| AnswerChange { by, detail: detail.to_owned() };
        assert!(change(ChangeBy::Check, "12 × 3 is 36, not 35").names_a_reason());
        assert!(!change(ChangeBy::None, "12 × 3 is 36, not 35").names_a_reason());
        assert!(change(ChangeBy::Check, "by: typo").names_a_reason());
        assert!(!change(ChangeBy::Check, " ok. ").names_a_reason());
        assert!(!change(ChangeBy::Check, "--------").names_a_reason());
    }
}
