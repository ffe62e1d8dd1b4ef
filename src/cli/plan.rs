//! `consensus plan` and `run --dry-run`: the most that a run can cost.

use serde_json::json;

use super::output::{Format, Output};
use super::run_args::RunArgs;
use super::{ExitCode, settings};
use crate::config::FileConfig;
use crate::provider::Price;

pub(super) fn plan(args: &RunArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let file = FileConfig::load()?;
    let (setup, roleset) = settings::setup(args, &file, args.seed.unwrap_or(0))?;
    let worst = setup.worst_case();
    let models: Vec<String> = roleset
        .agents
        .iter()
        .chain(&roleset.arbiter)
        .map(|agent| {
            let named = args.server.model.as_ref().or(agent.model.as_ref()).or(file.model.as_ref());
            named.cloned().unwrap_or_else(|| "the server's model".to_owned())
        })
        .collect();
    // The dearest model of the run bounds the cost; none, if a price is missing.
    let prices: Option<Vec<Price>> = models.iter().map(|model| file.price_of(model)).collect();
    let cost = prices.map(|prices| {
        let costs = prices.iter().map(|p| p.cost_micro_usd(worst.prompt_tokens, 0, worst.completion_tokens));
        costs.max().unwrap_or(0)
    });
    if output.format != Format::Text {
        output.json(&json!({
            "roleset": setup.roleset,
            "calls_max": worst.calls,
            "prompt_tokens_max": worst.prompt_tokens,
            "completion_tokens_max": worst.completion_tokens,
            "context_tokens_max": worst.context_tokens,
            "cost_micro_usd_max": cost,
        }))?;
        return Ok(ExitCode::Success);
    }
    let agents: Vec<String> =
        setup.agents.iter().zip(&models).map(|(a, m)| format!("{} ({m})", a.name)).collect();
    output.line(&format!("{}: {}", setup.roleset, agents.join(", ")))?;
    output.line("at most:")?;
    output.line(&format!("  {:>12} calls", worst.calls))?;
    output.line(&format!(
        "  {:>12} prompt tokens, by a high estimate; servers reuse most of them",
        worst.prompt_tokens
    ))?;
    output.line(&format!("  {:>12} completion tokens", worst.completion_tokens))?;
    output.line(&format!("  {:>12} tokens of context in the longest call", worst.context_tokens))?;
    match cost {
        Some(micro) => output.line(&format!("  {:>12} US dollars", format!("{:.4}", micro as f64 / 1e6)))?,
        None => output.line("  cost unknown: no price for these models in consensus.toml")?,
    }
    output
        .line("every turn is counted with all its repairs and all rounds; most runs end in the first few")?;
    Ok(ExitCode::Success)
}
