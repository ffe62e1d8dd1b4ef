//! The readers of the program, each with the bytes of a stranger.
//!
//! In: bytes. Out: whether they were taken. A target calls the code that the program itself calls, and checks more than
//! that nothing panics. An input that is taken reads the same again, it breaks no rule, and its result is bounded. No target
//! remembers an earlier call, and none reaches beyond this machine.

mod changes;
mod proofs;
mod records;
mod replies;
mod streams;
mod texts;

/// Reads bytes, and returns whether they were taken.
pub(crate) type Target = fn(&[u8]) -> bool;

/// The kinds of input that a stranger can send, each under its name.
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
