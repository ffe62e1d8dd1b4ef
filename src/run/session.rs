//! What was asked and agreed on before, for the next run to know.
//!
//! In: a folder and a name. Out: a document for a task, and one more line for each run. A session is a file of JSON
//! lines that only grows; its agreed answers enter a prompt as a document, which is data and no instruction.
//!
//! A run records which lines it was given, and its own line follows from its record. So the two are compared with each
//! other, and a line that a crash has kept from the session is added when the run is resumed. Of a run that was put down
//! and resumed the last line counts. A last line without its line break is what a crash leaves; it does not count, and
//! the next line takes its place.
//!
//! The line of a redacted run holds its tokens. Each run has tokens of its own, and so the originals come back by the table
//! of the run that wrote the line, in memory alone, and the next run replaces them anew, wherever they stand and whatever it
//! looks for itself. A run that is not redacted is not given them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::crypto::{Digest, Hasher};
use crate::engine::Redaction;
use crate::files::{LARGE_BYTES_MAX, check_own, private_folder, read, write_whole};
use crate::journal::{InSession, REDACTIONS_FILE, RunSpec, SESSIONS_FOLDER};
use crate::protocol::{Document, Outcome};
use crate::report::RunResult;
use crate::text::escape;
use crate::text::redact::{Originals, Redactions};

/// The name of the document that tells a run what was agreed on before it.
pub const SESSION_DOCUMENT: &str = "earlier in this session";

/// The longest context, in characters: about 3000 tokens. What is older is left out first.
const CONTEXT_CHARS_MAX: usize = 12_000;

/// Why a session cannot be used.
#[derive(Debug, Error)]
pub enum SessionError {
    /// A name that is no file's.
    #[error("`{0}` is no session's name: letters, digits, `-` and `_`, 64 at most")]
    Name(String),
    /// The name of a session that was deleted.
    #[error(
        "the session `{0}` was deleted, and the records of its runs name it; give the new one another name"
    )]
    Forgotten(String),
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
    /// The session and the record of one of its runs contradict each other.
    #[error("the session `{path}` and the run's record contradict each other: {why}")]
    Contradicts {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A run that would send what an earlier one has kept back.
    #[error(
        "the session `{path}` has runs with --redact, and what they kept back would be sent; give --redact, or another --session"
    )]
    Private {
        /// The file.
        path: PathBuf,
    },
    /// A table without which the tokens of a run mean nothing.
    #[error(
        "the session `{path}` needs the table of redactions of its run {run}: {why}; use another --session"
    )]
    Redactions {
        /// The file.
        path: PathBuf,
        /// The run.
        run: String,
        /// What is wrong.
        why: String,
    },
}

/// What a session says of a run that is one of its own, as far as its record does not contradict it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionSays {
    /// Nothing is known: the session's file is not there.
    NoFile,
    /// Nothing contradicts the record, but a table of redactions cannot be read, so that what the run was given is not compared.
    NoTable,
    /// The session has no line of the run.
    Nothing,
    /// The session says how the run was put down, and the run was resumed since then.
    Earlier,
    /// The session says how the run has ended.
    Same,
}

/// One run of a session.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Exchange {
    run: String,
    prompt: String,
    outcome: String,
    /// What was agreed on.
    text: Option<String>,
    /// Whether tokens stand in both in place of what must not leave the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
}

/// A question of a session, and what came of it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct SessionTurn {
    /// The run's id.
    pub run: String,
    /// What was asked.
    pub prompt: String,
    /// How the run ended, by the name of its outcome.
    pub outcome: String,
    /// What was agreed on.
    pub text: Option<String>,
}

/// Returns the names of all sessions among the runs in `folder`; the one that was used last comes first.
#[must_use]
pub fn session_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join(SESSIONS_FOLDER)).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.strip_suffix(".jsonl")?.to_owned();
            let about = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((about.modified().ok(), name))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, name)| name).collect()
}

/// Returns the path of the file that says that a session was deleted.
fn forgotten(path: &Path) -> PathBuf {
    path.with_extension("deleted")
}

/// The whole lines of a session's file.
#[derive(Clone, Debug)]
struct Lines {
    exchanges: Vec<Exchange>,
    /// Digest of all lines before each one, and of all lines at last.
    heads: Vec<Digest>,
    /// How many bytes they have.
    bytes: u64,
}

/// A session: a row of runs, each of which knows what was agreed on before it.
#[derive(Clone, Debug)]
pub struct Session {
    name: String,
    path: PathBuf,
    is_there: bool,
    lines: Lines,
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
            return Err(SessionError::Name(escape::excerpt(name)));
        }
        let path = folder.join(SESSIONS_FOLDER).join(format!("{name}.jsonl"));
        if let Err(source) = check_own(&path) {
            return Err(SessionError::File { path, source });
        }
        if forgotten(&path).exists() {
            return Err(SessionError::Forgotten(name.to_owned()));
        }
        let bytes = match read(&path, LARGE_BYTES_MAX) {
            Ok(bytes) => Some(bytes),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(SessionError::File { path, source }),
        };
        let lines = Lines::read(bytes.as_deref().unwrap_or_default(), &path)?;
        Ok(Self { name: name.to_owned(), path, is_there: bytes.is_some(), lines })
    }

    /// Returns what was asked and agreed on so far, the latest last; none, if nothing was. It holds originals in place of
    /// tokens, for a run that is redacted itself.
    ///
    /// # Errors
    ///
    /// [`SessionError::Private`] if a run has tokens and this one is to have none, and [`SessionError::Redactions`].
    pub fn document(&self, is_redacted: bool) -> Result<Option<Document>, SessionError> {
        if !is_redacted && self.lines.exchanges.iter().any(|exchange| exchange.redacted) {
            return Err(SessionError::Private { path: self.path.clone() });
        }
        self.document_of(&self.lines.exchanges)
    }

    /// Returns what earlier runs have kept back, as far as their tables are there: a run that is told of them keeps it back as
    /// well, wherever it stands.
    #[must_use]
    pub fn originals(&self) -> Originals {
        let mut all = Originals::default();
        let runs = self.lines.exchanges.iter().filter(|exchange| exchange.redacted);
        for run in runs.map(|exchange| &exchange.run).collect::<BTreeSet<_>>() {
            // What is told of a run whose table is gone is refused before.
            self.redactions(run).into_iter().for_each(|redactions| all.extend(redactions.originals()));
        }
        all
    }

    /// Whether it has a file.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// When its last run was added; none, if the file system does not say it.
    #[must_use]
    pub fn used_at(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.path).and_then(|about| about.modified()).ok()
    }

    /// Returns what was asked, the latest last, each run once. Originals stand in place of tokens, where the tables of their runs are
    /// there.
    #[must_use]
    pub fn turns(&self) -> Vec<SessionTurn> {
        let exchanges = &self.lines.exchanges;
        let is_last = |(at, exchange): &(usize, &Exchange)| {
            exchanges[at + 1..].iter().all(|later| later.run != exchange.run)
        };
        let turn = |(_, exchange): (usize, &Exchange)| {
            let Exchange { run, prompt, outcome, text, redacted } = exchange;
            let table = redacted.then(|| self.redactions(run).ok()).flatten();
            let restored = |text: &String| match &table {
                Some(table) => table.restore(text),
                None => text.clone(),
            };
            SessionTurn {
                run: run.clone(),
                prompt: restored(prompt),
                outcome: outcome.clone(),
                text: text.as_ref().map(restored),
            }
        };
        exchanges.iter().enumerate().filter(is_last).map(turn).collect()
    }

    /// Removes the questions and answers; the records of the runs stay. The name is not used again: those records say what the session
    /// held, and another session of that name would contradict them.
    ///
    /// # Errors
    ///
    /// [`SessionError::File`].
    pub fn delete(self) -> Result<(), SessionError> {
        let Self { path, .. } = self;
        let done = write_whole(&forgotten(&path), "", 0o600).and_then(|()| std::fs::remove_file(&path));
        done.map_err(|source| SessionError::File { path, source })
    }

    /// Makes the document of what was asked and agreed on. Its form stands in records, which are compared with it: it is not to
    /// change.
    fn document_of(&self, exchanges: &[Exchange]) -> Result<Option<Document>, SessionError> {
        let mut parts: Vec<String> = Vec::new();
        let mut known = BTreeSet::new();
        let mut left = CONTEXT_CHARS_MAX;
        for exchange in exchanges.iter().rev() {
            let Exchange { run, prompt, text, redacted, .. } = exchange;
            // Of a run that was resumed the last line counts.
            let is_last = known.insert(run);
            let Some(text) = text.as_ref().filter(|_| is_last) else { continue };
            let part = format!("Asked: {prompt}\nAgreed on: {text}");
            let part = if *redacted { self.redactions(run)?.restore(&part) } else { part };
            let chars = part.chars().count();
            if chars > left {
                break;
            }
            left -= chars;
            parts.push(part);
        }
        parts.reverse();
        let name = SESSION_DOCUMENT.to_owned();
        let document = || Document { name, text: parts.join("\n\n").into(), redacted: false };
        Ok((!parts.is_empty()).then(document))
    }

    /// Reads the table of redactions of a run of this session.
    fn redactions(&self, run: &str) -> Result<Redactions, SessionError> {
        let wrong = |why: String| SessionError::Redactions {
            path: self.path.clone(),
            run: escape::excerpt(run),
            why,
        };
        let id: Uuid = run.parse().map_err(|_| wrong("it is no run's id".to_owned()))?;
        let folder = self.path.parent().and_then(Path::parent).unwrap_or(Path::new("."));
        let redaction = Redaction::load(folder.join(id.to_string()).join(REDACTIONS_FILE)).map_err(wrong)?;
        Ok(redaction.redactions().clone())
    }

    /// Returns what a run records of the session that it begins in now.
    #[must_use]
    pub fn place(&self) -> InSession {
        InSession { name: self.name.clone(), head: self.lines.head() }
    }

    /// Adds a run that has ended or was put down, unless the session says so already.
    ///
    /// # Errors
    ///
    /// [`SessionError::File`], and [`SessionError::Damaged`] if the file was damaged since it was opened.
    pub fn add(&mut self, spec: &RunSpec, result: &RunResult) -> Result<(), SessionError> {
        let exchange = Exchange {
            run: result.run.clone(),
            prompt: spec.setup.task.prompt.trim().to_owned(),
            outcome: result.outcome.name().to_owned(),
            text: result.text.clone(),
            redacted: spec.redacted,
        };
        let io = |source| SessionError::File { path: self.path.clone(), source };
        let mut file = self.lock().map_err(io)?;
        // Other runs may have added to it since it was opened.
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let mut lines = Lines::read(&bytes, &self.path)?;
        if lines.exchanges.iter().rfind(|known| known.run == exchange.run) != Some(&exchange) {
            // Plain data, which always has a JSON form.
            let line = serde_json::to_string(&exchange).unwrap_or_default() + "\n";
            let is_torn = (bytes.len() as u64) > lines.bytes;
            let cut = || if is_torn { file.set_len(lines.bytes) } else { Ok(()) };
            cut().and_then(|()| (&file).write_all(line.as_bytes())).map_err(io)?;
            bytes.truncate(usize::try_from(lines.bytes).unwrap_or(usize::MAX));
            bytes.extend(line.as_bytes());
            lines = Lines::read(&bytes, &self.path)?;
        }
        // A line that is there may be of a process that died before it was durable.
        file.sync_data().map_err(io)?;
        (self.lines, self.is_there) = (lines, true);
        Ok(())
    }

    /// Opens the file, which is made if there is none; no other run adds to it as long as it is open.
    fn lock(&self) -> std::io::Result<File> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        private_folder(folder)?;
        check_own(&self.path)?;
        let file = File::options().read(true).create(true).append(true).mode(0o600).open(&self.path)?;
        file.lock()?;
        if forgotten(&self.path).exists() {
            // It was deleted while this run was under way, and stays so.
            std::fs::remove_file(&self.path)?;
            return Err(std::io::Error::other("the session was deleted during this run"));
        }
        if !self.is_there {
            File::open(folder)?.sync_all()?;
        }
        Ok(file)
    }

    /// Compares what the session holds with the record of a run of it: what the run was given, and how it ended. `ends` are the
    /// ends in the record, the last one last; after a resume a run has none that counts until it ends again.
    ///
    /// # Errors
    ///
    /// [`SessionError::Contradicts`] says what differs.
    pub fn says_of(
        &self,
        run: &str,
        opened: &RunSpec,
        ends: &[&Outcome],
        has_ended: bool,
    ) -> Result<SessionSays, SessionError> {
        let Some(place) = opened.session.as_ref().filter(|_| self.is_there) else {
            return Ok(SessionSays::NoFile);
        };
        let contradicts = |why: String| Err(SessionError::Contradicts { path: self.path.clone(), why });
        let Lines { exchanges, heads, .. } = &self.lines;
        let Some(seen) = heads.iter().position(|head| *head == place.head) else {
            return contradicts("the lines that the run was begun with are not in it any more".to_owned());
        };
        let was_given = match self.was_given(run, opened, &exchanges[..seen]) {
            Ok(was_given) => Some(was_given),
            Err(SessionError::Redactions { .. }) => None,
            Err(why) => return Err(why),
        };
        if was_given == Some(false) {
            return contradicts("the run was given another text than its lines of that time make".to_owned());
        }
        let says = |exchange: &Exchange, end: &Outcome| {
            let text = match end {
                Outcome::Agreed { text, .. } => Some(text),
                Outcome::NoAgreement { .. }
                | Outcome::Vetoed { .. }
                | Outcome::Budget { .. }
                | Outcome::Failed { .. }
                | Outcome::Interrupted => None,
            };
            exchange.outcome == end.name() && exchange.text.as_ref() == text
        };
        let mut last = SessionSays::Nothing;
        for (index, exchange) in exchanges.iter().enumerate().filter(|(_, known)| known.run == run) {
            let is_asked = exchange.prompt == opened.setup.task.prompt.trim();
            if index < seen || !is_asked || !ends.iter().any(|end| says(exchange, end)) {
                return contradicts(format!("its line {} is not what the record leads to", index + 1));
            }
            let is_last = has_ended && ends.last().is_some_and(|end| says(exchange, end));
            last = if is_last { SessionSays::Same } else { SessionSays::Earlier };
        }
        Ok(if was_given.is_none() { SessionSays::NoTable } else { last })
    }

    /// Whether a run was given what these lines make, with originals in place of the tokens of each.
    fn was_given(&self, run: &str, opened: &RunSpec, lines: &[Exchange]) -> Result<bool, SessionError> {
        let documents = &opened.setup.task.documents;
        let given = documents.iter().filter(|document| document.name == SESSION_DOCUMENT);
        let mut given: Vec<Document> = given.cloned().collect();
        if opened.redacted && !given.is_empty() {
            let redactions = self.redactions(run)?;
            for document in &mut given {
                (document.text, document.redacted) = (redactions.restore(&document.text).into(), false);
            }
        }
        Ok(given.iter().eq(self.document_of(lines)?.iter()))
    }
}

impl Lines {
    fn read(bytes: &[u8], path: &Path) -> Result<Self, SessionError> {
        let mut hasher = Hasher::default();
        let mut lines = Self { exchanges: Vec::new(), heads: vec![hasher.finish()], bytes: 0 };
        for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            let read = serde_json::from_slice(line);
            lines.exchanges.push(read.map_err(|why| SessionError::Damaged {
                path: path.to_owned(),
                line: lines.exchanges.len() + 1,
                why: why.to_string(),
            })?);
            lines.heads.push(hasher.part(line).finish());
            lines.bytes += line.len() as u64;
        }
        Ok(lines)
    }

    fn head(&self) -> Digest {
        self.heads.last().copied().unwrap_or(Digest::ZERO)
    }
}
