//! Numbers by which states identify people.
//!
//! The input is a folded text. The output is places in it. [`SCHEMES`] says how each number is written. The crate
//! `stdnum` knows the check digits, dates and places in it. A number without either, or one that is written like many
//! others, counts only behind its name. The forms are bounded, so the time is linear in the text, whatever its content.
//!
//! Some of the checks refuse a date of birth in the future, by the clock of the machine.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use stdnum::{Validator, country};

use super::forms::regex;
use super::places::{may_begin, stands_alone};

/// A form, and the checks of the countries that write their numbers in it.
type Scheme = (&'static str, &'static [&'static dyn Validator]);

/// The forms, without the characters that may surround them.
const SCHEMES: [Scheme; 24] = [
    // Letters and digits: Spain, Italy, Mexico, India, the United Kingdom, Taiwan, Hong Kong, Portugal, Ireland, Finland.
    (r"[0-9]{8}-?[A-Z]", &[&country::es::DNI]),
    (r"[XYZ]-?[0-9]{7}-?[A-Z]", &[&country::es::NIE]),
    (r"[A-Z]{6}[0-9]{2}[A-Z][0-9]{2}[A-Z][0-9]{3}[A-Z]", &[&country::it::CODICEFISCALE]),
    (r"[A-Z]{4}[0-9]{6}[HMX][A-Z]{5}[A-Z0-9][0-9]", &[&country::mx::CURP]),
    (r"[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]", &[&country::r#in::PAN]),
    (r"[A-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]", &[&country::gb::NINO]),
    (r"[A-Z][12][0-9]{8}", &[&country::tw::NATID]),
    (r"[A-Z]{1,2}[0-9]{6}\([0-9A]\)", &[&country::hk::HKID]),
    (r"[0-9]{8} ?[0-9] ?[A-Z0-9]{2}[0-9]", &[&country::pt::CC]),
    (r"[0-9]{7}[A-W][A-IW]?", &[&country::ie::PPS]),
    (
        r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]",
        &[&country::fi::HETU, &country::dk::CPR, &country::se::PERSONNUMMER, &country::is::KENNITALA],
    ),
    (r"[0-9]{8}-[0-9]{4}", &[&country::se::PERSONNUMMER]),
    // Digits with separators: the United States, Belgium, Brazil, Argentina, Chile, Switzerland, France, Korea, Czechia
    // and Slovakia, India, Canada, Thailand, Germany.
    (r"[0-9]{3}-[0-9]{2}-[0-9]{4}", &[&country::us::SSN]),
    (r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}", &[&country::be::NN, &country::be::BIS]),
    (r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", &[&country::br::CPF]),
    (r"[0-9]{2}-[0-9]{8}-[0-9]", &[&country::ar::CUIT]),
    (r"[0-9]{1,2}\.?[0-9]{3}\.?[0-9]{3}-[0-9kK]", &[&country::cl::RUT]),
    (r"756\.?[0-9]{4}\.?[0-9]{4}\.?[0-9]{2}", &[&country::ch::SSN]),
    (r"[12] ?[0-9]{2} ?[0-9]{2} ?[0-9][0-9AB] ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}", &[&country::fr::NIR]),
    (r"[0-9]{6}-[0-9]{7}", &[&country::kr::RRN]),
    (r"[0-9]{6}/[0-9]{3,4}", &[&country::cz::RC]),
    (
        r"[2-9][0-9]{3} [0-9]{4} [0-9]{4}|[0-9]-[0-9]{4}-[0-9]{5}-[0-9]{2}-[0-9]|[0-9]{3}-[0-9]{3}-[0-9]{3}",
        &[&country::r#in::AADHAAR, &country::th::IDNR, &country::ca::SIN],
    ),
    (r"[0-9]{2} [0-9]{3} [0-9]{3} [0-9]{3}", &[&country::de::IDNR]),
    // Digits alone, which must have two right check digits, or one and a right date: Poland, Turkey, Norway, Estonia,
    // Lithuania, Greece, Belgium, Brazil, Germany, India, South Africa, Romania, China.
    (
        r"[0-9]{17}[0-9Xx]|[0-9]{11,13}",
        &[
            &country::pl::PESEL,
            &country::tr::TCKIMLIK,
            &country::no::FODSELSNUMMER,
            &country::ee::IK,
            &country::lt::ASMENS,
            &country::gr::AMKA,
            &country::be::NN,
            &country::br::CPF,
            &country::de::IDNR,
            &country::r#in::AADHAAR,
            &country::za::IDNR,
            &country::ro::CNP,
            &country::cn::RIC,
        ],
    ),
];

/// A name of such a number, and the number behind it. The name is enough, even for numbers that no check above knows.
const NAMED: &str = r"(?xi)(?-u:\b) (?:
      bsn | burgerservicenummer | sofinummer | ssn | social\ security(?:\ number|\ no\.?)? | tfn | tax\ file\ number | nif | nif/nipc
    | social\ insurance\ number | nhs(?:\ number|\ no\.?)? | egn | oib | pesel | jmbg | cpf | dni | rut | insz | ahv | svnr
    | steuer-?id(?:nr\.?)? | my\ number | mynumber | 身份证号?码? | 身分證字號 | 住民登録番号 | national\ (?:id|insurance)(?:\ number|\ no\.?)?
    | passport(?:\ number|\ no\.?)? | personnummer | teudat\ zehut
    ) ['\x22]? (?:\ is|\ nr\.?|\ no\.?|\ number)? \ ?[:=\#]?\ ? ['\x22]?
    (?<part> [A-Z]{0,2} [0-9] (?:[\ .-]?[0-9]){5,12} [0-9A-Z]? )(?-u:\b)";

/// Returns the places of the numbers.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    static ANY: LazyLock<Regex> = LazyLock::new(|| {
        let forms: Vec<&str> = SCHEMES.iter().map(|(form, _)| *form).collect();
        // A number does not begin inside a word.
        regex(&format!("(?:^|[^0-9A-Za-z])(?<number>{})", forms.join("|")))
    });
    static NAMES: LazyLock<Regex> = LazyLock::new(|| regex(NAMED));
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(captures) = ANY.captures_at(text, at) {
        let Some(candidate) = captures.name("number") else { break };
        let start = candidate.start();
        at = start + 1;
        let may_be = may_begin(text, start) && !is_among_groups(text, &candidate.range());
        if let Some(place) = may_be.then(|| checked(text, start)).flatten() {
            at = place.end;
            found.push(place);
        }
    }
    let parts = NAMES.captures_iter(text).filter_map(|captures| captures.name("part"));
    found.extend(parts.map(|part| part.range()));
    found
}

/// Returns the place of a number that begins at `start`, if it has a form and passes one of its checks.
fn checked(text: &str, start: usize) -> Option<Range<usize>> {
    static FORMS: LazyLock<Vec<Regex>> =
        LazyLock::new(|| SCHEMES.iter().map(|(form, _)| regex(&format!(r"\A(?:{form})"))).collect());
    SCHEMES.iter().zip(FORMS.iter()).find_map(|((_, checks), form)| {
        let length = form.find(&text[start..])?.end();
        let place = stands_alone(text, start..start + length, false)?;
        // Some checks do not skip points.
        let number = text[place.clone()].replace('.', "");
        let is_one = checks.iter().any(|check| check.validate(&number).is_ok());
        is_one.then_some(place)
    })
}

/// Returns true if more digits are before or behind a number with spaces, which is then part of a row of groups.
fn is_among_groups(text: &str, place: &Range<usize>) -> bool {
    let is_digit =
        |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
    let is_space = |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)) == Some(&b' ');
    let (before, behind) = (place.start.checked_sub(1), Some(place.end));
    text[place.clone()].contains(' ')
        && (is_space(before) && is_digit(place.start.checked_sub(2))
            || is_space(behind) && is_digit(Some(place.end + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|place| &text[place]).collect()
    }

    /// The examples are those that the states and their tax offices print, or were made up with valid check digits.
    #[test]
    fn a_number_with_its_check_digits_is_found_and_one_without_is_not() {
        for (number, wrong) in [
            ("54362315K", "54362315A"),
            ("X-2482300W", "X-2482300A"),
            ("RCCMNL83S18D969H", "RCCMNL83S18D969I"),
            ("BOXW310820HNERXN09", "BOXW310820HNERXN08"),
            ("A123456789", "A123456788"),
            ("A123456(3)", "A123456(4)"),
            ("131052-308T", "131052-308U"),
            ("211062-5629", "211362-5620"),
            ("536-90-4399", "000-90-4399"),
            ("85.07.30-033.28", "85.07.30-033.29"),
            ("390.533.447-05", "390.533.447-06"),
            ("20-05536168-2", "20-05536168-3"),
            ("12.531.909-2", "12.531.909-3"),
            ("756.9217.0769.85", "756.9217.0769.84"),
            ("2 95 10 99 126 111 93", "2 95 10 99 126 111 92"),
            ("710319/2745", "710319/2746"),
            ("2341 2341 2346", "2341 2341 2347"),
            ("36 574 261 809", "36 574 261 808"),
            ("44051401359", "44051401358"),
            ("17291716060", "17291716061"),
            ("7503305044089", "7503305044088"),
            ("360426199101010071", "360426199101010072"),
            ("AAPPV8261K", "AAPXV8261K"),
            ("HH 01 23 45 D", "TO 01 23 45 D"),
            ("00000000 0 ZZ4", "10000000 0 ZZ4"),
            ("6433435F", "6433435A"),
            ("880320-0016", "880320-0018"),
            ("19880320-0016", "19880320-0018"),
            ("450401-3150", "450401-3160"),
            ("85.47.30-033.17", "85.47.30-033.18"),
            ("971013-9019902", "971013-9019903"),
            ("1-2345-45678-78-1", "1-2345-45678-78-2"),
            ("123-456-782", "123-456-783"),
            ("15108695088", "15108695078"),
            ("36805280109", "36805280108"),
            ("33309240064", "33309240164"),
            ("01013099997", "01013099999"),
            ("85073003328", "85073003329"),
            ("39053344705", "39053344706"),
            ("36574261809", "36574261808"),
            ("234123412346", "234123412347"),
            ("1630615123457", "1630615123458"),
        ] {
            let text = format!("It is {number}, and it was {wrong} before.");
            assert_eq!(numbers(&text), [number]);
        }
    }

    #[test]
    fn a_name_in_front_says_what_a_number_is() {
        for (text, number) in [
            ("BSN 123456782", "123456782"),
            ("bsn: 1234.56.782,", "1234.56.782"),
            ("NHS number 943 476 5919.", "943 476 5919"),
            ("My SSN is 536904399", "536904399"),
            ("passport no. AB1234567", "AB1234567"),
        ] {
            assert_eq!(numbers(text), [number]);
        }
        assert_eq!(numbers("the sin 5 of 7, and groups 1111 2341 2341 2346 2222"), Vec::<&str>::new());
    }
}
