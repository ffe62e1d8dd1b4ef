//! `--dry-run` of `batch` and `eval`: the expected cost if all agents agree at once, and the most that a batch can cost.
//!
//! The input is the flags of a batch and its tasks. The output is sums for each column, in words and as JSON. Nothing is run, made or sent.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::batch_source::{OpenTasks, open};
use super::plan;
use crate::batch::{
    BatchError, BatchPlan, ColumnPlan, Line, Sum, TaskLine, TaskLines, check_settings, planned_columns,
    require_own_build,
};
use crate::cli::args::BatchArgs;
use crate::cli::output::Output;
use crate::config::{FileConfig, expected_price};
use protocol::core::ExitCode;
use protocol::text::escape;

/// The calls, tokens and cost that a batch would take.
pub(super) struct PlannedBatch {
    /// A line about the first task.
    first: Option<String>,
    /// The columns, each with its cost if all agents agree at once, and its greatest one.
    columns: Vec<(ColumnPlan, [Option<u64>; 2])>,
    /// The tasks that cannot be run.
    refused: u64,
}

/// The sum of batches: the calls and tokens if all agents agree at once, and the most; each with its cost if it is known.
pub(super) struct PlannedSum {
    at_once: (Sum, Option<u64>),
    most: (Sum, Option<u64>),
}

impl PlannedSum {
    /// Returns the sum of nothing.
    pub(super) fn zero() -> Self {
        Self { at_once: (Sum::default(), Some(0)), most: (Sum::default(), Some(0)) }
    }

    /// Returns the sum for programs, with the time if it is known.
    pub(super) fn to_json(&self, time: Option<Duration>) -> Value {
        let of = |(sum, cost): &(Sum, Option<u64>)| {
            let mut row = json!(sum);
            row["cost_micro_usd"] = json!(cost);
            row
        };
        let seconds = time.map(|time| time.as_secs());
        json!({"sum": {"at_once": of(&self.at_once), "most": of(&self.most), "seconds": seconds}})
    }

    /// Prints the sum.
    pub(super) fn tell(&self, output: &Output) -> anyhow::Result<()> {
        for (name, (sum, cost)) in
            [("if all agents agree at once, about", &self.at_once), ("at most", &self.most)]
        {
            output.line(&format!("{name}:"))?;
            plan::tell(output, [sum.calls, sum.prompt_tokens, sum.completion_tokens], *cost)?;
        }
        Ok(())
    }
}

impl PlannedBatch {
    /// Plans a batch, and warns of tasks that cannot be run.
    pub(super) fn new(
        args: &BatchArgs,
        file: &FileConfig,
        tasks: &Path,
        out: &Path,
        output: &Output,
    ) -> anyhow::Result<Self> {
        let OpenTasks { source, documents, .. } = open(tasks)?;
        let request = args.columns();
        let (columns, notes): (Vec<_>, Vec<_>) = planned_columns(&request, file)?.into_iter().unzip();
        require_own_build(out)?;
        if !args.keep_old {
            check_settings(out, args.shard.count, &notes)?;
        }
        let seeds = args.first_seed..args.first_seed + args.seeds;
        let limits = args.run_limits();
        let there = (out, args.retried());
        let mut plan =
            BatchPlan::new(&columns, seeds, args.shard, &documents, there, limits.tokens_total_max)?;
        let (mut refused, mut first) = (0, None);
        let form = args.form.form(tasks, args.grader_command.as_ref());
        for line in TaskLines::open(source, form).map_err(BatchError::Tasks)? {
            let Line { number, task, .. } = line.map_err(BatchError::Tasks)?;
            if first.is_none() {
                first = task.as_ref().ok().map(first_task);
            }
            if let Err(why) = task.map_err(|(_, why)| why).and_then(|task| plan.add(&task)) {
                refused += 1;
                output.warn(&escape::terminal(&format!("line {number} cannot be run: {why}")));
            }
        }
        let plans = plan.finish();
        let cost = |plan: &ColumnPlan, sum: &Sum| {
            let model = Some(plan.model.as_str()).filter(|model| !model.is_empty()).or(file.model.as_deref());
            let price = expected_price(&request.servers, file, model.unwrap_or_default()).ok().flatten();
            price.map(|price| price.cost_micro_usd(sum.prompt_tokens, 0, sum.completion_tokens))
        };
        let with_costs = |plan: ColumnPlan| {
            let [at_once, most] = [&plan.at_once, &plan.most].map(|sum| cost(&plan, sum));
            let left = plan.runs - plan.ended;
            let bound = limits.times(left);
            if let Some(why) =
                plan::short_of(&bound, [plan.at_once.prompt_tokens, plan.at_once.completion_tokens], at_once)
            {
                output.warn(&escape::terminal(&format!("{}: {why}", plan.roleset)));
            }
            let most = most.map(|most| bound.cost_micro_usd_max.map_or(most, |limit| most.min(limit)));
            (plan, [at_once, most])
        };
        Ok(Self { first, columns: plans.into_iter().map(with_costs).collect(), refused })
    }

    /// Returns exit code 2 if a task cannot be run.
    pub(super) fn exit_code(&self) -> ExitCode {
        if self.refused > 0 { ExitCode::Usage } else { ExitCode::Success }
    }

    /// Prints the first task and each column.
    pub(super) fn tell(&self, output: &Output) -> anyhow::Result<()> {
        self.first.iter().try_for_each(|line| output.line(line))?;
        for (plan, costs) in &self.columns {
            let model = if plan.model.is_empty() { String::new() } else { format!(" on {}", plan.model) };
            let (left, ended) = (plan.runs - plan.ended, plan.ended);
            output.line(&escape::terminal(&format!(
                "{}{model}: {left} runs, {ended} more have ended",
                plan.roleset
            )))?;
            let [at_once, most] = *costs;
            PlannedSum { at_once: (plan.at_once, at_once), most: (plan.most, most) }.tell(output)?;
        }
        Ok(())
    }

    /// Returns the columns for programs.
    pub(super) fn to_json(&self) -> Value {
        let row = |(plan, [at_once, most]): &(ColumnPlan, [Option<u64>; 2])| {
            let mut row = json!(plan);
            row["cost_micro_usd_max"] = json!(most);
            row["cost_micro_usd_at_once"] = json!(at_once);
            row
        };
        json!({"columns": self.columns.iter().map(row).collect::<Vec<_>>(), "refused": self.refused})
    }

    /// Returns the number of runs that are missing.
    pub(super) fn left(&self) -> u64 {
        self.columns.iter().map(|(plan, _)| plan.runs - plan.ended).sum()
    }

    /// Adds all columns to a sum.
    pub(super) fn add_to(&self, sum: &mut PlannedSum) {
        for (plan, [at_once, most]) in &self.columns {
            for ((to, cost), from, more) in
                [(&mut sum.at_once, &plan.at_once, at_once), (&mut sum.most, &plan.most, most)]
            {
                to.merge(from);
                *cost = cost.zip(*more).map(|(one, other)| one.saturating_add(other));
            }
        }
    }
}

/// Returns a line about the first task as it was read, so that a wrong field is noticed before any call.
fn first_task(task: &TaskLine) -> String {
    let answer = task.answer.as_ref().map(|answer| format!(", answer “{}”", escape::excerpt(answer)));
    format!(
        "first task {}: “{}”{}",
        escape::excerpt(&task.id),
        escape::excerpt(&task.prompt),
        answer.unwrap_or_default()
    )
}
