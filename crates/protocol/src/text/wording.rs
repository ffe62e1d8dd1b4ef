//! Counts, shares and excerpts, as they are written in a sentence.
//!
//! The input is numbers with the nouns of the counted things, and texts. The output is words: `1 round`, `1,200 rounds`, `40 %`. Excerpts
//! of texts that begin alike begin where they differ, so that no two different texts look the same.

use super::escape::{excerpt, one_line};

/// Texts that have fewer characters than this in common are shown from their beginning.
const COMMON_CHARS_MIN: usize = 30;

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

/// Returns an excerpt of each text, in their order. Each is one line.
pub fn excerpts(texts: &[&str]) -> Vec<String> {
    let lines: Vec<String> = texts.iter().map(|text| one_line(text)).collect();
    let first = lines.first().map(String::as_str).unwrap_or_default();
    let common = lines.iter().map(|line| common_bytes(first, line)).min().unwrap_or_default();
    // The word in which they differ is shown whole.
    let common = first[..common].rfind(' ').map_or(0, |space| space + 1);
    let are_same = lines.iter().all(|line| line == first);
    let cut = if are_same || first[..common].chars().count() < COMMON_CHARS_MIN { 0 } else { common };
    let mark = if cut > 0 { "…" } else { "" };
    lines.iter().map(|line| format!("{mark}{}", excerpt(&line[cut..]))).collect()
}

/// Returns how many bytes two texts have in common at their beginning, in whole characters.
fn common_bytes(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    same.map(|(c, _)| c.len_utf8()).sum()
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

    #[test]
    fn different_texts_have_different_excerpts() {
        let long = "The sky is blue because air scatters short waves the most, as Rayleigh found.";
        let (one, other) = (format!("{long} It is éa."), format!("{long} It is éb."));
        assert_eq!(excerpts(&[&one, &other]), ["…éa.", "…éb."]);
        assert_eq!(excerpts(&["It is 4.", "It is 5."]), ["It is 4.", "It is 5."]);
        assert_eq!(excerpts(&[&one, &one])[0], excerpt(&one));
        assert_eq!(excerpts(&[long, &one]), ["…found.", "…found. It is éa."]);
        assert!(excerpts(&[]).is_empty());
    }
}
