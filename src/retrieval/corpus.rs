//! The index of a set of places: brought up to date, and searched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use tantivy::collector::TopDocs;
use tantivy::directory::MmapDirectory;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{Index, IndexWriter, TantivyDocument, TantivyError, Term};

use super::files::{self, Skipped, Unread};
use super::{RetrievalError, passages};
use crate::crypto::{Digest, Hasher};
use crate::protocol::Passage;

/// Memory that indexing may use, in bytes.
const INDEXING_BYTES: usize = 64 << 20;

/// The most passages that one search returns.
const PASSAGES_MAX: usize = 12;

/// The most different words of one search; more would only blur it.
const WORDS_MAX: usize = 64;

/// Words are folded to lower case and to their English stem; words of other languages are hardly ever harmed.
const TOKENIZER: &str = "en_stem";

/// The file beside the index that lists what is in it.
const LIST: &str = "files.json";

/// The index of a set of places.
pub struct Corpus {
    dir: PathBuf,
    index: Index,
    fields: Fields,
    /// What is in the index.
    listed: BTreeMap<PathBuf, Listed>,
}

#[derive(Clone, Copy)]
struct Fields {
    document: Field,
    start: Field,
    body: Field,
}

/// A file as it was when it was indexed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Listed {
    bytes: u64,
    modified_ns: u128,
    sha256: Digest,
    passages: usize,
}

/// What bringing an index up to date has done.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Updated {
    /// Files with text.
    pub files: usize,
    /// Passages in them.
    pub passages: usize,
    /// Files that were read because they are new or have changed.
    pub read: usize,
    /// Files that are gone.
    pub gone: usize,
    /// Files whose text is lost.
    pub skipped: Vec<Skipped>,
}

impl std::fmt::Debug for Corpus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Corpus").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Corpus {
    /// Opens the index of these places in the folder `cache`, and brings it up to date.
    ///
    /// # Errors
    ///
    /// [`RetrievalError`], also if there is no text at all.
    pub fn open(places: &[PathBuf], cache: &Path) -> Result<(Self, Updated), RetrievalError> {
        let found = files::list(places)?;
        let dir = cache.join(name_of(places));
        let failed = |source| RetrievalError::Index { path: dir.clone(), source };
        let unlisted = |source| RetrievalError::List { path: dir.clone(), source };
        std::fs::create_dir_all(&dir).map_err(unlisted)?;
        let (schema, fields) = schema();
        let directory = MmapDirectory::open(&dir).map_err(|e| failed(e.into()))?;
        let index = Index::open_or_create(directory, schema).map_err(failed)?;
        let listed = read_list(&dir.join(LIST));
        let is_known = listed.is_some();
        let mut corpus = Self { dir: dir.clone(), index, fields, listed: listed.unwrap_or_default() };
        let updated = corpus.update(&found, is_known).map_err(failed)?;
        corpus.write_list().map_err(unlisted)?;
        if updated.passages == 0 {
            let places: Vec<String> = places.iter().map(|p| format!("`{}`", p.display())).collect();
            return Err(RetrievalError::NoText(places.join(", ")));
        }
        Ok((corpus, updated))
    }

    /// Reads what is new or has changed, and forgets what is gone.
    fn update(&mut self, found: &[PathBuf], is_known: bool) -> Result<Updated, TantivyError> {
        let mut updated = Updated::default();
        // Opened only if there is something to write: many processes may search one index.
        let mut writer: Option<IndexWriter> = None;
        if !is_known {
            self.writer(&mut writer)?.delete_all_documents()?;
        }
        let mut now = BTreeMap::new();
        for path in found {
            let stamp = stamp(path);
            let before = self.listed.remove(path);
            if let (Some(before), Some((bytes, modified_ns))) = (&before, stamp)
                && (before.bytes, before.modified_ns) == (bytes, modified_ns)
            {
                now.insert(path.clone(), before.clone());
                continue;
            }
            let (text, layout) = match files::read(path) {
                Ok(read) => read,
                Err(why) => {
                    if let Unread::Lost(why) = why {
                        updated.skipped.push(Skipped { path: path.clone(), why });
                    }
                    if before.is_some() {
                        forget(self.writer(&mut writer)?, self.fields, path);
                    }
                    continue;
                }
            };
            let sha256 = Hasher::default().part(text.as_bytes()).finish();
            let (bytes, modified_ns) = stamp.unwrap_or_default();
            let parts = passages::cut(&text, layout);
            let listed = Listed { bytes, modified_ns, sha256, passages: parts.len() };
            now.insert(path.clone(), listed);
            if before.is_some_and(|before| before.sha256 == sha256) {
                continue;
            }
            updated.read += 1;
            let writer = self.writer(&mut writer)?;
            forget(writer, self.fields, path);
            for (start, part) in parts {
                let mut document = TantivyDocument::default();
                document.add_text(self.fields.document, path.to_string_lossy());
                document.add_u64(self.fields.start, start as u64);
                document.add_text(self.fields.body, part);
                writer.add_document(document)?;
            }
        }
        for path in self.listed.keys() {
            updated.gone += 1;
            forget(self.writer(&mut writer)?, self.fields, path);
        }
        if let Some(mut writer) = writer {
            writer.commit()?;
            writer.wait_merging_threads()?;
        }
        updated.files = now.len();
        updated.passages = now.values().map(|listed| listed.passages).sum();
        self.listed = now;
        Ok(updated)
    }

    fn writer<'w>(&self, open: &'w mut Option<IndexWriter>) -> Result<&'w mut IndexWriter, TantivyError> {
        if open.is_none() {
            *open = Some(self.index.writer_with_num_threads(1, INDEXING_BYTES)?);
        }
        // It has just been made, if it was not there.
        open.as_mut().ok_or_else(|| TantivyError::SystemError("no writer".to_owned()))
    }

    /// Returns the passages that fit the words best, best first, that together have at most `tokens_max` tokens
    /// by a high estimate.
    ///
    /// The words are plain text: nothing in them is an operator.
    ///
    /// # Errors
    ///
    /// [`RetrievalError::Index`].
    pub fn search(&self, words: &str, tokens_max: u64) -> Result<Vec<Passage>, RetrievalError> {
        let found =
            self.ranked(words).map_err(|source| RetrievalError::Index { path: self.dir.clone(), source })?;
        let mut left = tokens_max;
        let fits = found.into_iter().take_while(|passage| {
            let tokens = passage.text.len() as u64 / 3 + 1;
            let fits = tokens <= left;
            left = left.saturating_sub(tokens);
            fits
        });
        Ok(fits.collect())
    }

    fn ranked(&self, words: &str) -> Result<Vec<Passage>, TantivyError> {
        let mut analyzer: TextAnalyzer = self.index.tokenizer_for_field(self.fields.body)?;
        let mut terms: Vec<Term> = Vec::new();
        let mut stream = analyzer.token_stream(words);
        while let Some(token) = stream.next() {
            let term = Term::from_field_text(self.fields.body, &token.text);
            if terms.len() < WORDS_MAX && !terms.contains(&term) {
                terms.push(term);
            }
        }
        let any = terms.into_iter().map(|term| {
            let query: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
            (Occur::Should, query)
        });
        let query = BooleanQuery::new(any.collect());
        let searcher = self.index.reader()?.searcher();
        let best = searcher.search(&query, &TopDocs::with_limit(PASSAGES_MAX).order_by_score())?;
        let mut found = Vec::new();
        for (_, address) in best {
            let stored: TantivyDocument = searcher.doc(address)?;
            let text =
                |field| stored.get_first(field).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
            let start = stored.get_first(self.fields.start).and_then(|v| v.as_u64()).unwrap_or_default();
            found.push(Passage {
                document: text(self.fields.document),
                start: usize::try_from(start).unwrap_or(usize::MAX),
                text: text(self.fields.body),
            });
        }
        Ok(found)
    }

    fn write_list(&self) -> std::io::Result<()> {
        let text = serde_json::to_string(&self.listed).map_err(std::io::Error::other)?;
        let new = self.dir.join(format!("{LIST}.new"));
        std::fs::write(&new, text)?;
        std::fs::rename(new, self.dir.join(LIST))
    }
}

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let indexing =
        TextFieldIndexing::default().set_tokenizer(TOKENIZER).set_index_option(IndexRecordOption::WithFreqs);
    let document = schema.add_text_field("document", STRING | STORED);
    let start = schema.add_u64_field("start", INDEXED | STORED);
    let body =
        schema.add_text_field("body", TextOptions::default().set_indexing_options(indexing).set_stored());
    (schema.build(), Fields { document, start, body })
}

fn forget(writer: &mut IndexWriter, fields: Fields, path: &Path) {
    writer.delete_term(Term::from_field_text(fields.document, &path.to_string_lossy()));
}

/// Returns size and time of change, if the file can be looked at.
fn stamp(path: &Path) -> Option<(u64, u128)> {
    let data = std::fs::metadata(path).ok()?;
    let modified = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((data.len(), modified.as_nanos()))
}

/// What is in the index; none if that is not known, and everything must be read again.
fn read_list(path: &Path) -> Option<BTreeMap<PathBuf, Listed>> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Returns the name of the index of these places.
fn name_of(places: &[PathBuf]) -> String {
    let mut whole: Vec<PathBuf> =
        places.iter().map(|place| place.canonicalize().unwrap_or_else(|_| place.clone())).collect();
    whole.sort();
    whole.dedup();
    let mut hasher = Hasher::default();
    for place in whole {
        hasher.part(place.as_os_str().as_encoded_bytes());
    }
    hasher.finish().to_string()[..16].to_owned()
}
