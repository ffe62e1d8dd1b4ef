//! What an agent weighs before it gives up its text for another: both once more, without their names and in
//! both orders.
//!
//! In: the task, the two texts and the agent's replies. Out: two requests, one after the other, and
//! whether the agent's own text stands. Neither request says whose text is whose, what was said about
//! them, or that one of them has been accepted: a model that is told so defends it. Each text comes first
//! once, since the one that comes first is favoured; picked there and nowhere else, it is not found better.
//! Who finds nothing to choose between them may give way; who says nothing that can be read may not.
//!
//! It is asked the same before its last word in a talk that has come to a standstill, and told what it found.
//!
//! Where no text is taken over, the votes of its own attempts are what an answer is compared by. What is
//! found again without sight of the peer's text is no concession, and needs no comparison.

use super::agent::{Answer, Better, Compared};
use super::check::{Accepted, ReplyCheck, conclusion};
use super::judge_prompt;
use crate::protocol::contract::{Ask, CallId, Conversation, Reply, ReplyShape, Role, Step};
use crate::protocol::turn::{ask, mark};

/// The names under which the two texts are shown, in this order; the first pair that neither text has in it.
const NAMES: [[&str; 2]; 3] = [["First", "Second"], ["Alpha", "Beta"], ["Left", "Right"]];

/// How a turn went.
pub(super) enum TurnEnd {
    /// With a valid envelope.
    Spoke(Box<Accepted>),
    /// With an acceptance that its author's own comparison does not bear out.
    Kept,
    /// Without a valid envelope.
    Failed,
}

/// A comparison under way.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) call: CallId,
    /// The envelope that gives up the one for the other; none before the agent's last word.
    pub(super) accepted: Option<Box<Accepted>>,
    own: Answer,
    other: Answer,
    names: [&'static str; 2],
    /// What came out better with the own text first, and with the other first; none if nothing was said that can be
    /// read.
    said: [Option<Better>; 2],
}

impl Comparison {
    /// Holds another text against the author's own, in the turn of `call`.
    pub(super) fn new(
        review: &ReplyCheck<'_>,
        call: CallId,
        accepted: Option<Box<Accepted>>,
        own: Answer,
        other: Answer,
    ) -> Self {
        // A second comparison in one turn takes the next two numbers.
        let earlier = review.seats[review.agent].compared.iter().filter(|w| w.round == call.round);
        let attempt = earlier.map(|_| 2).sum();
        let call = CallId { step: Step::Weigh, attempt, ..call };
        let holds =
            |answer: &Answer, name: &str| words(&answer.shown).any(|word| word.eq_ignore_ascii_case(name));
        let is_free =
            |names: &&[&str; 2]| names.iter().all(|name| !holds(&own, name) && !holds(&other, name));
        let names = *NAMES.iter().find(is_free).unwrap_or(&NAMES[0]);
        Self { call, accepted, own, other, names, said: [None; 2] }
    }

    pub(super) fn call(&self) -> CallId {
        self.call
    }

    /// Returns the request for the reply that this waits for.
    pub(super) fn ask(&self, review: &ReplyCheck<'_>) -> Ask {
        let (setup, agent) = (review.setup, &review.setup.agents[review.agent]);
        let mark = mark(setup.seed, self.call);
        let texts = self.in_order().map(|answer| answer.shown.as_str());
        let mut conversation = Conversation::default();
        conversation.push(Role::User, judge_prompt::weigh(setup, self.names, texts, &mark));
        ask(self.call, &conversation, ReplyShape::Free, agent.max_tokens, agent.temperature, setup.seed)
    }

    /// The own text first, then the other way round.
    fn in_order(&self) -> [&Answer; 2] {
        if self.call.attempt.is_multiple_of(2) { [&self.own, &self.other] } else { [&self.other, &self.own] }
    }

    /// Takes a reply. Returns what comes of it all, once both orders are through.
    pub(super) fn reply(&mut self, review: &ReplyCheck<'_>, reply: &Reply) -> Option<Compared> {
        let verdict = self.verdict(review, &reply.text);
        let is_second = usize::from(!self.call.attempt.is_multiple_of(2));
        self.said[is_second] = verdict;
        self.call.attempt += 1;
        let (own, other) = (self.own.canonical.digest, self.other.canonical.digest);
        let compared = Compared { round: self.call.round, own, other, found: self.found() };
        self.call.attempt.is_multiple_of(2).then_some(compared)
    }

    /// Returns what came out of both orders. Who picks a text only where it stands first picks the place.
    fn found(&self) -> Better {
        match self.said {
            [Some(found), None] | [None, Some(found)] => found,
            [None, None] | [Some(Better::Own | Better::Neither), Some(Better::Own)] => Better::Own,
            [Some(Better::Other), Some(Better::Other | Better::Neither)] => Better::Other,
            [Some(_), Some(_)] => Better::Neither,
        }
    }

    /// Reads what a reply ends with: one of the texts, by its words or its name, or that neither is better.
    fn verdict(&self, review: &ReplyCheck<'_>, reply: &str) -> Option<Better> {
        let last = conclusion(reply)?;
        let texts = self.in_order();
        let said = review.canonicalizer.canonicalize(last).ok();
        let same = |answer: &&Answer| said.as_ref() == Some(&answer.canonical);
        let better = |answer: &Answer| if *answer == self.own { Better::Own } else { Better::Other };
        if let Some(answer) = texts.into_iter().find(same) {
            return Some(better(answer));
        }
        let place = |word: &str| self.names.iter().position(|name| word.eq_ignore_ascii_case(name));
        let is_neither =
            |word: &str| ["both", "neither", "none"].iter().any(|w| word.eq_ignore_ascii_case(w));
        let mut words = words(last).skip_while(|word| place(word).is_none() && !is_neither(word));
        let Some(first) = place(words.next()?) else { return Some(Better::Neither) };
        // "First and Second", but not "First and not Second".
        let joins =
            words.next().is_some_and(|word| ["and", "or"].iter().any(|w| word.eq_ignore_ascii_case(w)));
        if joins && words.next().and_then(place).is_some_and(|second| second != first) {
            return Some(Better::Neither);
        }
        Some(better(texts[first]))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}
