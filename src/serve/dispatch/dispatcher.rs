//! The dispatcher: turns requests into runs.
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

use super::requested_run::RequestedRun;
use super::served_variant::{apply_request, is_for_changes, open_served};
use super::submission::{DispatchRequest, RequestKey, RequestPurpose, SubmissionOutcome};
use crate::batch::{DocumentLine, Grader, OwnCell, TaskLine, TaskRow, UnfinishedRun, Variant, VariantSet};
use crate::engine::StopRequest;
use crate::journal::{InBatch, Limits, RunSpec};
use crate::provider::Clients;
use crate::serve::http::{ApiError, CALLER_LABEL, Caller, HeldRoom};
use crate::serve::runs::{CancelledKeys, LiveRun, RunOrigin, Service, Subscription};
use crypto::Digest;
use protocol::core::Endpoint;
use protocol::text::CanonicalRule;
use protocol::{Document, OutcomeKind, RunSetup, Task};

/// The label of a run with the budget of its request.
const BUDGET_LABEL: &str = "budget";

/// The label of a run with the digest of its request, if it has a key.
const REQUEST_LABEL: &str = "request_sha256";

/// The beginning of the id of a task whose request has a key.
pub(in crate::serve) const KEYED: &str = "key-";

/// The most rolesets on models that are kept.
const VARIANTS_MAX: usize = 256;

/// The part of the server that turns submissions into runs.
pub(in crate::serve) struct Dispatcher<'a> {
    service: Arc<Service>,
    variants: &'a VariantSet,
    clients: Arc<Clients>,
    /// The rolesets on models that were asked for, by the name of the model.
    known: HashMap<String, Variant>,
    /// The requests for rolesets on models that are being looked up, by the name of the model.
    awaiting: HashMap<String, Vec<DispatchRequest>>,
    /// The number of runs that this server has begun or resumed.
    count: u64,
}

impl<'a> Dispatcher<'a> {
    pub(in crate::serve) fn new(
        service: Arc<Service>,
        variants: &'a VariantSet,
        clients: Arc<Clients>,
    ) -> Self {
        Self { service, variants, clients, known: HashMap::new(), awaiting: HashMap::new(), count: 0 }
    }

    /// Takes requests until none can come.
    pub(in crate::serve) async fn run(
        mut self,
        unfinished: Vec<UnfinishedRun>,
        mut requests: mpsc::Receiver<DispatchRequest>,
    ) {
        let mut endpoints = HashMap::new();
        for UnfinishedRun { spec, has_ended, .. } in unfinished {
            self.resume(spec, has_ended, &mut endpoints).await;
        }
        self.service.know_all();
        let (service, variants) = (Arc::clone(&self.service), self.variants);
        let rules = &service.rules;
        let mut looked_up = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(request) = requests.recv() => {
                    let Some((name, is_review)) = self.handle(request) else { continue };
                    looked_up.push(async move {
                        let found = open_served(rules, variants, &name, is_review).await;
                        (name, found)
                    });
                }
                Some((name, found)) = looked_up.next() => self.on_lookup(&name, found),
                else => break,
            }
        }
    }

    /// Answers a request, or lets it wait for its roleset. Returns the name of the model if it has to be looked up now, and whether it
    /// is to review changes.
    fn handle(&mut self, request: DispatchRequest) -> Option<(String, bool)> {
        // A request that has gone away begins no run.
        if request.is_gone() {
            return None;
        }
        let DispatchRequest { run, caller, mut place, purpose } = request;
        let purpose = match purpose {
            RequestPurpose::Run { key, mut memory, reply } => {
                let submitted = self.submit(&run, caller, key.as_ref(), &mut place, &mut memory);
                if let Some(result) = submitted.transpose() {
                    drop(reply.send(result));
                    return None;
                }
                RequestPurpose::Run { key, memory, reply }
            }
            RequestPurpose::Plan { reply } => {
                if let Some(result) = self.plan(&run).transpose() {
                    drop(reply.send(result));
                    return None;
                }
                RequestPurpose::Plan { reply }
            }
        };
        self.enqueue(DispatchRequest { run, caller, place, purpose })
    }

    /// Lets a request wait for its roleset, in a place of its caller. Returns what is to be looked up if no other request waits for it.
    fn enqueue(&mut self, mut request: DispatchRequest) -> Option<(String, bool)> {
        if request.place.is_none() {
            match self.take_place(request.caller) {
                Ok(place) => request.place = Some(place),
                Err(why) => {
                    request.refuse(why);
                    return None;
                }
            }
        }
        let (name, is_review) = (request.run.model.clone(), request.run.is_review);
        match self.awaiting.entry(name.clone()) {
            Entry::Occupied(mut waiting) => {
                waiting.get_mut().push(request);
                None
            }
            Entry::Vacant(place) => {
                place.insert(vec![request]);
                Some((name, is_review))
            }
        }
    }

    /// Takes a place for a request or a run of a caller.
    fn take_place(&mut self, caller: Caller) -> Result<HeldRoom, ApiError> {
        if let Some(place) = self.service.places.take(caller, 1) {
            return Ok(place);
        }
        // Requests that have gone away need theirs no more.
        self.awaiting.values_mut().for_each(|waiting| waiting.retain(|request| !request.is_gone()));
        self.service.places.take(caller, 1).ok_or_else(ApiError::full)
    }

    /// Takes a roleset that was looked up, and the requests that wait for it.
    fn on_lookup(&mut self, name: &str, found: Result<Variant, ApiError>) {
        let waiting = self.awaiting.remove(name).unwrap_or_default();
        match found {
            Ok(variant) => {
                if self.known.len() >= VARIANTS_MAX {
                    self.known.clear();
                }
                self.known.insert(name.to_owned(), variant);
                for request in waiting {
                    // The roleset is known, so there is nothing to look up.
                    self.handle(request);
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
        let is_default = self.variants.all().iter().any(|variant| variant.model == cell.model);
        let on = if is_default { String::new() } else { format!("@{}", cell.model) };
        // Its models may be at another address by now.
        let is_review = is_for_changes(&setup);
        let name = format!("{}{on}", setup.roleset);
        let now = if let Some(found) = looked_up.get(&name) {
            found.clone()
        } else {
            let found = self.look_up(&name, is_review).await.ok().map(|variant| variant.endpoints);
            looked_up.entry(name).or_insert(found).clone()
        };
        let endpoints = now.filter(|now| now.len() == spec.endpoints.len()).unwrap_or(spec.endpoints);
        // The limits of the earlier server are not those of this one.
        let budget = cell.meta.get(BUDGET_LABEL).and_then(|budget| serde_json::from_str(budget).ok());
        let variant = Variant::new(cell.model, setup, endpoints).in_arm(&cell.arm);
        let variant = variant.with_limits(budget.unwrap_or_default());
        let task = task_line(cell.task, prompt, documents, Some(canonical), cell.meta);
        let (stop_in, stop) = watch::channel(StopRequest::None);
        let own = OwnCell { variant, seed, stop };
        let origin = RunOrigin { run: own.run(&task.id), task: task.id.clone(), caller, keyed, is_old: true };
        self.begin(task, own, LiveRun::new(origin, SystemTime::now(), stop_in, Vec::new()));
    }

    /// Turns a request into a run, or finds the run that it has become before. Returns `None` if its roleset has to be looked up first.
    fn submit(
        &mut self,
        asked: &RequestedRun,
        caller: Caller,
        key: Option<&RequestKey>,
        place: &mut Option<HeldRoom>,
        memory: &mut Option<Arc<HeldRoom>>,
    ) -> Result<Option<SubmissionOutcome>, ApiError> {
        let mut id = key.map_or_else(|| Uuid::now_v7().to_string(), |key| key.task.clone());
        if let Some(RequestKey { task, digest }) = key {
            // A run whose models could not be called at all has paid for nothing, and the key begins another.
            for attempt in 2_u64.. {
                if let Some(known) = self.find_attempt(&id, *digest, memory)? {
                    return Ok(Some(known));
                }
                if self.service.ended().run_of(&id).is_none() {
                    break;
                }
                id = format!("{task}-{attempt}");
            }
        }
        let Some(variant) = self.requested_variant(asked)? else { return Ok(None) };
        self.require_server(&variant)?;
        let place = match place.take() {
            Some(place) => place,
            None => self.take_place(caller)?,
        };
        let now = SystemTime::now();
        self.service.charge(caller, now)?;
        let seed = asked.seed.unwrap_or_else(|| Digest::new(id.as_bytes()).leading_u64() >> 33);
        let keyed = key.map(|key| key.digest);
        let mut meta = BTreeMap::new();
        if let Some(digest) = keyed {
            meta.insert(REQUEST_LABEL.to_owned(), digest.to_string());
        }
        if caller != Caller::ANYONE {
            meta.insert(CALLER_LABEL.to_owned(), caller.0.to_string());
        }
        if asked.limits != Limits::default() {
            meta.insert(BUDGET_LABEL.to_owned(), json!(asked.limits).to_string());
        }
        let RequestedRun { prompt, documents, canonical, .. } = asked.clone();
        let task = task_line(id, prompt, documents, canonical, meta);
        let (stop_in, stop) = watch::channel(StopRequest::None);
        let own = OwnCell { variant, seed, stop };
        let origin =
            RunOrigin { run: own.run(&task.id), task: task.id.clone(), caller, keyed, is_old: false };
        let mut room = vec![Arc::new(place)];
        room.extend(memory.clone());
        let live = self.begin(task, own, LiveRun::new(origin, now, stop_in, room));
        Ok(Some(self.subscribe(live, memory.take())))
    }

    /// Returns the run that a request would become, or `None` if its roleset has to be looked up first.
    fn plan(&self, asked: &RequestedRun) -> Result<Option<Variant>, ApiError> {
        let Some(mut variant) = self.requested_variant(asked)? else { return Ok(None) };
        let RequestedRun { prompt, documents, canonical, .. } = asked.clone();
        variant.setup.task = Task { prompt, documents, is_searched: false };
        if let Some(canonical) = canonical {
            variant.setup.canonical = canonical;
        }
        variant.setup.check().map_err(|why| ApiError::bad("invalid_task", why.to_string()))?;
        Ok(Some(variant))
    }

    /// Returns the roleset of a request, as the request wishes it, or `None` if it has to be looked up first.
    fn requested_variant(&self, asked: &RequestedRun) -> Result<Option<Variant>, ApiError> {
        self.service.rules.require_served(&asked.model, asked.is_review)?;
        let Some(variant) = self.known.get(&asked.model) else { return Ok(None) };
        apply_request(variant.clone(), asked).map(Some)
    }

    /// Refuses a run that would only wait for a model server that is gone. A run that comes when the server is due to be tried shows
    /// whether it is back.
    fn require_server(&self, variant: &Variant) -> Result<(), ApiError> {
        for endpoint in &variant.endpoints {
            // A server that this program has launched is waited for while it restarts.
            if endpoint.is_launched() {
                continue;
            }
            if let Some(wait) = self.clients.outage(endpoint) {
                return Err(ApiError::outage(wait));
            }
        }
        Ok(())
    }

    fn subscribe(&self, live: Arc<LiveRun>, memory: Option<Arc<HeldRoom>>) -> SubmissionOutcome {
        SubmissionOutcome::Live(Subscription::new(live, Arc::clone(&self.service), memory))
    }

    /// Returns the run of this attempt of a key, if there is one and it has paid for something. The request takes its `memory` along.
    fn find_attempt(
        &self,
        task: &str,
        digest: Digest,
        memory: &mut Option<Arc<HeldRoom>>,
    ) -> Result<Option<SubmissionOutcome>, ApiError> {
        {
            let state = self.service.state();
            if let Some(live) = state.live.values().find(|live| live.origin.task == task) {
                if live.origin.keyed != Some(digest) {
                    return Err(ApiError::other_request());
                }
                return Ok(Some(self.subscribe(Arc::clone(live), memory.take())));
            }
            if let Some(why) = state.broken.get(task) {
                return Err(why.clone());
            }
            if state.left.contains(task) {
                return Err(ApiError::left());
            }
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
        if paid_for_nothing(&row) {
            return Ok(None);
        }
        Ok(Some(SubmissionOutcome::Ended(run)))
    }

    /// Looks up a roleset on its model.
    async fn look_up(&self, name: &str, is_review: bool) -> Result<Variant, ApiError> {
        self.service.rules.require_served(name, is_review)?;
        open_served(&self.service.rules, self.variants, name, is_review).await
    }

    /// Lets a task wait for its turn, and returns its run.
    fn begin(&mut self, task: TaskLine, own: OwnCell, live: LiveRun) -> Arc<LiveRun> {
        let live = Arc::new(live);
        self.count += 1;
        self.service.add(Arc::clone(&live), TaskRow { number: self.count, task: Ok(task), own: Some(own) });
        live
    }
}

/// Returns whether a run that an earlier server has left goes on, because a request may come back to it.
pub(in crate::serve) fn is_continued(cell: &InBatch, cancelled: &CancelledKeys) -> bool {
    let request = cell.meta.get(REQUEST_LABEL).and_then(|digest| digest.parse::<Digest>().ok());
    request.is_some() && cell.task.starts_with(KEYED) && !cancelled.has(&cell.task)
}

/// Returns whether a run failed because its models could not be called at all.
fn paid_for_nothing(row: &Value) -> bool {
    row["outcome"] == OutcomeKind::Failed.name() && row["usage"]["calls"] == 0
}

/// Returns a task whose right answer no one knows.
fn task_line(
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
