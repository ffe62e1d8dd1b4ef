//! The time limits of all steps, and the time at which messages are repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crypto::Signature;
use quorum::node_machine::NodeInput;
use quorum::{Phase, Sequence, View};

/// The most doublings of the time limits. They grow from view to view, so that all parties meet in one view in the end.
const DOUBLINGS_MAX: u32 = 6;

/// The most doublings of [`PhaseTimeouts::again`] between two repetitions.
const AGAIN_DOUBLINGS_MAX: u32 = 5;

/// The time limits of all steps.
#[derive(Clone, Copy, Debug)]
pub struct PhaseTimeouts {
    /// The time for an answer by code: an acknowledgement, a proposal, commits.
    pub step: Duration,
    /// The time for reviews, in addition to that.
    pub review: Duration,
    /// The time until messages are repeated for the first time. It doubles each time that nothing new has come.
    pub again: Duration,
}

/// The time-outs that a party awaits, and the time at which it repeats its messages.
#[derive(Debug)]
pub(super) struct Timers {
    timeouts: PhaseTimeouts,
    waits: BTreeMap<Sequence, (Instant, View, Phase)>,
    again: Instant,
    silences: u32,
}

impl Default for PhaseTimeouts {
    fn default() -> Self {
        Self { step: Duration::from_secs(30), review: Duration::from_mins(30), again: Duration::from_secs(1) }
    }
}

impl Timers {
    pub(super) fn new(timeouts: PhaseTimeouts, now: Instant) -> Self {
        // Others may have continued before this start, so messages are repeated at once.
        Self { timeouts, waits: BTreeMap::new(), again: now, silences: 0 }
    }

    /// Begins the time of a phase. One phase of each decision has a time.
    pub(super) fn wait(&mut self, now: Instant, sequence: Sequence, view: View, phase: Phase) {
        let PhaseTimeouts { step, review, .. } = self.timeouts;
        let time = if phase == Phase::Prepare { step + review } else { step };
        let at = now + time * (1 << view.min(DOUBLINGS_MAX));
        self.waits.insert(sequence, (at, view, phase));
    }

    /// Forgets a decision for which nothing is awaited any more.
    pub(super) fn forget(&mut self, sequence: Sequence) {
        self.waits.remove(&sequence);
    }

    /// Takes note that something new has come: messages are repeated soon, if it leads to nothing.
    pub(super) fn note_news(&mut self, now: Instant) {
        self.silences = 0;
        self.again = self.again.min(now + self.timeouts.again);
    }

    /// Returns the time of the next event.
    pub(super) fn next(&self) -> Instant {
        self.waits.values().map(|(at, ..)| *at).chain([self.again]).min().unwrap_or(self.again)
    }

    /// Returns the inputs that are due: phases whose time is over, and the repetition of messages.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<NodeInput<Signature>> {
        let mut due = Vec::new();
        self.waits.retain(|sequence, (at, view, phase)| {
            if *at <= now {
                due.push(NodeInput::Expired(*sequence, *view, *phase));
            }
            *at > now
        });
        if self.again <= now {
            self.again = now + self.timeouts.again * (1 << self.silences);
            self.silences = (self.silences + 1).min(AGAIN_DOUBLINGS_MAX);
            due.push(NodeInput::Again);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: PhaseTimeouts = PhaseTimeouts {
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
            let mut timers = Timers::new(TIMEOUTS, start);
            timers.wait(start, 7, view, phase);
            for (second, is_due) in [(seconds - 1, false), (seconds, true), (9999, false)] {
                let due = timers.take_due(after(start, second));
                let is_expired = due.iter().any(
                    |input| matches!(input, NodeInput::Expired(7, at, of) if (*at, *of) == (view, phase)),
                );
                assert_eq!(is_expired, is_due, "{view} {phase:?} {second}");
            }
        }
    }

    #[test]
    fn repetitions_grow_rarer_until_news() {
        let start = Instant::now();
        let mut timers = Timers::new(TIMEOUTS, start);
        let mut repetitions = Vec::new();
        for second in 0..100 {
            if timers.take_due(after(start, second)).iter().any(|input| matches!(input, NodeInput::Again)) {
                repetitions.push(second);
            }
        }
        assert_eq!(repetitions, [0, 1, 3, 7, 15, 31, 63, 95], "at last once in 32 seconds");
        timers.note_news(after(start, 100));
        assert_eq!(timers.next(), after(start, 101));
    }
}
