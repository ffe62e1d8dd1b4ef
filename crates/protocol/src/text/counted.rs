//! Counts and shares, as they are written in a sentence.
//!
//! The input is a number, and the noun for the counted things. The output is both: `1 round`, `1,200 rounds`. A share
//! is written in per cent.

/// Returns a count with its noun, which takes an `s` unless the count is one.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

/// Returns a count with a comma between its thousands.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// Returns a share in per cent, with as many digits as it needs, up to two.
pub fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_uses_singular_and_groups_thousands() {
        assert_eq!([counted(0_u8, "round"), counted(1_u64, "round")], ["0 rounds", "1 round"]);
        assert_eq!([counted(1200_usize, "call"), grouped(1_234_567)], ["1,200 calls", "1,234,567"]);
    }

    #[test]
    fn share_shows_only_needed_digits() {
        let shares = [0.05, 0.1003, 1.0, 0.0, 0.98765].map(percent);
        assert_eq!(shares, ["5 %", "10.03 %", "100 %", "0 %", "98.77 %"]);
    }
}
