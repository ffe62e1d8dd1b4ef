//! The moving lines of a run: the agents that are writing, and the last words of each.
//!
//! The input is calls that begin, bring text and end, and the width of the terminal. The output is a line for each call, cut to that
//! width. If no person watches, no line is made.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use console::{Term, measure_text_width};
use indicatif::{ProgressBar, ProgressStyle};

use super::output::Output;
use super::spinner;
use crate::provider::PartialText;
use protocol::text::escape;
use protocol::{CallId, Step};

/// The largest width of a spinner, the time and the spaces after them, and one column that stays free.
pub(super) const HEAD_COLUMNS: usize = 9;

/// The time between two looks at the text.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The largest number of calls with a line of their own. All further calls share one.
const LINES_MAX: usize = 6;

/// The colours of agents, as SGR codes. Colours that mean success or failure are not among them.
const COLORS: [&str; 6] = ["36", "35", "34", "96", "95", "94"];

pub(super) struct Live {
    output: Output,
    bar: Option<ProgressBar>,
    open: RefCell<BTreeMap<CallId, OpenCall>>,
    /// The number of checks and programs that are running.
    executions: Cell<usize>,
    /// The agents in the order of their first calls, which decides their colours.
    agents: RefCell<Vec<String>>,
    /// The fault that holds up calls, if there is one.
    trouble: RefCell<Option<String>>,
    looked: Cell<Option<Instant>>,
}

/// A call whose reply is awaited.
struct OpenCall {
    agent: String,
    tokens: u64,
    /// The last words of its text.
    tail: String,
}

impl Live {
    pub(super) fn new(output: Output) -> Self {
        Self {
            output,
            bar: new_spinner(output),
            open: RefCell::default(),
            executions: Cell::new(0),
            agents: RefCell::default(),
            trouble: RefCell::default(),
            looked: Cell::new(None),
        }
    }

    /// Returns whether there is a moving line.
    pub(super) fn has_line(&self) -> bool {
        self.bar.is_some()
    }

    /// Returns an agent's name in its colour.
    pub(super) fn paint_name(&self, agent: &str) -> String {
        let mut agents = self.agents.borrow_mut();
        let place = agents.iter().position(|known| known == agent).unwrap_or_else(|| {
            agents.push(agent.to_owned());
            agents.len() - 1
        });
        self.output.paint(agent, &format!("1;{}", COLORS[place % COLORS.len()]))
    }

    pub(super) fn begin(&self, agent: &str, call: CallId) {
        let open = OpenCall { agent: agent.to_owned(), tokens: 0, tail: String::new() };
        let is_first = self.open.borrow_mut().insert(call, open).is_none() && self.open.borrow().len() == 1;
        // The clock shows how long the open calls have taken.
        if is_first && let Some(bar) = &self.bar {
            bar.reset_elapsed();
        }
        self.draw();
    }

    pub(super) fn receive(&self, call: CallId, tokens: u64, text: PartialText<'_>) {
        if self.bar.is_none() || self.looked.get().is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        self.looked.set(Some(Instant::now()));
        self.trouble.take();
        if let Some(open) = self.open.borrow_mut().get_mut(&call) {
            open.tokens = tokens;
            // An envelope is for the protocol; people read the text before it.
            if call.step != Step::Envelope {
                open.tail = escape::terminal(&escape::one_line(&text.whole_words()));
            }
        }
        self.draw();
    }

    pub(super) fn end(&self, call: CallId) {
        self.open.borrow_mut().remove(&call);
        self.trouble.take();
        self.draw();
    }

    pub(super) fn begin_execution(&self) {
        self.executions.set(self.executions.get() + 1);
        if self.open.borrow().is_empty()
            && let Some(bar) = &self.bar
        {
            bar.reset_elapsed();
        }
        self.draw();
    }

    pub(super) fn end_execution(&self) {
        self.executions.set(self.executions.get().saturating_sub(1));
        self.draw();
    }

    /// Shows a fault that holds up calls, until a call makes progress.
    pub(super) fn show_trouble(&self, why: String) {
        self.trouble.replace(Some(why));
        self.draw();
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        let width = usize::from(Term::stderr().size().1);
        bar.set_message(self.lines(width.saturating_sub(HEAD_COLUMNS)).join("\n  "));
    }

    fn lines(&self, width: usize) -> Vec<String> {
        if let Some(why) = &*self.trouble.borrow() {
            return vec![first_words(why, width)];
        }
        let open = self.open.borrow();
        let mut lines = Vec::new();
        for OpenCall { agent, tokens, tail } in open.values().take(LINES_MAX) {
            let head = format!("{agent}  {tokens} tokens");
            let room = width.saturating_sub(measure_text_width(&head) + 2);
            let tail = self.output.paint(&last_words(tail, room), "2");
            lines.push(format!("{}  {tokens} tokens  {tail}", self.paint_name(agent)));
        }
        if open.len() > LINES_MAX {
            lines.push(format!("and {} more", open.len() - LINES_MAX));
        }
        if self.executions.get() > 0 {
            lines.push("running".to_owned());
        }
        lines
    }
}

/// Returns a moving line, if a person can see it.
pub(super) fn new_spinner(output: Output) -> Option<ProgressBar> {
    if !output.is_live() {
        return None;
    }
    let bar = spinner::lines(None);
    // The template is a valid constant. If it ever were not, the default would do.
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(120));
    Some(bar)
}

/// Returns the end of a text, as much as fits into this many columns.
pub(super) fn last_words(text: &str, columns: usize) -> String {
    if text.len() <= 4 * columns && measure_text_width(text) <= columns {
        return text.to_owned();
    }
    let mut end = String::new();
    let mut left = columns.saturating_sub(1);
    // Characters without a width never fill a column, so their number is limited as well.
    for c in text.chars().rev().take(4 * columns) {
        let width = measure_text_width(c.encode_utf8(&mut [0; 4]));
        if width > left {
            break;
        }
        left -= width;
        end.insert(0, c);
    }
    format!("…{end}")
}

/// Returns the beginning of a text, as much as fits into this many columns.
pub(super) fn first_words(text: &str, columns: usize) -> String {
    console::truncate_str(text, columns, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_at_terminal_width() {
        assert_eq!(last_words("so the answer is 48", 30), "so the answer is 48");
        assert_eq!(last_words("so the answer is 48", 6), "…is 48");
        assert_eq!(last_words("漢字漢字", 5), "…漢字");
        assert_eq!(first_words("so the answer", 6), "so th…");
        for columns in 0..12 {
            assert!(measure_text_width(&last_words("a 漢字 b", columns)) <= columns.max(1));
        }
    }
}
