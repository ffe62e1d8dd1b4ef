//! The intake: turns requests into runs.
//!
//! The input is requests, one after another, and the runs that an earlier server has left without a result. The output is lines for the
//! scheduler, and for each request its run, or the setup of it. One with a key that is known gets the run of that key. A roleset on a
//! model is read when it is first asked for, and kept as it was then. A model server that is slow to name its models delays the requests
//! for them and no others.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::api_error::ApiError;
use super::attached::Attached;
use super::caller::{CALLER_LABEL, Caller};
use super::cancelled::CancelledKeys;
use super::live_run::{LiveRun, RunOrigin};
use super::requested_run::RequestedRun;
pub(super) use super::served_column::DEPTH_HEADER;
use super::served_column::{apply_request, is_for_changes, open_served, require_served};
use super::service::Service;
use super::shared_room::HeldRoom;
use super::submission::{IntakeRequest, PlannedRun, Submission, Taken};
use crate::batch::{Column, DocumentLine, Grader, Line, OpenColumns, OwnCell, TaskLine, UnfinishedRun};
use crate::engine::StopRequest;
use crate::journal::{InBatch, Limits, RunSpec};
use crate::provider::Clients;
use crypto::Digest;
use protocol::core::Endpoint;
use protocol::text::CanonicalRule;
use protocol::{Document, OutcomeKind, RunSetup, Task};

/// The label of a run with the budget of its request.
const BUDGET_LABEL: &str = "budget";

/// The label of a run with the digest of its request, if it has a key.
const REQUEST_LABEL: &str = "request_sha256";

/// The beginning of the id of a task whose request has a key.
pub(super) const KEYED: &str = "key-";

/// The most rolesets on models that are kept.
const COLUMNS_MAX: usize = 256;

/// The part of the server that turns submissions into runs.
pub(super) struct Intake<'a> {
    service: Arc<Service>,
    columns: &'a OpenColumns,
    clients: Arc<Clients>,
    /// The rolesets on models that were asked for, by the name of the model.
    known: HashMap<String, Column>,
    /// The requests for rolesets on models that are being looked up, by the name of the model.
    awaiting: HashMap<String, Vec<IntakeRequest>>,
    count: u64,
}

/// The name of a model that is to be looked up, and whether it is to review changes.
type Wanted = (String, bool);

impl<'a> Intake<'a> {
    /// Makes the intake of a server.
    pub(super) fn new(service: Arc<Service>, columns: &'a OpenColumns, clients: Arc<Clients>) -> Self {
        let (known, awaiting) = (HashMap::new(), HashMap::new());
        Self { service, columns, clients, known, awaiting, count: 0 }
    }

    /// Takes requests until none can come.
    pub(super) async fn run(
        mut self,
        unfinished: Vec<UnfinishedRun>,
        mut asked: mpsc::Receiver<IntakeRequest>,
    ) {
        let mut endpoints = HashMap::new();
        for UnfinishedRun { spec, has_ended, .. } in unfinished {
            self.resume(spec, has_ended, &mut endpoints).await;
        }
        self.service.know_all();
        let (service, columns) = (Arc::clone(&self.service), self.columns);
        let rules = &service.rules;
        let look_up = |(name, is_review): Wanted| async move {
            let found = open_served(rules, columns, &name, is_review).await;
            (name, found)
        };
        let mut looked_up = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(request) = asked.recv() => looked_up.extend(self.hear(request).map(&look_up)),
                Some((name, found)) = looked_up.next() => self.found(&name, found),
                else => break,
            }
        }
    }

    /// Answers a request, or lets it wait for its roleset. Returns the roleset if it has to be looked up now.
    fn hear(&mut self, request: IntakeRequest) -> Option<Wanted> {
        match request {
            // A request that has gone away begins no run.
            IntakeRequest::Run(submission) if submission.taken.is_closed() => None,
            IntakeRequest::Run(mut submission) => match self.take(&mut submission).transpose() {
                None => self.wait(IntakeRequest::Run(submission)),
                Some(result) => {
                    drop(submission.taken.send(result));
                    None
                }
            },
            IntakeRequest::Plan { run, caller, place, planned } => match self.plan(&run).transpose() {
                None => self.wait(IntakeRequest::Plan { run, caller, place, planned }),
                Some(result) => {
                    drop(planned.send(result));
                    None
                }
            },
        }
    }

    /// Lets a request wait for its roleset, in a place of its caller. Returns the roleset if no other request waits for it.
    fn wait(&mut self, mut request: IntakeRequest) -> Option<Wanted> {
        if request.place().is_none() {
            match self.place(request.caller()) {
                Ok(place) => *request.place() = Some(place),
                Err(why) => {
                    request.refuse(why);
                    return None;
                }
            }
        }
        let RequestedRun { model, is_review, .. } = request.run();
        let wanted = (model.clone(), *is_review);
        match self.awaiting.entry(model.clone()) {
            Entry::Occupied(mut waiting) => {
                waiting.get_mut().push(request);
                None
            }
            Entry::Vacant(place) => {
                place.insert(vec![request]);
                Some(wanted)
            }
        }
    }

    /// Returns a place for a request or a run of a caller.
    fn place(&mut self, caller: Caller) -> Result<HeldRoom, ApiError> {
        if let Some(place) = self.service.places.take(caller, 1) {
            return Ok(place);
        }
        // Requests that have gone away need theirs no more.
        self.awaiting.values_mut().for_each(|waiting| waiting.retain(|request| !request.is_gone()));
        self.service.places.take(caller, 1).ok_or_else(ApiError::full)
    }

    /// Takes a roleset that was looked up, and the requests that wait for it.
    fn found(&mut self, name: &str, found: Result<Column, ApiError>) {
        let waiting = self.awaiting.remove(name).unwrap_or_default();
        match found {
            Ok(column) => {
                if self.known.len() >= COLUMNS_MAX {
                    self.known.clear();
                }
                self.known.insert(name.to_owned(), column);
                for request in waiting {
                    // The roleset is known, so there is nothing to look up.
                    self.hear(request);
                }
            }
            Err(why) => waiting.into_iter().for_each(|request| request.refuse(why.clone())),
        }
    }

    /// Lets a run go on that an earlier server has left, if a request may come back to it. A run that has ended only gets its result.
    /// `looked_up` keeps the endpoints that were found for each model, if they were.
    async fn resume(
        &mut self,
        spec: RunSpec,
        has_ended: bool,
        looked_up: &mut HashMap<String, Option<Vec<Endpoint>>>,
    ) {
        let RunSetup { task: Task { prompt, documents, .. }, seed, canonical, .. } = spec.setup.clone();
        let Some(cell) = spec.cell else { return };
        if !has_ended && !is_continued(&cell, &self.service.cancelled()) {
            return;
        }
        let keyed = cell.meta.get(REQUEST_LABEL).and_then(|digest| digest.parse().ok());
        let caller = Caller::of_label(cell.meta.get(CALLER_LABEL)).unwrap_or(Caller::ANYONE);
        let setup = RunSetup { task: Task::default(), seed: 0, ..spec.setup };
        let is_default = self.columns.all().iter().any(|column| column.model == cell.model);
        let on = if is_default { String::new() } else { format!("@{}", cell.model) };
        // Its models may be at another address by now.
        let is_review = is_for_changes(&setup);
        let name = format!("{}{on}", setup.roleset);
        let now = if let Some(found) = looked_up.get(&name) {
            found.clone()
        } else {
            let found = self.look_up(&name, is_review).await.ok().map(|column| column.endpoints);
            looked_up.entry(name).or_insert(found).clone()
        };
        let endpoints = now.filter(|now| now.len() == spec.endpoints.len()).unwrap_or(spec.endpoints);
        // The limits of the earlier server are not those of this one.
        let budget = cell.meta.get(BUDGET_LABEL).and_then(|budget| serde_json::from_str(budget).ok());
        let column = Column::new(cell.model, setup, endpoints).in_arm(&cell.arm);
        let column = column.with_limits(budget.unwrap_or_default());
        let task = task(cell.task, prompt, documents, Some(canonical), cell.meta);
        self.begin(task, own_cell(column, seed), (caller, SystemTime::now()), keyed, Vec::new());
    }

    /// Turns a request into a run, or finds the run that it has become before. Returns `None` if its roleset has to be looked up first.
    fn take(&mut self, submission: &mut Submission) -> Result<Option<Taken>, ApiError> {
        let Submission { run: asked, caller, key, memory, place, .. } = submission;
        let known = key.as_ref().map(|(task, digest)| self.known_run(task, *digest)).transpose()?;
        let id = match known {
            Some(OfKey::Live(live)) => return Ok(Some(self.attached(live, memory.take()))),
            Some(OfKey::Ended(run)) => return Ok(Some(Taken::Ended(run))),
            Some(OfKey::Next(id)) => id,
            None => Uuid::now_v7().to_string(),
        };
        let Some(column) = self.wished(asked)? else { return Ok(None) };
        self.require_server(&column)?;
        let place = match place.take() {
            Some(place) => place,
            None => self.place(*caller)?,
        };
        let now = SystemTime::now();
        self.service.charge(*caller, now)?;
        let seed = asked.seed.unwrap_or_else(|| Digest::new(id.as_bytes()).leading_u64() >> 33);
        let keyed = key.as_ref().map(|(_, digest)| *digest);
        let of_caller = (caller.0 != Digest::ZERO).then(|| (CALLER_LABEL.to_owned(), caller.0.to_string()));
        let is_bounded = asked.limits != Limits::default();
        let budget = is_bounded.then(|| (BUDGET_LABEL.to_owned(), json!(asked.limits).to_string()));
        let of_request = keyed.map(|digest| (REQUEST_LABEL.to_owned(), digest.to_string()));
        let meta = of_request.into_iter().chain(of_caller).chain(budget);
        let RequestedRun { prompt, documents, canonical, .. } = asked.clone();
        let task = task(id, prompt, documents, canonical, meta.collect());
        let own = own_cell(column, seed);
        let room = [Arc::new(place)].into_iter().chain(memory.clone()).collect();
        let live = self.begin(task, own, (*caller, now), keyed, room);
        Ok(Some(self.attached(live, memory.take())))
    }

    /// Returns the run that a request would become, or `None` if its roleset has to be looked up first.
    fn plan(&self, asked: &RequestedRun) -> Result<Option<PlannedRun>, ApiError> {
        let Some(Column { setup, endpoints, .. }) = self.wished(asked)? else { return Ok(None) };
        let RequestedRun { prompt, documents, canonical, .. } = asked.clone();
        let canonical = canonical.unwrap_or_else(|| setup.canonical.clone());
        let setup = RunSetup { task: Task { prompt, documents, is_searched: false }, canonical, ..setup };
        setup.check().map_err(|why| ApiError::bad("invalid_task", why.to_string()))?;
        Ok(Some(PlannedRun { setup, endpoints }))
    }

    /// Returns the roleset of a request, as the request wishes it, or `None` if it has to be looked up first.
    fn wished(&self, asked: &RequestedRun) -> Result<Option<Column>, ApiError> {
        require_served(&self.service.rules, &asked.model, asked.is_review)?;
        self.known.get(&asked.model).map(|column| apply_request(column.clone(), asked)).transpose()
    }

    /// Refuses a run that would only wait for a model server that is gone. A run that comes when the server is due to be tried shows
    /// whether it is back.
    fn require_server(&self, column: &Column) -> Result<(), ApiError> {
        // A server that this program has launched is waited for while it restarts.
        let mut others = column.endpoints.iter().filter(|endpoint| !endpoint.is_launched());
        let outage = others.find_map(|endpoint| self.clients.outage(endpoint));
        outage.map_or(Ok(()), |wait| Err(ApiError::outage(wait)))
    }

    fn attached(&self, live: Arc<LiveRun>, memory: Option<Arc<HeldRoom>>) -> Taken {
        Taken::Live(Attached::new(live, Arc::clone(&self.service), memory))
    }

    /// Returns the run of a key, or the id of the task that the key may begin now. A run whose models could not be called at all has paid
    /// for nothing, and the key begins another.
    fn known_run(&self, key: &str, digest: Digest) -> Result<OfKey, ApiError> {
        let mut task = key.to_owned();
        for attempt in 2_u64.. {
            match self.attempt(&task, digest)? {
                Some(known) => return Ok(known),
                None if self.service.ended().run_of(&task).is_none() => break,
                None => task = format!("{key}-{attempt}"),
            }
        }
        Ok(OfKey::Next(task))
    }

    /// Returns the run of this attempt, if there is one and it has paid for something.
    fn attempt(&self, task: &str, digest: Digest) -> Result<Option<OfKey>, ApiError> {
        let live = self.service.live().values().find(|live| live.origin.task == task).map(Arc::clone);
        if let Some(live) = live {
            let is_same = live.origin.keyed == Some(digest);
            return if is_same { Ok(Some(OfKey::Live(live))) } else { Err(ApiError::other_request()) };
        }
        if let Some(why) = self.service.why_broken(task) {
            return Err(why);
        }
        if self.service.left().contains(task) {
            return Err(ApiError::left());
        }
        let ended = self.service.ended();
        let Some(run) = ended.run_of(task) else {
            // A run that had ended when it was cancelled has its result all the same.
            return if self.service.cancelled().has(task) { Err(ApiError::cancelled()) } else { Ok(None) };
        };
        let row = ended.line_of(run).map_err(|why| ApiError::internal(&why))?.unwrap_or_default();
        if row["meta"][REQUEST_LABEL] != digest.to_string() {
            return Err(ApiError::other_request());
        }
        Ok((!paid_for_nothing(&row)).then_some(OfKey::Ended(run)))
    }

    /// Looks up a roleset on its model.
    async fn look_up(&self, name: &str, is_review: bool) -> Result<Column, ApiError> {
        require_served(&self.service.rules, name, is_review)?;
        open_served(&self.service.rules, self.columns, name, is_review).await
    }

    /// Lets a task wait for its turn, and returns its run.
    fn begin(
        &mut self,
        task: TaskLine,
        (own, stop): (OwnCell, watch::Sender<StopRequest>),
        (caller, since): (Caller, SystemTime),
        keyed: Option<Digest>,
        room: Vec<Arc<HeldRoom>>,
    ) -> Arc<LiveRun> {
        // A run that is asked for now has a place.
        let is_old = room.is_empty();
        let origin = RunOrigin { run: own.run(&task.id), task: task.id.clone(), caller, keyed, is_old };
        let live = Arc::new(LiveRun::new(origin, since, stop, room));
        self.count += 1;
        self.service.add(Arc::clone(&live), Line { number: self.count, task: Ok(task), own: Some(own) });
        live
    }
}

/// Returns whether a run that an earlier server has left goes on, because a request may come back to it.
pub(super) fn is_continued(cell: &InBatch, cancelled: &CancelledKeys) -> bool {
    let request = cell.meta.get(REQUEST_LABEL).and_then(|digest| digest.parse::<Digest>().ok());
    request.is_some() && cell.task.starts_with(KEYED) && !cancelled.has(&cell.task)
}

/// The run of a key, or the id of the task that the key begins.
enum OfKey {
    /// It waits or is under way.
    Live(Arc<LiveRun>),
    /// It has ended before.
    Ended(Uuid),
    Next(String),
}

/// Returns whether a run failed because its models could not be called at all.
fn paid_for_nothing(row: &Value) -> bool {
    row["outcome"] == OutcomeKind::Failed.name() && row["usage"]["calls"] == 0
}

/// Returns what a task is run with, and the means to stop its run.
fn own_cell(column: Column, seed: u64) -> (OwnCell, watch::Sender<StopRequest>) {
    let (sender, stop) = watch::channel(StopRequest::None);
    (OwnCell { column, seed, stop }, sender)
}

/// Returns a task whose right answer no one knows.
fn task(
    id: String,
    prompt: String,
    documents: Vec<Document>,
    canonical: Option<CanonicalRule>,
    meta: BTreeMap<String, String>,
) -> TaskLine {
    TaskLine {
        id,
        prompt,
        documents: documents.into_iter().map(DocumentLine::Text).collect(),
        roleset: None,
        answer: None,
        answer_is_number: false,
        canonical,
        grader: Grader::default(),
        meta,
    }
}
