//! How a run ends, and what is known about it at any moment.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use crate::crypto::Digest;

/// How a run ended.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// Both agents declared the same canonical text final.
    Agreed {
        /// What kind of agreement it is.
        how: How,
        /// The text, in the layout of the first agent.
        text: String,
        /// Digest of its canonical form.
        sha256: Digest,
    },
    /// The talk ended without agreement.
    NoAgreement {
        /// Why it ended.
        reason: NoAgreement,
    },
    /// The answer was stopped, with evidence.
    Vetoed {
        /// What is wrong with it.
        reason: String,
        /// Which source it breaks or contradicts.
        source: String,
        /// The words of that source.
        quote: String,
    },
    /// The next call would have exceeded a limit, or the deadline passed.
    Budget {
        /// Which limit, with its figures.
        limit: String,
    },
    /// A provider could not be used.
    Failed {
        /// What failed and what to do about it.
        cause: String,
    },
    /// A person or the system asked to stop; the run can be resumed.
    Interrupted,
}

impl Outcome {
    /// Returns the outcome's name in files and on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Agreed { .. } => "agreed",
            Self::NoAgreement { .. } => "no_agreement",
            Self::Vetoed { .. } => "vetoed",
            Self::Budget { .. } => "budget",
            Self::Failed { .. } => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns true if the protocol itself ended the run, so that nothing is left to resume.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Agreed { .. } | Self::NoAgreement { .. } | Self::Vetoed { .. } => true,
            Self::Budget { .. } | Self::Failed { .. } | Self::Interrupted => false,
        }
    }
}

/// What kind of agreement was reached; the kinds differ much in what they are worth.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The blind drafts were the same already, and both were declared final.
    Independent,
    /// The same text was typed by both after talk.
    Converged,
    /// One adopted the other's text by reference.
    Endorsed,
    /// The weighted confidence of three reached the threshold.
    Weighed,
    /// An arbiter chose one of the answers that the threshold had not reached.
    Arbitrated,
    /// The mean score that the others gave it reached the threshold.
    Scored,
}

impl How {
    /// Returns the word for this kind of agreement.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Converged => "converged",
            Self::Endorsed => "endorsed",
            Self::Weighed => "weighed",
            Self::Arbitrated => "arbitrated",
            Self::Scored => "scored",
        }
    }
}

/// Why the talk ended without agreement.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoAgreement {
    /// The limit on rounds was reached.
    MaxRounds,
    /// Both agents moved and nothing changed.
    Deadlock,
    /// An agent failed to write a valid envelope in two turns in a row.
    InvalidReplies,
    /// No agent wrote a valid blind draft.
    NoDrafts,
    /// The weighted confidence, or the best mean score, stayed below the threshold.
    Threshold,
    /// The last round has no answer that somebody verified.
    Unverified,
    /// No answer was judged by half of those who were to judge it.
    NoBallots,
    /// No piece of a long document says anything about what was asked.
    NothingFound,
    /// Fewer reviewers approve than a quorum.
    NoQuorum,
}

impl fmt::Display for NoAgreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxRounds => "the limit on rounds was reached",
            Self::Deadlock => "both agents moved and nothing changed",
            Self::InvalidReplies => "an agent wrote no valid envelope in two turns in a row",
            Self::NoDrafts => "no agent wrote a valid blind draft",
            Self::Threshold => "what was reached stayed below the threshold",
            Self::Unverified => "the last round brought no answer that was verified",
            Self::NoBallots => "no answer was judged by half of those who were to judge it",
            Self::NothingFound => {
                "in no piece of the documents was anything found, with its words, to answer from"
            }
            Self::NoQuorum => "fewer reviewers approve than a quorum",
        })
    }
}

/// What a machine knows about its run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
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
    /// What only this protocol has.
    #[serde(flatten)]
    pub section: Section,
}

/// The part of a report that only one protocol has, under the protocol's name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Of `pair`.
    Pair(super::pair::PairSection),
    /// Of `council`.
    Council(Box<super::council::CouncilSection>),
    /// Of `panel`.
    Panel(Box<super::panel::PanelSection>),
    /// Of `approval`.
    Approval(Box<super::review::ApprovalSection>),
    /// Of a document that was read in pieces.
    MapReduce(Box<super::map_reduce::MapReduceSection>),
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
    pub(crate) fn of<'a>(drafts: impl IntoIterator<Item = Option<&'a Answer>>) -> Self {
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
    pub status: Option<crate::text::Status>,
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
    /// A fixed word for programs.
    pub kind: &'static str,
    /// What happened, for people.
    pub detail: String,
}
