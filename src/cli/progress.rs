//! The story of a run on stderr: a line for each reply, and moving lines while replies stream in.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

use console::measure_text_width;
use indicatif::ProgressBar;
use serde_json::Value;

use super::answer::{print_result, print_review};
use super::args::Format;
use super::live::{HEAD_COLUMNS, Live, first_words, last_words, new_spinner};
use super::output::Output;
use crate::engine::{RunEvent, RunObserver};
use crate::journal::{Executed, Executor, LostCall, Record, Replied};
use crate::provider::ProviderError;
use crate::report::RunResult;
use crate::run::Reporter;
use protocol::core::{Endpoint, Usage};
use protocol::panel::Scores;
use protocol::text::{counted, escape, extract};
use protocol::{Execution, OutcomeKind, Reply, Step, trial_results};

/// The indentation of a line that belongs to the line above.
const INDENT: &str = "          ";

/// The smallest width of a reply's content beside its figures, in columns.
const WHAT_MIN: usize = 16;

pub(super) struct ProgressPrinter {
    output: Output,
    live: Live,
    /// The latest fault that held up calls.
    trouble: RefCell<String>,
}

impl ProgressPrinter {
    pub(super) fn new(output: Output) -> Self {
        Self { output, live: Live::new(output), trouble: RefCell::default() }
    }

    /// Prints one finished line above the moving lines.
    pub(super) fn status(&self, text: &str) {
        self.output.status(text);
    }

    pub(super) fn finish(&self) {
        self.live.finish();
    }

    /// Prints a reply and the usage that it is charged with. `took` is the time of the call, if it is known.
    pub(super) fn print_reply(&self, agent: &str, replied: &Replied, usage: Usage, took: Option<Duration>) {
        let call = replied.call;
        let what = match call.step {
            Step::Think => "thinks".to_owned(),
            Step::Sample => format!("“{}”", escape::excerpt(last_line(&replied.reply.text))),
            Step::Envelope => describe_envelope(&replied.reply),
            Step::Choose => "chooses".to_owned(),
            Step::Weigh => "compares".to_owned(),
        };
        let again = match (call.step, call.attempt) {
            (Step::Sample, 0) => format!(" (sample {})", call.draft + 1),
            (_, 0) => String::new(),
            (Step::Weigh, _) => " (in the other order)".to_owned(),
            (_, attempt) => format!(" (attempt {})", attempt + 1),
        };
        let time = took.map(|t| format!(", {:.1} s", t.as_secs_f64())).unwrap_or_default();
        let figures = format!("[{} tokens{time}]", usage.completion);
        let part = if call.part > 0 { format!("part {:>3}  ", call.part) } else { String::new() };
        let head = format!("{part}round {:>2}  ", call.round);
        // The content is cut so that the line fits. Everything but the agent and the content is dim.
        let taken = measure_text_width(&format!("{head}{agent}{again}:   {figures}"));
        let (what, figures) = match self.output.width().map(|width| width.saturating_sub(taken)) {
            // The content is worth more than the figures.
            Some(room) if room < WHAT_MIN => {
                (first_words(&what, room + measure_text_width(&figures)), String::new())
            }
            Some(room) => (first_words(&what, room), figures),
            None => (what, figures),
        };
        let name = self.live.paint_name(agent);
        let line = format!("{}{name}{again}: {what}  {}", self.dim(&head), self.dim(&figures));
        self.status(line.trim_end());
        if matches!(call.step, Step::Think | Step::Sample) {
            self.print_thoughts(&replied.reply.text);
        }
    }

    /// Prints that the run continues without an agent.
    pub(super) fn print_loss(&self, agent: &str, lost: &LostCall) {
        let cause = escape::terminal(&escape::one_line(&lost.cause));
        self.status(&format!(
            "{INDENT}{agent}: its server failed, and the run continues without it: {cause}"
        ));
    }

    fn dim(&self, text: &str) -> String {
        self.output.paint(text, "2")
    }

    /// Shows a person an agent's thoughts: all of them with `--verbose`, or else their end.
    fn print_thoughts(&self, text: &str) {
        let Some(width) = self.output.width() else { return };
        if !self.output.is_verbose() {
            let room = width.saturating_sub(INDENT.len());
            let end = last_words(&escape::terminal(&escape::one_line(text)), room);
            self.status(&format!("{INDENT}{}", self.dim(&end)));
            return;
        }
        let mut lines = Vec::new();
        for line in escape::terminal(text).lines() {
            lines.push(format!("{INDENT}{}", self.dim(line)));
        }
        self.status(&lines.join("\n"));
    }

    /// Reports a fault that may pass: in a moving line, or once if no line moves.
    fn report_retry(&self, error: &ProviderError, wait: Duration) {
        let why = escape::terminal(&error.to_string());
        if self.live.has_line() {
            self.live.show_trouble(format!("trying again in {:.0} s: {why}", wait.as_secs_f64().ceil()));
        } else if *self.trouble.borrow() != why {
            self.output.status(&format!("{why}; trying again"));
        }
        self.trouble.replace(why);
    }

    pub(super) fn print_execution(&self, executed: &Executed, execution: &Execution) {
        self.live.end_execution();
        let Executed { by, result, took_ms, .. } = executed;
        let end = result.end;
        let printed = result.last_line().map(escape::excerpt).unwrap_or_default();
        let why = if printed.is_empty() { String::new() } else { format!(": {printed}") };
        let text = escape::excerpt(execution.text());
        let line = match (by, end.is_success()) {
            (Executor::Command(_), true) => format!("the check passes “{text}”"),
            (Executor::Command(_), false) => format!("the check refuses “{text}”, it {end}{why}"),
            (Executor::Interpreter(_), true) if matches!(execution, Execution::Trial { .. }) => {
                format!("the program gives {}", escape::excerpt(&trial_results(&result.output).join(", ")))
            }
            (Executor::Interpreter(_), true) => format!("the program prints “{printed}”"),
            (Executor::Interpreter(_), false) => format!("the program {end}{why}"),
        };
        let seconds = Duration::from_millis(*took_ms).as_secs_f64();
        let line = escape::terminal(&format!("{line}  [{seconds:.1} s]"));
        self.status(&format!("{INDENT}{}", self.dim(&line)));
    }

    fn print_record(&self, record: &Record) {
        if self.output.format == Format::Jsonl {
            // A record that was serialised before can be serialised again, and a reader that has gone away is not an error.
            let line = serde_json::to_string(record).unwrap_or_default();
            let _ = self.output.line(&line);
        }
    }
}

/// The printer of a wait for something outside the program.
struct WaitPrinter {
    output: Output,
    spinner: Option<ProgressBar>,
    /// The seconds after which the next line is printed, if no line moves.
    next: Cell<u64>,
    /// The thing that is awaited now.
    what: RefCell<String>,
}

impl WaitPrinter {
    /// Begins to wait for `what`.
    fn new(output: Output, what: &str) -> Self {
        let printer =
            Self { output, spinner: new_spinner(output), next: Cell::new(30), what: RefCell::default() };
        printer.status(what);
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

impl Reporter for WaitPrinter {
    fn status(&self, what: &str) {
        match &self.spinner {
            Some(bar) => {
                let width = self.output.width().unwrap_or(usize::MAX).saturating_sub(HEAD_COLUMNS);
                bar.set_message(first_words(what, width));
            }
            None if *self.what.borrow() == what => {}
            None => self.output.status(what),
        }
        what.clone_into(&mut self.what.borrow_mut());
    }

    fn warn(&self, line: &str) {
        self.output.warn(line);
    }

    fn wait_for(&self, what: &str) -> Box<dyn Reporter + '_> {
        self.output.wait_for(what)
    }

    /// Prints a line now and then, each after twice the time of the last.
    fn set_elapsed(&self, after: Duration) {
        let seconds = after.as_secs();
        if self.spinner.is_none() && seconds >= self.next.get() {
            self.output.status(&format!("still waiting after {seconds} s"));
            self.next.set(seconds * 2);
        }
    }

    fn finish(self: Box<Self>, line: &str) {
        // If no line moves, the last line may be the same.
        let is_printed = self.spinner.is_none() && *self.what.borrow() == line;
        let output = self.output;
        drop(self);
        if !is_printed {
            output.status(line);
        }
    }
}

impl Reporter for Output {
    fn status(&self, line: &str) {
        Output::status(self, line);
    }

    fn warn(&self, line: &str) {
        Output::warn(self, line);
    }

    fn wait_for(&self, what: &str) -> Box<dyn Reporter + '_> {
        Box::new(WaitPrinter::new(*self, what))
    }

    fn observe_run(&self) -> Box<dyn RunObserver + '_> {
        Box::new(ProgressPrinter::new(*self))
    }

    fn report_run(&self, result: &RunResult, dir: &Path, endpoints: &[Endpoint]) {
        match result.outcome {
            // The outcome is reported with the decision.
            OutcomeKind::Agreed | OutcomeKind::NoAgreement => print_review(self, result, dir, endpoints),
            OutcomeKind::Abstained
            | OutcomeKind::Vetoed
            | OutcomeKind::Budget
            | OutcomeKind::Failed
            | OutcomeKind::Interrupted => {
                print_result(self, result, dir, endpoints);
            }
        }
    }

    fn report_row(&self, row: &Value) -> std::io::Result<()> {
        if self.format == Format::Text {
            return Ok(());
        }
        self.json(row).map_err(std::io::Error::other)
    }
}

impl Drop for ProgressPrinter {
    fn drop(&mut self) {
        self.finish();
    }
}

impl RunObserver for ProgressPrinter {
    fn on_event(&self, event: RunEvent<'_>) {
        match event {
            RunEvent::Writing | RunEvent::Failed { .. } => {}
            RunEvent::Written(record) => self.print_record(record),
            RunEvent::Calling { agent, ask } => {
                if let Some(why) = &ask.refused {
                    let line =
                        escape::terminal(&format!("{agent}'s reply was rejected: {why}; asking again"));
                    self.status(&format!("{INDENT}{}", self.dim(&line)));
                }
                self.live.begin(agent, ask.call);
            }
            RunEvent::Streaming { call, tokens, text } => self.live.receive(call, tokens, text),
            RunEvent::Again { error, wait, .. } => self.report_retry(error, wait),
            RunEvent::Answered { agent, replied, usage, took } => {
                self.trouble.borrow_mut().clear();
                self.live.end(replied.call);
                self.print_reply(agent, replied, usage, Some(took));
            }
            RunEvent::Remarked { agent, remark } => self.status(&format!("{INDENT}{agent}: {remark}")),
            RunEvent::Lost { agent, lost } => {
                self.live.end(lost.call);
                self.print_loss(agent, lost);
            }
            RunEvent::Cancelled { agent, call } => {
                self.live.end(call);
                self.status(&format!("{INDENT}{agent}: cancelled, it can no longer change the result"));
            }
            RunEvent::Executing { .. } => self.live.begin_execution(),
            RunEvent::Executed { executed, execution } => self.print_execution(executed, execution),
            RunEvent::Stopping { at_once: false } => {
                self.status("finishing calls in flight; press Ctrl-C again to stop now");
            }
            RunEvent::Stopping { at_once: true } => self.status("stopping now"),
        }
    }
}

/// Returns one line about an answer or a ballot of a panel.
fn describe_form(value: &Value) -> String {
    if let Some(answer) = value.get("response") {
        return describe_answer(answer);
    }
    let (mut totals, mut has_score) = (Vec::new(), false);
    for (label, mark) in value.as_object().into_iter().flatten() {
        // A model may write any number here, even one that is not a valid score.
        let scores: Vec<u64> = Scores::CRITERIA.iter().filter_map(|name| mark[name].as_u64()).collect();
        has_score |= !scores.is_empty();
        let total = scores.into_iter().fold(0, u64::saturating_add);
        totals.push(format!("{} {total}", escape::excerpt(label)));
    }
    if !has_score {
        return format!("writes {}", escape::excerpt(&value.to_string()));
    }
    format!("scores {}", totals.join(", "))
}

/// Returns the last line of a text that is not empty, in which a voter gives its answer.
fn last_line(text: &str) -> &str {
    // The fence behind a program says nothing.
    text.lines().map(str::trim).rfind(|line| !line.is_empty() && !line.starts_with("```")).unwrap_or_default()
}

fn describe_answer(answer: &Value) -> String {
    let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
    format!("answers “{}”", escape::excerpt(&text))
}

/// Returns one line about a reply that should be an envelope. It shows what the agent claims; the protocol decides whether the claim
/// counts.
fn describe_envelope(reply: &Reply) -> String {
    let object = extract(&reply.text).map_or(reply.text.as_str(), |found| found.object);
    let Ok(value) = serde_json::from_str::<Value>(object) else {
        let is_program = reply.text.contains("```");
        return if is_program {
            "writes a program".to_owned()
        } else {
            format!("writes no valid JSON: {}", escape::excerpt(&reply.text))
        };
    };
    let measured = reply.yes.map(|yes| f64::from(yes) / 10_000.0);
    let confidence = measured.or(value["confidence"].as_f64());
    if let Some(findings) = value["findings"].as_array() {
        let sure = value["confidence"].as_u64().unwrap_or_default();
        let (verdict, summary) = (excerpt_field(&value, "verdict"), excerpt_field(&value, "summary"));
        let found = counted(findings.len(), "finding");
        return format!("{verdict}, {found}, {sure} % sure: {summary}");
    }
    if value["claim_1"].is_string() {
        let answers = value.as_object().into_iter().flatten();
        let (yes, no): (Vec<_>, Vec<_>) = answers.partition(|(_, answer)| *answer == "yes");
        return format!("confirms {} of {}", yes.len(), counted(yes.len() + no.len(), "finding"));
    }
    let is_council = ["framing", "checks", "veto", "confidence"].iter().any(|name| !value[name].is_null());
    if is_council {
        let checks = counted(value["checks"].as_array().map_or(0, Vec::len), "check");
        let what = match (value["framing"].is_string(), value.get("response").is_some()) {
            (true, _) => format!("reads it as “{}”", excerpt_field(&value, "framing")),
            (false, true) => describe_answer(&value["response"]),
            (false, false) if value["veto"] == true => {
                format!("vetoes after {checks}: {}", excerpt_field(&value, "reasoning"))
            }
            (false, false) => format!("passes it after {checks}"),
        };
        let confidence =
            confidence.map_or_else(|| "no confidence".to_owned(), |sure| format!("confidence {sure:.2}"));
        return format!("{what}, {confidence}");
    }
    if value["status"].is_null() && value["final_solution"].is_null() {
        return describe_form(&value);
    }
    let solution = &value["final_solution"];
    let text = match (solution["accepts"].as_str(), &solution["canonical_text"]) {
        (Some(handle), _) => format!(", accepts {}", escape::excerpt(handle)),
        (None, Value::Null) => String::new(),
        (None, Value::String(text)) => format!(", “{}”", escape::excerpt(text)),
        (None, value) => format!(", {}", escape::excerpt(&value.to_string())),
    };
    format!("{}{text}", excerpt_field(&value, "status"))
}

fn excerpt_field(value: &Value, name: &str) -> String {
    escape::excerpt(value[name].as_str().unwrap_or_default())
}
