//! Reports who has voted on a change, and who is awaited, to people while they wait.
//!
//! The input is the votes as they are heard, and the time until which the others may vote. The output is a line each time that
//! something changes. Which votes count is decided elsewhere.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::Instant;

use crate::approval::node::Votes;
use crate::run::Reporter;
use protocol::text::escape;
use quorum::{Reviewer, Value, Vote};

/// The interval at which the elapsed time is reported.
const TICK: Duration = Duration::from_secs(1);

/// The most names of one kind that are shown.
const NAMES_MAX: usize = 8;

/// A change whose votes are awaited.
pub(super) struct VoteStatus {
    /// The names of all reviewers, in the order of the roster.
    pub(super) reviewers: Vec<String>,
    /// The value that is voted on.
    pub(super) value: Value,
    /// The time until which the reviewers may vote, if it is known.
    pub(super) until: Option<SystemTime>,
}

impl VoteStatus {
    /// Returns who has voted, and how, and who is awaited.
    pub(super) fn summary(&self, votes: &Votes) -> String {
        let until =
            self.until.map(|until| format!(", who have until {}", humantime::format_rfc3339_seconds(until)));
        self.describe(votes, "awaited", &until.unwrap_or_default())
    }

    /// Returns who has voted, and how, and who has not, once the wait is over.
    pub(super) fn final_summary(&self, votes: &Votes) -> String {
        self.describe(votes, "no vote heard", "")
    }

    fn describe(&self, votes: &Votes, of_others: &str, until: &str) -> String {
        let votes = votes.by_reviewer(self.value);
        let mut parts = Vec::new();
        for (vote, word) in [
            (Vote::Approve, "approve"),
            (Vote::Reject, "reject"),
            (Vote::Abstain, "abstain"),
            (Vote::Follow, "follow the others"),
        ] {
            let names = self.names_with(&votes, Some(vote));
            if !names.is_empty() {
                parts.push(format!("{word}: {}", join_names(&names)));
            }
        }
        let away = self.names_with(&votes, None);
        if !away.is_empty() {
            parts.push(format!("{of_others}: {}{until}", join_names(&away)));
        }
        escape::terminal(&parts.join("; "))
    }

    /// Returns the names of the reviewers with this vote; `None` means no vote.
    fn names_with(&self, votes: &BTreeMap<Reviewer, Vote>, vote: Option<Vote>) -> Vec<&str> {
        let reviewers = self.reviewers.iter().enumerate();
        let reviewers = reviewers.filter(|(by, _)| votes.get(by).copied() == vote);
        reviewers.map(|(_, name)| name.as_str()).collect()
    }

    /// Reports the votes as they come. Never ends.
    pub(super) async fn report_votes(&self, mut votes: watch::Receiver<Votes>, waiting: &dyn Reporter) {
        let began = Instant::now();
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                heard = votes.changed() => match heard {
                    Ok(()) => waiting.status(&self.summary(&votes.borrow_and_update())),
                    Err(_) => return std::future::pending().await,
                },
                _ = ticks.tick() => waiting.set_elapsed(began.elapsed()),
            }
        }
    }
}

fn join_names(names: &[&str]) -> String {
    let shown = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
