//! A calibration says at which risk answers can be given, a run below its threshold abstains, and `verify` derives both again.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, Served, Server, consensus, fake_llm, http, lines, model, trust};

/// A vote that always has an answer.
const VOTE: [&str; 8] =
    ["--roleset", "vote_number", "--stop", "none", "--samples-max", "5", "--on-disagreement", "leader"];

/// A model that knows easy sums, and guesses hard ones.
const GUESSES: fn(&Value) -> String = |request| {
    let said = request["messages"].to_string();
    let seed = request["seed"].as_u64().unwrap_or_default();
    let answer = if said.contains("A hard sum") { seed % 3 + 3 } else { 4 };
    format!("Answer: {answer}")
};

/// Sums with their answers, every second one of them hard.
fn sums(folder: &Folder, count: usize) {
    let line = |id: usize| {
        let kind = if id.is_multiple_of(2) { "An easy" } else { "A hard" };
        let prompt = format!("{kind} sum: how much is {id} - {id} + 4?");
        json!({"id": id, "prompt": prompt, "answer": 4, "canonical": "number"}).to_string() + "\n"
    };
    folder.write("sums.jsonl", &(0..count).map(line).collect::<String>());
}

fn asked(folder: &Folder, server: &Server, words: &[&str]) -> Command {
    let mut command = consensus(folder);
    command.args(words).args(["--base-url", &server.url(), "--model", "tiny-model"]).args(VOTE);
    command
}

fn known(folder: &Folder, server: &Server) {
    sums(folder, 400);
    Finished::of(&mut asked(folder, server, &["batch", "sums.jsonl", "--output", "known", "--quiet"]))
        .exits(0);
}

fn calibrated(folder: &Folder, words: &[&str], code: i32) -> Value {
    let mut command = consensus(folder);
    command.args(["calibrate", "known", "--format", "json"]).args(words);
    serde_json::from_str(&Finished::of(&mut command).exits(code).stdout).unwrap()
}

/// Asks a question with a calibration.
fn one_run(folder: &Folder, server: &Server, prompt: &str, words: &[&str], code: i32) -> Finished {
    let mut command = asked(folder, server, &["run", "--calibration", "known/calibration.json"]);
    Finished::of(command.args(["--canonical", "number", "--prompt", prompt]).args(words)).exits(code)
}

#[test]
fn unsure_answer_is_withheld() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    known(&folder, &server);
    let report = calibrated(&folder, &["--risk", "0.05"], 0);
    let at = report["risks"].as_array().unwrap().iter().find(|row| row["risk"] == 0.05).unwrap();
    let coverage = at["coverage"].as_f64().unwrap();
    assert!((0.4..0.7).contains(&coverage), "half of the sums are easy: {at}");
    let sure = one_run(&folder, &server, "An easy sum: 2 + 2?", &["--risk", "0.05"], 0);
    assert_eq!(sure.stdout, "4\n");
    assert!(sure.stderr.contains("by the calibration of"), "{}", sure.stderr);
    let verify = |code: i32| {
        Finished::of(consensus(&folder).args(["verify", "--last", "--format", "json"])).exits(code).stdout
    };
    assert!(verify(0).contains("\"outcome\": \"agreed\""));
    // The two samples of a hard sum that differ say so; the seed is one with which they do.
    let words = ["--risk", "0.05", "--seed", "3", "--format", "json"];
    let withheld = one_run(&folder, &server, "A hard sum: 2 + 2?", &words, 3);
    let result: Value = serde_json::from_str(&withheld.stdout).unwrap();
    assert_eq!(
        (&result["outcome"], &result["text"], &result["how"]),
        (&json!("abstained"), &Value::Null, &Value::Null)
    );
    let value = result["confidence"]["value"].as_f64().unwrap();
    assert!(value < at["threshold"].as_f64().unwrap(), "{result}");
    assert_eq!(result["confidence"]["calibrated_on"]["runs"], 400);
    assert!(withheld.stderr.contains("abstained: the confidence in the answer is"), "{}", withheld.stderr);
    assert!(verify(0).contains("\"outcome\": \"abstained\""));
    let shown = Finished::of(consensus(&folder).args(["show", "--last", "--full"])).exits(0).stdout;
    assert!(shown.contains("The answer is withheld: the confidence in the answer is"), "{shown}");
    // Without a risk the same answer is given.
    let words = ["--seed", "3", "--format", "json"];
    let given = one_run(&folder, &server, "A hard sum: 2 + 2?", &words, 0);
    let given: Value = serde_json::from_str(&given.stdout).unwrap();
    assert_eq!((&given["outcome"], &given["confidence"]["value"]), (&json!("agreed"), &json!(value)));
}

#[test]
fn resumed_run_still_abstains() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    known(&folder, &server);
    calibrated(&folder, &[], 0);
    // A server that refuses the first call, and only lists its model.
    let refusing = Server::start(|request| {
        let models = || model(GUESSES)(request);
        if request.path.ends_with("/models") {
            models()
        } else {
            vec![Act::Send(http("400 Bad Request", "", b"{}"))]
        }
    });
    let words = ["--risk", "0.05", "--seed", "3"];
    one_run(&folder, &refusing, "A hard sum: 2 + 2?", &words, 6);
    // The calibration stands in the journal, so its file is not needed again.
    std::fs::remove_file(folder.path().join("known/calibration.json")).unwrap();
    let runs = Finished::of(consensus(&folder).args(["runs", "--format", "json"])).exits(0).stdout;
    let runs: Value = serde_json::from_str(&runs).unwrap();
    let run = runs[0]["run"].as_str().unwrap();
    let resume = ["resume", run, "--base-url", &server.url()];
    // Answers that need more tokens are not those that the calibration knows.
    let other = Finished::of(consensus(&folder).args(resume).args(["--max-tokens-total", "100000"])).exits(2);
    assert!(other.stderr.contains("holds for its limits on tokens and cost alone"), "{}", other.stderr);
    Finished::of(consensus(&folder).args(resume)).exits(3);
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn request_can_demand_more_confidence() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    sums(&folder, 400);
    let url = server.url();
    let on = ["--base-url", &url, "--model", "tiny-model", "--roleset", "self_consistency"];
    let batch = ["batch", "sums.jsonl", "--output", "known", "--quiet"];
    Finished::of(consensus(&folder).args(batch).args(on)).exits(0);
    calibrated(&folder, &[], 0);
    let words = ["--calibration", "known/calibration.json"];
    let front = Served::start(&folder, &[&on[..], &words].concat());
    let asked = |seed: u64, extension: Value| {
        let messages = json!([{"role": "user", "content": "A hard sum: how much is 7 - 7 + 4?"}]);
        let model = "consensus/self_consistency";
        let body = json!({"model": model, "messages": messages, "seed": seed, "consensus": extension});
        front.chat(&[], &body).json()
    };
    // Most guesses have a winner, and it is not sure.
    let is_agreed =
        |seed: &u64| asked(*seed, json!({"canonical": "number"}))["consensus"]["outcome"] == "agreed";
    let seed = (1..20).find(is_agreed).expect("some guesses agree");
    let strict = asked(seed, json!({"canonical": "number", "min_confidence": 0.99}));
    assert_eq!(strict["consensus"]["outcome"], "abstained", "{strict}");
    assert!(strict["choices"][0]["message"]["content"].is_null(), "{strict}");
    let limited = asked(seed, json!({"canonical": "number", "budget": {"tokens": 100_000}}));
    assert_eq!(
        limited["error"]["param"], "consensus.budget",
        "a calibration holds for its own limits: {limited}"
    );
    drop(front);
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
}

#[test]
fn calibrated_batch_limits_wrong_answers() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    known(&folder, &server);
    calibrated(&folder, &[], 0);
    let calibration = ["--calibration", "known/calibration.json", "--risk", "0.05"];
    let batch = ["batch", "sums.jsonl", "--output", "out", "--first-seed", "1000", "--quiet"];
    Finished::of(asked(&folder, &server, &batch).args(calibration)).exits(0);
    Finished::of(consensus(&folder).args(["verify", "out"])).exits(0);
    let rows = lines(&folder, "results-0.jsonl");
    let count = |outcome: &str, right: bool| {
        rows.iter().filter(|row| row["outcome"] == outcome && row["right"] == right).count()
    };
    let (right, wrong) = (count("agreed", true), count("agreed", false));
    assert_eq!(right + wrong + count("abstained", false), 400, "no answer is no right answer");
    assert!(wrong * 20 <= right + wrong, "{wrong} of {} are wrong", right + wrong);
    assert!(right >= 180, "easy sums are answered: {right}");
    let status =
        Finished::of(consensus(&folder).args(["batch", "status", "out", "--format", "json"])).exits(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["ended"]["abstained"], json!(count("abstained", false)));
    // Another risk is another way of running the tasks.
    let changed = ["--calibration", "known/calibration.json", "--risk", "0.2"];
    let stderr = Finished::of(asked(&folder, &server, &batch).args(changed)).exits(2).stderr;
    assert!(stderr.contains("with other settings"), "{stderr}");
    // Answers that were withheld cannot calibrate anything.
    let stderr = Finished::of(consensus(&folder).args(["calibrate", "out"])).exits(2).stderr;
    assert!(stderr.contains("which may have withheld answers; use runs without it"), "{stderr}");
}

#[test]
fn a_calibration_holds_for_no_other_way() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    known(&folder, &server);
    calibrated(&folder, &[], 0);
    for (words, why) in [
        (&["--risk", "0.001"][..], "a risk of 0.1 % is not certifiable: at least 2,995 answers"),
        (&["--samples-max", "7"], "the parameter `samples_max` is `7` and not `5`"),
        (&["--model", "other-model"], "the model is `other-model, other-model`"),
        (
            &["--temperature", "0.1"],
            "the agents have other instructions, temperatures, lengths of replies or checks",
        ),
        (&["--calibration", "sums.jsonl"], "it is no calibration"),
        (&["--calibration", "nowhere.json"], "cannot be read: No such file"),
    ] {
        let mut command = consensus(&folder);
        command.args(["run", "--prompt", "An easy sum: 2 + 2?", "--base-url", &server.url()]);
        let overridden = |flag: &&str| words.contains(flag);
        let usual =
            [["--model", "tiny-model"], ["--calibration", "known/calibration.json"], ["--samples-max", "5"]];
        usual.iter().filter(|pair| !overridden(&pair[0])).for_each(|pair| {
            command.args(pair);
        });
        command.args([
            "--roleset",
            "vote_number",
            "--stop",
            "none",
            "--on-disagreement",
            "leader",
            "--no-model-check",
        ]);
        let stderr = Finished::of(command.args(words)).exits(2).stderr;
        assert!(stderr.contains(why), "{words:?}: {stderr}");
    }
    let stderr = Finished::of(consensus(&folder).args(["run", "--risk", "0.1", "2 + 2?"])).exits(2).stderr;
    assert!(stderr.contains("--calibration <FILE>"), "{stderr}");
}

#[test]
fn uncertifiable_risk_names_needed_answers() {
    let folder = Folder::new();
    sums(&folder, 60);
    let batch =
        ["batch", "sums.jsonl", "--output", "known", "--mock", "--answer", "4", "--roleset", "vote_number"];
    Finished::of(consensus(&folder).args(batch)).exits(0);
    let calibrate = ["calibrate", "known", "--risk", "0.05"];
    let Finished { stdout, stderr, .. } = Finished::of(consensus(&folder).args(calibrate)).exits(9);
    assert!(stdout.contains("risk 5 %: not certifiable, at least 59 answers"), "{stdout}");
    assert!(
        stdout.contains("risk 10 %: from a confidence of 96.87 % on, 100 % of tasks answered, 0 of 30 wrong, so at most 9.5 %"),
        "{stdout}"
    );
    assert!(
        stderr.contains("at least 59 answers without an error are needed, and the half of the tasks that certifies has 30; it takes 118"),
        "{stderr}"
    );
    // The file is there all the same, for a confidence without a threshold.
    assert!(folder.path().join("known/calibration.json").exists());
    let other = ["--arm", "other", "--stop", "sure"];
    Finished::of(consensus(&folder).args(batch).args(other)).exits(0);
    let stderr = Finished::of(consensus(&folder).args(["calibrate", "known"])).exits(2).stderr;
    assert!(stderr.contains("choose one: --only arm=; --only arm=other"), "{stderr}");
    let mut command = consensus(&folder);
    Finished::of(command.args(["calibrate", "known", "--only", "arm=other", "--risk", "0.2"])).exits(0);
}

#[test]
fn the_runs_that_end_first_certify_nothing() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    sums(&folder, 400);
    // One of two shards, and a batch that was stopped.
    let shard = ["batch", "sums.jsonl", "--output", "known", "--quiet", "--shard", "0/2"];
    Finished::of(&mut asked(&folder, &server, &shard)).exits(0);
    let calibrate = ["calibrate", "known", "--risk", "0.2"];
    let why = Finished::of(consensus(&folder).args(calibrate)).exits(2).stderr;
    assert!(why.contains("`known` is not complete, and the runs that end first are the easy ones"), "{why}");
    let other = ["batch", "sums.jsonl", "--output", "known", "--quiet", "--shard", "1/2"];
    Finished::of(&mut asked(&folder, &server, &other)).exits(0);
    Finished::of(consensus(&folder).args(calibrate)).exits(0);
}

/// A calibration counts the runs without a line of results, and the same batch command brings them back.
#[test]
fn lost_results_are_reported_and_restored() {
    let folder = Folder::new();
    sums(&folder, 60);
    let batch =
        ["batch", "sums.jsonl", "--output", "known", "--mock", "--answer", "4", "--roleset", "vote_number"];
    let calibrate = ["calibrate", "known", "--risk", "0.2"];
    Finished::of(consensus(&folder).args(batch)).exits(0);
    let path = folder.path().join("known/results-0.jsonl");
    let results = std::fs::read_to_string(&path).unwrap();
    let kept: String = results.lines().take(50).map(|line| line.to_owned() + "\n").collect();
    std::fs::write(&path, kept).unwrap();
    let stderr = Finished::of(consensus(&folder).args(calibrate)).exits(2).stderr;
    assert!(stderr.contains("10 runs ended without a line of results"), "{stderr}");
    Finished::of(consensus(&folder).args(batch)).exits(0);
    let finished = Finished::of(consensus(&folder).args(calibrate)).exits(0);
    assert!(finished.stdout.contains("60 tasks"), "{}", finished.stdout);
}

#[test]
fn a_question_that_comes_twice_counts_once() {
    let folder = Folder::new();
    let line = |id: usize| {
        let mut task = json!({"id": id, "prompt": format!("How much is {} + 0?", id % 40), "answer": 4});
        // The roleset says the same kind.
        if id < 200 {
            task["canonical"] = json!("number");
        }
        task.to_string() + "\n"
    };
    folder.write("sums.jsonl", &(0..400).map(line).collect::<String>());
    let batch =
        ["batch", "sums.jsonl", "--output", "known", "--mock", "--answer", "4", "--roleset", "vote_number"];
    Finished::of(consensus(&folder).args(batch)).exits(0);
    let finished = Finished::of(consensus(&folder).args(["calibrate", "known"])).exits(9);
    assert!(finished.stdout.contains("40 tasks: 40 with an answer"), "{}", finished.stdout);
    assert!(finished.stderr.contains("360 runs that ask one again are not used"), "{}", finished.stderr);
}

/// A run that reaches a limit counts as one without an answer, and runs under two limits make no calibration.
#[test]
fn limited_run_counts_as_unanswered() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    let line = |id: usize| {
        let long = " and nothing".repeat(if id.is_multiple_of(2) { 0 } else { 2000 });
        let prompt = format!("An easy sum: how much is {id} - {id} + 4{long}?");
        json!({"id": id, "prompt": prompt, "answer": 4, "canonical": "number"}).to_string() + "\n"
    };
    folder.write("sums.jsonl", &(0..120).map(line).collect::<String>());
    let batch = ["batch", "sums.jsonl", "--output", "known", "--quiet", "--max-tokens-total", "6000"];
    Finished::of(&mut asked(&folder, &server, &batch)).exits(5);
    let report = calibrated(&folder, &["--risk", "0.2"], 0);
    let items = &report["items"];
    assert_eq!((&items["runs"], &items["answered"]), (&json!(120), &json!(60)), "{report}");
    let at = report["risks"].as_array().unwrap().iter().find(|row| row["risk"] == 0.2).unwrap();
    let coverage = at["coverage"].as_f64().unwrap();
    assert!((0.4..0.6).contains(&coverage), "half of the tasks reach the limit: {at}");
    // A run with this calibration does not go on under another limit, and answers under two limits make no calibration.
    folder.write("few.jsonl", &(0..2).map(line).collect::<String>());
    let few = ["batch", "few.jsonl", "--output", "few", "--quiet", "--max-tokens-total"];
    let calibration = ["6000", "--calibration", "known/calibration.json", "--risk", "0.2"];
    Finished::of(&mut asked(&folder, &server, &[&few[..], &calibration].concat())).exits(5);
    let raised = ["1000000", "--retry", "budget", "--keep-old"];
    let stderr = Finished::of(&mut asked(&folder, &server, &[&few[..], &raised].concat())).exits(2).stderr;
    assert!(stderr.contains("holds for its limits on tokens and cost alone"), "{stderr}");
    let raised = ["batch", "sums.jsonl", "--output", "known", "--quiet", "--max-tokens-total", "1000000"];
    let raised = [&raised[..], &["--retry", "budget"]].concat();
    // The plan counts the runs that go on.
    let planned = [&raised[..], &["--dry-run", "--format", "json"]].concat();
    let planned = Finished::of(&mut asked(&folder, &server, &planned)).exits(0).stdout;
    let planned: Value = serde_json::from_str(&planned).unwrap();
    assert_eq!((&planned["columns"][0]["runs"], &planned["columns"][0]["ended"]), (&json!(120), &json!(60)));
    Finished::of(&mut asked(&folder, &server, &raised)).exits(0);
    let stderr = Finished::of(consensus(&folder).args(["calibrate", "known"])).exits(2).stderr;
    assert!(stderr.contains("made in different ways: the limits on tokens and cost are"), "{stderr}");
}

/// A pilot that is smaller than the array of jobs leaves some of them nothing to do.
#[test]
fn an_evaluation_with_an_empty_part_is_complete() {
    let folder = Folder::new();
    sums(&folder, 40);
    for shard in 0..41 {
        let mut eval = consensus(&folder);
        eval.args(["eval", "sums.jsonl", "--out", "study", "--samples", "2", "--arm", "single", "--quiet"]);
        Finished::of(eval.args(["--mock", "--answer", "4", "--shard", &format!("{shard}/41")])).exits(0);
    }
    let calibrate = ["calibrate", "study", "--risk", "0.2"];
    let stdout = Finished::of(consensus(&folder).args(calibrate)).exits(0).stdout;
    assert!(stdout.contains("40 tasks: 40 with an answer"), "{stdout}");
}

/// The bank may be elsewhere by now, and another one in its place.
#[test]
fn bank_batch_calibration_reports_unknown_fields() {
    let folder = Folder::new();
    sums(&folder, 40);
    let run = |words: &[&str], code: i32| Finished::of(consensus(&folder).args(words)).exits(code);
    let mock = ["--mock", "--answer", "4", "--roleset", "vote_number", "--quiet"];
    run(&[&["batch", "sums.jsonl", "--bank", "bank", "--words", "4"][..], &mock].concat(), 0);
    let vote = ["batch", "sums.jsonl", "--from-bank", "bank", "--output", "votes", "--samples-max", "4"];
    run(&[&vote[..], &["--roleset", "vote_number", "--quiet"]].concat(), 0);
    let stderr = run(&["calibrate", "votes", "--risk", "0.2"], 0).stderr;
    assert!(stderr.contains("the `body` of the provider is not known"), "{stderr}");
}

/// A run under other limits, or with other fields added to its requests, cannot use the calibration.
#[test]
fn calibration_requires_same_limits_and_fields() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    known(&folder, &server);
    calibrated(&folder, &[], 0);
    let limited = ["--risk", "0.05", "--max-tokens-total", "100000"];
    let why = one_run(&folder, &server, "An easy sum: 2 + 2?", &limited, 2).stderr;
    assert!(why.contains("the limits on tokens and cost are 100,000 tokens and not none"), "{why}");
    let provider = format!("[providers.mine]\nbase_url = \"{}\"\nbody = {{ top_p = 0.1 }}\n", server.url());
    folder.write("consensus.toml", &provider);
    trust(&folder);
    let mut command = consensus(&folder);
    command.args(["run", "--calibration", "known/calibration.json", "--canonical", "number"]).args(VOTE);
    let why =
        Finished::of(command.args(["--model", "mine:tiny-model", "--prompt", "2 + 2?"])).exits(2).stderr;
    assert!(why.contains("the fields that are added to requests are others"), "{why}");
    // The samples of an evaluation were drawn with them too.
    let mut eval = consensus(&folder);
    eval.args(["eval", "sums.jsonl", "--limit", "60", "--out", "study", "--samples", "4"]);
    Finished::of(eval.args(["--arm", "vote", "--model", "mine:tiny-model"])).exits(0);
    let calibrate = ["calibrate", "study", "--only", "arm=vote", "--risk", "0.2"];
    assert!([0, 9].contains(&Finished::of(consensus(&folder).args(calibrate)).code));
    let made = std::fs::read_to_string(folder.path().join("study/calibration.json")).unwrap();
    let made: Value = serde_json::from_str(&made).unwrap();
    let extras = made["way"]["extras"].as_array().unwrap();
    assert!(!extras.is_empty() && extras.iter().all(|extra| *extra == json!({"top_p": 0.1})), "{made}");
}

#[test]
fn impossible_calibration_is_refused() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    known(&folder, &server);
    calibrated(&folder, &[], 0);
    let path = folder.path().join("known/calibration.json");
    let made: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for (at, value, why) in [
        ("/fit/weights", json!([]), "its weights do not fit its classes"),
        ("/steps/0/answered", json!(8_000_000), "its steps contradict each other"),
        ("/steps/0/errors", json!(401), "its steps contradict each other"),
        ("/items/right", json!(401), "its numbers of runs contradict each other"),
        ("/items/fitted", json!(399), "its steps contradict its numbers of runs"),
        ("/made_at", json!("RED\nerror: none"), "its `made_at` is no time"),
        ("/way/extras", json!([]), "its `extras` are not one for each of its models"),
        ("/v", json!(2), "it is of version 2 of the format"),
    ] {
        let mut changed = made.clone();
        *changed.pointer_mut(at).unwrap() = value;
        folder.write("known/calibration.json", &changed.to_string());
        let stderr = one_run(&folder, &server, "An easy sum: 2 + 2?", &[], 2).stderr;
        assert!(stderr.contains(why), "{at}: {stderr}");
    }
    for (output, why) in
        [("sums.jsonl", "is there, and it is no calibration: "), ("/dev/null", "is there, and it is no file")]
    {
        let stderr =
            Finished::of(consensus(&folder).args(["calibrate", "known", "--output", output])).exits(2).stderr;
        assert!(stderr.contains(why), "{output}: {stderr}");
    }
}

#[test]
fn run_on_other_model_has_no_confidence() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    known(&folder, &server);
    calibrated(&folder, &[], 0);
    let mut run = consensus(&folder);
    run.args(["run", "--calibration", "known/calibration.json", "--risk", "0.05", "--canonical", "number"]);
    let launched = ["--prompt", "An easy sum: 2 + 2?", "--launch", &fake_llm("dies=3")];
    Finished::of(run.args(VOTE).args(launched)).exits(6);
    let other = Server::start(|request| {
        if request.path.ends_with("/models") {
            let list = json!({"data": [{"id": "other-model"}]});
            return vec![Act::Send(http("200 OK", "", list.to_string().as_bytes()))];
        }
        model(GUESSES)(request)
    });
    let resume = ["resume", "--last", "--base-url", &other.url()];
    let finished = Finished::of(consensus(&folder).args(resume)).exits(3);
    assert!(finished.stderr.contains("has seen no such answer or not this model"), "{}", finished.stderr);
    assert_eq!(finished.stdout, "");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn dry_run_refuses_unfit_calibration() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    known(&folder, &server);
    calibrated(&folder, &[], 0);
    let asked_before = server.chats().len();
    let batch = ["batch", "sums.jsonl", "--output", "out", "--dry-run"];
    let run = ["run", "--prompt", "2 + 2?", "--canonical", "number", "--dry-run"];
    for words in [&batch[..], &run[..]] {
        for (calibration, why) in [
            (&["--calibration", "nowhere.json"][..], "cannot be read"),
            (&["--calibration", "known/calibration.json", "--risk", "0.0005"], "is not certifiable"),
            (&["--calibration", "known/calibration.json", "--samples-max", "7"], "is `7` and not `5`"),
        ] {
            let mut command = consensus(&folder);
            command.args(words).args(["--base-url", &server.url(), "--model", "tiny-model"]);
            let flags = ["--roleset", "vote_number", "--stop", "none", "--on-disagreement", "leader"];
            let most = if calibration.contains(&"--samples-max") { &[][..] } else { &["--samples-max", "5"] };
            let stderr = Finished::of(command.args(flags).args(most).args(calibration)).exits(2).stderr;
            assert!(stderr.contains(why), "{words:?} {calibration:?}: {stderr}");
        }
        let fits = ["--calibration", "known/calibration.json", "--risk", "0.05"];
        Finished::of(asked(&folder, &server, words).args(fits)).exits(0);
    }
    assert_eq!(server.chats().len(), asked_before, "nothing was asked");
}

#[test]
fn redacted_batch_fits_redacted_calibration() {
    let (folder, server) = (Folder::new(), Server::start(model(GUESSES)));
    sums(&folder, 400);
    // The pattern meets the words of the voters' instructions too.
    let redact = ["--redact-pattern", "exact|number"];
    let batch = ["batch", "sums.jsonl", "--output", "known", "--quiet"];
    Finished::of(asked(&folder, &server, &batch).args(redact)).exits(0);
    calibrated(&folder, &[], 0);
    let again =
        ["batch", "sums.jsonl", "--output", "out", "--quiet", "--calibration", "known/calibration.json"];
    Finished::of(asked(&folder, &server, &again).args(redact)).exits(0);
    std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    let stderr = Finished::of(&mut asked(&folder, &server, &again)).exits(2).stderr;
    assert!(stderr.contains("the agents have other instructions"), "{stderr}");
}
