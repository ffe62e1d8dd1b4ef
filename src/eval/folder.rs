//! The files in the folder of an evaluation.
//!
//! The input is tasks or a text. The output is a file in the folder, written whole, or the tasks that a file holds. The tasks are in it as
//! they are used, so that their digest is that of the questions and the right answers.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::EvalError;
use crate::batch::{TaskForm, TaskLine, TaskLines, TaskRow};
use crate::files::{HeldFolder, is_damage, open_own, write_whole};
use crypto::Digest;

/// The name of the file of tasks.
const TASKS: &str = "tasks.jsonl";

/// The mode of the files.
const PRIVATE: u32 = 0o600;

/// Waits until no other process changes the files of an evaluation, and returns what keeps others waiting until it is dropped.
///
/// Parts that end at once would otherwise remove each other's pages. On a file system without locks, the last one wins.
///
/// Returns [`EvalError::Io`] if the folder cannot be opened.
pub(super) fn hold(folder: &Path) -> Result<HeldFolder, EvalError> {
    HeldFolder::wait(folder).map_err(EvalError::io("open", folder))
}

/// Returns the file of tasks in a folder.
pub fn tasks_file(folder: &Path) -> PathBuf {
    folder.join(TASKS)
}

/// Writes the file of tasks in a folder. Files there that killed processes were writing are removed.
pub fn write_tasks<'a>(
    folder: &Path,
    tasks: impl IntoIterator<Item = &'a TaskLine>,
) -> Result<(), EvalError> {
    let held = hold(folder)?;
    held.remove_unfinished();
    write_held_tasks(folder, tasks)
}

/// Writes the file of tasks in a folder that this process holds.
pub(super) fn write_held_tasks<'a>(
    folder: &Path,
    tasks: impl IntoIterator<Item = &'a TaskLine>,
) -> Result<(), EvalError> {
    write(&tasks_file(folder), &to_lines(tasks))
}

/// Reads the file of tasks in a folder.
///
/// Returns [`EvalError::NoTasks`], [`EvalError::Io`] or [`EvalError::Row`].
pub(super) fn read_tasks(folder: &Path) -> Result<Vec<TaskLine>, EvalError> {
    let path = tasks_file(folder);
    let file = match open_own(&path) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Err(EvalError::NoTasks(path)),
        Err(why) if is_damage(&why) => return Err(EvalError::Changed { path, why: why.to_string() }),
        opened => opened.map_err(EvalError::io("read", &path))?,
    };
    let lines = TaskLines::open(file, TaskForm::default()).map_err(EvalError::io("read", &path))?;
    let mut tasks = Vec::new();
    for line in lines {
        let TaskRow { number, task, .. } = line.map_err(EvalError::io("read", &path))?;
        tasks.push(task.map_err(|(_, why)| EvalError::row(&path, number, why))?);
    }
    Ok(tasks)
}

/// Returns the SHA-256 of tasks as they are used.
pub(super) fn digest(tasks: &[TaskLine]) -> Digest {
    Digest::new(to_lines(tasks).as_bytes())
}

/// Writes a file whole.
pub(super) fn write(path: &Path, text: &str) -> Result<(), EvalError> {
    write_whole(path, text, PRIVATE).map_err(EvalError::io("write", path))
}

fn to_lines<'a>(tasks: impl IntoIterator<Item = &'a TaskLine>) -> String {
    let mut text = String::new();
    for task in tasks {
        text += &serde_json::to_string(task).unwrap_or_default();
        text.push('\n');
    }
    text
}
