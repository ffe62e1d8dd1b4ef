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
use protocol::{CallId, Step};

#[derive(Serialize)]
struct StepMark {
    kind: &'static str,
    words: String,
}

#[derive(Serialize)]
pub(super) struct ShownRound {
    name: String,
    cells: Vec<AgentCell>,
    /// The steps of no agent: passages found, programs and checks, the end.
    others: Vec<ShownStep>,
}

/// The steps of an agent in a round.
#[derive(Serialize)]
struct AgentCell {
    agent: String,
    steps: Vec<ShownStep>,
}

/// A step as the page shows it.
#[derive(Serialize)]
pub(super) struct ShownStep {
    record: u64,
    /// The call, if the step is a reply.
    #[serde(skip)]
    call: Option<CallId>,
    heading: Option<String>,
    marks: Vec<StepMark>,
    tokens: Option<u64>,
    /// Whether the step is only shown when it is opened.
    is_folded: bool,
    text: Blocks,
}

fn is_sample(state: &RunState, call: CallId) -> bool {
    state.opened().setup.is_sample(call)
}

/// Returns the rounds with their steps. A round with samples has a cell for each.
pub(super) fn rounds(state: &RunState, steps: Vec<ShownStep>) -> Vec<ShownRound> {
    let mut rounds: Vec<((u32, u32), ShownRound)> = Vec::new();
    for step in steps {
        let key = match step.call {
            Some(call) => (call.part, call.round),
            // A step of no agent belongs to the round in which it came.
            None => rounds.last().map_or((0, 0), |(key, _)| *key),
        };
        let place = rounds.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            let name = round_name(key.0, key.1);
            rounds.push((key, ShownRound { name, cells: Vec::new(), others: Vec::new() }));
            rounds.len() - 1
        });
        let round = &mut rounds[place].1;
        let Some(call) = step.call else {
            round.others.push(step);
            continue;
        };
        let mut agent = state.agent_name(call.agent).to_owned();
        if is_sample(state, call) {
            "Samples".clone_into(&mut round.name);
            agent = format!("Sample {}, {agent}", call.draft + 1);
        }
        match round.cells.iter_mut().find(|cell| cell.agent == agent) {
            Some(known) => known.steps.push(step),
            None => round.cells.push(AgentCell { agent, steps: vec![step] }),
        }
    }
    rounds.into_iter().map(|(_, round)| round).collect()
}

fn round_name(part: u32, round: u32) -> String {
    match (part, round) {
        (0, 0) => "Before the first round".to_owned(),
        (0, round) => format!("Round {round}"),
        (part, round) => format!("Part {part}, round {round}"),
    }
}

impl ShownStep {
    /// Shows the step of a record. `state` is the one after it, and `answers` holds the last answer of each agent before it.
    pub(super) fn new(
        state: &RunState,
        record: &Record,
        step: TranscriptStep,
        answers: &mut BTreeMap<usize, (Digest, String)>,
    ) -> Self {
        let TranscriptStep { heading, purpose, is_refused, text } = step;
        let (mut call, mut tokens, mut marks) = (None, None, Vec::new());
        if let Entry::Replied(replied) = &record.event {
            (call, tokens) = (Some(replied.call), Some(replied.usage.completion));
            // Samples are all blind, and none of them is a change of another.
            if !is_sample(state, replied.call) {
                marks = mark_reply(state, replied.call, answers);
            }
        }
        if is_refused {
            marks.push(StepMark { kind: "refused", words: "not counted".to_owned() });
        }
        let is_private = call.is_some_and(|call| matches!(call.step, Step::Think | Step::Weigh));
        // The cell names the agent, and its round has a heading.
        let heading = purpose.map(|purpose| capital(&purpose)).or(heading);
        Self {
            record: record.seq,
            call,
            heading: heading.map(|words| escape::terminal(&words)),
            marks,
            tokens,
            is_folded: is_private || is_refused,
            text: Blocks::new(&text),
        }
    }
}

/// Returns the marks of a reply: that it was blind, and that its agent changed its answer.
fn mark_reply(
    state: &RunState,
    call: CallId,
    answers: &mut BTreeMap<usize, (Digest, String)>,
) -> Vec<StepMark> {
    let mut marks = Vec::new();
    if call.step == Step::Envelope && is_blind(state, call) {
        marks.push(StepMark { kind: "blind", words: "blind".to_owned() });
    }
    let report = state.report();
    let now = report.agents.get(call.agent).and_then(|agent| agent.sha256.zip(agent.text.clone()));
    if let Some((sha256, text)) = now {
        if let Some((before, held)) = answers.get(&call.agent)
            && *before != sha256
        {
            let words = format!("moved from “{}” to “{}”", escape::excerpt(held), escape::excerpt(&text));
            marks.push(StepMark { kind: "moved", words });
        }
        answers.insert(call.agent, (sha256, text));
    }
    marks
}
