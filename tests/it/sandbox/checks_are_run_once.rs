//! A check whose verdict is on record is not run again by `resume`, wherever the run was killed.

use std::process::Stdio;

use super::executions;
use crate::support::{Finished, Folder, consensus, mask};

/// A check that counts how often it was run.
fn counting(folder: &Folder) -> String {
    format!("echo x >> {}/count/runs", folder.path().display())
}

fn run(folder: &Folder) -> std::process::Command {
    let count = folder.path().join("count");
    std::fs::create_dir_all(&count).unwrap();
    let mut command = consensus(folder);
    command.args(["run", "-q", "--mock", "--answer", "4", "--seed", "1", "--prompt", "2+2?"]);
    command.args(["--check", &counting(folder), "--sandbox-write", count.to_str().unwrap()]);
    command
}

fn count(folder: &Folder) -> usize {
    std::fs::read_to_string(folder.path().join("count/runs")).unwrap_or_default().lines().count()
}

/// The run is killed at each of its records in turn, and comes to the same result.
#[test]
fn resume_repeats_no_recorded_check() {
    let whole = Folder::new();
    Finished::of(&mut run(&whole)).exits(0);
    let undisturbed = std::fs::read_to_string(whole.run().join("result.json")).unwrap();
    let records = std::fs::read_to_string(whole.run().join("journal.jsonl")).unwrap().lines().count();
    assert_eq!((count(&whole), executions(&whole).len()), (1, 1));
    for at in 1..records {
        let folder = Folder::new();
        let mut child = run(&folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let journal = || {
            let runs = std::fs::read_dir(folder.path().join("runs")).into_iter().flatten().flatten();
            let texts = runs.filter_map(|run| std::fs::read_to_string(run.path().join("journal.jsonl")).ok());
            texts.collect::<String>()
        };
        while journal().lines().count() < at && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let on_record = executions(&folder).len();
        let before = count(&folder);
        let check = counting(&folder);
        let write = folder.path().join("count");
        let words = ["resume", "--last", "-q", "--check", &check, "--sandbox-write", write.to_str().unwrap()];
        Finished::of(consensus(&folder).args(words)).exits(0);
        let result = std::fs::read_to_string(folder.run().join("result.json")).unwrap();
        let (mut found, mut expected) = (mask(&result), mask(&undisturbed));
        for value in [&mut found, &mut expected] {
            // A call that was in the air is made again, and both are counted.
            value["usage"]["lost_calls"].take();
        }
        assert_eq!(found, expected, "killed at record {at}");
        if on_record == 1 {
            assert_eq!(count(&folder), before, "killed at record {at}");
        }
        assert_eq!(executions(&folder).len(), 1);
    }
}

/// `resume` refuses a record from elsewhere without its check, or with a different one.
#[test]
fn foreign_check_does_not_run_unasked() {
    let folder = Folder::new();
    let mut command = run(&folder);
    Finished::of(command.args(["--max-tokens-total", "1"])).exits(5);
    let refused = Finished::of(consensus(&folder).args(["resume", "--last"])).exits(2);
    assert!(
        refused.stderr.contains("the run has a check") && refused.stderr.contains("count/runs"),
        "{}",
        refused.stderr
    );
    let other = Finished::of(consensus(&folder).args(["resume", "--last", "--check", "true"])).exits(2);
    assert!(other.stderr.contains("begun with another check"), "{}", other.stderr);
    assert_eq!(count(&folder), 0);
}
