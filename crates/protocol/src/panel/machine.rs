//! The machine of `panel`: events in, actions out. The module documentation has the diagram.

use serde_json::json;

use super::ballot::{self, Mark};
use super::lineup::{Lineup, labels};
use super::params::PanelParams;
use super::report::PanelSection;
use super::state::{Ballot, Iteration, Panel, PanelPhase};
use super::{prompt, tally};
use crate::contract::{
    Action, Answer, CallId, Conversation, Event, Executions, How, NoAgreement, Outcome, Protocol, Reply,
    ReplyShape, Report, Step, Unexpected, with_text,
};
use crate::text::decoding::answer_schema;
use crate::text::{AnswerForm, Violation, closed, extract, read_one};
use crate::turn::{Draft, TurnProgress, TurnPrompt, Valid};

/// A valid form of a member.
enum MemberForm {
    Response(Answer),
    Ballot(Vec<Mark>),
}

impl Panel {
    // ===== Asking =====

    /// Begins an iteration: every member that was not lost answers.
    fn generate(&mut self) -> Vec<Action> {
        let members = self.setup.agents.len();
        self.iterations.push(Iteration::new(members));
        self.phase = PanelPhase::Generation;
        self.waiting = (0..members).filter(|member| !self.lost.contains(member)).collect();
        self.ask_next()
    }

    /// Begins an evaluation: every member that was not lost judges the others' answers.
    fn evaluate(&mut self) -> Vec<Action> {
        self.phase = PanelPhase::Evaluation;
        let (seed, iteration, members) = (self.setup.seed, self.iteration(), self.setup.agents.len());
        let labels = labels(&self.setup.canonical.choices);
        let lost = self.lost.clone();
        let now = self.now();
        let answered = now.answering_members();
        for evaluator in 0..members {
            let others: Vec<usize> = answered.iter().copied().filter(|&member| member != evaluator).collect();
            if others.is_empty() {
                now.ballots[evaluator] = Ballot::NotNeeded;
            } else if lost.contains(&evaluator) {
                now.ballots[evaluator] = Ballot::Void;
            }
            now.lineups.push(Lineup::draw(seed, iteration, evaluator, &others, &labels));
        }
        let open = (0..members).filter(|&evaluator| now.ballots[evaluator] == Ballot::Open);
        let waiting = open.collect();
        self.waiting = waiting;
        if self.waiting.is_empty() { self.verdict() } else { self.ask_next() }
    }

    /// Asks for as many forms as may be in the making at once.
    fn ask_next(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        while self.setup.params.parallel || self.open.is_empty() {
            let Some(member) = self.waiting.pop_front() else { break };
            actions.push(self.begin(member));
        }
        actions
    }

    fn begin(&mut self, member: usize) -> Action {
        let round = self.round();
        let call = CallId { part: 0, round, agent: member, draft: 0, step: Step::Think, attempt: 0 };
        let (prompt, shape) = self.turn_prompt(call);
        let system = match self.phase {
            PanelPhase::Evaluation => self.setup.system(member),
            PanelPhase::New | PanelPhase::Generation | PanelPhase::Done => self.setup.system_alone(member),
        };
        let alone = Conversation::new(system);
        let draft = Draft::start(self.setup.params.thinking, call, alone, prompt, shape);
        let ask = draft.ask(&self.setup.agents[member], self.setup.seed);
        self.open.insert(draft.call(), draft);
        Action::Ask(ask)
    }

    /// Returns the round of calls. Each iteration has one round of answers and one of ballots.
    fn round(&self) -> u32 {
        let generation = self.iteration().saturating_mul(2).saturating_sub(1);
        if self.phase == PanelPhase::Evaluation { generation + 1 } else { generation }
    }

    fn turn_prompt(&self, call: CallId) -> (TurnPrompt, ReplyShape) {
        let lineup = self.iterations.last().and_then(|now| Some((now, now.lineups.get(call.agent)?)));
        let (prompt, name, schema) = match lineup {
            Some((now, lineup)) if self.phase == PanelPhase::Evaluation => (
                prompt::evaluation(&self.setup, call, lineup, &now.answers),
                "ballot",
                ballot::schema(lineup),
            ),
            Some(_) | None => {
                let chars_max = self.setup.agents[call.agent].text_chars_max();
                let rules = &self.setup.params.constraints;
                let response = answer_schema(&self.canonicalizer, rules, chars_max);
                let schema = closed(&json!({"response": response}));
                (prompt::generation(&self.setup, call, &self.feedback()), "answer", schema)
            }
        };
        (prompt, ReplyShape::Json { name, schema: (&schema).into(), measured: None })
    }

    /// Returns the feedback on the best answer of the last iteration that is over.
    fn feedback(&self) -> Vec<String> {
        let Some([.., last, _]) = self.iterations.get(..) else { return Vec::new() };
        let tally = last.tally();
        tally::winner(&tally).map(|best| last.feedback(best.member)).unwrap_or_default()
    }

    // ===== Taking =====

    fn replied(&mut self, call: CallId, reply: &Reply) -> Result<Vec<Action>, Unexpected> {
        let Some(mut draft) = self.open.remove(&call) else { return Err(Unexpected::NotAsked(call)) };
        let member = call.agent;
        let (agent, max_repairs) = (&self.setup.agents[member], self.setup.params.max_repairs);
        let progress =
            draft.reply(agent, self.setup.seed, max_repairs, reply, |text, _| self.check(member, text));
        let form = match progress {
            TurnProgress::Ask(ask) => {
                self.open.insert(draft.call(), draft);
                return Ok(vec![Action::Ask(ask)]);
            }
            TurnProgress::Valid(form) => Some(form),
            TurnProgress::Failed => None,
        };
        self.repairs[member] += draft.repairs;
        self.failed_turns[member] += u32::from(form.is_none());
        let is_evaluation = self.phase == PanelPhase::Evaluation;
        match form {
            Some(MemberForm::Response(answer)) => self.now().answers[member] = Some(answer),
            Some(MemberForm::Ballot(marks)) => self.now().ballots[member] = Ballot::Cast(marks),
            None if is_evaluation => {
                self.remark = Some("its ballot is void");
                self.now().ballots[member] = Ballot::Void;
            }
            None => self.remark = Some("no valid answer came in this turn"),
        }
        Ok(self.continue_phase())
    }

    /// Takes the loss of a member. Its answer is missing, or its ballot is void.
    fn lose(&mut self, call: CallId) -> Result<Vec<Action>, Unexpected> {
        let Some(draft) = self.open.remove(&call) else { return Err(Unexpected::NotAsked(call)) };
        let member = call.agent;
        self.lost.insert(member);
        if !self.setup.bears_loss_of(&self.lost) {
            return Err(Unexpected::NotAsked(call));
        }
        self.repairs[member] += draft.repairs;
        if self.phase == PanelPhase::Evaluation {
            self.now().ballots[member] = Ballot::Void;
        }
        Ok(self.continue_phase())
    }

    /// Returns what follows once a form has come in, or will never come.
    fn continue_phase(&mut self) -> Vec<Action> {
        let is_evaluation = self.phase == PanelPhase::Evaluation;
        let mut actions = if is_evaluation { self.stop_early() } else { Vec::new() };
        actions.extend(self.ask_next());
        if self.open.is_empty() && self.waiting.is_empty() {
            actions.extend(if is_evaluation { self.verdict() } else { self.after_generation() });
        }
        actions
    }

    fn check(&self, member: usize, text: &str) -> Result<Valid<MemberForm>, Violation> {
        if self.phase == PanelPhase::Evaluation {
            let lineup = self.iterations.last().and_then(|now| now.lineups.get(member));
            let none = Lineup::default();
            let Valid { content, object } = ballot::read(text, lineup.unwrap_or(&none))?;
            return Ok(Valid { content: MemberForm::Ballot(content), object });
        }
        let object = extract(text)?.object;
        let AnswerForm { response } = read_one(&with_text(object, self.setup.canonical.kind))?;
        let (chars_max, rules) = (self.setup.agents[member].text_chars_max(), &self.setup.params.constraints);
        let answer = Answer::take(
            &response,
            chars_max,
            &self.canonicalizer,
            &self.prompt_echo,
            rules,
            &self.executions,
        )?;
        Ok(Valid { content: MemberForm::Response(answer), object: object.to_owned() })
    }

    fn after_generation(&mut self) -> Vec<Action> {
        if self.now().answering_members().is_empty() {
            return self.finish(Outcome::NoAgreement { reason: NoAgreement::NoDrafts });
        }
        self.evaluate()
    }

    /// Cancels the open ballots if they can change nothing.
    fn stop_early(&mut self) -> Vec<Action> {
        let PanelParams { threshold, early_stop, max_iterations, .. } = self.setup.params;
        let is_last = self.iteration() >= max_iterations;
        if !early_stop || !tally::is_decided(&self.now().tally(), threshold, is_last) {
            return Vec::new();
        }
        for ballot in &mut self.now().ballots {
            if *ballot == Ballot::Open {
                *ballot = Ballot::Cancelled;
            }
        }
        self.waiting.clear();
        std::mem::take(&mut self.open).into_keys().map(Action::Cancel).collect()
    }

    // ===== Deciding =====

    fn verdict(&mut self) -> Vec<Action> {
        let now = self.now();
        let tally = now.tally();
        let Some(best) = tally::winner(&tally).copied() else {
            return self.finish(Outcome::NoAgreement { reason: NoAgreement::NoBallots });
        };
        let answer = now.answers[best.member].clone();
        if best.reaches(self.setup.params.threshold)
            && let Some(Answer { shown: text, canonical }) = answer
        {
            return self.finish(Outcome::Agreed { how: How::Scored, text, sha256: canonical.digest });
        }
        // Answers that are all repeated would be judged as before.
        let repeats = matches!(self.iterations.as_slice(), [.., last, now] if now.repeats(last));
        if repeats || self.iteration() >= self.setup.params.max_iterations {
            return self.finish(Outcome::NoAgreement { reason: NoAgreement::Threshold });
        }
        self.generate()
    }

    fn finish(&mut self, outcome: Outcome) -> Vec<Action> {
        self.phase = PanelPhase::Done;
        self.outcome = Some(outcome.clone());
        vec![Action::Finish(outcome)]
    }
}

impl AsMut<Executions> for Panel {
    fn as_mut(&mut self) -> &mut Executions {
        &mut self.executions
    }
}

impl Protocol for Panel {
    type Section = PanelSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.remark = None;
        match event {
            Event::Started if self.phase == PanelPhase::New => Ok(self.generate()),
            Event::Replied { call, reply } => self.replied(*call, reply),
            Event::Lost { call, .. } => self.lose(*call),
            Event::Started
            | Event::Found { .. }
            | Event::Executed { .. }
            | Event::Permitted
            | Event::Closed => Err(event.into()),
        }
    }

    fn report(&self) -> Report<PanelSection> {
        self.make_report()
    }

    fn remark(&self) -> Option<&'static str> {
        self.remark
    }
}
