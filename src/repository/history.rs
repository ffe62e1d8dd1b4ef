//! The decisions in the history of a branch: the trailers that landed commits carry.
//!
//! The input is a commit. The output is the trailers of this program in it and in all its ancestors. They are words in
//! messages, which anyone who may push can write: they prove nothing. Nothing is written here.

use super::error::RepositoryError;
use super::git::{GitCall, Repository};
use super::oid::Oid;

/// The trailers of one decision.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trailer {
    /// The commit whose message has them.
    pub commit: Oid,
    /// The place of the decision.
    pub sequence: u64,
    /// The change that was decided on: `sha256:` and a digest, if it is written as it should be.
    pub change: Option<String>,
    /// The roster of the decision, in the same form.
    pub roster: Option<String>,
}

impl Repository {
    /// Returns the trailers of all decisions in a commit and its ancestors, the newest first. `since` and its ancestors are
    /// left out.
    ///
    /// All parents are followed: a branch that was merged into another still carries what landed on it.
    ///
    /// Returns [`RepositoryError`] if git fails.
    pub fn trailers(&self, tip: &Oid, since: Option<&Oid>) -> Result<Vec<Trailer>, RepositoryError> {
        let without = since.map(|since| format!("^{since}"));
        let words = [
            // The settings of this copy do not change the meaning of a trailer.
            "-c",
            "trailer.separators=:",
            "log",
            "--no-show-signature",
            "--no-color",
            "--encoding=UTF-8",
            "--regexp-ignore-case",
            "--fixed-strings",
            "--grep=Consensus-Sequence",
            "--format=%x00%H%n%(trailers:only,unfold)",
            tip.as_str(),
        ];
        let words: Vec<&str> = words.into_iter().chain(without.as_deref()).chain(["--"]).collect();
        let out = self.must(&GitCall::new(&words))?;
        Ok(read(&String::from_utf8_lossy(&out)))
    }
}

/// Reads the list of git: for each commit a NUL, its name on a line, and its trailers. A message may hold the trailers of
/// several decisions, as after commits were joined into one; all of them are returned.
fn read(text: &str) -> Vec<Trailer> {
    let mut found: Vec<Trailer> = Vec::new();
    for message in text.split('\0') {
        let mut lines = message.lines();
        let Some(commit) = lines.next().and_then(Oid::read) else { continue };
        let mut is_open = false;
        for (key, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if key.eq_ignore_ascii_case("Consensus-Sequence") {
                is_open = false;
                if let Ok(sequence) = value.parse() {
                    is_open = true;
                    found.push(Trailer { commit: commit.clone(), sequence, change: None, roster: None });
                }
                continue;
            }
            if !is_open {
                continue;
            }
            let Some(last) = found.last_mut() else { continue };
            if key.eq_ignore_ascii_case("Consensus-Change") {
                last.change.get_or_insert_with(|| value.to_owned());
            } else if key.eq_ignore_ascii_case("Consensus-Roster") {
                last.roster.get_or_insert_with(|| value.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decision_has_own_change_and_roster() {
        let (one, two) = ("a".repeat(40), "b".repeat(40));
        let text = format!(
            "\0{one}\nSigned-off-by: me\nConsensus-Sequence: 2\nConsensus-Change: sha256:c\nConsensus-Roster: sha256:r\n\
             consensus-sequence: 3\nConsensus-Change: sha256:d\n\n\0{two}\nConsensus-Change: sha256:e\n\
             Consensus-Sequence: many\nConsensus-Roster: sha256:r\n"
        );
        let found = read(&text);
        let said: Vec<_> =
            found.iter().map(|t| (t.sequence, t.change.as_deref(), t.roster.as_deref())).collect();
        assert_eq!(said, [(2, Some("sha256:c"), Some("sha256:r")), (3, Some("sha256:d"), None)]);
        assert!(found.iter().all(|trailer| trailer.commit.as_str() == one));
        assert_eq!(read(""), []);
    }
}
