//! The subcommands, one file each. A subcommand takes the parsed arguments, calls the part that does the work, and prints the result.

pub(super) mod approve;
pub(super) mod batch;
pub(super) mod calibrate;
pub(super) mod chat;
pub(super) mod children;
pub(super) mod docs;
pub(super) mod doctor;
pub(super) mod eval;
pub(super) mod export;
pub(super) mod generate;
pub(super) mod keys;
pub(super) mod persona;
pub(super) mod pilot;
pub(super) mod plan;
pub(super) mod replay;
pub(super) mod results;
pub(super) mod resume;
pub(super) mod review;
pub(super) mod roleset;
pub(super) mod run;
pub(super) mod runs;
pub(super) mod sessions;
pub(super) mod show;
pub(super) mod trust;
pub(super) mod verify;
