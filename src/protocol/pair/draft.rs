//! One envelope in the making: think, write, and write again when refused.
//!
//! A draft owns a copy of its agent's conversation, which only grows. It asks for private thoughts
//! first if the roleset wants them, then for the envelope, then at most `max_repairs` times for a
//! better one, each time with the reason for the refusal.

use std::sync::Arc;

use super::prompt;
use super::review::{Accepted, Review};
use crate::crypto::Hasher;
use crate::protocol::{AgentSetup, Ask, CallId, Conversation, Reply, ReplyShape, Role, Step, Thinking};
use crate::text::decoding::Decoder;
use crate::text::quote;

/// The most of a reply that stays in its author's conversation, in characters.
const ECHO_CHARS_MAX: usize = 8000;

/// One envelope in the making.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    call: CallId,
    conversation: Conversation,
    /// What to say once the private thoughts are in.
    envelope_prompt: String,
    decoder: Arc<Decoder>,
    shape: ReplyShape,
    /// Whether the private thoughts are in.
    has_thought: bool,
    /// The proposal that they end with.
    decided: Option<usize>,
    /// Replies refused so far.
    pub(super) repairs: u32,
}

/// What follows from a reply to a draft.
pub(super) enum Progress {
    /// Ask again.
    Ask(Ask),
    /// The envelope is valid.
    Valid(Box<Accepted>),
    /// Every attempt was refused.
    Failed,
}

impl Draft {
    /// Starts a draft; `told` is what the agent is told to do, in up to two messages, and `decoder` makes the form
    /// of its envelope.
    pub(super) fn start(
        review: &Review<'_>,
        call: CallId,
        conversation: Conversation,
        told: prompt::Told,
        decoder: Arc<Decoder>,
    ) -> Self {
        let shape = shape(&decoder, review, None);
        let mut draft = Self {
            call,
            conversation,
            envelope_prompt: told.write,
            decoder,
            shape,
            has_thought: false,
            decided: None,
            repairs: 0,
        };
        let prompt::Told { situation, think, .. } = told;
        let first = match review.setup.params.thinking {
            Thinking::Free => format!("{situation}\n\n{think}"),
            Thinking::Field | Thinking::None => {
                draft.call.step = Step::Envelope;
                format!("{situation}\n\n{}", std::mem::take(&mut draft.envelope_prompt))
            }
        };
        draft.conversation.push(Role::User, first);
        draft
    }

    /// Returns the call that this draft waits for.
    pub(super) fn call(&self) -> CallId {
        self.call
    }

    /// Returns the request for the reply that this draft waits for.
    pub(super) fn ask(&self, agent: &AgentSetup, seed: u64) -> Ask {
        let shape = match self.call.step {
            Step::Think | Step::Choose | Step::Weigh => ReplyShape::Free,
            Step::Envelope => self.shape.clone(),
        };
        // Think warm, commit cold: with the thoughts written down, the envelope only copies their
        // result, and sampling would make it slip. A refused one is written warm again.
        let is_copy = self.has_thought && self.call.step == Step::Envelope && self.call.attempt == 0;
        let temperature = if is_copy { 0.0 } else { agent.temperature };
        ask(self.call, &self.conversation, shape, agent.max_tokens, temperature, seed)
    }

    /// Takes a reply and says what follows.
    pub(super) fn reply(&mut self, review: &Review<'_>, reply: &Reply) -> Progress {
        let agent = &review.setup.agents[review.agent];
        let seed = review.setup.seed;
        if self.call.step == Step::Think {
            // Thoughts cut at the limit are thoughts all the same; they are never judged, only held to.
            self.decided = review.decided(&reply.text);
            if self.decided.is_some() {
                // With both handles before its eyes, a small model named the other one in 11 of 64 envelopes.
                self.envelope_prompt = prompt::commit(review, self.decided);
                self.shape = shape(&self.decoder, review, self.decided);
            }
            self.conversation.push(Role::Assistant, echo(&reply.text));
            self.conversation.push(Role::User, std::mem::take(&mut self.envelope_prompt));
            self.call.step = Step::Envelope;
            self.has_thought = true;
            return Progress::Ask(self.ask(agent, seed));
        }
        let violation = match review.check(reply, self.decided) {
            Ok(accepted) => {
                self.conversation.push(Role::Assistant, quote::plain(&accepted.object));
                return Progress::Valid(Box::new(accepted));
            }
            Err(violation) => violation,
        };
        self.repairs += 1;
        self.conversation.push(Role::Assistant, echo(&reply.text));
        if self.repairs > review.setup.params.max_repairs {
            self.conversation.push(Role::User, prompt::given_up(&violation));
            return Progress::Failed;
        }
        self.conversation.push(Role::User, prompt::repair(&violation));
        self.call.attempt += 1;
        Progress::Ask(self.ask(agent, seed))
    }

    /// Returns the conversation with everything that this draft added.
    pub(super) fn into_conversation(self) -> Conversation {
        self.conversation
    }
}

/// Returns the form of an envelope, whose author's thoughts ended with the proposal `decided`.
fn shape(decoder: &Decoder, review: &Review<'_>, decided: Option<usize>) -> ReplyShape {
    ReplyShape::Json { name: "envelope", schema: decoder.schema(&review.offer(decided)) }
}

/// Makes a request; its sampling seed depends on the run's seed and on the call alone.
pub(super) fn ask(
    call: CallId,
    conversation: &Conversation,
    shape: ReplyShape,
    max_tokens: u32,
    temperature: f64,
    seed: u64,
) -> Ask {
    let derived = Hasher::default().part(&seed.to_be_bytes()).part(call.to_string().as_bytes()).finish();
    // Servers differ in how they read large seeds; 31 bits are safe everywhere.
    let seed = u32::try_from(derived.leading_u64() >> 33).unwrap_or(0);
    let digest = Ask::digest_of(conversation.digest(), &shape, max_tokens, temperature, seed);
    let messages = conversation.messages().to_vec();
    Ask { call, messages, shape, max_tokens, temperature, seed, digest }
}

/// What an agent said, as its own conversation keeps it.
fn echo(text: &str) -> String {
    let mut kept: String = quote::plain(text.trim()).chars().take(ECHO_CHARS_MAX).collect();
    if kept.trim().is_empty() {
        "(nothing)".clone_into(&mut kept);
    }
    kept
}
