//! What a quorum bears, in words.

use crate::protocol::approval::Quorum;

/// How many must approve, how many may be wrong, and how many of their models: reviewers on one model err together,
/// whatever their keys are. `models` has one for each reviewer.
pub(super) fn in_words(quorum: Quorum, models: &[String]) -> String {
    let mut domains: Vec<(&str, usize)> = Vec::new();
    for model in models {
        match domains.iter_mut().find(|(known, _)| known == model) {
            Some((_, count)) => *count += 1,
            None => domains.push((model, 1)),
        }
    }
    let sizes: Vec<usize> = domains.iter().map(|(_, count)| *count).collect();
    let (n, f, q, blocking) = (quorum.reviewers(), quorum.faults(), quorum.size(), quorum.blocking());
    let on = match (sizes.len(), quorum.faulty_domains(&sizes)) {
        (1, _) => "all are on one model, which may not".to_owned(),
        (count, faulty) => format!("they are on {count} models, of which {faulty} may"),
    };
    format!(
        "{q} of {n} must approve, {blocking} who do not are enough to stop it; {f} may be wrong, but {on}"
    )
}
