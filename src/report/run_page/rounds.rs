//! The rounds of a run, each with a cell for each agent.
//!
//! The input is the steps of the transcript. The output is what each agent did in each round, with marks for what matters: a draft that no
//! other had seen, a change of the answer, and a reply that did not count.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine::RunState;
use crate::journal::{Entry, Record};
use crate::page::Blocks;
use crate::report::form::capital;
use crate::report::transcript::{TranscriptStep, is_blind};
use crypto::Digest;
use protocol::text::escape;
use protocol::{CallId, Params, Step};

/// The place of a step on the page.
#[derive(Clone, Debug)]
pub(super) struct At {
    record: u64,
    /// The call, if the step is a reply.
    call: Option<CallId>,
    marks: Vec<StepMark>,
    tokens: Option<u64>,
}

/// A mark of a step.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StepMark {
    kind: &'static str,
    words: String,
}

/// A round.
#[derive(Serialize)]
pub(super) struct Round {
    name: String,
    cells: Vec<Cell>,
    /// The steps of no agent: passages found, programs and checks, the end.
    others: Vec<ShownStep>,
}

/// The steps of an agent in a round.
#[derive(Serialize)]
struct Cell {
    agent: String,
    steps: Vec<ShownStep>,
}

/// A step as the page shows it.
#[derive(Serialize)]
struct ShownStep {
    record: u64,
    heading: Option<String>,
    marks: Vec<StepMark>,
    tokens: Option<u64>,
    /// Whether the step is only shown when it is opened.
    is_folded: bool,
    text: Blocks,
}

/// The answers of the agents, as far as the run was followed.
#[derive(Default)]
pub(super) struct Moves {
    held: BTreeMap<usize, (Digest, String)>,
}

impl Moves {
    /// Returns the place of a record's step. `state` is the one after it.
    pub(super) fn place(&mut self, state: &RunState, record: &Record) -> At {
        let mut at = At { record: record.seq, call: None, marks: Vec::new(), tokens: None };
        let Entry::Replied(replied) = &record.event else { return at };
        let call = replied.call;
        (at.call, at.tokens) = (Some(call), Some(replied.usage.completion));
        // The samples of a vote are all blind, and none of them is a change of another.
        if is_vote(state) {
            return at;
        }
        if call.step == Step::Envelope && is_blind(state, call) {
            at.marks.push(StepMark { kind: "blind", words: "blind".to_owned() });
        }
        let report = state.report();
        let now = report.agents.get(call.agent).and_then(|agent| agent.sha256.zip(agent.text.clone()));
        if let Some((sha256, text)) = now {
            if let Some((before, held)) = self.held.get(&call.agent)
                && *before != sha256
            {
                let words = format!("moved from “{}” to “{}”", escape::excerpt(held), escape::excerpt(&text));
                at.marks.push(StepMark { kind: "moved", words });
            }
            self.held.insert(call.agent, (sha256, text));
        }
        at
    }
}

fn is_vote(state: &RunState) -> bool {
    matches!(state.opened().setup.params, Params::Vote(_))
}

/// Returns the rounds with their steps. The samples of a vote are one round, with a cell for each.
pub(super) fn rounds(state: &RunState, steps: Vec<(At, TranscriptStep)>) -> Vec<Round> {
    let is_vote = is_vote(state);
    let mut rounds: Vec<((u32, u32), Round)> = Vec::new();
    for (at, step) in steps {
        let key = match at.call {
            Some(call) => (call.part, call.round),
            // A step of no agent belongs to the round in which it came.
            None => rounds.last().map_or((0, 0), |(key, _)| *key),
        };
        let place = rounds.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            let name = name(key, is_vote);
            rounds.push((key, Round { name, cells: Vec::new(), others: Vec::new() }));
            rounds.len() - 1
        });
        let round = &mut rounds[place].1;
        let call = at.call;
        let shown = ShownStep::new(at, step);
        match call {
            None => round.others.push(shown),
            Some(call) => {
                let agent = state.agent_name(call.agent);
                let agent =
                    if is_vote { format!("Sample {}, {agent}", call.draft + 1) } else { agent.to_owned() };
                match round.cells.iter_mut().find(|cell| cell.agent == agent) {
                    Some(known) => known.steps.push(shown),
                    None => round.cells.push(Cell { agent, steps: vec![shown] }),
                }
            }
        }
    }
    rounds.into_iter().map(|(_, round)| round).collect()
}

fn name((part, round): (u32, u32), is_vote: bool) -> String {
    match (part, round) {
        _ if is_vote => "Samples".to_owned(),
        (0, 0) => "Before the first round".to_owned(),
        (0, round) => format!("Round {round}"),
        (part, round) => format!("Part {part}, round {round}"),
    }
}

impl ShownStep {
    fn new(
        At { record, call, mut marks, tokens }: At,
        TranscriptStep { heading, purpose, is_refused, text }: TranscriptStep,
    ) -> Self {
        if is_refused {
            marks.push(StepMark { kind: "refused", words: "not counted".to_owned() });
        }
        let is_private = call.is_some_and(|call| matches!(call.step, Step::Think | Step::Weigh));
        Self {
            record,
            // The cell names the agent, and its round has a heading.
            heading: purpose
                .map(|purpose| capital(&purpose))
                .or(heading)
                .map(|words| escape::terminal(&words)),
            marks,
            tokens,
            is_folded: is_private || is_refused,
            text: Blocks::new(&text),
        }
    }
}
