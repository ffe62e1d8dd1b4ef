//! The index of a set of places: brought up to date, and searched.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
use crate::protocol::{PASSAGES_MAX, Passage};

/// Memory that indexing may use, in bytes.
const INDEXING_BYTES: usize = 64 << 20;

/// The most different words of one search; more would only blur it.
const WORDS_MAX: usize = 64;

/// Words are folded to lower case and to their English stem; words of other languages are hardly ever harmed.
const TOKENIZER: &str = "en_stem";

/// The file that a process holds while it brings the index up to date.
const LOCK: &str = "update.lock";

/// The index of a set of places.
pub struct Corpus {
    dir: PathBuf,
    index: Index,
    fields: Fields,
}

/// What is in an index, by path.
type Listing = BTreeMap<String, Listed>;

#[derive(Clone, Copy)]
struct Fields {
    document: Field,
    start: Field,
    body: Field,
}

/// A file as it was when it was indexed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Listed {
    stamp: Option<[i64; 5]>,
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
    /// Opens the index of these places in the folder `cache`, and brings it up to date. While another process
    /// does the same, this waits.
    ///
    /// # Errors
    ///
    /// [`RetrievalError`], also if there is no text at all.
    pub fn open(places: &[PathBuf], cache: &Path) -> Result<(Self, Updated), RetrievalError> {
        let (found, lost) = files::list(places)?;
        let dir = cache.join(name_of(places));
        let failed = |source| RetrievalError::Index { path: dir.clone(), source };
        let locked = |source| RetrievalError::Lock { path: dir.clone(), source };
        std::fs::create_dir_all(&dir).map_err(locked)?;
        let lock = File::create(dir.join(LOCK)).map_err(locked)?;
        lock.lock().map_err(locked)?;
        let (schema, fields) = schema();
        let directory = MmapDirectory::open(&dir).map_err(|e| failed(e.into()))?;
        let index = Index::open_or_create(directory, schema).map_err(failed)?;
        let mut corpus = Self { dir: dir.clone(), index, fields };
        let mut updated = corpus.update(&found).map_err(failed)?;
        updated.skipped.splice(0..0, lost);
        if updated.passages == 0 {
            let places: Vec<String> = places.iter().map(|p| format!("`{}`", p.display())).collect();
            return Err(RetrievalError::NoText(places.join(", ")));
        }
        Ok((corpus, updated))
    }

    /// Reads what is new or has changed, and forgets what is gone.
    ///
    /// The list of what is in the index is part of its last commit, so that the two cannot differ, whatever
    /// ends this process.
    fn update(&mut self, found: &[String]) -> Result<Updated, TantivyError> {
        let mut updated = Updated::default();
        // Opened only if there is something to write: many processes may search one index.
        let mut writer: Option<IndexWriter> = None;
        let payload = self.index.load_metas()?.payload;
        let listed: Option<Listing> = payload.and_then(|payload| serde_json::from_str(&payload).ok());
        if listed.is_none() {
            self.writer(&mut writer)?.delete_all_documents()?;
        }
        let mut before = listed.unwrap_or_default();
        let mut now = Listing::new();
        let mut is_changed = false;
        for name in found {
            let path = Path::new(name);
            let stamp = stamp(path);
            let known = before.remove(name);
            if let Some(known) = known.as_ref().filter(|known| stamp.is_some() && known.stamp == stamp) {
                now.insert(name.clone(), known.clone());
                continue;
            }
            is_changed = true;
            let (text, layout) = match files::read(path) {
                Ok(read) => read,
                Err(why) => {
                    if let Unread::Lost(why) = why {
                        updated.skipped.push(Skipped { path: path.to_owned(), why });
                    }
                    if known.is_some() {
                        self.forget(&mut writer, name)?;
                    }
                    continue;
                }
            };
            let sha256 = Hasher::default().part(text.as_bytes()).finish();
            let parts = passages::cut(&text, layout);
            now.insert(name.clone(), Listed { stamp, sha256, passages: parts.len() });
            if known.is_some_and(|known| known.sha256 == sha256) {
                continue;
            }
            updated.read += 1;
            self.forget(&mut writer, name)?;
            let writer = self.writer(&mut writer)?;
            for (start, part) in parts {
                let mut document = TantivyDocument::default();
                document.add_text(self.fields.document, name);
                document.add_u64(self.fields.start, start as u64);
                document.add_text(self.fields.body, part);
                writer.add_document(document)?;
            }
        }
        for name in before.keys() {
            is_changed = true;
            self.forget(&mut writer, name)?;
        }
        updated.files = now.len();
        updated.passages = now.values().map(|listed| listed.passages).sum();
        if is_changed || writer.is_some() {
            self.writer(&mut writer)?;
        }
        if let Some(mut writer) = writer {
            let mut commit = writer.prepare_commit()?;
            commit.set_payload(&serde_json::to_string(&now).unwrap_or_default());
            commit.commit()?;
            writer.wait_merging_threads()?;
        }
        Ok(updated)
    }

    fn forget(&self, writer: &mut Option<IndexWriter>, name: &str) -> Result<(), TantivyError> {
        let document = Term::from_field_text(self.fields.document, name);
        self.writer(writer)?.delete_term(document);
        Ok(())
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
        // One that is too long for what is left makes room for the next.
        let fits = found.into_iter().filter(|passage| {
            let tokens = passage.tokens_estimate();
            let fits = tokens <= left;
            left -= if fits { tokens } else { 0 };
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

/// Returns what changes whenever a file does: its number, size, and times of change.
fn stamp(path: &Path) -> Option<[i64; 5]> {
    let data = std::fs::metadata(path).ok()?;
    let (number, size) = (data.ino().cast_signed(), data.size().cast_signed());
    Some([number, size, data.mtime(), data.mtime_nsec(), data.ctime() ^ data.ctime_nsec()])
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
