//! A vote is a run like others: it prints its answer, says how sure it is, and verifies.

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, Server, completion, consensus, http};

fn voted(folder: &Folder, words: &[&str], code: i32) -> Finished {
    let prompt = ["run", "--prompt", "How much is 2 + 2?"];
    Finished::of(consensus(folder).args(prompt).args(words)).exits(code)
}

fn result(folder: &Folder, words: &[&str], code: i32) -> Value {
    serde_json::from_str(&voted(folder, &[words, &["--format", "json"]].concat(), code).stdout).unwrap()
}

/// Writes a script in which one sample of the solver has an answer of its own, and the programmer always finds 4.
fn script(folder: &Folder, draft: u32, its: &str, others: &str) {
    let rules = [
        json!({"agent": "Solver", "draft": draft, "policy": "honest", "answer": its}),
        json!({"agent": "Solver", "policy": "honest", "answer": others}),
        json!({"agent": "Programmer", "policy": "honest", "answer": "4"}),
    ];
    folder.write("script.jsonl", &rules.map(|rule| rule.to_string() + "\n").concat());
}

#[test]
fn the_kind_of_the_answer_chooses_the_vote() {
    let folder = Folder::new();
    for (flags, answer, roleset) in [
        (&["--canonical", "number"][..], "4", "vote_number"),
        (&["--choices", "A,B"], "B", "vote_choice"),
        (&[], "four", "vote_short"),
        (&["--canonical", "json"], "4", "vote_short"),
    ] {
        let mock = ["--roleset", "vote", "--mock", "--answer", answer];
        let ended = result(&folder, &[&mock[..], flags].concat(), 0);
        assert_eq!((&ended["roleset"], &ended["text"]), (&json!(roleset), &json!(answer)), "{ended}");
        assert_eq!((&ended["how"], &ended["vote"]["class"]), (&json!("voted"), &json!("C")));
    }
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// Two calls are enough when words and a program agree at once.
#[test]
fn equal_words_and_program_settle_vote() {
    let folder = Folder::new();
    let words = ["--roleset", "vote_number", "--modes", "words,program", "--mock", "--answer", "4"];
    let ended = result(&folder, &words, 0);
    assert_eq!((&ended["vote"]["class"], &ended["usage"]["calls"]), (&json!("B"), &json!(2)), "{ended}");
    let shown = Finished::of(consensus(&folder).args(["show", "--last"])).exits(0).stdout;
    assert!(shown.contains("votes     2 votes  “4”  (Solver, Programmer)"), "{shown}");
    assert!(
        shown.contains("the first two samples are equal (class B), 87.5 % certain after 2 samples"),
        "{shown}"
    );
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// With `--on-disagreement leader` the leading answer is the result, and the run is degraded.
#[test]
fn unsettled_vote_is_no_agreement() {
    let folder = Folder::new();
    script(&folder, 1, "5", "4");
    let words = ["--roleset", "vote_number", "--mock-script", "script.jsonl", "--samples-max", "3"];
    let finished = voted(&folder, &words, 3);
    assert!(
        finished.stderr.contains("not settled (class D), 50.0 % certain after 2 samples"),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains("1 vote  “5”  (Solver)"), "{}", finished.stderr);
    let leader = [&words[..], &["--on-disagreement", "leader"]].concat();
    let ended = result(&folder, &leader, 0);
    assert_eq!(
        (&ended["text"], &ended["degraded"][0]["kind"]),
        (&json!("4"), &json!("unsettled")),
        "{ended}"
    );
    voted(&folder, &[&leader[..], &["--fail-on-degraded"]].concat(), 8);
    // A plain majority needs no lead.
    let ended = result(&folder, &[&words[..], &["--stop", "none"]].concat(), 0);
    assert_eq!(
        (&ended["text"], &ended["vote"]["class"], &ended["degraded"]),
        (&json!("4"), &json!(null), &json!([]))
    );
}

#[test]
fn a_check_refuses_samples_like_any_text() {
    let folder = Folder::new();
    script(&folder, 0, "5", "4");
    let words = ["--roleset", "vote_number", "--mock-script", "script.jsonl", "--check", "grep -qx 4"];
    let ended = result(&folder, &words, 0);
    assert_eq!((&ended["text"], &ended["vote"]["lead"]["leader"]), (&json!("4"), &json!(3)), "{ended}");
    let first = &ended["vote"]["samples"][0];
    assert!(first["no_vote"].as_str().unwrap().contains("check"), "{first}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn every_voter_sits_on_each_of_several_models() {
    let folder = Folder::new();
    let words = [
        "--roleset",
        "vote_number",
        "--models",
        "A,B",
        "--modes",
        "words,program",
        "--mock",
        "--answer",
        "4",
    ];
    let ended = result(&folder, &words, 0);
    let names: Vec<&Value> = ended["agents"].as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(
        names,
        [&json!("Solver"), &json!("Programmer"), &json!("Solver_2"), &json!("Programmer_2")],
        "{ended}"
    );
    let twice = ["--roleset", "vote_number", "--models", "A,A", "--mock", "--answer", "4"];
    assert!(voted(&folder, &twice, 2).stderr.contains("--models names `A` twice"));
}

/// Returns a roleset of two voters with the same pack: one on the model `one`, and one on this model.
fn two_voters(second: &str) -> String {
    let agents = [("Ann", "one"), ("Bob", second)]
        .map(|(name, model)| json!({"name": name, "domain": "sums", "pack": "p.md", "model": model}));
    let canonical = json!({"kind": "number"});
    json!({"v": 1, "protocol": "vote", "agents": agents, "canonical": canonical}).to_string()
}

/// Two voters with the same pack and the same model are refused before any call.
#[test]
fn alike_voters_are_refused() {
    let folder = Folder::new();
    let server = Server::start(|request| {
        let models = json!({"data": [{"id": "one"}, {"id": "two"}]}).to_string();
        let is_list = request.path.ends_with("/models");
        let body = if is_list { http("200 OK", "", models.as_bytes()) } else { completion("Answer: 4") };
        vec![Act::Send(body)]
    });
    folder.write("packs/p.md", "Count.");
    folder.write("alike.json", &two_voters("one"));
    folder.write("unlike.json", &two_voters("two"));
    let checked =
        |name: &str, code| Finished::of(consensus(&folder).args(["roleset", "check", name])).exits(code);
    let refused = checked("alike.json", 2);
    assert!(refused.stderr.contains("`Bob` votes as `Ann` does"), "{}", refused.stderr);
    checked("unlike.json", 0);
    // One model for all makes the same of them.
    let url = server.url();
    let words = ["--roleset", "unlike.json", "--base-url", &url, "--model", "one"];
    let refused = voted(&folder, &words, 2);
    assert!(refused.stderr.contains("`Bob` votes as `Ann` does, by the same pack"), "{}", refused.stderr);
    assert!(server.chats().is_empty());
    let ended = result(&folder, &words[..4], 0);
    assert_eq!((&ended["text"], &ended["vote"]["class"]), (&json!("4"), &json!("B")), "{ended}");
}

fn task(id: u32) -> String {
    json!({"id": id, "prompt": format!("How much is {id} - {id} + 4?"), "answer": 4}).to_string() + "\n"
}

#[test]
fn a_pilot_decides_whether_votes_draw_programs() {
    let folder = Folder::new();
    // Words are right on every other sample; programs always are.
    script(&folder, 0, "4", "5");
    folder.write("tasks.jsonl", &(1..=40).map(task).collect::<String>());
    let said = |words: &[&str], code| Finished::of(consensus(&folder).args(words)).exits(code);
    let mock = ["--roleset", "vote_number", "--mock-script", "script.jsonl"];
    let draw = ["batch", "tasks.jsonl", "-q", "--bank", "bank", "--words", "3", "--programs", "2"];
    said(&[&draw[..], &mock].concat(), 0);
    let plain = [&["run", "--prompt", "2+2?", "--format", "json"][..], &mock].concat();
    let before: Value = serde_json::from_str(&said(&plain, 0).stdout).unwrap();
    assert_eq!(before["vote"]["samples"][1]["voter"], "Solver", "without a pilot, words alone: {before}");
    let programs = ["calibrate", "bank", "--programs", "tasks.jsonl"];
    for (words, part) in [
        (&["calibrate", "bank", "--grader", "number"][..], "about the tasks of --programs"),
        (&["calibrate", "bank", "--dry-run"], "--programs"),
        (&[&programs[..], &["--risk", "0.1"]].concat(), "--risk"),
        (&[&programs[..], &["--only", "arm=vote"]].concat(), "--only"),
        (&[&programs[..], &["--output", "sure.json"]].concat(), "--output"),
    ] {
        let refused = said(words, 2);
        assert!(refused.stderr.contains(part), "{words:?}: {}", refused.stderr);
    }
    let shown = said(&programs, 0);
    assert!(shown.stdout.contains("mock, answers of kind number, 40 tasks"), "{}", shown.stdout);
    assert!(shown.stdout.contains("33.3 % of 120 samples are right"), "{}", shown.stdout);
    assert!(shown.stdout.contains("100.0 % of 80 programs are right"), "{}", shown.stdout);
    assert!(shown.stdout.contains("programs are worth their tokens"), "{}", shown.stdout);
    let after: Value = serde_json::from_str(&said(&plain, 0).stdout).unwrap();
    assert_eq!(after["vote"]["samples"][1]["voter"], "Programmer", "{after}");
    let asked: Value =
        serde_json::from_str(&said(&[&plain[..], &["--modes", "words"]].concat(), 0).stdout).unwrap();
    assert_eq!(asked["vote"]["samples"][1]["voter"], "Solver", "a flag decides");
    // A plan follows the pilot of the model that it names.
    let kept = shown.stderr.split('`').nth(1).unwrap();
    let findings = std::fs::read_to_string(kept).unwrap();
    std::fs::write(kept, findings.replace("\"mock\"", "\"tiny\"")).unwrap();
    let planned = ["--roleset", "vote_number", "--model", "tiny", "--dry-run", "--format", "json"];
    let plan_of = |command: &[&str], more: &[&str]| -> Value {
        serde_json::from_str(&said(&[command, &planned[..], more].concat(), 0).stdout).unwrap()
    };
    let run = ["run", "--prompt", "2+2?"];
    assert_eq!(plan_of(&run, &[]), plan_of(&run, &["--modes", "words,program"]));
    assert_ne!(plan_of(&run, &[]), plan_of(&run, &["--modes", "words"]));
    let batch = ["batch", "tasks.jsonl", "--output", "out"];
    assert_eq!(plan_of(&batch, &[]), plan_of(&batch, &["--modes", "words,program"]));
    std::fs::write(kept, findings).unwrap();
    // Too few tasks conclude nothing, and take nothing back.
    let few = said(&["calibrate", "bank", "--programs", "few.jsonl"], 2);
    assert!(few.stderr.contains("few.jsonl"), "{}", few.stderr);
    folder.write("few.jsonl", &task(1));
    let few = said(&["calibrate", "bank", "--programs", "few.jsonl", "--dry-run"], 0);
    assert!(few.stdout.contains("nothing is concluded"), "{}", few.stdout);
    said(&["calibrate", "bank", "--programs", "few.jsonl"], 0);
    let still: Value = serde_json::from_str(&said(&plain, 0).stdout).unwrap();
    assert_eq!(still["vote"]["samples"][1]["voter"], "Programmer", "{still}");
}

#[test]
fn transcript_explains_sample_without_vote() {
    let folder = Folder::new();
    let rules = [
        json!({"draft": 0, "step": "sample", "reply": "I do not know."}),
        json!({"draft": 0, "step": "envelope", "reply": "{\"response\": \"many\"}"}),
        json!({"policy": "honest", "answer": "4"}),
    ];
    folder.write("script.jsonl", &rules.map(|rule| rule.to_string() + "\n").concat());
    result(&folder, &["--roleset", "vote_number", "--modes", "words", "--mock-script", "script.jsonl"], 0);
    let transcript = std::fs::read_to_string(folder.run().join("transcript.md")).unwrap();
    assert_eq!(transcript.matches("*No vote: ").count(), 1, "{transcript}");
    let reason = transcript.split("*No vote: ").nth(1).unwrap().lines().next().unwrap();
    assert!(reason.contains("number"), "{reason}");
}

#[test]
fn a_vote_has_no_conversation() {
    let folder = Folder::new();
    script(&folder, 5, "4", "5");
    folder.write("tasks.jsonl", "{\"id\": \"a\", \"prompt\": \"2+2?\", \"answer\": 5}\n");
    let draw = [
        "batch",
        "tasks.jsonl",
        "-q",
        "--output",
        "out",
        "--roleset",
        "vote_number",
        "--mock-script",
        "script.jsonl",
    ];
    let unsettled = ["--modes", "words", "--threshold", "0.99", "--samples-max", "6"];
    Finished::of(consensus(&folder).args(draw).args(unsettled)).exits(0);
    let stdout =
        Finished::of(consensus(&folder).args(["results", "out", "--format", "json"])).exits(0).stdout;
    let group = &serde_json::from_str::<Value>(&stdout).unwrap()[0];
    let shares = (&group["blind_right"]["count"], &group["right"]["count"]);
    assert_eq!(shares, (&json!(1), &json!(0)), "the leader is right, and not certain enough: {group}");
    assert_eq!(group["talk"], json!({"kept": 0, "lost": 0, "gained": 0, "missed": 0}), "{group}");
}

/// A vote that nothing can settle is refused before any call.
#[test]
fn impossible_vote_is_refused() {
    let folder = Folder::new();
    for (words, why) in [
        (
            &["--roleset", "vote_short", "--modes", "program"][..],
            "no voter of the roleset answers in this way",
        ),
        (&["--roleset", "vote_number", "--samples-max", "2"], "no answer can lead with that certainty"),
        (&["--roleset", "vote_number", "--threshold", "0.999"], "no answer can lead with that certainty"),
        (&["--roleset", "single", "--stop", "sure"], "no answer can lead with that certainty"),
    ] {
        let refused = voted(&folder, &[&["--mock", "--answer", "4"], words].concat(), 2);
        assert!(refused.stderr.contains(why), "{words:?}: {}", refused.stderr);
    }
    // Two voters can agree at once.
    let two = ["--roleset", "vote_number", "--modes", "words,program", "--samples-max", "2"];
    voted(&folder, &[&["--mock", "--answer", "4"], &two[..]].concat(), 0);
}

/// A draft that breaks a rule of the task goes back once with the reason. A second text that breaks it is no vote.
#[test]
fn draft_that_breaks_a_rule_goes_back_once() {
    let folder = Folder::new();
    let rules = [
        json!({"draft": 0, "attempt": 0, "reply": "The sky is blue. Blue light is scattered most."}),
        json!({"draft": 1, "reply": "It is blue. That is all."}),
        json!({"reply": "Blue light is scattered most."}),
    ];
    folder.write("script.jsonl", &rules.map(|rule| rule.to_string() + "\n").concat());
    let prompt = "Why is the sky blue? Answer in exactly one sentence.";
    let run = ["run", "--prompt", prompt, "--mock-script", "script.jsonl", "--format", "json"];
    let ended: Value =
        serde_json::from_str(&Finished::of(consensus(&folder).args(run)).exits(0).stdout).unwrap();
    assert_eq!(ended["text"], "Blue light is scattered most.", "{ended}");
    let rule = json!([{"kind": "sentences", "min": 1, "max": 1, "rule": "exactly 1 sentence", "words": "in exactly one sentence"}]);
    assert_eq!(ended["constraints"], rule, "{ended}");
    let samples = ended["vote"]["samples"].as_array().unwrap();
    let votes: Vec<bool> = samples.iter().map(|sample| sample["no_vote"].is_null()).collect();
    assert_eq!(votes[..2], [true, false], "{ended}");
    let calls = samples.len() as u64 + 2;
    assert_eq!(ended["usage"]["calls"], calls, "two drafts were asked for again: {ended}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    let dry = ["run", "--prompt", prompt, "--mock", "--answer", "x", "--dry-run", "--format", "json"];
    let planned: Value =
        serde_json::from_str(&Finished::of(consensus(&folder).args(dry)).exits(0).stdout).unwrap();
    assert_eq!(planned["constraints"], rule, "{planned}");
    let off = [&dry[..], &["--no-inferred-constraints"]].concat();
    let planned: Value =
        serde_json::from_str(&Finished::of(consensus(&folder).args(off)).exits(0).stdout).unwrap();
    assert_eq!(planned["constraints"], json!([]), "{planned}");
}
