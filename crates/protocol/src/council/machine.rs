//! The machine of `council`: events in, actions out. The module documentation has the diagram.

use super::confirmed::judge_by_quotes;
use super::findings::Findings;
use super::forms::{self, Framing, Response, Verification};
use super::params::{ConfidenceFrom, CouncilParams};
use super::prompt;
use super::section::{CouncilRound, CouncilSection};
use super::state::{Council, CouncilPhase};
use super::verdict::{ConsensusResult, Member, judge};
use crate::contract::{
    Action, Answer, CallId, Conversation, Event, Executions, Finish, How, NoAgreement, Outcome, Passage,
    Protocol, Reply, ReplyShape, Report, Search, Step, Unexpected,
};
use crate::core::BasisPoints;
use crate::text::Violation;
use crate::text::decoding::answer_schema;
use crate::turn::{ArbiterChoice, Arbitration, Draft, TurnProgress, TurnPrompt, Valid, mark};
use crypto::Digest;

/// The round of the answer that is given alone.
const BLIND: u32 = 0;

/// A valid form.
enum CouncilForm {
    Framing(Framing),
    Response(Response, Answer),
    Verification(Verification),
}

impl CouncilForm {
    fn measure(&mut self, measured: Option<BasisPoints>) {
        let place = match self {
            Self::Framing(framing) => &mut framing.measured,
            Self::Response(response, _) => &mut response.measured,
            Self::Verification(verification) => &mut verification.measured,
        };
        *place = measured;
    }
}

impl Council {
    // ===== Asking =====

    /// Asks for a form.
    fn begin(&mut self, call: CallId, conversation: Conversation, words: TurnPrompt) -> Action {
        let agent = &self.setup.agents[call.agent];
        let shape = self.shape(Member::ALL[call.agent], None);
        let draft = Draft::start(self.setup.params.thinking, call, conversation, words, shape);
        let ask = draft.ask(agent, self.setup.seed);
        self.open.insert(draft.call(), draft);
        Action::Ask(ask)
    }

    /// Gives a member the floor.
    fn give_floor(&mut self, member: Member) -> Vec<Action> {
        self.phase = CouncilPhase::Of(member);
        vec![self.ask(member)]
    }

    fn ask(&mut self, member: Member) -> Action {
        let agent = member.index();
        let call =
            CallId { part: 0, round: self.manifest.round, agent, draft: 0, step: Step::Think, attempt: 0 };
        let (setup, sources, manifest) = (&self.setup, &self.sources, &self.manifest);
        let known = self.known_sources[agent];
        let words = match member {
            Member::Pathos => prompt::framing(setup, manifest, call),
            Member::Logos => prompt::response(setup, sources, manifest, call, known),
            Member::Ethos => prompt::verification(setup, sources, manifest, call, known),
        };
        self.known_sources[agent] = self.sources.count();
        let conversation = self.conversations[agent].clone();
        self.begin(call, conversation, words)
    }

    fn begin_opening(&mut self) -> Vec<Action> {
        self.phase = CouncilPhase::Opening;
        let agent = Member::Logos.index();
        let call = CallId { part: 0, round: BLIND, agent, draft: 0, step: Step::Think, attempt: 0 };
        let alone = Conversation::new(self.setup.system_alone(Member::Logos.index()));
        let words = prompt::blind(&self.setup, &self.sources, call);
        vec![self.begin(call, alone, words), self.ask(Member::Pathos)]
    }

    // ===== Taking =====

    fn take_reply(&mut self, call: CallId, reply: &Reply) -> Result<Vec<Action>, Unexpected> {
        if let Some((open, answers)) = self.arbitration.take_if(|(open, _)| open.call() == call) {
            return Ok(self.take_ruling(open, answers, reply));
        }
        let Some(mut draft) = self.open.remove(&call) else { return Err(Unexpected::NotAsked(call)) };
        let agent = &self.setup.agents[call.agent];
        let max_repairs = self.setup.params.max_repairs;
        if call.agent == Member::Ethos.index() {
            self.hold_to_thoughts(&mut draft, reply);
        }
        let is_last_attempt = draft.repairs >= max_repairs;
        let member = Member::ALL[call.agent];
        let progress = draft.reply(agent, self.setup.seed, max_repairs, reply, |text, thoughts| {
            self.check(member, text, thoughts, is_last_attempt)
        });
        let mut form = match progress {
            TurnProgress::Ask(ask) => {
                self.open.insert(draft.call(), draft);
                return Ok(vec![Action::Ask(ask)]);
            }
            TurnProgress::Valid(form) => Some(form),
            TurnProgress::Failed => {
                self.remark = Some("no valid form came in this turn");
                None
            }
        };
        if self.measures()
            && let Some(form) = &mut form
        {
            let measured = reply.yes.and_then(|yes| BasisPoints::new(f64::from(yes) / 10_000.0));
            form.measure(measured);
            // The answer that is given alone does not count here.
            self.unmeasured[call.agent] |= measured.is_none() && call.round != BLIND;
        }
        self.repairs[call.agent] += draft.repairs;
        if call.round == BLIND {
            self.blind.push(match form {
                Some(CouncilForm::Response(_, answer)) => Some(answer),
                Some(CouncilForm::Framing(_) | CouncilForm::Verification(_)) | None => None,
            });
            return Ok(self.after_opening());
        }
        self.conversations[call.agent] = draft.into_conversation();
        self.failed_turns[call.agent] += u32::from(form.is_none());
        match form {
            Some(CouncilForm::Framing(framing)) => self.manifest.framing = Some(framing),
            Some(CouncilForm::Response(response, answer)) => {
                self.manifest.response = Some(response);
                self.answer = Some(answer);
            }
            Some(CouncilForm::Verification(verification)) => self.manifest.verification = Some(verification),
            None => {}
        }
        Ok(match self.phase {
            CouncilPhase::Opening => self.after_opening(),
            CouncilPhase::Of(Member::Pathos) => self.answer_next(),
            CouncilPhase::Of(Member::Logos) if self.manifest.response.is_some() => {
                self.give_floor(Member::Ethos)
            }
            // Without an answer there is nothing to verify.
            CouncilPhase::Of(Member::Logos | Member::Ethos)
            | CouncilPhase::New
            | CouncilPhase::Searching
            | CouncilPhase::Done => self.judge_round(),
        })
    }

    /// Returns whether the probability of a word counts in place of an agent's stated confidence.
    fn measures(&self) -> bool {
        self.setup.params.confidence == ConfidenceFrom::Logprob
    }

    /// Returns whether a weighted confidence decides. Otherwise the quotes of the answer do.
    fn is_weighed(&self) -> bool {
        self.setup.params.talk.is_always()
    }

    /// Returns the shape of a member's form. For Ethos it follows from these findings.
    fn shape(&self, member: Member, found: Option<Findings>) -> ReplyShape {
        let from = self.setup.params.confidence;
        let chars_max = self.setup.agents[member.index()].text_chars_max();
        let (name, schema) = match member {
            Member::Pathos => ("framing", forms::framing_schema(from)),
            Member::Logos => {
                let rules = &self.setup.params.constraints;
                let answer = answer_schema(&self.canonicalizer, rules, chars_max);
                let citations_min = usize::from(!self.is_weighed());
                ("response", forms::response_schema(from, &self.sources, &answer, citations_min))
            }
            Member::Ethos => ("verification", forms::verification_schema(from, &self.sources, found)),
        };
        let measured = self.measures().then_some(forms::MEASURED);
        ReplyShape::Json { name, schema: (&schema).into(), measured }
    }

    /// Offers Ethos no failing check if its thoughts have found no fault. On its last attempt every verdict is offered, since a veto then
    /// counts whatever the thoughts say.
    fn hold_to_thoughts(&self, draft: &mut Draft, reply: &Reply) {
        let attempts_left = self.setup.params.max_repairs.saturating_sub(draft.repairs);
        let found = match (draft.call().step, attempts_left) {
            (Step::Think, 1..) if reply.finish == Finish::Stop => Findings::read(&reply.text),
            // The next attempt is the last one.
            (Step::Envelope, 1) => None,
            _ => return,
        };
        draft.reshape(self.shape(Member::Ethos, found));
    }

    fn check(
        &self,
        member: Member,
        text: &str,
        thoughts: Option<&str>,
        is_last_attempt: bool,
    ) -> Result<Valid<CouncilForm>, Violation> {
        let from = self.setup.params.confidence;
        let (content, object) = match member {
            Member::Pathos => {
                let Valid { content, object } = forms::read_framing(text)?;
                forms::check_sound(from, content.sound)?;
                (CouncilForm::Framing(content), object)
            }
            Member::Logos => {
                let Valid { content, object } =
                    forms::read_response(text, self.setup.canonical.kind, &self.sources, is_last_attempt)?;
                forms::check_sound(from, content.sound)?;
                let answer = self.judge_text(&content.response)?;
                (CouncilForm::Response(content, answer), object)
            }
            Member::Ethos => {
                let Valid { content, object } =
                    forms::read_verification(text, &self.sources, is_last_attempt)?;
                forms::check_sound(from, content.sound)?;
                if !is_last_attempt && let Some(found) = thoughts.and_then(Findings::read) {
                    content.require_agreement_with(found)?;
                }
                (CouncilForm::Verification(content), object)
            }
        };
        Ok(Valid { content, object })
    }

    /// Checks an answer against the rules that code can check.
    fn judge_text(&self, text: &str) -> Result<Answer, Violation> {
        let chars_max = self.setup.agents[Member::Logos.index()].text_chars_max();
        let rules = &self.setup.params.constraints;
        Answer::take(text, chars_max, &self.canonicalizer, &self.prompt_echo, rules, &self.executions)
    }

    fn after_opening(&mut self) -> Vec<Action> {
        if self.open.is_empty() { self.answer_next() } else { Vec::new() }
    }

    /// Continues to the answer, by way of a search if there are documents to search.
    fn answer_next(&mut self) -> Vec<Action> {
        if !self.setup.searches() {
            return self.give_floor(Member::Logos);
        }
        self.phase = CouncilPhase::Searching;
        let framing = self.manifest.framing.as_ref().map_or("", |framing| &framing.search);
        let feedback = self.manifest.feedback.last().map_or("", String::as_str);
        // If there are too many words, the first ones count.
        let words = [framing, feedback, self.setup.task.prompt.as_str()].join(" ");
        let tokens_max = self.setup.params.passages_tokens_max;
        vec![Action::Search(Search { round: self.manifest.round, words, tokens_max })]
    }

    fn take_passages(&mut self, round: u32, passages: &[Passage]) -> Result<Vec<Action>, Unexpected> {
        if self.phase != CouncilPhase::Searching || round != self.manifest.round {
            return Err(Unexpected::NotSearched(round));
        }
        self.sources.add(passages);
        Ok(self.give_floor(Member::Logos))
    }

    // ===== Deciding =====

    fn judge_round(&mut self) -> Vec<Action> {
        let mut result = self.judge(self.setup.params.max_rounds);
        if self.is_repetition(&result) {
            // Another round would repeat this one, so this one is the last.
            result = self.judge(self.manifest.round);
        }
        let how = if self.is_weighed() { How::Weighed } else { How::Endorsed };
        self.rounds.push(CouncilRound::new(&self.manifest, self.answer.as_ref(), &result));
        match result {
            ConsensusResult::Reached { .. } => match self.answer.clone() {
                Some(answer) => {
                    self.finish(Outcome::Agreed { how, text: answer.shown, sha256: answer.canonical.digest })
                }
                // Nothing is reached without an answer.
                None => self.finish_without(),
            },
            ConsensusResult::Vetoed { reason, evidence, .. } => {
                self.finish(Outcome::Vetoed { reason, source: evidence.source, quote: evidence.quote })
            }
            ConsensusResult::NotReached { .. } if self.is_weighed() => self.ask_arbiter(),
            ConsensusResult::NotReached { .. } => self.finish_without(),
            ConsensusResult::NeedsRevision { feedback, weakest, .. } => {
                let veto = self.manifest.verification.as_ref().filter(|verification| verification.veto);
                let found = veto.into_iter().flat_map(Verification::defects).map(|(_, found)| found.clone());
                self.defects.extend(found);
                // Another framing does not repair the fault that a veto names.
                let is_unclear = veto.is_none() && weakest.contains(&Member::Pathos);
                let reframe = self.manifest.framing.is_none() || is_unclear;
                self.manifest.add_feedback(feedback);
                self.manifest.next_round();
                self.answer = None;
                if reframe { self.give_floor(Member::Pathos) } else { self.answer_next() }
            }
        }
    }

    /// Judges the round, of which there are at most so many.
    fn judge(&self, max_rounds: u32) -> ConsensusResult {
        let names = Member::ALL.map(|member| self.setup.agents[member.index()].name.as_str());
        if !self.is_weighed() {
            return judge_by_quotes(&self.manifest, max_rounds, names);
        }
        let params = CouncilParams { max_rounds, ..self.setup.params.clone() };
        judge(&self.manifest, &params, names, &self.defects)
    }

    /// Returns whether a round repeats the one before it: the same answer, sent back with the same words.
    fn is_repetition(&self, result: &ConsensusResult) -> bool {
        let ConsensusResult::NeedsRevision { feedback, .. } = result else { return false };
        let digest = self.answer.as_ref().map(|answer| answer.canonical.digest);
        self.rounds.last().is_some_and(|last| last.sha256 == digest)
            && self.manifest.feedback.last() == Some(feedback)
    }

    // ===== Arbiter =====

    /// Asks the arbiter, if there is one and if there is an answer to choose.
    fn ask_arbiter(&mut self) -> Vec<Action> {
        let Some(arbiter) = &self.setup.arbiter else { return self.finish_without() };
        let call = CallId {
            part: 0,
            round: self.manifest.round,
            agent: Member::ALL.len(),
            draft: 0,
            step: Step::Choose,
            attempt: 0,
        };
        let mut candidates: Vec<(Answer, Vec<String>)> = Vec::new();
        let vetoed: Vec<Option<Digest>> =
            self.rounds.iter().filter(|round| round.is_vetoed()).map(|round| round.sha256).collect();
        for round in self.rounds.iter().filter(|round| !vetoed.contains(&round.sha256)) {
            let Some((answer, objection)) = round.candidate(&self.canonicalizer) else { continue };
            match candidates.iter_mut().find(|(known, _)| known.canonical == answer.canonical) {
                Some((_, objections)) => objections.extend(objection),
                None => candidates.push((answer, objection.into_iter().collect())),
            }
        }
        if candidates.is_empty() {
            return self.finish_without();
        }
        // The order is drawn, so that neither the first nor the last round is favoured.
        candidates.sort_by_key(|(answer, _)| mark(answer.canonical.digest.leading_u64(), call));
        let question = prompt::arbiter(&self.setup, &candidates, &mark(self.setup.seed, call));
        let mut choices: Vec<String> = (1..=candidates.len()).map(|n| format!("A{n}")).collect();
        choices.push(prompt::NEITHER.to_owned());
        let (open, ask) = Arbitration::open(call, arbiter.clone(), self.setup.seed, question, choices);
        let answers = candidates.into_iter().map(|(answer, _)| answer).collect();
        self.arbitration = Some((open, answers));
        vec![Action::Ask(ask)]
    }

    fn take_ruling(&mut self, mut open: Arbitration, answers: Vec<Answer>, reply: &Reply) -> Vec<Action> {
        match open.reply(self.setup.seed, self.setup.params.max_repairs, reply) {
            TurnProgress::Ask(ask) => {
                self.arbitration = Some((open, answers));
                vec![Action::Ask(ask)]
            }
            TurnProgress::Valid(ruling) => {
                let chosen = answers.get(ruling.index);
                self.arbiter_choice = Some(ArbiterChoice::new(chosen, ruling.reason));
                let Some(Answer { shown, canonical }) = chosen.cloned() else { return self.finish_without() };
                self.finish(Outcome::Agreed { how: How::Arbitrated, text: shown, sha256: canonical.digest })
            }
            TurnProgress::Failed => {
                self.arbiter_failed = true;
                self.finish_without()
            }
        }
    }

    fn finish_without(&mut self) -> Vec<Action> {
        // Where quotes decide, a verified answer is agreed on.
        let is_verified =
            self.is_weighed() && self.manifest.response.is_some() && self.manifest.verification.is_some();
        let reason = if is_verified { NoAgreement::Threshold } else { NoAgreement::Unverified };
        self.finish(Outcome::NoAgreement { reason })
    }

    fn finish(&mut self, outcome: Outcome) -> Vec<Action> {
        self.phase = CouncilPhase::Done;
        self.outcome = Some(outcome.clone());
        vec![Action::Finish(outcome)]
    }
}

impl AsMut<Executions> for Council {
    fn as_mut(&mut self) -> &mut Executions {
        &mut self.executions
    }
}

impl Protocol for Council {
    type Section = CouncilSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.remark = None;
        match event {
            Event::Started if self.phase == CouncilPhase::New => Ok(self.begin_opening()),
            Event::Replied { call, reply } => self.take_reply(*call, reply),
            Event::Found { round, passages } => self.take_passages(*round, passages),
            Event::Started
            | Event::Lost { .. }
            | Event::Executed { .. }
            | Event::Permitted
            | Event::Closed => Err(event.into()),
        }
    }

    fn report(&self) -> Report<CouncilSection> {
        self.make_report()
    }

    fn remark(&self) -> Option<&'static str> {
        self.remark
    }
}
