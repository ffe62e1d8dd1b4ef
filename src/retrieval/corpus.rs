//! The index of a set of places, which is brought up to date and searched.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::Serialize;
use unicode_normalization::UnicodeNormalization as _;
use unicode_segmentation::UnicodeSegmentation;

use super::files::{self, ReadFault, SkippedFile};
use super::{PdfReader, RetrievalError, passages};
use crypto::{Digest, Hasher};
use protocol::{PASSAGES_MAX, Passage};

/// The most different words of one search. More would only blur it.
const WORDS_MAX: usize = 64;

/// The longest wait for another process that is updating the same index.
const WAIT_MAX: Duration = Duration::from_hours(1);

/// The longest wait of a search. A search waits only while another process has just begun to use the index.
const SEARCH_WAIT_MAX: Duration = Duration::from_secs(5);

/// The number of this layout of the index. An index with another layout is built again.
const LAYOUT: i64 = 4;

/// The tables of the index. Words are folded to lower case, without accents, and to their English stem; words of
/// other languages are hardly ever harmed. In documents and questions alike, [`words`] cuts the text before it is
/// matched: Chinese is then found by its characters.
const TABLES: &str = "
    CREATE TABLE file (name TEXT PRIMARY KEY, stamp TEXT, sha256 TEXT NOT NULL, passages INTEGER NOT NULL);
    CREATE TABLE passage (id INTEGER PRIMARY KEY, file TEXT NOT NULL, start INTEGER NOT NULL, text TEXT NOT NULL);
    CREATE INDEX passages_of_file ON passage (file, start);
    CREATE VIRTUAL TABLE body USING fts5 (words, content = '', contentless_delete = 1,
        tokenize = 'porter unicode61 remove_diacritics 2');";

/// The query for the best passages by BM25. Passages that match equally well come in a fixed order.
const BEST: &str = "
    SELECT file, start, text FROM body JOIN passage ON passage.id = body.rowid
    WHERE body MATCH ?1 ORDER BY bm25(body), file, start LIMIT ?2";

/// The queries for the passages before and after a passage of a file.
const BEFORE: &str = "SELECT text FROM passage WHERE file = ?1 AND start < ?2 ORDER BY start DESC LIMIT 1";
const AFTER: &str = "SELECT text FROM passage WHERE file = ?1 AND start > ?2 ORDER BY start LIMIT 1";

/// The index of a set of places.
#[derive(Debug)]
pub struct Corpus {
    path: PathBuf,
    index: Connection,
}

/// A file as it was when it was indexed.
#[derive(Clone, Debug, Eq, PartialEq)]
struct IndexedFile {
    stamp: Option<String>,
    sha256: String,
    passages: usize,
}

/// The result of bringing an index up to date.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct IndexUpdate {
    /// The number of files with text.
    pub files: usize,
    /// The number of passages in them.
    pub passages: usize,
    /// The number of files that were read because they are new or have changed.
    pub read: usize,
    /// The number of files that have disappeared.
    pub gone: usize,
    /// The files whose text is lost.
    pub skipped: Vec<SkippedFile>,
    /// The digest of the paths of all files with text and of their texts.
    pub sha256: Digest,
}

impl Corpus {
    /// Opens the index of these places in the folder `cache`, and brings it up to date. If another process is
    /// updating it, this waits.
    ///
    /// Returns [`RetrievalError`], also if there is no text at all.
    pub fn open(
        places: &[PathBuf],
        cache: &Path,
        pdf: &PdfReader,
    ) -> Result<(Self, IndexUpdate), RetrievalError> {
        let (found, lost) = files::list(places)?;
        let path = cache.join(index_name(places)).with_extension("sqlite");
        std::fs::create_dir_all(cache)
            .map_err(|source| RetrievalError::Cache { path: cache.to_owned(), source })?;
        // The index contains the text of the documents, so only the user may read it.
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        file.map_err(|source| RetrievalError::Cache { path: path.clone(), source })?;
        // Processes take turns: the locks of a new index do not always order what two processes do to it at once.
        let lock = OpenOptions::new().append(true).create(true).mode(0o600).open(path.with_extension("lock"));
        let lock = lock.map_err(|source| RetrievalError::Cache { path: path.clone(), source })?;
        lock.lock().map_err(|source| RetrievalError::Cache { path: path.clone(), source })?;
        let (index, mut updated) = open_index(&path, &found, pdf)
            .map_err(|source| RetrievalError::Index { path: path.clone(), source })?;
        drop(lock);
        updated.skipped.splice(0..0, lost);
        if updated.passages == 0 {
            let places: Vec<String> = places.iter().map(|p| format!("`{}`", p.display())).collect();
            return Err(RetrievalError::NoText {
                places: places.join(", "),
                lost: describe_lost(&updated.skipped),
            });
        }
        Ok((Self { path, index }, updated))
    }

    /// Returns the best passages for these words, best first. Together they have at most `tokens_max` tokens by a
    /// high estimate.
    ///
    /// The words are plain text: nothing in them is an operator.
    pub fn search(&self, words: &str, tokens_max: u64) -> Result<Vec<Passage>, RetrievalError> {
        let found =
            self.rank(words).map_err(|source| RetrievalError::Index { path: self.path.clone(), source })?;
        let mut left = tokens_max;
        let mut passages = Vec::new();
        for passage in found {
            let tokens = passage.tokens_estimate();
            // A passage that is too long for the remaining tokens is skipped, so that the next one may fit.
            if tokens <= left {
                left -= tokens;
                passages.push(passage);
            }
        }
        Ok(passages)
    }

    /// Returns the texts of the passages before and after this one in its file. A text is empty if there is no such
    /// passage.
    pub fn beside(&self, passage: &Passage) -> Result<(String, String), RetrievalError> {
        Ok((self.text_beside(BEFORE, passage)?, self.text_beside(AFTER, passage)?))
    }

    fn text_beside(&self, query: &str, passage: &Passage) -> Result<String, RetrievalError> {
        let found =
            self.index.query_one(query, params![passage.document, size(passage.start)], |row| row.get(0));
        let text: Option<String> =
            found.optional().map_err(|source| RetrievalError::Index { path: self.path.clone(), source })?;
        Ok(text.unwrap_or_default())
    }

    fn rank(&self, question: &str) -> rusqlite::Result<Vec<Passage>> {
        let mut terms: Vec<String> = Vec::new();
        for word in words(question).iter().map(|word| word.to_lowercase()) {
            if terms.len() < WORDS_MAX && !terms.contains(&word) {
                terms.push(word);
            }
        }
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        // A quoted word has no special meaning to the index. Hebrew has quotation marks inside words.
        let any: Vec<String> =
            terms.iter().map(|word| format!("\"{}\"", word.replace('"', "\"\""))).collect();
        let mut best = self.index.prepare_cached(BEST)?;
        let found = best.query_map(params![any.join(" OR "), size(PASSAGES_MAX)], |row| {
            let start: i64 = row.get(1)?;
            Ok(Passage {
                document: row.get(0)?,
                start: usize::try_from(start).unwrap_or(usize::MAX),
                text: row.get(2)?,
                redacted: false,
            })
        })?;
        found.collect()
    }
}

/// Returns the first few lost files with their reasons.
fn describe_lost(lost: &[SkippedFile]) -> String {
    const SHOWN_MAX: usize = 3;
    let mut text = String::new();
    for SkippedFile { path, why } in lost.iter().take(SHOWN_MAX) {
        text.extend(["; left out `", &path.display().to_string(), "`: ", why]);
    }
    if lost.len() > SHOWN_MAX {
        text.push_str("; and more");
    }
    text
}

fn open_index(path: &Path, found: &[String], pdf: &PdfReader) -> rusqlite::Result<(Connection, IndexUpdate)> {
    let mut index = Connection::open(path)?;
    let updated = update(&mut index, found, pdf)?;
    index.busy_timeout(SEARCH_WAIT_MAX)?;
    Ok((index, updated))
}

/// Reads files that are new or have changed, and forgets those that have disappeared, all in one transaction. So an
/// index never lists a file that it does not contain, however this process ends.
fn update(index: &mut Connection, found: &[String], pdf: &PdfReader) -> rusqlite::Result<IndexUpdate> {
    index.busy_timeout(WAIT_MAX)?;
    // With a write-ahead log a search does not wait for an update. Secure deletion removes the text of a file that is
    // forgotten.
    index.pragma_update(None, "journal_mode", "wal")?;
    index.pragma_update(None, "secure_delete", true)?;
    let change = index.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut before = listing(&change)?;
    let mut now: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut read, mut skipped) = (0, Vec::new());
    for name in found {
        let path = Path::new(name);
        let stamp = stamp(path);
        let known = before.remove(name);
        if let Some(known) = &known
            && stamp.is_some()
            && known.stamp == stamp
        {
            now.insert(name, known.passages);
            continue;
        }
        let (text, layout) = match files::read(path, pdf) {
            Ok(read) => read,
            Err(why) => {
                if let ReadFault::Lost(why) = why {
                    skipped.push(SkippedFile { path: path.to_owned(), why });
                }
                forget(&change, name)?;
                continue;
            }
        };
        let sha256 = Hasher::default().part(text.as_bytes()).finish().to_string();
        if let Some(known) = known
            && known.sha256 == sha256
        {
            change.execute("UPDATE file SET stamp = ?2 WHERE name = ?1", params![name, stamp])?;
            now.insert(name, known.passages);
            continue;
        }
        read += 1;
        forget(&change, name)?;
        let parts = passages::passages(&text, layout);
        change.execute(
            "INSERT INTO file VALUES (?1, ?2, ?3, ?4)",
            params![name, stamp, sha256, size(parts.len())],
        )?;
        let mut place =
            change.prepare_cached("INSERT INTO passage (file, start, text) VALUES (?1, ?2, ?3)")?;
        let mut body = change.prepare_cached("INSERT INTO body (rowid, words) VALUES (?1, ?2)")?;
        for (start, part) in &parts {
            place.execute(params![name, size(*start), part])?;
            body.execute(params![change.last_insert_rowid(), words(part).join(" ")])?;
        }
        now.insert(name, parts.len());
    }
    let gone = before.len();
    for name in before.keys() {
        forget(&change, name)?;
    }
    let sha256 = digest(&change)?;
    change.commit()?;
    Ok(IndexUpdate { files: now.len(), passages: now.values().sum(), read, gone, skipped, sha256 })
}

/// Returns the files in the index. Creates the index first if it does not exist or has another layout.
fn listing(change: &Transaction<'_>) -> rusqlite::Result<BTreeMap<String, IndexedFile>> {
    let layout: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if layout != LAYOUT {
        change.execute_batch(
            "DROP TABLE IF EXISTS file; DROP TABLE IF EXISTS passage; DROP TABLE IF EXISTS body;",
        )?;
        change.execute_batch(TABLES)?;
        change.pragma_update(None, "user_version", LAYOUT)?;
    }
    let mut files = change.prepare("SELECT name, stamp, sha256, passages FROM file")?;
    let listed = files.query_map([], |row| {
        let passages: i64 = row.get(3)?;
        let passages = usize::try_from(passages).unwrap_or_default();
        Ok((row.get(0)?, IndexedFile { stamp: row.get(1)?, sha256: row.get(2)?, passages }))
    })?;
    listed.collect()
}

/// Returns the digest of all listed files.
fn digest(change: &Transaction<'_>) -> rusqlite::Result<Digest> {
    let mut files = change.prepare("SELECT name, sha256 FROM file ORDER BY name")?;
    let mut rows = files.query([])?;
    let mut hasher = Hasher::default();
    while let Some(row) = rows.next()? {
        let (name, sha256): (String, String) = (row.get(0)?, row.get(1)?);
        hasher.part(name.as_bytes()).part(sha256.as_bytes());
    }
    Ok(hasher.finish())
}

fn forget(change: &Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    change.execute("DELETE FROM body WHERE rowid IN (SELECT id FROM passage WHERE file = ?1)", [name])?;
    change.execute("DELETE FROM passage WHERE file = ?1", [name])?;
    change.execute("DELETE FROM file WHERE name = ?1", [name])?;
    Ok(())
}

/// A word that the end of a line divides, with the hyphen there.
static DIVIDED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\p{L}+)[-\u{2010}]\r?\n\s*(\p{Ll}\p{L}*)").unwrap_or_else(|_| unreachable!("it is tested"))
});

/// A hyphen that is seen only where a line ends, with that end.
static SOFT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\u{AD}(?:\r?\n\s*)?").unwrap_or_else(|_| unreachable!("it is tested")));

/// Cuts a text into words; a script without spaces is cut into characters. Ligatures are their letters, and a word that the end of a line
/// divides is there whole too.
fn words(text: &str) -> Vec<String> {
    let text: String = SOFT.replace_all(text, "").nfkc().collect();
    let whole = DIVIDED.captures_iter(&text).map(|divided| format!("{}{}", &divided[1], &divided[2]));
    text.unicode_words().map(str::to_owned).chain(whole).collect()
}

/// Returns a count as the index stores it. No count comes near the limit.
fn size(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns a text that changes whenever the file does: its inode number, size, and times of change.
fn stamp(path: &Path) -> Option<String> {
    let data = std::fs::metadata(path).ok()?;
    let (changed, nanoseconds) = (data.ctime(), data.ctime_nsec());
    Some(format!(
        "{} {} {} {} {changed} {nanoseconds}",
        data.ino(),
        data.size(),
        data.mtime(),
        data.mtime_nsec()
    ))
}

/// Returns the name of the index of these places.
fn index_name(places: &[PathBuf]) -> String {
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
