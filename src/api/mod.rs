//! Consensus from Rust: a roleset, a server, one call.
//!
//! The input is the name of a roleset, the endpoint of its models, and a prompt. The output is the result that the
//! command line prints, with the same record beside it. Nothing is printed, no signal is caught, and no environment or
//! configuration file is read. The other features of the command line (launching servers, documents, redaction) are
//! made of the same parts, which are public: [`crate::run`], [`crate::config`], [`crate::engine`], [`crate::report`].

use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::config::ConfigError;
use crate::engine::{Engine, RunBuilder, StopRequest};
use crate::journal::Limits;
use crate::report::RunResult;
use crate::run::{FinishedRun, NamedRoleset, RunId, drive};
pub use crate::run::{RunError, SESSION_DOCUMENT, Session, SessionError, SessionSays};
use protocol::Task;
use protocol::core::Endpoint;

/// A roleset with its models, which answers prompts and records each run.
///
/// ```
/// use consensus::api::ConsensusEngine;
/// use consensus::protocol::core::Endpoint;
///
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// let runs = std::env::temp_dir().join("consensus-example");
/// // Scripted agents; a real server is `OpenAiEndpoint { model, ..OpenAiEndpoint::bare(url) }`.
/// let script = r#"{"policy": "honest", "answer": "4"}"#.to_owned();
/// let engine = ConsensusEngine::new("panel_personas", Endpoint::Mock { script })?.in_folder(&runs);
/// let result = runtime.block_on(engine.run("How much is 2+2?", Some("sums")))?;
/// assert_eq!(result.text.as_deref(), Some("4"));
/// # std::fs::remove_dir_all(runs)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConsensusEngine {
    named: NamedRoleset,
    endpoints: Vec<Endpoint>,
    folder: PathBuf,
    limits: Limits,
    seed: Option<u64>,
}

impl ConsensusEngine {
    /// Loads a roleset by name or path, with every agent's model at one endpoint.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if there is no such roleset, or if it has mistakes.
    pub fn new(roleset: &str, endpoint: Endpoint) -> Result<Self, ConfigError> {
        let named = NamedRoleset::find(roleset, &[PathBuf::from("rolesets")])?;
        let agents = named.roleset.agents.len() + usize::from(named.roleset.arbiter.is_some());
        Ok(Self {
            named,
            endpoints: vec![endpoint; agents],
            folder: PathBuf::from("runs"),
            limits: Limits::default(),
            seed: None,
        })
    }

    /// Calls each agent's model at an endpoint of its own, the arbiter's last. Models without a new endpoint keep the
    /// old one.
    #[must_use]
    pub fn with_endpoints(mut self, endpoints: impl IntoIterator<Item = Endpoint>) -> Self {
        for (own, endpoint) in self.endpoints.iter_mut().zip(endpoints) {
            *own = endpoint;
        }
        self
    }

    /// Puts run folders and sessions into this folder. The default is `runs`.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// Limits what each run may use.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Fixes the seed of every draw. Otherwise each run has a seed of its own, which is recorded.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Runs the protocol on a prompt, to its end.
    ///
    /// In a session, the agents see its earlier questions and agreements, and this run is added to it. A run without
    /// agreement is also a result, not an error.
    ///
    /// # Errors
    ///
    /// [`RunError`].
    pub async fn run(&self, prompt: &str, session_id: Option<&str>) -> Result<RunResult, RunError> {
        let session = session_id.map(|id| Session::open(&self.folder, id)).transpose()?;
        let document = session.as_ref().map(|session| session.document(false)).transpose()?;
        let documents = document.flatten().into_iter().collect();
        let task = Task { prompt: prompt.trim().to_owned(), documents, is_searched: false };
        let id = RunId::new();
        let setup = self.named.setup(task, self.seed.unwrap_or(id.seed()));
        let builder = RunBuilder::new(setup)?.in_session(session.as_ref().map(Session::place));
        let prepared = builder.build(self.endpoints.clone(), self.limits);
        let dir = self.folder.join(id.to_string());
        let mut engine = Engine::start(&dir, &id.to_string(), prepared, &())?;
        // Nothing asks the run to stop.
        let (_stopper, stop) = watch::channel(StopRequest::None);
        let FinishedRun { result, written, .. } = drive(&mut engine, stop, &dir).await?;
        written?;
        if let Some(mut session) = session {
            session.add(engine.state().opened(), &result)?;
        }
        Ok(result)
    }
}
