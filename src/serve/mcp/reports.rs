//! What the tools report, as clients get it.
//!
//! The input is runs, plans and verifications. The output is small objects with a schema, which suffice for the next step. The whole
//! result, the transcript and the journal are resources. A text that is too long for a client is left to its resource.

use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::run_part::{RunPart, uri};
use crate::batch::Variant;
use crate::run::at_once;
use crate::serve::http::ApiError;
use crate::serve::runs::{LiveRun, OpenRunState, RunReply};
use protocol::RunSetup;
use protocol::core::Endpoint;

/// The longest text of a report, in bytes. Clients cut off or refuse a much longer one.
const TEXT_BYTES_MAX: usize = 20_000;

/// The most lines of the story of a run that is under way.
const STORY_LINES: usize = 8;

/// A run, as far as it has come.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct ToolReport {
    /// The id of the run.
    run: String,
    /// `running`, `stopping`, `ended` or `cancelled`.
    status: String,
    /// Of a run that has ended: `agreed`, `no_agreement`, `abstained`, `vetoed` or `budget`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// The kind of agreement: `independent` is worth most, since the agents found the same answer apart from each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    how: Option<String>,
    /// The strength of the agreement, and its reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    worth: Option<String>,
    /// The agreed text, or without agreement the one that leads; of a review, its findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The reason why there is no agreed text.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The share of right answers among such answers, if the server has a calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    /// Other answers, and who held them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dissent: Vec<String>,
    /// Losses on the way that make the result worth less.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    degraded: Vec<String>,
    /// All tokens of prompts and replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// The SHA-256 of the last record, by which the journal is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    journal_head: Option<String>,
    /// The resource with the whole text, if it is too long for here.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<String>,
    /// The last steps of a run that is under way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    story: Vec<String>,
    /// The next call, if the run is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// What a run uses if its agents agree at once, and the most that it can use.
#[derive(Serialize, JsonSchema)]
pub(super) struct PlanReport {
    roleset: String,
    /// The models of the agents.
    models: Vec<String>,
    /// The use if the agents agree at once; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_once: Option<PlannedUse>,
    /// The use if every round is needed and every reply is as long as it may be.
    at_most: PlannedUse,
}

/// Calls, tokens, and their cost.
#[derive(Serialize, JsonSchema)]
struct PlannedUse {
    calls: u64,
    prompt_tokens: u64,
    completion_tokens: u64,
    /// In US dollars; absent if the price of a model is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

/// The verification of a run.
#[derive(Serialize, JsonSchema)]
pub(super) struct VerifyReport {
    pub(super) run: String,
    /// Whether each record follows from those before it, and all of them lead to the result.
    pub(super) verified: bool,
    /// The first fault, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<String>,
    /// The outcome that the records lead to; `open` if the run has not ended.
    pub(super) outcome: String,
    pub(super) records: u64,
    pub(super) journal_head: String,
}

/// The parts of a report that only the records of a run hold.
#[derive(Default)]
pub(super) struct RecordedParts {
    /// The findings, if the run is a review. They are its text.
    pub(super) findings: Option<String>,
    /// The strength of the agreement, and its reasons.
    pub(super) worth: Option<String>,
}

impl ToolReport {
    /// Returns the report of a run that is under way.
    pub(super) fn open(live: &LiveRun) -> Self {
        let OpenRunState { run, status } = OpenRunState::new(live);
        let progress = live.progress();
        let progress = progress.borrow();
        let skipped = progress.lines.len().saturating_sub(STORY_LINES);
        let mut next = None;
        if !live.is_stopping() {
            next = Some(format!("the run goes on; call `result` with the run {run}"));
        }
        Self {
            run: run.to_string(),
            status: status.to_owned(),
            story: progress.lines[skipped..].iter().map(ToString::to_string).collect(),
            next,
            ..Self::default()
        }
    }

    /// Returns the report of a run that was cancelled.
    pub(super) fn cancelled(run: Uuid) -> Self {
        Self { run: run.to_string(), status: "cancelled".to_owned(), ..Self::default() }
    }

    /// Returns the report of a run that has ended with this line of results.
    pub(super) fn ended(run: Uuid, row: &Value, recorded: RecordedParts) -> Result<Self, ApiError> {
        let RecordedParts { findings, worth } = recorded;
        let RunReply { content, refusal, usage, findings: known, .. } = RunReply::new(true, row)?;
        let (mut text, mut whole) = (findings.or(content), None);
        if let Some(long) = &text
            && long.len() > TEXT_BYTES_MAX
        {
            text = Some(cut(long));
            whole = Some(uri(run, RunPart::Result));
        }
        let mut dissent = Vec::new();
        for answer in known["dissent"].as_array().into_iter().flatten() {
            let [agent, text, why] =
                ["agent", "text", "why"].map(|name| answer[name].as_str().unwrap_or_default());
            dissent.push(cut(&format!("{agent}: {text} ({why})")));
        }
        let mut degraded = Vec::new();
        for loss in known["degraded"].as_array().into_iter().flatten() {
            degraded.push(loss["detail"].as_str().unwrap_or_default().to_owned());
        }
        Ok(Self {
            run: run.to_string(),
            status: "ended".to_owned(),
            outcome: known["outcome"].as_str().map(str::to_owned),
            how: known["how"].as_str().map(str::to_owned),
            worth,
            text,
            reason: refusal,
            confidence: known["confidence"]["value"].as_f64(),
            dissent,
            degraded,
            tokens: Some(usage.prompt + usage.completion),
            journal_head: known["journal_head"].as_str().map(str::to_owned),
            whole,
            ..Self::default()
        })
    }
}

/// The most characters of a text that is cut.
const CUT_CHARS: usize = 500;

/// Returns the beginning of a text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(CUT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl PlanReport {
    /// Returns the plan of a run.
    pub(super) fn new(variant: &Variant) -> Self {
        let Variant { setup, endpoints, .. } = variant;
        let most = RunSetup::worst_case(setup);
        Self {
            roleset: setup.roleset.clone(),
            models: endpoints.iter().map(Endpoint::label).collect(),
            at_once: at_once(setup)
                .map(|least| PlannedUse::new(endpoints, least.calls, least.prompt, least.completion)),
            at_most: PlannedUse::new(endpoints, most.calls, most.prompt_tokens, most.completion_tokens),
        }
    }
}

impl PlannedUse {
    fn new(endpoints: &[Endpoint], calls: u64, prompt_tokens: u64, completion_tokens: u64) -> Self {
        // The dearest model bounds the cost.
        let prices: Option<Vec<_>> = endpoints.iter().map(Endpoint::price).collect();
        let cost = prices.map(|prices| {
            let costs = prices.iter().map(|price| price.cost_micro_usd(prompt_tokens, 0, completion_tokens));
            costs.max().unwrap_or(0) as f64 / 1e6
        });
        Self { calls, prompt_tokens, completion_tokens, cost }
    }
}
