//! The ways in which a run ends.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::core::BasisPoints;
use crypto::Digest;

/// The outcome of a run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// The protocol reached agreement. Where two agents talk, both declared the same canonical text final.
    Agreed {
        /// The kind of agreement.
        how: How,
        /// The text, in the layout of its author; where two agents wrote it, of the first one.
        text: String,
        /// The digest of its canonical form.
        sha256: Digest,
    },
    /// The talk ended without agreement.
    NoAgreement {
        /// The reason why it ended.
        reason: NoAgreement,
    },
    /// There is an answer, and its confidence is below the threshold of a calibration, so it is withheld.
    Abstained {
        /// The confidence in the answer; `None` if the calibration knows no such answer.
        confidence: Option<BasisPoints>,
        /// The least confidence of an answer that is given.
        threshold: BasisPoints,
    },
    /// The answer was stopped, with evidence.
    Vetoed {
        /// The fault in the answer.
        reason: String,
        /// The source that the answer breaks or contradicts.
        source: String,
        /// The words of that source.
        quote: String,
    },
    /// The next call would have exceeded a limit, or the deadline passed.
    Budget {
        /// The limit, with its figures.
        limit: String,
    },
    /// A provider could not be used.
    Failed {
        /// The failure, and what to do about it.
        cause: String,
    },
    /// A person or the system asked to stop; the run can be resumed.
    Interrupted,
}

/// The kind of an outcome, without its details.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    Agreed,
    NoAgreement,
    Abstained,
    Vetoed,
    Budget,
    Failed,
    Interrupted,
}

impl Outcome {
    /// Returns the kind of this outcome.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Agreed { .. } => OutcomeKind::Agreed,
            Self::NoAgreement { .. } => OutcomeKind::NoAgreement,
            Self::Abstained { .. } => OutcomeKind::Abstained,
            Self::Vetoed { .. } => OutcomeKind::Vetoed,
            Self::Budget { .. } => OutcomeKind::Budget,
            Self::Failed { .. } => OutcomeKind::Failed,
            Self::Interrupted => OutcomeKind::Interrupted,
        }
    }

    /// Returns the outcome's name in files and on the command line.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// Returns true if the protocol itself ended the run, so that nothing is left to resume.
    pub fn is_final(&self) -> bool {
        self.kind().is_final()
    }
}

impl OutcomeKind {
    /// Returns the outcome's name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::NoAgreement => "no_agreement",
            Self::Abstained => "abstained",
            Self::Vetoed => "vetoed",
            Self::Budget => "budget",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns true if the protocol itself ended the run, so that nothing is left to resume.
    pub fn is_final(self) -> bool {
        match self {
            Self::Agreed | Self::NoAgreement | Self::Abstained | Self::Vetoed => true,
            Self::Budget | Self::Failed | Self::Interrupted => false,
        }
    }
}

impl fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of agreement that was reached. Some kinds are worth much more than others.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The blind drafts were already the same and both were declared final, or a quorum of reviewers approved.
    Independent,
    /// Both agents wrote the same text after talk.
    Converged,
    /// One agent wrote the text, and another accepted it: in a pair by its handle, in a council by checking it after code had found its
    /// quotes.
    Endorsed,
    /// The weighted confidence of three agents reached the threshold.
    Weighed,
    /// An arbiter chose one of the answers that had not reached the threshold.
    Arbitrated,
    /// The mean score from the other members reached the threshold.
    Scored,
    /// The votes of blind samples were enough.
    Voted,
    /// The votes of blind programs that do the same on every input were enough, and this is the shortest of them.
    Behaved,
    /// Blind drafts of a text say the same as far as code finds it, and this one is the nearest to all others.
    Medoid,
}

impl How {
    /// Returns the word for this kind of agreement.
    pub fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Converged => "converged",
            Self::Endorsed => "endorsed",
            Self::Weighed => "weighed",
            Self::Arbitrated => "arbitrated",
            Self::Scored => "scored",
            Self::Voted => "voted",
            Self::Behaved => "behaved",
            Self::Medoid => "medoid",
        }
    }
}

/// The reason why the talk ended without agreement.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoAgreement {
    /// The limit on rounds was reached.
    MaxRounds,
    /// Both agents moved and nothing changed.
    Deadlock,
    /// An agent failed to write a valid envelope in two turns in a row.
    InvalidReplies,
    /// An agent did not declare the text final on which the blind answers agree.
    NotDeclared,
    /// The drafts of a long text state something differently, or are too unlike to be compared.
    DraftsDiffer,
    /// No agent wrote a valid blind draft.
    NoDrafts,
    /// The weighted confidence, or the best mean score, stayed below the threshold.
    Threshold,
    /// The last round has no answer that was verified.
    Unverified,
    /// No answer was judged by at least half of its evaluators.
    NoBallots,
    /// No piece of a long document contains anything about the question.
    NothingFound,
    /// Fewer reviewers approve than a quorum needs.
    NoQuorum,
    /// No answer leads clearly enough, and none can within the limit of samples or rounds.
    Unsettled,
}

impl fmt::Display for NoAgreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxRounds => "the limit on rounds was reached",
            Self::Deadlock => "both agents moved and nothing changed",
            Self::InvalidReplies => "an agent wrote no valid envelope in two turns in a row",
            Self::NotDeclared => "an agent did not declare the counted answer final",
            Self::DraftsDiffer => "the drafts do not say the same",
            Self::NoDrafts => "no agent wrote a valid blind draft",
            Self::Threshold => "what was reached stayed below the threshold",
            Self::Unverified => "the last round brought no answer that was verified",
            Self::NoBallots => "no answer was judged by half of those who were to judge it",
            Self::NothingFound => {
                "in no piece of the documents was anything found, with its words, to answer from"
            }
            Self::NoQuorum => "fewer reviewers approve than a quorum",
            Self::Unsettled => "no answer leads clearly, and none can any more",
        })
    }
}
