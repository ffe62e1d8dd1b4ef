//! SHA-256 as a type, so that a digest can never be confused with other text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;
use thiserror::Error;

/// A SHA-256 digest. It is displayed, read and serialised as 64 lower-case hex digits.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The all-zero value that comes before the first link of a chain.
    pub const ZERO: Self = Self([0; 32]);

    /// Returns the SHA-256 of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Returns the SHA-256 of everything that comes out of `source`.
    pub fn of(mut source: impl std::io::Read) -> std::io::Result<Self> {
        let mut hasher = sha2::Sha256::new();
        let mut bytes = vec![0; 1 << 16];
        loop {
            match source.read(&mut bytes)? {
                0 => return Ok(Self(hasher.finalize().into())),
                count => hasher.update(&bytes[..count]),
            }
        }
    }

    /// Returns the digest's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the digest's first eight bytes as a big-endian number.
    ///
    /// Seeds and draws are derived from it: it is uniform, and the same on every machine.
    pub fn leading_u64(&self) -> u64 {
        let mut head = [0; 8];
        head.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(head)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0_u8; 64];
        for (i, byte) in self.0.iter().enumerate() {
            text[2 * i] = HEX[usize::from(byte >> 4)];
            text[2 * i + 1] = HEX[usize::from(byte & 15)];
        }
        // Every byte written above is an ASCII hex digit.
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[error("a SHA-256 digest is 64 lower-case hex digits")]
pub struct ParseDigestError;

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.as_bytes();
        if bytes.len() != 64 {
            return Err(ParseDigestError);
        }
        let mut out = [0; 32];
        for (slot, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
            *slot = read_hex_digit(pair[0])? << 4 | read_hex_digit(pair[1])?;
        }
        Ok(Self(out))
    }
}

fn read_hex_digit(c: u8) -> Result<u8, ParseDigestError> {
    match c {
        b'0'..=b'9' => Ok(c - b'0'),
        b'a'..=b'f' => Ok(c - b'a' + 10),
        _ => Err(ParseDigestError),
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A running SHA-256 over parts, each framed by its length.
///
/// The frame makes the split between parts count: `("ab", "c")` and `("a", "bc")` differ. A clone continues from the
/// same state, so the digest of a growing sequence is cheap.
#[derive(Clone, Default)]
pub struct Hasher(sha2::Sha256);

impl Hasher {
    /// Adds one part.
    pub fn part(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Returns the digest of the parts added until now.
    pub fn finish(&self) -> Digest {
        Digest(self.0.clone().finalize().into())
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hasher({})", self.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_4_is_the_published_one() {
        let digest = Digest::new(b"4");
        let hex = "4b227777d4dd1fc61c6f884f48641d02b4d121d3fd328cb08b5531fcacdabf8a";
        assert_eq!(digest.to_string(), hex);
        assert_eq!(hex.parse(), Ok(digest));
    }

    #[test]
    fn upper_case_and_short_digests_are_refused() {
        assert_eq!("AB".repeat(32).parse::<Digest>(), Err(ParseDigestError));
        assert_eq!("ab".parse::<Digest>(), Err(ParseDigestError));
    }

    #[test]
    fn framing_separates_parts() {
        let left = Hasher::default().part(b"ab").part(b"c").finish();
        let right = Hasher::default().part(b"a").part(b"bc").finish();
        assert_ne!(left, right);
    }
}
