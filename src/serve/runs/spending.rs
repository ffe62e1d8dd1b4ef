//! The use of each token in a day, within its limits.
//!
//! The input is the beginnings of runs and their replies, each with its day and its caller. The output is whether a caller may begin
//! another run. A run that ends before its first record counts no more. A day is one of UTC. The tokens of a reply count when it comes, so
//! the calls that are in the air may exceed a limit. The runs of earlier servers count if they ended today. A day that a wrong clock has
//! named, however far ahead, changes no other day. No clock is read here.

use std::collections::HashMap;

use super::past_run::PastRun;
use crate::serve::http::{Allowance, Caller};
use crypto::Digest;

/// What a caller has used on a day.
#[derive(Clone, Copy, Debug, Default)]
struct DailyUse {
    runs: u64,
    tokens: u64,
}

/// The most days that are known. Around midnight, and around a clock that is set, two days come in turn.
const DAYS_MAX: usize = 2;

/// What all callers have used on the last days.
#[derive(Debug, Default)]
pub(super) struct Spending {
    days: Vec<DaySpending>,
}

/// What all callers have used on one day.
#[derive(Debug)]
struct DaySpending {
    /// The day, as its date is written.
    day: String,
    of: HashMap<Digest, DailyUse>,
}

impl Spending {
    /// Counts a run that begins. Returns the limit that the caller has reached, if it has reached one.
    pub(super) fn begin(
        &mut self,
        caller: Digest,
        allowance: Allowance,
        today: &str,
    ) -> Result<(), &'static str> {
        let spent = self.on(today, caller);
        if allowance.runs.is_some_and(|most| spent.runs >= most) {
            return Err("runs");
        }
        if allowance.tokens.is_some_and(|most| spent.tokens >= most) {
            return Err("tokens");
        }
        spent.runs += 1;
        Ok(())
    }

    /// Takes back a run that was counted on this day, and has ended before its first record.
    pub(super) fn take_back(&mut self, caller: Digest, day: &str) {
        let known = self.days.iter_mut().find(|known| known.day == day);
        if let Some(spent) = known.and_then(|known| known.of.get_mut(&caller)) {
            spent.runs = spent.runs.saturating_sub(1);
        }
    }

    /// Returns whether a caller has tokens left.
    pub(super) fn has_tokens(&mut self, caller: Digest, allowance: Allowance, today: &str) -> bool {
        allowance.tokens.is_none_or(|most| self.on(today, caller).tokens < most)
    }

    /// Charges the tokens of a reply.
    pub(super) fn charge(&mut self, caller: Digest, tokens: u64, today: &str) {
        let spent = self.on(today, caller);
        spent.tokens = spent.tokens.saturating_add(tokens);
    }

    /// Charges a run of an earlier server, if its last record is of today.
    pub(super) fn recall(&mut self, run: &PastRun, today: &str) {
        // Without a token there is no limit. An earlier day is over, and a later one is that of a wrong clock.
        if run.caller == Caller::ANYONE || date(&run.ended_at) != today {
            return;
        }
        let caller = run.caller.0;
        self.charge(caller, run.tokens, today);
        if date(&run.started_at) == today {
            self.on(today, caller).runs += 1;
        }
    }

    /// Returns what a caller has used on a day. A day that is not known begins with nothing used.
    fn on(&mut self, day: &str, caller: Digest) -> &mut DailyUse {
        let at = self.days.iter().position(|known| known.day == day).unwrap_or_else(|| {
            if self.days.len() == DAYS_MAX {
                self.days.remove(0);
            }
            self.days.push(DaySpending { day: day.to_owned(), of: HashMap::new() });
            self.days.len() - 1
        });
        self.days[at].of.entry(caller).or_default()
    }
}

/// Returns the date of a time.
pub(super) fn date(time: &str) -> &str {
    time.split('T').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn past_run(caller: Digest, started_at: &str, ended_at: &str, tokens: u64) -> PastRun {
        let (started_at, ended_at) = (started_at.to_owned(), ended_at.to_owned());
        PastRun { run: Uuid::nil(), caller: Caller(caller), tokens, started_at, ended_at }
    }

    #[test]
    fn limit_binds_one_caller_and_day() {
        let (one, other) = (Digest::new(b"one"), Digest::new(b"other"));
        let allowance = Allowance { runs: Some(2), tokens: Some(100) };
        let mut spending = Spending::default();
        assert!(spending.begin(one, allowance, "2026-01-01").is_ok());
        spending.charge(one, 60, "2026-01-01");
        assert!(spending.begin(one, allowance, "2026-01-01").is_ok());
        assert_eq!(spending.begin(one, allowance, "2026-01-01"), Err("runs"));
        assert!(spending.begin(other, allowance, "2026-01-01").is_ok());
        assert!(spending.begin(one, allowance, "2026-01-02").is_ok(), "a day begins with nothing used");
        spending.charge(one, 100, "2026-01-02");
        assert!(!spending.has_tokens(one, allowance, "2026-01-02"));
        assert_eq!(spending.begin(one, allowance, "2026-01-02"), Err("tokens"));
    }

    /// A run that never began is no longer counted on its own day, and no other day changes.
    #[test]
    fn take_back_touches_only_its_day() {
        let one = Digest::new(b"one");
        let allowance = Allowance { runs: Some(1), tokens: None };
        let mut spending = Spending::default();
        assert!(spending.begin(one, allowance, "2026-01-01").is_ok());
        spending.take_back(one, "2026-01-01");
        assert!(spending.begin(one, allowance, "2026-01-01").is_ok());
        assert!(spending.begin(one, allowance, "2026-01-02").is_ok());
        spending.take_back(one, "2026-01-01");
        assert_eq!(spending.begin(one, allowance, "2026-01-02"), Err("runs"));
    }

    /// Runs of yesterday, and of a clock that was wrong, charge nothing today.
    #[test]
    fn other_days_are_not_charged_today() {
        let one = Digest::new(b"one");
        let mut spending = Spending::default();
        for day in ["2026-01-02", "2026-01-01", "2099-01-01"] {
            let [began, ended] = ["10:00:00", "10:00:01"].map(|time| format!("{day}T{time}Z"));
            spending.recall(&past_run(one, &began, &ended, 60), "2026-01-02");
        }
        let allowance = Allowance { runs: Some(2), tokens: Some(61) };
        assert!(spending.begin(one, allowance, "2026-01-02").is_ok());
        assert_eq!(spending.begin(one, allowance, "2026-01-02"), Err("runs"));
    }

    /// A clock that is ahead for a while does not freeze the day, and the day is as it was.
    #[test]
    fn clock_set_back_finds_its_day() {
        let one = Digest::new(b"one");
        let allowance = Allowance { runs: Some(1), tokens: None };
        let mut spending = Spending::default();
        for day in ["2026-01-01", "2099-01-01"] {
            assert!(spending.begin(one, allowance, day).is_ok());
        }
        assert_eq!(spending.begin(one, allowance, "2026-01-01"), Err("runs"));
        assert!(spending.begin(one, allowance, "2026-01-02").is_ok());
    }

    #[test]
    fn runs_of_earlier_servers_count() {
        let one = Digest::new(b"one");
        let mut spending = Spending::default();
        spending.recall(&past_run(one, "2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z", 60), "2026-01-02");
        spending.recall(&past_run(one, "2026-01-02T10:00:00Z", "2026-01-02T10:00:01Z", 60), "2026-01-02");
        let allowance = |runs, tokens| Allowance { runs, tokens };
        assert_eq!(spending.begin(one, allowance(Some(1), None), "2026-01-02"), Err("runs"));
        assert_eq!(spending.begin(one, allowance(None, Some(60)), "2026-01-02"), Err("tokens"));
        assert!(spending.begin(one, allowance(Some(2), Some(61)), "2026-01-02").is_ok());
    }
}
