//! The file `result.json`: the outcome of a run, for programs.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::constraints::{CheckedRule, checked_rules};
use super::models::{counted_models, describe_quorum};
use super::transcript::describe_withheld;
use super::{RESULT_FILE, TRANSCRIPT_FILE, panel, transcript, vote};
use crate::calibration::Confidence;
use crate::engine::RunState;
use crate::files::write_whole;
use crate::journal::{Executed, Record, between};
use crypto::Digest;
use protocol::text::FailedCheck;
use protocol::{
    AgentReport, BlindVote, Degraded, Dissent, Execution, How, Outcome, OutcomeKind, ProtocolParams, Section,
};
use quorum::Quorum;

/// The result of a run that has ended or was interrupted: the content of `result.json`.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// The version of the format, 1.
    pub v: u32,
    /// The run's id.
    pub run: String,
    /// The name of the protocol.
    pub protocol: &'static str,
    /// The name of the roleset.
    pub roleset: String,
    /// The kind of outcome.
    pub outcome: OutcomeKind,
    /// The reason, if the outcome alone does not say it.
    pub reason: Option<String>,
    /// The kind of agreement.
    pub how: Option<How>,
    /// The agreed text.
    pub text: Option<String>,
    /// The agreed text with the originals in place of their tokens, if the run was redacted. It is never in
    /// `result.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored_text: Option<String>,
    /// The digest of the text's canonical form.
    pub sha256: Option<Digest>,
    /// The confidence in the answer by a calibration; absent without one, and for an answer of a kind that it does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The number of rounds begun.
    pub rounds: u32,
    /// The plain vote over blind drafts.
    pub blind_vote: BlindVote,
    /// The agents as they were at the end.
    pub agents: Vec<AgentResult>,
    /// The other answers, with who held them and why.
    pub dissent: Vec<Dissent>,
    /// The losses that make this result worth less than it seems.
    pub degraded: Vec<Degraded>,
    /// The rules that code checked on every answer; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<CheckedRule>,
    /// The verdicts of the user's check; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckVerdicts>,
    /// The resources used.
    pub usage: UsageResult,
    /// The times of the run.
    pub timing: Timing,
    /// The section that only its protocol has.
    #[serde(flatten)]
    pub section: Section,
    /// The SHA-256 of the journal's last line.
    pub journal_head: Digest,
    /// The model as which each agent counts. It is not in `result.json`.
    #[serde(skip)]
    pub(super) counted_models: Vec<String>,
}

/// One agent at the end of a run, and the endpoint of its model.
#[derive(Clone, Debug, Serialize)]
pub struct AgentResult {
    /// The protocol's report on the agent.
    #[serde(flatten)]
    pub report: AgentReport,
    /// The model that was named, and its server.
    pub endpoint: String,
    /// The model that has answered, as the server says; `mock` for a script.
    pub model: String,
}

/// The verdicts of the user's check of final texts. A text that comes again is not checked again.
#[derive(Clone, Debug, Serialize)]
pub struct CheckVerdicts {
    /// The number of texts that passed.
    pub passed: u64,
    /// The number of texts that were refused.
    pub refused: u64,
    /// The text that was refused last.
    pub last_refused: Option<RefusedText>,
}

/// A text that the user's check has refused.
#[derive(Clone, Debug, Serialize)]
pub struct RefusedText {
    pub text: String,
    /// The end of the check, and the last line that it printed.
    pub why: String,
}

/// The resources that a run used.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct UsageResult {
    /// The number of prompt tokens.
    pub prompt: u64,
    /// The number of prompt tokens that servers had computed before.
    pub cached: u64,
    /// The number of completion tokens.
    pub completion: u64,
    /// The number of replies.
    pub calls: u64,
    /// The cost in millionths of a US dollar; null if a price is not known.
    pub cost_micro_usd: Option<u64>,
}

/// The times of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Timing {
    /// The time of the first record.
    pub started_at: String,
    /// The time of the last record.
    pub ended_at: String,
    /// The milliseconds between them, without those in which the run lay interrupted.
    pub total_ms: u64,
    /// The milliseconds that each agent's calls took together, the arbiter's last; calls may overlap.
    pub agents_ms: Vec<u64>,
}

impl RunResult {
    /// Returns the result of a run from its state and the head of its journal.
    pub fn new(state: &RunState, journal_head: Digest) -> Self {
        let mut report = state.report();
        complete(&mut report.section, state);
        let opened = state.opened();
        let outcome = state.outcome().or(state.verdict()).cloned().unwrap_or(Outcome::Interrupted);
        let (how, text, sha256) = match &outcome {
            Outcome::Agreed { how, text, sha256 } => (Some(*how), Some(text.clone()), Some(*sha256)),
            Outcome::NoAgreement { .. }
            | Outcome::Abstained { .. }
            | Outcome::Vetoed { .. }
            | Outcome::Budget { .. }
            | Outcome::Failed { .. }
            | Outcome::Interrupted => (None, None, None),
        };
        let totals = state.totals();
        let counted = counted_models(state, report.agents.len());
        let agents = report.agents.into_iter().zip(state.endpoints()).enumerate();
        Self {
            v: 1,
            run: state.run().to_owned(),
            protocol: opened.setup.params.protocol(),
            roleset: opened.setup.roleset.clone(),
            outcome: outcome.kind(),
            reason: reason(&outcome),
            how,
            text,
            restored_text: None,
            sha256,
            confidence: state.confidence().cloned(),
            rounds: report.rounds,
            blind_vote: report.blind_vote,
            agents: agents
                .map(|(at, (report, endpoint))| AgentResult {
                    report,
                    endpoint: endpoint.label(),
                    model: state.model(at).to_owned(),
                })
                .collect(),
            dissent: report.dissent,
            degraded: report.degraded,
            constraints: checked_rules(&opened.setup),
            check: check_verdicts(state),
            usage: UsageResult {
                prompt: totals.usage.prompt,
                cached: totals.usage.cached,
                completion: totals.usage.completion,
                calls: totals.calls,
                cost_micro_usd: totals.cost_micro_usd,
            },
            timing: timing(state),
            section: report.section,
            journal_head,
            counted_models: counted,
        }
    }

    /// Returns the answer for a reader, with originals in place of tokens if they are known.
    pub fn readable(&self) -> Option<&str> {
        self.restored_text.as_deref().or(self.text.as_deref())
    }

    /// Returns the text of `result.json`.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }
}

/// Fills in the fields that depend on the models.
fn complete(section: &mut Section, state: &RunState) {
    if let Section::Panel(section) = section {
        panel::complete(section, state);
    }
    if let Some(votes) = section.votes_mut() {
        vote::complete(votes, state);
    } else if let Section::Approval(section) = section {
        section.tolerance = tolerance(section.reviewers, state);
    } else if let Section::MapReduce(section) = section
        && let Some(answer) = &mut section.answer
    {
        complete(answer, state);
    }
}

/// Returns what a quorum of so many reviewers tolerates, unless a single one has no other to decide with.
fn tolerance(reviewers: usize, state: &RunState) -> Option<String> {
    let quorum = Quorum::new(reviewers)?;
    let models: Vec<Option<String>> = counted_models(state, reviewers).into_iter().map(Some).collect();
    if reviewers > 1 { Some(describe_quorum(quorum, &models)) } else { None }
}

/// Returns the verdicts of the user's check, if the run has one.
fn check_verdicts(state: &RunState) -> Option<CheckVerdicts> {
    state.check_sha256()?;
    let mut verdicts = CheckVerdicts { passed: 0, refused: 0, last_refused: None };
    for (execution, Executed { result, .. }) in state.executions_made() {
        let Execution::Check { text } = execution else { continue };
        if result.end.is_success() {
            verdicts.passed += 1;
            continue;
        }
        verdicts.refused += 1;
        let why = FailedCheck::new(result.end, &result.output, &result.tail).in_a_line();
        verdicts.last_refused = Some(RefusedText { text: text.clone(), why });
    }
    Some(verdicts)
}

fn reason(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Agreed { .. } => None,
        Outcome::NoAgreement { reason } => Some(reason.to_string()),
        Outcome::Abstained { confidence, threshold } => Some(describe_withheld(*confidence, *threshold)),
        Outcome::Vetoed { reason, source, quote } => {
            Some(format!("{reason} (against {source}: \"{quote}\")"))
        }
        Outcome::Budget { limit } => Some(limit.clone()),
        Outcome::Failed { cause } => Some(cause.clone()),
        Outcome::Interrupted => Some("the run was interrupted and can be resumed".to_owned()),
    }
}

fn timing(state: &RunState) -> Timing {
    Timing {
        started_at: state.started_at.clone(),
        ended_at: state.ended_at.clone(),
        total_ms: to_ms(between(&state.started_at, &state.ended_at).saturating_sub(state.away)),
        agents_ms: state.busy().iter().copied().map(to_ms).collect(),
    }
}

fn to_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Writes `result.json` and `transcript.md` into the run folder, readable by the user alone.
///
/// Returns any error of the file system, and an error if the records do not form a run.
pub fn write_run(dir: &Path, result: &RunResult, records: &[Record]) -> std::io::Result<()> {
    const PRIVATE: u32 = 0o600;
    write_whole(&dir.join(RESULT_FILE), &result.to_json(), PRIVATE)?;
    let transcript = transcript(records).map_err(std::io::Error::other)?;
    write_whole(&dir.join(TRANSCRIPT_FILE), &transcript, PRIVATE)
}

#[cfg(test)]
mod tests {
    use crate::report::RESULT_SCHEMA;
    use protocol::DegradedKind;

    /// Returns the kind after this one, or `None` after the last.
    fn after(kind: DegradedKind) -> Option<DegradedKind> {
        use DegradedKind::*;
        Some(match kind {
            BlindDraftMissing => FailedTurn,
            FailedTurn => PieceLost,
            PieceLost => FactUnproven,
            FactUnproven => FactsLeftOut,
            FactsLeftOut => Objection,
            Objection => VoidBallot,
            VoidBallot => NoReview,
            NoReview => StructuredOutput,
            StructuredOutput => SamplingNotAsAsked,
            SamplingNotAsAsked => SchemaIgnored,
            SchemaIgnored => ModelChanged,
            ModelChanged => ModelNotListed,
            ModelNotListed => QuestionOfCalibration,
            QuestionOfCalibration => UsageEstimated,
            UsageEstimated => UsageImplausible,
            UsageImplausible => KeyInReply,
            KeyInReply => FalseQuote,
            FalseQuote => DocumentLost,
            DocumentLost => DocumentsChanged,
            DocumentsChanged => BentToken,
            BentToken => ConfidenceNotMeasured,
            ConfidenceNotMeasured => NoSandbox,
            NoSandbox => Unsettled,
            Unsettled => MemberLost,
            MemberLost => return None,
        })
    }

    #[test]
    fn result_schema_lists_every_loss_kind() {
        let schema: serde_json::Value = serde_json::from_str(RESULT_SCHEMA).unwrap();
        let known =
            schema["properties"]["degraded"]["items"]["properties"]["kind"]["enum"].as_array().unwrap();
        let kinds = std::iter::successors(Some(DegradedKind::BlindDraftMissing), |kind| after(*kind));
        let missing: Vec<&str> =
            kinds.map(DegradedKind::name).filter(|name| !known.iter().any(|k| k == name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
