//! The number of a shard, and the number of all shards of its batch.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// One of several shards.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShardOf {
    /// The index of the shard, from 0.
    pub index: u64,
    /// The number of shards.
    pub count: u64,
}

impl Default for ShardOf {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl ShardOf {
    /// Returns whether a run belongs to this shard.
    pub fn has(&self, run: Uuid) -> bool {
        // Every part of a digest is as good as random.
        let (high, _) = run.as_u64_pair();
        (high >> 16) % self.count.max(1) == self.index
    }

    /// Returns the name of this shard's own file: `progress.json` for a single shard, otherwise for example `progress-3.json`.
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
            return Err(format!("a batch has 1 to {SHARDS_MAX} shards"));
        }
        if index >= count {
            return Err(format!(
                "the shards of {count} are 0/{count} to {}/{count}",
                count.saturating_sub(1)
            ));
        }
        Ok(Self { index, count })
    }
}

/// The most shards of a batch.
pub(super) const SHARDS_MAX: u64 = 100_000;
