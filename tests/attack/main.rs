//! Attacks from outside, drawn from a seed: the program runs as real processes, against servers on loopback that do what they
//! must not, under kills at any moment, and on records that were changed afterwards.
//!
//! ```text
//! replies     a model's reply is bent; what an oracle of the sweep's own forbids never counts
//! tampering   a record is bent; `verify` refuses it, but for the documented exceptions
//! servers     a server fails in each known way; the run ends in time, with a documented code, and verifies
//! kills       a process is killed; the next one comes to the same end, and pays for nothing twice
//! ```
//!
//! An ordinary run of the tests tries a few cases of each. The command for all of them is
//!
//! ```sh
//! CONSENSUS_ATTACKS=full cargo test --release --test attack -- --nocapture
//! ```
//!
//! Each sweep prints one line with its counts and seconds. `CONSENSUS_ATTACKS_SEED` draws other cases.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "a test that cannot go on should say where")]

mod honest;
mod kills;
mod replies;
mod servers;
#[allow(dead_code, unused_imports, reason = "the tests that share it use the rest")]
#[path = "../it/support/mod.rs"]
mod support;
mod sweep;
mod tampering;
