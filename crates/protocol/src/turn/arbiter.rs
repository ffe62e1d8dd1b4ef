//! An arbiter: an agent that is asked once to choose one of the existing texts, by its handle.
//!
//! It writes no text of its own. The protocol decides how much its choice is worth.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::reply_loop::{REFUSED, TurnProgress, ask};
use crate::contract::{
    AgentSetup, Answer, Ask, CallId, Conversation, Degraded, DegradedKind, Finish, Reply, ReplyShape, Role,
};
use crate::text::{escape, extract};
use crypto::Digest;

/// An open question to the arbiter.
#[derive(Clone, Debug)]
pub(crate) struct Arbitration {
    arbiter: AgentSetup,
    call: CallId,
    conversation: Conversation,
    choices: Vec<String>,
}

/// A valid reply of an arbiter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ruling {
    pub(crate) reason: String,
    choice: String,
    /// The index of the choice, which is looked up after the reply has been read.
    #[serde(skip)]
    pub(crate) index: usize,
}

/// The choice of an arbiter that was asked. Only the choice is a verdict; the reason is not.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ArbiterChoice {
    /// The text that the arbiter chose; `None` if it took no text.
    pub text: Option<String>,
    /// The digest of that text's canonical form.
    pub sha256: Option<Digest>,
    /// The reason, in the arbiter's words.
    pub reason: String,
}

impl ArbiterChoice {
    /// Makes the record of a choice.
    pub(crate) fn new(chosen: Option<&Answer>, reason: String) -> Self {
        let (text, sha256) = chosen.map(|answer| (answer.shown.clone(), answer.canonical.digest)).unzip();
        Self { text, sha256, reason }
    }
}

/// Returns the loss that is reported when an arbiter was asked and chose nothing.
pub(crate) fn no_choice(arbiter: &AgentSetup) -> Degraded {
    let detail = format!("{} made no valid choice as the arbiter", arbiter.name);
    Degraded { kind: DegradedKind::FailedTurn, detail }
}

impl Arbitration {
    /// Opens a question whose answer is one of `choices`.
    pub(crate) fn open(
        call: CallId,
        arbiter: AgentSetup,
        seed: u64,
        question: String,
        choices: Vec<String>,
    ) -> (Self, Ask) {
        let mut conversation = Conversation::new(arbiter.pack.trim().to_owned());
        conversation.push(Role::User, question);
        let this = Self { arbiter, call, conversation, choices };
        let ask = this.ask(seed);
        (this, ask)
    }

    pub(crate) fn call(&self) -> CallId {
        self.call
    }

    fn ask(&self, seed: u64) -> Ask {
        let schema = json!({
            "type": "object",
            "properties": {
                "reason": {"type": "string", "maxLength": 400},
                "choice": {"type": "string", "enum": self.choices},
            },
            "required": ["reason", "choice"],
            "additionalProperties": false,
        });
        let shape = ReplyShape::Json { name: "choice", schema: (&schema).into(), measured: None };
        let AgentSetup { max_tokens, temperature, .. } = self.arbiter;
        ask(self.call, &self.conversation, shape, max_tokens, temperature, seed)
    }

    /// Takes the arbiter's reply.
    pub(crate) fn reply(&mut self, seed: u64, max_repairs: u32, reply: &Reply) -> TurnProgress<Ruling> {
        if let Some(ruling) = self.read_ruling(reply) {
            return TurnProgress::Valid(ruling);
        }
        self.call.attempt += 1;
        if self.call.attempt > max_repairs {
            return TurnProgress::Failed;
        }
        self.conversation.push(Role::Assistant, escape::excerpt(&reply.text));
        let again = format!(
            "{REFUSED}: it is no valid choice.\nWrite one JSON object with `reason` and `choice`; `choice` must be {}.",
            self.choices.join(" or ")
        );
        self.conversation.push(Role::User, again);
        let refused = Some("it was no valid choice".to_owned());
        TurnProgress::Ask(Ask { refused, ..self.ask(seed) })
    }

    fn read_ruling(&self, reply: &Reply) -> Option<Ruling> {
        if reply.finish != Finish::Stop {
            return None;
        }
        let object = extract(&reply.text).ok()?.object;
        let mut ruling: Ruling = serde_json::from_str(object).ok()?;
        ruling.index = self.choices.iter().position(|name| *name == ruling.choice)?;
        Some(ruling)
    }
}
