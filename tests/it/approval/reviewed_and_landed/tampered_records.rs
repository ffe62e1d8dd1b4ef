//! Records that were changed afterwards.

use serde_json::{Value, json};

use super::Project;
use crate::support::{Finished, consensus};

#[test]
fn changed_record_does_not_verify() {
    let project = Project::new();
    project.said(&["--change", "fix", "-o", "proof.json"], 0);
    let proof = std::fs::read_to_string(project.folder.path().join("proof.json")).unwrap();
    let record: Value = serde_json::from_str(&proof).unwrap();
    let verify = |record: &Value, code| {
        let file = project.folder.write("bent.json", &record.to_string());
        let verified =
            consensus(&project.folder).arg("verify").arg(&file).args(["--keys", "keys"]).output().unwrap();
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert_eq!(verified.status.code(), Some(code), "{said}");
        said
    };
    verify(&record, 0);
    let bend = |act: &dyn Fn(&mut Value)| {
        let mut bent = record.clone();
        act(&mut bent);
        assert_ne!(bent, record, "the test changes nothing");
        verify(&bent, 7)
    };
    bend(&|r| r["sequence"] = json!(2));
    bend(&|r| r["chain"] = json!("0".repeat(64)));
    bend(&|r| r["change"] = json!(r["change"].as_str().unwrap().replace("sum(items)", "max(items)")));
    bend(&|r| r["envelope"]["payload"] = json!("e30="));
    bend(&|r| r["roster"]["reviewers"].as_array_mut().unwrap().swap(0, 1));
    let few = bend(&|r| drop(r["envelope"]["signatures"].as_array_mut().unwrap().pop()));
    assert!(few.contains("it has 2 signatures on a decision, and 3 are needed"), "{few}");
    let twice = bend(&|r| {
        let signatures = r["envelope"]["signatures"].as_array_mut().unwrap();
        signatures[1] = signatures[0].clone();
    });
    assert!(twice.contains("has signed twice"), "{twice}");
    bend(&|r| r["votes"][0]["letter"]["opinion"]["approve"]["confidence"] = json!(1));
    bend(&|r| r["votes"][1] = r["votes"][0].clone());
    // The model is signed with the vote, and where it was called.
    assert_eq!(record["votes"][0]["letter"]["model"], json!({"endpoint": "mock", "model": "mock"}));
    bend(&|r| r["votes"][0]["letter"]["model"]["model"] = json!("a better one"));
    bend(&|r| r["votes"][0]["letter"]["model"]["endpoint"] = json!("http://192.0.2.1/v1"));
    bend(&|r| drop(r["votes"][0]["letter"].as_object_mut().unwrap().remove("model")));
    let stripped = bend(&|r| drop(r["votes"].as_array_mut().unwrap().remove(2)));
    assert!(stripped.contains("it has the votes of 3 of 4 reviewers"), "{stripped}");
    bend(&|r| r["votes"][0]["letter"]["grounds"] = json!([r["votes"][1]["letter"]]));
    bend(&|r| r["votes"] = json!([]));
    bend(&|r| r["note"] = json!("an unknown field"));

    // Another form is the work of another build, and not a forgery.
    let mut other = record.clone();
    other["v"] = json!(2);
    let other = verify(&other, 2);
    assert!(other.contains("the record has form 2, and `consensus 0.1.0+"), "{other}");

    // Nor does it under other keys.
    Finished::of(consensus(&project.folder).args(["keys", "generate", "others", "--mock", "--quiet"]))
        .exits(0);
    let other =
        Finished::of(consensus(&project.folder).args(["verify", "proof.json", "--keys", "others"])).exits(7);
    assert!(other.stderr.contains("made under the roster"), "{}", other.stderr);
}

#[test]
fn rejection_record_cannot_name_another_change() {
    let project = Project::new();
    project.said(&["--change", "fix", "--verdict", "reject", "-o", "proof.json"], 3);
    let proof = std::fs::read_to_string(project.folder.path().join("proof.json")).unwrap();
    let mut record: Value = serde_json::from_str(&proof).unwrap();
    let verify = |record: &Value, code| {
        project.folder.write("bent.json", &record.to_string());
        let words = ["verify", "bent.json", "--keys", "keys", "--format", "json"];
        let finished = Finished::of(consensus(&project.folder).args(words)).exits(code);
        serde_json::from_str::<Value>(&finished.stdout).unwrap()
    };
    let whole = verify(&record, 0);
    assert_eq!(whole["decision"]["change"].as_str().map(str::len), Some(64), "{whole}");
    // The signatures say only that nothing was decided at this place; on what, the votes say.
    let mut other: Value = serde_json::from_str(record["change"].as_str().unwrap()).unwrap();
    other["reviewers"] = json!([]);
    other["message"] = json!("an innocent change");
    record["change"] = json!(other.to_string());
    verify(&record, 7);
    record["votes"] = json!([]);
    let stripped = verify(&record, 0);
    assert_eq!(stripped["decision"]["change"], Value::Null, "{stripped}");
    assert_eq!(stripped["decision"]["silent"].as_array().unwrap().len(), 4);
}
