//! The statistics of the evaluators: their agreement among themselves, and their preferences beside the content.
//!
//! The figures are for people, and come from complete ballots. No verdict rests on them.

/// One evaluation, as far as these figures need it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Judgement {
    /// The index of the evaluator.
    pub evaluator: usize,
    /// The index of the answer's author.
    pub target: usize,
    /// The place at which the answer was shown, from 0.
    pub place: usize,
    /// The total of the scores.
    pub total: u32,
}

/// Returns Kendall's τ-b of pairs of totals: 1 if both put all in the same order, −1 if in opposite orders. The result is `None` for fewer
/// than two pairs, or if one of the two makes no difference at all.
///
/// τ-b counts ties (M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945).
pub fn kendall_tau_b(pairs: &[(u32, u32)]) -> Option<f64> {
    let (mut balance, mut first, mut second) = (0_i64, 0_i64, 0_i64);
    for (index, (a, b)) in pairs.iter().enumerate() {
        for (c, d) in &pairs[index + 1..] {
            let (x, y) = (i64::from(*a) - i64::from(*c), i64::from(*b) - i64::from(*d));
            balance += x.signum() * y.signum();
            first += x.signum().abs();
            second += y.signum().abs();
        }
    }
    if first == 0 || second == 0 {
        return None;
    }
    // There are at most 120 pairs of pairs, which is exact in a float.
    #[expect(clippy::cast_precision_loss, reason = "small whole numbers")]
    let tau = balance as f64 / ((first as f64) * (second as f64)).sqrt();
    Some(tau)
}

/// Returns the mean of τ-b over all pairs of evaluators that judged two answers in common; `None` if no pair did.
pub(super) fn concord(judged: &[Judgement]) -> Option<f64> {
    let mut evaluators: Vec<usize> = judged.iter().map(|j| j.evaluator).collect();
    evaluators.sort_unstable();
    evaluators.dedup();
    let mut found = Vec::new();
    for (index, &a) in evaluators.iter().enumerate() {
        for &b in &evaluators[index + 1..] {
            let mut common = Vec::new();
            for own in judged.iter().filter(|j| j.evaluator == a) {
                let other = judged.iter().find(|j| j.evaluator == b && j.target == own.target);
                common.extend(other.map(|other| (own.total, other.total)));
            }
            found.extend(kendall_tau_b(&common));
        }
    }
    mean(&found)
}

/// Returns the points by which the answer that was shown first scored above the mean of its ballot, on average. The result is about 0 if
/// the place makes no difference, and `None` if no ballot had two answers.
pub(super) fn place_preference(judged: &[Judgement]) -> Option<f64> {
    let mut found = Vec::new();
    for first in judged.iter().filter(|j| j.place == 0) {
        let ballot = judged.iter().filter(|j| j.evaluator == first.evaluator);
        let totals: Vec<f64> = ballot.map(|j| f64::from(j.total)).collect();
        if totals.len() > 1 {
            found.push(f64::from(first.total) - mean(&totals).unwrap_or_default());
        }
    }
    mean(&found)
}

/// Returns the points by which an answer scored higher from members of its author's own kind than from the others, on average. The result
/// is `None` if no answer was judged by both. `kinds` has one word for each member.
pub fn preference(judged: &[Judgement], kinds: &[String]) -> Option<f64> {
    let mut targets: Vec<usize> = judged.iter().map(|j| j.target).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut found = Vec::new();
    for target in targets {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for judgement in judged.iter().filter(|j| j.target == target) {
            let kind = kinds.get(judgement.evaluator);
            let is_own = kind.is_some() && kind == kinds.get(judgement.target);
            let totals = if is_own { &mut own } else { &mut others };
            totals.push(f64::from(judgement.total));
        }
        if let (Some(own), Some(others)) = (mean(&own), mean(&others)) {
            found.push(own - others);
        }
    }
    mean(&found)
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred at most")]
fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(evaluator: usize, target: usize, place: usize, total: u32) -> Judgement {
        Judgement { evaluator, target, place, total }
    }

    fn close(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|found| (found - wanted).abs() < 1e-12)
    }

    #[test]
    fn rank_correlation_counts_ties() {
        assert!(close(kendall_tau_b(&[(1, 10), (2, 20), (3, 30)]), 1.0));
        assert!(close(kendall_tau_b(&[(1, 30), (2, 20), (3, 10)]), -1.0));
        // Two of three comparisons agree, and one is a tie in the first order.
        assert!(close(kendall_tau_b(&[(1, 1), (1, 2), (2, 3)]), 2.0 / 6.0_f64.sqrt()));
        assert_eq!(kendall_tau_b(&[(5, 1), (5, 2)]), None);
        assert_eq!(kendall_tau_b(&[(5, 1)]), None);
    }

    /// The answer that is shown first is compared with its own ballot.
    #[test]
    fn place_preference_compares_within_ballot() {
        let all = [judged(0, 1, 0, 30), judged(0, 2, 1, 20), judged(1, 2, 0, 40), judged(1, 0, 1, 40)];
        assert!(close(place_preference(&all), 2.5));
        assert_eq!(place_preference(&[judged(0, 1, 0, 30)]), None);
    }

    /// Judges of the author's own kind are compared with the other judges of the same answer.
    #[test]
    fn preference_compares_judges_of_same_answer() {
        let kinds = ["x", "x", "y"].map(str::to_owned);
        let all = [judged(1, 0, 0, 36), judged(2, 0, 0, 30), judged(0, 1, 0, 30), judged(2, 1, 0, 28)];
        assert!(close(preference(&all, &kinds), 4.0));
        assert_eq!(preference(&all, &["x", "y", "z"].map(str::to_owned)), None);
    }

    #[test]
    fn evaluators_agree_on_what_they_both_judged() {
        let all = [
            judged(0, 2, 0, 30),
            judged(0, 3, 1, 20),
            judged(1, 2, 0, 12),
            judged(1, 3, 1, 8),
            judged(2, 0, 0, 9),
        ];
        assert!(close(concord(&all), 1.0));
        assert_eq!(concord(&all[..3]), None);
    }
}
