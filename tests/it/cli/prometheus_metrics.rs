//! Figures for Prometheus: of every run in the runs folder, once.

use std::os::unix::fs::PermissionsExt;

use crate::support::{Finished, Folder, consensus};

/// Runs a task with scripted agents that agree, and returns the metrics after it.
fn after_run(folder: &Folder, words: &[&str]) -> String {
    let run = ["run", "--mock", "--prompt", "2+2?", "--metrics-file", "metrics/consensus.prom"];
    Finished::of(consensus(folder).args(run).args(words)).exits(0);
    std::fs::read_to_string(folder.path().join("metrics/consensus.prom")).unwrap()
}

/// Runs are counted by their outcome, and a resumed run counts once.
#[test]
fn metrics_count_each_run_once() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("metrics")).unwrap();
    after_run(&folder, &["--answer", "four"]);
    let text = after_run(&folder, &["--answer", "five"]);
    let agreed = "consensus_runs{outcome=\"agreed\",protocol=\"vote\",roleset=\"question\"} 2\n";
    assert!(text.contains(agreed), "{text}");
    assert!(text.contains("consensus_run_seconds_count{protocol=\"vote\",roleset=\"question\"} 2\n"));
    assert!(text.contains("consensus_agent_seconds_count{agent=\"Answerer\","), "{text}");
    let resume = ["resume", "--last", "--metrics-file", "again.prom"];
    Finished::of(consensus(&folder).args(resume)).exits(0);
    assert_eq!(std::fs::read_to_string(folder.path().join("again.prom")).unwrap(), text);
    // Also for a run that is named by the folder in which the program is.
    let here = ["resume", ".", "--metrics-file", "here.prom"];
    let last = folder.path().join("runs");
    let last = std::fs::read_dir(last).unwrap().next().unwrap().unwrap().path();
    Finished::of(consensus(&folder).args(here).current_dir(&last)).exits(0);
    assert_eq!(std::fs::read_to_string(last.join("here.prom")).unwrap(), text);
    // The exporter is another user, and reads no file that is half written.
    let dir = folder.path().join("metrics");
    let mode = std::fs::metadata(dir.join("consensus.prom")).unwrap().permissions().mode();
    assert_eq!(mode & 0o444, 0o444);
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 1);
}

#[test]
fn metrics_show_confidence_per_council_member() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("metrics")).unwrap();
    let text = after_run(&folder, &["--answer", "four", "--roleset", "council_tripartite"]);
    for member in ["Ethos", "Logos", "Pathos"] {
        assert!(text.contains(&format!("consensus_confidence_count{{agent=\"{member}\"")), "{text}");
    }
}

#[test]
fn unwritable_metrics_file_costs_no_answer() {
    let folder = Folder::new();
    let run = ["run", "--mock", "--answer", "four", "--prompt", "2+2?", "--metrics-file", "nowhere/x.prom"];
    let finished = Finished::of(consensus(&folder).args(run)).exits(0);
    assert_eq!(finished.stdout, "four\n");
    assert!(finished.stderr.contains("cannot write the metrics to `nowhere/x.prom`"), "{}", finished.stderr);
}
