//! One target under libFuzzer: the environment variable `CONSENSUS_FUZZ_TARGET` names it.
//!
//! In: bytes that libFuzzer makes. Out: nothing but a crash, if there is one. What is checked stands in `targets`, which the
//! test `fuzz` calls as well.

#![no_main]

#[path = "../targets/mod.rs"]
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<targets::Target> = LazyLock::new(|| {
    let name = std::env::var("CONSENSUS_FUZZ_TARGET").expect("CONSENSUS_FUZZ_TARGET names a target");
    let known = targets::TARGETS.iter().find(|(known, _)| *known == name);
    known.unwrap_or_else(|| panic!("there is no target `{name}`")).1
});

fuzz_target!(|bytes: &[u8]| {
    TARGET(bytes);
});
