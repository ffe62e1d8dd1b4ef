//! What the tests share: scripted runs in this process, real processes, and a loopback server.

mod batch;
mod house;
mod model;
mod process;
mod project;
mod reader;
mod run;
mod served;
mod server;

pub use batch::{MOCK, batch, figures, lines, replies, run_of, tasks};
pub use house::{House, NAMES, Serving};
pub use model::{SENSIBLE, model};
pub use process::{Finished, Folder, TALK, consensus, fake_llm, listed_commands, mask, trust};
pub use project::{Project, commit_all, git, git_bytes};
pub use reader::{READER, document_shown};
pub use run::{Play, Tiny, envelope, form, in_round, mark, member, review, shown};
pub use served::{Answer, Served, answer};
pub use server::{Act, Request, Server, chunked, completion, http, stream};
