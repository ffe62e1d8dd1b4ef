//! Changes that are reviewed, decided on and landed by the program, on real repositories.

mod before_a_number;
mod crash_while_landing;
mod distributed;
mod keys_without_their_ledger;
mod reviewer_cut_off;
mod tampered_records;
mod what_may_be_proposed;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::{Finished, Project, consensus};

#[test]
fn keys_are_private_and_never_overwritten() {
    let project = Project::new();
    let folder = project.folder.path().join("keys");
    for name in ["Quality", "Security", "Performance", "Compatibility", "orchestrator"] {
        let key = folder.join(format!("{name}.key"));
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        let text = std::fs::read_to_string(&key).unwrap();
        assert!(text.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{name}");
    }
    let roster = std::fs::read_to_string(folder.join("roster.json")).unwrap();
    assert!(!roster.contains("PRIVATE"));
    let again = Finished::of(consensus(&project.folder).args(["keys", "generate", "keys"])).exits(2);
    assert!(again.stderr.contains("never overwritten"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(folder.join("roster.json")).unwrap(), roster);
    let pair = ["keys", "generate", "other", "--roleset", "solver_checker"];
    Finished::of(consensus(&project.folder).args(pair)).exits(2);

    let key = folder.join("Security.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = Finished::of(&mut project.approve(&["--change", "fix"])).exits(2);
    assert!(open.stderr.contains("can be read by others"), "{}", open.stderr);
}

/// The public keys alone are enough to verify the decision.
#[test]
fn approved_change_lands_once_with_proof() {
    let project = Project::new();
    let base = project.main();
    let said = project
        .said(&["--change", "fix", "--message", "Sum by the language's own means", "-o", "proof.json"], 0);
    assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(1)));
    let metrics = &said["metrics"];
    assert_eq!((&metrics["success"], &metrics["change_complexity"]), (&json!(true), &json!(5)), "{said}");
    assert_eq!(metrics["phase_latencies_ms"].as_array().unwrap().len(), 3, "{said}");
    let commit = said["commit"].as_str().unwrap();
    assert_eq!(project.main(), commit);
    assert_eq!(project.git(&["rev-parse", "main^"]), base);
    assert_eq!(project.git(&["rev-parse", "main^{tree}"]), project.git(&["rev-parse", "fix^{tree}"]));
    let message = project.git(&["log", "-1", "--format=%B", "main"]);
    let change = said["change"].as_str().unwrap();
    for part in [
        "Sum by the language's own means\n\n",
        "Consensus-Sequence: 1\n",
        change,
        "Consensus-Approved-By: Security\n",
    ] {
        assert!(message.contains(part), "{message}");
    }
    project.is_clean();

    // The public keys alone are enough to verify it.
    let public = std::fs::read_to_string(project.folder.path().join("keys/roster.json")).unwrap();
    project.folder.write("public/roster.json", &public);
    let verified =
        Finished::of(consensus(&project.folder).args(["verify", "proof.json", "--keys", "public"])).exits(0);
    assert!(verified.stdout.starts_with("verified: decision 1, approved\n"), "{}", verified.stdout);
    assert!(
        verified.stdout.contains(change) && verified.stdout.contains("Security (mock) approves"),
        "{}",
        verified.stdout
    );
    Finished::of(consensus(&project.folder).args(["verify", "proof.json"])).exits(2);

    // The same once more changes nothing, and no model is asked.
    let again = Finished::of(&mut project.approve(&["--change", "fix"])).exits(0);
    assert!(again.stderr.contains("decision 1 has landed this change already"), "{}", again.stderr);
    assert_eq!(project.main(), commit);
}

/// A rejection is a decision too, and its record verifies.
#[test]
fn rejected_change_leaves_branch_alone() {
    let project = Project::new();
    let before = project.git(&["for-each-ref"]);
    let said = project
        .said(&["--change", "fix", "--verdict", "reject", "-o", "proof.json", "--sarif", "found.sarif"], 3);
    let sarif = std::fs::read_to_string(project.folder.path().join("found.sarif")).unwrap();
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    let place = &sarif["runs"][3]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "sum.py", "{sarif}");
    assert_eq!((&said["outcome"], &said["commit"]), (&json!("rejected"), &Value::Null));
    assert_eq!(said["votes"][0]["opinion"]["reject"]["severity"], "high");
    assert_eq!(project.git(&["for-each-ref"]), before);
    let verified =
        Finished::of(consensus(&project.folder).args(["verify", "proof.json", "--keys", "keys"])).exits(0);
    assert!(verified.stdout.starts_with("verified: decision 1, not approved\n"), "{}", verified.stdout);

    // One of four may be wrong; dissent is on record.
    let rules = "{\"agent\": \"Security\", \"policy\": \"stubborn\", \"answer\": \"reject\"}\n{\"policy\": \"honest\", \"answer\": \"approve\"}\n";
    project.folder.write("rules.jsonl", rules);
    let said = project.said(&["--change", "fix", "--mock-script", "rules.jsonl"], 0);
    assert_eq!((&said["outcome"], &said["sequence"]), (&json!("landed"), &json!(2)));
    assert!(said["votes"][1]["opinion"]["reject"].is_object(), "{said}");
    let checked =
        Finished::of(consensus(&project.folder).args(["roleset", "check", "reviewers_f2"])).exits(0);
    assert!(
        checked.stdout.contains("5 of 7; tolerates 2 faulty reviewers. All use the same model"),
        "{}",
        checked.stdout
    );
}

/// The command sees the changed files, but neither the repository nor a secret of the environment.
#[test]
fn failing_command_prevents_review() {
    let project = Project::new();
    let before = project.git(&["for-each-ref"]);
    let see = "grep -q 'return sum' sum.py && test ! -e .git && test -z \"$SECRET_TOKEN\"";
    for (command, code) in [(see, 0), ("echo it fails >&2; exit 3", 3), ("sleep 600 & sleep 600", 3)] {
        let mut approve =
            project.approve(&["--change", "fix", "--verify", command, "--verify-timeout", "2s"]);
        let finished = Finished::of(approve.env("SECRET_TOKEN", "4711")).exits(code);
        let said: Value = serde_json::from_str(&finished.stdout).unwrap();
        if code == 0 {
            assert_eq!(said["outcome"], "landed");
            project.git(&["update-ref", "refs/heads/main", "main^"]);
            continue;
        }
        assert_eq!(said["outcome"], "unverified");
        assert_eq!(project.git(&["for-each-ref", "refs/heads"]), before);
    }
    let runs = std::fs::read_dir(project.folder.path().join("runs")).unwrap();
    let asked = runs.filter(|run| run.as_ref().unwrap().path().join("journal.jsonl").exists()).count();
    assert_eq!(asked, 1, "only the change that passed was reviewed");
}

#[test]
fn cut_off_review_is_resumed_and_decides() {
    let project = Project::new();
    let cut = project.said(&["--change", "fix", "--max-tokens-total", "2500"], 5);
    assert_eq!(cut["outcome"], "budget", "{cut}");
    let run = cut["run"].as_str().unwrap();
    let mut early = consensus(&project.folder);
    early.args(["approve", "--repo", "repo", "--keys", "keys", "--change", "fix", "--review", run]);
    Finished::of(&mut early).exits(5);
    Finished::of(consensus(&project.folder).args(["resume", run, "--max-tokens-total", "1000000"])).exits(0);
    let mut decide = consensus(&project.folder);
    decide.args([
        "approve", "--repo", "repo", "--keys", "keys", "--format", "json", "--review", run, "--change",
    ]);
    let said: Value = serde_json::from_str(&Finished::of(decide.arg("fix")).exits(0).stdout).unwrap();
    assert_eq!((&said["outcome"], &said["run"]), (&json!("landed"), &json!(run)));
    project.branch("more", "more.py", "x = 1\n");
    let mut other = consensus(&project.folder);
    other.args(["approve", "--repo", "repo", "--keys", "keys", "--review", run, "--change", "more"]);
    let other = Finished::of(&mut other).exits(2);
    assert!(other.stderr.contains("is not a review of this change"), "{}", other.stderr);
}

/// One critical finding stops a change where the roleset has a veto, and elsewhere a quorum lands it.
#[test]
fn critical_finding_vetoes_change() {
    let project = Project::new();
    let roleset = include_str!("../../../rolesets/reviewers_f1.json");
    project.folder.write("rolesets/careful.json", &roleset.replace("\"veto\": false", "\"veto\": true"));
    for pack in ["quality", "security", "performance", "compatibility"] {
        project.folder.write(&format!("rolesets/packs/{pack}_reviewer.md"), "Read it.");
    }
    let finding =
        json!({"line": "+    return sum(items)", "problem": "It opens a hole.", "severity": "critical"});
    let form = json!({"findings": [finding], "summary": "No.", "verdict": "reject", "confidence": 90});
    let rules = [
        json!({"agent": "Security", "step": "envelope", "reply": form.to_string()}),
        json!({"policy": "honest", "answer": "approve"}),
    ];
    project.folder.write("rules.jsonl", &rules.map(|rule| rule.to_string()).join("\n"));
    let words = ["--change", "fix", "--mock-script", "rules.jsonl", "-o", "proof.json"];
    let before = project.main();
    project.folder.write("proof.json", "of another decision");
    let said =
        project.said(&[&words[..], &["--rolesets-dir", "rolesets", "--roleset", "careful"]].concat(), 4);
    assert_eq!(said["outcome"], "vetoed", "{said}");
    assert!(said["reason"].as_str().unwrap().contains("It opens a hole"), "{said}");
    assert_eq!(project.main(), before);
    let proof = std::fs::read_to_string(project.folder.path().join("proof.json")).unwrap();
    assert_eq!(proof, "", "what was in the file proves nothing of this change");
    // Elsewhere three of four land it.
    project.said(&words, 0);
}

#[test]
fn a_review_is_counted_with_the_other_runs() {
    let project = Project::new();
    project.said(&["--change", "fix", "--metrics-file", "consensus.prom"], 0);
    let text = std::fs::read_to_string(project.folder.path().join("consensus.prom")).unwrap();
    let agreed = "consensus_runs{outcome=\"agreed\",protocol=\"approval\",roleset=\"reviewers_f1\"} 1\n";
    assert!(text.contains(agreed), "{text}");
    project.branch("more", "more.py", "x = 1\n");
    let words = ["--change", "more", "--verdict", "reject", "--metrics-file", "consensus.prom"];
    project.said(&words, 3);
    let text = std::fs::read_to_string(project.folder.path().join("consensus.prom")).unwrap();
    for line in [
        "consensus_decisions{outcome=\"landed\"} 1\n",
        "consensus_decisions{outcome=\"rejected\"} 1\n",
        "consensus_votes{kind=\"approve\"} 4\n",
        "consensus_votes{kind=\"reject\"} 4\n",
        "consensus_votes{kind=\"silent\"} 0\n",
        "consensus_dissent{severity=\"high\"} 4\n",
        "consensus_rollbacks 0\n",
        "consensus_agreement_rate 0.5\n",
        "consensus_decision_seconds_count{step=\"decide\"} 2\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

/// The log of a command that writes without end stops at 16 MiB, so that it fills no disk.
#[test]
fn endless_command_output_is_truncated() {
    let project = Project::new();
    let said = project.said(&["--change", "fix", "--verify", "head -c 40000000 /dev/zero | tr '\\0' x"], 0);
    let run = project.folder.path().join("runs").join(said["run"].as_str().unwrap());
    assert_eq!(std::fs::metadata(run.join("verification.log")).unwrap().len(), 16 << 20);
}

#[test]
fn decision_records_command_and_sandbox() {
    for (wall, words) in [(true, &[][..]), (false, &["--no-sandbox"])] {
        let project = Project::new();
        let fixed = ["--change", "fix", "--verify", "test -e sum.py", "-o", "proof.json"];
        let said = project.said(&[&fixed, words].concat(), 0);
        let kinds: Vec<&Value> =
            said["degraded"].as_array().unwrap().iter().map(|loss| &loss["kind"]).collect();
        assert_eq!(kinds.is_empty(), wall, "{said}");
        let verify = ["verify", "proof.json", "--keys", "keys"];
        let verified = Finished::of(consensus(&project.folder).args(verify)).exits(0).stdout;
        let line = "  command      test -e sum.py succeeded on it";
        let line = if wall { format!("{line}\n") } else { format!("{line}, without a sandbox\n") };
        assert!(verified.contains(&line), "{verified}");
    }
}

#[test]
fn command_that_stops_its_guard_is_ended() {
    let project = Project::new();
    let command = ["--verify", "kill -STOP $PPID; exec sleep 600", "--verify-timeout", "1s"];
    let said = project.said(&[&["--change", "fix"], &command[..]].concat(), 3);
    assert!(said["reason"].as_str().unwrap().contains("it took longer than 1s"), "{said}");
}

/// Dependencies, coverage, findings and risk are on record with a change.
#[test]
fn facts_of_change_are_signed_with_it() {
    let project = Project::new();
    let lock = |version: &str| format!("[[package]]\nname = \"left-pad\"\nversion = \"{version}\"\n");
    project.git(&["checkout", "--quiet", "fix"]);
    project.folder.write("repo/Cargo.lock", &lock("1.3.0"));
    project.commit("a dependency");
    project.git(&["checkout", "--quiet", "--detach"]);
    project.folder.write("lcov.info", "SF:sum.py\nDA:1,1\nDA:2,0\nend_of_record\n");
    let place = json!({"artifactLocation": {"uri": "sum.py"}, "region": {"startLine": 2}});
    let result =
        json!({"level": "error", "message": {"text": "bad"}, "locations": [{"physicalLocation": place}]});
    let log = json!({"runs": [{"tool": {"driver": {"name": "a linter"}}, "results": [result]}]});
    project.folder.write("found.sarif", &log.to_string());
    let words =
        ["--change", "fix", "--coverage", "lcov.info", "--findings", "found.sarif", "-o", "proof.json"];
    let said = project.said(&words, 0);
    let facts = &said["facts"];
    assert_eq!(facts["dependencies"][0]["name"], "left-pad");
    assert_eq!(
        (&facts["coverage"]["lines"], &facts["coverage"]["covered"]),
        (&json!(1), &json!(0)),
        "{facts}"
    );
    assert_eq!(facts["findings"]["errors"], 1);
    assert_eq!(facts["risk"]["score"], 15 + 20 + 20 + 10, "{facts}");
    // They are signed with it.
    let proof = std::fs::read_to_string(project.folder.path().join("proof.json")).unwrap();
    let record: Value = serde_json::from_str(&proof).unwrap();
    let change: Value = serde_json::from_str(record["change"].as_str().unwrap()).unwrap();
    assert_eq!(&change["facts"], facts);
    for (file, flag) in
        [("found.sarif", "--coverage"), ("lcov.info", "--findings"), ("nothing", "--coverage")]
    {
        project.branch(&format!("b{}", flag.len() + file.len()), "b.py", file);
        let branch = format!("b{}", flag.len() + file.len());
        Finished::of(&mut project.approve(&["--change", &branch, flag, file])).exits(2);
    }
}

/// A command that kills its guard or looks for the repository leaves the change unverified and every branch alone.
#[test]
fn hostile_command_changes_nothing() {
    let project = Project::new();
    let before = project.git(&["for-each-ref"]);
    for command in ["kill -KILL $PPID", "git rev-parse --git-dir", "git update-ref refs/heads/main HEAD"] {
        let said = project.said(&["--change", "fix", "--verify", command], 3);
        assert_eq!(said["outcome"], "unverified", "{command}: {said}");
        assert_eq!(project.git(&["for-each-ref"]), before, "{command}");
    }
}

#[test]
fn invalid_review_counts_as_abstention() {
    let project = Project::new();
    let form = |line: &str, confidence: &str| {
        format!(
            "{{\"findings\":[{{\"line\":\"{line}\",\"problem\":\"x y\",\"severity\":\"critical\"}}],\"summary\":\"no\",\"verdict\":\"reject\",\"confidence\":{confidence}}}"
        )
    };
    let two = "{\"findings\":[],\"summary\":\"ok\",\"verdict\":\"approve\",\"confidence\":9}";
    let replies = [
        String::new(),
        "I cannot help with that.".to_owned(),
        "{".to_owned(),
        "x".repeat(5 << 20),
        format!("{two}{two}"),
        form("+    a line that is not there", "90"),
        form("+    return sum(items)", "-1"),
        form("+    return sum(items)", "1e9"),
        form("+    return sum(items)", "NaN"),
        two.replace("approve", "APPROVE ALL"),
    ];
    for reply in replies {
        let rules = [
            json!({"agent": "Security", "step": "envelope", "reply": reply}),
            json!({"policy": "honest", "answer": "approve"}),
        ];
        project.folder.write("rules.jsonl", &rules.map(|rule| rule.to_string()).join("\n"));
        let said = project.said(&["--change", "fix", "--mock-script", "rules.jsonl"], 0);
        let opinion = &said["votes"][1]["opinion"];
        assert!(opinion["abstain"].is_object(), "{}: {opinion}", &reply[..reply.len().min(60)]);
        project.git(&["update-ref", "refs/heads/main", "main^"]);
    }
}

#[test]
fn landed_commit_keeps_authors_and_signoffs() {
    let project = Project::new();
    project.git(&["checkout", "--quiet", "-b", "feature", "refs/heads/main"]);
    let by = |name: &str, file: &str, signed: &str| {
        project.folder.write(&format!("repo/{file}"), "one\n");
        project.git(&["add", "--all"]);
        let author = format!("{name} <{}@example.org>", name.to_lowercase());
        project.git(&["commit", "--quiet", "--author", &author, "-m", &format!("Add {file}\n\n{signed}")]);
    };
    by("Ada", "a.txt", "Signed-off-by: Ada <ada@example.org>\nConsensus-Sequence: 7");
    by("Bob", "b.txt", "Signed-off-by: Bob <bob@example.org>");
    project.git(&["checkout", "--quiet", "--detach"]);
    project.said(&["--change", "feature", "-M", "Two files", "-o", "proof.json"], 0);
    let message = project.git(&["log", "-1", "--format=%an <%ae>, %cn%n%(trailers:only,unfold)", "main"]);
    assert!(message.starts_with("Ada <ada@example.org>, consensus\n"), "{message}");
    for line in [
        "Signed-off-by: Ada <ada@example.org>",
        "Co-authored-by: Bob <bob@example.org>",
        "Signed-off-by: Bob <bob@example.org>",
    ] {
        assert_eq!(message.matches(line).count(), 1, "{message}");
    }
    assert_eq!(message.matches("Consensus-Sequence: ").count(), 1, "a branch names no decision: {message}");
    let proof = ["verify", "proof.json", "--keys", "keys"];
    Finished::of(consensus(&project.folder).args(proof)).exits(0);
}
