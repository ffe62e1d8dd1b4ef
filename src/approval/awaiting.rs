//! Reports who has voted on a change, and who is awaited, to people while they wait.
//!
//! The input is the votes as they are heard, and the time until which the others may vote. The output is a line each time that
//! something changes. Which votes count is decided elsewhere.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::Instant;

use super::node::Votes;
use crate::run::Waiting;
use protocol::text::escape;
use quorum::{Reviewer, Value, Vote};

/// The interval at which the elapsed time is reported.
const TICK: Duration = Duration::from_secs(1);

/// The most names of one kind that are shown.
const NAMES_MAX: usize = 8;

/// A change whose votes are awaited.
pub(super) struct Awaited {
    /// The names of all reviewers, in the order of the roster.
    pub(super) reviewers: Vec<String>,
    /// The value that is voted on.
    pub(super) value: Value,
    /// The time until which the reviewers may vote, if it is known.
    pub(super) until: Option<SystemTime>,
}

impl Awaited {
    /// Returns who has voted, and how, and who is awaited.
    pub(super) fn in_words(&self, votes: &Votes) -> String {
        let until =
            self.until.map(|until| format!(", who have until {}", humantime::format_rfc3339_seconds(until)));
        self.told(votes, "awaited", &until.unwrap_or_default())
    }

    /// Returns who has voted, and how, and who has not, once the wait is over.
    pub(super) fn at_last(&self, votes: &Votes) -> String {
        self.told(votes, "no vote heard", "")
    }

    fn told(&self, votes: &Votes, of_others: &str, until: &str) -> String {
        let votes = votes.by_reviewer(self.value);
        let mut parts = Vec::new();
        for (vote, word) in [
            (Vote::Approve, "approve"),
            (Vote::Reject, "reject"),
            (Vote::Abstain, "abstain"),
            (Vote::Follow, "follow the others"),
        ] {
            let names = self.named(&votes, Some(vote));
            parts.extend((!names.is_empty()).then(|| format!("{word}: {}", listed(&names))));
        }
        let away = self.named(&votes, None);
        if !away.is_empty() {
            parts.push(format!("{of_others}: {}{until}", listed(&away)));
        }
        escape::terminal(&parts.join("; "))
    }

    /// Returns the names of the reviewers with this vote; `None` means no vote.
    fn named(&self, votes: &BTreeMap<Reviewer, Vote>, vote: Option<Vote>) -> Vec<&str> {
        let is_so = |by: &usize| votes.get(by).copied() == vote;
        let reviewers = self.reviewers.iter().enumerate().filter(|(by, _)| is_so(by));
        reviewers.map(|(_, name)| name.as_str()).collect()
    }

    /// Reports the votes as they come. Never ends.
    pub(super) async fn tell(&self, mut votes: watch::Receiver<Votes>, waiting: &dyn Waiting) {
        let began = Instant::now();
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                heard = votes.changed() => match heard {
                    Ok(()) => waiting.now(&self.in_words(&votes.borrow_and_update())),
                    Err(_) => return std::future::pending().await,
                },
                _ = ticks.tick() => waiting.since(began.elapsed()),
            }
        }
    }
}

fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
