//! The redactions of a run, in a file of their own that never leaves the machine.
//!
//! The file is written before any text with a new token goes out. So no answer can come back with a token that cannot
//! be resolved.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::EngineError;
use crate::files::{LARGE_BYTES_MAX, private_folder, read_text};
use crate::journal::{JournalError, Library};
use crate::program::PROGRAM;
use crate::retrieval::Corpus;
use crypto::{Digest, Hasher};
use protocol::text::escape;
use protocol::text::redact::{Originals, Redactions, Redactor};
use protocol::{ExecutionResult, OUTPUT_BYTES_MAX, Passage, RunSetup, Search, TAIL_BYTES_MAX};

/// The largest table whose originals are all searched for when its run is resumed. For a larger table a finder of all
/// originals takes long to build, so only the known forms are found.
const KNOWN_MAX: usize = 10_000;

/// The patterns that are searched for besides the known forms.
#[derive(Clone, Debug, Serialize)]
pub struct RedactionPolicy {
    patterns: Vec<String>,
    #[serde(skip)]
    redactor: Redactor,
}

impl RedactionPolicy {
    /// Takes regular expressions.
    ///
    /// Returns a message if a pattern is not a regular expression.
    pub fn new(patterns: Vec<String>) -> Result<Self, String> {
        let redactor = Redactor::new(&patterns)
            .map_err(|(pattern, why)| format!("`{pattern}` is not a valid pattern: {why}"))?;
        Ok(Self { patterns, redactor })
    }

    /// Returns a redactor with an empty table.
    pub fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }
}

#[derive(Debug)]
pub struct Redaction {
    redactor: Redactor,
    policy: RedactionPolicy,
    salt: String,
    path: PathBuf,
    /// The number of tokens in the file.
    saved: usize,
}

/// The content of the file: the patterns beyond the known forms, and the originals that were found.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename = "Table")]
struct RedactionTable {
    /// The build that wrote the table.
    program: String,
    patterns: Vec<String>,
    /// The salt that keeps a digest in the journal from confirming a guess at the documents.
    salt: String,
    originals: Redactions,
}

/// The part of a table that names its writer. The rest may be long, and is not read.
#[derive(Deserialize)]
struct TableWriter {
    program: String,
}

/// The bytes beside a cut that are left out of an output: longer than nearly all originals.
const BESIDE_CUT: usize = 512;

/// Returns a text without the bytes before a cut at its end.
fn cut_end(text: &str) -> &str {
    &text[..text.floor_char_boundary(text.len().saturating_sub(BESIDE_CUT))]
}

/// Returns a text without the bytes after a cut at its start.
fn cut_start(text: &str) -> &str {
    &text[text.ceil_char_boundary(BESIDE_CUT.min(text.len()))..]
}

impl Redaction {
    /// Starts with an empty table, which will be the file at `path`.
    pub fn new(path: PathBuf, policy: RedactionPolicy) -> Self {
        let (redactor, salt) = (policy.redactor(), Uuid::new_v4().to_string());
        Self { redactor, policy, salt, path, saved: 0 }
    }

    /// Finds these originals in every text as well. They come from earlier runs that this one can see.
    pub fn with_known(mut self, originals: &Originals) -> Self {
        self.redactor = self.redactor.with_known(originals);
        self
    }

    /// Reads the table of a run that was put down.
    ///
    /// Returns a message if the table is missing or damaged. Without it, the run's answer would contain tokens that cannot be
    /// resolved.
    pub fn load(path: PathBuf) -> Result<Self, String> {
        let name = path.display();
        let text =
            read_text(&path, LARGE_BYTES_MAX).map_err(|why| format!("`{name}` cannot be read: {why}"))?;
        // The table of another build may have other fields.
        if let Ok(TableWriter { program }) = serde_json::from_str(&text)
            && program != PROGRAM
        {
            let program = escape::terminal(&program);
            return Err(JournalError::OtherBuild { path, program }.to_string());
        }
        let RedactionTable { patterns, salt, originals, .. } =
            serde_json::from_str(&text).map_err(|why| format!("`{name}` is damaged: {why}"))?;
        let saved = originals.count();
        let policy = RedactionPolicy::new(patterns)?;
        let mut redactor = policy.redactor();
        if saved <= KNOWN_MAX {
            redactor = redactor.with_known(&originals.originals());
        }
        let redactor = redactor.with_redactions(originals);
        Ok(Self { redactor, policy, salt, path, saved })
    }

    /// Returns the setup with tokens in place of the texts that must not leave the machine. [`Redaction::save`] must
    /// follow.
    pub fn setup(&mut self, setup: RunSetup) -> RunSetup {
        let before = setup.task.documents.clone();
        let mut setup = setup.map_texts(|text| self.redactor.redact(text));
        for (document, before) in setup.task.documents.iter_mut().zip(before) {
            document.redacted = document.text != before.text;
        }
        setup
    }

    /// Returns a text as the run writes it. New originals do not enter the table.
    pub fn redact(&self, text: &str) -> String {
        self.redactor.clone().redact(text)
    }

    /// Returns the library with tokens in its paths and a salted digest, which shows only whether the documents have
    /// changed. The paths can be restored by the table.
    pub fn library(&mut self, library: Library) -> Library {
        let Library { places, lost, sha256 } = library;
        let sha256 = sha256.map(|digest| self.salt(digest));
        Library {
            places: places
                .iter()
                .map(|place| self.redactor.redact(&place.to_string_lossy()).into())
                .collect(),
            lost: lost.iter().map(|lost| self.redactor.redact(lost)).collect(),
            sha256,
        }
    }

    /// Returns a passage with tokens. `before` and `after` are the texts beside it, because a secret may reach over
    /// its edges. [`Redaction::save_if_new`] must follow.
    pub fn passage(&mut self, passage: Passage, before: &str, after: &str) -> Passage {
        let Passage { document, start, text, .. } = passage;
        let shown = self.redactor.redact_between(before, &text, after);
        let redacted = shown != text;
        Passage { document: self.redactor.redact(&document), start, text: shown, redacted }
    }

    /// Searches documents for the original words, and returns the passages with tokens. The table is on disk before they are used.
    pub(super) fn search(&mut self, corpus: &Corpus, search: &Search) -> Result<Vec<Passage>, EngineError> {
        // The documents hold the original texts; nothing of the search leaves this machine.
        let words = self.redactions().restore(&search.words);
        let mut tokens_left = search.tokens_max;
        let mut found = Vec::new();
        for passage in corpus.search(&words, search.tokens_max)? {
            let (before, after) = corpus.beside(&passage)?;
            let passage = self.passage(passage, &before, &after);
            // A token may be longer than the text that it stands for.
            let tokens = passage.tokens_estimate();
            if tokens <= tokens_left {
                tokens_left -= tokens;
                found.push(passage);
            }
        }
        self.save_if_new().map_err(|source| self.write_error(source))?;
        Ok(found)
    }

    /// Returns the result of an execution with tokens and a salted digest. [`Redaction::save_if_new`] must follow.
    pub fn result(&mut self, result: &ExecutionResult) -> ExecutionResult {
        // Where a longer output was cut, a part of an original would not be found.
        let (output, tail) = if result.tail.is_empty() {
            (result.output.as_str(), "")
        } else {
            (cut_end(&result.output), cut_start(&result.tail))
        };
        let mut output = self.redactor.redact(output);
        output.truncate(output.floor_char_boundary(OUTPUT_BYTES_MAX));
        let mut tail = self.redactor.redact(tail);
        tail.truncate(tail.floor_char_boundary(TAIL_BYTES_MAX));
        ExecutionResult { output, tail, output_sha256: self.salt(result.output_sha256), end: result.end }
    }

    /// Returns a digest that tells only whether two contents of this run are equal.
    pub fn salt(&self, digest: Digest) -> Digest {
        Hasher::default().part(self.salt.as_bytes()).part(digest.to_string().as_bytes()).finish()
    }

    /// Writes the table if it has grown since it was last written.
    ///
    /// Returns the errors of [`Redaction::save`]. After an error no new token may be used.
    pub fn save_if_new(&mut self) -> std::io::Result<()> {
        if self.redactor.redactions().count() > self.saved { self.save() } else { Ok(()) }
    }

    pub fn redactions(&self) -> &Redactions {
        self.redactor.redactions()
    }

    /// Writes the table durably, readable by its user alone.
    ///
    /// Returns any error of the file system.
    pub fn save(&mut self) -> std::io::Result<()> {
        let originals = self.redactor.redactions().clone();
        let count = originals.count();
        let patterns = self.policy.patterns.clone();
        let program = PROGRAM.to_owned();
        let table = RedactionTable { program, patterns, salt: self.salt.clone(), originals };
        let temporary = self.path.with_extension("json.new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(serde_json::to_string_pretty(&table).unwrap_or_default().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, &self.path)?;
        // Otherwise an older table could come back beside a journal with newer tokens.
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        self.saved = count;
        Ok(())
    }

    /// Creates the folder of the table, and writes the table as [`Redaction::save`] does.
    pub(super) fn save_in_its_folder(&mut self) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            private_folder(folder)?;
        }
        self.save()
    }

    /// Returns the error of a table that cannot be written.
    pub(super) fn write_error(&self, source: std::io::Error) -> EngineError {
        EngineError::Redaction { path: self.path.clone(), source }
    }

    /// Removes the table of a run that has not begun.
    pub fn discard(&self) {
        // A missing file needs no removal, and nothing depends on a table without a run.
        let _ = std::fs::remove_file(&self.path);
    }
}
