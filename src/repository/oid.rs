//! The name of a git object.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a git object: 40 or 64 lower-case hex digits.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(String);

impl Oid {
    /// Reads a name. Returns `None` if the text is not one.
    pub(super) fn read(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if is_hex && matches!(text.len(), 40 | 64) { Some(Self(text.to_owned())) } else { None }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Oid {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::read(&text).ok_or_else(|| "it is not the name of a git object".to_owned())
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_are_read() {
        for (text, is_name) in [
            ("a".repeat(40), true),
            ("0".repeat(64), true),
            ("a".repeat(39), false),
            ("A".repeat(40), false),
            ("main".to_owned(), false),
        ] {
            assert_eq!(Oid::read(&text).is_some(), is_name, "{text}");
        }
    }
}
