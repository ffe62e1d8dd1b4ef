//! The draft of an envelope: it is asked for, checked, and asked for again.
//!
//! The input is the talk, and the replies of one agent in one turn. The output is requests, and at last an accepted envelope or a failed
//! turn. The consequence of either is never decided here.

use super::agent::blind_vote;
use super::check::{AcceptedEnvelope, ReplyCheck};
use super::prompt;
use super::talk::Talk;
use crate::contract::{Ask, CallId, Conversation, Method, Reply, ReplyShape, Step, Thinking};
use crate::text::decoding::{Decoder, Decoding};
use crate::turn::{Draft, TurnProgress, TurnPrompt};

/// The number of vacuous replies after which a blind draft fails. An agent that has written nothing twice writes nothing a third time.
const VACUOUS_MAX: u32 = 2;

/// The draft of an envelope.
#[derive(Clone, Debug)]
pub(super) struct EnvelopeDraft {
    draft: Draft,
    /// Whether the author knows nothing of its peer's text.
    is_blind: bool,
    /// Whether the author writes a program in place of an envelope.
    method: Method,
}

impl EnvelopeDraft {
    fn new(talk: &Talk, is_blind: bool, call: CallId, conversation: Conversation, words: TurnPrompt) -> Self {
        let shape = shape(&talk.review(call.agent, is_blind), None);
        let draft = Draft::start(talk.setup.params.thinking, call, conversation, words, shape);
        Self { draft, is_blind, method: Method::Words }
    }

    /// Starts the program of an agent that works the task out from nothing.
    fn program(talk: &Talk, call: CallId, conversation: Conversation) -> Self {
        let words = prompt::program(&talk.setup);
        let draft = Draft::start(Thinking::None, call, conversation, words, ReplyShape::Free);
        Self { draft, is_blind: true, method: Method::Program }
    }

    /// Starts the envelope of an agent that works the task out from nothing, by its own or its peer's method. The agent cannot repeat its
    /// earlier words, and no word of its peer can bend its answer.
    pub(super) fn from_nothing(talk: &Talk, call: CallId, method: usize) -> Self {
        let fresh = Conversation::new(prompt::system(&talk.setup, call.agent, method));
        if talk.setup.agents[method].method == Method::Program {
            return Self::program(talk, call, fresh);
        }
        let words = prompt::alone(&talk.setup, call.agent);
        Self::new(talk, true, call, fresh, words)
    }

    /// Starts the envelope of an agent that sees its peer's envelope.
    pub(super) fn from_talk(talk: &Talk, call: CallId, is_first: bool) -> Self {
        let review = talk.review(call.agent, false);
        // The vote says something only when more than the first two drafts were made.
        let vote = if talk.seats[0].blind.len() > 1 { Some(blind_vote(&talk.seats)) } else { None };
        let words = prompt::turn(&review, call, vote.as_ref(), is_first);
        let conversation = talk.seats[call.agent].conversation.clone();
        Self::new(talk, false, call, conversation, words)
    }

    /// Lets the draft fail after its second vacuous reply, without the repairs that are left.
    pub(super) fn give_up_when_vacuous(&mut self) {
        self.draft.give_up_after_vacuous(VACUOUS_MAX);
    }

    /// Returns the call that this envelope waits for.
    pub(super) fn call(&self) -> CallId {
        self.draft.call()
    }

    pub(super) fn is_blind(&self) -> bool {
        self.is_blind
    }

    /// Returns the request for the reply that this envelope waits for.
    pub(super) fn ask(&self, talk: &Talk) -> Ask {
        self.draft.ask(&talk.setup.agents[self.call().agent], talk.setup.seed)
    }

    /// Takes a reply. The author's words in its committed draft and in the talk become part of its conversation.
    pub(super) fn reply(&mut self, talk: &mut Talk, reply: &Reply) -> TurnProgress<Box<AcceptedEnvelope>> {
        let call = self.call();
        if call.step == Step::Think {
            self.hold_to_thoughts(talk, &reply.text);
        }
        let review = talk.review(call.agent, self.is_blind);
        let (own, max_repairs) = (&talk.setup.agents[call.agent], talk.setup.params.max_repairs);
        let method = self.method;
        let progress =
            self.draft.reply(own, talk.setup.seed, max_repairs, reply, |text, thoughts| match method {
                Method::Words => review.check(text, thoughts),
                Method::Program => review.check_program(text),
            });
        match progress {
            TurnProgress::Ask(_) => return progress,
            TurnProgress::Valid(_) => {}
            TurnProgress::Failed => {
                talk.remark = Some(match method {
                    Method::Words => "no valid envelope came in this turn",
                    Method::Program => "no program gave an answer in this turn",
                });
            }
        }
        let seat = &mut talk.seats[call.agent];
        seat.repairs += self.draft.repairs;
        if call.draft == 0 {
            seat.conversation = self.draft.clone().into_conversation();
        }
        progress
    }

    /// Restricts an envelope to the text that its author's thoughts end with, if they end with one.
    ///
    /// With both handles in its prompt, a small model thought of the one and named the other in 11 of 64 envelopes.
    fn hold_to_thoughts(&mut self, talk: &Talk, thoughts: &str) {
        let review = talk.review(self.call().agent, self.is_blind);
        if let Some(decided) = review.read_decision(thoughts) {
            let write = prompt::commit(&review, Some(decided));
            self.draft.recast(write, shape(&review, Some(decided)));
        }
    }
}

/// Returns the shape of an envelope whose author's thoughts ended with the proposal `decided`.
fn shape(review: &ReplyCheck<'_>, decided: Option<usize>) -> ReplyShape {
    let (setup, agent) = (review.setup, review.agent);
    let own = &setup.agents[agent];
    let text_chars_max = own.text_chars_max();
    let has_field = setup.params.thinking == Thinking::Field;
    let decoding = Decoding {
        role: &own.name,
        domain: &own.domain,
        peer: prompt::hands_off_to(setup, agent, review.blind),
        is_blind: review.blind,
        has_thought: setup.params.thinking.comes_first(),
        points_to_thoughts: review.blind && prompt::points_to_thoughts(setup),
        is_unread: review.blind && prompt::is_unread(setup),
        thinking_chars_max: if has_field { Some(text_chars_max / 2) } else { None },
        answers: review.owed_answers(),
        has_answer: !review.blind && review.seats[agent].last_answer.is_some(),
        accepting_changes: review.accepting_changes(),
        text_chars_max,
        constraints: &setup.params.constraints,
    };
    let decoder = Decoder::shared(&setup.memos.decoders, review.canonicalizer, &decoding);
    let schema = decoder.schema(&setup.memos.schemas, &review.offer(decided));
    ReplyShape::Json { name: "envelope", schema, measured: None }
}
