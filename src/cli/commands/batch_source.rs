//! The source of a batch's tasks: a file, a pipe or standard input.

use std::path::{Path, PathBuf};

use crate::batch::DataNote;
use crate::cli::error::UsageError;

/// A source of tasks.
pub(super) struct OpenTasks {
    pub(super) source: Box<dyn std::io::Read + Send>,
    /// The manifest's note about the source and the number of its lines, if it is a file.
    pub(super) data: Option<DataNote>,
    pub(super) lines: Option<u64>,
    /// The folder of the documents that the tasks name.
    pub(super) documents: PathBuf,
}

/// Opens the source of tasks.
pub(super) fn open(tasks: &Path) -> anyhow::Result<OpenTasks> {
    if tasks.as_os_str() == "-" {
        let source = Box::new(std::io::stdin());
        return Ok(OpenTasks { source, data: None, lines: None, documents: PathBuf::new() });
    }
    let wrong = |why| UsageError(format!("cannot read the tasks `{}`: {why}", tasks.display()));
    let file = std::fs::File::open(tasks).map_err(wrong)?;
    let about = file.metadata().map_err(wrong)?;
    if about.is_dir() {
        return Err(wrong(std::io::ErrorKind::IsADirectory.into()).into());
    }
    let documents = tasks.parent().map(Path::to_owned).unwrap_or_default();
    // A pipe can be read only once.
    let (data, lines) = about.is_file().then(|| DataNote::read(tasks)).transpose().map_err(wrong)?.unzip();
    Ok(OpenTasks { source: Box::new(file), data, lines, documents })
}
