//! The permits of a vote that shares a budget of tokens with the other runs of a batch.
//!
//! The input is the records of the run's permits. The output is one more sample, or the end of the run. A record is refused here if the run
//! alone contradicts it. Whether the budget of the batch gives the permit depends on the other runs, and is not known here.

use super::mismatch::Mismatch;
use super::run_state::RunState;
use protocol::pacing::{BudgetEnd, PacedName, PacedRun, RunPosition, SamplePermit};
use protocol::{Event, Fraction, Outcome, Protocol as _};

impl RunState {
    /// Takes the record of a permit for one more sample.
    pub(super) fn take_permit(&mut self, permit: SamplePermit) -> Result<(), Mismatch> {
        let SamplePermit { round, threshold, spent } = permit;
        let is_below = self.certainty().is_some_and(|certainty| !certainty.reaches(threshold));
        let is_later = self.permit.is_none_or(|before| {
            round > before.round && threshold >= before.threshold && spent >= before.spent
        });
        if round == 0 || !is_below || !is_later || spent < self.tokens_used() {
            return Err(Mismatch::Permit(round));
        }
        let actions = self.machine.step(&Event::Permitted)?;
        self.permit = Some(permit);
        self.awaits_permit = false;
        self.take_actions(actions);
        Ok(())
    }

    /// Takes the record that no more samples are permitted.
    pub(super) fn take_budget_end(&mut self, end: BudgetEnd) -> Result<(), Mismatch> {
        let is_less = self.permit.is_some_and(|before| end.spent < before.spent);
        if is_less || end.spent < self.tokens_used() {
            return Err(Mismatch::BudgetEnd(end.spent));
        }
        let actions = self.machine.step(&Event::Closed)?;
        self.awaits_permit = false;
        self.take_actions(actions);
        Ok(())
    }

    /// Returns true if the run waits for a permit, and nothing else is left to do.
    pub fn is_waiting(&self) -> bool {
        self.awaits_permit
    }

    /// Returns the run as a ledger of the budget has it; `None` unless it is a paced run of a batch.
    pub fn paced(&self) -> Option<(PacedName, PacedRun)> {
        let setup = &self.opened.setup;
        let cell = self.opened.cell.as_ref()?;
        if !setup.params.is_paced() {
            return None;
        }
        let name = PacedName {
            task: cell.task.clone(),
            roleset: setup.roleset.clone(),
            model: cell.model.clone(),
            seed: setup.seed,
        };
        let mut samples: Vec<(usize, u32)> =
            self.completions.keys().map(|call| (call.agent, call.draft)).collect();
        samples.dedup();
        let (tokens, samples) = (self.tokens_used(), samples.len() as u64);
        Some((name, PacedRun { position: self.position(), tokens, samples }))
    }

    fn position(&self) -> RunPosition {
        if self.stopped.as_ref().is_some_and(|end| *end != Outcome::Interrupted) {
            return RunPosition::Ended;
        }
        if !self.awaits_permit {
            return RunPosition::UnderWay;
        }
        self.certainty().map_or(RunPosition::UnderWay, RunPosition::Waiting)
    }

    /// Returns the certainty of the leading answer, if the run counts samples.
    fn certainty(&self) -> Option<Fraction> {
        self.machine.report().section.votes().map(|votes| votes.certainty)
    }

    /// Returns the tokens of all replies and their prompts.
    fn tokens_used(&self) -> u64 {
        let used = self.totals.usage;
        used.prompt.saturating_add(used.completion)
    }
}
