//! Which shard of a batch this is, of how many.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// One of several shards.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShardOf {
    /// Which one, from 0.
    pub index: u64,
    /// How many there are.
    pub count: u64,
}

impl Default for ShardOf {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl ShardOf {
    /// Whether a run belongs to this shard.
    #[must_use]
    pub fn has(&self, run: Uuid) -> bool {
        // Of a digest every part is as good as random.
        let (high, _) = run.as_u64_pair();
        (high >> 16) % self.count.max(1) == self.index
    }

    /// What a file of this shard is called beside those of others, if there are others: `progress.json`, or `progress-3.json`.
    #[must_use]
    pub fn file_name(self, stem: &str, extension: &str) -> String {
        if self.count == 1 {
            format!("{stem}.{extension}")
        } else {
            format!("{stem}-{}.{extension}", self.index)
        }
    }
}

impl fmt::Display for ShardOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for ShardOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Option<(u64, u64)> =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let (index, count) = parts.ok_or("a shard is I/N, such as 0/4")?;
        if count == 0 || count > SHARDS_MAX {
            return Err(format!("there are 1 to {SHARDS_MAX} shards"));
        }
        if index >= count {
            return Err(format!("shards of {count} are 0/{count} to {}/{count}", count.saturating_sub(1)));
        }
        Ok(Self { index, count })
    }
}

/// So many shards a batch has at most.
pub(super) const SHARDS_MAX: u64 = 100_000;
