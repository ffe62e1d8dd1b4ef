//! The plan of an evaluation is bound to its runs: a plan that is changed afterwards is found by the report and by `verify`.

use serde_json::{Value, json};

use super::{eval, file, sums, sums_model};
use crate::support::{Finished, Folder, consensus};

const REPORT: [&str; 3] = ["eval", "report", "study"];
const VERIFY: [&str; 2] = ["verify", "study/arms"];

fn plan_of(folder: &Folder) -> Value {
    serde_json::from_str(&file(folder, "plan.json")).unwrap()
}

/// Returns why the report and `verify` refuse a plan.
#[track_caller]
fn refused(folder: &Folder, plan: &str) -> [String; 2] {
    folder.write("study/plan.json", plan);
    [&REPORT[..], &VERIFY].map(|words| Finished::of(consensus(folder).args(words)).exits(7).stderr)
}

#[test]
fn changed_plan_is_found() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 6);
    Finished::of(&mut eval(&folder, &server, &["--arm", "vote", "--arm", "single"])).exits(0);
    let printed = Finished::of(consensus(&folder).args(VERIFY)).exits(0).stdout;
    assert!(printed.contains("plan.json is the one that the runs name"), "{printed}");
    let plan = plan_of(&folder);
    for (at, value) in [
        ("/primary", json!("single")),
        ("/effect", json!(0.05)),
        ("/seed", json!(2)),
        ("/samples", json!(3)),
        ("/pilot", json!(true)),
        ("/cluster", json!("subject")),
        ("/data", json!("other.jsonl")),
        ("/arms/0/roleset", json!("other")),
        ("/banks/0/words", json!(9)),
    ] {
        let mut changed = plan.clone();
        let leaf = changed.pointer_mut(at).unwrap();
        assert_ne!(*leaf, value, "{at}");
        *leaf = value;
        for why in refused(&folder, &changed.to_string()) {
            assert!(why.contains("it is not the plan that the runs were made for"), "{at}: {why}");
        }
    }
    let mut fewer = plan.clone();
    fewer["arms"].as_array_mut().unwrap().pop();
    refused(&folder, &fewer.to_string());
    for why in refused(&folder, "{") {
        assert!(why.contains("is no plan of an evaluation"), "{why}");
    }
    // The same plan in other bytes is the same plan.
    folder.write("study/plan.json", &plan.to_string());
    Finished::of(consensus(&folder).args(REPORT)).exits(0);
    std::fs::remove_file(folder.path().join("study/plan.json")).unwrap();
    let printed = Finished::of(consensus(&folder).args(VERIFY)).exits(0).stdout;
    assert!(printed.contains("plan.json is not beside the batch, and was not compared"), "{printed}");
}

/// The runs of an earlier command name the plan that it had.
#[test]
fn grown_plan_keeps_earlier_ones() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 6);
    Finished::of(&mut eval(&folder, &server, &["--arm", "vote"])).exits(0);
    for _ in 0..2 {
        Finished::of(&mut eval(&folder, &server, &["--arm", "vote", "--arm", "sc@3"])).exits(0);
        Finished::of(consensus(&folder).args(VERIFY)).exits(0);
    }
    let plan = plan_of(&folder);
    assert_eq!(plan["earlier"].as_array().unwrap().len(), 1, "{plan}");
    let mut forgotten = plan.clone();
    forgotten.as_object_mut().unwrap().remove("earlier");
    refused(&folder, &forgotten.to_string());
    let mut changed = plan.clone();
    changed["earlier"][0]["effect"] = json!(0.5);
    refused(&folder, &changed.to_string());
    // No plan with another effect can have grown into this one.
    let mut foreign = plan["earlier"][0].clone();
    foreign["effect"] = json!(0.5);
    let mut more = plan.clone();
    more["earlier"].as_array_mut().unwrap().push(foreign);
    for why in refused(&folder, &more.to_string()) {
        assert!(why.contains("an earlier plan cannot have grown into it"), "{why}");
    }
}
