//! `--dry-run` of `batch` and `eval`: the expected cost if all agents agree at once, and the most that a batch can cost.
//! Nothing is run, made or sent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::plan;
use crate::batch::{
    BatchError, BatchPlan, DataNote, Sum, TaskLine, TaskLines, TaskRow, VariantPlan, check_settings,
    planned_variants, require_own_build,
};
use crate::cli::args::BatchArgs;
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::config::{FileConfig, expected_price};
use protocol::core::ExitCode;
use protocol::text::escape;

/// The calls, tokens and cost that a batch would take.
pub(super) struct PlannedBatch {
    first: Option<String>,
    /// The variants, each with its sum.
    variants: Vec<(VariantPlan, PlannedSum)>,
    refused: u64,
}

/// The sum of batches: the calls and tokens if all agents agree at once, and the most; each with its cost if it is known.
pub(super) struct PlannedSum {
    at_once: (Sum, Option<u64>),
    most: (Sum, Option<u64>),
}

impl PlannedSum {
    pub(super) fn zero() -> Self {
        Self { at_once: (Sum::default(), Some(0)), most: (Sum::default(), Some(0)) }
    }

    /// Returns the sum for programs, with the time if it is known.
    pub(super) fn to_json(&self, time: Option<Duration>) -> Value {
        let [at_once, most] = [&self.at_once, &self.most].map(|(sum, cost)| {
            let mut row = json!(sum);
            row["cost_micro_usd"] = json!(cost);
            row
        });
        json!({"sum": {"at_once": at_once, "most": most, "seconds": time.map(|time| time.as_secs())}})
    }

    pub(super) fn print(&self, output: &Output) -> anyhow::Result<()> {
        for (name, (sum, cost)) in
            [("if all agents agree at once, about", &self.at_once), ("at most", &self.most)]
        {
            output.line(&format!("{name}:"))?;
            plan::print_figures(output, sum.calls, sum.prompt_tokens, sum.completion_tokens, *cost)?;
        }
        Ok(())
    }

    fn add(&mut self, other: &Self) {
        for ((sum, cost), (more, more_cost)) in
            [(&mut self.at_once, &other.at_once), (&mut self.most, &other.most)]
        {
            sum.merge(more);
            *cost = cost.zip(*more_cost).map(|(one, other)| one.saturating_add(other));
        }
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
        let OpenTasks { source, documents, .. } = open_tasks(tasks)?;
        let request = args.variant_request();
        let (variants, notes): (Vec<_>, Vec<_>) = planned_variants(&request, file)?.into_iter().unzip();
        require_own_build(out)?;
        if !args.keep_old {
            check_settings(out, args.shard.count, &notes)?;
        }
        let seeds = args.first_seed..args.first_seed + args.seeds;
        let limits = args.run_limits();
        let (retry, tokens_max) = (args.retried(), limits.tokens_total_max);
        let mut plan = BatchPlan::new(&variants, seeds, args.shard, &documents, out, retry, tokens_max)?;
        let (mut refused, mut first) = (0, None);
        let form = args.form.form(tasks, args.grader_command.as_ref());
        for line in TaskLines::open(source, form).map_err(BatchError::Tasks)? {
            let TaskRow { number, task, .. } = line.map_err(BatchError::Tasks)?;
            if first.is_none() {
                first = task.as_ref().ok().map(describe_first);
            }
            if let Err(why) = task.map_err(|(_, why)| why).and_then(|task| plan.add(&task)) {
                refused += 1;
                output.warn(&escape::terminal(&format!("line {number} cannot be run: {why}")));
            }
        }
        let mut variants = Vec::new();
        for plan in plan.finish() {
            let model = if plan.model.is_empty() { file.model.as_deref() } else { Some(plan.model.as_str()) };
            let price = expected_price(&request.servers, file, model.unwrap_or_default()).ok().flatten();
            let [at_once, most] = [&plan.at_once, &plan.most]
                .map(|sum| Some(price.as_ref()?.cost_micro_usd(sum.prompt_tokens, 0, sum.completion_tokens)));
            let bound = limits.times(plan.runs - plan.ended);
            let tokens = plan.at_once.prompt_tokens.saturating_add(plan.at_once.completion_tokens);
            if let Some(why) = plan::find_shortage(&bound, tokens, at_once) {
                output.warn(&escape::terminal(&format!("{}: {why}", plan.roleset)));
            }
            let most = most.map(|most| bound.cost_micro_usd_max.map_or(most, |limit| most.min(limit)));
            let sum = PlannedSum { at_once: (plan.at_once, at_once), most: (plan.most, most) };
            variants.push((plan, sum));
        }
        Ok(Self { first, variants, refused })
    }

    /// Returns exit code 2 if a task cannot be run.
    pub(super) fn exit_code(&self) -> ExitCode {
        if self.refused > 0 { ExitCode::Usage } else { ExitCode::Success }
    }

    /// Prints the first task and each variant.
    pub(super) fn print(&self, output: &Output) -> anyhow::Result<()> {
        if let Some(line) = &self.first {
            output.line(line)?;
        }
        for (plan, sum) in &self.variants {
            let model = if plan.model.is_empty() { String::new() } else { format!(" on {}", plan.model) };
            let (left, ended) = (plan.runs - plan.ended, plan.ended);
            output.line(&escape::terminal(&format!(
                "{}{model}: {left} runs, {ended} more have ended",
                plan.roleset
            )))?;
            sum.print(output)?;
        }
        Ok(())
    }

    /// Returns the variants for programs.
    pub(super) fn to_json(&self) -> Value {
        let mut rows = Vec::new();
        for (plan, PlannedSum { at_once: (_, at_once), most: (_, most) }) in &self.variants {
            let mut row = json!(plan);
            row["cost_micro_usd_max"] = json!(most);
            row["cost_micro_usd_at_once"] = json!(at_once);
            rows.push(row);
        }
        json!({"columns": rows, "refused": self.refused})
    }

    /// Returns the number of runs that are missing.
    pub(super) fn left(&self) -> u64 {
        self.variants.iter().map(|(plan, _)| plan.runs - plan.ended).sum()
    }

    pub(super) fn add_to(&self, sum: &mut PlannedSum) {
        for (_, more) in &self.variants {
            sum.add(more);
        }
    }
}

/// A source of tasks: a file, a pipe or standard input.
pub(super) struct OpenTasks {
    pub(super) source: Box<dyn std::io::Read + Send>,
    /// The manifest's note about the source and the number of its lines, if it is a file.
    pub(super) data: Option<DataNote>,
    pub(super) lines: Option<u64>,
    /// The folder of the documents that the tasks name.
    pub(super) documents: PathBuf,
}

pub(super) fn open_tasks(tasks: &Path) -> anyhow::Result<OpenTasks> {
    if tasks.as_os_str() == "-" {
        let source = Box::new(std::io::stdin());
        return Ok(OpenTasks { source, data: None, lines: None, documents: PathBuf::new() });
    }
    let file = std::fs::File::open(tasks).map_err(|why| cannot_read_tasks(tasks, &why))?;
    let about = file.metadata().map_err(|why| cannot_read_tasks(tasks, &why))?;
    if about.is_dir() {
        return Err(cannot_read_tasks(tasks, &std::io::ErrorKind::IsADirectory.into()).into());
    }
    let documents = tasks.parent().map(Path::to_owned).unwrap_or_default();
    let (mut data, mut lines) = (None, None);
    // A pipe can be read only once.
    if about.is_file() {
        let (note, count) = DataNote::read(tasks).map_err(|why| cannot_read_tasks(tasks, &why))?;
        (data, lines) = (Some(note), Some(count));
    }
    Ok(OpenTasks { source: Box::new(file), data, lines, documents })
}

pub(super) fn cannot_read_tasks(tasks: &Path, why: &std::io::Error) -> UsageError {
    UsageError(format!("cannot read the tasks `{}`: {why}", tasks.display()))
}

/// Returns a line about the first task as it was read, so that a wrong field is noticed before any call.
fn describe_first(task: &TaskLine) -> String {
    let answer = task.answer.as_ref().map(|answer| format!(", answer “{}”", escape::excerpt(answer)));
    format!(
        "first task {}: “{}”{}",
        escape::excerpt(&task.id),
        escape::excerpt(&task.prompt),
        answer.unwrap_or_default()
    )
}
