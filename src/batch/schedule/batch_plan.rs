//! A plan of what a batch would use, before anything is spent.
//!
//! The input is variants without servers, tasks, and the existing results. The output for each variant is the missing runs, the most
//! that they can use, and their usage if all agents agree at once. Nothing is run, made or sent.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;
use uuid::Uuid;

use crate::batch::folder::{BatchError, ShardOf, is_batch};
use crate::batch::plan::{Cell, Variant, read_documents};
use crate::batch::results::results;
use crate::batch::store::Retry;
use crate::batch::tasks::TaskLine;
use crate::run::at_once;
use protocol::{RunSetup, Task};

/// The calls and tokens of many runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Sum {
    /// The model calls.
    pub calls: u64,
    /// The tokens of the prompts.
    pub prompt_tokens: u64,
    /// The tokens of the replies.
    pub completion_tokens: u64,
}

/// The plan of one variant.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VariantPlan {
    pub roleset: String,
    /// The model as it was named.
    pub model: String,
    /// The number of requested runs.
    pub runs: u64,
    /// The number of these runs that have ended.
    pub ended: u64,
    /// The most that the missing runs can use.
    pub most: Sum,
    /// The usage if all agents agree at once, summed over the missing runs for which it is known.
    pub at_once: Sum,
}

/// A sum of what tasks would use in variants.
#[derive(Debug)]
pub struct BatchPlan<'a> {
    variants: &'a [Variant],
    seeds: std::ops::Range<u64>,
    shard: ShardOf,
    folder: &'a Path,
    ended: HashSet<Uuid>,
    /// The most tokens of each run, if they are limited.
    tokens_max: Option<u64>,
    plans: Vec<VariantPlan>,
}

impl Sum {
    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.add(other.calls, other.prompt_tokens, other.completion_tokens, 1);
    }

    fn add(&mut self, calls: u64, prompt: u64, completion: u64, times: u64) {
        self.calls = self.calls.saturating_add(calls.saturating_mul(times));
        self.prompt_tokens = self.prompt_tokens.saturating_add(prompt.saturating_mul(times));
        self.completion_tokens = self.completion_tokens.saturating_add(completion.saturating_mul(times));
    }
}

impl<'a> BatchPlan<'a> {
    /// Makes an empty plan. `out` is the folder of existing results, of which those that `retry` wants count as missing. `folder` is that
    /// of the documents that tasks name. A run takes at most `tokens_max` tokens, if there is such a limit.
    ///
    /// Returns [`BatchError`] if the existing results cannot be read.
    pub fn new(
        variants: &'a [Variant],
        seeds: std::ops::Range<u64>,
        shard: ShardOf,
        folder: &'a Path,
        out: &Path,
        retry: Retry,
        tokens_max: Option<u64>,
    ) -> Result<Self, BatchError> {
        let mut ended = HashSet::new();
        if is_batch(out) {
            results(out, |row| {
                if !retry.wants(row.outcome) {
                    ended.extend(row.run.parse::<Uuid>());
                }
            })?;
        }
        let mut plans = Vec::new();
        for Variant { roleset, model, .. } in variants {
            let (roleset, model) = (roleset.clone(), model.clone());
            plans.push(VariantPlan { roleset, model, ..VariantPlan::default() });
        }
        Ok(Self { variants, seeds, shard, folder, ended, tokens_max, plans })
    }

    /// Adds a task.
    ///
    /// Returns the reason why the task cannot be run.
    pub fn add(&mut self, task: &TaskLine) -> Result<(), String> {
        let documents = read_documents(&task.documents, self.folder)?;
        for (variant, plan) in self.variants.iter().zip(&mut self.plans) {
            let runs = self.seeds.clone().map(|seed| Cell { task, variant, seed }.run());
            let runs: Vec<Uuid> = runs.filter(|run| self.shard.has(*run)).collect();
            let missing = runs.iter().filter(|run| !self.ended.contains(*run)).count() as u64;
            plan.runs += runs.len() as u64;
            plan.ended += runs.len() as u64 - missing;
            if missing == 0 {
                continue;
            }
            let canonical = task.canonical.clone().unwrap_or_else(|| variant.setup.canonical.clone());
            let of = Task { prompt: task.prompt.clone(), documents: documents.clone(), is_searched: false };
            let setup = RunSetup { task: of, canonical, ..variant.setup.clone() };
            setup.check().map_err(|why| why.to_string())?;
            let first = Cell { task, variant, seed: self.seeds.start };
            first.require_possible_answer()?;
            first.require_id()?;
            let most = setup.worst_case().within(self.tokens_max);
            plan.most.add(most.calls, most.prompt_tokens, most.completion_tokens, missing);
            if let Some(least) = at_once(&setup) {
                plan.at_once.add(least.calls, least.prompt, least.completion, missing);
            }
        }
        Ok(())
    }

    /// Returns the plan of each variant.
    pub fn finish(self) -> Vec<VariantPlan> {
        self.plans
    }
}
