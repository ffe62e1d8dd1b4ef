//! `consensus sessions`: lists, shows and deletes the questions and answers of sessions.

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::SystemTime;

use console::Term;
use serde_json::{Value, json};

use crate::cli::args::{Format, SessionsAction, SessionsArgs};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::table::{Table, age, one_line};
use crate::config::FileConfig;
use crate::run::{RunError, Session, SessionTurn, runs_folder, session_names};
use protocol::core::ExitCode;
use protocol::text::escape;

pub(crate) fn sessions(args: &SessionsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let folder = runs_folder(args.runs.runs_dir.as_ref(), &FileConfig::load_to_read()?);
    match &args.action {
        None | Some(SessionsAction::List) => list(&folder, output)?,
        Some(SessionsAction::Show { name }) => show(&open_existing(&folder, name)?, output)?,
        Some(SessionsAction::Delete { name }) => {
            let session = open_existing(&folder, name)?;
            let count = session.turns().len();
            session.delete()?;
            output.status(&format!("deleted the session `{name}`; the records of its {count} runs remain"));
        }
    }
    Ok(ExitCode::Success)
}

fn open_existing(folder: &Path, name: &str) -> anyhow::Result<Session> {
    let session = Session::open(folder, name).map_err(RunError::from)?;
    if session.is_there() {
        return Ok(session);
    }
    let why = format!(
        "there is no session `{name}` in `{}`; `consensus sessions` lists the sessions",
        folder.display()
    );
    Err(UsageError(why).into())
}

fn list(folder: &Path, output: &Output) -> anyhow::Result<()> {
    let rows: Vec<Value> = session_names(folder).iter().map(|name| row(folder, name)).collect();
    if output.format != Format::Text {
        return output.json(&json!(rows));
    }
    if rows.is_empty() {
        output.status(&format!(
            "there is no session in `{}`; begin one with `consensus chat` or `consensus run --session NAME`",
            folder.display()
        ));
        return Ok(());
    }
    if std::io::stdout().is_terminal() {
        let width = usize::from(Term::stdout().size().1);
        return output.lines(table(&rows).lines(width));
    }
    for row in &rows {
        let about = row["last_question"].as_str().or(row["why"].as_str()).unwrap_or_default();
        let (name, runs) = (one_line(row["session"].as_str()), row["runs"].to_string());
        output.line(&format!("{name}  {runs:4}  {}", escape::excerpt(about)))?;
    }
    Ok(())
}

/// Returns a session as a row for programs.
fn row(folder: &Path, name: &str) -> Value {
    match Session::open(folder, name) {
        Ok(session) => {
            let turns = session.turns();
            let last = turns.last();
            json!({
                "session": name,
                "runs": turns.len(),
                "used_at": session.used_at().map(|time| humantime::format_rfc3339_seconds(time).to_string()),
                "last_question": last.map(|turn| &turn.prompt),
                "last_answer": last.and_then(|turn| turn.text.as_ref()),
            })
        }
        Err(why) => json!({"session": name, "runs": 0, "why": why.to_string()}),
    }
}

fn table(rows: &[Value]) -> Table<5> {
    let now = SystemTime::now();
    let heading = ["SESSION", "RUNS", "AGE", "LAST QUESTION", "ANSWER"];
    let mut table = Table { heading, rows: Vec::new(), shares: [0, 0, 0, 3, 2] };
    for row in rows {
        let used = row["used_at"].as_str().and_then(|time| humantime::parse_rfc3339(time).ok());
        let passed = used.and_then(|used| now.duration_since(used).ok());
        let question = if row["why"].is_string() { &row["why"] } else { &row["last_question"] };
        table.rows.push([
            one_line(row["session"].as_str()),
            row["runs"].to_string(),
            passed.map(age).unwrap_or_default(),
            one_line(question.as_str()),
            one_line(row["last_answer"].as_str()),
        ]);
    }
    table
}

fn show(session: &Session, output: &Output) -> anyhow::Result<()> {
    let turns = session.turns();
    if output.format != Format::Text {
        return output.json(&json!(turns));
    }
    for turn in &turns {
        output.line(&escape::terminal(&describe(turn)))?;
    }
    Ok(())
}

/// Returns a question with its answer, as text for a person.
fn describe(turn: &SessionTurn) -> String {
    let question = turn.prompt.trim().replace('\n', "\n> ");
    let answer =
        turn.text.as_deref().map_or_else(|| format!("({})", turn.outcome.replace('_', " ")), str::to_owned);
    format!("> {question}\n\n{}\n", answer.trim())
}
