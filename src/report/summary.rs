//! A summary of a run, for the person who opens it again: first the answer, then the words of each agent.
//!
//! The input is the state of a run and its result. The output is text. All that the agents wrote is in the
//! transcript.

use std::fmt::Write as _;

use super::result::{CheckVerdicts, RefusedText, RunResult};
use super::review::review_text;
use super::vote::{describe_stop, describe_votes};
use protocol::text::{counted, escape, excerpts, grouped};
use protocol::{RunSetup, Section};

/// The first line of the summary of a run that is under way.
const UNDER_WAY: &str = "open: the run is under way, and this is its record until now";

/// Returns the summary of a run, which may still be under way.
pub fn summary(setup: &RunSetup, result: &RunResult, is_under_way: bool) -> String {
    let mut out = if is_under_way { UNDER_WAY.to_owned() } else { describe_outcome(result) } + "\n";
    if let Section::Approval(section) = &result.section {
        let _ = writeln!(out, "\n{}", review_text(section, result.outcome).trim_end());
    } else {
        if let Some(text) = result.readable() {
            let _ = writeln!(out, "\n{}", escape::plain(text).trim_end());
        }
        let _ = writeln!(out, "\nasked    {}", escape::excerpt(&setup.task.prompt));
        for document in &setup.task.documents {
            let _ = writeln!(out, "with     {}", escape::json_string(&document.name));
        }
        write_agents(&mut out, result);
    }
    // The votes name every answer already.
    let is_vote = result.section.votes().is_some();
    let others = result.dissent.iter().filter(|dissent| dissent.stage != "review" && !is_vote);
    let others: Vec<_> = others.collect();
    let texts: Vec<&str> = others.iter().map(|dissent| dissent.text.as_str()).collect();
    for (dissent, text) in others.iter().zip(excerpts(&texts)) {
        let (agent, stage) = (&dissent.agent, dissent.stage);
        let _ = writeln!(out, "other    {agent} ({stage}): {text}");
    }
    if let Some(check) = &result.check {
        let _ = writeln!(out, "check    {}", describe_check(check));
    }
    for loss in &result.degraded {
        let _ = writeln!(out, "lost     {}", escape::one_line(&loss.detail));
    }
    let (usage, seconds) = (&result.usage, result.timing.total_ms as f64 / 1000.0);
    let _ = writeln!(
        out,
        "\nrun      {}, {}, seed {}\nused     {}, {} + {} tokens, {seconds:.1} s, from {}Z",
        result.run,
        result.roleset,
        setup.seed,
        counted(usage.calls, "call"),
        grouped(usage.prompt),
        grouped(usage.completion),
        result.timing.started_at.chars().take(19).collect::<String>()
    );
    out
}

/// Returns the verdicts of the user's check in one line, with the beginning of the text that was refused last.
pub fn describe_check(check: &CheckVerdicts) -> String {
    let CheckVerdicts { passed, refused, last_refused } = check;
    let counts = format!("passed {}, refused {refused}", counted(*passed, "text"));
    match last_refused {
        Some(RefusedText { text, why }) => {
            format!("{counts}; of “{}” it said: {}", escape::excerpt(text), escape::one_line(why))
        }
        None => counts,
    }
}

/// Returns the outcome in one line.
pub(super) fn describe_outcome(result: &RunResult) -> String {
    let outcome = result.outcome.name().replace('_', " ");
    match (&result.how, &result.reason) {
        (Some(how), _) => format!("{outcome} ({})", how.name()),
        (None, Some(reason)) => format!("{outcome}: {}", escape::one_line(reason)),
        (None, None) => outcome,
    }
}

/// Writes the answer that each agent held last; if answers were counted, all with their votes; for another panel, all by rank.
fn write_agents(out: &mut String, result: &RunResult) {
    let names = result.agents.iter().map(|agent| agent.report.name.chars().count());
    let width = names.max().unwrap_or_default();
    if let Some(vote) = result.section.votes() {
        for (at, line) in describe_votes(vote).iter().enumerate() {
            let _ = writeln!(out, "{:8} {line}", if at == 0 { "votes" } else { "" });
        }
        let _ = writeln!(out, "stop     {}", describe_stop(vote));
        if result.text.is_none()
            && let Some(texts) = &vote.texts
        {
            let _ = writeln!(out, "nearest  {}", escape::plain(&texts.nearest).trim_end());
        }
        return;
    }
    if let Section::Panel(panel) = &result.section {
        for placed in &panel.ranking {
            let (name, text) = (&placed.response.member, escape::excerpt(&placed.response.content));
            let mean =
                placed.average_score.map_or("not judged".to_owned(), |mean| format!("{mean:.1} of 40"));
            let _ = writeln!(out, "answer   {name:width$}  {mean}  {text}");
        }
        return;
    }
    for agent in &result.agents {
        let text = agent.report.text.as_deref().map_or("no answer".to_owned(), escape::excerpt);
        let _ = writeln!(out, "agent    {:width$}  {text}", agent.report.name);
    }
}
