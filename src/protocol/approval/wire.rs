//! Posts as JSON: signed envelopes, which are read only if they belong here.
//!
//! Whatever is read has been signed by a key of the roster, for this repository, this roster and one place in the order of
//! decisions, over the very bytes that would be written for it. So there is one form for each statement, and what nobody
//! knows has no place in it. A commit is an in-toto statement, the same for all who make it: the commits of a quorum are
//! one envelope with as many signatures, which other programs can verify.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::message::{Commit, Value, View};
use super::post::{Party, Post, Proof};
use super::roster::Registry;
use super::statement::{Change, Letter, Sequence, Signed, Signer, Statement};
use crate::crypto::dsse::{self, Envelope, NotAnEnvelope};
use crate::crypto::{Digest, SecretKey, Signature};

/// Longer posts are not read, in bytes: a change of some megabytes, or the locks of a hundred reviewers.
pub const POST_BYTES_MAX: usize = 16 << 20;

/// The type of all statements but commits.
const STATEMENT_TYPE: &str = "application/vnd.consensus.approval+json";

/// The type of commits.
const IN_TOTO_TYPE: &str = "application/vnd.in-toto+json";

/// The form of a commit.
const IN_TOTO_STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// What a commit is about.
pub const PREDICATE_TYPE: &str = "https://github.com/consensus-cli/consensus/approval/v1";

/// Numbers from here on are not exact in every JSON reader.
const SEQUENCE_END: Sequence = 1 << 53;

/// Why a post is not read.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Refused {
    /// It is too long to be read.
    #[error("the post has {0} bytes, and {POST_BYTES_MAX} are read at most")]
    TooLong(usize),
    /// It is no post.
    #[error("the post cannot be read: {0}")]
    Unreadable(String),
    /// Its envelope is none.
    #[error(transparent)]
    Envelope(#[from] NotAnEnvelope),
    /// A key is not in the roster.
    #[error("the roster has no key {0}")]
    Stranger(Digest),
    /// A key is there twice.
    #[error("the key {0} has signed twice, and counts once")]
    Twice(Digest),
    /// A signature is wrong.
    #[error("the signature of {0:?} is wrong")]
    Forged(Party),
    /// It is signed for another repository.
    #[error("it is signed for the repository {0}, and this is another")]
    OtherChain(Digest),
    /// It is signed under another roster.
    #[error("it is signed under the roster {0}, and this is another")]
    OtherRoster(Digest),
    /// Somebody says what is another's to say.
    #[error("{0:?} says what others have to say")]
    NotItsPart(Party),
    /// The bytes are not those that would be written.
    #[error("the statement is not in its canonical form, or has something that nobody knows")]
    NotCanonical,
    /// Its change is not the one that is named.
    #[error("the change has the digest {0}, and another is named")]
    OtherChange(Digest),
}

/// Signs in one party's name.
#[derive(Clone, Debug)]
pub struct Seal {
    key: SecretKey,
    registry: Arc<Registry>,
}

/// What is said, as it was read.
struct Examined {
    sequence: Sequence,
    statement: Statement,
    payload: Vec<u8>,
}

/// The fields of these are in alphabetical order.
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

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum WirePost {
    Letter(WireLetter),
    Proof(WireProof),
    Stable(Envelope),
    Have(Sequence),
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireLetter {
    envelope: Envelope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grounds: Vec<WireLetter>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireProof {
    envelope: Envelope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<String>,
}

impl Seal {
    /// Signs with this key under this roster. `None` if the roster does not have it.
    #[must_use]
    pub fn new(key: SecretKey, registry: Arc<Registry>) -> Option<(Party, Self)> {
        let party = registry.party(key.public().id())?;
        Some((party, Self { key, registry }))
    }
}

impl Signer for Seal {
    type Signature = Signature;

    fn sign(&self, sequence: Sequence, statement: &Statement) -> Signature {
        let (payload_type, payload) = self.registry.payload(sequence, statement);
        dsse::sign(&self.key, payload_type, &payload)
    }
}

impl Registry {
    /// The bytes of a statement, and their type.
    fn payload(&self, sequence: Sequence, statement: &Statement) -> (&'static str, Vec<u8>) {
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

    /// Puts statements that say the same into one envelope. `None` if there are none, or they differ.
    #[must_use]
    pub fn envelope(&self, signed: &[Signed<Signature>]) -> Option<Envelope> {
        let first = signed.first()?;
        let (payload_type, payload) = self.payload(first.sequence, &first.statement);
        let of_one = |signed: &Signed<Signature>| {
            let is_same = signed.sequence == first.sequence && signed.statement == first.statement;
            let key = self.key(author(signed)).filter(|_| is_same)?;
            Some((key.id(), signed.signature))
        };
        let signatures = signed.iter().map(of_one).collect::<Option<Vec<_>>>()?;
        Some(Envelope::new(payload_type, &payload, &signatures))
    }

    /// Reads an envelope: one statement, by each who has signed it.
    ///
    /// # Errors
    ///
    /// [`Refused`] if anything in it is not as it would be written, or a single signature is wrong.
    pub fn open(&self, envelope: &Envelope) -> Result<Vec<Signed<Signature>>, Refused> {
        let examined = self.examine(envelope)?;
        self.verify(envelope, &examined)
    }

    /// Reads what is said, whoever says it.
    fn examine(&self, envelope: &Envelope) -> Result<Examined, Refused> {
        let payload = envelope.payload()?;
        let (chain, roster, sequence, statement) = read(envelope.payload_type(), &payload)?;
        if chain != self.chain() {
            return Err(Refused::OtherChain(chain));
        }
        if roster != self.digest() {
            return Err(Refused::OtherRoster(roster));
        }
        let (payload_type, bytes) = self.payload(sequence, &statement);
        if sequence >= SEQUENCE_END || payload_type != envelope.payload_type() || payload != bytes {
            return Err(Refused::NotCanonical);
        }
        Ok(Examined { sequence, statement, payload })
    }

    /// Reads who says it, and whether they do.
    fn verify(&self, envelope: &Envelope, examined: &Examined) -> Result<Vec<Signed<Signature>>, Refused> {
        let Examined { sequence, statement, payload } = examined;
        let message = dsse::signed_bytes(envelope.payload_type(), payload);
        let (mut known, mut opened) = (BTreeSet::new(), Vec::new());
        for (keyid, signature) in envelope.signatures()? {
            let party = self.party(keyid).ok_or(Refused::Stranger(keyid))?;
            if !known.insert(keyid) {
                return Err(Refused::Twice(keyid));
            }
            let (Party::Reviewer(by) | Party::Orchestrator(by)) = party;
            let signed = Signed { by, sequence: *sequence, statement: statement.clone(), signature };
            if author(&signed) != party {
                return Err(Refused::NotItsPart(party));
            }
            if !self.key(party).is_some_and(|key| key.verifies(&message, &signature)) {
                return Err(Refused::Forged(party));
            }
            opened.push(signed);
        }
        Ok(opened)
    }

    /// Writes a post.
    ///
    /// # Panics
    ///
    /// If the post was not made under this roster.
    #[must_use]
    pub fn write(&self, post: &Post<Signature>) -> String {
        let envelope = |signed: &[Signed<Signature>]| {
            self.envelope(signed).expect("it says one thing, by those who are in the roster")
        };
        let wire = match post {
            Post::Letter(letter) => WirePost::Letter(self.write_letter(letter)),
            Post::Proof(Proof { change, commits }) => WirePost::Proof(WireProof {
                envelope: envelope(commits),
                change: change.as_ref().map(|change| change.text().to_owned()),
            }),
            Post::Stable(signed) => WirePost::Stable(envelope(signed)),
            Post::Have(sequence) => WirePost::Have(*sequence),
        };
        serde_json::to_string(&wire).expect("strings and numbers have a JSON form")
    }

    fn write_letter(&self, letter: &Letter<Signature>) -> WireLetter {
        let Letter { signed, change, grounds } = letter;
        WireLetter {
            envelope: self.envelope(std::slice::from_ref(signed)).expect("its author is in the roster"),
            change: change.as_ref().map(|change| change.text().to_owned()),
            grounds: grounds.iter().map(|letter| self.write_letter(letter)).collect(),
        }
    }

    /// Reads a post; `None` if it is a letter that its reader does not want, whose signature is not looked at then.
    ///
    /// Of a letter's grounds those that are refused are left out: what one liar adds spoils nothing.
    ///
    /// # Errors
    ///
    /// [`Refused`] says why it is not read.
    pub fn read(
        &self,
        text: &str,
        is_wanted: impl Fn(Sequence, &Statement) -> bool,
    ) -> Result<Option<Post<Signature>>, Refused> {
        if text.len() > POST_BYTES_MAX {
            return Err(Refused::TooLong(text.len()));
        }
        let unreadable = |e: serde_json::Error| Refused::Unreadable(e.to_string());
        Ok(Some(match serde_json::from_str(text).map_err(unreadable)? {
            WirePost::Letter(letter) => {
                let examined = self.examine(&letter.envelope)?;
                if !is_wanted(examined.sequence, &examined.statement) {
                    return Ok(None);
                }
                Post::Letter(self.read_letter(letter, &examined)?)
            }
            WirePost::Proof(WireProof { envelope, change }) => {
                let commits = self.open(&envelope)?;
                let change = read_change(change, commits.first())?;
                Post::Proof(Proof { change, commits })
            }
            WirePost::Stable(envelope) => Post::Stable(self.open(&envelope)?),
            WirePost::Have(sequence) => Post::Have(sequence),
        }))
    }

    fn read_letter(&self, letter: WireLetter, examined: &Examined) -> Result<Letter<Signature>, Refused> {
        let [signed]: [Signed<Signature>; 1] = self
            .verify(&letter.envelope, examined)?
            .try_into()
            .map_err(|_| Refused::Unreadable("a letter has one signature".to_owned()))?;
        let change = read_change(letter.change, Some(&signed))?;
        let belongs = |other: &Examined| match signed.statement {
            Statement::PrePrepare { .. } => matches!(other.statement, Statement::ViewChange { .. }),
            Statement::ViewChange { .. } => matches!(other.statement, Statement::Prepare { .. }),
            Statement::Want
            | Statement::Acknowledge { .. }
            | Statement::Prepare { .. }
            | Statement::Commit(_)
            | Statement::Checkpoint { .. } => false,
        };
        let read = |letter: WireLetter| {
            let examined = self.examine(&letter.envelope).ok().filter(belongs)?;
            self.read_letter(letter, &examined).ok()
        };
        let grounds = letter.grounds.into_iter().filter_map(read).collect();
        Ok(Letter { signed, change, grounds })
    }
}

/// Whose part a statement is: its author's place is in the list of these.
fn author(signed: &Signed<Signature>) -> Party {
    match signed.statement {
        Statement::PrePrepare { .. } | Statement::Want => Party::Orchestrator(signed.by),
        Statement::Acknowledge { .. }
        | Statement::Prepare { .. }
        | Statement::Commit(_)
        | Statement::ViewChange { .. }
        | Statement::Checkpoint { .. } => Party::Reviewer(signed.by),
    }
}

/// Reads what is said, and for which repository, roster and place. What else there is shows when it is written again.
fn read(payload_type: &str, bytes: &[u8]) -> Result<(Digest, Digest, Sequence, Statement), Refused> {
    let unreadable = |e: serde_json::Error| Refused::Unreadable(e.to_string());
    match payload_type {
        STATEMENT_TYPE => {
            let Payload { chain, roster, sequence, statement } =
                serde_json::from_slice::<Payload<Statement>>(bytes).map_err(unreadable)?;
            Ok((chain, roster, sequence, statement))
        }
        IN_TOTO_TYPE => {
            let in_toto: InToto = serde_json::from_slice(bytes).map_err(unreadable)?;
            let Predicate { chain, roster, sequence, view, value } = in_toto.predicate;
            Ok((chain, roster, sequence, Statement::Commit(Commit { view, value })))
        }
        other => Err(Refused::Unreadable(format!("nothing is known of the type `{other}`"))),
    }
}

fn read_change(text: Option<String>, signed: Option<&Signed<Signature>>) -> Result<Option<Change>, Refused> {
    let Some(text) = text else { return Ok(None) };
    let named = match signed.map(|signed| &signed.statement) {
        Some(Statement::PrePrepare { value, .. } | Statement::Commit(Commit { value, .. })) => Some(*value),
        Some(Statement::ViewChange { lock, .. }) => lock.map(|(_, value)| value),
        Some(
            Statement::Want
            | Statement::Acknowledge { .. }
            | Statement::Prepare { .. }
            | Statement::Checkpoint { .. },
        )
        | None => None,
    };
    let change = Change::new(&text);
    if named == Some(change.value()) { Ok(Some(change)) } else { Err(Refused::OtherChange(change.digest())) }
}

/// Writes the canonical form (RFC 8785): that of fields in alphabetical order, without white space, of strings that are
/// escaped no more than needed, and of whole numbers.
fn canonical<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings and numbers have a JSON form")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::approval::{Opinion, Roster, Seat, Severity};
    use proptest::prelude::*;

    fn registry() -> Registry {
        let seat = |seed: u8| Seat {
            name: format!("seat {seed}"),
            key: SecretKey::from_seed(&[seed; 32]).public(),
            domain: "a model".to_owned(),
        };
        let roster = Roster { reviewers: (0..4).map(seat).collect(), orchestrators: vec![seat(9)] };
        Registry::new(Digest::of(b"a repository"), roster).unwrap()
    }

    fn statements() -> impl Strategy<Value = Statement> {
        let value = prop_oneof![
            any::<u8>().prop_map(|seed| Value::Change(Digest::of(&[seed]))),
            Just(Value::Nothing)
        ];
        let severity = prop_oneof![Just(Severity::Low), Just(Severity::Critical)];
        let opinion = prop_oneof![
            (0_u16..=10_000, any::<String>())
                .prop_map(|(confidence, notes)| Opinion::Approve { confidence, notes }),
            (any::<String>(), severity).prop_map(|(reason, severity)| Opinion::Reject { reason, severity }),
            any::<String>().prop_map(|reason| Opinion::Abstain { reason }),
        ];
        let opinion = proptest::option::of(opinion.prop_map(Arc::new));
        (value, any::<View>(), opinion, proptest::option::of(any::<View>()), 0..7_u8).prop_map(
            |(value, view, opinion, locked, kind)| match kind {
                0 => Statement::PrePrepare { value, view },
                1 => Statement::Want,
                2 => Statement::Acknowledge { value, view },
                3 => Statement::Prepare { opinion, value, view },
                4 => Statement::Commit(Commit { view, value }),
                5 => Statement::ViewChange { lock: locked.map(|view| (view, value)), view },
                _ => Statement::Checkpoint { head: Digest::of(b"head") },
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_signed_is_canonical_json_and_is_read_as_it_was_said(
            statement in statements(),
            sequence in 0..SEQUENCE_END,
        ) {
            let registry = registry();
            let (payload_type, bytes) = registry.payload(sequence, &statement);
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            prop_assert_eq!(serde_json_canonicalizer::to_vec(&value).unwrap(), bytes.clone());
            let known = (registry.chain(), registry.digest(), sequence, statement);
            prop_assert_eq!(read(payload_type, &bytes).unwrap(), known);
        }
    }
}
