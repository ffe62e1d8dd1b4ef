#![forbid(unsafe_code)]
pub mod crypto;
pub mod engine;
pub mod journal;
pub mod protocol;
pub mod provider;
pub mod text;
