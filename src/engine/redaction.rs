//! What a run has replaced, in a file of its own that never leaves the machine.
//!
//! The file is written before any text with a new token goes out, so that no answer comes back whose tokens
//! nobody can read any more.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::EngineError;
use crate::crypto::{Digest, Hasher};
use crate::files::{LARGE_BYTES_MAX, private_folder, read_text};
use crate::journal::Library;
use crate::protocol::{Passage, RunSetup};
use crate::text::redact::{Originals, Redactions, Redactor, Regions};

/// The originals of a larger table are found by their forms alone when its run goes on: a finder of all of them takes long to make.
const KNOWN_MAX: usize = 10_000;

/// What is looked for besides the known forms, and whose national phone numbers are.
#[derive(Clone, Debug, Serialize)]
pub struct Sought {
    patterns: Vec<String>,
    regions: Regions,
    #[serde(skip)]
    redactor: Redactor,
}

impl Sought {
    /// Takes regular expressions, and regions of phone numbers.
    ///
    /// # Errors
    ///
    /// In words, if a pattern is no regular expression.
    pub fn new(patterns: Vec<String>, regions: Regions) -> Result<Self, String> {
        let redactor = Redactor::new(&patterns)
            .map_err(|(pattern, why)| format!("`{pattern}` is no pattern: {why}"))?
            .with_regions(regions.clone());
        Ok(Self { patterns, regions, redactor })
    }

    /// Returns a redactor with an empty table.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }
}

/// The redactions of one run.
#[derive(Debug)]
pub struct Redaction {
    redactor: Redactor,
    sought: Sought,
    salt: String,
    path: PathBuf,
    /// How many tokens the file has.
    saved: usize,
}

/// The file: what is looked for besides known forms, and what was found.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Table {
    patterns: Vec<String>,
    /// Whose national phone numbers are looked for.
    #[serde(default)]
    regions: Regions,
    /// What keeps a digest in the journal from telling whether a guess at the documents is right.
    #[serde(default)]
    salt: String,
    originals: Redactions,
}

impl Redaction {
    /// Begins with an empty table, which will be the file at `path`.
    #[must_use]
    pub fn new(path: PathBuf, sought: Sought) -> Self {
        let (redactor, salt) = (sought.redactor(), Uuid::new_v4().to_string());
        Self { redactor, sought, salt, path, saved: 0 }
    }

    /// The same that finds these originals wherever they stand: those of earlier runs, which this one is told of.
    #[must_use]
    pub fn knowing(mut self, originals: &Originals) -> Self {
        self.redactor = self.redactor.with_known(originals);
        self
    }

    /// Reads the table of a run that was put down.
    ///
    /// # Errors
    ///
    /// In words, if it is gone or damaged: without it, the run's answer would have tokens that nobody can read.
    pub fn load(path: PathBuf) -> Result<Self, String> {
        let name = path.display();
        let text =
            read_text(&path, LARGE_BYTES_MAX).map_err(|why| format!("`{name}` cannot be read: {why}"))?;
        let table = serde_json::from_str(&text).map_err(|why| format!("`{name}` is damaged: {why}"))?;
        let Table { patterns, regions, salt, originals } = table;
        let saved = originals.count();
        let sought = Sought::new(patterns, regions)?;
        let mut redactor = sought.redactor();
        if saved <= KNOWN_MAX {
            redactor = redactor.with_known(&originals.originals());
        }
        let redactor = redactor.with_redactions(originals);
        Ok(Self { redactor, sought, salt, path, saved })
    }

    /// Returns the setup with tokens in place of what must not leave the machine; [`Redaction::save`] comes next.
    #[must_use]
    pub fn setup(&mut self, setup: RunSetup) -> RunSetup {
        let before = setup.task.documents.clone();
        let mut setup = setup.map_texts(|text| self.redactor.redact(text));
        for (document, before) in setup.task.documents.iter_mut().zip(before) {
            document.redacted = document.text != before.text;
        }
        setup
    }

    /// Returns a text as the run writes it; what would be new in the table does not enter it.
    #[must_use]
    pub fn written(&self, text: &str) -> String {
        self.redactor.clone().redact(text)
    }

    /// Returns the library with tokens in its paths and another digest, which says whether the documents have
    /// changed and nothing else; the paths themselves come back by the table.
    #[must_use]
    pub fn library(&mut self, library: Library) -> Library {
        let Library { places, lost, sha256 } = library;
        let salted = |digest: Digest| {
            Hasher::default().part(self.salt.as_bytes()).part(digest.to_string().as_bytes()).finish()
        };
        let sha256 = sha256.map(salted);
        let mut redact = |text: &str| self.redactor.redact(text);
        Library {
            places: places.iter().map(|place| redact(&place.to_string_lossy()).into()).collect(),
            lost: lost.iter().map(|lost| redact(lost)).collect(),
            sha256,
        }
    }

    /// Returns a passage with tokens; `before` and `after` are the texts beside it, over whose edges a secret may
    /// reach. [`Redaction::save_if_new`] comes next.
    #[must_use]
    pub fn passage(&mut self, passage: Passage, before: &str, after: &str) -> Passage {
        let Passage { document, start, text, .. } = passage;
        let shown = self.redactor.redact_between(before, &text, after);
        let redacted = shown != text;
        Passage { document: self.redactor.redact(&document), start, text: shown, redacted }
    }

    /// Writes the table if it has grown since it was last written.
    ///
    /// # Errors
    ///
    /// As [`Redaction::save`]; no new token may be used then.
    pub fn save_if_new(&mut self) -> std::io::Result<()> {
        if self.redactor.redactions().count() > self.saved { self.save() } else { Ok(()) }
    }

    /// Returns the table.
    #[must_use]
    pub fn redactions(&self) -> &Redactions {
        self.redactor.redactions()
    }

    /// Writes the table, durably and for its user alone.
    ///
    /// # Errors
    ///
    /// Any error of the file system.
    pub fn save(&mut self) -> std::io::Result<()> {
        let originals = self.redactor.redactions().clone();
        let count = originals.count();
        let Sought { patterns, regions, .. } = self.sought.clone();
        let table = Table { patterns, regions, salt: self.salt.clone(), originals };
        let temporary = self.path.with_extension("json.new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(serde_json::to_string_pretty(&table).unwrap_or_default().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, &self.path)?;
        // Else an older table could come back beside a journal with newer tokens.
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        self.saved = count;
        Ok(())
    }

    /// Writes the table as [`Redaction::save`] does, and makes its folder before.
    pub(super) fn save_in_its_folder(&mut self) -> std::io::Result<()> {
        self.path.parent().map_or(Ok(()), private_folder)?;
        self.save()
    }

    /// Returns the error of a table that cannot be written.
    pub(super) fn unwritten(&self, source: std::io::Error) -> EngineError {
        EngineError::Redaction { path: self.path.clone(), source }
    }

    /// Removes the table of a run that has not begun.
    pub fn discard(&self) {
        // What is not there needs no removing, and nothing hangs on a table without a run.
        let _ = std::fs::remove_file(&self.path);
    }
}
