//! The reasons why a reply is refused, in words that its author can act on.

use thiserror::Error;

use super::{FailedCheck, NotCanonical, ProgramFault, vacuity::Vacuity};

/// A reason for which a reply does not count.
///
/// The message is sent back to the agent, so each message says what is wrong and what to write instead. Text from the
/// reply is shown only as a short neutralised excerpt.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Violation {
    // ===== The reply as a string =====
    /// Nothing but white space came back.
    #[error("the reply is empty; write one JSON object")]
    Empty,
    /// The reply is longer than the limit, in bytes.
    #[error("the reply has {bytes} bytes; at most {max} are allowed")]
    TooLong {
        /// The number of bytes received.
        bytes: usize,
        /// The number of bytes allowed.
        max: usize,
    },
    /// Brackets nest deeper than the limit.
    #[error("the JSON nests deeper than {max} levels; write a flat object")]
    TooDeep {
        /// The number of levels allowed.
        max: usize,
    },
    /// The server stopped the reply at the token limit.
    #[error(
        "the reply was cut off at the limit of {max_tokens} tokens; write a much shorter one and close the JSON object"
    )]
    Cut {
        /// The limit that was sent with the request.
        max_tokens: u32,
    },
    /// The model or its server declined to answer.
    #[error("the reply was refused or filtered; answer the task as far as you can")]
    Refused,
    /// A reasoning block was opened and never closed.
    #[error("the reasoning block is not closed; close it and then write one JSON object")]
    OpenReasoning,
    /// There is no JSON object.
    #[error("there is no JSON object in the reply; write exactly one and nothing else")]
    NoObject,
    /// There is text before or after the object.
    #[error(
        "there is text outside the JSON object (`{excerpt}`); write exactly one JSON object and nothing else"
    )]
    TextAround {
        /// The first characters of that text.
        excerpt: String,
    },
    /// A second object follows the first.
    #[error("there is more than one JSON object; write exactly one")]
    SeveralObjects,
    /// The object is not JSON, or repeats or invents a key.
    #[error("the JSON object cannot be read: {message}")]
    Json {
        /// The reader's message, with line and column.
        message: String,
    },
    /// The object breaks the envelope's schema.
    #[error("at `{pointer}`: {message}")]
    Schema {
        /// The JSON pointer into the reply.
        pointer: String,
        /// The validator's message.
        message: String,
    },

    // ===== The envelope's meaning =====
    /// A name field does not hold the name it must hold.
    #[error("`{field}` is `{found}`; it must be {expected}")]
    WrongName {
        field: &'static str,
        /// The expected name, quoted and ready to read.
        expected: String,
        /// A neutralised excerpt of the name that was found.
        found: String,
    },
    /// The status is SOLVED, but the marker is missing.
    #[error("`status` is SOLVED but `public_message` does not contain [SOLVED]; write both or neither")]
    MarkerMissing,
    /// The marker is present, but the status is not SOLVED.
    #[error("`public_message` contains [SOLVED] but `status` is not SOLVED; write both or neither")]
    StatusMissing,
    /// A SOLVED envelope has neither a text nor an adoption.
    #[error("`status` is SOLVED but `final_solution` holds neither `canonical_text` nor `accepts`")]
    TextMissing,
    /// The text is a JSON value, although the answer is not JSON.
    #[error("`canonical_text` must be a string; write the text in quotes")]
    TextNotString,
    /// The envelope has both a text and an adoption.
    #[error("`final_solution` holds both `canonical_text` and `accepts`; write only one of them")]
    TextAndAdoption,
    /// The digest from the agent is not the digest of its text.
    #[error(
        "`final_solution.sha256` is not the digest of the text; leave the field out, it is computed for you"
    )]
    WrongDigest,
    /// A handle was typed where a text belongs.
    #[error(
        "`canonical_text` is the handle {handle}; to take over that text write it in `accepts`, otherwise write the text itself"
    )]
    HandleAsText { handle: String },
    /// Adoption is switched off, or the author works the task out on its own.
    #[error("`accepts` is not allowed here; write the whole text in `canonical_text`")]
    AdoptionOff,
    /// The author's own thoughts ended with another text.
    #[error(
        "`accepts` names {named}, but your thoughts end with {found}; accept {found}, or say with status PROPOSED and a text of your own that neither stands"
    )]
    AgainstThoughts {
        /// The handle that `accepts` names.
        named: String,
        /// The handle of the text that the author's thoughts end with.
        found: String,
    },
    /// The handle does not name a proposal.
    #[error("`accepts` names `{handle}`, which nobody proposed; {known}")]
    UnknownHandle {
        /// A neutralised excerpt of the handle.
        handle: String,
        /// The handles that may be accepted, in words.
        known: String,
    },
    /// The handle names an earlier proposal of the author's, which is not its text any more.
    #[error(
        "`accepts` names {handle}, a text of your own that you have given up; write it in `canonical_text` if you mean it"
    )]
    OwnHandle { handle: String },
    /// The handle's author has not declared it SOLVED, or has replaced it.
    #[error("`accepts` names {handle}, which cannot be accepted now; {known}")]
    NotCurrent {
        handle: String,
        /// The handles that may be accepted, in words.
        known: String,
    },
    /// The author tried to replace a text that its peer has adopted.
    #[error(
        "your peer has adopted your {handle}; you cannot replace it now: declare it SOLVED by repeating it, or state your objection with status WORKING and no `final_solution`"
    )]
    AdoptedReplaced { handle: String },
    /// The answer changed, but no reason was named.
    #[error(
        "your answer differs from your earlier one, but `meta.change` does not name what made you change; set `by` to objection, check, constraint or evidence, and say in `detail` which one and why"
    )]
    UnnamedChange,
    /// Not all of the peer's requests were answered.
    #[error(
        "`meta.answers` has {found} entries, but your peer asked for {expected} things; answer each one in order"
    )]
    Unanswered {
        /// The number of requests.
        expected: usize,
        /// The number of answers.
        found: usize,
    },

    // ===== The final text =====
    /// The text fills all the room that there is, and may have been cut off there.
    #[error(
        "the final text must be shorter than {max} characters; it may have been cut off; write a shorter one"
    )]
    TextTooLong {
        /// The number of characters that the text must stay below.
        max: usize,
    },
    /// The text has no canonical form of the kind that the task wants.
    #[error("the final text is not acceptable: {0}")]
    Canonical(#[from] NotCanonical),
    /// The text says nothing (rule: no vacuous agreement).
    #[error("the final text is not an answer: {0}")]
    Vacuous(#[from] Vacuity),
    /// The text breaks a stated constraint.
    #[error("the final text breaks a constraint of the task: {0}")]
    Constraint(String),
    /// The program gives no answer.
    #[error("{0}")]
    Program(#[from] ProgramFault),
    /// The user's check refuses the text.
    #[error("the final text fails: {0}")]
    Check(FailedCheck),
}

impl Violation {
    /// Returns the fault of a form at this place.
    pub(crate) fn schema(pointer: &str, message: impl Into<String>) -> Self {
        Self::Schema { pointer: pointer.to_owned(), message: message.into() }
    }

    /// Returns what was wrong with a reply, in brief and for people. Its author receives more, and what to write
    /// instead.
    pub fn in_brief(&self) -> String {
        let words = match self {
            Self::Empty => "it was empty",
            Self::TooLong { .. } => "it was too long",
            Self::TooDeep { .. } => "its JSON nests too deeply",
            Self::Cut { .. } => "it was cut off at the token limit",
            Self::Refused => "the model or its server declined",
            Self::OpenReasoning => "its reasoning never ended",
            Self::NoObject => "it held no JSON object",
            Self::TextAround { .. } => "it held text outside the JSON object",
            Self::SeveralObjects => "it held more than one JSON object",
            Self::Json { .. } => "its JSON was not valid",
            Self::Schema { .. } => "a field of it was missing or wrong",
            Self::WrongName { .. } => "it named the wrong agent",
            Self::MarkerMissing | Self::StatusMissing => "its status and its message disagreed",
            Self::TextMissing => "it held no answer",
            Self::TextNotString => "its answer was no text",
            Self::TextAndAdoption => "it gave an answer and accepted another one",
            Self::WrongDigest => "it named a wrong digest",
            Self::HandleAsText { .. } => "it gave a label in place of an answer",
            Self::AdoptionOff => "it accepted an answer where it had to write one",
            Self::AgainstThoughts { .. } => "it contradicted its own thoughts",
            Self::UnknownHandle { .. } | Self::OwnHandle { .. } | Self::NotCurrent { .. } => {
                "it accepted an answer that is not on offer"
            }
            Self::AdoptedReplaced { .. } => "it replaced an answer that had been accepted",
            Self::UnnamedChange => "it gave no reason for its change",
            Self::Unanswered { .. } => "it left a question unanswered",
            Self::TextTooLong { .. } => "its answer was too long",
            Self::Canonical(why) => return format!("its answer had the wrong form: {why}"),
            Self::Vacuous(why) => return format!("it was no answer: {why}"),
            Self::Constraint(why) => return format!("its answer broke a rule of the task: {why}"),
            Self::Program(why) => return why.to_string(),
            Self::Check(why) => return why.in_brief(),
        };
        words.to_owned()
    }
}
