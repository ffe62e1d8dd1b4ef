//! Evaluations: does a way of agreeing help, at the same number of tokens?
//!
//! ```text
//!  tasks with right answers ─┬─► banks of blind samples ──► the majority of k samples, for every k
//!                            │        │                            │  the same tokens
//!                            └─► arms ┴► runs, in batches ─────► differences, item by item ──► a verdict in words
//! ```
//!
//! The input is arms, as a person writes them, and the results of the batches that ran them. The output is a plan, which is written before
//! the first call, and a summary with intervals and verdicts. An arm is compared with the majority of as many blind samples of the same
//! model as its tokens would buy, because more tokens alone are worth something.
//!
//! Only `service` runs anything: the runs are batches, and everything is computed again from their results. No clock is read, so the same
//! results give the same summary.

mod arm_spec;
mod bar;
mod bars;
mod comparison;
mod curve;
mod data;
mod error;
mod folder;
mod items;
mod junit;
mod notes;
mod page;
mod plan;
mod planning;
mod report;
mod request;
mod service;
mod summary;
mod verdict;

pub use arm_spec::{ArmSpec, BadArm, MAJORITY_MAX, Way};
pub use bar::{Bar, JudgedBar, SinceBaseline};
pub use bars::Bars;
pub use comparison::{Against, Curve, CurvePoint, TalkOfArm};
pub use curve::DrawnSample;
pub use data::EvalData;
pub use error::EvalError;
pub use folder::{tasks_file, write_tasks};
pub use items::{ARMS, ArmItem, BankItem, BlindLead, DraftAnswer, EvalResults, Item};
pub use notes::{format_p, notes, points};
pub use plan::{EvalPlan, PlannedArm, PlannedBank};
pub use report::item_json;
pub use request::{ArmSettings, EvalRequest};
pub use service::{EvalJob, PlannedEvaluation, compute_report};
pub use summary::{ArmSummary, Bin, CostOf, Flips, RiskPoint, ShareOf, Summary, Vetoes};
pub use verdict::EvalVerdict;
