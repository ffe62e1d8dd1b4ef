//! What the council has in hand in one round.

use serde::Serialize;

use super::forms::{Framing, Response, Sound, Verification};
use super::weights::Confidences;
use crate::core::BasisPoints;

/// What the three have written so far in a round, and what earlier rounds left to mend.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Manifest {
    /// The round, from 1.
    pub round: u32,
    /// What Pathos says is meant; kept from round to round.
    pub framing: Option<Framing>,
    /// What Logos answers.
    pub response: Option<Response>,
    /// What Ethos makes of it.
    pub verification: Option<Verification>,
    /// What each earlier round was sent back with, oldest first.
    pub feedback: Vec<String>,
}

impl Manifest {
    /// Begins with the first round and nothing in hand.
    #[must_use]
    pub fn new() -> Self {
        Self { round: 1, ..Self::default() }
    }

    /// Adds what the next round has to mend.
    pub fn add_feedback(&mut self, feedback: String) {
        self.feedback.push(feedback);
    }

    /// Begins the next round: the framing and all feedback stay, answer and verification go.
    pub fn next_round(&mut self) {
        self.round += 1;
        self.response = None;
        self.verification = None;
    }

    /// Returns how sure each agent is, as measured or else as it says; whoever wrote nothing, or would not put its
    /// name to it, is not sure at all.
    #[must_use]
    pub fn confidences(&self) -> Confidences {
        let counts = |said: BasisPoints, sound: Option<Sound>, measured: Option<BasisPoints>| match (
            measured, sound,
        ) {
            (Some(measured), _) => measured,
            (None, Some(Sound::No)) => BasisPoints::ZERO,
            (None, Some(Sound::Yes) | None) => said,
        };
        let pathos = self.framing.as_ref().map(|f| counts(f.confidence, f.sound, f.measured));
        let logos = self.response.as_ref().map(|r| counts(r.confidence, r.sound, r.measured));
        let ethos = self.verification.as_ref().map(|v| counts(v.confidence, v.sound, v.measured));
        let [pathos, logos, ethos] = [pathos, logos, ethos].map(|sure| sure.unwrap_or(BasisPoints::ZERO));
        Confidences { pathos, logos, ethos }
    }
}
