//! Counts with their nouns.
//!
//! In: a number and what is counted. Out: both, as they stand in a sentence: `1 round`, `2 rounds`.

use std::fmt::Display;

/// Returns a count with its noun, which takes an `s` where it is not one.
pub(crate) fn counted<N: Copy + Display + From<u8> + PartialEq>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_has_a_singular() {
        assert_eq!(
            [counted(0_u8, "round"), counted(1_u64, "round"), counted(2_usize, "call")],
            ["0 rounds", "1 round", "2 calls"]
        );
    }
}
