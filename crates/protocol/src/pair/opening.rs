//! The state of the opening: both agents draft blind, in parallel.
//!
//! The input is the numbers of the drafts, and the replies to them in any order. After the last reply, the output is the agents' first
//! positions, and agreement, more drafts or the first turn. No draft is used before all are there, so that their order of arrival never
//! matters.

use std::collections::BTreeMap;
use std::ops::Range;

use super::check::AcceptedEnvelope;
use super::envelope_draft::EnvelopeDraft;
use super::talk::Talk;
use super::transition::Transition;
use super::{agreement, turn_order};
use crate::contract::{Action, CallId, NoAgreement, Reply, Step};
use crate::text::Status;
use crate::turn::TurnProgress;

/// The state in which blind drafts are being made.
#[derive(Clone, Debug)]
pub(super) struct BlindOpening {
    /// The drafts in the making, by the call that each waits for.
    open: BTreeMap<CallId, EnvelopeDraft>,
    /// The finished drafts, by number and agent; `None` where no valid one came.
    drafted: BTreeMap<(u32, usize), Option<Box<AcceptedEnvelope>>>,
}

impl BlindOpening {
    /// Asks both agents for the blind drafts with these numbers, all at once.
    pub(super) fn new(talk: &Talk, numbers: Range<u32>) -> (Self, Vec<Action>) {
        let (mut open, mut actions) = (BTreeMap::new(), Vec::new());
        for draft in numbers {
            for agent in 0..2 {
                let call = CallId { draft, ..talk.call(agent, Step::Think) };
                let mut envelope = EnvelopeDraft::from_nothing(talk, call, agent);
                envelope.give_up_when_vacuous();
                actions.push(Action::Ask(envelope.ask(talk)));
                open.insert(envelope.call(), envelope);
            }
        }
        (Self { open, drafted: BTreeMap::new() }, actions)
    }

    /// Takes a reply. Returns `None` if the reply is not to an open call.
    pub(super) fn reply(&mut self, talk: &mut Talk, call: CallId, reply: &Reply) -> Option<Transition> {
        let mut envelope = self.open.remove(&call)?;
        let accepted = match envelope.reply(talk, reply) {
            TurnProgress::Ask(ask) => {
                self.open.insert(envelope.call(), envelope);
                return Some(Transition::Stay(vec![Action::Ask(ask)]));
            }
            TurnProgress::Valid(accepted) => Some(accepted),
            TurnProgress::Failed => None,
        };
        self.drafted.insert((call.draft, call.agent), accepted);
        Some(if self.open.is_empty() { self.use_drafts(talk) } else { Transition::Stay(Vec::new()) })
    }

    /// Uses the blind drafts once the last one is there.
    fn use_drafts(&mut self, talk: &mut Talk) -> Transition {
        while let Some(((draft, agent), accepted)) = self.drafted.pop_first() {
            if let Some(accepted) = &accepted {
                talk.keep_declared(agent, accepted);
            }
            let seat = &mut talk.seats[agent];
            seat.blind.push(accepted.as_ref().and_then(|a| a.answer.clone()));
            if draft == 0 {
                seat.blind_final = accepted.as_ref().is_some_and(|a| a.envelope.status == Status::Solved);
                match accepted {
                    Some(accepted) => talk.take_position(agent, *accepted),
                    None => talk.count_failure(agent),
                }
            }
        }
        if talk.seats.iter().all(|seat| seat.position.is_none()) {
            return Transition::without_agreement(NoAgreement::NoDrafts);
        }
        if let Some(outcome) = agreement::find_agreement(&talk.seats, &talk.proposals) {
            return Transition::Finish(outcome);
        }
        if wants_more_drafts(talk) {
            return Transition::Draft(1..talk.setup.params.resample + 1);
        }
        agreement::follow_lead(talk);
        if let Some(outcome) = agreement::find_agreement(&talk.seats, &talk.proposals) {
            return Transition::Finish(outcome);
        }
        let mover = turn_order::first_mover(&talk.seats, &talk.proposals, talk.setup.seed);
        Transition::Turn { mover, floor: talk.floor() }
    }
}

fn wants_more_drafts(talk: &Talk) -> bool {
    let differ = match (talk.seats[0].committed_draft(), talk.seats[1].committed_draft()) {
        (Some(a), Some(b)) => a.canonical != b.canonical,
        (Some(_) | None, _) => false,
    };
    differ && talk.setup.params.resample > 0 && talk.seats[0].blind.len() == 1
}
