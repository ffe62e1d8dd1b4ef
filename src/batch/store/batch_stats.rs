//! The progress of a batch: counts, and figures that follow from them.
//!
//! The input is how runs ended and how much time has passed. The output is figures for a person or a watcher. No clock is read here.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use protocol::OutcomeKind;
use protocol::core::Usage;

/// The numbers of runs, by how they ended.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct EndCounts {
    /// The runs that agreed.
    pub agreed: u64,
    /// The runs that talked and did not agree.
    pub no_agreement: u64,
    /// The runs whose answer was withheld by a calibration.
    pub abstained: u64,
    /// The runs whose answer was stopped with evidence.
    pub vetoed: u64,
    /// The runs that reached a limit.
    pub budget: u64,
    /// The runs whose provider could not be used.
    pub failed: u64,
    /// The agreed runs with the right answer.
    pub right: u64,
    /// The agreed runs with a wrong answer.
    pub wrong: u64,
}

/// The progress of a shard.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct BatchStats {
    /// The runs that have ended, earlier ones included.
    pub ended: EndCounts,
    /// The ended runs that had ended before this process began.
    pub before: u64,
    /// The runs that are under way.
    pub under_way: u64,
    /// The lines that cannot be run.
    pub refused: u64,
    /// The runs whose task, roleset or parameters have changed since the run began; they are left as they are.
    pub changed: u64,
    /// The replies since this process began.
    pub calls: u64,
    /// The prompt tokens since this process began.
    pub prompt: u64,
    /// The prompt tokens that servers had computed before.
    pub cached: u64,
    /// The completion tokens since this process began.
    pub completion: u64,
    /// The cost since this process began, in millionths of a US dollar; null if a price is not known.
    pub cost_micro_usd: Option<u64>,
    /// The seconds since this process began.
    pub seconds: f64,
    /// The earlier runs that were compared with a changed answer.
    pub rescored: u64,
    /// The number of cells in all, an estimate from the tasks read until `all_read` is true; null if it cannot be known.
    pub cells: Option<f64>,
    /// Whether all tasks have been read.
    pub all_read: bool,
    /// The seconds that the rest will take, estimated from the tasks read and the runs ended; null if they cannot be known.
    pub eta_seconds: Option<f64>,
}

impl EndCounts {
    pub(in crate::batch) fn add(&mut self, ending: OutcomeKind, right: Option<bool>) {
        let count = match ending {
            OutcomeKind::Agreed => &mut self.agreed,
            OutcomeKind::NoAgreement => &mut self.no_agreement,
            OutcomeKind::Abstained => &mut self.abstained,
            OutcomeKind::Vetoed => &mut self.vetoed,
            OutcomeKind::Budget => &mut self.budget,
            OutcomeKind::Failed => &mut self.failed,
            OutcomeKind::Interrupted => return,
        };
        *count += 1;
        if ending == OutcomeKind::Agreed {
            self.right += u64::from(right == Some(true));
            self.wrong += u64::from(right == Some(false));
        }
    }

    /// Returns the number of runs that their protocol has ended: those that neither failed nor reached a limit.
    pub fn by_protocol(&self) -> u64 {
        self.agreed + self.no_agreement + self.abstained + self.vetoed
    }

    /// Returns the number of all ended runs.
    pub fn all(&self) -> u64 {
        self.by_protocol() + self.budget + self.failed
    }
}

impl BatchStats {
    pub(in crate::batch) fn new() -> Self {
        Self { cost_micro_usd: Some(0), ..Self::default() }
    }

    pub(in crate::batch) fn count(&mut self, usage: &Usage, cost: Option<u64>) {
        self.calls += 1;
        self.prompt = self.prompt.saturating_add(usage.prompt);
        self.cached = self.cached.saturating_add(usage.cached);
        self.completion = self.completion.saturating_add(usage.completion);
        self.cost_micro_usd = self.cost_micro_usd.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
    }

    /// Returns these figures as of a time, given the number of waiting cells and how many of the task lines were read.
    pub(in crate::batch) fn at(
        &self,
        passed: Duration,
        waiting: u64,
        lines_read: u64,
        lines: Option<u64>,
        all_read: bool,
    ) -> Self {
        let seconds = passed.as_secs_f64();
        let ended = self.ended.all();
        let known = (ended + self.under_way + waiting) as f64;
        // Each remaining line is assumed to have as many cells.
        let cells = match lines {
            Some(lines) if lines_read > 0 && known > 0.0 => {
                Some((known * (lines as f64 / lines_read as f64).max(1.0)).round())
            }
            Some(_) | None => None,
        };
        let new = ended.saturating_sub(self.before);
        let eta_seconds = match cells {
            Some(cells) if new > 0 => Some((cells - ended as f64) * seconds / new as f64),
            Some(_) | None => None,
        };
        Self { seconds, cells, all_read, eta_seconds, ..self.clone() }
    }

    /// Returns the tokens per second, prompts and replies together.
    pub fn tokens_per_second(&self) -> f64 {
        if self.seconds > 0.0 { (self.prompt + self.completion) as f64 / self.seconds } else { 0.0 }
    }
}
