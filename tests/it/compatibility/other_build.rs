//! A record is read by the build that wrote it. Every other build refuses it in one sentence, and never calls it forged.

use consensus::journal::FILE_NAME;
use consensus::program::PROGRAM;

use crate::support::{Finished, Folder, Project, consensus};

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
    let listed = Finished::of(consensus(&folder).args(["runs", "--format", "json"])).exits(0).stdout;
    assert!(listed.contains("other build") && !listed.contains("damaged"), "{listed}");
}

/// An opening that no build writes so is forged, whatever program it names.
#[test]
fn opening_in_another_form_is_forged() {
    let folder = Folder::new();
    let run = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--quiet"];
    Finished::of(consensus(&folder).args(run)).exits(0);
    let path = format!("runs/{}/{FILE_NAME}", folder.run().file_name().unwrap().to_string_lossy());
    let text = std::fs::read_to_string(folder.path().join(&path)).unwrap();
    let first = text.lines().next().unwrap().replace("\"program\":\"consensus ", "\"program\": \"other ");
    folder.write(&path, &format!("{first}\n"));
    let stderr = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7).stderr;
    assert!(stderr.contains("no program writes so"), "{stderr}");
}

#[test]
fn redactions_of_another_build_are_not_read() {
    let folder = Folder::new();
    let run = ["run", "--mock", "--redact", "--answer", "[EMAIL_1]", "--prompt", "Who is ann@example.org?"];
    Finished::of(consensus(&folder).args(run)).exits(0);
    let table = folder.run().join("redactions.json");
    let text = std::fs::read_to_string(&table).unwrap();
    let other = text.replace(PROGRAM, "consensus 0.0.7+abc").replacen('{', "{\"more\": 1,", 1);
    std::fs::write(table, other).unwrap();
    // The answer of a run that has ended is there still, with its tokens.
    let shown = Finished::of(consensus(&folder).args(["resume", "--last"])).exits(0);
    assert_eq!(shown.stdout, "[EMAIL_1]\n");
    let why = "redactions.json` was written by `consensus 0.0.7+abc`";
    assert!(shown.stderr.contains(why) && !shown.stderr.contains("damaged"), "{}", shown.stderr);
}

#[test]
fn ledger_of_another_build_is_refused() {
    let project = Project::new();
    project.said(&["--change", "fix"], 0);
    let ledgers = project.folder.path().join("keys/decisions");
    let name = std::fs::read_dir(ledgers).unwrap().next().unwrap().unwrap().file_name();
    by_another_build(&project.folder, &format!("keys/decisions/{}/{FILE_NAME}", name.to_string_lossy()));
    refused(&project.folder, &["approve", "--repo", "repo", "--keys", "keys", "--mock", "--change", "fix"]);
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
    refused(&folder, &["results", "out"]);
    refused(&folder, &batch);
}

#[test]
fn shard_of_another_build_is_refused() {
    let folder = Folder::new();
    folder.write("tasks.jsonl", "{\"id\": \"a\", \"prompt\": \"2+2?\"}\n");
    let batch = ["batch", "tasks.jsonl", "--output", "out", "--mock", "--answer", "4", "--quiet", "--shard"];
    Finished::of(consensus(&folder).args(batch).arg("0/2")).exits(0);
    let text = std::fs::read_to_string(folder.path().join("out/batch.json")).unwrap();
    let (before, after) = text.split_once("\"consensus 0.1.0+").unwrap();
    folder.write("out/batch.json", &format!("{before}\"consensus 0.0.7+abc{}", &after[16..]));
    refused(&folder, &[&batch[..], &["1/2"]].concat());
    refused(&folder, &[&batch[..], &["1/2", "--dry-run"]].concat());
}
