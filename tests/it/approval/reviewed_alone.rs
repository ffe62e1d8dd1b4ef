//! A change can be reviewed without keys: nothing is signed, nothing lands, and the findings come in the form that is wanted.

use serde_json::Value;

use crate::support::{Finished, Folder, Project, consensus};

/// A reviewer who finds something, beside others who do not.
const FINDS: &str = concat!(
    r#"{"agent": "Security", "reply": "{\"findings\": [{\"line\": \"+two\", \"problem\": \"it is a :: b\", \"severity\": \"high\"}], \"summary\": \"It adds a line.\", \"verdict\": \"reject\", \"confidence\": 90}"}"#,
    "\n",
    r#"{"policy": "honest", "answer": "approve"}"#,
    "\n"
);

fn review(project: &Project, words: &[&str], code: i32) -> Finished {
    let mut command = consensus(&project.folder);
    command.args(["review", "--repo", "repo"]).args(words);
    Finished::of(&mut command).exits(code)
}

#[test]
fn a_change_is_reviewed_and_nothing_is_touched() {
    let project = Project::new();
    project.branch("note", "notes.txt", "one\ntwo\n");
    let before = project.git(&["show-ref"]);
    let said = review(&project, &["--change", "note", "--mock"], 0);
    assert!(
        said.stdout.starts_with("approved: 4 of 4 reviewers approved; the quorum is 3\n"),
        "{}",
        said.stdout
    );
    project.folder.write("script.jsonl", FINDS);
    let script = ["--mock-script", "script.jsonl"];
    let said = review(&project, &[&["--change", "note"], &script[..]].concat(), 0);
    assert!(
        said.stdout.contains("1 finding, confirmed by a second reviewer:\n  notes.txt:2: high: it is a :: b\n    +two\n    by Security, confirmed by 3 of 3\n"),
        "{}",
        said.stdout
    );
    assert!(!said.stderr.contains("it is a :: b (+two)"), "it is told once: {}", said.stderr);
    let rejected = review(&project, &["--change", "note", "--mock", "--verdict", "reject"], 3);
    assert!(rejected.stdout.starts_with("not approved: 0 of 4"), "{}", rejected.stdout);
    assert_eq!(project.git(&["show-ref"]), before, "nothing lands");
    assert!(!project.folder.path().join("keys/decisions").exists());
    // The review is a run: it can be shown and verified.
    Finished::of(consensus(&project.folder).args(["verify", "--last"])).exits(0);
    let shown = Finished::of(consensus(&project.folder).args(["show", "--full", "--last"])).exits(0);
    assert!(shown.stdout.contains("## Reviews"), "{}", shown.stdout);
}

#[test]
fn review_comes_in_requested_format() {
    let project = Project::new();
    project.branch("note", "notes.txt", "one\ntwo\n");
    project.folder.write("script.jsonl", FINDS);
    let summary = project.folder.path().join("summary.md");
    let with =
        ["--change", "note", "--mock-script", "script.jsonl", "--sarif", "r.sarif", "--markdown", "r.md"];
    let mut command = consensus(&project.folder);
    command.args(["review", "--repo", "repo", "--format", "github"]).args(with);
    let said = Finished::of(command.env("GITHUB_STEP_SUMMARY", &summary)).exits(0).stdout;
    assert!(
        said.starts_with("::error file=notes.txt,line=2,title=Security (high)::it is a :: b\n"),
        "{said}"
    );
    let page = std::fs::read_to_string(&summary).unwrap();
    assert!(page.starts_with("### Review: approved: 3 of 4 reviewers approved; the quorum is 3\n"), "{page}");
    assert_eq!(page, std::fs::read_to_string(project.folder.path().join("r.md")).unwrap());
    assert_eq!(review(&project, &[&with[..4], &["--format", "markdown"]].concat(), 0).stdout, page);
    let log: Value =
        serde_json::from_str(&std::fs::read_to_string(project.folder.path().join("r.sarif")).unwrap())
            .unwrap();
    assert_eq!(log["runs"][1]["results"][0]["level"], "error", "{log}");
    let result = review(&project, &[&with[..4], &["--format", "json"]].concat(), 0).stdout;
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["outcome"], "agreed");
}

#[test]
fn unwritable_summary_costs_no_verdict() {
    let project = Project::new();
    project.branch("note", "notes.txt", "one\ntwo\n");
    let pipe = project.folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for place in [pipe.as_path(), std::path::Path::new("/nonexistent/x"), project.folder.path()] {
        let mut command = consensus(&project.folder);
        command.args(["review", "--repo", "repo", "--change", "note", "--mock", "--format", "github"]);
        let said = Finished::of(command.env("GITHUB_STEP_SUMMARY", place)).exits(0);
        assert!(said.stdout.contains("::notice title=Review::approved: 4 of 4"), "{}", said.stdout);
        assert!(said.stderr.contains("the summary of the job cannot be written"), "{}", said.stderr);
    }
}

/// A clone without local branches finds its base among the branches of its remote.
#[test]
fn patch_is_reviewed_without_repository() {
    let folder = Folder::new();
    folder.write("fix.patch", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a = 1\n+a = 2\n");
    let said = |words: &[&str], code| Finished::of(consensus(&folder).args(words)).exits(code);
    let read = ["review", "--change", "fix.patch", "--mock"];
    assert!(said(&read, 0).stdout.starts_with("approved: 4 of 4"));
    let why = said(&["review", "--change", "fix", "--mock"], 2).stderr;
    assert!(why.contains("`fix` is not a file with a patch") && why.contains("--repo PATH"), "{why}");
    folder.write("empty.patch", "");
    let why = said(&["review", "--change", "empty.patch", "--mock"], 2).stderr;
    assert!(why.contains("this change cannot be reviewed"), "{why}");

    // As a workflow checks it out: a commit, and no branch but those of the remote.
    let project = Project::new();
    project.branch("note", "notes.txt", "one\ntwo\n");
    let clone = project.folder.path().join("clone");
    project.git(&["clone", "-q", "--", ".", clone.to_str().unwrap()]);
    let git = |words: &[&str]| {
        let done = std::process::Command::new("git").arg("-C").arg(&clone).args(words).status().unwrap();
        assert!(done.success(), "{words:?}");
    };
    git(&["checkout", "-q", "--detach", "origin/note"]);
    let mut command = consensus(&project.folder);
    command.args(["review", "--repo", "clone", "--change", "HEAD", "--mock"]);
    let said = Finished::of(&mut command).exits(0);
    assert!(said.stderr.contains("compared with `origin/main`"), "{}", said.stderr);
    assert!(said.stdout.starts_with("approved: 4 of 4"), "{}", said.stdout);
}

/// The estimate needs no reviewer and makes no run.
#[test]
fn dry_run_shows_cost_without_keys() {
    let project = Project::new();
    project.branch("note", "notes.txt", "one\ntwo\n");
    let model = ["--change", "note", "--model", "openai:gpt-4o-mini", "--dry-run"];
    for command in ["review", "approve"] {
        let words = [&[command, "--repo", "repo"], &model[..]].concat();
        let said = Finished::of(consensus(&project.folder).args(words)).exits(0).stdout;
        assert!(
            said.contains("if the agents agree at once, about:\n             8 calls"),
            "{command}: {said}"
        );
        assert!(said.contains("US dollars"), "{command}: {said}");
    }
    assert!(!project.folder.path().join("runs").exists(), "nothing was run");
}
