//! What becomes of a round: a pure function of what the three wrote.
//!
//! | veto | aggregate | a round is left | none is left |
//! |---|---|---|---|
//! | none | reaches the threshold | reached | reached |
//! | none | below | revision | not reached |
//! | with evidence, new | any | revision | vetoed |
//! | with evidence, as in an earlier round | any | vetoed | vetoed |
//! | without evidence: an objection | reaches | revision | reached |
//! | without evidence: an objection | below | revision | not reached |
//!
//! Without an answer, or without anybody who verified it, nothing is reached.

use serde::Serialize;

use super::evidence::Evidence;
use super::forms::Verification;
use super::manifest::Manifest;
use super::params::CouncilParams;
use super::share::{Aggregate, Confidences};

/// What became of a round.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum ConsensusResult {
    /// The aggregate confidence reaches the threshold.
    Reached {
        /// Σ weight × confidence.
        aggregate_confidence: Aggregate,
        /// Rounds that it took.
        rounds: u32,
        /// The three confidences.
        votes: Confidences,
    },
    /// Ethos stops the answer.
    Vetoed {
        /// What is wrong, in Ethos's words.
        reason: String,
        /// The words that it breaks or contradicts.
        evidence: Evidence,
        /// In which round.
        round: u32,
    },
    /// No round is left, or the last one changed nothing.
    NotReached {
        /// The last aggregate.
        final_confidence: Aggregate,
        /// Rounds that were tried.
        attempts: u32,
    },
    /// Another round is needed.
    NeedsRevision {
        /// This round's aggregate.
        aggregate_confidence: Aggregate,
        /// Who is least sure; several, if they are equally so.
        weakest: Vec<Member>,
        /// What the next round has to mend.
        feedback: String,
    },
}

/// One of the three.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Member {
    /// Intent and framing.
    Pathos,
    /// The answer.
    Logos,
    /// Truth and rules.
    Ethos,
}

impl Member {
    /// All three, in the order in which they speak, which is that of a roleset's agents.
    pub const ALL: [Self; 3] = [Self::Pathos, Self::Logos, Self::Ethos];

    /// Returns its place among a roleset's agents.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::Pathos => 0,
            Self::Logos => 1,
            Self::Ethos => 2,
        }
    }

    /// Returns what its lack of confidence means; its name stands before this.
    fn doubt(self) -> &'static str {
        match self {
            Self::Pathos => "is not sure what is meant.",
            Self::Logos => "needs more context or has concerns about the reasoning.",
            Self::Ethos => "could not verify the answer or has concerns about its truth.",
        }
    }
}

/// Judges a round; `names` are the agents' names, and `defects` what vetoes of earlier rounds rested on.
#[must_use]
pub fn judge(
    manifest: &Manifest,
    params: &CouncilParams,
    names: [&str; 3],
    defects: &[Evidence],
) -> ConsensusResult {
    let votes = manifest.confidences();
    let aggregate_confidence = params.weights.aggregate(votes);
    let is_last = manifest.round >= params.max_rounds;
    let veto = manifest.verification.as_ref().filter(|verification| verification.veto);
    let revise = |feedback: String| {
        let weakest = weakest(votes);
        ConsensusResult::NeedsRevision { aggregate_confidence, weakest, feedback }
    };
    if let Some(verification) = veto
        && let Some((check, evidence)) = decisive(verification, defects)
    {
        let reason = check.claim.clone();
        if is_last || defects.iter().any(|earlier| earlier.overlaps(evidence)) {
            return ConsensusResult::Vetoed { reason, evidence: evidence.clone(), round: manifest.round };
        }
        return revise(vetoed_feedback(verification, names[2]));
    }
    let is_verified = manifest.response.is_some() && manifest.verification.is_some();
    let is_enough = is_verified && aggregate_confidence.reaches(params.threshold);
    if is_enough && (is_last || veto.is_none()) {
        return ConsensusResult::Reached { aggregate_confidence, rounds: manifest.round, votes };
    }
    if is_last {
        let attempts = manifest.round;
        return ConsensusResult::NotReached { final_confidence: aggregate_confidence, attempts };
    }
    match veto {
        Some(verification) => revise(objection_feedback(verification, names[2])),
        None => revise(doubt_feedback(manifest, names)),
    }
}

/// Returns the defect that a veto rests on: one that was there before, if any was, else the first.
fn decisive<'a>(
    verification: &'a Verification,
    earlier: &[Evidence],
) -> Option<(&'a super::forms::Check, &'a Evidence)> {
    let again = verification.defects().find(|(_, found)| earlier.iter().any(|e| e.overlaps(found)));
    again.or_else(|| verification.defects().next())
}

/// Returns who is least sure.
fn weakest(votes: Confidences) -> Vec<Member> {
    let of = |member: &Member| match member {
        Member::Pathos => votes.pathos,
        Member::Logos => votes.logos,
        Member::Ethos => votes.ethos,
    };
    let least = Member::ALL.iter().map(of).min();
    Member::ALL.iter().filter(|member| Some(of(member)) == least).copied().collect()
}

fn vetoed_feedback(verification: &Verification, name: &str) -> String {
    let defects = verification.defects().map(|(check, evidence)| {
        format!("{} (against {}: \"{}\")", check.claim.trim(), evidence.source, evidence.quote)
    });
    format!("{name} vetoes the answer: {}", defects.collect::<Vec<_>>().join("; "))
}

fn objection_feedback(verification: &Verification, name: &str) -> String {
    format!(
        "{name} objects without naming words of a source that the answer breaks. {name} says: {}",
        verification.reasoning.trim()
    )
}

/// Says who doubts most, and what they say.
fn doubt_feedback(manifest: &Manifest, names: [&str; 3]) -> String {
    let parts = weakest(manifest.confidences()).into_iter().map(|member| {
        let name = names[member.index()];
        let reasoning = match member {
            Member::Pathos => manifest.framing.as_ref().map(|f| f.reasoning.trim()),
            Member::Logos => manifest.response.as_ref().map(|r| r.reasoning.trim()),
            Member::Ethos => manifest.verification.as_ref().map(|v| v.reasoning.trim()),
        };
        match reasoning {
            Some(reasoning) => format!("{name} {} {name} says: {reasoning}", member.doubt()),
            None => format!("{name} wrote nothing that counts."),
        }
    });
    parts.collect::<Vec<_>>().join(" ")
}
