//! What only `council` has in its report.

use serde::Serialize;

use super::evidence::Evidence;
use super::forms::{Framing, Response, Verification};
use super::manifest::Manifest;
use super::verdict::ConsensusResult;
use super::weights::{Confidences, Weights};
use crate::core::BasisPoints;
use crate::crypto::Digest;
use crate::protocol::contract::Answer;
use crate::protocol::turn::ArbiterChoice;
use crate::text::Canonicalizer;

/// What only `council` has.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct CouncilSection {
    /// What was decided; none while the run is under way.
    pub result: Option<ConsensusResult>,
    /// The last answer, whatever was decided about it.
    pub content: Option<String>,
    /// Why it is right, in the words of its author.
    pub reasoning: Option<String>,
    /// The words that it rests on, where they were found.
    pub citations: Vec<Evidence>,
    /// Whether the last answer is another than the one that was given alone.
    pub changed: Option<bool>,
    /// The aggregate that is consensus.
    pub threshold: BasisPoints,
    /// What each confidence counts.
    pub weights: Weights,
    /// Every finished round.
    pub rounds: Vec<CouncilRound>,
    /// What the arbiter chose, if one was asked and chose, or that it took none.
    pub arbiter: Option<ArbiterChoice>,
}

/// One finished round.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct CouncilRound {
    /// Its number, from 1.
    pub round: u32,
    /// What Pathos said is meant.
    pub framing: Option<Framing>,
    /// What Logos answered.
    pub response: Option<Response>,
    /// Digest of the answer's canonical form.
    pub sha256: Option<Digest>,
    /// What Ethos made of it.
    pub verification: Option<Verification>,
    /// How sure each was.
    pub confidences: Confidences,
    /// What became of it.
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

    /// Whether its answer was stopped with evidence.
    pub(super) fn is_vetoed(&self) -> bool {
        self.verification.as_ref().is_some_and(|v| v.veto && v.defects().next().is_some())
    }

    /// Returns the round's answer, if somebody verified it, and what stands against it.
    pub(super) fn candidate(&self, canonicalizer: &Canonicalizer) -> Option<(Answer, Option<String>)> {
        let verification = self.verification.as_ref()?;
        let shown = self.response.as_ref()?.response.trim().to_owned();
        // It was valid when it was taken.
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
