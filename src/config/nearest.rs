//! Suggesting what a misspelt name was meant to be.

/// Returns the candidate that `word` most likely meant, if one is close enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = |candidate: &&str| strsim::jaro_winkler(word, candidate) > 0.8;
    let score = |candidate: &&str| strsim::damerau_levenshtein(word, candidate);
    candidates.into_iter().filter(close).min_by_key(score)
}

/// Returns `; did you mean …?` for the nearest candidate, or nothing.
pub(super) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word_and_nonsense_finds_none() {
        let names = ["writer_physicist", "solver_checker", "planner_coder"];
        assert_eq!(nearest("writer_phisicist", names), Some("writer_physicist"));
        assert_eq!(nearest("solver_cheker", names), Some("solver_checker"));
        assert_eq!(nearest("xyz", names), None);
    }
}
