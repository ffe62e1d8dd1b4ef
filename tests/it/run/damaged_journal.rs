//! The journal: what a crash or a hand leaves in it, and what is made of that.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use consensus::engine::{Engine, Resumption, RunState, StopRequest};
use consensus::journal::{Entry, FILE_NAME, Journal, JournalError, Writer, read};
use consensus::report::RunResult;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use protocol::Outcome;
use serde_json::Value;

use crate::support::{Finished, Folder, consensus, mask};

/// A script that takes a few rounds: a refusal, a request, and an adoption.
const TALK: &str = r#"{"step":"think","reply":"Let me see."}
{"agent":"Writer","round":1,"attempt":0,"reply":"no json"}
{"agent":"Writer","round":1,"envelope":{"status":"SOLVED","public_message":"[SOLVED] yes","final_solution":{"canonical_text":"four"}}}
{"agent":"Physicist","round":1,"envelope":{"status":"PROPOSED","public_message":"maybe","needs_from_peer":["why?"],"final_solution":{"canonical_text":"five"}}}
{"agent":"Writer","envelope":{"status":"SOLVED","public_message":"[SOLVED] yes","final_solution":{"canonical_text":"four"}}}
{"agent":"Physicist","policy":"sycophant","answer":"five"}
"#;

/// Makes a finished run and returns its folder.
fn finished_run() -> Folder {
    let folder = Folder::new();
    folder.write("talk.jsonl", TALK);
    let run = ["run", "--mock-script", "talk.jsonl", "--seed", "3", "--prompt", "How much is 2+2?", "-q"];
    let finished = Finished::of(consensus(&folder).args(run)).exits(0);
    assert_eq!(finished.stdout, "four\n");
    folder
}

fn journal_of(folder: &Folder) -> Vec<u8> {
    std::fs::read(folder.run().join(FILE_NAME)).unwrap()
}

fn reopen(dir: &Path) -> Result<(Writer, Journal), String> {
    loop {
        match Writer::reopen(dir) {
            // A process that another test starts shares our open files until it has begun.
            Err(JournalError::Locked { .. }) => std::thread::yield_now(),
            other => return other.map_err(|e| e.to_string()),
        }
    }
}

/// Resumes the run in `dir` inside this process, and returns its result.
fn resume(dir: &Path) -> Result<RunResult, String> {
    let (writer, journal) = reopen(dir)?;
    let mut engine =
        Engine::resume(writer, &journal, Resumption::default(), &()).map_err(|e| e.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_keep, stop) = tokio::sync::watch::channel(StopRequest::None);
    runtime.block_on(engine.run(stop)).map_err(|e| e.to_string())?;
    Ok(RunResult::new(engine.state(), engine.journal_head()))
}

#[test]
fn unrecordable_run_leaves_no_journal() {
    let folder = Folder::new();
    let mut run = Command::new("bash");
    // No file may grow: every write fails as on a full disk.
    run.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "bash", env!("CARGO_BIN_EXE_consensus")]);
    run.args(["run", "--mock", "--answer", "4", "--task", "2+2?"]).current_dir(folder.path());
    run.env("CONSENSUS_RUNS_DIR", "runs");
    let finished = Finished::of(run.env("HOME", folder.path()));
    assert_ne!(finished.code, 0);
    assert!(finished.stderr.contains("cannot write to"), "{}", finished.stderr);
    assert_eq!(Finished::of(consensus(&folder).arg("runs")).exits(0).stdout, "");
    assert!(!folder.run().join(FILE_NAME).exists());
}

/// A resumed run prints its answer and exits with 1 if its result file cannot be written.
#[test]
fn answer_is_printed_despite_failed_files() {
    let folder = Folder::new();
    let run = ["run", "--mock", "--answer", "4", "--task", "2+2?", "--max-tokens-total", "10"];
    Finished::of(consensus(&folder).args(run)).exits(5);
    let result = folder.run().join("result.json");
    std::fs::remove_file(&result).unwrap();
    std::fs::create_dir(&result).unwrap();
    let resume = ["resume", "--last", "--max-tokens-total", "100000"];
    let finished = Finished::of(consensus(&folder).args(resume)).exits(1);
    assert_eq!(finished.stdout, "4\n");
    assert!(finished.stderr.contains("cannot write into"), "{}", finished.stderr);
}

/// A journal cut at any byte leads to the same result or to an error that names its first line.
#[test]
fn cut_journal_resumes_or_names_a_line() {
    let folder = finished_run();
    let whole = journal_of(&folder);
    let expected = mask(&std::fs::read_to_string(folder.run().join("result.json")).unwrap());
    let first_line = whole.iter().position(|&b| b == b'\n').unwrap() + 1;
    let broken = Folder::new();
    let path = broken.path().join(FILE_NAME);
    for cut in 0..whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        if cut < first_line {
            let why = resume(broken.path()).unwrap_err();
            assert!(why.contains("line 1"), "cut at {cut}: {why}");
        } else if whole[cut - 1] == b'\n' {
            let result = resume(broken.path()).unwrap();
            assert_eq!(mask(&result.to_json()), expected, "cut at {cut}");
        } else {
            // A torn line is cut, which leaves one of the journals of the branch above.
            let (_, journal) = reopen(broken.path()).unwrap();
            let line_end = whole[..cut].iter().rposition(|&b| b == b'\n').unwrap() + 1;
            assert_eq!(std::fs::read(&path).unwrap(), &whole[..line_end], "cut at {cut}");
            assert_eq!(journal.torn_bytes, (cut - line_end) as u64);
        }
    }
}

#[test]
fn journal_without_record_exits_with_7() {
    let folder = finished_run();
    let path = folder.run().join(FILE_NAME);
    std::fs::write(&path, &journal_of(&folder)[..100]).unwrap();
    for command in [&["resume"][..], &["verify"], &["show"], &["show", "--replay"]] {
        let finished = Finished::of(consensus(&folder).args(command).arg("--last")).exits(7);
        assert!(finished.stderr.contains("line 1"), "{}", finished.stderr);
    }
}

#[test]
fn every_changed_byte_is_found() {
    let folder = finished_run();
    let whole = journal_of(&folder);
    let path = folder.run().join(FILE_NAME);
    let head: Value = folder.result()["journal_head"].clone();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        let found = match read(&path) {
            // The name of the program makes it the record of another build, which no build reads.
            Err(JournalError::Damaged { .. } | JournalError::OtherBuild { .. }) => true,
            Err(other) => panic!("{other}"),
            // The last line has no successor that vouches for it; the result's head does.
            Ok(journal) => {
                RunState::replay(&journal.records).is_err() || head != serde_json::json!(journal.head)
            }
        };
        assert!(found, "byte {at} can be changed unseen");
    }
}

#[test]
fn verify_compares_the_result_with_the_journal() {
    let folder = finished_run();
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    let path = folder.run().join("result.json");
    let result = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, result.replace("\"four\"", "\"five\"")).unwrap();
    let finished = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7);
    assert!(finished.stderr.contains("result.json"), "{}", finished.stderr);
}

#[test]
fn truncated_journal_does_not_verify() {
    let folder = finished_run();
    let whole = journal_of(&folder);
    std::fs::write(folder.run().join(FILE_NAME), &whole[..whole.len() - 1]).unwrap();
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7);
}

/// A result beside a journal without its end does not verify, even with the head of that journal.
#[test]
fn forged_result_of_open_run_is_refused() {
    let folder = finished_run();
    let dir = folder.run();
    let whole = journal_of(&folder);
    let end = whole[..whole.len() - 1].iter().rposition(|&b| b == b'\n').unwrap() + 1;
    std::fs::write(dir.join(FILE_NAME), &whole[..end]).unwrap();
    let head = read::<Entry>(&dir.join(FILE_NAME)).unwrap().head;
    let mut forged = folder.result();
    for head in [head.to_string(), "0".repeat(64)] {
        forged["journal_head"] = head.into();
        std::fs::write(dir.join("result.json"), forged.to_string()).unwrap();
        Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7);
    }
}

#[test]
fn journal_escapes_stay_off_terminal() {
    let folder = finished_run();
    std::fs::write(folder.run().join(FILE_NAME), "{\"\\u001b[2J\":1}\n").unwrap();
    for command in ["verify", "show", "resume"] {
        let finished = Finished::of(consensus(&folder).args([command, "--last"])).exits(7);
        assert!(!finished.stderr.contains('\u{1b}'), "{:?}", finished.stderr);
    }
}

#[test]
fn a_forged_end_does_not_verify() {
    let folder = finished_run();
    let dir = folder.run();
    let whole = String::from_utf8(journal_of(&folder)).unwrap();
    let mut lines: Vec<&str> = whole.lines().collect();
    let last = lines.pop().unwrap().replace("four", "five");
    std::fs::write(dir.join(FILE_NAME), format!("{}\n{last}\n", lines.join("\n"))).unwrap();
    std::fs::remove_file(dir.join("result.json")).unwrap();
    let finished = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7);
    assert!(finished.stderr.contains("does not verify"), "{}", finished.stderr);
}

#[test]
fn result_head_is_last_line_digest() {
    let folder = finished_run();
    let journal = journal_of(&folder);
    let last = journal.split(|&b| b == b'\n').rev().nth(1).unwrap();
    let digest = crypto::Digest::new(last).to_string();
    assert_eq!(folder.result()["journal_head"], digest.as_str());
}

#[test]
fn second_writing_process_is_refused() {
    let folder = finished_run();
    let whole = journal_of(&folder);
    let cut = whole.len() - 10;
    std::fs::write(folder.run().join(FILE_NAME), &whole[..cut]).unwrap();
    let (_writer, _) = Writer::reopen::<Entry>(&folder.run()).unwrap();
    let finished = Finished::of(consensus(&folder).args(["resume", "--last"])).exits(2);
    assert!(finished.stderr.contains("in use by another process"), "{}", finished.stderr);
}

/// A run is shown as under way while a process writes it, and as interrupted afterwards.
#[test]
fn run_being_written_is_under_way() {
    let folder = finished_run();
    let whole = String::from_utf8(journal_of(&folder)).unwrap();
    let first: Vec<&str> = whole.lines().take(3).chain([""]).collect();
    std::fs::write(folder.run().join(FILE_NAME), first.join("\n")).unwrap();
    let shown = || Finished::of(consensus(&folder).args(["show", "--last"])).exits(0).stdout;
    let (writer, _) = Writer::reopen::<Entry>(&folder.run()).unwrap();
    assert!(shown().starts_with("open: the run is under way"), "{}", shown());
    drop(writer);
    assert!(shown().starts_with("interrupted: "), "{}", shown());
}

#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = finished_run();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.run()), 0o700);
    for name in [FILE_NAME, "result.json", "transcript.md"] {
        assert_eq!(mode(&folder.run().join(name)), 0o600, "{name}");
    }
}

#[test]
fn files_are_as_their_schemas_say() {
    let folder = finished_run();
    let schema = |name: &str| {
        let printed = Finished::of(consensus(&folder).args(["schema", name])).exits(0).stdout;
        jsonschema::draft202012::new(&serde_json::from_str(&printed).unwrap()).unwrap()
    };
    let record = schema("record");
    for line in String::from_utf8(journal_of(&folder)).unwrap().lines() {
        record.validate(&serde_json::from_str(line).unwrap()).unwrap();
    }
    schema("result").validate(&folder.result()).unwrap();
    schema("envelope");
    schema("roleset");
}

/// Records that are appended are read back, and a run has one writer at a time.
#[test]
fn appended_records_are_read_back() {
    let folder = Folder::new();
    let dir = folder.path().join("run");
    let entry = || Entry::Stopped { outcome: Outcome::Interrupted };
    let mut writer = Writer::create(&dir, "one").unwrap();
    let first = writer.append(entry()).unwrap();
    let second = writer.append(entry()).unwrap();
    writer.sync().unwrap();
    let journal = read(&dir.join(FILE_NAME)).unwrap();
    assert_eq!(journal.records, [first, second]);
    assert_eq!(journal.head, writer.head());
    assert!(matches!(Writer::reopen::<Entry>(&dir), Err(JournalError::Locked { .. })));
    assert!(matches!(Writer::create(&dir, "two"), Err(JournalError::Io { .. })));
    drop(writer);
    let (mut writer, _) = reopen(&dir).map_err(std::io::Error::other).unwrap();
    assert_eq!(writer.append(entry()).unwrap().seq, 2);
    assert!(matches!(read::<Entry>(&dir.join("nothing")), Err(JournalError::Io { .. })));
    assert!(matches!(Writer::reopen::<Entry>(folder.path()), Err(JournalError::Io { .. })));
}

#[test]
fn unreadable_result_does_not_verify() {
    let folder = finished_run();
    let path = folder.run().join("result.json");
    let whole = std::fs::read(&path).unwrap();
    for damaged in [&b"\xff"[..], &whole[..whole.len() / 2], b"", b"[]"] {
        std::fs::write(&path, damaged).unwrap();
        Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7);
    }
    std::fs::write(&path, whole).unwrap();
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// The output says that endpoints, models, counts, costs and times rest on the word of the file's holder.
#[test]
fn verify_lists_what_is_not_covered() {
    let folder = finished_run();
    let said = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0).stdout;
    let first = "  not covered  endpoints, model names, token counts, costs and times: only the file's holder vouches for them";
    assert!(said.starts_with("verified: run ") && said.lines().any(|line| line == first), "{said}");
    for part in [
        "receipts, attempts, retries",
        "labels, and sessions",
        "the output of checks",
        "the name of the roleset",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("calibration"), "{said}");
    let words = ["verify", "--last", "--format", "json"];
    let said: Value =
        serde_json::from_str(&Finished::of(consensus(&folder).args(words)).exits(0).stdout).unwrap();
    assert_eq!(said["not_covered"][1], "model", "{said}");
    assert_eq!(said["session"], Value::Null, "{said}");
}

#[test]
fn pipe_in_place_of_run_file_is_refused() {
    let folder = finished_run();
    let run = folder.run();
    for name in [FILE_NAME, "result.json"] {
        let path = run.join(name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let mut command = consensus(&folder);
        let mut child =
            command.arg("verify").arg(&run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if began.elapsed() > Duration::from_mins(1) {
                child.kill().unwrap();
                panic!("`verify` waits for {name}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_ne!(child.wait().unwrap().code(), Some(0), "{name}");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, whole).unwrap();
    }
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// The files that a killed process was writing go once the run continues.
#[test]
fn resume_removes_unfinished_files() {
    let folder = Folder::new();
    let run = ["run", "--mock", "--answer", "4", "--task", "2+2?", "--max-tokens-total", "10"];
    Finished::of(consensus(&folder).args(run)).exits(5);
    let left = folder.run().join(".result.json.6f1c2a9e-5f0b-4a7e-9d3c-0b1e2f3a4c5d.new");
    std::fs::write(&left, "{").unwrap();
    let resume = ["resume", "--last", "--max-tokens-total", "100000"];
    Finished::of(consensus(&folder).args(resume)).exits(0);
    assert!(!left.exists());
}

/// A run is exported only if its result follows from its journal too.
#[test]
fn bent_result_is_not_exported() {
    let folder = finished_run();
    let id = folder.run().file_name().unwrap().to_str().unwrap().to_owned();
    let export = |bundle: &str, code: i32| {
        Finished::of(consensus(&folder).args(["export", &id, "--bundle", bundle])).exits(code)
    };
    export("run.tar.gz", 0);
    let path = folder.run().join("result.json");
    let result = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, result.replace("\"four\"", "\"five\"")).unwrap();
    assert!(export("bent.tar.gz", 7).stderr.contains("result.json does not match the journal"));
    assert!(!folder.path().join("bent.tar.gz").exists());
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let is_scratch = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("consensus-export");
    assert!(!left.iter().any(is_scratch), "{left:?}");
}

/// The digest of an output follows from the output, with every digest of the chain made anew.
#[test]
fn forged_output_digest_does_not_verify() {
    let folder = Folder::new();
    let reply = "```python\ndef solution():\n    return 4 * 12\n```";
    let programmer = serde_json::json!({"agent": "Programmer", "attempt": 0, "reply": reply});
    folder.write(
        "script.jsonl",
        &format!("{{\"agent\": \"Solver\", \"policy\": \"honest\", \"answer\": \"48\"}}\n{programmer}\n"),
    );
    let run = [
        "run",
        "-q",
        "--roleset",
        "solver_programmer",
        "--talk",
        "always",
        "--mock-script",
        "script.jsonl",
        "--max-rounds",
        "1",
    ];
    Finished::of(consensus(&folder).args(run).args(["--prompt", "4 crates of 12?"])).exits(0);
    let path = folder.run().join(FILE_NAME);
    let text = String::from_utf8(journal_of(&folder)).unwrap();
    let (mut forged, mut head, mut outputs) = (String::new(), crypto::Digest::ZERO, 0);
    for line in text.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["prev"] = serde_json::json!(head);
        if record["event"]["type"] == "executed" {
            record["event"]["result"]["output_sha256"] = serde_json::json!(crypto::Digest::new(b"49"));
            outputs += 1;
        }
        let line = record.to_string();
        head = crypto::Digest::new(line.as_bytes());
        forged.extend([&line, "\n"]);
    }
    assert_eq!(outputs, 1);
    std::fs::write(&path, forged).unwrap();
    std::fs::remove_file(folder.run().join("result.json")).unwrap();
    let refused = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7).stderr;
    assert!(refused.contains("`output_sha256` is that of another output"), "{refused}");
}
