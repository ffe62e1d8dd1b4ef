//! The reading of a task, from the place where it was given, and the index of the documents that it searches.
//!
//! Standard input is read at most once, and no text is longer than a run can hold.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use super::error::RunError;
use super::piped;
use super::reporter::Reporter;
use crate::config::cache_folder;
use crate::journal::Library;
use crate::retrieval::{Corpus, IndexUpdate, PdfReader, RetrievalError};
use protocol::text::escape;
use protocol::{Document, Task};

/// The message for a missing task.
const NO_TASK: &str =
    "there is no task; give it as an argument, with --prompt TEXT, with --prompt-file FILE, or on stdin";

/// The name of a document that was read from stdin.
pub(super) const STDIN: &str = "stdin";

/// The largest document, in bytes.
const DOCUMENT_BYTES_MAX: u64 = 16 << 20;

/// The source of a task.
#[derive(Clone, Debug, Default)]
pub struct TaskSource {
    /// The question or order; `-` means standard input.
    pub prompt: Option<String>,
    /// The question or order in words, as a shell has split it.
    pub words: Vec<String>,
    /// A file that holds the question or order.
    pub prompt_file: Option<PathBuf>,
    /// The documents; `-` means standard input.
    pub files: Vec<PathBuf>,
}

impl TaskSource {
    /// Reads the task; without a prompt and a file it comes from standard input. Beside a prompt, data on standard input is a document.
    ///
    /// Returns [`RunError::Usage`] if there is no task, or a file cannot be read.
    pub fn read(&self) -> Result<Task, RunError> {
        let given = self.typed_task()?;
        let wants_stdin = usize::from(given.as_ref().is_some_and(|text| text == "-"))
            + usize::from(given.is_none() && self.prompt_file.is_none())
            + self.files.iter().filter(|path| path.as_os_str() == "-").count();
        if wants_stdin > 1 {
            let why = "stdin can be read only once, as the task or as one document";
            return Err(RunError::Usage(why.to_owned()));
        }
        let prompt = match (given.as_deref(), &self.prompt_file) {
            (Some("-"), _) => read_stdin()?,
            (Some(text), _) => text.to_owned(),
            (None, Some(path)) => read(path)?,
            (None, None) if std::io::stdin().is_terminal() => String::new(),
            (None, None) => read_stdin()?,
        };
        if prompt.trim().is_empty() {
            let is_given = given.is_some() || self.prompt_file.is_some();
            let why = if is_given { "the task is empty" } else { NO_TASK };
            return Err(RunError::Usage(why.to_owned()));
        }
        let mut documents: Vec<Document> = Vec::new();
        if wants_stdin == 0 && piped::has_document()? {
            documents.push(read_document(Path::new("-"))?);
        }
        for path in &self.files {
            let mut read = read_document(path)?;
            // Two files with the same name need different document names.
            if documents.iter().any(|known| known.name == read.name) {
                read.name = path.display().to_string();
            }
            documents.push(read);
        }
        Ok(Task { prompt: prompt.trim().to_owned(), documents, is_searched: false })
    }

    /// Returns the task if it was typed. Joins several words, unless one of them is a file that a flag has not taken.
    fn typed_task(&self) -> Result<Option<String>, RunError> {
        let words = match self.words.as_slice() {
            [] => return Ok(self.prompt.clone()),
            // A question of one word has no dot; a file name has one, or a folder before it.
            [one] if !one.contains(['.', '/']) => return Ok(Some(one.clone())),
            words => words,
        };
        if words.iter().any(|word| word == "-") {
            let why = "`-` is the task from stdin, and a task was typed as well; give stdin as a document with `-f -`";
            return Err(RunError::Usage(why.to_owned()));
        }
        match words.iter().find(|word| Path::new(word).is_file()) {
            Some(file) => Err(RunError::Usage(format!(
                "`{file}` is a file; give each file with its own -f, or put the task in quotes"
            ))),
            None => Ok(Some(words.join(" "))),
        }
    }
}

fn read_document(path: &Path) -> Result<Document, RunError> {
    if path.as_os_str() == "-" {
        return Ok(Document { name: STDIN.to_owned(), text: read_stdin()?.into(), redacted: false });
    }
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("document").to_owned();
    Ok(Document { name, text: read(path)?.into(), redacted: false })
}

fn read_stdin() -> Result<String, RunError> {
    read_limited(std::io::stdin(), "stdin")
}

/// Reads a text file that is not too long for a run.
pub(super) fn read(path: &Path) -> Result<String, RunError> {
    let name = format!("`{}`", path.display());
    let file = std::fs::File::open(path).map_err(|e| RunError::Usage(format!("{name}: {e}")))?;
    read_limited(file, &name)
}

fn read_limited(source: impl Read, name: &str) -> Result<String, RunError> {
    let mut bytes = Vec::new();
    source
        .take(DOCUMENT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|why| RunError::Usage(format!("{name}: {why}")))?;
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        let why = format!("{name}: more than {DOCUMENT_BYTES_MAX} bytes do not fit into a run");
        return Err(RunError::Usage(why));
    }
    String::from_utf8(bytes).map_err(|_| RunError::Usage(format!("{name}: it is not UTF-8 text")))
}

/// Opens the index of these places, and brings it up to date. Returns `None` if there are no places.
///
/// The index is read on a separate thread, so that signals are still handled.
///
/// Returns [`RunError::Retrieval`], [`RunError::OwnFile`] or [`RunError::Thread`].
pub async fn open_documents(
    places: &[PathBuf],
    reporter: &dyn Reporter,
) -> Result<Option<(Corpus, Library)>, RunError> {
    if places.is_empty() {
        return Ok(None);
    }
    let owned = places.to_owned();
    let opened = tokio::task::spawn_blocking(move || open_index(&owned)).await;
    let (corpus, updated) = opened.map_err(RunError::Thread)??;
    reporter.status(&format!(
        "documents: {} passages in {} files, {} of them read now",
        updated.passages, updated.files, updated.read
    ));
    let skipped = updated.skipped.iter();
    let lost: Vec<String> = skipped.map(|file| format!("{}: {}", file.path.display(), file.why)).collect();
    for line in &lost {
        reporter.status(&format!("left out {}", escape::terminal(line)));
    }
    let places = places.iter().map(|place| place.canonicalize().unwrap_or_else(|_| place.clone())).collect();
    Ok(Some((corpus, Library { places, lost, sha256: Some(updated.sha256) })))
}

fn open_index(places: &[PathBuf]) -> Result<(Corpus, IndexUpdate), RunError> {
    let cache = cache_folder().ok_or(RetrievalError::NoCache)?.join("index");
    let program = std::env::current_exe().map_err(RunError::OwnFile)?;
    Ok(Corpus::open(places, &cache, &PdfReader::Apart(program))?)
}
