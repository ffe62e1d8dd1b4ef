//! A record is read by the build that wrote it. Every other build refuses it in one sentence, and never calls it forged.

use consensus::journal::FILE_NAME;

use crate::support::{Finished, Folder, consensus};

/// Makes a file one that another build has written: its opening records name another program, and have a field of their own.
fn by_another_build(folder: &Folder, path: &str) {
    let text = std::fs::read_to_string(folder.path().join(path)).unwrap();
    let (before, after) = text.split_once("\"program\":\"consensus ").unwrap();
    let (_, after) = after.split_once('"').unwrap();
    folder.write(path, &format!("{before}\"program\":\"consensus 0.0.7+abc\",\"more\":1{after}"));
}

/// Calls the program, which must refuse the record.
#[track_caller]
fn refused(folder: &Folder, words: &[&str]) {
    let stderr = Finished::of(consensus(folder).args(words)).exits(2).stderr;
    let sentence = "was written by `consensus 0.0.7+abc`, and `consensus 0.1.0+";
    assert!(
        stderr.contains(sentence) && stderr.contains("use the program that wrote it"),
        "{words:?}: {stderr}"
    );
}

#[test]
fn run_of_another_build_is_refused() {
    let folder = Folder::new();
    let run = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--quiet"];
    Finished::of(consensus(&folder).args(run)).exits(0);
    let name = folder.run().file_name().unwrap().to_string_lossy().into_owned();
    by_another_build(&folder, &format!("runs/{name}/{FILE_NAME}"));
    for words in [&["verify"][..], &["resume"], &["show"], &["show", "--replay"]] {
        refused(&folder, &[words, &["--last"]].concat());
    }
}

#[test]
fn batch_of_another_build_is_refused() {
    let folder = Folder::new();
    folder.write("tasks.jsonl", "{\"id\": \"a\", \"prompt\": \"2+2?\"}\n");
    let batch = ["batch", "tasks.jsonl", "--output", "out", "--mock", "--answer", "4", "--quiet"];
    Finished::of(consensus(&folder).args(batch)).exits(0);
    by_another_build(&folder, "out/journal-0.jsonl");
    refused(&folder, &["verify", "out"]);
    refused(&folder, &["show", "out", "a"]);
    refused(&folder, &batch);
}
