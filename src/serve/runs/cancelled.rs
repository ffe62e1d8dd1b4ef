//! The keys whose runs were cancelled, so that no later server continues them.
//!
//! The input is the tasks of keys. The output is a file with one on each line, and whether a task is among them. A journal does not tell a
//! run that was cancelled from one whose server was stopped.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::files::check_own;
use crate::serve::error::ServeError;

/// The name of the file.
const FILE: &str = "cancelled.txt";

/// The cancelled keys of a folder.
#[derive(Debug)]
pub(in crate::serve) struct CancelledKeys {
    file: File,
    /// The length of the whole lines, in bytes.
    whole: u64,
    tasks: HashSet<String>,
}

impl CancelledKeys {
    /// Reads the cancelled keys of a folder.
    pub(in crate::serve) fn open(folder: &Path) -> Result<Self, ServeError> {
        let path = folder.join(FILE);
        let wrong = ServeError::folder(&path);
        check_own(&path).map_err(&wrong)?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(&wrong)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(&wrong)?;
        // A line that was cut off is the task of no key, its run was not reported as cancelled, and no other line may follow it.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(&wrong)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(&wrong)?;
        let tasks = text[..whole].lines().map(str::to_owned).collect();
        Ok(Self { file, whole: whole as u64, tasks })
    }

    /// Adds the task of a key. It is durable when this returns.
    pub(super) fn add(&mut self, task: &str) -> std::io::Result<()> {
        if self.has(task) {
            return Ok(());
        }
        let line = format!("{task}\n");
        if let Err(why) = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()) {
            // A part of the line would swallow the next one.
            let _ = self.file.set_len(self.whole);
            return Err(why);
        }
        self.whole += line.len() as u64;
        self.tasks.insert(task.to_owned());
        Ok(())
    }

    /// Returns whether the run of a key was cancelled.
    pub(in crate::serve) fn has(&self, task: &str) -> bool {
        self.tasks.contains(task)
    }
}
