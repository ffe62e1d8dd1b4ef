//! What a person sees: each story at three widths of a terminal, where no line breaks in the middle of a word.
//!
//! The screens that were looked at are in `tests/fixtures/terminal`, with what differs from run to run masked. To take them anew, and
//! then read what has changed: `CONSENSUS_REWRITE=1 cargo test --test it terminal::`, and `git diff`.

mod screen;
mod stories;
