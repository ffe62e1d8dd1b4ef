//! The reader of tasks, which reads them when they are needed.
//!
//! The input is rows that may come slowly or without end. The output is one task at a time. Beside runs, a separate thread reads into a
//! short queue, so a slow pipe does not delay them.

use std::collections::HashSet;
use std::io::Read;

use tokio::sync::mpsc;

use super::cells::OwnCell;
use crate::batch::tasks::{Rows, TaskForm, TaskLine, id_in};
use crypto::Digest;

/// The most lines that wait to be run.
const WAITING_MAX: usize = 16;

/// A row of a file of tasks.
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// The line number, from 1.
    pub number: u64,
    /// The task; or the id in the line, if there is one, and the reason why the line is not a task.
    pub task: Result<TaskLine, (Option<String>, String)>,
    /// What the task is run with, if it is not the variants and the seeds of the batch.
    pub own: Option<OwnCell>,
}

/// The receiving end of the queue of lines.
#[derive(Debug)]
pub struct TaskReader(mpsc::Receiver<std::io::Result<TaskRow>>);

impl TaskReader {
    /// Makes a reader of lines that come from elsewhere. Their ids are not compared.
    pub fn new(lines: mpsc::Receiver<std::io::Result<TaskRow>>) -> Self {
        Self(lines)
    }

    /// Returns the next line; `None` at the end.
    ///
    /// Yields the error that keeps the rest from being read.
    pub async fn next(&mut self) -> Option<std::io::Result<TaskRow>> {
        self.0.recv().await
    }
}

/// The tasks of a source, read as they are asked for.
///
/// Empty lines are skipped, and the second of two tasks with one id is refused. After an error, nothing more is to be asked for.
pub struct TaskLines<R: Read> {
    rows: Rows<R>,
    form: TaskForm,
    ids: HashSet<u64>,
}

impl<R: Read> TaskLines<R> {
    /// Begins to read a source.
    ///
    /// Returns the reason why the source has no tasks.
    pub fn open(source: R, form: TaskForm) -> std::io::Result<Self> {
        Ok(Self { rows: Rows::open(source, form.is_table)?, form, ids: HashSet::new() })
    }

    fn read(&mut self, text: &str, number: u64) -> Result<TaskLine, (Option<String>, String)> {
        let task = TaskLine::parse(text, number, &self.form).map_err(|why| (id_in(text), why))?;
        if self.ids.insert(mark(&task.id)) {
            return Ok(task);
        }
        let why = format!("an earlier line already has a task `{}`", task.id);
        Err((Some(task.id), why))
    }
}

impl<R: Read> Iterator for TaskLines<R> {
    type Item = std::io::Result<TaskRow>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (number, text) = match self.rows.next().transpose()? {
                Ok(row) => row,
                Err(why) => return Some(Err(why)),
            };
            if text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
                continue;
            }
            let task = text.map_err(|why| (None, why)).and_then(|text| self.read(text.trim(), number));
            return Some(Ok(TaskRow { number, task, own: None }));
        }
    }
}

/// Reads the tasks of a source in a thread of its own, until the first error.
pub fn feed(source: impl Read + Send + 'static, form: TaskForm) -> TaskReader {
    let (sender, lines) = mpsc::channel(WAITING_MAX);
    // The thread ends with its source, or when the receiver is dropped.
    std::thread::spawn(move || {
        let lines = match TaskLines::open(source, form) {
            Ok(lines) => lines,
            Err(why) => return drop(sender.blocking_send(Err(why))),
        };
        for line in lines {
            let is_last = line.is_err();
            if sender.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    TaskReader(lines)
}

/// Returns eight bytes of a digest, to store millions of ids. Among ten million ids two collide with a probability of three in a
/// million. The second task is then reported, and the other tasks still run.
fn mark(id: &str) -> u64 {
    Digest::new(id.as_bytes()).as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tasks::LINE_BYTES_MAX;

    fn all(text: &str) -> Vec<(u64, Result<String, String>)> {
        let lines = TaskLines::open(text.as_bytes(), TaskForm::default()).unwrap();
        let lines = lines.map(Result::unwrap);
        lines.map(|line| (line.number, line.task.map(|task| task.id).map_err(|(_, why)| why))).collect()
    }

    /// A bad line is named by its number.
    #[test]
    fn bad_line_stops_no_other_line() {
        let text = "{\"id\":1,\"prompt\":\"a\"}\n\nnonsense\r\n{\"id\":1,\"prompt\":\"b\"}\n{\"id\":2,\"prompt\":\"c\"}";
        let lines = all(text);
        assert_eq!(lines[0], (1, Ok("1".to_owned())));
        assert!(lines[1].0 == 3 && lines[1].1.as_ref().unwrap_err().contains("not a task"), "{lines:?}");
        assert_eq!(lines[2], (4, Err("an earlier line already has a task `1`".to_owned())));
        assert_eq!(lines[3], (5, Ok("2".to_owned())), "the last line needs no line break");
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn overlong_line_is_skipped_whole() {
        let long = "x".repeat(LINE_BYTES_MAX + 10);
        let lines = all(&format!("{long}\n{{\"id\":1,\"prompt\":\"a\"}}\n"));
        assert!(lines[0].1.as_ref().unwrap_err().contains("longer than"), "{:?}", lines[0].1);
        assert_eq!(lines[1], (2, Ok("1".to_owned())));
    }
}
