//! A server gets requests that it understands, and no more of them than it can do; each of its faults ends in the documented
//! way, and no key reaches a file or a screen.

pub(crate) mod bedrock;
mod conformance;
mod dialects;
mod endings;
mod keys_are_never_shown;
mod launched_server;
mod load_limit;
mod openai;
mod parameters;
mod server_faults;
mod who_answered;
