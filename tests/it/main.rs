//! The promises that users rely on, one file each. One binary, so that it links once.

mod support;

mod cli;
mod determinism;
mod faults;
mod hostile;
mod journal;
mod kill;
mod provider;
mod rolesets;
mod scenarios;
mod tidy;
