//! The id of a run, and the seed of a run that has no given seed.

use std::fmt;

use uuid::Uuid;

/// The id of a new run. Ids are ordered by time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RunId(Uuid);

impl RunId {
    /// Makes an id that no other run has.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// Parses the id of an earlier run.
    pub fn from_text(text: &str) -> Option<Self> {
        text.trim().parse().ok().map(Self)
    }

    /// Returns the seed of a run without a given seed: the low half of an id is random. The seed is recorded.
    pub fn seed(self) -> u64 {
        self.0.as_u64_pair().1 >> 11
    }
}

impl Default for RunId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
