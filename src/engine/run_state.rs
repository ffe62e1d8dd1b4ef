//! The state of a run, folded from its journal record by record.
//!
//! The input is records, live or read back. The output is the calls that are owed, the amounts that were spent, and
//! the end of the run. The state knows no clock and no file. It trusts nothing: a record that could not have come
//! from this run is a [`Mismatch`]. Examples are a prompt that the machine did not issue and an end that it did not
//! reach.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use super::budget::{Budget, CallUsage, Reserve, Totals};
use super::conduct::{self, estimate_instead, ignores_schema};
use super::mismatch::{Mismatch, ReplayError};
use crate::calibration::Confidence;
use crate::journal::{
    Asked, Entry, Executed, Found, LeftOut, Library, Limits, Record, Replied, RunSpec, between,
};
use crate::program::PROGRAM;
use crypto::Digest;
use protocol::core::{Endpoint, OptionalParameter, Price, Usage, bare_model};
use protocol::pacing::SamplePermit;
use protocol::text::{TextMemos, escape, redact};
use protocol::{
    Action, Ask, CallId, CallPhase, Degraded, DegradedKind, Event, Execution, Machine, Outcome,
    PASSAGE_CHARS_MAX, PASSAGES_MAX, Passage, Protocol, Reply, ReplyShape, Search, Unexpected,
};

/// What the machines of all runs share. It changes no step.
static MEMOS: LazyLock<TextMemos> = LazyLock::new(TextMemos::shared);

/// The state of a run at any of its records: under way, resumed, or read back.
pub struct RunState {
    pub(super) opened: RunSpec,
    /// The documents that may be searched now; they may change before a run is resumed.
    pub(super) library: Option<Library>,
    pub(super) machine: Machine,
    pub(super) budget: Budget,
    pub(super) limits: Limits,
    /// The current endpoint of each agent's model; a resumed run may have another server.
    pub(super) endpoints: Vec<Endpoint>,
    /// The calls that must still be answered, each with its reserve once it was made.
    pub(super) owed: BTreeMap<CallId, (Ask, Option<Reserve>)>,
    /// The search that must still be made, if any.
    pub(super) search: Option<Search>,
    /// The executions that must still be made, by their keys.
    pub(super) executions_owed: BTreeMap<Digest, Execution>,
    pub(super) executions_made: Vec<(Execution, Executed)>,
    /// Whether the run waits for a permit, or for the end of its permits.
    pub(super) awaits_permit: bool,
    /// The last permit.
    pub(super) permit: Option<SamplePermit>,
    /// The verdict, once there is one: the protocol's, unless a calibration withholds the answer.
    pub(super) verdict: Option<Outcome>,
    /// The confidence in the answer, if there is a calibration that knows such answers.
    pub(super) confidence: Option<Confidence>,
    /// The outcome with which the run was last put down, until it is resumed.
    pub(super) stopped: Option<Outcome>,
    pub(super) totals: Totals,
    pub(super) phases: BTreeMap<CallPhase, CallUsage>,
    /// The tokens of each reply.
    pub(super) completions: BTreeMap<CallId, u64>,
    pub(super) degraded: Vec<Degraded>,
    /// The agents without which the run continues, each with the causes of its lost calls.
    pub(super) lost: BTreeMap<usize, Vec<String>>,
    /// The parameters that each agent's server refused.
    pub(super) left_out: BTreeSet<(usize, OptionalParameter)>,
    /// The agents of whose servers a reply has been checked against its schema.
    pub(super) examined: BTreeSet<usize>,
    /// The tokens that stand for texts that must not leave the machine.
    pub(super) tokens: BTreeSet<String>,
    /// The model of each agent's last reply.
    pub(super) models: BTreeMap<usize, String>,
    /// The model of the first reply to each name at each place. Later ones count as the same, whatever they say.
    first_models: BTreeMap<(String, String), String>,
    pub(super) run: String,
    /// The time at which each open call was made.
    pub(super) asked_at: BTreeMap<CallId, String>,
    /// The total duration of each agent's calls.
    pub(super) busy: Vec<Duration>,
    /// The time stamps of the first and the last record.
    pub(crate) started_at: String,
    pub(crate) ended_at: String,
    /// The time that the run lay between its last record and the next resume.
    pub(crate) away: Duration,
}

impl std::fmt::Debug for RunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunState").field("run", &self.run).finish_non_exhaustive()
    }
}

impl RunState {
    /// Starts from a journal's first record.
    ///
    /// Returns [`Mismatch::NotOpened`], [`Mismatch::BadOpening`], [`Mismatch::Endpoints`].
    pub fn open(record: &Record) -> Result<Self, Mismatch> {
        let Entry::Opened(opened) = &record.event else { return Err(Mismatch::NotOpened) };
        opened.setup.check()?;
        if opened.program != PROGRAM {
            return Err(Mismatch::OtherProgram(opened.program.clone()));
        }
        if opened.endpoints.len() != opened.setup.everybody().count() {
            return Err(Mismatch::Endpoints);
        }
        let known = opened.endpoints.iter().all(|e| e.price().is_some());
        let mut setup = opened.setup.clone();
        setup.memos = MEMOS.clone();
        let mut state = Self {
            machine: setup.machine(),
            budget: Budget::new(opened.limits),
            limits: opened.limits,
            endpoints: opened.endpoints.clone(),
            opened: (**opened).clone(),
            library: None,
            owed: BTreeMap::new(),
            search: None,
            executions_owed: BTreeMap::new(),
            executions_made: Vec::new(),
            awaits_permit: false,
            permit: None,
            verdict: None,
            confidence: None,
            stopped: None,
            totals: Totals { cost_micro_usd: known.then_some(0), ..Totals::default() },
            phases: BTreeMap::new(),
            completions: BTreeMap::new(),
            degraded: Vec::new(),
            lost: BTreeMap::new(),
            left_out: BTreeSet::new(),
            examined: BTreeSet::new(),
            tokens: BTreeSet::new(),
            models: BTreeMap::new(),
            first_models: BTreeMap::new(),
            run: record.run.clone(),
            asked_at: BTreeMap::new(),
            busy: vec![Duration::ZERO; opened.endpoints.len()],
            started_at: record.at.clone(),
            ended_at: record.at.clone(),
            away: Duration::ZERO,
        };
        if let Some(library) = &opened.library {
            state.note_library(library);
        }
        if opened.redacted {
            let setup = serde_json::to_string(&opened.setup).unwrap_or_default();
            state.tokens.extend(redact::tokens(&setup).map(str::to_owned));
        }
        state.note_settings();
        if opened.calibration.as_ref().is_some_and(|calibration| calibration.has_question) {
            let detail =
                "the calibration was made of this question too, so its confidence proves nothing here";
            state.degrade(DegradedKind::QuestionOfCalibration, detail.to_owned());
        }
        let actions = state.machine.step(&Event::Started)?;
        state.take_actions(actions);
        Ok(state)
    }

    /// Folds a whole journal.
    ///
    /// Returns the first [`Mismatch`], with its line.
    pub fn replay(records: &[Record]) -> Result<Self, ReplayError> {
        let Some((first, others)) = records.split_first() else {
            return Err(ReplayError { line: 1, why: Mismatch::NotOpened });
        };
        let mut state = Self::open(first).map_err(|why| ReplayError { line: 1, why })?;
        for record in others {
            state.apply(record).map_err(|why| ReplayError { line: record.seq + 1, why })?;
        }
        Ok(state)
    }

    /// Takes the next record.
    ///
    /// Returns [`Mismatch`] if the record cannot be one of this run.
    pub fn apply(&mut self, record: &Record) -> Result<(), Mismatch> {
        let is_resume = matches!(record.event, Entry::Resumed { .. });
        if self.stopped.as_ref().is_some_and(|outcome| outcome.is_final() || !is_resume) {
            return Err(Mismatch::AfterTheEnd);
        }
        if is_resume {
            self.away += between(&self.ended_at, &record.at);
        }
        self.ended_at.clone_from(&record.at);
        match &record.event {
            Entry::Opened(_) => Err(Mismatch::NotOpened),
            Entry::Asked(asked) => {
                self.take_asked(asked)?;
                self.asked_at.insert(asked.call, record.at.clone());
                Ok(())
            }
            Entry::Replied(replied) => {
                self.take_replied(replied)?;
                self.end_call(replied.call, &record.at);
                Ok(())
            }
            Entry::Lost(lost) => {
                self.take_lost(lost)?;
                self.end_call(lost.call, &record.at);
                Ok(())
            }
            Entry::Found(found) => self.take_found(found),
            Entry::Executed(executed) => self.take_executed(executed),
            Entry::LeftOut(LeftOut { agent, parameter, .. }) => self.note_left_out(*agent, *parameter),
            Entry::Permitted(permit) => self.take_permit(*permit),
            Entry::Closed(end) => self.take_budget_end(*end),
            Entry::Stopped { outcome } => self.take_stopped(outcome),
            Entry::Resumed { limits, endpoints, library, .. } => {
                if let Some(endpoints) = endpoints {
                    if endpoints.len() != self.endpoints.len() {
                        return Err(Mismatch::Endpoints);
                    }
                    self.endpoints.clone_from(endpoints);
                    self.left_out.clear();
                    self.note_settings();
                }
                if let Some(library) = library {
                    self.note_library(library);
                }
                self.stopped = None;
                self.budget.set_limits(*limits);
                self.limits = *limits;
                // A call in the air when the process died keeps its reserve, and is made again.
                for (_, reserve) in self.owed.values_mut() {
                    self.totals.lost += u64::from(reserve.take().is_some());
                }
                Ok(())
            }
        }
    }

    /// Adds the duration of a call that has ended to its agent's.
    fn end_call(&mut self, call: CallId, ended_at: &str) {
        let asked_at = self.asked_at.remove(&call).unwrap_or_default();
        if let Some(busy) = self.busy.get_mut(call.agent) {
            *busy += between(&asked_at, ended_at);
        }
    }

    fn take_asked(&mut self, asked: &Asked) -> Result<(), Mismatch> {
        let call = asked.call;
        let price = self.price(call.agent);
        let (ask, reserve) = self.owed.get_mut(&call).ok_or(Mismatch::NotOwed(call))?;
        if ask.digest != asked.sha256 {
            return Err(Mismatch::PromptDiffers(call));
        }
        if reserve.is_some() {
            return Err(Mismatch::AskedTwice(call));
        }
        let expected = tokens_max(ask);
        if asked.tokens_max != expected {
            return Err(Mismatch::ReserveDiffers { call, found: asked.tokens_max, expected });
        }
        let (prompt, completion) = (ask.prompt_tokens_estimate(), u64::from(ask.max_tokens));
        match self.budget.reserve(prompt, completion, price) {
            Ok(reserved) => *reserve = Some(reserved),
            Err(why) => return Err(Mismatch::OverBudget { call, why: why.to_string() }),
        }
        Ok(())
    }

    fn take_replied(&mut self, replied: &Replied) -> Result<(), Mismatch> {
        let call = replied.call;
        let price = self.price(call.agent);
        let (ask, reserve) = self.owed.remove(&call).ok_or(Mismatch::NotOwed(call))?;
        let reserve = reserve.ok_or(Mismatch::NotAsked(call))?;
        let instead = self.estimate_instead(&ask, replied);
        let usage = instead.unwrap_or(replied.usage);
        self.budget.settle(reserve, usage, price);
        self.count(replied.call, usage, price);
        for Degraded { kind, detail } in
            conduct::losses(self.agent_name(call.agent), replied, instead.is_some())
        {
            self.degrade(kind, detail);
        }
        let model = self.take_model(call.agent, replied.reply.model.as_deref());
        let event = Event::Replied { call, reply: Reply { model, ..replied.reply.clone() } };
        let actions = self.machine.step(&event)?;
        if self.is_suspect(&ask, replied, &actions) && ignores_schema(&ask, replied, &MEMOS) {
            let name = self.agent_name(call.agent).to_owned();
            let detail = format!("the server of {name} accepts a schema and does not hold its replies to it");
            self.degrade(DegradedKind::SchemaIgnored, detail);
        }
        self.take_actions(actions);
        Ok(())
    }

    fn take_found(&mut self, found: &Found) -> Result<(), Mismatch> {
        let search = self.search.take().ok_or(Unexpected::NotSearched(found.round))?;
        let tokens: u64 = found.passages.iter().map(Passage::tokens_estimate).sum();
        let fits = found.passages.len() <= PASSAGES_MAX && tokens <= search.tokens_max;
        if self.opened.library.is_none() || !fits || !found.passages.iter().all(is_possible) {
            return Err(Mismatch::Passages(found.round));
        }
        if self.opened.redacted {
            let texts = found.passages.iter().flat_map(|passage| [&passage.text, &passage.document]);
            self.tokens.extend(texts.flat_map(|text| redact::tokens(text)).map(str::to_owned));
        }
        let event = Event::Found { round: found.round, passages: found.passages.clone() };
        let actions = self.machine.step(&event)?;
        self.take_actions(actions);
        Ok(())
    }

    /// Returns true if a reply is worth checking against its schema: each agent's first reply, one that was refused,
    /// and one that no grammar would allow. The check takes as long as a whole turn.
    fn is_suspect(&mut self, ask: &Ask, replied: &Replied, actions: &[Action]) -> bool {
        let ReplyShape::Json { .. } = ask.shape else { return false };
        let is_bare = replied.reply.text.trim_start().starts_with('{');
        self.examined.insert(ask.call.agent) || !is_bare || is_asked_again(actions, ask.call)
    }

    fn take_stopped(&mut self, outcome: &Outcome) -> Result<(), Mismatch> {
        let differs = match &self.verdict {
            Some(verdict) => verdict != outcome,
            None => outcome.is_final(),
        };
        if differs {
            let expected = match &self.verdict {
                Some(verdict) => format_outcome(verdict),
                None => "more turns".to_owned(),
            };
            return Err(Mismatch::OutcomeDiffers { found: format_outcome(outcome), expected });
        }
        self.stopped = Some(outcome.clone());
        Ok(())
    }

    pub(super) fn take_actions(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Ask(ask) => drop(self.owed.insert(ask.call, (ask, None))),
                Action::Search(search) => self.search = Some(search),
                Action::Execute(execution) => {
                    self.executions_owed.insert(execution.key(), execution);
                }
                // The reserve stays counted, because the server may have begun to answer.
                Action::Cancel(call) => {
                    let was_asked = self.owed.remove(&call).is_some_and(|(_, reserve)| reserve.is_some());
                    self.totals.cancelled += u64::from(was_asked);
                }
                Action::AwaitPermit => self.awaits_permit = true,
                Action::Finish(end) => self.take_end(end),
            }
        }
    }

    /// Takes the end that the protocol has reached.
    fn take_end(&mut self, end: Outcome) {
        let Some(calibration) = &self.opened.calibration else {
            self.verdict = Some(end);
            return;
        };
        let report = self.machine.report();
        // A calibration holds for the models of its runs alone, and a resumed run may have others.
        let models = self.endpoints.iter().map(|endpoint| endpoint.answering(None));
        if models.eq(self.opened.endpoints.iter().map(|endpoint| endpoint.answering(None))) {
            self.confidence = calibration.confidence(&end, &report);
        }
        self.verdict = Some(calibration.judge(end, self.confidence.as_ref()));
    }

    fn count(&mut self, call: CallId, usage: Usage, price: Option<Price>) {
        self.phases.entry(CallPhase::of(&self.opened.setup, call)).or_default().add(usage);
        self.completions.insert(call, usage.completion);
        let sum = &mut self.totals.usage;
        self.totals.calls += 1;
        sum.prompt = sum.prompt.saturating_add(usage.prompt);
        sum.cached = sum.cached.saturating_add(usage.cached);
        sum.completion = sum.completion.saturating_add(usage.completion);
        sum.estimated |= usage.estimated;
        // A cost that was not known before the first reply is known if the servers report one with each reply.
        let before = if self.totals.calls == 1 { Some(0) } else { self.totals.cost_micro_usd };
        let sum = before.zip(usage.cost(price)).map(|(before, cost)| before.saturating_add(cost));
        self.totals.cost_micro_usd = sum;
    }

    pub(super) fn estimate_instead(&self, ask: &Ask, replied: &Replied) -> Option<Usage> {
        estimate_instead(ask, replied, self.price(replied.call.agent))
    }

    /// Takes the model that an agent's reply names. Returns the model as which the reply counts: that of the first reply to the same name
    /// at the same place.
    fn take_model(&mut self, agent: usize, said: Option<&str>) -> Option<String> {
        let endpoint = self.endpoints.get(agent)?;
        let named = (endpoint.place().to_owned(), endpoint.model().to_owned());
        let source = endpoint.source(said)?.to_owned();
        let model = endpoint.answering(said)?.to_owned();
        self.note_model(agent, &model);
        Some(self.first_models.entry(named).or_insert(source).clone())
    }

    /// Notes the model of an agent's reply. A run with half of its replies by one model and half by another belongs
    /// to neither.
    fn note_model(&mut self, agent: usize, now: &str) {
        if let Some(before) = self.models.insert(agent, now.to_owned())
            && bare_model(&before) != bare_model(now)
        {
            let name = self.agent_name(agent);
            let detail = format!("{name} was `{before}` at first, and `{now}` from then on");
            self.degrade(DegradedKind::ModelChanged, escape::message(&detail));
        }
    }

    /// Records that the server of an agent takes no such parameter.
    fn note_left_out(&mut self, agent: usize, parameter: OptionalParameter) -> Result<(), Mismatch> {
        if agent >= self.endpoints.len() {
            return Err(Mismatch::Endpoints);
        }
        self.left_out.insert((agent, parameter));
        if parameter.is_of_sampling() {
            let name = self.agent_name(agent);
            let detail =
                format!("the server of {name} takes no `{parameter}`; its replies are not drawn as asked");
            self.degrade(DegradedKind::SamplingNotAsAsked, detail);
        }
        Ok(())
    }

    /// Records the models that their servers do not list, and the parameters that the settings leave out.
    fn note_settings(&mut self) {
        let unlisted: Vec<String> = self.endpoints.iter().filter_map(Endpoint::unlisted).collect();
        for detail in unlisted {
            self.degrade(DegradedKind::ModelNotListed, escape::message(&detail));
        }
        let left_out: BTreeSet<OptionalParameter> =
            self.endpoints.iter().flat_map(Endpoint::leave_out).filter(|p| p.is_of_sampling()).collect();
        for parameter in left_out {
            let detail = format!("the settings leave out `{parameter}`; replies are not drawn as asked");
            self.degrade(DegradedKind::SamplingNotAsAsked, detail);
        }
    }

    /// Records which documents are lost, and whether the documents differ from those before.
    fn note_library(&mut self, library: &Library) {
        for lost in &library.lost {
            self.degrade(DegradedKind::DocumentLost, lost.clone());
        }
        let before = self.library.replace(library.clone());
        let digests = before.and_then(|before| before.sha256).zip(library.sha256);
        if digests.is_some_and(|(before, now)| before != now) {
            let detail = "the documents were others when the run was resumed; what had been found stands";
            self.degrade(DegradedKind::DocumentsChanged, detail.to_owned());
        }
    }

    pub(super) fn degrade(&mut self, kind: DegradedKind, detail: String) {
        let loss = Degraded { kind, detail };
        if !self.degraded.contains(&loss) {
            self.degraded.push(loss);
        }
    }

    pub(super) fn price(&self, agent: usize) -> Option<Price> {
        self.endpoints.get(agent).and_then(Endpoint::price)
    }
}

/// Returns true if a search can have found a passage.
fn is_possible(passage: &Passage) -> bool {
    // A token may be longer than the text that it stands for; the token limit of the search bounds such a passage.
    let fits = passage.redacted || passage.text.chars().count() <= PASSAGE_CHARS_MAX;
    fits && passage.start.checked_add(passage.text.len()).is_some()
}

/// Returns true if the protocol refused the reply to `call` and wants another.
fn is_asked_again(actions: &[Action], call: CallId) -> bool {
    let again = CallId { attempt: call.attempt + 1, ..call };
    actions.iter().any(|action| matches!(action, Action::Ask(ask) if ask.call == again))
}

fn format_outcome(outcome: &Outcome) -> String {
    escape::message(&serde_json::to_string(outcome).unwrap_or_default())
}

/// Returns the most tokens that a call may use, as the record of the call states it.
pub(super) fn tokens_max(ask: &Ask) -> u64 {
    ask.prompt_tokens_estimate() + u64::from(ask.max_tokens)
}
