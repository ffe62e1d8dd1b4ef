//! `consensus`: several language-model agents work under a strict protocol until they agree, and a
//! journal proves afterwards that they did.
//!
//! # Bird's-eye view
//!
//! ```text
//!  task + roleset ──► protocol (pure) ──actions──► engine ──asks──► provider ──HTTP──► model server
//!                         ▲                          │                                     │
//!                         └────────events────────────┴──► journal (fsync) ◄────replies─────┘
//!                                                             │
//!                             resume · replay · verify · result · transcript (all read the journal)
//! ```
//!
//! A protocol is a state machine that takes one event and returns the actions that follow. The engine makes each
//! event durable before its consequences leave the process, performs the actions, and knows nothing about agreement.
//! Everything that a person or a program reads about a run is derived from its journal, by the same code that ran it.
//!
//! # Code map
//!
//! Four crates under `crates/` need neither the network nor a file, and no module of the program:
//!
//! - [`crypto`]: digests, signatures and canonical JSON.
//! - [`statistics`]: intervals, tests, and the number of items that would decide a question.
//! - [`quorum`]: the core of a decision by quorum among reviewers who sign, some of whom may lie or fail.
//! - [`protocol`]: the ways of agreeing as state machines. Its `core` has the data that all parts share, and its `text`
//!   the texts that models write. Its documentation has a map of its own.
//!
//! The modules in reading order:
//!
//! - [`files`]: reading within a limit, writing whole, private folders.
//! - [`page`]: what pages for people to look at have in common.
//! - [`process`]: child processes that end with this one.
//! - [`program`]: the name and the build of this program.
//! - [`calibration`]: the confidence in an answer, from runs whose right answers are known.
//! - [`journal`]: the append-only, hash-chained record of one run.
//! - [`provider`]: calls to models at OpenAI-compatible servers and Amazon Bedrock, or played by scripts.
//!   The submodule [`provider::launch`] starts a server for a run and stops it on every way out.
//! - [`sandbox`]: commands of strangers, walled in.
//! - [`retrieval`]: passages of the user's documents, found by an index on disk.
//! - [`repository`]: changes on a git repository: their trees, their diffs, and how they land.
//! - [`engine`]: the state of a run, folded from its records; its complete specification; the loop that drives it.
//! - [`report`]: `result.json` and the transcript.
//! - [`otlp`]: traces of runs, for collectors of OpenTelemetry.
//! - [`config`]: environment, files and rolesets turned into a setup.
//! - [`run`]: one run, from the request of a person to its result.
//! - [`approval`]: a change is reviewed, decided on and landed. The module holds keys, the log of a repository's
//!   decisions, and the records that prove them. The two ways in are [`approval::ProposingNode`] and
//!   [`approval::ReviewingNode`]; with [`approval::node`], each key takes part from a process of its own.
//! - [`batch`]: many runs, as a matrix of tasks, rolesets, models and seeds. It is divided into shards, and the runs
//!   of a shard share a journal.
//! - [`eval`]: ways of agreeing, compared at the same number of tokens.
//! - [`serve`]: agreement as a model, behind the interface of OpenAI; as tools, by the Model Context Protocol; and on a
//!   page for people.
//! - [`api`]: a run as one call from Rust, and sessions.
//! - [`cli`]: the command line. Its `args` turn flags into requests, and `commands` has a file for each subcommand.
//!
//! # Layers
//!
//! A file uses its own module and the modules of lower lines. No two files use each other, directly or through
//! others. The test `tidy` reads this block and the `use` lines of every file.
//!
//! ```text
//! cli
//! eval  serve
//! api  batch  approval
//! run
//! config
//! otlp
//! report
//! engine
//! provider  retrieval  repository  sandbox
//! journal
//! calibration
//! files  process  page  program
//! ```
//!
//! # Adding a protocol
//!
//! 1. `crates/protocol/src/<new>/`: its machine, its parameters with [`protocol::ProtocolParams`], its section of a report.
//! 2. `crates/protocol/src/registry.rs`: a line in each `enum`, in `each` and in `defaults`, and its two conversions;
//!    `crates/protocol/src/phase.rs`: which of its calls are blind.
//! 3. `crates/protocol/src/lib.rs`: its module, and its place in the map and the layers there.
//! 4. `src/report/`: its line in `transcript.rs` and in `worth.rs`, where the compiler asks for it, and the details
//!    that only it reports.
//! 5. `src/config/roleset.schema.json`, with its name in the list that separates `pair` from the others, and
//!    `src/report/result.schema.json`: its parameters and its section.
//! 6. `rolesets/`: a roleset and its packs, which `src/config/embedded.rs` puts into the program.
//! 7. `tests/it/transcripts/<new>/`: its transcripts, and its smallest setup in the driver beside them.
//! 8. `docs/src/concepts/protocols/<new>.md`, its line in `docs/src/SUMMARY.md`, and its row in `README.md`.
//!
//! # Invariants
//!
//! The test `tidy` checks the first two; tests of behaviour check the others.
//!
//! - **`crypto`, `protocol` and `quorum` cannot touch the outside world**: no clock, network, file,
//!   randomness or `async`. The same events give the same actions, byte for byte.
//! - **Only `cli` prints.**
//! - **Code owns the verdict.** Each protocol decides agreement in one place, from schema-checked fields of each
//!   agent's own reply. No word in a task, a document or a peer's text counts.
//! - **Nothing is promoted.** A reply is taken as it is or refused; no status, score or text is ever filled in.
//! - **The journal is written ahead**, and a reply that is durable is never requested again.
//! - **A launched server lives as long as a pipe**, which closes however this program ends.
//! - **A key signs one thing for each place in the order of decisions**: the grounds for it are durable before it
//!   signs.
//! - **A stranger's code runs behind a wall**: no command that runs what a model or a change brings has more rights than
//!   the user gives it, and each run of one is on record.
//! - **A folder is not its visitor**: what a project's file says about programs, servers, keys and places elsewhere
//!   counts only with the user's trust.
//! - **Secrets are named, never stored**: an API key is in no journal, log or message.
//!
//! # Where it is decided
//!
//! | question | file |
//! |---|---|
//! | Do both agents of `pair` agree? | `crates/protocol/src/pair/agreement.rs` |
//! | Is the confidence of `council` enough? | `crates/protocol/src/council/verdict.rs` |
//! | Are the quotes of a council's answer enough, where no confidence counts? | `crates/protocol/src/council/confirmed.rs` |
//! | Which answer has a panel chosen? | `crates/protocol/src/panel/tally.rs`, asked by its `machine.rs` |
//! | Are the samples of `vote` enough, and what is a tie? | `crates/protocol/src/vote/machine.rs`, by its `state.rs` |
//! | Does a run continue without a member whose server failed? | `crates/protocol/src/contract/loss.rs`, asked by `src/engine/losses.rs` |
//! | Which vote of a batch draws one more sample? | `crates/protocol/src/pacing/ledger.rs` |
//! | What do blind answers decide before anyone talks or judges? | `crates/protocol/src/sampling/counting.rs` |
//! | When does a reply become a vote? | `crates/protocol/src/sampling/sample.rs` |
//! | Does a quorum approve, and is a signature right? | `crates/quorum/src/slot.rs`; `crates/quorum/src/wire.rs` |
//! | What does a flag of `run` change? | declared in `src/cli/args/run.rs`, taken by `run::parameters`, applied in the `mod.rs` of a protocol |
//!
//! # Glossary
//!
//! | word | meaning |
//! |---|---|
//! | task | the user's question or order, with its documents |
//! | agent | a named role with a field, a pack, a model and sampling settings |
//! | pack | a markdown file of instructions for a role |
//! | roleset | a JSON file: which protocol, which agents, which parameters |
//! | provider, endpoint | the client that calls a model; its address and settings as data |
//! | round | one step of a protocol; in `pair` the opening, then one turn of one agent; in `panel`, two make an iteration |
//! | permit, budget | the right of a vote to draw one more sample, and the tokens that the votes of a batch share |
//! | sample, vote | in `vote`, one blind reply, and its answer if it is valid; in `quorum`, a reviewer's signed statement |
//! | ask, reply | one model call and its answer |
//! | envelope | the JSON object that an agent writes in one turn |
//! | proposal, handle | a text that was put forward, and its short name (P1) |
//! | canonical text, digest | the normalised final text and its SHA-256 |
//! | journal, record | the record of one run, and one line of it |
//! | outcome | how a run ended |
//! | dissent | an answer other than the agreed text, with who held it and why |

#![forbid(unsafe_code)]

/// The protocols and their data, for programs that use this library.
pub use protocol;

#[warn(missing_docs)]
pub mod api;
pub mod approval;
pub mod batch;
pub mod calibration;
pub mod cli;
pub mod config;
pub mod engine;
pub mod eval;
pub mod files;
#[warn(missing_docs)]
pub mod journal;
pub mod otlp;
pub mod page;
pub mod process;
pub mod program;
pub mod provider;
pub mod report;
pub mod repository;
pub mod retrieval;
pub mod run;
pub mod sandbox;
pub mod serve;
