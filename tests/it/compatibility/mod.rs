//! A record of an earlier version stays readable, and a help page, a schema or a prompt changes only on purpose.

mod earlier_versions;
mod frozen_surface;
