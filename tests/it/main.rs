//! The promises that users rely on, one file each. One binary, so that it links once.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "a test that cannot go on should say where")]

mod support;

mod approve;
mod attacks;
mod batch;
mod batch_again;
mod batch_input;
mod batch_verify;
mod bedrock;
mod cli;
mod confidence;
mod conformance;
mod default_roleset;
mod determinism;
mod docs;
mod earlier;
mod faults;
mod flow;
mod frozen;
mod hostile;
mod interrupt;
mod journal;
mod kill;
mod launch;
mod linear;
mod map_reduce;
mod metrics;
mod nonsense;
mod numbers;
mod panel;
mod panel_runs;
mod peers;
mod prompts;
mod provider;
mod quorum_under_attack;
mod readme;
mod redaction;
mod repository;
mod rolesets;
mod scenarios;
mod secrets;
mod session;
mod tasks;
mod trust;
mod trust_rolesets;
mod usage;
