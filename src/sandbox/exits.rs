//! The statements by which a program of a model ends itself, in the one form that the interpreter in this program knows.
//!
//! The input is a program in Python. The output is a program that does the same. The interpreter has no `exit`, no `quit` and no
//! `sys.exit`, and its errors hold no numbers. It knows `raise SystemExit`, which ends a program without a failure.

use std::collections::BTreeSet;
use std::ops::Range;

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, ExprContext, Number, Stmt, StmtImport};
use unicode_normalization::UnicodeNormalization as _;

use protocol::text::program::is_exit_of_sys;

/// The statement that replaces every other one that ends a program without a failure.
const EXIT: &str = "raise SystemExit";

/// Functions that end the program.
const FUNCTIONS: [&str; 2] = ["exit", "quit"];

/// The error by which those functions end the program.
const ERROR: &str = "SystemExit";

/// Names by which a program ends itself, or sees that it ends.
const NAMES: [&str; 5] = [FUNCTIONS[0], FUNCTIONS[1], "sys", ERROR, "BaseException"];

/// Returns a program in which `raise SystemExit` replaces each statement that ends it without a failure: a call of `exit`, `quit` or
/// `sys.exit`, and `raise SystemExit(0)`. To Python they are the same.
///
/// A program stays as it is if such a name could mean something else there, or if it can see the code with which it ends.
pub(super) fn restate_exits(source: &str) -> String {
    let Ok(parsed) = ruff_python_parser::parse_module(source) else { return source.to_owned() };
    let mut exits = Exits::default();
    for stmt in &parsed.syntax().body {
        if let Stmt::Import(import) = stmt {
            exits.import(import);
        }
        exits.visit_stmt(stmt);
    }
    for token in parsed.tokens() {
        let (kind, range) = token.as_tuple();
        if kind != TokenKind::Name || exits.used.contains(&range.start().to_usize()) {
            continue;
        }
        // Python takes names for the same that differ in the forms of their letters.
        let name: String = source[range].nfkc().collect();
        if NAMES.contains(&name.as_str()) {
            return source.to_owned();
        }
    }
    exits.statements.sort_by_key(|statement| statement.start);
    let mut restated = source.to_owned();
    for statement in exits.statements.into_iter().rev() {
        restated.replace_range(statement, EXIT);
    }
    restated
}

/// Returns true if the arguments of a call are no code, or the code 0.
fn means_success(call: &ExprCall) -> bool {
    let arguments = &call.arguments;
    let is_zero = match &*arguments.args {
        [] => true,
        [code] => code.as_number_literal_expr().is_some_and(|code| match &code.value {
            Number::Int(code) => code.as_u8() == Some(0),
            Number::Float(_) | Number::Complex { .. } => false,
        }),
        _ => false,
    };
    is_zero && arguments.keywords.is_empty()
}

/// The statements that end a program without a failure.
#[derive(Default)]
struct Exits {
    statements: Vec<Range<usize>>,
    /// The places at which one of [`NAMES`] is used, and gets no other meaning.
    used: BTreeSet<usize>,
    /// Whether the program has imported `sys` before the statement that is visited.
    has_sys: bool,
}

impl Exits {
    /// Takes note of an import that every later statement can rely on.
    fn import(&mut self, import: &StmtImport) {
        for alias in &import.names {
            if alias.name.as_str() == "sys" && alias.asname.is_none() {
                self.has_sys = true;
                self.used.insert(alias.name.range.start().to_usize());
            }
        }
    }

    /// Returns true for a function that ends the program where it is called now.
    fn is_exit(&self, function: &Expr) -> bool {
        let name = function.as_name_expr().map(|name| name.id.as_str());
        name.is_some_and(|name| FUNCTIONS.contains(&name)) || (self.has_sys && is_exit_of_sys(function))
    }
}

impl<'a> Visitor<'a> for Exits {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Stmt::Expr(statement) = stmt
            && let Some(call) = statement.value.as_call_expr()
            && self.is_exit(&call.func)
            && means_success(call)
        {
            self.statements.push(statement.range.to_std_range());
        }
        if let Stmt::Raise(statement) = stmt
            && let Some(error) = statement.exc.as_deref()
            && statement.cause.is_none()
        {
            let call = error.as_call_expr();
            let class = call.map_or(error, |call| call.func.as_ref());
            if let Some(name) = class.as_name_expr().filter(|name| name.id.as_str() == ERROR) {
                self.used.insert(name.range.start().to_usize());
                if call.is_none_or(means_success) {
                    self.statements.push(statement.range.to_std_range());
                }
            }
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr
            && name.ctx == ExprContext::Load
            && (name.id.as_str() == "sys" || FUNCTIONS.contains(&name.id.as_str()))
        {
            self.used.insert(name.range.start().to_usize());
        }
        if let Expr::Attribute(attribute) = expr
            && attribute.ctx == ExprContext::Load
        {
            self.used.insert(attribute.attr.range.start().to_usize());
        }
        walk_expr(self, expr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_restated() {
        for exit in [
            "exit()",
            "exit(0)",
            "quit()",
            "quit(0)",
            "(exit())",
            "sys.exit()",
            "sys.exit(0)",
            "raise SystemExit",
            "raise SystemExit()",
            "raise SystemExit(0)",
        ] {
            let program = |exit: &str| {
                format!(
                    "import sys\ndef main():\n    if x: print('exit(); é'); {exit}\n    return 1\nmain()\n{exit}\n"
                )
            };
            assert_eq!(restate_exits(&program(exit)), program("raise SystemExit"), "{exit}");
        }
        // Another code means a failure, and does not change the rest.
        let mixed = "import sys, math\nif x:\n    sys.exit(1)\nprint(sys.version)\nsys.exit(0)";
        assert_eq!(restate_exits(mixed), mixed.replace("sys.exit(0)", "raise SystemExit"));
    }

    /// A statement keeps its words wherever they could mean something else than the end of the program.
    #[test]
    fn unclear_exits_stay() {
        for source in [
            "exit(1)",
            "exit('0')",
            "exit(0.0)",
            "exit(code=0)",
            "exit(*codes)",
            "exit",
            "x = exit()",
            "SystemExit(0)",
            "raise SystemExit(0) from error",
            "sys.exit(0)",
            "sys.exit(0)\nimport sys",
            "if x:\n    import sys\nsys.exit(0)",
            "import system as sys\nsys.exit(0)",
            "import sys\nsys = other\nsys.exit(0)",
            "import sys\nsys.exit = print\nsys.exit(0)",
            "import sys\ndef f(sys):\n    sys.exit(0)",
            "import sys\nｓｙｓ = other\nsys.exit(0)",
            "def exit():\n    print(6 * 7)\nexit()",
            "from m import quit\nquit()",
            "for exit in x:\n    exit()",
            "[0 for exit in x]\nexit()",
            "SystemExit = ValueError\nraise SystemExit(0)",
            "try:\n    exit(0)\nexcept SystemExit as end:\n    print(end)",
            "try:\n    exit(0)\nexcept BaseException as end:\n    print(end)",
            "exit(",
        ] {
            assert_eq!(restate_exits(source), source);
        }
    }
}
