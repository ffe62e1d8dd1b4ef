//! What is decided on: one text, of which every reviewer takes the digest.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::decision_error::DecisionError;
use super::facts::Facts;
use super::verification::CommandVerification;
use crate::bft::{Change, Sequence};
use crate::crypto::Digest;
use crate::repository::{Authorship, Candidate, FileChange, Oid};

/// The form that this program writes.
const VERSION: u32 = 1;

/// What the history says of a change that nobody has named.
const MESSAGE: &str = "Apply a change that was approved by a quorum";

/// Who has read a change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reader {
    /// The reviewer.
    pub name: String,
    /// Where its model was called, or that it was scripted.
    pub model: String,
}

/// A change on a branch, with what code knows of it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The form of this text.
    v: u32,
    /// The run in which it was made: no other proposal has it, so that a change that is proposed again is another one.
    pub run: String,
    /// When it was made, in seconds since 1970: the time of its commit.
    pub at: u64,
    /// The branch that is moved, by its full name.
    pub branch: String,
    /// The commit that it must be at.
    pub base: Oid,
    /// The tree that comes out.
    pub tree: Oid,
    /// The SHA-256 of the diff.
    pub diff_sha256: Digest,
    /// What people will read in the history. Reviewers are not shown it: a story about a change is how they are misled.
    pub message: String,
    /// Who made it, as the commits of its branch say; none of a patch, and of what version 0.1 proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Authorship>,
    /// The roleset that the reviewers worked by.
    pub roleset: String,
    /// The files that differ.
    pub files: Vec<FileChange>,
    /// Who read it, and on which model, as the process says that asked them.
    pub reviewers: Vec<Reader>,
    /// The SHA-256 of the last line of the review's journal.
    pub review: Digest,
    /// What came of the command that had to succeed on that tree; none, if there was no command.
    pub verification: Option<CommandVerification>,
    /// Whether each quorum has a reviewer that runs a command of its own before it approves, as reviewers in processes of their
    /// own have said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reviewers_verify: bool,
    /// What else code knows of it.
    pub facts: Facts,
    /// What the reviewers read.
    pub diff: String,
}

/// What a proposal says beside what git and other tools know.
#[derive(Clone, Debug)]
pub struct ProposalDraft {
    /// The run in which it is made.
    pub run: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// The branch, by its full name.
    pub branch: String,
    /// What people will read.
    pub message: String,
    /// Who made the change, where that is known.
    pub author: Option<Authorship>,
    /// By which roleset it is reviewed.
    pub roleset: String,
    /// Whether each quorum has a reviewer that runs a command of its own, as they say.
    pub reviewers_verify: bool,
}

impl Proposal {
    /// Makes a proposal of a candidate, in a run that no other was made in.
    ///
    /// # Errors
    ///
    /// [`DecisionError::Unreadable`] if its diff is not UTF-8, so that nobody could say what was read.
    pub fn new(
        candidate: &Candidate,
        ProposalDraft { run, at, branch, message, author, roleset, reviewers_verify }: ProposalDraft,
        verification: Option<CommandVerification>,
        facts: Facts,
    ) -> Result<Self, DecisionError> {
        let diff = String::from_utf8(candidate.diff.clone()).map_err(|_| {
            let why = "its diff is not UTF-8 throughout, so that nobody could read it; binary files cannot be approved";
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

    /// Whether a command is run on it before it is decided.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.verification.is_some() || self.reviewers_verify
    }

    /// Says who has read it.
    #[must_use]
    pub fn read_by(self, reviewers: Vec<Reader>, review: Digest) -> Self {
        Self { reviewers, review, ..self }
    }

    /// The text that is decided on.
    ///
    /// # Errors
    ///
    /// [`DecisionError::TooLong`].
    pub fn change(&self) -> Result<Change, DecisionError> {
        Ok(Change::new(&serde_json::to_string(self).unwrap_or_default())?)
    }

    /// Reads a text that was decided on.
    ///
    /// # Errors
    ///
    /// [`DecisionError::NotProven`] if it is none, or does not hold together.
    pub fn read(text: &str) -> Result<Self, DecisionError> {
        let wrong = |why: String| DecisionError::NotProven(format!("the change cannot be read: {why}"));
        let proposal: Self = serde_json::from_str(text).map_err(|why| wrong(why.to_string()))?;
        if proposal.v != VERSION {
            return Err(wrong(format!("its form is {}, and this program reads {VERSION}", proposal.v)));
        }
        if Digest::new(proposal.diff.as_bytes()) != proposal.diff_sha256 {
            return Err(wrong("its diff has another digest".to_owned()));
        }
        Ok(proposal)
    }

    /// Lines that come and go, all files together.
    #[must_use]
    pub fn churn(&self) -> u64 {
        self.files.iter().map(|file| file.added.saturating_add(file.removed)).fold(0, u64::saturating_add)
    }

    /// The message of its commit, which says by what it was decided, and under which roster; none, if version 0.1 began the
    /// decision, which did not say.
    #[must_use]
    pub fn commit_message(
        &self,
        sequence: Sequence,
        change: Digest,
        roster: Option<Digest>,
        approvers: &[&str],
    ) -> String {
        // Nobody's message has this program's trailers in it, or what git takes for the end of a message.
        let is_own = |line: &&str| {
            let line = line.trim_start();
            !line.to_ascii_lowercase().starts_with("consensus-")
                && !line.starts_with("---")
                && !line.contains(">8")
        };
        let message: String =
            self.message.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
        let message: Vec<&str> = message.trim().lines().filter(is_own).collect();
        let subject = Some(message.join("\n").trim().to_owned()).filter(|message| !message.is_empty());
        let mut text = format!("{}\n\n", subject.unwrap_or_else(|| MESSAGE.to_owned()));
        let _ = writeln!(text, "Consensus-Sequence: {sequence}");
        let _ = writeln!(text, "Consensus-Change: sha256:{change}");
        if let Some(roster) = roster {
            let _ = writeln!(text, "Consensus-Roster: sha256:{roster}");
        }
        for approver in approvers {
            let _ = writeln!(text, "Consensus-Approved-By: {approver}");
        }
        for credit in self.author.iter().flat_map(|author| &author.credits) {
            let _ = writeln!(text, "{credit}");
        }
        text
    }
}
