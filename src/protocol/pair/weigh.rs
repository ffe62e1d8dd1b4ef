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
//! Where no text is taken over, the votes of its own attempts are what an answer is weighed by. What is
//! found again without sight of the peer's text is no surrender, and needs no comparison.

use super::judging;
use super::machine::Pair;
use super::prompt;
use super::review::{Accepted, Review, Surrender, conclusion};
use super::seat::{Answer, Found, Weighed, handle};
use crate::protocol::turn::ask;
use crate::protocol::turn::mark;
use crate::protocol::{Action, Ask, CallId, Conversation, Reply, ReplyShape, Role, Step};

/// The names under which the two texts are shown, in this order; the first pair that neither text has in it.
const NAMES: [[&str; 2]; 3] = [["First", "Second"], ["Alpha", "Beta"], ["Left", "Right"]];

/// How a turn went.
pub(super) enum Turned {
    /// With a valid envelope.
    Spoke(Box<Accepted>),
    /// With an acceptance that its author's own comparison does not bear out.
    Kept,
    /// Without a valid envelope.
    Failed,
}

/// A comparison under way.
#[derive(Clone, Debug)]
pub(super) struct Weighing {
    call: CallId,
    /// The envelope that gives up the one for the other; none before the agent's last word.
    accepted: Option<Box<Accepted>>,
    own: Answer,
    other: Answer,
    names: [&'static str; 2],
    /// What came out better with the own text first, and with the other first; none if nothing was said that can be
    /// read.
    said: [Option<Found>; 2],
}

impl Pair {
    /// Goes on after an envelope: an acceptance is not yet one if the texts are still to be weighed.
    pub(super) fn after_envelope(&mut self, mover: usize, call: CallId, turned: Turned) -> Vec<Action> {
        let Turned::Spoke(accepted) = turned else { return self.after_turn(mover, turned) };
        let review = self.review(mover, self.is_blind());
        match review.surrender(accepted.answer.as_ref()) {
            Surrender::None => self.after_turn(mover, Turned::Spoke(accepted)),
            Surrender::OfTheBetter => self.keep(mover),
            Surrender::Unweighed { own, other } => {
                let weighing = Weighing::new(&review, call, Some(accepted), own, other);
                let ask = weighing.ask(&review);
                self.weighing = Some(weighing);
                vec![Action::Ask(ask)]
            }
        }
    }

    /// Holds the peer's text against the agent's own before its last word, so that it knows what it found.
    /// Returns the request for that; none if there is nothing to weigh, or it has been weighed.
    pub(super) fn weigh_first(&mut self, call: CallId) -> Option<Ask> {
        let review = self.review(call.agent, false);
        let peer = review.seats[1 - call.agent].stands_for();
        let index = peer.filter(|&index| review.acceptable().contains(&handle(index)))?;
        let Surrender::Unweighed { own, other } = review.surrender(Some(&self.proposals[index].answer))
        else {
            return None;
        };
        let weighing = Weighing::new(&review, call, None, own, other);
        let ask = weighing.ask(&review);
        self.weighing = Some(weighing);
        Some(ask)
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
        match weighing.accepted {
            None => self.speak(CallId { step: Step::Think, attempt: 0, ..weighing.call }, false),
            Some(_) if weighed.found == Found::Own => self.keep(agent),
            Some(accepted) => self.after_turn(agent, Turned::Spoke(accepted)),
        }
    }

    /// Where no text is taken over, an answer gives way only to one that makes up more than half of all that its author
    /// has found: a single slip is no reason, among many attempts there is always one, and who finds another
    /// answer each time knows none.
    ///
    /// Notes what was found, and returns whether the answer held before stands against it.
    pub(super) fn is_outvoted(&mut self, agent: usize, accepted: &Accepted) -> bool {
        let Some(found) = accepted.answer.as_ref().filter(|_| self.nothing_is_taken_over()) else {
            return false;
        };
        let seat = &mut self.seats[agent];
        seat.looked.push(found.clone());
        let held = seat.last_answer.as_ref();
        held.is_some_and(|held| held.canonical != found.canonical) && !seat.has_mostly_found(found)
    }

    /// Ends a turn with the agent's own text as it was.
    fn keep(&mut self, agent: usize) -> Vec<Action> {
        self.seats[agent].conversation.push(Role::User, prompt::kept());
        self.after_turn(agent, Turned::Kept)
    }
}

impl Weighing {
    /// Holds another text against the author's own, in the turn of `call`.
    fn new(
        review: &Review<'_>,
        call: CallId,
        accepted: Option<Box<Accepted>>,
        own: Answer,
        other: Answer,
    ) -> Self {
        // A second comparison in one turn takes the next two numbers.
        let earlier = review.seats[review.agent].weighed.iter().filter(|w| w.round == call.round);
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
    fn ask(&self, review: &Review<'_>) -> Ask {
        let (setup, agent) = (review.setup, &review.setup.agents[review.agent]);
        let mark = mark(setup.seed, self.call);
        let texts = self.in_order().map(|answer| answer.shown.as_str());
        let mut conversation = Conversation::default();
        conversation.push(Role::User, judging::weigh(setup, self.names, texts, &mark));
        ask(self.call, &conversation, ReplyShape::Free, agent.max_tokens, agent.temperature, setup.seed)
    }

    /// The own text first, then the other way round.
    fn in_order(&self) -> [&Answer; 2] {
        if self.call.attempt.is_multiple_of(2) { [&self.own, &self.other] } else { [&self.other, &self.own] }
    }

    /// Takes a reply. Returns what comes of it all, once both orders are through.
    fn reply(&mut self, review: &Review<'_>, reply: &Reply) -> Option<Weighed> {
        let verdict = self.verdict(review, &reply.text);
        let is_second = usize::from(!self.call.attempt.is_multiple_of(2));
        self.said[is_second] = verdict;
        self.call.attempt += 1;
        let (own, other) = (self.own.canonical.digest, self.other.canonical.digest);
        let weighed = Weighed { round: self.call.round, own, other, found: self.found() };
        self.call.attempt.is_multiple_of(2).then_some(weighed)
    }

    /// Returns what came out of both orders. Who picks a text only where it stands first picks the place.
    fn found(&self) -> Found {
        match self.said {
            [Some(found), None] | [None, Some(found)] => found,
            [None, None] | [Some(Found::Own | Found::Neither), Some(Found::Own)] => Found::Own,
            [Some(Found::Other), Some(Found::Other | Found::Neither)] => Found::Other,
            [Some(_), Some(_)] => Found::Neither,
        }
    }

    /// Reads what a reply ends with: one of the texts, by its words or its name, or that neither is better.
    fn verdict(&self, review: &Review<'_>, reply: &str) -> Option<Found> {
        let last = conclusion(reply)?;
        let texts = self.in_order();
        let said = review.canonicalizer.canonicalize(last).ok();
        let same = |answer: &&Answer| said.as_ref() == Some(&answer.canonical);
        let better = |answer: &Answer| if *answer == self.own { Found::Own } else { Found::Other };
        if let Some(answer) = texts.into_iter().find(same) {
            return Some(better(answer));
        }
        let place = |word: &str| self.names.iter().position(|name| word.eq_ignore_ascii_case(name));
        let is_neither =
            |word: &str| ["both", "neither", "none"].iter().any(|w| word.eq_ignore_ascii_case(w));
        let mut words = words(last).skip_while(|word| place(word).is_none() && !is_neither(word));
        let Some(first) = place(words.next()?) else { return Some(Found::Neither) };
        // "First and Second", but not "First and not Second".
        let joins =
            words.next().is_some_and(|word| ["and", "or"].iter().any(|w| word.eq_ignore_ascii_case(w)));
        if joins && words.next().and_then(place).is_some_and(|second| second != first) {
            return Some(Found::Neither);
        }
        Some(better(texts[first]))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}
