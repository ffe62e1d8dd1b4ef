//! The questions and agreed answers of earlier runs, for the next run to know.
//!
//! A session is a file of JSON lines that only grows. Its agreed answers enter a prompt as a document, which is data and never an
//! instruction.
//!
//! A run records which lines it was given, and its own line follows from its record. The two can therefore be compared, and a line
//! that a crash has kept from the session is added when the run is resumed. For a run that was interrupted and resumed, the last
//! line counts. A last line without a line break was left by a crash: it does not count, and the next line replaces it.
//!
//! The line of a redacted run holds its tokens. Each run has its own tokens, so the originals are restored from the table of the run
//! that wrote the line, and only in memory. The next run replaces these originals with new tokens wherever they occur, whatever else
//! it looks for. A run without redaction does not receive them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::engine::Redaction;
use crate::files::{LARGE_BYTES_MAX, check_own, private_folder, read, write_whole};
use crate::journal::{InSession, REDACTIONS_FILE, RunSpec, SESSIONS_FOLDER};
use crate::report::RunResult;
use crypto::{Digest, Hasher};
use protocol::text::escape;
use protocol::text::redact::{Originals, Redactions};
use protocol::{Document, Outcome};

/// The name of the document that shows a run the earlier agreements of its session.
pub const SESSION_DOCUMENT: &str = "earlier in this session";

/// The longest context, in characters: about 3000 tokens. Older answers are left out first.
const CONTEXT_CHARS_MAX: usize = 12_000;

/// An error that makes a session unusable.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The name is not a valid file name.
    #[error("`{0}` is not a session name: use letters, digits, `-` and `_`, 64 at most")]
    Name(String),
    /// The session of this name was deleted.
    #[error(
        "the session `{0}` was deleted, and the records of its runs name it; give the new one another name"
    )]
    Forgotten(String),
    /// The file cannot be read or written.
    #[error("the session `{path}` cannot be used: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// A line does not belong to a session.
    #[error("the session `{path}` is damaged in line {line}: {why}")]
    Damaged {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        why: String,
    },
    /// The session and the record of one of its runs contradict each other.
    #[error("the session `{path}` and the run's record contradict each other: {why}")]
    Contradicts { path: PathBuf, why: String },
    /// The run would send text that an earlier one kept back.
    #[error(
        "the session `{path}` has runs with --redact, and this run would send the redacted text; give --redact, or another --session"
    )]
    Private { path: PathBuf },
    /// The table of a run's tokens is unusable; they mean nothing without it.
    #[error(
        "the session `{path}` needs the table of redactions of its run {run}: {why}; use another --session"
    )]
    Redactions { path: PathBuf, run: String, why: String },
}

/// The statement of a session about one of its runs, if the run's record does not contradict it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionSays {
    /// Nothing is known: the session's file does not exist.
    NoFile,
    /// Nothing contradicts the record, but a table of redactions cannot be read, so the text that the run received is not compared.
    NoTable,
    /// The session has no line of the run.
    Nothing,
    /// The session states how the run was interrupted, and the run was resumed since then.
    Earlier,
    /// The session states how the run has ended.
    Same,
}

/// A question of a session, and its result.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename = "Exchange")]
pub struct SessionTurn {
    pub run: String,
    pub prompt: String,
    /// The outcome of the run, by its name.
    pub outcome: String,
    pub text: Option<String>,
    /// Whether question and answer have tokens in place of text that must not leave the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
}

/// Returns the names of all sessions among the runs in `folder`, the most recently used first.
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

/// Returns the path of the file that marks a session as deleted.
fn deletion_mark(path: &Path) -> PathBuf {
    path.with_extension("deleted")
}

/// A session: a sequence of runs, each of which knows the earlier agreements.
#[derive(Clone, Debug)]
pub struct Session {
    name: String,
    path: PathBuf,
    is_there: bool,
    turns: Vec<SessionTurn>,
    /// The digest of the lines before each line, and last the digest of all lines.
    heads: Vec<Digest>,
    /// The length of the whole lines, in bytes.
    bytes: u64,
}

impl Session {
    /// Opens the session of that name among the runs in `folder`; a session without a file is new.
    pub fn open(folder: &Path, name: &str) -> Result<Self, SessionError> {
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if name.is_empty() || name.len() > 64 || !is_plain {
            return Err(SessionError::Name(escape::excerpt(name)));
        }
        let path = folder.join(SESSIONS_FOLDER).join(format!("{name}.jsonl"));
        if let Err(source) = check_own(&path) {
            return Err(SessionError::File { path, source });
        }
        if deletion_mark(&path).exists() {
            return Err(SessionError::Forgotten(name.to_owned()));
        }
        let bytes = match read(&path, LARGE_BYTES_MAX) {
            Ok(bytes) => Some(bytes),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(SessionError::File { path, source }),
        };
        let (name, is_there) = (name.to_owned(), bytes.is_some());
        let mut session = Self { name, path, is_there, turns: Vec::new(), heads: Vec::new(), bytes: 0 };
        session.read_lines(bytes.as_deref().unwrap_or_default())?;
        Ok(session)
    }

    /// Returns the questions and agreed answers, the latest last; `None` without any. The document holds originals in place of
    /// tokens, for a run that is redacted itself.
    ///
    /// Returns [`SessionError::Private`] if an earlier run has tokens and this one is not redacted, or [`SessionError::Redactions`].
    pub fn document(&self, is_redacted: bool) -> Result<Option<Document>, SessionError> {
        if !is_redacted && self.turns.iter().any(|turn| turn.redacted) {
            return Err(SessionError::Private { path: self.path.clone() });
        }
        self.document_of(&self.turns)
    }

    /// Returns the text that earlier runs kept back, as far as their tables exist. A run that receives their answers keeps the text
    /// back as well, wherever it occurs.
    pub fn originals(&self) -> Originals {
        let mut all = Originals::default();
        let runs = self.turns.iter().filter(|turn| turn.redacted);
        for run in runs.map(|turn| &turn.run).collect::<BTreeSet<_>>() {
            // A run that would receive an answer whose table is missing is refused elsewhere.
            if let Ok(redactions) = self.redactions(run) {
                all.extend(redactions.originals());
            }
        }
        all
    }

    /// Returns whether the session has a file.
    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// Returns the time at which the last run was added; `None` if the file system does not report it.
    pub fn used_at(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.path).and_then(|about| about.modified()).ok()
    }

    /// Returns the questions, the latest last, each run once. Originals replace tokens if the tables of their runs exist.
    pub fn turns(&self) -> Vec<SessionTurn> {
        let mut last: Vec<SessionTurn> = Vec::new();
        for (at, turn) in self.turns.iter().enumerate() {
            if self.turns[at + 1..].iter().any(|later| later.run == turn.run) {
                continue;
            }
            let mut turn = turn.clone();
            if turn.redacted
                && let Ok(table) = self.redactions(&turn.run)
            {
                turn.prompt = table.restore(&turn.prompt);
                turn.text = turn.text.map(|text| table.restore(&text));
            }
            turn.redacted = false;
            last.push(turn);
        }
        last
    }

    /// Removes the questions and answers; the records of the runs remain. The name is not used again: those records state the
    /// content of the session, and another session of that name would contradict them.
    pub fn delete(self) -> Result<(), SessionError> {
        let Self { path, .. } = self;
        let done = write_whole(&deletion_mark(&path), "", 0o600).and_then(|()| std::fs::remove_file(&path));
        done.map_err(|source| SessionError::File { path, source })
    }

    /// Takes the whole lines of the session's file.
    fn read_lines(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let mut hasher = Hasher::default();
        (self.turns, self.heads, self.bytes) = (Vec::new(), vec![hasher.finish()], 0);
        for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            let turn = serde_json::from_slice(line).map_err(|why| SessionError::Damaged {
                path: self.path.clone(),
                line: self.turns.len() + 1,
                why: why.to_string(),
            })?;
            self.turns.push(turn);
            self.heads.push(hasher.part(line).finish());
            self.bytes += line.len() as u64;
        }
        Ok(())
    }

    /// Makes the document of questions and agreed answers. Its form must not change, since records contain it and are compared with
    /// it.
    fn document_of(&self, turns: &[SessionTurn]) -> Result<Option<Document>, SessionError> {
        let mut parts: Vec<String> = Vec::new();
        let mut known = BTreeSet::new();
        let mut chars_left = CONTEXT_CHARS_MAX;
        for turn in turns.iter().rev() {
            let SessionTurn { run, prompt, text, redacted, .. } = turn;
            // For a run that was resumed, the last line counts.
            let is_last = known.insert(run);
            let Some(text) = text else { continue };
            if !is_last {
                continue;
            }
            let part = format!("Asked: {prompt}\nAgreed on: {text}");
            let part = if *redacted { self.redactions(run)?.restore(&part) } else { part };
            let chars = part.chars().count();
            if chars > chars_left {
                break;
            }
            chars_left -= chars;
            parts.push(part);
        }
        parts.reverse();
        if parts.is_empty() {
            return Ok(None);
        }
        let text = parts.join("\n\n").into();
        Ok(Some(Document { name: SESSION_DOCUMENT.to_owned(), text, redacted: false }))
    }

    /// Reads the table of redactions of a run of this session.
    fn redactions(&self, run: &str) -> Result<Redactions, SessionError> {
        let folder = self.path.parent().and_then(Path::parent).unwrap_or(Path::new("."));
        let loaded = match run.parse::<Uuid>() {
            Ok(id) => Redaction::load(folder.join(id.to_string()).join(REDACTIONS_FILE)),
            Err(_) => Err("it is not the id of a run".to_owned()),
        };
        match loaded {
            Ok(redaction) => Ok(redaction.redactions().clone()),
            Err(why) => {
                let (path, run) = (self.path.clone(), escape::excerpt(run));
                Err(SessionError::Redactions { path, run, why })
            }
        }
    }

    /// Returns what a run that begins now records about the session.
    pub fn place(&self) -> InSession {
        InSession { name: self.name.clone(), head: self.heads.last().copied().unwrap_or(Digest::ZERO) }
    }

    /// Adds a run that has ended or was interrupted, unless the session has its line already.
    ///
    /// Returns [`SessionError::File`], or [`SessionError::Damaged`] if the file was damaged since it was opened.
    pub fn add(&mut self, spec: &RunSpec, result: &RunResult) -> Result<(), SessionError> {
        let turn = SessionTurn {
            run: result.run.clone(),
            prompt: spec.setup.task.prompt.trim().to_owned(),
            outcome: result.outcome.name().to_owned(),
            text: result.text.clone(),
            redacted: spec.redacted,
        };
        let mut file = self.lock().map_err(|why| self.unusable(why))?;
        // Other runs may have added lines since the session was opened.
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|why| self.unusable(why))?;
        self.read_lines(&bytes)?;
        if self.turns.iter().rfind(|known| known.run == turn.run) != Some(&turn) {
            // The turn is plain data, which always has a JSON form.
            let line = serde_json::to_string(&turn).unwrap_or_default() + "\n";
            if bytes.len() as u64 > self.bytes {
                file.set_len(self.bytes).map_err(|why| self.unusable(why))?;
            }
            file.write_all(line.as_bytes()).map_err(|why| self.unusable(why))?;
            bytes.truncate(usize::try_from(self.bytes).unwrap_or(usize::MAX));
            bytes.extend(line.as_bytes());
            self.read_lines(&bytes)?;
        }
        // An existing line may come from a process that died before the line was durable.
        file.sync_data().map_err(|why| self.unusable(why))?;
        self.is_there = true;
        Ok(())
    }

    fn unusable(&self, source: std::io::Error) -> SessionError {
        SessionError::File { path: self.path.clone(), source }
    }

    /// Opens or makes the file, and locks it, so that no other run adds to it while it is open.
    fn lock(&self) -> std::io::Result<File> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        private_folder(folder)?;
        check_own(&self.path)?;
        let file = File::options().read(true).create(true).append(true).mode(0o600).open(&self.path)?;
        file.lock()?;
        if deletion_mark(&self.path).exists() {
            // The session was deleted while this run was under way, and remains deleted.
            std::fs::remove_file(&self.path)?;
            return Err(std::io::Error::other("the session was deleted during this run"));
        }
        if !self.is_there {
            File::open(folder)?.sync_all()?;
        }
        Ok(file)
    }

    /// Compares the session with the record of one of its runs: the text that the run received, and how it ended. `ends` are the
    /// ends in the record, the last one last. After a resume no end counts until the run ends again.
    ///
    /// Returns [`SessionError::Contradicts`] with the difference.
    pub fn compare_with_record(
        &self,
        run: &str,
        opened: &RunSpec,
        ends: &[&Outcome],
        has_ended: bool,
    ) -> Result<SessionSays, SessionError> {
        let Some(place) = &opened.session else { return Ok(SessionSays::NoFile) };
        if !self.is_there {
            return Ok(SessionSays::NoFile);
        }
        let Self { turns, heads, .. } = self;
        let Some(known) = heads.iter().position(|head| *head == place.head) else {
            return self.contradict("the lines that the run began with are no longer in it");
        };
        let was_given = match self.was_given(run, opened, &turns[..known]) {
            Ok(was_given) => Some(was_given),
            Err(SessionError::Redactions { .. }) => None,
            Err(why) => return Err(why),
        };
        if was_given == Some(false) {
            return self.contradict("the run received a text that differs from its lines at that time");
        }
        let mut last = SessionSays::Nothing;
        for (index, turn) in turns.iter().enumerate().filter(|(_, turn)| turn.run == run) {
            let is_asked = turn.prompt == opened.setup.task.prompt.trim();
            if index < known || !is_asked || !ends.iter().any(|end| turn.has_end(end)) {
                let why = format!("its line {} differs from the record of the run", index + 1);
                return self.contradict(&why);
            }
            let is_last = has_ended && ends.last().is_some_and(|end| turn.has_end(end));
            last = if is_last { SessionSays::Same } else { SessionSays::Earlier };
        }
        Ok(if was_given.is_none() { SessionSays::NoTable } else { last })
    }

    fn contradict<T>(&self, why: &str) -> Result<T, SessionError> {
        Err(SessionError::Contradicts { path: self.path.clone(), why: why.to_owned() })
    }

    /// Returns whether a run received the document of these lines, with the originals in place of tokens.
    fn was_given(&self, run: &str, opened: &RunSpec, lines: &[SessionTurn]) -> Result<bool, SessionError> {
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

impl SessionTurn {
    /// Returns whether a run with this end leaves such a line.
    fn has_end(&self, end: &Outcome) -> bool {
        let text = match end {
            Outcome::Agreed { text, .. } => Some(text),
            Outcome::NoAgreement { .. }
            | Outcome::Abstained { .. }
            | Outcome::Vetoed { .. }
            | Outcome::Budget { .. }
            | Outcome::Failed { .. }
            | Outcome::Interrupted => None,
        };
        self.outcome == end.name() && self.text.as_ref() == text
    }
}
