//! What is known about a run at any moment.

use serde::Serialize;

use super::answer::Answer;
use crate::crypto::Digest;
use crate::text::Status;

/// What a machine knows about its run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report<S> {
    /// Rounds begun.
    pub rounds: u32,
    /// The plain vote over blind drafts.
    pub blind_vote: BlindVote,
    /// Each agent's standing.
    pub agents: Vec<AgentReport>,
    /// Answers other than the agreed one, who held them, and why.
    pub dissent: Vec<Dissent>,
    /// What was lost on the way.
    pub degraded: Vec<Degraded>,
    /// What only its protocol has.
    #[serde(flatten)]
    pub section: S,
}

impl<S> Report<S> {
    /// Returns the same report with another form of the part that only its protocol has.
    pub fn map_section<T>(self, change: impl FnOnce(S) -> T) -> Report<T> {
        let Self { rounds, blind_vote, agents, dissent, degraded, section } = self;
        Report { rounds, blind_vote, agents, dissent, degraded, section: change(section) }
    }
}

/// The plain vote over all blind drafts, for comparison with what the talk made of them.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct BlindVote {
    /// The text with more votes than any other, if there is one.
    pub text: Option<String>,
    /// Its digest.
    pub sha256: Option<Digest>,
    /// Every text with its votes, most first.
    pub tally: Vec<Tally>,
    /// Blind drafts asked for that came to nothing.
    pub missing: u32,
}

impl BlindVote {
    /// Counts drafts, of which some came to nothing; the vote goes to a text only if no other has as many.
    pub(crate) fn from_drafts<'a>(drafts: impl IntoIterator<Item = Option<&'a Answer>>) -> Self {
        let mut tally: Vec<Tally> = Vec::new();
        let mut missing = 0;
        for draft in drafts {
            let Some(Answer { shown, canonical }) = draft else {
                missing += 1;
                continue;
            };
            match tally.iter_mut().find(|entry| entry.sha256 == canonical.digest) {
                Some(entry) => entry.votes += 1,
                None => tally.push(Tally { text: shown.clone(), sha256: canonical.digest, votes: 1 }),
            }
        }
        tally.sort_by_key(|entry| std::cmp::Reverse(entry.votes));
        let winner = match tally.as_slice() {
            [only] => Some(only),
            [first, second, ..] if first.votes > second.votes => Some(first),
            [] | [..] => None,
        };
        let (text, sha256) = (winner.map(|t| t.text.clone()), winner.map(|t| t.sha256));
        Self { text, sha256, tally, missing }
    }
}

/// Votes for one text.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Tally {
    /// The text, in the layout of its first author.
    pub text: String,
    /// Digest of its canonical form.
    pub sha256: Digest,
    /// Blind drafts that hold it.
    pub votes: u32,
}

/// One agent at the end of a run.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct AgentReport {
    /// Its name.
    pub name: String,
    /// Status of its latest valid envelope; none if it never wrote one.
    pub status: Option<Status>,
    /// Its latest answer.
    pub text: Option<String>,
    /// Digest of the answer's canonical form.
    pub sha256: Option<Digest>,
    /// Turns in which it changed its answer.
    pub changes: u32,
    /// Replies that were refused and asked for again.
    pub repairs: u32,
    /// Turns in which no valid envelope came.
    pub failed_turns: u32,
}

/// An answer that was not agreed on.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Dissent {
    /// Who held it.
    pub agent: String,
    /// `blind` for a first draft that was given up, `final` for an answer held to the end, `review` for a review.
    pub stage: &'static str,
    /// The answer.
    pub text: String,
    /// Digest of its canonical form.
    pub sha256: Digest,
    /// Why it was held, or given up, in the agent's words.
    pub why: String,
}

/// Something that makes a result less than it looks.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Degraded {
    /// What it is, for programs.
    pub kind: DegradedKind,
    /// What happened, for people.
    pub detail: String,
}

/// A fixed word for what makes a result less than it looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DegradedKind {
    /// An agent committed to no blind draft.
    BlindDraftMissing,
    /// An agent wrote no valid reply in a turn.
    FailedTurn,
    /// A piece of a long document was not read.
    PieceLost,
    /// Sentences that a reader named do not stand in its piece.
    FactUnproven,
    /// There were more facts than an answer can be made of.
    FactsLeftOut,
    /// A member of a council objected to the answer, without proof.
    Objection,
    /// A judge wrote no valid ballot.
    VoidBallot,
    /// A reviewer came to no review.
    NoReview,
    /// A server refused the schema of its replies.
    StructuredOutput,
    /// A server accepts a schema and does not hold its replies to it.
    SchemaIgnored,
    /// The model was another one when the run was resumed.
    ModelChanged,
    /// A server does not count tokens.
    UsageEstimated,
    /// A server counts tokens that cannot be.
    UsageImplausible,
    /// A server repeated its key in a reply.
    KeyInReply,
    /// A quote does not stand in its source.
    FalseQuote,
    /// A document could not be read.
    DocumentLost,
    /// The documents were others when the run was resumed.
    DocumentsChanged,
    /// A token in the answer stands for no original.
    BentToken,
    /// A server does not tell the probability that a confidence was to come from.
    ConfidenceNotMeasured,
}

impl DegradedKind {
    /// Returns the word, as it stands in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BlindDraftMissing => "blind_draft_missing",
            Self::FailedTurn => "failed_turn",
            Self::PieceLost => "piece_lost",
            Self::FactUnproven => "fact_unproven",
            Self::FactsLeftOut => "facts_left_out",
            Self::Objection => "objection",
            Self::VoidBallot => "void_ballot",
            Self::NoReview => "no_review",
            Self::StructuredOutput => "structured_output",
            Self::SchemaIgnored => "schema_ignored",
            Self::ModelChanged => "model_changed",
            Self::UsageEstimated => "usage_estimated",
            Self::UsageImplausible => "usage_implausible",
            Self::KeyInReply => "key_in_reply",
            Self::FalseQuote => "false_quote",
            Self::DocumentLost => "document_lost",
            Self::DocumentsChanged => "documents_changed",
            Self::BentToken => "bent_token",
            Self::ConfidenceNotMeasured => "confidence_not_measured",
        }
    }
}
