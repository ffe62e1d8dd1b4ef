//! A request for a run, typed: the flags of `run` say it, and so can a program.
//!
//! In: values. Out: the same. Nothing is read or looked up here.

use std::path::PathBuf;

use super::error::RunError;
use super::parameters::ParamChanges;
use super::task::TaskSource;
use crate::config::Chosen;
use crate::journal::Limits;

/// One run, as it is wanted.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// What is asked, and with which documents.
    pub task: TaskSource,
    /// Files and folders to search.
    pub docs: Vec<PathBuf>,
    /// The roleset's name or path; without one the question chooses.
    pub roleset: Option<String>,
    /// A folder with rolesets that is searched first.
    pub rolesets_dir: Option<PathBuf>,
    /// Where models are called; the script of mock agents aside.
    pub servers: Chosen,
    /// Scripted agents, if they are wanted.
    pub mock: MockChoice,
    /// What must not leave the machine.
    pub redaction: RedactRequest,
    /// Parameters in place of the roleset's.
    pub params: ParamChanges,
    /// Whether rules that the task says in plain words are left out.
    pub no_spoken_rules: bool,
    /// Who sits on a panel.
    pub seats: SeatRequest,
    /// Whether long documents are read in pieces.
    pub chunks: ChunkRequest,
    /// The session that the run belongs to.
    pub session: Option<String>,
    /// The seed of every draw.
    pub seed: u64,
    /// What the run may use.
    pub limits: Limits,
    /// The folder of run folders.
    pub runs_dir: PathBuf,
}

/// Scripted agents.
#[derive(Clone, Debug, Default)]
pub struct MockChoice {
    /// Whether they are asked for.
    pub is_wanted: bool,
    /// A file with their script; a pipe can be read once.
    pub script: Option<PathBuf>,
    /// What they answer, in place of a script.
    pub answer: Option<String>,
}

impl MockChoice {
    /// Refuses scripted agents that are asked for and have nothing to say.
    ///
    /// # Errors
    ///
    /// [`RunError::Usage`], with the flags that are missing.
    pub fn has_answers(&self) -> Result<(), RunError> {
        if self.is_wanted && self.answer.is_none() && self.script.is_none() {
            let why = "--mock needs --answer TEXT, or a script with --mock-script FILE";
            return Err(RunError::Usage(why.to_owned()));
        }
        Ok(())
    }
}

/// What must not leave the machine, besides what the roleset says.
#[derive(Clone, Debug, Default)]
pub struct RedactRequest {
    /// Whether the known forms are replaced.
    pub is_wanted: bool,
    /// Regular expressions for more.
    pub patterns: Vec<String>,
    /// Regions whose national phone numbers are known, in place of those of the roleset or the default ones.
    pub regions: Vec<String>,
}

/// Who sits on a panel, in place of the roleset's members or besides them.
#[derive(Clone, Debug, Default)]
pub struct SeatRequest {
    /// The only members that take part.
    pub members: Vec<String>,
    /// One member for each of these models.
    pub models: Vec<String>,
    /// How many copies of the first member there are.
    pub copies: Option<usize>,
    /// Further members.
    pub personas: Vec<String>,
}

/// Whether and how long documents are read in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChunkRequest {
    /// When they are.
    pub map_reduce: ReadInPieces,
    /// Tokens of a piece at most, where that was said.
    pub tokens_max: Option<u64>,
    /// Pieces that are read at once.
    pub at_once: u32,
}

/// When documents are read in pieces.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ReadInPieces {
    /// Where they are too long for the model's context.
    #[default]
    Auto,
    /// Whatever their length is.
    Always,
    /// In no case.
    Never,
}
