//! Programs as samples: the inputs on which they are tried, and what their trials show.
//!
//! ```text
//!  task ─► its own examples ─┐
//!  voter ─► further inputs ──┴─► trial of each program in turn ─► no vote for a program that contradicts an example of the task
//!                                                              └─► fingerprints, by which programs are equal
//! ```
//!
//! The input is the setup, one reply, and the results of executions. The output is a request and the fingerprints. The voter that writes
//! inputs sees no program, and no program is written by one who sees inputs that the task does not have.

use std::collections::BTreeMap;

use serde::Serialize;

use super::prompt::{self, SampleForm};
use crate::behaviour::{
    Fingerprints, FunctionInput, InputResult, find_function, find_inputs, fingerprints, read_results,
    trial_source,
};
use crate::contract::{
    AgentSetup, Ask, CallId, Conversation, Executions, ProtocolParams, ReplyShape, Setup, Step, Thinking,
};
use crate::text::CanonicalKind;
use crate::turn::Draft;
use crypto::Digest;

/// The most inputs of a run. Those of the task come first.
const INPUTS_MAX: usize = 12;

/// The most tokens of the reply with inputs. A small model writes without end here, and the calls on the lines before a cut are whole.
pub(super) const INPUT_TOKENS_MAX: u32 = 250;

/// The trials of a run whose answers are programs.
#[derive(Clone, Debug)]
pub(crate) struct Trials {
    /// The function that the task asks for.
    pub(super) function: String,
    /// The call of the voter that writes inputs, while its reply is awaited.
    pub(super) awaits: Option<CallId>,
    inputs: Vec<FunctionInput>,
    /// The number of inputs that are the task's own.
    own_inputs: usize,
    /// What each program did that is a vote, by the number of its sample.
    results: BTreeMap<usize, Vec<InputResult>>,
    compared: Fingerprints,
}

/// The part of a report about the inputs on which programs were tried.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct BehaviourSection {
    /// The function that was called.
    pub function: String,
    /// The inputs, the task's own ones first.
    pub inputs: Vec<TriedInput>,
}

/// An input on which programs were tried.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct TriedInput {
    /// The call as Python.
    pub call: String,
    /// Whether it is in the task; else a model wrote it.
    pub is_of_task: bool,
    /// The result that the task states for it. A program that gives another one is no vote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<String>,
    /// Whether programs are compared by it. One with a stated result tells no votes apart, and one for which most programs return no value
    /// is dropped.
    pub counts: bool,
}

impl Trials {
    /// Makes the trials of a run that has not started, if its answers are programs that are compared by what they do.
    pub(super) fn new<P>(setup: &Setup<P>, voters: &[usize]) -> Option<Self> {
        if setup.canonical.kind != CanonicalKind::Behaviour {
            return None;
        }
        let function = find_function(&setup.task.prompt)?;
        let mut inputs = find_inputs(&setup.task.prompt, &function);
        inputs.truncate(INPUTS_MAX);
        let agent = *voters.first()?;
        let call = CallId { part: 0, round: 1, agent, draft: 0, step: Step::Think, attempt: 0 };
        let (results, compared) = (BTreeMap::new(), Fingerprints::default());
        Some(Self { function, awaits: Some(call), own_inputs: inputs.len(), inputs, results, compared })
    }

    /// Returns the request for further inputs, while they are awaited.
    pub(super) fn ask<P: ProtocolParams>(&self, setup: &Setup<P>, form: SampleForm) -> Option<Ask> {
        let call = self.awaits?;
        let alone = Conversation::new(form.introduction.system(setup, call.agent));
        let words = prompt::inputs(setup, &self.function);
        let draft = Draft::start(Thinking::Free, call, alone, words, ReplyShape::Free);
        let own = &setup.agents[call.agent];
        let agent = AgentSetup { max_tokens: own.max_tokens.min(INPUT_TOKENS_MAX), ..own.clone() };
        Some(draft.ask(&agent, setup.seed))
    }

    /// Takes the inputs that a voter wrote. Its words about their results count for nothing.
    pub(super) fn take_inputs(&mut self, reply: &str) {
        self.awaits = None;
        for input in find_inputs(reply, &self.function) {
            let is_known = self.inputs.iter().any(|known| known.call == input.call);
            if !is_known && self.inputs.len() < INPUTS_MAX {
                self.inputs.push(FunctionInput { stated: None, ..input });
            }
        }
    }

    /// Tries the program of a sample. Returns the reason if it is no vote. If the trial must be made first, nothing of this counts.
    pub(super) fn try_program(
        &mut self,
        sample: usize,
        program: &str,
        executions: &Executions,
    ) -> Option<String> {
        if self.inputs.is_empty() {
            return None;
        }
        let trial = executions.trial(trial_source(program, &self.function, &self.inputs))?;
        let results = read_results(program, &self.inputs, trial);
        let fault = self.find_fault(&results);
        if fault.is_none() {
            self.results.insert(sample, results);
            self.compared = fingerprints(&self.inputs, &self.results);
        }
        fault
    }

    /// Returns the reason if a program with these results is no vote.
    fn find_fault(&self, results: &[InputResult]) -> Option<String> {
        for (FunctionInput { call, stated, .. }, result) in self.inputs.iter().zip(results) {
            let (Some(stated), did) = (stated, result) else { continue };
            match did {
                InputResult::Value(_) | InputResult::Unknown(_) => {}
                InputResult::Contradicts(shown) => {
                    return Some(format!("`{call}` returns {shown}, and the task says {stated}"));
                }
                InputResult::Raised(_) if stated == "None" => {}
                InputResult::Raised(error) => {
                    return Some(format!("`{call}` raises {error}, and the task says {stated}"));
                }
            }
        }
        let first = results.first()?;
        let is_unknown = results.iter().all(|result| matches!(result, InputResult::Unknown(_)));
        if is_unknown { Some(format!("what it does cannot be compared: {}", first.shown())) } else { None }
    }

    /// Returns why the program of a sample counts for nothing although it contradicts no example, if it does.
    pub(super) fn why_not_compared(&self, sample: usize) -> Option<String> {
        let results = self.results.get(&sample)?;
        if self.fingerprints()?.contains_key(&sample) {
            return None;
        }
        for ((input, result), counts) in self.inputs.iter().zip(results).zip(&self.compared.counts) {
            if let (InputResult::Unknown(why), true) = (result, counts) {
                return Some(format!("what it does with `{}` cannot be compared: {why}", input.call));
            }
        }
        None
    }

    /// Returns the fingerprints by which programs are equal; `None` if there is no input by which they can be compared.
    pub(super) fn fingerprints(&self) -> Option<&BTreeMap<usize, Digest>> {
        if self.compared.counts.contains(&true) { Some(&self.compared.of_programs) } else { None }
    }

    /// Returns what the program of a sample did with each input, in words; empty if it was not tried.
    pub(super) fn shown_results(&self, sample: usize) -> Vec<String> {
        let results = self.results.get(&sample).map(Vec::as_slice).unwrap_or_default();
        results.iter().map(|result| result.shown().to_owned()).collect()
    }

    /// Makes the section of the report.
    pub(super) fn section(&self) -> BehaviourSection {
        let mut inputs = Vec::new();
        for (number, FunctionInput { call, stated, .. }) in self.inputs.iter().enumerate() {
            let counts = self.compared.counts.get(number).copied().unwrap_or(false);
            let (call, stated, is_of_task) = (call.clone(), stated.clone(), number < self.own_inputs);
            inputs.push(TriedInput { call, is_of_task, stated, counts });
        }
        BehaviourSection { function: self.function.clone(), inputs }
    }
}
