//! A number with its unit, as a voter writes it at the end of its text.
//!
//! The input is a text and the question. The output is its number, or `None` if anything is said with it but a unit: a known one, or one
//! that the question names. A word that is neither may change the number, in any language.
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
        "juta|ribu|milyon|bin|tusen|tuhat|tys|tisíc|ezer|mii|mila|triệu|nghìn|миллион\\w*|مليون|ألف|लाख|करोड़|quadrillions?|gross|bil|trn|tril|",
        "hal(?:f|ves)|(?:third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth|twelfth|hundredth|thousandth)s?|",
        // Other numbers and operations.
        "tau|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|",
        "\\w+teenths?|\\w+tieths?|elevenths?|",
        "squared?|cubed?|doubled?|tripled?|quadrupled?|halved|factorial|",
        "plus|minus|multiplied|divided|over|point|mod|modulo|sqrt|root|less|below|under|negative|debt|owed|loss|short|missing|",
        // Directions and bounds.
        "fewer|colder|cooler|lower|younger|older|shorter|slower|cheaper|decreas\\w*|deficit|overdrawn|down|drop\\w*|behind|before|ago|bce|",
        "most|least|about|around|approximately|approx|roughly|almost|nearly|estimat\\w*|",
        // Others of several, and sentences.
        "and|nor|than|but|not|never|are|was|were|itself|",
        "correct|incorrect|wrong|right|true|false|invalid|impossible|",
        "can|cannot|could|may|might|would|should|fails?|failed|seems?|looks?|does|did|has|have|had|must",
        ")$",
    ))
});

/// The words with at most two letters that may follow a number whatever the question is. Other such letters are quantities, as in `3 x`,
/// or multiples, as in `5bn` and `5 m`.
const SHORT_WORDS: [&str; 9] = ["%", "°", "of", "in", "a", "an", "at", "by", "on"];

/// The short units, each with its word. A unit counts where the question names it: the same number of another unit is another answer.
const SHORT_UNITS: [(&str, &str); 29] = [
    ("°C", "celsius"),
    ("°F", "fahrenheit"),
    ("mm", "millimeter"),
    ("cm", "centimeter"),
    ("km", "kilometer"),
    ("cm²", "centimeter"),
    ("m²", "meter"),
    ("km²", "kilometer"),
    ("cm³", "centimeter"),
    ("m³", "meter"),
    ("mg", "milligram"),
    ("g", "gram"),
    ("kg", "kilogram"),
    ("oz", "ounce"),
    ("lb", "pound"),
    ("lbs", "pound"),
    ("ml", "milliliter"),
    ("cl", "centiliter"),
    ("L", "liter"),
    ("l", "liter"),
    ("h", "hour"),
    ("hr", "hour"),
    ("hrs", "hour"),
    ("min", "minute"),
    ("sec", "second"),
    ("s", "second"),
    ("km/h", "kilometer"),
    ("mph", "mile"),
    ("ft", "feet"),
];

/// The longer words that may follow a number whatever the question is, without the ending of their plural. All others are named by it.
const UNITS: [&str; 19] = [
    "percent",
    "percentage",
    "degree",
    "square",
    "cubic",
    "person",
    "people",
    "unit",
    "item",
    "piece",
    "time",
    "total",
    "all",
    "per",
    "each",
    "them",
    "altogether",
    "left",
    "remaining",
];

/// Returns a word in small letters, without the ending of its plural.
fn singular(word: &str) -> String {
    let word = word.to_lowercase();
    let stem = match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s').unwrap_or(&word).to_owned(),
    };
    // `boxes` and `box`, `glasses` and `glass`.
    let is_hissed = ["xe", "sse", "she", "che"].iter().any(|ending| stem.ends_with(ending));
    if is_hissed {
        stem.trim_end_matches('e').trim_end_matches('s').to_owned()
    } else {
        stem.trim_end_matches('s').to_owned()
    }
}

/// Compiles a pattern of this module or of those that find answers.
///
/// # Panics
///
/// Never panics: the tests of these modules use every pattern.
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|_| unreachable!("the tests use every pattern"))
}

/// A number in running text.
static ANY: LazyLock<Regex> = LazyLock::new(|| pattern(r"[-−]?[0-9](?:[0-9.,]*[0-9])?"));

/// Returns the last number in a text, as it is written.
pub(super) fn last_number(text: &str) -> Option<String> {
    let last = ANY.find_iter(text).last()?;
    // A sign behind a digit is a range or a subtraction.
    let is_sign = !text[..last.start()].ends_with(|c: char| c.is_alphanumeric());
    let written = last.as_str();
    Some(if is_sign { written } else { written.trim_start_matches(['-', '−']) }.replace('−', "-"))
}

/// Returns the number of an answer, if nothing but a unit is said with it. A calculation before it may end in it.
pub(super) fn number(text: &str, prompt: &str, canonicalizer: &Canonicalizer) -> Option<String> {
    let text = text.replace("\\$", "$").replace(r"\(", "").replace(r"\)", "");
    let text = text.trim();
    let result =
        EQUATION.captures(text).and_then(|found| found.get(1)).map_or(text, |result| result.as_str());
    let found = NUMBER.captures(result.trim())?;
    let (sign, digits, unit) = (found.get(1)?.as_str(), found.get(2)?.as_str(), found.get(3)?.as_str());
    let is_changed = if unit.is_empty() {
        // An exclamation mark at a number may be its factorial.
        found.get(0)?.as_str().ends_with('!')
    } else {
        !is_unit(unit, prompt, found.get(2)?.end() == found.get(3)?.start())
    };
    let is_signed_twice = !sign.is_empty() && digits.starts_with(['-', '+', '−']);
    let number = format!("{sign}{digits}");
    let is_number = canonicalizer.canonicalize(&number).is_ok();
    if is_number && !is_changed && !is_signed_twice { Some(number) } else { None }
}

/// Returns true if the words after a number are a unit. `is_attached` says that the first is written at the number.
fn is_unit(words: &str, prompt: &str, is_attached: bool) -> bool {
    words.split_whitespace().enumerate().all(|(place, word)| {
        if SHORT_WORDS.contains(&word) {
            return true;
        }
        if let Some((short, long)) = SHORT_UNITS.iter().find(|(short, _)| *short == word) {
            return is_named(short, prompt) || is_named(long, prompt);
        }
        let is_short = word.chars().count() <= 2 || (place == 0 && is_attached);
        if is_short || !word.starts_with(char::is_alphabetic) || word.contains(['π', '²', '³']) {
            return false;
        }
        word.split('-').all(|part| {
            let part = part.to_lowercase();
            let is_known = part.is_empty() || UNITS.contains(&&*singular(&part)) || is_named(&part, prompt);
            is_known && !CHANGES.is_match(&part)
        })
    })
}

/// Returns true if the question has this unit, or its sign.
fn is_named(unit: &str, prompt: &str) -> bool {
    let unit_word = singular(unit);
    if unit_word == "dollar" && prompt.contains('$') {
        return true;
    }
    prompt.split(|c: char| !c.is_alphabetic() && !"°²³/".contains(c)).any(|word| {
        let named = singular(word);
        word == unit || named == unit_word || (unit == "feet" && named == "foot")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::CanonicalKind;

    fn of_answer(said: &str) -> Option<String> {
        let prompt = "How many bottles, more apples, full-time workers and points (in kg, cm², meters, °C, km/h, seconds, inches, \
                      or miles per hour, at $5 a day and week) does she have?";
        number(said, prompt, &Canonicalizer::new(&CanonicalKind::Number.into()))
    }

    /// Two hours are not 2, where minutes are asked for.
    #[test]
    fn unnamed_unit_is_asked_about() {
        for unit in [" minutes", " g", " cents", "lbs", " years", " °F", " yards", "min"] {
            assert_eq!(of_answer(&format!("48{unit}")), None, "{unit}");
        }
    }

    /// A word that changes the number is asked about.
    #[test]
    fn unit_belongs_to_its_number() {
        for unit in [
            " bottles",
            "%",
            " %",
            "kg",
            " kg",
            "cm²",
            " m²",
            "°C",
            " miles per hour",
            " km/h",
            " dollars a day",
            " seconds",
            " times",
            " more apples",
            " of them",
            " in total",
            " full-time workers",
            " points",
        ] {
            let said = format!("48{unit}");
            assert_eq!(of_answer(&said).as_deref(), Some("48"), "{said}");
        }
        for rest in [
            "π",
            " π",
            " pi",
            "²",
            "³",
            " squared",
            " dozens",
            " millions",
            " Millionen",
            " lakh",
            "bn",
            "m",
            " m",
            "k",
            "x",
            " x",
            "i",
            " quarters",
            " fifths",
            " is incorrect",
            " is wrong",
            " was not",
            " plus two",
            " divided by seven",
            "-dimensional",
            " thousand-fold",
            " πr²",
            " point five",
            "!",
        ] {
            let said = format!("48{rest}");
            assert_eq!(of_answer(&said), None, "{said}");
        }
    }

    /// A word that is no unit of the question may change the number, in any language.
    #[test]
    fn unknown_word_beside_number_is_asked_about() {
        for word in [
            "juta",
            "milyon",
            "tusen",
            "tuhat",
            "tys.",
            "tisíc",
            "ezer",
            "triệu",
            "مليون",
            "quadrillion",
            "gross",
            "trn",
            "miljoner",
            "milionów",
            "万",
            "億",
            "लाख",
            "colder",
            "decrease",
            "points down",
            "dollar deficit",
            "years younger",
            "BCE",
            "at most",
            "at least",
            "approximately",
            "fewer apples",
            "Schock",
        ] {
            let said = format!("48 {word}");
            assert_eq!(of_answer(&said), None, "{said}");
        }
        for word in
            ["apples", "apple", "boxes of bottles", "dollars per week", "cubic inches", "bottles left"]
        {
            let said = format!("48 {word}");
            let expected = if word.starts_with("box") { None } else { Some("48") };
            assert_eq!(of_answer(&said).as_deref(), expected, "{said}");
        }
    }
}
