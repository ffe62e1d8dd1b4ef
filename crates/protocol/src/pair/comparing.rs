//! The state of a comparison: before an agent gives up its own text for another, it compares the two once more, without their names and in
//! both orders.
//!
//! The input is the task, the two texts and the agent's replies. The output is two requests, one after the other, and whether the agent's
//! own text remains. Neither request says whose text is whose, repeats words about either text, or reveals that one of them has been
//! accepted. A model that knows of the acceptance defends that text. Each text comes first once, since the first one is favoured. A text
//! that is picked only where it comes first is not found better. An agent that finds no difference between them may give way; an agent
//! without a readable verdict may not.
//!
//! The same comparison precedes an agent's last word in a talk that has come to a standstill, and the agent receives its result.
//!
//! Where no text is taken over, the votes of an agent's own attempts decide about an answer. An answer that is found again without sight of
//! the peer's text is not a concession, and needs no comparison.

use super::agent::{Answer, Better, ComparisonResult, handle};
use super::check::{AcceptedEnvelope, ReplyCheck, conclusion};
use super::talk::Talk;
use super::task_prompt;
use super::transition::Transition;
use crate::contract::{Action, Ask, CallId, Conversation, Reply, ReplyShape, Role, Step};
use crate::turn::{ask, mark};

/// The names under which the two texts are shown, in this order. The first pair that is in neither text is used.
const NAMES: [[&str; 2]; 3] = [["First", "Second"], ["Alpha", "Beta"], ["Left", "Right"]];

/// A comparison under way, in the turn of the agent that has the round.
#[derive(Clone, Debug)]
pub(super) struct TextComparison {
    call: CallId,
    /// The envelope that counts unless the own text comes out better; `None` where the agent compares before its last word.
    accepted: Option<Box<AcceptedEnvelope>>,
    own: Answer,
    other: Answer,
    names: [&'static str; 2],
    /// The better text with the own text first, and with the other first; `None` where the reply was not readable.
    verdicts: [Option<Better>; 2],
}

impl TextComparison {
    /// Lets `mover` compare its peer's text with its own before its last word, so that it knows the result. Returns `None` if there is
    /// nothing to compare, or if the two have been compared.
    pub(super) fn before_last_word(talk: &Talk, mover: usize) -> Option<(Self, Vec<Action>)> {
        let review = talk.review(mover, false);
        let peer = talk.seats[1 - mover].stands_for();
        let index = peer.filter(|&index| review.acceptable().contains(&handle(index)))?;
        let other = &talk.proposals[index].answer;
        let own = review.answer_given_up_for(Some(other))?;
        if review.comparison_with(other).is_some() {
            return None;
        }
        Some(Self::new(talk, mover, None, own.clone(), other.clone()))
    }

    /// Lets `mover` compare the two texts, before its envelope counts or before its last word.
    pub(super) fn new(
        talk: &Talk,
        mover: usize,
        accepted: Option<Box<AcceptedEnvelope>>,
        own: Answer,
        other: Answer,
    ) -> (Self, Vec<Action>) {
        // A second comparison in one turn takes the next two numbers.
        let earlier = talk.seats[mover].compared.iter().filter(|w| w.round == talk.round);
        let attempt = earlier.map(|_| 2).sum();
        let call = CallId { attempt, ..talk.call(mover, Step::Weigh) };
        let free = NAMES.into_iter().find(|names| {
            let mut words = split_words(&own.shown).chain(split_words(&other.shown));
            !words.any(|word| is_one_of(word, names))
        });
        let names = free.unwrap_or(NAMES[0]);
        let this = Self { call, accepted, own, other, names, verdicts: [None; 2] };
        let ask = this.ask(talk);
        (this, vec![Action::Ask(ask)])
    }

    /// Returns the request for the reply that this comparison waits for.
    fn ask(&self, talk: &Talk) -> Ask {
        let (setup, agent) = (&talk.setup, &talk.setup.agents[self.call.agent]);
        let mark = mark(setup.seed, self.call);
        let texts = self.in_order().map(|answer| answer.shown.as_str());
        let mut conversation = Conversation::default();
        conversation.push(Role::User, task_prompt::write_comparison_prompt(setup, self.names, texts, &mark));
        ask(self.call, &conversation, ReplyShape::Free, agent.max_tokens, agent.temperature, setup.seed)
    }

    /// Takes a reply. Returns `None` if the reply is not to the open call.
    pub(super) fn reply(&mut self, talk: &mut Talk, call: CallId, reply: &Reply) -> Option<Transition> {
        if call != self.call {
            return None;
        }
        let Some(compared) = self.compare(&talk.review(call.agent, false), reply) else {
            return Some(Transition::Stay(vec![Action::Ask(self.ask(talk))]));
        };
        let mover = call.agent;
        talk.seats[mover].compared.push(compared);
        let Some(accepted) = &self.accepted else { return Some(Transition::LastWord(mover)) };
        if compared.better == Better::Own {
            return Some(Transition::KeepOwnText(mover));
        }
        Some(Transition::EndTurn { mover, accepted: accepted.clone() })
    }

    /// Returns the two texts in the order of the present request: the own text is first in one request and second in the other.
    fn in_order(&self) -> [&Answer; 2] {
        if self.call.attempt.is_multiple_of(2) { [&self.own, &self.other] } else { [&self.other, &self.own] }
    }

    /// Records the verdict of a reply. Returns the result once both orders are complete.
    fn compare(&mut self, review: &ReplyCheck<'_>, reply: &Reply) -> Option<ComparisonResult> {
        let verdict = self.read_verdict(review, &reply.text);
        let is_second = usize::from(!self.call.attempt.is_multiple_of(2));
        self.verdicts[is_second] = verdict;
        self.call.attempt += 1;
        let (own, other) = (self.own.canonical.digest, self.other.canonical.digest);
        let compared = ComparisonResult { round: self.call.round, own, other, better: self.better_text() };
        self.call.attempt.is_multiple_of(2).then_some(compared)
    }

    /// Returns the result of both orders. An agent that picks a text only where it comes first picks the place.
    fn better_text(&self) -> Better {
        match self.verdicts {
            [Some(found), None] | [None, Some(found)] => found,
            [None, None] | [Some(Better::Own | Better::Neither), Some(Better::Own)] => Better::Own,
            [Some(Better::Other), Some(Better::Other | Better::Neither)] => Better::Other,
            [Some(_), Some(_)] => Better::Neither,
        }
    }

    /// Reads the verdict at the end of a reply: one of the texts, by its words or its name, or that neither is better.
    fn read_verdict(&self, review: &ReplyCheck<'_>, reply: &str) -> Option<Better> {
        let last = conclusion(reply)?;
        let texts = self.in_order();
        if let Ok(canonical) = review.canonicalizer.canonicalize(last)
            && let Some(answer) = texts.into_iter().find(|answer| answer.canonical == canonical)
        {
            return Some(self.whose(answer));
        }
        let mut words = split_words(last).skip_while(|word| {
            !is_one_of(word, &self.names) && !is_one_of(word, &["both", "neither", "none"])
        });
        let Some(first) = self.place(words.next()?) else { return Some(Better::Neither) };
        // "First and Second", but not "First and not Second".
        if words.next().is_some_and(|word| is_one_of(word, &["and", "or"]))
            && words.next().and_then(|word| self.place(word)).is_some_and(|second| second != first)
        {
            return Some(Better::Neither);
        }
        Some(self.whose(texts[first]))
    }

    /// Returns the place of the text that this word names.
    fn place(&self, word: &str) -> Option<usize> {
        self.names.iter().position(|name| word.eq_ignore_ascii_case(name))
    }

    fn whose(&self, answer: &Answer) -> Better {
        if *answer == self.own { Better::Own } else { Better::Other }
    }
}

fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}
