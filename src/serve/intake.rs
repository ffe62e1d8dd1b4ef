//! The intake: turns requests into runs.
//!
//! The input is submissions, one after another, and the runs that an earlier server has left unfinished. The output is lines for the scheduler,
//! and for each of them its run. One with a key that is known gets the run of that key. A roleset on a model is read when it is first
//! asked for, and kept as it was then.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::api_error::ApiError;
use super::chat_request::ChatCompletionRequest;
use super::live_run::LiveRun;
use super::service::{Service, Submission, Taken};
use crate::batch::{Column, DocumentLine, Grader, Line, OpenColumns, OwnCell, TaskLine};
use crate::crypto::Digest;
use crate::engine::StopRequest;
use crate::journal::RunSpec;
use crate::protocol::{ProtocolParams as _, RunSetup, Task};
use crate::text::escape;

/// The beginning of the name of each model.
pub(super) const PREFIX: &str = "consensus/";

/// The header by which a server recognises requests of its own agents.
pub(super) const DEPTH_HEADER: &str = "x-consensus-depth";

/// The label that says which request a run with a key belongs to.
const BODY_LABEL: &str = "request_sha256";

/// The most rolesets on models that are kept.
const COLUMNS_MAX: usize = 256;

/// The part of the server that turns submissions into runs.
pub(super) struct Intake<'a> {
    pub(super) service: Arc<Service>,
    pub(super) columns: &'a OpenColumns,
    /// The rolesets on models that were asked for, by the name of the model.
    pub(super) known: HashMap<String, Column>,
    pub(super) lines: mpsc::Sender<std::io::Result<Line>>,
    pub(super) count: u64,
}

impl Intake<'_> {
    /// Takes submissions until none can come.
    pub(super) async fn run(mut self, unfinished: Vec<RunSpec>, mut submissions: mpsc::Receiver<Submission>) {
        for spec in unfinished {
            self.resume(spec).await;
        }
        while let Some(submission) = submissions.recv().await {
            let taken = self.take(submission.chat, submission.key, submission.created).await;
            // The request may have gone away meanwhile; its run is put down like that of any request that goes.
            if let Err(Ok(Taken::Live(live))) = submission.taken.send(taken)
                && live.keyed.is_none()
            {
                live.stop(StopRequest::Finish);
            }
        }
    }

    /// Lets a run go on that an earlier server has left, if a request may come back to it.
    async fn resume(&mut self, spec: RunSpec) {
        let RunSetup { task: Task { prompt, documents, .. }, seed, canonical, .. } = spec.setup.clone();
        let Some(cell) = spec.cell else { return };
        let Some(body) = cell.meta.get(BODY_LABEL).and_then(|body| body.parse().ok()) else { return };
        if self.service.cancelled().has(&cell.task) {
            return;
        }
        let setup = RunSetup { task: Task::default(), seed: 0, ..spec.setup };
        let model = format!("{PREFIX}{}", setup.roleset);
        let column = Column::new(cell.model, setup, spec.endpoints).in_arm(&cell.arm);
        let task = TaskLine {
            id: cell.task,
            prompt,
            documents: documents.into_iter().map(DocumentLine::Text).collect(),
            roleset: None,
            answer: None,
            answer_is_number: false,
            canonical: Some(canonical),
            grader: Grader::default(),
            meta: cell.meta,
        };
        // A run of an earlier server is not refused for want of a place.
        let _ = self.begin(task, column, seed, model, 0, Some(body)).await;
    }

    /// Turns a request into a run, or finds the run that it has become before.
    async fn take(
        &mut self,
        chat: ChatCompletionRequest,
        key: Option<(String, Digest)>,
        created: u64,
    ) -> Result<Taken, ApiError> {
        if let Some((task, body)) = &key
            && let Some(known) = self.known_run(task, *body)?
        {
            return Ok(known);
        }
        let column = self.column(&chat.model).await?;
        let column = match chat.reply_tokens {
            Some(max) => column.with_reply_tokens(max),
            None => column,
        };
        let (id, body) = match key {
            Some((task, body)) => (task, Some(body)),
            None => (Uuid::now_v7().to_string(), None),
        };
        let seed = chat.seed.unwrap_or_else(|| Digest::new(id.as_bytes()).leading_u64() >> 33);
        let meta = body.map(|body| (BODY_LABEL.to_owned(), body.to_string()));
        let task = TaskLine {
            id,
            prompt: chat.prompt,
            documents: chat.documents.into_iter().map(DocumentLine::Text).collect(),
            roleset: None,
            answer: None,
            answer_is_number: false,
            canonical: chat.canonical,
            grader: Grader::default(),
            meta: meta.into_iter().collect(),
        };
        self.begin(task, column, seed, chat.model, created, body).await.map(Taken::Live)
    }

    /// Returns the run of a key, if there is one.
    fn known_run(&self, task: &str, body: Digest) -> Result<Option<Taken>, ApiError> {
        let live = self.service.live().values().find(|live| live.task == task).map(Arc::clone);
        if let Some(live) = live {
            return if live.keyed == Some(body) {
                Ok(Some(Taken::Live(live)))
            } else {
                Err(ApiError::other_body())
            };
        }
        if self.service.cancelled().has(task) {
            return Err(ApiError::cancelled());
        }
        if self.service.left().contains(task) {
            return Err(ApiError::put_down());
        }
        let ended = self.service.ended();
        let Some(run) = ended.run_of(task) else { return Ok(None) };
        let row = ended.line_of(run).map_err(|why| ApiError::internal(&why))?.unwrap_or_default();
        let is_same = row["meta"][BODY_LABEL] == body.to_string();
        if is_same { Ok(Some(Taken::Ended(run))) } else { Err(ApiError::other_body()) }
    }

    /// Returns the roleset on its model that a request names.
    async fn column(&mut self, name: &str) -> Result<Column, ApiError> {
        let count = self.known.len();
        match self.known.entry(name.to_owned()) {
            Slot::Occupied(known) => Ok(known.get().clone()),
            Slot::Vacant(slot) => {
                let (roleset, model) = match name.strip_prefix(PREFIX).unwrap_or(name).split_once('@') {
                    Some((roleset, model)) => (roleset, Some(model)),
                    None => (name.strip_prefix(PREFIX).unwrap_or(name), None),
                };
                let is_listed =
                    self.service.models.iter().any(|model| model.strip_prefix(PREFIX) == Some(roleset));
                if !is_listed {
                    let why =
                        format!("there is no model `{}`; GET /v1/models lists all", escape::excerpt(name));
                    return Err(ApiError::unknown("model_not_found", why));
                }
                let column = self.columns.one(roleset, model).await;
                let column = column
                    .map_err(|why| ApiError::field("model", format!("{:#}", anyhow::Error::from(why))))?;
                if column.setup.params.protocol() == "approval" {
                    return Err(ApiError::field(
                        "model",
                        "reviewers decide on changes, by `consensus approve`, not here",
                    ));
                }
                let column = column.with_header(DEPTH_HEADER, "1");
                if count < COLUMNS_MAX { Ok(slot.insert(column).clone()) } else { Ok(column) }
            }
        }
    }

    /// Hands a task to the scheduler, and returns its run.
    async fn begin(
        &mut self,
        task: TaskLine,
        column: Column,
        seed: u64,
        model: String,
        created: u64,
        keyed: Option<Digest>,
    ) -> Result<Arc<LiveRun>, ApiError> {
        let place = Arc::clone(&self.service.places).try_acquire_owned().ok();
        if place.is_none() && created > 0 {
            return Err(ApiError::full());
        }
        let (sender, stop) = watch::channel(StopRequest::None);
        let own = OwnCell { column, seed, stop };
        let run = own.run(&task.id);
        let live = Arc::new(LiveRun::new((run, task.id.clone()), model, created, keyed, sender, place));
        self.service.live().insert(run, Arc::clone(&live));
        self.count += 1;
        // The scheduler reads until it ends, and then the server ends too.
        let _ = self.lines.send(Ok(Line { number: self.count, task: Ok(task), own: Some(own) })).await;
        Ok(live)
    }
}
