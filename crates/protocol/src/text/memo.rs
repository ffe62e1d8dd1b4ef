//! Stores of results that are expensive to make, because the runs of a batch mostly need the same ones.
//!
//! The input is a text that names everything on which the result depends, and a way to make the result. The output is
//! the result. Results that have not been asked for in a long time are forgotten. Nothing here outlives its owner: the
//! program that runs machines holds the stores, and a machine without stores makes each result anew.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::decoding::Decoder;
use super::schema::SchemaText;

/// The bytes that a text has at the most, on average. A text that is far longer, such as one with a document, is not kept.
const BYTES_EACH: u64 = 8 << 10;

/// The stores of many runs; the default has none. No result depends on them, so all are equal.
#[derive(Clone, Default)]
pub struct TextMemos(Option<Arc<Stores>>);

struct Stores {
    decoders: Memo<Arc<Decoder>>,
    schemas: Memo<SchemaText>,
    folded: Memo<Arc<str>>,
    /// Few are kept, because a compiled schema may take a megabyte.
    forms: Memo<Arc<Validator>>,
}

impl TextMemos {
    /// Creates empty stores, which all clones share.
    pub fn new() -> Self {
        Self(Some(Arc::new(Stores {
            decoders: Memo::new(1024),
            schemas: Memo::new(1024),
            folded: Memo::new(256),
            forms: Memo::new(32),
        })))
    }

    pub(super) fn decoder(&self, key: &str, make: impl FnOnce() -> Arc<Decoder>) -> Arc<Decoder> {
        match &self.0 {
            Some(stores) => stores.decoders.get(key, make),
            None => make(),
        }
    }

    pub(super) fn schema(&self, text: &str, make: impl FnOnce() -> SchemaText) -> SchemaText {
        match &self.0 {
            Some(stores) => stores.schemas.get(text, make),
            None => make(),
        }
    }

    pub(super) fn folded(&self, text: &str, make: impl FnOnce() -> Arc<str>) -> Arc<str> {
        match &self.0 {
            Some(stores) => stores.folded.get(text, make),
            None => make(),
        }
    }

    pub(super) fn form(&self, schema: &str, make: impl FnOnce() -> Arc<Validator>) -> Arc<Validator> {
        match &self.0 {
            Some(stores) => stores.forms.get(schema, make),
            None => make(),
        }
    }
}

impl PartialEq for TextMemos {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for TextMemos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TextMemos")
    }
}

/// Results, by the text that names everything on which they depend.
#[derive(Debug)]
struct Memo<V>(Cache<String, V, ByLength>);

/// The weight of a result: that of its text, which it is hardly ever longer than.
#[derive(Clone, Debug)]
struct ByLength;

impl<V> Weighter<String, V> for ByLength {
    fn weight(&self, text: &String, _: &V) -> u64 {
        text.len() as u64 + BYTES_EACH / 8
    }
}

impl<V: Clone> Memo<V> {
    /// Creates a store for about this many results.
    fn new(most: usize) -> Self {
        Self(Cache::with_weighter(most, most as u64 * BYTES_EACH, ByLength))
    }

    /// Returns the result for this key, and makes it if it is not there.
    fn get(&self, key: &str, make: impl FnOnce() -> V) -> V {
        match self.0.get_or_insert_with(key, || Ok::<V, Infallible>(make())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_result_is_not_made_again() {
        let memo = Memo::new(4);
        assert_eq!(memo.get("key", || 1), 1);
        assert_eq!(memo.get("key", || 2), 1);
        assert_eq!(memo.get("other key", || 2), 2);
    }
}
