//! The rolesets that come with the program.

use std::path::Path;

use consensus::config::{EMBEDDED_ROLESETS, ROLESET_SCHEMA};
use protocol::text::Constraint;
use serde_json::{Value, json};

use crate::support::{Finished, Folder, consensus};

#[test]
fn every_repository_roleset_is_embedded_and_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rolesets");
    let mut files: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let embedded: Vec<&str> = EMBEDDED_ROLESETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(files, embedded);
    let empty = Folder::new();
    let checked = Finished::of(consensus(&empty).args(["roleset", "check"])).exits(0);
    assert_eq!(
        checked.stdout.lines().filter(|line| line.starts_with("ok  ")).count(),
        embedded.len(),
        "{}",
        checked.stdout
    );
    let files = Folder::new();
    let checked =
        Finished::of(consensus(&files).args(["roleset", "check", "--rolesets-dir"]).arg(folder)).exits(0);
    assert!(!checked.stdout.contains("built in"), "{}", checked.stdout);
}

#[test]
fn missing_rolesets_folder_is_refused() {
    let folder = Folder::new();
    let run = ["run", "--mock", "--answer", "4", "--task", "2+2?", "--rolesets-dir", "rolests"];
    let refused = Finished::of(consensus(&folder).args(run)).exits(2);
    assert!(refused.stderr.contains("there is no folder `rolests`"), "{}", refused.stderr);
}

#[test]
fn every_roleset_agrees_with_scripted_agents() {
    for (roleset, answer) in [
        ("generalist_critic", "Boil it for eight minutes."),
        ("writer_physicist", "Cosmic rays are tiny fast particles from space."),
        ("uiux_programmer", "A button that saves the form and says so."),
        ("solver_checker", "36"),
        ("planner_coder", "print(4)"),
        ("translator_reviewer", "Guten Morgen"),
        ("mcq_reasoner_auditor", "C"),
        ("json_author_auditor", "{\"city\": \"Canberra\"}"),
    ] {
        let folder = Folder::new();
        let run = ["run", "--mock", "--roleset", roleset, "--task", "Do it.", "--answer", answer];
        let finished = Finished::of(consensus(&folder).args(run)).exits(0);
        assert_eq!(finished.stdout, format!("{answer}\n"), "{roleset}");
        assert_eq!(folder.result()["how"], "independent", "{roleset}");
    }
}

/// A changed pack counts from then on, and a copy that would replace a different pack is refused.
#[test]
fn roleset_copy_includes_editable_packs() {
    let folder = Folder::new();
    let copy = || Finished::of(consensus(&folder).args(["roleset", "copy", "solver_checker"]));
    assert_eq!(copy().exits(0).stdout, "rolesets/solver_checker.json\n");
    Finished::of(consensus(&folder).args(["roleset", "check", "solver_checker"])).exits(0);
    folder.write("rolesets/packs/solver.md", "Add.");
    // The copy is the roleset of that name now.
    let again = copy().exits(2);
    assert!(again.stderr.contains("nothing was copied"), "{}", again.stderr);
    let any = Finished::of(consensus(&folder).args(["roleset", "show", "vote"])).exits(2).stderr;
    assert!(any.contains("`vote_number`, `vote_choice` or `vote_short`"), "{any}");
    let shown = Finished::of(consensus(&folder).args(["roleset", "show", "solver_checker"])).exits(0);
    assert!(shown.stdout.contains("Add."));
    let other = Folder::new();
    let mine = other.write("rolesets/packs/solver.md", "");
    // Also what is no text.
    std::fs::write(&mine, b"\xff\xfe").unwrap();
    let refused = Finished::of(consensus(&other).args(["roleset", "copy", "solver_checker"])).exits(2);
    assert!(refused.stderr.contains("solver.md` already exists and differs"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&mine).unwrap(), b"\xff\xfe");
    assert!(!other.path().join("rolesets/solver_checker.json").exists());
}

#[test]
fn roleset_check_locates_each_mistake() {
    let folder = Folder::new();
    folder.write("rolesets/packs/one.md", "Work.");
    let bad = r#"{"v": 2, "protocol": "pairs", "agents": [
        {"name": "A", "domain": "d", "pack": "one.md", "temperatur": 0.5},
        {"name": "B!", "domain": "d", "pack": "../../etc/passwd", "max_tokens": 1}
    ], "params": {"max_rounds": 0}}"#;
    folder.write("rolesets/bad.json", bad);
    let finished = Finished::of(consensus(&folder).args(["roleset", "check", "bad"])).exits(2);
    for part in [
        "bad.json at /v:",
        "\"pairs\" is not one of pair, council, panel, approval, vote; did you mean `pair`?",
        "/agents/0: unknown key `temperatur`; did you mean `temperature`?",
        "/agents/1/name",
        "/agents/1/pack",
        "/agents/1/max_tokens",
        "/params/max_rounds",
    ] {
        assert!(finished.stderr.contains(part), "{part} is not in {}", finished.stderr);
    }
}

#[test]
fn mistakes_of_meaning_are_found_too() {
    let folder = Folder::new();
    folder.write("rolesets/packs/one.md", "Work.");
    folder.write("rolesets/packs/empty.md", " \n");
    let bad = r#"{"v": 1, "protocol": "pair", "agents": [
        {"name": "Ann", "domain": "d", "pack": "oen.md"}, {"name": "ann", "domain": "d", "pack": "empty.md"}
    ], "canonical": {"kind": "choice", "choices": ["A", "a."]}}"#;
    folder.write("rolesets/bad.json", bad);
    folder.write("rolesets/none.json", &bad.replace(", \"choices\": [\"A\", \"a.\"]", ""));
    folder.write("rolesets/broken.json", "{\"v\": 1,\n \"v\": 1}");
    let finished =
        Finished::of(consensus(&folder).args(["roleset", "check", "bad", "none", "broken"])).exits(2);
    for part in [
        "did you mean `one.md`?",
        "/agents/1/name: `ann` is taken",
        "the pack `empty.md` is empty",
        "/canonical/choices/1",
        "kind `choice` needs a list of",
        "duplicate field `v` at line 2",
    ] {
        assert!(finished.stderr.contains(part), "{part} is not in {}", finished.stderr);
    }
}

#[test]
fn a_misspelt_roleset_finds_its_neighbour() {
    let folder = Folder::new();
    let run = ["run", "--mock", "--roleset", "writer_phisicist", "--task", "x", "--answer", "y"];
    let finished = Finished::of(consensus(&folder).args(run)).exits(2);
    assert!(finished.stderr.contains("did you mean `writer_physicist`?"), "{}", finished.stderr);
    assert_eq!(finished.stdout, "");
}

#[test]
fn local_roleset_overrides_built_in_one() {
    let folder = Folder::new();
    folder.write("rolesets/packs/one.md", "Work.");
    let own = r#"{"v": 1, "description": "Mine.", "protocol": "pair", "agents": [
        {"name": "Ann", "domain": "d", "pack": "one.md"}, {"name": "Bob", "domain": "d", "pack": "one.md"}]}"#;
    folder.write("rolesets/solver_checker.json", own);
    let run = ["run", "--mock", "--roleset", "solver_checker", "--task", "x", "--answer", "not a number"];
    Finished::of(consensus(&folder).args(run)).exits(0);
    assert_eq!(folder.result()["agents"][0]["name"], "Ann");
}

#[test]
fn pack_divider_is_one_exact_line() {
    let folder = Folder::new();
    let roleset = EMBEDDED_ROLESETS.iter().find(|(name, _)| *name == "solver_checker.json").unwrap().1;
    folder.write("rolesets/mine.json", roleset);
    folder.write("rolesets/packs/checker.md", "You check sums.");
    let check = |pack: &str, code| {
        folder.write("rolesets/packs/solver.md", pack);
        Finished::of(consensus(&folder).args(["roleset", "check", "mine"])).exits(code).stderr
    };
    check("Add.\n\n## Comparing\n\nTake what is right.\n", 0);
    check("Add.\r\n\r\n## Comparing \r\n\r\nTake what is right.\r\n", 0);
    check("Add, comparing what you find.\n", 0);
    for near in ["## comparing", "### Comparing", "## Comparing:", "## Comparing texts", "#Comparing"] {
        let said = check(&format!("Add.\n\n{near}\n\nTake what is right.\n"), 2);
        assert!(said.contains("write `## Comparing`"), "{said}");
    }
    assert!(check("## Comparing\nTake what is right.\n", 2).contains("nothing before `## Comparing`"));
    assert!(check("Add.\n## Comparing\nTake it.\n## Comparing\nOr not.\n", 2).contains("twice"));
}

/// The refusal names the protocols whose rolesets the flag goes with.
#[test]
fn flag_of_other_protocol_is_refused() {
    let folder = Folder::new();
    folder.write("change.diff", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n");
    let (pair, council) = ("`pair`", "`council`");
    let (in_rounds, answering) =
        ("`pair` or `council` or `panel`", "`pair` or `council` or `panel` or `vote`");
    for (roleset, flags, named, of) in [
        ("council_tripartite", &["--resample", "1"][..], "--resample", pair),
        ("panel_personas", &["--weights-from", "there-is-none.json"], "--weights-from", council),
        ("solver_checker", &["--confidence", "logprob"], "--confidence", council),
        ("reviewers_f1", &["--threshold", "0.5"], "--threshold", "`council` or `panel` or `vote`"),
        ("reviewers_f1", &["--max-rounds", "3"], "--max-rounds", in_rounds),
        ("reviewers_f1", &["--map-reduce"], "--map-reduce", in_rounds),
        ("reviewers_f1", &["--canonical", "number"], "--constraint, --canonical or --choices", answering),
        ("council_tripartite", &["--thinking", "field"], "--thinking field", pair),
        ("council_tripartite", &["--self-panel", "3"], "--members, --self-panel or --persona", "`panel`"),
        ("council_tripartite", &["--models", "A,B"], "--models", "`panel` or `vote`"),
        ("solver_checker", &["--stop", "sure"], "--stop", "`vote`"),
    ] {
        let words =
            ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "-f", "change.diff", "--roleset", roleset];
        let refused = Finished::of(consensus(&folder).args(words).args(flags)).exits(2);
        let why = format!("{named} goes with rolesets of {of} only; this one is of `");
        assert!(refused.stderr.contains(&why), "{roleset} {flags:?}: {}", refused.stderr);
    }
    // What one protocol refuses another takes.
    let taken =
        ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--max-rounds", "3", "--thinking", "none"];
    for roleset in ["solver_checker", "council_tripartite", "panel_personas"] {
        Finished::of(consensus(&folder).args(taken).args(["--roleset", roleset])).exits(0);
    }
}

/// A roleset can be copied under a new name or out of a run, and a copy that replaces a built-in one says so.
#[test]
fn roleset_copy_accepts_new_name_or_run() {
    let folder = Folder::new();
    let said = |words: &[&str], code| Finished::of(consensus(&folder).args(words)).exits(code);
    assert_eq!(said(&["roleset", "copy", "solver_checker", "mine"], 0).stdout, "rolesets/mine.json\n");
    said(&["roleset", "check", "mine"], 0);
    assert!(said(&["roleset", "list"], 0).stdout.contains("rolesets/mine.json"));
    assert_eq!(
        said(&["roleset", "copy", "solver_checker", "there/"], 0).stdout,
        "there/solver_checker.json\n"
    );
    for bad in ["", ".json", "a b", "n\nl"] {
        assert!(
            said(&["roleset", "copy", "solver_checker", bad], 2).stderr.contains("a new name has"),
            "{bad:?}"
        );
    }
    // A copy that takes the place of a built-in roleset is said to, wherever it is used.
    let copied = said(&["roleset", "copy", "solver_checker"], 0).stderr;
    assert!(copied.contains("replaces the built-in roleset `solver_checker`"), "{copied}");
    let mock = ["--mock", "--answer", "4", "--roleset", "solver_checker"];
    let stderr =
        said(&[&["run", "--prompt", "2+2"], &mock[..], &["--set", "params.max_rounds=5"]].concat(), 0).stderr;
    assert!(stderr.contains("in place of the built-in roleset of that name"), "{stderr}");
    assert!(
        said(&["roleset", "list"], 0).stdout.contains("solver_checker.json, in place of the built-in one")
    );
    // What a run was made by can be looked at and used again.
    let run = folder.run();
    let run = run.to_str().unwrap();
    let shown = said(&["roleset", "show", "--from", run], 0).stdout;
    assert!(shown.contains("\"max_rounds\": 5") && shown.contains("# Checker"), "{shown}");
    assert_eq!(said(&["roleset", "copy", "again", "--from", run], 0).stdout, "rolesets/again.json\n");
    said(&["roleset", "check", "again"], 0);
    folder.write("tasks.jsonl", "{\"id\": \"a\", \"prompt\": \"2+2\"}\n");
    said(&[&["batch", "tasks.jsonl", "--output", "out"], &mock[..]].concat(), 0);
    assert!(said(&["roleset", "show", "--from", "out/a"], 0).stdout.contains("# Solver"));
}

/// Each kind of rule has its short form on the command line, and may be in a roleset.
#[test]
fn every_kind_of_rule_is_taken() {
    let folder = Folder::new();
    let kinds = ROLESET_SCHEMA.parse::<Value>().unwrap();
    let kinds = kinds["$defs"]["constraint"]["properties"]["kind"]["enum"].as_array().unwrap().clone();
    let mut rules = Vec::new();
    for kind in &kinds {
        let kind = kind.as_str().unwrap();
        let value = match kind {
            "sentences" | "words" | "characters" | "lines" | "paragraphs" | "bullets" => "=2..",
            "mentions" => "=peace:2..",
            "letters" => "=lower",
            "language" => "=fin",
            "contains" | "excludes" | "starts_with" | "ends_with" | "keys" => "=a",
            "schema" => "={\"type\":\"object\"}",
            _ => "",
        };
        let rule = serde_json::to_value(Constraint::parse(&format!("{kind}{value}")).unwrap()).unwrap();
        assert_eq!(rule["kind"], kind);
        rules.push(rule);
    }
    let check = |rules: &[Value]| {
        let own = json!({
            "v": 1, "protocol": "vote", "canonical": {"kind": "lines"},
            "agents": [{"name": "Me", "domain": "all", "pack": "me.md"}],
            "params": {"constraints": rules},
        });
        folder.write("rolesets/packs/me.md", "You answer with care.");
        folder.write("rolesets/own.json", &own.to_string());
        Finished::of(consensus(&folder).args(["roleset", "check", "own"]))
    };
    check(&rules).exits(0);
    // A kind without a value of its own takes none, and every other kind needs one.
    for kind in kinds {
        let code = if ["quoted", "json", "integer"].contains(&kind.as_str().unwrap()) { 0 } else { 2 };
        check(&[json!({"kind": kind})]).exits(code);
    }
}
