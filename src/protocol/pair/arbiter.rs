//! The arbiter: asked once, on deadlock, to choose one of the texts that exist.
//!
//! It writes no text of its own and its choice binds nobody; both agents must still declare the
//! chosen text final.

use serde::Deserialize;
use serde_json::json;

use super::Setup;
use super::prompt;
use super::seat::{Proposal, handle};
use crate::protocol::draft::ask;
use crate::protocol::mark::mark;
use crate::protocol::{AgentSetup, Ask, CallId, Conversation, Finish, Reply, ReplyShape, Role, Step};
use crate::text::extract;

/// An open question to the arbiter.
#[derive(Clone, Debug)]
pub(super) struct Arbitration {
    call: CallId,
    conversation: Conversation,
    candidates: Vec<usize>,
}

/// What follows from an arbiter's reply.
pub(super) enum Ruling {
    /// Ask again.
    Ask(Ask),
    /// It chose this proposal.
    Chose(usize),
    /// It chose nothing in the attempts it had.
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    #[expect(dead_code, reason = "the reason is for the record; the verdict is the handle alone")]
    reason: String,
    choice: String,
}

impl Arbitration {
    /// Opens the question which of the proposals at `candidates` is right.
    pub(super) fn open(
        setup: &Setup,
        arbiter: &AgentSetup,
        proposals: &[Proposal],
        mut candidates: Vec<usize>,
        round: u32,
    ) -> (Self, Ask) {
        let call = CallId { round, agent: 2, draft: 0, step: Step::Choose, attempt: 0 };
        // The order of the texts is drawn, so that being first favours neither author.
        let key = |index: &usize| mark(setup.seed ^ *index as u64, call);
        candidates.sort_by_key(key);
        let texts: Vec<(usize, &Proposal)> = candidates.iter().map(|&i| (i, &proposals[i])).collect();
        let mut conversation = Conversation::new(arbiter.pack.trim().to_owned());
        let mark = mark(setup.seed, call);
        conversation.push(Role::User, prompt::arbiter(setup, &texts, &mark));
        let this = Self { call, conversation, candidates };
        let ask = this.ask(arbiter, setup.seed);
        (this, ask)
    }

    pub(super) fn call(&self) -> CallId {
        self.call
    }

    fn ask(&self, arbiter: &AgentSetup, seed: u64) -> Ask {
        let handles: Vec<String> = self.candidates.iter().copied().map(handle).collect();
        let schema = json!({
            "type": "object",
            "properties": {
                "reason": {"type": "string", "maxLength": 400},
                "choice": {"type": "string", "enum": handles},
            },
            "required": ["reason", "choice"],
            "additionalProperties": false,
        });
        ask(
            self.call,
            &self.conversation,
            ReplyShape::Json { name: "choice", schema: (&schema).into() },
            arbiter.max_tokens,
            arbiter.temperature,
            seed,
        )
    }

    /// Takes the arbiter's reply.
    pub(super) fn reply(&mut self, setup: &Setup, arbiter: &AgentSetup, reply: &Reply) -> Ruling {
        if let Some(index) = self.chosen(reply) {
            return Ruling::Chose(index);
        }
        self.call.attempt += 1;
        if self.call.attempt > setup.params.max_repairs {
            return Ruling::None;
        }
        let handles: Vec<String> = self.candidates.iter().copied().map(handle).collect();
        self.conversation.push(Role::Assistant, crate::text::quote::excerpt(&reply.text));
        let again = format!(
            "That is no valid choice. Write one JSON object with `reason` and `choice`; `choice` must be {}.",
            handles.join(" or ")
        );
        self.conversation.push(Role::User, again);
        Ruling::Ask(self.ask(arbiter, setup.seed))
    }

    fn chosen(&self, reply: &Reply) -> Option<usize> {
        if reply.finish != Finish::Stop {
            return None;
        }
        let object = extract(&reply.text).ok()?.object;
        let choice: Choice = serde_json::from_str(object).ok()?;
        self.candidates.iter().copied().find(|&index| handle(index) == choice.choice)
    }
}
