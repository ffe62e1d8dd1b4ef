//! The callers of a server, as its runs know them.
//!
//! The input is tokens and the folder of the runs. The output is callers. Journals are handed on as proof, so they do not name a caller by
//! the digest of a token, by which a token of few characters could be guessed. They name it by a digest with a key, which stays in the
//! folder.

use std::io::{Error, ErrorKind, Write as _};
use std::path::Path;

use crate::files::{Replacement, SMALL_BYTES_MAX, check_own, read_text};
use crate::serve::error::ServeError;
use crypto::Digest;

/// The label of a run with the mark of its caller, if it has one.
pub(in crate::serve) const CALLER_LABEL: &str = "caller";

/// The name of the file with the key of a folder.
const KEY_FILE: &str = "caller.key";

/// The length of a block of SHA-256, in bytes.
const BLOCK: usize = 64;

/// The caller of a request: the mark of its token, or zeros where no token is wanted. Keys of different callers are different keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::serve) struct Caller(pub(in crate::serve) Digest);

impl Caller {
    /// The caller where no token is wanted.
    pub(in crate::serve) const ANYONE: Self = Self(Digest::ZERO);

    /// Returns the caller that this label names. A run without the label is anyone's, and one with another text in it has no caller.
    pub(in crate::serve) fn of_label(label: Option<impl AsRef<str>>) -> Option<Self> {
        label.map_or(Some(Self::ANYONE), |label| label.as_ref().parse().ok().map(Self))
    }
}

/// The key by which the records of a folder mark callers. It has no form for people, since it is secret.
pub(super) struct CallerKey(Digest);

impl CallerKey {
    /// Reads the key of a folder, or makes it. The folder is this process's alone.
    pub(super) fn open(folder: &Path) -> Result<Self, ServeError> {
        let path = folder.join(KEY_FILE);
        let wrong = ServeError::folder(&path);
        check_own(&path).map_err(&wrong)?;
        if path.exists() {
            let text = read_text(&path, SMALL_BYTES_MAX).map_err(&wrong)?;
            let why = "it holds no key; put it back, or remove it, and then no caller sees its earlier runs";
            let key = text.trim().parse().map_err(|_| wrong(Error::new(ErrorKind::InvalidData, why)))?;
            return Ok(Self(key));
        }
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|why| wrong(why.into()))?;
        let key = Digest::new(&seed);
        let mut file = Replacement::of(&path).map_err(&wrong)?;
        file.write_all(format!("{key}\n").as_bytes()).map_err(&wrong)?;
        file.commit().map_err(&wrong)?;
        Ok(Self(key))
    }

    /// Returns the caller who sends the token with this digest.
    pub(super) fn caller(&self, token_sha256: Digest) -> Caller {
        Caller(hmac(self.0.as_bytes(), token_sha256.as_bytes()))
    }
}

/// Returns the HMAC-SHA-256 of a message (RFC 2104), for a key of at most a block.
fn hmac(key: &[u8], message: &[u8]) -> Digest {
    let inner = Digest::new(&[&pad_key(key, 0x36)[..], message].concat());
    Digest::new(&[&pad_key(key, 0x5c)[..], &inner.as_bytes()[..]].concat())
}

/// Returns a block of this byte, combined with a key.
fn pad_key(key: &[u8], pad: u8) -> [u8; BLOCK] {
    let mut block = [pad; BLOCK];
    for (byte, of_key) in block.iter_mut().zip(key) {
        *byte ^= of_key;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Scratch;

    /// The second case of RFC 4231.
    #[test]
    fn hmac_is_that_of_its_standard() {
        let mac = hmac(b"Jefe", b"what do ya want for nothing?").to_string();
        assert_eq!(mac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn folder_keeps_its_own_key() {
        let scratch = Scratch::new(&std::env::temp_dir(), "caller").unwrap();
        let other = Scratch::new(&std::env::temp_dir(), "caller").unwrap();
        let token = Digest::new(b"a-token-of-sixteen");
        let caller_in = |folder: &Scratch| CallerKey::open(folder.path()).map(|key| key.caller(token));
        let first = caller_in(&scratch).unwrap();
        assert_eq!(caller_in(&scratch).unwrap(), first);
        assert_ne!(caller_in(&other).unwrap(), first);
        std::fs::write(scratch.path().join(KEY_FILE), "no key").unwrap();
        assert!(caller_in(&scratch).unwrap_err().to_string().contains("it holds no key"));
    }
}
