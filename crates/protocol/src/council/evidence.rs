//! The sources that may be cited, and the evidence in them. A citation counts only if its words are in its source.

use std::ops::Range;

use serde::Serialize;

use crate::contract::{Passage, Task};
use crate::text::{escape, find_verbatim};

/// The name of the task as a source.
pub(super) const TASK: &str = "task";

/// A text that may be cited.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Source {
    /// The short name in prompts: `task`, `D1`, `S1`.
    pub name: String,
    /// The origin of the text, for people.
    pub title: String,
    pub text: String,
    /// The offset, in bytes, at which the text begins in its file.
    pub start: usize,
    /// Whether the text differs from the file's, because tokens replace parts of it.
    pub redacted: bool,
}

/// Words that were found in their source.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Evidence {
    /// The source's short name.
    pub source: String,
    /// The origin of the source.
    pub title: String,
    /// The words, exactly as the source has them.
    pub quote: String,
    /// The place of the words in the file, in bytes; if the file was redacted, the place in the redacted text.
    pub span: Range<usize>,
    /// Whether the source was redacted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

/// Everything that may be cited in a run.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Source>);

impl Sources {
    /// Returns the sources with which a run begins: the task and its documents.
    pub fn of_task(task: &Task) -> Self {
        let mut all = vec![Source {
            name: TASK.to_owned(),
            title: "the task".to_owned(),
            // The task is shown as the agents see it, so that words that they copy are found.
            text: escape::plain(task.prompt.trim()),
            start: 0,
            redacted: false,
        }];
        for (index, document) in task.documents.iter().enumerate() {
            all.push(Source {
                name: format!("D{}", index + 1),
                title: document.name.clone(),
                text: document.text.to_string(),
                start: 0,
                redacted: document.redacted,
            });
        }
        Self(all)
    }

    /// Returns the source with this name.
    pub fn get(&self, name: &str) -> Option<&Source> {
        self.0.iter().find(|source| source.name == name)
    }

    /// Returns all sources, the task first.
    pub fn all(&self) -> &[Source] {
        &self.0
    }

    /// Returns the names of all sources.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|source| source.name.as_str())
    }

    /// Returns the sources from `index` on, without the task.
    pub fn documents_from(&self, index: usize) -> impl Iterator<Item = &Source> {
        self.0.iter().skip(index).filter(|source| source.name != TASK)
    }

    /// Returns the number of sources.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds passages under the names `S1`, `S2` and so on. A passage that is already there keeps its name.
    pub fn add(&mut self, passages: &[Passage]) {
        for Passage { document, start, text, redacted } in passages {
            let known = self.0.iter().filter(|source| source.name.starts_with('S'));
            if known.clone().any(|s| s.title == *document && s.start == *start && s.text == *text) {
                continue;
            }
            let number = known.count() + 1;
            let (title, text) = (document.clone(), text.clone());
            self.0.push(Source {
                name: format!("S{number}"),
                title,
                text,
                start: *start,
                redacted: *redacted,
            });
        }
    }
}

impl Source {
    /// Returns the name of the file without its folders. Folders show where a user keeps things, which does not concern a model or its
    /// server.
    pub fn file_name(&self) -> &str {
        self.title.rsplit('/').next().unwrap_or(&self.title)
    }

    /// Returns the place of `quote` in this source, if it is there.
    pub fn find(&self, quote: &str) -> Option<Evidence> {
        let Range { start, end } = find_verbatim(&self.text, quote)?;
        Some(Evidence {
            source: self.name.clone(),
            title: self.title.clone(),
            quote: self.text[start..end].to_owned(),
            span: self.start + start..self.start + end,
            redacted: self.redacted,
        })
    }
}

impl Evidence {
    /// Returns whether two quotes are about the same words: the same text, or mostly the same place of one source.
    pub fn is_about_the_same(&self, other: &Self) -> bool {
        if self.source != other.source {
            return self.quote.split_whitespace().eq(other.quote.split_whitespace());
        }
        let shared = self.span.end.min(other.span.end).saturating_sub(self.span.start.max(other.span.start));
        let whole = self.span.end.max(other.span.end) - self.span.start.min(other.span.start);
        2 * shared >= whole
    }
}
