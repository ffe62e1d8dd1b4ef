//! The subcommands, one file each: they take what was typed, call what does the work, and print what comes of it.

pub(super) mod approve;
pub(super) mod batch;
pub(super) mod chat;
pub(super) mod children;
pub(super) mod docs;
pub(super) mod doctor;
pub(super) mod export;
pub(super) mod generate;
pub(super) mod keys;
pub(super) mod persona;
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
