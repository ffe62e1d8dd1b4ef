//! The promises that users rely on. Each folder is one area, and each file has the name of a promise.
//!
//! - `cli`: the output and exit codes of commands, rolesets, and trust in folders.
//! - `docs`: the commands, links and generated pages of the README and the book.
//! - `protocol`: the rules of agreement, the prompts, and the replies that are never agreed on.
//! - `transcripts`: the protocols line by line, with a folder for each of them.
//! - `run`: the journal of one run, its end by a signal or a kill, its resumption, its documents and its privacy.
//! - `sandbox`: commands behind a wall, and the checks of final texts.
//! - `batch`: many runs, the resumption of all of them, and the proof of their results.
//! - `eval`: the comparison of ways of agreeing, and its report.
//! - `provider`: the requests to servers, their faults, the limits of their load, launched servers and keys.
//! - `approval`: the decisions of a quorum under attack, after crashes, across hosts, and on real repositories.
//! - `terminal`: what a person sees, at three widths of a terminal.
//! - `compatibility`: the records of other builds, and the surface that changes only on purpose.
//! - `attacks`: the list of known attacks, each with the tests that try it.
//!
//! All areas are one binary, which links once; `support` holds the code that they share.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "a test that cannot go on should say where")]

mod support;

mod approval;
mod attacks;
mod batch;
mod cli;
mod compatibility;
mod docs;
mod eval;
mod protocol;
mod provider;
mod run;
mod sandbox;
mod serve;
mod terminal;
mod transcripts;
