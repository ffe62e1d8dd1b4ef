//! The program of a reply, and the part of it that a trial runs.
//!
//! The input is a reply, or a program. The output is the block of code that defines the wanted function, without its author's own
//! demonstration. That is calls of `print`, of `main` and of the function itself, assertions, and a part that runs only as a script. None of
//! these binds a name.

use std::ops::Range;

use ruff_python_ast::{Expr, Stmt};
use unicode_normalization::UnicodeNormalization as _;

use crate::text::program::{ProgramFault, code_blocks, parse};

/// The beginning of every name that belongs to a trial. No program may contain it, so that it cannot change how its values are shown.
pub(super) const OWN_NAMES: &str = "own_of_consensus_";

/// Returns the one block of a reply that defines the function; the whole reply, if it has no block.
///
/// # Errors
///
/// [`ProgramFault`], if no program of the reply can be tried.
pub(crate) fn find_program(reply: &str, function: &str) -> Result<String, ProgramFault> {
    let mut blocks = code_blocks(reply);
    if blocks.len() > 1 {
        blocks.retain(|block| parse(block).is_ok_and(|parsed| defines(&parsed.syntax().body, function)));
    }
    let source = match blocks.len() {
        0 => return Err(ProgramFault::Missing),
        1 => blocks.swap_remove(0),
        count => return Err(ProgramFault::Several(count)),
    };
    if !defines(&parse(&source)?.syntax().body, function) {
        return Err(ProgramFault::NoFunction(function.to_owned()));
    }
    // Python takes names for the same that differ in the forms of their letters.
    if source.nfkc().collect::<String>().contains(OWN_NAMES) {
        return Err(ProgramFault::OwnName(OWN_NAMES));
    }
    Ok(source)
}

/// Returns true if the statements define this function.
fn defines(body: &[Stmt], function: &str) -> bool {
    body.iter().any(|statement| {
        if let Some(defined) = statement.as_function_def_stmt() {
            return defined.name.as_str() == function;
        }
        let assigned = statement.as_assign_stmt().map(|assigned| &assigned.targets);
        assigned.is_some_and(|targets| targets.iter().any(|target| is_name(target, function)))
    })
}

fn is_name(target: &Expr, name: &str) -> bool {
    target.as_name_expr().is_some_and(|target| target.id.as_str() == name)
}

/// Returns a program without its author's demonstration of the function.
pub(super) fn without_demonstration(program: &str, function: &str) -> String {
    let Ok(parsed) = parse(program) else { return String::new() };
    let mut kept = String::new();
    let mut end = 0;
    for statement in &parsed.syntax().body {
        let Some(left_out) = demonstration(statement, function) else { continue };
        kept.push_str(&program[end..left_out.start]);
        // Something must be in its place where it is the whole of a line.
        kept.push_str("pass");
        end = left_out.end;
    }
    kept + &program[end..]
}

/// Returns the place of a statement that only demonstrates the function.
fn demonstration(statement: &Stmt, function: &str) -> Option<Range<usize>> {
    if let Some(assertion) = statement.as_assert_stmt() {
        return Some(assertion.range.start().to_usize()..assertion.range.end().to_usize());
    }
    if let Some(branch) = statement.as_if_stmt() {
        let compared = branch.test.as_compare_expr()?;
        let is_script = is_name(&compared.left, "__name__") && branch.elif_else_clauses.is_empty();
        let range = branch.range.start().to_usize()..branch.range.end().to_usize();
        return if is_script { Some(range) } else { None };
    }
    if let Some(import) = statement.as_import_from_stmt() {
        // A setting of the compiler comes first in a file or not at all, and changes no value.
        let is_setting = import.module.as_ref().is_some_and(|name| name.as_str() == "__future__");
        let range = import.range.start().to_usize()..import.range.end().to_usize();
        return if is_setting { Some(range) } else { None };
    }
    let expression = statement.as_expr_stmt()?;
    let called = &expression.value.as_call_expr()?.func;
    let is_shown = ["print", "main", function].iter().any(|name| is_name(called, name));
    if is_shown { Some(expression.range.start().to_usize()..expression.range.end().to_usize()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: &str = "def add(a, b):\n    return a + b";

    #[test]
    fn the_block_with_the_function_is_the_program() {
        for reply in [
            ADD.to_owned(),
            format!("Here:\n```python\n{ADD}\n```\nIt adds."),
            format!("```python\n{ADD}\n```\nTry it:\n```python\nprint(add(1, 2))\n```"),
        ] {
            assert_eq!(find_program(&reply, "add").as_deref(), Ok(ADD), "{reply}");
        }
        assert_eq!(
            find_program("```python\nadd = lambda a, b: a + b\n```", "add").as_deref(),
            Ok("add = lambda a, b: a + b")
        );
        let twice = format!("```python\n{ADD}\n```\n```python\n{ADD}\n```");
        assert_eq!(find_program(&twice, "add"), Err(ProgramFault::Several(2)));
        assert_eq!(find_program(ADD, "sum"), Err(ProgramFault::NoFunction("sum".to_owned())));
        assert!(matches!(find_program("I cannot do that.", "add"), Err(ProgramFault::NotPython(_))));
        for first in ['o', 'ｏ'] {
            let hostile = format!("def {first}wn_of_consensus_show(value):\n    return ''\n{ADD}");
            assert_eq!(find_program(&hostile, "add"), Err(ProgramFault::OwnName(OWN_NAMES)));
        }
    }

    #[test]
    fn demonstrations_are_not_run() {
        let program = format!(
            "import math\nfor n in [1]:\n    x = n\n@cache\n{ADD}\nprint(add(1, 2)); y = 2\nassert add(1, 2) == 4\nadd(1, 2)\n\
             if x:\n    def add(a, b): return 1\nif __name__ == '__main__':\n    main()\n"
        );
        let run = format!(
            "import math\nfor n in [1]:\n    x = n\n@cache\n{ADD}\npass; y = 2\npass\npass\nif x:\n    def add(a, b): return 1\npass\n"
        );
        assert_eq!(without_demonstration(&program, "add"), run);
    }
}
