//! Votes that share a budget of tokens: rounds give further samples to the least certain tasks, an interruption changes nothing, and
//! `verify` finds a permit that does not follow.

use std::collections::{BTreeMap, HashMap};

use crypto::Digest;
use serde_json::{Value, json};

use crate::batch::{batch, figures, lines, run_of, tasks};
use crate::support::{Finished, Folder, SENSIBLE, Server, consensus, model};

/// The tokens of one sample of the model, prompt and reply together.
const SAMPLE: u64 = 120;

/// The number of tasks.
const TASKS: u64 = 24;

/// A budget for 20 samples more than the first two of each task.
const BUDGET: u64 = (2 * TASKS + 20) * SAMPLE;

fn voters(url: &str) -> Vec<String> {
    let words = ["--roleset", "vote_number", "--modes", "words", "--model", "tiny-model", "--base-url", url];
    words.map(str::to_owned).to_vec()
}

/// Returns the words of a batch with this budget, and more of them.
fn words<'a>(voters: &'a [String], budget: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let voters = voters.iter().map(String::as_str);
    voters.chain(["--budget-tokens", budget]).chain(more.iter().copied()).collect()
}

fn verified(folder: &Folder, code: i32) -> Finished {
    Finished::of(consensus(folder).args(["verify", "out"])).exits(code)
}

/// Returns the permits of each run, and the end of its permits.
fn permits(folder: &Folder) -> BTreeMap<String, Vec<Value>> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for record in lines(folder, "journal-0.jsonl") {
        let event = &record["event"];
        if event["type"] == "permitted" || event["type"] == "closed" {
            found.entry(run_of(&record)).or_default().push(event.clone());
        }
    }
    found
}

/// Returns the parts of each row that do not depend on when it was made, by its run.
fn answers(folder: &Folder) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for row in lines(folder, "results-0.jsonl") {
        let parts = ["task", "outcome", "text", "right", "vote", "usage"].map(|name| row[name].clone());
        found.insert(run_of(&row), json!(parts));
    }
    found
}

fn samples(row: &Value) -> u64 {
    row["vote"]["looked_at"].as_u64().unwrap()
}

/// A settled task draws no more than it needs, and the budget goes to the others.
#[test]
fn budget_goes_to_the_least_certain() {
    let (folder, server) = (Folder::new(), Server::start(model(SENSIBLE)));
    tasks(&folder, 24);
    let voters = voters(&server.url());
    let done = figures(&folder, &words(&voters, &BUDGET.to_string(), &[]), 0);
    assert_eq!(done["calls"].as_u64().unwrap() * SAMPLE, BUDGET, "the whole budget is used: {done}");
    let rows = lines(&folder, "results-0.jsonl");
    assert_eq!(rows.len(), 24);
    for row in &rows {
        let lead = &row["vote"]["lead"];
        let is_tie = lead["leader"] == lead["runner_up"];
        assert_eq!(row["outcome"] == "agreed", !is_tie, "{row}");
    }
    // The first rounds are for ties, so every other task has two samples until no tie is left.
    let least = rows.iter().map(|row| row["vote"]["certainty_value"].as_f64().unwrap()).fold(1.0, f64::min);
    let further: Vec<&Value> = rows.iter().filter(|row| samples(row) > 2).collect();
    assert!(!further.is_empty() && further.iter().any(|row| samples(row) > 3), "{rows:?}");
    assert!(least > 0.5, "20 more samples settle all ties of 24 tasks: {least}");
    assert!(verified(&folder, 0).stdout.starts_with("verified: all 24 results"));
    // The same command has nothing left to do.
    assert_eq!(figures(&folder, &words(&voters, &BUDGET.to_string(), &[]), 0)["calls"], 0);
    let manifest: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("out/batch.json")).unwrap())
            .unwrap();
    let budget = &manifest["budgets"][0];
    assert_eq!((&budget["tokens"], &budget["tokens_a_shard"]), (&json!(BUDGET), &json!(BUDGET)));
    assert_eq!(budget["thresholds"][0], json!(0.51));
}

/// Leaves the first lines of a journal, as if its process had died behind them, and no results.
fn cut(folder: &Folder, lines: usize) {
    let path = folder.path().join("out/journal-0.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, whole.split_inclusive('\n').take(lines).collect::<String>()).unwrap();
    std::fs::remove_file(folder.path().join("out/results-0.jsonl")).unwrap();
}

/// Neither the number of runs at once nor an interruption at any record changes a permit or an answer.
#[test]
fn interrupted_budget_ends_as_if_undisturbed() {
    let server = Server::start(model(SENSIBLE));
    let (voters, budget) = (voters(&server.url()), BUDGET.to_string());
    let (whole, one) = (Folder::new(), Folder::new());
    for folder in [&whole, &one] {
        tasks(folder, 24);
    }
    figures(&whole, &words(&voters, &budget, &[]), 0);
    let expected = (answers(&whole), permits(&whole));
    assert!(expected.1.values().any(|permits| permits.len() > 3), "{expected:?}");
    figures(&one, &words(&voters, &budget, &["--runs-at-once", "1"]), 0);
    assert_eq!((answers(&one), permits(&one)), expected);
    // The last cuts are within the end of the budget, and the first one within the first samples.
    let count = lines(&one, "journal-0.jsonl").len();
    for at in (1..12).rev() {
        cut(&one, count * at / 12);
        figures(&one, &words(&voters, &budget, &["--runs-at-once", "4"]), 0);
        assert_eq!((answers(&one), permits(&one)), expected, "cut to {at} of 12 parts");
        verified(&one, 0);
    }
}

/// Changes a journal by one record, and makes its chain whole again.
fn forge(folder: &Folder, change: impl Fn(&mut Value) -> bool) {
    let path = folder.path().join("out/journal-0.jsonl");
    let mut heads: HashMap<String, String> = HashMap::new();
    let (mut text, mut head, mut is_done) = (String::new(), Digest::ZERO.to_string(), false);
    for mut record in lines(folder, "journal-0.jsonl") {
        if !is_done {
            is_done = change(&mut record["event"]);
        }
        let run = run_of(&record);
        let before = heads.get(&run).cloned().unwrap_or_else(|| Digest::ZERO.to_string());
        (record["prev"], record["run_prev"]) = (head.into(), before.into());
        let line = record.to_string();
        head = Digest::new(line.as_bytes()).to_string();
        heads.insert(run, head.clone());
        text.push_str(&line);
        text.push('\n');
    }
    assert!(is_done, "nothing was changed");
    std::fs::write(path, text).unwrap();
}

#[test]
fn forged_permit_fails_verification() {
    let server = Server::start(model(SENSIBLE));
    let (voters, budget) = (voters(&server.url()), BUDGET.to_string());
    let folder = Folder::new();
    tasks(&folder, 24);
    figures(&folder, &words(&voters, &budget, &[]), 0);
    let journal = folder.path().join("out/journal-0.jsonl");
    let whole = std::fs::read_to_string(&journal).unwrap();
    // A chain that is made again is whole, so the permits alone can show what was changed.
    for (name, other) in [("spent", json!(5_761)), ("threshold", json!(0.52)), ("round", json!(2))] {
        forge(&folder, |event| {
            let is_permit = event["type"] == "permitted";
            if is_permit {
                event[name] = other.clone();
            }
            is_permit
        });
        let why = verified(&folder, 7).stderr;
        assert!(
            why.contains("a permit of round") && why.contains("the records before it give"),
            "{name}: {why}"
        );
        std::fs::write(&journal, &whole).unwrap();
    }
    forge(&folder, |event| {
        let is_permit = event["type"] == "permitted";
        if is_permit {
            *event = json!({"type": "closed", "spent": event["spent"]});
        }
        is_permit
    });
    let why = verified(&folder, 7).stderr;
    assert!(why.contains("the end of its permits"), "{why}");
    std::fs::write(&journal, &whole).unwrap();
    verified(&folder, 0);
    // The rule in the manifest is that of the program.
    let manifest = folder.path().join("out/batch.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("0.51", "0.6")).unwrap();
    assert!(verified(&folder, 7).stderr.contains("other thresholds"));
}

/// A single run is verified by itself, and its permits are named as not covered.
#[test]
fn permits_of_one_run_are_uncovered() {
    let (folder, server) = (Folder::new(), Server::start(model(SENSIBLE)));
    tasks(&folder, 24);
    figures(&folder, &words(&voters(&server.url()), &BUDGET.to_string(), &[]), 0);
    let (run, _) = permits(&folder).into_iter().find(|(_, permits)| permits.len() > 1).unwrap();
    let journal = std::fs::read_to_string(folder.path().join("out/journal-0.jsonl")).unwrap();
    let own: Vec<&str> =
        journal.lines().filter(|line| line.contains(&format!("\"run\":\"{run}\""))).collect();
    folder.write("one/journal.jsonl", &(own.join("\n") + "\n"));
    let shown = Finished::of(consensus(&folder).args(["verify", "one"])).exits(0).stdout;
    assert!(shown.contains("permit: whether its samples were permitted"), "{shown}");
    assert!(!verified(&folder, 0).stdout.contains("permit:"));
}

/// Two equal samples of one voter are not certain enough, so a budget that is used up decides them as they are.
#[test]
fn used_budget_decides_what_is_there() {
    let folder = Folder::new();
    tasks(&folder, 6);
    let mock = ["--roleset", "vote_number", "--modes", "words", "--mock", "--answer", "4", "--budget-tokens"];
    let done = figures(&folder, &[&mock[..], &["1"]].concat(), 0);
    assert_eq!((&done["ended"]["agreed"], &done["calls"]), (&json!(6), &json!(12)), "{done}");
    for row in lines(&folder, "results-0.jsonl") {
        assert_eq!((&row["vote"]["class"], &row["degraded"][0]["kind"]), (&json!("D"), &json!("unsettled")));
    }
    verified(&folder, 0);
    // Further tasks draw their first samples, and the budget is over for them too.
    tasks(&folder, 8);
    assert_eq!(figures(&folder, &[&mock[..], &["1"]].concat(), 0)["calls"], 4);
    verified(&folder, 0);
    // With enough tokens one more sample settles each task.
    let rich = Folder::new();
    tasks(&rich, 6);
    let done = figures(&rich, &[&mock[..], &["1000000"]].concat(), 0);
    assert_eq!((&done["ended"]["agreed"], &done["calls"]), (&json!(6), &json!(18)), "{done}");
    verified(&rich, 0);
}

#[test]
fn each_shard_has_an_equal_part() {
    let folder = Folder::new();
    tasks(&folder, 12);
    let mock = ["--roleset", "vote_number", "--mock", "--answer", "4", "--budget-tokens", "2001"];
    for shard in ["0/2", "1/2"] {
        let mut command = consensus(&folder);
        command.args(["batch", "tasks.jsonl", "-o", "out", "--shard", shard]).args(mock);
        let said = Finished::of(&mut command).exits(0).stderr;
        assert!(said.contains(&format!("shard {shard} has 1,000 of the 2,001 tokens")), "{said}");
    }
    verified(&folder, 0);
}

#[test]
fn budget_without_sense_is_refused() {
    let folder = Folder::new();
    tasks(&folder, 3);
    let mock = ["--mock", "--answer", "4", "--budget-tokens", "5000"];
    for (more, part) in [
        (&["--roleset", "solver_checker"][..], "--budget-tokens goes with rolesets of `vote` only"),
        (&["--roleset", "vote_number", "--stop", "none"], "--budget-tokens: `stop` is `fast` or `sure`"),
        (&["--roleset", "vote_number", "--ahead", "3"], "cannot be used with"),
        (&["--roleset", "vote_number", "--keep-old"], "cannot be used with"),
    ] {
        let why = Finished::of(&mut batch(&folder, &[&mock[..], more].concat())).exits(2).stderr;
        assert!(why.contains(part), "{more:?}: {why}");
    }
    let vote = ["--roleset", "vote_number"];
    figures(&folder, &[&mock[..], &vote].concat(), 0);
    let other = ["--mock", "--answer", "4", "--roleset", "vote_number", "--budget-tokens", "6000"];
    for more in [&[][..], &["--dry-run"]] {
        let why = Finished::of(&mut batch(&folder, &[&other[..], more].concat())).exits(2).stderr;
        assert!(why.contains("a budget of 5000 tokens") && why.contains("--arm NAME"), "{why}");
    }
    let none = Finished::of(&mut batch(&folder, &other[..5])).exits(2).stderr;
    assert!(none.contains("with other settings"), "{none}");
}

/// A run that waits and whose task is missing keeps the others from a further round.
#[test]
fn missing_task_stops_the_round() {
    let server = Server::start(model(SENSIBLE));
    let (voters, budget) = (voters(&server.url()), BUDGET.to_string());
    let folder = Folder::new();
    tasks(&folder, 24);
    figures(&folder, &words(&voters, &budget, &[]), 0);
    let expected = (answers(&folder), permits(&folder));
    // The first resumed run is that of the first permit.
    let records = lines(&folder, "journal-0.jsonl");
    cut(&folder, records.iter().position(|record| record["event"]["type"] == "resumed").unwrap());
    let text = std::fs::read_to_string(folder.path().join("tasks.jsonl")).unwrap();
    folder.write("tasks.jsonl", &text.split_inclusive('\n').skip(1).collect::<String>());
    let why = Finished::of(&mut batch(&folder, &words(&voters, &budget, &[]))).exits(2).stderr;
    assert!(why.contains("task `1`") && why.contains("give the tasks with which it began"), "{why}");
    folder.write("tasks.jsonl", &text);
    figures(&folder, &words(&voters, &budget, &[]), 0);
    assert_eq!((answers(&folder), permits(&folder)), expected);
    verified(&folder, 0);
}

/// A dry run states a bound that a budget lowers.
#[test]
fn dry_run_is_bounded_by_budget() {
    let folder = Folder::new();
    tasks(&folder, 20);
    let planned = |more: &[&str]| -> Value {
        let vote = ["--roleset", "vote_number", "--modes", "words", "--mock", "--answer", "4", "--dry-run"];
        let said = Finished::of(&mut batch(&folder, &[&vote[..], more].concat())).exits(0).stdout;
        serde_json::from_str(&said).unwrap()
    };
    let most = |plan: &Value| plan["columns"][0]["most"]["completion_tokens"].as_u64().unwrap();
    let twelve = planned(&["--samples-max", "12"]);
    let small = planned(&["--budget-tokens", "1000"]);
    assert_eq!(small["budget_tokens"], 1000);
    assert!(most(&small) < most(&twelve), "{small}");
    assert_eq!(most(&planned(&["--budget-tokens", "100000000"])), most(&twelve));
    assert!(twelve["budget_tokens"].is_null());
}
