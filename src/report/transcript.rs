//! The transcript: a run as Markdown, in the order in which it happened.
//!
//! The input is records. The output is a step for each of them that has something to say, or all of them as one text. Text by models is
//! quoted line by line, so nothing in it can pass for the transcript's own words.

use std::fmt::Write as _;

use super::form::{describe_form, write_quote};
use super::vote::{describe_stop, describe_votes};
use crate::calibration::Confidence;
use crate::engine::{Mismatch, ReplayError, RunState};
use crate::journal::{Entry, Executed, Executor, Found, LeftOut, LostCall, Record, Replied};
use protocol::core::{BasisPoints, InterpreterNote};
use protocol::map_reduce::Fact;
use protocol::pacing::SamplePermit;
use protocol::panel::{Evaluation, Scores};
use protocol::review::{Finding, ReviewerReport};
use protocol::sampling::{SampleReport, VoteSection};
use protocol::text::{Envelope, counted, escape, percent};
use protocol::{
    CallId, CallPhase, Dissent, Execution, ExecutionResult, Method, Outcome, Params, Passage, Section, Step,
    trial_calls, trial_results,
};
use quorum::Opinion;

/// A step of a run, as its transcript tells it.
#[derive(Clone, Debug)]
pub(super) struct TranscriptStep {
    /// The heading, if the step has one.
    pub(super) heading: Option<String>,
    /// The purpose of the call, if the step is a reply: the part of the heading that names neither the round nor the agent.
    pub(super) purpose: Option<String>,
    /// Whether the step is a reply that does not count.
    pub(super) is_refused: bool,
    /// The text below it.
    pub(super) text: String,
}

/// Returns the transcript of a whole journal.
///
/// Returns [`ReplayError`] if the records do not fit together.
pub fn transcript(records: &[Record]) -> Result<String, ReplayError> {
    let mut steps = String::new();
    let state = walk(records, |_, _, TranscriptStep { heading, text, .. }| {
        if let Some(heading) = heading {
            let _ = writeln!(steps, "## {heading}\n");
        }
        steps.push_str(&text);
    })?;
    let mut out = opening(&state);
    out.push_str(&steps);
    write_ranking(&mut out, &state);
    write_reviews(&mut out, &state);
    write_facts(&mut out, &state);
    write_remainder(&mut out, &state);
    Ok(out)
}

/// Follows a run record by record, and passes each step to `each`, with its record and the state after it. Returns the last state.
///
/// Returns [`ReplayError`] if the records do not fit together.
pub(super) fn walk(
    records: &[Record],
    mut each: impl FnMut(&RunState, &Record, TranscriptStep),
) -> Result<RunState, ReplayError> {
    let first = records.first().ok_or(ReplayError { line: 1, why: Mismatch::NotOpened })?;
    let mut state = RunState::open(first).map_err(|why| ReplayError { line: 1, why })?;
    for record in &records[1..] {
        state.apply(record).map_err(|why| ReplayError { line: record.seq + 1, why })?;
        if let Some(step) = step(&state, record) {
            each(&state, record, step);
        }
    }
    Ok(state)
}

/// Returns the step of a record, if it has something to say.
fn step(state: &RunState, record: &Record) -> Option<TranscriptStep> {
    let (mut text, mut name, mut is_refused) = (String::new(), None, false);
    let heading = match &record.event {
        Entry::Replied(replied) => {
            is_refused = write_reply(&mut text, state, replied);
            let (what, again) = purpose(state, replied.call);
            name = Some(what + &again);
            write_no_vote(&mut text, state, replied.call);
            if let Some(remark) = state.remark() {
                let _ = writeln!(text, "*{}: {remark}.*\n", state.agent_name(replied.call.agent));
            }
            Some(heading(state, replied.call))
        }
        Entry::Lost(LostCall { call, cause }) => {
            let name = state.agent_name(call.agent);
            let _ = writeln!(text, "*The server of {name} failed, and the run continued without {name}:*\n");
            write_quote(&mut text, cause);
            text.push('\n');
            None
        }
        Entry::Found(found) => {
            write_passages(&mut text, found);
            Some(format!("Round {}: {} passages found", found.round, found.passages.len()))
        }
        Entry::Executed(_) => {
            let (what, executed) = state.executions_made().last()?;
            write_execution(&mut text, what, executed);
            None
        }
        Entry::LeftOut(LeftOut { agent, parameter, .. }) => {
            let _ = writeln!(text, "*The server of {} takes no `{parameter}`.*\n", state.agent_name(*agent));
            None
        }
        Entry::Permitted(SamplePermit { round, threshold, .. }) => {
            let _ = writeln!(
                text,
                "*One more sample is permitted in round {round} of the budget, which is for runs below {threshold}.*\n"
            );
            None
        }
        Entry::Closed(_) => {
            let _ = writeln!(text, "*The budget permits no more samples; those that there are decide.*\n");
            None
        }
        Entry::Stopped { outcome } => {
            write_end(&mut text, outcome);
            Some(format!("Outcome: {}", outcome.name()))
        }
        Entry::Resumed { program, .. } => {
            let _ = writeln!(text, "*Resumed by {} at {}.*\n", without_build(program), record.at);
            None
        }
        Entry::Opened(_) | Entry::Asked(_) => return None,
    };
    Some(TranscriptStep { heading, purpose: name, is_refused, text })
}

fn opening(state: &RunState) -> String {
    let opened = state.opened();
    let mut out = format!("# Run {}\n\n", state.run());
    let _ = writeln!(
        out,
        "Roleset {}, seed {}, {}.\n",
        opened.setup.roleset,
        opened.setup.seed,
        without_build(&opened.program)
    );
    for (agent, endpoint) in opened.endpoints.iter().enumerate() {
        let _ = writeln!(out, "- {}: {}", state.agent_name(agent), endpoint.label());
    }
    out.push_str("\n## Task\n\n");
    write_quote(&mut out, &opened.setup.task.prompt);
    out.push('\n');
    if let Some(check) = &opened.setup.check_command {
        out.push_str("The check of every final text:\n\n");
        write_quote(&mut out, &check.command);
        out.push('\n');
    }
    out
}

/// Writes a reply. Returns whether it does not count.
fn write_reply(out: &mut String, state: &RunState, replied: &Replied) -> bool {
    let call = replied.call;
    let is_sample = state.opened().setup.is_sample(call);
    if is_sample && replied.reply.text.trim().is_empty() {
        out.push_str("(empty)\n");
    }
    // An answer of a vote may be an object itself, and thoughts are words.
    let is_form = matches!(call.step, Step::Envelope | Step::Choose) && !is_sample;
    let refused = state.to_ask().find(|ask| {
        ask.call.part == call.part
            && ask.call.agent == call.agent
            && ask.call.step == call.step
            && call.step != Step::Weigh
            && ask.call.draft == call.draft
            && ask.call.attempt == call.attempt + 1
    });
    let answered = refused.and_then(|ask| ask.messages.last());
    match Envelope::parse(&replied.reply.text) {
        Ok(envelope) if call.step == Step::Envelope => write_envelope(out, &envelope),
        Ok(_) | Err(_) if call.step == Step::Envelope && write_ballot(out, state, call) => {}
        // A form that does not count is shown as it was written.
        Ok(_) | Err(_) if is_form && answered.is_none() => write_form_or_words(out, &replied.reply.text),
        Ok(_) | Err(_) => write_quote(out, &replied.reply.text),
    }
    if let Some(message) = answered {
        out.push_str("\nNot counted. The agent received:\n\n");
        write_quote(out, &message.content);
    }
    out.push('\n');
    answered.is_some()
}

fn write_form_or_words(out: &mut String, text: &str) {
    match describe_form(text) {
        Some(form) => out.push_str(&form),
        None => write_quote(out, text),
    }
}

/// Writes a ballot with the names behind its labels. Returns false if this is not a ballot, or one that does not
/// count.
fn write_ballot(out: &mut String, state: &RunState, call: CallId) -> bool {
    let Section::Panel(section) = state.report().section else { return false };
    let evaluator = state.agent_name(call.agent);
    let evaluations = section.evaluations.iter();
    let mut marks: Vec<&Evaluation> =
        evaluations.filter(|mark| mark.evaluator == evaluator && 2 * mark.iteration == call.round).collect();
    marks.sort_by_key(|mark| mark.place);
    for Evaluation { target, label, total_score, scores, feedback, .. } in &marks {
        let Scores { accuracy, relevance, completeness, clarity } = scores;
        let _ = writeln!(
            out,
            "- {label}, by {target}: **{total_score}** (accuracy {accuracy}, relevance {relevance}, completeness \
             {completeness}, clarity {clarity})\n"
        );
        write_quote(out, feedback);
    }
    !marks.is_empty()
}

/// Writes the final ranking of a panel's answers.
fn write_ranking(out: &mut String, state: &RunState) {
    let Section::Panel(section) = state.report().section else { return };
    if section.vote.is_some() {
        return;
    }
    out.push_str("## Ranking\n\n");
    for placed in &section.ranking {
        let mean =
            placed.average_score.map_or_else(|| "not judged".to_owned(), |mean| format!("{mean:.1} of 40"));
        let _ = writeln!(out, "- {}: {mean}, {} ballots", placed.response.member, placed.ballots);
    }
    let (void, cancelled) = (section.void_ballots, section.cancelled_ballots);
    let _ = writeln!(out, "\n{void} ballots were void, and {cancelled} were not awaited.\n");
}

/// Writes the opinions of reviewers, with the place of each finding.
fn write_reviews(out: &mut String, state: &RunState) {
    let Section::Approval(section) = state.report().section else { return };
    out.push_str("## Reviews\n\n");
    for ReviewerReport { reviewer, opinion, findings } in &section.reviews {
        let (word, why) = match opinion {
            Opinion::Approve { notes, .. } => ("approves", notes),
            Opinion::Reject { reason, .. } => ("rejects", reason),
            Opinion::Abstain { reason } => ("abstains", reason),
        };
        let _ = writeln!(out, "{reviewer} {word}:\n");
        write_quote(out, why);
        out.push('\n');
        for Finding { path, line, quote, problem, severity } in findings {
            let _ = writeln!(out, "- {}, line {line}, {severity}:\n", escape::json_string(path));
            write_quote(out, problem);
            out.push_str(">\n");
            write_quote(out, &format!("    {quote}"));
            out.push('\n');
        }
    }
}

/// Writes the facts that the numbers in an answer from pieces refer to.
fn write_facts(out: &mut String, state: &RunState) {
    let Section::MapReduce(section) = state.report().section else { return };
    out.push_str("## Facts\n\n");
    for (index, Fact { document, start, end, quote: words }) in section.findings.iter().enumerate() {
        let name = escape::json_string(document);
        let _ = writeln!(out, "[{}] {name}, bytes {start} to {end}:\n", index + 1);
        write_quote(out, words);
        out.push('\n');
    }
}

/// Writes an execution and its result, in the place of the record, which may be after the reply of another agent.
fn write_execution(out: &mut String, execution: &Execution, executed: &Executed) {
    let Executed { by, result: ExecutionResult { end, output, tail, .. }, .. } = executed;
    let what = match (by, end.is_success()) {
        (Executor::Command(_), true) => "The check passed this text".to_owned(),
        (Executor::Command(_), false) => "The check refused this text".to_owned(),
        (Executor::Interpreter(InterpreterNote { name, version, .. }), _) => {
            format!("This program was run by {} {}", escape::excerpt(name), escape::excerpt(version))
        }
    };
    let _ = writeln!(out, "*{what}; it {end}.*\n");
    let (text, output) = match execution {
        Execution::Trial { source } => (trial_calls(source), trial_results(output).join("\n")),
        Execution::Check { .. } | Execution::Program { .. } => (execution.text(), output.clone()),
    };
    write_quote(out, text);
    out.push('\n');
    if !output.trim().is_empty() {
        out.push_str("It printed:\n\n");
        write_quote(out, &output);
        out.push('\n');
    }
    if !tail.is_empty() {
        out.push_str("The end of that output:\n\n");
        write_quote(out, tail);
        out.push('\n');
    }
}

fn write_passages(out: &mut String, found: &Found) {
    for Passage { document, start, text, .. } in &found.passages {
        let _ = writeln!(out, "{}, from byte {start}:\n", escape::json_string(document));
        write_quote(out, text);
        out.push('\n');
    }
}

/// Returns the heading of a reply, with its author and its purpose.
fn heading(state: &RunState, call: CallId) -> String {
    let (name, (what, again)) = (state.agent_name(call.agent), purpose(state, call));
    if state.opened().setup.is_sample(call) {
        return format!("Sample {} of {name}, {what}{again}", call.draft + 1);
    }
    let blind = if is_blind(state, call) { ", blind" } else { "" };
    let part = if call.part > 0 { format!("Part {}, round", call.part) } else { "Round".to_owned() };
    format!("{part} {}: {name}, {what}{blind}{again}", call.round)
}

/// Returns the purpose of a call in words, and how often it was made before.
fn purpose(state: &RunState, call: CallId) -> (String, String) {
    let again = match (call.step, call.attempt) {
        (_, 0) => String::new(),
        (Step::Weigh, _) => ", in the other order".to_owned(),
        (_, attempt) => format!(", attempt {}", attempt + 1),
    };
    let what = match call.step {
        Step::Sample => "in words",
        Step::Think => "private thoughts",
        Step::Envelope => form_name(state, call),
        Step::Choose => "arbiter's choice",
        Step::Weigh => "private comparison",
    };
    (format!("{what}{}", option_order(state, call)), again)
}

/// Returns the order in which a sample of a vote saw the options, in words.
fn option_order(state: &RunState, call: CallId) -> String {
    let order = sample(state, call).and_then(|sample| sample.order);
    order.map_or(String::new(), |order| format!(", with the options in the order {}", order.join(", ")))
}

/// Writes why the sample that a reply completes is not a vote.
fn write_no_vote(out: &mut String, state: &RunState, call: CallId) {
    if let Some(why) = sample(state, call).and_then(|sample| sample.no_vote) {
        let _ =
            writeln!(out, "*No vote: {}.*\n", escape::plain(&why).replace('\n', " ").trim_end_matches('.'));
    }
}

/// Returns the report on the sample of a vote that a call belongs to.
fn sample(state: &RunState, call: CallId) -> Option<SampleReport> {
    // The report of another protocol would be made for nothing.
    if !state.opened().setup.is_sample(call) {
        return None;
    }
    let section = state.report().section;
    let mut samples = section.votes()?.samples.iter();
    samples.find(|sample| sample.call.agent == call.agent && sample.call.draft == call.draft).cloned()
}

/// Returns true if no agent knows what another wrote in the round of this call.
pub(super) fn is_blind(state: &RunState, call: CallId) -> bool {
    let drafted = CallId { part: 0, step: Step::Envelope, ..call };
    CallPhase::of(&state.opened().setup, drafted) == CallPhase::Blind
}

/// Returns the name of the form in which an agent commits.
fn form_name(state: &RunState, call: CallId) -> &'static str {
    let setup = &state.opened().setup;
    if setup.is_sample(call) {
        return match setup.agents.get(call.agent) {
            Some(agent) if agent.method == Method::Program => "a program",
            Some(_) | None => "the answer alone, in a form",
        };
    }
    match setup.params {
        Params::Pair(_) => "envelope",
        Params::Council(_) => {
            ["framing", "response", "verification"].get(call.agent).copied().unwrap_or("form")
        }
        // Rounds of answers and of ballots alternate.
        Params::Panel(_) if call.round.is_multiple_of(2) => "ballot",
        Params::Panel(_) => "answer",
        Params::Approval(_) if CallPhase::of(setup, call) == CallPhase::Ballots => {
            "the findings of others, judged"
        }
        Params::Approval(_) => "review",
        Params::Vote(_) => "the answer",
    }
}

fn write_envelope(out: &mut String, envelope: &Envelope) {
    let status = serde_json::to_value(envelope.status).unwrap_or_default();
    let _ = writeln!(out, "Status **{}**.\n", status.as_str().unwrap_or_default());
    write_quote(out, &envelope.public_message);
    for need in &envelope.needs_from_peer {
        out.push_str("\nAsks its peer:\n\n");
        write_quote(out, need);
    }
    if let Some(change) = envelope.meta.as_ref().and_then(|meta| meta.change.as_ref())
        && change.names_a_reason()
    {
        out.push_str("\nNames as the reason for a change:\n\n");
        write_quote(out, &change.detail);
    }
    let Some(solution) = &envelope.final_solution else { return };
    if let Some(handle) = &solution.accepts {
        let _ = writeln!(out, "\nAccepts {}.", escape::excerpt(handle));
    }
    if let Some(written) = &solution.canonical_text {
        out.push_str("\nFinal text:\n\n");
        write_quote(out, &written.text);
    }
}

fn write_end(out: &mut String, outcome: &Outcome) {
    match outcome {
        Outcome::Agreed { how, text, sha256 } => {
            let _ = writeln!(out, "How: {}. SHA-256 of the canonical text: `{sha256}`.\n", how.name());
            write_quote(out, text);
        }
        Outcome::NoAgreement { reason } => {
            let _ = writeln!(out, "Because {reason}.");
        }
        Outcome::Abstained { confidence, threshold } => {
            let _ = writeln!(out, "The answer is withheld: {}.", describe_withheld(*confidence, *threshold));
        }
        Outcome::Vetoed { reason, source, quote } => {
            write_quote(out, reason);
            let _ = writeln!(out, "\nAgainst {source}:\n");
            write_quote(out, quote);
        }
        Outcome::Budget { limit } => write_quote(out, limit),
        Outcome::Failed { cause } => write_quote(out, cause),
        Outcome::Interrupted => out.push_str("The run can be resumed.\n"),
    }
    out.push('\n');
}

fn write_remainder(out: &mut String, state: &RunState) {
    let report = state.report();
    match report.section.votes() {
        Some(vote) => write_votes(out, vote),
        None => write_dissent(out, &report.dissent),
    }
    if let Some(confidence) = state.confidence() {
        let _ = writeln!(out, "Answer: {}.\n", describe_confidence(confidence));
    }
    if !report.degraded.is_empty() {
        out.push_str("## Degraded\n\n");
    }
    for loss in &report.degraded {
        let _ = writeln!(out, "- {}", escape::plain(&loss.detail).replace('\n', " "));
    }
}

fn write_votes(out: &mut String, vote: &VoteSection) {
    out.push_str("## Votes\n\n");
    for line in describe_votes(vote) {
        let _ = writeln!(out, "- {}", line.trim_start());
    }
    let _ = writeln!(out, "\n{}.\n", describe_stop(vote));
}

fn write_dissent(out: &mut String, others: &[Dissent]) {
    if !others.is_empty() {
        out.push_str("## Other answers\n\n");
    }
    for other in others {
        let _ = writeln!(out, "{} ({}):\n", other.agent, other.stage);
        write_quote(out, &other.text);
        out.push('\n');
    }
}

/// Returns in words why an answer with this confidence is withheld.
pub(super) fn describe_withheld(confidence: Option<BasisPoints>, threshold: BasisPoints) -> String {
    let least = percent(threshold.value());
    match confidence {
        Some(value) => format!(
            "the confidence in the answer is {}, and only {least} and more is given",
            percent(value.value())
        ),
        None => format!(
            "the calibration has seen no such answer or not this model, and only a confidence of {least} and more is given"
        ),
    }
}

/// Returns the confidence in an answer, and the calibration that it comes from.
pub fn describe_confidence(confidence: &Confidence) -> String {
    let Confidence { value, calibrated_on: on, .. } = confidence;
    let value = percent(value.value());
    format!("confidence {value}, by the calibration of {} on {}", on.made_at, counted(on.runs, "run"))
}

/// Returns the name and version of a program without its build, which says nothing to a reader.
fn without_build(program: &str) -> &str {
    program.split_once('+').map_or(program, |(version, _)| version)
}
