//! A copy of the answer in a file, besides what is printed.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::error::RunError;
use crate::report::RunResult;

/// A file for the answer, if one is wanted.
#[derive(Debug)]
pub struct AnswerFile(Option<File>);

impl AnswerFile {
    /// Opens the file before anything is spent or started; what it holds stays until [`Self::empty`], since it may
    /// be what the run is about.
    ///
    /// # Errors
    ///
    /// [`RunError::Usage`] if the file cannot be written.
    pub fn open(path: Option<&Path>) -> Result<Self, RunError> {
        let open = |path: &Path| {
            let why = |e| RunError::Usage(format!("cannot write the answer to `{}`: {e}", path.display()));
            File::options().create(true).append(true).open(path).map_err(why)
        };
        Ok(Self(path.map(open).transpose()?))
    }

    /// Empties the file: without an answer there is no older one to be read. A pipe or a device has nothing to empty.
    ///
    /// # Errors
    ///
    /// [`RunError::Copy`].
    pub fn empty(&self) -> Result<(), RunError> {
        let emptied = |file: &File| if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) };
        let emptied = self.0.as_ref().map_or(Ok(()), emptied);
        emptied.map_err(|source| RunError::Copy { action: "empty the file for", source })
    }

    /// Writes the answer, if there is one.
    ///
    /// # Errors
    ///
    /// [`RunError::Copy`].
    pub fn write(&mut self, result: &RunResult) -> Result<(), RunError> {
        result.readable().map_or(Ok(()), |text| self.write_text(text))
    }

    /// Writes a text.
    ///
    /// # Errors
    ///
    /// [`RunError::Copy`].
    pub fn write_text(&mut self, text: &str) -> Result<(), RunError> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        writeln!(file, "{text}").map_err(|source| RunError::Copy { action: "write", source })
    }
}
