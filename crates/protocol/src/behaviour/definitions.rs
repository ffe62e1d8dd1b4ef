//! The program of a reply, and the part of it that a trial runs.
//!
//! The input is a reply, or a program. The output is the block of code that defines the wanted function, and its definitions: imports,
//! functions, classes and assignments. What a program prints or checks below them is its author's own demonstration, and is not run.

use ruff_python_ast::{Expr, Stmt};

use super::trial::OWN_NAMES;
use crate::text::program::{ProgramFault, code_blocks, parse};

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
    if source.contains(OWN_NAMES) {
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

/// Returns the definitions of a program, one after another.
pub(super) fn definitions(program: &str) -> String {
    let Ok(parsed) = parse(program) else { return String::new() };
    let mut kept = String::new();
    for statement in &parsed.syntax().body {
        kept.extend(definition(program, statement).map(|text| format!("{text}\n")));
    }
    kept
}

/// Returns the text of a statement that defines something.
fn definition<'a>(program: &'a str, statement: &Stmt) -> Option<&'a str> {
    if let Some(defined) = statement.as_function_def_stmt() {
        return Some(&program[defined.range]);
    }
    if let Some(defined) = statement.as_class_def_stmt() {
        return Some(&program[defined.range]);
    }
    if let Some(import) = statement.as_import_stmt() {
        return Some(&program[import.range]);
    }
    if let Some(import) = statement.as_import_from_stmt() {
        // A setting of the compiler comes first in a file or not at all, and changes no value.
        let is_setting = import.module.as_ref().is_some_and(|name| name.as_str() == "__future__");
        return if is_setting { None } else { Some(&program[import.range]) };
    }
    if let Some(assigned) = statement.as_assign_stmt() {
        return Some(&program[assigned.range]);
    }
    if let Some(assigned) = statement.as_ann_assign_stmt() {
        return Some(&program[assigned.range]);
    }
    Some(&program[statement.as_aug_assign_stmt()?.range])
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
        let hostile = "def consensus_show(value, depth):\n    return ''\ndef add(a, b):\n    return 0";
        assert_eq!(find_program(hostile, "add"), Err(ProgramFault::OwnName(OWN_NAMES)));
    }

    #[test]
    fn demonstrations_are_not_run() {
        let program = format!(
            "from __future__ import annotations\nimport math\nLIMIT: int = 3\n@cache\n{ADD}\nprint(add(1, 2))\nassert add(1, 2) == 4\n\
             if __name__ == '__main__':\n    main()\n"
        );
        assert_eq!(definitions(&program), format!("import math\nLIMIT: int = 3\n@cache\n{ADD}\n"));
    }
}
