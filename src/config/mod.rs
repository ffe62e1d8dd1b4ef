//! The configuration of a run: turns flags, environment, files and rolesets into a complete [`RunSetup`] and its endpoints.
//!
//! Precedence: flag, then environment, then `./consensus.toml`, then `$XDG_CONFIG_HOME/consensus/config.toml`. Rolesets come from
//! `--rolesets-dir`, `./rolesets`, the configuration folder and the binary itself, in that order.
//!
//! Settings of a project's file that could harm its visitor count only with the visitor's trust: see [`Claims`].
//!
//! Every mistake is reported with its file and place, all of a roleset's mistakes at once, and a misspelt name with the nearest
//! right one. No run is started here.
//!
//! [`RunSetup`]: protocol::RunSetup

mod bedrock;
mod bounded_read;
mod catalog;
mod check;
mod chosen;
mod default_roleset;
mod document;
mod embedded;
mod endpoints;
mod error;
mod explain;
mod file;
mod from_run;
mod link_targets;
mod model_names;
mod origin;
mod packs;
mod panel;
mod pilots;
mod prices;
mod resumed;
mod roleset;
mod set;
mod sources;
mod trust;
mod trust_claim;

pub use bounded_read::{PROJECT_FILE, cache_folder, config_folder, state_folder};
pub use catalog::{
    FoundRoleset, RolesetSource, check_roleset, copy_roleset, find_roleset, list_rolesets, load_roleset,
    write_roleset,
};
pub use check::check_meaning;
pub use chosen::Chosen;
pub use default_roleset::{
    ANY_VOTE, BetterVote, DefaultRoleset, QuestionHints, better_vote, default_roleset, vote_roleset,
};
pub use document::Setting;
pub use embedded::{EMBEDDED_ROLESETS, ROLESET_SCHEMA};
pub use endpoints::{ModelRef, expected_price, launch_command, resolve_endpoints};
pub use error::{ConfigError, Problem, nearest};
pub use explain::explain;
pub use file::{BedrockConfig, FileConfig, ProviderConfig};
pub use from_run::roleset_of;
pub use origin::{Origin, Sourced};
pub use packs::Packs;
pub use panel::{Persona, SeatRequest, seat, seat_voters};
pub use pilots::{PAIRS_MIN, PILOT_TASKS_MIN, Pilot, Pilots, RightOf};
pub use prices::{PriceConfig, listed_price, micro_usd, prices_as_of};
pub use resumed::resume_endpoints;
pub use roleset::{CHECK_TIMEOUT_MS, Roleset, RolesetAgent};
pub use set::{PathSetting, differences, set};
pub use trust::{Claims, DEFAULT_RUNS_DIR, TRUST_VARIABLE, TrustStore};
pub use trust_claim::{TrustClaim, TrustState};
