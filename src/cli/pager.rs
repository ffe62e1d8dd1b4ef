//! Shows long texts on a terminal in the user's pager, as other programs do.
//!
//! The input is a text. The output is the same text on stdout, or in the pager that PAGER names, or else in `less`. A text that fits on
//! the screen is printed without a pager, and so is one that goes to a program.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use console::Term;
use signal_hook::consts::SIGINT;

use super::output::{Output, wrap};

const VARIABLE: &str = "PAGER";

/// The pager if that variable is not set.
const USUAL: &str = "less";

/// The variable with the options of `less`, which shows no colours without them.
const LESS: &str = "LESS";

/// The usual options of `less`: end at once if everything fits, keep colours, and leave the text on the screen.
const LESS_USUAL: &str = "FRX";

/// Prints a text that may be longer than the screen.
pub(super) fn print(text: &str, output: &Output) -> anyhow::Result<()> {
    if !std::io::stdout().is_terminal() {
        return output.print(text);
    }
    let (rows, columns) = Term::stdout().size();
    let text = wrap(text, usize::from(columns).saturating_sub(1)) + "\n";
    if text.lines().count() >= usize::from(rows) && show_in_pager(&text) {
        return Ok(());
    }
    output.print(&text)
}

/// Shows a text in the pager. Returns false if no pager can be started.
fn show_in_pager(text: &str) -> bool {
    let named = std::env::var(VARIABLE).unwrap_or_else(|_| USUAL.to_owned());
    let Some(words) = shlex::split(&named) else { return false };
    let Some((program, words)) = words.split_first() else { return false };
    // Ctrl-C is for the pager. Some pagers outlive it, and would otherwise compete with the shell for the terminal.
    let ignored = signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
    let mut command = Command::new(program);
    if std::env::var_os(LESS).is_none() {
        command.env(LESS, LESS_USUAL);
    }
    let Ok(mut pager) = command.args(words).stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut stdin) = pager.stdin.take() {
        // A reader who leaves before the end is not an error.
        let _ = stdin.write_all(text.as_bytes());
    }
    let is_shown = pager.wait().is_ok();
    if let Ok(id) = ignored {
        signal_hook::low_level::unregister(id);
    }
    is_shown
}
