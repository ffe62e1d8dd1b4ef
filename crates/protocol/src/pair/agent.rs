//! The state of one agent, and the texts that were put forward.

use crate::contract::{BlindVote, Conversation};
use crate::text::{Envelope, Status};
use crypto::Digest;

pub(super) use crate::contract::Answer;

/// The state of one agent in a run.
#[derive(Clone, Debug)]
pub(super) struct AgentState {
    /// The conversation of the agent: its prompts and its replies.
    pub(super) conversation: Conversation,
    /// The blind drafts, the committed one first; `None` for a draft that came to nothing.
    pub(super) blind: Vec<Option<Answer>>,
    /// Whether the committed draft was declared final.
    pub(super) blind_final: bool,
    /// The latest valid envelope.
    pub(super) position: Option<Position>,
    /// The last answer that the agent committed to, even if it has gone back to WORKING.
    pub(super) last_answer: Option<Answer>,
    /// The number of turns in which it changed its answer, and the reason that it named the last time.
    pub(super) changes: u32,
    pub(super) why_given_up: String,
    /// The number of refused replies.
    pub(super) repairs: u32,
    /// The number of turns without a valid envelope: all of them, and those in a row up to now.
    pub(super) failed_turns: u32,
    pub(super) failed_in_a_row: u32,
    /// The number of turns in a row in which it kept the floor.
    pub(super) solo: u32,
    /// The number of its moves since anything last changed.
    pub(super) idle: u32,
    /// The furthest kind of floor that it has had since it last worked alone, as it does in the opening.
    pub(super) floor: Floor,
    /// The number of turns in which it worked the task out again.
    pub(super) solo_attempts: u32,
    /// The answers that it found in those turns.
    pub(super) solo_answers: Vec<Answer>,
    /// The results of comparing other texts with its own.
    pub(super) compared: Vec<ComparisonResult>,
}

impl AgentState {
    pub(super) fn new(conversation: Conversation) -> Self {
        Self {
            conversation,
            blind: Vec::new(),
            blind_final: false,
            position: None,
            last_answer: None,
            changes: 0,
            why_given_up: String::new(),
            repairs: 0,
            failed_turns: 0,
            failed_in_a_row: 0,
            solo: 0,
            idle: 0,
            floor: Floor::Alone,
            solo_attempts: 0,
            solo_answers: Vec::new(),
            compared: Vec::new(),
        }
    }

    pub(super) fn status(&self) -> Option<Status> {
        self.position.as_ref().map(|p| p.envelope.status)
    }

    /// Returns true if this answer makes up more than half of the answers that the agent found without sight of its peer's text.
    pub(super) fn has_mostly_found(&self, answer: &Answer) -> bool {
        let same = self.found_alone().filter(|found| found.canonical == answer.canonical).count();
        2 * same > self.found_alone().count()
    }

    /// Returns every answer that the agent found without sight of its peer's text.
    pub(super) fn found_alone(&self) -> impl Iterator<Item = &Answer> {
        self.blind.iter().flatten().chain(&self.solo_answers)
    }

    /// Returns the first blind draft, to which the agent is committed.
    pub(super) fn committed_draft(&self) -> Option<&Answer> {
        self.blind.first().and_then(Option::as_ref)
    }

    /// Returns the proposal that its latest envelope stands for.
    pub(super) fn stands_for(&self) -> Option<usize> {
        self.position.as_ref().and_then(|p| p.proposal)
    }
}

/// The way in which an agent has the floor.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Floor {
    /// It works the task out from nothing, without sight of its peer's text.
    Alone,
    /// It sees its peer's text.
    InSight,
    /// It sees that text in a talk that has come to a standstill, and has its last word.
    LastWord,
}

/// An agent's latest valid envelope and the proposal that it stands for.
#[derive(Clone, Debug)]
pub(super) struct Position {
    /// The envelope, with the digest filled in and an adoption resolved.
    pub(super) envelope: Envelope,
    /// The index of the proposal that it stands for; `None` while WORKING or NEED_PEER.
    pub(super) proposal: Option<usize>,
    /// Whether the text was adopted by its handle.
    pub(super) adopted: bool,
}

/// The result of comparing another text with the agent's own, in this round.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComparisonResult {
    pub(super) round: u32,
    pub(super) own: Digest,
    pub(super) other: Digest,
    pub(super) better: Better,
}

/// The text that came out better.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Better {
    /// The author's own text, also if no reply was readable.
    Own,
    Neither,
    Other,
}

/// A text that an agent put forward. Its handle is its index plus one.
#[derive(Clone, Debug)]
pub(super) struct ProposedText {
    pub(super) author: usize,
    pub(super) answer: Answer,
}

/// Returns the handle of the proposal at `index`, as prompts and envelopes write it.
pub(super) fn handle(index: usize) -> String {
    format!("P{}", index + 1)
}

/// Returns the index that a handle names, whether or not there is such a proposal.
pub(super) fn index_of(handle: &str) -> Option<usize> {
    let number: usize = handle.strip_prefix('P')?.parse().ok()?;
    number.checked_sub(1)
}

/// Returns the vote over all blind drafts.
pub(super) fn blind_vote(seats: &[AgentState; 2]) -> BlindVote {
    BlindVote::from_drafts(seats.iter().flat_map(|seat| &seat.blind).map(Option::as_ref))
}
