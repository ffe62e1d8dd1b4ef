//! The state machine of `map_reduce`: runs inside a run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::section::{Fact, MapReduceSection};
use super::state::{Job, MapReduce, Open, PartSection, Shown};
use super::{claims, prompt};
use crate::contract::{
    Action, AgentSetup, Ask, CallId, Chunk, Degraded, DegradedKind, Document, Event, NoAgreement, Outcome,
    Protocol, ProtocolParams, Report, Setup, Task, Unexpected, tokens,
};
use crate::text::evidence::{Answers, QUOTES_MAX, Quotes, Said};
use crate::text::{Canonical, CanonicalKind, Canonicalizer, Constraint, escape, one_line};
use crypto::Hasher;

/// Returns the setup of a run inside this one. `shown` has the sentences that it may choose, and the text that it works from where it reads
/// no piece.
pub(super) fn part_setup<P: ProtocolParams>(setup: &Setup<P>, job: &Job, shown: &Shown) -> Setup<P> {
    let question = setup.task.prompt.trim();
    let chars_max = setup.agents.iter().map(AgentSetup::text_chars_max).min().unwrap_or(0);
    let of_facts =
        || Document { name: "facts".to_owned(), text: shown.text.as_str().into(), redacted: false };
    let quotes =
        |count_max| Constraint::Quotes(Quotes::new(shown.sentences.iter().cloned(), chars_max, count_max));
    let (prompt, document, form) = match job {
        Job::Read(index) => {
            let (name, text) = piece(setup, *index);
            let count = setup.chunk_plan.as_ref().map_or(0, |chunk_plan| chunk_plan.pieces.len());
            (
                prompt::read(question, index + 1, count),
                Document { name, text: text.into(), redacted: false },
                quotes(QUOTES_MAX),
            )
        }
        // At most half of the facts are kept, so that the merges come to an end.
        Job::Merge(facts) => (prompt::merge(question), of_facts(), quotes(facts.len().div_ceil(2))),
        Job::Answer => {
            let numbers = shown.facts.iter().map(|(number, _)| *number).collect();
            (prompt::answer(question), of_facts(), Constraint::Answers(Answers::new(numbers, chars_max)))
        }
    };
    let mut params = setup.params.clone();
    if let Some(constraints) = params.constraints_mut() {
        *constraints = vec![form];
    }
    Setup {
        roleset: setup.roleset.clone(),
        task: Task { prompt, documents: vec![document], is_searched: false },
        seed: setup.seed,
        agents: setup.agents.clone(),
        arbiter: setup.arbiter.clone(),
        canonical: CanonicalKind::Json.into(),
        params,
        rules: setup.rules.clone(),
        // Only the answer is a final text.
        check_command: setup.check_command.clone().filter(|_| matches!(job, Job::Answer)),
        interpreter: setup.interpreter,
        chunk_plan: None,
    }
}

/// Returns a piece's document and text.
fn piece<P>(setup: &Setup<P>, index: usize) -> (String, &str) {
    let chunk_plan = setup.chunk_plan.as_ref();
    let found = chunk_plan.and_then(|chunk_plan| chunk_plan.pieces.get(index)).and_then(|piece| {
        let document = setup.task.documents.get(piece.document)?;
        Some((document.name.clone(), document.text.get(piece.start..piece.end)?))
    });
    // A setup is checked before its machine is made.
    found.unwrap_or_default()
}

impl<P: ProtocolParams> MapReduce<P> {
    /// Begins as many runs as may be under way at once.
    fn begin(&mut self) -> Result<Vec<Action>, Unexpected> {
        let mut actions = Vec::new();
        while self.open.len() < self.chunk_plan.at_once as usize {
            let Some(job) = self.waiting.pop_front() else { break };
            self.parts += 1;
            let part = self.parts;
            let shown = match &job {
                Job::Read(index) => self.offer(*index),
                Job::Merge(facts) => self.shown(facts, false),
                Job::Answer => self.shown(&self.facts, true),
            };
            let mut setup = part_setup(&self.setup, &job, &shown);
            // The seed is below 2^53, so that every reader of JSON has it exactly.
            let seed = Hasher::default()
                .part(b"part")
                .part(&self.setup.seed.to_be_bytes())
                .part(&part.to_be_bytes())
                .finish();
            setup.seed = seed.leading_u64() >> 11;
            let mut machine = setup.machine();
            let began = machine.step(&Event::Started)?;
            self.open.insert(part, Open { job, machine });
            actions.extend(self.take(part, began)?);
        }
        Ok(actions)
    }

    /// Passes on the actions of a run inside this one, and continues where that run has ended.
    fn take(&mut self, part: u32, wanted: Vec<Action>) -> Result<Vec<Action>, Unexpected> {
        let mut actions = Vec::new();
        let mut ended = None;
        for action in wanted {
            match action {
                Action::Ask(ask) => {
                    actions.push(Action::Ask(Ask { call: CallId { part, ..ask.call }, ..ask }));
                }
                Action::Cancel(call) => actions.push(Action::Cancel(CallId { part, ..call })),
                // No document is searched for a piece, as its setup states.
                Action::Search(_) => {}
                Action::Execute(execution) => {
                    self.executing.entry(execution.key()).or_default().push(part);
                    actions.push(Action::Execute(execution));
                }
                Action::Finish(outcome) => ended = Some(outcome),
            }
        }
        if let Some(outcome) = ended {
            actions.extend(self.close(part, outcome)?);
        }
        Ok(actions)
    }

    /// Takes the result of a run inside this one.
    fn close(&mut self, part: u32, outcome: Outcome) -> Result<Vec<Action>, Unexpected> {
        let Some(Open { job, machine }) = self.open.remove(&part) else { return Ok(Vec::new()) };
        let report = machine.report();
        if let Job::Answer = job {
            self.answered = Some(report);
            let Outcome::Agreed { how, text, .. } = outcome else { return Ok(vec![Action::Finish(outcome)]) };
            self.said = Said::read(&canonical(CanonicalKind::Json, &text).text);
            let text = self.said.shown();
            let sha256 = canonical(CanonicalKind::Text, &text).digest;
            return Ok(vec![Action::Finish(Outcome::Agreed { how, text, sha256 })]);
        }
        self.count(&report);
        match job {
            Job::Read(index) => self.has_read(index, &outcome),
            Job::Merge(facts) => self.has_merged(part, facts, &outcome),
            Job::Answer => {}
        }
        let mut actions = self.begin()?;
        if self.open.is_empty() && self.waiting.is_empty() {
            actions.extend(self.next_step()?);
        }
        Ok(actions)
    }

    /// Returns facts as a run sees them, with or without their numbers.
    fn shown(&self, numbers: &[usize], numbered: bool) -> Shown {
        let is_one = self.setup.task.documents.len() == 1;
        let fact = |number: &usize| {
            let Fact { document, quote, .. } = &self.findings[number - 1];
            let quote = one_line(quote);
            let text = if is_one || !numbered { quote } else { format!("{document}: {quote}") };
            (*number, text)
        };
        let facts: Vec<(usize, String)> = numbers.iter().map(fact).collect();
        let text = if numbered {
            prompt::list(facts.iter().map(|(number, fact)| (*number, fact.as_str())))
        } else {
            facts.iter().map(|(_, fact)| fact.as_str()).collect::<Vec<_>>().join("\n")
        };
        let sentences = facts.iter().map(|(_, fact)| fact.clone()).collect();
        Shown { text, facts, sentences }
    }

    /// Returns the places of the sentences that begin in a piece. Each sentence is offered whole, and only where it begins.
    fn offered(&self, index: usize) -> &[Range<usize>] {
        let Chunk { document, start, end } = self.chunk_plan.pieces[index];
        let all = &self.sentences[document];
        let at = |byte| all.partition_point(|place| place.start < byte);
        &all[at(start)..at(end)]
    }

    fn offer(&self, index: usize) -> Shown {
        let text = &self.setup.task.documents[self.chunk_plan.pieces[index].document].text;
        let sentences = self.offered(index).iter().map(|place| one_line(&text[place.clone()])).collect();
        Shown { sentences, ..Shown::default() }
    }

    fn count(&mut self, report: &Report<PartSection<P>>) {
        let kinds = report.degraded.iter().map(|degraded| (degraded.kind.name(), degraded.kind));
        self.parts_degraded.extend(kinds.collect::<BTreeMap<_, _>>().into_values());
        if self.efforts.is_empty() {
            self.efforts.clone_from(&report.agents);
            return;
        }
        for (sum, agent) in self.efforts.iter_mut().zip(&report.agents) {
            sum.changes += agent.changes;
            sum.repairs += agent.repairs;
            sum.failed_turns += agent.failed_turns;
        }
    }

    fn has_read(&mut self, index: usize, outcome: &Outcome) {
        self.pieces[index].outcome = Some(outcome.kind());
        let Chunk { document, start, end } = self.chunk_plan.pieces[index];
        let Document { name, text, .. } = &self.setup.task.documents[document];
        let Outcome::Agreed { text: said, .. } = outcome else {
            let why = format!(
                "bytes {start} to {end} of {} were read by nobody: {}",
                escape::excerpt(name),
                told(outcome)
            );
            self.lost.push(Degraded { kind: DegradedKind::PieceLost, detail: why });
            return;
        };
        let said = canonical(CanonicalKind::Json, said).text;
        let (places, nowhere) = claims::places(&said, text, self.offered(index));
        let found = places.into_iter().map(|Range { start, end }| Fact {
            document: name.clone(),
            start,
            end,
            quote: text[start..end].to_owned(),
        });
        let found = found.collect();
        self.unproven += nowhere;
        self.read.insert(index, found);
    }

    /// Keeps the facts that were chosen, or all of a run's facts if it came to nothing.
    fn has_merged(&mut self, part: u32, facts: Vec<usize>, outcome: &Outcome) {
        let kept = match outcome {
            Outcome::Agreed { text, .. } => {
                let (shown, text) = (self.shown(&facts, false), canonical(CanonicalKind::Json, text).text);
                claims::chosen(&text, shown.facts.iter().map(|(number, fact)| (*number, fact.as_str())))
            }
            Outcome::NoAgreement { .. }
            | Outcome::Abstained { .. }
            | Outcome::Vetoed { .. }
            | Outcome::Budget { .. }
            | Outcome::Failed { .. }
            | Outcome::Interrupted => {
                self.is_stuck = true;
                facts
            }
        };
        self.merged.insert(part, kept);
    }

    /// Continues when all runs of a step have ended.
    fn next_step(&mut self) -> Result<Vec<Action>, Unexpected> {
        let is_first = self.findings.is_empty() && self.merges == 0;
        if is_first {
            self.number();
        } else {
            let merged = std::mem::take(&mut self.merged).into_values().flatten();
            self.facts = merged.chain(std::mem::take(&mut self.alone)).collect();
            self.facts.sort_unstable();
        }
        if self.facts.is_empty() {
            let reason = NoAgreement::NothingFound;
            return Ok(vec![Action::Finish(Outcome::NoAgreement { reason })]);
        }
        if self.length(&self.facts) > self.chunk_plan.tokens_max {
            let (groups, alone): (Vec<_>, Vec<_>) =
                self.groups().into_iter().partition(|group| group.len() > 1);
            if !self.is_stuck && !groups.is_empty() {
                self.merges += 1;
                self.alone = alone.into_iter().flatten().collect();
                self.waiting = groups.into_iter().map(Job::Merge).collect();
                return self.begin();
            }
            self.leave_out();
        }
        self.waiting.push_back(Job::Answer);
        self.begin()
    }

    /// Numbers the facts of all pieces. A sentence that two pieces share counts once.
    fn number(&mut self) {
        let mut known = BTreeSet::new();
        for (piece, found) in std::mem::take(&mut self.read) {
            let document = self.chunk_plan.pieces[piece].document;
            let is_new = |finding: &Fact| known.insert((document, finding.start, finding.end));
            self.findings.extend(found.into_iter().filter(is_new));
        }
        self.facts = (1..=self.findings.len()).collect();
    }

    fn length(&self, facts: &[usize]) -> u64 {
        facts.iter().map(|number| self.length_of(*number)).sum()
    }

    /// Returns a high estimate of a fact's tokens, with its number and its document's name.
    fn length_of(&self, number: usize) -> u64 {
        let finding = &self.findings[number - 1];
        tokens(&finding.quote) + tokens(&finding.document)
    }

    /// Divides the facts into groups that fit into one prompt, in their order.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut room = 0;
        for fact in &self.facts {
            let length = self.length_of(*fact);
            if let Some(group) = groups.last_mut().filter(|_| length <= room) {
                group.push(*fact);
            } else {
                groups.push(vec![*fact]);
                room = self.chunk_plan.tokens_max;
            }
            room = room.saturating_sub(length);
        }
        groups
    }

    /// Keeps as many facts as fit into one prompt, and reports how many do not.
    fn leave_out(&mut self) {
        let mut room = self.chunk_plan.tokens_max;
        let (mut kept, mut count) = (Vec::new(), 0);
        for fact in std::mem::take(&mut self.facts) {
            let length = self.length_of(fact);
            if length <= room {
                kept.push(fact);
            } else {
                count += 1;
            }
            room = room.saturating_sub(length);
        }
        let detail = format!(
            "{count} facts are left out: chosen from as far as they were, they did not fit into one prompt"
        );
        self.lost.push(Degraded { kind: DegradedKind::FactsLeftOut, detail });
        self.facts = kept;
    }
}

/// Returns the canonical form of an agreed text, or of prose.
fn canonical(kind: CanonicalKind, text: &str) -> Canonical {
    Canonicalizer::new(&kind.into())
        .canonicalize(text)
        .expect("what was agreed on has a canonical form, and prose always")
}

/// Returns a few words about how a run that came to nothing ended.
fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::NoAgreement { reason } => reason.to_string(),
        Outcome::Vetoed { reason, .. } => format!("vetoed: {}", escape::excerpt(reason)),
        Outcome::Agreed { .. }
        | Outcome::Abstained { .. }
        | Outcome::Budget { .. }
        | Outcome::Failed { .. }
        | Outcome::Interrupted => outcome.name().to_owned(),
    }
}

impl<P: ProtocolParams> Protocol for MapReduce<P> {
    type Section = MapReduceSection<PartSection<P>>;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.remark = None;
        match event {
            Event::Started if self.parts == 0 => self.begin(),
            Event::Started => Err(Unexpected::StartedTwice),
            Event::Replied { call, reply } => {
                let inside = CallId { part: 0, ..*call };
                let open = self.open.get_mut(&call.part).ok_or(Unexpected::NotAsked(*call))?;
                let event = Event::Replied { call: inside, reply: reply.clone() };
                let wanted = open.machine.step(&event).map_err(|_| Unexpected::NotAsked(*call))?;
                self.remark = open.machine.remark();
                self.take(call.part, wanted)
            }
            Event::Found { round, .. } => Err(Unexpected::NotSearched(*round)),
            Event::Executed { key, .. } => {
                let parts = self.executing.remove(key).ok_or(Unexpected::NotExecuted(*key))?;
                let mut actions = Vec::new();
                for part in parts {
                    let Some(open) = self.open.get_mut(&part) else { continue };
                    let wanted = open.machine.step(event)?;
                    self.remark = open.machine.remark();
                    actions.extend(self.take(part, wanted)?);
                }
                Ok(actions)
            }
        }
    }

    fn report(&self) -> Report<Self::Section> {
        self.make_report()
    }

    fn remark(&self) -> Option<&'static str> {
        self.remark
    }
}
