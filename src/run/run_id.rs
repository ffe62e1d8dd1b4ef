//! The id of a run, and the seed that a run has that was given none.

use std::fmt;

use uuid::Uuid;

/// The id of a new run. Ids are ordered by time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RunId(Uuid);

impl RunId {
    /// Makes an id that no other run has.
    #[must_use]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// Takes the id of a run that was begun before.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        text.trim().parse().ok().map(Self)
    }

    /// Returns the seed of a run that was given none: the low half of an id is random. It is recorded.
    #[must_use]
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
