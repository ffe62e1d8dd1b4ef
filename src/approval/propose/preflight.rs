//! Finds out who could take part in a decision, before it has a number.
//!
//! The input is connections to the reviewers, and the base of a change. The output is the answer of each reviewer, and the
//! confirmation that a quorum could vote, once it could. A base that no quorum has is an error, and not a decision: reviewers
//! without it would abstain, and the change would be rejected for ever. Nothing is signed or written here.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::approval::decision_context::DecisionContext;
use crate::approval::error::ApprovalError;
use crate::approval::keys::ORCHESTRATOR;
use crate::approval::node::{Addresses, BaseQuery, BaseState, Connections, Reachability, Readiness};
use crate::approval::request::ApprovalRequest;
use crate::repository::Oid;
use crate::run::Reporter;
use protocol::text::escape;
use quorum::{Membership, NodeId};

/// The time for all answers before a proposal. Reviewers that have not answered by then are reported.
const ALL_MAX: Duration = Duration::from_secs(5);

/// The time for all answers if nothing else is asked for: a fetch takes its time.
const CHECK_MAX: Duration = Duration::from_secs(30);

/// The pause before the reviewers are asked again.
const AGAIN: Duration = Duration::from_secs(3);

/// The longest review time that is believed: the time that a reviewer reports is only its word.
const REVIEW_MAX: Duration = Duration::from_hours(30 * 24);

/// The most characters that are shown about a reviewer, such as its program's name and why a fetch has failed.
const SAID_CHARS_MAX: usize = 300;

/// The number of characters of a commit's name that are shown.
const SHORT: usize = 12;

/// The answers of all reviewers about a base.
#[derive(Clone, Debug)]
pub struct ReadinessReport {
    about: BaseQuery,
    /// The number of reviewers that must approve.
    quorum: usize,
    /// The reviewers, in the order of the roster.
    reviewers: Vec<ReviewerState>,
}

/// A reviewer, its address, and the result of asking it; `None` if its answer was not waited for.
#[derive(Clone, Debug)]
struct ReviewerState {
    name: String,
    address: String,
    reachability: Option<Reachability>,
}

impl ReviewerState {
    /// Returns its answer, if it has given one.
    fn answer(&self) -> Option<&Readiness> {
        match &self.reachability {
            Some(Reachability::Ready(answer)) => Some(answer),
            Some(Reachability::Silent | Reachability::Away(_)) | None => None,
        }
    }

    /// Returns whether it could vote. A reviewer that does not say so may be able to.
    fn is_able(&self) -> bool {
        match &self.reachability {
            Some(Reachability::Ready(answer)) => answer.base == BaseState::Known,
            Some(Reachability::Silent) => true,
            Some(Reachability::Away(_)) | None => false,
        }
    }
}

impl ReadinessReport {
    /// Asks all reviewers once. Those that have not answered within this time are unheard.
    async fn collect(
        connections: &Connections,
        membership: &Membership,
        addresses: &Addresses,
        base: &Oid,
        branch: &str,
        time: Duration,
    ) -> Self {
        let (quorum, count) = (membership.quorum().size(), membership.quorum().reviewers());
        let about = &BaseQuery { base: base.to_string(), branch: branch.to_owned() };
        let mut answers = FuturesUnordered::new();
        for by in 0..count {
            answers.push(async move { (by, connections.ask(NodeId::Reviewer(by), about).await) });
        }
        let end = Instant::now() + time;
        let mut heard = BTreeMap::new();
        while let Ok(Some((by, answer))) = tokio::time::timeout_at(end, answers.next()).await {
            heard.insert(by, answer);
        }
        let seats = membership.roster().reviewers.iter().enumerate();
        let seats = seats.map(|(by, seat)| ReviewerState {
            name: seat.name.clone(),
            address: addresses.of(&seat.name).unwrap_or_default().to_owned(),
            reachability: heard.remove(&by),
        });
        Self { about: about.clone(), quorum, reviewers: seats.collect() }
    }

    /// Returns the number of reviewers that could vote, as far as is known.
    fn able(&self) -> usize {
        self.reviewers.iter().filter(|seat| seat.is_able()).count()
    }

    /// Returns whether enough reviewers could vote for a change to be approved.
    pub fn has_quorum(&self) -> bool {
        self.able() >= self.quorum
    }

    /// Returns a line with the number of reviewers that are ready, and the number that a decision needs.
    pub fn summary(&self) -> String {
        let (able, all, quorum) = (self.able(), self.reviewers.len(), self.quorum);
        format!("{able} of {all} reviewers are ready, and a decision needs {quorum}")
    }

    /// Returns a line for each reviewer: its name and its state.
    pub fn lines(&self) -> Vec<(&str, String)> {
        self.reviewers.iter().map(|seat| (seat.name.as_str(), self.describe(seat))).collect()
    }

    /// Returns the same as JSON, for programs.
    pub fn to_json(&self) -> Value {
        let mut rows = Vec::new();
        for seat in &self.reviewers {
            let state = match &seat.reachability {
                Some(Reachability::Ready(answer)) => match answer.base {
                    BaseState::Known => "ready",
                    BaseState::Missing => "lacks_base",
                    BaseState::Behind => "has_later_branch",
                    BaseState::OtherBranch => "other_branch",
                },
                Some(Reachability::Silent) => "silent",
                Some(Reachability::Away(_)) => "away",
                None => "unheard",
            };
            let answer = seat.answer();
            rows.push(json!({
                "reviewer": seat.name,
                "address": seat.address,
                "state": state,
                "program": answer.map(|answer| &answer.program),
                "verifies": answer.map(|answer| answer.verifies),
                "review_seconds": answer.map(|answer| answer.review_s),
                "words": self.describe(seat),
            }));
        }
        json!({
            "branch": self.about.branch, "base": self.about.base, "quorum": self.quorum, "ready": self.able(),
            "has_quorum": self.has_quorum(), "reviewers": rows,
        })
    }

    /// Returns the names of the reviewers that report this state of the base.
    fn names_with(&self, state: BaseState) -> Vec<&str> {
        let seats = self.reviewers.iter();
        let seats = seats.filter(|seat| seat.answer().is_some_and(|answer| answer.base == state));
        seats.map(|seat| seat.name.as_str()).collect()
    }

    fn describe(&self, seat: &ReviewerState) -> String {
        let words = match &seat.reachability {
            Some(Reachability::Ready(answer)) => {
                let base = match answer.base {
                    BaseState::Known => "ready".to_owned(),
                    BaseState::Missing => format!("lacks the base {}", self.short()),
                    BaseState::Behind => format!("has a later {} than {}", self.branch(), self.short()),
                    BaseState::OtherBranch => format!("reviews for another branch than {}", self.branch()),
                };
                let failed = answer.fetch_failed.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
                let verifies = if answer.verifies { "; runs a command before it approves" } else { "" };
                format!("{base}{failed}; {}{verifies}", answer.program)
            }
            Some(Reachability::Silent) => "is there, but does not say whether it has the base".to_owned(),
            Some(Reachability::Away(why)) => format!("{why} ({})", seat.address),
            None => "has not answered yet".to_owned(),
        };
        escape::terminal(&escape::one_line(&words)).chars().take(SAID_CHARS_MAX).collect()
    }

    fn short(&self) -> &str {
        self.about.base.get(..SHORT).unwrap_or_default()
    }

    fn branch(&self) -> &str {
        self.about.branch.strip_prefix("refs/heads/").unwrap_or(&self.about.branch)
    }

    /// Returns why no quorum can vote, even if all absent reviewers come back; `None` if one could.
    fn obstacle(&self) -> Option<String> {
        let (all, base, branch) = (self.reviewers.len(), self.short(), self.branch());
        let kinds = [
            (
                BaseState::Missing,
                format!("lack the base {base}"),
                format!(
                    "push {branch} to where they fetch it from with --fetch REMOTE, or fetch it into their copies"
                ),
            ),
            (
                BaseState::Behind,
                format!("have a later {branch} than {base}"),
                format!("get it with `git fetch REMOTE {branch}:{branch}`, and propose again"),
            ),
            (
                BaseState::OtherBranch,
                format!("review for another branch than {branch}"),
                format!("start them with --base {branch}"),
            ),
        ];
        let mut parts = Vec::new();
        let mut unable = 0;
        for (state, fault, advice) in kinds {
            let names = self.names_with(state);
            unable += names.len();
            if !names.is_empty() {
                let (count, names) = (names.len(), names.join(", "));
                parts.push(format!("{count} of {all} reviewers {fault} ({names}): {advice}"));
            }
        }
        if unable + self.quorum <= all {
            return None;
        }
        Some(format!("no quorum could vote, and nothing was proposed: {}", parts.join("; ")))
    }

    /// Returns a line for each reviewer that cannot vote yet.
    fn unable_lines(&self) -> Vec<String> {
        let others = self.reviewers.iter().filter(|seat| !seat.is_able());
        others.map(|seat| format!("{} {}", seat.name, self.describe(seat))).collect()
    }

    /// Returns whether each quorum has a reviewer that runs a command before it approves, by the reviewers' own account.
    pub(super) fn is_verifying(&self) -> bool {
        let answers = self.reviewers.iter().filter_map(ReviewerState::answer);
        answers.filter(|answer| answer.verifies).count() + self.quorum > self.reviewers.len()
    }

    /// Returns the longest time that any reviewer gives a review.
    pub(super) fn review_max(&self) -> Option<Duration> {
        let answers = self.reviewers.iter().filter_map(ReviewerState::answer);
        answers.map(|answer| Duration::from_secs(answer.review_s).min(REVIEW_MAX)).max()
    }
}

/// Asks the reviewers of a request once whether they could vote on a change of its base. This listens for no packets, so that
/// it can run beside a process that proposes.
///
/// Returns [`ApprovalError`] if the keys, the addresses or the repository cannot be used.
pub async fn check_readiness(request: &ApprovalRequest) -> Result<ReadinessReport, ApprovalError> {
    let DecisionContext { repository, branch, keys, membership, addresses } = DecisionContext::open(request)?;
    let (key, me, ..) = keys.seat(ORCHESTRATOR, &membership)?;
    let Some(addresses) = addresses else {
        return Err(ApprovalError::Usage("--check needs --peers".to_owned()));
    };
    let connections = Connections::open(&key, me, &membership, &addresses)?;
    let base = repository.commit_of(&branch)?;
    Ok(ReadinessReport::collect(&connections, &membership, &addresses, &base, &branch, CHECK_MAX).await)
}

/// Waits until a quorum could vote on a change of this base.
///
/// Returns [`ApprovalError::NotReady`] if so many reviewers are there and lack the base that no quorum could vote.
pub(super) async fn wait_for_quorum(
    connections: &Connections,
    membership: &Membership,
    addresses: &Addresses,
    base: &Oid,
    branch: &str,
    reporter: &dyn Reporter,
) -> Result<ReadinessReport, ApprovalError> {
    let began = Instant::now();
    let mut waiting: Option<Box<dyn Reporter + '_>> = None;
    let mut printed: Vec<String> = Vec::new();
    loop {
        let report =
            ReadinessReport::collect(connections, membership, addresses, base, branch, ALL_MAX).await;
        if let Some(why) = report.obstacle() {
            return Err(ApprovalError::NotReady(why));
        }
        let lines = report.unable_lines();
        if report.has_quorum() {
            match waiting {
                Some(waiting) => waiting.finish(&report.summary()),
                None => lines.iter().for_each(|line| reporter.warn(line)),
            }
            return Ok(report);
        }
        let moving = waiting.get_or_insert_with(|| reporter.wait_for(&report.summary()));
        if printed != lines {
            if !printed.is_empty() {
                moving.status(&report.summary());
            }
            lines.iter().filter(|line| !printed.contains(*line)).for_each(|line| moving.warn(line));
            printed = lines;
        }
        moving.set_elapsed(began.elapsed());
        tokio::time::sleep(AGAIN).await;
    }
}
