//! The record of a decision: one file with everything that proves it.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::command_verification::CommandVerification;
use super::proposal::Proposal;
use crate::approval::decision_error::DecisionError;
use crate::report::describe_quorum;
use crate::repository::Oid;
use crypto::dsse::DsseEnvelope;
use crypto::{Digest, Signature};
use quorum::local_cluster::DecisionProof;
use quorum::{
    Change, Membership, ModelAt, ModelOpinion, Opinion, Packet, Proof, ProvenDecision, Roster, Sequence,
    Statement, Value, Vote,
};

/// The form of the records that this program writes and reads.
const FORM: u32 = 3;

/// The text for a vote that names no model.
const NO_MODEL: &str = "no model is named";

/// The record of a decision.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionRecord {
    v: u32,
    /// The repository's identity.
    pub chain: Digest,
    /// The place of the decision.
    pub sequence: Sequence,
    /// The commits of a quorum: one in-toto statement in a DSSE envelope, with as many signatures.
    pub envelope: DsseEnvelope,
    /// The text that was decided on, whether it was approved or not.
    pub change: String,
    /// The votes, each signed, with its author's opinion.
    pub votes: Vec<Json>,
    /// The roster of all members. It is not trusted: a verifier has its own.
    pub roster: Roster,
}

/// The part of a record that names its form.
#[derive(Deserialize)]
struct RecordForm {
    v: u32,
}

/// One reviewer's vote.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VotedFor {
    pub reviewer: String,
    /// Its model and the place where that was called, in words. If the vote does not name the model, this is the word of the
    /// process that asked it, or the roster's.
    pub model: String,
    /// The model that the reviewer has signed with the vote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_model: Option<ModelAt>,
    /// The opinion of the reviewer.
    pub opinion: Opinion,
}

/// The content of a record that is proven.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerifiedRecord {
    /// The repository's identity.
    pub chain: Digest,
    /// The place of the decision.
    pub sequence: Sequence,
    /// Whether the change was approved. If not, it was decided that nothing is done.
    pub approved: bool,
    /// The SHA-256 of the text that was decided on. It is `None` if nothing was decided, and too few reviewers have signed
    /// votes to prove on what. Then the change in the record is only its maker's word.
    pub change: Option<Digest>,
    /// The branch that the change was for; `None` if `change` is.
    pub branch: Option<String>,
    /// The commit that the change was on; `None` if `change` is.
    pub base: Option<Oid>,
    /// The tree that the change makes; `None` if `change` is.
    pub tree: Option<Oid>,
    /// The command that succeeded on that tree before the reviewers were asked, if there was one and `change` is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<CommandVerification>,
    /// The parties whose signatures prove it.
    pub signed_by: Vec<String>,
    /// The number of signatures that were needed.
    pub quorum: usize,
    /// The vote of each reviewer.
    pub votes: Vec<VotedFor>,
    /// The reviewers whose votes are not in the record. The list is empty if all shared one process. In processes of their own,
    /// some may not have voted by the time that the record was made, and its maker may have left some out.
    pub silent: Vec<String>,
}

impl DecisionRecord {
    /// Makes the record of a decision on a change.
    ///
    /// # Panics
    ///
    /// Never: the commits of a decision agree, and their authors are in the roster.
    pub(super) fn new(membership: &Membership, change: &str, decision: &DecisionProof<Signature>) -> Self {
        let votes = decision.votes.iter().map(|message| {
            let text = membership.write(&Packet::Message(message.clone()));
            serde_json::from_str(&text).expect("a written message is JSON")
        });
        Self {
            v: FORM,
            chain: membership.chain(),
            sequence: decision.sequence,
            envelope: membership
                .envelope(&decision.proof.commits)
                .expect("a decision has commits to one thing"),
            change: change.to_owned(),
            votes: votes.collect(),
            roster: membership.roster().clone(),
        }
    }

    /// Reads a record. Nothing in it is verified.
    ///
    /// Returns [`DecisionError::NotProven`] if the text is not a record, and [`DecisionError::OtherForm`] if it has another form.
    pub fn read(text: &str) -> Result<Self, DecisionError> {
        // Another form may have other fields.
        let read = match serde_json::from_str(text) {
            Ok(RecordForm { v }) if v != FORM => return Err(DecisionError::OtherForm(v)),
            Ok(RecordForm { .. }) => serde_json::from_str(text),
            Err(why) => Err(why),
        };
        read.map_err(|why| DecisionError::NotProven(format!("it cannot be read: {why}")))
    }

    /// Returns the decision and its proof, if the signatures of a quorum of this roster are there.
    fn proof(&self, membership: &Membership) -> Result<(ProvenDecision, Proof<Signature>), DecisionError> {
        let proof = Proof { change: None, commits: membership.open(&self.envelope)? };
        let proven = proof.check(membership.quorum()).ok_or_else(|| {
            let (found, needed) = (proof.commits.len(), membership.quorum().size());
            DecisionError::NotProven(format!(
                "it has {found} signatures on a decision, and {needed} are needed"
            ))
        })?;
        if proven.sequence != self.sequence {
            let why =
                format!("the signatures are on decision {}, and not on {}", proven.sequence, self.sequence);
            return Err(DecisionError::NotProven(why));
        }
        let change = Change::new(&self.change).map_err(|why| DecisionError::NotProven(why.to_string()))?;
        let change = if change.value() == proven.value { Some(change) } else { None };
        Ok((proven, Proof { change, ..proof }))
    }

    /// Verifies everything in the record against the keys of a roster, offline.
    ///
    /// [`DecisionError`] names the fault: a signature, a digest, or a vote that does not belong to the record.
    pub fn verify(&self, roster: &Roster) -> Result<VerifiedRecord, DecisionError> {
        let membership = Membership::new(self.chain, roster.clone())?;
        self.check(&membership).map(|(verified, _)| verified)
    }

    /// Verifies the record with the roster of one repository. Returns the proof as well.
    pub(super) fn check(
        &self,
        membership: &Membership,
    ) -> Result<(VerifiedRecord, Proof<Signature>), DecisionError> {
        if self.v != FORM {
            return Err(DecisionError::OtherForm(self.v));
        }
        let roster = membership.roster();
        if self.roster != *roster {
            let own = Membership::new(self.chain, self.roster.clone())
                .map_err(|why| DecisionError::NotProven(why.to_string()))?;
            return Err(DecisionError::OtherRoster { found: own.digest(), expected: membership.digest() });
        }
        let (proven, proof) = self.proof(membership)?;
        let change = Digest::new(self.change.as_bytes());
        let proposal = Proposal::read(&self.change)?;
        let approved = match proven.value {
            Value::Change(decided) if decided == change => true,
            Value::Change(decided) => {
                let why = format!("{decided} was decided, but the change in it has the digest {change}");
                return Err(DecisionError::NotProven(why));
            }
            Value::Nothing => false,
        };
        let mut votes: Vec<(usize, VotedFor)> = Vec::new();
        for vote in &self.votes {
            let (by, ModelOpinion { opinion, model: signed_model }) = self.vote(membership, vote, change)?;
            let name = reviewer_name(roster, by);
            if votes.iter().any(|(known, _)| *known == by) {
                return Err(DecisionError::NotProven(format!("`{name}` votes twice")));
            }
            let reader = proposal.reviewers.iter().find(|reader| reader.name == name);
            let model = match (&signed_model, reader) {
                (Some(model), _) => model.to_string(),
                (None, Some(reader)) => reader.model.clone(),
                (None, None) => NO_MODEL.to_owned(),
            };
            votes.push((by, VotedFor { reviewer: name, model, signed_model, opinion }));
        }
        // No dissent may be left out if all had voted before anything was decided.
        if !proposal.reviewers.is_empty() {
            require_all_votes(membership, approved, &votes)?;
        }
        let names = roster.reviewers.iter().map(|seat| seat.name.clone());
        let silent = names.filter(|name| !votes.iter().any(|(_, vote)| vote.reviewer == *name)).collect();
        // For a change that was not approved: at least one honest reviewer has voted on it at this place.
        let is_proven = approved || votes.len() > membership.quorum().faults();
        let verified = VerifiedRecord {
            chain: self.chain,
            sequence: self.sequence,
            approved,
            change: is_proven.then_some(change),
            branch: is_proven.then(|| proposal.branch.clone()),
            base: is_proven.then(|| proposal.base.clone()),
            tree: is_proven.then(|| proposal.tree.clone()),
            verification: if is_proven { proposal.verification.clone() } else { None },
            signed_by: proof.commits.iter().map(|signed| reviewer_name(roster, signed.by)).collect(),
            quorum: membership.quorum().size(),
            silent,
            votes: votes.into_iter().map(|(_, vote)| vote).collect(),
        };
        Ok((verified, proof))
    }

    /// Reads one vote, which must be on this change at this place.
    fn vote(
        &self,
        membership: &Membership,
        vote: &Json,
        change: Digest,
    ) -> Result<(usize, ModelOpinion), DecisionError> {
        let foreign =
            DecisionError::NotProven("one of its votes is on something else, or is not a vote".to_owned());
        let Some(Packet::Message(message)) = membership.read(&vote.to_string(), |_, _| true)? else {
            return Err(foreign);
        };
        // Content that was left out in reading, or is written otherwise, is beyond every signature.
        let written = membership.write(&Packet::Message(message.clone()));
        let is_whole = serde_json::from_str::<Json>(&written).is_ok_and(|written| written == *vote);
        let is_it = is_whole
            && message.signed.sequence == self.sequence
            && matches!(message.signed.statement, Statement::Prepare { value, .. } if value == Value::Change(change));
        match message.opinion {
            // The author's key was checked: a prepare is a reviewer's.
            Some(opinion) if is_it => Ok((message.signed.by, ModelOpinion::clone(&opinion))),
            Some(_) | None => Err(foreign),
        }
    }
}

/// Returns in words what the quorum of a decision tolerates, by the models that reviewers have signed with their votes.
pub fn quorum_of_votes(membership: &Membership, votes: &[VotedFor]) -> String {
    let seats = membership.roster().reviewers.iter();
    let models = seats.map(|seat| {
        let vote = votes.iter().find(|vote| vote.reviewer == seat.name)?;
        Some(vote.signed_model.as_ref()?.model.clone())
    });
    describe_quorum(membership.quorum(), &models.collect::<Vec<Option<String>>>())
}

/// Returns the name of the reviewer at this place of the roster.
fn reviewer_name(roster: &Roster, at: usize) -> String {
    roster.reviewers.get(at).map_or_else(String::new, |seat| seat.name.clone())
}

/// Checks that the votes of all reviewers are there, and could have led to the decision.
fn require_all_votes(
    membership: &Membership,
    approved: bool,
    votes: &[(usize, VotedFor)],
) -> Result<(), DecisionError> {
    let quorum = membership.quorum();
    let approving = votes.iter().filter(|(_, vote)| vote.opinion.vote() == Vote::Approve).count();
    let against = votes.len() - approving;
    let why = if votes.len() != quorum.reviewers() {
        format!("it has the votes of {} of {} reviewers", votes.len(), quorum.reviewers())
    } else if approved && approving < quorum.size() {
        format!("it was approved, but only {approving} of the reviewers whose votes are in it approve")
    } else if !approved && against < quorum.blocking() {
        format!(
            "it was not approved, but only {against} of the reviewers whose votes are in it do not approve"
        )
    } else {
        return Ok(());
    };
    Err(DecisionError::NotProven(why))
}
