//! Who could take part in a decision, found out before it has a number.
//!
//! In: connections to the reviewers, and the base of a change. Out: what each says of itself, and the word that a quorum could
//! vote, once it could. A base that no quorum has is an error, and no decision: reviewers without it would abstain, and the
//! change would be rejected for ever. Nothing is signed or written here.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::error::ApprovalError;
use super::keys::ORCHESTRATOR;
use super::node::{BaseState, Connections, Presence};
use super::request::ApprovalRequest;
use super::site::DecisionSite;
use crate::bft::{Membership, NodeId, Reviewer};
use crate::repository::Oid;
use crate::run::{Notices, Waiting};
use crate::text::escape;

/// For so long all are heard, also where a quorum has answered before.
const ALL_MAX: Duration = Duration::from_secs(5);

/// How soon those are asked again who were not there.
const AGAIN: Duration = Duration::from_secs(3);

/// So many characters of a commit's name are shown.
const SHORT: usize = 12;

/// What every reviewer says of a base.
#[derive(Clone, Debug)]
pub struct Attendance {
    base: Oid,
    branch: String,
    /// How many must approve.
    quorum: usize,
    /// In the order of the roster; none where the answer was not waited for.
    reviewers: Vec<(String, Option<Presence>)>,
}

/// What a proposer knows once a quorum could vote.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuorumReady {
    /// Whether each quorum has somebody who runs a command before it approves, as they say.
    pub(super) verifies: bool,
    /// The longest time that any of them gives a review.
    pub(super) review_max: Option<Duration>,
}

impl Attendance {
    /// Asks all reviewers once. Where a quorum is ready, stragglers are waited for a little only.
    pub(super) async fn of(
        connections: &Connections,
        membership: &Membership,
        base: &Oid,
        branch: &str,
    ) -> Self {
        let (quorum, count) = (membership.quorum().size(), membership.quorum().reviewers());
        let ask =
            |by: Reviewer| async move { (by, connections.ask(NodeId::Reviewer(by), base.as_str()).await) };
        let mut answers: FuturesUnordered<_> = (0..count).map(ask).collect();
        let soon = Instant::now() + ALL_MAX;
        let mut heard = BTreeMap::new();
        loop {
            let is_enough = heard.values().filter(|presence| is_able(presence)).count() >= quorum;
            let next = if is_enough {
                tokio::time::timeout_at(soon, answers.next()).await.ok().flatten()
            } else {
                answers.next().await
            };
            let Some((by, presence)) = next else { break };
            heard.insert(by, presence);
        }
        let seats = membership.roster().reviewers.iter().enumerate();
        let reviewers = seats.map(|(by, seat)| (seat.name.clone(), heard.remove(&by))).collect();
        Self { base: base.clone(), branch: branch.to_owned(), quorum, reviewers }
    }

    /// How many could vote, as far as it is known.
    fn able(&self) -> usize {
        self.presences().filter(|presence| is_able(presence)).count()
    }

    /// Whether so many could vote that a change can be approved.
    #[must_use]
    pub fn has_quorum(&self) -> bool {
        self.able() >= self.quorum
    }

    /// How many are ready, and how many a decision needs.
    #[must_use]
    pub fn summary(&self) -> String {
        let (able, all, quorum) = (self.able(), self.reviewers.len(), self.quorum);
        format!("{able} of {all} reviewers are ready, and a decision needs {quorum}")
    }

    /// Returns a line for each reviewer: its name, and what is known of it.
    #[must_use]
    pub fn lines(&self) -> Vec<(&str, String)> {
        self.reviewers
            .iter()
            .map(|(name, presence)| (name.as_str(), self.in_words(presence.as_ref())))
            .collect()
    }

    /// Returns the same for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let row = |(name, presence): &(String, Option<Presence>)| {
            let (state, said) = match presence {
                Some(Presence::Ready(ready)) => ("ready", serde_json::to_value(ready).unwrap_or_default()),
                Some(Presence::Silent) => ("silent", Value::Null),
                Some(Presence::Away(_)) => ("away", Value::Null),
                None => ("unheard", Value::Null),
            };
            json!({"reviewer": name, "state": state, "says": said, "words": self.in_words(presence.as_ref())})
        };
        let reviewers: Vec<Value> = self.reviewers.iter().map(row).collect();
        json!({
            "base": self.base, "quorum": self.quorum, "able": self.able(), "has_quorum": self.has_quorum(),
            "reviewers": reviewers,
        })
    }

    fn presences(&self) -> impl Iterator<Item = &Presence> {
        self.reviewers.iter().filter_map(|(_, presence)| presence.as_ref())
    }

    /// The names of those whose copy is so.
    fn whose(&self, state: BaseState) -> Vec<&str> {
        let is_so = |presence: &Presence| matches!(presence, Presence::Ready(ready) if ready.base == state);
        let named = self.reviewers.iter().filter(|(_, presence)| presence.as_ref().is_some_and(is_so));
        named.map(|(name, _)| name.as_str()).collect()
    }

    fn in_words(&self, presence: Option<&Presence>) -> String {
        match presence {
            Some(Presence::Ready(ready)) => {
                let base = match ready.base {
                    BaseState::Known => "ready".to_owned(),
                    BaseState::Missing => format!("lacks the base {}", self.short()),
                    BaseState::Behind => format!("has a later {} than {}", self.branch_name(), self.short()),
                };
                let verifies = if ready.verifies { "; runs a command before it approves" } else { "" };
                escape::terminal(&format!("{base}; {}{verifies}", ready.program))
            }
            Some(Presence::Silent) => "is there, and does not say whether it has the base".to_owned(),
            Some(Presence::Away(why)) => escape::terminal(&why.to_string()),
            None => "has not answered yet".to_owned(),
        }
    }

    fn short(&self) -> &str {
        self.base.as_str().get(..SHORT).unwrap_or_default()
    }

    fn branch_name(&self) -> &str {
        self.branch.strip_prefix("refs/heads/").unwrap_or(&self.branch)
    }

    /// Why no quorum can vote, whoever comes back; none, if one could.
    fn obstacle(&self) -> Option<String> {
        let (missing, behind) = (self.whose(BaseState::Missing), self.whose(BaseState::Behind));
        if missing.len() + behind.len() + self.quorum <= self.reviewers.len() {
            return None;
        }
        let mut parts = Vec::new();
        if !missing.is_empty() {
            parts.push(format!(
                "{} of {} reviewers lack the base {} ({}): start them with --fetch REMOTE, or fetch it into their copies",
                missing.len(),
                self.reviewers.len(),
                self.short(),
                missing.join(", ")
            ));
        }
        if !behind.is_empty() {
            parts.push(format!(
                "{} of {} reviewers have a later {} than the base {} ({}): fetch it here, and propose again",
                behind.len(),
                self.reviewers.len(),
                self.branch_name(),
                self.short(),
                behind.join(", ")
            ));
        }
        Some(format!("no quorum could vote, and nothing was proposed: {}", parts.join("; ")))
    }

    /// A line for each who could not vote by now.
    fn not_able(&self) -> Vec<String> {
        let others = self.reviewers.iter().filter(|(_, presence)| !presence.as_ref().is_some_and(is_able));
        others.map(|(name, presence)| format!("{name} {}", self.in_words(presence.as_ref()))).collect()
    }

    fn ready(&self) -> QuorumReady {
        let said = || {
            self.presences().filter_map(|presence| match presence {
                Presence::Ready(ready) => Some(ready),
                Presence::Silent | Presence::Away(_) => None,
            })
        };
        let verifying = said().filter(|ready| ready.verifies).count();
        let review_max = said().map(|ready| Duration::from_secs(ready.review_s)).max();
        QuorumReady { verifies: verifying + self.quorum > self.reviewers.len(), review_max }
    }
}

/// Whether somebody could vote. One that does not say so may be able to.
fn is_able(presence: &Presence) -> bool {
    match presence {
        Presence::Ready(ready) => ready.base == BaseState::Known,
        Presence::Silent => true,
        Presence::Away(_) => false,
    }
}

/// Asks the reviewers of a request once whether they could vote on a change of its base. No one else is heard meanwhile, so
/// that this goes beside a process that proposes.
///
/// # Errors
///
/// [`ApprovalError`] if the keys, the addresses or the repository cannot be used.
pub async fn attendance(request: &ApprovalRequest) -> Result<Attendance, ApprovalError> {
    let DecisionSite { repository, branch, keys, membership, addresses } = DecisionSite::open(request)?;
    let needs_peers = || ApprovalError::Usage("--check needs --peers".to_owned());
    let (key, me, ..) = keys.seat(ORCHESTRATOR, &membership)?;
    let connections = Connections::open(&key, me, &membership, &addresses.ok_or_else(needs_peers)?)?;
    let base = repository.commit_of(&branch)?;
    Ok(Attendance::of(&connections, &membership, &base, &branch).await)
}

/// Waits until a quorum could vote on a change of this base.
///
/// # Errors
///
/// [`ApprovalError::NotReady`] if so many are there and lack the base that none could.
pub(super) async fn quorum_ready(
    connections: &Connections,
    membership: &Membership,
    base: &Oid,
    branch: &str,
    notices: &dyn Notices,
) -> Result<QuorumReady, ApprovalError> {
    let began = Instant::now();
    let mut waiting: Option<Box<dyn Waiting + '_>> = None;
    let mut told = Vec::new();
    loop {
        let attendance = Attendance::of(connections, membership, base, branch).await;
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
