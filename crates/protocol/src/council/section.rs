//! The part of a report that only `council` has.

use serde::Serialize;

use super::evidence::Evidence;
use super::forms::{Framing, Response, Verification};
use super::manifest::Manifest;
use super::verdict::ConsensusResult;
use super::weights::{Confidences, Weights};
use crate::contract::Answer;
use crate::core::BasisPoints;
use crate::sampling::VoteSection;
use crate::text::Canonicalizer;
use crate::turn::ArbiterChoice;
use crypto::Digest;

/// The part of a report that only `council` has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CouncilSection {
    /// The decision; `None` while the run is under way.
    pub result: Option<ConsensusResult>,
    /// The last answer, whatever was decided about it.
    pub content: Option<String>,
    /// The reason why the answer is right, in its author's words.
    pub reasoning: Option<String>,
    /// The quotes that the answer rests on, where they were found.
    pub citations: Vec<Evidence>,
    /// Whether the last answer differs from the one that was given alone.
    pub changed: Option<bool>,
    /// The aggregate that counts as consensus.
    pub threshold: BasisPoints,
    /// The weight of each confidence.
    pub weights: Weights,
    /// The finished rounds.
    pub rounds: Vec<CouncilRound>,
    /// The arbiter's choice, if it was asked and chose; it may have taken no answer.
    pub arbiter: Option<ArbiterChoice>,
    /// The blind answers that were counted; `None` where rounds are judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vote: Option<VoteSection>,
}

/// One finished round.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct CouncilRound {
    /// The number of the round, from 1.
    pub round: u32,
    /// The framing of Pathos.
    pub framing: Option<Framing>,
    /// The answer of Logos.
    pub response: Option<Response>,
    /// The digest of the answer's canonical form.
    pub sha256: Option<Digest>,
    /// The verification of Ethos.
    pub verification: Option<Verification>,
    /// The confidence of each agent.
    pub confidences: Confidences,
    /// The result of the round.
    pub result: ConsensusResult,
}

impl CouncilRound {
    /// Makes the record of a round that has been judged.
    pub(super) fn new(manifest: &Manifest, answer: Option<&Answer>, result: &ConsensusResult) -> Self {
        Self {
            round: manifest.round,
            framing: manifest.framing.clone(),
            response: manifest.response.clone(),
            sha256: answer.map(|answer| answer.canonical.digest),
            verification: manifest.verification.clone(),
            confidences: manifest.confidences(),
            result: result.clone(),
        }
    }

    /// Returns whether the round's answer was stopped with evidence.
    pub(super) fn is_vetoed(&self) -> bool {
        self.verification.as_ref().is_some_and(|v| v.veto && v.defects().next().is_some())
    }

    /// Returns the round's answer, if it was verified, with the objection to it.
    pub(super) fn candidate(&self, canonicalizer: &Canonicalizer) -> Option<(Answer, Option<String>)> {
        let verification = self.verification.as_ref()?;
        let shown = self.response.as_ref()?.response.trim().to_owned();
        // The answer was valid when it was taken.
        let canonical = canonicalizer.canonicalize(&shown).ok()?;
        let objection = match &self.result {
            ConsensusResult::NeedsRevision { feedback, .. } => Some(feedback.clone()),
            ConsensusResult::Reached { .. }
            | ConsensusResult::Vetoed { .. }
            | ConsensusResult::NotReached { .. } => Some(verification.reasoning.clone()),
        };
        Some((Answer { shown, canonical }, objection))
    }
}
