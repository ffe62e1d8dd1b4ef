//! The state machine: runs inside a run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::claims::{self, Fact, Said};
use super::prompt;
use super::report::{Claim, Finding, PieceReport};
use super::{Piece, Spread};
use crate::crypto::Hasher;
use crate::protocol::plan::tokens;
use crate::protocol::{
    Action, AgentReport, Ask, CallId, Degraded, Document, Event, NoAgreement, Outcome, Params, Protocol,
    Report, Setup, Task, Unexpected,
};
use crate::text::{CanonicalKind, CanonicalRule, quote};

/// What a run inside is for.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// It reads this piece.
    Read(usize),
    /// It makes fewer of these points.
    Merge(Vec<Point>),
    /// It answers from all points.
    Answer,
}

/// Something to answer from: a fact, or what several were merged into.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Point {
    text: String,
    /// The numbers of the findings behind it, from 1.
    findings: Vec<usize>,
}

/// A run under way.
struct Open {
    job: Job,
    machine: Box<dyn Protocol>,
}

/// One run of `map_reduce`; see the module's documentation.
pub struct MapReduce {
    pub(super) setup: Setup,
    spread: Spread,
    open: BTreeMap<u32, Open>,
    /// What is still to be done before the next step.
    waiting: VecDeque<Job>,
    parts: u32,
    /// What there is to answer from.
    points: Vec<Point>,
    /// What the merges under way have brought so far, by their part.
    merged: BTreeMap<u32, Vec<Point>>,
    pub(super) pieces: Vec<PieceReport>,
    /// Of each piece that has been read, its facts; kept apart until all are there, since they end in any order.
    read: BTreeMap<usize, Vec<Finding>>,
    pub(super) findings: Vec<Finding>,
    pub(super) merges: u32,
    pub(super) claims: Vec<Claim>,
    pub(super) not_found: Option<String>,
    pub(super) unproven: usize,
    /// Numbers in the answer that are no fact's.
    pub(super) unknown: Vec<usize>,
    pub(super) lost: Vec<Degraded>,
    pub(super) parts_degraded: Vec<&'static str>,
    /// What each agent took in the runs that have ended, but for the last.
    pub(super) efforts: Vec<AgentReport>,
    /// The report of the answering run, once it has ended.
    answered: Option<Report>,
    remark: Option<&'static str>,
    outcome: Option<Outcome>,
}

/// Returns the setup of a run inside this one; `facts` is what it works from, where it reads no piece.
pub(super) fn part_setup(setup: &Setup, job: &Job, facts: &str) -> Setup {
    let question = setup.task.prompt.trim();
    let (prompt, document) = match job {
        Job::Read(index) => {
            let (name, text) = piece(setup, *index);
            let count = setup.spread.as_ref().map_or(0, |spread| spread.pieces.len());
            (
                prompt::read(question, index + 1, count),
                Document { name, text: text.to_owned(), redacted: false },
            )
        }
        Job::Merge(_) => (prompt::merge(question), of_facts(facts)),
        Job::Answer => (prompt::answer(question), of_facts(facts)),
    };
    let mut params = setup.params.clone();
    match &mut params {
        Params::Pair(params) => params.constraints.clear(),
        Params::Council(params) => params.constraints.clear(),
        Params::Panel(params) => params.constraints.clear(),
    }
    Setup {
        roleset: setup.roleset.clone(),
        task: Task { prompt, documents: vec![document], is_searched: false },
        seed: setup.seed,
        agents: setup.agents.clone(),
        arbiter: setup.arbiter.clone(),
        canonical: CanonicalRule { kind: CanonicalKind::Text, choices: Vec::new() },
        params,
        rules: setup.rules.clone(),
        spread: None,
    }
}

fn of_facts(facts: &str) -> Document {
    Document { name: "facts".to_owned(), text: facts.to_owned(), redacted: false }
}

/// Returns a piece's document and text.
fn piece(setup: &Setup, index: usize) -> (String, &str) {
    let spread = setup.spread.as_ref();
    let found = spread.and_then(|spread| spread.pieces.get(index)).and_then(|piece| {
        let document = setup.task.documents.get(piece.document)?;
        Some((document.name.clone(), document.text.get(piece.start..piece.end)?))
    });
    // A setup is checked before there is a machine.
    found.unwrap_or_default()
}

impl MapReduce {
    /// Makes the machine of a setup that is spread and passes [`Setup::check`].
    #[must_use]
    pub fn new(setup: Setup, spread: Spread) -> Self {
        let report = |piece: &Piece| PieceReport {
            document: setup.task.documents.get(piece.document).map_or_else(String::new, |d| d.name.clone()),
            start: piece.start,
            end: piece.end,
            outcome: None,
        };
        Self {
            open: BTreeMap::new(),
            waiting: (0..spread.pieces.len()).map(Job::Read).collect(),
            parts: 0,
            points: Vec::new(),
            merged: BTreeMap::new(),
            pieces: spread.pieces.iter().map(report).collect(),
            read: BTreeMap::new(),
            findings: Vec::new(),
            merges: 0,
            claims: Vec::new(),
            not_found: None,
            unproven: 0,
            unknown: Vec::new(),
            lost: Vec::new(),
            parts_degraded: Vec::new(),
            efforts: Vec::new(),
            answered: None,
            remark: None,
            outcome: None,
            setup,
            spread,
        }
    }

    /// The report of the run that answers, under way or at its end.
    pub(super) fn last_report(&self) -> Option<Report> {
        let under_way = self.open.values().find(|open| matches!(open.job, Job::Answer));
        self.answered.clone().or_else(|| under_way.map(|open| open.machine.report()))
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Agreed { .. }))
    }

    /// Begins as many runs as there may be at once.
    fn begin(&mut self) -> Result<Vec<Action>, Unexpected> {
        let mut actions = Vec::new();
        while self.open.len() < self.spread.at_once as usize {
            let Some(job) = self.waiting.pop_front() else { break };
            self.parts += 1;
            let part = self.parts;
            let facts = match &job {
                Job::Read(_) => String::new(),
                Job::Merge(points) => list(points),
                Job::Answer => list(&self.points),
            };
            let mut setup = part_setup(&self.setup, &job, &facts);
            // Below 2^53, so that every reader of JSON has it exactly.
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

    /// Passes on what a run inside wants, and goes on where it has ended.
    fn take(&mut self, part: u32, wanted: Vec<Action>) -> Result<Vec<Action>, Unexpected> {
        let mut actions = Vec::new();
        let mut ended = None;
        for action in wanted {
            match action {
                Action::Ask(ask) => {
                    actions.push(Action::Ask(Ask { call: CallId { part, ..ask.call }, ..ask }));
                }
                Action::Cancel(call) => actions.push(Action::Cancel(CallId { part, ..call })),
                // Nothing is searched in a piece: the setup says so.
                Action::Search(_) => {}
                Action::Finish(outcome) => ended = Some(outcome),
            }
        }
        if let Some(outcome) = ended {
            actions.extend(self.close(part, outcome)?);
        }
        Ok(actions)
    }

    /// Takes the result of a run inside.
    fn close(&mut self, part: u32, outcome: Outcome) -> Result<Vec<Action>, Unexpected> {
        let Some(Open { job, machine }) = self.open.remove(&part) else { return Ok(Vec::new()) };
        let report = machine.report();
        if let Job::Answer = job {
            if let Outcome::Agreed { text, .. } = &outcome {
                let (said, not_found) = claims::answer(text, self.points.len());
                self.unknown = said.iter().flat_map(|said| said.unknown.iter().copied()).collect();
                self.claims = said.into_iter().map(|said| self.claim(said)).collect();
                self.not_found = not_found;
            }
            self.answered = Some(report);
            return Ok(self.finish(outcome));
        }
        self.count(&report);
        match job {
            Job::Read(index) => self.has_read(index, &outcome),
            Job::Merge(points) => self.has_merged(part, points, &outcome),
            Job::Answer => {}
        }
        let mut actions = self.begin()?;
        if self.open.is_empty() && self.waiting.is_empty() {
            actions.extend(self.next_step()?);
        }
        Ok(actions)
    }

    fn claim(&self, said: Said) -> Claim {
        Claim { text: said.text, findings: behind(&self.points, &said.numbers) }
    }

    fn count(&mut self, report: &Report) {
        let kinds: BTreeSet<&str> = report.degraded.iter().map(|degraded| degraded.kind).collect();
        self.parts_degraded.extend(kinds);
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
        self.pieces[index].outcome = Some(outcome.name());
        let (document, text) = piece(&self.setup, index);
        let Piece { start, end, .. } = self.spread.pieces[index];
        let Outcome::Agreed { text: said, .. } = outcome else {
            let why = format!(
                "bytes {start} to {end} of {} were read by nobody: {}",
                quote::excerpt(&document),
                told(outcome)
            );
            self.lost.push(Degraded { kind: "piece_lost", detail: why });
            return;
        };
        let mut found = Vec::new();
        for fact in claims::facts(said, text) {
            match fact {
                Fact::Proven(claim, place) => found.push(Finding {
                    claim,
                    document: document.clone(),
                    start: start + place.start,
                    end: start + place.end,
                    quote: text[place].to_owned(),
                }),
                Fact::Unproven(_) => self.unproven += 1,
            }
        }
        self.read.insert(index, found);
    }

    /// Takes fewer facts in place of these; where none came, these stay as they are.
    fn has_merged(&mut self, part: u32, points: Vec<Point>, outcome: &Outcome) {
        let text = match outcome {
            Outcome::Agreed { text, .. } => text.as_str(),
            Outcome::NoAgreement { .. }
            | Outcome::Vetoed { .. }
            | Outcome::Budget { .. }
            | Outcome::Failed { .. }
            | Outcome::Interrupted => "",
        };
        let merged = claims::merged(text, points.len())
            .into_iter()
            .map(|said| Point { findings: behind(&points, &said.numbers), text: said.text });
        // What came from nowhere is nothing to answer from.
        let merged: Vec<Point> = merged.filter(|point| !point.findings.is_empty()).collect();
        self.merged.insert(part, if merged.is_empty() { points } else { merged });
    }

    /// Goes on when all runs of a step have ended.
    fn next_step(&mut self) -> Result<Vec<Action>, Unexpected> {
        let before = list_tokens(&self.points);
        let is_first = self.points.is_empty() && self.merges == 0;
        if is_first {
            self.number();
        } else {
            self.points = std::mem::take(&mut self.merged).into_values().flatten().collect();
        }
        if self.points.is_empty() {
            let reason = NoAgreement::NothingFound;
            return Ok(self.finish(Outcome::NoAgreement { reason }));
        }
        let after = list_tokens(&self.points);
        if after > self.spread.tokens_max {
            let groups = self.groups();
            let shrinks = is_first || after < before;
            if shrinks && groups.iter().any(|group| group.len() > 1) {
                self.merges += 1;
                self.waiting = groups.into_iter().map(Job::Merge).collect();
                return self.begin();
            }
            self.leave_out();
        }
        self.waiting.push_back(Job::Answer);
        self.begin()
    }

    /// Gives the facts of all pieces their numbers; words that two pieces share are read once.
    fn number(&mut self) {
        let mut known = BTreeMap::new();
        for (piece, found) in std::mem::take(&mut self.read) {
            let document = self.spread.pieces[piece].document;
            for finding in found {
                // One sentence may say several things to its reader.
                if *known.entry((document, finding.start, finding.end)).or_insert(piece) == piece {
                    self.findings.push(finding);
                }
            }
        }
        let point = |(index, finding): (usize, &Finding)| Point {
            text: format!("{} ({})", finding.claim, quote::json_string(&finding.quote)),
            findings: vec![index + 1],
        };
        self.points = self.findings.iter().enumerate().map(point).collect();
    }

    /// Shares the points out among prompts, in their order.
    fn groups(&self) -> Vec<Vec<Point>> {
        let mut groups: Vec<Vec<Point>> = Vec::new();
        let mut room = 0;
        for point in &self.points {
            let length = tokens(&point.text);
            if let Some(group) = groups.last_mut().filter(|_| length <= room) {
                group.push(point.clone());
            } else {
                groups.push(vec![point.clone()]);
                room = self.spread.tokens_max;
            }
            room = room.saturating_sub(length);
        }
        groups
    }

    /// Keeps as many points as fit into one prompt, and tells which do not.
    fn leave_out(&mut self) {
        let mut room = self.spread.tokens_max;
        let fits = |point: &Point| {
            let length = tokens(&point.text);
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        };
        let (kept, left): (Vec<Point>, Vec<Point>) =
            std::mem::take(&mut self.points).into_iter().partition(fits);
        let count: usize = left.iter().map(|point| point.findings.len()).sum();
        let detail = format!(
            "{count} facts are left out: merged as far as they were, they did not fit into one prompt"
        );
        self.lost.push(Degraded { kind: "facts_left_out", detail });
        self.points = kept;
    }

    fn finish(&mut self, outcome: Outcome) -> Vec<Action> {
        self.outcome = Some(outcome.clone());
        vec![Action::Finish(outcome)]
    }
}

/// Returns the findings behind the points of these numbers.
fn behind(points: &[Point], numbers: &[usize]) -> Vec<usize> {
    let all = numbers.iter().flat_map(|number| points[number - 1].findings.iter().copied());
    all.collect::<BTreeSet<usize>>().into_iter().collect()
}

/// Says in a few words how a run inside ended that came to nothing.
fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::NoAgreement { reason } => reason.to_string(),
        Outcome::Vetoed { reason, .. } => format!("vetoed: {}", quote::excerpt(reason)),
        Outcome::Agreed { .. } | Outcome::Budget { .. } | Outcome::Failed { .. } | Outcome::Interrupted => {
            outcome.name().to_owned()
        }
    }
}

fn list(points: &[Point]) -> String {
    prompt::list(points.iter().map(|point| point.text.as_str()))
}

fn list_tokens(points: &[Point]) -> u64 {
    points.iter().map(|point| tokens(&point.text)).sum()
}

impl Protocol for MapReduce {
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
        }
    }

    fn report(&self) -> Report {
        self.make_report()
    }

    fn remark(&self) -> Option<&'static str> {
        self.remark
    }
}
