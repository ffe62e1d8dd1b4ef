//! Programs are compared by what they do: blind programs are run on the same inputs.

use serde_json::{Value, json};

use crate::support::{Finished, Folder, consensus};

const TASK: &str = "Write a function `total(numbers)` that adds numbers.\n\n>>> total([1, 2])\n3";

/// Writes a script in which the sample of each number answers with its program, and the voter writes these inputs.
fn write_script(folder: &Folder, inputs: &str, programs: &[&str]) {
    let mut lines = json!({"step": "think", "reply": inputs}).to_string() + "\n";
    for (draft, program) in programs.iter().enumerate() {
        let reply = format!("```python\n{program}\n```");
        lines += &(json!({"draft": draft, "reply": reply}).to_string() + "\n");
    }
    folder.write("script.jsonl", &lines);
}

/// Runs a vote over programs.
fn tried(
    folder: &Folder,
    task: &str,
    inputs: &str,
    programs: &[&str],
    flags: &[&str],
    code: i32,
) -> Finished {
    write_script(folder, inputs, programs);
    let run = ["run", "--prompt", task, "--mock-script", "script.jsonl", "--roleset", "vote_code"];
    Finished::of(consensus(folder).args(run).args(flags)).exits(code)
}

fn result(folder: &Folder, inputs: &str, programs: &[&str], flags: &[&str], code: i32) -> Value {
    let all = [flags, &["--format", "json"]].concat();
    serde_json::from_str(&tried(folder, TASK, inputs, programs, &all, code).stdout).unwrap()
}

const LOOP: &str = "def total(numbers):\n    found = 0\n    for number in numbers:\n        found += number\n    return found";
const SUM: &str = "def total(numbers):\n    return sum(numbers)\n\nprint(total([1, 2]))";
const FIRST_TWO: &str = "def total(numbers):\n    return sum(numbers[:2])";

/// Three unlike texts are one answer, and the shortest stands for them.
#[test]
fn programs_that_do_the_same_are_one_answer() {
    let folder = Folder::new();
    let reduced = "from functools import reduce\ndef total(numbers):\n    return reduce(lambda one, other: one + other, numbers, 0)";
    let ended = result(&folder, "total([])\n- `total([5, -5, 2.5])`", &[LOOP, SUM, reduced], &[], 0);
    assert_eq!(
        (&ended["how"], &ended["text"], &ended["usage"]["calls"]),
        (&json!("behaved"), &json!(SUM), &json!(4)),
        "{ended}"
    );
    let vote = &ended["vote"];
    assert_eq!((&vote["class"], &vote["lead"]), (&json!("C"), &json!({"leader": 3, "runner_up": 0})));
    let inputs = vote["behaviour"]["inputs"].as_array().unwrap();
    let calls: Vec<&Value> = inputs.iter().map(|input| &input["call"]).collect();
    assert_eq!(calls, ["total([1, 2])", "total([])", "total([5, -5, 2.5])"]);
    let counts: Vec<&Value> = inputs.iter().map(|input| &input["counts"]).collect();
    assert_eq!(counts, [false, true, true], "the task states the result of the first: {inputs:?}");
    assert_eq!(vote["samples"][0]["results"], json!(["3", "0", "float(2.5)"]));
    assert_eq!(vote["samples"][0]["behaviour"], vote["samples"][2]["behaviour"]);
    let verified = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0).stdout;
    assert!(verified.contains("programs     3 run again"), "{verified}");
}

/// A program that is wrong about the task's own example is no vote, and one that is wrong elsewhere is another answer.
#[test]
fn unlike_programs_are_not_equal() {
    let folder = Folder::new();
    let wrong = "def total(numbers):\n    return numbers";
    let programs = [wrong, FIRST_TWO, LOOP, SUM, FIRST_TWO, SUM, LOOP, SUM];
    let ended = result(&folder, "total([1, 2, 3])", &programs, &[], 0);
    let why = ended["vote"]["samples"][0]["no_vote"].as_str().unwrap();
    assert_eq!(why, "`total([1, 2])` returns list(1,2), and the task says 3");
    assert_eq!(
        (&ended["text"], &ended["vote"]["lead"]),
        (&json!(SUM), &json!({"leader": 5, "runner_up": 2})),
        "{ended}"
    );
    assert_eq!(ended["vote"]["answers"][1]["text"], FIRST_TWO);
}

/// Two programs that do the same are an agreement in the end, which is weak, and single ones are none.
#[test]
fn two_alike_are_the_least() {
    let folder = Folder::new();
    let plus =
        |more: i32| format!("def total(numbers):\n    return sum(numbers) + {more} * (len(numbers) > 2)");
    let others: Vec<String> = (1..8).map(plus).collect();
    let mut programs: Vec<&str> = others.iter().map(String::as_str).collect();
    programs.push(&others[0]);
    let ended = result(&folder, "total([1, 2, 3])", &programs, &[], 0);
    assert_eq!((&ended["vote"]["class"], &ended["vote"]["lead"]["leader"]), (&json!("D"), &json!(2)));
    assert_eq!(ended["degraded"][0]["kind"], "unsettled", "{ended}");
    programs[7] = SUM;
    let ended = result(&folder, "total([1, 2, 3])", &programs, &[], 3);
    assert_eq!(ended["outcome"], "no_agreement", "{ended}");
}

/// What the inputs cannot tell is said: without a usable one, only equal texts are equal.
#[test]
fn without_a_usable_input_only_texts_are_compared() {
    let folder = Folder::new();
    let task = "Write a function `total(numbers)` that adds numbers.";
    for inputs in ["I do not know.", "total(open('/etc/passwd').read())", "total(1)"] {
        let text = tried(&folder, task, inputs, &[LOOP, SUM, SUM, SUM, SUM, SUM], &[], 0);
        assert!(
            text.stderr.contains("there is no usable input, so only equal texts are equal"),
            "{inputs}: {}",
            text.stderr
        );
    }
    let ended: Value = serde_json::from_str(
        &tried(&folder, task, "total(1)", &[LOOP, SUM, SUM, SUM, SUM, SUM], &["--format", "json"], 0).stdout,
    )
    .unwrap();
    assert_eq!(
        (&ended["how"], &ended["vote"]["lead"]),
        (&json!("voted"), &json!({"leader": 5, "runner_up": 1})),
        "{ended}"
    );
}

/// Every vote has the results that the task states, so these tell no two votes apart.
#[test]
fn stated_results_tell_no_votes_apart() {
    let folder = Folder::new();
    let three = "def total(numbers):\n    return 3";
    let programs = [SUM, FIRST_TWO, three, LOOP, SUM, FIRST_TWO, three, LOOP];
    let said = tried(&folder, TASK, "I do not know.", &programs, &[], 3);
    assert!(
        said.stderr.contains("there is no usable input, so only equal texts are equal"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("`total` does; the task states 1 result for it"), "{}", said.stderr);
}

/// A function that returns nothing is known by what it does to its arguments, and what it prints belongs to its own call.
#[test]
fn changed_arguments_and_prints_are_results() {
    let folder = Folder::new();
    let task = "Write a function `sort_it(values)` that sorts a list in place and returns nothing.";
    let sorts = "def sort_it(values):\n    values.sort()";
    let programs = [
        "def sort_it(values):\n    pass",
        sorts,
        "def sort_it(values):\n    ordered = sorted(values)\n    values.clear()\n    values.extend(ordered)",
        sorts,
        sorts,
        sorts,
    ];
    let said = tried(&folder, task, "sort_it([3, 1, 2])\nsort_it([])", &programs, &["--format", "json"], 0);
    let ended: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        (&ended["text"], &ended["vote"]["lead"]),
        (&json!(sorts), &json!({"leader": 5, "runner_up": 1})),
        "{ended}"
    );
    assert_eq!(ended["vote"]["samples"][1]["results"][0], "None, with the arguments list(list(1,2,3))");
    let stars = "def total(numbers):\n    print('*' * len(numbers), end='')\n    return sum(numbers)";
    let ended = result(&folder, "total([])\ntotal([4])", &[stars, stars, stars], &[], 0);
    assert_eq!(
        ended["vote"]["samples"][0]["results"],
        json!(["****3", "0", "**4"]),
        "each call is made twice: {ended}"
    );
}

/// `verify` runs programs of the embedded interpreter again, and those of `python3` if it is asked to.
#[test]
fn trials_by_python3_are_repeated_on_request() {
    let folder = Folder::new();
    let programs = [LOOP, SUM, SUM];
    tried(&folder, TASK, "total([4])", &programs, &["--interpreter", "python3"], 0);
    let verify = |flags: &[&str], code| {
        Finished::of(consensus(&folder).args(["verify", "--last"]).args(flags)).exits(code)
    };
    assert!(verify(&[], 0).stdout.contains("programs     0 run again"), "{}", verify(&[], 0).stdout);
    let again = verify(&["--rerun-checks"], 0).stdout;
    assert!(
        again.contains("programs     2 run again, with the same results\n"),
        "one of three is the same text: {again}"
    );
    // A process has another number each time, which is the same in both calls of a trial.
    let unstable = "import os\ndef total(numbers):\n    return os.getpid()";
    let task = "Write a function `total(numbers)`.";
    tried(&folder, task, "total([4])", &[unstable, unstable, unstable], &["--interpreter", "python3"], 0);
    let differs = verify(&["--rerun-checks"], 7);
    assert!(differs.stderr.contains("printed something else"), "{}", differs.stderr);
}

#[test]
fn programs_are_not_compared_in_redacted_runs() {
    let folder = Folder::new();
    let refused = tried(&folder, TASK, "total([4])", &[SUM], &["--redact"], 2);
    assert!(refused.stderr.contains("cannot be redacted"), "{}", refused.stderr);
}

#[test]
fn a_task_without_a_function_is_refused() {
    let folder = Folder::new();
    let refused = tried(&folder, "Write a program that adds numbers.", "", &[], &[], 2);
    assert!(refused.stderr.contains("the task names none, or several"), "{}", refused.stderr);
    let pair = [
        "run",
        "--prompt",
        TASK,
        "--mock",
        "--answer",
        SUM,
        "--roleset",
        "planner_coder",
        "--canonical",
        "behaviour",
    ];
    let refused = Finished::of(consensus(&folder).args(pair)).exits(2);
    assert!(refused.stderr.contains("vote_code"), "{}", refused.stderr);
}

/// Pairs of programs that do not do the same, although a careless comparison would think so.
#[test]
fn unlike_programs_are_never_equal() {
    let folder = Folder::new();
    let mut equal = Vec::new();
    for line in include_str!("unlike_programs.jsonl").lines() {
        let pair: Value = serde_json::from_str(line).unwrap();
        let (one, other) = (pair["one"].as_str().unwrap(), pair["other"].as_str().unwrap());
        let interpreters: &[&str] = match pair["what"].as_str().unwrap() {
            // The embedded interpreter makes a list where Python makes a lazy value.
            "a value that cannot be compared" => &["python3"],
            "another value for one of three inputs" => &["embedded"],
            _ => &["embedded", "python3"],
        };
        for interpreter in interpreters {
            let flags = [
                "--stop",
                "none",
                "--samples-max",
                "2",
                "--interpreter",
                interpreter,
                "--on-disagreement",
                "leader",
                "--format",
                "json",
            ];
            write_script(&folder, "f(1)\nf(2)\nf(3)", &[one, other]);
            let run = [
                "run",
                "--prompt",
                "Write a function `f(x)`.",
                "--mock-script",
                "script.jsonl",
                "--roleset",
                "vote_code",
            ];
            let run = Finished::of(consensus(&folder).args(run).args(flags));
            let ended: Value = serde_json::from_str(&run.stdout).unwrap();
            let samples = ended["vote"]["samples"].as_array().unwrap();
            let marks: Vec<&Value> = samples.iter().map(|sample| &sample["behaviour"]).collect();
            let is_equal = marks[0].is_string() && marks[0] == marks[1];
            if is_equal {
                equal.push(format!("{interpreter}: {line}"));
            }
        }
    }
    assert_eq!(equal, Vec::<String>::new());
}
