//! Keys that are somewhere without their ledger, what the branch remembers of them, and how both are moved together.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Project;
use crate::support::{Finished, House, NAMES, Serving, consensus, git};

/// Copies a folder of keys without what they have signed.
fn copy_keys(project: &Project, from: &str, to: &str) {
    let (from, to) = (project.folder.path().join(from), project.folder.path().join(to));
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
}

/// Copies all that keys have signed.
fn copy_ledgers(project: &Project, from: &str, to: &str) {
    let place = |keys: &str| project.folder.path().join(keys).join("decisions");
    let _ = std::fs::remove_dir_all(place(to));
    let copied = Command::new("cp").arg("-r").args([place(from), place(to)]).status().unwrap();
    assert!(copied.success());
}

/// The command of a proposal of another copy of the repository, with other keys.
fn approve(project: &Project, repo: &str, keys: &str, words: &[&str]) -> Command {
    let mut command = consensus(&project.folder);
    command.args(["approve", "--repo", repo, "--keys", keys, "--mock", "--format", "json", "--quiet"]);
    command.args(words);
    command
}

fn runs(project: &Project) -> usize {
    std::fs::read_dir(project.folder.path().join("runs")).map_or(0, Iterator::count)
}

/// The roster's digest, as the program prints it.
fn roster_digest(project: &Project) -> String {
    let message = project.git(&["log", "-1", "--format=%(trailers:key=Consensus-Roster,valueonly)", "main"]);
    message.trim().to_owned()
}

/// The same branch with a commit that names no roster, which this program never writes.
fn without_rosters(project: &Project) {
    let message = project.git(&["log", "-1", "--format=%B", "main"]);
    let message: Vec<&str> = message.lines().filter(|line| !line.starts_with("Consensus-Roster")).collect();
    let tree = project.git(&["rev-parse", "main^{tree}"]);
    let commit = project.git(&["commit-tree", &tree, "-p", "main^", "-m", &message.join("\n")]);
    project.git(&["update-ref", "refs/heads/main", &commit]);
}

/// Keys that were copied continue with the next number once their ledger is there.
#[test]
fn keys_without_ledger_sign_nothing() {
    let project = Project::new();
    project.said(&["--change", "fix"], 0);
    let asked = runs(&project);
    // A fresh machine: a clone, in which there are no marks, and the keys alone, as a secret of a CI has them.
    project.git(&["clone", "--quiet", "--bare", ".", "../clone"]);
    project.branch("more", "more.py", "x = 1\n");
    git(&project.folder.path().join("clone"), &["fetch", "--quiet", "../repo", "more:more"]);
    copy_keys(&project, "keys", "fresh");
    let before = git(&project.folder.path().join("clone"), &["for-each-ref"]);
    let refused = Finished::of(&mut approve(&project, "clone", "fresh", &["--change", "more"])).exits(2);
    for part in ["carries decision 1 of these keys", "consensus keys export", "decisions/", &project.main()] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!(git(&project.folder.path().join("clone"), &["for-each-ref"]), before);
    assert_eq!(runs(&project), asked, "no model was asked");

    copy_ledgers(&project, "keys", "fresh");
    let landed = Finished::of(&mut approve(&project, "clone", "fresh", &["--change", "more"])).exits(0);
    let said: Value = serde_json::from_str(&landed.stdout).unwrap();
    assert_eq!(said["sequence"], 2, "{said}");
}

/// A ledger that has another decision at a place than the branch carries is refused.
#[test]
fn conflicting_ledger_signs_nothing() {
    let project = Project::new();
    copy_keys(&project, "keys", "other");
    project.git(&["clone", "--quiet", "--bare", ".", "../clone"]);
    // The same keys decide in two places: one rejects as decision 1 what the other lands as decision 1.
    let rejected = approve(&project, "clone", "other", &["--change", "fix", "--verdict", "reject"]).output();
    assert_eq!(rejected.unwrap().status.code(), Some(3));
    project.said(&["--change", "fix"], 0);
    project.branch("more", "more.py", "x = 1\n");
    let clone = project.folder.path().join("clone");
    git(&clone, &["fetch", "--quiet", "../repo", "main:main", "more:more"]);
    let refused = Finished::of(&mut approve(&project, "clone", "other", &["--change", "more"])).exits(2);
    assert!(refused.stderr.contains("has something else at that place"), "{}", refused.stderr);
}

/// Other keys begin to count at 1, since each roster has an order of its own.
#[test]
fn merged_or_rebased_decisions_are_remembered() {
    let project = Project::new();
    project.said(&["--change", "fix"], 0);
    assert!(roster_digest(&project).starts_with("sha256:"), "{}", roster_digest(&project));
    // The branch is merged into another one, and then all of it is moved to other commits.
    project.git(&["checkout", "--quiet", "-b", "side", "main^"]);
    project.folder.write("repo/side.py", "z = 3\n");
    project.commit("side");
    project.git(&["merge", "--quiet", "--no-edit", "refs/heads/main"]);
    project.git(&["checkout", "--quiet", "--detach"]);
    project.git(&["update-ref", "refs/heads/main", "side"]);
    project.branch("more", "more.py", "x = 1\n");
    copy_keys(&project, "keys", "fresh");
    let refused = Finished::of(&mut approve(&project, "repo", "fresh", &["--change", "more"])).exits(2);
    assert!(
        refused.stderr.contains("carries decision 1"),
        "it is behind the second parent: {}",
        refused.stderr
    );
    assert_eq!(project.said(&["--change", "more"], 0)["sequence"], 2);
    project.branch("again", "again.py", "x = 1\n");
    project.git(&["checkout", "--quiet", "main"]);
    project.git(&["commit", "--quiet", "--amend", "--no-edit", "--date", "2020-01-01T00:00:00Z"]);
    project.git(&["checkout", "--quiet", "--detach"]);
    assert_eq!(project.said(&["--change", "again"], 0)["sequence"], 3, "another commit of the same decision");

    Finished::of(consensus(&project.folder).args(["keys", "generate", "new", "--mock", "--quiet"])).exits(0);
    project.branch("last", "last.py", "x = 1\n");
    let landed = Finished::of(&mut approve(&project, "repo", "new", &["--change", "last"])).exits(0);
    let said: Value = serde_json::from_str(&landed.stdout).unwrap();
    assert_eq!(said["sequence"], 1, "each roster has an order of its own: {said}");
}

#[test]
fn commit_without_roster_is_of_no_keys() {
    let project = Project::new();
    project.said(&["--change", "fix"], 0);
    without_rosters(&project);
    project.branch("more", "more.py", "x = 1\n");
    Finished::of(consensus(&project.folder).args(["keys", "generate", "new", "--mock", "--quiet"])).exits(0);
    let landed = Finished::of(&mut approve(&project, "repo", "new", &["--change", "more"])).exits(0);
    let said: Value = serde_json::from_str(&landed.stdout).unwrap();
    assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(1)), "{said}");
    let word = ["--change", "more", "--ledger-starts-at", "2"];
    let refused = Finished::of(&mut approve(&project, "repo", "new", &word)).exits(2);
    assert!(refused.stderr.contains("--replica"), "{}", refused.stderr);
}

/// Takes away what this copy of the repository itself remembers.
fn without_marks(project: &Project) {
    for mark in project.git(&["for-each-ref", "--format=%(refname)", "refs/consensus"]).lines() {
        project.git(&["update-ref", "-d", mark]);
    }
}

/// Imported keys continue with the next number, and an import never takes a ledger back.
#[test]
fn keys_and_ledgers_move_together() {
    let project = Project::new();
    project.said(&["--change", "fix"], 0);
    let export = |file: &str, code| {
        let words = ["keys", "export", file, "--keys", "keys", "--format", "json"];
        Finished::of(consensus(&project.folder).args(words)).exits(code)
    };
    let import = |file: &str, keys: &str, code| {
        let words = ["keys", "import", file, "--keys", keys, "--format", "json"];
        Finished::of(consensus(&project.folder).args(words)).exits(code)
    };
    let said: Value = serde_json::from_str(&export("one.bundle", 0).stdout).unwrap();
    assert_eq!((&said["seats"].as_array().unwrap().len(), &said["ledgers"]), (&5, &json!(1)), "{said}");
    let bundle = project.folder.path().join("one.bundle");
    assert_eq!(std::fs::metadata(&bundle).unwrap().permissions().mode() & 0o777, 0o600);
    export("one.bundle", 2);

    import("one.bundle", "there", 0);
    for name in ["Security.key", "orchestrator.key"] {
        let mode =
            std::fs::metadata(project.folder.path().join("there").join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    project.branch("more", "more.py", "x = 1\n");
    let landed = Finished::of(&mut approve(&project, "repo", "there", &["--change", "more"])).exits(0);
    let said: Value = serde_json::from_str(&landed.stdout).unwrap();
    assert_eq!(said["sequence"], 2, "{said}");
    // What is there is never taken back, whatever is brought.
    let back = import("one.bundle", "there", 2);
    assert!(back.stderr.contains("it would go back"), "{}", back.stderr);
    // It grows by what another place has beyond it, and the same again changes nothing.
    let words = ["keys", "export", "two.bundle", "--keys", "there", "--quiet"];
    Finished::of(consensus(&project.folder).args(words)).exits(0);
    let said: Value = serde_json::from_str(&import("two.bundle", "keys", 0).stdout).unwrap();
    assert_eq!((&said["ledgers"], &said["seats"]), (&json!(1), &json!([])), "{said}");
    let said: Value = serde_json::from_str(&import("two.bundle", "keys", 0).stdout).unwrap();
    assert_eq!(said["ledgers"], 0, "{said}");
    project.branch("last", "last.py", "x = 1\n");
    assert_eq!(project.said(&["--change", "last"], 0)["sequence"], 3);
}

/// A bundle that was changed, is torn or belongs to other keys is refused.
#[test]
fn unfit_key_bundle_changes_nothing() {
    let project = Project::new();
    project.said(&["--change", "fix"], 0);
    Finished::of(consensus(&project.folder).args(["keys", "export", "keys.bundle", "--keys", "keys"]))
        .exits(0);
    let whole = std::fs::read_to_string(project.folder.path().join("keys.bundle")).unwrap();
    let place = |name: &str, text: &str| {
        let file = project.folder.write(name, text);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    let import = |file: &str, keys: &str, code| {
        Finished::of(consensus(&project.folder).args(["keys", "import", file, "--keys", keys])).exits(code)
    };
    place("bent.bundle", &whole.replacen("approve", "approvf", 1));
    assert!(import("bent.bundle", "there", 7).stderr.contains("another digest"));
    place("torn.bundle", &whole[..whole.len() / 2]);
    import("torn.bundle", "there", 7);
    place("none.bundle", "\u{0}\u{1}");
    import("none.bundle", "there", 7);
    assert!(!project.folder.path().join("there").exists());
    // It is a secret, wherever it lies.
    std::fs::set_permissions(
        project.folder.path().join("keys.bundle"),
        std::fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    assert!(import("keys.bundle", "there", 2).stderr.contains("can be read by others"));
    std::fs::set_permissions(
        project.folder.path().join("keys.bundle"),
        std::fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    // Other keys, and another ledger of the same ones.
    Finished::of(consensus(&project.folder).args(["keys", "generate", "others", "--mock", "--quiet"]))
        .exits(0);
    let before = std::fs::read_to_string(project.folder.path().join("others/roster.json")).unwrap();
    import("keys.bundle", "others", 2);
    assert_eq!(std::fs::read_to_string(project.folder.path().join("others/roster.json")).unwrap(), before);
    assert!(!project.folder.path().join("others/decisions").exists(), "nothing was imported");
    copy_keys(&project, "keys", "twin");
    project.git(&["update-ref", "refs/heads/main", "main^"]);
    without_marks(&project);
    let rejected = approve(&project, "repo", "twin", &["--change", "fix", "--verdict", "reject"]).output();
    assert_eq!(rejected.unwrap().status.code(), Some(3));
    let clash = import("keys.bundle", "twin", 2);
    assert!(clash.stderr.contains("they were at work in two places"), "{}", clash.stderr);
    // A process that writes to a ledger is let finish.
    let held = std::fs::File::open(project.ledger()).unwrap();
    held.lock().unwrap();
    let words = ["keys", "export", "busy.bundle", "--keys", "keys"];
    let busy = Finished::of(consensus(&project.folder).args(words)).exits(2);
    assert!(busy.stderr.contains("in use"), "{}", busy.stderr);
    assert!(!project.folder.path().join("busy.bundle").exists());
}

/// What a reviewer says that does not begin to serve.
fn refused(house: &House, name: &str, words: &[&str]) -> String {
    let mut command = consensus(&house.project.folder);
    let of = format!("of/{name}");
    command.args(["approve", "--replica", name, "--peers", "peers.toml", "--keys", &of, "--mock"]);
    command.args(["--repo", &format!("{of}/copy")]).args(words);
    Finished::of(&mut command).exits(2).stderr
}

fn fetch_all(house: &House) {
    for name in NAMES {
        let copy = house.path(&format!("of/{name}/copy"));
        git(&copy, &["fetch", "--quiet", "../../../repo", "+refs/heads/*:refs/heads/*"]);
    }
}

/// A proposer whose ledger was left behind is refused too.
#[test]
fn reviewer_without_its_log_signs_nothing() {
    let house = House::new();
    let serving: Vec<Serving> = NAMES.iter().map(|name| house.serve(name, &["--mock"])).collect();
    house.said(&["--change", "fix"], 0);
    drop(serving);
    fetch_all(&house);
    house.project.branch("more", "more.py", "x = 1\n");
    let decisions = |name: &str| house.path(&format!("of/{name}/decisions"));
    let kept: Vec<PathBuf> = NAMES.iter().chain(&["orchestrator"]).map(|name| decisions(name)).collect();
    let away = |path: &Path| path.with_file_name("away");
    for path in &kept {
        std::fs::rename(path, away(path)).unwrap();
    }
    let asked = runs(&house.project);
    let said = Finished::of(&mut house.propose(&["--change", "more"])).exits(2);
    assert!(said.stderr.contains("carries decision 1 of these keys"), "{}", said.stderr);
    assert_eq!(runs(&house.project), asked);
    for name in NAMES {
        let said = refused(&house, name, &[]);
        assert!(said.contains("carries decision 1 of these keys"), "{name}: {said}");
        let log = std::fs::read_dir(decisions(name)).unwrap().next().unwrap().unwrap().path();
        let log = log.join("peers").join(name).join("journal.jsonl");
        assert_eq!(std::fs::metadata(log).unwrap().len(), 0, "{name} has signed nothing");
    }
    // With their ledgers they go on.
    for path in &kept {
        std::fs::remove_dir_all(path).unwrap();
        std::fs::rename(away(path), path).unwrap();
    }
    let _serving: Vec<Serving> = NAMES.iter().map(|name| house.serve(name, &["--mock"])).collect();
    assert_eq!(house.said(&["--change", "more"], 0)["sequence"], 2);
}

#[test]
fn late_reviewer_learns_decisions_before_signing() {
    let house = House::new();
    let mut serving: Vec<Serving> = NAMES[1..].iter().map(|name| house.serve(name, &["--mock"])).collect();
    house.said(&["--change", "fix"], 0);
    fetch_all(&house);
    house.project.branch("more", "more.py", "x = 1\n");
    assert!(refused(&house, "Quality", &[]).contains("--ledger-starts-at 2"));
    let mut quality = house.serve("Quality", &["--mock", "--ledger-starts-at", "2"]);
    quality.wait_for("decision 1: approved:");
    // It is needed from here on.
    drop(serving.pop());
    let said = house.said(&["--change", "more"], 0);
    assert_eq!((&said["sequence"], &said["silent"]), (&json!(2), &json!(["Compatibility"])), "{said}");
    drop(quality);
    assert!(refused(&house, "Quality", &["--ledger-starts-at", "3"]).contains("starts at decision 2"));
}

/// The model of a reviewer that has not voted is unknown.
#[test]
fn only_signed_models_are_claimed() {
    let house = House::new();
    let _serving: Vec<Serving> = NAMES.iter().map(|name| house.serve(name, &["--mock"])).collect();
    let propose = house.propose(&["--change", "fix", "-o", "proof.json"]);
    // Without --quiet, so that all of the story is heard.
    let words: Vec<_> = propose.get_args().filter(|word| *word != "--quiet").map(ToOwned::to_owned).collect();
    let mut command = consensus(&house.project.folder);
    command.args(words).stdin(Stdio::null());
    let landed = Finished::of(&mut command).exits(0);
    assert_eq!(
        landed.stderr.matches("quorum: 3 of 4; tolerates 1 faulty reviewer.").count(),
        1,
        "{}",
        landed.stderr
    );
    let said: Value = serde_json::from_str(&landed.stdout).unwrap();
    let votes = said["votes"].as_array().unwrap();
    let at = json!({"endpoint": "mock", "model": "mock"});
    assert!(votes.len() >= 3 && votes.iter().all(|vote| vote["signed_model"] == at), "{said}");
    // A reviewer that has not voted has said nothing of a model.
    let after = match votes.len() {
        4 => "All use the same model, so a shared error is not tolerated.",
        _ => "The model of 1 reviewer is unknown, so a shared error is not excluded.",
    };
    assert!(landed.stderr.contains(after), "{}", landed.stderr);
    let verify = ["verify", "proof.json", "--keys", "of/Quality"];
    let verified = Finished::of(consensus(&house.project.folder).args(verify)).exits(0);
    assert!(
        verified.stdout.contains("(mock) approves") && verified.stdout.contains(after),
        "{}",
        verified.stdout
    );
}
