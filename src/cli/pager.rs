//! Long texts at a terminal: through the pager that a person has, as other programs do.
//!
//! In: a text. Out: the same on stdout, or in the pager that PAGER names, else in `less`. A text that fits on the screen, and one that
//! goes to a program, is printed as it is.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use console::Term;

use super::output::{Output, wrapped};

/// What names the pager.
const VARIABLE: &str = "PAGER";

/// The pager without it. It ends at once where all fits, keeps colours, and leaves the text on the screen.
const USUAL: &str = "less -FRX";

/// Prints a text that may be longer than the screen.
pub(super) fn print(text: &str, output: &Output) -> anyhow::Result<()> {
    if !std::io::stdout().is_terminal() {
        return output.print(text);
    }
    let (rows, columns) = Term::stdout().size();
    let text = wrapped(text, usize::from(columns).saturating_sub(1)) + "\n";
    if text.lines().count() >= usize::from(rows) && paged(&text) {
        return Ok(());
    }
    output.print(&text)
}

/// Shows a text in the pager; false if there is none.
fn paged(text: &str) -> bool {
    let named = std::env::var(VARIABLE).unwrap_or_else(|_| USUAL.to_owned());
    let Some((program, words)) = shlex::split(&named).and_then(|words| {
        let mut words = words.into_iter();
        Some((words.next()?, words.collect::<Vec<_>>()))
    }) else {
        return false;
    };
    let Ok(mut pager) = Command::new(program).args(words).stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut stdin) = pager.stdin.take() {
        // A reader who has seen enough is no error.
        let _ = stdin.write_all(text.as_bytes());
    }
    pager.wait().is_ok()
}
