//! The text that is decided on; every reviewer takes its digest.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::command_verification::CommandVerification;
use crate::approval::decision_error::DecisionError;
use crate::approval::facts::Facts;
use crate::repository::{Authorship, Candidate, FileChange, Oid};
use crypto::Digest;
use quorum::{Change, Sequence};

/// The form that this program writes.
const VERSION: u32 = 1;

/// The commit message of a change that was given none.
const MESSAGE: &str = "Apply a change that was approved by a quorum";

/// A reviewer that has read a change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reader {
    pub name: String,
    /// The place where its model was called, or the word that it was scripted.
    pub model: String,
}

/// A change on a branch, with the facts about it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The form of this text.
    v: u32,
    /// The run in which it was made. No other proposal has it, so that a change that is proposed again is another one.
    pub run: String,
    /// The time at which it was made, in seconds since 1970: the time of its commit.
    pub at: u64,
    /// The full name of the branch that is moved.
    pub branch: String,
    /// The commit that the branch must be at.
    pub base: Oid,
    /// The tree that the change makes.
    pub tree: Oid,
    /// The SHA-256 of the diff.
    pub diff_sha256: Digest,
    /// The message that people will read in the history. Reviewers are not shown it: a story about a change is how they are
    /// misled.
    pub message: String,
    /// The authors of the change, as the commits of its branch name them. A patch has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Authorship>,
    /// The roleset of the reviewers.
    pub roleset: String,
    /// The files that differ.
    pub files: Vec<FileChange>,
    /// The reviewers that read it, each with its model, by the word of the process that asked them.
    pub reviewers: Vec<Reader>,
    /// The SHA-256 of the last line of the review's journal.
    pub review: Digest,
    /// The result of the command that had to succeed on that tree, if there was a command.
    pub verification: Option<CommandVerification>,
    /// Whether each quorum has a reviewer that runs a command of its own before it approves, by the word of reviewers in
    /// processes of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reviewers_verify: bool,
    /// The facts about the change.
    pub facts: Facts,
    /// The diff that the reviewers read.
    pub diff: String,
}

/// The parts of a proposal that neither git nor other tools know.
#[derive(Clone, Debug)]
pub struct ProposalDraft {
    /// The run in which it is made.
    pub run: String,
    /// The time at which it is made, in seconds since 1970.
    pub at: u64,
    /// The full name of the branch.
    pub branch: String,
    /// The message that people will read.
    pub message: String,
    /// The authors of the change, if they are known.
    pub author: Option<Authorship>,
    /// The roleset by which it is reviewed.
    pub roleset: String,
    /// Whether each quorum has a reviewer that runs a command of its own, by the reviewers' own account.
    pub reviewers_verify: bool,
}

impl Proposal {
    /// Makes a proposal of a candidate, in a run in which no other proposal was made.
    ///
    /// Returns [`DecisionError::Unreadable`] if its diff is not UTF-8, so that no one could say what was read.
    pub fn new(
        candidate: &Candidate,
        ProposalDraft { run, at, branch, message, author, roleset, reviewers_verify }: ProposalDraft,
        verification: Option<CommandVerification>,
        facts: Facts,
    ) -> Result<Self, DecisionError> {
        let diff = String::from_utf8(candidate.diff.clone()).map_err(|_| {
            let why = "its diff is not UTF-8 throughout, so that no one could read it; binary files cannot be approved";
            DecisionError::Unreadable { path: "the change".into(), why: why.to_owned() }
        })?;
        Ok(Self {
            v: VERSION,
            run,
            at,
            branch,
            base: candidate.base.clone(),
            tree: candidate.tree.clone(),
            diff_sha256: candidate.digest(),
            message,
            author,
            roleset,
            files: candidate.files.clone(),
            reviewers: Vec::new(),
            review: Digest::ZERO,
            verification,
            reviewers_verify,
            facts,
            diff,
        })
    }

    /// Returns whether a command is run on the change before it is decided on.
    pub fn is_verified(&self) -> bool {
        self.verification.is_some() || self.reviewers_verify
    }

    /// Returns the proposal with the reviewers that have read it.
    pub fn read_by(self, reviewers: Vec<Reader>, review: Digest) -> Self {
        Self { reviewers, review, ..self }
    }

    /// Returns the text that is decided on.
    pub fn change(&self) -> Result<Change, DecisionError> {
        Change::new(&serde_json::to_string(self).unwrap_or_default()).map_err(DecisionError::TooLong)
    }

    /// Reads a text that was decided on.
    ///
    /// Returns [`DecisionError::NotProven`] if the text is not a proposal, or does not hold together.
    pub fn read(text: &str) -> Result<Self, DecisionError> {
        let why = match serde_json::from_str::<Self>(text) {
            Err(why) => why.to_string(),
            Ok(proposal) if proposal.v != VERSION => {
                format!("its form is {}, but this program reads {VERSION}", proposal.v)
            }
            Ok(proposal) if Digest::new(proposal.diff.as_bytes()) != proposal.diff_sha256 => {
                "its diff has another digest".to_owned()
            }
            Ok(proposal) => return Ok(proposal),
        };
        Err(DecisionError::NotProven(format!("the change cannot be read: {why}")))
    }

    /// Returns the number of added and removed lines in all files.
    pub fn churn(&self) -> u64 {
        self.files.iter().map(|file| file.added.saturating_add(file.removed)).fold(0, u64::saturating_add)
    }

    /// Returns the message of the commit, which names the decision and its roster.
    pub fn commit_message(
        &self,
        sequence: Sequence,
        change: Digest,
        roster: Digest,
        approvers: &[&str],
    ) -> String {
        let message: String =
            self.message.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
        let message: Vec<&str> = message.trim().lines().filter(|line| is_allowed(line)).collect();
        let message = message.join("\n");
        let message = if message.trim().is_empty() { MESSAGE } else { message.trim() };
        let mut text = format!("{message}\n\n");
        let _ = writeln!(text, "Consensus-Sequence: {sequence}");
        let _ = writeln!(text, "Consensus-Change: sha256:{change}");
        let _ = writeln!(text, "Consensus-Roster: sha256:{roster}");
        for approver in approvers {
            let _ = writeln!(text, "Consensus-Approved-By: {approver}");
        }
        for credit in self.author.iter().flat_map(|author| &author.credits) {
            let _ = writeln!(text, "{credit}");
        }
        text
    }
}

/// Returns whether a line may be in a message: it is neither a trailer of this program nor anything that git takes for the end
/// of a message.
fn is_allowed(line: &str) -> bool {
    let line = line.trim_start();
    !line.to_ascii_lowercase().starts_with("consensus-") && !line.starts_with("---") && !line.contains(">8")
}
