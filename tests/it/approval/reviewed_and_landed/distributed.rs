//! Reviewers in processes of their own: each with its own key, its own copy of the repository and its own opinion.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use consensus::approval::node::{Addresses, Carrier as _, Connections};
use consensus::repository::Repository;
use crypto::{SecretKey, Signature};
use nix::sys::signal::Signal;
use quorum::{
    Change, Membership, NodeId, Opinion, Packet, RosterSigner, Signed, SignedMessage, Signer as _, Statement,
    Vote,
};
use serde_json::{Value, json};

use crate::support::{Finished, House, NAMES, Serving, consensus, git};

/// Each reviewer holds its own key alone, and a single dissent does not stop a change.
#[test]
fn quorum_lands_change_with_separate_keys() {
    let house = House::new();
    for name in NAMES {
        let keys = std::fs::read_dir(house.path(&format!("of/{name}"))).unwrap();
        let keys: Vec<String> = keys.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let secret: Vec<&String> = keys.iter().filter(|file| file.contains(".key")).collect();
        assert_eq!(secret, [&format!("{name}.key")]);
    }
    // One of four does not agree.
    let says = |name| if name == "Security" { "reject" } else { "approve" };
    let serving: Vec<Serving> =
        NAMES.iter().map(|name| house.serve(name, &["--mock", "--verdict", says(*name)])).collect();
    let said = house.said(&["--change", "fix", "-o", "proof.json"], 0);
    assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(1)), "{said}");
    assert_eq!(house.project.main(), said["commit"].as_str().unwrap());
    // The public keys alone are enough to verify it.
    let verify = ["verify", "proof.json", "--keys", "of/Quality"];
    let verified = Finished::of(consensus(&house.project.folder).args(verify)).exits(0);
    assert!(verified.stdout.starts_with("verified: decision 1, approved\n"), "{}", verified.stdout);

    // One may be away; two who do not agree stop it.
    let mut serving = serving.into_iter();
    let (quality, security) = (serving.next().unwrap(), serving.next().unwrap());
    quality.kill();
    house.project.branch("more", "more.py", "x = 1\n");
    let copies = NAMES.map(|name| house.path(&format!("of/{name}/copy")));
    let fetch = || {
        for copy in &copies {
            git(copy, &["fetch", "--quiet", "../../../repo", "+refs/heads/*:refs/heads/*"]);
        }
    };
    fetch();
    let stopped = house.said(&["--change", "more", "--deadline", "3s"], 5);
    assert!(stopped["error"]["message"].as_str().unwrap().contains("so does the same command"), "{stopped}");
    let quality = house.serve("Quality", &["--mock"]);
    let said = house.said(&["--change", "more", "-o", "proof.json"], 0);
    assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(2)), "{said}");
    security.kill();
    quality.kill();
    fetch();
    house.project.branch("less", "less.py", "y = 1\n");
    let rest: Vec<Serving> =
        ["Quality", "Security"].map(|name| house.serve(name, &["--mock", "--verdict", "reject"])).into();
    let before = house.project.git(&["for-each-ref"]);
    let said = house.said(&["--change", "less", "-o", "proof.json"], 3);
    assert_eq!(said["outcome"], "rejected", "{said}");
    let against =
        said["votes"].as_array().unwrap().iter().filter(|vote| vote["opinion"]["reject"].is_object());
    assert_eq!(against.count(), 2, "who was against it is on record: {said}");
    assert!(said["votes"].to_string().contains("It should say something else."), "{said}");
    assert_eq!(house.project.git(&["for-each-ref"]), before);
    drop(rest);
    let verified = Finished::of(consensus(&house.project.folder).args(verify)).exits(0);
    assert!(verified.stdout.starts_with("verified: decision 3, not approved\n"), "{}", verified.stdout);
}

/// A reviewer that is killed in a review asks no model again for what it has said.
#[test]
fn killed_processes_resume_and_change_lands_once() {
    let house = House::new();
    // Three must approve, and one does not: everybody who is killed is needed.
    let slow = "{\"delay_ms\": 400, \"policy\": \"honest\", \"answer\": \"approve\"}\n";
    house.project.folder.write("slow.jsonl", slow);
    let words = ["--mock-script", "slow.jsonl"];
    let mut quality = house.serve("Quality", &words);
    let mut security = house.serve("Security", &words);
    let _performance = house.serve("Performance", &words);
    let _compatibility = house.serve("Compatibility", &["--mock", "--verdict", "reject"]);
    let mut proposer = house.propose(&["--change", "fix"]).stderr(Stdio::null()).spawn().unwrap();
    // In the midst of a review; after its vote; and who proposes as well.
    quality.wait_for("Quality: thinks");
    quality.kill();
    security.wait_for("decision 1: this reviewer voted approve");
    security.kill();
    proposer.kill().unwrap();
    proposer.wait().unwrap();
    let _quality = house.serve("Quality", &words);
    let mut security = house.serve("Security", &words);
    let base = house.project.main();
    let said = house.said(&["--change", "fix"], 0);
    assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(1)), "{said}");
    assert_eq!(house.project.git(&["rev-list", "--count", &format!("{base}..main")]), "1");
    security.wait_for("decision 1: approved:");
    // A reviewer that was killed in the midst of a review has continued it, and no model was asked twice for what it had said.
    for name in ["Quality", "Security"] {
        let runs: Vec<PathBuf> = std::fs::read_dir(house.path(&format!("of/{name}/runs")))
            .unwrap()
            .map(|run| run.unwrap().path().join("journal.jsonl"))
            .collect();
        assert_eq!(runs.len(), 1, "{name}");
        let journal = std::fs::read_to_string(&runs[0]).unwrap();
        assert_eq!(journal.matches("\"type\":\"replied\"").count(), 2, "{name}: its thoughts and its form");
    }
}

/// The command of a reviewer runs on the tree that the reviewer itself has made.
#[test]
fn each_reviewer_runs_its_own_command() {
    let house = House::new();
    let _serving: Vec<Serving> = NAMES
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let command = if at < 2 { "grep -q 'return sum' sum.py" } else { "grep -q 's += i' sum.py" };
            house.serve(name, &["--mock", "--verify", command])
        })
        .collect();
    let said = house.said(&["--change", "fix"], 3);
    assert!(said["votes"].to_string().contains("the command of this reviewer fails on it"), "{said}");
}

/// Keys that have signed in one process do not sign in several, and the other way round.
#[test]
fn used_keys_do_not_switch_process_mode() {
    let house = House::new();
    let project = &house.project;
    project.said(&["--change", "fix", "--verdict", "reject"], 3);
    let peers = ["--change", "fix", "--peers", "peers.toml"];
    let mut apart = consensus(&project.folder);
    apart.args(["approve", "--repo", "repo", "--keys", "keys"]).args(peers);
    let refused = Finished::of(&mut apart).exits(2);
    assert!(refused.stderr.contains("have decided in one process"), "{}", refused.stderr);

    Finished::of(consensus(&project.folder).args(["keys", "generate", "others", "--mock", "--quiet"]))
        .exits(0);
    // A user who forgets --peers once, and has no keys for it, has signed nothing.
    let mut alone = consensus(&project.folder);
    alone.args(["approve", "--repo", "repo", "--keys", "of/Security", "--mock", "--change", "fix"]);
    Finished::of(&mut alone).exits(2);
    drop(house.serve("Security", &["--mock"]));

    let mut apart = consensus(&project.folder);
    apart.args(["approve", "--repo", "repo", "--keys", "others", "--deadline", "1s"]).args(peers);
    Finished::of(&mut apart).exits(5);
    let mut together = consensus(&project.folder);
    together.args(["approve", "--repo", "repo", "--keys", "others", "--mock", "--change", "fix"]);
    let refused = Finished::of(&mut together).exits(2);
    assert!(refused.stderr.contains("in processes of their own"), "{}", refused.stderr);
}

#[test]
fn what_is_missing_is_said_before_anybody_waits() {
    let house = House::new();
    let refused = |words: &[&str], why: &str| {
        let mut command = consensus(&house.project.folder);
        command.arg("approve").args(["--repo", "repo", "--keys", "of/Security"]).args(words);
        let finished = Finished::of(&mut command).exits(2);
        assert!(finished.stderr.contains(why), "{why}: {}", finished.stderr);
    };
    let with = |name| ["--replica", name, "--peers", "peers.toml", "--mock"];
    refused(&with("Quality"), "Quality.key");
    refused(&with("Nobody"), "there is no key of `Nobody`");
    refused(&["--replica", "Security", "--mock"], "--peers");
    refused(&["--mock"], "--change");
    house.project.folder.write("few.toml", "Security = \"127.0.0.1:1\"\n");
    refused(&["--replica", "Security", "--peers", "few.toml", "--mock"], "nothing says where `Quality` is");
    let peers = std::fs::read_to_string(house.path("peers.toml")).unwrap();
    house.project.folder.write("more.toml", &format!("{peers}\nBob = \"127.0.0.1:1\"\n"));
    refused(&["--replica", "Security", "--peers", "more.toml", "--mock"], "no member of that name");
    house.project.folder.write("bad.toml", "Security = 7\n");
    refused(&["--replica", "Security", "--peers", "bad.toml", "--mock"], "bad.toml");
    let mut join = consensus(&house.project.folder);
    join.args(["keys", "join", "new", "of/Security/Security.seat.json"]);
    let few = Finished::of(&mut join).exits(2);
    assert!(few.stderr.contains("there is no key of `Quality`"), "{}", few.stderr);
}

#[test]
fn reviewer_without_writable_log_stays_silent() {
    let house = House::new();
    // As if the disk were full.
    let program = env!("CARGO_BIN_EXE_consensus");
    let full = format!("trap '' XFSZ; ulimit -f 1; exec '{program}' \"$@\"");
    let mut command = consensus(&house.project.folder);
    let clean: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    command = Command::new("sh");
    command.current_dir(house.project.folder.path()).args([
        "-c",
        &full,
        "sh",
        "approve",
        "--replica",
        "Security",
    ]);
    for (name, value) in clean {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["--peers", "peers.toml", "--keys", "of/Security", "--repo", "of/Security/copy", "--mock"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let story = BufReader::new(child.stderr.take().unwrap());
    let mut security = Serving { child, story, output: String::new() };
    security.wait_for("heard at");
    let _others: Vec<Serving> = ["Quality", "Performance"].map(|name| house.serve(name, &["--mock"])).into();
    house.said(&["--change", "fix", "--deadline", "2s"], 5);
    security.wait_for("cannot write to");
    assert_ne!(security.child.wait().unwrap().code(), Some(0));
    // Once there is room it goes on, and is the third that is needed.
    let _security = house.serve("Security", &["--mock"]);
    let said = house.said(&["--change", "fix"], 0);
    assert_eq!(said["silent"], json!(["Compatibility"]), "{said}");
}

/// One who has a key of the roster, and does what the test says.
struct Liar {
    me: NodeId,
    key: SecretKey,
    seal: RosterSigner,
    membership: Arc<Membership>,
    addresses: Addresses,
}

impl Liar {
    fn new(house: &House, name: &str) -> Self {
        let repository = Repository::open(&house.project.path()).unwrap();
        let chain = repository.identity(&repository.commit_of("refs/heads/main").unwrap()).unwrap();
        let roster = std::fs::read_to_string(house.path("of/Quality/roster.json")).unwrap();
        let membership = Arc::new(Membership::new(chain, serde_json::from_str(&roster).unwrap()).unwrap());
        let pem = std::fs::read_to_string(house.path(&format!("of/{name}/{name}.key"))).unwrap();
        let key = SecretKey::from_pem(&pem).unwrap();
        let (me, seal) = RosterSigner::new(key.clone(), Arc::clone(&membership)).unwrap();
        let addresses = Addresses::read(&house.path("peers.toml")).unwrap();
        Self { me, key, seal, membership, addresses }
    }

    fn says(&self, sequence: u64, statement: Statement) -> SignedMessage<Signature> {
        let (NodeId::Reviewer(by) | NodeId::Orchestrator(by)) = self.me;
        let signature = self.seal.sign(sequence, &statement);
        SignedMessage::alone(Signed { by, sequence, statement, signature })
    }

    /// Sends messages to a reviewer while something else is waited for.
    fn send(&self, to: usize, messages: &[SignedMessage<Signature>], until: impl FnOnce()) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _inside = runtime.enter();
        let connections = Connections::open(&self.key, self.me, &self.membership, &self.addresses).unwrap();
        for message in messages {
            let text = self.membership.write(&Packet::Message(message.clone()));
            connections.send(NodeId::Reviewer(to), &text.into());
        }
        until();
    }
}

#[test]
fn two_signed_statements_are_kept_as_proof() {
    let house = House::new();
    let mut security = house.serve("Security", &["--mock"]);
    let (quality, proposer) = (Liar::new(&house, "Quality"), Liar::new(&house, "orchestrator"));
    let change = Change::new("a change").unwrap();
    let proposal = proposer.says(1, Statement::PrePrepare { value: change.value(), view: 0 });
    let proposal = SignedMessage { change: Some(change.clone()), ..proposal };
    let vote = |vote, opinion: &Opinion| {
        let statement =
            Statement::Prepare { opinion: Some(opinion.digest()), value: change.value(), view: 0, vote };
        SignedMessage { opinion: Some(Arc::new(opinion.clone().into())), ..quality.says(1, statement) }
    };
    let yes = Opinion::Approve { confidence: 1, notes: String::new() };
    let no = Opinion::Abstain { reason: String::new() };
    proposer.send(1, &[proposal], || {
        _ = security.wait_for("decision 1: this reviewer voted reject (critical): it is not a proposal");
    });
    let votes = [vote(Vote::Approve, &yes), vote(Vote::Abstain, &no)];
    let mut line = String::new();
    quality.send(1, &votes, || line = security.wait_for("Quality has signed two statements"));
    let path = line.trim().split("both are in ").nth(1).unwrap();
    let text = std::fs::read_to_string(house.project.folder.path().join(path)).unwrap();
    let pair: [Value; 2] = serde_json::from_str(&text).unwrap();
    let read = pair.map(|packet| quality.membership.read(&packet.to_string(), |_, _| true).unwrap().unwrap());
    let [Packet::Message(first), Packet::Message(second)] = read else { panic!("{text}") };
    assert_eq!((first.signed.by, second.signed.by), (0, 0), "both are signed by the liar");
    assert_ne!(first.signed.statement, second.signed.statement);
}

/// The proposal of a change that has landed: what a liar bends and proposes once more.
fn proposal(house: &House) -> Value {
    house.project.said(&["--change", "fix", "-o", "proof.json"], 0);
    let proof = std::fs::read_to_string(house.path("proof.json")).unwrap();
    let record: Value = serde_json::from_str(&proof).unwrap();
    serde_json::from_str(record["change"].as_str().unwrap()).unwrap()
}

/// Proposes this to a reviewer, past all that an honest program looks at before, until the reviewer says that.
fn lie(house: &House, proposal: &Value, said: &str) {
    let change = Change::new(&proposal.to_string()).unwrap();
    let mut security = house.serve("Security", &["--mock"]);
    let proposer = Liar::new(house, "orchestrator");
    let message = proposer.says(1, Statement::PrePrepare { value: change.value(), view: 0 });
    let message = SignedMessage { change: Some(change), ..message };
    proposer.send(1, &[message], || _ = security.wait_for(said));
}

/// The tree of a proposal must be the one that its diff makes.
#[test]
fn proposal_with_wrong_tree_is_rejected() {
    let house = House::new();
    let mut proposal = proposal(&house);
    // The tree of another commit, which brings more than is shown.
    proposal["tree"] = json!(house.project.git(&["rev-parse", "main~1^{tree}"]));
    let said = "decision 1: this reviewer voted reject (critical): its diff does not lead to its tree";
    lie(&house, &proposal, said);
}

#[test]
fn outdated_base_gets_an_abstention() {
    let house = House::new();
    let proposal = proposal(&house);
    let copy = house.path("of/Security/copy");
    git(&copy, &["fetch", "--quiet", "../../../repo", "+main:main"]);
    let base = &proposal["base"].as_str().unwrap()[..12];
    let said = format!("voted abstain: its base {base} lacks commits of `refs/heads/main`");
    lie(&house, &proposal, &said);
}

/// No reviewer is asked about a base that was left behind.
#[test]
fn proposal_from_outdated_base_is_refused() {
    let house = House::new();
    // Reviewers get what has landed by themselves, from a place beside the folder that they stand in.
    let remote = "./repo";
    let _serving: Vec<Serving> =
        NAMES.iter().map(|name| house.serve(name, &["--mock", "--fetch", remote])).collect();
    let first = house.project.main();
    house.said(&["--change", "fix"], 0);
    house.project.branch("more", "more.py", "x = 1\n");
    house.said(&["--change", "more"], 0);
    // The next proposal comes from a copy in which all of that is gone.
    house.project.git(&["clone", "--quiet", "--bare", ".", "../old"]);
    let old = house.path("old");
    git(&old, &["update-ref", "refs/heads/main", &first]);
    let mut command = consensus(&house.project.folder);
    command.args(["approve", "--repo", "old", "--peers", "peers.toml", "--keys", "of/orchestrator"]);
    let refused = Finished::of(command.args(["--change", "more"])).exits(2).stderr;
    assert!(refused.contains("reviewers have a later main than"), "{refused}");
    assert_eq!(git(&old, &["rev-parse", "main"]), first);
}

/// The same change may be proposed again at once, and a reviewer that cannot be reached is named.
#[test]
fn unapproved_change_can_be_proposed_again() {
    let house = House::new();
    let mut serving: Vec<Serving> =
        NAMES.iter().map(|name| house.serve(name, &["--mock", "--verdict", "abstain"])).collect();
    for sequence in 1..=4 {
        let said = house.said(&["--change", "fix"], 3);
        assert_eq!(said["sequence"], sequence, "{said}");
        assert_eq!(said["votes"].as_array().unwrap().len() + said["silent"].as_array().unwrap().len(), 4);
    }
    serving.truncate(2);
    let missing = Finished::of(&mut house.propose(&["--change", "fix", "--deadline", "5s"])).exits(5);
    assert!(
        missing.stderr.contains("Performance cannot be reached: Connection refused"),
        "{}",
        missing.stderr
    );
}

/// A reviewer that resumes learns the decision and takes part in the next one.
#[test]
fn paused_reviewer_blocks_no_decision() {
    let house = House::new();
    let remote = house.project.path();
    let words = ["--mock", "--fetch", remote.to_str().unwrap()];
    let mut serving: Vec<Serving> = NAMES.iter().map(|name| house.serve(name, &words)).collect();
    serving[1].signal(Signal::SIGSTOP);
    let said = house.said(&["--change", "fix"], 0);
    assert_eq!((&said["outcome"], &said["silent"]), (&json!("landed"), &json!(["Security"])), "{said}");
    serving[1].signal(Signal::SIGCONT);
    serving[1].wait_for("decision 1: approved:");
    // It is needed now.
    drop(serving.remove(0));
    house.project.branch("more", "more.py", "x = 1\n");
    house.said(&["--change", "more"], 0);
}
