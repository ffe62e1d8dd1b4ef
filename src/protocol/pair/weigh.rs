//! What an agent weighs before it gives up its text for its peer's: both texts once more, without their
//! names and in both orders.
//!
//! In: the task, the two texts and the agent's replies. Out: two requests, one after the other, and
//! whether the agent's own text stands. Neither request says whose text is whose, what was said about
//! them, or that one of them has been accepted: a model that is told so defends it. Each text comes first
//! once, since the one that comes first is favoured. Who finds nothing to choose between them may give
//! way. Where no text is taken over, the votes of its own attempts are what an answer is weighed by.

use super::judging;
use super::machine::{Pair, Turned};
use super::prompt;
use super::review::{Accepted, Review, Surrender, conclusion};
use super::seat::{Answer, Weighed};
use crate::protocol::draft::ask;
use crate::protocol::mark::mark;
use crate::protocol::{Action, Ask, CallId, Conversation, Reply, ReplyShape, Role, Step};

/// The names under which the two texts are shown, in this order.
pub(super) const NAMES: [&str; 2] = ["First", "Second"];

/// A comparison under way.
#[derive(Clone, Debug)]
pub(super) struct Weighing {
    call: CallId,
    /// The envelope that gives up the one for the other.
    accepted: Box<Accepted>,
    own: Answer,
    theirs: Answer,
    /// How many orders the own text came out better in, less those in which the other did.
    balance: i32,
}

impl Pair {
    /// Goes on after an envelope: an acceptance is not yet one if the texts are still to be weighed.
    pub(super) fn after_envelope(&mut self, mover: usize, call: CallId, turned: Turned) -> Vec<Action> {
        let Turned::Spoke(accepted) = turned else { return self.after_turn(mover, turned) };
        let review = self.review(mover, self.is_blind());
        match review.surrender(&accepted) {
            Surrender::None => self.after_turn(mover, Turned::Spoke(accepted)),
            Surrender::OfTheBetter => self.keep(mover),
            Surrender::Unweighed { own, theirs } => {
                let weighing = Weighing::new(call, accepted, own, theirs);
                let ask = weighing.ask(&review);
                self.weighing = Some(weighing);
                vec![Action::Ask(ask)]
            }
        }
    }

    /// Takes a reply to a comparison.
    pub(super) fn weigh(&mut self, mut weighing: Weighing, reply: &Reply) -> Vec<Action> {
        let agent = weighing.call.agent;
        let review = self.review(agent, false);
        let Some(weighed) = weighing.reply(&review, reply) else {
            let ask = weighing.ask(&review);
            self.weighing = Some(weighing);
            return vec![Action::Ask(ask)];
        };
        self.seats[agent].weighed.push(weighed);
        if weighed.stands {
            self.keep(agent)
        } else {
            self.after_turn(agent, Turned::Spoke(weighing.accepted))
        }
    }

    /// Where no text is taken over, an answer gives way only to one that its author has found more often: a single
    /// slip is no reason, and among many attempts there is always one.
    ///
    /// Notes what was found, and returns whether the answer held before stands against it.
    pub(super) fn is_outvoted(&mut self, agent: usize, accepted: &Accepted) -> bool {
        let Some(found) = accepted.answer.as_ref().filter(|_| self.nothing_is_taken_over()) else {
            return false;
        };
        let held = self.seats[agent].stands_for().map(|index| &self.proposals[index].answer);
        let seat = &mut self.seats[agent];
        seat.looked.push(found.clone());
        held.is_some_and(|held| {
            held.canonical != found.canonical && seat.times_found(held) >= seat.times_found(found)
        })
    }

    /// Ends a turn with the agent's own text as it was.
    fn keep(&mut self, agent: usize) -> Vec<Action> {
        self.seats[agent].conversation.push(Role::User, prompt::kept());
        self.after_turn(agent, Turned::Kept)
    }
}

impl Weighing {
    /// Holds the peer's text against the author's own, in the turn of `call`.
    fn new(call: CallId, accepted: Box<Accepted>, own: Answer, theirs: Answer) -> Self {
        let call = CallId { step: Step::Weigh, attempt: 0, ..call };
        Self { call, accepted, own, theirs, balance: 0 }
    }

    pub(super) fn call(&self) -> CallId {
        self.call
    }

    /// Returns the request for the reply that this waits for.
    fn ask(&self, review: &Review<'_>) -> Ask {
        let (setup, agent) = (review.setup, &review.setup.agents[review.agent]);
        let mark = mark(setup.seed, self.call);
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
    fn reply(&mut self, review: &Review<'_>, reply: &Reply) -> Option<Weighed> {
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
