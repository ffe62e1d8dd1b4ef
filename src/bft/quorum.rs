//! How many must agree.

use thiserror::Error;

/// The sizes that follow from the number of reviewers.
///
/// With f = ⌊(n−1)/3⌋ reviewers that may say anything to anybody, two quorums of q = ⌊(n+f)/2⌋+1 share one honest
/// reviewer at least, and the honest ones alone are a quorum. At n = 3f+1 this is 2f+1; elsewhere 2f+1 is too few (at
/// n = 5 two quorums of three share one reviewer, who may be the liar).
///
/// Fewer than four reviewers bear no liar: all of them must agree.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Quorum {
    reviewers: usize,
}

/// There is nobody to ask.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("there is no reviewer; an approval needs one at least, and four to bear one that lies")]
pub struct TooFew;

impl Quorum {
    /// The sizes for so many reviewers.
    ///
    /// # Errors
    ///
    /// [`TooFew`] if there are none.
    pub fn new(reviewers: usize) -> Result<Self, TooFew> {
        if reviewers == 0 { Err(TooFew) } else { Ok(Self { reviewers }) }
    }

    /// n: all reviewers, whether they answer or not.
    #[must_use]
    pub fn reviewers(self) -> usize {
        self.reviewers
    }

    /// f: how many of them may lie, and nothing wrong is decided.
    #[must_use]
    pub fn faults(self) -> usize {
        (self.reviewers - 1) / 3
    }

    /// q: how many must approve.
    #[must_use]
    pub fn size(self) -> usize {
        match self.faults() {
            0 => self.reviewers,
            faults => usize::midpoint(self.reviewers, faults) + 1,
        }
    }

    /// n−q+1: so many who do not approve are enough that no quorum does.
    #[must_use]
    pub fn blocking(self) -> usize {
        self.reviewers - self.size() + 1
    }

    /// The effective f: how many whole domains, of reviewers that fail together, may fail. Those on one model are one domain.
    ///
    /// It is the largest k for which the k largest domains together have f reviewers at most, since those are the ones that may
    /// fail (Malkhi and Reiter, Byzantine quorum systems, 1998, for thresholds). `sizes` says how many reviewers each known
    /// domain has, and `unknown` of how many it is not known on which model they are. The unknown ones count as one domain,
    /// and as part of the largest known one, whose model they may share: less cannot be ruled out.
    #[must_use]
    pub fn faulty_domains(self, sizes: &[usize], unknown: usize) -> usize {
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        match sizes.first_mut() {
            Some(largest) => *largest += unknown,
            None => sizes.push(unknown),
        }
        let failing = sizes.iter().scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        });
        failing.take_while(|sum| *sum <= self.faults()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_those_of_the_table() {
        for (n, f, q, blocking) in [
            (1, 0, 1, 1),
            (3, 0, 3, 1),
            (4, 1, 3, 2),
            (5, 1, 4, 2),
            (6, 1, 4, 3),
            (7, 2, 5, 3),
            (8, 2, 6, 3),
            (9, 2, 6, 4),
            (10, 3, 7, 4),
            (31, 10, 21, 11),
            (100, 33, 67, 34),
        ] {
            let quorum = Quorum::new(n).unwrap();
            assert_eq!((quorum.faults(), quorum.size(), quorum.blocking()), (f, q, blocking), "n = {n}");
        }
        assert_eq!(Quorum::new(0), Err(TooFew));
    }

    #[test]
    fn reviewers_on_one_model_fail_together() {
        let seven = Quorum::new(7).unwrap();
        assert_eq!(seven.faulty_domains(&[1; 7], 0), 2);
        assert_eq!(seven.faulty_domains(&[2, 2, 1, 1, 1], 0), 1, "the largest of them may be the one");
        assert_eq!(seven.faulty_domains(&[7], 0), 0, "all on one model: none may fail");
    }

    #[test]
    fn reviewers_on_unknown_models_may_all_fail_together_and_with_those_of_a_known_one() {
        let seven = Quorum::new(7).unwrap();
        assert_eq!(seven.faulty_domains(&[], 7), 0);
        assert_eq!(seven.faulty_domains(&[1; 6], 1), 1, "the unknown one may share a model");
        assert_eq!(seven.faulty_domains(&[1; 5], 2), 0);
        assert_eq!(Quorum::new(1).unwrap().faulty_domains(&[], 1), 0);
    }

    proptest! {
        #[test]
        fn two_quorums_share_an_honest_reviewer_and_the_honest_ones_are_a_quorum(n in 1_usize..400) {
            let quorum = Quorum::new(n).unwrap();
            let shared = 2 * quorum.size() - n;
            prop_assert!(shared > quorum.faults());
            prop_assert!(n - quorum.faults() >= quorum.size() || quorum.faults() == 0);
            prop_assert!(quorum.size() + quorum.blocking() == n + 1);
        }
    }
}
