//! E-mail addresses, including those that people disguise from programs.
//!
//! The input is a folded text. The output is places in it. The time is linear in the text, whatever its content.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::places::regex;

/// An address with its sign, which pages write as an entity and links write by its number. A host without a dot counts
/// if private networks use it, or if the user is one that every host has: `react@next` is not an address.
const PLAIN: &str = r#"(?x)
    (?: [\w.%+'-]+ | "[^"\n]{1,64}" )
    (?: @ | %40 | &\#0*64; | &\#[xX]0*40; | &commat; )
    (?: (?:localhost|localdomain|intranet|internal|corp|lan|mailhost)(?-u:\b) | [\w-]+(?:\.[\w-]+)*\.(?:xn--[\w-]+|\p{L}{2,}) )
  | (?-u:\b)(?:root|admin|administrator|postmaster|webmaster|mailer-daemon)@[A-Za-z][\w-]*"#;

/// An address whose sign or dots are set apart or are words. A bare `at` needs a `dot` behind it.
const APART: &str = r"(?xi)
    [\w.%+'-]+ (?:
        \ ?@\ ? [\w-]+(?:\ ?\.\ ?[\w-]+)*(?:\.|\ \.\ )[a-z]{2,}(?-u:\b)
      | \ ? [\[\(\{<] \ ?(?:at|@|ät)\ ? [\]\)\}>] \ ? [\w-]+
        (?: (?: \ ? [\[\(\{<] \ ?(?:dot|\.|punkt)\ ? [\]\)\}>] \ ? | \ dot\  | \. ) [\w-]+ ){1,4}
      | \ at\  [\w-]+ (?: (?: \ dot\  | \ ? [\[\(\{<] \ ?dot\ ? [\]\)\}>] \ ? ) [\w-]+ ){0,3} (?: \ dot\  | \ ? [\[\(\{<] \ ?dot\ ? [\]\)\}>] \ ? ) [a-z]{2,}
    )(?-u:\b)";

/// An address that is torn by a gap.
const TORN: &str = r"[\w.%+'-]+@\x1F[\w-]+(?:\.[\w-]+)*\.\p{L}{2,}";

/// Returns the places of the addresses.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    static FORMS: LazyLock<[Regex; 2]> = LazyLock::new(|| [PLAIN, APART].map(regex));
    let [plain, apart] = &*FORMS;
    let mut found = Vec::new();
    if ["@", "%40", "64;", "40;", "&commat;"].iter().any(|sign| text.contains(sign)) {
        found.extend(plain.find_iter(text).map(|place| place.range()));
    }
    found.extend(apart.find_iter(text).map(|place| place.range()));
    found
}

/// Returns the places of the addresses that gaps tear in a [`super::folded::Folded::unbroken`] text.
pub(super) fn find_torn(text: &str) -> Vec<Range<usize>> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| regex(TORN));
    if !text.contains("@\u{1F}") {
        return Vec::new();
    }
    FORM.find_iter(text).map(|place| place.range()).collect()
}
