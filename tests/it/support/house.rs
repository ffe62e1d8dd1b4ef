//! Reviewers and an orchestrator, each as a process with its own key and its own copy of the repository.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::process::{Finished, consensus};
use super::project::Project;

pub const NAMES: [&str; 4] = ["Quality", "Security", "Performance", "Compatibility"];

/// A project whose reviewers each have a folder with their own key, the roster, and a copy of the repository.
pub struct House {
    pub project: Project,
}

/// A reviewer that runs, a minute at most; it is killed when it is dropped.
pub struct Serving {
    pub child: Child,
    pub story: BufReader<ChildStderr>,
    pub output: String,
}

impl Serving {
    /// Reads what it tells until a line holds this.
    #[track_caller]
    pub fn wait_for(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            let count = self.story.read_line(&mut line).unwrap();
            assert!(count > 0, "it has ended without `{part}`: {}", self.output);
            self.output.push_str(&line);
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Sends the process a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address of this machine on which nothing else listens or calls. Beside other tests a port of 127.0.0.1 may be taken
/// by someone's call while its process is dead.
fn own_address() -> Ipv4Addr {
    static COUNT: AtomicU8 = AtomicU8::new(2);
    if !cfg!(target_os = "linux") {
        return Ipv4Addr::LOCALHOST;
    }
    let [_, _, high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, COUNT.fetch_add(1, Ordering::Relaxed), high, low)
}

impl House {
    pub fn new() -> Self {
        let project = Project::new();
        let parties = NAMES.iter().chain(&["orchestrator"]);
        let mut seats = Vec::new();
        for name in parties.clone() {
            let words = ["keys", "generate", &format!("of/{name}"), "--only", name, "--mock", "--quiet"];
            let made = Finished::of(consensus(&project.folder).args(words)).exits(0);
            seats.push(made.stdout.trim().to_owned());
        }
        let own = own_address();
        let ports: Vec<TcpListener> = parties.clone().map(|_| TcpListener::bind((own, 0)).unwrap()).collect();
        let places = parties.clone().zip(&ports);
        let places = places.map(|(name, port)| format!("{name} = \"{}\"", port.local_addr().unwrap()));
        project.folder.write("peers.toml", &places.collect::<Vec<_>>().join("\n"));
        for name in parties {
            let folder = format!("of/{name}");
            let mut join = consensus(&project.folder);
            join.args(["keys", "join", &folder, "--quiet"]).args(&seats);
            Finished::of(&mut join).exits(0);
            let copy = format!("../of/{name}/copy");
            project.git(&["clone", "--quiet", "--bare", ".", &copy]);
        }
        Self { project }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.project.folder.path().join(name)
    }

    /// Starts a reviewer, and waits until it can be heard.
    pub fn serve(&self, name: &str, words: &[&str]) -> Serving {
        let mut command = consensus(&self.project.folder);
        let of = format!("of/{name}");
        command.args(["approve", "--replica", name, "--peers", "peers.toml", "--keys", &of]);
        command.args(["--repo", &format!("{of}/copy"), "--runs-dir", &format!("{of}/runs")]);
        // A test that waits for a line which never comes is not to wait for ever.
        if !words.contains(&"--deadline") {
            command.args(["--deadline", "60s"]);
        }
        command.args(words);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let story = BufReader::new(child.stderr.take().unwrap());
        let mut serving = Serving { child, story, output: String::new() };
        serving.wait_for("heard at");
        serving
    }

    pub fn propose(&self, words: &[&str]) -> Command {
        let mut command = consensus(&self.project.folder);
        command.args(["approve", "--repo", "repo", "--peers", "peers.toml", "--keys", "of/orchestrator"]);
        command.args(["--format", "json", "--quiet"]).args(words);
        command
    }

    pub fn said(&self, words: &[&str], code: i32) -> Value {
        serde_json::from_str(&Finished::of(&mut self.propose(words)).exits(code).stdout).unwrap()
    }
}
