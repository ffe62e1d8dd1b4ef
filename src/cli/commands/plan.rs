//! `--dry-run` of `run`, `review` and `approve`: prints the expected cost if all agents agree at once, and the most that they can cost.

use serde_json::json;

use crate::cli::args::Format;
use crate::cli::args::RunArgs;
use crate::cli::output::Output;
use crate::config::{Chosen, FileConfig, Roleset, expected_price, prices_as_of};
use crate::journal::Limits;
use crate::run::{MockChoice, at_once, draft, named_models};
use protocol::RunSetup;
use protocol::core::{ExitCode, Price};
use protocol::text::grouped;

pub(crate) fn plan(args: &RunArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let file = FileConfig::load_to_read()?;
    let request = args.request(&file, 0);
    let draft = draft(&request, &file)?;
    let (why, roleset) = (draft.why, draft.roleset.clone());
    let setup = draft.estimated(&request, &file, output)?;
    tell_setup(&setup, &roleset, why, (&request.servers, &request.mock, request.limits), &file, output)
}

/// Prints what a run with this setup can cost under these limits, on the models that `chosen` and the roleset name.
pub(super) fn tell_setup(
    setup: &RunSetup,
    roleset: &Roleset,
    why: Option<&str>,
    (chosen, mock, limits): (&Chosen, &MockChoice, Limits),
    file: &FileConfig,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let worst = setup.worst_case().within(limits.tokens_total_max);
    let models = named_models(chosen, file, roleset);
    // The dearest model of the run bounds the cost. Without the price of each model there is no bound.
    let prices: Result<Vec<Option<Price>>, _> =
        models.iter().map(|model| expected_price(chosen, file, model)).collect();
    let prices: Option<Vec<Price>> = prices?.into_iter().collect();
    let dearest = |prompt: u64, completion: u64| {
        let costs = prices.iter().flatten().map(|price| price.cost_micro_usd(prompt, 0, completion));
        prices.is_some().then(|| costs.max().unwrap_or(0))
    };
    let cost = dearest(worst.prompt_tokens, worst.completion_tokens);
    let cost = cost.map(|cost| limits.cost_micro_usd_max.map_or(cost, |limit| cost.min(limit)));
    let least = at_once(setup);
    let least_cost = least.and_then(|least| dearest(least.prompt_tokens, least.completion_tokens));
    let short = least.and_then(|of| short_of(&limits, [of.prompt_tokens, of.completion_tokens], least_cost));
    if let Some(short) = short {
        output.warn(short);
    }
    if output.format != Format::Text {
        output.json(&json!({
            "roleset": setup.roleset,
            "calls_max": worst.calls,
            "prompt_tokens_max": worst.prompt_tokens,
            "completion_tokens_max": worst.completion_tokens,
            "context_tokens_max": worst.context_tokens,
            "cost_micro_usd_max": cost,
            "at_once": least.map(|least| json!({
                "calls": least.calls,
                "prompt_tokens": least.prompt_tokens,
                "completion_tokens": least.completion_tokens,
                "cost_micro_usd": least_cost,
            })),
        }))?;
        return Ok(ExitCode::Success);
    }
    let is_mock = mock.is_wanted || mock.script.is_some();
    let of_model = |reference: &str| match reference {
        _ if is_mock => "mock".to_owned(),
        "" => "the server's model".to_owned(),
        _ => reference.to_owned(),
    };
    let agents: Vec<String> =
        setup.agents.iter().zip(&models).map(|(a, m)| format!("{} ({})", a.name, of_model(m))).collect();
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    output.line(&format!("{}{why}: {}", setup.roleset, agents.join(", ")))?;
    if let Some(least) = least {
        output.line("if the agents agree at once, about:")?;
        tell(output, [least.calls, least.prompt_tokens, least.completion_tokens], least_cost)?;
    }
    output.line("at most:")?;
    tell(output, [worst.calls, worst.prompt_tokens, worst.completion_tokens], cost)?;
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

/// Returns the reason why runs that agree at once, for so many tokens and this cost, would still reach their limits, if they would.
pub(super) fn short_of(limits: &Limits, tokens: [u64; 2], cost: Option<u64>) -> Option<&'static str> {
    let is_above = |figure: u64, limit: Option<u64>| limit.is_some_and(|limit| figure > limit);
    let [prompt, completion] = tokens;
    let is_short = is_above(prompt.saturating_add(completion), limits.tokens_total_max)
        || cost.is_some_and(|cost| is_above(cost, limits.cost_micro_usd_max));
    is_short.then_some(
        "agents that agree at once need more than the limit of a run, so that most runs will end at it",
    )
}

/// Prints calls, prompt tokens and completion tokens, and their cost if it is known.
pub(super) fn tell(output: &Output, figures: [u64; 3], cost: Option<u64>) -> anyhow::Result<()> {
    for (figure, name) in figures.into_iter().zip(["calls", "prompt tokens", "completion tokens"]) {
        output.line(&format!("  {:>12} {name}", grouped(figure)))?;
    }
    if let Some(micro) = cost {
        let dollars = format!("{:.4}", micro as f64 / 1e6);
        let basis = format!("by consensus.toml, else public prices of {}", prices_as_of());
        output.line(&format!("  {dollars:>12} US dollars ({basis})"))?;
    }
    Ok(())
}
