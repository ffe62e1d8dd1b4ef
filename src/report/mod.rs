//! The documents that people and programs read about a run. They are made from its journal alone.
//!
//! The input is a [`RunState`](crate::engine::RunState) and the head of the journal. The output is `result.json`, the
//! transcript, the answer, a sentence on its worth, and the metrics of many results. The same journal always gives
//! the same bytes. A reply that is still arriving is written as the transcript will have it.

mod constraints;
mod decision;
mod form;
mod metrics;
mod models;
mod outcome;
mod panel;
mod result;
mod review;
mod run_figures;
mod run_page;
mod sarif;
mod summary;
mod transcript;
mod vote;
mod worth;

pub use constraints::{CheckedRule, checked_rules};
pub use decision::{DECISION_METRICS_FILE, DecisionMetrics, DecisionOutcome};
pub use form::partial_reply;
pub use metrics::metrics;
pub use models::describe_quorum;
pub use outcome::ConsensusOutcome;
pub use result::{AgentResult, CheckVerdicts, RefusedText, RunResult, Timing, UsageResult, write_run};
pub use review::{review_annotations, review_markdown, review_text, review_verdict};
pub use run_figures::{ResultFields, RunFigures};
pub use run_page::{PageForm, RUN_LOOK, run_page};
pub use sarif::sarif;
pub use summary::{describe_check, summary};
pub use transcript::{describe_confidence, transcript};
pub use vote::{describe_stop, describe_votes};
pub use worth::worth;

/// The schema of `result.json`.
pub const RESULT_SCHEMA: &str = include_str!("result.schema.json");

/// The schema of one journal line.
pub const RECORD_SCHEMA: &str = include_str!("record.schema.json");

/// The name of the result's file inside a run folder.
pub const RESULT_FILE: &str = "result.json";

/// The name of the transcript's file inside a run folder.
pub const TRANSCRIPT_FILE: &str = "transcript.md";
