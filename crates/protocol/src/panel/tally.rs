//! The tally: totals, means, the winner, and whether the missing ballots could still change it.
//!
//! The numbers are whole and are compared by cross-multiplication, never as floats: 30 of 40 is three quarters, and reaches a threshold of
//! 0.75. Ties are broken by the answers' words and not by their authors, so that renaming or reordering the members changes no winner. The
//! higher mean wins, then more ballots, then the smaller digest. An answer that too few members have judged comes after all others.

use std::cmp::Ordering;

use super::ballot::TOTAL_MAX;
use crate::core::BasisPoints;
use crypto::Digest;

/// The lowest total of one evaluation.
const TOTAL_MIN: u32 = 4;

/// One answer and its score up to now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AnswerTally {
    /// The index of its author.
    pub member: usize,
    /// The digest of its canonical form.
    pub sha256: Digest,
    /// The sum of the totals of all its evaluations.
    pub sum: u32,
    /// The number of its evaluations.
    pub ballots: u32,
    /// The number of ballots on it that have not come in.
    pub open: u32,
    /// The number of members that were to judge it.
    pub judges: u32,
}

impl AnswerTally {
    /// Returns the mean total, 4 to 40; `None` before the first evaluation.
    pub fn mean(&self) -> Option<f64> {
        if self.ballots == 0 { None } else { Some(f64::from(self.sum) / f64::from(self.ballots)) }
    }

    /// Returns the mean as a share of the highest total, 0.1 to 1.
    pub fn normalized(&self) -> Option<f64> {
        self.mean().map(|mean| mean / f64::from(TOTAL_MAX))
    }

    /// Returns whether the normalised score is the threshold or more.
    pub fn reaches(&self, threshold: BasisPoints) -> bool {
        self.ballots > 0
            && u64::from(self.sum) * 10_000
                >= u64::from(threshold.ten_thousandths()) * u64::from(TOTAL_MAX) * u64::from(self.ballots)
    }

    /// Compares two means. An answer that no member judged is below every other.
    fn compare(&self, other: &Self) -> Ordering {
        match (self.ballots, other.ballots) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Less,
            (_, 0) => Ordering::Greater,
            (own, theirs) => {
                (u64::from(self.sum) * u64::from(theirs)).cmp(&(u64::from(other.sum) * u64::from(own)))
            }
        }
    }

    /// Returns the worst score that the open ballots can lead to, each of which may also be void.
    fn worst(&self) -> Self {
        // No mean is below the lowest total, so further ballots with that total never help.
        if self.ballots == 0 { *self } else { self.with_open_ballots(TOTAL_MIN) }
    }

    /// Returns the best score that the open ballots can lead to.
    fn best(&self) -> Self {
        self.with_open_ballots(TOTAL_MAX)
    }

    fn with_open_ballots(&self, total: u32) -> Self {
        Self { sum: self.sum + total * self.open, ballots: self.ballots + self.open, ..*self }
    }

    /// Returns whether at least half of the members that were to judge it have done so.
    fn has_quorum(&self) -> bool {
        self.ballots > 0 && 2 * self.ballots >= self.judges
    }
}

/// Orders two answers, the better one first.
pub(super) fn rank(a: &AnswerTally, b: &AnswerTally) -> Ordering {
    let by_quorum = b.has_quorum().cmp(&a.has_quorum());
    by_quorum
        .then(b.compare(a))
        .then(b.ballots.cmp(&a.ballots))
        .then(a.sha256.cmp(&b.sha256))
        .then(a.member.cmp(&b.member))
}

/// Returns the best of the answers that at least half of their evaluators have judged. A single ballot that happens to come through says
/// more about its author than about an answer.
pub(super) fn winner(answers: &[AnswerTally]) -> Option<&AnswerTally> {
    answers.iter().filter(|answer| answer.has_quorum()).min_by(|a, b| rank(a, b))
}

/// Returns whether the open ballots can change nothing: neither which text wins nor whether it reaches the threshold.
///
/// Where another iteration may follow, the feedback of the open ballots still counts unless the threshold is reached. So only a reached
/// threshold, or the last iteration, makes them superfluous, and no reply's arrival changes what is asked next.
pub(super) fn is_decided(answers: &[AnswerTally], threshold: BasisPoints, is_last: bool) -> bool {
    let Some(first) = winner(answers) else { return false };
    let worst = first.worst();
    let mut others = answers.iter().filter(|other| other.sha256 != first.sha256);
    let wins = others.all(|other| worst.compare(&other.best()) == Ordering::Greater);
    if !wins {
        return false;
    }
    worst.reaches(threshold) || is_last && answers.iter().all(|answer| !answer.best().reaches(threshold))
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn digest(text: &str) -> Digest {
        Digest::new(text.as_bytes())
    }

    fn tallied(member: usize, sum: u32, ballots: u32, open: u32) -> AnswerTally {
        // Members 0 and 2 give the same answer.
        let sha256 = digest(&(member % 2).to_string());
        AnswerTally { member, sha256, sum, ballots, open, judges: ballots + open }
    }

    #[test]
    fn three_quarters_reach_a_threshold_of_three_quarters() {
        let threshold = BasisPoints::of_ten_thousand(7_500);
        assert!(tallied(0, 30, 1, 0).reaches(threshold));
        assert!(tallied(0, 90, 3, 0).reaches(threshold));
        assert!(!tallied(0, 89, 3, 0).reaches(threshold));
        assert!(!tallied(0, 0, 0, 0).reaches(BasisPoints::ZERO));
    }

    #[test]
    fn ties_break_by_ballots_then_digest() {
        assert_eq!(winner(&[tallied(0, 30, 1, 0), tallied(1, 60, 2, 0)]).unwrap().member, 1);
        let (a, b) = (tallied(0, 60, 2, 0), tallied(1, 60, 2, 0));
        let first = usize::from(a.sha256 >= b.sha256);
        assert_eq!(winner(&[a, b]).unwrap().member, first);
        assert_eq!(winner(&[b, a]).unwrap().member, first);
        assert_eq!(winner(&[tallied(0, 0, 0, 3)]), None);
        // One ballot of three is not a verdict, however high its score.
        assert_eq!(winner(&[tallied(0, 40, 1, 2)]), None);
        assert_eq!(winner(&[tallied(0, 40, 1, 2), tallied(1, 20, 2, 1)]).unwrap().member, 1);
    }

    proptest! {
        #[test]
        fn winner_ignores_answer_order(
            sums in prop::collection::vec((0..4_u32, 4..=40_u32), 2..8), turn in 0..8_usize
        ) {
            let answers: Vec<AnswerTally> = sums
                .iter()
                .enumerate()
                .map(|(member, (ballots, total))| tallied(member, total * ballots, *ballots, 0))
                .collect();
            let mut turned = answers.clone();
            turned.rotate_left(turn % answers.len());
            prop_assert_eq!(winner(&answers), winner(&turned));
        }

        /// No ballot that comes in later changes the decision.
        #[test]
        fn early_decision_is_final(
            answers in prop::collection::vec((prop::collection::vec(4..=40_u32, 0..4), prop::collection::vec(prop::option::of(4..=40_u32), 0..4)), 2..5),
            threshold in 0..=10_000_u16, is_last: bool,
        ) {
            let threshold = BasisPoints::of_ten_thousand(threshold);
            let count = |ballots: usize| u32::try_from(ballots).unwrap();
            let before: Vec<AnswerTally> = answers.iter().enumerate().map(|(member, (known, open))| {
                tallied(member, known.iter().sum(), count(known.len()), count(open.len()))
            }).collect();
            // A void ballot comes to nothing.
            let after: Vec<AnswerTally> = before.iter().zip(&answers).map(|(answer, (_, open))| {
                let sum = answer.sum + open.iter().flatten().sum::<u32>();
                let ballots = answer.ballots + count(open.iter().flatten().count());
                AnswerTally { sum, ballots, open: 0, ..*answer }
            }).collect();
            if is_decided(&before, threshold, is_last) {
                let (first, last) = (winner(&before).unwrap(), winner(&after).unwrap());
                prop_assert_eq!(first.sha256, last.sha256);
                prop_assert_eq!(first.reaches(threshold), last.reaches(threshold));
                prop_assert!(is_last || first.reaches(threshold));
            }
        }
    }
}
