//! A clock for each worker: an input that takes too long is kept as a file, and the process ends.
//!
//! In: which input is being read, and when its reading ends. Out: nothing, or a file and the end of the process. A thread
//! that hangs cannot be unwound, so there is no other way on.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use crypto::Digest;

/// No input may take longer.
const INPUT_MAX: Duration = Duration::from_secs(5);

/// The way from one worker to its clock. The clock ends with it.
pub(crate) struct Watch(Sender<Option<(&'static str, Vec<u8>)>>);

impl Watch {
    /// Starts a clock.
    pub(crate) fn start() -> Self {
        let (says, hears) = mpsc::channel::<Option<(&'static str, Vec<u8>)>>();
        std::thread::spawn(move || {
            while let Ok(begun) = hears.recv() {
                let Some((target, input)) = begun else { continue };
                if hears.recv_timeout(INPUT_MAX) == Err(RecvTimeoutError::Timeout) {
                    let path = keep(target, &input);
                    let said = format!("{target} takes more than {INPUT_MAX:?}: {}\n", path.display());
                    // The captured output of a test is lost with its process.
                    let _ = std::io::stderr().write_all(said.as_bytes());
                    std::process::exit(1);
                }
            }
        });
        Self(says)
    }

    /// An input is being read from now on.
    pub(crate) fn begin(&self, target: &'static str, input: &[u8]) {
        self.0.send(Some((target, input.to_vec()))).expect("the clock goes on");
    }

    /// It was read.
    pub(crate) fn end(&self) {
        self.0.send(None).expect("the clock goes on");
    }
}

/// Keeps an input that does harm as a file outside the tree, and returns its path.
pub(crate) fn keep(target: &str, input: &[u8]) -> PathBuf {
    let folder = std::env::var_os("CONSENSUS_FUZZ_FOUND")
        .map_or_else(|| std::env::temp_dir().join("consensus-fuzz-found"), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("there is room for a folder");
    let name = format!("{target}-{:.12}", Digest::new(input).to_string());
    let path = folder.join(name);
    std::fs::write(&path, input).expect("there is room for a file");
    path
}
