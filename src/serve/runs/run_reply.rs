//! The answer of a run, before it has the form of an interface, and what each form can do with it.
//!
//! The input is the line of results of a run. The output is its text, or the reason for its absence, its usage, and this program's own
//! findings. A run without agreement is an answer too: its content is the text that leads, if one does, and the reason is its refusal.

use axum::response::sse::Event;
use serde::Deserialize;
use serde_json::Value;

use crate::serve::http::ApiError;
use protocol::OutcomeKind;
use protocol::core::Usage;

/// The parts of a line of results that an answer has.
#[derive(Deserialize)]
struct ReplyFields {
    outcome: OutcomeKind,
    reason: Option<String>,
    text: Option<String>,
    blind_vote: BlindVoteText,
    usage: RowUsage,
}

/// The vote over blind drafts, as far as an answer needs it.
#[derive(Deserialize)]
struct BlindVoteText {
    text: Option<String>,
}

/// The usage in a line of results.
#[derive(Deserialize)]
struct RowUsage {
    prompt: u64,
    cached: u64,
    completion: u64,
    calls: u64,
}

/// The parts of the line that go into the answer as they are.
const FINDINGS: [&str; 12] = [
    "run",
    "protocol",
    "roleset",
    "outcome",
    "reason",
    "how",
    "confidence",
    "rounds",
    "blind_vote",
    "dissent",
    "degraded",
    "journal_head",
];

/// The tokens of all calls of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::serve) struct TokenUse {
    pub(in crate::serve) prompt: u64,
    pub(in crate::serve) cached: u64,
    pub(in crate::serve) completion: u64,
    /// All tokens of replies but those of the final text: they are work on the way to it.
    pub(in crate::serve) reasoning: u64,
}

/// The answer of a run.
#[derive(Debug)]
pub(in crate::serve) struct RunReply {
    pub(in crate::serve) content: Option<String>,
    pub(in crate::serve) refusal: Option<String>,
    /// Whether a limit of the run was reached before its end.
    pub(in crate::serve) is_cut: bool,
    pub(in crate::serve) usage: TokenUse,
    pub(in crate::serve) findings: Value,
}

impl RunReply {
    /// Makes the answer of a run from its line of results.
    pub(in crate::serve) fn new(has_key: bool, row: &Value) -> Result<Self, ApiError> {
        let fields = ReplyFields::deserialize(row).map_err(|why| ApiError::internal(&why))?;
        let ReplyFields { outcome, reason, text, blind_vote, usage } = fields;
        let mut reason = reason.unwrap_or_else(|| "the run ended without agreement".to_owned());
        if outcome == OutcomeKind::NoAgreement
            && let Some(loss) = find_loss(row)
        {
            reason = format!("{reason}; {loss}");
        }
        let (content, refusal) = match outcome {
            OutcomeKind::Agreed => (text, None),
            OutcomeKind::Budget if usage.calls == 0 => return Err(ApiError::bad("budget", reason)),
            // The vote over blind drafts is the best that the run has.
            OutcomeKind::NoAgreement | OutcomeKind::Budget => (blind_vote.text, Some(reason)),
            OutcomeKind::Abstained | OutcomeKind::Vetoed => (None, Some(reason)),
            OutcomeKind::Failed => return Err(ApiError::provider(&reason, usage.calls == 0)),
            OutcomeKind::Interrupted => return Err(ApiError::put_down(has_key)),
        };
        let of_text = content.as_ref().map_or(0, |text| Usage::estimate(0, text.len()).completion);
        let findings = FINDINGS.iter().map(|name| ((*name).to_owned(), row[name].clone())).collect();
        Ok(Self {
            content,
            refusal,
            is_cut: outcome == OutcomeKind::Budget,
            usage: TokenUse {
                prompt: usage.prompt,
                cached: usage.cached,
                completion: usage.completion,
                reasoning: usage.completion.saturating_sub(of_text),
            },
            findings: Value::Object(findings),
        })
    }
}

/// A form in which an answer is sent.
pub(in crate::serve) trait ReplyForm: Send {
    /// Returns the whole answer.
    fn whole(&self, reply: &RunReply) -> Value;

    /// Returns the events that begin a stream, before the run has said anything.
    fn begin(&mut self) -> Vec<Value>;

    /// Returns the events for a line of the run's story.
    fn progress(&mut self, line: &str) -> Vec<Value>;

    /// Returns the events for an answer, and those that end the stream.
    fn end(&mut self, reply: &RunReply) -> Vec<Value>;

    /// Returns the events for a failure after the beginning of the stream.
    fn fail(&mut self, why: &ApiError) -> Vec<Value>;

    /// Returns an event as it is sent.
    fn event(&self, value: &Value) -> Event;

    /// Returns the event that ends every stream of this form, if there is one.
    fn last(&self) -> Option<Event>;
}

/// Returns why the last sample of a vote was no vote, or else the first loss of the run, if there is any.
fn find_loss(row: &Value) -> Option<&str> {
    let samples = row["vote"]["samples"].as_array().into_iter().flatten();
    let no_vote = samples.filter_map(|sample| sample["no_vote"].as_str()).next_back();
    no_vote.or(row["degraded"][0]["detail"].as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(outcome: &str, text: Option<&str>, blind: Option<&str>, calls: u64) -> Value {
        json!({"run": "r", "outcome": outcome, "reason": "why", "text": text, "blind_vote": {"text": blind},
            "usage": {"prompt": 70, "cached": 30, "completion": 20, "calls": calls}, "journal_head": "h"})
    }

    /// The usage counts the tokens of all calls.
    #[test]
    fn agreement_is_content_with_usage() {
        let reply = RunReply::new(false, &row("agreed", Some("four"), None, 4)).unwrap();
        assert_eq!((reply.content.as_deref(), reply.refusal), (Some("four"), None));
        assert_eq!(reply.usage, TokenUse { prompt: 70, cached: 30, completion: 20, reasoning: 18 });
        assert_eq!((reply.is_cut, &reply.findings["journal_head"]), (false, &json!("h")));
    }

    /// A veto has a reason and no content.
    #[test]
    fn no_agreement_is_answered_with_reason() {
        let reply_to = |row: &Value| RunReply::new(false, row).map(|reply| (reply.content, reply.refusal));
        let leads = reply_to(&row("no_agreement", None, Some("five"), 4)).unwrap();
        assert_eq!(leads, (Some("five".to_owned()), Some("why".to_owned())));
        let vetoed = reply_to(&row("vetoed", None, Some("five"), 4)).unwrap();
        assert_eq!(vetoed, (None, Some("why".to_owned())));
        assert!(reply_to(&row("failed", None, None, 0)).is_err());
        let mut void = row("no_agreement", None, None, 4);
        void["vote"] = json!({"samples": [{"no_vote": "it is no number"}, {"no_vote": null}]});
        assert_eq!(reply_to(&void).unwrap().1.as_deref(), Some("why; it is no number"));
    }

    #[test]
    fn run_at_limit_is_marked_cut() {
        assert!(RunReply::new(false, &row("budget", None, Some("five"), 4)).unwrap().is_cut);
        assert!(RunReply::new(false, &row("budget", None, None, 0)).is_err());
    }
}
