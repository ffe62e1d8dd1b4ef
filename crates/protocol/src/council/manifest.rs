//! The manifest of a council: the forms and the feedback of one round.

use serde::Serialize;

use super::forms::{Framing, Response, Sound, Verification};
use super::weights::Confidences;
use crate::core::BasisPoints;

/// The forms that the three agents have written in a round, and the feedback from earlier rounds.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Manifest {
    /// The round, from 1.
    pub round: u32,
    /// The framing of Pathos, which is kept from round to round.
    pub framing: Option<Framing>,
    /// The answer of Logos.
    pub response: Option<Response>,
    /// The verification of Ethos.
    pub verification: Option<Verification>,
    /// The feedback with which each earlier round was sent back, the oldest first.
    pub feedback: Vec<String>,
}

impl Manifest {
    /// Returns an empty manifest for the first round.
    pub fn new() -> Self {
        Self { round: 1, ..Self::default() }
    }

    /// Adds the feedback that the next round has to act on.
    pub fn add_feedback(&mut self, feedback: String) {
        self.feedback.push(feedback);
    }

    /// Begins the next round. The framing and all feedback stay; the answer and the verification are dropped.
    pub fn next_round(&mut self) {
        self.round += 1;
        self.response = None;
        self.verification = None;
    }

    /// Returns each agent's confidence: the measured one, or else the stated one. It is zero for an agent that wrote nothing, or that
    /// states that it would not put its name to its text.
    pub fn confidences(&self) -> Confidences {
        let pathos = self.framing.as_ref().map(|f| choose_confidence(f.confidence, f.sound, f.measured));
        let logos = self.response.as_ref().map(|r| choose_confidence(r.confidence, r.sound, r.measured));
        let ethos = self.verification.as_ref().map(|v| choose_confidence(v.confidence, v.sound, v.measured));
        let [pathos, logos, ethos] = [pathos, logos, ethos].map(|sure| sure.unwrap_or(BasisPoints::ZERO));
        Confidences { pathos, logos, ethos }
    }
}

fn choose_confidence(
    stated: BasisPoints,
    sound: Option<Sound>,
    measured: Option<BasisPoints>,
) -> BasisPoints {
    match (measured, sound) {
        (Some(measured), _) => measured,
        (None, Some(Sound::No)) => BasisPoints::ZERO,
        (None, Some(Sound::Yes) | None) => stated,
    }
}
