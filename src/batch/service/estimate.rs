//! An estimate of a batch: the expected cost if all agents agree at once, and the most that it can cost.
//!
//! Nothing is run, made or sent. Warnings go to the caller's reporter.

use std::time::Duration;

use serde_json::{Value, json};

use super::batch_run::{BatchRequest, OpenTasks, open_tasks};
use crate::batch::folder::{BatchError, BudgetNote, check_budget, check_settings, require_own_build};
use crate::batch::plan::{TaskLines, TaskRow, planned_variants};
use crate::batch::schedule::{BatchPlan, Sum, VariantPlan};
use crate::batch::tasks::TaskLine;
use crate::config::{FileConfig, expected_price};
use crate::run::{Reporter, find_shortage};
use protocol::core::ExitCode;
use protocol::text::escape;

/// The calls, tokens and cost that a batch would take.
pub struct PlannedBatch {
    /// A line about the first task, so that a wrong field is noticed before any call.
    pub first: Option<String>,
    /// The variants, each with its sum.
    pub variants: Vec<(VariantPlan, PlannedSum)>,
    /// The budget of tokens that the votes share, if they share one.
    pub budget: Option<BudgetNote>,
    refused: u64,
}

/// The sum of batches: the calls and tokens if all agents agree at once, and the most; each with its cost if it is known.
pub struct PlannedSum {
    pub at_once: (Sum, Option<u64>),
    pub most: (Sum, Option<u64>),
}

impl PlannedSum {
    pub fn zero() -> Self {
        Self { at_once: (Sum::default(), Some(0)), most: (Sum::default(), Some(0)) }
    }

    /// Returns the sum for programs, with the time if it is known.
    pub fn to_json(&self, time: Option<Duration>) -> Value {
        let [at_once, most] = [&self.at_once, &self.most].map(|(sum, cost)| {
            let mut row = json!(sum);
            row["cost_micro_usd"] = json!(cost);
            row
        });
        json!({"sum": {"at_once": at_once, "most": most, "seconds": time.map(|time| time.as_secs())}})
    }

    /// Adds the variants of a batch.
    pub fn merge(&mut self, batch: &PlannedBatch) {
        for (_, other) in &batch.variants {
            for ((sum, cost), (more, more_cost)) in
                [(&mut self.at_once, &other.at_once), (&mut self.most, &other.most)]
            {
                sum.merge(more);
                *cost = cost.zip(*more_cost).map(|(one, other)| one.saturating_add(other));
            }
        }
    }
}

impl PlannedBatch {
    /// Plans a batch, and warns of tasks that cannot be run.
    pub fn new(
        request: &BatchRequest,
        file: &FileConfig,
        reporter: &dyn Reporter,
    ) -> Result<Self, BatchError> {
        let BatchRequest { folder, seeds, shard, retry, limits, form, .. } = request;
        let OpenTasks { source, documents, .. } = open_tasks(&request.tasks)?;
        let (variants, notes): (Vec<_>, Vec<_>) =
            planned_variants(&request.variants, file)?.into_iter().unzip();
        require_own_build(folder)?;
        if !request.keep_old {
            check_settings(folder, shard.count, &notes)?;
        }
        let budget = request.budget();
        if let Some(budget) = &budget {
            check_budget(folder, shard.count, budget)?;
        }
        let tokens_max = limits.tokens_total_max;
        let plan = BatchPlan::new(&variants, seeds.clone(), *shard, &documents, folder, *retry, tokens_max)?;
        let mut plan = plan.with_budget(budget.as_ref().map(|budget| budget.tokens_a_shard));
        let (mut refused, mut first) = (0, None);
        for line in TaskLines::open(source, form.clone()).map_err(BatchError::Tasks)? {
            let TaskRow { number, task, .. } = line.map_err(BatchError::Tasks)?;
            if first.is_none() {
                first = task.as_ref().ok().map(describe_first);
            }
            if let Err(why) = task.map_err(|(_, why)| why).and_then(|task| plan.add(&task)) {
                refused += 1;
                reporter.warn(&escape::terminal(&format!("line {number} cannot be run: {why}")));
            }
        }
        let mut variants = Vec::new();
        for plan in plan.finish() {
            let model = if plan.model.is_empty() { file.model.as_deref() } else { Some(plan.model.as_str()) };
            let servers = &request.variants.settings.servers;
            let price = expected_price(servers, file, model.unwrap_or_default()).ok().flatten();
            let [at_once, most] = [&plan.at_once, &plan.most]
                .map(|sum| Some(price.as_ref()?.cost_micro_usd(sum.prompt_tokens, 0, sum.completion_tokens)));
            let bound = limits.times(plan.runs - plan.ended);
            let tokens = plan.at_once.prompt_tokens.saturating_add(plan.at_once.completion_tokens);
            if let Some(why) = find_shortage(&bound, tokens, at_once) {
                reporter.warn(&escape::terminal(&format!("{}: {why}", plan.roleset)));
            }
            let most = most.map(|most| bound.cost_micro_usd_max.map_or(most, |limit| most.min(limit)));
            let sum = PlannedSum { at_once: (plan.at_once, at_once), most: (plan.most, most) };
            variants.push((plan, sum));
        }
        Ok(Self { first, variants, budget, refused })
    }

    /// Returns exit code 2 if a task cannot be run.
    pub fn exit_code(&self) -> ExitCode {
        if self.refused > 0 { ExitCode::Usage } else { ExitCode::Success }
    }

    /// Returns the variants for programs.
    pub fn to_json(&self) -> Value {
        let mut rows = Vec::new();
        for (plan, PlannedSum { at_once: (_, at_once), most: (_, most) }) in &self.variants {
            let mut row = json!(plan);
            row["cost_micro_usd_max"] = json!(most);
            row["cost_micro_usd_at_once"] = json!(at_once);
            rows.push(row);
        }
        let mut plan = json!({"columns": rows, "refused": self.refused});
        if let Some(budget) = &self.budget {
            plan["budget_tokens"] = budget.tokens_a_shard.into();
        }
        plan
    }

    /// Returns the number of runs that are missing.
    pub fn left(&self) -> u64 {
        self.variants.iter().map(|(plan, _)| plan.runs - plan.ended).sum()
    }
}

/// Returns a line about a task as it was read.
fn describe_first(task: &TaskLine) -> String {
    let answer = task.answer.as_ref().map(|answer| format!(", answer “{}”", escape::excerpt(answer)));
    format!(
        "first task {}: “{}”{}",
        escape::excerpt(&task.id),
        escape::excerpt(&task.prompt),
        answer.unwrap_or_default()
    )
}
