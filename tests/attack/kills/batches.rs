//! A batch is killed, and the same command is given until it is done.
//!
//! In: a file of tasks and the undisturbed results. Out: what `kills` promises, with one line of results for each task.

use std::process::Stdio;

use serde_json::Value;

use super::{CountingServer, ProcessLife, Started, asked, is_emptied, killed, records, temp};
use crate::honest::honest;
use crate::support::{Finished, Folder, batch, consensus, lines, run_of, tasks};
use crate::sweep::{KILLED_BATCHES, sweep};

const TASKS: usize = 12;

/// A batch, its folder and its server.
struct BatchCase {
    folder: Folder,
    server: CountingServer,
}

impl BatchCase {
    fn new() -> Self {
        let case = Self { folder: Folder::new(), server: CountingServer::new(honest) };
        tasks(&case.folder, TASKS);
        case
    }

    fn command(&self) -> std::process::Command {
        let url = self.server.server.url();
        let words = [
            "--roleset",
            "solver_checker",
            "--model",
            "tiny-model",
            "--base-url",
            &url,
            "--runs-at-once",
            "4",
        ];
        let mut command = batch(&self.folder, &words);
        command.env("TMPDIR", temp(&self.folder)).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Returns the results by their runs, without what differs between two batches.
    fn rows(&self) -> Vec<Value> {
        let mut rows = lines(&self.folder, "results-0.jsonl");
        for row in &mut rows {
            (row["timing"], row["journal_head"]) = (Value::Null, Value::Null);
            *row = serde_json::from_str(&self.server.mask(&row.to_string())).unwrap();
        }
        rows.sort_by_key(run_of);
        rows
    }
}

/// The same command continues the batch.
#[test]
fn killed_batch_ends_with_same_results() {
    let whole = BatchCase::new();
    let life = ProcessLife::of(&mut Started::by(&mut whole.command()), &whole.server);
    let expected = whole.rows();
    assert_eq!(expected.len(), TASKS);
    let ends = sweep("kills, batches", KILLED_BATCHES.of(usize::MAX), 2, |_, draw| {
        let case = BatchCase::new();
        let moment = life.moment(draw);
        let mut end = if killed(&mut Started::by(&mut case.command()), &case.server, moment) {
            "went on"
        } else {
            "had ended"
        };
        if draw.u8(..3) == 0 && killed(&mut Started::by(&mut case.command()), &case.server, life.moment(draw))
        {
            end = "went on after a second kill";
        }
        Finished::of(case.command().stdout(Stdio::piped()).stderr(Stdio::piped())).exits(0);
        assert_eq!(case.rows(), expected, "killed at {moment:?}");
        let (asked, chats) =
            (asked(&records(&case.folder.path().join("out/journal-0.jsonl"))), case.server.chats());
        assert!(chats <= asked, "killed at {moment:?}: {chats} requests, and {asked} on record");
        Finished::of(consensus(&case.folder).args(["verify", "out"])).exits(0);
        is_emptied(&case.folder);
        end
    });
    assert!(ends.contains_key("went on"), "{ends:?}");
}
