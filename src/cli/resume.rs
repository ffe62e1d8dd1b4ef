//! `consensus resume`.

use super::args::ResumeArgs;
use super::error::IntegrityError;
use super::output::Output;
use super::progress::Story;
use super::{ExitCode, answer, block_on, locate, run, settings, signals};
use crate::config::{Chosen, FileConfig, vouch};
use crate::engine::{Engine, Ledger};
use crate::journal::{Journal, Limits, Writer};

pub(super) fn resume(args: &ResumeArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = locate::run_folder(&args.which)?;
    block_on(async {
        let stop = signals::listen()?;
        let (writer, journal) = Writer::reopen(&dir)?;
        if journal.torn_bytes > 0 {
            output.tell(&format!("cut a torn last line of {} bytes off the journal", journal.torn_bytes));
        }
        let limits = prepare(args, &journal)?;
        let story = Story::new(*output);
        let mut engine = Engine::resume(writer, &journal, limits, &story)?;
        if answer::is_complete(engine.ledger().outcome()) {
            output.tell("the run has ended already; this is its result");
        }
        let result = run::finish(&mut engine, stop, &dir, &story, output).await?;
        answer::print(output, &result, args.fail_on_degraded)
    })?
}

/// Checks that the journal's endpoints may be used, and returns the limits: what is given now over
/// what held before.
fn prepare(args: &ResumeArgs, journal: &Journal) -> anyhow::Result<Option<Limits>> {
    let mismatch = |(line, why)| IntegrityError(format!("the journal's line {line} does not verify: {why}"));
    let ledger = Ledger::replay(&journal.records).map_err(mismatch)?;
    if answer::is_complete(ledger.outcome()) {
        return Ok(None);
    }
    let file = FileConfig::load()?;
    let chosen = Chosen { base_url: args.base_url.clone(), allow_http: args.allow_http, ..Chosen::default() };
    let endpoints = &ledger.opened().endpoints;
    endpoints.iter().try_for_each(|endpoint| vouch(endpoint, &chosen, &file))?;
    let (given, before) = (settings::limits(&args.limits), ledger.limits());
    settings::check_prices(given, endpoints)?;
    Ok(Some(Limits {
        tokens_total_max: given.tokens_total_max.or(before.tokens_total_max),
        cost_micro_usd_max: given.cost_micro_usd_max.or(before.cost_micro_usd_max),
        deadline_ms: given.deadline_ms.or(before.deadline_ms),
    }))
}
