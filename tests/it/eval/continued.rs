//! An evaluation that is killed goes on, and its report follows from its results alone.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::{ARMS, eval, evaluated, file, sums, sums_model};
use crate::support::{Act, Finished, Folder, Server, consensus, http, trust};

/// Returns a summary without the times in it.
fn timeless(mut summary: Value) -> Value {
    for arm in summary["arms"].as_array_mut().unwrap() {
        arm["cost"]["seconds"].take();
    }
    summary
}

/// Returns the records of this kind in the journals of an evaluation. A kill may have torn the last line.
fn records(folder: &Folder, kind: &str) -> Vec<Value> {
    let of = |batch: &&str| {
        let journal = folder.path().join("study").join(batch).join("journal-0.jsonl");
        std::fs::read_to_string(journal).unwrap_or_default()
    };
    let journals: Vec<String> = ["bank", "bank-2", "arms"].iter().map(of).collect();
    let lines = journals.iter().flat_map(|journal| journal.split_inclusive('\n'));
    let whole =
        lines.filter(|line| line.ends_with('\n')).map(|line| serde_json::from_str::<Value>(line).unwrap());
    whole.filter(|record| record["event"]["type"] == kind).collect()
}

/// Returns how many replies the journals of an evaluation hold of each call of each run.
fn replies(folder: &Folder) -> BTreeMap<(String, String), usize> {
    let mut replies = BTreeMap::new();
    for record in records(folder, "replied") {
        *replies.entry((record["run"].to_string(), record["event"]["call"].to_string())).or_default() += 1;
    }
    assert!(!replies.is_empty());
    replies
}

/// Only the time of each arm may differ, and a report from the same results is the same byte for byte.
#[test]
fn same_evaluation_gives_same_summary() {
    let server = sums_model();
    let summaries = [(); 2].map(|()| {
        let folder = Folder::new();
        sums(&folder, 12);
        let printed = evaluated(&folder, &server, &[], 0);
        let summary = file(&folder, "summary.json");
        assert_eq!(printed, serde_json::from_str::<Value>(&summary).unwrap());
        // The report is computed again from the results, byte for byte.
        let written = || ["summary.json", "items.jsonl", "report.html"].map(|name| file(&folder, name));
        let before = written();
        let names = ["summary.json", "items.jsonl", "report.html"];
        for name in names {
            std::fs::remove_file(folder.path().join("study").join(name)).unwrap();
        }
        Finished::of(consensus(&folder).args(["eval", "report", "study"])).exits(0);
        assert_eq!(written(), before);
        let (times, rest): (Vec<&str>, Vec<&str>) =
            summary.lines().partition(|line| line.contains("\"seconds\": "));
        assert_eq!(times.len(), ARMS.len() / 2, "only the time of each arm may differ");
        rest.join("\n")
    });
    assert_eq!(summaries[0], summaries[1]);
}

/// After many kills every reply on record is the only one for its call, and the summary is that of an undisturbed evaluation.
#[test]
fn killed_evaluation_repeats_no_answered_call() {
    let server = sums_model();
    let (whole, folder) = (Folder::new(), Folder::new());
    sums(&whole, 16);
    sums(&folder, 16);
    let undisturbed = timeless(evaluated(&whole, &server, &[], 0));
    let asked = server.chats().len();
    let mut moments = fastrand::Rng::with_seed(11);
    let words = [&ARMS[..], &["--runs-at-once", "4"]].concat();
    let (kills, mut cut_short) = (20, 0);
    for _ in 0..kills {
        let mut child =
            eval(&folder, &server, &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A moment, and no sign that anything has happened.
        std::thread::sleep(Duration::from_millis(moments.u64(5..200)));
        let _ = child.kill();
        cut_short += usize::from(child.wait().unwrap().code().is_none());
        // Every request is on record before it is made, so none is made beside the journals. Most calls of the arms are answered by the
        // bank.
        let (made, recorded) = (server.chats().len() - asked, records(&folder, "asked").len());
        assert!(made <= recorded, "{made} requests, and {recorded} on record");
    }
    assert!(cut_short >= kills / 4, "{cut_short} of {kills} kills came before the end");
    assert_eq!(timeless(evaluated(&folder, &server, &["--runs-at-once", "4"], 0)), undisturbed);
    // A call is made again only if its reply was on its way when the program was killed: every reply on record is the only one.
    let (kept, wanted) = (replies(&folder), replies(&whole));
    assert_eq!(kept.len(), wanted.len());
    assert!(kept.values().all(|count| *count == 1), "{kept:?}");
    let more = server.chats().len() - asked - asked;
    assert!(more <= kills * 8 && more < asked, "{more} of {asked} calls were made again");
}

#[test]
fn parts_make_the_whole() {
    let server = sums_model();
    let (whole, parts) = (Folder::new(), Folder::new());
    sums(&whole, 9);
    sums(&parts, 9);
    let undisturbed = timeless(evaluated(&whole, &server, &[], 0));
    let first = evaluated(&parts, &server, &["--shard", "0/2"], 0);
    assert_eq!((&first["items"], &first["planned"]), (&5.into(), &9.into()));
    let verdicts = first["arms"].as_array().unwrap().iter().map(|arm| &arm["verdict"]);
    assert!(verdicts.into_iter().all(Value::is_null), "a part of the items gives no verdict: {first}");
    let both = timeless(evaluated(&parts, &server, &["--shard", "1/2"], 0));
    assert_eq!(both, undisturbed);
    // The bars are for the whole.
    let report = |bar: &str| {
        consensus(&parts).args(["eval", "report", "study", "--fail-under", bar]).output().unwrap()
    };
    assert_eq!(report("right=0.99").status.code(), Some(9));
    assert_eq!(report("right=0.01").status.code(), Some(0));
}

/// Parts of a Slurm array end when they like.
#[test]
fn parts_ending_at_once_do_not_collide() {
    let server = sums_model();
    let folder = Folder::new();
    sums(&folder, 32);
    let part = |shard: String| {
        let words = [&ARMS[..], &["--shard", &shard]].concat();
        let mut command = eval(&folder, &server, &words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let parts: Vec<_> = (0..4).map(|index| part(format!("{index}/4"))).collect();
    for child in parts {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let reports: Vec<_> = (0..6)
        .map(|_| {
            let mut report = consensus(&folder);
            report
                .args(["eval", "report", "study", "--format", "json"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in reports {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["items"], 32);
    }
}

/// Answers are graded again from the journals, even where results are changed or missing.
#[test]
fn report_trusts_journals_over_results() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 8);
    let before = evaluated(&folder, &server, &[], 0);
    let report = || {
        let mut report = consensus(&folder);
        let stdout =
            Finished::of(report.args(["eval", "report", "study", "--format", "json"])).exits(0).stdout;
        serde_json::from_str::<Value>(&stdout).unwrap()
    };
    // A verdict in the results is not taken over: the answers are graded again.
    let results = folder.path().join("study/arms/results-0.jsonl");
    let graded = std::fs::read_to_string(&results).unwrap();
    let changed = graded.replace("\"right\":true", "\"right\":false");
    assert_ne!(graded, changed);
    std::fs::write(&results, changed).unwrap();
    assert_eq!(report(), before);
    // Without any results, everything comes from the journals.
    std::fs::remove_file(&results).unwrap();
    std::fs::remove_file(folder.path().join("study/bank/results-0.jsonl")).unwrap();
    assert_eq!(report(), before);
}

/// A changed plan is refused once an evaluation has begun, and further arms may be added.
#[test]
fn plan_is_fixed_before_results() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 6);
    let few = ["--arm", "vote"];
    Finished::of(&mut eval(&folder, &server, &few)).exits(0);
    for (change, what) in [
        (
            &["--arm", "vote", "--effect", "0.05"][..],
            "the smallest effect of interest is 0.02 there and 0.05 here",
        ),
        (&["--arm", "vote", "--seed", "2"], "the seed is 1 there and 2 here"),
        (
            &["--arm", "sc@3", "--arm", "vote", "--primary", "sc@3"],
            "the primary arm is vote there and sc@3 here",
        ),
        (&["--arm", "pair:writer_physicist", "--primary", "pair:writer_physicist"], "the primary arm"),
        (&["--arm", "vote", "--limit", "3"], "the number of items is 6 there and 3 here"),
        (&["--arm", "vote", "--pilot", "6"], "it is no pilot there"),
        (&["--arm", "vote", "--shard", "0/2"], "the number of parts is 1 there and 2 here"),
        (
            &["--arm", "vote", "--max-tokens-total", "4000"],
            "the limit of each run is none there and 4,000 tokens here",
        ),
    ] {
        let stderr = Finished::of(&mut eval(&folder, &server, change)).exits(2).stderr;
        assert!(stderr.contains("another plan") && stderr.contains(what), "{change:?}: {stderr}");
    }
    // There may be more arms, also such as need another bank.
    let more = ["--arm", "vote", "--arm", "sc@16"];
    let stdout = Finished::of(&mut eval(&folder, &server, &more)).exits(0).stdout;
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&summary["items"], &summary["primary"]), (&6.into(), &"vote".into()));
    assert!(folder.path().join("study/bank-2").is_dir());
    Finished::of(&mut eval(&folder, &server, &more)).exits(0);
}

/// An incomplete evaluation says what is missing, and the same command takes it up after a kill.
#[test]
fn evaluation_folder_errors_say_what_it_holds() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    let arms = ["--arm", "vote"];
    Finished::of(&mut eval(&folder, &server, &arms)).exits(0);
    let refused = |words: &[&str]| Finished::of(consensus(&folder).args(words)).exits(2).stderr;
    let stderr = refused(&["verify", "study"]);
    assert!(stderr.contains("its batches are `study/arms` and `study/bank`"), "{stderr}");
    let other =
        ["eval", "sums.jsonl", "--out", "study", "--samples", "4", "--arm", "vote", "--model", "other"];
    let stderr = refused(&[&other[..], &["--base-url", &server.url()]].concat());
    assert!(stderr.contains("the arm `vote` has another model or roleset there"), "{stderr}");
    // A kill between the two files of the plan leaves a folder that the same command takes up.
    std::fs::remove_file(folder.path().join("study/tasks.jsonl")).unwrap();
    let stderr = refused(&["eval", "report", "study"]);
    assert!(
        stderr.contains("study/tasks.jsonl` is missing; the command that began the evaluation"),
        "{stderr}"
    );
    Finished::of(&mut eval(&folder, &server, &arms)).exits(0);
    assert_eq!(file(&folder, "tasks.jsonl").lines().count(), 4);
    // An evaluation whose arms have not begun is not complete, and its items can be shown.
    std::fs::remove_dir_all(folder.path().join("study/arms")).unwrap();
    let stderr = refused(&["calibrate", "study"]);
    assert!(stderr.contains("`study` is not complete"), "{stderr}");
    let shown = Finished::of(consensus(&folder).args(["eval", "show", "study", "1"])).exits(0).stdout;
    assert!(shown.contains("vote: no run has ended") && shown.ends_with('\n'), "{shown}");
}

#[test]
fn files_of_others_are_left_alone() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    folder.write("study/thesis.txt", "mine");
    let arms = ["--arm", "single"];
    let stderr = Finished::of(&mut eval(&folder, &server, &arms)).exits(2).stderr;
    assert!(stderr.contains("is not empty and holds no evaluation"), "{stderr}");
    let here = ["eval", "sums.jsonl", "--arm", "single", "--out", ".", "--mock", "--answer", "4"];
    let stderr = Finished::of(consensus(&folder).args(here)).exits(2).stderr;
    assert!(stderr.contains("the data is in the folder"), "{stderr}");
    assert!(server.chats().is_empty() && file(&folder, "thesis.txt") == "mine");
    std::fs::remove_file(folder.path().join("study/thesis.txt")).unwrap();
    // A kill while the plan was written leaves a part of it, which is no file of others.
    let unfinished = folder.write("study/.plan.json.6f1c2a9e-5f0b-4a7e-9d3c-0b1e2f3a4c5d.new", "{");
    Finished::of(&mut eval(&folder, &server, &arms)).exits(0);
    assert!(!unfinished.exists(), "it is removed");
    // Pages of items come and go; other files beside them stay.
    folder.write("study/items/notes.txt", "mine");
    folder.write("study/items/9.html", "old");
    Finished::of(consensus(&folder).args(["eval", "report", "study"])).exits(0);
    assert_eq!(file(&folder, "items/notes.txt"), "mine");
    assert!(!folder.path().join("study/items/9.html").exists());
}

/// A report is refused when the chain of a journal is broken, also at a run of an item without a page.
#[test]
fn report_refuses_broken_chain() {
    let folder = Folder::new();
    let rows = [
        r#"{"id": 0, "prompt": "2 + 2?", "answer": 4}"#,
        r#"{"id": 1, "prompt": "Which number?", "answer": 6}"#,
    ];
    folder.write("sums.jsonl", &rows.join("\n"));
    let script = [1, 2].map(|draft| format!(r#"{{"draft": {draft}, "reply": "Answer: 5"}}"#)).join("\n");
    folder.write("script.jsonl", &format!("{script}\n{}", r#"{"reply": "Answer: 4"}"#));
    let words = "eval sums.jsonl --arm single --arm sc@3 --samples 3 --out study --mock-script script.jsonl";
    Finished::of(consensus(&folder).args(words.split(' '))).exits(0);
    let page = |number| folder.path().join(format!("study/items/{number}.html")).exists();
    assert!(page(1) && !page(2), "the first answer is voted down, and the second is never found");
    // The run of an item without a page is a part of the chain.
    let text = file(&folder, "arms/journal-0.jsonl");
    folder.write("study/arms/journal-0.jsonl", &text.replacen("Which number?", "What number?", 1));
    let stderr = Finished::of(consensus(&folder).args(["eval", "report", "study"])).exits(7).stderr;
    assert!(stderr.contains("the chain is broken"), "{stderr}");
}

#[test]
fn right_answers_are_fixed_before_results() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    Finished::of(&mut eval(&folder, &server, &["--arm", "single"])).exits(0);
    let stderr = Finished::of(&mut eval(&folder, &server, &["--arm", "single", "--grader", "contains"]))
        .exits(2)
        .stderr;
    assert!(stderr.contains("are read in another way"), "{stderr}");
    let tasks = file(&folder, "tasks.jsonl").replace("\"answer\":4", "\"answer\":5");
    folder.write("study/tasks.jsonl", &tasks);
    let stderr = Finished::of(consensus(&folder).args(["eval", "report", "study"])).exits(7).stderr;
    assert!(stderr.contains("are not those that it was made for"), "{stderr}");
}

/// A folder of a stranger may hold a link to files of the person who looks at it.
#[test]
fn a_report_removes_no_file_through_a_link() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    evaluated(&folder, &server, &[], 0);
    let (items, mine) = (folder.path().join("study/items"), folder.path().join("mine"));
    std::fs::remove_dir_all(&items).unwrap();
    std::fs::create_dir(&mine).unwrap();
    let names = ["1.html", ".html", "a.html"];
    for name in names {
        std::fs::write(mine.join(name), "mine").unwrap();
    }
    std::os::unix::fs::symlink("../mine", &items).unwrap();
    let stderr = Finished::of(consensus(&folder).args(["eval", "report", "study"])).exits(1).stderr;
    assert!(stderr.contains("it is a link, and not the evaluation's own folder"), "{stderr}");
    let kept = names.iter().all(|name| std::fs::read_to_string(mine.join(name)).unwrap() == "mine");
    assert!(kept && std::fs::read_dir(&mine).unwrap().count() == names.len());
}

/// A server that gets other extra fields may answer otherwise.
#[test]
fn other_extra_fields_prevent_reuse() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    let evaluate = |top_p: f64, words: &[&str]| {
        let provider =
            format!("[providers.mine]\nbase_url = \"{}\"\nbody = {{ top_p = {top_p} }}\n", server.url());
        folder.write("consensus.toml", &provider);
        trust(&folder);
        let mut eval = consensus(&folder);
        eval.args(["eval", "sums.jsonl", "--arm", "single", "--samples", "2", "--model", "mine:tiny-model"]);
        let stderr = Finished::of(eval.args(words)).exits(0).stderr;
        (server.chats().len(), stderr)
    };
    let (known, _) = evaluate(0.1, &["--out", "first"]);
    let (asked, stderr) = evaluate(0.1, &["--out", "same", "--reuse", "first"]);
    assert!(asked == known && stderr.contains(&format!("--reuse: {known} of {known} requests")), "{stderr}");
    let (asked, stderr) = evaluate(0.2, &["--out", "other", "--reuse", "first"]);
    assert!(asked == 2 * known && stderr.contains(&format!("--reuse: none of {known} requests")), "{stderr}");
}

/// A further evaluation asks only for requests that an earlier one has not on record.
#[test]
fn replies_of_an_earlier_evaluation_are_used_again() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 6);
    let first = evaluated(&folder, &server, &[], 0);
    std::fs::rename(folder.path().join("study"), folder.path().join("old")).unwrap();
    let asked = server.chats().len();
    let mut again = consensus(&folder);
    again.args(["eval", "sums.jsonl", "--out", "study", "--samples", "4", "--reuse", "old"]).args(ARMS);
    again.args(["--base-url", &server.url(), "--model", "tiny-model"]);
    let stderr = Finished::of(&mut again).exits(0).stderr;
    assert!(
        stderr.contains(&format!("--reuse: {asked} of {asked} requests had a reply on record")),
        "{stderr}"
    );
    assert_eq!(server.chats().len(), asked, "every request is on record");
    let again: Value = serde_json::from_str(&file(&folder, "summary.json")).unwrap();
    assert_eq!(timeless(again), timeless(first), "tokens count as they did then");
    Finished::of(consensus(&folder).args(["verify", "study/arms"])).exits(0);
    // Another seed has other requests.
    std::fs::remove_dir_all(folder.path().join("study")).unwrap();
    let words = [&ARMS[..], &["--reuse", "old", "--seed", "2"]].concat();
    let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(0).stderr;
    let others = server.chats().len() - asked;
    assert!(
        stderr.contains(&format!("--reuse: none of {others} requests had a reply on record")),
        "{stderr}"
    );
    // It says so too if no call succeeds.
    std::fs::remove_dir_all(folder.path().join("study")).unwrap();
    let closed = Server::start(|_| vec![Act::Send(http("401 Unauthorized", "", b"{}"))]);
    let words = [&ARMS[..], &["--reuse", "old", "--seed", "3"]].concat();
    let stderr = Finished::of(&mut eval(&folder, &closed, &words)).exits(6).stderr;
    assert!(stderr.contains("--reuse: none of "), "{stderr}");
    let words = [&super::ARMS[..], &["--reuse", "sums.jsonl"]].concat();
    std::fs::remove_dir_all(folder.path().join("study")).unwrap();
    let why = Finished::of(&mut eval(&folder, &server, &words)).exits(2).stderr;
    assert!(why.contains("--reuse: the folder `sums.jsonl` cannot be read"), "{why}");
}
