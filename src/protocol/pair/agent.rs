//! What the machine knows of one agent, and of the texts that were put forward.

use crate::crypto::Digest;
use crate::protocol::contract::{BlindVote, Conversation};
use crate::text::{Envelope, Status};

pub(super) use crate::protocol::contract::Answer;

/// One agent in a run.
#[derive(Clone, Debug)]
pub(super) struct AgentState {
    /// What it has been told and has said.
    pub(super) conversation: Conversation,
    /// Its valid blind drafts, the committed one first.
    pub(super) blind: Vec<Option<Answer>>,
    /// Whether the committed one was declared final.
    pub(super) blind_final: bool,
    /// Its latest valid envelope.
    pub(super) position: Option<Position>,
    /// The last answer it committed to, also while it has gone back to WORKING.
    pub(super) last_answer: Option<Answer>,
    /// Turns in which it changed its answer, and the reason it named the last time.
    pub(super) changes: u32,
    pub(super) why_given_up: String,
    /// Replies that were refused.
    pub(super) repairs: u32,
    /// Turns without a valid envelope: all, and in a row up to now.
    pub(super) failed_turns: u32,
    pub(super) failed_in_a_row: u32,
    /// Turns in a row in which it kept the floor.
    pub(super) solo: u32,
    /// Its moves since anything last changed.
    pub(super) idle: u32,
    /// The furthest that it has had the floor since it last worked alone, as it does in the opening.
    pub(super) floor: Floor,
    /// Turns in which it worked the task out again.
    pub(super) solo_attempts: u32,
    /// What it found in those turns.
    pub(super) solo_answers: Vec<Answer>,
    /// What it has compared against its own text.
    pub(super) compared: Vec<Compared>,
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

    /// Returns true if more than half of all that it has found without sight of its peer's text is this answer.
    pub(super) fn has_mostly_found(&self, answer: &Answer) -> bool {
        let all = || self.blind.iter().flatten().chain(&self.solo_answers);
        let same = all().filter(|found| found.canonical == answer.canonical).count();
        2 * same > all().count()
    }

    /// Returns the proposal that its latest envelope stands for.
    pub(super) fn stands_for(&self) -> Option<usize> {
        self.position.as_ref().and_then(|p| p.proposal)
    }
}

/// How an agent has the floor.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Floor {
    /// It works the task out from nothing, without sight of its peer's text.
    Alone,
    /// It sees its peer's text.
    InSight,
    /// It sees that text in a talk that has come to a standstill, and has its last word.
    LastWord,
}

/// An agent's latest valid envelope and what it stands for.
#[derive(Clone, Debug)]
pub(super) struct Position {
    /// The envelope, with the digest filled in and an adoption resolved.
    pub(super) envelope: Envelope,
    /// Index of the proposal it stands for; none while WORKING or NEED_PEER.
    pub(super) proposal: Option<usize>,
    /// Whether the text was taken over by handle.
    pub(super) adopted: bool,
}

/// What came of comparing another text against the own one, in this round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared {
    pub(super) round: u32,
    pub(super) own: Digest,
    pub(super) other: Digest,
    pub(super) found: Better,
}

/// The text that came out better.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Better {
    /// The author's own, also if nothing was said that can be read.
    Own,
    Neither,
    Other,
}

/// A text that somebody put forward; its handle is its index plus one.
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

/// Counts all blind drafts.
pub(super) fn blind_vote(seats: &[AgentState; 2]) -> BlindVote {
    BlindVote::from_drafts(seats.iter().flat_map(|seat| &seat.blind).map(Option::as_ref))
}
