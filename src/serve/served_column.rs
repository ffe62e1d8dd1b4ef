//! The rolesets that are served, on their models, as requests wish them.
//!
//! The input is the name of a roleset with its model, and a request. The output is a column of the batch whose runs answer the request, or
//! the field of the request that is to blame. A request can only narrow what the server allows.

use super::api_error::ApiError;
use super::requested_run::RequestedRun;
use super::rules::{PREFIX, ServerRules};
use crate::batch::{Column, OpenColumns};
use crate::config::ConfigError;
use crate::journal::Limits;
use crate::run::{RunError, check_prices};
use protocol::core::ExitCode;
use protocol::text::{Constraint, escape};
use protocol::{ProtocolParams as _, RunSetup};

/// The header by which a server recognises requests of its own agents.
pub(super) const DEPTH_HEADER: &str = "x-consensus-depth";

/// The protocol of rolesets that review changes.
const REVIEW: &str = "approval";

/// The word that allows every model.
const EVERY_MODEL: &str = "*";

/// Returns whether the agents of a run review a change.
pub(super) fn is_for_changes(setup: &RunSetup) -> bool {
    setup.params.protocol() == REVIEW
}

/// Returns the roleset and the model that a name stands for.
fn parts(name: &str) -> (&str, Option<&str>) {
    let bare = name.strip_prefix(PREFIX).unwrap_or(name);
    bare.split_once('@').map_or((bare, None), |(roleset, model)| (roleset, Some(model)))
}

/// Refuses the name of a roleset that is not served for this purpose.
pub(super) fn require_served(rules: &ServerRules, name: &str, is_review: bool) -> Result<(), ApiError> {
    let (roleset, _) = parts(name);
    if rules.rolesets(is_review).any(|served| served.name == roleset) {
        return Ok(());
    }
    let name = escape::excerpt(name);
    let why = if is_review {
        format!("there is no roleset `{name}` of reviewers")
    } else {
        format!("there is no model `{name}`; GET /v1/models lists all")
    };
    Err(ApiError::unknown("model_not_found", why))
}

/// Returns a roleset as a request wishes it.
pub(super) fn apply_request(column: Column, asked: &RequestedRun) -> Result<Column, ApiError> {
    if column.is_calibrated() {
        within_calibration(asked, &column.setup)?;
    }
    let column = match asked.reply_tokens {
        Some(max) => column.with_reply_tokens(max),
        None => column,
    };
    let needs_prices = |_| {
        let why = "the server does not know the prices of these models; give `tokens`";
        ApiError::field("consensus.budget.usd", why)
    };
    check_prices(asked.limits, &column.endpoints).map_err(needs_prices)?;
    let column = column.with_limits(asked.limits);
    let column = match asked.min_confidence {
        Some(least) => column.with_min_confidence(least).ok_or_else(no_confidence)?,
        None => column,
    };
    let column = match asked.on_disagreement {
        Some(answer) => column.with_on_disagreement(answer).ok_or_else(no_vote)?,
        None => column,
    };
    let Some(schema) = &asked.schema else { return Ok(column) };
    let rule = Constraint::Schema { schema: schema.clone() };
    let why = "the roleset knows no rules for its answers; choose another one";
    column.with_rule(rule).ok_or_else(|| ApiError::field("model", why))
}

fn no_confidence() -> ApiError {
    let why = "the server has no calibration, so no answer has a confidence; it is started with --calibration for that";
    ApiError::field("consensus.min_confidence", why)
}

fn no_vote() -> ApiError {
    let why = "the roleset is no vote; leave this out, or choose one such as `vote_number`";
    ApiError::field("consensus.on_disagreement", why)
}

/// Refuses wishes under which the server's calibration would not hold.
fn within_calibration(asked: &RequestedRun, setup: &RunSetup) -> Result<(), ApiError> {
    let why = "the server has a calibration, which holds for its own settings alone";
    if asked.reply_tokens.is_some_and(|max| setup.everybody().any(|agent| agent.max_tokens > max)) {
        return Err(ApiError::field("max_completion_tokens", why));
    }
    if asked.on_disagreement.is_some() {
        return Err(ApiError::field("consensus.on_disagreement", why));
    }
    if asked.limits != Limits::default() {
        return Err(ApiError::field("consensus.budget", why));
    }
    Ok(())
}

/// Reads the roleset of a model that is served, and finds the models of its agents.
pub(super) async fn open_served(
    rules: &ServerRules,
    columns: &OpenColumns,
    name: &str,
    is_review: bool,
) -> Result<Column, ApiError> {
    let (roleset, model) = parts(name);
    let is_allowed = |model: &str| rules.allowed.iter().any(|known| known == model || known == EVERY_MODEL);
    if let Some(model) = model.filter(|model| !is_allowed(model)) {
        let why = format!(
            "the server does not let callers choose the model `{}`; it is started with --allow-model NAME for that",
            escape::excerpt(model)
        );
        return Err(ApiError::field("model", why));
    }
    let column = columns.one(roleset, model).await.map_err(|why| unusable(why, model.is_some()))?;
    if is_for_changes(&column.setup) != is_review {
        // The file of the roleset was changed since the server was started.
        let why = "the roleset has another protocol by now; start the server again";
        return Err(ApiError::field("model", why));
    }
    if column.sought.is_some() {
        let why = "the roleset redacts, and a server does not put the originals back; use `consensus run`";
        return Err(ApiError::field("model", why));
    }
    Ok(column.with_header(DEPTH_HEADER, "1"))
}

/// Returns the refusal of a request whose roleset cannot be run. A caller that has chosen the model learns what is wrong with it. Files are
/// of no concern to callers, so the log alone names them.
fn unusable(why: RunError, has_chosen: bool) -> ApiError {
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
