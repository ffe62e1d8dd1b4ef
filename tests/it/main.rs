//! The promises that users rely on, one file each. One binary, so that it links once.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "a test that cannot go on should say where")]

mod support;

mod approval;
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
mod determinism;
mod docs;
mod faults;
mod flow;
mod hostile;
mod journal;
mod kill;
mod launch;
mod map_reduce;
mod metrics;
mod panel;
mod panel_runs;
mod peers;
mod prompts;
mod provider;
mod readme;
mod redaction;
mod repository;
mod rolesets;
mod scenarios;
mod session;
mod tasks;
mod tidy;
