//! The making of one reply in a schema: think, write, and write again when refused.
//!
//! A draft owns a copy of its agent's conversation, which only grows. It asks for private thoughts first if the roleset wants them, and
//! then for the JSON object. After a refusal it asks for a better object and gives the reason, until the attempts are used up. The protocol
//! decides what makes an object valid.

use crate::contract::{
    AgentSetup, Ask, CallId, Conversation, Finish, Reply, ReplyShape, Role, Step, Thinking,
};
use crate::text::{ProgramFault, Violation, escape};
use crypto::Hasher;

/// The words that begin every message that sends a reply back to its author.
pub const REFUSED: &str = "That reply does not count";

/// The maximum length of a reply in its author's conversation, in characters.
const ECHO_CHARS_MAX: usize = 8000;

/// The prompt of an agent for one turn.
pub(crate) struct TurnPrompt {
    /// The facts that the agent needs.
    pub(crate) situation: String,
    /// The request for private thoughts.
    pub(crate) think: String,
    /// The request for the object.
    pub(crate) write: String,
}

/// One reply in the making.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    call: CallId,
    conversation: Conversation,
    /// The request that follows once the private thoughts are in.
    write: String,
    shape: ReplyShape,
    /// The private thoughts, once they are in.
    thoughts: Option<String>,
    /// The number of refused replies.
    pub(crate) repairs: u32,
    /// The number of replies that were refused as vacuous.
    vacuous: u32,
    /// The number of vacuous replies after which the draft has failed, if there is such a number.
    vacuous_max: Option<u32>,
}

/// The consequence of a reply to a draft or to a question.
pub(crate) enum TurnProgress<T> {
    Ask(Ask),
    Valid(T),
    /// The draft has failed: no attempt is left.
    Failed,
}

/// A reply that its protocol accepts, and its object as the author's conversation keeps it.
pub(crate) struct Valid<T> {
    pub(crate) content: T,
    pub(crate) object: String,
}

impl Draft {
    /// Starts a draft. `words` is the agent's prompt, in up to two messages, and `shape` is the form of its object.
    pub(crate) fn start(
        thinking: Thinking,
        call: CallId,
        conversation: Conversation,
        words: TurnPrompt,
        shape: ReplyShape,
    ) -> Self {
        let TurnPrompt { situation, think, write } = words;
        let mut draft = Self {
            call,
            conversation,
            write,
            shape,
            thoughts: None,
            repairs: 0,
            vacuous: 0,
            vacuous_max: None,
        };
        let first = match thinking {
            Thinking::Free => format!("{situation}\n\n{think}"),
            Thinking::Field | Thinking::None => {
                draft.call.step = Step::Envelope;
                format!("{situation}\n\n{}", std::mem::take(&mut draft.write))
            }
        };
        draft.conversation.push(Role::User, first);
        draft
    }

    /// Sets the number of vacuous replies after which the draft gives up, whatever repairs are left.
    pub(crate) fn give_up_after_vacuous(&mut self, max: u32) {
        self.vacuous_max = Some(max);
    }

    /// Changes the request for the object and its form, now that the thoughts are about to come in.
    pub(crate) fn recast(&mut self, write: String, shape: ReplyShape) {
        self.write = write;
        self.reshape(shape);
    }

    /// Changes the form of the object from here on.
    pub(crate) fn reshape(&mut self, shape: ReplyShape) {
        self.shape = shape;
    }

    /// Returns the call that this draft waits for.
    pub(crate) fn call(&self) -> CallId {
        self.call
    }

    /// Returns the request for the reply that this draft waits for.
    pub(crate) fn ask(&self, agent: &AgentSetup, seed: u64) -> Ask {
        let shape = match self.call.step {
            Step::Think | Step::Sample | Step::Choose | Step::Weigh => ReplyShape::Free,
            Step::Envelope => self.shape.clone(),
        };
        // Think warm, commit cold: with the thoughts written down, the object only copies their result, and sampling would make it slip. A
        // refused object is written warm again.
        let is_copy = self.thoughts.is_some() && self.call.step == Step::Envelope && self.call.attempt == 0;
        let temperature = if is_copy { 0.0 } else { agent.temperature };
        ask(self.call, &self.conversation, shape, agent.max_tokens, temperature, seed)
    }

    /// Takes a reply and returns what follows from it. `check` decides whether the protocol accepts its object, which came after these
    /// thoughts.
    pub(crate) fn reply<T>(
        &mut self,
        agent: &AgentSetup,
        seed: u64,
        max_repairs: u32,
        reply: &Reply,
        check: impl FnOnce(&str, Option<&str>) -> Result<Valid<T>, Violation>,
    ) -> TurnProgress<T> {
        if matches!(self.call.step, Step::Think | Step::Sample) {
            // Thoughts that are cut at the limit are thoughts all the same. They are never judged, but they may bind the object.
            self.thoughts = Some(reply.text.clone());
            self.conversation.push(Role::Assistant, echo(&reply.text));
            self.conversation.push(Role::User, std::mem::take(&mut self.write));
            self.call.step = Step::Envelope;
            return TurnProgress::Ask(self.ask(agent, seed));
        }
        let checked = match reply.finish {
            Finish::Stop => check(&reply.text, self.thoughts.as_deref()),
            Finish::Length => Err(self.cut(agent.max_tokens)),
            Finish::Refused => Err(Violation::Refused),
        };
        let violation = match checked {
            Ok(Valid { content, object }) => {
                self.conversation.push(Role::Assistant, echo(&object));
                return TurnProgress::Valid(content);
            }
            Err(violation) => violation,
        };
        self.repairs += 1;
        self.vacuous += u32::from(matches!(violation, Violation::Vacuous(_)));
        let is_hopeless = self.vacuous_max.is_some_and(|max| self.vacuous >= max);
        self.conversation.push(Role::Assistant, echo(&reply.text));
        if self.repairs > max_repairs || is_hopeless {
            self.conversation.push(Role::User, format!("{REFUSED} either: {violation}.\nThis turn is over."));
            return TurnProgress::Failed;
        }
        let what = match &self.shape {
            ReplyShape::Json { name, .. } => format!("the {name} again: exactly one JSON object"),
            ReplyShape::Free => "the whole program again, in one ```python block".to_owned(),
        };
        TurnProgress::Ask(self.ask_again(agent, seed, &violation, &what))
    }

    /// Returns the request that sends a free text back, whose reply stays in the conversation.
    pub(crate) fn send_back(
        &mut self,
        agent: &AgentSetup,
        seed: u64,
        reply: &str,
        violation: &Violation,
    ) -> Ask {
        self.conversation.push(Role::Assistant, echo(reply));
        self.ask_again(agent, seed, violation, "the complete answer again")
    }

    /// Returns the next attempt of a call, with the reason why the last one was refused, and a request for `what`.
    fn ask_again(&mut self, agent: &AgentSetup, seed: u64, violation: &Violation, what: &str) -> Ask {
        self.conversation
            .push(Role::User, format!("{REFUSED}: {violation}.\nWrite {what} and nothing else."));
        self.call.attempt += 1;
        Ask { refused: Some(violation.in_brief()), ..self.ask(agent, seed) }
    }

    /// Returns the violation of a reply that was cut at the token limit.
    fn cut(&self, max_tokens: u32) -> Violation {
        match &self.shape {
            ReplyShape::Json { .. } => Violation::Cut { max_tokens },
            ReplyShape::Free => ProgramFault::Cut(max_tokens).into(),
        }
    }

    /// Returns the conversation with everything that this draft added.
    pub(crate) fn into_conversation(self) -> Conversation {
        self.conversation
    }
}

/// Makes a request. Its sampling seed depends only on the run's seed and on the call.
pub(crate) fn ask(
    call: CallId,
    conversation: &Conversation,
    shape: ReplyShape,
    max_tokens: u32,
    temperature: f64,
    seed: u64,
) -> Ask {
    let derived = Hasher::default().part(&seed.to_be_bytes()).part(call.to_string().as_bytes()).finish();
    // Servers read large seeds in different ways; 31 bits are safe everywhere.
    let seed = u32::try_from(derived.leading_u64() >> 33).unwrap_or(0);
    let digest = Ask::digest_of(conversation.digest(), &shape, max_tokens, temperature, seed);
    let messages = conversation.messages().to_vec();
    Ask { call, messages, shape, max_tokens, temperature, seed, digest, refused: None }
}

/// Returns the words of an agent as its own conversation keeps them.
fn echo(text: &str) -> String {
    let mut words: String = escape::plain(text.trim()).chars().take(ECHO_CHARS_MAX).collect();
    if words.trim().is_empty() {
        "(nothing)".clone_into(&mut words);
    }
    words
}
