//! A typed request for a run, which the flags of `run` or a program can make, and the id of the run.

use std::fmt;
use std::path::PathBuf;

use uuid::Uuid;

use super::calibrations::CalibrationRequest;
use super::error::RunError;
use super::parameters::ParamChanges;
use super::task::TaskSource;
use crate::config::{Chosen, SeatRequest};
use crate::journal::Limits;
use crate::sandbox::Confinement;

/// What a person asks for, before any file is read.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// The task and its documents.
    pub task: TaskSource,
    /// The files and folders to search.
    pub docs: Vec<PathBuf>,
    /// The roleset's name or path; without one the question decides.
    pub roleset: Option<String>,
    pub settings: RolesetSettings,
    /// The way in which a check is run.
    pub confinement: Confinement,
    /// The choice of reading long documents in pieces.
    pub chunks: ChunkRequest,
    /// The session that the run belongs to.
    pub session: Option<String>,
    /// The seed of every draw.
    pub seed: u64,
    /// The folder of run folders.
    pub runs_dir: PathBuf,
}

/// What a person sets about a roleset and its models, for a run, for each run of a batch, or for a review.
#[derive(Clone, Debug, Default)]
pub struct RolesetSettings {
    /// A folder of rolesets that is searched first.
    pub rolesets_dir: Option<PathBuf>,
    /// The servers and the model, except for the script of mock agents; a batch takes several model names, separated by commas.
    pub servers: Chosen,
    /// The scripted agents, if they are requested.
    pub mock: MockChoice,
    /// The text that must not leave the machine, besides what the roleset says.
    pub redaction: RedactRequest,
    /// The parameters that replace those of the roleset.
    pub params: ParamChanges,
    /// Whether to ignore rules that a task says in plain words.
    pub no_demands: bool,
    /// The members of a panel.
    pub seats: SeatRequest,
    /// The calibration that gives answers a confidence, if there is one.
    pub calibration: Option<CalibrationRequest>,
    /// The limits of each run.
    pub limits: Limits,
}

/// A choice of scripted agents.
#[derive(Clone, Debug, Default)]
pub struct MockChoice {
    /// Whether they are requested.
    pub is_wanted: bool,
    /// A file with their script; a pipe can be read only once.
    pub script: Option<PathBuf>,
    /// The answer that they give, in place of a script.
    pub answer: Option<String>,
}

impl MockChoice {
    /// Refuses scripted agents that are requested without anything to say.
    ///
    /// Returns [`RunError::Usage`], with the missing flags.
    pub fn require_answers(&self) -> Result<(), RunError> {
        if self.is_wanted && self.answer.is_none() && self.script.is_none() {
            let why = "--mock needs --answer TEXT, or a script with --mock-script FILE";
            return Err(RunError::Usage(why.to_owned()));
        }
        Ok(())
    }
}

/// The text that must not leave the machine, in addition to the roleset's patterns.
#[derive(Clone, Debug, Default)]
pub struct RedactRequest {
    /// Whether text of the known forms is replaced.
    pub is_wanted: bool,
    /// The regular expressions for further text.
    pub patterns: Vec<String>,
}

/// The choice of whether and how long documents are read in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChunkRequest {
    /// The condition for reading in pieces.
    pub map_reduce: ReadInPieces,
    /// The most tokens of a piece, if given.
    pub tokens_max: Option<u64>,
    /// The number of pieces that are read at once.
    pub at_once: u32,
}

/// The condition for reading documents in pieces.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ReadInPieces {
    /// If they are too long for the model's context.
    #[default]
    Auto,
    /// Always, whatever their length.
    Always,
    Never,
}

/// The id of a new run. Ids are ordered by time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RunId(Uuid);

impl RunId {
    /// Makes an id that no other run has.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// Parses the id of an earlier run.
    pub fn from_text(text: &str) -> Option<Self> {
        text.trim().parse().ok().map(Self)
    }

    /// Returns the seed of a run without a given seed: the low half of an id is random. The seed is recorded.
    pub fn seed(self) -> u64 {
        self.0.as_u64_pair().1 >> 11
    }
}

impl Default for RunId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
