//! A plan tells what an evaluation takes, and bars judge what came of it.

use serde_json::{Value, json};

use super::{arm, eval, evaluated, file, sums, sums_model};
use crate::support::{Act, Finished, Folder, SENSIBLE, Server, consensus, http, model};

#[test]
fn a_plan_is_printed_before_any_call() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    let words = [&super::ARMS[..], &["--dry-run"]].concat();
    let finished = Finished::of(&mut eval(&folder, &server, &words)).exits(0);
    assert!(finished.stdout.contains("\"columns\""), "{}", finished.stdout);
    assert!(server.chats().is_empty() && !folder.path().join("study").exists());
    let plan: Value = serde_json::from_str(&finished.stdout).unwrap();
    let jobs = plan["batches"].as_array().unwrap();
    assert_eq!((jobs.len(), &plan["power"][0]["discordant"]), (2, &json!(0.1)), "{plan}");
    let calls = |value: &Value| value["at_once"]["calls"].as_u64().unwrap();
    let each = jobs.iter().flat_map(|job| job["columns"].as_array().unwrap()).map(calls).sum::<u64>();
    assert_eq!(
        (calls(&plan["sum"]), &plan["sum"]["seconds"]),
        (each, &Value::Null),
        "no run tells the time yet"
    );
    // A pilot tells how long the rest takes.
    evaluated(&folder, &server, &["--pilot", "2"], 0);
    let stdout = Finished::of(eval(&folder, &server, &super::ARMS).arg("--dry-run")).exits(0).stdout;
    let plan: Value = serde_json::from_str(&stdout).unwrap();
    assert!(plan["sum"]["seconds"].is_u64() && calls(&plan["sum"]) < each, "{plan}");
}

#[test]
fn run_at_its_limit_has_no_answer() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 8);
    let words = ["--max-tokens-total", "5000"];
    let summary = evaluated(&folder, &server, &words, 0);
    let pair = arm(&summary, "pair:writer_physicist");
    assert_eq!((&summary["items"], &pair["answered"]["count"]), (&json!(8), &json!(0)), "{pair}");
    assert!(
        pair["cost"]["tokens"].as_f64().unwrap() > 0.0 && !arm(&summary, "sc@3")["right"]["share"].is_null()
    );
    // Every item that speaks against it has a page.
    let worse = pair["against"]["worse"].as_u64().unwrap();
    let page = file(&folder, "report.html");
    let listed =
        page.lines().filter(|line| line.contains("items/") && line.contains("pair:writer_physicist"));
    let pages = std::fs::read_dir(folder.path().join("study/items")).unwrap().count();
    assert!(worse > 0 && listed.count() as u64 >= worse && pages as u64 >= worse, "{worse}, {pages}: {page}");
}

/// A bank without all of its samples would leave every arm incomplete, whatever is done then.
#[test]
fn limit_holds_for_arms_not_samples() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    let summary = evaluated(&folder, &server, &["--max-tokens-total", "300"], 0);
    assert_eq!((&summary["items"], &summary["planned"]), (&json!(4), &json!(4)), "{summary}");
    assert_eq!(arm(&summary, "pair:writer_physicist")["answered"]["count"], 0);
    let point = &summary["curves"][0]["points"][2];
    assert_eq!(
        arm(&summary, "sc@3")["right"]["share"],
        point["right"],
        "a point of the curve is what it says"
    );
    // The plan says what such runs can take at most.
    let words = [&super::ARMS[..], &["--out", "other", "--dry-run", "--max-tokens-total", "300"]].concat();
    let mut command = consensus(&folder);
    command.args(["eval", "sums.jsonl", "--format", "json", "--mock", "--answer", "4"]).args(words);
    let plan: Value = serde_json::from_str(&Finished::of(&mut command).exits(0).stdout).unwrap();
    let most = |batch: usize| plan["batches"][batch]["columns"][0]["most"]["prompt_tokens"].as_u64();
    assert!(most(0).unwrap() > 4 * 300 && most(1) == Some(4 * 300), "{plan}");
    // A limit on cost needs a price before the first call.
    std::fs::remove_dir_all(folder.path().join("study")).unwrap();
    let words = [&super::ARMS[..], &["--max-cost", "0.01"]].concat();
    let asked = server.chats().len();
    let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(2).stderr;
    assert!(stderr.contains("--max-cost needs the price of tiny-model"), "{stderr}");
    assert_eq!(server.chats().len(), asked);
}

#[test]
fn bars_are_cases_of_junit() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 24);
    let words = ["--fail-under", "answered=0.5", "--fail-under", "right=0.99", "--junit", "bars.xml"];
    evaluated(&folder, &server, &words, 9);
    let read = || std::fs::read_to_string(folder.path().join("bars.xml")).unwrap();
    let xml = read();
    let has = |part: &str| assert!(xml.contains(part), "{part}: {xml}");
    has("<testsuite name=\"bars\" tests=\"3\" skipped=\"0\" errors=\"0\" failures=\"1\">");
    has("<failure message=\"vote,modes=words,program: right may be as low as");
    has("<testsuite name=\"single\" tests=\"24\" skipped=\"0\" errors=\"0\"");
    has("<property name=\"tokens\"");
    has("<failure message=\"answered “5”; the right answer is “4”\"/>");
    // Bars of an evaluation that is not complete are not judged.
    std::fs::remove_dir_all(folder.path().join("study/arms")).unwrap();
    let report = ["eval", "report", "study", "--fail-under", "answered=0.5", "--junit", "bars.xml"];
    Finished::of(consensus(&folder).args(report)).exits(2);
    let xml = read();
    assert!(
        xml.contains("<testsuite name=\"bars\" tests=\"2\" skipped=\"1\" errors=\"0\" failures=\"1\">"),
        "{xml}"
    );
    assert!(xml.contains("<error message=\"no run has ended, or it has failed\"/>"), "{xml}");
}

/// An old file would be taken for that of an evaluation that has failed.
#[test]
fn junit_file_spares_others_and_does_not_linger() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    let tasks = std::fs::read_to_string(folder.path().join("sums.jsonl")).unwrap();
    for (file, why) in [
        ("sums.jsonl", "it is not a JUnit file of an evaluation"),
        ("/dev/null", "it is not a JUnit file of an evaluation"),
        ("nowhere/bars.xml", "there is no folder `nowhere`"),
    ] {
        let words = [&super::ARMS[..], &["--junit", file]].concat();
        let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(2).stderr;
        assert!(stderr.contains(why), "{file}: {stderr}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("sums.jsonl")).unwrap(), tasks);
    evaluated(&folder, &server, &["--junit", "bars.xml"], 0);
    std::fs::remove_dir_all(folder.path().join("study")).unwrap();
    let refusing = Server::start(|request| {
        if request.path.ends_with("/models") {
            return model(SENSIBLE)(request);
        }
        vec![Act::Send(http("400 Bad Request", "", b"{}"))]
    });
    let words = [&super::ARMS[..], &["--junit", "bars.xml"]].concat();
    Finished::of(&mut eval(&folder, &refusing, &words)).exits(6);
    let xml = std::fs::read_to_string(folder.path().join("bars.xml")).unwrap_or_default();
    assert!(!xml.contains("4 of 4 are complete"), "{xml}");
}

#[test]
fn shard_plan_counts_that_shard_only() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 8);
    let calls = |words: &[&str]| {
        let words = [&super::ARMS[..], &["--dry-run"], words].concat();
        let stdout = Finished::of(&mut eval(&folder, &server, &words)).exits(0).stdout;
        let plan: Value = serde_json::from_str(&stdout).unwrap();
        plan["sum"]["at_once"]["calls"].as_u64().unwrap()
    };
    assert_eq!(calls(&["--shard", "0/2"]) * 2, calls(&[]));
    // A command that would be refused is refused before it is planned.
    evaluated(&folder, &server, &[], 0);
    let words = [&super::ARMS[..], &["--dry-run", "--seed", "7"]].concat();
    let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(2).stderr;
    assert!(stderr.contains("the seed is 1 there and 7 here"), "{stderr}");
}

/// A pilot that is smaller than the array of jobs leaves some of them nothing to do.
#[test]
fn a_part_without_an_item_succeeds() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 2);
    let words = [&super::ARMS[..], &["--shard", "2/3"]].concat();
    Finished::of(&mut eval(&folder, &server, &words)).exits(0);
    assert!(server.chats().is_empty());
    evaluated(&folder, &server, &["--shard", "0/3"], 0);
    let whole = evaluated(&folder, &server, &["--shard", "1/3"], 0);
    assert_eq!((&whole["items"], &whole["planned"]), (&json!(2), &json!(2)));
}

/// What ends first is what is easy, so a part of a baseline or of an evaluation is no measure.
#[test]
fn incomplete_evaluation_or_baseline_is_not_judged() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 8);
    let first = ["--arm", "vote", "--shard", "0/2"];
    Finished::of(&mut eval(&folder, &server, &first)).exits(0);
    let report = |words: &[&str]| {
        let finished =
            Finished::of(consensus(&folder).args(["eval", "report", "study"]).args(words)).exits(2);
        finished.stderr
    };
    let stderr = report(&["--fail-under", "right=0.01"]);
    assert!(stderr.contains("no bar is judged, because 4 of 8 items are complete"), "{stderr}");
    assert!(report(&["--baseline", "study"]).contains("the baseline is the evaluation itself"));
    std::fs::rename(folder.path().join("study"), folder.path().join("old")).unwrap();
    let asked = server.chats().len();
    let against = ["--arm", "vote", "--baseline", "old"];
    let stderr = Finished::of(&mut eval(&folder, &server, &against)).exits(2).stderr;
    assert!(
        stderr.contains("`old` has 4 of its 8 items") && stderr.contains("first complete it"),
        "{stderr}"
    );
    assert_eq!(server.chats().len(), asked, "nothing was asked");
}

/// Two hundred items of ten texts are not two hundred independent ones.
#[test]
fn clusters_widen_every_interval_of_a_share() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 48);
    let width = |words: &[&str]| {
        let summary = evaluated(&folder, &server, words, 0);
        let interval = summary["arms"][0]["right"]["interval"].clone();
        std::fs::remove_dir_all(folder.path().join("study")).unwrap();
        (summary["units"].clone(), interval["high"].as_f64().unwrap() - interval["low"].as_f64().unwrap())
    };
    let ((items, plain), (clusters, clustered)) = (width(&[]), width(&["--cluster", "subject"]));
    assert_eq!((items, clusters), (48.into(), 12.into()));
    assert!(clustered > plain, "{clustered} {plain}");
}

/// A baseline needs a task in common and answers of the same kind.
#[test]
fn unrelated_baseline_is_refused_before_call() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    evaluated(&folder, &server, &[], 0);
    std::fs::rename(folder.path().join("study"), folder.path().join("old")).unwrap();
    folder
        .write("sums.jsonl", "{\"id\": 0, \"prompt\": \"2+2?\", \"answer\": 4, \"canonical\": \"number\"}\n");
    let asked = server.chats().len();
    let words = ["--arm", "vote", "--baseline", "old"];
    let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(2).stderr;
    assert!(stderr.contains("no task is the same in both") && server.chats().len() == asked, "{stderr}");
    folder.write("sums.jsonl", "{\"id\": 0, \"prompt\": \"2+2?\", \"answer\": \"4\"}\n");
    let kinds =
        "the baseline compares answers of kind number, and this evaluation compares those of kind text";
    let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(2).stderr;
    assert!(stderr.contains(kinds) && server.chats().len() == asked, "{stderr}");
    Finished::of(&mut eval(&folder, &server, &["--arm", "vote"])).exits(0);
    let report = ["eval", "report", "study", "--baseline", "old", "--format", "json"];
    let stdout = Finished::of(consensus(&folder).args(report)).exits(2).stdout;
    let document: Value =
        serde_json::from_str(&stdout).expect("one document, although the baseline is refused");
    assert!(document["error"].to_string().contains(kinds), "{document}");
}

#[test]
fn one_way_is_not_counted_twice() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    let words = ["--arm", "vote,modes=words,stop=sure", "--arm", "vote,stop=sure,modes=words"];
    let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(2).stderr;
    assert!(stderr.contains("are the same way of answering"), "{stderr}");
    let words = ["--arm", "vote", "--arm", "vote,stop=fast"];
    let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(2).stderr;
    assert!(stderr.contains("are the same way of answering"), "a default that is written out: {stderr}");
}

#[test]
fn missed_bar_exits_with_9() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 24);
    evaluated(&folder, &server, &["--fail-under", "right=0.2", "--fail-under", "answered=0.5"], 0);
    let words = [&super::ARMS[..], &["--fail-under", "right=0.99"]].concat();
    let finished = Finished::of(&mut eval(&folder, &server, &words)).exits(9);
    assert!(
        finished.stderr.contains("right may be as low as") && finished.stderr.contains("the bar is 99.0 %"),
        "{}",
        finished.stderr
    );
    // A later evaluation whose primary arm is as good passes, and one that is worse does not.
    std::fs::rename(folder.path().join("study"), folder.path().join("old")).unwrap();
    evaluated(&folder, &server, &["--baseline", "old"], 0);
    std::fs::remove_dir_all(folder.path().join("study")).unwrap();
    let words = [&super::ARMS[..], &["--primary", "pair:writer_physicist", "--baseline", "old"]].concat();
    let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(9).stderr;
    assert!(
        stderr.contains("missed: pair:writer_physicist: ")
            && stderr.contains("since the baseline, over 24 tasks"),
        "{stderr}"
    );
    // Only tasks that are the same are compared.
    let same = ["--arm", "vote,modes=words,program", "--baseline", "old"];
    sums(&folder, 30);
    std::fs::remove_dir_all(folder.path().join("study")).unwrap();
    Finished::of(&mut eval(&folder, &server, &same)).exits(0);
    let again = ["eval", "report", "study", "--baseline", "old"];
    let stderr = Finished::of(consensus(&folder).args(again)).exits(0).stderr;
    assert!(stderr.contains("since the baseline, over 24 tasks"), "{stderr}");
    folder
        .write("sums.jsonl", "{\"id\": 0, \"prompt\": \"2+2?\", \"answer\": 4, \"canonical\": \"number\"}\n");
    std::fs::remove_dir_all(folder.path().join("study")).unwrap();
    let stderr =
        Finished::of(&mut eval(&folder, &server, &["--arm", "vote", "--baseline", "old"])).exits(2).stderr;
    assert!(stderr.contains("no task is the same in both"), "{stderr}");
}

/// Arms that share budgets play the samples of one bank, and each stays within its own tokens.
#[test]
fn arms_share_budgets_over_one_bank() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 12);
    let budgets = [("vote,budget=3600", 3_600), ("vote,budget=4800", 4_800)];
    let words = ["--arm", "single", "--arm", budgets[0].0, "--arm", budgets[1].0];
    Finished::of(&mut eval(&folder, &server, &words)).exits(0);
    assert_eq!(server.chats().len(), 12 * 12, "a bank of 12 samples of each task, and no other call");
    let rows: Vec<Value> = file(&folder, "arms/results-0.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (arm, budget) in budgets {
        let used = rows.iter().filter(|row| row["arm"] == arm).map(|row| &row["usage"]);
        let tokens: Vec<u64> = used
            .map(|used| used["prompt"].as_u64().unwrap() + used["completion"].as_u64().unwrap())
            .collect();
        let sum: u64 = tokens.iter().sum();
        assert_eq!(tokens.len(), 12, "{arm}");
        assert!(sum > 12 * 240 && sum <= budget, "{arm}: {sum} tokens");
    }
    Finished::of(consensus(&folder).args(["verify", "study/arms"])).exits(0);
}
