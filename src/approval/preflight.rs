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

use super::error::ApprovalError;
use super::keys::ORCHESTRATOR;
use super::node::{Addresses, BaseState, Connections, Inquiry, Presence, Readiness};
use super::request::ApprovalRequest;
use super::site::DecisionSite;
use crate::repository::Oid;
use crate::run::{Notices, Waiting};
use protocol::text::escape;
use quorum::{Membership, NodeId, Reviewer};

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
pub struct Attendance {
    about: Inquiry,
    /// The number of reviewers that must approve.
    quorum: usize,
    /// The reviewers, in the order of the roster.
    reviewers: Vec<Seat>,
}

/// A reviewer, its address, and the result of asking it; `None` if its answer was not waited for.
#[derive(Clone, Debug)]
struct Seat {
    name: String,
    address: String,
    presence: Option<Presence>,
}

/// The start of a decision, and the reviewers that are asked about it.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) membership: &'a Membership,
    pub(super) addresses: &'a Addresses,
    pub(super) base: &'a Oid,
    pub(super) branch: &'a str,
}

/// The answers that matter to the orchestrator once a quorum could vote.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuorumReady {
    /// Whether each quorum has a reviewer that runs a command before it approves, by the reviewers' own account.
    pub(super) verifies: bool,
    /// The longest time that any reviewer gives a review.
    pub(super) review_max: Option<Duration>,
}

impl Seat {
    /// Returns its answer, if it has given one.
    fn said(&self) -> Option<&Readiness> {
        match &self.presence {
            Some(Presence::Ready(said)) => Some(said),
            Some(Presence::Silent | Presence::Away(_)) | None => None,
        }
    }

    /// Returns whether it could vote. A reviewer that does not say so may be able to.
    fn is_able(&self) -> bool {
        match &self.presence {
            Some(Presence::Ready(said)) => said.base == BaseState::Known,
            Some(Presence::Silent) => true,
            Some(Presence::Away(_)) | None => false,
        }
    }
}

impl Attendance {
    /// Asks all reviewers once. Those that have not answered within this time are unheard.
    async fn of(connections: &Connections, place: Place<'_>, time: Duration) -> Self {
        let Place { membership, addresses, base, branch } = place;
        let (quorum, count) = (membership.quorum().size(), membership.quorum().reviewers());
        let about = &Inquiry { base: base.to_string(), branch: branch.to_owned() };
        let ask = |by: Reviewer| async move { (by, connections.ask(NodeId::Reviewer(by), about).await) };
        let mut answers: FuturesUnordered<_> = (0..count).map(ask).collect();
        let end = Instant::now() + time;
        let mut heard = BTreeMap::new();
        while let Ok(Some((by, presence))) = tokio::time::timeout_at(end, answers.next()).await {
            heard.insert(by, presence);
        }
        let seats = membership.roster().reviewers.iter().enumerate();
        let seats = seats.map(|(by, seat)| Seat {
            name: seat.name.clone(),
            address: addresses.of(&seat.name).unwrap_or_default().to_owned(),
            presence: heard.remove(&by),
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
        self.reviewers.iter().map(|seat| (seat.name.as_str(), self.in_words(seat))).collect()
    }

    /// Returns the same as JSON, for programs.
    pub fn to_json(&self) -> Value {
        let row = |seat: &Seat| {
            let state = match &seat.presence {
                Some(Presence::Ready(said)) => match said.base {
                    BaseState::Known => "ready",
                    BaseState::Missing => "lacks_base",
                    BaseState::Behind => "has_later_branch",
                    BaseState::OtherBranch => "other_branch",
                },
                Some(Presence::Silent) => "silent",
                Some(Presence::Away(_)) => "away",
                None => "unheard",
            };
            let said = seat.said();
            json!({
                "reviewer": seat.name,
                "address": seat.address,
                "state": state,
                "program": said.map(|said| &said.program),
                "verifies": said.map(|said| said.verifies),
                "review_seconds": said.map(|said| said.review_s),
                "words": self.in_words(seat),
            })
        };
        let reviewers: Vec<Value> = self.reviewers.iter().map(row).collect();
        json!({
            "branch": self.about.branch, "base": self.about.base, "quorum": self.quorum, "ready": self.able(),
            "has_quorum": self.has_quorum(), "reviewers": reviewers,
        })
    }

    /// Returns the names of the reviewers that report this state of the base.
    fn whose(&self, state: BaseState) -> Vec<&str> {
        let seats = self.reviewers.iter().filter(|seat| seat.said().is_some_and(|said| said.base == state));
        seats.map(|seat| seat.name.as_str()).collect()
    }

    fn in_words(&self, seat: &Seat) -> String {
        let words = match &seat.presence {
            Some(Presence::Ready(said)) => {
                let base = match said.base {
                    BaseState::Known => "ready".to_owned(),
                    BaseState::Missing => format!("lacks the base {}", self.short()),
                    BaseState::Behind => format!("has a later {} than {}", self.branch(), self.short()),
                    BaseState::OtherBranch => format!("reviews for another branch than {}", self.branch()),
                };
                let failed = said.fetch_failed.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
                let verifies = if said.verifies { "; runs a command before it approves" } else { "" };
                format!("{base}{failed}; {}{verifies}", said.program)
            }
            Some(Presence::Silent) => "is there, but does not say whether it has the base".to_owned(),
            Some(Presence::Away(why)) => format!("{why} ({})", seat.address),
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
        for (state, is_so, advice) in kinds {
            let names = self.whose(state);
            unable += names.len();
            let part =
                || format!("{} of {all} reviewers {is_so} ({}): {advice}", names.len(), names.join(", "));
            parts.extend((!names.is_empty()).then(part));
        }
        let is_hopeless = unable + self.quorum > all;
        is_hopeless.then(|| format!("no quorum could vote, and nothing was proposed: {}", parts.join("; ")))
    }

    /// Returns a line for each reviewer that cannot vote yet.
    fn not_able(&self) -> Vec<String> {
        let others = self.reviewers.iter().filter(|seat| !seat.is_able());
        others.map(|seat| format!("{} {}", seat.name, self.in_words(seat))).collect()
    }

    fn ready(&self) -> QuorumReady {
        let said = || self.reviewers.iter().filter_map(Seat::said);
        let verifying = said().filter(|said| said.verifies).count();
        let review_max = said().map(|said| Duration::from_secs(said.review_s).min(REVIEW_MAX)).max();
        QuorumReady { verifies: verifying + self.quorum > self.reviewers.len(), review_max }
    }
}

/// Asks the reviewers of a request once whether they could vote on a change of its base. This listens for no packets, so that
/// it can run beside a process that proposes.
///
/// # Errors
///
/// [`ApprovalError`] if the keys, the addresses or the repository cannot be used.
pub async fn attendance(request: &ApprovalRequest) -> Result<Attendance, ApprovalError> {
    let DecisionSite { repository, branch, keys, membership, addresses } = DecisionSite::open(request)?;
    let needs_peers = || ApprovalError::Usage("--check needs --peers".to_owned());
    let (key, me, ..) = keys.seat(ORCHESTRATOR, &membership)?;
    let addresses = addresses.ok_or_else(needs_peers)?;
    let connections = Connections::open(&key, me, &membership, &addresses)?;
    let base = repository.commit_of(&branch)?;
    let place = Place { membership: &membership, addresses: &addresses, base: &base, branch: &branch };
    Ok(Attendance::of(&connections, place, CHECK_MAX).await)
}

/// Waits until a quorum could vote on a change of this base.
///
/// # Errors
///
/// [`ApprovalError::NotReady`] if so many reviewers are there and lack the base that no quorum could vote.
pub(super) async fn quorum_ready(
    connections: &Connections,
    place: Place<'_>,
    notices: &dyn Notices,
) -> Result<QuorumReady, ApprovalError> {
    let began = Instant::now();
    let mut waiting: Option<Box<dyn Waiting + '_>> = None;
    let mut told = Vec::new();
    loop {
        let attendance = Attendance::of(connections, place, ALL_MAX).await;
        if let Some(why) = attendance.obstacle() {
            return Err(ApprovalError::NotReady(why));
        }
        let others = attendance.not_able();
        if attendance.has_quorum() {
            match waiting {
                Some(waiting) => waiting.done(&attendance.summary()),
                None => others.iter().for_each(|line| notices.warn(line)),
            }
            return Ok(attendance.ready());
        }
        let moving = waiting.get_or_insert_with(|| notices.wait_for(&attendance.summary()));
        if told != others {
            if !told.is_empty() {
                moving.now(&attendance.summary());
            }
            others.iter().filter(|line| !told.contains(*line)).for_each(|line| moving.tell(line));
            told = others;
        }
        moving.since(began.elapsed());
        tokio::time::sleep(AGAIN).await;
    }
}
