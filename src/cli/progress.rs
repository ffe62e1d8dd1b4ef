//! The story of a run on stderr, live: a line for each reply, and a moving line while one streams in.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::args::Format;
use super::output::Output;
use crate::core::Usage;
use crate::engine::{Observer, RunEvent};
use crate::journal::{Record, Replied};
use crate::protocol::panel::Scores;
use crate::protocol::{CallId, REFUSED, Reply, Step};
use crate::provider::ProviderError;
use crate::run::{Notices, Waiting};
use crate::text::{escape, extract};

/// Tells what a run is doing.
pub(super) struct ProgressPrinter {
    output: Output,
    spinner: Option<ProgressBar>,
    /// Who is being waited for, with the tokens received so far.
    waiting: RefCell<BTreeMap<CallId, (String, u64)>>,
    /// What stands in the way of calls, and is tried again.
    trouble: RefCell<String>,
}

impl ProgressPrinter {
    pub(super) fn new(output: Output) -> Self {
        Self { output, spinner: spinner(output), waiting: RefCell::default(), trouble: RefCell::default() }
    }

    /// Tells one finished line, above the moving one.
    pub(super) fn status(&self, text: &str) {
        match &self.spinner {
            Some(bar) => bar.suspend(|| self.output.status(text)),
            None => self.output.status(text),
        }
    }

    /// Takes the moving line away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.spinner {
            bar.finish_and_clear();
        }
    }

    /// Tells a reply and what it is charged at; `took` is how long it took, if that is known.
    pub(super) fn reply(&self, agent: &str, replied: &Replied, usage: Usage, took: Option<Duration>) {
        let call = replied.call;
        let what = match call.step {
            Step::Think => "thinks".to_owned(),
            Step::Envelope => envelope_line(&replied.reply),
            Step::Choose => "chooses".to_owned(),
            Step::Weigh => "compares".to_owned(),
        };
        let again = match (call.step, call.attempt) {
            (_, 0) => String::new(),
            (Step::Weigh, _) => " (in the other order)".to_owned(),
            (_, attempt) => format!(" (attempt {})", attempt + 1),
        };
        let time = took.map(|t| format!(", {:.1} s", t.as_secs_f64())).unwrap_or_default();
        let tokens = usage.completion;
        let name = self.output.paint(agent, "1");
        let part = if call.part > 0 { format!("part {:>3}  ", call.part) } else { String::new() };
        self.status(&format!(
            "{part}round {:>2}  {name}{again}: {what}  [{tokens} tokens{time}]",
            call.round
        ));
    }

    fn move_on(&self) {
        let Some(bar) = &self.spinner else { return };
        let waiting = self.waiting.borrow();
        let parts = waiting.values().map(|(agent, tokens)| format!("{agent} {tokens} tokens"));
        bar.set_message(parts.collect::<Vec<_>>().join(" · "));
    }

    /// Tells a fault that may pass: in the moving line, or once where nothing moves.
    fn again(&self, error: &ProviderError, wait: Duration) {
        let why = escape::terminal(&error.to_string());
        if let Some(bar) = &self.spinner {
            bar.set_message(format!("{why}; trying again in {:.0} s", wait.as_secs_f64().ceil()));
        } else if *self.trouble.borrow() != why {
            self.output.status(&format!("{why}; trying again"));
        }
        self.trouble.replace(why);
    }

    fn written(&self, record: &Record) {
        if self.output.format == Format::Jsonl {
            // A record that was written can be written again; a reader that left is no error.
            let line = serde_json::to_string(record).unwrap_or_default();
            let _ = self.output.line(&line);
        }
    }
}

/// Returns a moving line, where somebody can see it.
fn spinner(output: Output) -> Option<ProgressBar> {
    let live = !output.quiet && std::io::stderr().is_terminal();
    live.then(|| {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        // The template is a constant and valid; the default serves if it ever were not.
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    })
}

/// Tells that something outside takes its time.
pub(super) struct WaitPrinter {
    output: Output,
    spinner: Option<ProgressBar>,
    /// Seconds after which the next line is told where nothing moves.
    next: Cell<u64>,
    /// What is waited for by now.
    what: RefCell<String>,
}

impl WaitPrinter {
    /// Begins to wait for `what`.
    pub(super) fn new(output: Output, what: &str) -> Self {
        let printer =
            Self { output, spinner: spinner(output), next: Cell::new(30), what: RefCell::default() };
        printer.now(what);
        printer
    }
}

impl Drop for WaitPrinter {
    fn drop(&mut self) {
        if let Some(bar) = &self.spinner {
            bar.finish_and_clear();
        }
    }
}

impl Waiting for WaitPrinter {
    fn now(&self, what: &str) {
        match &self.spinner {
            Some(bar) => bar.set_message(what.to_owned()),
            None => self.output.status(what),
        }
        what.clone_into(&mut self.what.borrow_mut());
    }

    fn tell(&self, line: &str) {
        match &self.spinner {
            Some(bar) => bar.suspend(|| self.output.warn(line)),
            None => self.output.warn(line),
        }
    }

    /// Prints a line now and then, each after twice the time of the last.
    fn since(&self, after: Duration) {
        let seconds = after.as_secs();
        if self.spinner.is_none() && seconds >= self.next.get() {
            self.output.status(&format!("still waiting after {seconds} s"));
            self.next.set(seconds * 2);
        }
    }

    fn done(self: Box<Self>, line: &str) {
        // Where nothing moves, the last line says so already.
        let is_told = self.spinner.is_none() && *self.what.borrow() == line;
        let output = self.output;
        drop(self);
        if !is_told {
            output.status(line);
        }
    }
}

impl Notices for Output {
    fn status(&self, line: &str) {
        Output::status(self, line);
    }

    fn warn(&self, line: &str) {
        Output::warn(self, line);
    }

    fn wait_for(&self, what: &str) -> Box<dyn Waiting + '_> {
        Box::new(WaitPrinter::new(*self, what))
    }
}

impl Drop for ProgressPrinter {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Observer for ProgressPrinter {
    fn on_event(&self, event: RunEvent<'_>) {
        match event {
            RunEvent::Writing | RunEvent::Failed { .. } => {}
            RunEvent::Written(record) => self.written(record),
            RunEvent::Calling { agent, ask } => {
                if let Some(why) = ask.messages.last().and_then(|m| refusal(&m.content)) {
                    self.status(&format!("          {}", escape::terminal(why)));
                }
                self.waiting.borrow_mut().insert(ask.call, (agent.to_owned(), 0));
                self.move_on();
            }
            RunEvent::Streaming { call, tokens } => {
                if let Some((_, seen)) = self.waiting.borrow_mut().get_mut(&call) {
                    *seen = tokens;
                }
                self.move_on();
            }
            RunEvent::Again { error, wait, .. } => self.again(error, wait),
            RunEvent::Answered { agent, replied, usage, took } => {
                self.trouble.borrow_mut().clear();
                self.waiting.borrow_mut().remove(&replied.call);
                self.reply(agent, replied, usage, Some(took));
                self.move_on();
            }
            RunEvent::Remarked { agent, remark } => self.status(&format!("          {agent}: {remark}")),
            RunEvent::Cancelled { agent, call } => {
                self.waiting.borrow_mut().remove(&call);
                self.status(&format!("          {agent}: not awaited, it can change nothing any more"));
                self.move_on();
            }
            RunEvent::Stopping { at_once: false } => {
                self.status("stopping after the open calls; once more to stop at once");
            }
            RunEvent::Stopping { at_once: true } => self.status("stopping at once"),
        }
    }
}

/// One line about an answer or a ballot of a panel.
fn form_line(value: &Value) -> String {
    if let Some(answer) = value.get("response") {
        return answers(answer);
    }
    // Whatever a model writes as a number.
    let total = |mark: &Value| {
        let scores = Scores::CRITERIA.iter().filter_map(|name| mark[name].as_u64());
        scores.fold(0, u64::saturating_add)
    };
    let marks = value.as_object().into_iter().flatten();
    let marks: Vec<String> =
        marks.map(|(label, mark)| format!("{} {}", escape::excerpt(label), total(mark))).collect();
    format!("scores {}", marks.join(", "))
}

fn answers(answer: &Value) -> String {
    let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
    format!("answers “{}”", escape::excerpt(&text))
}

/// Returns the first line of a message that refuses a reply.
fn refusal(message: &str) -> Option<&str> {
    message.lines().next().filter(|line| line.starts_with(REFUSED))
}

/// One line about a reply that should be an envelope. It shows what the agent claims; whether the
/// claim counts is for the protocol to say.
fn envelope_line(reply: &Reply) -> String {
    let object = extract(&reply.text).map_or(reply.text.as_str(), |found| found.object);
    let Ok(value) = serde_json::from_str::<Value>(object) else {
        return format!("writes no valid JSON: {}", escape::excerpt(&reply.text));
    };
    let field = |name: &str| escape::excerpt(value[name].as_str().unwrap_or_default());
    let measured = reply.yes.map(|yes| f64::from(yes) / 10_000.0);
    let confidence = measured.or(value["confidence"].as_f64());
    if let Some(findings) = value["findings"].as_array() {
        let (verdict, sure) = (field("verdict"), value["confidence"].as_u64().unwrap_or_default());
        return format!("{verdict}, {} findings, {sure} % sure: {}", findings.len(), field("summary"));
    }
    let is_council = ["framing", "checks", "veto", "confidence"].iter().any(|name| !value[name].is_null());
    if is_council {
        let checks = value["checks"].as_array().map_or(0, Vec::len);
        let what = match (value["framing"].is_string(), value.get("response").is_some()) {
            (true, _) => format!("reads it as “{}”", field("framing")),
            (false, true) => answers(&value["response"]),
            (false, false) if value["veto"] == true => {
                format!("vetoes after {checks} checks: {}", field("reasoning"))
            }
            (false, false) => format!("passes it after {checks} checks"),
        };
        let confidence =
            confidence.map_or_else(|| "no confidence".to_owned(), |sure| format!("confidence {sure:.2}"));
        return format!("{what}, {confidence}");
    }
    if value["status"].is_null() && value["final_solution"].is_null() {
        return form_line(&value);
    }
    let solution = &value["final_solution"];
    let text = match (solution["accepts"].as_str(), &solution["canonical_text"]) {
        (Some(handle), _) => format!(", accepts {}", escape::excerpt(handle)),
        (None, Value::Null) => String::new(),
        (None, Value::String(text)) => format!(", “{}”", escape::excerpt(text)),
        (None, value) => format!(", {}", escape::excerpt(&value.to_string())),
    };
    format!("{}{text}", field("status"))
}
