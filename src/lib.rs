#![forbid(unsafe_code)]
pub mod cli;
pub mod config;
pub mod crypto;
pub mod engine;
pub mod journal;
pub mod protocol;
pub mod provider;
pub mod report;
pub mod text;
