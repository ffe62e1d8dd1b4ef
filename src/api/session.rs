//! What was asked and agreed on before, for the next run to know.
//!
//! In: a folder and a name. Out: a document for a task, and one more line for each run. A session is a file of JSON
//! lines that only grows; its agreed answers enter a prompt as a document, which is data and no instruction.

use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::journal::SESSIONS_FOLDER;
use crate::protocol::Document;
use crate::report::RunResult;
use crate::text::quote;

/// The longest context, in characters: about 3000 tokens. What is older is left out first.
const CONTEXT_CHARS_MAX: usize = 12_000;

/// Why a session cannot be used.
#[derive(Debug, Error)]
pub enum SessionError {
    /// A name that is no file's.
    #[error("`{0}` is no session's name: letters, digits, `-` and `_`, 64 at most")]
    Name(String),
    /// A file that cannot be read or written.
    #[error("the session `{path}` cannot be used: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// A line that is none of a session.
    #[error("the session `{path}` is damaged in line {line}: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// One run of a session.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Exchange {
    run: String,
    prompt: String,
    outcome: String,
    /// What was agreed on.
    text: Option<String>,
}

/// A session: a row of runs, each of which knows what was agreed on before it.
#[derive(Clone, Debug)]
pub struct Session {
    path: PathBuf,
    exchanges: Vec<Exchange>,
}

impl Session {
    /// Opens the session of that name among the runs in `folder`; one that is not there is new.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub fn open(folder: &Path, name: &str) -> Result<Self, SessionError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(SessionError::Name(quote::excerpt(name)));
        }
        let path = folder.join(SESSIONS_FOLDER).join(format!("{name}.jsonl"));
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(SessionError::File { path, source }),
        };
        let mut exchanges = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let read = serde_json::from_str(line);
            exchanges.push(read.map_err(|why| SessionError::Damaged {
                path: path.clone(),
                line: index + 1,
                why: why.to_string(),
            })?);
        }
        Ok(Self { path, exchanges })
    }

    /// Returns what was asked and agreed on so far, the latest last; none, if nothing was.
    #[must_use]
    pub fn document(&self) -> Option<Document> {
        let mut parts: Vec<String> = Vec::new();
        let mut left = CONTEXT_CHARS_MAX;
        for Exchange { prompt, text, .. } in self.exchanges.iter().rev() {
            let Some(text) = text else { continue };
            let part = format!("Asked: {prompt}\nAgreed on: {text}");
            let chars = part.chars().count();
            if chars > left {
                break;
            }
            left -= chars;
            parts.push(part);
        }
        parts.reverse();
        let name = "earlier in this session".to_owned();
        (!parts.is_empty()).then(|| Document { name, text: parts.join("\n\n"), redacted: false })
    }

    /// Adds a run that has ended.
    ///
    /// # Errors
    ///
    /// [`SessionError::File`].
    pub fn add(&mut self, prompt: &str, result: &RunResult) -> Result<(), SessionError> {
        let exchange = Exchange {
            run: result.run.clone(),
            prompt: prompt.trim().to_owned(),
            outcome: result.outcome.to_owned(),
            text: result.text.clone(),
        };
        // Plain data, which always has a JSON form.
        let line = serde_json::to_string(&exchange).unwrap_or_default() + "\n";
        let write = || {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let mut file: File = File::options().create(true).append(true).mode(0o600).open(&self.path)?;
            file.write_all(line.as_bytes())?;
            file.sync_data()
        };
        write().map_err(|source| SessionError::File { path: self.path.clone(), source })?;
        self.exchanges.push(exchange);
        Ok(())
    }
}
