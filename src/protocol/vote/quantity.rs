//! A number with its unit, as a voter writes it at the end of its text.
//!
//! The input is a text. The output is its number, or `None` if anything is said with it that changes the number or says something of it.
//! Nothing here decides whether the number is the answer.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::Canonicalizer;

/// A number alone, with its sign, its currency and a unit of a few words. The sign may be on either side of the currency.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^([-+−]?)\s*[$€£¥]?\s*([-+−]?[0-9](?:[0-9.,]*[0-9])?)\s*((?:%|[\p{L}°/²³-]+\s*){0,3})[.!]?$")
});

/// A calculation or a name before the equals sign of a result.
static EQUATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:[0-9\s.,+*×·/÷()$%−-]+|[\p{L}_]{1,20}\s*)=\s*([^=]+)$"));

/// A word of three letters or more that is no part of a unit, in small letters: it changes the number before it, makes it one of several,
/// or says something of it.
static CHANGES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        "^(?:",
        // Multiples and shares.
        "(?:hundred|thousand|million|billion|trillion|dozen|score|lakh|lac|crore|myriad)s?|",
        "mio|mrd|mln|mlrd|mld|milioni|milh(?:ão|ões)|bilh(?:ão|ões)|миллион\\w*|миллиард\\w*|тысяч\\w*|dutzend|douzaines?|docenas?|pairs?|couples?|",
        "millionen|mill[oó]n(?:es)?|milliards?|milliarden?|miljoen|mille|mil|tausend|duizend|hundert|honderd|thou|grand|",
        "hal(?:f|ves)|(?:third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth|twelfth|hundredth|thousandth)s?|",
        // Other numbers and operations.
        "tau|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|",
        "\\w+teenths?|\\w+tieths?|elevenths?|",
        "squared?|cubed?|doubled?|tripled?|quadrupled?|halved|factorial|",
        "plus|minus|multiplied|divided|over|point|mod|modulo|sqrt|root|less|below|under|negative|debt|owed|loss|short|missing|",
        // Others of several, and sentences.
        "and|nor|than|but|not|never|are|was|were|itself|",
        "correct|incorrect|wrong|right|true|false|invalid|impossible|",
        "can|cannot|could|may|might|would|should|fails?|failed|seems?|looks?|does|did|has|have|had|must",
        ")$",
    ))
});

/// The words that may follow a number with at most two letters, and the units that may be written at it. Other such letters are quantities,
/// as in `3 x`, or multiples, as in `5bn` and `5 m`.
const SHORT_UNITS: [&str; 40] = [
    "%", "°", "°C", "°F", "mm", "cm", "km", "m²", "m³", "cm²", "cm³", "km²", "mg", "g", "kg", "oz", "lb",
    "lbs", "ml", "cl", "L", "l", "h", "hr", "hrs", "min", "sec", "s", "ms", "km/h", "mph", "ft", "kWh", "of",
    "in", "a", "an", "at", "by", "on",
];

/// Compiles a pattern of this module or of those that find answers.
///
/// # Panics
///
/// Never panics: the tests of these modules use every pattern.
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|_| unreachable!("the tests use every pattern"))
}

/// Returns the number of an answer, if nothing but a unit is said with it. A calculation before it may end in it.
pub(super) fn number(text: &str, canonicalizer: &Canonicalizer) -> Option<String> {
    let text = text.replace("\\$", "$").replace(r"\(", "").replace(r"\)", "");
    let text = text.trim();
    let result =
        EQUATION.captures(text).and_then(|found| found.get(1)).map_or(text, |result| result.as_str());
    let found = NUMBER.captures(result.trim())?;
    let part = |at: usize| found.get(at).map_or("", |part| part.as_str());
    let (sign, digits, unit) = (part(1), part(2), part(3));
    let is_changed = if unit.is_empty() {
        // An exclamation mark at a number may be its factorial.
        found.get(0)?.as_str().ends_with('!')
    } else {
        !is_unit(unit, found.get(2)?.end() == found.get(3)?.start())
    };
    let is_signed_twice = !sign.is_empty() && digits.starts_with(['-', '+', '−']);
    let number = format!("{sign}{digits}");
    let is_number = canonicalizer.canonicalize(&number).is_ok();
    (is_number && !is_changed && !is_signed_twice).then_some(number)
}

/// Returns true if the words after a number are a unit, or if no word follows. `is_attached` says that the first is written at the number.
fn is_unit(words: &str, is_attached: bool) -> bool {
    words.split_whitespace().enumerate().all(|(place, word)| {
        let is_short = word.chars().count() <= 2 || (place == 0 && is_attached);
        let is_word = word.starts_with(char::is_alphabetic) && !word.contains(['π', '²', '³']);
        let says_more = word.split('-').any(|part| CHANGES.is_match(&part.to_lowercase()));
        SHORT_UNITS.contains(&word) || (is_word && !is_short && !says_more)
    })
}
