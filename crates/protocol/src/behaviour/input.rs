//! The inputs of a function: calls of it with literal values, as a task or a model writes them.
//!
//! The input is a text and the name of the function. The output is each call, written anew, with the result that the text states for it.
//! A call in another form is no input, and a statement in another form states no result.

use std::fmt::Write as _;

use ruff_python_ast::{CmpOp, Expr, Number, Stmt, UnaryOp};
use ruff_python_parser::{parse_expression, parse_module};

/// The most characters of a call. Longer inputs cost more in prompts and records than they tell.
const CALL_CHARS_MAX: usize = 500;

/// The most bytes of a line in which something is looked for. A parser must not see longer ones, whose trees may be deep.
const LINE_BYTES_MAX: usize = 2000;

/// The most calls that are looked at.
const CALLS_MAX: usize = 100;

/// Words near a stated result that say that it is not what is wanted.
const DOUBTS: [&str; 9] =
    ["wrong", "incorrect", "currently", "instead", "bug", "must not", "should not", "not be", "fails"];

/// The most brackets within brackets in a call.
const NESTING_MAX: usize = 20;

/// Signs between a call and the result that a task states for it.
const STATES: [&str; 6] = ["==", "=>", "->", "➞", "→", "="];

/// Functions in which a task wraps a call in order to compare its result.
const WRAPPERS: [&str; 10] =
    ["set", "sorted", "list", "tuple", "dict", "len", "abs", "round", "str", "isinstance"];

/// One call of a function with literal values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FunctionInput {
    /// The call as Python.
    pub(crate) call: String,
    /// Its arguments, in their order.
    pub(crate) arguments: Vec<InputArgument>,
    /// The result that the task states for it, as Python.
    pub(crate) stated: Option<String>,
}

/// An argument of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct InputArgument {
    /// Its name, if it is passed by name.
    pub(crate) name: Option<String>,
    /// Its value as Python.
    pub(crate) value: String,
}

impl FunctionInput {
    /// Makes an input without a stated result.
    fn new(function: &str, arguments: Vec<InputArgument>) -> Self {
        let mut parts = Vec::new();
        for InputArgument { name, value } in &arguments {
            parts.push(name.as_ref().map_or_else(|| value.clone(), |name| format!("{name}={value}")));
        }
        Self { call: format!("{function}({})", parts.join(", ")), arguments, stated: None }
    }
}

/// Returns the name of the function that a task asks for, if it names one.
///
/// It is the function that its assertions call, or the one that it names in words. If these are unlike, the task names two. Without either, it
/// is the last function that begins at the start of a line.
pub(crate) fn find_function(task: &str) -> Option<String> {
    let lines = || task.lines().filter(|line| line.len() <= LINE_BYTES_MAX);
    let defined: Vec<String> =
        lines().filter_map(|line| leading_name(line.strip_prefix("def ")?, "(")).collect();
    let asserted = only_one(lines().filter_map(asserted_function));
    let named = named_function(task);
    if let (Some(asserted), Some(named)) = (&asserted, &named)
        && asserted != named
    {
        return None;
    }
    // A test and a main function are there for another one.
    let last = || defined.into_iter().rev().find(|name| !name.starts_with("test") && name != "main");
    asserted.or(named).or_else(last)
}

/// Returns the name at the start of a text, if `follows` comes right behind it.
fn leading_name(text: &str, follows: &str) -> Option<String> {
    let end = text.find(|c: char| !is_of_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if is_name && rest.trim_start().starts_with(follows) { Some(name.to_owned()) } else { None }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the only name of a list in which each may be repeated.
fn only_one(mut names: impl Iterator<Item = String>) -> Option<String> {
    let first = names.next()?;
    if names.all(|name| name == first) { Some(first) } else { None }
}

/// Returns the function whose result an assertion on this line compares.
fn asserted_function(line: &str) -> Option<String> {
    let parsed = parse_module(line.trim()).ok()?;
    let Some(Stmt::Assert(assertion)) = parsed.syntax().body.first() else { return None };
    let mut compared = &*assertion.test;
    if let Some(negated) = compared.as_unary_op_expr()
        && negated.op == UnaryOp::Not
    {
        compared = &*negated.operand;
    }
    if let Some(compare) = compared.as_compare_expr() {
        compared = &*compare.left;
    }
    loop {
        let call = compared.as_call_expr()?;
        // A function of a module, such as `math.isclose`, is a wrapper.
        let name = call.func.as_name_expr().map(|name| name.id.as_str());
        if let Some(name) = name.filter(|name| !WRAPPERS.contains(name)) {
            return Some(name.to_owned());
        }
        compared = call.arguments.args.first()?;
    }
}

/// Returns the function that a task names in words, as in "a function `name`" and "a function called name(a, b)".
fn named_function(task: &str) -> Option<String> {
    let mut names = Vec::new();
    for (at, _) in task.match_indices("function ") {
        let rest = &task[at + "function ".len()..];
        let is_announced = ["named ", "called "].iter().find_map(|word| rest.strip_prefix(word));
        let rest = is_announced.unwrap_or(rest);
        let name = match rest.strip_prefix('`') {
            Some(quoted) => leading_name(quoted, "`").or_else(|| leading_name(quoted, "(")),
            None if is_announced.is_some() => leading_name(rest.trim_start_matches(['"', '\'']), ""),
            None => leading_name(rest, "(").filter(|name| rest[name.len()..].starts_with('(')),
        };
        names.extend(name);
    }
    only_one(names.into_iter())
}

/// Returns each call of the function with literal values in a text, once, in order. A result that is stated in two ways is not stated.
pub(crate) fn find_inputs(text: &str, function: &str) -> Vec<FunctionInput> {
    let mut found: Vec<FunctionInput> = Vec::new();
    let mut disputed: Vec<String> = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.len() <= LINE_BYTES_MAX) {
        for (start, _) in line.match_indices(function) {
            let before = &line[..start];
            let is_whole_name = !before.ends_with(|c: char| is_of_name(c) || c == '.');
            if !is_whole_name || before.trim_end().ends_with("def") || found.len() >= CALLS_MAX {
                continue;
            }
            let Some(length) = call_length(&line[start..], function) else { continue };
            let end = start + length;
            let Some(mut input) = read_call(&line[start..end], function) else { continue };
            let mut stated = stated_result(before.trim(), line[end..].trim(), &lines[number + 1..]);
            if is_doubtful(&lines[..=number]) {
                stated = None;
            }
            match found.iter_mut().find(|known| known.call == input.call) {
                Some(known) if stated.is_some() && known.stated != stated => {
                    if known.stated.is_some() {
                        disputed.push(input.call);
                    }
                    known.stated = stated;
                }
                Some(_) => {}
                None => {
                    input.stated = stated;
                    found.push(input);
                }
            }
        }
    }
    for input in &mut found {
        if disputed.contains(&input.call) {
            input.stated = None;
        }
    }
    found
}

/// Returns true if the last of these lines, or the one before it that is not empty, says that a result is not wanted.
fn is_doubtful(lines: &[&str]) -> bool {
    let near = lines.iter().rev().filter(|line| !line.trim().is_empty()).take(2);
    near.map(|line| line.to_lowercase()).any(|line| DOUBTS.iter().any(|word| line.contains(word)))
}

/// Returns the bytes of the call at the start of a text, up to its last bracket.
fn call_length(text: &str, function: &str) -> Option<usize> {
    if !text[function.len()..].starts_with('(') {
        return None;
    }
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices().skip(function.chars().count()).take(CALL_CHARS_MAX) {
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') if depth == NESTING_MAX => return None,
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + c.len_utf8());
                }
            }
            (Some(_) | None, _) => {}
        }
    }
    None
}

/// Returns the result that a line states for a call, by what comes before it, what follows it, and the lines behind it.
fn stated_result(before: &str, after: &str, behind: &[&str]) -> Option<String> {
    if before == ">>>" {
        // A function that prints has several lines there.
        let ends = |line: &&str| {
            let line = line.trim();
            line.is_empty() || [">>>", "\"\"\"", "'''", "```"].iter().any(|mark| line.starts_with(mark))
        };
        let is_one_line = behind.get(1).is_none_or(ends);
        return if after.is_empty() && is_one_line { read_literal(behind.first()?) } else { None };
    }
    if before == "assert" {
        let source = format!("assert 0 {after}");
        let parsed = parse_module(&source).ok()?;
        // A message may follow what is asserted.
        let compare = parsed.syntax().body.first()?.as_assert_stmt()?.test.as_compare_expr()?;
        return match (&*compare.ops, &*compare.comparators) {
            ([CmpOp::Eq | CmpOp::Is], [result]) => write_literal(result),
            _ => None,
        };
    }
    if !before.chars().all(|c| " -*•#`".contains(c)) {
        return None;
    }
    let result =
        STATES.iter().find_map(|sign| after.trim_start_matches('`').trim_start().strip_prefix(sign))?;
    read_literal(result.trim().trim_matches('`'))
}

/// Returns a call as an input, if its arguments are literal values.
fn read_call(text: &str, function: &str) -> Option<FunctionInput> {
    let parsed = parse_expression(text).ok()?;
    let call = parsed.syntax().body.as_call_expr()?;
    let mut arguments = Vec::new();
    for value in &call.arguments.args {
        arguments.push(InputArgument { name: None, value: write_literal(value)? });
    }
    for keyword in &call.arguments.keywords {
        let name = keyword.arg.as_ref()?.to_string();
        arguments.push(InputArgument { name: Some(name), value: write_literal(&keyword.value)? });
    }
    Some(FunctionInput::new(function, arguments))
}

/// Returns a literal value as Python writes it.
fn read_literal(text: &str) -> Option<String> {
    let text = text.trim();
    let nesting = text.chars().filter(|c| "([{".contains(*c)).count();
    if text.chars().count() > CALL_CHARS_MAX || nesting > CALL_CHARS_MAX / NESTING_MAX {
        return None;
    }
    let parsed = parse_expression(text).ok()?;
    let value = &parsed.syntax().body;
    // `f(1) == 1, 2` may state one value or two.
    if value.as_tuple_expr().is_some_and(|tuple| !tuple.parenthesized) {
        return None;
    }
    write_literal(value)
}

fn write_literal(value: &Expr) -> Option<String> {
    if value.is_none_literal_expr() {
        return Some("None".to_owned());
    }
    if let Some(truth) = value.as_boolean_literal_expr() {
        return Some(if truth.value { "True" } else { "False" }.to_owned());
    }
    if let Some(number) = value.as_number_literal_expr() {
        return write_number(&number.value);
    }
    if let Some(text) = value.as_string_literal_expr() {
        return Some(write_string(text.value.to_str()));
    }
    if let Some(list) = value.as_list_expr() {
        return Some(format!("[{}]", write_all(&list.elts)?));
    }
    if let Some(tuple) = value.as_tuple_expr() {
        let comma = if tuple.elts.len() == 1 { "," } else { "" };
        return Some(format!("({}{comma})", write_all(&tuple.elts)?));
    }
    if let Some(set) = value.as_set_expr() {
        return Some(format!("{{{}}}", write_all(&set.elts)?));
    }
    if let Some(dict) = value.as_dict_expr() {
        let mut parts = Vec::new();
        for item in &dict.items {
            parts.push(format!("{}: {}", write_literal(item.key.as_ref()?)?, write_literal(&item.value)?));
        }
        return Some(format!("{{{}}}", parts.join(", ")));
    }
    let signed = value.as_unary_op_expr().filter(|signed| signed.op == UnaryOp::USub)?;
    Some(format!("-{}", write_number(&signed.operand.as_number_literal_expr()?.value)?))
}

fn write_all(values: &[Expr]) -> Option<String> {
    let mut parts = Vec::new();
    for value in values {
        parts.push(write_literal(value)?);
    }
    Some(parts.join(", "))
}

fn write_number(number: &Number) -> Option<String> {
    match number {
        Number::Int(whole) => Some(whole.to_string()),
        // Rust writes a fraction as Python reads it.
        Number::Float(fraction) if fraction.is_finite() => Some(format!("{fraction:?}")),
        Number::Float(_) | Number::Complex { .. } => None,
    }
}

/// Writes a text as Python reads it, on one line.
fn write_string(text: &str) -> String {
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            '\n' => written.push_str("\\n"),
            _ if c.is_control() || !c.is_ascii() => {
                let _ = write!(written, "\\U{:08x}", u32::from(c));
            }
            _ => written.push(c),
        }
    }
    written + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Vec<(String, Option<String>)> {
        find_inputs(text, "f").into_iter().map(|input| (input.call, input.stated)).collect()
    }

    #[test]
    fn the_function_of_a_task_is_found() {
        for (task, function) in [
            ("def help(a):\n    return 1\n\ndef total(a: int) -> int:\n    \"\"\"Adds.\"\"\"", Some("total")),
            ("Write a function to add.\nassert add(1, 2) == 3\nassert add(2, 2) == 4", Some("add")),
            ("Check it.\nassert not is_square(10)", Some("is_square")),
            ("Find it.\nassert math.isclose(angle(0, 1), 1.5, rel_tol=0.001)", Some("angle")),
            ("Find them.\nassert set(shared((3, 4),(5, 4))) == set((4,))", Some("shared")),
            ("Write a function `mean` that averages.", Some("mean")),
            ("Write a function called mean_of that averages.", Some("mean_of")),
            ("Write a function named \"mean_of\" that averages.", Some("mean_of")),
            ("Write a function mean(values) that averages.", Some("mean")),
            ("Write a function that averages.", None),
            ("assert a(1) == 1\nassert b(1) == 1", None),
            ("Write `total`.\n\ndef test_total():\n    assert total([1]) == 1", Some("total")),
            ("Fix it:\n\ndef total(a):\n    return 1\n\ndef main():\n    print(total([1]))", Some("total")),
            ("Write a function `mean`.\nassert total([1]) == 1", None),
            (&*format!("assert a{}(1) == 1", ".b".repeat(150_000)), None),
            ("What is the function of the heart?", None),
        ] {
            assert_eq!(find_function(task).as_deref(), function, "{task}");
        }
    }

    #[test]
    fn calls_with_literal_values_are_inputs() {
        for (text, call) in [
            (
                "f(1, -2.5, 'a\\'b', [True, None], (1,), {'k': {1}})",
                r#"f(1, -2.5, "a'b", [True, None], (1,), {"k": {1}})"#,
            ),
            ("1. `f([])` is the smallest", "f([])"),
            ("print(f(x=1e3))  # large", "f(x=1000.0)"),
            ("f('é)(')", "f(\"\\U000000e9)(\")"),
        ] {
            assert_eq!(calls(text), [(call.to_owned(), None)], "{text}");
        }
        for none in [
            "f(x)",
            "f([0] * 1000)",
            "f(open('/etc/passwd'))",
            "f(__import__('os'))",
            "f(*[1])",
            "f(lambda: 1)",
            "f(f\"{x}\")",
            "def f(1)",
            "g.f(1)",
            "of(1)",
            "f(1",
            "f (1)",
            &format!("f({}1{})", "[".repeat(300), "]".repeat(300)),
        ] {
            assert_eq!(calls(none), [], "{none}");
        }
        assert_eq!(calls("f(1) f(1)\nf( 1 )").len(), 1, "each once");
    }

    #[test]
    fn results_are_stated_in_known_forms_alone() {
        for (text, stated) in [
            (">>> f(1)\n[2, 3]", Some("[2, 3]")),
            (">>> f(1) + 1\n3", None),
            (">>> f(1)\n>>> f(1)", None),
            ("assert f(1) == 'x'", Some("\"x\"")),
            ("assert f(1) == g(2)", None),
            ("assert f(1) == (1, 2), \"two\"", Some("(1, 2)")),
            ("assert f(1) is False, 'no'", Some("False")),
            ("assert f(1) == 1 and x", None),
            ("f(1) == 1, 2", None),
            ("assert not f(1) == 2", None),
            ("f(1) ➞ 2", Some("2")),
            ("- `f(1) == -2`", Some("-2")),
            ("f(1) returns something", None),
            ("It is wrong that f(1) == 2", None),
            ("f(1) == 2\nf(1) == 3", None),
            ("f(1) == 2\nf(1) == 3\nf(1) == 2", None),
            ("My program is wrong:\n>>> f(1)\n2", None),
            (">>> f(1)\n3\n2\n1", None),
            (">>> f(1)\n3\n\"\"\"", Some("3")),
        ] {
            assert_eq!(calls(text), [("f(1)".to_owned(), stated.map(str::to_owned))], "{text}");
        }
    }
}
