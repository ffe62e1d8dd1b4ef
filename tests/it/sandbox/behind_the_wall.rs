//! Nothing that a model or a change brings gets out of the sandbox, holds the machine up, or is left running.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{checked, executions, processes_with};
use crate::support::{Finished, Folder, TALK, consensus};

/// A user whom no system has.
const USER: u32 = 65_533;

/// The hostile program in the folder of the test, where a check may read it.
fn hostile(folder: &Folder) -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_consensus")).with_file_name("examples").join("hostile");
    let own = folder.path().join("hostile");
    std::fs::copy(built, &own).unwrap();
    own
}

/// Returns the output of the only execution, and how it ended.
fn said(folder: &Folder) -> (String, Value) {
    let mut executed = executions(folder).pop().unwrap();
    let said = executed["result"]["output"].as_str().unwrap().to_owned();
    (said, executed["result"]["end"].take())
}

/// What the hostile program must not be able to do, in its own words.
fn is_walled_in(report: &str) {
    let done: Vec<&str> = report.lines().filter_map(|line| line.strip_suffix(": done")).collect();
    assert_eq!(done, ["read check.txt", "pair", "use the scratch folder"], "{report}");
    let names = report.lines().find_map(|line| line.strip_prefix("environment: ")).unwrap();
    let known =
        ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER", "CARGO_HOME", "RUSTUP_HOME"];
    let unknown: Vec<&str> = names
        .split(' ')
        .filter(|name| ![&known[..], &["JAVA_HOME", "GOPATH", "PWD"]].concat().contains(name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// A command reaches nothing except the things that it is given.
#[test]
fn hostile_command_is_walled_in() {
    let folder = Folder::new();
    let hostile = hostile(&folder);
    folder.write("check.txt", "x");
    let secret = Folder::new();
    secret.write("key", "secret");
    let _agent = UnixListener::bind(secret.path().join("agent.sock")).unwrap();
    let beside = secret.path().to_str().unwrap();
    let check = format!(
        "exec {} report check.txt {beside}/key /etc/shadow /proc/1/environ /proc/self/root/etc/shadow @{beside} @. @/tmp",
        hostile.display()
    );
    checked(&folder, &check, &[]).exits(0);
    let (report, end) = said(&folder);
    assert_eq!(end, json!({"exit": 0}));
    is_walled_in(&report);
    assert!(!folder.path().join("left").exists() && !secret.path().join("left").exists());
}

/// A process may read a few files about itself, and none that shows the machine.
#[test]
fn a_process_reads_little_about_itself() {
    let about_self = |names: &str| {
        let files: Vec<String> = names.split(' ').map(|name| format!("/proc/self/{name}")).collect();
        checked(&Folder::new(), &format!("exec cat {}", files.join(" ")), &[])
    };
    about_self("cgroup maps stat statm status").exits(0);
    for name in ["net/tcp", "net/unix", "net/route", "mountinfo", "mounts", "environ"] {
        about_self(name).exits(3);
    }
    checked(&Folder::new(), "exec ls /proc/self/fd", &[]).exits(0);
}

/// A process may make itself slower, and not the other processes of its user or its group.
#[test]
fn a_command_slows_no_other_process() {
    if Command::new("renice").arg("--version").output().is_err() {
        eprintln!("renice: SKIPPED, this machine has none");
        return;
    }
    checked(&Folder::new(), "nice -n 5 true", &[]).exits(0);
    for of_others in ["-u 0", "-g 0"] {
        let check = format!("if renice -n 19 {of_others}; then exit 0; else exit 1; fi");
        checked(&Folder::new(), &check, &[]).exits(3);
    }
}

/// Returns the program as an ordinary user runs it in this folder, which becomes that user's. Where the tests are not those of root, that
/// user is their own.
fn as_a_user(folder: &Folder) -> Command {
    let inherited = consensus(folder);
    let program = folder.path().join("consensus");
    std::fs::copy(env!("CARGO_BIN_EXE_consensus"), &program).unwrap();
    let mut command = Command::new(&program);
    if nix::unistd::geteuid().is_root() {
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        chown(folder.path(), Some(USER), Some(USER)).unwrap();
        command.uid(USER).gid(USER);
    }
    command.current_dir(folder.path()).env_clear();
    command.envs(inherited.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", "/usr/bin:/bin").env("OPENAI_API_KEY", "sk-secret");
    command
}

/// The command of an ordinary user takes all permissions from its folders, and nothing is left.
#[test]
fn closed_scratch_folders_are_removed() {
    let folder = Folder::new();
    let places = Folder::new();
    let mut command = as_a_user(&folder);
    std::fs::set_permissions(places.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let check =
        "cd \"$TMPDIR\" && mkdir -p a/b && touch a/b/c && chmod 000 a/b && chmod 000 a && chmod 000 .";
    let words = ["run", "-q", "--mock", "--answer", "4", "--thinking", "none", "--prompt", "2+2?", "--check"];
    Finished::of(command.env("TMPDIR", places.path()).args(words).arg(check).args(TALK)).exits(0);
    assert_eq!(std::fs::read_dir(places.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn ordinary_user_is_walled_in() {
    let folder = Folder::new();
    let mut command = as_a_user(&folder);
    let hostile = hostile(&folder);
    folder.write("check.txt", "x");
    let check = format!("exec {} report check.txt /etc/shadow /proc/1/environ @. @/tmp", hostile.display());
    let words = ["run", "-q", "--mock", "--answer", "4", "--thinking", "none", "--prompt", "2+2?", "--check"];
    Finished::of(command.args(words).arg(check).args(TALK)).exits(0);
    is_walled_in(&said(&folder).0);
}

/// Runs the hostile program, and returns how it ended and what it said. Nothing of it may be left.
fn ends(word: &str, time: &str) -> (String, Value) {
    let folder = Folder::new();
    let hostile = hostile(&folder);
    let began = Instant::now();
    let check = format!("exec {} {word}", hostile.display());
    checked(&folder, &check, &["--check-timeout", time]).exits(3);
    let took = began.elapsed();
    assert!(took < Duration::from_mins(1), "{word} took {took:?}");
    assert_eq!(processes_with(folder.path()), Vec::<String>::new(), "{word}");
    said(&folder)
}

#[test]
fn inherited_files_are_not_passed_on() {
    let folder = Folder::new();
    let secret = Folder::new();
    secret.write("key", "secret");
    folder.write("script", "cat <&9; echo x >&9; exit 0");
    let script = "exec 9<>\"$1\"; shift; exec \"$@\"";
    let own = consensus(&folder);
    let mut command = Command::new("sh");
    command.current_dir(folder.path());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.args(["-c", script, "sh"]).arg(secret.path().join("key")).arg(env!("CARGO_BIN_EXE_consensus"));
    command.args(["run", "-q", "--mock", "--answer", "4", "--prompt", "2+2?", "--check", "sh script"]);
    Finished::of(&mut command).exits(0);
    assert!(!said(&folder).0.contains("secret"), "{}", said(&folder).0);
    assert_eq!(std::fs::read_to_string(secret.path().join("key")).unwrap(), "secret");
}

/// A check can start 1500 short processes and still pass.
#[test]
fn ended_processes_fill_no_table() {
    let folder = Folder::new();
    let check = "i=0; while [ $i -lt 1500 ]; do (true &) || exit 1; i=$((i+1)); done; exit 0";
    checked(&folder, check, &["--check-timeout", "60s"]).exits(0);
}

#[test]
fn a_command_that_never_ends_is_ended() {
    for word in ["loop", "sleep", "print"] {
        assert_eq!(ends(word, "1s").1, "time", "{word}");
    }
}

#[test]
fn no_command_takes_all_memory() {
    let (said, end) = ends("allocate", "60s");
    // The limit of a process refuses so much at once.
    assert!(end == json!({"signal": 6}) || end == "memory", "{end}: {said}");
    assert!(!said.contains("allocated"), "{said}");
    assert_eq!(ends("allocate-apart", "60s").1, "memory");
}

#[test]
fn no_command_fills_the_table_of_processes() {
    let (said, end) = ends("fork", "5s");
    assert_eq!(end, "time", "{said}");
    let started: usize =
        said.lines().find_map(|line| line.strip_prefix("started ")).unwrap().parse().unwrap();
    assert!(started < 1_000, "{said}");
}

#[test]
fn without_a_sandbox_the_result_says_so() {
    let folder = Folder::new();
    let other = Folder::new();
    let check = format!("echo x > {}/mark", other.path().display());
    let refused = checked(&folder, &check, &[]).exits(3);
    assert!(!other.path().join("mark").exists(), "{}", refused.stderr);
    std::fs::remove_dir_all(folder.path().join("runs")).unwrap();
    let named = ["--sandbox-write", other.path().to_str().unwrap()];
    checked(&folder, &check, &named).exits(0);
    std::fs::remove_file(other.path().join("mark")).unwrap();
    std::fs::remove_dir_all(folder.path().join("runs")).unwrap();
    checked(&folder, &check, &["--no-sandbox"]).exits(0);
    assert!(other.path().join("mark").exists());
    let degraded = folder.result()["degraded"].take();
    assert_eq!(degraded[0]["kind"], "no_sandbox", "{degraded}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn user_grants_network_and_places() {
    let folder = Folder::new();
    let other = Folder::new();
    other.write("word", "x");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (program, place) = (hostile(&folder), other.path().display());
    let network = format!("exec {} connect {}", program.display(), server.local_addr().unwrap());
    let reads = format!("cat {place}/word");
    let writes = format!("echo y > {place}/word");
    let ends = |check: &str, words: &[&str], code| {
        checked(&folder, check, words).exits(code);
        std::fs::remove_dir_all(folder.path().join("runs")).unwrap();
    };
    let beside = other.path().to_str().unwrap();
    for (check, words) in [
        (&network, &["--sandbox-net"][..]),
        (&reads, &["--sandbox-read", beside]),
        (&writes, &["--sandbox-write", beside]),
    ] {
        ends(check, &[], 3);
        ends(check, words, 0);
    }
    let own = "config/consensus/config.toml";
    for (check, setting) in [
        (&network, "net = true".to_owned()),
        (&reads, format!("read = [\"{place}\", \"~/not-here\"]")),
        (&writes, format!("write = [\"{place}\"]")),
    ] {
        folder.write(own, &format!("[sandbox]\n{setting}\n"));
        ends(check, &[], 0);
    }
    ends(&network, &[], 3);
}

/// A place for the sandbox that does not exist is refused before any run begins.
#[test]
fn missing_place_is_refused() {
    let folder = Folder::new();
    let refused = checked(&folder, "true", &["--sandbox-read", "nowhere"]).exits(2);
    assert!(refused.stderr.contains("the sandbox cannot give access to `nowhere`"), "{}", refused.stderr);
    assert!(!folder.path().join("runs").exists());
}
