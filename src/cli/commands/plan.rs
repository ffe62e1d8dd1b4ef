//! `consensus plan` and `run --dry-run`: the most that a run can cost.

use serde_json::json;

use crate::cli::args::Format;
use crate::cli::args::RunArgs;
use crate::cli::output::Output;
use crate::config::{FileConfig, RolesetAgent, expected_price, prices_as_of};
use crate::core::{ExitCode, Price};
use crate::run::draft;

pub(crate) fn plan(args: &RunArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let file = FileConfig::load_to_read()?;
    let request = args.request(&file, 0);
    let draft = draft(&request, &file)?;
    let (why, roleset) = (draft.why, draft.roleset.clone());
    let setup = draft.estimated(&request, output)?;
    let worst = setup.worst_case();
    let named = |agent: &RolesetAgent| {
        let named = args.server.model.as_ref().or(agent.model.as_ref()).or(file.model.as_ref());
        named.cloned().unwrap_or_default()
    };
    let models: Vec<String> = roleset.agents.iter().chain(&roleset.arbiter).map(named).collect();
    let chosen = &request.servers;
    // The dearest model of the run bounds the cost; none, if a price is missing.
    let prices: Result<Vec<Option<Price>>, _> =
        models.iter().map(|model| expected_price(chosen, &file, model)).collect();
    let prices: Option<Vec<Price>> = prices?.into_iter().collect();
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
        setup.agents.iter().zip(&models).map(|(a, m)| format!("{} ({})", a.name, of_model(m))).collect();
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    output.line(&format!("{}{why}: {}", setup.roleset, agents.join(", ")))?;
    output.line("at most:")?;
    output.line(&format!("  {:>12} calls", worst.calls))?;
    output.line(&format!(
        "  {:>12} prompt tokens, by a high estimate; servers reuse most of them",
        worst.prompt_tokens
    ))?;
    output.line(&format!("  {:>12} completion tokens", worst.completion_tokens))?;
    output.line(&format!("  {:>12} tokens of context in the longest call", worst.context_tokens))?;
    match cost {
        Some(micro) => {
            let dollars = format!("{:.4}", micro as f64 / 1e6);
            let basis = format!("by consensus.toml, else public prices of {}", prices_as_of());
            output.line(&format!("  {dollars:>12} US dollars ({basis})"))?;
        }
        None => output.line(&format!(
            "  cost unknown: no price for these models, neither in consensus.toml nor in the list of {}",
            prices_as_of()
        ))?,
    }
    output
        .line("every turn is counted with all its repairs and all rounds; most runs end in the first few")?;
    Ok(ExitCode::Success)
}

fn of_model(reference: &str) -> &str {
    if reference.is_empty() { "the server's model" } else { reference }
}
