//! The transcript: a run as markdown, in the order in which it happened.

use std::fmt::Write as _;

use crate::engine::{Mismatch, RunState};
use crate::journal::{Entry, Found, Record, Replied};
use crate::protocol::map_reduce::Fact;
use crate::protocol::panel::{Evaluated, Scores};
use crate::protocol::{CallId, Outcome, Params, Passage, Section, Step};
use crate::text::{Envelope, escape};

/// Returns the transcript of a whole journal.
///
/// Model text is quoted line by line, so that nothing in it can pass for the transcript's own words.
///
/// # Errors
///
/// [`Mismatch`] with its line, if the records do not fit together.
pub fn transcript(records: &[Record]) -> Result<String, (u64, Mismatch)> {
    let first = records.first().ok_or((1, Mismatch::NotOpened))?;
    let mut ledger = RunState::open(first).map_err(|e| (1, e))?;
    let mut out = opening(&ledger);
    for record in &records[1..] {
        ledger.apply(record).map_err(|e| (record.seq + 1, e))?;
        match &record.event {
            Entry::Replied(replied) => {
                reply(&mut out, &ledger, replied);
                if let Some(remark) = ledger.remark() {
                    let _ = writeln!(out, "*{}: {remark}.*\n", ledger.agent_name(replied.call.agent));
                }
            }
            Entry::Found(found) => passages(&mut out, found),
            Entry::Stopped { outcome } => end(&mut out, outcome),
            Entry::Resumed { program, .. } => {
                let _ = writeln!(out, "*Resumed by {program} at {}.*\n", record.at);
            }
            Entry::Opened(_) | Entry::Asked(_) => {}
        }
    }
    ranking(&mut out, &ledger);
    facts(&mut out, &ledger);
    dissent(&mut out, &ledger);
    Ok(out)
}

fn opening(ledger: &RunState) -> String {
    let opened = ledger.opened();
    let mut out = format!("# Run {}\n\n", ledger.run());
    let _ =
        writeln!(out, "Roleset {}, seed {}, {}.\n", opened.setup.roleset, opened.setup.seed, opened.program);
    for (agent, endpoint) in opened.endpoints.iter().enumerate() {
        let _ = writeln!(out, "- {}: {}", ledger.agent_name(agent), endpoint.label());
    }
    out.push_str("\n## Task\n\n");
    quoted(&mut out, &opened.setup.task.prompt);
    out.push('\n');
    out
}

fn reply(out: &mut String, ledger: &RunState, replied: &Replied) {
    let call = replied.call;
    let what = match call.step {
        Step::Think => "private thoughts",
        Step::Envelope => form_name(ledger, call),
        Step::Choose => "arbiter's choice",
        Step::Weigh => "private comparison",
    };
    let again = match (call.step, call.attempt) {
        (_, 0) => String::new(),
        (Step::Weigh, _) => ", in the other order".to_owned(),
        (_, attempt) => format!(", attempt {}", attempt + 1),
    };
    let blind = if is_blind(ledger, call.round) { ", blind" } else { "" };
    let name = ledger.agent_name(call.agent);
    let part = if call.part > 0 { format!("Part {}, round", call.part) } else { "Round".to_owned() };
    let _ = writeln!(out, "## {part} {}: {name}, {what}{blind}{again}\n", call.round);
    match Envelope::parse(&replied.reply.text) {
        Ok(envelope) if call.step == Step::Envelope => parsed(out, &envelope),
        Ok(_) | Err(_) if call.step == Step::Envelope && ballot(out, ledger, call) => {}
        Ok(_) | Err(_) => quoted(out, &replied.reply.text),
    }
    let refused = ledger.to_ask().find(|ask| {
        ask.call.part == call.part
            && ask.call.agent == call.agent
            && ask.call.step == call.step
            && call.step != Step::Weigh
            && ask.call.draft == call.draft
            && ask.call.attempt == call.attempt + 1
    });
    if let Some(message) = refused.and_then(|ask| ask.messages.last()) {
        out.push_str("\nNot counted. The agent was told:\n\n");
        quoted(out, &message.content);
    }
    out.push('\n');
}

/// Tells a ballot with the names behind its labels; returns false if this is none, or none that counts.
fn ballot(out: &mut String, ledger: &RunState, call: CallId) -> bool {
    let Section::Panel(section) = ledger.report().section else { return false };
    let evaluator = ledger.agent_name(call.agent);
    let is_its = |e: &&Evaluated| e.evaluator == evaluator && 2 * e.iteration == call.round;
    let mut marks: Vec<&Evaluated> = section.evaluations.iter().filter(is_its).collect();
    marks.sort_by_key(|mark| mark.place);
    for Evaluated { target, label, total_score, scores, feedback, .. } in &marks {
        let Scores { accuracy, relevance, completeness, clarity } = scores;
        let _ = writeln!(
            out,
            "- {label}, by {target}: **{total_score}** (accuracy {accuracy}, relevance {relevance}, completeness \
             {completeness}, clarity {clarity})\n"
        );
        quoted(out, feedback);
    }
    !marks.is_empty()
}

/// Tells how the answers of a panel stand in the end.
fn ranking(out: &mut String, ledger: &RunState) {
    let Section::Panel(section) = ledger.report().section else { return };
    out.push_str("## Ranking\n\n");
    for placed in &section.ranking {
        let mean =
            placed.average_score.map_or_else(|| "not judged".to_owned(), |mean| format!("{mean:.1} of 40"));
        let _ = writeln!(out, "- {}: {mean}, {} ballots", placed.response.member, placed.ballots);
    }
    let (void, cancelled) = (section.void_ballots, section.cancelled_ballots);
    let _ = writeln!(out, "\n{void} ballots were void, and {cancelled} were not awaited.\n");
}

/// What the numbers in an answer from pieces mean.
fn facts(out: &mut String, ledger: &RunState) {
    let Section::MapReduce(section) = ledger.report().section else { return };
    out.push_str("## Facts\n\n");
    for (index, Fact { document, start, end, quote: words }) in section.findings.iter().enumerate() {
        let name = escape::json_string(document);
        let _ = writeln!(out, "[{}] {name}, bytes {start} to {end}:\n", index + 1);
        quoted(out, words);
        out.push('\n');
    }
}

fn passages(out: &mut String, found: &Found) {
    let _ = writeln!(out, "## Round {}: {} passages found\n", found.round, found.passages.len());
    for Passage { document, start, text, .. } in &found.passages {
        let _ = writeln!(out, "{}, from byte {start}:\n", escape::json_string(document));
        quoted(out, text);
        out.push('\n');
    }
}

/// Whether nobody knows what another wrote in this round.
fn is_blind(ledger: &RunState, round: u32) -> bool {
    match ledger.opened().setup.params {
        Params::Pair(_) | Params::Panel(_) => round == 1,
        Params::Council(_) => round == 0,
        Params::Approval(_) => true,
    }
}

/// Returns what an agent writes when it commits.
fn form_name(ledger: &RunState, call: CallId) -> &'static str {
    match ledger.opened().setup.params {
        Params::Pair(_) => "envelope",
        Params::Council(_) => {
            ["framing", "response", "verification"].get(call.agent).copied().unwrap_or("form")
        }
        // By turns.
        Params::Panel(_) if call.round.is_multiple_of(2) => "ballot",
        Params::Panel(_) => "answer",
        Params::Approval(_) => "review",
    }
}

fn parsed(out: &mut String, envelope: &Envelope) {
    let status = serde_json::to_value(envelope.status).unwrap_or_default();
    let _ = writeln!(out, "Status **{}**.\n", status.as_str().unwrap_or_default());
    quoted(out, &envelope.public_message);
    for need in &envelope.needs_from_peer {
        out.push_str("\nAsks its peer:\n\n");
        quoted(out, need);
    }
    if let Some(change) =
        envelope.meta.as_ref().and_then(|m| m.change.as_ref()).filter(|c| c.names_a_reason())
    {
        out.push_str("\nNames as the reason for a change:\n\n");
        quoted(out, &change.detail);
    }
    let Some(solution) = &envelope.final_solution else { return };
    if let Some(handle) = &solution.accepts {
        let _ = writeln!(out, "\nAccepts {}.", escape::excerpt(handle));
    }
    if let Some(written) = &solution.canonical_text {
        out.push_str("\nFinal text:\n\n");
        quoted(out, &written.text);
    }
}

fn end(out: &mut String, outcome: &Outcome) {
    let _ = writeln!(out, "## Outcome: {}\n", outcome.name());
    match outcome {
        Outcome::Agreed { how, text, sha256 } => {
            let _ = writeln!(out, "How: {}. SHA-256 of the canonical text: `{sha256}`.\n", how.name());
            quoted(out, text);
        }
        Outcome::NoAgreement { reason } => {
            let _ = writeln!(out, "Because {reason}.");
        }
        Outcome::Vetoed { reason, source, quote } => {
            quoted(out, reason);
            let _ = writeln!(out, "\nAgainst {source}:\n");
            quoted(out, quote);
        }
        Outcome::Budget { limit } => quoted(out, limit),
        Outcome::Failed { cause } => quoted(out, cause),
        Outcome::Interrupted => out.push_str("The run can be resumed.\n"),
    }
    out.push('\n');
}

fn dissent(out: &mut String, ledger: &RunState) {
    let report = ledger.report();
    if !report.dissent.is_empty() {
        out.push_str("## Other answers\n\n");
    }
    for dissent in &report.dissent {
        let _ = writeln!(out, "{} ({}):\n", dissent.agent, dissent.stage);
        quoted(out, &dissent.text);
        out.push('\n');
    }
    if !report.degraded.is_empty() {
        out.push_str("## Degraded\n\n");
    }
    for loss in &report.degraded {
        let _ = writeln!(out, "- {}", escape::plain(&loss.detail).replace('\n', " "));
    }
}

fn quoted(out: &mut String, text: &str) {
    for line in escape::plain(text).lines() {
        let _ = writeln!(out, "> {line}");
    }
}
