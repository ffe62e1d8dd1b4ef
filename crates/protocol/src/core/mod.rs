//! The vocabulary below everything else: plain data that the journal, the providers and the protocols share.
//!
//! The input and the output are values. Nothing here decides, calls or reads anything.

mod basis_points;
mod command_end;
mod endpoint;
mod exit_code;
mod interpreter_note;
mod listing;
mod parameter;
mod usage;

pub use basis_points::BasisPoints;
pub(crate) use basis_points::{TEN_THOUSANDTHS, exactly};
pub use command_end::CommandEnd;
pub use endpoint::{
    BEDROCK, BankEndpoint, BedrockEndpoint, Dialect, Endpoint, MOCK, MockEndpoint, OpenAiEndpoint, PRESETS,
    Preset, Timeouts,
};
pub use exit_code::ExitCode;
pub use exit_code::is_unusable;
pub use interpreter_note::InterpreterNote;
pub use listing::{Listing, bare_model};
pub use parameter::OptionalParameter;
pub use usage::{Price, Receipt, Structured, Usage};
