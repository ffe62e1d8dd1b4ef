//! What strangers send, given to the code that reads it.
//!
//! In: bytes. Out: whether they were taken for what they should be. A target calls what the program itself calls, and
//! checks more than that nothing panics: what is taken reads the same again, nothing is taken that a rule forbids, and what
//! comes out is bounded. No target remembers anything of an earlier call, and none reaches beyond this machine.

mod changes;
mod proofs;
mod records;
mod replies;
mod streams;
mod texts;

/// Reads bytes, and returns whether they were taken.
pub(crate) type Target = fn(&[u8]) -> bool;

/// Everything that a stranger can send, each under its name.
pub(crate) const TARGETS: [(&str, Target); 17] = [
    ("extract", texts::extract),
    ("envelope", texts::envelope),
    ("redact", texts::redact),
    ("ballot", replies::ballot),
    ("review", replies::review),
    ("verification", replies::verification),
    ("stream", streams::stream),
    ("journal", records::journal),
    ("batch", records::batch),
    ("dsse", proofs::dsse),
    ("decision", proofs::decision),
    ("packet", proofs::packet),
    ("statements", proofs::statements),
    ("diff", changes::diff),
    ("lockfile", changes::lockfile),
    ("sarif", changes::sarif),
    ("lcov", changes::lcov),
];
