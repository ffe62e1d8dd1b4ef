//! The report of a run, at any moment.

use serde::Serialize;

use super::answer::Answer;
use crate::text::Status;
use crypto::Digest;

/// The report of a machine on its run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report<S> {
    /// The number of rounds that have begun.
    pub rounds: u32,
    /// The plain vote over the blind drafts.
    pub blind_vote: BlindVote,
    /// The position of each agent.
    pub agents: Vec<AgentReport>,
    /// The answers other than the agreed one, with their authors and reasons.
    pub dissent: Vec<Dissent>,
    /// The losses that make the result worth less than it looks.
    pub degraded: Vec<Degraded>,
    /// The part that only this protocol has.
    #[serde(flatten)]
    pub section: S,
}

impl<S> Report<S> {
    /// Returns the same report with the protocol's own part converted.
    pub fn map_section<T>(self, change: impl FnOnce(S) -> T) -> Report<T> {
        let Self { rounds, blind_vote, agents, dissent, degraded, section } = self;
        Report { rounds, blind_vote, agents, dissent, degraded, section: change(section) }
    }
}

/// The plain vote over all blind drafts, for comparison with the result of the talk.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct BlindVote {
    /// The text with more votes than any other, if there is one.
    pub text: Option<String>,
    /// The digest of its canonical form.
    pub sha256: Option<Digest>,
    /// Every text with its number of votes, the most votes first.
    pub tally: Vec<Tally>,
    /// The number of blind drafts that were asked for but came to nothing.
    pub missing: u32,
}

impl BlindVote {
    /// Counts drafts, where `None` is a missing one. A text wins only if no other text has as many votes.
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

/// The votes for one text.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Tally {
    /// The text, in the layout of its first author.
    pub text: String,
    /// The digest of its canonical form.
    pub sha256: Digest,
    /// The number of blind drafts with this text.
    pub votes: u32,
}

/// The position of one agent at the end of a run.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct AgentReport {
    pub name: String,
    /// The status of its latest valid envelope; `None` if it never wrote one.
    pub status: Option<Status>,
    /// The agent's latest answer.
    pub text: Option<String>,
    /// The digest of the answer's canonical form.
    pub sha256: Option<Digest>,
    /// The number of turns in which the agent changed its answer.
    pub changes: u32,
    /// The number of replies that were refused.
    pub repairs: u32,
    /// The number of turns without a valid envelope.
    pub failed_turns: u32,
}

/// An answer that was not agreed on.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Dissent {
    /// The name of the agent that held it.
    pub agent: String,
    /// The stage: `blind` for a first draft that was given up, `final` for an answer held to the end, `review` for a review.
    pub stage: &'static str,
    pub text: String,
    /// The digest of its canonical form.
    pub sha256: Digest,
    /// The reason why the agent held it or gave it up, in the agent's words.
    pub why: String,
}

/// A loss that makes a result worth less than it looks.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Degraded {
    /// The kind of loss, for programs.
    pub kind: DegradedKind,
    /// A description of the loss, for people.
    pub detail: String,
}

/// A fixed word for a kind of loss.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DegradedKind {
    /// An agent committed to no blind draft.
    BlindDraftMissing,
    /// An agent wrote no valid reply in a turn.
    FailedTurn,
    /// A piece of a long document was not read.
    PieceLost,
    /// Sentences that a reader named are not in its piece.
    FactUnproven,
    /// There were more facts than fit into the prompt for the answer.
    FactsLeftOut,
    /// A member of a council objected to the answer, without proof.
    Objection,
    /// A judge wrote no valid ballot.
    VoidBallot,
    /// A reviewer wrote no valid review.
    NoReview,
    /// A server refused the schema for its replies.
    StructuredOutput,
    /// A server takes no temperature or no seed, or a setting leaves them out.
    SamplingNotAsAsked,
    /// A server accepts a schema but does not enforce it.
    SchemaIgnored,
    /// An agent's replies are from different models.
    ModelChanged,
    /// A server does not list the model that was named.
    ModelNotListed,
    /// The question is one of those that the calibration was made of.
    QuestionOfCalibration,
    /// A server does not count tokens.
    UsageEstimated,
    /// A server reports an impossible number of tokens.
    UsageImplausible,
    /// A server repeated its key in a reply.
    KeyInReply,
    /// A quote is not in its source.
    FalseQuote,
    /// A document could not be read.
    DocumentLost,
    /// The documents were different when the run was resumed.
    DocumentsChanged,
    /// A token in the answer does not stand for any original.
    BentToken,
    /// A server does not report the probability that a confidence was to come from.
    ConfidenceNotMeasured,
    /// A command ran without a sandbox.
    NoSandbox,
    /// The votes did not settle, and the leading answer was taken all the same.
    Unsettled,
    /// The server of a member failed for good, and the run continued without it.
    MemberLost,
}

impl DegradedKind {
    /// Returns the word as it is written in files.
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
            Self::SamplingNotAsAsked => "sampling_not_as_asked",
            Self::SchemaIgnored => "schema_ignored",
            Self::ModelChanged => "model_changed",
            Self::ModelNotListed => "model_not_listed",
            Self::QuestionOfCalibration => "question_of_calibration",
            Self::UsageEstimated => "usage_estimated",
            Self::UsageImplausible => "usage_implausible",
            Self::KeyInReply => "key_in_reply",
            Self::FalseQuote => "false_quote",
            Self::DocumentLost => "document_lost",
            Self::DocumentsChanged => "documents_changed",
            Self::BentToken => "bent_token",
            Self::ConfidenceNotMeasured => "confidence_not_measured",
            Self::NoSandbox => "no_sandbox",
            Self::Unsettled => "unsettled",
            Self::MemberLost => "member_lost",
        }
    }
}
