//! The parts of prompts and replies that protocols share: the mark around text from untrusted authors, and a program as an answer.
//!
//! The input is a call, or a program with the results of programs that were run. The output is a mark, the request for a program, and its
//! answer.

use crate::contract::{CallId, Executions};
use crate::text::{CanonicalKind, CanonicalRule, DecimalSign, ProgramFault, program};
use crypto::Hasher;

/// Returns the mark around quoted text: eight letters that no author could know beforehand.
///
/// The mark has letters, not digits: hex digits near a text have been seen to leak into answers.
pub(crate) fn mark(seed: u64, call: CallId) -> String {
    let digest =
        Hasher::default().part(b"mark").part(&seed.to_be_bytes()).part(call.to_string().as_bytes()).finish();
    let mut bits = digest.leading_u64();
    let mut letters = String::from("data-");
    for _ in 0..8 {
        // There are 26 letters, and the remainder is below 26, so it fits.
        letters.push(char::from(b'a' + u8::try_from(bits % 26).unwrap_or(0)));
        bits /= 26;
    }
    letters
}

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

/// Returns the value that a program printed, as a person would write it here. A value that is no number remains as it is, and is refused
/// later where a number is wanted.
///
/// # Errors
///
/// [`ProgramFault`], if the program gives no answer. Without a result yet, nothing of this check counts.
pub(crate) fn program_answer(
    source: &str,
    rule: &CanonicalRule,
    executions: &Executions,
) -> Result<String, ProgramFault> {
    let result = executions.program(source).ok_or(ProgramFault::Silent)?;
    let printed = program::last_printed_line(result.end, &result.output)?;
    let sign = rule.decimal.unwrap_or(DecimalSign::Point);
    let number = if rule.kind == CanonicalKind::Number { program::number(printed, sign) } else { None };
    Ok(number.unwrap_or_else(|| printed.to_owned()))
}
