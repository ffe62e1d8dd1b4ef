//! The words that tell the kind of a word, in English and German.
//!
//! The input is a word in small letters, without points. The lists are short on purpose: a word that is not in them is a plain word, and
//! another language has only plain words, names and figures. The long lists are sorted, and are searched by halves.

/// Words that are in almost every English text.
const ENGLISH: [&str; 110] = [
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because",
    "been", "before", "being", "both", "but", "by", "can", "could", "did", "do", "does", "each", "for",
    "from", "had", "has", "have", "he", "her", "here", "his", "how", "however", "i", "if", "in", "into",
    "is", "it", "its", "just", "may", "me", "might", "more", "most", "much", "must", "my", "of", "on", "one",
    "only", "or", "other", "our", "out", "over", "own", "shall", "she", "should", "since", "so", "some",
    "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "through", "thus", "to", "too", "under", "up", "us", "very", "was", "we", "were", "what", "when",
    "where", "whereas", "which", "while", "who", "whom", "whose", "why", "will", "with", "within", "would",
    "yes", "yet", "you", "your",
];

/// Words that are in almost every German text. Those that mean something in English are left out, but for `die`.
const GERMAN: [&str; 78] = [
    "aber", "als", "auch", "auf", "aus", "bei", "beim", "bis", "da", "damit", "dann", "das", "dass", "dem",
    "den", "denn", "der", "des", "die", "dies", "diese", "dieser", "dieses", "doch", "du", "durch", "ein",
    "eine", "einem", "einen", "einer", "eines", "er", "es", "für", "habe", "haben", "hier", "ich", "ihr",
    "ihre", "im", "ist", "ja", "kann", "können", "mit", "nach", "noch", "nur", "oder", "schon", "sehr",
    "sein", "seine", "sich", "sie", "sind", "sondern", "um", "und", "uns", "unter", "vom", "von", "vor",
    "waren", "wenn", "werden", "wie", "wir", "wird", "wurde", "wurden", "zu", "zum", "zur", "über",
];

/// Words that turn a statement around.
const NEGATIONS: [&str; 25] = [
    "cannot", "kein", "keine", "keinem", "keinen", "keiner", "keines", "lack", "lacking", "lacks", "neither",
    "never", "nicht", "nichts", "nie", "niemals", "no", "nobody", "none", "nor", "not", "nothing", "ohne",
    "weder", "without",
];

/// Words that have a point behind them within a sentence.
const ABBREVIATIONS: [&str; 15] =
    ["approx", "bzw", "ca", "dr", "eg", "fig", "ie", "mr", "mrs", "ms", "nr", "prof", "st", "vs", "zb"];

/// The months in German.
const GERMAN_MONTHS: [&str; 12] = [
    "januar",
    "februar",
    "märz",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "dezember",
];

/// The English numbers from zero. Their places are their values.
const NUMBERS: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];

/// The English tens from twenty.
const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// Words behind a number that multiply it, each with its zeros.
const SCALES: [(&str, u32); 11] = [
    ("hundred", 2),
    ("thousand", 3),
    ("tausend", 3),
    ("million", 6),
    ("millions", 6),
    ("millionen", 6),
    ("billion", 9),
    ("milliarde", 9),
    ("milliarden", 9),
    ("billionen", 12),
    ("trillion", 12),
];

/// The answer to a question that can be answered by yes or no.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::text) enum Polarity {
    Yes,
    No,
}

/// Returns true for a word that is in almost every text, also if it is shortened, as in `they're`.
pub(super) fn is_common(form: &str) -> bool {
    let word = form.split('\'').next().unwrap_or(form);
    is_in(&ENGLISH, word) || is_in(&GERMAN, word)
}

/// Returns 1 for a common German word, -1 for a common English one, and 0 for any other.
pub(super) fn germanness(form: &str) -> i64 {
    i64::from(is_in(&GERMAN, form)) - i64::from(is_in(&ENGLISH, form))
}

/// Returns true for a word that turns a statement around.
pub(in crate::text) fn is_negation(form: &str) -> bool {
    form.ends_with("n't") || is_in(&NEGATIONS, form)
}

/// Returns the answer that a word is, if it is one.
pub(super) fn polarity(form: &str) -> Option<Polarity> {
    match form {
        "yes" | "ja" => Some(Polarity::Yes),
        "no" | "nein" => Some(Polarity::No),
        _ => None,
    }
}

/// Returns true for a common word that begins another clause.
pub(super) fn is_conjunction(form: &str) -> bool {
    ["aber", "and", "because", "but", "sondern", "und", "weil"].contains(&form)
}

/// Returns true for a word that has a point behind it within a sentence.
pub(super) fn is_abbreviation(form: &str) -> bool {
    is_in(&ABBREVIATIONS, form)
}

/// Returns true for a month in German, where a point follows the number of the day.
pub(super) fn is_german_month(form: &str) -> bool {
    GERMAN_MONTHS.contains(&form)
}

/// Returns the value of an English number in one word. "One" is a pronoun more often than a number, and has none.
pub(super) fn number_in_words(form: &str) -> Option<u64> {
    if form == "one" {
        return None;
    }
    let small = NUMBERS.iter().zip(0..).find(|(word, _)| **word == form);
    let tens = TENS.iter().zip(2..).find(|(word, _)| **word == form);
    small.map(|(_, value)| value).or(tens.map(|(_, value)| 10 * value))
}

/// Returns the zeros that a word adds to the number before it.
pub(super) fn scale(form: &str) -> Option<u32> {
    SCALES.iter().find(|(word, _)| *word == form).map(|(_, zeros)| *zeros)
}

/// Returns true for the words for `%`.
pub(super) fn is_percent(form: &str) -> bool {
    form == "percent" || form == "prozent"
}

/// Returns true for the letters behind the digits of an ordinal number or a decade.
pub(super) fn is_ordinal_ending(unit: &str) -> bool {
    ["st", "nd", "rd", "th", "s"].contains(&unit)
}

fn is_in(list: &[&str], word: &str) -> bool {
    list.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for list in [&ENGLISH[..], &GERMAN, &NEGATIONS, &ABBREVIATIONS] {
            assert!(list.is_sorted(), "{list:?}");
        }
    }

    #[test]
    fn numbers_in_words_have_values() {
        let values = ["zero", "two", "nineteen", "twenty", "ninety"].map(number_in_words);
        assert_eq!(values, [0, 2, 19, 20, 90].map(Some));
        assert_eq!(["one", "hundred", ""].map(number_in_words), [None; 3]);
    }
}
