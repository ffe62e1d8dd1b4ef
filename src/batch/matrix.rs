//! Cells of the matrix: one task by one roleset on one model with one seed.
//!
//! In: a task and a column. Out: what the run of the cell is called, which shard it belongs to, and what it starts from. Nothing
//! here depends on when or where it is made, so that every process finds the same.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::shard::SHARDS_MAX;
use super::task::TaskLine;
use crate::core::Endpoint;
use crate::crypto::Digest;
use crate::engine::PROGRAM;
use crate::journal::{InBatch, Limits, Opened};
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
}

/// One of several shards.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShardOf {
    /// Which one, from 0.
    pub index: u64,
    /// How many there are.
    pub count: u64,
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
        let sha256 = Digest::of(text.as_bytes());
        Self { roleset: setup.roleset.clone(), model, setup, sha256, endpoints }
    }
}

impl Default for ShardOf {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl ShardOf {
    /// Whether a run belongs to this shard.
    #[must_use]
    pub fn has(&self, run: Uuid) -> bool {
        // Of a digest every part is as good as random.
        let (high, _) = run.as_u64_pair();
        (high >> 16) % self.count.max(1) == self.index
    }

    /// What a file of this shard is called beside those of others, if there are others: `progress.json`, or `progress-3.json`.
    #[must_use]
    pub fn file_name(self, stem: &str, extension: &str) -> String {
        if self.count == 1 {
            format!("{stem}.{extension}")
        } else {
            format!("{stem}-{}.{extension}", self.index)
        }
    }
}

impl fmt::Display for ShardOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for ShardOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Option<(u64, u64)> =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let (index, count) = parts.ok_or("a shard is I/N, such as 0/4")?;
        if count == 0 || count > SHARDS_MAX {
            return Err(format!("there are 1 to {SHARDS_MAX} shards"));
        }
        if index >= count {
            return Err(format!("shards of {count} are 0/{count} to {}/{count}", count.saturating_sub(1)));
        }
        Ok(Self { index, count })
    }
}

/// The id of a run: no other task, roleset, model and seed have the same.
pub(super) fn run_id(task: &str, roleset: &str, model: &str, seed: u64) -> Uuid {
    let name = serde_json::json!(["batch", 1, task, roleset, model, seed]).to_string();
    let bytes = Digest::of(name.as_bytes()).as_bytes().first_chunk().copied().unwrap_or_default();
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

    /// SHA-256 of what the run starts from, as far as it is known without reading documents.
    pub(super) fn made_of(&self) -> Digest {
        let TaskLine { prompt, documents, canonical, .. } = self.task;
        let text = serde_json::json!([prompt, documents, canonical, self.column.sha256]).to_string();
        Digest::of(text.as_bytes())
    }

    /// What the run starts from, with these documents.
    ///
    /// # Errors
    ///
    /// Why there can be no such run.
    pub(super) fn opened(&self, documents: Vec<Document>, limits: Limits) -> Result<Opened, String> {
        let task = Task { prompt: self.task.prompt.clone(), documents, is_searched: false };
        let canonical = self.canonical().clone();
        let right = self.right().transpose();
        right.map_err(|why| format!("its `answer` can never be the answer: {why}"))?;
        let setup = RunSetup { task, canonical, seed: self.seed, ..self.column.setup.clone() };
        setup.check().map_err(|why| why.to_string())?;
        let endpoints = self.column.endpoints.clone();
        let program = PROGRAM.to_owned();
        let (task, model) = (self.task.id.clone(), self.column.model.clone());
        let cell = Some(InBatch { task, model, made_of: self.made_of() });
        Ok(Opened { program, setup, endpoints, limits, library: None, redacted: false, session: None, cell })
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
