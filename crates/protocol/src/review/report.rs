//! The report of a review, at any moment: the opinions, the findings and the losses.

use serde::Serialize;

use super::confirmation::{ReviewedFinding, claims};
use super::form::Finding;
use super::state::Review;
use crate::contract::{AgentReport, BlindVote, Degraded, DegradedKind, Dissent, Report, Tally};
use crypto::Digest;
use quorum::{Opinion, Quorum, Vote};

/// The part of a report that only `approval` has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApprovalSection {
    /// The number n of all reviewers.
    pub reviewers: usize,
    /// The number f of reviewers that may lie or err without a wrong decision.
    pub faults: usize,
    /// The number q of reviewers that must approve.
    pub quorum: usize,
    /// The number of parts in which the diff was read.
    pub parts: usize,
    /// How many reviewers and how many of their models may be wrong, in words; `None` for a single reviewer. The caller fills it in,
    /// because it knows the models.
    pub tolerance: Option<String>,
    /// The reviews of the reviewers that have read all parts, in the order of the roleset.
    pub reviews: Vec<ReviewerReport>,
    /// All findings, with who has confirmed each: those that are confirmed, those that no one else has judged, and the others, each time the
    /// most severe first. `None` if findings are not confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<ReviewedFinding>>,
}

impl ApprovalSection {
    /// Returns all findings; in their order of reviewers where they are not confirmed.
    pub fn all_findings(&self) -> Vec<ReviewedFinding> {
        if let Some(findings) = &self.findings {
            return findings.clone();
        }
        let mut all = Vec::new();
        for ReviewerReport { reviewer, findings, .. } in &self.reviews {
            for finding in findings {
                let (reviewer, finding) = (reviewer.clone(), finding.clone());
                all.push(ReviewedFinding { reviewer, finding, judged_by: 0, confirmed_by: Vec::new() });
            }
        }
        all
    }
}

/// The review of one reviewer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReviewerReport {
    /// The name of the reviewer.
    pub reviewer: String,
    /// The opinion on the whole change.
    pub opinion: Opinion,
    /// The findings, whatever the opinion on the whole is.
    pub findings: Vec<Finding>,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, line, quote, problem, severity } = self;
        write!(f, "{path}:{line}: {severity}: {problem} ({})", quote.trim())
    }
}

impl Review {
    /// Makes the report; see [`crate::Protocol::report`].
    pub(super) fn make_report(&self) -> Report<ApprovalSection> {
        let reviewers = 0..self.setup.agents.len();
        let read = self.forms.iter().map(|forms| forms.keys().next_back().map_or(0, |part| part + 1));
        Report {
            rounds: u32::try_from(read.max().unwrap_or(0)).unwrap_or(u32::MAX),
            blind_vote: self.blind_vote(),
            agents: reviewers.clone().map(|at| self.agent(at)).collect(),
            dissent: reviewers.filter_map(|at| self.dissent(at)).collect(),
            degraded: self.degraded(),
            section: self.section(),
        }
    }

    fn section(&self) -> ApprovalSection {
        let quorum = self.quorum();
        let reviews = self.setup.agents.iter().enumerate().filter_map(|(at, agent)| {
            let opinion = self.opinion(at)?;
            let findings = self.findings(at).cloned().collect();
            Some(ReviewerReport { reviewer: agent.name.clone(), opinion, findings })
        });
        ApprovalSection {
            reviewers: self.setup.agents.len(),
            faults: quorum.map_or(0, Quorum::faults),
            quorum: quorum.map_or(0, Quorum::size),
            parts: self.parts.len(),
            tolerance: None,
            reviews: reviews.collect(),
            findings: if self.is_confirmed_by_others() { Some(self.reviewed_findings()) } else { None },
        }
    }

    /// Returns true if reviewers judge the findings of others. A single one has none to judge.
    fn is_confirmed_by_others(&self) -> bool {
        self.setup.params.confirm && self.setup.agents.len() > 1
    }

    /// Returns the findings of all reviewers, with who has confirmed each.
    fn reviewed_findings(&self) -> Vec<ReviewedFinding> {
        let names: Vec<&str> = self.setup.agents.iter().map(|agent| agent.name.as_str()).collect();
        let mut all = Vec::new();
        for (author, forms) in self.forms.iter().enumerate() {
            for (part, form) in forms {
                let findings = form.iter().flat_map(|form| &form.findings);
                for (place, finding) in findings.enumerate() {
                    let mut found = ReviewedFinding {
                        reviewer: names[author].to_owned(),
                        finding: finding.clone(),
                        judged_by: 0,
                        confirmed_by: Vec::new(),
                    };
                    for (other, name) in names.iter().enumerate() {
                        let Some(is_confirmed) = self.judgement(other, *part, author, place) else {
                            continue;
                        };
                        found.judged_by += 1;
                        if is_confirmed {
                            found.confirmed_by.push((*name).to_owned());
                        }
                    }
                    all.push(found);
                }
            }
        }
        // The sort is stable.
        all.sort_by_key(|one| {
            (one.is_doubted(), one.judged_by == 0, std::cmp::Reverse(one.finding.severity))
        });
        all
    }

    /// Returns whether a reviewer confirms this finding of another one, if it has judged it.
    fn judgement(&self, reviewer: usize, part: usize, author: usize, place: usize) -> Option<bool> {
        let answers = self.confirmations[reviewer].get(&part)?.as_ref()?;
        let claims = claims(&self.forms, reviewer, part);
        let at = claims.iter().position(|claim| (claim.author, claim.place) == (author, place))?;
        answers.get(at).copied()
    }

    /// Returns the vote before any reviewer knew of another. In a review there is no other vote.
    fn blind_vote(&self) -> BlindVote {
        let votes = (0..self.setup.agents.len()).map(|at| self.opinion(at).map(|opinion| word(&opinion)));
        let votes: Vec<Option<&str>> = votes.collect();
        let mut tally = Vec::new();
        for text in ["approve", "reject", "abstain"] {
            let count = votes.iter().filter(|vote| **vote == Some(text)).count();
            if count > 0 {
                let votes = u32::try_from(count).unwrap_or(u32::MAX);
                tally.push(Tally { text: text.to_owned(), sha256: Digest::new(text.as_bytes()), votes });
            }
        }
        tally.sort_by_key(|entry: &Tally| std::cmp::Reverse(entry.votes));
        let winner = match tally.as_slice() {
            [first, rest @ ..] if rest.first().is_none_or(|second| first.votes > second.votes) => Some(first),
            [..] => None,
        };
        let (text, sha256) = (winner.map(|t| t.text.clone()), winner.map(|t| t.sha256));
        let missing = votes.iter().filter(|vote| vote.is_none()).count();
        BlindVote { text, sha256, tally, missing: u32::try_from(missing).unwrap_or(u32::MAX) }
    }

    fn agent(&self, at: usize) -> AgentReport {
        let text = self.opinion(at).map(|opinion| word(&opinion).to_owned());
        let failed = self.forms[at].values().filter(|form| form.is_none()).count();
        AgentReport {
            name: self.setup.agents[at].name.clone(),
            status: None,
            sha256: text.as_ref().map(|text| Digest::new(text.as_bytes())),
            text,
            changes: 0,
            repairs: self.repairs[at],
            failed_turns: u32::try_from(failed).unwrap_or(u32::MAX),
        }
    }

    /// Returns the dissent of a reviewer that does not approve, with its reason.
    fn dissent(&self, at: usize) -> Option<Dissent> {
        let opinion = self.opinion(at)?;
        let (Opinion::Reject { reason, .. } | Opinion::Abstain { reason }) = &opinion else { return None };
        let text = word(&opinion);
        Some(Dissent {
            agent: self.setup.agents[at].name.clone(),
            stage: "review",
            text: text.to_owned(),
            sha256: Digest::new(text.as_bytes()),
            why: reason.clone(),
        })
    }

    fn degraded(&self) -> Vec<Degraded> {
        let mut found = Vec::new();
        for (agent, forms) in self.setup.agents.iter().zip(&self.forms) {
            let lost = forms.iter().filter(|(_, form)| form.is_none());
            let parts: Vec<String> = lost.map(|(part, _)| (part + 1).to_string()).collect();
            if !parts.is_empty() {
                let (name, parts) = (&agent.name, parts.join(", "));
                let detail = format!("{name} wrote no valid review of part {parts}, and abstains");
                found.push(Degraded { kind: DegradedKind::NoReview, detail });
            }
        }
        for (agent, confirmations) in self.setup.agents.iter().zip(&self.confirmations) {
            if confirmations.values().any(Option::is_none) {
                let detail = format!(
                    "{} judged findings of others in no valid form, and confirms none of them",
                    agent.name
                );
                found.push(Degraded { kind: DegradedKind::NoReview, detail });
            }
        }
        found
    }
}

/// Returns the word for an opinion's vote.
fn word(opinion: &Opinion) -> &'static str {
    match opinion.vote() {
        Vote::Approve => "approve",
        Vote::Reject => "reject",
        Vote::Abstain | Vote::Follow => "abstain",
    }
}
