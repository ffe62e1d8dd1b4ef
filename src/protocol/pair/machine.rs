//! The machine of `pair`: events in, actions out. The module's essay has the picture.

use super::agent::{Better, Position, ProposedText, blind_vote, handle};
use super::check::{Accepted, Concession};
use super::comparison::{Comparison, TurnEnd};
use super::prompt::{self, Situation};
use super::report::PairSection;
use super::state::{Pair, PairPhase};
use super::{agreement, turn_order};
use crate::protocol::contract::{
    Action, Ask, CallId, Conversation, Event, NoAgreement, Outcome, Protocol, Reply, Report, Role, Step,
    Unexpected,
};
use crate::protocol::turn::{Draft, TurnProgress, TurnPrompt};
use crate::text::Status;

/// An agent with this many failed turns in a row ends the talk.
const FAILED_IN_A_ROW_MAX: u32 = 2;

/// Why an agent gave up an answer without having seen another.
const FOUND_ANOTHER: &str = "worked out again from nothing, it found another answer";

/// An agent's status, text and requests, and its message while it has no text.
type Standing = (Status, Option<usize>, Vec<String>, Option<String>);

impl Pair {
    /// Starts an envelope in the making.
    fn start(
        &mut self,
        agent: usize,
        blind: bool,
        call: CallId,
        conversation: Conversation,
        told: TurnPrompt,
    ) -> Draft {
        // Taken out for the moment, since a review borrows the rest of the machine.
        let mut schemas = std::mem::take(&mut self.schemas);
        let review = self.review(agent, blind);
        let shape = schemas.shape(&review, None);
        let draft = Draft::start(self.setup.params.thinking, call, conversation, told, shape);
        self.schemas = schemas;
        draft
    }

    /// Lets an envelope offer only the text that its author's thoughts end with, if they end with one.
    ///
    /// With both handles before its eyes a small model thought of the one and named the other in 11 of 64 envelopes.
    fn hold_to_thoughts(&mut self, making: &mut Draft, thoughts: &str) {
        let mut schemas = std::mem::take(&mut self.schemas);
        let review = self.review(making.call().agent, self.is_blind());
        if let Some(decided) = review.decided(thoughts) {
            making.recast(prompt::commit(&review, Some(decided)), schemas.shape(&review, Some(decided)));
        }
        self.schemas = schemas;
    }

    /// Starts an envelope by an agent that works the task out from nothing, by its own or its peer's
    /// method: nothing it said before can be repeated, and no word of its peer's can bend it.
    fn start_alone(&mut self, call: CallId, method: usize) -> Draft {
        let told = prompt::alone(&self.setup, call.agent);
        let fresh = Conversation::new(prompt::system(&self.setup, call.agent, method));
        self.start(call.agent, true, call, fresh, told)
    }

    // ===== Opening =====

    /// Asks both agents for the blind drafts numbered `drafts`, all at once.
    fn draft_blind(&mut self, drafts: std::ops::Range<u32>) -> Vec<Action> {
        self.phase = PairPhase::Drafting;
        let mut actions = Vec::new();
        for draft in drafts {
            for agent in 0..2 {
                let call = CallId { part: 0, round: 1, agent, draft, step: Step::Think, attempt: 0 };
                let mut making = self.start_alone(call, agent);
                making.give_up_after_vacuous(self.setup.rules_version.rules().vacuous_max);
                actions.push(Action::Ask(making.ask(&self.setup.agents[agent], self.setup.seed)));
                self.open.insert(making.call(), making);
            }
        }
        actions
    }

    /// Takes in the blind drafts once the last one is there.
    fn all_drafted(&mut self) -> Vec<Action> {
        for ((draft, agent), accepted) in std::mem::take(&mut self.drafted) {
            let answer = accepted.as_ref().and_then(|a| a.answer.clone());
            self.seats[agent].blind.push(answer);
            if draft == 0 {
                self.seats[agent].blind_final =
                    accepted.as_ref().is_some_and(|a| a.envelope.status == Status::Solved);
                match accepted {
                    Some(accepted) => self.take_position(agent, *accepted),
                    None => self.count_failure(agent),
                }
            }
        }
        if self.seats.iter().all(|seat| seat.position.is_none()) {
            return self.finish_without(NoAgreement::NoDrafts);
        }
        if let Some(outcome) = agreement::reached(&self.seats, &self.proposals) {
            return self.finish(outcome);
        }
        if self.wants_more_drafts() {
            return self.draft_blind(1..self.setup.params.resample + 1);
        }
        let mover = turn_order::first_mover(&self.seats, &self.proposals, self.setup.seed);
        self.turn(mover)
    }

    fn wants_more_drafts(&self) -> bool {
        let first = |agent: usize| self.seats[agent].blind.first().and_then(Option::as_ref);
        let differ = match (first(0), first(1)) {
            (Some(a), Some(b)) => a.canonical != b.canonical,
            (Some(_) | None, _) => false,
        };
        differ && self.setup.params.resample > 0 && self.seats[0].blind.len() == 1
    }

    // ===== Talk =====

    /// Gives `mover` the floor, or ends the talk when the rounds are used up.
    pub(super) fn turn(&mut self, mover: usize) -> Vec<Action> {
        self.take_turn(mover, self.nothing_is_taken_over())
    }

    /// Gives `mover` the floor, to work the task out again from nothing or in sight of its peer's text.
    pub(super) fn take_turn(&mut self, mover: usize, alone: bool) -> Vec<Action> {
        match self.next_round(mover, alone) {
            Some(call) => self.speak(call, alone),
            None => self.finish_without(NoAgreement::MaxRounds),
        }
    }

    /// Begins the next round, in which `mover` has the floor, and returns its first call; none if the rounds are
    /// used up.
    pub(super) fn next_round(&mut self, mover: usize, alone: bool) -> Option<CallId> {
        if self.round >= self.setup.params.max_rounds {
            return None;
        }
        self.round += 1;
        self.phase = PairPhase::Talking { mover, alone };
        Some(CallId { part: 0, round: self.round, agent: mover, draft: 0, step: Step::Think, attempt: 0 })
    }

    /// Asks for the first reply of a turn.
    pub(super) fn speak(&mut self, call: CallId, alone: bool) -> Vec<Action> {
        let mover = call.agent;
        let making = if alone {
            // By turns its peer's method and its own: what one method misses again and again, another sees.
            let seat = &mut self.seats[mover];
            seat.solo_attempts += 1;
            // What it says after this stands in a conversation that knows nothing of the talk so far.
            seat.has_talked = false;
            let method = if seat.solo_attempts % 2 == 1 { 1 - mover } else { mover };
            self.start_alone(call, method)
        } else {
            self.start_turn(call)
        };
        let ask = making.ask(&self.setup.agents[mover], self.setup.seed);
        self.open.insert(making.call(), making);
        vec![Action::Ask(ask)]
    }

    /// Starts the envelope of an agent that sees its peer's.
    fn start_turn(&mut self, call: CallId) -> Draft {
        let mover = call.agent;
        let review = self.review(mover, false);
        let resampled = self.seats[0].blind.len() > 1;
        let tally = resampled.then(|| blind_vote(&self.seats));
        let is_first = !self.seats[mover].has_talked;
        let told = prompt::turn(&Situation { review: &review, call, tally, is_first });
        self.seats[mover].has_talked = true;
        let conversation = self.seats[mover].conversation.clone();
        self.start(mover, false, call, conversation, told)
    }

    pub(super) fn after_turn(&mut self, mover: usize, ended: TurnEnd) -> Vec<Action> {
        let before = self.standing(mover);
        let failed = matches!(ended, TurnEnd::Failed);
        let mut is_torn = false;
        match ended {
            TurnEnd::Spoke(accepted) => {
                is_torn = self.is_outvoted(mover, &accepted);
                if is_torn {
                    self.remark = Some(
                        "its earlier answer stands: the new one is no more than half of what it has found",
                    );
                } else {
                    self.take_position(mover, *accepted);
                }
            }
            TurnEnd::Kept => {
                self.remark = Some("its own text stands: compared once more, it came out better");
            }
            TurnEnd::Failed => self.count_failure(mover),
        }
        if !failed {
            self.seats[mover].failed_in_a_row = 0;
        }
        if let Some(outcome) = agreement::reached(&self.seats, &self.proposals) {
            return self.finish(outcome);
        }
        if self.seats[mover].failed_in_a_row >= FAILED_IN_A_ROW_MAX {
            return self.finish_without(NoAgreement::InvalidReplies);
        }
        if self.arbiter_choice.is_some() {
            return self.after_ruling();
        }
        match (failed, self.standing(mover) == before) {
            // A failed turn is no move; two in a row have ended the talk above.
            (true, _) => {}
            // What was found once more may tip the scales the next time.
            (false, true) if is_torn => {}
            (false, true) => self.idle[mover] += 1,
            (false, false) => self.idle = [0; 2],
        }
        // Who works the task out again has two methods to try.
        let tries = if self.nothing_is_taken_over() { 2 } else { 1 };
        if self.idle.iter().all(|&moves| moves >= tries) {
            return self.deadlock(mover);
        }
        let peer_name = &self.setup.agents[1 - mover].name;
        let solo_turns = self.setup.params.solo_turns;
        let next = turn_order::after_turn(&mut self.seats[mover], mover, peer_name, solo_turns, failed);
        self.turn(next)
    }

    /// What must differ between two turns of an agent for the talk to be going anywhere: its status,
    /// its text and its requests, and while it has no text its message.
    fn standing(&self, agent: usize) -> Option<Standing> {
        let Position { envelope, proposal, .. } = self.seats[agent].position.as_ref()?;
        let message = proposal.is_none().then(|| envelope.public_message.clone());
        Some((envelope.status, *proposal, envelope.needs_from_peer.clone(), message))
    }

    /// Makes an accepted envelope the agent's position, and its text a proposal if it is new.
    fn take_position(&mut self, agent: usize, accepted: Accepted) {
        let Accepted { envelope, answer, adopts, .. } = accepted;
        let held = self.seats[agent].stands_for();
        let proposal = match (&answer, adopts) {
            (None, _) => None,
            (Some(_), Some(index)) => Some(index),
            (Some(answer), None) => {
                let same = |&index: &usize| self.proposals[index].answer.canonical == answer.canonical;
                Some(held.filter(same).unwrap_or_else(|| self.propose(agent, answer.clone())))
            }
        };
        let seat = &mut self.seats[agent];
        if let Some(answer) = answer {
            let previous = seat.last_answer.replace(answer.clone());
            if previous.is_some_and(|p| p.canonical != answer.canonical) {
                seat.changes += 1;
                let change = envelope.meta.as_ref().and_then(|m| m.change.as_ref());
                let named = change.map(|change| change.detail.clone());
                seat.why_given_up = named.unwrap_or_else(|| FOUND_ANOTHER.to_owned());
            }
        }
        let took_over = adopts.is_some_and(|index| self.proposals[index].author != agent);
        let adopted = took_over || held == proposal && seat.position.as_ref().is_some_and(|p| p.adopted);
        seat.position = Some(Position { envelope, proposal, adopted });
    }

    fn propose(&mut self, author: usize, answer: super::agent::Answer) -> usize {
        self.proposals.push(ProposedText { author, answer });
        self.proposals.len() - 1
    }

    fn count_failure(&mut self, agent: usize) {
        self.seats[agent].failed_turns += 1;
        self.seats[agent].failed_in_a_row += 1;
    }

    // ===== Comparison =====

    /// Goes on after an envelope: an acceptance is not yet one if the texts are still to be compared.
    pub(super) fn after_envelope(&mut self, mover: usize, call: CallId, ended: TurnEnd) -> Vec<Action> {
        let TurnEnd::Spoke(accepted) = ended else { return self.after_turn(mover, ended) };
        let review = self.review(mover, self.is_blind());
        match review.concession(accepted.answer.as_ref()) {
            Concession::None => self.after_turn(mover, TurnEnd::Spoke(accepted)),
            Concession::OfTheBetter => self.keep(mover),
            Concession::Unweighed { own, other } => {
                let comparison = Comparison::new(&review, call, Some(accepted), own, other);
                let ask = comparison.ask(&review);
                self.comparison = Some(comparison);
                vec![Action::Ask(ask)]
            }
        }
    }

    /// Holds the peer's text against the agent's own before its last word, so that it knows what it found.
    /// Returns the request for that; none if there is nothing to weigh, or it has been compared.
    pub(super) fn weigh_first(&mut self, call: CallId) -> Option<Ask> {
        let review = self.review(call.agent, false);
        let peer = review.seats[1 - call.agent].stands_for();
        let index = peer.filter(|&index| review.acceptable().contains(&handle(index)))?;
        let Concession::Unweighed { own, other } = review.concession(Some(&self.proposals[index].answer))
        else {
            return None;
        };
        let comparison = Comparison::new(&review, call, None, own, other);
        let ask = comparison.ask(&review);
        self.comparison = Some(comparison);
        Some(ask)
    }

    /// Takes a reply to a comparison.
    pub(super) fn weigh(&mut self, mut comparison: Comparison, reply: &Reply) -> Vec<Action> {
        let agent = comparison.call.agent;
        let review = self.review(agent, false);
        let Some(compared) = comparison.reply(&review, reply) else {
            let ask = comparison.ask(&review);
            self.comparison = Some(comparison);
            return vec![Action::Ask(ask)];
        };
        self.seats[agent].compared.push(compared);
        match comparison.accepted {
            None => self.speak(CallId { step: Step::Think, attempt: 0, ..comparison.call }, false),
            Some(_) if compared.found == Better::Own => self.keep(agent),
            Some(accepted) => self.after_turn(agent, TurnEnd::Spoke(accepted)),
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
        seat.solo_answers.push(found.clone());
        let held = seat.last_answer.as_ref();
        held.is_some_and(|held| held.canonical != found.canonical) && !seat.has_mostly_found(found)
    }

    /// Ends a turn with the agent's own text as it was.
    fn keep(&mut self, agent: usize) -> Vec<Action> {
        self.seats[agent].conversation.push(Role::User, prompt::kept());
        self.after_turn(agent, TurnEnd::Kept)
    }

    // ===== Ends and dispatch =====

    pub(super) fn finish_without(&mut self, reason: NoAgreement) -> Vec<Action> {
        self.finish(Outcome::NoAgreement { reason })
    }

    fn finish(&mut self, outcome: Outcome) -> Vec<Action> {
        self.phase = PairPhase::Done;
        self.outcome = Some(outcome.clone());
        vec![Action::Finish(outcome)]
    }

    fn replied(&mut self, call: CallId, reply: &Reply) -> Result<Vec<Action>, Unexpected> {
        if let Some((open, candidates)) = self.arbitration.take_if(|(open, _)| open.call() == call) {
            return Ok(self.ruling(open, candidates, reply));
        }
        if let Some(comparison) = self.comparison.take_if(|comparison| comparison.call() == call) {
            return Ok(self.weigh(comparison, reply));
        }
        let Some(mut making) = self.open.remove(&call) else {
            return Err(Unexpected::NotAsked(call));
        };
        let agent = call.agent;
        if call.step == Step::Think {
            self.hold_to_thoughts(&mut making, &reply.text);
        }
        let review = self.review(agent, self.is_blind());
        let (own, max_repairs) = (&self.setup.agents[agent], self.setup.params.max_repairs);
        let progress = making
            .reply(own, self.setup.seed, max_repairs, reply, |text, thoughts| review.check(text, thoughts));
        let ended = match progress {
            TurnProgress::Ask(ask) => {
                self.open.insert(making.call(), making);
                return Ok(vec![Action::Ask(ask)]);
            }
            TurnProgress::Valid(accepted) => TurnEnd::Spoke(accepted),
            TurnProgress::Failed => {
                self.remark = Some("no valid envelope came in this turn");
                TurnEnd::Failed
            }
        };
        self.seats[agent].repairs += making.repairs;
        if call.draft == 0 {
            self.seats[agent].conversation = making.into_conversation();
        }
        match self.phase {
            PairPhase::Drafting => {
                let accepted = if let TurnEnd::Spoke(accepted) = ended { Some(accepted) } else { None };
                self.drafted.insert((call.draft, agent), accepted);
                if self.open.is_empty() { Ok(self.all_drafted()) } else { Ok(Vec::new()) }
            }
            PairPhase::Talking { mover, .. } => Ok(self.after_envelope(mover, call, ended)),
            PairPhase::New | PairPhase::Arbitrating | PairPhase::Done => Err(Unexpected::NotAsked(call)),
        }
    }
}

impl Protocol for Pair {
    type Section = PairSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.remark = None;
        match event {
            Event::Started if self.phase == PairPhase::New => {
                self.round = 1;
                Ok(self.draft_blind(0..1))
            }
            Event::Started => Err(Unexpected::StartedTwice),
            Event::Replied { call, reply } => self.replied(*call, reply),
            Event::Found { round, .. } => Err(Unexpected::NotSearched(*round)),
        }
    }

    fn report(&self) -> Report<PairSection> {
        self.make_report()
    }

    fn remark(&self) -> Option<&'static str> {
        self.remark
    }
}
