//! Performing the calls and searches that a run owes, until it ends or is put down.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::sync::watch;

use super::error::EngineError;
use super::flight::{Flight, StopRequest};
use super::log;
use super::observer::{RunEvent, RunObserver};
use super::prepared::{PreparedRun, Resumption, Tools};
use super::run_state::{RunState, tokens_max};
use crate::engine::ReplayError;
use crate::journal::{
    Asked, Entry, Found, Journal, LeftOut, Limits, Log, Record, Replied, RunSpec, RunWriter, Writer,
};
use crate::program::PROGRAM;
use crate::provider::{CallProgress, Clients, Completion, Provider, ProviderError};
use protocol::core::{Endpoint, OptionalParameter};
use protocol::{Ask, CallId, Outcome, RunSetup, Search};

/// A run that is under way.
pub struct Engine<'a> {
    pub(super) log: Log,
    pub(super) state: RunState,
    providers: Vec<Provider>,
    limits: Limits,
    pub(super) tools: Tools,
    pub(super) observer: &'a dyn RunObserver,
}

impl std::fmt::Debug for Engine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("state", &self.state).finish_non_exhaustive()
    }
}

impl<'a> Engine<'a> {
    /// Starts a new run with this id in the run folder `dir`, and durably records its specification.
    ///
    /// Returns [`EngineError`]. Nothing is written if an endpoint cannot be used.
    pub fn start(
        dir: &Path,
        run: &str,
        prepared: PreparedRun,
        observer: &'a dyn RunObserver,
    ) -> Result<Self, EngineError> {
        let PreparedRun { spec, mut tools } = prepared;
        let providers = connect(&spec.setup, &spec.endpoints, &Clients::default())?;
        // The table is saved before any text with a token in it is written or sent.
        tools.save_redactions()?;
        let written = Self::write_opening(dir, run, spec, observer);
        if let (Err(_), Some(redaction)) = (&written, &tools.redaction) {
            redaction.discard();
        }
        let (writer, record) = written?;
        Self::begin(Log::Own(writer), &record, providers, tools, observer)
    }

    fn write_opening(
        dir: &Path,
        run: &str,
        spec: RunSpec,
        observer: &dyn RunObserver,
    ) -> Result<(Writer, Record), EngineError> {
        let mut writer = Writer::create(dir, run)?;
        observer.on_event(RunEvent::Writing);
        let opening = Entry::Opened(Box::new(spec));
        match writer.append(opening).and_then(|record| writer.sync().map(|()| record)) {
            Ok(record) => Ok((writer, record)),
            Err(why) => {
                writer.discard();
                Err(why.into())
            }
        }
    }

    /// Starts a new run whose records go into a shared journal, and which calls its models over shared connections.
    /// Its specification is durable with its first reply.
    ///
    /// Returns [`EngineError`]. Nothing is written if an endpoint cannot be used.
    pub fn start_shared(
        mut writer: RunWriter,
        prepared: PreparedRun,
        clients: &Clients,
        observer: &'a dyn RunObserver,
    ) -> Result<Self, EngineError> {
        let PreparedRun { spec, mut tools } = prepared;
        let providers = connect(&spec.setup, &spec.endpoints, clients)?;
        tools.save_redactions()?;
        observer.on_event(RunEvent::Writing);
        let record = writer.append(Entry::Opened(Box::new(spec)))?;
        Self::begin(Log::Shared(writer), &record, providers, tools, observer)
    }

    fn begin(
        log: Log,
        record: &Record,
        providers: Vec<Provider>,
        tools: Tools,
        observer: &'a dyn RunObserver,
    ) -> Result<Self, EngineError> {
        observer.on_event(RunEvent::Written(record));
        let state = RunState::open(record).map_err(|why| ReplayError { line: record.seq + 1, why })?;
        let limits = state.limits();
        Ok(Self::new(log, state, providers, limits, tools, observer))
    }

    fn new(
        log: Log,
        state: RunState,
        providers: Vec<Provider>,
        limits: Limits,
        tools: Tools,
        observer: &'a dyn RunObserver,
    ) -> Self {
        for provider in &providers {
            if let Some(lifeline) = &tools.lifeline {
                provider.attach(lifeline);
            }
        }
        Self { log, state, providers, limits, tools, observer }
    }

    /// Resumes a run at the end of its journal.
    ///
    /// A run that has reached its end is returned as it is, with nothing left to do.
    ///
    /// Returns [`EngineError`]. Nothing is written if the run needs documents, or its table of redactions, and does not get
    /// them.
    pub fn resume(
        writer: Writer,
        journal: &Journal,
        now: Resumption,
        observer: &'a dyn RunObserver,
    ) -> Result<Self, EngineError> {
        Self::resume_from(Log::Own(writer), &journal.records, now, &Clients::default(), observer)
    }

    /// Resumes a run whose records are in a shared journal; see [`Engine::start_shared`] and [`Engine::resume`].
    pub fn resume_shared(
        writer: RunWriter,
        records: &[Record],
        now: Resumption,
        clients: &Clients,
        observer: &'a dyn RunObserver,
    ) -> Result<Self, EngineError> {
        Self::resume_from(Log::Shared(writer), records, now, clients, observer)
    }

    fn resume_from(
        log: Log,
        records: &[Record],
        now: Resumption,
        clients: &Clients,
        observer: &'a dyn RunObserver,
    ) -> Result<Self, EngineError> {
        let state = RunState::replay(records)?;
        let Resumption { limits, endpoints, library, ruling, tools } = now;
        let limits = limits.unwrap_or(state.limits());
        let endpoints = endpoints.filter(|now| now != state.endpoints());
        let library = library.filter(|now| state.library() != Some(now));
        let is_open = state.outcome().is_none_or(|outcome| !outcome.is_final());
        if is_open && state.opened().redacted && tools.redaction.is_none() {
            return Err(EngineError::NoRedaction);
        }
        if is_open && state.library().is_some() && tools.corpus.is_none() {
            return Err(EngineError::NoCorpus);
        }
        if is_open && state.executes() && tools.sandbox.is_none() {
            return Err(EngineError::NoSandbox);
        }
        let places = endpoints.as_deref().unwrap_or(state.endpoints());
        let providers = connect(&state.opened().setup, places, clients)?;
        for record in records {
            if let Entry::Replied(Replied { call, structured: Some(held), .. }) = &record.event
                && let Some(provider) = providers.get(call.agent)
            {
                provider.degrade_to(*held);
            }
        }
        if endpoints.is_none() {
            for (agent, parameter) in &state.left_out {
                providers[*agent].leave_out(*parameter);
            }
        }
        let mut engine = Self::new(log, state, providers, limits, tools, observer);
        if is_open {
            engine.record(Entry::Resumed { program: PROGRAM.to_owned(), limits, endpoints, library })?;
        }
        if let Some(ruling) = ruling {
            engine.record(ruling.into())?;
        }
        Ok(engine)
    }

    /// Returns the state of the run.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// Returns the SHA-256 of the journal's last line.
    pub fn journal_head(&self) -> crypto::Digest {
        self.log.head()
    }

    /// Drives the run to an end, and records that end durably. The server that was launched for the run ends with it. A vote that waits for
    /// a permit is left without an end on record, as a run is whose process ends.
    ///
    /// Returns [`EngineError`] if the journal cannot be written. The run can be resumed.
    pub async fn run(&mut self, stop: watch::Receiver<StopRequest>) -> Result<Outcome, EngineError> {
        let ended = self.run_to_end(stop).await;
        if let Some(server) = self.tools.server.take() {
            server.end().await;
        }
        ended
    }

    async fn run_to_end(&mut self, stop: watch::Receiver<StopRequest>) -> Result<Outcome, EngineError> {
        if let Some(outcome) = self.state.outcome() {
            return Ok(outcome.clone());
        }
        log::log_start(&self.state);
        let stopped = self.until_stopped(stop).await?;
        if self.state.is_waiting() {
            self.log.sync().await?;
            return Ok(Outcome::Interrupted);
        }
        let outcome = match stopped {
            Some(reason) if self.state.verdict().is_none() => reason,
            Some(_) | None => self.state.verdict().cloned().unwrap_or(Outcome::Interrupted),
        };
        self.record(Entry::Stopped { outcome: outcome.clone() })?;
        self.log.sync().await?;
        Ok(outcome)
    }

    /// Makes calls and records replies until the machine finishes, or until something puts the run down. Returns
    /// `None` in the first case, and the reason in the second.
    async fn until_stopped(
        &mut self,
        mut stop: watch::Receiver<StopRequest>,
    ) -> Result<Option<Outcome>, EngineError> {
        // The providers are lent to the calls in the air while the rest of the engine continues.
        let providers = std::mem::take(&mut self.providers);
        let observer = self.observer;
        let began = self.tools.began.map_or_else(tokio::time::Instant::now, Into::into);
        let deadline = self.limits.deadline_ms.map(|ms| began + Duration::from_millis(ms));
        let (quit, quitting) = watch::channel(false);
        for provider in &providers {
            provider.watch_shutdown(&quitting);
        }
        let mut flight = Flight::default();
        while self.state.verdict().is_none() && !self.state.is_waiting() {
            // A request may come while a reply is being taken, as well as while one is awaited.
            let request = *stop.borrow_and_update();
            if flight.take_stop(request) {
                quit.send_replace(true);
                observer.on_event(RunEvent::Stopping { at_once: request == StopRequest::Abort });
            }
            if let Some(search) = self.state.to_search().cloned() {
                self.search(&search).await?;
            }
            if flight.reason.is_none() {
                self.begin_executions(&mut flight, &providers)?;
            }
            self.begin_calls(&mut flight, &providers, |ask| {
                perform(&providers[ask.call.agent], ask, observer)
            })
            .await?;
            if flight.reason.is_some() && (flight.is_empty() || *stop.borrow() == StopRequest::Abort) {
                break;
            }
            tokio::select! {
                biased;
                Ok(()) = stop.changed() => {}
                () = wait_until(deadline) => {
                    flight.reason = Some(Outcome::Budget { limit: "the deadline has passed".to_owned() });
                    break;
                }
                Some(executed) = flight.executions.next() => {
                    self.take_executed(&mut flight, executed).await?;
                }
                Some(landed) = flight.calls.next() => {
                    // A cancelled call has been removed already.
                    let Ok((call, result, took)) = landed else { continue };
                    self.take_result(&mut flight, &providers, call, result, took).await?;
                }
            }
        }
        let reason = flight.reason.take();
        drop(flight);
        self.providers = providers;
        Ok(reason)
    }

    /// Records and begins every owed call that its server has room for, until a limit binds.
    async fn begin_calls<F: Future>(
        &mut self,
        flight: &mut Flight<'_, F>,
        providers: &[Provider],
        begin: impl Fn(Ask) -> F,
    ) -> Result<(), EngineError> {
        let mut has_asked = false;
        let refused = if flight.reason.is_none() { std::mem::take(&mut flight.refused) } else { Vec::new() };
        for call in refused {
            if let Some(ask) = self.state.find_made_call(call).cloned() {
                flight.begin(call, begin(ask));
                has_asked = true;
            }
        }
        while flight.reason.is_none() {
            let next =
                self.state.to_ask().find(|ask| self.has_room(ask.call.agent, flight.handles.keys())).cloned();
            let Some(ask) = next else { break };
            if let Err(limit) = self.state.require_budget(&ask) {
                flight.reason = Some(Outcome::Budget { limit: limit.to_string() });
                break;
            }
            let (call, sha256, tokens_max) = (ask.call, ask.digest, tokens_max(&ask));
            for (parameter, message) in providers[call.agent].known_refusals() {
                self.leave_out(providers, call.agent, parameter, message)?;
            }
            self.record(Entry::Asked(Asked { call, sha256, tokens_max }))?;
            self.observer.on_event(RunEvent::Calling { agent: self.state.agent_name(call.agent), ask: &ask });
            flight.begin(call, begin(ask));
            has_asked = true;
        }
        // No request leaves before its record is written: calls begin only when they are awaited.
        if has_asked {
            self.log.written().await?;
        }
        Ok(())
    }

    /// Takes the result of a call, and cancels the calls that are no longer owed.
    async fn take_result<F: Future>(
        &mut self,
        flight: &mut Flight<'_, F>,
        providers: &[Provider],
        call: CallId,
        result: Result<Completion, ProviderError>,
        took: Duration,
    ) -> Result<(), EngineError> {
        flight.handles.remove(&call);
        match result {
            Ok(completion) => self.take_answer(call, completion, took).await?,
            // The finding is on record before the request is made without the parameter.
            Err(ProviderError::Parameter { parameter, message, .. }) => {
                self.leave_out(providers, call.agent, parameter, message)?;
                flight.refused.push(call);
            }
            Err(error) => self.take_failure(flight, call, &error).await?,
        }
        flight.handles.retain(|call, handle| {
            let is_owed = self.state.is_owed(*call);
            if !is_owed {
                handle.abort();
                let agent = self.state.agent_name(call.agent);
                self.observer.on_event(RunEvent::Cancelled { agent, call: *call });
            }
            is_owed
        });
        Ok(())
    }

    /// Records that an agent's server refused a parameter, and calls it without the parameter from here on.
    fn leave_out(
        &mut self,
        providers: &[Provider],
        agent: usize,
        parameter: OptionalParameter,
        message: String,
    ) -> Result<(), EngineError> {
        providers[agent].leave_out(parameter);
        if self.state.has_left_out(agent, parameter) {
            return Ok(());
        }
        self.record(Entry::LeftOut(LeftOut { agent, parameter, message }))
    }

    /// Returns true if the server of this agent may take one more call besides those in the air.
    fn has_room<'b>(&self, agent: usize, in_the_air: impl Iterator<Item = &'b CallId>) -> bool {
        let endpoints = self.state.endpoints();
        let Some((url, most)) = endpoints.get(agent).and_then(Endpoint::calls_at_once) else { return true };
        let mut count = 0;
        for call in in_the_air {
            let limited = endpoints.get(call.agent).and_then(Endpoint::calls_at_once);
            count += usize::from(limited.is_some_and(|(other, _)| other == url));
        }
        count < most
    }

    /// Searches the documents, and records the passages before anything follows from them.
    async fn search(&mut self, search: &Search) -> Result<(), EngineError> {
        let corpus = self.tools.corpus.as_ref().ok_or(EngineError::NoCorpus)?;
        let passages = match &mut self.tools.redaction {
            Some(redaction) => redaction.search(corpus, search)?,
            None => corpus.search(&search.words, search.tokens_max)?,
        };
        self.record(Entry::Found(Found { round: search.round, passages }))?;
        Ok(self.log.sync().await?)
    }

    /// Records a reply durably, before anything follows from it.
    async fn take_answer(
        &mut self,
        call: CallId,
        answer: Completion,
        took: Duration,
    ) -> Result<(), EngineError> {
        let Completion { reply, usage, structured, attempts, receipt, key_removed } = answer;
        let replied = Replied { call, reply, usage, structured, attempts, receipt, key_removed };
        let agent = self.state.agent_name(call.agent);
        let usage = self.state.charge(&replied);
        self.observer.on_event(RunEvent::Answered { agent, replied: &replied, usage, took });
        log::log_call(&self.state, &replied, usage, took);
        let logged = log::count_rounds(&self.state).map(|before| (before, replied.clone()));
        self.record(Entry::Replied(replied))?;
        self.log.sync().await?;
        if let Some(remark) = self.state.remark() {
            self.observer.on_event(RunEvent::Remarked { agent: self.state.agent_name(call.agent), remark });
        }
        if let Some((before, replied)) = logged {
            log::log_reply(&self.state, &replied, took, before);
        }
        Ok(())
    }

    pub(super) fn record(&mut self, entry: Entry) -> Result<(), EngineError> {
        self.observer.on_event(RunEvent::Writing);
        let record = self.log.append(entry)?;
        self.observer.on_event(RunEvent::Written(&record));
        Ok(self.state.apply(&record).map_err(|why| ReplayError { line: record.seq + 1, why })?)
    }
}

async fn perform(
    provider: &Provider,
    ask: Ask,
    observer: &dyn RunObserver,
) -> (CallId, Result<Completion, ProviderError>, Duration) {
    let began = Instant::now();
    let call = ask.call;
    let result = provider
        .ask(&ask, &|progress: CallProgress<'_>| {
            observer.on_event(match progress {
                CallProgress::Received { tokens, text } => RunEvent::Streaming { call, tokens, text },
                CallProgress::Again { error, wait } => RunEvent::Again { call, error, wait },
            });
        })
        .await;
    (call, result, began.elapsed())
}

async fn wait_until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Returns a provider for each agent, the arbiter's last.
fn connect(
    setup: &RunSetup,
    endpoints: &[Endpoint],
    clients: &Clients,
) -> Result<Vec<Provider>, EngineError> {
    let mut providers = Vec::new();
    for (agent, endpoint) in setup.everybody().zip(endpoints) {
        let provider = Provider::new(endpoint, &agent.name, clients);
        providers.push(provider.map_err(|why| EngineError::Provider { agent: agent.name.clone(), why })?);
    }
    Ok(providers)
}
