//! A quorum of reviewers decides on a change although some of them lie or die, and the change lands once, as the tree that was
//! decided on.

#[cfg(target_os = "linux")]
mod across_hosts;
mod crash_and_catch_up;
mod decided_tree_lands;
mod quorum_under_attack;
mod reviewed_alone;
mod reviewed_and_landed;
