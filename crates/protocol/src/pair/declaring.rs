//! The state of the declarations: code has found the text that the blind answers agree on, and each agent declares it final.
//!
//! The input is a talk with that text as its only proposal, and the replies of both agents. The output is requests, and at last whether both
//! have declared it. An agent is asked for its own envelope with the handle of the text, because a text that is typed again changes by
//! accident. An agent that types it all the same declares it if its canonical form is unchanged. Nothing is decided here about the text
//! itself.

use super::agent::{Answer, ProposedText, handle};
use super::check::AcceptedEnvelope;
use super::params::Adopt;
use super::talk::{ArbiterVerdict, Talk};
use super::task_prompt;
use crate::contract::{Action, CallId, Conversation, Reply, ReplyShape, Step, Thinking};
use crate::text::Status;
use crate::text::decoding::{Decoder, Decoding, Offer};
use crate::turn::{Draft, TurnProgress};

/// The index of the only proposal.
const COUNTED: usize = 0;

/// The declarations of both agents.
#[derive(Clone, Debug)]
pub(super) struct Declarations {
    /// The declarations in the making; `None` for an agent whose turn is over.
    open: [Option<Draft>; 2],
    /// The envelopes that came. None is used before both turns are over, so that their order of arrival does not matter.
    accepted: [Option<Box<AcceptedEnvelope>>; 2],
}

impl Declarations {
    /// Puts the text before both agents, in a round of its own, and asks each for its declaration.
    pub(super) fn begin(talk: &mut Talk, answer: Answer) -> (Self, Vec<Action>) {
        talk.round += 1;
        talk.proposals = vec![ProposedText { author: 0, answer }];
        talk.arbiter = ArbiterVerdict::Counted(COUNTED);
        // The text has a handle, also where agents of a talk would have to type it.
        talk.setup.params.adopt = Some(Adopt::Handle);
        let (mut open, mut actions) = ([None, None], Vec::new());
        for (agent, place) in open.iter_mut().enumerate() {
            let call = talk.call(agent, Step::Envelope);
            let alone = Conversation::new(talk.setup.agents[agent].name_and_field());
            let words = task_prompt::declare(&talk.setup, agent, &talk.proposals[COUNTED].answer.shown);
            let draft = Draft::start(Thinking::None, call, alone, words, shape(talk, agent));
            actions.push(Action::Ask(draft.ask(&talk.setup.agents[agent], talk.setup.seed)));
            *place = Some(draft);
        }
        (Self { open, accepted: [None, None] }, actions)
    }

    /// Takes a reply. Returns what must follow, or `None` if the reply is not to an open call.
    pub(super) fn reply(&mut self, talk: &mut Talk, call: CallId, reply: &Reply) -> Option<Vec<Action>> {
        let mut draft = self.open.get_mut(call.agent)?.take_if(|draft| draft.call() == call)?;
        let review = talk.review(call.agent, false);
        let (own, max_repairs) = (&talk.setup.agents[call.agent], talk.setup.params.max_repairs);
        let progress =
            draft.reply(own, talk.setup.seed, max_repairs, reply, |text, _| review.check(text, None));
        match progress {
            TurnProgress::Ask(ask) => {
                self.open[call.agent] = Some(draft);
                return Some(vec![Action::Ask(ask)]);
            }
            TurnProgress::Valid(accepted) => self.accepted[call.agent] = Some(accepted),
            TurnProgress::Failed => talk.remark = Some("no valid declaration came in this turn"),
        }
        talk.seats[call.agent].repairs += draft.repairs;
        Some(Vec::new())
    }

    /// Returns true once both turns are over.
    pub(super) fn are_complete(&self) -> bool {
        self.open.iter().all(Option::is_none)
    }

    /// Makes the envelopes the agents' positions. Returns true if both declare the text final.
    pub(super) fn finish(&mut self, talk: &mut Talk) -> bool {
        let mut are_declared = true;
        for agent in 0..2 {
            let Some(accepted) = self.accepted[agent].take() else {
                talk.count_failure(agent);
                are_declared = false;
                continue;
            };
            let counted = &talk.proposals[COUNTED].answer.canonical;
            let is_counted = accepted.answer.as_ref().is_some_and(|answer| answer.canonical == *counted);
            are_declared &= accepted.envelope.status == Status::Solved && is_counted;
            talk.take_position(agent, *accepted);
        }
        are_declared
    }
}

/// Returns the form of a declaration, which names the handle of the text and says nothing else that is new.
fn shape(talk: &Talk, agent: usize) -> ReplyShape {
    let (setup, review) = (&talk.setup, talk.review(agent, false));
    let own = &setup.agents[agent];
    let decoding = Decoding {
        role: &own.name,
        domain: &own.domain,
        peer: &setup.agents[1 - agent].name,
        is_blind: true,
        has_thought: true,
        points_to_thoughts: true,
        is_unread: true,
        thinking_chars_max: None,
        answers: 0,
        has_answer: false,
        accepting_changes: false,
        text_chars_max: own.text_chars_max(),
        constraints: &setup.params.constraints,
    };
    let decoder = Decoder::shared(&setup.memos.decoders, review.canonicalizer, &decoding);
    let offer = Offer { acceptable: vec![handle(COUNTED)], own: None, is_decided: true };
    let schema = decoder.schema(&setup.memos.schemas, &offer);
    ReplyShape::Json { name: "envelope", schema, measured: None }
}
