//! The terminal on which moving lines are drawn. The process has one group of moving lines at a time.
//!
//! The input is lines that are filled up with spaces to the terminal's width, so that the next one begins below. The output is the same
//! lines with line breaks in place of the spaces. On a full line, the `^C` that a terminal writes for Ctrl-C would begin another line,
//! and the moving line above it would never be cleared. Only moving lines are drawn here. [`above`] removes them while a permanent
//! line is printed, whichever part of the program prints it.

use std::io::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, TermLike, WeakProgressBar};

/// The largest number of times that lines are drawn in a second.
const DRAWS_A_SECOND: u8 = 20;

/// The newest moving lines.
static SHOWN: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Returns new moving lines on stderr. `length` is the number of steps to the end, if it is known.
pub(super) fn lines(length: Option<u64>) -> ProgressBar {
    let unfilled = Unfilled { term: Term::buffered_stderr(), is_line_over: AtomicBool::new(false) };
    let target = ProgressDrawTarget::term_like_with_hz(Box::new(unfilled), DRAWS_A_SECOND);
    let bar = ProgressBar::with_draw_target(length, target);
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.downgrade());
    bar
}

/// Removes the moving lines for good.
pub(super) fn end() {
    let bar = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).take().and_then(|bar| bar.upgrade());
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// Prints a permanent text while the moving lines are hidden. `print` must not call this function again.
pub(super) fn above<T>(print: impl FnOnce() -> T) -> T {
    let bar =
        SHOWN.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(WeakProgressBar::upgrade);
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// A terminal whose lines end where their text does.
#[derive(Debug)]
struct Unfilled {
    term: Term,
    /// Whether the spaces that end a line have been written.
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
