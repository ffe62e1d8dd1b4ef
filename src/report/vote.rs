//! The report of a vote: the part that depends on the models, and its words for people.
//!
//! The input is the section that the protocol makes, and the state of the run. The output is the section with the model and the tokens of
//! each sample filled in, and lines about the votes.

use crate::engine::RunState;
use protocol::Step;
use protocol::sampling::{BehaviourSection, ComparedTexts, DraftDifference, StopClass, VoteSection};
use protocol::text::{counted, escape, excerpts};

/// The most differences of drafts that a line names.
const DIFFERENCES_SHOWN: usize = 3;

/// Fills in the model and the tokens of each sample.
pub(super) fn complete(section: &mut VoteSection, state: &RunState) {
    for sample in &mut section.samples {
        if sample.model.is_empty() {
            state.model(sample.call.agent).clone_into(&mut sample.model);
        }
        sample.tokens = 0;
        for (call, tokens) in state.completions() {
            // The declarations of a pair are calls of a later round.
            let own = sample.call;
            let is_own = (call.round, call.agent, call.draft) == (own.round, own.agent, own.draft);
            // A voter's thoughts are the inputs on which programs are tried.
            if is_own && call.step != Step::Think {
                sample.tokens = sample.tokens.saturating_add(*tokens);
            }
        }
    }
    section.tokens = section.samples.iter().fold(0, |sum: u64, sample| sum.saturating_add(sample.tokens));
    let looked = section.samples.iter().filter(|sample| sample.counts);
    let spent = looked.clone().fold(0, |sum: u64, sample| sum.saturating_add(sample.tokens));
    let most = section.samples.len() as u64 + u64::from(section.saved);
    section.tokens_of_all = spent.saturating_mul(most).checked_div(looked.count() as u64).unwrap_or_default();
}

/// Returns a line for each answer: its number of votes, its text and its voters.
pub fn describe_votes(section: &VoteSection) -> Vec<String> {
    let texts: Vec<&str> = section.answers.iter().map(|answer| answer.text.as_str()).collect();
    let mut lines = Vec::new();
    for (answer, text) in section.answers.iter().zip(excerpts(&texts)) {
        let votes = counted(answer.votes, "vote");
        lines.push(format!("{votes:>8}  “{text}”  ({})", answer.voters.join(", ")));
    }
    lines
}

/// Returns in one line how near the drafts of a long text are to each other, with their differences.
fn describe_texts(texts: &ComparedTexts) -> String {
    if texts.drafts < 2 {
        return "one draft alone, which was compared with nothing".to_owned();
    }
    if texts.differences.is_empty() {
        return if texts.are_alike() {
            "the drafts say nearly the same".to_owned()
        } else {
            "the drafts say different things, as far as their words show".to_owned()
        };
    }
    let mut shown: Vec<String> = Vec::new();
    for DraftDifference { difference, .. } in &texts.differences {
        let words = difference.to_string();
        if !shown.contains(&words) && !shown.contains(&difference.swap().to_string()) {
            shown.push(words);
        }
    }
    let more = shown.len().saturating_sub(DIFFERENCES_SHOWN) + texts.further_differences;
    shown.truncate(DIFFERENCES_SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("the drafts differ in {}{more}", escape::one_line(&shown.join(", ")))
}

/// Returns how many inputs the programs were compared on, as the end of a sentence.
fn describe_trials(behaviour: &BehaviourSection) -> String {
    let counting = behaviour.inputs.iter().filter(|input| input.counts).count();
    if counting == 0 {
        return "; there is no usable input, so only equal texts are equal".to_owned();
    }
    let unstated = behaviour.inputs.iter().filter(|input| input.stated.is_none()).count();
    let dropped = match unstated - counting {
        0 => String::new(),
        dropped => {
            format!(
                "; {} dropped, for which most programs return no value to compare",
                counted(dropped, "input")
            )
        }
    };
    format!("; compared on {}{dropped}", counted(counting, "input"))
}

/// Returns in one line why the votes were enough or not, and how many samples that took.
pub fn describe_stop(section: &VoteSection) -> String {
    let looked = section.samples.iter().filter(|sample| sample.counts);
    let lost = looked.filter(|sample| sample.no_vote.is_some()).count();
    let lost = if lost == 0 { String::new() } else { format!(", {lost} of them without a valid answer") };
    let samples = format!("{}{lost}", counted(section.looked_at, "sample"));
    if section.looked_at == 0 {
        return "no sample was counted".to_owned();
    }
    if section.answers.is_empty() {
        let reasons: Vec<&str> =
            section.samples.iter().filter_map(|sample| sample.no_vote.as_deref()).collect();
        let why = match reasons.as_slice() {
            [] => String::new(),
            [first, others @ ..] if others.iter().all(|other| other == first) => format!(": {first}"),
            [first, ..] => format!("; the first: {first}"),
        };
        return format!("no sample gave a valid answer, of {}{why}", counted(section.looked_at, "sample"));
    }
    if let Some(texts) = &section.texts {
        return format!("{}, after {samples}", describe_texts(texts));
    }
    let certainty = format!("{:.1} % certain after {samples}", section.certainty_value * 100.0);
    let stop = match section.class {
        None => certainty,
        Some(StopClass::A) => format!("{certainty}, from several voters (class A)"),
        Some(StopClass::B) => format!("the first two samples are equal (class B), {certainty}"),
        Some(StopClass::C) => format!("{certainty}, from one voter (class C)"),
        Some(StopClass::D) => format!("not settled (class D), {certainty}"),
    };
    stop + &section.behaviour.as_ref().map(describe_trials).unwrap_or_default()
}
