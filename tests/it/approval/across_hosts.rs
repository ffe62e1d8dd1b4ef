//! Reviewers and an orchestrator on five hosts, over a network that fails: a decision lands once or not at all.
//!
//! In: processes of the program, each in a network namespace of its own, and a fault at a defined moment of a decision.
//! Out: the branch, the records and the logs that they leave. No test here waits for a time to pass: each fault follows a
//! line that a reviewer wrote, and each wait ends with the deadline of a process. Where the system has no namespaces, the
//! tests say so and end.

mod namespaces;
mod relay;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{Finished, House, NAMES, Serving, consensus};
use namespaces::{HUB, Hosts};
use relay::{Line, Relay};

const QUALITY: usize = 0;
const SECURITY: usize = 1;
const PERFORMANCE: usize = 2;
const COMPATIBILITY: usize = 3;

const ORCHESTRATOR: &str = "orchestrator";

const PARTIES: [&str; 5] = [NAMES[0], NAMES[1], NAMES[2], NAMES[3], ORCHESTRATOR];

const PORT: u16 = 7001;

/// Reviewers think for so long that a fault in the midst of it comes before their votes.
const SLOW: &str = "{\"delay_ms\": 600, \"policy\": \"honest\", \"answer\": \"approve\"}\n";

/// Five hosts, and what each of them has on its disk.
struct Site {
    case: &'static str,
    relay: Option<Relay>,
    house: House,
    hosts: Hosts,
    began: Instant,
    /// The branch before any decision.
    base: String,
}

/// The orchestrator while it runs; it is killed when it is dropped.
struct Proposing(Option<Child>);

impl Proposing {
    /// Waits for its end. Its own deadline bounds that.
    #[track_caller]
    fn ends(mut self, code: i32) -> Value {
        let ended = self.0.take().unwrap().wait_with_output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert_eq!(ended.status.code(), Some(code), "{stdout}{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    fn is_running(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_none()
    }
}

impl Drop for Proposing {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Site {
    /// Each host is found at its own address, or at one of a relay if there is a line.
    fn new(case: &'static str, line: Option<Line>) -> Option<Self> {
        let began = Instant::now();
        let hosts = Hosts::new(&PARTIES)?;
        let house = House::new();
        house.project.folder.write("slow.jsonl", SLOW);
        let own = |host: &str| SocketAddr::new(hosts.address(host).parse().unwrap(), PORT);
        let found_at = |at: usize| match line {
            None => own(PARTIES[at]),
            Some(_) => SocketAddr::new(own(HUB).ip(), PORT + u16::try_from(at).unwrap()),
        };
        let peers = PARTIES.iter().enumerate();
        let peers = peers.map(|(at, name)| format!("{name} = \"{}\"\n", found_at(at)));
        house.project.folder.write("peers.toml", &peers.collect::<String>());
        let pairs = (0..PARTIES.len()).map(|at| (found_at(at), own(PARTIES[at]))).collect();
        let relay = line.map(|line| Relay::new(&hosts, pairs, line));
        let base = house.project.main();
        Some(Self { case, relay, house, hosts, began, base })
    }

    /// Starts a reviewer on its host, as it was left, and waits until it can be heard.
    fn serve(&self, name: &str, words: &[&str]) -> Serving {
        let at = format!("{}:{PORT}", self.hosts.address(name));
        let words = [words, &["--listen", &at, "--fetch", "./repo"]].concat();
        self.hosts.within(name, || self.house.serve(name, &words))
    }

    /// Starts all reviewers; they approve.
    fn serve_all(&self) -> Vec<Serving> {
        NAMES.iter().map(|name| self.serve(name, &["--mock-script", "slow.jsonl"])).collect()
    }

    /// Starts the orchestrator on its host, with so much patience.
    fn propose(&self, change: &str, patience: &str) -> Proposing {
        let at = format!("{}:{PORT}", self.hosts.address(ORCHESTRATOR));
        let mut command = self.house.propose(&["--change", change, "--deadline", patience, "--listen", &at]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Proposing(Some(self.hosts.within(ORCHESTRATOR, || command.spawn().unwrap())))
    }

    /// All that a host sends vanishes; what others send still comes to it.
    fn silence(&self, host: &str) {
        for other in PARTIES.iter().filter(|other| **other != host) {
            self.hosts.lose(host, other);
        }
    }

    /// All that a host sends vanishes, and all that is sent to it.
    fn cut_off(&self, host: &str) {
        self.silence(host);
        for other in PARTIES.iter().filter(|other| **other != host) {
            self.hosts.lose(other, host);
        }
    }

    /// Checks what must hold in the end, whatever the network did: these changes landed in this order, and nothing else did.
    fn settles(self, mut reviewers: Vec<Serving>, landed: &[(&str, Value)]) {
        let (_, last) = landed.last().unwrap();
        let line = format!("decision {}: approved: {}", last["sequence"], last["change"].as_str().unwrap());
        all_tell(&mut reviewers, &line);
        for mut reviewer in reviewers {
            reviewer.signal(Signal::SIGTERM);
            assert_eq!(reviewer.child.wait().unwrap().code(), Some(130), "it was there until now");
        }
        for host in PARTIES {
            assert_eq!(self.hosts.processes(host), "", "{host}");
        }
        self.lands_once(landed);
        self.records_verify(landed);
        let of = files_below(&self.house.path("of"));
        let is_accusation =
            |path: &&PathBuf| path.file_name().unwrap().as_encoded_bytes().starts_with(b"accusation");
        assert_eq!(of.iter().find(is_accusation), None, "all are honest");
        let (case, count, seconds) = (self.case, landed.len(), self.began.elapsed().as_secs_f32());
        eprintln!("across hosts, {case}: {count} decisions, {count} landed, {seconds:.1} s");
    }

    fn lands_once(&self, landed: &[(&str, Value)]) {
        let project = &self.house.project;
        let commits = project.git(&["rev-list", "--reverse", &format!("{}..main", self.base)]);
        let reported: Vec<&str> = landed.iter().map(|(_, said)| said["commit"].as_str().unwrap()).collect();
        assert_eq!(commits.lines().collect::<Vec<_>>(), reported);
        for (at, (change, said)) in landed.iter().enumerate() {
            assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(at + 1)), "{said}");
            assert_eq!(self.tree(reported[at]), self.tree(change));
        }
    }

    /// The records of the decisions prove the trees that landed, and those of all reviews are whole.
    fn records_verify(&self, landed: &[(&str, Value)]) {
        let verify = |words: &[&str]| -> Value {
            let mut command = consensus(&self.house.project.folder);
            command.args(["verify", "--format", "json"]).args(words);
            serde_json::from_str(&Finished::of(&mut command).exits(0).stdout).unwrap()
        };
        for (change, said) in landed {
            let record = verify(&[said["decision"].as_str().unwrap(), "--keys", "of/Quality"]);
            assert_eq!(record["decision"]["approved"], json!(true), "{record}");
            assert_eq!(record["decision"]["tree"], json!(self.tree(change)), "{record}");
        }
        for name in NAMES {
            for run in std::fs::read_dir(self.house.path(&format!("of/{name}/runs"))).unwrap() {
                verify(&[run.unwrap().path().to_str().unwrap()]);
            }
        }
    }

    fn tree(&self, commit: &str) -> String {
        self.house.project.git(&["rev-parse", &format!("{commit}^{{tree}}")])
    }
}

/// Waits until each reviewer has written a line with this.
fn all_tell(reviewers: &mut [Serving], part: &str) {
    for reviewer in reviewers.iter_mut().filter(|reviewer| !reviewer.output.contains(part)) {
        reviewer.wait_for(part);
    }
}

fn lacks_vote_of(said: &Value, name: &str) -> bool {
    said["silent"].as_array().unwrap().contains(&json!(name))
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The host that was cut off learns of the decision later.
#[test]
fn isolated_host_stops_no_decision() {
    let Some(site) = Site::new("one cut off", None) else { return };
    let mut reviewers = site.serve_all();
    let proposing = site.propose("fix", "40s");
    reviewers[SECURITY].wait_for("Security: thinks");
    site.cut_off("Security");
    let first = proposing.ends(0);
    assert!(lacks_vote_of(&first, "Security"), "{first}");
    site.hosts.lose_nothing();
    reviewers[SECURITY].wait_for("decision 1: approved:");

    // Its vote is needed now.
    site.hosts.unplug("Quality");
    site.house.project.branch("more", "more.py", "x = 1\n");
    let second = site.propose("more", "40s").ends(0);
    assert!(lacks_vote_of(&second, "Quality"), "{second}");
    site.hosts.plug("Quality");
    site.settles(reviewers, &[("fix", first), ("more", second)]);
}

/// The same command lands the change once both are back.
#[test]
fn two_isolated_hosts_delay_decision() {
    let Some(site) = Site::new("two cut off", None) else { return };
    let mut reviewers = site.serve_all();
    let proposing = site.propose("fix", "6s");
    for at in [SECURITY, PERFORMANCE] {
        reviewers[at].wait_for(&format!("{}: thinks", NAMES[at]));
        site.cut_off(NAMES[at]);
    }
    for at in [QUALITY, COMPATIBILITY] {
        reviewers[at].wait_for("decision 1: this reviewer voted approve");
    }
    let late = proposing.ends(5);
    assert!(late["error"]["message"].as_str().unwrap().contains("so does the same command"), "{late}");
    assert_eq!(site.house.project.main(), site.base);
    site.hosts.lose_nothing();
    let said = site.propose("fix", "40s").ends(0);
    site.settles(reviewers, &[("fix", said)]);
}

/// The host still hears the others while nothing that it sends arrives.
#[test]
fn unheard_host_stops_no_decision() {
    let Some(site) = Site::new("one way from a reviewer", None) else { return };
    let mut reviewers = site.serve_all();
    let proposing = site.propose("fix", "40s");
    reviewers[SECURITY].wait_for("Security: thinks");
    site.silence("Security");
    let said = proposing.ends(0);
    assert!(lacks_vote_of(&said, "Security"), "{said}");
    site.hosts.lose_nothing();
    site.settles(reviewers, &[("fix", said)]);
}

/// Two of four reviewers do not hear it at first, and the change lands once they do.
#[test]
fn orchestrator_lands_only_when_heard() {
    let Some(site) = Site::new("one way from the orchestrator", None) else { return };
    let reviewers = site.serve_all();
    for name in ["Security", "Performance"] {
        site.hosts.lose(ORCHESTRATOR, name);
    }
    site.propose("fix", "5s").ends(5);
    assert_eq!(site.house.project.main(), site.base);
    site.hosts.lose_nothing();
    let said = site.propose("fix", "40s").ends(0);
    site.settles(reviewers, &[("fix", said)]);
}

#[test]
fn connections_that_are_cut_lose_no_decision() {
    let line = Line { delay: Duration::ZERO, cut_percent: 20, seed: 7 };
    let Some(site) = Site::new("connections cut", Some(line)) else { return };
    let reviewers = site.serve_all();
    let first = site.propose("fix", "40s").ends(0);
    site.house.project.branch("more", "more.py", "x = 1\n");
    let second = site.propose("more", "40s").ends(0);
    let counts = &site.relay.as_ref().unwrap().counts;
    let (cases, cuts) = (counts.cases.load(Ordering::Relaxed), counts.cuts.load(Ordering::Relaxed));
    assert!(cuts > 10, "{cuts} of {cases}");
    eprintln!("across hosts, {}: {cuts} of {cases} transfers", site.case);
    site.settles(reviewers, &[("fix", first), ("more", second)]);
}

#[test]
fn slow_line_loses_no_decision() {
    let delay = Duration::from_millis(200);
    let Some(site) = Site::new("delay", Some(Line { delay, cut_percent: 0, seed: 0 })) else { return };
    // They answer at once: what takes time is the line.
    let reviewers = NAMES.map(|name| site.serve(name, &["--mock"]));
    let proposed = Instant::now();
    let said = site.propose("fix", "40s").ends(0);
    // The two halves of a handshake, the proposal, a vote and a commit pass the line one after the other.
    let seconds = proposed.elapsed();
    assert!(seconds >= 5 * delay, "{seconds:?}");
    site.settles(reviewers.into(), &[("fix", said)]);
}

/// The host returns with its log, so no model is asked twice.
#[test]
fn returning_host_continues_its_review() {
    let Some(site) = Site::new("vanished", None) else { return };
    // Three must approve, and one does not: the one that vanishes is needed.
    let slow = ["--mock-script", "slow.jsonl"];
    let mut quality = site.serve("Quality", &slow);
    let mut security = site.serve("Security", &slow);
    let mut performance = site.serve("Performance", &slow);
    let compatibility = site.serve("Compatibility", &["--mock", "--verdict", "reject"]);
    let mut proposing = site.propose("fix", "40s");
    security.wait_for("Security: thinks");
    site.hosts.unplug("Security");
    security.kill();
    quality.wait_for("decision 1: this reviewer voted approve");
    performance.wait_for("decision 1: this reviewer voted approve");
    assert!(proposing.is_running());
    assert_eq!(site.house.project.main(), site.base);
    site.hosts.plug("Security");
    let security = site.serve("Security", &slow);
    let said = proposing.ends(0);
    let runs = files_below(&site.house.path("of/Security/runs"));
    let journals: Vec<&PathBuf> = runs.iter().filter(|path| path.ends_with("journal.jsonl")).collect();
    assert_eq!(journals.len(), 1, "it has one review");
    let journal = std::fs::read_to_string(journals[0]).unwrap();
    assert_eq!(journal.matches("\"type\":\"replied\"").count(), 2, "no model was asked twice");
    site.settles(vec![quality, security, performance, compatibility], &[("fix", said)]);
}

/// The orchestrator is cut off at each of three moments of a decision and comes back.
#[test]
fn isolated_orchestrator_lands_decision_once() {
    let moments = ["thinks", "decision 1: this reviewer voted approve", "decision 1: approved:"];
    for (at, moment) in moments.into_iter().enumerate() {
        let Some(site) = Site::new("orchestrator cut off", None) else { return };
        let mut reviewers = site.serve_all();
        let mut proposing = site.propose("fix", "40s");
        // All have the proposal.
        all_tell(&mut reviewers, "thinks");
        all_tell(&mut reviewers[..1], moment);
        site.hosts.unplug(ORCHESTRATOR);
        // The reviewers decide without it, and it alone can land the change.
        all_tell(&mut reviewers, "decision 1: approved:");
        if at == 0 {
            let logs = files_below(&site.house.path("of/orchestrator/decisions"));
            let has_vote = |log: &PathBuf| std::fs::read_to_string(log).unwrap().contains("\"opinion\":{");
            assert!(!logs.iter().any(has_vote), "no vote came to it");
            assert!(proposing.is_running());
            assert_eq!(site.house.project.main(), site.base);
        }
        site.hosts.plug(ORCHESTRATOR);
        let said = proposing.ends(0);
        site.settles(reviewers, &[("fix", said)]);
    }
}
