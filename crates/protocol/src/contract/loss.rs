//! The loss of members: how many must remain for a run to continue once servers have failed for good.
//!
//! The input is the members that a run asks, and those whose servers have failed. The output is whether enough remain. Nothing here knows
//! why a server failed, and no member that was lost comes back.

use std::collections::BTreeSet;

/// Returns true if enough of the members that are asked remain: `min_members` of them, or else two thirds, rounded up.
pub(crate) fn are_enough_left(asked: &[usize], lost: &BTreeSet<usize>, min_members: Option<u32>) -> bool {
    let left = asked.iter().filter(|member| !lost.contains(member)).count();
    let two_thirds = (2 * asked.len()).div_ceil(3);
    left >= min_members.map_or(two_thirds, |min| min as usize)
}

/// Returns why no run can keep so many members, if it asks fewer.
pub(crate) fn min_members_fault(asked: usize, min_members: Option<u32>) -> Option<&'static str> {
    if min_members.is_none_or(|min| min as usize <= asked) {
        return None;
    }
    Some(
        "`min_members` is more than the number of members that the run asks; lower it, or let more members \
         take part",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// Without a number of their own, at most a third of the members may be lost.
    #[test]
    fn two_thirds_must_remain_by_default() {
        for (members, may_be_lost) in [(1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (6, 2), (9, 3), (16, 5)] {
            let asked: Vec<usize> = (0..members).collect();
            let lost = |count: usize| (0..count).collect::<BTreeSet<usize>>();
            assert!(are_enough_left(&asked, &lost(may_be_lost), None), "{members}");
            assert!(!are_enough_left(&asked, &lost(may_be_lost + 1), None), "{members}");
        }
    }

    proptest! {
        /// Agents that are not asked count neither among those who remain nor among the lost.
        #[test]
        fn silent_agents_do_not_count(
            asked in prop::collection::btree_set(0..16_usize, 1..16), lost in prop::collection::btree_set(0..16_usize, 0..16), min in 1..16_u32
        ) {
            let asked: Vec<usize> = asked.into_iter().collect();
            let among: BTreeSet<usize> = lost.iter().copied().filter(|member| asked.contains(member)).collect();
            let is_enough = asked.len() - among.len() >= min as usize;
            prop_assert_eq!(are_enough_left(&asked, &lost, Some(min)), is_enough);
            prop_assert_eq!(min_members_fault(asked.len(), Some(min)).is_some(), !are_enough_left(&asked, &BTreeSet::new(), Some(min)));
        }
    }
}
