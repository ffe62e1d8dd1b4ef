//! A copy of the answer in a file, in addition to the printed answer.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::error::RunError;
use crate::report::RunResult;

/// The file for a copy of the answer, if one is requested.
#[derive(Debug)]
pub struct AnswerFile(Option<File>);

impl AnswerFile {
    /// Opens the file before anything is spent or started. Its content remains until [`Self::empty`], since the run may be about it.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Usage`] if the file cannot be written.
    pub fn open(path: Option<&Path>) -> Result<Self, RunError> {
        let open = |path: &Path| {
            let why = |e| RunError::Usage(format!("cannot write the answer to `{}`: {e}", path.display()));
            File::options().create(true).append(true).open(path).map_err(why)
        };
        Ok(Self(path.map(open).transpose()?))
    }

    /// Empties the file, so that a run without an answer leaves no older answer to be read. A pipe or a device has nothing to empty.
    pub fn empty(&self) -> Result<(), RunError> {
        let emptied = |file: &File| if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) };
        let emptied = self.0.as_ref().map_or(Ok(()), emptied);
        emptied.map_err(|source| RunError::Copy { action: "empty the file for", source })
    }

    /// Writes the answer, if there is one.
    pub fn write(&mut self, result: &RunResult) -> Result<(), RunError> {
        result.readable().map_or(Ok(()), |text| self.write_text(text))
    }

    pub fn write_text(&mut self, text: &str) -> Result<(), RunError> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        writeln!(file, "{text}").map_err(|source| RunError::Copy { action: "write", source })
    }
}
