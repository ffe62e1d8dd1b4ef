//! A server that a run starts is there for the run, and gone after it, whatever happens.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use consensus::provider::launch::LAUNCHERS;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{
    Act, Finished, Folder, SENSIBLE, Server, TALK, consensus, fake_llm, http, model, trust,
};

/// How long a process that is being ended may take: longer than the guard's own grace.
const GONE_MAX: Duration = Duration::from_secs(30);

fn run(folder: &Folder, behaviours: &str) -> Command {
    let mut run = consensus(folder);
    run.args(["run", "--seed", "1", "--prompt", "2+2?", "--launch", &fake_llm(behaviours)]).args(TALK);
    run
}

/// Returns the ids of the processes that the server said it is, from its log in the run folder.
fn processes(folder: &Folder) -> Vec<i32> {
    in_log(&folder.run().join("server.log"))
}

fn in_log(path: &Path) -> Vec<i32> {
    let log = std::fs::read_to_string(path).unwrap();
    let ids = log.lines().filter_map(|line| line.split("process ").nth(1));
    let ids: Vec<i32> = ids.map(|id| id.trim().parse().unwrap()).collect();
    assert!(!ids.is_empty(), "{log}");
    ids
}

/// Asserts that none of the server's processes is left.
#[track_caller]
fn assert_gone(folder: &Folder) {
    for id in processes(folder) {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The process that adopts orphans may not have collected it yet; it has ended all the same.
        let ended = kill(Pid::from_raw(id), None).is_err() || state.contains(") Z ");
        assert!(ended, "process {id} is left: {state}");
    }
}

#[test]
fn launched_server_ends_with_the_run() {
    let folder = Folder::new();
    let finished = Finished::of(&mut run(&folder, "worker loads=2")).exits(0);
    assert_eq!(finished.stdout, "four\n");
    assert_eq!(processes(&folder).len(), 2, "the server and its worker");
    assert_gone(&folder);
    let result = folder.result();
    assert!(result["agents"][0]["endpoint"].as_str().unwrap().starts_with("tiny-model at http://127.0.0.1:"));
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn one_server_serves_all_batches_of_an_evaluation() {
    let folder = Folder::new();
    let task = json!({"id": 1, "prompt": "2+2?", "answer": "four", "canonical": "text"});
    folder.write("sums.jsonl", &format!("{task}\n"));
    let mut eval = consensus(&folder);
    eval.args(["eval", "sums.jsonl", "--out", "study", "--samples", "2", "--arm", "writer_physicist"]);
    Finished::of(eval.args(["--arm", "sc@2", "--launch", &fake_llm("worker")])).exits(0);
    let log = folder.path().join("study/bank/server.log");
    assert_eq!(in_log(&log).len(), 2, "the server and its worker");
    assert!(!folder.path().join("study/arms/server.log").exists(), "no second server");
}

#[test]
fn failed_start_reports_end_of_log() {
    let folder = Folder::new();
    let finished = Finished::of(&mut run(&folder, "refuses")).exits(6);
    assert!(finished.stderr.contains("ended before it was ready (exit status: 3)"), "{}", finished.stderr);
    assert!(finished.stderr.contains("there is no such model"), "{}", finished.stderr);
    let missing = ["run", "--prompt", "2+2?", "--launch", "no-such-program --port {port}"];
    let finished = Finished::of(consensus(&Folder::new()).args(missing)).exits(6);
    assert!(finished.stderr.contains("cannot start `no-such-program`"), "{}", finished.stderr);
    assert_eq!(Finished::of(consensus(&folder).arg("runs")).exits(0).stdout, "");
}

#[test]
fn unready_server_is_given_up_and_ended() {
    let folder = Folder::new();
    folder.write("consensus.toml", "[timeouts]\nready_ms = 600\n");
    let finished = Finished::of(&mut run(&folder, "loads=100000")).exits(6);
    assert!(finished.stderr.contains("raise `timeouts.ready_ms`"), "{}", finished.stderr);
    assert_gone(&folder);
}

#[test]
fn dead_server_is_restarted_once() {
    let folder = Folder::new();
    let mark = folder.path().join("died");
    let finished = Finished::of(&mut run(&folder, &format!("dies_once={}", mark.display()))).exits(0);
    assert_eq!(finished.stdout, "four\n");
    assert!(finished.stderr.contains("restarting the model server"), "{}", finished.stderr);
    assert_eq!(processes(&folder).len(), 2, "two lives");
    assert_gone(&folder);
}

/// A server that dies again ends the run, which a resume with --launch then finishes.
#[test]
fn second_server_death_leaves_run_resumable() {
    let folder = Folder::new();
    let finished = Finished::of(&mut run(&folder, "dies=2")).exits(6);
    assert!(finished.stderr.contains("ended during the run"), "{}", finished.stderr);
    assert!(finished.stderr.contains("--launch COMMAND --model MODEL`"), "{}", finished.stderr);
    assert_gone(&folder);
    // A journal never says what to start.
    let refused = Finished::of(consensus(&folder).args(["resume", "--last"])).exits(2);
    assert!(refused.stderr.contains("start one again with --launch"), "{}", refused.stderr);
    let resume = ["resume", "--last", "--launch", &fake_llm("")];
    assert_eq!(Finished::of(consensus(&folder).args(resume)).exits(0).stdout, "four\n");
    assert_gone(&folder);
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn resume_with_another_model_is_reported() {
    let folder = Folder::new();
    Finished::of(&mut run(&folder, "dies=3")).exits(6);
    let other = Server::start(|request| {
        if request.path.ends_with("/models") {
            let list = json!({"data": [{"id": "other-model"}]});
            return vec![Act::Send(http("200 OK", "", list.to_string().as_bytes()))];
        }
        model(SENSIBLE)(request)
    });
    let resume = ["resume", "--last", "--fail-on-degraded", "--base-url"];
    let resumed = Finished::of(consensus(&folder).args(resume).arg(other.url())).exits(8);
    assert!(resumed.stderr.contains("`other-model` from then on"), "{}", resumed.stderr);
    assert_eq!(folder.result()["degraded"][0]["kind"], "model_changed");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// A run whose server never answers.
struct Hanging {
    child: Child,
    /// What it tells while it goes.
    story: Box<dyn Iterator<Item = String>>,
    /// Ends with the server.
    connection: TcpStream,
}

impl Hanging {
    /// Starts one and waits until both of its calls are in the air.
    fn start(folder: &Folder, behaviours: &str) -> Self {
        let mut run = run(folder, behaviours);
        let mut child =
            run.args(["--format", "jsonl"]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut story = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let ready = story.find(|line| line.contains("the server is ready at")).expect("the server comes up");
        let address = ready.split("http://").nth(1).unwrap().trim_end_matches("/v1");
        let connection = TcpStream::connect(address).unwrap();
        let records = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(records.filter(|record| record.contains("\"asked\"")).take(2).count(), 2);
        Self { child, story: Box::new(story), connection }
    }
}

/// Waits until the server at the other end is gone.
#[track_caller]
fn await_end(mut connection: TcpStream) {
    connection.set_read_timeout(Some(GONE_MAX)).unwrap();
    // Nothing is ever sent here: this returns when the connection ends, or with the time-out.
    let read = connection.read(&mut [0]);
    assert!(!matches!(&read, Err(e) if e.kind() == std::io::ErrorKind::WouldBlock), "the server is left");
}

#[test]
fn no_signal_leaves_a_server_behind() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL, Signal::SIGHUP] {
        // Under `nohup` a hang-up is meant to be survived, by this program too.
        if signal == Signal::SIGHUP && hang_ups_are_ignored() {
            continue;
        }
        let folder = Folder::new();
        let Hanging { mut child, mut story, connection } = Hanging::start(&folder, "hangs worker");
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        kill(pid, signal).unwrap();
        if matches!(signal, Signal::SIGINT | Signal::SIGTERM) {
            // The first waits for open calls, which never end here; the second does not.
            assert!(story.any(|line| line.contains("press Ctrl-C again to stop now")));
            kill(pid, signal).unwrap();
            assert!(story.any(|line| line.contains("stopping now")));
        }
        child.wait().unwrap();
        await_end(connection);
        let began = Instant::now();
        // The guard ends the worker right after the server.
        while began.elapsed() < GONE_MAX && processes(&folder).iter().any(|id| is_alive(*id)) {
            std::thread::yield_now();
        }
        assert_gone(&folder);
    }
}

/// Whether this process, and so every one that it starts, ignores SIGHUP; false where the kernel does not tell.
fn hang_ups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1)
}

/// A server ends even if its guard and the program are both killed.
#[test]
#[cfg(target_os = "linux")]
fn server_does_not_outlive_its_guard() {
    let folder = Folder::new();
    let Hanging { mut child, connection, .. } = Hanging::start(&folder, "hangs");
    let server = processes(&folder)[0];
    let status = std::fs::read_to_string(format!("/proc/{server}/status")).unwrap();
    let guard = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    assert_ne!(guard, i32::try_from(child.id()).unwrap());
    kill(Pid::from_raw(guard), Signal::SIGKILL).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    await_end(connection);
}

/// A signal while the server starts ends the command with exit 130 and leaves the journal of a resumed run unchanged.
#[test]
fn signal_at_start_reports_nothing_asked() {
    let loading = "loads=100000";
    let folder = Folder::new();
    interrupt_at_start(&mut run(&folder, loading));
    let folder = Folder::new();
    Finished::of(&mut run(&folder, "dies=2")).exits(6);
    let journal = std::fs::read(folder.run().join("journal.jsonl")).unwrap();
    interrupt_at_start(consensus(&folder).args(["resume", "--last", "--launch", &fake_llm(loading)]));
    assert_eq!(std::fs::read(folder.run().join("journal.jsonl")).unwrap(), journal);
    Finished::of(consensus(&folder).args(["resume", "--last", "--launch", &fake_llm("")])).exits(0);
}

/// Interrupts a command while its server starts, and asserts that it says so.
#[track_caller]
fn interrupt_at_start(command: &mut Command) {
    command.args(["--format", "json"]).stderr(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut story = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(story.any(|line| line.contains("starting ")));
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    assert!(story.any(|line| line.contains("nothing was asked")));
    let output = child.wait_with_output().unwrap();
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &error["error"]["exit"]), (Some(130), &json!(130)));
}

/// The job for a cluster passes flags on with and without a roleset before them.
#[test]
fn cluster_job_roleset_is_optional() {
    let folder = Folder::new();
    let job = |words: &[&str]| {
        let mut bash = Command::new("bash");
        bash.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/run_gpu.job")).args(words).current_dir(folder.path());
        bash.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder.path());
        // What it would start is printed instead.
        bash.envs([("CONSENSUS", "echo"), ("SLURM_JOB_ID", "7"), ("LAUNCH", "serve {port}")]);
        Finished::of(&mut bash).exits(0).stdout
    };
    let started = job(&["2+2?", "--seed", "5"]);
    assert!(
        started.starts_with("run --roleset writer_physicist --prompt 2+2? --launch serve {port}"),
        "{started}"
    );
    assert!(started.trim_end().ends_with("--seed 5"), "{started}");
    let started = job(&["2+2?", "solver_checker", "--seed", "5"]);
    assert!(started.starts_with("run --roleset solver_checker --prompt 2+2?"), "{started}");
}

#[test]
#[cfg(target_os = "linux")]
fn processes_in_other_groups_are_ended() {
    let server = fake_llm("worker");
    for wrap in [format!("bash -c 'set -m; {server} & wait'"), format!("bash -c 'setsid {server} & wait'")] {
        let folder = Folder::new();
        let run = ["run", "--prompt", "2+2?", "--launch", &wrap];
        Finished::of(consensus(&folder).args(run)).exits(0);
        assert_gone(&folder);
    }
}

#[test]
fn a_deadline_counts_while_the_server_starts() {
    let finished = Finished::of(run(&Folder::new(), "loads=100000").args(["--deadline", "300ms"])).exits(5);
    assert!(finished.stderr.contains("the deadline passed before the run began"), "{}", finished.stderr);
}

/// Starts the job for a cluster with a program that ends with the last of these signals, sends them one by one, and
/// returns the exit code, what the job passed to `scontrol`, and what it printed for the user.
fn job_with(signals: &[Signal], restarts: &str, scontrol: &str) -> (i32, String, String) {
    let folder = Folder::new();
    let stub = format!(
        "#!/bin/bash\nn=0\ntrap 'n=$((n+1)); echo told $n; if [ $n -ge {} ]; then exit 130; fi' TERM\necho waiting\n\
         while :; do sleep 1000 & wait $!; done\n",
        signals.len()
    );
    let stub = folder.write("stub", &stub);
    let scontrol = folder.write("bin/scontrol", scontrol);
    for program in [&stub, &scontrol] {
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    let path = format!("{}:{}", scontrol.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args([concat!(env!("CARGO_MANIFEST_DIR"), "/run_gpu.job"), "2+2?"]).current_dir(folder.path());
    bash.env_clear().env("PATH", path).env("HOME", folder.path()).env("CONSENSUS", &stub);
    bash.envs([("SLURM_JOB_ID", "7"), ("LAUNCH", "serve {port}"), ("SLURM_RESTART_COUNT", restarts)]);
    let mut job = bash.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn().unwrap();
    let mut said = BufReader::new(job.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(said.next().as_deref(), Some("waiting"));
    let id = Pid::from_raw(i32::try_from(job.id()).unwrap());
    for (index, signal) in signals.iter().enumerate() {
        kill(id, *signal).unwrap();
        assert_eq!(said.next(), Some(format!("told {}", index + 1)), "{signals:?}");
    }
    let code = job.wait().unwrap().code().unwrap();
    // What the stub waited with.
    let _ = killpg(id, Signal::SIGKILL);
    let mut stderr = String::new();
    job.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (code, said.collect::<Vec<_>>().join("\n"), stderr)
}

const SCONTROL: &str = "#!/bin/bash\necho \"$@\"\n";

/// A job that the cluster cuts short is queued again, and one that is cancelled is not.
#[test]
fn only_a_cut_job_is_requeued() {
    let (cut, cancelled) = (Signal::SIGUSR1, Signal::SIGTERM);
    for (signals, asked) in [
        (&[cut][..], "requeue 7"),
        (&[cut, cut], "requeue 7"),
        (&[cancelled], ""),
        (&[cut, cancelled], ""),
        (&[cancelled, cut], ""),
    ] {
        let (code, said, _) = job_with(signals, "0", SCONTROL);
        assert_eq!((code, said.as_str()), (130, asked), "{signals:?}");
    }
    // A second start in which nothing came in is the last.
    assert_eq!(job_with(&[cut], "1", SCONTROL).0, 1);
    let (code, _, stderr) = job_with(&[cut], "0", "#!/bin/bash\nexit 1\n");
    assert!(code == 1 && stderr.contains("cannot be queued again; go on with: consensus resume"), "{stderr}");
}

#[test]
fn linked_model_is_served_by_real_path() {
    let folder = Folder::new();
    folder.write("real/model.gguf", "");
    std::os::unix::fs::symlink("real/model.gguf", folder.path().join("link")).unwrap();
    let mut bash = Command::new("bash");
    bash.args([concat!(env!("CARGO_MANIFEST_DIR"), "/run_gpu.job"), "2+2?"]).current_dir(folder.path());
    bash.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder.path());
    bash.envs([("CONSENSUS", "echo"), ("SLURM_JOB_ID", "7"), ("IMAGE", "vllm.sif"), ("MODEL", "link")]);
    let started = Finished::of(&mut bash).exits(0).stdout;
    let real = folder.path().join("real/model.gguf").canonicalize().unwrap().display().to_string();
    assert!(started.contains("apptainer exec --nv --bind"), "{started}");
    assert!(
        started.contains(&format!(",{real}'")) && started.contains(&format!("--model {real}")),
        "{started}"
    );
    // What is bound must be there.
    assert!(folder.path().join(".cache/huggingface").is_dir());
}

/// A job starts anew where the first journal line is torn, and refuses a run of another job.
#[test]
fn job_resumes_only_its_own_run() {
    let folder = Folder::new();
    let job = |restarts: &str| {
        let mut bash = Command::new("bash");
        bash.args([concat!(env!("CARGO_MANIFEST_DIR"), "/run_gpu.job"), "2+2?"]).current_dir(folder.path());
        bash.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder.path());
        bash.envs([("CONSENSUS", "echo"), ("SLURM_JOB_ID", "7"), ("LAUNCH", "serve {port}")]);
        bash.env("SLURM_RESTART_COUNT", restarts);
        Finished::of(&mut bash)
    };
    // A first line that was torn when a node failed is no run.
    folder.write("consensus-results/7/1/journal.jsonl", "{\"v\":1,\"run\"");
    assert!(job("1").exits(0).stdout.starts_with("run "));
    folder.write("consensus-results/7/1/journal.jsonl", "{\"v\":1}\n");
    assert!(job("1").exits(0).stdout.starts_with("resume --last"));
    let refused = job("0").exits(64);
    assert!(refused.stderr.contains("holds a run of another job"), "{}", refused.stderr);
}

fn is_alive(id: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    kill(Pid::from_raw(id), None).is_ok() && !state.contains(") Z ")
}

#[test]
fn flag_overrides_configured_server() {
    let folder = Folder::new();
    let quoted = fake_llm("").replace('\\', "\\\\").replace('"', "\\\"");
    folder.write("consensus.toml", &format!("launch = \"{quoted}\"\nmodel = \"some/model\"\n"));
    trust(&folder);
    Finished::of(consensus(&folder).args(["run", "--prompt", "2+2?"])).exits(0);
    assert_gone(&folder);
    let own = Server::start(model(SENSIBLE));
    let folder = Folder::new();
    folder.write("consensus.toml", "launch = \"no-such-program {port}\"\n");
    trust(&folder);
    Finished::of(consensus(&folder).args(["run", "--prompt", "2+2?", "--base-url"]).arg(own.url())).exits(0);
    Finished::of(consensus(&folder).args(["run", "--prompt", "2+2?", "--mock", "--answer", "4"])).exits(0);
}

#[test]
fn script_and_server_share_the_agents() {
    let script = json!({"agent": "Writer", "policy": "stubborn", "answer": "five"}).to_string();
    let folder = Folder::new();
    folder.write("writer.jsonl", &script);
    let mixed = |more: &[&str]| {
        let mut run = consensus(&folder);
        run.args(["run", "--prompt", "2+2?", "--mock-script", "writer.jsonl"]).args(more);
        Finished::of(&mut run)
    };
    let left = mixed(&[]).exits(2);
    assert!(left.stderr.contains("has no rule for `Physicist`"), "{}", left.stderr);
    // The sensible model gives in to an agent that insists; that is why its blind draft is kept.
    assert_eq!(mixed(&["--launch", &fake_llm("")]).exits(0).stdout, "five\n");
    let result = folder.result();
    assert_eq!((&result["agents"][0]["endpoint"], &result["how"]), (&json!("mock"), &json!("endorsed")));
    assert_eq!(result["blind_vote"]["tally"][1]["text"], "four");
    folder.write("writer.jsonl", &script.replace("Writer", "Wirter"));
    let stranger = mixed(&["--launch", &fake_llm("")]).exits(2);
    assert!(stranger.stderr.contains("has a rule for `Wirter`"), "{}", stranger.stderr);
}

#[test]
fn a_run_resumes_at_another_address() {
    let folder = Folder::new();
    let first = Server::start(model(SENSIBLE));
    let run = ["run", "--prompt", "2+2?", "--max-tokens-total", "2500", "--base-url"];
    Finished::of(consensus(&folder).args(run).arg(first.url()).args(TALK)).exits(5);
    drop(first);
    let second = Server::start(model(SENSIBLE));
    let resume = ["resume", "--last", "--max-tokens-total", "90000", "--base-url"];
    Finished::of(consensus(&folder).args(resume).arg(second.url())).exits(0);
    assert!(!second.chats().is_empty());
    assert!(folder.result()["agents"][0]["endpoint"].as_str().unwrap().ends_with(&second.url()));
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn launch_mistakes_are_explained_before_start() {
    let folder = Folder::new();
    for (arguments, part) in [
        (&["--launch", "vllm"][..], "name the model with --model"),
        (&["--launch", "my-server"], "says where its port goes"),
        (&["--launch", "vllm", "--model", "ollama:llama3.1"], "leave one of them out"),
        (&["--launch", "vllm", "--base-url", "http://127.0.0.1:1/v1"], "cannot be used with"),
    ] {
        let finished =
            Finished::of(consensus(&folder).args(["run", "--prompt", "x"]).args(arguments)).exits(2);
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn doctor_examines_a_server_that_it_starts() {
    let folder = Folder::new();
    let doctor = ["doctor", "--format", "jsonl", "--launch", &fake_llm("")];
    let finished = Finished::of(consensus(&folder).args(doctor)).exits(0);
    let [line] = finished.stdout.lines().collect::<Vec<_>>()[..] else { panic!("{}", finished.stdout) };
    let report: Value = serde_json::from_str(line).unwrap();
    assert_eq!(report["models"], json!(["tiny-model"]));
    let by = |name: &str| {
        let settings = report["settings"].as_array().unwrap();
        settings.iter().find(|setting| setting["name"] == name).map(|setting| setting["by"].clone())
    };
    assert_eq!(by("launch"), Some("--launch".into()));
    assert_eq!(by("base_url"), Some("the server that was started".into()));
    assert_eq!((by("model"), by("api_key_env")), (Some("the server's list of models".into()), None));
    let log = folder.path().join("runs").join("doctor").join("server.log");
    assert!(!in_log(&log).into_iter().any(is_alive));
}

#[test]
fn every_launcher_names_model_and_port() {
    for launcher in LAUNCHERS {
        for how in [launcher.local, launcher.named] {
            assert!(how.contains(&"{model}"), "{}", launcher.name);
        }
        let others: Vec<&str> = launcher.others.split(' ').collect();
        assert!(others.contains(&"{port}"), "{}", launcher.name);
        assert!(others.contains(&"127.0.0.1"), "{} must listen on loopback alone", launcher.name);
    }
}
