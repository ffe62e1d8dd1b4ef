//! Records that somebody has changed.

use serde_json::{Value, json};

use super::Project;
use crate::support::{Finished, consensus};

#[test]
fn whatever_is_changed_in_a_record_it_does_not_verify() {
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
    let first = bend(&|r| r["v"] = json!(1));
    assert!(first.contains("records of the first form never do"), "{first}");
    bend(&|r| r["v"] = json!(3));
    let stripped = bend(&|r| drop(r["votes"].as_array_mut().unwrap().remove(2)));
    assert!(stripped.contains("it has the votes of 3 of 4 reviewers"), "{stripped}");
    bend(&|r| r["votes"][0]["letter"]["grounds"] = json!([r["votes"][1]["letter"]]));
    bend(&|r| r["votes"] = json!([]));
    bend(&|r| r["note"] = json!("an unknown field"));

    // Nor does it under other keys.
    Finished::of(consensus(&project.folder).args(["keys", "generate", "others", "--quiet"])).exits(0);
    let other =
        Finished::of(consensus(&project.folder).args(["verify", "proof.json", "--keys", "others"])).exits(7);
    assert!(other.stderr.contains("made under the roster"), "{}", other.stderr);
}

#[test]
fn a_record_of_what_was_not_approved_cannot_be_made_one_of_something_else() {
    let project = Project::new();
    project.said(&["--change", "fix", "--answer", "reject", "-o", "proof.json"], 3);
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

#[test]
fn a_record_of_the_first_version_verifies_as_it_did() {
    let project = Project::new();
    let verify = |record: &str, roster: &str, format: &str, code| {
        project.folder.write("old.json", record);
        project.folder.write("public/roster.json", roster);
        let words = ["verify", "old.json", "--keys", "public", "--format", format];
        Finished::of(consensus(&project.folder).args(words)).exits(code).stdout
    };
    let (together, roster) = (include_str!("v0_1/together.json"), include_str!("v0_1/together-roster.json"));
    let said = verify(together, roster, "text", 0);
    for line in [
        "verified: decision 1, approved\n",
        "  signed by    Quality, Performance, Compatibility (quorum 3)\n",
        "  vote         Security (mock) approves, 95 % sure\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
    assert!(!said.contains("Quorum"), "it does not say on which models the votes rest: {said}");
    let (apart, roster) = (include_str!("v0_1/apart.json"), include_str!("v0_1/apart-roster.json"));
    let said: Value = serde_json::from_str(&verify(apart, roster, "json", 0)).unwrap();
    let votes = said["decision"]["votes"].as_array().unwrap();
    assert_eq!(votes.len(), 3, "{said}");
    assert!(votes.iter().all(|vote| vote["model"] == "the model of the run"), "{said}");
    assert!(votes.iter().all(|vote| vote.get("signed_model").is_none()), "{said}");
    // A model that is written into it afterwards was not signed.
    let mut bent: Value = serde_json::from_str(apart).unwrap();
    bent["votes"][0]["letter"]["model"] = json!({"endpoint": "mock", "model": "mock"});
    verify(&bent.to_string(), roster, "text", 7);
    bent["v"] = json!(2);
    verify(&bent.to_string(), roster, "text", 7);
}

#[test]
fn a_record_or_a_roster_that_cannot_be_read_does_not_verify() {
    let project = Project::new();
    project.said(&["--change", "fix", "-o", "proof.json"], 0);
    let verify = ["verify", "proof.json", "--keys", "keys"];
    for name in ["proof.json", "keys/roster.json"] {
        let path = project.folder.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut not_text = whole.clone();
        let middle = whole.len() / 2;
        not_text[middle] = 0xff;
        for damaged in [&not_text[..], &whole[..middle], b"", b"[]"] {
            std::fs::write(&path, damaged).unwrap();
            let refused = Finished::of(consensus(&project.folder).args(verify)).exits(7);
            assert!(!refused.stderr.is_empty());
        }
        std::fs::write(&path, whole).unwrap();
        Finished::of(consensus(&project.folder).args(verify)).exits(0);
    }
    // A roster that is not there is a mistake of the caller.
    std::fs::remove_file(project.folder.path().join("keys/roster.json")).unwrap();
    Finished::of(consensus(&project.folder).args(verify)).exits(2);
}
