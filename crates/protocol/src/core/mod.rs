//! The vocabulary below everything else: plain data that the journal, the providers and the protocols share.
//!
//! The input and the output are values. Nothing here decides, calls or reads anything.

mod basis_points;
mod endpoint;
mod execution;
mod exit_code;
mod listing;
mod parameter;
mod usage;

pub use basis_points::BasisPoints;
pub(crate) use basis_points::{TEN_THOUSANDTHS, exactly};
pub use endpoint::{
    BEDROCK, BedrockEndpoint, Dialect, Endpoint, MOCK, OpenAiEndpoint, PRESETS, Preset, Timeouts,
};
pub use execution::{CommandEnd, InterpreterNote};
pub use exit_code::{ExitCode, is_unusable};
pub use listing::{Listing, bare_model};
pub use parameter::OptionalParameter;
pub use usage::{Price, Receipt, Structured, Usage};
