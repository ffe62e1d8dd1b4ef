//! The machine of `pair`: events in, actions out. The module's essay has the picture.

use std::collections::BTreeMap;

use super::decoders::Decoders;
use super::params::PairSetup;
use super::prompt::{self, Situation};
use super::report::PairSection;
use super::report::blind_vote;
use super::review::{Accepted, Review};
use super::seat::{Position, Proposal, Seat};
use super::weigh::{Turned, Weighing};
use super::{Adopt, floor, stop};
use crate::protocol::turn::Arbitration;
use crate::protocol::turn::{Draft, Progress, TurnPrompt};
use crate::protocol::{
    Action, CallId, Conversation, Event, NoAgreement, Outcome, Protocol, Reply, Report, Step, Unexpected,
};
use crate::text::vacuity::PromptEcho;
use crate::text::{Canonicalizer, Status};

/// An agent with this many failed turns in a row ends the talk.
const FAILED_IN_A_ROW_MAX: u32 = 2;

/// Why an agent gave up an answer without having seen another.
const FOUND_ANOTHER: &str = "worked out again from nothing, it found another answer";

/// The state of one `pair` run.
#[derive(Clone, Debug)]
pub struct Pair {
    pub(super) setup: PairSetup,
    canonicalizer: Canonicalizer,
    told: [PromptEcho; 2],
    decoders: Decoders,
    pub(super) seats: [Seat; 2],
    pub(super) proposals: Vec<Proposal>,
    pub(super) round: u32,
    pub(super) phase: Phase,
    /// Envelopes in the making, by the call they wait for.
    open: BTreeMap<CallId, Draft>,
    /// Finished blind drafts, kept until all are in so that their order of arrival does not matter.
    drafted: BTreeMap<(u32, usize), Option<Box<Accepted>>>,
    /// How often each agent has moved since anything last changed.
    pub(super) idle: [u32; 2],
    /// Two texts that are being weighed, in the middle of a turn.
    pub(super) weighing: Option<Weighing>,
    /// The open question to the arbiter, and the proposals it may choose from.
    pub(super) arbitration: Option<(Arbitration, Vec<usize>)>,
    pub(super) arbiter_asked: bool,
    /// The text that the arbiter chose, and its reason.
    pub(super) arbiter_choice: Option<(usize, String)>,
    pub(super) arbiter_failed: bool,
    pub(super) outcome: Option<Outcome>,
    remark: Option<&'static str>,
}

/// An agent's status, text and requests, and its message while it has no text.
type Standing = (Status, Option<usize>, Vec<String>, Option<String>);

/// Where a run is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// Nothing has happened.
    New,
    /// Blind drafts are being made.
    Drafting,
    /// One agent has the floor.
    Talking {
        /// The agent that has it.
        mover: usize,
        /// Whether it works the task out again from nothing.
        alone: bool,
    },
    /// An arbiter has been asked, or has chosen and its choice is before the agents.
    Arbitrating,
    /// The run has ended.
    Done,
}

/// Returns what each agent is told, to be recognised when it comes back as an answer.
fn told(setup: &PairSetup) -> [PromptEcho; 2] {
    let heard = setup.heard(&setup.params.constraints);
    let own = prompt::own(setup);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    [0, 1].map(|agent| {
        let alone = prompt::alone(setup, agent);
        let form = prompt::form(setup);
        let whole = [&setup.agents[agent].pack, &form, &alone.think, &alone.write, &setup.rules];
        setup.told(&heard, &whole.map(String::as_str), &own)
    })
}

impl Pair {
    /// Makes the machine for a run that has not started.
    ///
    /// `setup` must have exactly two agents, as every loaded roleset has.
    #[must_use]
    pub fn new(setup: PairSetup) -> Self {
        let seat = |agent| Seat::new(Conversation::new(prompt::system(&setup, agent, agent)));
        Self {
            canonicalizer: Canonicalizer::new(&setup.canonical, setup.rules_version.rules().reading),
            told: told(&setup),
            decoders: Decoders::default(),
            seats: [seat(0), seat(1)],
            proposals: Vec::new(),
            round: 0,
            phase: Phase::New,
            open: BTreeMap::new(),
            drafted: BTreeMap::new(),
            idle: [0; 2],
            weighing: None,
            arbitration: None,
            arbiter_asked: false,
            arbiter_choice: None,
            arbiter_failed: false,
            outcome: None,
            remark: None,
            setup,
        }
    }

    pub(super) fn review(&self, agent: usize, blind: bool) -> Review<'_> {
        Review {
            setup: &self.setup,
            canonicalizer: &self.canonicalizer,
            told: &self.told,
            seats: &self.seats,
            proposals: &self.proposals,
            agent,
            blind,
            arbiter_choice: self.arbiter_choice.as_ref().map(|(index, _)| *index),
        }
    }

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
        let mut decoders = std::mem::take(&mut self.decoders);
        let review = self.review(agent, blind);
        let shape = decoders.shape(&review, None);
        let draft = Draft::start(self.setup.params.thinking, call, conversation, told, shape);
        self.decoders = decoders;
        draft
    }

    /// Lets an envelope offer only the text that its author's thoughts end with, if they end with one.
    ///
    /// With both handles before its eyes a small model thought of the one and named the other in 11 of 64 envelopes.
    fn hold_to_thoughts(&mut self, making: &mut Draft, thoughts: &str) {
        let mut decoders = std::mem::take(&mut self.decoders);
        let review = self.review(making.call().agent, self.is_blind());
        if let Some(decided) = review.decided(thoughts) {
            making.recast(prompt::commit(&review, Some(decided)), decoders.shape(&review, Some(decided)));
        }
        self.decoders = decoders;
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
        self.phase = Phase::Drafting;
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
        if let Some(outcome) = stop::agreement(&self.seats, &self.proposals) {
            return self.finish(outcome);
        }
        if self.wants_more_drafts() {
            return self.draft_blind(1..self.setup.params.resample + 1);
        }
        let mover = floor::first_mover(&self.seats, &self.proposals, self.setup.seed);
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
        self.phase = Phase::Talking { mover, alone };
        Some(CallId { part: 0, round: self.round, agent: mover, draft: 0, step: Step::Think, attempt: 0 })
    }

    /// Asks for the first reply of a turn.
    pub(super) fn speak(&mut self, call: CallId, alone: bool) -> Vec<Action> {
        let mover = call.agent;
        let making = if alone {
            // By turns its peer's method and its own: what one method misses again and again, another sees.
            let seat = &mut self.seats[mover];
            seat.looks += 1;
            // What it says after this stands in a conversation that knows nothing of the talk so far.
            seat.has_talked = false;
            let method = if seat.looks % 2 == 1 { 1 - mover } else { mover };
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

    /// Whether no agent may see its peer's text: where none is taken over, until an arbiter has put one
    /// before both.
    pub(super) fn nothing_is_taken_over(&self) -> bool {
        self.setup.adopt() == Adopt::Never && self.arbiter_choice.is_none()
    }

    /// Whether the agent whose reply is awaited knows nothing of its peer's text.
    pub(super) fn is_blind(&self) -> bool {
        matches!(self.phase, Phase::Drafting | Phase::Talking { alone: true, .. })
    }

    pub(super) fn after_turn(&mut self, mover: usize, turned: Turned) -> Vec<Action> {
        let before = self.standing(mover);
        let failed = matches!(turned, Turned::Failed);
        let mut is_torn = false;
        match turned {
            Turned::Spoke(accepted) => {
                is_torn = self.is_outvoted(mover, &accepted);
                if is_torn {
                    self.remark = Some(
                        "its earlier answer stands: the new one is no more than half of what it has found",
                    );
                } else {
                    self.take_position(mover, *accepted);
                }
            }
            Turned::Kept => self.remark = Some("its own text stands: compared once more, it came out better"),
            Turned::Failed => self.count_failure(mover),
        }
        if !failed {
            self.seats[mover].failed_in_a_row = 0;
        }
        if let Some(outcome) = stop::agreement(&self.seats, &self.proposals) {
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
        let next = floor::after_turn(&mut self.seats[mover], mover, peer_name, solo_turns, failed);
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

    fn propose(&mut self, author: usize, answer: super::seat::Answer) -> usize {
        self.proposals.push(Proposal { author, answer });
        self.proposals.len() - 1
    }

    fn count_failure(&mut self, agent: usize) {
        self.seats[agent].failed_turns += 1;
        self.seats[agent].failed_in_a_row += 1;
    }

    // ===== Ends and dispatch =====

    pub(super) fn finish_without(&mut self, reason: NoAgreement) -> Vec<Action> {
        self.finish(Outcome::NoAgreement { reason })
    }

    fn finish(&mut self, outcome: Outcome) -> Vec<Action> {
        self.phase = Phase::Done;
        self.outcome = Some(outcome.clone());
        vec![Action::Finish(outcome)]
    }

    fn replied(&mut self, call: CallId, reply: &Reply) -> Result<Vec<Action>, Unexpected> {
        if let Some((open, candidates)) = self.arbitration.take_if(|(open, _)| open.call() == call) {
            return Ok(self.ruling(open, candidates, reply));
        }
        if let Some(weighing) = self.weighing.take_if(|weighing| weighing.call() == call) {
            return Ok(self.weigh(weighing, reply));
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
        let turned = match progress {
            Progress::Ask(ask) => {
                self.open.insert(making.call(), making);
                return Ok(vec![Action::Ask(ask)]);
            }
            Progress::Valid(accepted) => Turned::Spoke(accepted),
            Progress::Failed => {
                self.remark = Some("no valid envelope came in this turn");
                Turned::Failed
            }
        };
        self.seats[agent].repairs += making.repairs;
        if call.draft == 0 {
            self.seats[agent].conversation = making.into_conversation();
        }
        match self.phase {
            Phase::Drafting => {
                let accepted = if let Turned::Spoke(accepted) = turned { Some(accepted) } else { None };
                self.drafted.insert((call.draft, agent), accepted);
                if self.open.is_empty() { Ok(self.all_drafted()) } else { Ok(Vec::new()) }
            }
            Phase::Talking { mover, .. } => Ok(self.after_envelope(mover, call, turned)),
            Phase::New | Phase::Arbitrating | Phase::Done => Err(Unexpected::NotAsked(call)),
        }
    }
}

impl Protocol for Pair {
    type Section = PairSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.remark = None;
        match event {
            Event::Started if self.phase == Phase::New => {
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
