//! What the tests share: scripted runs in this process, real processes, and a loopback server.

mod git;
mod model;
mod process;
mod run;
mod server;

pub use git::{commit_all, git, git_bytes};
pub use model::{SENSIBLE, model};
pub use process::{Finished, Folder, consensus, mask, trust};
pub use run::{Play, Tiny, envelope, form, in_round, mark, member, review, shown};
pub use server::{Act, Request, Server, chunked, completion, http, stream};
