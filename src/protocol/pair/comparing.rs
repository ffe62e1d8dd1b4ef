//! A comparison, as a state: an agent weighs two texts before it gives up its own for the other, both once more, without
//! their names and in both orders.
//!
//! In: the task, the two texts and the agent's replies. Out: two requests, one after the other, and
//! whether the agent's own text stands. Neither request says whose text is whose, what was said about
//! them, or that one of them has been accepted: a model that is told so defends it. Each text comes first
//! once, since the one that comes first is favoured; picked there and nowhere else, it is not found better.
//! An agent that finds nothing to choose between them may give way; an agent that says nothing readable may not.
//!
//! It is asked the same before its last word in a talk that has come to a standstill, and told what it found.
//!
//! Where no text is taken over, the votes of its own attempts decide about an answer. An answer that is
//! found again without sight of the peer's text is no concession, and needs no comparison.

use super::agent::{Answer, Better, Compared, handle};
use super::check::{Accepted, Concession, ReplyCheck, conclusion};
use super::judge_prompt;
use super::talk::Talk;
use super::transition::Transition;
use super::turn_end::TurnEnd;
use crate::protocol::contract::{Action, Ask, CallId, Conversation, Reply, ReplyShape, Role, Step};
use crate::protocol::turn::{ask, mark};

/// The names under which the two texts are shown, in this order; the first pair that neither text has in it.
const NAMES: [[&str; 2]; 3] = [["First", "Second"], ["Alpha", "Beta"], ["Left", "Right"]];

/// A comparison under way, in the turn of the agent that has the round.
#[derive(Clone, Debug)]
pub(super) struct Comparing {
    call: CallId,
    purpose: Purpose,
    own: Answer,
    other: Answer,
    names: [&'static str; 2],
    /// What came out better with the own text first, and with the other first; none if nothing was said that can be
    /// read.
    said: [Option<Better>; 2],
}

/// What the agent compares the texts for.
#[derive(Clone, Debug)]
enum Purpose {
    /// To learn whether this envelope counts, which gives up the own text for the other.
    Concession(Box<Accepted>),
    /// To be told what it found before its last word.
    LastWord,
}

impl Comparing {
    /// Lets `mover` compare the two texts before its envelope counts, which gives up its own for the other.
    pub(super) fn before_concession(
        talk: &Talk,
        mover: usize,
        accepted: Box<Accepted>,
        own: Answer,
        other: Answer,
    ) -> (Self, Vec<Action>) {
        Self::new(talk, mover, Purpose::Concession(accepted), own, other)
    }

    /// Lets `mover` compare its peer's text with its own before its last word, so that it knows what it found.
    /// Returns none if there is nothing to weigh, or it has been compared.
    pub(super) fn before_last_word(talk: &Talk, mover: usize) -> Option<(Self, Vec<Action>)> {
        let review = talk.review(mover, false);
        let peer = talk.seats[1 - mover].stands_for();
        let index = peer.filter(|&index| review.acceptable().contains(&handle(index)))?;
        match review.concession(Some(&talk.proposals[index].answer)) {
            Concession::Unweighed { own, other } => {
                Some(Self::new(talk, mover, Purpose::LastWord, own, other))
            }
            Concession::None | Concession::OfTheBetter => None,
        }
    }

    fn new(talk: &Talk, mover: usize, purpose: Purpose, own: Answer, other: Answer) -> (Self, Vec<Action>) {
        // A second comparison in one turn takes the next two numbers.
        let earlier = talk.seats[mover].compared.iter().filter(|w| w.round == talk.round);
        let attempt = earlier.map(|_| 2).sum();
        let call = CallId { attempt, ..talk.call(mover, Step::Weigh) };
        let holds =
            |answer: &Answer, name: &str| words(&answer.shown).any(|word| word.eq_ignore_ascii_case(name));
        let is_free =
            |names: &&[&str; 2]| names.iter().all(|name| !holds(&own, name) && !holds(&other, name));
        let names = *NAMES.iter().find(is_free).unwrap_or(&NAMES[0]);
        let this = Self { call, purpose, own, other, names, said: [None; 2] };
        let ask = this.ask(talk);
        (this, vec![Action::Ask(ask)])
    }

    /// Returns the request for the reply that this waits for.
    fn ask(&self, talk: &Talk) -> Ask {
        let (setup, agent) = (&talk.setup, &talk.setup.agents[self.call.agent]);
        let mark = mark(setup.seed, self.call);
        let texts = self.in_order().map(|answer| answer.shown.as_str());
        let mut conversation = Conversation::default();
        conversation.push(Role::User, judge_prompt::weigh(setup, self.names, texts, &mark));
        ask(self.call, &conversation, ReplyShape::Free, agent.max_tokens, agent.temperature, setup.seed)
    }

    /// Takes a reply. Returns none if it waits for no such call.
    pub(super) fn reply(&mut self, talk: &mut Talk, call: CallId, reply: &Reply) -> Option<Transition> {
        if call != self.call {
            return None;
        }
        let Some(compared) = self.compare(&talk.review(call.agent, false), reply) else {
            return Some(Transition::Stay(vec![Action::Ask(self.ask(talk))]));
        };
        let mover = call.agent;
        talk.seats[mover].compared.push(compared);
        Some(match &self.purpose {
            Purpose::LastWord => Transition::LastWord(mover),
            Purpose::Concession(_) if compared.found == Better::Own => {
                Transition::EndTurn { mover, ended: TurnEnd::Kept }
            }
            Purpose::Concession(accepted) => {
                Transition::EndTurn { mover, ended: TurnEnd::Spoke(accepted.clone()) }
            }
        })
    }

    /// The own text first, then the other way round.
    fn in_order(&self) -> [&Answer; 2] {
        if self.call.attempt.is_multiple_of(2) { [&self.own, &self.other] } else { [&self.other, &self.own] }
    }

    /// Takes in what a reply says. Returns what comes of it all, once both orders are through.
    fn compare(&mut self, review: &ReplyCheck<'_>, reply: &Reply) -> Option<Compared> {
        let verdict = self.verdict(review, &reply.text);
        let is_second = usize::from(!self.call.attempt.is_multiple_of(2));
        self.said[is_second] = verdict;
        self.call.attempt += 1;
        let (own, other) = (self.own.canonical.digest, self.other.canonical.digest);
        let compared = Compared { round: self.call.round, own, other, found: self.found() };
        self.call.attempt.is_multiple_of(2).then_some(compared)
    }

    /// Returns what came out of both orders. An agent that picks a text only where it stands first picks the place.
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
