//! Processes that die, ledgers that end anywhere, and branches that have gone on meanwhile.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use consensus::journal::Writer;
use serde_json::Value;

use super::Project;
use crate::support::{Finished, consensus, git};

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

/// A kill at any call of git leaves the branch as it was or with the change.
#[test]
fn change_lands_once_after_any_kill() {
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
fn truncated_ledger_reaches_same_end() {
    let project = Project::new();
    let base = project.main();
    let landed = project.said(&["--change", "fix", "-o", "proof.json"], 0);
    let proof = std::fs::read(project.folder.path().join("proof.json")).unwrap();
    let ledger = project.ledger();
    let whole = std::fs::read(&ledger).unwrap();
    let figures = Path::new(landed["decision"].as_str().unwrap()).with_file_name("decision-metrics.json");
    let figures = project.folder.path().join(figures);
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
            std::fs::remove_file(&figures).unwrap();
            let said = project.said(&["--change", "fix", "-o", "again.json"], 0);
            assert_eq!(said["commit"], landed["commit"], "cut at {end}");
            let figures: Value = serde_json::from_slice(&std::fs::read(&figures).unwrap()).unwrap();
            assert_eq!(
                (&figures["success"], &figures),
                (&Value::Bool(true), &said["metrics"]),
                "cut at {end}"
            );
            assert_eq!(
                std::fs::read(project.folder.path().join("again.json")).unwrap(),
                proof,
                "cut at {end}"
            );
            assert_eq!(project.main(), landed["commit"].as_str().unwrap());
        }
    }
    // A change of it is found.
    let bent = String::from_utf8(whole).unwrap().replacen("\"sequence\":1", "\"sequence\":2", 1);
    std::fs::write(&ledger, bent).unwrap();
    project.branch("more", "more.py", "x = 1\n");
    Finished::of(&mut project.approve(&["--change", "more"])).exits(7);
}

/// A decision that was begun before is closed as not landed where the branch has other commits since.
#[test]
fn advanced_branch_is_not_moved() {
    let project = Project::new();
    project.said(&["--change", "fix"], 0);
    let ledger = project.ledger();
    let whole = std::fs::read_to_string(&ledger).unwrap();
    let decided: Vec<&str> = whole.lines().take(2).collect();
    // It died before it landed, and another person has pushed since.
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
fn two_at_once_are_distinguished() {
    let project = Project::new();
    project.said(&["--change", "fix", "--verdict", "reject"], 3);
    let held = std::fs::File::open(project.ledger()).unwrap();
    held.lock().unwrap();
    let second = Finished::of(&mut project.approve(&["--change", "fix"])).exits(2);
    assert!(second.stderr.contains("in use by another process"), "{}", second.stderr);
    drop(held);
    project.said(&["--change", "fix"], 0);
}

#[test]
fn rewritten_ledger_does_not_verify() {
    let project = Project::new();
    project.said(&["--change", "fix"], 0);
    project.branch("more", "more.py", "x = 1\n");
    let ledger = project.ledger();
    let whole = std::fs::read_to_string(&ledger).unwrap();
    // A person who can write the file can make its chain of digests hold again, and sign nothing.
    let bends = [
        ("sum(items)", "max(items)"),
        ("\"sequence\":1", "\"sequence\":2"),
        ("\"confidence\":9500", "\"confidence\":9400"),
    ];
    for (from, to) in bends {
        assert!(whole.contains(from));
        std::fs::remove_file(&ledger).unwrap();
        let lines: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let run = lines[0]["run"].as_str().unwrap();
        let mut writer = Writer::create(ledger.parent().unwrap(), run).unwrap();
        for line in &lines {
            let bent = line["event"].to_string().replace(from, to);
            writer.append(serde_json::from_str::<Value>(&bent).unwrap()).unwrap();
        }
        drop(writer);
        let refused = Finished::of(&mut project.approve(&["--change", "more"])).exits(7);
        assert!(refused.stderr.contains("the ledger's line"), "{from}: {}", refused.stderr);
    }
    std::fs::write(&ledger, &whole).unwrap();
    project.said(&["--change", "more"], 0);
}

/// A flipped byte and lines that are missing or in another place are found.
#[test]
fn damaged_ledger_does_not_verify() {
    let project = Project::new();
    project.said(&["--change", "fix", "--verdict", "reject"], 3);
    project.said(&["--change", "fix"], 0);
    project.branch("more", "more.py", "x = 1\n");
    let ledger = project.ledger();
    let whole = std::fs::read_to_string(&ledger).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let of = |order: &[usize]| order.iter().flat_map(|at| [lines[*at], "\n"]).collect::<String>();
    let mut flipped = whole.clone().into_bytes();
    let at = whole.len() / 3;
    flipped[at] ^= 1;
    let bent = [flipped, of(&[1, 0, 2, 3, 4, 5]).into(), of(&[0, 2, 3, 4, 5]).into(), of(&[3, 4, 5]).into()];
    for bytes in bent {
        std::fs::write(&ledger, bytes).unwrap();
        Finished::of(&mut project.approve(&["--change", "more"])).exits(7);
    }
    // Where the tail is gone, the branch's own mark tells.
    std::fs::write(&ledger, of(&[0, 1, 2])).unwrap();
    let refused = Finished::of(&mut project.approve(&["--change", "more"])).exits(2);
    assert!(refused.stderr.contains("it is an older copy"), "{}", refused.stderr);
    std::fs::write(&ledger, whole).unwrap();
    project.said(&["--change", "more"], 0);
}

#[test]
fn older_ledger_copy_signs_nothing() {
    let project = Project::new();
    project.git(&["branch", "backup", "main"]);
    let ledger = project.ledger_after(&["--change", "fix", "--verdict", "reject"], 3);
    let older = std::fs::read(&ledger).unwrap();
    project.said(&["--change", "fix"], 0);
    std::fs::write(&ledger, &older).unwrap();
    project.branch("more", "more.py", "x = 1\n");
    let refused = Finished::of(&mut project.approve(&["--change", "more"])).exits(2);
    assert!(refused.stderr.contains("it is an older copy"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&ledger).unwrap(), older, "nothing was begun");
}

/// A decision that was begun in one copy of the repository lands the same commit in another one.
#[test]
fn begun_decision_ends_in_another_copy() {
    let project = Project::new();
    project.git(&["clone", "--quiet", "--bare", ".", "../copy"]);
    project.said(&["--change", "fix"], 0);
    let landed = project.main();
    let ledger = project.ledger();
    let whole = std::fs::read_to_string(&ledger).unwrap();
    std::fs::write(&ledger, whole.lines().take(1).collect::<String>() + "\n").unwrap();
    let mut approve = consensus(&project.folder);
    approve.args(["approve", "--repo", "copy", "--keys", "keys", "--mock", "--change", "fix"]);
    Finished::of(&mut approve).exits(0);
    assert_eq!(git(&project.folder.path().join("copy"), &["rev-parse", "main"]), landed);
}

/// With --checkout the files follow the branch even after a kill, and work of their owner stays.
#[test]
fn checkout_follows_branch_without_overwriting() {
    let project = Project::new();
    project.git(&["checkout", "--quiet", "main"]);
    let words = ["--change", "fix", "--checkout"];
    let file = project.path().join("sum.py");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, "work\n").unwrap();
    let refused = Finished::of(&mut project.approve(&words)).exits(2);
    assert!(refused.stderr.contains("changed and not committed"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "work\n");
    std::fs::write(&file, &before).unwrap();
    project.folder.write("repo/notes.txt", "of nobody's business");
    project.said(&words, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "def total(items):\n    return sum(items)\n");
    assert_eq!(project.git(&["status", "--porcelain"]), "?? notes.txt");

    // Killed between the branch and its files: the next start brings them along.
    let ledger = project.ledger();
    let whole = std::fs::read_to_string(&ledger).unwrap();
    std::fs::write(&ledger, whole.lines().take(2).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    project.git(&["read-tree", "-m", "-u", "main", "main^"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    project.said(&words, 0);
    assert_eq!(project.git(&["status", "--porcelain"]), "?? notes.txt");
    // What its owner has taken back, or changed further, stays as it is.
    std::fs::write(&ledger, whole.lines().take(2).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    project.git(&["reset", "--quiet", "--hard", "main^"]);
    project.said(&words, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before, "it is where its owner has put it");
    assert_eq!(project.git(&["status", "--porcelain"]), "?? notes.txt");
    project.git(&["reset", "--quiet", "--hard", "main@{1}"]);
    std::fs::write(&ledger, whole.lines().take(2).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    std::fs::write(&file, "further\n").unwrap();
    project.git(&["add", "sum.py"]);
    project.said(&words, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "further\n");
}

/// The change lands once the lock that a killed git has left is removed.
#[test]
fn leftover_git_lock_is_named() {
    let project = Project::new();
    let landed = project.said(&["--change", "fix"], 0);
    let ledger = project.ledger();
    let whole = std::fs::read_to_string(&ledger).unwrap();
    let mark = project.git(&["for-each-ref", "--format=%(refname)", "refs/consensus"]);
    // Killed after the branch was moved, before its mark was made; and before the branch was moved.
    for (lock, is_moved) in [(mark.as_str(), true), (mark.as_str(), false), ("refs/heads/main", false)] {
        std::fs::write(&ledger, whole.lines().take(2).collect::<Vec<_>>().join("\n") + "\n").unwrap();
        project.git(&["update-ref", "-d", &mark]);
        if !is_moved {
            project.git(&["update-ref", "refs/heads/main", "main^"]);
        }
        let lock = project.path().join(".git").join(format!("{lock}.lock"));
        std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
        std::fs::write(&lock, "").unwrap();
        let held = Finished::of(&mut project.approve(&["--change", "fix"])).exits(2);
        assert!(held.stderr.contains(".lock is there"), "{}", held.stderr);
        std::fs::remove_file(&lock).unwrap();
        let said = project.said(&["--change", "fix"], 0);
        assert_eq!((&said["outcome"], &said["commit"]), (&landed["outcome"], &landed["commit"]), "{said}");
        assert_eq!(project.main(), landed["commit"].as_str().unwrap());
    }
}

#[test]
fn proposing_landed_change_repeats_its_result() {
    let project = Project::new();
    let base = project.main();
    let patch = project.git(&["diff", "main", "fix"]);
    project.folder.write("fix.patch", &(patch + "\n"));
    let landed = project.said(&["--change", "fix", "-o", "proof.json"], 0);
    let read = |name: &str| std::fs::read_to_string(project.folder.path().join(name)).unwrap();
    for change in ["fix", "fix.patch"] {
        let again = project.said(&["--change", change, "-o", "again.json"], 0);
        assert_eq!(read("again.json"), read("proof.json"), "{change}");
        for key in ["outcome", "sequence", "commit", "votes", "run", "decision"] {
            assert_eq!(again[key], landed[key], "{change}: {key}");
        }
    }
    assert_eq!(project.git(&["rev-list", "--count", &format!("{base}..main")]), "1");
}

#[test]
fn kill_leaves_temp_folder_empty() {
    let project = Project::new();
    let [temp, marks] = ["temp", "marks"].map(|name| project.folder.path().join(name));
    std::fs::create_dir(&temp).unwrap();
    std::fs::create_dir(&marks).unwrap();
    let started = marks.join("started");
    let verify = format!("touch '{}'; exec sleep 60", started.display());
    let write = ["--sandbox-write", marks.to_str().unwrap()];
    let mut approve = project.approve(&["--change", "fix", "--verify", &verify]);
    approve.args(write);
    let mut approve =
        approve.env("TMPDIR", &temp).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !started.exists() {
        assert!(approve.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 1, "the files of the change");
    approve.kill().unwrap();
    approve.wait().unwrap();
    // The process that guards the command ends it, and removes its folder then.
    let began = Instant::now();
    while std::fs::read_dir(&temp).unwrap().count() > 0 {
        assert!(began.elapsed() < Duration::from_mins(1), "{:?}", std::fs::read_dir(&temp).unwrap().next());
        std::thread::yield_now();
    }
    let git = project.path().join(".git");
    let left = std::fs::read_dir(git)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("consensus-"));
    assert_eq!(left.count(), 0);
}
