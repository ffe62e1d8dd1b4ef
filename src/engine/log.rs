//! The log: how long each call took, and the rounds of a council. It is for people who watch a service; a journal
//! need not hold any of it.

use std::time::Duration;

use tracing::{debug, info, warn};

use super::RunState;
use crate::journal::Replied;
use protocol::core::{Endpoint, Usage};
use protocol::council::ConsensusResult;
use protocol::text::{counted, escape};
use protocol::{Params, Section, Step};

/// Logs the resources that a call took, for a person who asks why a run is slow or expensive.
pub(super) fn log_call(state: &RunState, replied: &Replied, usage: Usage, took: Duration) {
    let (agent, call) = (state.agent_name(replied.call.agent), replied.call.to_string());
    let server = state.endpoints().get(replied.call.agent).map(Endpoint::label).unwrap_or_default();
    let Usage { prompt, cached, completion, .. } = usage;
    let (requests, milliseconds) = (replied.attempts, took.as_millis());
    info!(%agent, %call, %server, milliseconds, requests, prompt, cached, completion, "a model answered");
}

/// Logs the beginning of a run.
pub(super) fn log_start(state: &RunState) {
    if is_council(state) {
        let prompt = escape::excerpt(&state.opened().setup.task.prompt);
        info!("Starting consensus process for prompt: \"{prompt}\"");
        debug!("=== Starting Round 1 ===");
    }
}

/// Logs a reply, and the verdict if the reply completes a round. `before` is the number of rounds that were complete.
pub(super) fn log_reply(state: &RunState, replied: &Replied, took: Duration, before: usize) {
    if replied.call.step == Step::Envelope {
        let confidence = match replied.reply.yes {
            Some(yes) => Some(f64::from(yes) / 10_000.0),
            None => claimed_confidence(&replied.reply.text),
        };
        let confidence = confidence.map_or_else(|| "none".to_owned(), |value| format!("{value:.2}"));
        let (name, ms) = (state.agent_name(replied.call.agent), took.as_millis());
        debug!("{name} completed in {ms}ms (confidence: {confidence})");
    }
    let Section::Council(section) = state.report().section else { return };
    let Some(round) = section.rounds.last() else { return };
    if section.rounds.len() <= before {
        return;
    }
    if is_weighed(state) {
        let aggregate = section.weights.aggregate(round.confidences);
        info!("Aggregate confidence: {aggregate} (threshold: {})", section.threshold);
    }
    let number = round.round;
    match &round.result {
        ConsensusResult::Reached { aggregate_confidence: Some(confidence), .. } => {
            info!("Consensus reached in round {number} with confidence {confidence}");
        }
        ConsensusResult::Reached { aggregate_confidence: None, .. } => {
            info!("Consensus reached in round {number}");
        }
        ConsensusResult::Vetoed { reason, .. } => {
            warn!("Vetoed in round {number}: {}", escape::excerpt(reason));
        }
        ConsensusResult::NotReached { .. } => warn!("No consensus after {}", counted(number, "round")),
        ConsensusResult::NeedsRevision { .. } => debug!("=== Starting Round {} ===", number + 1),
    }
}

/// Returns the confidence that a reply states itself.
fn claimed_confidence(reply: &str) -> Option<f64> {
    let form: serde_json::Value = serde_json::from_str(reply).ok()?;
    form["confidence"].as_f64()
}

/// Returns the number of complete rounds of a council, or `None` if the run is not a council.
pub(super) fn count_rounds(state: &RunState) -> Option<usize> {
    if !is_council(state) {
        return None;
    }
    let Section::Council(section) = state.report().section else { return None };
    Some(section.rounds.len())
}

/// Returns true if the weighted confidence of a council decides.
fn is_weighed(state: &RunState) -> bool {
    matches!(&state.opened().setup.params, Params::Council(council) if council.talk.is_always())
}

fn is_council(state: &RunState) -> bool {
    matches!(state.opened().setup.params, Params::Council(_))
}
