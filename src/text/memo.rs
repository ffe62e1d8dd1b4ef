//! What was dear to make, kept for whoever needs the same again: the runs of a batch mostly do.
//!
//! In: a text that says everything that the result depends on, and how to make it. Out: the result. That it was kept is seen by
//! nothing but a clock. What was not wanted for long is forgotten.

use std::convert::Infallible;

use quick_cache::sync::Cache;

/// Results by what they depend on.
#[derive(Debug)]
pub(super) struct Memo<V>(Cache<String, V>);

impl<V: Clone> Memo<V> {
    /// Keeps so many.
    pub(super) fn new(most: usize) -> Self {
        Self(Cache::new(most))
    }

    /// Returns what belongs to this key, made if it is not there.
    pub(super) fn get(&self, key: &str, make: impl FnOnce() -> V) -> V {
        match self.0.get_or_insert_with(key, || Ok::<V, Infallible>(make())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }
}
