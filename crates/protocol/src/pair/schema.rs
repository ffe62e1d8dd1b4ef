//! The decoding schemas of a run, each made once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::check::ReplyCheck;
use super::prompt;
use crate::contract::{ReplyShape, Thinking};
use crate::text::decoding::{Decoder, Decoding};

/// The decoders by the facts that they depend on: the agent, whether the draft is blind, the number of owed answers, whether the agent has
/// an answer, and whether accepting would change it.
#[derive(Clone, Debug, Default)]
pub(super) struct SchemaCache(BTreeMap<(usize, bool, usize, bool, bool), Arc<Decoder>>);

impl SchemaCache {
    /// Returns the shape of an envelope whose author's thoughts ended with the proposal `decided`.
    pub(super) fn shape(&mut self, review: &ReplyCheck<'_>, decided: Option<usize>) -> ReplyShape {
        let (setup, agent) = (review.setup, review.agent);
        let own = &setup.agents[agent];
        let answers = review.owed_answers();
        let has_answer = !review.blind && review.seats[agent].last_answer.is_some();
        let accepting_changes = review.accepting_changes();
        let text_chars_max = own.text_chars_max();
        let thinking = setup.params.thinking == Thinking::Field;
        let make = || {
            Decoder::shared(
                review.canonicalizer,
                &Decoding {
                    role: &own.name,
                    domain: &own.domain,
                    peer: prompt::hands_off_to(setup, agent, review.blind),
                    is_blind: review.blind,
                    has_thought: setup.params.thinking.comes_first(),
                    points_to_thoughts: review.blind && prompt::points_to_thoughts(setup),
                    is_unread: review.blind && prompt::is_unread(setup),
                    thinking_chars_max: thinking.then_some(text_chars_max / 2),
                    answers,
                    has_answer,
                    accepting_changes,
                    text_chars_max,
                    constraints: &setup.params.constraints,
                },
            )
        };
        let key = (agent, review.blind, answers, has_answer, accepting_changes);
        let decoder = self.0.entry(key).or_insert_with(make);
        ReplyShape::Json { name: "envelope", schema: decoder.schema(&review.offer(decided)), measured: None }
    }
}
