//! A typed request for a run, which the flags of `run` or a program can make.
//!
//! The input and the output are the same values. Nothing is read or looked up here.

use std::path::PathBuf;

use super::calibrations::CalibrationRequest;
use super::error::RunError;
use super::parameters::ParamChanges;
use super::task::TaskSource;
use crate::config::Chosen;
use crate::journal::Limits;
use crate::sandbox::Confinement;

/// A request for one run.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// The task and its documents.
    pub task: TaskSource,
    /// The files and folders to search.
    pub docs: Vec<PathBuf>,
    /// The roleset's name or path; without one the question decides.
    pub roleset: Option<String>,
    /// A folder of rolesets that is searched first.
    pub rolesets_dir: Option<PathBuf>,
    /// The servers and models, except for the script of mock agents.
    pub servers: Chosen,
    /// The scripted agents, if they are requested.
    pub mock: MockChoice,
    /// The text that must not leave the machine.
    pub redaction: RedactRequest,
    /// The parameters that replace those of the roleset.
    pub params: ParamChanges,
    /// Whether to ignore rules that the task says in plain words.
    pub no_spoken_rules: bool,
    /// The way in which a check is run.
    pub confinement: Confinement,
    /// The members of a panel.
    pub seats: SeatRequest,
    /// The calibration that gives the answer a confidence, if there is one.
    pub calibration: Option<CalibrationRequest>,
    /// The choice of reading long documents in pieces.
    pub chunks: ChunkRequest,
    /// The session that the run belongs to.
    pub session: Option<String>,
    /// The seed of every draw.
    pub seed: u64,
    /// The limits of the run.
    pub limits: Limits,
    /// The folder of run folders.
    pub runs_dir: PathBuf,
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
    /// # Errors
    ///
    /// Returns [`RunError::Usage`], with the missing flags.
    pub fn has_answers(&self) -> Result<(), RunError> {
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

/// The members of a panel, in place of the roleset's members or in addition to them.
#[derive(Clone, Debug, Default)]
pub struct SeatRequest {
    /// The only members that take part.
    pub members: Vec<String>,
    /// The models, each with one member.
    pub models: Vec<String>,
    /// The number of copies of the first member.
    pub copies: Option<usize>,
    /// The further members.
    pub personas: Vec<String>,
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
