//! `consensus eval`: compares ways of agreeing at the same number of tokens.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::eval_plan::print_plan;
use super::reused::{print_reuse, read_reused};
use crate::batch::{Grader, RunSelector, SelectedRun, TaskLine, is_batch, select_runs};
use crate::cli::args::{EvalArgs, EvalCommand, Format};
use crate::cli::batch_story::run_batch;
use crate::cli::error::UsageError;
use crate::cli::eval_table::{item_lines, table};
use crate::cli::output::Output;
use crate::cli::pager;
use crate::cli::run_to_end::block_on;
use crate::cli::signals::{self, REPEATABLE, StopMessages, print_stopping, stop_at_deadline};
use crate::engine::StopRequest;
use crate::eval::{
    ARMS, Bars, EvalPlan, EvalResults, JudgedBar, PlannedEvaluation, Summary, compute_report, item_json,
    notes,
};
use crate::report::transcript;
use protocol::core::ExitCode;
use protocol::text::escape;

/// The message if a signal or the deadline comes before anything is asked.
const UNBEGUN: &str = "before the evaluation began; nothing was asked, and the same command begins it";

pub(crate) fn eval(args: &EvalArgs, output: &Output) -> anyhow::Result<ExitCode> {
    match (&args.command, &args.data, &args.out) {
        (Some(EvalCommand::Report { dir, bars }), ..) => report(dir, &bars.bars(), output),
        (Some(EvalCommand::Show { dir, id }), ..) => show(dir, id, output),
        (None, Some(data), Some(out)) => evaluate(args, data, out, output),
        (None, ..) => Err(UsageError("an evaluation needs DATA and --out DIR".to_owned()).into()),
    }
}

fn evaluate(args: &EvalArgs, data: &Path, out: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let (began, deadline) = (Instant::now(), args.limits.deadline);
    if args.form.grader == Some(Grader::Command) {
        let why = "an evaluation compares with right answers and runs no command: choose another --grader";
        return Err(UsageError(why.to_owned()).into());
    }
    let evaluation = PlannedEvaluation::new(args.request(data, out), args.dry_run)?;
    let PlannedEvaluation { request, data, plan, .. } = &evaluation;
    if args.dry_run {
        plan.require_room(out, &data.tasks)?;
        return print_plan(&evaluation, output);
    }
    request.bars.discard_junit()?;
    let messages = StopMessages { unbegun: UNBEGUN, begun: REPEATABLE };
    let listening = signals::listen(messages, deadline, output)?;
    let part = evaluation.write()?;
    let stop = listening.begin();
    let code = block_on(async {
        if evaluation.own_tasks().next().is_none() {
            output.status("this part has no item");
            return anyhow::Ok(ExitCode::Success);
        }
        let stop = stop_at_deadline(stop, deadline, began);
        tokio::spawn(print_stopping(stop.clone(), *output));
        let reused = read_reused(&args.reuse.reuse)?;
        let run = async |batch| Box::pin(run_batch(batch, &stop, output)).await;
        let code = evaluation.run(&part, &reused, &stop, output, run).await;
        print_reuse(&reused, output);
        let (code, is_stopped) = (code?, *stop.borrow() != StopRequest::None);
        let is_late = deadline.is_some_and(|deadline| began.elapsed() >= deadline);
        anyhow::Ok(match (is_stopped, is_late) {
            (true, true) => ExitCode::Budget,
            (true, false) => ExitCode::Interrupted,
            (false, _) => code,
        })
    })??;
    let (summary, judged) = print_report(out, plan, &data.tasks, &request.bars, output)?;
    let is_part = plan.parts > 1 && !summary.is_complete();
    // The bars are for the whole, which the part that ends last completes.
    Ok(if code == ExitCode::Success && !is_part { judged } else { code })
}

/// Computes the report again from the results on record.
fn report(dir: &Path, bars: &Bars, output: &Output) -> anyhow::Result<ExitCode> {
    let plan = EvalPlan::load(dir)?;
    if plan.pilot && (!bars.fail_under.is_empty() || bars.baseline.is_some()) {
        let why = "no bar judges a pilot; evaluate all items first, without --pilot";
        return Err(UsageError(why.to_owned()).into());
    }
    bars.require_other(dir)?;
    let tasks = plan.load_tasks(dir)?;
    bars.require_comparable(&plan.data, plan.kind, &tasks)?;
    bars.discard_junit()?;
    Ok(print_report(dir, &plan, &tasks, bars, output)?.1)
}

/// Writes the report's files, and prints its table and how the evaluation compares with the bars. Returns the exit code of these.
fn print_report(
    dir: &Path,
    plan: &EvalPlan,
    tasks: &[TaskLine],
    bars: &Bars,
    output: &Output,
) -> anyhow::Result<(Summary, ExitCode)> {
    let (results, summary) = compute_report(dir, plan, tasks)?;
    if output.format == Format::Text {
        let width = usize::from(console::Term::stdout().size().1);
        for line in table(&summary, width) {
            output.line(&escape::terminal(&line))?;
        }
        for note in notes(&summary) {
            output.status(&escape::terminal(&note));
        }
        let dir = dir.display();
        output.status(&escape::terminal(&format!(
            "report: {dir}/report.html, summary.json and items.jsonl; `consensus eval show {dir} ID` shows an item"
        )));
    } else {
        output.json(&json!(summary))?;
    }
    let judged = bars.judge(plan, tasks, &results, &summary)?;
    let code = print_judged(&judged, &summary, output);
    Ok((summary, code))
}

/// Prints how an evaluation compares with its bars. Only a complete one is judged.
fn print_judged(judged: &[JudgedBar], summary: &Summary, output: &Output) -> ExitCode {
    if !judged.is_empty() && !summary.is_complete() {
        output.warn(&format!(
            "no bar is judged, because {} of {} items are complete; complete the evaluation with the command that began it, and with `--retry failed` if runs have failed",
            summary.items, summary.planned
        ));
        return ExitCode::Usage;
    }
    for JudgedBar { is_reached, words, .. } in judged {
        let words = escape::terminal(words);
        if *is_reached { output.status(&words) } else { output.warn(&format!("missed: {words}")) }
    }
    let is_missed = judged.iter().any(|bar| !bar.is_reached);
    if is_missed { ExitCode::Missed } else { ExitCode::Success }
}

/// Prints one item: the task, what each arm answered, and the transcript of each arm's run.
fn show(dir: &Path, id: &str, output: &Output) -> anyhow::Result<ExitCode> {
    let plan = EvalPlan::load(dir)?;
    let tasks = plan.load_tasks(dir)?;
    let results = EvalResults::read(dir, &plan, &tasks)?;
    let found = tasks.iter().zip(&results.items).find(|(task, _)| task.id == id);
    let Some((task, item)) = found else {
        let dir = dir.display();
        return Err(UsageError(format!(
            "`{dir}` has no item `{}`; the ids are in `{dir}/tasks.jsonl`",
            escape::excerpt(id)
        ))
        .into());
    };
    if output.format != Format::Text {
        output.json(&item_json(&plan, task, item))?;
        return Ok(ExitCode::Success);
    }
    let mut text = item_lines(&plan, task, item).join("\n");
    for part in EvalResults::parts(dir, &plan) {
        let folder = part.join(ARMS);
        if !is_batch(&folder) {
            continue;
        }
        let selector = RunSelector { name: id.to_owned(), ..RunSelector::default() };
        for SelectedRun { cell, journal, .. } in select_runs(&folder, &selector)? {
            let _ = write!(text, "\n\n--- arm {} ---\n\n{}", cell.arm, transcript(&journal.records)?);
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    pager::print(&escape::terminal(&text), output)?;
    Ok(ExitCode::Success)
}
