//! A store of results that are expensive to make, because the runs of a batch mostly need the same ones.
//!
//! The input is a text that names everything on which the result depends, and a way to make the result. The output is
//! the result. Results that have not been asked for in a long time are forgotten. Nothing here outlives its owner: the
//! program that runs machines holds the stores, and a store without room, the default, keeps nothing.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// The bytes that a text has at the most, on average. A text that is far longer, such as one with a document, is not kept.
const BYTES_EACH: u64 = 8 << 10;

/// Results, by the text that names everything on which they depend. Clones share them; the default keeps none.
#[derive(Clone)]
pub struct Memo<V>(Option<Arc<Cache<String, V, ByLength>>>);

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
    pub(super) fn new(most: usize) -> Self {
        Self(Some(Arc::new(Cache::with_weighter(most, most as u64 * BYTES_EACH, ByLength))))
    }

    /// Returns the result for this key, and makes it if it is not there.
    pub(super) fn get(&self, key: &str, make: impl FnOnce() -> V) -> V {
        let Some(cache) = &self.0 else { return make() };
        match cache.get_or_insert_with(key, || Ok::<V, Infallible>(make())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }
}

impl<V> Default for Memo<V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<V> fmt::Debug for Memo<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memo")
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
        assert_eq!(memo.clone().get("key", || 2), 1);
        assert_eq!(memo.get("other key", || 2), 2);
        let none = Memo::default();
        assert_eq!(none.get("key", || 3), 3);
        assert_eq!(none.get("key", || 4), 4);
    }
}
