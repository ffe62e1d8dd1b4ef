//! The findings of pilots: for which models and kinds of answer a vote draws programs beside words.
//!
//! `consensus calibrate --programs` writes the user's own file of findings. It is in the user's configuration folder, so that no project
//! decides for its visitor.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::bounded_read::config_folder;
use super::error::ConfigError;
use crate::files::{SMALL_BYTES_MAX, private_folder, read_text, write_whole};
use protocol::text::CanonicalKind;

/// The name of the file in the configuration folder.
const FILE: &str = "pilots.json";

/// The version of the file's format.
const VERSION: u32 = 1;

/// The largest count that a pilot can have.
const COUNT_MAX: u64 = 1 << 40;

/// The fewest pairs of equal answers, of two words and of unlike samples, from which a pilot concludes anything.
pub const PAIRS_MIN: u64 = 20;

/// The fewest tasks from which a pilot concludes anything.
pub const PILOT_TASKS_MIN: u64 = 40;

/// A number of cases, and how many of them were right.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RightOf {
    pub of: u64,
    /// The number of cases that were right.
    pub right: u64,
}

/// The finding of a pilot for one model and one kind of answer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pilot {
    pub model: String,
    pub kind: CanonicalKind,
    /// The number of tasks that have samples of both methods.
    pub tasks: u64,
    /// The samples in words.
    pub words: RightOf,
    pub programs: RightOf,
    /// The pairs of samples in words of one task that give the same answer.
    pub equal_words: RightOf,
    /// The pairs of a sample in words and a program of one task that give the same answer.
    pub equal_unlike: RightOf,
}

/// All findings of a user.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pilots {
    v: u32,
    pilots: Vec<Pilot>,
}

impl RightOf {
    pub fn count(&mut self, is_right: bool) {
        self.of += 1;
        self.right += u64::from(is_right);
    }

    /// Returns the share that was right; 0 without a case.
    #[expect(clippy::cast_precision_loss, reason = "the number is for people")]
    pub fn share(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.right as f64 / self.of as f64 }
    }

    /// Returns true if this share is at least `tenths` tenths of the other one. The comparison is exact.
    fn is_at_least(self, tenths: u128, other: Self) -> bool {
        let own = u128::from(self.right) * u128::from(other.of);
        own * 10 >= u128::from(other.right) * u128::from(self.of) * tenths
    }
}

impl Pilot {
    fn counts(&self) -> [RightOf; 4] {
        [self.words, self.programs, self.equal_words, self.equal_unlike]
    }

    /// Returns true if there are enough tasks and pairs of equal answers to conclude anything.
    pub fn is_conclusive(&self) -> bool {
        self.tasks >= PILOT_TASKS_MIN && self.equal_words.of >= PAIRS_MIN && self.equal_unlike.of >= PAIRS_MIN
    }

    /// Returns true if programs are worth their tokens.
    ///
    /// They must be right at least 0.8 times as often as words. An answer on which a word and a program agree must be right more often
    /// than one on which two words agree. A simulation of votes gave both conditions: a second method pays if it is about as good as the
    /// first and makes other mistakes.
    pub fn programs_help(&self) -> bool {
        let (words, programs) = (self.words, self.programs);
        let is_near = words.of > 0 && programs.of > 0 && programs.is_at_least(8, words);
        let is_purer = !self.equal_words.is_at_least(10, self.equal_unlike);
        self.is_conclusive() && is_near && is_purer
    }
}

impl Pilots {
    /// Returns the path of the user's file, if there is a configuration folder.
    pub fn file() -> Option<PathBuf> {
        config_folder().map(|folder| folder.join(FILE))
    }

    /// Reads the findings; none if there is no file.
    ///
    /// Returns [`ConfigError::Usage`] if the file cannot be read.
    pub fn load() -> Result<Self, ConfigError> {
        let Some(path) = Self::file().filter(|path| path.exists()) else { return Ok(Self::default()) };
        let text = read_text(&path, SMALL_BYTES_MAX).map_err(|error| unusable(&path, &error.to_string()))?;
        let pilots: Self =
            serde_json::from_str(&text).map_err(|error| unusable(&path, &error.to_string()))?;
        if pilots.v != VERSION {
            return Err(unusable(&path, "it is of another version of the program"));
        }
        let mut counts = pilots.pilots.iter().flat_map(Pilot::counts);
        if counts.any(|count| count.right > count.of || count.of > COUNT_MAX) {
            return Err(unusable(&path, "a count in it is impossible"));
        }
        Ok(pilots)
    }

    /// Returns the finding for a model and a kind of answer.
    pub fn find(&self, model: &str, kind: CanonicalKind) -> Option<&Pilot> {
        self.pilots.iter().find(|pilot| pilot.model == model && pilot.kind == kind)
    }

    /// Adds a finding in place of an earlier one for the same model and kind.
    pub fn put(&mut self, pilot: Pilot) {
        self.pilots.retain(|known| known.model != pilot.model || known.kind != pilot.kind);
        self.pilots.push(pilot);
    }

    /// Writes the findings to the user's file.
    ///
    /// Returns any error of the file system.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let text = serde_json::to_string_pretty(&Self { v: VERSION, pilots: self.pilots.clone() })?;
        write_whole(path, &(text + "\n"), 0o600)
    }
}

fn unusable(path: &Path, why: &str) -> ConfigError {
    let path = path.display();
    ConfigError::Usage(format!(
        "the findings of pilots `{path}`: {why}; delete the file, and run the pilot again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs help if they are nearly as often right as words and their agreement is purer.
    #[test]
    fn programs_help_if_near_and_purer() {
        let rate = |right, of| RightOf { of, right };
        let found = Pilot {
            model: "m".to_owned(),
            kind: CanonicalKind::Number,
            tasks: 40,
            words: rate(50, 100),
            programs: rate(40, 100),
            equal_words: rate(90, 100),
            equal_unlike: rate(91, 100),
        };
        assert!(found.programs_help());
        for worse in [
            Pilot { tasks: 39, ..found.clone() },
            Pilot { programs: rate(39, 100), ..found.clone() },
            Pilot { equal_unlike: rate(90, 100), ..found.clone() },
            Pilot { equal_unlike: rate(0, 0), ..found.clone() },
            Pilot { programs: rate(0, 0), ..found.clone() },
        ] {
            assert!(!worse.programs_help(), "{worse:?}");
        }
    }
}
