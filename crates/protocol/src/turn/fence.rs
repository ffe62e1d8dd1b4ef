//! The marks around text from untrusted authors.

use crate::contract::CallId;
use crypto::Hasher;

/// Returns the mark around quoted text: eight letters that no author could know beforehand.
///
/// The mark has letters, not digits: hex digits near a text have been seen to leak into answers.
pub(crate) fn mark(seed: u64, call: CallId) -> String {
    let digest =
        Hasher::default().part(b"mark").part(&seed.to_be_bytes()).part(call.to_string().as_bytes()).finish();
    let mut bits = digest.leading_u64();
    let mut letters = String::from("data-");
    for _ in 0..8 {
        // There are 26 letters, and the remainder is below 26, so it fits.
        letters.push(char::from(b'a' + u8::try_from(bits % 26).unwrap_or(0)));
        bits /= 26;
    }
    letters
}
