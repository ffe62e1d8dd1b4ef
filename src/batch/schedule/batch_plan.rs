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
use protocol::vote::SAMPLES_FIRST;
use protocol::{Override, Params, ProtocolParams as _, RunSetup, Task};

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
    /// The budget in tokens, if the runs share one.
    budget: Option<u64>,
    plans: Vec<VariantPlan>,
    /// The tokens of the runs of each variant that no budget bounds.
    unbounded: Vec<UnboundedTokens>,
}

/// The most tokens of missing runs that a budget does not bound.
#[derive(Clone, Copy, Debug, Default)]
struct UnboundedTokens {
    /// The tokens of the first samples, which need no permit.
    first: u64,
    /// The tokens of one more sample of each run. A round is permitted by an estimate.
    round: u64,
}

impl UnboundedTokens {
    /// Adds so many runs with this setup.
    fn add(&mut self, setup: &RunSetup, runs: u64) {
        let Params::Vote(vote) = &setup.params else { return };
        let voters = u32::try_from(vote.voters(&setup.agents).len()).unwrap_or(u32::MAX);
        let (mut before, mut dearest) = (0, 0);
        // Each voter has one of these samples.
        for samples in 1..=voters.max(SAMPLES_FIRST) {
            let mut few = setup.clone();
            few.params.apply(&Override::SamplesMax(samples));
            let most = few.worst_case();
            let tokens = most.prompt_tokens.saturating_add(most.completion_tokens);
            if samples == SAMPLES_FIRST {
                self.first = self.first.saturating_add(tokens.saturating_mul(runs));
            }
            dearest = dearest.max(tokens - before);
            before = tokens;
        }
        self.round = self.round.saturating_add(dearest.saturating_mul(runs));
    }

    /// Returns the most tokens of the runs under this budget. A round begins only within it.
    fn most_under(self, budget: u64) -> u64 {
        self.first.max(budget.saturating_add(self.round))
    }
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
        let unbounded = vec![UnboundedTokens::default(); plans.len()];
        Ok(Self { variants, seeds, shard, folder, ended, tokens_max, budget: None, plans, unbounded })
    }

    /// Bounds the plan by a budget of so many tokens that all runs share, if there is one.
    pub fn with_budget(self, budget: Option<u64>) -> Self {
        Self { budget, ..self }
    }

    /// Adds a task.
    ///
    /// Returns the reason why the task cannot be run.
    pub fn add(&mut self, task: &TaskLine) -> Result<(), String> {
        let documents = read_documents(&task.documents, self.folder)?;
        let plans = self.plans.iter_mut().zip(&mut self.unbounded);
        for (variant, (plan, unbounded)) in self.variants.iter().zip(plans) {
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
            if self.budget.is_some() {
                unbounded.add(&setup, missing);
            }
            if let Some(least) = at_once(&setup) {
                plan.at_once.add(least.calls, least.prompt, least.completion, missing);
            }
        }
        Ok(())
    }

    /// Returns the plan of each variant.
    pub fn finish(mut self) -> Vec<VariantPlan> {
        let Some(budget) = self.budget else { return self.plans };
        for (plan, unbounded) in self.plans.iter_mut().zip(self.unbounded) {
            let most = unbounded.most_under(budget);
            plan.most.prompt_tokens = plan.most.prompt_tokens.min(most);
            plan.most.completion_tokens = plan.most.completion_tokens.min(most);
        }
        self.plans
    }
}
