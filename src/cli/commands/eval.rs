//! `consensus eval`: compares ways of agreeing at the same number of tokens.
//!
//! An evaluation is a sequence of batches: first the banks of samples, then each arm. Each batch continues where it was interrupted, so
//! the whole does too.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use super::batch::{is_same_place, make_folder, print_stopping, stop_at_deadline};
use super::eval_jobs::{own_tasks, print_plan, run_all};
use crate::batch::{Grader, RunSelector, SelectedRun, TaskLine, is_batch, select_runs};
use crate::cli::args::{BarArgs, EvalArgs, EvalCommand, Format};
use crate::cli::error::UsageError;
use crate::cli::eval_plan::plan_evaluation;
use crate::cli::eval_table::{item_lines, table};
use crate::cli::output::Output;
use crate::cli::pager;
use crate::cli::run_to_end::block_on;
use crate::cli::signals::{self, REPEATABLE, StopMessages};
use crate::config::FileConfig;
use crate::engine::StopRequest;
use crate::eval::{
    ARMS, EvalData, EvalError, EvalPlan, EvalResults, JudgedBar, SinceBaseline, Summary, hold, is_junit,
    item_json, junit, notes, read_data, write_report, write_tasks,
};
use crate::files::{LARGE_BYTES_MAX, private_folder, read_text, write_whole};
use crate::report::transcript;
use protocol::core::ExitCode;
use protocol::text::escape;

/// The message if a signal or the deadline comes before anything is asked.
const UNBEGUN: &str = "before the evaluation began; nothing was asked, and the same command begins it";

/// The mode of a file for other tools.
const PUBLIC: u32 = 0o644;

pub(crate) fn eval(args: &EvalArgs, output: &Output) -> anyhow::Result<ExitCode> {
    match (&args.command, &args.data, &args.out) {
        (Some(EvalCommand::Report { dir, bars }), ..) => report(dir, bars, output),
        (Some(EvalCommand::Show { dir, id }), ..) => show(dir, id, output),
        (None, Some(data), Some(out)) => evaluate(args, data, out, output),
        (None, ..) => Err(UsageError("an evaluation needs DATA and --out DIR".to_owned()).into()),
    }
}

fn evaluate(args: &EvalArgs, data: &Path, out: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    if args.form.grader == Some(Grader::Command) {
        let why = "an evaluation compares with right answers and runs no command: choose another --grader";
        return Err(UsageError(why.to_owned()).into());
    }
    let form = args.form.form(data, None);
    let data = read_data(data, form, args.canonical, args.pilot.or(args.limit))?;
    let file = if args.dry_run { FileConfig::load_to_read()? } else { FileConfig::load()? };
    let plan = plan_evaluation(args, &data, out, &file)?;
    require_apart(args, out)?;
    if let Some(baseline) = &args.bars.baseline {
        let old = Baseline::load(baseline)?.plan;
        old.require_shared(baseline, &data.note.name, data.kind, &data.tasks)?;
    }
    if args.dry_run {
        plan.require_room(out, &data.tasks)?;
        return print_plan(args, &file, &plan, &data, output);
    }
    if let Some(path) = &args.bars.junit {
        discard_junit(path)?;
    }
    let messages = StopMessages { unbegun: UNBEGUN, begun: REPEATABLE };
    let listening = signals::listen(messages, args.limits.deadline, output)?;
    make_folder(out)?;
    plan.put(out, &data.tasks)?;
    let part = make_part(args, &plan, out, &data)?;
    let stop = listening.begin();
    let is_empty = own_tasks(args, &data).next().is_none();
    let code = block_on(async {
        if is_empty {
            output.status("this part has no item");
            return anyhow::Ok(ExitCode::Success);
        }
        let stop = stop_at_deadline(stop, args.limits.deadline, began);
        tokio::spawn(print_stopping(stop.clone(), *output));
        let code = run_all(args, &plan, &part, &stop, output).await?;
        let is_late = args.limits.deadline.is_some_and(|deadline| began.elapsed() >= deadline);
        let is_stopped = *stop.borrow() != StopRequest::None;
        anyhow::Ok(match (is_stopped, is_late) {
            (true, true) => ExitCode::Budget,
            (true, false) => ExitCode::Interrupted,
            (false, _) => code,
        })
    })??;
    let (results, summary) = print_report(out, &plan, &data.tasks, output)?;
    let judged = judge(&args.bars, &plan, &data.tasks, &results, &summary, output)?;
    let is_part = args.shard.count > 1 && !summary.is_complete();
    // The bars are for the whole, which the part that ends last completes.
    Ok(if code == ExitCode::Success && !is_part { judged } else { code })
}

/// Removes the `JUnit` file of an earlier evaluation, which is then not taken for one of this, however this one ends. Any other file is
/// refused.
fn discard_junit(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    if let Some(folder) = path.parent()
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        let why = format!("cannot write `{shown}`: there is no folder `{}`", folder.display());
        return Err(UsageError(why).into());
    }
    let text = match read_text(path, LARGE_BYTES_MAX) {
        Ok(text) => text,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(UsageError(format!("cannot read `{shown}`: {why}")).into()),
    };
    if !is_junit(&text) {
        let why = format!("cannot replace `{shown}`: it is not a JUnit file of an evaluation");
        return Err(UsageError(why).into());
    }
    std::fs::remove_file(path).map_err(|why| UsageError(format!("cannot replace `{shown}`: {why}")))?;
    Ok(())
}

/// Refuses data and a baseline that the files of the evaluation would replace.
fn require_apart(args: &EvalArgs, out: &Path) -> anyhow::Result<()> {
    if let Some(data) = &args.data
        && let Ok(data) = data.canonicalize()
        && let Some(folder) = data.parent()
        && is_same_place(folder, out)
    {
        return Err(
            UsageError("the data is in the folder of the evaluation; give another --out".to_owned()).into()
        );
    }
    require_other(&args.bars, out)
}

/// Refuses a baseline that is the evaluation itself.
fn require_other(bars: &BarArgs, out: &Path) -> anyhow::Result<()> {
    if bars.baseline.as_deref().is_some_and(|baseline| is_same_place(baseline, out)) {
        return Err(
            UsageError("the baseline is the evaluation itself; name another folder".to_owned()).into()
        );
    }
    Ok(())
}

/// An evaluation with which another one is compared.
struct Baseline {
    plan: EvalPlan,
    tasks: Vec<TaskLine>,
    results: EvalResults,
}

impl Baseline {
    /// Reads a baseline, which must be complete: the items that end first are the easy ones.
    fn load(folder: &Path) -> Result<Self, EvalError> {
        let plan = EvalPlan::load(folder)?;
        let tasks = plan.load_tasks(folder)?;
        let results = EvalResults::read(folder, &plan, &tasks)?;
        let items = results.complete(&plan).count();
        if items < plan.items {
            return Err(EvalError::Incomplete { folder: folder.to_owned(), items, planned: plan.items });
        }
        Ok(Self { plan, tasks, results })
    }
}

/// Judges an evaluation by the bars that were given, and prints how it compares. Only a complete one is judged.
fn judge(
    bars: &BarArgs,
    plan: &EvalPlan,
    tasks: &[TaskLine],
    results: &EvalResults,
    summary: &Summary,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let mut judged: Vec<JudgedBar> = bars.fail_under.iter().map(|bar| bar.judge(summary)).collect();
    if let Some(baseline) = &bars.baseline {
        let old = Baseline::load(baseline)?;
        let since = SinceBaseline::new(plan, tasks, results, &old.plan, &old.tasks, &old.results)?;
        judged.push(since.judge(&summary.primary, &old.plan.primary));
    }
    if let Some(path) = &bars.junit {
        write_whole(path, &junit(summary, tasks, results, &judged)?, PUBLIC)
            .map_err(|why| UsageError(format!("cannot write `{}`: {why}", path.display())))?;
    }
    if !judged.is_empty() && !summary.is_complete() {
        output.warn(&format!(
            "no bar is judged, because {} of {} items are complete; complete the evaluation with the command that began it, and with `--retry failed` if runs have failed",
            summary.items, summary.planned
        ));
        return Ok(ExitCode::Usage);
    }
    for JudgedBar { is_reached, words, .. } in &judged {
        let words = escape::terminal(words);
        if *is_reached { output.status(&words) } else { output.warn(&format!("missed: {words}")) }
    }
    let is_missed = judged.iter().any(|bar| !bar.is_reached);
    Ok(if is_missed { ExitCode::Missed } else { ExitCode::Success })
}

/// Returns the folder in which this process works, with the file of its tasks: that of the evaluation, or that of its part.
fn make_part(args: &EvalArgs, plan: &EvalPlan, out: &Path, data: &EvalData) -> anyhow::Result<PathBuf> {
    let shard = args.shard;
    if shard.count == 1 {
        return Ok(out.to_owned());
    }
    let folder = plan.part(out, shard.index);
    private_folder(&folder).map_err(|why| EvalError::Io { action: "make", path: folder.clone(), why })?;
    write_tasks(&folder, own_tasks(args, data))?;
    Ok(folder)
}

/// Computes the report again from the results on record.
fn report(dir: &Path, bars: &BarArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let plan = EvalPlan::load(dir)?;
    if plan.pilot && (!bars.fail_under.is_empty() || bars.baseline.is_some()) {
        let why = "no bar judges a pilot; evaluate all items first, without --pilot";
        return Err(UsageError(why.to_owned()).into());
    }
    require_other(bars, dir)?;
    let tasks = plan.load_tasks(dir)?;
    if let Some(baseline) = &bars.baseline {
        Baseline::load(baseline)?.plan.require_shared(baseline, &plan.data, plan.kind, &tasks)?;
    }
    if let Some(path) = &bars.junit {
        discard_junit(path)?;
    }
    let (results, summary) = print_report(dir, &plan, &tasks, output)?;
    judge(bars, &plan, &tasks, &results, &summary, output)
}

/// Writes the report's files, and prints its table.
fn print_report(
    dir: &Path,
    plan: &EvalPlan,
    tasks: &[TaskLine],
    output: &Output,
) -> anyhow::Result<(EvalResults, Summary)> {
    let held = hold(dir)?;
    let results = EvalResults::read(dir, plan, tasks)?;
    let summary = Summary::new(plan, &results);
    write_report(dir, plan, tasks, &results, &summary)?;
    drop(held);
    if output.format != Format::Text {
        output.json(&json!(summary))?;
        return Ok((results, summary));
    }
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
    Ok((results, summary))
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
