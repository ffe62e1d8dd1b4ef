//! A run before it starts, complete: its first record, and the tools that it uses while it runs.
//!
//! A [`RunBuilder`] takes the parts of the run one by one, and makes a [`PreparedRun`], which is all that
//! [`Engine::start`](super::Engine::start) takes. The setup is checked here, and once more as a record by
//! the [`RunState`](super::RunState), which trusts no record. A record that promises documents or redaction cannot be
//! made without them. Nothing is read, written or called here.

use std::time::Instant;

use super::{EngineError, Redaction};
use crate::calibration::AppliedCalibration;
use crate::journal::{InBatch, InSession, Library, Limits, RunSpec};
use crate::program::PROGRAM;
use crate::provider::launch::{LaunchedServer, Lifeline};
use crate::retrieval::Corpus;
use crate::sandbox::Sandbox;
use protocol::core::Endpoint;
use protocol::pacing::BudgetRuling;
use protocol::{BadSetup, ChunkPlan, Override, ProtocolParams as _, RunSetup, TalkForm};

/// A run whose servers are not known yet, while its parts are put together.
#[derive(Debug)]
pub struct RunBuilder {
    setup: RunSetup,
    library: Option<Library>,
    calibration: Option<AppliedCalibration>,
    session: Option<InSession>,
    cell: Option<InBatch>,
    tools: Tools,
}

/// A run that is complete, between its preparation and its start.
#[derive(Debug)]
pub struct PreparedRun {
    pub(super) spec: RunSpec,
    pub(super) tools: Tools,
}

/// The tools that a run uses while it runs. They are not part of its record.
#[derive(Debug, Default)]
pub(super) struct Tools {
    pub(super) corpus: Option<Corpus>,
    /// The table by which the setup was redacted. It also redacts the passages found in documents.
    pub(super) redaction: Option<Redaction>,
    /// The means to run the user's check.
    pub(super) sandbox: Option<Sandbox>,
    /// The server that was launched for this run, and ends with it.
    pub(super) server: Option<LaunchedServer>,
    /// The lifeline of the server that was launched for the run, or for several runs.
    pub(super) lifeline: Option<Lifeline>,
    /// The moment from which a deadline counts.
    pub(super) began: Option<Instant>,
}

impl Tools {
    fn launch_on(&mut self, server: Option<LaunchedServer>) {
        self.lifeline = server.as_ref().map(LaunchedServer::lifeline);
        self.server = server;
    }

    /// Writes the table of redactions, if there is one, into its folder.
    pub(super) fn save_redactions(&mut self) -> Result<(), EngineError> {
        let Some(redaction) = &mut self.redaction else { return Ok(()) };
        redaction.save_in_its_folder().map_err(|source| redaction.write_error(source))
    }
}

impl RunBuilder {
    /// Starts from the setup of a run.
    ///
    /// Returns [`BadSetup`] if no run can have this setup.
    pub fn new(setup: RunSetup) -> Result<Self, BadSetup> {
        setup.check()?;
        let tools = Tools::default();
        Ok(Self { setup, library: None, calibration: None, session: None, cell: None, tools })
    }

    pub fn setup(&self) -> &RunSetup {
        &self.setup
    }

    /// Returns true if tokens replace the texts that must not leave the machine.
    pub fn is_redacted(&self) -> bool {
        self.tools.redaction.is_some()
    }

    /// Replaces the texts that must not leave the machine by tokens, here and in the passages that the run will find.
    pub fn with_redaction(mut self, mut redaction: Redaction) -> Self {
        self.setup = redaction.setup(self.setup);
        self.library = self.library.map(|library| redaction.library(library));
        self.tools.redaction = Some(redaction);
        self
    }

    /// Lets the run search documents; `library` describes them.
    pub fn with_corpus(mut self, corpus: Corpus, library: Library) -> Self {
        self.library = Some(match &mut self.tools.redaction {
            Some(redaction) => redaction.library(library),
            None => library,
        });
        self.tools.corpus = Some(corpus);
        self
    }

    /// Changes a parameter of the protocol.
    ///
    /// Returns [`BadSetup`] if no run can have this setup.
    pub fn with_change(mut self, change: &Override) -> Result<Self, BadSetup> {
        self.setup.params.apply(change);
        self.setup.check()?;
        Ok(self)
    }

    /// Makes the run read the documents in pieces.
    ///
    /// Returns [`BadSetup`] if the plan does not fit the task, or if the protocol cannot read pieces.
    pub fn with_chunks(mut self, plan: ChunkPlan) -> Result<Self, BadSetup> {
        self.setup.chunk_plan = Some(plan);
        // What readers find in a piece is never found twice in the same words, so it is talked about.
        self.setup.params.apply(&Override::Talk(TalkForm::Always));
        self.setup.check()?;
        Ok(self)
    }

    /// Gives the answer a confidence by this calibration, which may withhold it.
    pub fn with_calibration(mut self, calibration: Option<AppliedCalibration>) -> Self {
        self.calibration = calibration;
        self
    }

    /// Sets the session that the run belongs to, and the place in it where the run begins.
    pub fn in_session(mut self, place: Option<InSession>) -> Self {
        self.session = place;
        self
    }

    /// Sets the cell of a batch that the run belongs to.
    pub fn in_cell(mut self, cell: InBatch) -> Self {
        self.cell = Some(cell);
        self
    }

    /// Finishes the run with the endpoint of each agent's model, the arbiter's last, and with its limits.
    pub fn build(self, endpoints: Vec<Endpoint>, limits: Limits) -> PreparedRun {
        let Self { setup, library, calibration, session, cell, tools } = self;
        let (program, redacted) = (PROGRAM.to_owned(), tools.redaction.is_some());
        let spec =
            RunSpec { program, setup, endpoints, limits, library, redacted, calibration, session, cell };
        PreparedRun { spec, tools }
    }
}

impl PreparedRun {
    /// Returns the specification that the run will record.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Lends the run the means to run the user's check.
    pub fn with_sandbox(mut self, sandbox: Option<Sandbox>) -> Self {
        self.tools.sandbox = sandbox;
        self
    }

    /// Hands over the server that was launched for the run, and ends with it. Calls to it see its state.
    pub fn on_server(mut self, server: Option<LaunchedServer>) -> Self {
        self.tools.launch_on(server);
        self
    }

    /// Lets calls to a server that was launched for several runs see its state.
    pub fn on_shared_server(mut self, lifeline: Option<Lifeline>) -> Self {
        self.tools.lifeline = lifeline;
        self
    }

    /// Takes the server away, for a run that is resumed in place of this one.
    pub fn take_server(&mut self) -> Option<LaunchedServer> {
        self.tools.server.take()
    }

    /// Counts the deadline from a moment before the start, such as the start of the program.
    pub fn count_from(mut self, began: Instant) -> Self {
        self.tools.began = Some(began);
        self
    }
}

/// The settings for resuming a run: its changes and its tools.
#[derive(Debug, Default)]
pub struct Resumption {
    pub(super) limits: Option<Limits>,
    pub(super) endpoints: Option<Vec<Endpoint>>,
    pub(super) library: Option<Library>,
    /// The ruling of a budget on the run, if it waits for one.
    pub(super) ruling: Option<BudgetRuling>,
    pub(super) tools: Tools,
}

impl Resumption {
    /// Resumes the run with other limits, and with models that are called elsewhere. The default leaves both as they
    /// were.
    pub fn new(limits: Limits, endpoints: Vec<Endpoint>) -> Self {
        Self { limits: Some(limits), endpoints: Some(endpoints), ..Self::default() }
    }

    /// Lends the run its table of redactions.
    pub fn with_redaction(mut self, redaction: Option<Redaction>) -> Self {
        self.tools.redaction = redaction;
        self
    }

    /// Lends the run its documents again; `library` describes them for the record.
    pub fn with_corpus(mut self, corpus: Corpus, library: Library) -> Self {
        (self.tools.corpus, self.library) = (Some(corpus), Some(library));
        self
    }

    /// Gives the run the ruling that it waits for, of the budget that it shares with others.
    pub fn with_ruling(mut self, ruling: Option<BudgetRuling>) -> Self {
        self.ruling = ruling;
        self
    }

    /// Does the same as [`PreparedRun::with_sandbox`].
    pub fn with_sandbox(mut self, sandbox: Option<Sandbox>) -> Self {
        self.tools.sandbox = sandbox;
        self
    }

    /// Does the same as [`PreparedRun::on_server`].
    pub fn on_server(mut self, server: Option<LaunchedServer>) -> Self {
        self.tools.launch_on(server);
        self
    }

    /// Does the same as [`PreparedRun::on_shared_server`].
    pub fn on_shared_server(mut self, lifeline: Option<Lifeline>) -> Self {
        self.tools.lifeline = lifeline;
        self
    }

    /// Does the same as [`PreparedRun::count_from`].
    pub fn count_from(mut self, began: Instant) -> Self {
        self.tools.began = Some(began);
        self
    }
}
