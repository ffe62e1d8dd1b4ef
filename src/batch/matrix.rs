//! Cells of the matrix: one task by one roleset on one model with one seed.
//!
//! In: a task and a column. Out: what the run of the cell is called, which shard it belongs to, and what it starts from. Nothing
//! here depends on when or where it is made, so that every process finds the same.

use std::borrow::Cow;

use uuid::Uuid;

use super::task::TaskLine;
use crate::core::Endpoint;
use crate::crypto::Digest;
use crate::engine::{PreparedRun, Redaction, RunBuilder, Sought};
use crate::journal::{InBatch, Limits};
use crate::protocol::{Document, RunSetup, Task};
use crate::text::{Canonical, CanonicalRule, Canonicalizer, DecimalSign, NotCanonical};

/// A roleset on a model, ready to run.
#[derive(Clone, Debug)]
pub struct Column {
    /// The roleset's name.
    pub roleset: String,
    /// The model as it was named; empty for that of the roleset or the server.
    pub model: String,
    /// A run of it, but for its task and seed.
    pub setup: RunSetup,
    /// SHA-256 of that.
    pub sha256: Digest,
    /// Where each agent's model is called, the arbiter's last.
    pub endpoints: Vec<Endpoint>,
    /// What is looked for where tokens stand in place of what must not leave the machine.
    pub sought: Option<Sought>,
}

/// One run of the matrix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'a> {
    pub(super) task: &'a TaskLine,
    pub(super) column: &'a Column,
    pub(super) seed: u64,
}

impl Column {
    /// A roleset on a model.
    #[must_use]
    pub fn new(model: String, setup: RunSetup, endpoints: Vec<Endpoint>) -> Self {
        let text = serde_json::to_string(&setup).unwrap_or_default();
        let sha256 = Digest::new(text.as_bytes());
        Self { roleset: setup.roleset.clone(), model, setup, sha256, endpoints, sought: None }
    }

    /// The same with tokens in place of what must not leave the machine.
    #[must_use]
    pub fn redacted(self, sought: Sought) -> Self {
        let text = serde_json::json!([self.sha256, sought]).to_string();
        Self { sha256: Digest::new(text.as_bytes()), sought: Some(sought), ..self }
    }
}

/// The id of a run: no other task, roleset, model and seed have the same.
pub(super) fn run_id(task: &str, roleset: &str, model: &str, seed: u64) -> Uuid {
    let name = serde_json::json!(["batch", 1, task, roleset, model, seed]).to_string();
    let bytes = Digest::new(name.as_bytes()).as_bytes().first_chunk().copied().unwrap_or_default();
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

impl Cell<'_> {
    /// The id of the run: the same for the same task, roleset, model and seed.
    pub(super) fn run(&self) -> Uuid {
        let Column { roleset, model, .. } = self.column;
        run_id(&self.task.id, roleset, model, self.seed)
    }

    /// Which differences between texts do not count here.
    pub(super) fn canonical(&self) -> &CanonicalRule {
        self.task.canonical.as_ref().unwrap_or(&self.column.setup.canonical)
    }

    /// SHA-256 of what the run starts from, as far as it is known without reading documents. Of a redacted run it says nothing
    /// about what was left out, so that no guess can be tried on it.
    pub(super) fn made_of(&self) -> Digest {
        let TaskLine { prompt, documents, canonical, .. } = self.task;
        let text = serde_json::json!([prompt, documents, canonical, self.column.sha256]).to_string();
        let text = match &self.column.sought {
            Some(sought) => sought.redactor().redact(&text),
            None => text,
        };
        Digest::new(text.as_bytes())
    }

    /// What the run starts from, with these documents, and with tokens by this table.
    ///
    /// # Errors
    ///
    /// Why there can be no such run.
    pub(super) fn prepared(
        &self,
        documents: Vec<Document>,
        redaction: Option<Redaction>,
        limits: Limits,
    ) -> Result<PreparedRun, String> {
        let task = Task { prompt: self.task.prompt.clone(), documents, is_searched: false };
        let canonical = self.canonical().clone();
        let right = self.right().transpose();
        right.map_err(|why| format!("its `answer` can never be the answer: {why}"))?;
        let setup = RunSetup { task, canonical, seed: self.seed, ..self.column.setup.clone() };
        let mut builder = RunBuilder::new(setup).map_err(|why| why.to_string())?;
        if let Some(redaction) = redaction {
            builder = builder.with_redaction(redaction);
        }
        let (task, model) = (self.task.id.clone(), self.column.model.clone());
        let cell = InBatch { task, model, made_of: self.made_of() };
        Ok(builder.in_cell(cell).build(self.column.endpoints.clone(), limits))
    }

    /// The right answer in the form in which texts are compared here, if it is known.
    fn right(&self) -> Option<Result<Canonical, NotCanonical>> {
        let answer = self.task.answer.as_ref()?;
        let rule = self.canonical();
        let canonicalizer = Canonicalizer::new(rule, self.column.setup.rules_version.rules().reading);
        let has_comma = rule.decimal == Some(DecimalSign::Comma) && self.task.answer_is_number;
        let answer = if has_comma { Cow::from(answer.replace('.', ",")) } else { Cow::from(answer) };
        Some(canonicalizer.canonicalize_known(&answer))
    }

    /// Whether an answer with this digest is the right one, if that is known.
    pub(super) fn is_right(&self, sha256: Option<Digest>) -> Option<bool> {
        let right = self.right()?.ok()?;
        Some(sha256 == Some(right.digest))
    }
}
