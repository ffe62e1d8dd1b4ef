//! Compares the decisions that a branch carries with those that are known beside the keys.
//!
//! The input is the trailers of commits that landed, and the decisions in a ledger or in a reviewer's log. The output is
//! whether these keys may sign. Trailers are words that prove nothing: they can stop a key from signing, and nothing is ever
//! signed because of them.
//!
//! A key that is copied without its ledger would give one place in the order of decisions to two changes. The branch remembers
//! the changes that landed, so that the copy is noticed before anything is asked or signed.

use std::path::Path;

use crate::approval::decision_error::DecisionError;
use crate::repository::{Oid, Repository, Trailer};
use crypto::Digest;
use quorum::{Membership, Sequence, Value};

/// The first place that no decision can have: it would not be exact in every JSON reader.
const SEQUENCE_END: Sequence = 1 << 53;

/// The prefix of a digest in a trailer.
const SHA256: &str = "sha256:";

/// A decision of these keys that a branch carries.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LandedDecision {
    /// The place of the decision.
    pub sequence: Sequence,
    /// The SHA-256 of the text that was decided on, if the commit names it.
    pub change: Option<Digest>,
    /// The commit that names the decision.
    pub commit: Oid,
}

/// The state of a branch's decision in the ledger or log beside the keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LedgerMatch {
    /// The same decision is known.
    Same,
    /// Another decision is known at its place.
    Other,
    /// Nothing is known.
    Nothing,
}

/// The ledger or log beside the keys, and the branch that it is compared with.
#[derive(Clone, Copy, Debug)]
pub struct LedgerContext<'a> {
    /// The branch that is compared.
    pub branch: &'a str,
    /// The place of the ledger or the log.
    pub place: &'a Path,
    /// The start of the ledger or the log, as its owner has given it.
    pub starts_at: Option<Sequence>,
    /// The place up to which all decisions are known.
    pub known: Sequence,
    /// Whether missing decisions can be learned from others before anything is signed at their places.
    pub may_learn: bool,
    /// Whether these are the keys of a reviewer in a process of its own.
    pub is_reviewer: bool,
}

impl LandedDecision {
    /// Reads a trailer. Returns `None` if it is under another roster, or if no decision can have such a place.
    fn from_trailer(trailer: &Trailer, roster: Digest) -> Option<Self> {
        let is_place = (1..SEQUENCE_END).contains(&trailer.sequence);
        if parse_digest(trailer.roster.as_deref()) != Some(roster) || !is_place {
            return None;
        }
        let change = parse_digest(trailer.change.as_deref());
        Some(Self { sequence: trailer.sequence, change, commit: trailer.commit.clone() })
    }

    /// Compares this decision with the value that was decided at its place.
    pub fn match_with(&self, decided: Value) -> LedgerMatch {
        let is_same = match decided {
            Value::Change(digest) => self.change.is_none_or(|change| change == digest),
            Value::Nothing => false,
        };
        if is_same { LedgerMatch::Same } else { LedgerMatch::Other }
    }
}

fn parse_digest(text: Option<&str>) -> Option<Digest> {
    text?.strip_prefix(SHA256)?.parse().ok()
}

/// Returns all decisions of this roster that a commit and those before it carry, the last place first. `since` and the commits
/// before it are left out.
///
/// Returns [`DecisionError`] if git fails.
pub fn landed_decisions(
    repository: &Repository,
    membership: &Membership,
    tip: &Oid,
    since: Option<&Oid>,
) -> Result<Vec<LandedDecision>, DecisionError> {
    let trailers = repository.trailers(tip, since)?;
    let roster = membership.digest();
    let mut landed: Vec<LandedDecision> =
        trailers.iter().filter_map(|trailer| LandedDecision::from_trailer(trailer, roster)).collect();
    landed.sort_by_key(|decision| std::cmp::Reverse(decision.sequence));
    Ok(landed)
}

/// Compares the decisions of a branch with those beside the keys, in which `find` looks up a decision. Returns the last place
/// that must be learned from others before anything is signed up to it, or `None` if all is known.
///
/// Returns [`DecisionError::NotInLedger`] if another decision is known at a place, or if a decision is not known and cannot be learned.
pub fn compare(
    landed: &[LandedDecision],
    context: &LedgerContext<'_>,
    find: impl Fn(&LandedDecision) -> LedgerMatch,
) -> Result<Option<Sequence>, DecisionError> {
    let mut unknown = None;
    for decision in landed {
        let sequence = decision.sequence;
        let is_joining = context.is_reviewer && context.starts_at.is_some_and(|start| sequence < start);
        match find(decision) {
            LedgerMatch::Same => {}
            LedgerMatch::Nothing if context.may_learn || is_joining => {
                unknown = unknown.max(Some(sequence));
            }
            found @ (LedgerMatch::Nothing | LedgerMatch::Other) => {
                return Err(DecisionError::NotInLedger(context.explain_lack(decision, found)));
            }
        }
    }
    Ok(unknown)
}

impl LedgerContext<'_> {
    fn explain_lack(&self, decision: &LandedDecision, found: LedgerMatch) -> String {
        let found = match (found, self.known) {
            (LedgerMatch::Other, _) => "has something else at that place".to_owned(),
            (LedgerMatch::Same | LedgerMatch::Nothing, 0) => "knows no decision".to_owned(),
            (LedgerMatch::Same | LedgerMatch::Nothing, known) => format!("knows decisions up to {known}"),
        };
        let LandedDecision { sequence, commit, .. } = decision;
        let next = sequence + 1;
        let word = if self.is_reviewer && self.starts_at.is_none() {
            format!(
                ". If this key has signed nothing for this repository yet, say so once with --ledger-starts-at {next}"
            )
        } else {
            String::new()
        };
        let advice = format!(
            "Copy `decisions/` from the folder of the keys that landed it, or run `consensus keys export` there and `consensus keys \
             import` here; if that folder is lost, make new keys{word}"
        );
        format!(
            "`{}` carries decision {sequence} of these keys, landed by {commit}, but {} {found}: it is an older copy or was left behind, \
             and these keys would sign one number twice. {advice}",
            self.branch,
            self.place.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn landed(sequence: Sequence) -> LandedDecision {
        let commit = Oid::try_from("a".repeat(40)).unwrap();
        LandedDecision { sequence, change: Some(Digest::new(b"a change")), commit }
    }

    fn context(starts_at: Option<Sequence>, is_reviewer: bool, may_learn: bool) -> LedgerContext<'static> {
        LedgerContext {
            branch: "main",
            place: Path::new("keys"),
            starts_at,
            known: 0,
            may_learn,
            is_reviewer,
        }
    }

    /// A ledger refuses a decision that it does not know, and a reviewer may learn it.
    #[test]
    fn unknown_decision_is_refused_or_learned() {
        let all = [landed(3), landed(2)];
        let nothing = |_: &LandedDecision| LedgerMatch::Nothing;
        assert!(compare(&all, &context(None, false, false), nothing).is_err());
        assert!(compare(&all, &context(None, true, false), nothing).is_err(), "an empty log");
        assert_eq!(compare(&all, &context(None, true, true), nothing).unwrap(), Some(3));
        assert_eq!(compare(&all, &context(Some(4), true, false), nothing).unwrap(), Some(3));
        assert!(compare(&all, &context(Some(3), true, false), nothing).is_err(), "3 is not below 3");
        assert_eq!(compare(&all, &context(None, false, false), |_| LedgerMatch::Same).unwrap(), None);
        assert!(compare(&all, &context(None, true, true), |_| LedgerMatch::Other).is_err());
    }

    /// A trailer with a place that no decision can have is ignored too.
    #[test]
    fn trailers_of_other_rosters_are_ignored() {
        let roster = Digest::new(b"a roster");
        let trailer = |sequence, roster: Option<String>| Trailer {
            commit: Oid::try_from("a".repeat(40)).unwrap(),
            sequence,
            change: Some(format!("sha256:{}", Digest::new(b"a change"))),
            roster,
        };
        let own = || Some(format!("sha256:{roster}"));
        let named = LandedDecision::from_trailer(&trailer(1, own()), roster).unwrap();
        assert_eq!(named.match_with(Value::Change(Digest::new(b"a change"))), LedgerMatch::Same);
        assert_eq!(named.match_with(Value::Nothing), LedgerMatch::Other, "what was rejected has not landed");
        let other = format!("sha256:{}", Digest::new(b"another roster"));
        for trailer in
            [trailer(1, Some(other)), trailer(1, None), trailer(0, own()), trailer(u64::MAX, own())]
        {
            assert_eq!(LandedDecision::from_trailer(&trailer, roster), None, "{trailer:?}");
        }
    }
}
