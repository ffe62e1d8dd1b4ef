//! A store of results that are expensive to make, because the runs of a batch mostly need the same ones.
//!
//! The input is a text that names everything on which the result depends, and a way to make the result. The output is
//! the result. Only a clock can show whether it was kept. Results that have not been wanted for long are forgotten.

use std::convert::Infallible;

use quick_cache::sync::Cache;

/// Results, by the text that names everything on which they depend.
#[derive(Debug)]
pub(super) struct Memo<V>(Cache<String, V>);

impl<V: Clone> Memo<V> {
    /// Creates a store for at most this many results.
    pub(super) fn new(most: usize) -> Self {
        Self(Cache::new(most))
    }

    /// Returns the result for this key, and makes it if it is not there.
    pub(super) fn get(&self, key: &str, make: impl FnOnce() -> V) -> V {
        match self.0.get_or_insert_with(key, || Ok::<V, Infallible>(make())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }
}
