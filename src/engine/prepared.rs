//! A run before it starts, complete: its first record, and the tools that it uses while it runs.
//!
//! In: a setup, and then, one by one, the other parts of the run. Out: a [`PreparedRun`], which is all that
//! [`Engine::start`](super::Engine::start) takes. The setup is checked here, and once more as a record by the
//! [`RunState`](super::RunState), which trusts none. A record that promises documents or redaction cannot be made
//! without them. Nothing is read, written or asked here.

use std::time::Instant;

use super::{EngineError, Redaction};
use crate::core::{Endpoint, PROGRAM};
use crate::journal::{InBatch, InSession, Library, Limits, RunSpec};
use crate::protocol::{BadSetup, ChunkPlan, RunSetup};
use crate::provider::launch::Lifeline;
use crate::retrieval::Corpus;

/// A run whose servers are not known yet.
#[derive(Debug)]
pub struct RunBuilder {
    setup: RunSetup,
    library: Option<Library>,
    session: Option<InSession>,
    cell: Option<InBatch>,
    tools: Tools,
}

/// A run that is ready to start.
#[derive(Debug)]
pub struct PreparedRun {
    pub(super) spec: RunSpec,
    pub(super) tools: Tools,
}

/// The tools that a run uses while it runs; its record does not hold them.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// The documents to search.
    pub(super) corpus: Option<Corpus>,
    /// The table by which the setup was redacted, for what is found in documents.
    pub(super) redaction: Option<Redaction>,
    /// How the server is doing that was launched for the run.
    pub(super) lifeline: Option<Lifeline>,
    /// From when on a deadline counts.
    pub(super) began: Option<Instant>,
}

impl Tools {
    /// Writes the table of what was redacted, if there is one, into its folder.
    pub(super) fn save_redactions(&mut self) -> Result<(), EngineError> {
        let Some(redaction) = &mut self.redaction else { return Ok(()) };
        redaction.save_in_its_folder().map_err(|source| redaction.unwritten(source))
    }
}

impl RunBuilder {
    /// Takes the setup of a run.
    ///
    /// # Errors
    ///
    /// [`BadSetup`] if there can be no such run.
    pub fn new(setup: RunSetup) -> Result<Self, BadSetup> {
        setup.check()?;
        Ok(Self { setup, library: None, session: None, cell: None, tools: Tools::default() })
    }

    /// Returns the setup as it is by now.
    #[must_use]
    pub fn setup(&self) -> &RunSetup {
        &self.setup
    }

    /// Whether tokens stand in place of what must not leave the machine.
    #[must_use]
    pub fn is_redacted(&self) -> bool {
        self.tools.redaction.is_some()
    }

    /// Puts tokens in place of what must not leave the machine, here and in what the run will find.
    #[must_use]
    pub fn with_redaction(mut self, mut redaction: Redaction) -> Self {
        self.setup = redaction.setup(self.setup);
        self.library = self.library.map(|library| redaction.library(library));
        self.tools.redaction = Some(redaction);
        self
    }

    /// Lets the run search documents; `library` says which.
    #[must_use]
    pub fn with_corpus(mut self, corpus: Corpus, library: Library) -> Self {
        self.library = Some(match &mut self.tools.redaction {
            Some(redaction) => redaction.library(library),
            None => library,
        });
        self.tools.corpus = Some(corpus);
        self
    }

    /// Has the documents read in pieces.
    ///
    /// # Errors
    ///
    /// [`BadSetup`] if the plan does not fit the task, or its protocol reads no pieces.
    pub fn with_chunks(mut self, plan: ChunkPlan) -> Result<Self, BadSetup> {
        self.setup.chunk_plan = Some(plan);
        self.setup.check()?;
        Ok(self)
    }

    /// Says at which place of which session the run begins.
    #[must_use]
    pub fn in_session(mut self, place: Option<InSession>) -> Self {
        self.session = place;
        self
    }

    /// Says which cell of a batch the run is.
    #[must_use]
    pub fn in_cell(mut self, cell: InBatch) -> Self {
        self.cell = Some(cell);
        self
    }

    /// Says where each agent's model is called, the arbiter's last, and what the run may use: it is ready.
    #[must_use]
    pub fn build(self, endpoints: Vec<Endpoint>, limits: Limits) -> PreparedRun {
        let Self { setup, library, session, cell, tools } = self;
        let (program, redacted) = (PROGRAM.to_owned(), tools.redaction.is_some());
        let spec = RunSpec { program, setup, endpoints, limits, library, redacted, session, cell };
        PreparedRun { spec, tools }
    }
}

impl PreparedRun {
    /// Returns what the run will record that it starts from.
    #[must_use]
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Lets calls to a server that was launched for the run know how it is doing.
    #[must_use]
    pub fn on_server(mut self, lifeline: Option<Lifeline>) -> Self {
        self.tools.lifeline = lifeline;
        self
    }

    /// Counts the deadline from an earlier moment than the start, such as that of the program.
    #[must_use]
    pub fn counted_from(mut self, began: Instant) -> Self {
        self.tools.began = Some(began);
        self
    }
}

/// How a run is taken up again: its changes, and its tools.
#[derive(Debug, Default)]
pub struct Resumption {
    pub(super) limits: Option<Limits>,
    pub(super) endpoints: Option<Vec<Endpoint>>,
    pub(super) library: Option<Library>,
    pub(super) tools: Tools,
}

impl Resumption {
    /// Takes the run up with other limits, and models that are called elsewhere; the default leaves both as they were.
    #[must_use]
    pub fn new(limits: Limits, endpoints: Vec<Endpoint>) -> Self {
        Self { limits: Some(limits), endpoints: Some(endpoints), ..Self::default() }
    }

    /// Lends the run the table by which it was redacted.
    #[must_use]
    pub fn with_redaction(mut self, redaction: Option<Redaction>) -> Self {
        self.tools.redaction = redaction;
        self
    }

    /// Lends the run its documents again; `library` says which, as the record is to say it.
    #[must_use]
    pub fn with_corpus(mut self, corpus: Corpus, library: Library) -> Self {
        (self.tools.corpus, self.library) = (Some(corpus), Some(library));
        self
    }

    /// As [`PreparedRun::on_server`].
    #[must_use]
    pub fn on_server(mut self, lifeline: Option<Lifeline>) -> Self {
        self.tools.lifeline = lifeline;
        self
    }

    /// As [`PreparedRun::counted_from`].
    #[must_use]
    pub fn counted_from(mut self, began: Instant) -> Self {
        self.tools.began = Some(began);
        self
    }
}
