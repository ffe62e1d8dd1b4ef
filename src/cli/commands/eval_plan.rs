//! `consensus eval --dry-run`: prints what the batches of an evaluation would take.

use std::time::Duration;

use serde_json::json;

use super::plan::{print_planned, print_sum};
use crate::batch::{PlannedBatch, PlannedSum};
use crate::cli::args::Format;
use crate::cli::eval_table::{power_lines, power_rows};
use crate::cli::output::Output;
use crate::eval::{PlannedEvaluation, tasks_file, write_tasks};
use crate::files::{Scratch, private_folder};
use protocol::core::ExitCode;
use protocol::text::escape;

/// Prints what the evaluation would take, and what so many items can find.
pub(super) fn print_plan(evaluation: &PlannedEvaluation, output: &Output) -> anyhow::Result<ExitCode> {
    let PlannedEvaluation { request, file, plan, .. } = evaluation;
    let scratch = Scratch::new(&std::env::temp_dir(), "eval")?;
    // The scratch folder itself is locked as long as it is in use.
    let folder = scratch.path().join("tasks");
    private_folder(&folder)?;
    write_tasks(&folder, evaluation.own_tasks())?;
    let part = plan.part(&request.folder, request.shard.index);
    let (mut sum, mut time, mut refused) = (PlannedSum::zero(), Some(Duration::ZERO), false);
    let is_text = output.format == Format::Text;
    let mut batches = Vec::new();
    for job in evaluation.jobs(&part, &tasks_file(&folder))? {
        if job.is_from_bank() {
            print_heading(output, &format!("{}: from a bank, without calls", job.heading))?;
            continue;
        }
        print_heading(output, &job.heading)?;
        let planned = PlannedBatch::new(&job.batch, file, output)?;
        if is_text {
            print_planned(&planned, output)?;
        } else {
            let mut batch = planned.to_json();
            batch["batch"] = json!(job.heading);
            batches.push(batch);
        }
        sum.merge(&planned);
        refused |= planned.exit_code() != ExitCode::Success;
        time = time.zip(job.time_left(&planned)?).map(|(time, more)| time.saturating_add(more));
    }
    print_heading(output, "in all")?;
    if is_text {
        print_sum(&sum, output)?;
    } else {
        let mut whole = sum.to_json(time);
        whole["batches"] = json!(batches);
        whole["power"] = json!(power_rows(plan));
        output.json(&whole)?;
    }
    let duration = match time {
        Some(time) => {
            let time = humantime::format_duration(Duration::from_secs(time.as_secs()));
            format!("about {time}, by the runs that have ended")
        }
        None => "the time is not known before some runs of every batch have ended; --pilot N makes a few"
            .to_owned(),
    };
    print_heading(output, &duration)?;
    for line in power_lines(plan) {
        print_heading(output, &line)?;
    }
    Ok(if refused { ExitCode::Usage } else { ExitCode::Success })
}

/// Prints a line between the figures of a plan: beside them where people read, and apart from them where programs do.
fn print_heading(output: &Output, line: &str) -> anyhow::Result<()> {
    let line = escape::terminal(line);
    if output.format == Format::Text {
        return output.line(&line);
    }
    output.status(&line);
    Ok(())
}
