//! Changes that are reviewed, decided on and landed by the program, on real repositories.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Finished, Folder, consensus};

/// A repository whose `main` is checked out nowhere, with a branch `fix`, and keys.
struct Project {
    folder: Folder,
}

impl Project {
    fn new() -> Self {
        let project = Self { folder: Folder::new() };
        project.folder.write(
            "repo/sum.py",
            "def total(items):\n    s = 0\n    for i in items:\n        s += i\n    return s\n",
        );
        project.git(&["init", "--quiet", "--initial-branch=main", "."]);
        project.commit("first");
        project.branch("fix", "sum.py", "def total(items):\n    return sum(items)\n");
        Finished::of(consensus(&project.folder).args(["keys", "generate", "keys", "--quiet"])).exits(0);
        project
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn git(&self, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.current_dir(self.path()).args(words);
        command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "somebody")
                .env(format!("GIT_{who}_EMAIL"), "s@example.org");
        }
        let said = command.output().unwrap();
        assert!(said.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", message]);
    }

    /// A branch off `main` in which one file is another; nothing is checked out then.
    fn branch(&self, name: &str, file: &str, text: &str) {
        self.git(&["checkout", "--quiet", "-b", name, "refs/heads/main"]);
        self.folder.write(&format!("repo/{file}"), text);
        self.commit(name);
        self.git(&["checkout", "--quiet", "--detach"]);
    }

    fn approve(&self, words: &[&str]) -> Command {
        let mut command = consensus(&self.folder);
        command
            .args(["approve", "--repo", "repo", "--keys", "keys", "--mock", "--format", "json", "--quiet"]);
        command.args(words);
        command
    }

    fn said(&self, words: &[&str], code: i32) -> Value {
        serde_json::from_str(&Finished::of(&mut self.approve(words)).exits(code).stdout).unwrap()
    }

    fn main(&self) -> String {
        self.git(&["rev-parse", "main"])
    }

    /// Files of the ledger; there is one for each roster.
    fn ledger(&self) -> PathBuf {
        let mut found = std::fs::read_dir(self.folder.path().join("keys/decisions")).unwrap();
        found.next().unwrap().unwrap().path().join("journal.jsonl")
    }

    fn is_clean(&self) {
        let said = Command::new("git").current_dir(self.path()).args(["fsck", "--strict"]).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
}

#[test]
fn keys_can_be_read_by_their_owner_alone_and_are_never_written_over() {
    let project = Project::new();
    let folder = project.folder.path().join("keys");
    for name in ["Quality", "Security", "Performance", "Compatibility", "orchestrator"] {
        let key = folder.join(format!("{name}.key"));
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        let text = std::fs::read_to_string(&key).unwrap();
        assert!(text.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{name}");
    }
    let roster = std::fs::read_to_string(folder.join("roster.json")).unwrap();
    assert!(!roster.contains("PRIVATE"));
    let again = Finished::of(consensus(&project.folder).args(["keys", "generate", "keys"])).exits(2);
    assert!(again.stderr.contains("never written over"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(folder.join("roster.json")).unwrap(), roster);
    let pair = ["keys", "generate", "other", "--roleset", "solver_checker"];
    Finished::of(consensus(&project.folder).args(pair)).exits(2);

    let key = folder.join("Security.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = Finished::of(&mut project.approve(&["--change", "fix"])).exits(2);
    assert!(open.stderr.contains("can be read by others"), "{}", open.stderr);
}

#[test]
fn what_a_quorum_approves_lands_once_and_is_proven_to_whoever_has_the_public_keys() {
    let project = Project::new();
    let base = project.main();
    let said = project
        .said(&["--change", "fix", "--message", "Sum by the language's own means", "-o", "proof.json"], 0);
    assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(1)));
    let metrics = &said["metrics"];
    assert_eq!((&metrics["success"], &metrics["change_complexity"]), (&json!(true), &json!(5)), "{said}");
    assert_eq!(metrics["phase_latencies_ms"].as_array().unwrap().len(), 3, "{said}");
    let commit = said["commit"].as_str().unwrap();
    assert_eq!(project.main(), commit);
    assert_eq!(project.git(&["rev-parse", "main^"]), base);
    assert_eq!(project.git(&["rev-parse", "main^{tree}"]), project.git(&["rev-parse", "fix^{tree}"]));
    let message = project.git(&["log", "-1", "--format=%B", "main"]);
    let change = said["change"].as_str().unwrap();
    for part in [
        "Sum by the language's own means\n\n",
        "Consensus-Sequence: 1\n",
        change,
        "Consensus-Approved-By: Security\n",
    ] {
        assert!(message.contains(part), "{message}");
    }
    project.is_clean();

    // Whoever has the public keys alone can verify it.
    let public = std::fs::read_to_string(project.folder.path().join("keys/roster.json")).unwrap();
    project.folder.write("public/roster.json", &public);
    let verified =
        Finished::of(consensus(&project.folder).args(["verify", "proof.json", "--keys", "public"])).exits(0);
    assert!(verified.stdout.starts_with("verified: decision 1, approved\n"), "{}", verified.stdout);
    assert!(
        verified.stdout.contains(change) && verified.stdout.contains("Security (mock) approves"),
        "{}",
        verified.stdout
    );
    Finished::of(consensus(&project.folder).args(["verify", "proof.json"])).exits(2);

    // The same once more changes nothing, and nobody is asked.
    let again = Finished::of(&mut project.approve(&["--change", "fix"])).exits(2);
    assert!(again.stderr.contains("changes nothing"), "{}", again.stderr);
    assert_eq!(project.main(), commit);
}

#[test]
fn whatever_is_changed_in_a_record_it_does_not_verify() {
    let project = Project::new();
    project.said(&["--change", "fix", "-o", "proof.json"], 0);
    let proof = std::fs::read_to_string(project.folder.path().join("proof.json")).unwrap();
    let record: Value = serde_json::from_str(&proof).unwrap();
    let verify = |record: &Value, code| {
        let file = project.folder.write("bent.json", &record.to_string());
        let verified =
            consensus(&project.folder).arg("verify").arg(&file).args(["--keys", "keys"]).output().unwrap();
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert_eq!(verified.status.code(), Some(code), "{said}");
        said
    };
    verify(&record, 0);
    let bend = |act: &dyn Fn(&mut Value)| {
        let mut bent = record.clone();
        act(&mut bent);
        assert_ne!(bent, record, "the test changes nothing");
        verify(&bent, 7)
    };
    bend(&|r| r["sequence"] = json!(2));
    bend(&|r| r["chain"] = json!("0".repeat(64)));
    bend(&|r| r["change"] = json!(r["change"].as_str().unwrap().replace("sum(items)", "max(items)")));
    bend(&|r| r["envelope"]["payload"] = json!("e30="));
    bend(&|r| r["roster"]["reviewers"].as_array_mut().unwrap().swap(0, 1));
    let few = bend(&|r| drop(r["envelope"]["signatures"].as_array_mut().unwrap().pop()));
    assert!(few.contains("it has 2 signatures on a decision, and 3 are needed"), "{few}");
    let twice = bend(&|r| {
        let signatures = r["envelope"]["signatures"].as_array_mut().unwrap();
        signatures[1] = signatures[0].clone();
    });
    assert!(twice.contains("has signed twice"), "{twice}");
    bend(&|r| r["votes"][0]["letter"]["opinion"]["approve"]["confidence"] = json!(1));
    bend(&|r| r["votes"][1] = r["votes"][0].clone());
    let stripped = bend(&|r| drop(r["votes"].as_array_mut().unwrap().remove(2)));
    assert!(stripped.contains("it has the votes of 3 of 4 reviewers"), "{stripped}");
    bend(&|r| r["votes"][0]["letter"]["grounds"] = json!([r["votes"][1]["letter"]]));
    bend(&|r| r["votes"] = json!([]));
    bend(&|r| r["note"] = json!("an unknown field"));

    // Nor does it under other keys.
    Finished::of(consensus(&project.folder).args(["keys", "generate", "others", "--quiet"])).exits(0);
    let other =
        Finished::of(consensus(&project.folder).args(["verify", "proof.json", "--keys", "others"])).exits(7);
    assert!(other.stderr.contains("made under the roster"), "{}", other.stderr);
}

#[test]
fn what_no_quorum_approves_changes_nothing_and_that_is_decided_too() {
    let project = Project::new();
    let before = project.git(&["for-each-ref"]);
    let said = project
        .said(&["--change", "fix", "--answer", "reject", "-o", "proof.json", "--sarif", "found.sarif"], 3);
    let sarif = std::fs::read_to_string(project.folder.path().join("found.sarif")).unwrap();
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    let place = &sarif["runs"][3]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "sum.py", "{sarif}");
    assert_eq!((&said["outcome"], &said["commit"]), (&json!("rejected"), &Value::Null));
    assert_eq!(said["votes"][0]["opinion"]["reject"]["severity"], "high");
    assert_eq!(project.git(&["for-each-ref"]), before);
    let verified =
        Finished::of(consensus(&project.folder).args(["verify", "proof.json", "--keys", "keys"])).exits(0);
    assert!(verified.stdout.starts_with("verified: decision 1, not approved\n"), "{}", verified.stdout);

    // One of four may be wrong; dissent is on record.
    let rules = "{\"agent\": \"Security\", \"policy\": \"stubborn\", \"answer\": \"reject\"}\n{\"policy\": \"honest\", \"answer\": \"approve\"}\n";
    project.folder.write("rules.jsonl", rules);
    let said = project.said(&["--change", "fix", "--mock-script", "rules.jsonl"], 0);
    assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(2)));
    assert!(said["votes"][1]["opinion"]["reject"].is_object(), "{said}");
    let checked =
        Finished::of(consensus(&project.folder).args(["roleset", "check", "reviewers_f2"])).exits(0);
    assert!(
        checked.stdout.contains("5 of 7 must approve, 3 who do not are enough to stop it; 2 may be wrong"),
        "{}",
        checked.stdout
    );
}

#[test]
fn the_command_sees_the_changed_files_and_nothing_else_and_nobody_is_asked_if_it_fails() {
    let project = Project::new();
    let before = project.git(&["for-each-ref"]);
    let see = "grep -q 'return sum' sum.py && test ! -e .git && test -z \"$SECRET_TOKEN\"";
    for (command, code) in [(see, 0), ("echo it fails >&2; exit 3", 3), ("sleep 600 & sleep 600", 3)] {
        let mut approve =
            project.approve(&["--change", "fix", "--verify", command, "--verify-timeout", "2s"]);
        let finished = Finished::of(approve.env("SECRET_TOKEN", "4711")).exits(code);
        let said: Value = serde_json::from_str(&finished.stdout).unwrap();
        if code == 0 {
            assert_eq!(said["outcome"], "landed");
            project.git(&["update-ref", "refs/heads/main", "main^"]);
            continue;
        }
        assert_eq!(said["outcome"], "unverified");
        assert_eq!(project.git(&["for-each-ref", "refs/heads"]), before);
    }
    let runs = std::fs::read_dir(project.folder.path().join("runs")).unwrap();
    let asked = runs.filter(|run| run.as_ref().unwrap().path().join("journal.jsonl").exists()).count();
    assert_eq!(asked, 1, "only the change that passed was reviewed");
}

#[test]
fn a_change_that_cannot_land_is_not_reviewed() {
    let project = Project::new();
    let refused = |words: &[&str], why: &str| {
        let finished = Finished::of(&mut project.approve(words)).exits(2);
        assert!(finished.stderr.contains(why), "{}", finished.stderr);
    };
    refused(&["--change", "nothing"], "neither a file with a patch nor a branch");
    refused(&["--change", "fix", "--base", "nowhere"], "is no branch");
    refused(&["--change", "fix", "--roleset", "solver_checker"], "a roleset of `pair`");
    refused(&["--change", "fix", "--roleset", "reviewers_f2"], "make keys with --roleset reviewers_f2");
    project.folder.write("bad.patch", "--- a/sum.py\n+++ b/sum.py\n@@ -1 +1 @@\n-nothing like it\n+x\n");
    refused(&["--change", "bad.patch"], "does not apply");
    project.git(&["checkout", "--quiet", "main"]);
    refused(&["--change", "fix"], "is checked out in");
    assert!(!project.folder.path().join("runs").exists());
}

#[test]
fn what_was_signed_is_known_in_every_copy_of_the_repository() {
    let project = Project::new();
    project.git(&["clone", "--quiet", "--bare", ".", "../copy"]);
    project.said(&["--change", "fix"], 0);
    // The same keys do not begin to count again in another copy: each signs one thing for one place.
    let mut approve = consensus(&project.folder);
    approve.args([
        "approve", "--repo", "copy", "--keys", "keys", "--mock", "--format", "json", "--change", "fix",
    ]);
    let said: Value = serde_json::from_str(&Finished::of(&mut approve).exits(0).stdout).unwrap();
    assert_eq!(said["sequence"], 2);
}

#[test]
fn names_mean_branches_and_whatever_git_calls_binary_is_read() {
    let project = Project::new();
    let base = project.main();
    project.git(&["tag", "main", "fix"]);
    project.git(&["tag", "fix", &base]);
    project.folder.write(".gitattributes", "* -diff\n");
    project.folder.write("repo/.git/info/attributes", "* -diff\n");
    let said = project.said(&["--change", "fix"], 0);
    let journal =
        project.folder.path().join("runs").join(said["run"].as_str().unwrap()).join("journal.jsonl");
    let journal = std::fs::read_to_string(journal).unwrap();
    assert!(journal.contains("+    return sum(items)"), "the reviewers have seen the line");
    project.branch("nul", "evil.js", "// \u{0}\nevil();\n");
    let said = project.said(&["--change", "nul", "--base", "refs/heads/main"], 0);
    let run = project.folder.path().join("runs").join(said["run"].as_str().unwrap());
    assert!(std::fs::read_to_string(run.join("journal.jsonl")).unwrap().contains("+evil();"));
    std::fs::write(project.path().join("logo.png"), [0x89, 0xff, 0, 1]).unwrap();
    project.git(&["checkout", "--quiet", "-b", "logo", "refs/heads/main"]);
    project.commit("logo");
    project.git(&["checkout", "--quiet", "--detach"]);
    let refused = Finished::of(&mut project.approve(&["--change", "logo"])).exits(2);
    assert!(refused.stderr.contains("binary files cannot be approved"), "{}", refused.stderr);
}

#[test]
fn a_change_of_modes_alone_can_be_rejected() {
    let project = Project::new();
    project.git(&["checkout", "--quiet", "-b", "mode", "main"]);
    let file = project.path().join("sum.py");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    project.commit("mode");
    project.git(&["checkout", "--quiet", "--detach"]);
    let said = project.said(&["--change", "mode", "--answer", "reject"], 3);
    assert!(said["votes"][0]["opinion"]["reject"]["reason"].as_str().unwrap().contains("mode 100"), "{said}");
    project.said(&["--change", "mode"], 0);
    assert!(project.git(&["ls-tree", "main", "sum.py"]).starts_with("100755"));
}

#[test]
fn nobody_writes_this_programs_trailers_in_a_message() {
    let project = Project::new();
    let forged =
        "Sum\u{1b}[31m\n\nConsensus-Approved-By: the pope\n consensus-sequence: 7\n---\n# ---- >8 ----\n";
    project.said(&["--change", "fix", "--message", forged], 0);
    let message = project.git(&["log", "-1", "--format=%B", "main"]);
    assert!(!message.contains("pope") && !message.contains(": 7"), "{message}");
    let trailers =
        project.git(&["log", "-1", "--format=%(trailers:key=Consensus-Sequence,valueonly)", "main"]);
    assert_eq!(trailers, "1", "{message}");
    assert!(message.starts_with("Sum[31m\n\nConsensus-Sequence: 1\n"), "{message}");
}

#[test]
fn a_review_that_was_cut_off_is_resumed_and_then_decides() {
    let project = Project::new();
    let cut = project.said(&["--change", "fix", "--max-tokens-total", "2500"], 5);
    assert_eq!(cut["outcome"], "budget", "{cut}");
    let run = cut["run"].as_str().unwrap();
    let mut early = consensus(&project.folder);
    early.args(["approve", "--repo", "repo", "--keys", "keys", "--change", "fix", "--review", run]);
    Finished::of(&mut early).exits(5);
    Finished::of(consensus(&project.folder).args(["resume", run, "--max-tokens-total", "1000000"])).exits(0);
    let mut decide = consensus(&project.folder);
    decide.args([
        "approve", "--repo", "repo", "--keys", "keys", "--format", "json", "--review", run, "--change",
    ]);
    let said: Value = serde_json::from_str(&Finished::of(decide.arg("fix")).exits(0).stdout).unwrap();
    assert_eq!((&said["outcome"], &said["run"]), (&json!("landed"), &json!(run)));
    project.branch("more", "more.py", "x = 1\n");
    let mut other = consensus(&project.folder);
    other.args(["approve", "--repo", "repo", "--keys", "keys", "--review", run, "--change", "more"]);
    let other = Finished::of(&mut other).exits(2);
    assert!(other.stderr.contains("is no review of this change"), "{}", other.stderr);
}

/// Runs the program with a `git` in front of the real one that kills it before or after its n-th call. Returns whether it
/// came to that call.
fn killed(project: &Project, at: usize, is_before: bool) -> bool {
    let real = String::from_utf8(Command::new("sh").args(["-c", "command -v git"]).output().unwrap().stdout)
        .unwrap();
    let real = real.trim();
    let count = project.folder.path().join("count");
    let _ = std::fs::remove_file(&count);
    let kill = "kill -KILL $PPID; exit 1";
    let (before, after) = if is_before { (kill, ":") } else { (":", kill) };
    let script = format!(
        "#!/bin/sh\necho >>'{count}'\nif [ $(wc -l <'{count}') -eq {at} ]; then {before}; fi\n'{real}' \"$@\"\ncode=$?\n\
         if [ $(wc -l <'{count}') -eq {at} ]; then {after}; fi\nexit $code\n",
        count = count.display()
    );
    let tool = project.folder.write("bin/git", &script);
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tool.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut approve = project.approve(&["--change", "fix"]);
    let ended = approve.env("PATH", path).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    ended.code().is_none()
}

#[test]
fn a_kill_at_any_call_of_git_leaves_the_change_landed_once_or_not_at_all() {
    for is_before in [true, false] {
        for at in 1.. {
            let project = Project::new();
            let (base, fix) = (project.main(), project.git(&["rev-parse", "fix^{tree}"]));
            if !killed(&project, at, is_before) {
                assert!(at > 15, "the sweep ended after {at} calls");
                break;
            }
            let now = project.main();
            let tree = |commit: &str| project.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
            assert!(now == base || tree(&now) == fix, "call {at}: a state that is neither");
            project.is_clean();
            // The next start brings it to its end: the same commit, once.
            let said = project.said(&["--change", "fix"], 0);
            assert_eq!(said["outcome"], "landed", "call {at}");
            assert_eq!(project.git(&["rev-list", "--count", &format!("{base}..main")]), "1", "call {at}");
            assert_eq!(tree("main"), fix, "call {at}");
            project.is_clean();
        }
    }
}

#[test]
fn a_ledger_that_ends_anywhere_is_brought_to_the_same_end() {
    let project = Project::new();
    let base = project.main();
    let landed = project.said(&["--change", "fix", "-o", "proof.json"], 0);
    let proof = std::fs::read(project.folder.path().join("proof.json")).unwrap();
    let ledger = project.ledger();
    let whole = std::fs::read(&ledger).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    assert_eq!(ends.len(), 3, "opened, decided, closed");
    // With the first line whole, all that follows is signed again as it was.
    for end in [ends[0], ends[0] + 100, ends[1] - 1, ends[1], ends[2] - 7] {
        for is_landed in [true, false] {
            std::fs::write(&ledger, &whole[..end]).unwrap();
            if !is_landed {
                project.git(&["update-ref", "refs/heads/main", &base]);
                for mark in project.git(&["for-each-ref", "--format=%(refname)", "refs/consensus"]).lines() {
                    project.git(&["update-ref", "-d", mark]);
                }
            }
            let said = project.said(&["--change", "fix", "-o", "again.json"], 0);
            assert_eq!(said["commit"], landed["commit"], "cut at {end}");
            assert_eq!(
                std::fs::read(project.folder.path().join("again.json")).unwrap(),
                proof,
                "cut at {end}"
            );
            assert_eq!(project.main(), landed["commit"].as_str().unwrap());
        }
    }
    // Whoever bends it is found out.
    let bent = String::from_utf8(whole).unwrap().replacen("\"sequence\":1", "\"sequence\":2", 1);
    std::fs::write(&ledger, bent).unwrap();
    project.branch("more", "more.py", "x = 1\n");
    Finished::of(&mut project.approve(&["--change", "more"])).exits(7);
}

#[test]
fn a_branch_that_has_gone_on_is_not_moved() {
    let project = Project::new();
    project.said(&["--change", "fix"], 0);
    let ledger = project.ledger();
    let whole = std::fs::read_to_string(&ledger).unwrap();
    let decided: Vec<&str> = whole.lines().take(2).collect();
    // It died before it landed, and somebody has pushed since.
    std::fs::write(&ledger, decided.join("\n") + "\n").unwrap();
    for mark in project.git(&["for-each-ref", "--format=%(refname)", "refs/consensus"]).lines() {
        project.git(&["update-ref", "-d", mark]);
    }
    project.git(&["update-ref", "refs/heads/main", "main^"]);
    project.git(&["checkout", "--quiet", "main"]);
    project.folder.write("repo/other.py", "y = 2\n");
    project.commit("somebody else's");
    project.git(&["checkout", "--quiet", "--detach"]);
    let pushed = project.main();
    project.branch("more", "more.py", "x = 1\n");
    let mut approve = project.approve(&["--change", "more"]);
    let finished = Finished::of(&mut approve).exits(0);
    assert!(finished.stderr.contains("decision 1 was begun before"), "{}", finished.stderr);
    assert_eq!(project.git(&["rev-parse", "main^"]), pushed, "the next change is on what is there");
    let closed = std::fs::read_to_string(&ledger).unwrap();
    assert!(closed.contains("\"ended\":\"not_landed\""), "{closed}");
}

#[test]
fn two_at_once_are_told_apart() {
    let project = Project::new();
    project.said(&["--change", "fix", "--answer", "reject"], 3);
    let held = std::fs::File::open(project.ledger()).unwrap();
    held.lock().unwrap();
    let second = Finished::of(&mut project.approve(&["--change", "fix"])).exits(2);
    assert!(second.stderr.contains("in use by another process"), "{}", second.stderr);
    drop(held);
    project.said(&["--change", "fix"], 0);
}
