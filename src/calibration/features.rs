//! The features of an answer, which are known without the right answer and without asking a model about itself.
//!
//! The input is the end of a run and its report. The output is a few numbers about its blind drafts, and the class of its end.

use std::collections::BTreeSet;

use protocol::{Method, Outcome, Report, Section};

/// The features of an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Features {
    /// The class of a vote, by its letter, or the way of an agreement.
    pub class: String,
    /// The number of blind drafts that are the answer.
    pub support: u32,
    /// The number of all blind drafts.
    pub drafts: u32,
    /// The number of different answers among them.
    pub clusters: u32,
    /// The number of methods, in words and by programs, that have found the answer.
    pub methods: u32,
    /// Whether a program has found the answer.
    pub has_program: bool,
}

impl Features {
    /// Returns the features of the answer of a run that has ended. Returns `None` without an answer, and for a run that reads documents in
    /// pieces, whose drafts are of another kind.
    pub fn new(outcome: &Outcome, report: &Report<Section>) -> Option<Self> {
        let Outcome::Agreed { how, sha256: answer, .. } = outcome else { return None };
        let mut methods = BTreeSet::new();
        let class = match &report.section {
            Section::MapReduce(_) => return None,
            Section::Vote(vote) => {
                let found =
                    vote.samples.iter().filter(|sample| sample.counts && sample.sha256 == Some(*answer));
                methods.extend(found.map(|sample| sample.method));
                vote.class.map_or("none", |class| class.letter())
            }
            Section::Pair(_) | Section::Council(_) | Section::Panel(_) | Section::Approval(_) => how.name(),
        };
        let blind = &report.blind_vote;
        let (mut support, mut drafts) = (0_u32, 0_u32);
        for one in &blind.tally {
            drafts = drafts.saturating_add(one.votes);
            if one.sha256 == *answer {
                support = support.saturating_add(one.votes);
            }
        }
        Some(Self {
            class: class.to_owned(),
            support,
            drafts: drafts.saturating_add(blind.missing),
            clusters: u32::try_from(blind.tally.len()).unwrap_or(u32::MAX),
            methods: u32::try_from(methods.len()).unwrap_or(u32::MAX),
            has_program: methods.contains(&Method::Program),
        })
    }
}
