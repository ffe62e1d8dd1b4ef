//! The result of a round whose weighted confidence decides: a pure function of the three forms.
//!
//! | veto | aggregate | a round is left | no round is left |
//! |---|---|---|---|
//! | no veto | reaches the threshold | reached | reached |
//! | no veto | below | revision | not reached |
//! | with evidence, new | any | revision | vetoed |
//! | with evidence, as in an earlier round | any | vetoed | vetoed |
//! | without evidence: an objection | reaches | revision | reached |
//! | without evidence: an objection | below | revision | not reached |
//!
//! Nothing is reached without an answer, or without a verification of the answer.

use serde::Serialize;

use super::evidence::Evidence;
use super::forms::Verification;
use super::manifest::Manifest;
use super::params::CouncilParams;
use super::weights::{Aggregate, Confidences};

/// The result of a round.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum ConsensusResult {
    /// The aggregate confidence reaches the threshold, or code has counted or found the answer.
    Reached {
        /// Σ weight × confidence; `None` where no confidence decides.
        aggregate_confidence: Option<Aggregate>,
        /// The number of rounds that it took.
        rounds: u32,
        /// The three confidences.
        votes: Confidences,
    },
    /// Ethos stops the answer.
    Vetoed {
        /// The fault, in Ethos's words. Where code has to confirm it, what code has found follows.
        reason: String,
        /// The words that the answer breaks or contradicts.
        evidence: Evidence,
        /// The round of the veto.
        round: u32,
    },
    /// No round is left, or the last one changed nothing.
    NotReached {
        /// The last aggregate; `None` where no confidence decides.
        final_confidence: Option<Aggregate>,
        /// The number of rounds that were tried.
        attempts: u32,
    },
    /// Another round is needed.
    NeedsRevision {
        /// The aggregate of this round; `None` where no confidence decides.
        aggregate_confidence: Option<Aggregate>,
        /// The least sure member; several, if they are equally unsure, and none where no confidence decides.
        weakest: Vec<Member>,
        /// The feedback that the next round has to act on.
        feedback: String,
    },
}

/// One of the three members of a council.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Member {
    /// The member that states the intent.
    Pathos,
    /// The member that answers.
    Logos,
    /// The member that verifies truth and rules.
    Ethos,
}

impl Member {
    /// All three members in speaking order, which is the order of a roleset's agents.
    pub const ALL: [Self; 3] = [Self::Pathos, Self::Logos, Self::Ethos];

    /// Returns the member's place among a roleset's agents.
    pub fn index(self) -> usize {
        match self {
            Self::Pathos => 0,
            Self::Logos => 1,
            Self::Ethos => 2,
        }
    }

    /// Returns the meaning of a member's low confidence, as words to follow its name.
    fn doubt(self) -> &'static str {
        match self {
            Self::Pathos => "is not sure what is meant.",
            Self::Logos => "needs more context or has concerns about the reasoning.",
            Self::Ethos => "could not verify the answer or has concerns about its truth.",
        }
    }
}

/// Judges a round. `names` are the agents' names, and `defects` is the evidence that vetoes of earlier rounds rested on.
pub fn judge(
    manifest: &Manifest,
    params: &CouncilParams,
    names: [&str; 3],
    defects: &[Evidence],
) -> ConsensusResult {
    let votes = manifest.confidences();
    let aggregate = params.weights.aggregate(votes);
    let aggregate_confidence = Some(aggregate);
    let is_last = manifest.round >= params.max_rounds;
    let veto = manifest.verification.as_ref().filter(|verification| verification.veto);
    if let Some(verification) = veto
        && let Some((check, evidence)) = decisive(verification, defects)
    {
        let reason = check.claim.clone();
        if is_last || defects.iter().any(|earlier| earlier.is_about_the_same(evidence)) {
            return ConsensusResult::Vetoed { reason, evidence: evidence.clone(), round: manifest.round };
        }
        let feedback = vetoed_feedback(verification, names[2]);
        return ConsensusResult::NeedsRevision { aggregate_confidence, weakest: weakest(votes), feedback };
    }
    let is_verified = manifest.response.is_some() && manifest.verification.is_some();
    let is_enough = is_verified && aggregate.reaches(params.threshold);
    if is_enough && (is_last || veto.is_none()) {
        return ConsensusResult::Reached { aggregate_confidence, rounds: manifest.round, votes };
    }
    if is_last {
        let attempts = manifest.round;
        return ConsensusResult::NotReached { final_confidence: aggregate_confidence, attempts };
    }
    let feedback = match veto {
        Some(verification) => objection_feedback(verification, names[2]),
        None => doubt_feedback(manifest, names),
    };
    ConsensusResult::NeedsRevision { aggregate_confidence, weakest: weakest(votes), feedback }
}

/// Returns the defect that a veto rests on: one that an earlier veto rested on, if there is one, or else the first.
fn decisive<'a>(
    verification: &'a Verification,
    earlier: &[Evidence],
) -> Option<(&'a super::forms::Check, &'a Evidence)> {
    let again = verification.defects().find(|(_, found)| earlier.iter().any(|e| e.is_about_the_same(found)));
    again.or_else(|| verification.defects().next())
}

/// Returns the least sure members.
fn weakest(votes: Confidences) -> Vec<Member> {
    let least = votes.pathos.min(votes.logos).min(votes.ethos);
    let all = [(Member::Pathos, votes.pathos), (Member::Logos, votes.logos), (Member::Ethos, votes.ethos)];
    all.into_iter().filter(|(_, confidence)| *confidence == least).map(|(member, _)| member).collect()
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

/// Returns the names of the least sure members, with their reasoning.
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::contract::Task;
    use crate::core::BasisPoints;
    use crate::council::Check;
    use crate::council::CheckVerdict;
    use crate::council::Framing;
    use crate::council::Response;
    use crate::council::Sources;

    const NAMES: [&str; 3] = ["Pathos", "Logos", "Ethos"];

    fn evidence(quote: &str) -> Evidence {
        let task = Task { prompt: "Write no names. Write no dates.".to_owned(), ..Task::default() };
        Sources::of_task(&task).get("task").unwrap().find(quote).unwrap()
    }

    /// The evidence of a veto.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Veto {
        None,
        Proven,
        Unproven,
        Void,
    }

    fn manifest(confidence: f64, veto: Veto, round: u32) -> Manifest {
        let confidence = BasisPoints::new(confidence).unwrap();
        let text = |text: &str| text.to_owned();
        let check = |evidence| Check {
            claim: text("it names somebody"),
            verdict: CheckVerdict::Fails,
            source: text("task"),
            quote: text("Write no names"),
            evidence,
        };
        let checks = match veto {
            Veto::None | Veto::Proven => vec![check(Some(evidence("Write no names")))],
            Veto::Unproven => vec![],
            Veto::Void => vec![check(None)],
        };
        let (search, reasoning) = (String::new(), text("because"));
        let framing = Framing {
            framing: text("f"),
            search,
            reasoning: reasoning.clone(),
            confidence,
            sound: None,
            measured: None,
        };
        let response = Response {
            response: text("r"),
            citations: vec![],
            reasoning: reasoning.clone(),
            confidence,
            sound: None,
            measured: None,
        };
        let verification = Verification {
            checks,
            veto: veto != Veto::None,
            reasoning,
            confidence,
            sound: None,
            measured: None,
        };
        Manifest {
            round,
            framing: Some(framing),
            response: Some(response),
            verification: Some(verification),
            feedback: vec![],
        }
    }

    /// Returns the name of a result in the tables.
    pub(in crate::council) fn name(result: &ConsensusResult) -> &'static str {
        match result {
            ConsensusResult::Reached { .. } => "reached",
            ConsensusResult::Vetoed { .. } => "vetoed",
            ConsensusResult::NotReached { .. } => "not reached",
            ConsensusResult::NeedsRevision { .. } => "revision",
        }
    }

    #[test]
    fn a_round_ends_as_the_table_says() {
        let params = CouncilParams::default();
        for (veto, confidence, round, wanted) in [
            (Veto::None, 0.85, 1, "reached"),
            (Veto::None, 0.85, 3, "reached"),
            (Veto::None, 0.8499, 1, "revision"),
            (Veto::None, 0.8499, 3, "not reached"),
            (Veto::Proven, 1.0, 1, "revision"),
            (Veto::Proven, 1.0, 3, "vetoed"),
            (Veto::Proven, 0.1, 1, "revision"),
            (Veto::Proven, 0.1, 3, "vetoed"),
            (Veto::Unproven, 1.0, 1, "revision"),
            (Veto::Unproven, 1.0, 3, "reached"),
            (Veto::Unproven, 0.1, 1, "revision"),
            (Veto::Unproven, 0.1, 3, "not reached"),
            (Veto::Void, 1.0, 1, "revision"),
            (Veto::Void, 1.0, 3, "reached"),
            (Veto::Void, 0.1, 3, "not reached"),
        ] {
            let result = judge(&manifest(confidence, veto, round), &params, NAMES, &[]);
            assert_eq!(name(&result), wanted, "{veto:?}, {confidence}, round {round}");
        }
    }

    /// A defect that was not there before is not vetoed.
    #[test]
    fn repeated_defect_is_vetoed() {
        let params = CouncilParams::default();
        let again = judge(&manifest(1.0, Veto::Proven, 2), &params, NAMES, &[evidence("rite no names.")]);
        assert_eq!(name(&again), "vetoed");
        // A quote of the whole task is about everything and nothing.
        for other in ["no dates", "Write no names. Write no dates."] {
            let another = judge(&manifest(1.0, Veto::Proven, 2), &params, NAMES, &[evidence(other)]);
            assert_eq!(name(&another), "revision", "{other}");
        }
    }

    #[test]
    fn consensus_needs_answer_and_verification() {
        let params = CouncilParams::default();
        let whole = manifest(1.0, Veto::None, 1);
        let weights = |pathos, logos, ethos| super::super::Weights {
            pathos: BasisPoints::new(pathos).unwrap(),
            logos: BasisPoints::new(logos).unwrap(),
            ethos: BasisPoints::new(ethos).unwrap(),
        };
        let unheard = CouncilParams { weights: weights(1.0, 0.0, 0.0), ..params };
        for part in
            [Manifest { response: None, ..whole.clone() }, Manifest { verification: None, ..whole.clone() }]
        {
            assert_eq!(name(&judge(&part, &unheard, NAMES, &[])), "revision");
        }
    }

    #[test]
    fn feedback_names_the_weakest_and_quotes_its_reasoning() {
        let params = CouncilParams::default();
        let mut doubtful = manifest(0.8, Veto::None, 1);
        if let Some(response) = &mut doubtful.response {
            response.confidence = BasisPoints::new(0.3).unwrap();
            response.reasoning = "the sources are silent on it".to_owned();
        }
        let result = judge(&doubtful, &params, NAMES, &[]);
        let ConsensusResult::NeedsRevision { feedback, weakest, .. } = result else { panic!("{result:?}") };
        assert_eq!(weakest, [Member::Logos]);
        assert_eq!(
            feedback,
            "Logos needs more context or has concerns about the reasoning. Logos says: the sources are silent on it"
        );
    }

    #[test]
    fn next_round_keeps_framing_and_feedback() {
        let mut manifest = manifest(0.5, Veto::None, 1);
        let framing = manifest.framing.clone();
        manifest.add_feedback("mend this".to_owned());
        manifest.next_round();
        let kept = Manifest {
            round: 2,
            framing,
            response: None,
            verification: None,
            feedback: vec!["mend this".into()],
        };
        assert_eq!(manifest, kept);
    }
}
