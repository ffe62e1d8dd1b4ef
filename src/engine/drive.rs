//! Performing what a run owes, until it ends or is put down.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use tokio::sync::watch;

use super::error::EngineError;
use super::flight::{Flight, StopRequest};
use super::log;
use super::observer::{Observer, RunEvent};
use super::redaction::Redaction;
use super::run_state::{RunState, tokens_max};
use crate::core::{Endpoint, PROGRAM};
use crate::journal::{
    Asked, Entry, Found, Journal, Library, Limits, Log, Record, Replied, RunSpec, RunWriter, Writer,
};
use crate::protocol::{Ask, CallId, Outcome, Passage, RunSetup, Search};
use crate::provider::launch::Lifeline;
use crate::provider::{Clients, Completion, Provider, ProviderError};
use crate::retrieval::Corpus;

/// What is another than before, from a resume on; what is not given stays.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// What the run may use.
    pub limits: Option<Limits>,
    /// Where each agent's model is called.
    pub endpoints: Option<Vec<Endpoint>>,
    /// Documents that may be searched.
    pub library: Option<Library>,
}

/// A run that is under way.
pub struct Engine<'a> {
    log: Log,
    ledger: RunState,
    providers: Vec<Provider>,
    limits: Limits,
    /// What can be searched, if anything can.
    corpus: Option<Corpus>,
    /// What to leave out of passages that are found.
    redaction: Option<Redaction>,
    /// From when on a deadline counts.
    began: tokio::time::Instant,
    observer: &'a dyn Observer,
}

impl std::fmt::Debug for Engine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl<'a> Engine<'a> {
    /// Starts a new run with this id in the run folder `dir`: records what it starts from, durably.
    ///
    /// # Errors
    ///
    /// [`EngineError`]. Nothing is written if an endpoint cannot be used.
    pub fn start(
        dir: &Path,
        run: &str,
        opened: RunSpec,
        observer: &'a dyn Observer,
    ) -> Result<Self, EngineError> {
        let providers = providers(&opened.setup, &opened.endpoints, &Clients::default())?;
        let mut writer = Writer::create(dir, run)?;
        observer.notice(RunEvent::Writing);
        let opening = Entry::Opened(Box::new(opened));
        match writer.append(opening).and_then(|record| writer.sync().map(|()| record)) {
            Ok(record) => Self::begun(Log::Own(writer), &record, providers, observer),
            Err(why) => {
                writer.discard();
                Err(why.into())
            }
        }
    }

    /// Starts a new run whose records go into a journal that others share, and that calls its models over connections that
    /// others share. What it starts from is durable with its first reply.
    ///
    /// # Errors
    ///
    /// [`EngineError`]. Nothing is written if an endpoint cannot be used.
    pub fn start_among(
        mut strand: RunWriter,
        opened: RunSpec,
        clients: &Clients,
        observer: &'a dyn Observer,
    ) -> Result<Self, EngineError> {
        let providers = providers(&opened.setup, &opened.endpoints, clients)?;
        observer.notice(RunEvent::Writing);
        let record = strand.append(Entry::Opened(Box::new(opened)))?;
        Self::begun(Log::Shared(strand), &record, providers, observer)
    }

    fn begun(
        log: Log,
        record: &Record,
        providers: Vec<Provider>,
        observer: &'a dyn Observer,
    ) -> Result<Self, EngineError> {
        observer.notice(RunEvent::Written(record));
        let ledger =
            RunState::open(record).map_err(|why| EngineError::Mismatch { line: record.seq + 1, why })?;
        let limits = ledger.limits();
        Ok(Self::of(log, ledger, providers, limits, observer))
    }

    fn of(
        log: Log,
        ledger: RunState,
        providers: Vec<Provider>,
        limits: Limits,
        observer: &'a dyn Observer,
    ) -> Self {
        let began = tokio::time::Instant::now();
        Self { log, ledger, providers, limits, corpus: None, redaction: None, began, observer }
    }

    /// Takes up a run where its journal ends.
    ///
    /// A run that has reached its end is returned as it is, with nothing left to do.
    ///
    /// # Errors
    ///
    /// [`EngineError`].
    pub fn resume(
        writer: Writer,
        journal: &Journal,
        now: Changes,
        observer: &'a dyn Observer,
    ) -> Result<Self, EngineError> {
        Self::resume_from(Log::Own(writer), &journal.records, now, &Clients::default(), observer)
    }

    /// Takes up a run whose records are in a journal that others share; see [`Engine::start_among`] and [`Engine::resume`].
    ///
    /// # Errors
    ///
    /// [`EngineError`].
    pub fn resume_among(
        strand: RunWriter,
        records: &[Record],
        now: Changes,
        clients: &Clients,
        observer: &'a dyn Observer,
    ) -> Result<Self, EngineError> {
        Self::resume_from(Log::Shared(strand), records, now, clients, observer)
    }

    fn resume_from(
        log: Log,
        records: &[Record],
        now: Changes,
        clients: &Clients,
        observer: &'a dyn Observer,
    ) -> Result<Self, EngineError> {
        let ledger = RunState::replay(records).map_err(|(line, why)| EngineError::Mismatch { line, why })?;
        let limits = now.limits.unwrap_or(ledger.limits());
        let endpoints = now.endpoints.filter(|now| now != ledger.endpoints());
        let library = now.library.filter(|now| ledger.library() != Some(now));
        let places = endpoints.as_deref().unwrap_or(ledger.endpoints());
        let providers = providers(&ledger.opened().setup, places, clients)?;
        for record in records {
            if let Entry::Replied(Replied { call, structured: Some(held), .. }) = &record.event
                && let Some(provider) = providers.get(call.agent)
            {
                provider.degrade_to(*held);
            }
        }
        let mut engine = Self::of(log, ledger, providers, limits, observer);
        if engine.ledger.outcome().is_none_or(|outcome| !outcome.is_final()) {
            engine.record(Entry::Resumed { program: PROGRAM.to_owned(), limits, endpoints, library })?;
        }
        Ok(engine)
    }

    /// Lets calls to a server that was launched for this run know how it is doing.
    pub fn attach(&self, lifeline: &Lifeline) {
        for provider in &self.providers {
            provider.attach(lifeline);
        }
    }

    /// Lends the run documents to search; one that must search needs them.
    pub fn lend(&mut self, corpus: Corpus) {
        self.corpus = Some(corpus);
    }

    /// Lends the run the table by which its setup was redacted, so that what it finds is redacted as well.
    pub fn redact_by(&mut self, redaction: Redaction) {
        self.redaction = Some(redaction);
    }

    /// Counts the deadline from an earlier moment, such as the start of the program.
    pub fn count_from(&mut self, began: Instant) {
        self.began = began.into();
    }

    /// Returns the state of the run.
    #[must_use]
    pub fn ledger(&self) -> &RunState {
        &self.ledger
    }

    /// Returns the SHA-256 of the journal's last line.
    #[must_use]
    pub fn journal_head(&self) -> crate::crypto::Digest {
        self.log.head()
    }

    /// Runs to an end, and records it durably.
    ///
    /// # Errors
    ///
    /// [`EngineError`], if the journal cannot be written; the run can be resumed.
    pub async fn run(&mut self, stop: watch::Receiver<StopRequest>) -> Result<Outcome, EngineError> {
        if let Some(outcome) = self.ledger.outcome() {
            return Ok(outcome.clone());
        }
        log::begun(&self.ledger);
        let outcome = match self.until_stopped(stop).await? {
            Some(reason) if self.ledger.verdict().is_none() => reason,
            Some(_) | None => self.ledger.verdict().cloned().unwrap_or(Outcome::Interrupted),
        };
        self.record(Entry::Stopped { outcome: outcome.clone() })?;
        self.log.sync().await?;
        Ok(outcome)
    }

    /// Makes calls and records replies until the machine finishes (nothing returned), or something
    /// puts the run down (returned).
    async fn until_stopped(
        &mut self,
        mut stop: watch::Receiver<StopRequest>,
    ) -> Result<Option<Outcome>, EngineError> {
        // The providers are lent to the calls in the air while the rest of the engine goes on.
        let providers = std::mem::take(&mut self.providers);
        let observer = self.observer;
        let deadline = self.limits.deadline_ms.map(|ms| self.began + Duration::from_millis(ms));
        let (quit, quitting) = watch::channel(false);
        for provider in &providers {
            provider.heed(&quitting);
        }
        let mut flight = Flight::default();
        while self.ledger.verdict().is_none() {
            // A request may come while a reply is taken as well as while one is awaited.
            let request = *stop.borrow_and_update();
            if flight.hears(request) {
                quit.send_replace(true);
                observer.notice(RunEvent::Stopping { at_once: request == StopRequest::Abort });
            }
            if let Some(search) = self.ledger.to_search().cloned() {
                self.search(&search).await?;
            }
            self.ask_what_is_owed(&mut flight, |ask| call(&providers[ask.call.agent], ask, observer)).await?;
            if flight.reason.is_some() && (flight.calls.is_empty() || *stop.borrow() == StopRequest::Abort) {
                break;
            }
            tokio::select! {
                biased;
                Ok(()) = stop.changed() => {}
                () = at(deadline) => {
                    flight.reason = Some(Outcome::Budget { limit: "the deadline has passed".to_owned() });
                    break;
                }
                Some(landed) = flight.calls.next() => {
                    // One that was cancelled is gone already.
                    let Ok((call, result, took)) = landed else { continue };
                    self.take_landed(&mut flight, call, result, took).await?;
                }
            }
        }
        let reason = flight.reason.take();
        drop(flight);
        self.providers = providers;
        Ok(reason)
    }

    /// Records and begins every call that is owed and has room, until a limit binds.
    async fn ask_what_is_owed<F: Future>(
        &mut self,
        flight: &mut Flight<F>,
        begin: impl Fn(Ask) -> F,
    ) -> Result<(), EngineError> {
        let mut has_asked = false;
        while flight.reason.is_none() {
            let has_room = |ask: &&Ask| self.has_room(ask.call.agent, flight.handles.keys());
            let Some(ask) = self.ledger.to_ask().find(has_room).cloned() else { break };
            if let Err(limit) = self.ledger.allows(&ask) {
                flight.reason = Some(Outcome::Budget { limit: limit.to_string() });
                break;
            }
            let (call, sha256, tokens_max) = (ask.call, ask.digest, tokens_max(&ask));
            self.record(Entry::Asked(Asked { call, sha256, tokens_max }))?;
            self.observer.notice(RunEvent::Calling { agent: self.ledger.agent_name(call.agent), ask: &ask });
            let (handle, registration) = AbortHandle::new_pair();
            flight.handles.insert(call, handle);
            flight.calls.push(Abortable::new(begin(ask), registration));
            has_asked = true;
        }
        // No request leaves that no record knows of: calls begin when they are awaited.
        if has_asked {
            self.log.written().await?;
        }
        Ok(())
    }

    /// Takes what a call brought, and cancels the calls that are not owed any more.
    async fn take_landed<F>(
        &mut self,
        flight: &mut Flight<F>,
        call: CallId,
        result: Result<Completion, ProviderError>,
        took: Duration,
    ) -> Result<(), EngineError> {
        flight.handles.remove(&call);
        match result {
            Ok(completion) => self.take_answer(call, completion, took).await?,
            Err(error) => {
                let cause = format!("{}: {error}", self.ledger.agent_name(call.agent));
                self.observer.notice(RunEvent::Failed { call, error: &error });
                flight.reason = flight.reason.take().or(Some(Outcome::Failed { cause }));
            }
        }
        flight.handles.retain(|call, handle| {
            let is_owed = self.ledger.is_owed(*call);
            if !is_owed {
                handle.abort();
                let agent = self.ledger.agent_name(call.agent);
                self.observer.notice(RunEvent::Cancelled { agent, call: *call });
            }
            is_owed
        });
        Ok(())
    }

    /// Whether the server of this agent may take one more call beside those in the air.
    fn has_room<'b>(&self, agent: usize, in_the_air: impl Iterator<Item = &'b CallId>) -> bool {
        let endpoints = self.ledger.endpoints();
        let Some((url, most)) = endpoints.get(agent).and_then(Endpoint::calls_at_once) else { return true };
        let is_there = |call: &&CallId| {
            endpoints.get(call.agent).and_then(Endpoint::calls_at_once).is_some_and(|(u, _)| u == url)
        };
        in_the_air.filter(is_there).count() < most
    }

    /// Searches the documents, and records what it finds before anything follows from it.
    async fn search(&mut self, search: &Search) -> Result<(), EngineError> {
        let corpus = self.corpus.as_ref().ok_or(EngineError::NoCorpus)?;
        let passages = match &mut self.redaction {
            // The documents hold the originals; nothing of the search leaves this machine.
            Some(redaction) => {
                let words = redaction.redactions().restore(&search.words);
                redacted(corpus, redaction, &words, search.tokens_max)?
            }
            None if self.ledger.opened().redacted => return Err(EngineError::NoRedaction),
            None => corpus.search(&search.words, search.tokens_max)?,
        };
        self.record(Entry::Found(Found { round: search.round, passages }))?;
        Ok(self.log.sync().await?)
    }

    /// Records a reply, durably, before anything follows from it.
    async fn take_answer(
        &mut self,
        call: CallId,
        answer: Completion,
        took: Duration,
    ) -> Result<(), EngineError> {
        let Completion { reply, usage, structured, attempts, receipt, key_removed } = answer;
        let replied = Replied { call, reply, usage, structured, attempts, receipt, key_removed };
        let agent = self.ledger.agent_name(call.agent);
        let usage = self.ledger.charge(&replied);
        self.observer.notice(RunEvent::Answered { agent, replied: &replied, usage, took });
        let logged = log::rounds(&self.ledger).map(|before| (before, replied.clone()));
        self.record(Entry::Replied(replied))?;
        self.log.sync().await?;
        if let Some(remark) = self.ledger.remark() {
            self.observer.notice(RunEvent::Remarked { agent: self.ledger.agent_name(call.agent), remark });
        }
        if let Some((before, replied)) = logged {
            log::replied(&self.ledger, &replied, took, before);
        }
        Ok(())
    }

    fn record(&mut self, entry: Entry) -> Result<(), EngineError> {
        self.observer.notice(RunEvent::Writing);
        let record = self.log.append(entry)?;
        self.observer.notice(RunEvent::Written(&record));
        self.ledger.apply(&record).map_err(|why| EngineError::Mismatch { line: record.seq + 1, why })
    }
}

/// Searches, and puts tokens into what is found; the table is on disk before anything is made of them.
fn redacted(
    corpus: &Corpus,
    redaction: &mut Redaction,
    words: &str,
    tokens_max: u64,
) -> Result<Vec<Passage>, EngineError> {
    let mut left = tokens_max;
    let mut found = Vec::new();
    for passage in corpus.search(words, tokens_max)? {
        let (before, after) = corpus.beside(&passage)?;
        let passage = redaction.passage(passage, &before, &after);
        // A token may be longer than what it stands for.
        let tokens = passage.tokens_estimate();
        if tokens <= left {
            left -= tokens;
            found.push(passage);
        }
    }
    redaction.save_if_new().map_err(EngineError::Redaction)?;
    Ok(found)
}

async fn call(
    provider: &Provider,
    ask: Ask,
    observer: &dyn Observer,
) -> (CallId, Result<Completion, ProviderError>, Duration) {
    let began = Instant::now();
    let call = ask.call;
    let progress = |tokens| observer.notice(RunEvent::Streaming { call, tokens });
    let result = provider.ask(&ask, &progress).await;
    (call, result, began.elapsed())
}

async fn at(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn providers(
    setup: &RunSetup,
    endpoints: &[Endpoint],
    clients: &Clients,
) -> Result<Vec<Provider>, EngineError> {
    let make = |(agent, endpoint): (&crate::protocol::AgentSetup, _)| {
        Provider::new(endpoint, &agent.name, clients)
            .map_err(|why| EngineError::Provider { agent: agent.name.clone(), why })
    };
    setup.everybody().zip(endpoints).map(make).collect()
}
