//! Excerpts of texts that are shown beside each other.
//!
//! The input is texts. The output is as many excerpts, each of one line. Where the texts begin alike for longer than an excerpt can
//! show, each excerpt begins where they differ, so that no two different texts look the same.

use super::escape::{excerpt, one_line};

/// Texts that have fewer characters than this in common are shown from their beginning.
const COMMON_CHARS_MIN: usize = 30;

/// Returns an excerpt of each text, in their order.
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
