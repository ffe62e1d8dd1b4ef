//! The limits of each token for a day, and their use.
//!
//! The input is the beginnings of runs and their replies, each with its day and its caller. The output is whether a caller may begin
//! another run. A run that ends before its first record counts no more. A day is one of UTC. The tokens of a reply count when it comes, so
//! the calls that are in the air may exceed a limit. The runs of earlier servers count on the day on which they ended. No clock is read
//! here.

use std::collections::HashMap;

use serde::Deserialize;

use super::caller::CALLER_LABEL;
use crate::batch::UnfinishedRun;
use crypto::Digest;

/// The limits of a caller for one day. A missing limit does not bind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Allowance {
    /// The most runs that begin.
    pub(super) runs: Option<u64>,
    /// The most tokens of prompts and replies.
    pub(super) tokens: Option<u64>,
}

/// What a caller has used on a day.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    runs: u64,
    tokens: u64,
}

/// What all callers have used on the last day that was seen.
#[derive(Debug, Default)]
pub(super) struct Spending {
    /// The day, as its date is written.
    day: String,
    of: HashMap<Digest, Spent>,
}

/// The parts of a row of results that say who has used what, and when.
#[derive(Deserialize)]
struct Charged {
    #[serde(default)]
    meta: HashMap<String, String>,
    usage: ChargedUse,
    timing: ChargedTimes,
}

#[derive(Deserialize)]
struct ChargedUse {
    prompt: u64,
    completion: u64,
}

#[derive(Deserialize)]
struct ChargedTimes {
    started_at: String,
    ended_at: String,
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
        let has_reached = |spent: u64, most: Option<u64>| most.is_some_and(|most| spent >= most);
        if has_reached(spent.runs, allowance.runs) {
            return Err("runs");
        }
        if has_reached(spent.tokens, allowance.tokens) {
            return Err("tokens");
        }
        spent.runs += 1;
        Ok(())
    }

    /// Takes back a run that was counted on this day, and has ended before its first record.
    pub(super) fn take_back(&mut self, caller: Digest, day: &str) {
        if *day == *self.day
            && let Some(spent) = self.of.get_mut(&caller)
        {
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

    /// Charges a run of an earlier server, from its row of results.
    pub(super) fn recall(&mut self, row: &[u8]) {
        // A row that is no result is found by `consensus verify`, and without a token there is no limit.
        let Ok(Charged { meta, usage, timing }) = serde_json::from_slice(row) else { return };
        let Some(caller) = meta.get(CALLER_LABEL).and_then(|caller| caller.parse().ok()) else { return };
        let tokens = usage.prompt.saturating_add(usage.completion);
        self.recall_run(caller, tokens, &timing.started_at, &timing.ended_at);
    }

    /// Charges a run of an earlier server that has no row of results, from its records.
    pub(super) fn recall_cut(&mut self, run: &UnfinishedRun) {
        let caller = run.spec.cell.as_ref().and_then(|cell| cell.meta.get(CALLER_LABEL)?.parse().ok());
        if let Some(caller) = caller {
            self.recall_run(caller, run.tokens, &run.began_at, &run.last_at);
        }
    }

    fn recall_run(&mut self, caller: Digest, tokens: u64, began_at: &str, ended_at: &str) {
        let ended = date(ended_at);
        if *ended < *self.day {
            return;
        }
        self.charge(caller, tokens, ended);
        if date(began_at) == ended {
            self.on(ended, caller).runs += 1;
        }
    }

    /// Returns what a caller has used on a day. A later day begins with nothing used; an earlier one counts as the present.
    fn on(&mut self, day: &str, caller: Digest) -> &mut Spent {
        if *day > *self.day {
            day.clone_into(&mut self.day);
            self.of.clear();
        }
        self.of.entry(caller).or_default()
    }
}

/// Returns the date of a time.
pub(super) fn date(time: &str) -> &str {
    time.split('T').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(caller: Digest, started_at: &str, ended_at: &str, tokens: u64) -> Vec<u8> {
        let row = json!({"meta": {"caller": caller}, "usage": {"prompt": tokens, "completion": 0},
            "timing": {"started_at": started_at, "ended_at": ended_at}});
        row.to_string().into_bytes()
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

    /// This holds even if the row of the earlier day is read last.
    #[test]
    fn earlier_day_is_not_charged_to_later() {
        let one = Digest::new(b"one");
        let mut spending = Spending::default();
        spending.recall(&row(one, "2026-01-02T10:00:00Z", "2026-01-02T10:00:01Z", 60));
        spending.recall(&row(one, "2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z", 60));
        let allowance = Allowance { runs: Some(2), tokens: Some(61) };
        assert!(spending.begin(one, allowance, "2026-01-02").is_ok());
    }

    #[test]
    fn the_rows_of_earlier_servers_count() {
        let one = Digest::new(b"one");
        let mut spending = Spending::default();
        spending.recall(&row(one, "2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z", 60));
        spending.recall(&row(one, "2026-01-02T10:00:00Z", "2026-01-02T10:00:01Z", 60));
        let allowance = |runs, tokens| Allowance { runs, tokens };
        assert_eq!(spending.begin(one, allowance(Some(1), None), "2026-01-02"), Err("runs"));
        assert_eq!(spending.begin(one, allowance(None, Some(60)), "2026-01-02"), Err("tokens"));
        assert!(spending.begin(one, allowance(Some(2), Some(61)), "2026-01-02").is_ok());
    }
}
