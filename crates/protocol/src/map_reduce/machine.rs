//! The state machine of `map_reduce`: runs inside a run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::claims;
use super::part::{list_facts, part_setup};
use super::section::{Fact, MapReduceSection};
use super::state::{Job, MapReduce, Material, OpenPart};
use crate::contract::{
    Action, Ask, CallId, Chunk, Degraded, DegradedKind, Document, Event, NoAgreement, Outcome, Protocol,
    ProtocolParams, Report, Unexpected, tokens,
};
use crate::text::evidence::SplitAnswer;
use crate::text::{Canonical, CanonicalKind, Canonicalizer, escape, one_line};
use crypto::Hasher;

impl<P: ProtocolParams> MapReduce<P> {
    /// Begins as many runs as may be under way at once.
    fn begin(&mut self) -> Result<Vec<Action>, Unexpected> {
        let mut actions = Vec::new();
        while self.open.len() < self.chunk_plan.at_once as usize {
            let Some(job) = self.waiting.pop_front() else { break };
            self.parts += 1;
            let part = self.parts;
            let material = match &job {
                Job::Read(index) => self.material_of_piece(*index),
                Job::Merge(facts) => self.material_of_facts(facts, false),
                Job::Answer => self.material_of_facts(&self.facts, true),
            };
            let mut setup = part_setup(&self.setup, &job, &material);
            // The seed is below 2^53, so that every reader of JSON has it exactly.
            let seed = Hasher::default()
                .part(b"part")
                .part(&self.setup.seed.to_be_bytes())
                .part(&part.to_be_bytes())
                .finish();
            setup.seed = seed.leading_u64() >> 11;
            let mut machine = setup.machine();
            let first = machine.step(&Event::Started)?;
            self.open.insert(part, OpenPart { job, machine });
            actions.extend(self.forward(part, first)?);
        }
        Ok(actions)
    }

    /// Passes on the actions of a run inside this one, and continues where that run has ended.
    fn forward(&mut self, part: u32, part_actions: Vec<Action>) -> Result<Vec<Action>, Unexpected> {
        let mut actions = Vec::new();
        let mut ended = None;
        for action in part_actions {
            match action {
                Action::Ask(ask) => {
                    actions.push(Action::Ask(Ask { call: CallId { part, ..ask.call }, ..ask }));
                }
                Action::Cancel(call) => actions.push(Action::Cancel(CallId { part, ..call })),
                // No document is searched for a piece, as its setup states, and no piece is read by a vote.
                Action::Search(_) | Action::AwaitPermit => {}
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
        let Some(OpenPart { job, machine }) = self.open.remove(&part) else { return Ok(Vec::new()) };
        let report = machine.report();
        if let Job::Answer = job {
            self.answered = Some(report);
            let Outcome::Agreed { how, text, .. } = outcome else { return Ok(vec![Action::Finish(outcome)]) };
            self.split_answer = SplitAnswer::read(&canonical(CanonicalKind::Json, &text).text);
            let text = self.split_answer.text();
            let sha256 = canonical(CanonicalKind::Text, &text).digest;
            return Ok(vec![Action::Finish(Outcome::Agreed { how, text, sha256 })]);
        }
        self.add_effort(&report);
        match job {
            Job::Read(index) => self.record_reading(index, &outcome),
            Job::Merge(facts) => self.record_merge(part, facts, &outcome),
            Job::Answer => {}
        }
        let mut actions = self.begin()?;
        if self.open.is_empty() && self.waiting.is_empty() {
            actions.extend(self.next_step()?);
        }
        Ok(actions)
    }

    /// Returns facts as a run sees them, with or without their numbers.
    fn material_of_facts(&self, numbers: &[usize], is_numbered: bool) -> Material {
        let is_one = self.setup.task.documents.len() == 1;
        let mut facts = Vec::new();
        let mut sentences = Vec::new();
        for number in numbers {
            let Fact { document, quote, .. } = &self.findings[number - 1];
            let quote = one_line(quote);
            let text = if is_one || !is_numbered { quote } else { format!("{document}: {quote}") };
            sentences.push(text.clone());
            facts.push((*number, text));
        }
        let text = if is_numbered { list_facts(&facts) } else { sentences.join("\n") };
        Material { text, facts, sentences }
    }

    /// Returns the places of the sentences that begin in a piece. Each sentence is offered whole, and only where it begins.
    fn sentences_of_piece(&self, index: usize) -> &[Range<usize>] {
        let Chunk { document, start, end } = self.chunk_plan.pieces[index];
        let all = &self.sentences[document];
        let first = all.partition_point(|place| place.start < start);
        let last = all.partition_point(|place| place.start < end);
        &all[first..last]
    }

    fn material_of_piece(&self, index: usize) -> Material {
        let text = &self.setup.task.documents[self.chunk_plan.pieces[index].document].text;
        let places = self.sentences_of_piece(index).iter();
        Material {
            sentences: places.map(|place| one_line(&text[place.clone()])).collect(),
            ..Material::default()
        }
    }

    fn add_effort(&mut self, report: &Report<<P::Machine as Protocol>::Section>) {
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

    fn record_reading(&mut self, index: usize, outcome: &Outcome) {
        self.pieces[index].outcome = Some(outcome.kind());
        let Chunk { document, start, end } = self.chunk_plan.pieces[index];
        let Document { name, text, .. } = &self.setup.task.documents[document];
        let Outcome::Agreed { text: reply, .. } = outcome else {
            let why = format!(
                "bytes {start} to {end} of {} were read by nobody: {}",
                escape::excerpt(name),
                describe_end(outcome)
            );
            self.lost.push(Degraded { kind: DegradedKind::PieceLost, detail: why });
            return;
        };
        let reply = canonical(CanonicalKind::Json, reply).text;
        let (places, nowhere) = claims::quoted_places(&reply, text, self.sentences_of_piece(index));
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
    fn record_merge(&mut self, part: u32, facts: Vec<usize>, outcome: &Outcome) {
        let chosen = match outcome {
            Outcome::Agreed { text, .. } => {
                let text = canonical(CanonicalKind::Json, text).text;
                claims::chosen_facts(&text, &self.material_of_facts(&facts, false).facts)
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
        self.merged.insert(part, chosen);
    }

    /// Continues when all runs of a step have ended.
    fn next_step(&mut self) -> Result<Vec<Action>, Unexpected> {
        let is_first = self.findings.is_empty() && self.merges == 0;
        if is_first {
            self.number_facts();
        } else {
            let merged = std::mem::take(&mut self.merged).into_values().flatten();
            self.facts = merged.chain(std::mem::take(&mut self.alone)).collect();
            self.facts.sort_unstable();
        }
        if self.facts.is_empty() {
            let reason = NoAgreement::NothingFound;
            return Ok(vec![Action::Finish(Outcome::NoAgreement { reason })]);
        }
        let length: u64 = self.facts.iter().map(|number| self.tokens_of(*number)).sum();
        if length > self.chunk_plan.tokens_max {
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
    fn number_facts(&mut self) {
        let mut known = BTreeSet::new();
        for (piece, found) in std::mem::take(&mut self.read) {
            let document = self.chunk_plan.pieces[piece].document;
            for fact in found {
                if known.insert((document, fact.start, fact.end)) {
                    self.findings.push(fact);
                }
            }
        }
        self.facts = (1..=self.findings.len()).collect();
    }

    /// Returns a high estimate of a fact's tokens, with its number and its document's name.
    fn tokens_of(&self, number: usize) -> u64 {
        let finding = &self.findings[number - 1];
        tokens(&finding.quote) + tokens(&finding.document)
    }

    /// Divides the facts into groups that fit into one prompt, in their order.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut room = 0;
        for fact in &self.facts {
            let length = self.tokens_of(*fact);
            match groups.last_mut() {
                Some(group) if length <= room => group.push(*fact),
                Some(_) | None => {
                    groups.push(vec![*fact]);
                    room = self.chunk_plan.tokens_max;
                }
            }
            room = room.saturating_sub(length);
        }
        groups
    }

    /// Keeps as many facts as fit into one prompt, and reports how many do not.
    fn leave_out(&mut self) {
        let mut room = self.chunk_plan.tokens_max;
        let (mut fitting, mut count) = (Vec::new(), 0);
        for fact in std::mem::take(&mut self.facts) {
            let length = self.tokens_of(fact);
            if length <= room {
                fitting.push(fact);
            } else {
                count += 1;
            }
            room = room.saturating_sub(length);
        }
        let detail = format!(
            "{count} facts are left out: chosen from as far as they were, they did not fit into one prompt"
        );
        self.lost.push(Degraded { kind: DegradedKind::FactsLeftOut, detail });
        self.facts = fitting;
    }
}

/// Returns the canonical form of an agreed text, or of prose.
fn canonical(kind: CanonicalKind, text: &str) -> Canonical {
    Canonicalizer::new(&kind.into())
        .canonicalize(text)
        .expect("what was agreed on has a canonical form, and prose always")
}

/// Returns a few words about how a run that came to nothing ended.
fn describe_end(outcome: &Outcome) -> String {
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
    type Section = MapReduceSection<<P::Machine as Protocol>::Section>;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.remark = None;
        match event {
            Event::Started if self.parts == 0 => self.begin(),
            Event::Replied { call, reply } => {
                let inside = CallId { part: 0, ..*call };
                let open = self.open.get_mut(&call.part).ok_or(Unexpected::NotAsked(*call))?;
                let event = Event::Replied { call: inside, reply: reply.clone() };
                let actions = open.machine.step(&event).map_err(|_| Unexpected::NotAsked(*call))?;
                self.remark = open.machine.remark();
                self.forward(call.part, actions)
            }
            Event::Executed { key, .. } => {
                let parts = self.executing.remove(key).ok_or(Unexpected::NotExecuted(*key))?;
                let mut actions = Vec::new();
                for part in parts {
                    let Some(open) = self.open.get_mut(&part) else { continue };
                    let part_actions = open.machine.step(event)?;
                    self.remark = open.machine.remark();
                    actions.extend(self.forward(part, part_actions)?);
                }
                Ok(actions)
            }
            Event::Started | Event::Lost { .. } | Event::Found { .. } | Event::Permitted | Event::Closed => {
                Err(event.into())
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
