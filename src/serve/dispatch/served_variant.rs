//! The rolesets that are served, on their models, as requests wish them.
//!
//! The input is the name of a roleset with its model, and a request. The output is a variant of the batch whose runs answer the request, or
//! the field of the request that is to blame. A request can only narrow what the server allows.

use super::requested_run::RequestedRun;
use crate::batch::{Variant, VariantSet};
use crate::config::ConfigError;
use crate::journal::Limits;
use crate::run::{RunError, check_prices};
use crate::serve::http::ApiError;
use crate::serve::runs::{ServerRules, split_name};
use protocol::core::ExitCode;
use protocol::text::{Constraint, escape};
use protocol::{ProtocolParams as _, RunSetup};

/// The header by which a server recognises requests of its own agents.
pub(in crate::serve) const DEPTH_HEADER: &str = "x-consensus-depth";

/// The protocol of rolesets that review changes.
const REVIEW: &str = "approval";

/// The word that allows every model.
const EVERY_MODEL: &str = "*";

/// Returns whether the agents of a run review a change.
pub(super) fn is_for_changes(setup: &RunSetup) -> bool {
    setup.params.protocol() == REVIEW
}

/// Returns a roleset as a request wishes it.
pub(super) fn apply_request(mut variant: Variant, asked: &RequestedRun) -> Result<Variant, ApiError> {
    if variant.is_calibrated() {
        require_calibrated_settings(asked, &variant.setup)?;
    }
    if asked.is_review {
        variant = variant.with_confirmed_findings();
    }
    if asked.no_demands {
        variant = variant.without_demands();
    }
    if let Some(max) = asked.reply_tokens {
        variant = variant.with_reply_tokens(max);
    }
    if check_prices(asked.limits, &variant.endpoints).is_err() {
        let why = "the server does not know the prices of these models; give `tokens`";
        return Err(ApiError::field("consensus.budget.usd", why));
    }
    variant = variant.with_limits(asked.limits);
    if let Some(least) = asked.min_confidence {
        let why = "the server has no calibration, so no answer has a confidence; it is started with --calibration for that";
        let changed = variant.with_min_confidence(least);
        variant = changed.ok_or_else(|| ApiError::field("consensus.min_confidence", why))?;
    }
    if let Some(answer) = asked.on_disagreement {
        let why = "the roleset is no vote; leave this out, or choose one such as `vote_number`";
        let changed = variant.with_on_disagreement(answer);
        variant = changed.ok_or_else(|| ApiError::field("consensus.on_disagreement", why))?;
    }
    if let Some(schema) = &asked.schema {
        let why = "the roleset knows no rules for its answers; choose another one";
        let changed = variant.with_rule(Constraint::Schema { schema: schema.clone() });
        variant = changed.ok_or_else(|| ApiError::field("model", why))?;
    }
    Ok(variant)
}

/// Refuses wishes under which the server's calibration would not hold.
fn require_calibrated_settings(asked: &RequestedRun, setup: &RunSetup) -> Result<(), ApiError> {
    let why = "the server has a calibration, which holds for its own settings alone";
    if asked.reply_tokens.is_some_and(|max| setup.everybody().any(|agent| agent.max_tokens > max)) {
        return Err(ApiError::field("max_completion_tokens", why));
    }
    if asked.on_disagreement.is_some() {
        return Err(ApiError::field("consensus.on_disagreement", why));
    }
    if asked.no_demands {
        return Err(ApiError::field("consensus.inferred_constraints", why));
    }
    if asked.limits != Limits::default() {
        return Err(ApiError::field("consensus.budget", why));
    }
    Ok(())
}

/// Reads the roleset of a model that is served, and finds the models of its agents.
pub(super) async fn open_served(
    rules: &ServerRules,
    variants: &VariantSet,
    name: &str,
    is_review: bool,
) -> Result<Variant, ApiError> {
    let (roleset, model) = split_name(name);
    if let Some(model) = model
        && !rules.allowed.iter().any(|allowed| allowed == model || allowed == EVERY_MODEL)
    {
        let why = format!(
            "the server does not let callers choose the model `{}`; it is started with --allow-model NAME for that",
            escape::excerpt(model)
        );
        return Err(ApiError::field("model", why));
    }
    let variant = variants.one(roleset, model).await.map_err(|why| refuse_roleset(why, model.is_some()))?;
    if is_for_changes(&variant.setup) != is_review {
        // The file of the roleset was changed since the server was started.
        let why = "the roleset has another protocol by now; start the server again";
        return Err(ApiError::field("model", why));
    }
    if variant.sought.is_some() {
        let why = "the roleset redacts, and a server does not put the originals back; use `consensus run`";
        return Err(ApiError::field("model", why));
    }
    Ok(variant.with_header(DEPTH_HEADER, "1"))
}

/// Returns the refusal of a request whose roleset cannot be run. A caller that has chosen the model learns what is wrong with it. Files are
/// of no concern to callers, so the log alone names them.
fn refuse_roleset(why: RunError, has_chosen: bool) -> ApiError {
    let is_of_choice =
        has_chosen && matches!(why, RunError::Usage(_) | RunError::Config(ConfigError::Usage(_)));
    let is_of_provider = why.exit_code() == ExitCode::Provider;
    let why = format!("{:#}", anyhow::Error::from(why));
    if is_of_provider {
        return ApiError::provider(&why, true);
    }
    if is_of_choice {
        return ApiError::field("model", why);
    }
    tracing::error!("{why}");
    ApiError::field("model", "the server cannot run this roleset; its log says why")
}
