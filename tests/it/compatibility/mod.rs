//! A help page, a schema or a prompt changes only on purpose, and the record of another build is refused.

mod frozen_surface;
mod other_build;
