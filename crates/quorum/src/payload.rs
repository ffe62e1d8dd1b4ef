//! The bytes that are signed: a statement, bound to the repository, the roster and the place.
//!
//! Each statement has one form. A commit is an in-toto statement, the same for all who make it. So the commits of a
//! quorum are one envelope with as many signatures, which other programs can verify.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::message::{Commit, NodeId, Value, View};
use super::refused::Refused;
use super::roster::Membership;
use super::statement::{Sequence, Signer, Statement};
use crypto::{Digest, SecretKey, Signature, dsse};

/// The payload type of all statements but commits.
const STATEMENT_TYPE: &str = "application/vnd.consensus.approval+json";

/// The payload type of commits.
const IN_TOTO_TYPE: &str = "application/vnd.in-toto+json";

/// The in-toto type of a commit.
const IN_TOTO_STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// The predicate type of a commit.
pub const PREDICATE_TYPE: &str = "https://github.com/consensus-cli/consensus/approval/v1";

/// The first number that is not exact in every JSON reader.
pub(super) const SEQUENCE_END: Sequence = 1 << 53;

/// A key that signs in one party's name.
#[derive(Clone, Debug)]
pub struct RosterSigner {
    key: SecretKey,
    membership: Arc<Membership>,
}

/// A statement with its bindings. The fields are in alphabetical order, here and in the types below.
#[derive(Deserialize, Serialize)]
struct Payload<T> {
    chain: Digest,
    roster: Digest,
    sequence: Sequence,
    statement: T,
}

#[derive(Deserialize, Serialize)]
struct InToto {
    #[serde(rename = "_type")]
    kind: Cow<'static, str>,
    predicate: Predicate,
    #[serde(rename = "predicateType")]
    predicate_type: Cow<'static, str>,
    subject: [Subject; 1],
}

#[derive(Deserialize, Serialize)]
struct Predicate {
    chain: Digest,
    roster: Digest,
    sequence: Sequence,
    value: Value,
    view: View,
}

#[derive(Deserialize, Serialize)]
struct Subject {
    digest: SubjectDigest,
    name: Cow<'static, str>,
}

#[derive(Deserialize, Serialize)]
struct SubjectDigest {
    sha256: Digest,
}

impl RosterSigner {
    /// Returns a signer with this key under this roster, with its party. Returns `None` if the key is not in the roster.
    pub fn new(key: SecretKey, membership: Arc<Membership>) -> Option<(NodeId, Self)> {
        let party = membership.party(key.public().id())?;
        Some((party, Self { key, membership }))
    }
}

impl Signer for RosterSigner {
    type Signature = Signature;

    fn sign(&self, sequence: Sequence, statement: &Statement) -> Signature {
        let (payload_type, payload) = self.membership.payload(sequence, statement);
        dsse::sign(&self.key, payload_type, &payload)
    }
}

impl Membership {
    /// Returns the bytes of a statement, and their type.
    pub(super) fn payload(&self, sequence: Sequence, statement: &Statement) -> (&'static str, Vec<u8>) {
        let (chain, roster) = (self.chain(), self.digest());
        let Statement::Commit(Commit { view, value }) = *statement else {
            return (STATEMENT_TYPE, canonical(&Payload { chain, roster, sequence, statement }));
        };
        let (name, sha256) = match value {
            Value::Change(digest) => ("change", digest),
            // Nothing is done to the repository.
            Value::Nothing => ("repository", chain),
        };
        let in_toto = InToto {
            kind: IN_TOTO_STATEMENT.into(),
            predicate: Predicate { chain, roster, sequence, value, view },
            predicate_type: PREDICATE_TYPE.into(),
            subject: [Subject { digest: SubjectDigest { sha256 }, name: name.into() }],
        };
        (IN_TOTO_TYPE, canonical(&in_toto))
    }
}

/// Reads a statement, with its repository, roster and place. Extra content shows when the statement is written again.
pub(super) fn read(
    payload_type: &str,
    bytes: &[u8],
) -> Result<(Digest, Digest, Sequence, Statement), Refused> {
    match payload_type {
        STATEMENT_TYPE => {
            let Payload { chain, roster, sequence, statement } =
                serde_json::from_slice::<Payload<Statement>>(bytes)?;
            Ok((chain, roster, sequence, statement))
        }
        IN_TOTO_TYPE => {
            let in_toto: InToto = serde_json::from_slice(bytes)?;
            let Predicate { chain, roster, sequence, view, value } = in_toto.predicate;
            Ok((chain, roster, sequence, Statement::Commit(Commit { view, value })))
        }
        other => Err(Refused::Unreadable(format!("the type `{other}` is unknown"))),
    }
}

/// Writes the canonical form (RFC 8785). This output has that form because the fields are in alphabetical order and
/// the numbers are whole, there is no white space, and strings are escaped no more than needed.
fn canonical<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings and numbers have a JSON form")
}

#[cfg(test)]
mod tests {
    use super::super::message::Vote;
    use super::super::opinion::{Opinion, Severity};
    use super::*;
    use crate::Roster;
    use crate::RosterEntry;
    use proptest::prelude::*;

    fn membership() -> Membership {
        let seat = |seed: u8| RosterEntry {
            name: format!("seat {seed}"),
            key: SecretKey::from_seed(&[seed; 32]).public(),
            domain: "a model".to_owned(),
        };
        let roster = Roster { reviewers: (0..4).map(seat).collect(), orchestrators: vec![seat(9)] };
        Membership::new(Digest::new(b"a repository"), roster).unwrap()
    }

    fn statements() -> impl Strategy<Value = Statement> {
        let value = prop_oneof![
            any::<u8>().prop_map(|seed| Value::Change(Digest::new(&[seed]))),
            Just(Value::Nothing)
        ];
        let vote =
            prop_oneof![Just(Vote::Approve), Just(Vote::Reject), Just(Vote::Abstain), Just(Vote::Follow)];
        (value, any::<View>(), vote, proptest::option::of(any::<View>()), 0..7_u8).prop_map(
            |(value, view, vote, locked, kind)| match kind {
                0 => Statement::PrePrepare { value, view },
                1 => Statement::Want { value },
                2 => Statement::Acknowledge { value, view },
                3 => {
                    let opinion = (vote != Vote::Follow).then(|| Digest::new(b"opinion"));
                    Statement::Prepare { opinion, value, view, vote }
                }
                4 => Statement::Commit(Commit { view, value }),
                5 => Statement::ViewChange { lock: locked.map(|view| (view, value)), view },
                _ => Statement::Checkpoint { head: Digest::new(b"head") },
            },
        )
    }

    fn opinions() -> impl Strategy<Value = Opinion> {
        let severity = prop_oneof![Just(Severity::Low), Just(Severity::Critical)];
        prop_oneof![
            (0_u16..=10_000, any::<String>())
                .prop_map(|(confidence, notes)| Opinion::Approve { confidence, notes }),
            (any::<String>(), severity).prop_map(|(reason, severity)| Opinion::Reject { reason, severity }),
            any::<String>().prop_map(|reason| Opinion::Abstain { reason }),
        ]
    }

    proptest! {
        #[test]
        fn an_opinion_is_written_as_canonical_json(opinion in opinions()) {
            let value = serde_json::to_value(&opinion).unwrap();
            prop_assert_eq!(Digest::new(&serde_json_canonicalizer::to_vec(&value).unwrap()), opinion.digest());
        }
    }

    proptest! {
        #[test]
        fn payload_is_canonical_json_and_reads_back(
            statement in statements(),
            sequence in 0..SEQUENCE_END,
        ) {
            let membership = membership();
            let (payload_type, bytes) = membership.payload(sequence, &statement);
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            prop_assert_eq!(serde_json_canonicalizer::to_vec(&value).unwrap(), bytes.clone());
            let known = (membership.chain(), membership.digest(), sequence, statement);
            prop_assert_eq!(read(payload_type, &bytes).unwrap(), known);
        }
    }
}
