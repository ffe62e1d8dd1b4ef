//! What a Python function does: the inputs that it is tried on, and the results by which programs are compared.
//!
//! ```text
//!  task, model ─► inputs ─┐
//!  reply ─► program ──────┴─► source of a trial ─► printed text ─► results ─► fingerprint
//! ```
//!
//! The input is texts: a task, replies, and the text that a trial has printed. The output is plain data. Nothing is executed here. An input is made
//! of literal values alone, which are parsed and written anew, so no expression of a model is evaluated outside of a trial.

mod input;
mod program;
mod trial;

pub(crate) use input::{FunctionInput, find_function, find_inputs};
pub(crate) use program::find_program;
pub(crate) use trial::{Fingerprints, InputResult, fingerprints, read_results, trial_source};
pub use trial::{trial_calls, trial_results, zero_results};

/// What a task says about the function that it asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatedTrials {
    /// The name of the function.
    pub function: String,
    /// The number of calls for which the task states the result.
    pub results: usize,
}

/// Returns what a task says about the function that it asks for; `None` if it names none, or several.
pub fn stated_trials(task: &str) -> Option<StatedTrials> {
    let function = find_function(task)?;
    let results = find_inputs(task, &function).iter().filter(|input| input.stated.is_some()).count();
    Some(StatedTrials { function, results })
}
