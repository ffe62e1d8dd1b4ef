//! The result of a round with `talk: differing` and documents: a pure function of what code has found about the answer's quotes.
//!
//! | quotes of the answer | veto | a round is left | no round is left |
//! |---|---|---|---|
//! | one or more, and all are in their sources | any | reached | reached |
//! | none | any | revision | not reached |
//! | one is not in its source | a failing check quotes that source | revision | vetoed |
//! | one is not in its source | any other, or none | revision | not reached |
//!
//! Nothing is reached without an answer, or without a verification of the answer.
//!
//! A veto is confirmed only by a false quote. An answer that breaks a rule of the task, or that the user's check refuses, is no valid
//! answer, so Ethos never sees it. Whether words of a source contradict an answer is the opinion of a model. Such a veto is an objection,
//! which is shown and stops nothing. No confidence counts here.

use super::evidence::Evidence;
use super::forms::{Check, Citation, Response};
use super::manifest::Manifest;
use super::verdict::{ConsensusResult, Member};
use crate::text::escape;

/// A veto whose ground code has confirmed.
struct ConfirmedVeto<'a> {
    /// The failing check, with the words of the source that it quotes.
    check: &'a Check,
    evidence: &'a Evidence,
    /// The quote of the answer that is not in the same source.
    citation: &'a Citation,
}

/// Judges a round, of which there are at most `max_rounds`. `names` are the agents' names.
pub fn judge_by_quotes(manifest: &Manifest, max_rounds: u32, names: [&str; 3]) -> ConsensusResult {
    let round = manifest.round;
    let Some(feedback) = find_fault(manifest, names) else {
        let votes = manifest.confidences();
        return ConsensusResult::Reached { aggregate_confidence: None, rounds: round, votes };
    };
    if round < max_rounds {
        return ConsensusResult::NeedsRevision { aggregate_confidence: None, weakest: Vec::new(), feedback };
    }
    match find_confirmed_veto(manifest) {
        Some(ConfirmedVeto { check, evidence, citation }) => ConsensusResult::Vetoed {
            reason: format!("{} {}", as_sentence(&check.claim), describe_false_quote(citation)),
            evidence: evidence.clone(),
            round,
        },
        None => ConsensusResult::NotReached { final_confidence: None, attempts: round },
    }
}

/// Returns why the round's answer is not verified, as feedback, if it is not.
fn find_fault(manifest: &Manifest, names: [&str; 3]) -> Option<String> {
    let Some(response) = &manifest.response else {
        return Some(format!("{} wrote no valid answer.", names[Member::Logos.index()]));
    };
    if response.citations.is_empty() {
        return Some("The answer quotes no words of a source or of the task.".to_owned());
    }
    let mut faults = Vec::new();
    if let Some(ConfirmedVeto { check, evidence, .. }) = find_confirmed_veto(manifest) {
        let (claim, Evidence { source, quote, .. }) = (check.claim.trim(), evidence);
        let ethos = names[Member::Ethos.index()];
        faults.push(format!("{ethos} vetoes the answer: {claim} (against {source}: \"{quote}\")."));
    }
    faults.extend(false_quotes(response).map(describe_false_quote));
    if faults.is_empty() && manifest.verification.is_none() {
        faults.push(format!("{} wrote no valid verification.", names[Member::Ethos.index()]));
    }
    if faults.is_empty() { None } else { Some(faults.join(" ")) }
}

/// Returns the first failing check of a veto against a source that the answer misquotes.
fn find_confirmed_veto(manifest: &Manifest) -> Option<ConfirmedVeto<'_>> {
    let response = manifest.response.as_ref()?;
    let veto = manifest.verification.as_ref().filter(|verification| verification.veto)?;
    veto.defects().find_map(|(check, evidence)| {
        let citation = false_quotes(response).find(|citation| citation.source == evidence.source)?;
        Some(ConfirmedVeto { check, evidence, citation })
    })
}

/// Returns the quotes of an answer that are not in the sources that they name.
fn false_quotes(response: &Response) -> impl Iterator<Item = &Citation> {
    response.citations.iter().filter(|citation| citation.evidence.is_none())
}

fn describe_false_quote(citation: &Citation) -> String {
    let (source, quote) = (escape::excerpt(&citation.source), escape::excerpt(&citation.quote));
    format!("The answer quotes `{quote}` from {source}, and these words are not there.")
}

/// Returns a claim with a mark at its end.
fn as_sentence(claim: &str) -> String {
    let claim = claim.trim();
    if claim.ends_with(['.', '!', '?']) { claim.to_owned() } else { format!("{claim}.") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Task;
    use crate::core::BasisPoints;
    use crate::council::verdict::tests::name;
    use crate::council::{CheckVerdict, Sources, Verification};

    const NAMES: [&str; 3] = ["Pathos", "Logos", "Ethos"];

    fn citation(source: &str, quote: &str) -> Citation {
        let task = Task { prompt: "Write no names.".to_owned(), ..Task::default() };
        let evidence = Sources::of_task(&task).get(source).and_then(|found| found.find(quote));
        Citation { source: source.to_owned(), quote: quote.to_owned(), evidence }
    }

    fn manifest(citations: &[Citation], veto: bool) -> Manifest {
        let (reasoning, confidence) = ("because".to_owned(), BasisPoints::ZERO);
        let quote = citation("task", "Write no names");
        let check = Check {
            claim: "it names somebody".to_owned(),
            verdict: CheckVerdict::Fails,
            source: quote.source,
            quote: quote.quote,
            evidence: quote.evidence,
        };
        let response = Response {
            response: "Ann".to_owned(),
            citations: citations.to_vec(),
            reasoning: reasoning.clone(),
            confidence,
            sound: None,
            measured: None,
        };
        let verification =
            Verification { checks: vec![check], veto, reasoning, confidence, sound: None, measured: None };
        Manifest {
            response: Some(response),
            verification: Some(verification),
            round: 2,
            ..Manifest::default()
        }
    }

    #[test]
    fn quotes_decide_as_the_table_says() {
        let (found, lost) = (citation("task", "no names"), citation("task", "no dates"));
        let elsewhere = citation("D9", "no names");
        for (citations, veto, left, last) in [
            (vec![found.clone()], false, "reached", "reached"),
            (vec![found.clone()], true, "reached", "reached"),
            (vec![], true, "revision", "not reached"),
            (vec![found.clone(), lost.clone()], true, "revision", "vetoed"),
            (vec![lost], false, "revision", "not reached"),
            // The veto is about another source than the false quote.
            (vec![found, elsewhere], true, "revision", "not reached"),
        ] {
            let manifest = manifest(&citations, veto);
            let results = [3, 2].map(|max_rounds| judge_by_quotes(&manifest, max_rounds, NAMES));
            assert_eq!(results.each_ref().map(name), [left, last], "{citations:?}, {veto}");
        }
    }

    #[test]
    fn agreement_needs_answer_and_verification() {
        let whole = manifest(&[citation("task", "no names")], false);
        for part in
            [Manifest { response: None, ..whole.clone() }, Manifest { verification: None, ..whole.clone() }]
        {
            assert_eq!(name(&judge_by_quotes(&part, 3, NAMES)), "revision");
            assert_eq!(name(&judge_by_quotes(&part, 2, NAMES)), "not reached");
        }
    }

    #[test]
    fn confirmed_veto_says_what_code_found() {
        let vetoed = judge_by_quotes(&manifest(&[citation("task", "no dates")], true), 2, NAMES);
        let ConsensusResult::Vetoed { reason, evidence, .. } = vetoed else { panic!("{vetoed:?}") };
        let said =
            "it names somebody. The answer quotes `no dates` from task, and these words are not there.";
        assert_eq!((reason.as_str(), evidence.quote.as_str()), (said, "Write no names"));
    }
}
