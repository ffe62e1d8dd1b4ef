//! The lead of one answer among everything that both agents have found without sight of each other.
//!
//! The input is the talk, after an answer was found. The output is the talk in which each agent stands for the leading answer that it has
//! itself declared final, or the end of a talk in which no answer can lead clearly any more. Whether the agents agree is never decided here.

use super::agent::{AgentState, Answer};
use super::check::Accepted;
use super::talk::Talk;
use crate::core::BasisPoints;
use crate::protocol::contract::{Lead, NoAgreement, Settling, VOTES_MAX};

/// The certainty of a lead that is enough, as in a vote.
const ENOUGH: BasisPoints = BasisPoints::of_ten_thousand(9_000);

/// The reason why an agent gave up a later answer for the leading one.
const LED: &str = "the answer that was found most often is one that it had found itself";

/// Lets each agent stand for the leading answer, if it leads clearly, and if the agent has declared it final itself and has found no other
/// answer more often.
///
/// An agent that works a task out again may slip. Its earlier envelope is still its own word.
pub(super) fn follow_lead(talk: &mut Talk) {
    let Some((leader, _)) = lead(talk).filter(|(_, lead)| is_enough(*lead)) else { return };
    for agent in 0..2 {
        let seat = &talk.seats[agent];
        let stands_for_it = seat.last_answer.as_ref().is_some_and(|held| held.canonical == leader.canonical);
        if stands_for_it || !finds_most(seat, &leader) {
            continue;
        }
        let said = |accepted: &&Accepted| {
            accepted.answer.as_ref().is_some_and(|answer| answer.canonical == leader.canonical)
        };
        if let Some(accepted) = talk.declared[agent].iter().rev().find(said).cloned() {
            talk.take_position(agent, accepted);
            LED.clone_into(&mut talk.seats[agent].why_given_up);
            talk.remark = None;
        }
    }
}

/// Returns true if an agent has found no other answer more often than this one.
fn finds_most(seat: &AgentState, answer: &Answer) -> bool {
    let count = |of: &Answer| seat.found_alone().filter(|found| found.canonical == of.canonical).count();
    let own = count(answer);
    own > 0 && seat.found_alone().all(|other| count(other) <= own)
}

/// Returns the reason to end a talk in which the turns that are left can settle nothing: no answer can lead clearly, and no answer can
/// become that of both agents. An arbiter could settle it all the same.
pub(super) fn futility(talk: &Talk) -> Option<NoAgreement> {
    let (_, Lead { leader, runner_up }) = lead(talk).filter(|_| talk.setup.arbiter.is_none())?;
    let left = talk.setup.params.max_rounds.saturating_sub(talk.round);
    if left == 0 {
        // The limit on rounds is the reason.
        return None;
    }
    let best = Lead { leader: leader.saturating_add(left), runner_up };
    let can_lead = best.leader + runner_up > VOTES_MAX || is_enough(best);
    let can_meet = || {
        let mut found = talk.seats.iter().flat_map(AgentState::found_alone);
        found.any(|answer| talk.seats.iter().all(|seat| can_hold(seat, answer, left)))
    };
    (!can_lead && !can_meet()).then_some(NoAgreement::Unsettled)
}

/// Returns true if an agent stands for this answer, or could find it so often in its share of the turns that are left that it would change
/// to it.
fn can_hold(seat: &AgentState, answer: &Answer, left: u32) -> bool {
    let turns = left.div_ceil(2) as usize;
    let is_same = |found: &&Answer| found.canonical == answer.canonical;
    let own = seat.found_alone().filter(is_same).count();
    let all = seat.found_alone().count();
    seat.last_answer.as_ref().is_some_and(|held| held.canonical == answer.canonical)
        || 2 * (own + turns) > all + turns
}

fn is_enough(lead: Lead) -> bool {
    lead.certainty().reaches(ENOUGH)
}

/// Returns the answer that was found most often, and its lead over the second one. `None` where texts are taken over, by earlier rules, and
/// for more findings than the fraction can hold.
fn lead(talk: &Talk) -> Option<(Answer, Lead)> {
    if talk.setup.rules_version.rules().settling != Settling::ByLead || !talk.nothing_is_taken_over() {
        return None;
    }
    let mut counted: Vec<(&Answer, u32)> = Vec::new();
    for answer in talk.seats.iter().flat_map(AgentState::found_alone) {
        match counted.iter_mut().find(|(known, _)| known.canonical == answer.canonical) {
            Some((_, votes)) => *votes += 1,
            None => counted.push((answer, 1)),
        }
    }
    counted.sort_by_key(|(_, votes)| std::cmp::Reverse(*votes));
    let (leader, votes) = *counted.first()?;
    let runner_up = counted.get(1).map_or(0, |(_, votes)| *votes);
    (votes + runner_up <= VOTES_MAX).then(|| (leader.clone(), Lead { leader: votes, runner_up }))
}
