//! How far a batch is: counts, and what follows from them.
//!
//! In: how runs ended, and how much time has passed. Out: figures for a person or a watcher. No clock is read here.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core::Usage;
use crate::protocol::OutcomeKind;

/// Runs, by how they ended.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct EndCounts {
    /// They agreed.
    pub agreed: u64,
    /// They talked, and did not.
    pub no_agreement: u64,
    /// An answer was stopped with evidence.
    pub vetoed: u64,
    /// They came to a limit.
    pub budget: u64,
    /// Their provider could not be used.
    pub failed: u64,
    /// Of those that agreed: on the right answer.
    pub right: u64,
    /// On a wrong one.
    pub wrong: u64,
}

/// How far a shard is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct BatchStats {
    /// Runs that have ended, earlier ones among them.
    pub ended: EndCounts,
    /// Those of them that had ended when this process began.
    pub before: u64,
    /// Runs that are under way.
    pub under_way: u64,
    /// Lines that cannot be run.
    pub refused: u64,
    /// Runs of tasks, rolesets or parameters that were others when the run began; they stand as they are.
    pub changed: u64,
    /// Replies since this process began.
    pub calls: u64,
    /// Prompt tokens since then.
    pub prompt: u64,
    /// Those of them that servers had computed before.
    pub cached: u64,
    /// Completion tokens since then.
    pub completion: u64,
    /// Cost since then in millionths of a US dollar; null if a price is not known.
    pub cost_micro_usd: Option<u64>,
    /// Seconds since this process began.
    pub seconds: f64,
    /// Runs of before that were held against another answer than then.
    pub rescored: u64,
    /// How many cells there are in all; about, by what was read of the tasks, until `all_read`. Null where that cannot be known.
    pub cells: Option<f64>,
    /// Whether all tasks were read.
    pub all_read: bool,
    /// Seconds that the rest will take, by what was read and ended; null where it cannot be known.
    pub eta_seconds: Option<f64>,
}

impl EndCounts {
    pub(super) fn add(&mut self, ending: OutcomeKind, right: Option<bool>) {
        let count = match ending {
            OutcomeKind::Agreed => &mut self.agreed,
            OutcomeKind::NoAgreement => &mut self.no_agreement,
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

    /// Those that their protocol has ended: that did not fail, nor come to a limit.
    #[must_use]
    pub fn by_protocol(&self) -> u64 {
        self.agreed + self.no_agreement + self.vetoed
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.agreed + self.no_agreement + self.vetoed + self.budget + self.failed
    }
}

impl BatchStats {
    pub(super) fn new() -> Self {
        Self { cost_micro_usd: Some(0), ..Self::default() }
    }

    pub(super) fn count(&mut self, usage: &Usage, cost: Option<u64>) {
        self.calls += 1;
        self.prompt = self.prompt.saturating_add(usage.prompt);
        self.cached = self.cached.saturating_add(usage.cached);
        self.completion = self.completion.saturating_add(usage.completion);
        self.cost_micro_usd = self.cost_micro_usd.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
    }

    /// The same after so much time, with so many cells that wait, when so many lines of the tasks were read, of so many.
    pub(super) fn at(
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
        // Each line of the rest has as many cells.
        let cells = lines.filter(|_| lines_read > 0 && known > 0.0);
        let cells = cells.map(|lines| (known * (lines as f64 / lines_read as f64).max(1.0)).round());
        let new = ended.saturating_sub(self.before);
        let eta = cells.filter(|_| new > 0).map(|cells| (cells - ended as f64) * seconds / new as f64);
        Self { seconds, cells, eta_seconds: eta, all_read, ..self.clone() }
    }

    /// Tokens a second, prompts and replies together.
    #[must_use]
    pub fn tokens_per_second(&self) -> f64 {
        if self.seconds > 0.0 { (self.prompt + self.completion) as f64 / self.seconds } else { 0.0 }
    }
}
