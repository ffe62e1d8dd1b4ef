//! What a run has replaced, in a file beside its journal that never leaves the machine.
//!
//! The file is written before any text with a new token goes out, so that no answer comes back whose tokens
//! nobody can read any more.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::protocol::{Passage, Setup};
use crate::text::redact::{Redactions, Redactor};

/// The table's file name inside a run folder.
pub const REDACTIONS_FILE: &str = "redactions.json";

/// The redactions of one run.
#[derive(Debug)]
pub struct Redaction {
    redactor: Redactor,
    patterns: Vec<String>,
    path: PathBuf,
}

/// The file: what is looked for besides known forms, and what was found.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Table {
    patterns: Vec<String>,
    originals: Redactions,
}

impl Redaction {
    /// Begins with an empty table, for a run in the folder `dir`.
    ///
    /// # Errors
    ///
    /// In words, if a pattern is no regular expression.
    pub fn new(dir: &Path, patterns: Vec<String>) -> Result<Self, String> {
        Self::go_on(dir, Table { patterns, ..Table::default() })
    }

    /// Reads the table of a run that was put down.
    ///
    /// # Errors
    ///
    /// In words, if it is gone or damaged: without it, the run's answer would have tokens that nobody can read.
    pub fn load(dir: &Path) -> Result<Self, String> {
        let path = dir.join(REDACTIONS_FILE);
        let name = path.display();
        let text = std::fs::read_to_string(&path).map_err(|why| format!("`{name}` cannot be read: {why}"))?;
        let table = serde_json::from_str(&text).map_err(|why| format!("`{name}` is damaged: {why}"))?;
        Self::go_on(dir, table)
    }

    fn go_on(dir: &Path, Table { patterns, originals }: Table) -> Result<Self, String> {
        let redactor = Redactor::new(&patterns, originals)
            .map_err(|(pattern, why)| format!("`{pattern}` is no pattern: {why}"))?;
        Ok(Self { redactor, patterns, path: dir.join(REDACTIONS_FILE) })
    }

    /// Returns the setup with tokens in place of what must not leave the machine; [`Redaction::save`] comes next.
    #[must_use]
    pub fn setup(&mut self, setup: Setup) -> Setup {
        setup.map_texts(|text| self.redactor.redact(text))
    }

    /// The same for passages of documents, and writes the table if it has grown.
    ///
    /// # Errors
    ///
    /// As [`Redaction::save`]; the passages must not be used then.
    pub fn passages(&mut self, passages: Vec<Passage>) -> std::io::Result<Vec<Passage>> {
        let before = self.redactor.redactions().count();
        let redacted = passages.into_iter().map(|passage| {
            let Passage { document, start, text, .. } = passage;
            let shown = self.redactor.redact(&text);
            let redacted = shown != text;
            Passage { document: self.redactor.redact(&document), start, text: shown, redacted }
        });
        let redacted = redacted.collect();
        if self.redactor.redactions().count() > before {
            self.save()?;
        }
        Ok(redacted)
    }

    /// Returns a text with the originals in place of their tokens.
    #[must_use]
    pub fn restore(&self, text: &str) -> String {
        self.redactor.redactions().restore(text)
    }

    /// Writes the table, durably and for its user alone.
    ///
    /// # Errors
    ///
    /// Any error of the file system.
    pub fn save(&self) -> std::io::Result<()> {
        let table = Table { patterns: self.patterns.clone(), originals: self.redactor.redactions().clone() };
        let temporary = self.path.with_extension("json.new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(serde_json::to_string_pretty(&table).unwrap_or_default().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, &self.path)
    }
}
