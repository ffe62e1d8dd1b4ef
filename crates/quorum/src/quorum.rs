//! The number of reviewers that must agree.

/// The sizes that follow from the number of reviewers.
///
/// With f = ⌊(n−1)/3⌋ reviewers that may say anything to anyone, two quorums of q = ⌊(n+f)/2⌋+1 share at least one
/// honest reviewer, and the honest reviewers alone are a quorum. At n = 3f+1 this is 2f+1. For other n, 2f+1 is too
/// few: at n = 5 two quorums of three share one reviewer, who may be the liar.
///
/// Fewer than four reviewers cannot tolerate a liar: all of them must agree.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Quorum {
    reviewers: usize,
}

impl Quorum {
    /// Returns the sizes for this number of reviewers, or `None` for no reviewers.
    pub fn new(reviewers: usize) -> Option<Self> {
        if reviewers == 0 { None } else { Some(Self { reviewers }) }
    }

    /// Returns n, the number of all reviewers, whether they answer or not.
    pub fn reviewers(self) -> usize {
        self.reviewers
    }

    /// Returns f, the number of reviewers that may lie without a wrong decision.
    pub fn faults(self) -> usize {
        (self.reviewers - 1) / 3
    }

    /// Returns q, the number of reviewers that must approve.
    pub fn size(self) -> usize {
        match self.faults() {
            0 => self.reviewers,
            faults => usize::midpoint(self.reviewers, faults) + 1,
        }
    }

    /// Returns n−q+1, the number of reviewers that prevent a quorum if they do not approve.
    pub fn blocking(self) -> usize {
        self.reviewers - self.size() + 1
    }

    /// Returns the effective f: the number of whole domains that may fail. A domain is a group of reviewers that fail
    /// together, such as those on one model.
    ///
    /// It is the largest k for which the k largest domains together have at most f reviewers, since those are the
    /// ones that may fail (Malkhi and Reiter, Byzantine quorum systems, 1998, for thresholds). The
    /// argument `sizes` is the number of reviewers in each known domain, and `unknown` is the number of reviewers whose
    /// model is not known. The unknown ones count as one domain, and as part of the largest known one, whose model they
    /// may share: less cannot be ruled out.
    pub fn faulty_domains(self, sizes: &[usize], unknown: usize) -> usize {
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        match sizes.first_mut() {
            Some(largest) => *largest += unknown,
            None => sizes.push(unknown),
        }
        let (mut domains, mut failing) = (0, 0);
        for size in sizes {
            failing += size;
            if failing > self.faults() {
                break;
            }
            domains += 1;
        }
        domains
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
        assert_eq!(Quorum::new(0), None);
    }

    #[test]
    fn reviewers_on_one_model_fail_together() {
        let seven = Quorum::new(7).unwrap();
        assert_eq!(seven.faulty_domains(&[1; 7], 0), 2);
        assert_eq!(seven.faulty_domains(&[2, 2, 1, 1, 1], 0), 1, "the largest of them may be the one");
        assert_eq!(seven.faulty_domains(&[7], 0), 0, "all on one model: none may fail");
    }

    /// Reviewers on unknown models may also fail together with those on a known model.
    #[test]
    fn unknown_models_may_fail_together() {
        let seven = Quorum::new(7).unwrap();
        assert_eq!(seven.faulty_domains(&[], 7), 0);
        assert_eq!(seven.faulty_domains(&[1; 6], 1), 1, "the unknown one may share a model");
        assert_eq!(seven.faulty_domains(&[1; 5], 2), 0);
        assert_eq!(Quorum::new(1).unwrap().faulty_domains(&[], 1), 0);
    }

    proptest! {
        /// The honest reviewers alone are a quorum.
        #[test]
        fn two_quorums_share_an_honest_reviewer(n in 1_usize..400) {
            let quorum = Quorum::new(n).unwrap();
            let shared = 2 * quorum.size() - n;
            prop_assert!(shared > quorum.faults());
            prop_assert!(n - quorum.faults() >= quorum.size() || quorum.faults() == 0);
            prop_assert!(quorum.size() + quorum.blocking() == n + 1);
        }
    }
}
