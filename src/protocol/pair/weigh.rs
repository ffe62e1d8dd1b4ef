//! What an agent weighs before it gives up its text for its peer's: both texts once more, without their
//! names and in both orders.
//!
//! In: the task, the two texts and the agent's replies. Out: two requests, one after the other, and
//! whether the agent's own text stands. Neither request says whose text is whose, what was said about
//! them, or that one of them has been accepted: a model that is told so defends it. Each text comes first
//! once, since the one that comes first is favoured. Who finds nothing to choose between them may give
//! way.

use super::draft::ask;
use super::judging;
use super::prompt;
use super::review::{Review, conclusion};
use super::seat::{Answer, Weighed};
use crate::protocol::{Ask, CallId, Conversation, Reply, ReplyShape, Role, Step};

/// The names under which the two texts are shown, in this order.
pub(super) const NAMES: [&str; 2] = ["First", "Second"];

/// A comparison under way.
#[derive(Clone, Debug)]
pub(super) struct Weighing {
    call: CallId,
    own: Answer,
    theirs: Answer,
    /// How many orders the own text came out better in, less those in which the other did.
    balance: i32,
}

impl Weighing {
    /// Holds the peer's text against the author's own, in the turn of `call`.
    pub(super) fn new(call: CallId, own: Answer, theirs: Answer) -> Self {
        let call = CallId { step: Step::Weigh, attempt: 0, ..call };
        Self { call, own, theirs, balance: 0 }
    }

    pub(super) fn call(&self) -> CallId {
        self.call
    }

    /// Returns the request for the reply that this waits for.
    pub(super) fn ask(&self, review: &Review<'_>) -> Ask {
        let (setup, agent) = (review.setup, &review.setup.agents[review.agent]);
        let mark = prompt::mark(setup.seed, self.call);
        let texts = self.in_order().map(|answer| answer.shown.as_str());
        let mut conversation = Conversation::default();
        conversation.push(Role::User, judging::weigh(setup, texts, &mark));
        ask(self.call, &conversation, ReplyShape::Free, agent.max_tokens, agent.temperature, setup.seed)
    }

    /// The own text first, then the other way round.
    fn in_order(&self) -> [&Answer; 2] {
        if self.call.attempt == 0 { [&self.own, &self.theirs] } else { [&self.theirs, &self.own] }
    }

    /// Takes a reply. Returns what comes of it all, once both orders are through.
    pub(super) fn reply(&mut self, review: &Review<'_>, reply: &Reply) -> Option<Weighed> {
        let better = self.better(review, &reply.text);
        self.balance += better.map_or(0, |answer| if *answer == self.own { 1 } else { -1 });
        self.call.attempt += 1;
        let (own, theirs) = (self.own.canonical.digest, self.theirs.canonical.digest);
        (self.call.attempt > 1).then_some(Weighed { own, theirs, stands: self.balance > 0 })
    }

    /// Returns the text that a reply ends with, by its name or its words; none, if it ends with both or neither.
    fn better(&self, review: &Review<'_>, reply: &str) -> Option<&Answer> {
        let last = conclusion(reply)?;
        let texts = self.in_order();
        let mut named = (0..2).filter(|&place| last.contains(NAMES[place]));
        if let (Some(place), None) = (named.next(), named.next()) {
            return Some(texts[place]);
        }
        let said = review.canonicalizer.canonicalize(last).ok()?;
        texts.into_iter().find(|answer| answer.canonical == said)
    }
}
