//! `--dry-run` of the commands that call models: prints the expected cost if all agents agree at once, and the most that they can cost.

use serde_json::json;

use crate::batch::{PlannedBatch, PlannedSum};
use crate::cli::args::{Format, RunArgs};
use crate::cli::output::Output;
use crate::config::{Chosen, FileConfig, expected_price, prices_as_of};
use crate::journal::Limits;
use crate::report::checked_rules;
use crate::run::{RolesetSettings, at_once, draft, find_shortage, named_models};
use protocol::RunSetup;
use protocol::core::{ExitCode, Price};
use protocol::text::{escape, grouped};

pub(crate) fn plan(args: &RunArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let file = FileConfig::load_to_read()?;
    let request = args.request(&file, 0);
    let draft = draft(&request, &file)?;
    let (why, roleset) = (draft.why, draft.roleset.clone());
    let setup = draft.estimate_setup(&request, &file, output)?;
    let RolesetSettings { servers, mock, limits, .. } = &request.settings;
    let models = named_models(servers, &file, &roleset);
    let prices = find_prices(servers, &file, &models)?;
    let is_mock = mock.is_wanted || mock.script.is_some();
    print_plan(&setup, why, &models, prices.as_deref(), is_mock, limits, output)
}

/// Returns the price of each model, or `None` if the price of one is not known.
pub(super) fn find_prices(
    chosen: &Chosen,
    file: &FileConfig,
    models: &[String],
) -> anyhow::Result<Option<Vec<Price>>> {
    let prices: Result<Vec<_>, _> = models.iter().map(|model| expected_price(chosen, file, model)).collect();
    Ok(prices?.into_iter().collect())
}

/// Returns the cost on the dearest model, which bounds the cost of a run. Without the price of each model there is no bound.
fn dearest(prices: Option<&[Price]>, prompt: u64, completion: u64) -> Option<u64> {
    let costs = prices?.iter().map(|price| price.cost_micro_usd(prompt, 0, completion));
    Some(costs.max().unwrap_or(0))
}

/// Prints what a run with this setup can cost under these limits, on models with these prices.
pub(super) fn print_plan(
    setup: &RunSetup,
    why: Option<&str>,
    models: &[String],
    prices: Option<&[Price]>,
    is_mock: bool,
    limits: &Limits,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let worst = setup.worst_case().within(limits.tokens_total_max);
    let cost = dearest(prices, worst.prompt_tokens, worst.completion_tokens);
    let cost = cost.map(|cost| limits.cost_micro_usd_max.map_or(cost, |limit| cost.min(limit)));
    let least = at_once(setup);
    let mut least_cost = None;
    if let Some(least) = least {
        least_cost = dearest(prices, least.prompt, least.completion);
        let tokens = least.prompt.saturating_add(least.completion);
        if let Some(shortage) = find_shortage(limits, tokens, least_cost) {
            output.warn(shortage);
        }
    }
    if output.format != Format::Text {
        output.json(&json!({
            "roleset": setup.roleset,
            "calls_max": worst.calls,
            "prompt_tokens_max": worst.prompt_tokens,
            "completion_tokens_max": worst.completion_tokens,
            "context_tokens_max": worst.context_tokens,
            "cost_micro_usd_max": cost,
            "constraints": checked_rules(setup),
            "at_once": least.map(|least| json!({
                "calls": least.calls,
                "prompt_tokens": least.prompt,
                "completion_tokens": least.completion,
                "cost_micro_usd": least_cost,
            })),
        }))?;
        return Ok(ExitCode::Success);
    }
    let mut agents = Vec::new();
    for (agent, model) in setup.agents.iter().zip(models) {
        let model = if is_mock {
            "mock"
        } else if model.is_empty() {
            "the server's model"
        } else {
            model
        };
        agents.push(format!("{} ({model})", agent.name));
    }
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    output.line(&format!("{}{why}: {}", setup.roleset, agents.join(", ")))?;
    for rule in checked_rules(setup) {
        let words = rule.words.map(|words| format!(", because the task says “{words}”")).unwrap_or_default();
        output.line(&escape::terminal(&format!("the answer is checked for {}{words}", rule.rule)))?;
    }
    if let Some(least) = least {
        output.line("if the agents agree at once, about:")?;
        print_figures(output, least.calls, least.prompt, least.completion, least_cost)?;
    }
    output.line("at most:")?;
    print_figures(output, worst.calls, worst.prompt_tokens, worst.completion_tokens, cost)?;
    output.line(&format!("  {:>12} tokens of context in the longest call", grouped(worst.context_tokens)))?;
    if cost.is_none() {
        output.line(&format!(
            "cost unknown: neither consensus.toml nor the list of {} has a price for these models",
            prices_as_of()
        ))?;
    }
    output.line(
        "At most means all rounds, with every reply as long and repeated as often as the limits allow.",
    )?;
    Ok(ExitCode::Success)
}

/// Prints calls, prompt tokens and completion tokens, and their cost if it is known.
fn print_figures(
    output: &Output,
    calls: u64,
    prompt: u64,
    completion: u64,
    cost: Option<u64>,
) -> anyhow::Result<()> {
    output.line(&format!("  {:>12} calls", grouped(calls)))?;
    output.line(&format!("  {:>12} prompt tokens", grouped(prompt)))?;
    output.line(&format!("  {:>12} completion tokens", grouped(completion)))?;
    if let Some(micro) = cost {
        let dollars = format!("{:.4}", micro as f64 / 1e6);
        let basis = format!("by consensus.toml, else public prices of {}", prices_as_of());
        output.line(&format!("  {dollars:>12} US dollars ({basis})"))?;
    }
    Ok(())
}

/// Prints the first task and each variant of a batch.
pub(super) fn print_planned(planned: &PlannedBatch, output: &Output) -> anyhow::Result<()> {
    if let Some(line) = &planned.first {
        output.line(line)?;
    }
    for (plan, sum) in &planned.variants {
        let model = if plan.model.is_empty() { String::new() } else { format!(" on {}", plan.model) };
        let (left, ended) = (plan.runs - plan.ended, plan.ended);
        output.line(&escape::terminal(&format!(
            "{}{model}: {left} runs, {ended} more have ended",
            plan.roleset
        )))?;
        print_sum(sum, output)?;
    }
    if let Some(budget) = &planned.budget {
        let tokens = grouped(budget.tokens_a_shard);
        output.line(&format!(
            "The votes share {tokens} tokens, and exceed them by a part of one round at most. The first two samples of each task are drawn in any case."
        ))?;
    }
    Ok(())
}

/// Prints the least and the most that batches take.
pub(super) fn print_sum(sum: &PlannedSum, output: &Output) -> anyhow::Result<()> {
    let parts = [("if all agents agree at once, about", &sum.at_once), ("at most", &sum.most)];
    for (name, (sum, cost)) in parts {
        output.line(&format!("{name}:"))?;
        print_figures(output, sum.calls, sum.prompt_tokens, sum.completion_tokens, *cost)?;
    }
    Ok(())
}
