//! The terminal under moving lines.
//!
//! In: lines that are filled up with spaces to the terminal's width, so that the next one begins below. Out: the same with line breaks in
//! place of the spaces. On a line that is full, the `^C` that a terminal writes for Ctrl-C begins another one, and the moving line above
//! it would never be cleared. Nothing but moving lines is drawn here: what stays is printed while they are away.

use std::io::Result;
use std::sync::atomic::{AtomicBool, Ordering};

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};

/// How often lines are drawn in a second, at most.
const DRAWS_A_SECOND: u8 = 20;

/// Returns where moving lines are drawn: on stderr.
pub(super) fn target() -> ProgressDrawTarget {
    let unfilled = Unfilled { term: Term::buffered_stderr(), is_line_over: AtomicBool::new(false) };
    ProgressDrawTarget::term_like_with_hz(Box::new(unfilled), DRAWS_A_SECOND)
}

/// A terminal whose lines end where their text does.
#[derive(Debug)]
struct Unfilled {
    term: Term,
    /// Whether the spaces have come that end a line.
    is_line_over: AtomicBool,
}

impl TermLike for Unfilled {
    fn width(&self) -> u16 {
        self.term.size().1
    }

    fn height(&self) -> u16 {
        self.term.size().0
    }

    fn move_cursor_up(&self, lines: usize) -> Result<()> {
        self.term.move_cursor_up(lines)
    }

    fn move_cursor_down(&self, lines: usize) -> Result<()> {
        self.term.move_cursor_down(lines)
    }

    fn move_cursor_right(&self, columns: usize) -> Result<()> {
        self.term.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> Result<()> {
        self.term.move_cursor_left(columns)
    }

    fn write_line(&self, text: &str) -> Result<()> {
        self.write_str(text)?;
        self.term.write_line("")
    }

    fn write_str(&self, text: &str) -> Result<()> {
        if text.trim_matches(' ').is_empty() {
            self.is_line_over.store(true, Ordering::Relaxed);
            return Ok(());
        }
        if self.is_line_over.swap(false, Ordering::Relaxed) {
            self.term.write_line("")?;
        }
        self.term.write_str(text.trim_end_matches(' '))
    }

    fn clear_line(&self) -> Result<()> {
        self.is_line_over.store(false, Ordering::Relaxed);
        self.term.clear_line()
    }

    fn flush(&self) -> Result<()> {
        self.term.flush()
    }
}
