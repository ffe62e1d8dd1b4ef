//! A program as an answer, in every protocol whose agents may write one.
//!
//! The input is a reply, and the results of programs that were run. The output is the request for a program, and the answer of one.

use crate::contract::Executions;
use crate::text::{CanonicalKind, CanonicalRule, DecimalSign, ProgramFault, program};

/// Returns the request for a program that works the task out.
///
/// The form with a function and without input is the one that models have read most often. Asked for "a program", the 1.5B model of the
/// quick start reads input that never comes.
pub(crate) fn program_request() -> &'static str {
    "Write a Python function solution() that works out the answer from the numbers in the task and returns it. \
     It has no parameters, reads no input, and uses at most the modules math, itertools, re, datetime and \
     collections. It is run, and the value that it returns is your final answer. Write the function in one \
     ```python block, and nothing else."
}

/// The answer of a program.
pub(crate) struct ProgramAnswer {
    /// The program as it is run.
    pub(crate) source: String,
    /// The value that it printed, as a person would write it here. A value that is no number remains as it is, and is refused later where
    /// a number is wanted.
    pub(crate) text: String,
}

/// Returns the answer of the program in a reply.
///
/// # Errors
///
/// [`ProgramFault`], if there is no program or it gives no answer. Without a result yet, nothing of this check counts.
pub(crate) fn program_answer(
    reply: &str,
    rule: &CanonicalRule,
    executions: &Executions,
) -> Result<ProgramAnswer, ProgramFault> {
    let source = program::runnable(reply)?;
    let result = executions.program(&source).ok_or(ProgramFault::Silent)?;
    let printed = program::printed(result.end, &result.output)?;
    let sign = rule.decimal.unwrap_or(DecimalSign::Point);
    let number = (rule.kind == CanonicalKind::Number).then(|| program::number(printed, sign)).flatten();
    let text = number.unwrap_or_else(|| printed.to_owned());
    Ok(ProgramAnswer { source, text })
}
