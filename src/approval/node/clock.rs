//! The time limits of all steps, and the time at which messages are repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use quorum::{Phase, Sequence, View};

/// The most doublings of the time limits. They grow from view to view, so that all parties meet in one view in the end.
const DOUBLINGS_MAX: u32 = 6;

/// The most doublings of [`Patience::again`] between two repetitions.
const AGAIN_DOUBLINGS_MAX: u32 = 5;

/// The time limits of all steps.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The time for an answer by code: an acknowledgement, a proposal, commits.
    pub step: Duration,
    /// The time for reviews, in addition to that.
    pub review: Duration,
    /// The time until messages are repeated for the first time. It doubles each time that nothing new has come.
    pub again: Duration,
}

/// The clock of a party, with the time-outs that are awaited.
#[derive(Debug)]
pub(super) struct Clock {
    patience: Patience,
    waits: BTreeMap<Sequence, (Instant, View, Phase)>,
    again: Instant,
    silences: u32,
}

/// An event of the clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Rings {
    /// The time for a phase is over.
    Expired(Sequence, View, Phase),
    /// It is time to repeat messages.
    Again,
}

impl Default for Patience {
    fn default() -> Self {
        Self { step: Duration::from_secs(30), review: Duration::from_mins(30), again: Duration::from_secs(1) }
    }
}

impl Clock {
    pub(super) fn new(patience: Patience, now: Instant) -> Self {
        // Others may have continued before this start, so messages are repeated at once.
        Self { patience, waits: BTreeMap::new(), again: now, silences: 0 }
    }

    /// Begins the time of a phase. One phase of each decision has a time.
    pub(super) fn wait(&mut self, now: Instant, sequence: Sequence, view: View, phase: Phase) {
        let Patience { step, review, .. } = self.patience;
        let time = if phase == Phase::Prepare { step + review } else { step };
        let at = now + time * (1 << view.min(DOUBLINGS_MAX));
        self.waits.insert(sequence, (at, view, phase));
    }

    /// Forgets a decision for which nothing is awaited any more.
    pub(super) fn forget(&mut self, sequence: Sequence) {
        self.waits.remove(&sequence);
    }

    /// Takes note that something new has come: messages are repeated soon, if it leads to nothing.
    pub(super) fn has_news(&mut self, now: Instant) {
        self.silences = 0;
        self.again = self.again.min(now + self.patience.again);
    }

    /// Returns the time of the next event.
    pub(super) fn next(&self) -> Instant {
        self.waits.values().map(|(at, ..)| *at).chain([self.again]).min().unwrap_or(self.again)
    }

    /// Returns the events that are due.
    pub(super) fn ring(&mut self, now: Instant) -> Vec<Rings> {
        let due: Vec<Sequence> =
            self.waits.iter().filter(|(_, (at, ..))| *at <= now).map(|(sequence, _)| *sequence).collect();
        let mut rings: Vec<Rings> = due
            .into_iter()
            .filter_map(|sequence| {
                let (_, view, phase) = self.waits.remove(&sequence)?;
                Some(Rings::Expired(sequence, view, phase))
            })
            .collect();
        if self.again <= now {
            self.again = now + self.patience.again * (1 << self.silences);
            self.silences = (self.silences + 1).min(AGAIN_DOUBLINGS_MAX);
            rings.push(Rings::Again);
        }
        rings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        step: Duration::from_secs(30),
        review: Duration::from_mins(10),
        again: Duration::from_secs(1),
    };

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    /// The limits grow from view to view, and reviews have more time.
    #[test]
    fn time_limits_double_until_a_bound() {
        let start = Instant::now();
        for (view, phase, seconds) in [
            (0, Phase::PrePrepare, 30),
            (0, Phase::Prepare, 630),
            (1, Phase::Commit, 60),
            (5, Phase::PrePrepare, 960),
            (6, Phase::PrePrepare, 1920),
            (40, Phase::PrePrepare, 1920),
        ] {
            let mut clock = Clock::new(PATIENCE, start);
            clock.wait(start, 7, view, phase);
            let early = clock.ring(after(start, seconds - 1));
            assert!(!early.contains(&Rings::Expired(7, view, phase)), "{view} {phase:?}");
            let late = clock.ring(after(start, seconds));
            assert!(late.contains(&Rings::Expired(7, view, phase)), "{view} {phase:?}");
            assert!(!clock.ring(after(start, 9999)).contains(&Rings::Expired(7, view, phase)), "once");
        }
    }

    #[test]
    fn repetitions_grow_rarer_until_news() {
        let start = Instant::now();
        let mut clock = Clock::new(PATIENCE, start);
        let mut said = Vec::new();
        for second in 0..100 {
            if clock.ring(after(start, second)).contains(&Rings::Again) {
                said.push(second);
            }
        }
        assert_eq!(said, [0, 1, 3, 7, 15, 31, 63, 95], "at last once in 32 seconds");
        clock.has_news(after(start, 100));
        assert_eq!(clock.next(), after(start, 101));
    }
}
