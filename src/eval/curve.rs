//! The majority of k blind samples, for every k, from one set of samples.
//!
//! The input is the samples of one item. The output is, for each k, the probability that the majority of k of them is right, if the k
//! are drawn by chance without putting any back. A tie is broken by chance, so each of the leading answers has the same share. The sum
//! over all subsets is exact, so one set of samples gives the whole curve without an error of its own.

use std::collections::BTreeMap;

use crypto::Digest;

/// One sample: its answer, if it has one, and whether it is right.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DrawnSample {
    /// The digest of the answer; `None` for a sample without a valid one.
    pub answer: Option<Digest>,
    /// Whether the answer is right.
    pub is_right: bool,
}

/// Returns the probability that the majority of k samples is right, for k from 1 to the number of samples.
pub(super) fn majorities(samples: &[DrawnSample]) -> Vec<f64> {
    let mut answers: BTreeMap<Digest, (usize, bool)> = BTreeMap::new();
    for DrawnSample { answer, is_right } in samples {
        if let Some(answer) = answer {
            answers.entry(*answer).or_insert((0, *is_right)).0 += 1;
        }
    }
    let answers: Vec<(usize, bool)> = answers.into_values().collect();
    let without = samples.len() - answers.iter().map(|(count, _)| count).sum::<usize>();
    let mut right = vec![0.0; samples.len()];
    for (at, (count, _)) in answers.iter().enumerate().filter(|(_, (_, is_right))| *is_right) {
        let others = answers.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<usize> = others.map(|(_, (count, _))| *count).collect();
        for votes in 1..=*count {
            let ways = subsets(&others, without, votes, samples.len());
            for (others, by_ties) in ways.iter().enumerate().take(samples.len() - votes + 1) {
                let share: f64 =
                    by_ties.iter().zip(1_u32..).map(|(ways, leaders)| ways / f64::from(leaders)).sum();
                right[votes + others - 1] += choose(*count, votes) * share;
            }
        }
    }
    for (sum, k) in right.iter_mut().zip(1..) {
        *sum /= choose(samples.len(), k);
    }
    right
}

/// Returns the number of subsets of the other samples by their size and by the number of answers in them that have exactly `votes` votes,
/// if no answer has more.
fn subsets(others: &[usize], without: usize, votes: usize, size: usize) -> Vec<Vec<f64>> {
    // Any number of samples without an answer.
    let mut ways: Vec<Vec<f64>> = (0..=size).map(|used| vec![choose(without, used)]).collect();
    for &count in others {
        let ties = ways[0].len() + usize::from(count >= votes);
        let mut next = vec![vec![0.0; ties]; size + 1];
        for (used, by_ties) in ways.iter().enumerate() {
            for (tied, number) in by_ties.iter().enumerate().filter(|(_, number)| **number > 0.0) {
                for more in 0..=count.min(votes).min(size - used) {
                    next[used + more][tied + usize::from(more == votes)] += number * choose(count, more);
                }
            }
        }
        ways = next;
    }
    ways
}

/// Returns the number of subsets of `taken` out of `of`. It is exact up to 2^53.
fn choose(of: usize, taken: usize) -> f64 {
    if taken > of {
        return 0.0;
    }
    (0..taken).fold(1.0, |product, at| product * (of - at) as f64 / (at + 1) as f64).round()
}

/// Returns whether the majority of the first `k` samples is right. A tie goes to the answer that came first.
pub(super) fn first_majority(samples: &[DrawnSample], k: usize) -> bool {
    let first = &samples[..k.min(samples.len())];
    let (mut most, mut is_leader_right) = (0, false);
    for DrawnSample { answer, is_right } in first {
        if answer.is_none() {
            continue;
        }
        let count = first.iter().filter(|sample| sample.answer == *answer).count();
        if count > most {
            (most, is_leader_right) = (count, *is_right);
        }
    }
    is_leader_right
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn sample(answer: Option<u8>) -> DrawnSample {
        let digest = |answer: u8| Digest::new(&[answer]);
        DrawnSample { answer: answer.map(digest), is_right: answer == Some(0) }
    }

    /// Returns the share of all subsets of k samples whose majority is right, one by one.
    fn counted(samples: &[DrawnSample], k: u32) -> f64 {
        let (mut all, mut right) = (0.0, 0.0);
        for subset in 0_u32..1 << samples.len() {
            if subset.count_ones() != k {
                continue;
            }
            let mut votes: BTreeMap<Digest, (u32, bool)> = BTreeMap::new();
            for (at, sample) in samples.iter().enumerate() {
                if subset >> at & 1 == 0 {
                    continue;
                }
                if let Some(answer) = sample.answer {
                    votes.entry(answer).or_insert((0, sample.is_right)).0 += 1;
                }
            }
            let most = votes.values().map(|(votes, _)| *votes).max();
            let leaders: Vec<bool> = votes
                .values()
                .filter(|(votes, _)| Some(*votes) == most)
                .map(|(_, is_right)| *is_right)
                .collect();
            all += 1.0;
            if !leaders.is_empty() {
                right += leaders.iter().filter(|is_right| **is_right).count() as f64 / leaders.len() as f64;
            }
        }
        right / all
    }

    proptest! {
        #[test]
        fn the_curve_is_the_mean_over_all_subsets(answers in prop::collection::vec(prop::option::weighted(0.8, 0..4_u8), 1..9)) {
            let samples: Vec<DrawnSample> = answers.into_iter().map(sample).collect();
            for (found, k) in majorities(&samples).into_iter().zip(1..) {
                prop_assert!((found - counted(&samples, k)).abs() < 1e-12, "{k}: {found}");
            }
        }
    }

    /// The order is the one in which the samples were drawn.
    #[test]
    fn first_of_equal_answers_leads() {
        let samples = [Some(1), Some(0), None, Some(0), Some(1), Some(0)].map(sample);
        let found: Vec<bool> = (1..=6).map(|k| first_majority(&samples, k)).collect();
        assert_eq!(found, [false, false, false, true, false, true]);
        assert!((majorities(&samples)[0] - 0.5).abs() < 1e-12);
        assert_eq!(majorities(&[]), Vec::<f64>::new());
    }
}
