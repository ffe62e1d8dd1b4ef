//! Child processes that end with this one.
//!
//! The input is a command. The output is the way in which it ended. A guard ([`GuardedCommand`]) is a small process of this program
//! between its owner and the command. It holds the other end of a pipe, which closes for whatever reason: a normal end,
//! an error, a panic, a signal, even SIGKILL. The guard then ends the command's process group and, on Linux, all its
//! other descendants. If the guard itself is killed, the kernel ends the process that the guard started ([`leash`]).
//!
//! Nothing here decides what a command may do; [`sandbox`](crate::sandbox) does.

mod descendants;
mod guard;
mod own_process;

pub use guard::GuardedCommand;
pub use own_process::{die_with_parent, hide_memory, leash};
