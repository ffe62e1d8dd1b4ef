//! The findings in Ethos's private thoughts: how many there are, and whether all demands are kept.
//!
//! The input is the thoughts. The output is a limit on the form that is written after them. A small model that had found every claim kept
//! went on to write eight checks, half of them failing, and a veto. Only plain statements bind. Thoughts bind nothing if they end with
//! anything but a one-word verdict, or if an earlier finding contradicts that verdict, since a binding takes away the right to object.

/// The result of a verification, read from its thoughts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Findings {
    /// The number of claims and demands in the thoughts; zero if they are not listed.
    pub(super) count: usize,
    /// Whether the thoughts end with the verdict that all are kept, and contain no fault.
    pub(super) all_kept: bool,
}

impl Findings {
    /// Reads thoughts in the form of the examples. Returns `None` if their last line is not a verdict.
    pub(super) fn read(thoughts: &str) -> Option<Self> {
        let last = thoughts.lines().rfind(|line| !line.trim().is_empty())?;
        let ends_kept = is_kept(after(last, "verdict")?.trim_matches([' ', '*', '_', '.', '`']))?;
        let lines = thoughts.lines();
        let count =
            lines.filter(|line| after(line, "demand").is_some() || after(line, "claim").is_some()).count();
        let doubts = unquoted(thoughts).to_lowercase();
        let mut words = doubts.split(|c: char| !c.is_alphabetic());
        let finds_fault = words.any(|word| matches!(word, "broken" | "breaks" | "fails" | "not"));
        // Thoughts without a fault may say "not" about something that a rule forbids. That alone is not a fault, but it binds nothing.
        Some(Self { count, all_kept: ends_kept && !finds_fault })
    }
}

/// Returns whether a verdict's word means that something is kept; `None` if it is not such a word.
fn is_kept(word: &str) -> Option<bool> {
    match word.to_lowercase().as_str() {
        "kept" | "holds" => Some(true),
        "broken" | "fails" => Some(false),
        _ => None,
    }
}

/// Returns the rest of a line that begins with this word and a colon. Case, numbering and decoration are ignored.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || "*_#>-.) ".contains(c));
    let (head, rest) = line.split_at_checked(word.len())?;
    let rest =
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || "*_ ".contains(c)).strip_prefix(':')?;
    head.eq_ignore_ascii_case(word).then_some(rest)
}

/// Returns a text without its quotations, which are words of the task and of the answer.
fn unquoted(text: &str) -> String {
    text.lines().flat_map(|line| line.split('"').step_by(2)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_thoughts_that_end_plainly_bind() {
        let read = |text: &str| Findings::read(text).map(|found| (found.count, found.all_kept));
        let listed =
            "Demand: \"no nuts\". It has none: kept.\n2. Claim 2: \"is not red\". It is blue: kept.\n";
        assert_eq!(read(&format!("{listed}**Verdict:** kept.\n")), Some((2, true)));
        assert_eq!(
            read("Demand: \"a\". x: kept.\nClaim: \"b\". y: broken.\nVerdict: broken"),
            Some((2, false))
        );
        for contradicted in [
            "Demand: \"a\". 95 is more: broken, since 80 is the most.\nVerdict: kept",
            "1. Demand: \"a\": broken.\nVerdict: kept",
            "Demand: \"a\". It is not kept.\nVerdict: kept",
            "Demand: \"a\". This breaks it.\nVerdict: broken\n\nThe answer, for the record:\nVerdict: kept",
        ] {
            assert_eq!(read(contradicted).map(|(_, all_kept)| all_kept), Some(false), "{contradicted}");
        }
        for none in [
            "",
            "It is kept.",
            "Verdict:",
            "Verdict: unclear",
            "The verdict: kept",
            "Verdict: kept\nWait, 95 is more than 80.",
            "Verdict: kept or broken? It is broken.",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
