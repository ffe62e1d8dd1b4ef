//! The command line: what goes where, what each exit code means, what a tired person reads.

use serde_json::Value;

use crate::support::{Finished, Folder, TALK, consensus, trust};

const MOCK: [&str; 6] = ["run", "--mock", "--task", "2+2", "--answer", "4"];

fn script(folder: &Folder, script: &str, more: &[&str]) -> Finished {
    folder.write("script.jsonl", script);
    let run = ["run", "--mock-script", "script.jsonl", "--seed", "1", "--prompt", "How much is 2+2?"];
    Finished::of(consensus(folder).args(run).args(more))
}

#[test]
fn the_quick_start_prints_4_and_nothing_else() {
    let folder = Folder::new();
    let finished = Finished::of(consensus(&folder).args(MOCK)).exits(0);
    assert_eq!(finished.stdout, "4\n");
    let result = folder.result();
    assert_eq!(result["sha256"], "4b227777d4dd1fc61c6f884f48641d02b4d121d3fd328cb08b5531fcacdabf8a");
    assert_eq!(result["outcome"], "agreed");
}

#[test]
fn quiet_is_quiet() {
    let folder = Folder::new();
    let finished = Finished::of(consensus(&folder).args(MOCK).arg("-q")).exits(0);
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("4\n", ""));
}

#[test]
fn quiet_says_why_a_run_did_not_end() {
    let run = ["-q", "--max-tokens-total", "10"];
    let finished = Finished::of(consensus(&Folder::new()).args(MOCK).args(run)).exits(5);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.starts_with("budget: "), "{}", finished.stderr);
}

/// JSON output is one document, and JSONL output has one event or document on each line.
#[test]
fn json_is_document_and_jsonl_is_lines() {
    let folder = Folder::new();
    let json = Finished::of(consensus(&folder).args(MOCK).args(["--format", "json"])).exits(0);
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(value, folder.result());
    let folder = Folder::new();
    let jsonl = Finished::of(consensus(&folder).args(MOCK).args(["--format", "jsonl"])).exits(0);
    let lines: Vec<Value> = jsonl.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event"]["type"], "opened");
    assert_eq!(lines.last().unwrap()["text"], "4");
    let written = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    assert!(jsonl.stdout.starts_with(&written));
    // Commands without events write what they write as JSON, one document a line.
    for words in [&["runs"][..], &["verify", "--last"], &["roleset", "list"]] {
        let finished = Finished::of(consensus(&folder).args(words).args(["--format", "jsonl"])).exits(0);
        assert!(!finished.stdout.is_empty(), "{words:?}");
        for line in finished.stdout.lines() {
            assert!(serde_json::from_str::<Value>(line).is_ok(), "{words:?}: {line}");
        }
    }
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let folder = Folder::new();
    let run = ["run", "--format", "json", "--mock", "--answer", "4", "--task", " "];
    let finished = Finished::of(consensus(&folder).args(run)).exits(2);
    let value: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(value["error"]["exit"], 2);
    assert_eq!(value["error"]["message"], "the task is empty");
}

/// Standard output stays empty, and the result holds the dissent of both agents.
#[test]
fn no_agreement_exits_with_3() {
    let folder = Folder::new();
    let two = "{\"agent\":\"Writer\",\"policy\":\"stubborn\",\"answer\":\"4\"}\n{\"agent\":\"Physicist\",\"policy\":\"stubborn\",\"answer\":\"5\"}\n";
    let finished = script(&folder, two, &[]).exits(3);
    assert_eq!(finished.stdout, "");
    assert!(
        finished.stderr.contains("no agreement: both agents moved and nothing changed"),
        "{}",
        finished.stderr
    );
    let dissent = folder.result()["dissent"].clone();
    assert_eq!(dissent.as_array().unwrap().len(), 2, "{dissent}");
}

#[test]
fn policies_end_as_their_characters_make_them() {
    for (first, second, code, how) in [
        ("honest", "honest", 0, "independent"),
        ("stubborn", "sycophant", 0, "endorsed"),
        ("stubborn", "stubborn", 3, ""),
        ("liar", "honest", 3, ""),
        ("liar", "liar", 3, ""),
        ("liar", "sycophant", 3, ""),
    ] {
        let folder = Folder::new();
        let answers = if first == "honest" { ["4", "4"] } else { ["5", "4"] };
        let rules = format!(
            "{{\"agent\":\"Writer\",\"policy\":\"{first}\",\"answer\":\"{}\"}}\n{{\"agent\":\"Physicist\",\"policy\":\"{second}\",\"answer\":\"{}\"}}\n",
            answers[0], answers[1]
        );
        script(&folder, &rules, &["--max-rounds", "6"]).exits(code);
        assert_eq!(folder.result()["how"].as_str().unwrap_or_default(), how, "{first} and {second}");
        Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    }
}

#[test]
fn scripts_reach_every_fault() {
    let honest = "{\"policy\":\"honest\",\"answer\":\"4\"}\n";
    for (fault, repairs) in [
        ("{\"step\":\"envelope\",\"attempt\":0,\"garbage\":true}\n", 1),
        ("{\"step\":\"envelope\",\"attempt\":0,\"truncate\":20,\"policy\":\"honest\",\"answer\":\"4\"}\n", 1),
        ("{\"step\":\"envelope\",\"attempt\":0,\"envelope\":{\"role\":null}}\n", 1),
        ("{\"delay_ms\":1,\"policy\":\"honest\",\"answer\":\"4\"}\n", 0),
    ] {
        let folder = Folder::new();
        script(&folder, &format!("{fault}{honest}"), &TALK).exits(0);
        assert_eq!(folder.result()["agents"][0]["repairs"], repairs, "{fault}");
    }
    let folder = Folder::new();
    let finished = script(&folder, "{\"status\":503}\n", &[]).exits(6);
    assert!(finished.stderr.contains("mock answered 503"), "{}", finished.stderr);
    let finished = script(&Folder::new(), "{\"agent\":\"Nobody\",\"garbage\":true}\n", &[]).exits(2);
    assert!(finished.stderr.contains("has a rule for `Nobody`"), "{}", finished.stderr);
    let finished = script(&Folder::new(), "{\"agent\":\"Writer\",\"garbage\":true}\n", &[]).exits(2);
    assert!(finished.stderr.contains("has no rule for `Physicist`"), "{}", finished.stderr);
}

/// A resume that sets only a deadline keeps the token limit of the run.
#[test]
fn token_limit_holds_on_resume() {
    let folder = Folder::new();
    Finished::of(consensus(&folder).args(MOCK).args(TALK).args(["--max-tokens-total", "1500"])).exits(5);
    let resumed = Finished::of(consensus(&folder).args(["resume", "--last", "--deadline", "10m"])).exits(5);
    assert!(resumed.stderr.contains("of 1500 are left"), "{}", resumed.stderr);
}

#[test]
fn unwritable_output_is_refused_before_run() {
    let folder = Folder::new();
    let finished = Finished::of(consensus(&folder).args(MOCK).args(["-o", "nowhere/answer.txt"])).exits(2);
    assert!(finished.stderr.contains("nowhere/answer.txt"), "{}", finished.stderr);
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn a_temperature_with_many_digits_survives_the_journal() {
    let folder = Folder::new();
    Finished::of(consensus(&folder).args(MOCK).args(["--temperature", "1.0666666666666667"])).exits(0);
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// A prompt or a file that does not fit is refused and not cut short.
#[test]
fn oversized_input_is_refused() {
    let folder = Folder::new();
    folder.write("big.txt", &"a".repeat((16 << 20) + 1));
    for args in [["--prompt-file", "big.txt"], ["--prompt-file", "/dev/zero"], ["-f", "/dev/zero"]] {
        let run = ["run", "--mock", "--answer", "4"];
        let finished = Finished::of(consensus(&folder).args(run).args(args).args(["-q"])).exits(2);
        assert!(
            finished.stderr.contains("do not fit") || finished.stderr.contains("no task"),
            "{}",
            finished.stderr
        );
    }
}

/// A resume with a higher limit brings the run to its end.
#[test]
fn budget_refuses_call_that_could_exceed_it() {
    let folder = Folder::new();
    let limited = ["--max-tokens-total", "1500"];
    let finished = Finished::of(consensus(&folder).args(MOCK).args(TALK).args(limited)).exits(5);
    assert!(finished.stderr.contains("of 1500 are left"), "{}", finished.stderr);
    let used = |result: &Value| {
        result["usage"]["prompt"].as_u64().unwrap() + result["usage"]["completion"].as_u64().unwrap()
    };
    assert!(used(&folder.result()) <= 1500);
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    let finished =
        Finished::of(consensus(&folder).args(["resume", "--last", "--max-tokens-total", "50000"])).exits(0);
    assert_eq!(finished.stdout, "4\n");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn a_deadline_puts_the_run_down() {
    let folder = Folder::new();
    let slow = "{\"delay_ms\":60000,\"policy\":\"honest\",\"answer\":\"4\"}\n";
    let finished = script(&folder, slow, &["--deadline", "200ms"]).exits(5);
    assert!(finished.stderr.contains("the deadline has passed"), "{}", finished.stderr);
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// A public price holds only at its provider's own server, and not for a model of that name elsewhere.
#[test]
fn configured_prices_override_public_ones() {
    let folder = Folder::new();
    let cost = |model: &str| {
        let plan = ["run", "--dry-run", "--format", "json", "--prompt", "x", "--model", model];
        let finished = Finished::of(consensus(&folder).args(plan)).exits(0);
        let plan: Value = serde_json::from_str(&finished.stdout).unwrap();
        plan["cost_micro_usd_max"].as_u64()
    };
    let listed = cost("openai:gpt-4o-mini").unwrap();
    assert_eq!(cost("vllm:gpt-4o-mini"), None, "a server may call its model as it likes");
    folder.write("consensus.toml", "[prices.gpt-4o-mini]\nprompt = 15\ncompletion = 60\n");
    // A hundred times as much, but for what is rounded up.
    assert_eq!(cost("openai:gpt-4o-mini").map(|cost| cost.div_ceil(listed)), Some(100));
    folder.write("consensus.toml", "[providers.openai]\nbase_url = \"http://127.0.0.1:1/v1\"\n");
    trust(&folder);
    assert_eq!(cost("openai:gpt-4o-mini"), None, "nor is another server under that name OpenAI's");
    let text = Finished::of(consensus(&folder).args(["run", "--dry-run", "--prompt", "x", "--model", "m"]))
        .exits(0)
        .stdout;
    assert!(text.contains("cost unknown") && text.contains("list of 20"), "{text}");
}

#[test]
fn cost_limit_needs_price_and_binds() {
    let folder = Folder::new();
    let run =
        ["run", "--prompt", "x", "--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--max-cost", "0.01"];
    let finished = Finished::of(consensus(&folder).args(run)).exits(2);
    assert!(finished.stderr.contains("needs the price of m"), "{}", finished.stderr);
    folder.write("consensus.toml", "[prices.m]\nprompt = 1000.0\ncompletion = 1000.0\n");
    let finished = Finished::of(consensus(&folder).args(run)).exits(5);
    assert!(finished.stderr.contains("of $0.010000 are left"), "{}", finished.stderr);
}

#[test]
fn plan_tells_the_worst_case_and_spends_nothing() {
    let folder = Folder::new();
    folder.write("consensus.toml", "[prices.m]\nprompt = 1.0\ncompletion = 2.0\n");
    let plan = ["run", "--dry-run", "--prompt", "x", "--model", "m", "--format", "json"];
    let value: Value =
        serde_json::from_str(&Finished::of(consensus(&folder).args(plan)).exits(0).stdout).unwrap();
    let number = |name: &str| value[name].as_u64().unwrap();
    assert_eq!(
        number("cost_micro_usd_max"),
        number("prompt_tokens_max") + 2 * number("completion_tokens_max")
    );
    let text = Finished::of(consensus(&folder).args(["run", "--dry-run", "--prompt", "x"])).exits(0);
    assert!(text.stdout.contains("at most:"), "{}", text.stdout);
    assert!(!folder.path().join("runs").exists());
}

/// The live output and the transcript both say that the agent's own text came out better when compared once more.
#[test]
fn overturned_acceptance_is_reported() {
    let folder = Folder::new();
    let script = [
        r#"{"agent": "Physicist", "step": "weigh", "reply": "First: no error. Answer: 5"}"#,
        r#"{"agent": "Physicist", "policy": "sycophant", "answer": "5"}"#,
        r#"{"agent": "Writer", "policy": "stubborn", "answer": "4"}"#,
    ];
    folder.write("script.jsonl", &script.join("\n"));
    let run = ["run", "--mock-script", "script.jsonl", "--seed", "1", "--prompt", "How much is 2+2?"];
    let finished = Finished::of(consensus(&folder).args(run)).exits(3);
    let remark = "Physicist: its own text stands: compared once more, it came out better";
    assert!(finished.stderr.contains(remark), "{}", finished.stderr);
    let transcript = std::fs::read_to_string(folder.run().join("transcript.md")).unwrap();
    assert!(transcript.contains(&format!("*{remark}.*")), "{transcript}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// The file for the answer is emptied only once the run begins, so it can also be an input.
#[test]
fn output_file_survives_refused_run() {
    let folder = Folder::new();
    let file = folder.write("notes.txt", "two apples");
    let run = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "-f", "notes.txt", "-o", "notes.txt"];
    Finished::of(consensus(&folder).args(run).args(["--roleset", "solver_chekcer"])).exits(2);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two apples");
    Finished::of(consensus(&folder).args(run)).exits(0);
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    assert!(journal.contains("two apples"), "{journal}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "4\n");
}

#[test]
fn the_task_comes_from_where_it_is_given() {
    let folder = Folder::new();
    let file = folder.write("task.txt", "How much is 2+2?\n");
    folder.write("notes.txt", "Two apples [SOLVED] and <|im_start|> two more.");
    let run = ["run", "--mock", "--answer", "4", "-f", "notes.txt", "--prompt-file"];
    Finished::of(consensus(&folder).args(run).arg(file)).exits(0);
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    assert!(journal.contains("\"prompt\":\"How much is 2+2?\"") && journal.contains("notes.txt"));
    for args in [&["run", "--mock", "--answer", "4"][..], &["run", "--prompt", "x", "--prompt-file", "y"][..]]
    {
        Finished::of(consensus(&folder).args(args)).exits(2);
    }
    let missing = ["run", "--mock", "--answer", "4", "--prompt", "x", "-f", "nowhere.txt"];
    let finished = Finished::of(consensus(&folder).args(missing)).exits(2);
    assert!(finished.stderr.contains("`nowhere.txt`"), "{}", finished.stderr);
}

#[test]
fn stdin_is_a_task_too() {
    use std::io::Write;
    use std::process::Stdio;
    let folder = Folder::new();
    let mut command = consensus(&folder);
    command.args(["run", "--mock", "--answer", "4", "-q", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"How much is 2+2?").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"4\n");
    let mut command = consensus(&folder);
    command.args(["run", "--mock", "--answer", "4", "-q"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"Without a dash, too.").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"4\n");
}

#[test]
fn runs_are_listed_shown_and_replayed() {
    let folder = Folder::new();
    Finished::of(consensus(&folder).args(MOCK)).exits(0);
    let listed = Finished::of(consensus(&folder).arg("runs")).exits(0);
    assert!(listed.stdout.contains("agreed") && listed.stdout.contains("2+2"), "{}", listed.stdout);
    let id = listed.stdout.split(' ').next().unwrap();
    for name in [&id[..id.len() - 2], id] {
        let shown = Finished::of(consensus(&folder).args(["show", "--full", name])).exits(0);
        assert!(shown.stdout.contains("## Outcome: agreed"), "{}", shown.stdout);
    }
    let replayed = Finished::of(consensus(&folder).args(["show", "--replay", "--last"])).exits(0);
    assert_eq!(replayed.stdout, "4\n");
    assert!(replayed.stderr.contains("Answerer"), "{}", replayed.stderr);
    let resumed = Finished::of(consensus(&folder).args(["resume", "--last"])).exits(0);
    assert_eq!(resumed.stdout, "4\n");
    let finished = Finished::of(consensus(&folder).args(["show", "ffff"])).exits(2);
    assert!(finished.stderr.contains("`consensus runs` lists the runs"), "{}", finished.stderr);
}

#[test]
fn the_answer_can_go_to_a_file_too() {
    let folder = Folder::new();
    Finished::of(consensus(&folder).args(MOCK).args(["-o", "answer.txt"])).exits(0);
    assert_eq!(std::fs::read_to_string(folder.path().join("answer.txt")).unwrap(), "4\n");
}

#[test]
fn flag_and_file_mistakes_are_explained() {
    let folder = Folder::new();
    for (args, part) in [
        (&["run", "--mock", "--task", "x"][..], "--mock needs --answer TEXT"),
        (&["run", "--prompt", "x", "--model", "olama:llama3"][..], "did you mean `ollama:llama3`?"),
        (
            &["run", "--prompt", "x", "--model", "m", "--base-url", "http://example.org/v1"][..],
            "--allow-http",
        ),
        (&["run", "--prompt", "x", "--constraint", "sentence=3"][..], "is no constraint"),
        (&["run", "--prompt", "x", "--canonical", "choice"][..], "needs --choices"),
        (&["run", "--prompt", "x", "--choices", "x²,x2"][..], "is the same as another choice"),
        (&["run", "--prompt", "x", "--choices", "a"][..], "at least two choices"),
        (&["run", "--prompt", "x", "--constraint", "lines=3"][..], "--canonical lines"),
        (
            &["run", "--prompt", "x", "--model", "m", "--base-url", "http://127.0.0.1:1/v1?key=s"][..],
            "`?` or `#`",
        ),
        (&["run", "--prompt", "x", "--mock", "--answer", "4", "--launch", "vllm"][..], "cannot be used with"),
        (&["runz"][..], "runs"),
    ] {
        let finished = Finished::of(consensus(&folder).args(args)).exits(2);
        assert!(finished.stderr.contains(part), "{part:?} is not in {}", finished.stderr);
    }
    folder.write("file", "");
    let finished = Finished::of(consensus(&folder).args(MOCK).args(["--runs-dir", "file"])).exits(2);
    assert!(finished.stderr.contains("file"), "{}", finished.stderr);
    folder.write("consensus.toml", "model = \"m\"\nrunz_dir = \"x\"\n");
    let finished = Finished::of(consensus(&folder).args(MOCK)).exits(2);
    assert!(
        finished.stderr.contains("runz_dir") && finished.stderr.contains("consensus.toml"),
        "{}",
        finished.stderr
    );
}

#[test]
fn flags_override_project_then_user_files() {
    let folder = Folder::new();
    folder.write("config/consensus/config.toml", "runs_dir = \"user\"\nroleset = \"solver_checker\"\n");
    Finished::of(consensus(&folder).args(MOCK)).exits(0);
    assert!(folder.path().join("user").is_dir());
    folder.write("consensus.toml", "runs_dir = \"project\"\n");
    Finished::of(consensus(&folder).args(MOCK)).exits(0);
    assert!(folder.path().join("project").is_dir());
    Finished::of(consensus(&folder).args(MOCK).args(["--runs-dir", "flag"])).exits(0);
    let run = std::fs::read_dir(folder.path().join("flag")).unwrap().next().unwrap().unwrap().path();
    let result: Value =
        serde_json::from_str(&std::fs::read_to_string(run.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["roleset"], "solver_checker");
}

#[test]
fn constraints_and_choices_of_the_command_line_bind() {
    let folder = Folder::new();
    let run = ["run", "--mock", "--task", "x", "--answer", "one two three", "--constraint", "words=2"];
    Finished::of(consensus(&folder).args(run)).exits(3);
    let folder = Folder::new();
    let run = ["run", "--mock", "--task", "x", "--answer", "(yes)", "--choices", "yes,no"];
    Finished::of(consensus(&folder).args(run)).exits(0);
    assert_eq!(folder.result()["text"], "yes");
}

#[test]
fn a_choice_may_look_like_a_handle() {
    let folder = Folder::new();
    let rules = "{\"agent\":\"Writer\",\"policy\":\"stubborn\",\"answer\":\"P1\"}\n{\"agent\":\"Physicist\",\"policy\":\"honest\",\"draft_answer\":\"P2\",\"answer\":\"P1\"}\n";
    script(&folder, rules, &["--choices", "P1,P2"]).exits(0);
    let result = folder.result();
    assert_eq!((&result["text"], &result["how"]), (&"P1".into(), &"converged".into()));
    assert_eq!(result["agents"][1]["repairs"], 0);
}

#[test]
fn show_defaults_to_last_run() {
    let folder = Folder::new();
    Finished::of(consensus(&folder).args(["show"])).exits(2);
    Finished::of(consensus(&folder).args(MOCK)).exits(0);
    let shown = Finished::of(consensus(&folder).args(["show"])).exits(0).stdout;
    assert_eq!(shown, Finished::of(consensus(&folder).args(["show", "--last"])).exits(0).stdout);
}

#[test]
fn a_shell_is_offered_what_there_is() {
    let folder = Folder::new();
    Finished::of(consensus(&folder).args(MOCK)).exits(0);
    folder.write("rolesets/own_checker.json", "{}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Finished::of(consensus(&folder).args(["completions", shell])).exits(0).stdout;
        assert!(script.contains("CONSENSUS_COMPLETE"), "{shell}: {script}");
    }
    let offered = |words: &[&str]| {
        let mut command = consensus(&folder);
        command.env("CONSENSUS_COMPLETE", "fish").args(["--", "consensus"]).args(words);
        Finished::of(&mut command).exits(0).stdout
    };
    let rolesets = offered(&["run", "--roleset", ""]);
    assert!(
        rolesets.contains("own_checker\t") && rolesets.contains("solver_checker\tbuilt in"),
        "{rolesets}"
    );
    assert!(offered(&["batch", "--roleset", "solver_checker,own"]).contains("solver_checker,own_checker"));
    assert!(offered(&["run", "--persona", ""]).contains("Pragmatist\twhat works in practice"));
    let run = folder.result()["run"].as_str().unwrap().to_owned();
    let runs = offered(&["show", ""]);
    let first = runs.split('\t').next().unwrap();
    assert!(first.len() >= 6 && run.ends_with(first) && runs.contains("\t2+2"), "{run}: {runs}");
    assert!(offered(&["show", &run[..9]]).contains(&run));
    assert!(offered(&["run", "--file", ""]).contains("rolesets/"));
}

#[test]
fn manual_pages_have_usual_sections() {
    let folder = Folder::new();
    Finished::of(consensus(&folder).args(["man", "--output", "pages"])).exits(0);
    let page = |name: &str| std::fs::read_to_string(folder.path().join("pages").join(name)).unwrap();
    let sections = |page: &str| -> Vec<String> {
        page.lines()
            .filter_map(|line| line.strip_prefix(".SH "))
            .map(|name| name.trim_matches('"').to_owned())
            .collect()
    };
    let usual = [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "OPTIONS",
        "EXIT STATUS",
        "ENVIRONMENT",
        "FILES",
        "EXAMPLES",
        "VERSION",
    ];
    assert_eq!(sections(&page("consensus-run.1")), usual);
    let synopsis =
        page("consensus-run.1").split(".SH SYNOPSIS").nth(1).unwrap().lines().nth(1).unwrap().to_owned();
    assert_eq!(synopsis.replace('\\', ""), "consensus run [OPTIONS] [PROMPT]...");
    assert!(Finished::of(consensus(&folder).arg("man")).exits(0).stdout.contains("consensus"));
    assert!(folder.path().join("pages/consensus-keys-generate.1").is_file());
    assert!(!folder.path().join("pages/consensus-guard.1").exists());
    let help = Finished::of(consensus(&folder).arg("--help")).exits(0);
    assert!(help.stdout.lines().count() <= 40 && help.stdout.contains("Exit codes:"), "{}", help.stdout);
}
