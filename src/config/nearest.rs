//! The suggestion of the right name for a misspelt one.

/// Returns the candidate that `word` most likely means, if one is close enough: it begins with the word, or differs in at most a
/// third of its letters.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let far = |candidate: &str| {
        let begins = length >= 3 && candidate.starts_with(word);
        if begins { 1 } else { strsim::damerau_levenshtein(word, candidate) }
    };
    let near = candidates.into_iter().map(|c| (far(c), c)).filter(|(d, _)| *d <= (length / 3).max(1));
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Returns `; did you mean …?` for the nearest candidate, or an empty string.
pub(super) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(word, candidates);
    // A word that is a valid name elsewhere is not misspelt.
    near.filter(|name| *name != word).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typo_finds_word_and_nonsense_none() {
        let names = ["writer_physicist", "solver_checker", "planner_coder"];
        assert_eq!(nearest("writer_phisicist", names), Some("writer_physicist"));
        assert_eq!(nearest("solver_cheker", names), Some("solver_checker"));
        assert_eq!(nearest("planner", names), Some("planner_coder"));
        assert_eq!(nearest("xyz", names), None);
        assert_eq!(nearest("llama3.1", ["openai", "ollama"]), None);
    }
}
