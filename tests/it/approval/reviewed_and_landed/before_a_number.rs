//! What is known of reviewers in processes of their own before a decision has a number, and what is printed while they vote.

use std::io::BufReader;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{Finished, House, NAMES, Serving, consensus, git};

const APART: [&str; 4] = ["--peers", "peers.toml", "--keys", "of/orchestrator"];

fn serve_all(house: &House, words: &[&str]) -> Vec<Serving> {
    NAMES.iter().map(|name| house.serve(name, words)).collect()
}

/// Asks who could take part, as a table.
fn table(house: &House, code: i32) -> Finished {
    let mut command = consensus(&house.project.folder);
    Finished::of(command.args(["approve", "--check", "--repo", "repo"]).args(APART)).exits(code)
}

/// Brings `main` to the tip of another branch, which no reviewer's copy has.
fn move_main(house: &House, branch: &str) -> String {
    house.project.branch(branch, &format!("{branch}.py"), "x = 1\n");
    house.project.git(&["update-ref", "refs/heads/main", &format!("refs/heads/{branch}")]);
    house.project.main()
}

#[test]
fn a_base_that_nobody_has_is_no_decision() {
    let house = House::new();
    let serving = serve_all(&house, &["--mock"]);
    let base = move_main(&house, "moved");
    house.project.branch("more", "more.py", "y = 1\n");
    let refused = Finished::of(&mut house.propose(&["--change", "more"])).exits(2).stderr;
    let said = format!("4 of 4 reviewers lack the base {} (Quality, Security", &base[..12]);
    assert!(
        refused.contains(&said) && refused.contains("push main to where they fetch it from"),
        "{refused}"
    );
    drop(serving);
    // Nothing was numbered: the first decision comes once they have it.
    let _serving = serve_all(&house, &["--mock", "--fetch", "./repo"]);
    let said = house.said(&["--change", "more"], 0);
    assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(1)), "{said}");
}

#[test]
fn check_lists_ready_reviewers_without_deciding() {
    let house = House::new();
    let mut serving = vec![
        house.serve("Quality", &["--mock", "--verify", "true"]),
        house.serve("Security", &["--mock"]),
        house.serve("Performance", &["--mock", "--fetch", "./repo"]),
    ];
    let finished = table(&house, 0);
    let line = |name: &str| finished.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let program = format!("ready; {}", consensus::program::PROGRAM);
    assert!(
        line("Quality").ends_with(&format!("{program}; runs a command before it approves")),
        "{}",
        finished.stdout
    );
    assert!(line("Security").ends_with(&program), "{}", finished.stdout);
    let away = line("Compatibility");
    let peers = std::fs::read_to_string(house.path("peers.toml")).unwrap();
    let address =
        peers.lines().find(|line| line.starts_with("Compatibility")).unwrap().split('"').nth(1).unwrap();
    assert!(
        away.contains("cannot be reached: Connection refused") && away.contains(&format!("({address})")),
        "{away}"
    );
    assert!(
        finished.stderr.contains("3 of 4 reviewers are ready, and a decision needs 3"),
        "{}",
        finished.stderr
    );

    // Only one of them gets what it lacks.
    move_main(&house, "moved");
    let mut command = consensus(&house.project.folder);
    command.args(["approve", "--check", "--repo", "repo", "--format", "json"]).args(APART);
    let said: Value = serde_json::from_str(&Finished::of(&mut command).exits(3).stdout).unwrap();
    assert_eq!((&said["has_quorum"], &said["ready"], &said["quorum"]), (&json!(false), &json!(1), &json!(3)));
    let states: Vec<&Value> = (0..4).map(|at| &said["reviewers"][at]["state"]).collect();
    assert_eq!(states, ["lacks_base", "lacks_base", "ready", "away"], "{said}");
    // They review for another branch.
    house.project.git(&["branch", "--quiet", "dev", "main"]);
    let mut command = consensus(&house.project.folder);
    command.args(["approve", "--change", "fix", "--base", "dev", "--repo", "repo"]).args(APART);
    let refused = Finished::of(&mut command).exits(2).stderr;
    assert!(refused.contains("3 of 4 reviewers review for another branch than dev"), "{refused}");
    // No number was used, and no reviewer has voted.
    serving.clear();
    let logs = house.path("of/orchestrator/decisions");
    assert!(!logs.exists() || !is_there(&logs, "journal.jsonl"), "asking writes no log");
}

/// Whether a file of this name lies somewhere below a folder and is not empty.
fn is_there(folder: &Path, name: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let entry = entry.unwrap();
        let path = entry.path();
        if path.is_dir() {
            is_there(&path, name)
        } else {
            entry.file_name() == name && path.metadata().unwrap().len() > 0
        }
    })
}

/// Any clone serves a reviewer that fetches, and its branches and files stay as they are.
#[test]
fn fetching_reviewer_leaves_its_clone_alone() {
    let house = House::new();
    for name in NAMES {
        let copy = house.path(&format!("of/{name}/copy"));
        std::fs::remove_dir_all(&copy).unwrap();
        house.project.git(&["clone", "--quiet", "--branch", "main", ".", copy.to_str().unwrap()]);
        // What some clones do: their branches follow those of the remote, by force.
        git(&copy, &["config", "--add", "remote.origin.fetch", "+refs/heads/*:refs/heads/*"]);
        // A person works in it.
        std::fs::write(copy.join("sum.py"), "changed = True\n").unwrap();
    }
    let _serving = serve_all(&house, &["--mock", "--fetch", "origin"]);
    let first = house.project.main();
    house.said(&["--change", "fix"], 0);
    house.project.branch("more", "more.py", "x = 1\n");
    let said = house.said(&["--change", "more"], 0);
    assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(2)), "{said}");
    for name in NAMES {
        let copy = house.path(&format!("of/{name}/copy"));
        for place in ["HEAD", "refs/heads/main", "refs/remotes/origin/main"] {
            assert_eq!(git(&copy, &["rev-parse", place]), first, "{name}: {place}");
        }
        assert_eq!(std::fs::read_to_string(copy.join("sum.py")).unwrap(), "changed = True\n", "{name}");
    }
}

/// Flags that only a reviewer may have are refused for a proposal.
#[test]
fn check_reports_failed_fetch() {
    let house = House::new();
    let _serving = serve_all(&house, &["--mock", "--fetch", "gone"]);
    move_main(&house, "moved");
    let stdout = table(&house, 3).stdout;
    assert!(
        stdout.contains("lacks the base") && stdout.contains("(cannot fetch from gone: fatal: 'gone'"),
        "{stdout}"
    );
    for flag in [&["--fetch", "origin"][..], &["--review-timeout", "1m"]] {
        let mut command = house.propose(&["--change", "fix"]);
        let refused = Finished::of(command.args(flag)).exits(2).stderr;
        assert!(refused.contains("cannot be used with"), "{refused}");
    }
}

/// A copy that lacks objects asks no remote for them before it answers.
#[test]
fn partial_clone_answers_without_its_remote() {
    let house = House::new();
    let copy = house.path("of/Security/copy");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/nothing", silent.local_addr().unwrap());
    for (name, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &url),
    ] {
        git(&copy, &["config", name, value]);
    }
    let _security = house.serve("Security", &["--mock"]);
    move_main(&house, "moved");
    let stdout = table(&house, 3).stdout;
    assert!(
        stdout.lines().any(|line| line.starts_with("Security") && line.contains("lacks the base")),
        "{stdout}"
    );
}

/// The table distinguishes a stranger at the address of a reviewer from a reviewer who is away.
#[test]
fn wrong_key_at_address_is_reported() {
    let house = House::new();
    let _security = house.serve("Security", &["--mock"]);
    let peers = std::fs::read_to_string(house.path("peers.toml")).unwrap();
    let swapped = peers.replace("Quality", "?").replace("Security", "Quality").replace('?', "Security");
    house.project.folder.write("peers.toml", &swapped);
    let stdout = table(&house, 3).stdout;
    let is_stranger = |line: &str| line.contains("the key that answers there is not the one in the roster");
    assert!(stdout.lines().any(|line| line.starts_with("Quality") && is_stranger(line)), "{stdout}");
}

/// A ref that was fetched long ago does not hide a decision that the branch itself carries.
#[test]
fn stale_fetch_hides_no_decision() {
    let house = House::new();
    let serving = serve_all(&house, &["--mock", "--fetch", "./repo"]);
    house.said(&["--change", "fix"], 0);
    drop(serving);
    let copy = house.path("of/Security/copy");
    let first = git(&copy, &["rev-parse", "refs/heads/main"]);
    git(&copy, &["fetch", "--quiet", "../../../repo", "+main:main"]);
    git(&copy, &["update-ref", "refs/consensus/fetched/main", &first]);
    std::fs::remove_dir_all(house.path("of/Security/decisions")).unwrap();
    // Its log is lost, and its remote is away: it must not begin anew.
    let mut command = consensus(&house.project.folder);
    command.args(["approve", "--replica", "Security", "--keys", "of/Security", "--repo", "of/Security/copy"]);
    command.args(["--peers", "peers.toml", "--mock", "--fetch", "./gone"]);
    let refused = Finished::of(&mut command).exits(2).stderr;
    assert!(refused.contains("carries decision 1"), "{refused}");
}

#[test]
fn moved_base_ends_waiting_proposal() {
    let house = House::new();
    let _serving: Vec<Serving> =
        ["Quality", "Security"].map(|name| house.serve(name, &["--mock", "--fetch", "./repo"])).into();
    let mut command = consensus(&house.project.folder);
    command.args(["approve", "--change", "fix", "--repo", "repo"]).args(APART);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let story = BufReader::new(child.stderr.take().unwrap());
    let mut proposer = Serving { child, story, output: String::new() };
    proposer.wait_for("2 of 4 reviewers are ready, and a decision needs 3");
    move_main(&house, "moved");
    let _third = house.serve("Performance", &["--mock"]);
    proposer.wait_for("`refs/heads/main` moved while the program waited for reviewers");
    assert_eq!(proposer.child.wait().unwrap().code(), Some(2));
}

#[test]
#[cfg(target_os = "linux")]
fn hanging_fetch_ends_with_its_reviewer() {
    let house = House::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/nothing", silent.local_addr().unwrap());
    let mut command = consensus(&house.project.folder);
    command.args(["approve", "--replica", "Security", "--keys", "of/Security", "--repo", "of/Security/copy"]);
    command.args(["--peers", "peers.toml", "--mock", "--fetch", &url]).stderr(Stdio::null());
    let mut reviewer = command.spawn().unwrap();
    // Those that name the place, but for the reviewer itself: its guard, and git.
    let others = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
        let lines = all.filter_map(|file| std::fs::read_to_string(file).ok());
        lines.filter(|line| line.contains(&url) && line.contains("fetch\0--quiet")).count()
    };
    let until = |is_so: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(40), "{} processes", others());
            std::thread::yield_now();
        }
    };
    until(&|| others() > 0);
    reviewer.kill().unwrap();
    reviewer.wait().unwrap();
    until(&|| others() == 0);
}

#[test]
fn missing_command_is_an_abstention() {
    let house = House::new();
    let mut security = house.serve("Security", &["--mock", "--verify", "no-such-command"]);
    let _others: Vec<Serving> =
        ["Quality", "Performance", "Compatibility"].map(|name| house.serve(name, &["--mock"])).into();
    house.said(&["--change", "fix"], 0);
    security.wait_for(
        "voted abstain: the command of this reviewer cannot be started: it ended with exit code 127",
    );
}

/// A proposer prints who has voted how, who is awaited, and until when.
#[test]
fn proposer_sees_votes_and_awaited_reviewers() {
    let house = House::new();
    let mut serving: Vec<Serving> = ["Quality", "Security"].map(|name| house.serve(name, &["--mock"])).into();
    let endless = ["--mock", "--verdict", "reject", "--review-timeout", "10000y"];
    serving.push(house.serve("Performance", &endless));
    let slow = "{\"delay_ms\": 1500, \"policy\": \"honest\", \"answer\": \"approve\"}\n";
    house.project.folder.write("slow.jsonl", slow);
    serving.push(house.serve("Compatibility", &["--mock-script", "slow.jsonl"]));
    let mut command = consensus(&house.project.folder);
    command.args(["approve", "--change", "fix", "--repo", "repo"]).args(APART);
    let stderr = Finished::of(&mut command).exits(0).stderr;
    let until = |line: &&str| {
        line.contains("awaited: Quality, Security, Performance, Compatibility, who have until 20")
    };
    assert!(stderr.lines().any(|line| until(&line) && line.ends_with('Z')), "{stderr}");
    let waits = "approve: Quality, Security; reject: Performance; awaited: Compatibility, who have until";
    assert!(stderr.lines().any(|line| line.starts_with(waits)), "{stderr}");
    assert!(stderr.contains("approve: Quality, Security, Compatibility; reject: Performance\n"), "{stderr}");
    // A reviewer's own lines say when, and what it said.
    let voted = serving[2].wait_for("decision 1: this reviewer voted reject (");
    let story = &serving[2].output;
    assert!(!story.contains("of 1 reviewers") && !story.contains("agree"), "one is no quorum: {story}");
    let time = voted.split(' ').next().unwrap();
    assert!(time.len() == "2026-01-01T00:00:00Z".len() && time.ends_with('Z'), "{voted}");
}

/// Commands of reviewers lower the risk score only where each quorum has a reviewer that runs one.
#[test]
fn commands_in_each_quorum_lower_risk() {
    let house = House::new();
    let risk = |verifying: usize| {
        let words = |at| if at < verifying { &["--mock", "--verify", "true"][..] } else { &["--mock"] };
        let _serving: Vec<Serving> =
            NAMES.iter().enumerate().map(|(at, name)| house.serve(name, words(at))).collect();
        let branch = format!("change-{verifying}");
        house.project.branch(&branch, &format!("{branch}.py"), "x = 1\n");
        let said = house.said(&["--change", &branch], 0);
        for name in NAMES {
            git(
                &house.path(&format!("of/{name}/copy")),
                &["fetch", "--quiet", "../../../repo", "+main:main"],
            );
        }
        said["facts"]["risk"]["score"].clone()
    };
    // Three of four must approve: one of any two who verify is among them.
    assert_eq!([1, 2].map(risk), [json!(10), json!(0)]);
}

/// The command of the unit starts a reviewer, and its end after SIGTERM counts as success.
#[test]
fn systemd_unit_starts_and_stops_reviewer() {
    let unit = include_str!("../../../../docs/consensus-replica@.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let start = start.replace("%i", "Security").replace("$REVIEWER_FLAGS", "--mock");
    let words = shlex::split(&start).unwrap();
    let house = House::new();
    let place = house.path("of/Security");
    std::fs::copy(house.path("peers.toml"), place.join("peers.toml")).unwrap();
    std::os::unix::fs::symlink(".", place.join("keys")).unwrap();
    let mut command = consensus(&house.project.folder);
    command.current_dir(&place).args(&words[1..]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let story = BufReader::new(child.stderr.take().unwrap());
    let mut security = Serving { child, story, output: String::new() };
    security.wait_for("Security: heard at");
    security.signal(Signal::SIGTERM);
    let code = security.child.wait().unwrap().code();
    assert!(code.is_some_and(|code| unit.contains(&format!("SuccessExitStatus={code}\n"))), "{code:?}");
}
