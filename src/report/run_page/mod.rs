//! The page of a run: what each agent said in each round, side by side, who moved and why, and what the answer rests on.
//!
//! ```text
//!  records ──► steps of the transcript ──► rounds and cells ─┐
//!          ──► result ──► figures, votes, citations ─────────┴─► a template
//! ```
//!
//! The input is the records of a run, which may still be under way. The output is HTML: a whole page that loads nothing and runs nothing,
//! or its body alone. Every text is shown as plain text. A quote of the answer leads to its place in the source.

mod change;
mod rounds;
mod sources;

use std::collections::BTreeMap;

use minijinja::value::Serde;
use serde::Serialize;

use self::change::{ShownFile, change};
use self::rounds::{ShownRound, ShownStep, rounds};
use self::sources::{ShownQuote, ShownSource, sources};
use super::result::RunResult;
use super::summary::{describe_check, describe_outcome};
use super::transcript::walk;
use super::vote::describe_stop;
use super::worth::worth;
use crate::engine::{ReplayError, RunState};
use crate::journal::{Entry, Record};
use crate::page::environment;
use crypto::Digest;
use protocol::core::Endpoint;
use protocol::text::{counted, escape, grouped};
use protocol::{OutcomeKind, Section};

/// The most characters of the task in the heading.
const HEADING_CHARS: usize = 120;

/// The style sheet of a run, besides that of all pages.
pub const RUN_LOOK: &str = include_str!("run.css");

/// The form of a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PageForm {
    /// A file that stands for itself.
    Whole,
    /// The part that another page shows.
    Body,
}

/// The values of the template.
#[derive(Serialize)]
struct RunPage {
    run: String,
    heading: String,
    task: String,
    documents: Vec<String>,
    roleset: String,
    protocol: &'static str,
    /// The outcome, for colours: `agreed`, `open`, or another one.
    outcome: &'static str,
    /// The outcome in one line.
    ending: String,
    answer: Option<String>,
    worth: Option<String>,
    figures: Vec<(&'static str, String)>,
    agents: Vec<ShownAgent>,
    tally: VoteTable,
    rounds: Vec<ShownRound>,
    change: Vec<ShownFile>,
    citations: Vec<ShownQuote>,
    sources: Vec<ShownSource>,
    dissent: Vec<(String, String, String)>,
    degraded: Vec<String>,
    check: Option<String>,
    head: String,
}

/// An agent and the answer that it held last.
#[derive(Serialize)]
struct ShownAgent {
    name: String,
    model: String,
    changes: u32,
    text: Option<String>,
}

/// The votes for each answer, with their heading and a remark.
#[derive(Serialize)]
struct VoteTable {
    heading: &'static str,
    votes: Vec<AnswerVotes>,
    remark: Option<String>,
}

#[derive(Serialize)]
struct AnswerVotes {
    text: String,
    votes: u32,
    /// The share of all votes, in percent.
    share: f64,
    is_agreed: bool,
}

/// Returns the page of a run from its records. `head` is the SHA-256 of the last one.
///
/// Returns [`ReplayError`] if the records do not fit together.
///
/// # Panics
///
/// Never panics: the template is read by the program's tests.
pub fn run_page(records: &[Record], head: Digest, form: PageForm) -> Result<String, ReplayError> {
    let mut steps = Vec::new();
    let mut answers = BTreeMap::new();
    let state = walk(records, |state, record, step| {
        // The end of the run is at the top of the page.
        let is_end = matches!(&record.event, Entry::Stopped { outcome } if outcome.is_final());
        if !is_end {
            steps.push(ShownStep::new(state, record, step, &mut answers));
        }
    })?;
    let page = RunPage::new(&state, records, head, steps, form);
    let mut environment = environment();
    let templates = [
        ("run.html", include_str!("run.html")),
        ("run.css", RUN_LOOK),
        ("body.html", include_str!("body.html")),
    ];
    for (name, template) in templates {
        environment.add_template(name, template).expect("the built-in templates are read by the tests");
    }
    let name = match form {
        PageForm::Whole => "run.html",
        PageForm::Body => "body.html",
    };
    let template = environment.get_template(name).expect("the template was just added");
    Ok(template.render(Serde(&page)).expect("the template has all its values"))
}

impl RunPage {
    fn new(
        state: &RunState,
        records: &[Record],
        head: Digest,
        steps: Vec<ShownStep>,
        form: PageForm,
    ) -> Self {
        let result = RunResult::new(state, head);
        let setup = &state.opened().setup;
        // A file tells nothing of a run that is under way somewhere, and a server knows that it is.
        let is_open = state.outcome().is_none() && form == PageForm::Body;
        let task = &setup.task;
        let change = change(&task.documents, &result.section);
        let (citations, sources) = sources(state, records, &result.section);
        Self {
            run: result.run.clone(),
            heading: review_heading(&change).unwrap_or_else(|| heading(&task.prompt)),
            task: escape::terminal(&task.prompt),
            documents: task.documents.iter().map(|document| escape::terminal(&document.name)).collect(),
            roleset: result.roleset.clone(),
            protocol: result.protocol,
            outcome: if is_open { "open" } else { result.outcome.name() },
            ending: if is_open {
                "under way".to_owned()
            } else if result.outcome == OutcomeKind::Interrupted && form == PageForm::Body {
                // A server shows such a run only if its caller has stopped it for good.
                "stopped".to_owned()
            } else {
                escape::terminal(&describe_outcome(&result))
            },
            answer: result.text.as_deref().map(escape::terminal),
            worth: if is_open { None } else { worth(&result) },
            figures: figures(&result),
            agents: agents(&result, state.endpoints()),
            tally: tally(&result),
            rounds: rounds(state, steps),
            change,
            citations,
            sources,
            // A review is in its cell, and its findings are at the lines of the change.
            dissent: result
                .dissent
                .iter()
                .filter(|other| other.stage != "review")
                .map(|other| {
                    (other.agent.clone(), escape::terminal(&other.text), escape::terminal(&other.why))
                })
                .collect(),
            degraded: result.degraded.iter().map(|loss| escape::terminal(&loss.detail)).collect(),
            check: result.check.as_ref().map(|check| escape::terminal(&describe_check(check))),
            head: result.journal_head.to_string(),
        }
    }
}

/// Returns the beginning of the task, in one line.
fn heading(task: &str) -> String {
    let line = escape::terminal(&escape::one_line(task));
    match line.char_indices().nth(HEADING_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns the heading of a review, which has no task of its own; `None` for any other run.
fn review_heading(change: &[ShownFile]) -> Option<String> {
    let (first, others) = change.split_first()?;
    let more = if others.is_empty() {
        String::new()
    } else {
        format!(" and {}", counted(others.len(), "more file"))
    };
    Some(format!("Review of {}{more}", first.path))
}

fn figures(result: &RunResult) -> Vec<(&'static str, String)> {
    let usage = &result.usage;
    let mut figures = vec![
        ("rounds", result.rounds.to_string()),
        ("calls", usage.calls.to_string()),
        ("prompt tokens", grouped(usage.prompt)),
        ("reply tokens", grouped(usage.completion)),
        ("seconds", format!("{:.1}", result.timing.total_ms as f64 / 1e3)),
    ];
    if let Some(micro) = usage.cost_micro_usd
        && micro > 0
    {
        figures.push(("USD", format!("{:.4}", micro as f64 / 1e6)));
    }
    figures
}

fn agents(result: &RunResult, endpoints: &[Endpoint]) -> Vec<ShownAgent> {
    let mut agents = Vec::new();
    for (at, agent) in result.agents.iter().enumerate() {
        agents.push(ShownAgent {
            name: agent.report.name.clone(),
            model: endpoints.get(at).map(Endpoint::label).unwrap_or_default(),
            changes: agent.report.changes,
            text: agent.report.text.as_deref().map(escape::terminal),
        });
    }
    agents
}

/// Returns the answers with their votes: those of a vote, the verdicts of reviewers, or else the blind drafts.
fn tally(result: &RunResult) -> VoteTable {
    let (heading, votes, remark): (_, Vec<(&str, u32, Digest)>, _);
    if let Some(vote) = result.section.votes() {
        let answers = vote.answers.iter().map(|answer| (answer.text.as_str(), answer.votes, answer.sha256));
        (heading, votes, remark) = ("Votes", answers.collect(), Some(describe_stop(vote)));
    } else {
        let drafts = &result.blind_vote;
        votes =
            drafts.tally.iter().map(|answer| (answer.text.as_str(), answer.votes, answer.sha256)).collect();
        let mut remarks = Vec::new();
        if drafts.missing > 0 {
            remarks.push(format!("{} came to nothing", counted(drafts.missing, "blind draft")));
        }
        if let Section::Approval(review) = &result.section {
            heading = "Verdicts";
            remarks.push(format!("{} of {} reviewers must approve", review.quorum, review.reviewers));
        } else {
            heading = "Blind drafts";
        }
        remark = if remarks.is_empty() { None } else { Some(remarks.join("; ")) };
    }
    let all: u32 = votes.iter().map(|(_, votes, _)| votes).sum();
    let agreed = if result.outcome == OutcomeKind::Agreed { result.sha256 } else { None };
    let votes = votes.into_iter().map(|(text, votes, sha256)| AnswerVotes {
        text: escape::terminal(text),
        votes,
        share: f64::from(votes) * 100.0 / f64::from(all.max(1)),
        is_agreed: agreed == Some(sha256),
    });
    VoteTable { heading, votes: votes.collect(), remark }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_task_is_cut_in_the_heading() {
        assert_eq!(heading("How much\nis 2+2?"), "How much is 2+2?");
        assert_eq!(heading(&"a".repeat(200)).chars().count(), HEADING_CHARS + 1);
    }
}
