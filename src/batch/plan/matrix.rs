//! Cells of the matrix: one task with one roleset on one model with one seed.
//!
//! The input is a task and a variant. The output is the id of the cell's run and the data that the run starts from. Nothing here
//! depends on the time or the place, so every process computes the same.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;

use super::bank::{DrawnSamples, digest_of};
use crate::batch::tasks::{DocumentLine, Grader, RunText, TaskLine};
use crate::engine::{PreparedRun, Redaction, RedactionPolicy, RunBuilder, require_plain_id};
use crate::journal::{Executed, InBatch, Limits, RunSpec};
use crate::run::{ReadCalibration, RunError, add_demands};
use crypto::Digest;
use protocol::core::{BasisPoints, Endpoint};
use protocol::text::{
    Canonical, CanonicalRule, Canonicalizer, Constraint, DecimalSign, NotCanonical, escape,
};
use protocol::{Document, OnDisagreement, Override, Params, ProtocolParams as _, RunSetup, Task};

/// A roleset on a model, ready to run.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The roleset's name.
    pub roleset: String,
    /// The model as it was named; empty for that of the roleset or the server.
    pub model: String,
    /// The name of the variant's arm; empty without one.
    pub arm: String,
    /// The setup of its runs, without task and seed.
    pub setup: RunSetup,
    /// The SHA-256 of the setup and of what is changed about it.
    pub sha256: Digest,
    /// The endpoint of each agent's model, the arbiter's last.
    pub endpoints: Vec<Endpoint>,
    /// Whether rules that a task says in plain words become rules of its run.
    pub has_demands: bool,
    /// The text to look for and replace with tokens, because it must not leave the machine.
    pub sought: Option<RedactionPolicy>,
    /// The calibration that gives its answers a confidence, if there is one.
    pub(in crate::batch) calibration: Option<Arc<ReadCalibration>>,
    /// The least confidence of an answer that is given, if the calibration does not ask for more.
    pub(super) min_confidence: Option<BasisPoints>,
    /// The limits of its runs, besides those of all runs.
    pub(in crate::batch) limits: Limits,
    /// The samples that the replies of its runs come from, if they come from a bank.
    pub(super) drawn: Option<Arc<DrawnSamples>>,
}

/// One run of the matrix.
#[derive(Clone, Copy, Debug)]
pub(in crate::batch) struct Cell<'a> {
    pub(in crate::batch) task: &'a TaskLine,
    pub(in crate::batch) variant: &'a Variant,
    pub(in crate::batch) seed: u64,
}

impl Variant {
    /// Makes a variant of a roleset on a model.
    pub fn new(model: String, setup: RunSetup, endpoints: Vec<Endpoint>) -> Self {
        let text = serde_json::to_string(&setup).unwrap_or_default();
        let sha256 = Digest::new(text.as_bytes());
        let roleset = setup.roleset.clone();
        Self {
            roleset,
            model,
            arm: String::new(),
            setup,
            sha256,
            endpoints,
            has_demands: true,
            sought: None,
            calibration: None,
            min_confidence: None,
            limits: Limits::default(),
            drawn: None,
        }
    }

    /// Returns the same variant without rules that tasks say in plain words.
    pub fn without_demands(self) -> Self {
        let sha256 = digest_of(&json!([self.sha256, "without demands"]));
        Self { sha256, has_demands: false, ..self }
    }

    /// Returns the same variant with a calibration, which may withhold answers.
    pub fn with_calibration(self, calibration: Arc<ReadCalibration>) -> Self {
        let sha256 = digest_of(&json!([self.sha256, calibration.rule_sha256()]));
        Self { sha256, calibration: Some(calibration), ..self }
    }

    /// Returns whether its answers get a confidence.
    pub fn is_calibrated(&self) -> bool {
        self.calibration.is_some()
    }

    /// Returns the same variant with at most this many tokens in a reply. An agent whose own limit is lower keeps it.
    pub fn with_reply_tokens(self, max: u32) -> Self {
        let sha256 = digest_of(&json!([self.sha256, "reply tokens", max]));
        let mut setup = self.setup;
        for agent in setup.agents.iter_mut().chain(&mut setup.arbiter) {
            agent.max_tokens = agent.max_tokens.min(max);
        }
        Self { setup, sha256, ..self }
    }

    /// Returns the same variant with one more rule for its answers, or none if its protocol knows no rules.
    pub fn with_rule(self, rule: Constraint) -> Option<Self> {
        let sha256 = digest_of(&json!([self.sha256, "rule", rule]));
        let mut setup = self.setup;
        setup.params.constraints_mut()?.push(rule);
        Some(Self { setup, sha256, ..self })
    }

    /// Returns the same variant with this answer where votes do not settle, or none if its protocol counts none.
    pub fn with_on_disagreement(self, answer: OnDisagreement) -> Option<Self> {
        let sha256 = digest_of(&json!([self.sha256, "on disagreement", answer]));
        let mut setup = self.setup;
        let is_taken = setup.params.apply(&Override::OnDisagreement(answer));
        if !is_taken {
            return None;
        }
        Some(Self { setup, sha256, ..self })
    }

    /// Returns the same variant with each finding of a reviewer judged by the others as well.
    pub fn with_confirmed_findings(mut self) -> Self {
        if let Params::Approval(params) = &mut self.setup.params {
            params.confirm = true;
            self.sha256 = digest_of(&json!([self.sha256, "confirmed findings"]));
        }
        self
    }

    /// Returns the same variant, withholding answers below this confidence, or `None` without a calibration.
    pub fn with_min_confidence(self, confidence: BasisPoints) -> Option<Self> {
        if !self.is_calibrated() {
            return None;
        }
        let sha256 = digest_of(&json!([self.sha256, "min confidence", confidence]));
        Some(Self { sha256, min_confidence: Some(confidence), ..self })
    }

    /// Returns the same variant whose runs keep these limits too.
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits: self.limits.stricter(limits), ..self }
    }

    /// Returns the limits of its runs, where `of_all` are those of all runs.
    pub(in crate::batch) fn limits_of_run(&self, of_all: Limits) -> Limits {
        self.limits.stricter(of_all)
    }

    /// Returns the same variant whose models are called with one more header.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        for endpoint in &mut self.endpoints {
            if let Endpoint::OpenAi(endpoint) = endpoint {
                endpoint.dialect.headers.insert(name.to_owned(), value.to_owned());
            }
        }
        self
    }

    /// Returns the id of the run that began so, if it is one of a batch.
    pub fn run_of(spec: &RunSpec) -> Option<Uuid> {
        let InBatch { task, model, arm, .. } = spec.cell.as_ref()?;
        Some(run_id(task, &spec.setup.roleset, model, arm, spec.setup.seed))
    }

    /// Returns the same variant in an arm of this name.
    pub fn in_arm(self, arm: &str) -> Self {
        Self { arm: arm.to_owned(), ..self }
    }

    /// Returns the same variant with tokens in place of text that must not leave the machine.
    pub fn with_redaction(self, sought: RedactionPolicy) -> Self {
        let sha256 = digest_of(&json!([self.sha256, sought]));
        Self { sha256, sought: Some(sought), ..self }
    }
}

/// Returns the id of a run, which is unique to its task, roleset, model, arm and seed.
pub(in crate::batch) fn run_id(task: &str, roleset: &str, model: &str, arm: &str, seed: u64) -> Uuid {
    // Arms came later, so a run without one keeps its earlier id.
    let name = if arm.is_empty() {
        json!(["batch", 1, task, roleset, model, seed])
    } else {
        json!(["batch", 2, task, roleset, model, arm, seed])
    };
    let name = name.to_string();
    let bytes = Digest::new(name.as_bytes()).as_bytes().first_chunk().copied().unwrap_or_default();
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Returns the text whose SHA-256 is the origin of a run: its task as the line has it, and the digest of its variant.
pub(in crate::batch) fn origin(
    prompt: &str,
    documents: &[DocumentLine],
    canonical: Option<&CanonicalRule>,
    variant: Digest,
) -> String {
    json!([prompt, documents, canonical, variant]).to_string()
}

/// Returns the right answer of a task in the form in which texts are compared by this rule, if it is known and compared exactly.
pub(super) fn right_answer(task: &TaskLine, rule: &CanonicalRule) -> Option<Result<Canonical, NotCanonical>> {
    let answer = task.answer.as_ref()?;
    if task.grader != Grader::Exact {
        return None;
    }
    let canonicalizer = Canonicalizer::new(rule);
    let has_comma = rule.decimal == Some(DecimalSign::Comma) && task.answer_is_number;
    let answer = if has_comma { Cow::from(answer.replace('.', ",")) } else { Cow::from(answer) };
    Some(canonicalizer.canonicalize_known(&answer))
}

/// Returns whether a text with this digest is the right answer of a task, where `rule` says which differences do not count. It is not
/// where there is no text or the task has no answer, and the user's command is not asked.
pub fn text_is_right(
    task: &TaskLine,
    rule: &CanonicalRule,
    text: Option<&str>,
    sha256: Option<Digest>,
) -> bool {
    let (Some(text), Some(answer)) = (text, &task.answer) else { return false };
    if task.grader != Grader::Exact {
        return task.grader.is_right(text, answer);
    }
    let right = right_answer(task, rule).and_then(Result::ok);
    right.map(|right| right.digest) == sha256
}

/// Refuses a right answer that no text could equal by this rule.
///
/// Returns the reason, with the answer.
pub fn require_answer(task: &TaskLine, rule: &CanonicalRule) -> Result<(), String> {
    require_possible(task, right_answer(task, rule))
}

fn require_possible(task: &TaskLine, right: Option<Result<Canonical, NotCanonical>>) -> Result<(), String> {
    if let Some(Err(why)) = right {
        let answer = escape::excerpt(task.answer.as_deref().unwrap_or_default());
        return Err(format!("its `answer` “{answer}” can never be the answer: {why}"));
    }
    Ok(())
}

impl Cell<'_> {
    /// Returns the id of the run: the same for the same task, roleset, model, arm and seed.
    pub(in crate::batch) fn run(&self) -> Uuid {
        let Variant { roleset, model, arm, .. } = self.variant;
        run_id(&self.task.id, roleset, model, arm, self.seed)
    }

    /// Returns the rule for which differences between texts do not count here.
    pub(in crate::batch) fn canonical(&self) -> &CanonicalRule {
        self.task.canonical.as_ref().unwrap_or(&self.variant.setup.canonical)
    }

    /// Returns the SHA-256 of what the run starts from, as far as it is known without reading documents. For a redacted run the
    /// digest does not depend on the redacted text, so no guess can be tried on it.
    pub(in crate::batch) fn fingerprint(&self) -> Digest {
        let TaskLine { prompt, documents, canonical, .. } = self.task;
        let text = origin(prompt, documents, canonical.as_ref(), self.variant.sha256);
        let text = match &self.variant.sought {
            Some(sought) => sought.redactor().redact(&text),
            None => text,
        };
        Digest::new(text.as_bytes())
    }

    /// Prepares the run with these documents and this table of redactions. `plan` is the SHA-256 of the plan of an evaluation, if the run
    /// belongs to one.
    ///
    /// Returns the reason why there can be no such run.
    pub(in crate::batch) fn prepare(
        &self,
        documents: Vec<Document>,
        redaction: Option<Redaction>,
        limits: Limits,
        plan: Option<Digest>,
    ) -> Result<PreparedRun, String> {
        let task = Task { prompt: self.task.prompt.clone(), documents, is_searched: false };
        let canonical = self.canonical().clone();
        let limits = self.variant.limits_of_run(limits);
        self.require_possible_answer()?;
        self.require_id()?;
        let mut setup = RunSetup { task, canonical, seed: self.seed, ..self.variant.setup.clone() };
        if self.variant.has_demands {
            add_demands(&self.task.prompt, &mut setup.params, &setup.canonical);
        }
        if let Some(drawn) = &self.variant.drawn {
            drawn.require_of(&setup, &self.variant.endpoints)?;
        }
        let mut builder = RunBuilder::new(setup).map_err(|why| why.to_string())?;
        if let Some(redaction) = redaction {
            builder = builder.with_redaction(redaction);
        }
        let endpoints = self.variant.endpoints.clone();
        let mut calibration = None;
        if let Some(known) = &self.variant.calibration {
            let applied = match known.of_run(builder.setup(), &endpoints, limits) {
                Ok(applied) => applied,
                // The answer to a caller of a server names none of the server's files.
                Err(RunError::Calibration { why, .. }) => return Err(format!("the calibration: {why}")),
                Err(why) => return Err(why.to_string()),
            };
            calibration = Some(match self.variant.min_confidence {
                Some(least) => applied.at_least(least),
                None => applied,
            });
        }
        let builder = builder.with_calibration(calibration);
        let (task, model) = (self.task.id.clone(), self.variant.model.clone());
        let (arm, meta) = (self.variant.arm.clone(), self.meta());
        let cell = InBatch { task, model, fingerprint: self.fingerprint(), arm, meta, plan };
        Ok(builder.in_cell(cell).build(endpoints, limits))
    }

    /// Returns the task's labels, without text that must not leave the machine.
    pub(in crate::batch) fn meta(&self) -> BTreeMap<String, String> {
        let mut meta = self.task.meta.clone();
        if let Some(sought) = &self.variant.sought {
            for value in meta.values_mut() {
                *value = sought.redactor().redact(value);
            }
        }
        meta
    }

    /// Returns the right answer in the form in which texts are compared here, if it is known.
    fn right(&self) -> Option<Result<Canonical, NotCanonical>> {
        right_answer(self.task, self.canonical())
    }

    /// Refuses a right answer that no text of a run could equal.
    ///
    /// Returns the reason, with the answer.
    pub(in crate::batch) fn require_possible_answer(&self) -> Result<(), String> {
        require_possible(self.task, self.right())
    }

    /// Refuses an id that may not be put into the command of the variant's check.
    ///
    /// Returns the reason.
    pub(in crate::batch) fn require_id(&self) -> Result<(), String> {
        let Some(check) = &self.variant.setup.check_command else { return Ok(()) };
        require_plain_id(&check.command, &self.task.id).map_err(|why| why.to_string())
    }

    /// Returns whether a run came to the right answer, if that is known. `grade` is the record of the grader's command for
    /// the text.
    pub(in crate::batch) fn is_right(&self, text: &RunText, grade: Option<&Executed>) -> Option<bool> {
        if self.task.grader == Grader::Command {
            return Some(grade.is_some_and(|executed| executed.result.end.is_success()));
        }
        let (answer, grader) = (self.task.answer.as_ref()?, self.task.grader);
        if grader != Grader::Exact {
            return Some(text.text.as_ref().is_some_and(|text| grader.is_right(text, answer)));
        }
        let right = self.right()?.ok()?;
        Some(text.sha256 == Some(right.digest))
    }
}
