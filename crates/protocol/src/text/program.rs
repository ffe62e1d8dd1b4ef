//! A program as an answer: a Python function that a model wrote, and the value that it prints.
//!
//! The input is a reply, and later the output of its program. The output is the program as it is run, and the printed value. A program
//! that only repeats a value says nothing about how the value was found, so it is refused. Nothing is executed here.

use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{CmpOp, Comprehension, Expr, ModModule, Operator, Stmt};
use ruff_python_parser::Parsed;
use thiserror::Error;

use super::decimal::{Decimal, DecimalSign};
use super::{counted, escape};
use crate::core::CommandEnd;

/// The name of the function that gives the answer.
pub(crate) const FUNCTION: &str = "solution";

/// The most characters of a program.
const CHARS_MAX: usize = 20_000;

/// The digits of a number with a fraction that count. Arithmetic with 53 bits has 15, and loses some on the way.
const DIGITS: usize = 12;

/// The most characters of an error that a program's author reads. The last line of a traceback says what failed.
const ERROR_CHARS_MAX: usize = 400;

/// Functions that give back what they are given.
const PASSING_ON: [&str; 6] = ["print", "str", "int", "float", "round", FUNCTION];

/// Functions that end the program, and the error by which they do it.
const ENDING: [&str; 3] = ["exit", "quit", "SystemExit"];

/// A reason why a program gives no answer, in words for its author.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum ProgramFault {
    /// There is no program.
    #[error("there is no program in it; write one Python function `solution()` in a ```python block")]
    Missing,
    /// There is more than one program.
    #[error("it has {}; write one program in one ```python block", counted(*.0, "block"))]
    Several(usize),
    /// The token limit cut the program off.
    #[error("it was cut off at the limit of {0} tokens; write a much shorter program")]
    Cut(u32),
    /// The program is too long.
    #[error("the program has more than {CHARS_MAX} characters")]
    TooLong,
    /// The program cannot be parsed.
    #[error("the program is not valid Python: {0}")]
    NotPython(String),
    /// The program neither prints nor defines the function.
    #[error("the program prints nothing and has no function `solution()` that returns the answer")]
    NoResult,
    /// The program only repeats a value.
    #[error("the program calculates nothing; it must work the answer out from the numbers of the task")]
    Literal,
    /// The program lacks the function that the task asks for.
    #[error("the program has no function `{0}`, which the task asks for")]
    NoFunction(String),
    /// The program has names that begin as those do with which its results are shown.
    #[error("the program has a name that begins with `{0}`, which is kept for showing its results")]
    OwnName(&'static str),
    /// The program failed.
    #[error("the program {end}{}", quote(.last_words))]
    Failed {
        /// The way in which it ended.
        end: CommandEnd,
        /// The last line of its output, which may be empty.
        last_words: String,
    },
    /// The program printed nothing.
    #[error("the program ran and printed nothing; it must print the answer")]
    Silent,
}

/// Returns the last words of a program that failed, as the end of a sentence.
fn quote(last_words: &str) -> String {
    if last_words.is_empty() { String::new() } else { format!("; it printed: {last_words}") }
}

/// Returns the program of a reply as it is run: its one block of code, or the whole reply if there is no block. A function `solution`
/// that nothing prints is called at the end.
///
/// # Errors
///
/// [`ProgramFault`], if the reply has no program that could give an answer.
pub(crate) fn runnable_source(reply: &str) -> Result<String, ProgramFault> {
    let mut blocks = code_blocks(reply);
    let source = match blocks.len() {
        0 => return Err(ProgramFault::Missing),
        1 => blocks.swap_remove(0),
        count => return Err(ProgramFault::Several(count)),
    };
    let parsed = parse(&source)?;
    let body = &parsed.syntax().body;
    if body.is_empty() {
        return Err(ProgramFault::Missing);
    }
    let mut found = ProgramParts::default();
    found.visit_body(body);
    if !found.calculates {
        return Err(ProgramFault::Literal);
    }
    let defines =
        body.iter().any(|stmt| matches!(stmt, Stmt::FunctionDef(def) if def.name.as_str() == FUNCTION));
    let prints =
        body.iter().filter(|stmt| !matches!(stmt, Stmt::FunctionDef(_) | Stmt::ClassDef(_))).any(prints);
    match (prints, defines) {
        (true, _) => Ok(format!("{source}\n")),
        (false, true) => Ok(format!("{source}\nprint({FUNCTION}())\n")),
        (false, false) => Err(ProgramFault::NoResult),
    }
}

/// Parses a program.
///
/// # Errors
///
/// [`ProgramFault::TooLong`] or [`ProgramFault::NotPython`].
pub(crate) fn parse(source: &str) -> Result<Parsed<ModModule>, ProgramFault> {
    if source.chars().count() > CHARS_MAX {
        return Err(ProgramFault::TooLong);
    }
    ruff_python_parser::parse_module(source)
        .map_err(|why| ProgramFault::NotPython(escape::excerpt(&why.to_string())))
}

/// Returns the value that a program printed: the last line of its output that is not empty.
///
/// # Errors
///
/// [`ProgramFault::Failed`] or [`ProgramFault::Silent`].
pub(crate) fn last_printed_line(end: CommandEnd, output: &str) -> Result<&str, ProgramFault> {
    let last = last_line(output);
    if !end.is_success() {
        let last_words = escape::plain(last.unwrap_or_default()).chars().take(ERROR_CHARS_MAX).collect();
        return Err(ProgramFault::Failed { end, last_words });
    }
    last.ok_or(ProgramFault::Silent)
}

/// Returns a number that a program printed, with the noise of binary fractions rounded away, and with this sign before its decimals. A
/// whole number keeps all its digits. Returns `None` for anything else, such as `nan`, `True` or a list.
pub(crate) fn number(printed: &str, sign: DecimalSign) -> Option<String> {
    let number = Decimal::parse(printed, Some(DecimalSign::Point)).ok()?;
    let is_float = printed.contains(['.', 'e', 'E']);
    let number = if is_float { number.round(DIGITS) } else { number };
    Some(number.to_text(sign))
}

/// Returns true if two outputs print the same value. The last digits of a number with a fraction depend on the machine.
pub fn print_the_same(one: &str, other: &str) -> bool {
    printed_value(one) == printed_value(other)
}

fn printed_value(output: &str) -> Option<String> {
    let line = last_line(output)?;
    Some(number(line, DecimalSign::Point).unwrap_or_else(|| line.to_owned()))
}

/// Returns the last line of an output that is not empty.
fn last_line(output: &str) -> Option<&str> {
    output.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// Returns the code in each block of a reply; the whole reply, if it has no fence. Any line that begins with a fence counts: to
/// `CommonMark`, a fence right after a tag such as `<answer>` is HTML.
pub(crate) fn code_blocks(reply: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut open: Option<String> = None;
    for line in reply.lines() {
        let is_fence = line.trim_start().starts_with("```");
        match (&mut open, is_fence) {
            (None, true) => open = Some(String::new()),
            (Some(_), true) => blocks.extend(open.take()),
            (Some(code), false) => code.extend([line, "\n"]),
            (None, false) => {}
        }
    }
    // A reply may end before its last fence.
    blocks.extend(open);
    if blocks.is_empty() {
        blocks.push(reply.to_owned());
    }
    blocks.retain(|code| !code.trim().is_empty());
    for code in &mut blocks {
        code.truncate(code.trim_end().len());
    }
    blocks
}

/// Returns true if a statement outside functions contains a call of `print`.
fn prints(stmt: &Stmt) -> bool {
    let mut found = ProgramParts::default();
    found.visit_stmt(stmt);
    found.prints
}

/// The constructs of a program that matter here.
#[derive(Default)]
struct ProgramParts {
    prints: bool,
    calculates: bool,
}

impl<'a> Visitor<'a> for ProgramParts {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr {
            let name = call.func.as_name_expr().map(|name| name.id.as_str());
            self.prints |= name == Some("print");
            let gives_nothing = name.is_some_and(|name| PASSING_ON.contains(&name) || ENDING.contains(&name));
            self.calculates |= !gives_nothing && !is_exit_of_sys(&call.func);
        }
        walk_expr(self, expr);
    }

    fn visit_operator(&mut self, _: &'a Operator) {
        self.calculates = true;
    }

    fn visit_cmp_op(&mut self, _: &'a CmpOp) {
        self.calculates = true;
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.calculates = true;
        ruff_python_ast::visitor::walk_comprehension(self, comprehension);
    }
}

/// Returns true for `sys.exit`.
pub fn is_exit_of_sys(function: &Expr) -> bool {
    let Some(attribute) = function.as_attribute_expr() else { return false };
    let module = attribute.value.as_name_expr().map(|name| name.id.as_str());
    module == Some("sys") && attribute.attr.as_str() == "exit"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fenced(code: &str) -> String {
        format!("Here it is:\n```python\n{code}\n```\nThat is all.")
    }

    #[test]
    fn function_of_reply_block_is_called() {
        let function = "def solution():\n    apples = 3 * 4\n    return apples";
        assert_eq!(runnable_source(&fenced(function)).unwrap(), format!("{function}\nprint(solution())\n"));
        assert_eq!(
            runnable_source(function).unwrap(),
            format!("{function}\nprint(solution())\n"),
            "without a fence"
        );
        let cut = format!("```python\n{function}");
        assert_eq!(
            runnable_source(&cut).unwrap(),
            format!("{function}\nprint(solution())\n"),
            "without its last fence"
        );
        let printing = format!("{function}\nprint(solution())");
        assert_eq!(
            runnable_source(&fenced(&printing)).unwrap(),
            format!("{printing}\n"),
            "it is printed once"
        );
        let script = "total = sum([3, 4])\nprint(f\"{total}\")";
        assert_eq!(runnable_source(&fenced(script)).unwrap(), format!("{script}\n"));
        let guarded = format!("{function}\nif __name__ == '__main__':\n    print(solution())");
        assert_eq!(runnable_source(&fenced(&guarded)).unwrap(), format!("{guarded}\n"));
    }

    #[test]
    fn what_is_no_derivation_is_no_answer() {
        for literal in [
            "print(48)",
            "answer = 48\nprint(answer)",
            "def solution():\n    return 48",
            "def solution():\n    answer = -48.0\n    return round(float(answer))",
            "print(str('48'))",
            "import sys\nprint(48)\nsys.exit(0)",
            "print(48)\nexit()",
            "print(48)\nraise SystemExit(0)",
        ] {
            assert_eq!(runnable_source(&fenced(literal)), Err(ProgramFault::Literal), "{literal}");
        }
        for (reply, fault) in [
            ("", ProgramFault::Missing),
            ("```python\n```", ProgramFault::Missing),
            ("x = 3 * 4", ProgramFault::NoResult),
            ("def total():\n    return 3 * 4", ProgramFault::NoResult),
        ] {
            assert_eq!(runnable_source(reply), Err(fault), "{reply}");
        }
        let two = format!("{}{}", fenced("print(1+1)\n"), fenced("print(1+2)\n"));
        assert_eq!(runnable_source(&two), Err(ProgramFault::Several(2)));
        assert!(matches!(runnable_source("The answer is 48."), Err(ProgramFault::NotPython(_))));
    }

    #[test]
    fn the_last_printed_line_is_the_value() {
        let good = CommandEnd::Exit(0);
        assert_eq!(last_printed_line(good, "working\n 48 \n\n"), Ok("48"));
        assert_eq!(last_printed_line(good, " \n"), Err(ProgramFault::Silent));
        let failed = last_printed_line(CommandEnd::Exit(1), "Traceback\nNameError: x\n").unwrap_err();
        assert_eq!(failed.to_string(), "the program ended with exit code 1; it printed: NameError: x");
    }

    #[test]
    fn the_noise_of_binary_fractions_does_not_count() {
        for (text, expected) in [
            ("19.200000000000003", Some("19.2")),
            ("0.30000000000000004", Some("0.3")),
            ("2.9999999999999996", Some("3")),
            ("48.0", Some("48")),
            ("1e+22", Some("10000000000000000000000")),
            ("123456789012345678901234567890", Some("123456789012345678901234567890")),
            ("-0.0", Some("0")),
            ("0.1234567890125", Some("0.123456789013")),
            ("nan", None),
            ("inf", None),
            ("-inf", None),
            ("1e400", Some(&*format!("1{}", "0".repeat(400)))),
            ("True", None),
            ("[3]", None),
            ("48 apples", None),
        ] {
            assert_eq!(number(text, DecimalSign::Point).as_deref(), expected, "{text}");
        }
        assert_eq!(number("2.5", DecimalSign::Comma).as_deref(), Some("2,5"));
    }
}
