//! Measures one run, beside a bare HTTP loop that sends the same bytes to the same server.
//!
//! `cargo bench` prints the table. `cargo bench --bench bench -- quorum` prints the rows on decisions by quorum alone, `-- batch` those
//! on batches, `-- served` those on a server, `-- votes` those on votes and banks, `-- eval` those on evaluations, `-- redaction` those
//! on redaction, and `-- long` those that take minutes. `tests/bench/batch.sh` prints those on what others write in Python.
//! `-- quick` prints the first rows after one run each, which shows that the measurement works, and is no measurement.
//!
//! The server is on loopback and answers at once with about 1 KB, so that what is measured is this program. The bare loop is a reqwest
//! client that sends the bodies recorded from the run, one after another, and reads the answers. Absolute times depend on the machine;
//! the ratio to the bare loop in the same row much less.

#[path = "../it/support/server.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "shared with the tests, which use all of it"
)]
mod server;

#[path = "../it/support/model.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with the tests, which use all of it")]
mod model;

mod batch;
mod eval;
mod long;
mod quorum;
mod redaction;
mod rivals;
mod served;
mod votes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use consensus::engine::RunState;
use consensus::journal::{Entry, FILE_NAME, read};
use consensus::retrieval::{Corpus, PdfReader};
use model::SENSIBLE;
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};
use server::{Act, Request, Server, completion};

/// Returns the runs of each command, of which medians are printed.
fn count_of_runs() -> usize {
    if is_quick() { 1 } else { 15 }
}

fn is_quick() -> bool {
    std::env::args().any(|word| word == "quick")
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A part of the table that can be printed alone.
type Part = fn() -> Result<()>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, command @ ..] = arguments.as_slice()
        && word == "measure"
    {
        return report_cost(command);
    }
    if let [_, word, url, bodies] = arguments.as_slice()
        && word == "bare-loop"
    {
        return bare_loop(url, Path::new(bodies));
    }
    if let [_, word, url, bodies, runs, at_once, together] = arguments.as_slice()
        && word == "bare-batch"
    {
        let counts = [runs.parse()?, at_once.parse()?];
        return batch::bare_batch(url, Path::new(bodies), counts, together.parse()?);
    }
    if let [_, word, delay_ms] = arguments.as_slice()
        && word == "serve"
    {
        return batch::serve(Duration::from_millis(delay_ms.parse()?));
    }
    let parts: [(&str, Part); 8] = [
        ("quorum", quorum::measure),
        ("batch", batch::measure),
        ("votes", votes::measure),
        ("eval", eval::measure),
        ("redaction", redaction::measure),
        ("rivals", rivals::measure),
        ("served", served::measure),
        ("long", long::measure),
    ];
    if let Some((_, measure)) = parts.iter().find(|(name, _)| arguments.iter().any(|word| word == name)) {
        return measure();
    }
    let folder = BenchFolder::new()?;
    println!("consensus {}; {} runs each, medians\n", env!("CARGO_PKG_VERSION"), count_of_runs());
    println!("{:52} {:>12} {:>12} {:>8}", "quantity", "consensus", "bare loop", "ratio");
    let version = median_of(count_of_runs(), || timed(&[program(), "--version"], &folder.0))?;
    row("--version, ms", ms(version.wall), None);
    for (name, turns) in [("cold durable 2-turn run", 2), ("20 turns", 20), ("200 turns", 200)] {
        let cost = measure(&folder, turns)?;
        let per = |time: Duration| ms(time) / turns as f64;
        if turns == 2 {
            row(&format!("{name}, ms"), ms(cost.run.wall), Some(ms(cost.bare.wall)));
        } else {
            row(&format!("{name}: ms a turn"), per(cost.run.wall), Some(per(cost.bare.wall)));
        }
        row(&format!("{name}: CPU ms a turn"), per(cost.run.cpu), Some(per(cost.bare.cpu)));
        row(&format!("{name}: peak resident MiB"), cost.run.rss_mib, Some(cost.bare.rss_mib));
        if turns == 20 {
            row("20 turns: TCP connections", cost.connections as f64, None);
            row("20 turns: header bytes a request", cost.header_bytes as f64, None);
            row("20 turns: uncached / distinct prompt bytes", cost.amplification, None);
            let (p50, p99) = compute(&folder.0.join("runs"))?;
            row("20 turns: compute a turn without disk, µs p50", p50, None);
            row("20 turns: compute a turn without disk, µs p99", p99, None);
        }
    }
    if is_quick() {
        return Ok(());
    }
    row("panel of 8: both phases, in replies of 200 ms", panel(&folder)?, None);
    library(&folder)?;
    quorum::measure()?;
    redaction::measure()?;
    sizes()
}

/// Prints the size of the program as it is built here, and of the one that is handed out, where that was built.
fn sizes() -> Result<()> {
    let release = PathBuf::from(program());
    let size = |path: &Path| std::fs::metadata(path).map(|file| file.len() as f64 / 1e6);
    row("binary, MB (goal: at most 28)", size(&release)?, None);
    let dist = release.ancestors().nth(2).map(|target| target.join("dist/consensus"));
    if let Some(size) = dist.and_then(|dist| size(&dist).ok()) {
        row("binary of the profile `dist`, MB (goal: at most 20)", size, None);
    }
    Ok(())
}

/// Returns how long eight members take for their answers and ballots, in calls to a server that takes 200 ms.
/// The start and the end of the program are in it.
fn panel(folder: &BenchFolder) -> Result<f64> {
    const REPLY: Duration = Duration::from_millis(200);
    let server = Server::start(|request: &Request| {
        vec![Act::Pause(REPLY), Act::Send(completion(&SENSIBLE(&request.json())))]
    });
    let url = server.url();
    let (members, runs) = (8, folder.0.join("panels").display().to_string());
    let count = members.to_string();
    let fixed =
        ["run", "-q", "--no-stream", "--model", "m", "--seed", "1", "--prompt", "2+2?", "--thinking", "none"];
    let places =
        ["--roleset", "panel_personas", "--self-panel", &count, "--base-url", &url, "--runs-dir", &runs];
    let cost = median_of(5, || timed(&[&[program()][..], &fixed, &places].concat(), &folder.0))?;
    if server.chats().len() != 5 * 2 * members {
        return Err("a panel of eight has sixteen calls".into());
    }
    Ok(cost.wall.as_secs_f64() / REPLY.as_secs_f64())
}

/// Indexes and searches 10,000 pages in 1,000 files, beside a program that only reads them.
fn library(folder: &BenchFolder) -> Result<()> {
    let (places, cache) = ([folder.0.join("docs")], folder.0.join("cache"));
    std::fs::create_dir_all(&places[0])?;
    // Every word of a page is one of 20,000; small numbers are drawn more often, as words are in texts.
    let mut state = 1_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
        format!("w{:.0}", 20_000.0_f64.powf(uniform))
    };
    let mut bytes = 0;
    for file in 0..1_000 {
        let pages = (0..10).map(|_| {
            (0..400)
                .map(|_| word())
                .collect::<Vec<_>>()
                .chunks(12)
                .map(|s| s.join(" "))
                .collect::<Vec<_>>()
                .join(". ")
        });
        let text = pages.collect::<Vec<_>>().join("\n\n");
        bytes += text.len();
        std::fs::write(places[0].join(format!("{file}.md")), text)?;
    }
    let began = Instant::now();
    for entry in std::fs::read_dir(&places[0])? {
        std::hint::black_box(std::fs::read(entry?.path())?);
    }
    let read = began.elapsed();
    let began = Instant::now();
    let (corpus, updated) = Corpus::open(&places, &cache, &PdfReader::Here)?;
    let name = format!("10,000 pages ({} MB, {} passages)", bytes / 1_000_000, updated.passages);
    row(&format!("{name}: index, s"), began.elapsed().as_secs_f64(), Some(read.as_secs_f64()));
    drop(corpus);
    std::fs::write(places[0].join("0.md"), "The lighthouse was finished in 1874.")?;
    let began = Instant::now();
    let (corpus, _) = Corpus::open(&places, &cache, &PdfReader::Here)?;
    row("10,000 pages: open, one file changed, ms", ms(began.elapsed()), None);
    let mut took: Vec<f64> = Vec::new();
    for number in 0..100 {
        let words = format!("w{} w{} w{} lighthouse", 3 + number, 100 + number, 10_000 + number);
        let began = Instant::now();
        std::hint::black_box(corpus.search(&words, 1_500)?);
        took.push(ms(began.elapsed()));
    }
    took.sort_by(f64::total_cmp);
    row("10,000 pages: search, ms p50", took[50], None);
    row("10,000 pages: search, ms p99", took[98], None);
    Ok(())
}

fn row(name: &str, ours: f64, bare: Option<f64>) {
    let show = |value: f64| if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") };
    let bare_text = bare.map(show).unwrap_or_default();
    let ratio = bare.map(|b| format!("{:.2}×", ours / b)).unwrap_or_default();
    println!("{name:52} {:>12} {bare_text:>12} {ratio:>8}", show(ours));
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_consensus")
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// What one process took.
#[derive(Clone, Copy, Default)]
struct Cost {
    wall: Duration,
    cpu: Duration,
    rss_mib: f64,
}

/// What a run and the bare loop took, and what the server saw of the run.
struct LoopComparison {
    run: Cost,
    bare: Cost,
    connections: usize,
    header_bytes: usize,
    amplification: f64,
}

/// Runs a talk of this many turns and then the bare loop with the same bodies, in turn.
fn measure(folder: &BenchFolder, turns: usize) -> Result<LoopComparison> {
    let roleset = write_roleset(&folder.0, turns)?.display().to_string();
    let server = Server::start(move |request: &Request| {
        vec![Act::Send(completion(&talkative(&request.json(), turns)))]
    });
    let url = server.url();
    let bodies = folder.0.join("bodies.jsonl");
    let runs = folder.0.join("runs");
    let once = || {
        // Only the newest run is needed afterwards.
        let _ = std::fs::remove_dir_all(&runs);
        let fixed = ["run", "-q", "--no-stream", "--model", "m", "--seed", "1", "--prompt", "Talk."];
        let places = ["--roleset", &roleset, "--base-url", &url];
        timed(&[&[program()][..], &fixed, &places].concat(), &folder.0)
    };
    once()?;
    let seen = server.chats();
    let connections = server.connections.load(Ordering::SeqCst);
    // Whatever the protocol has become, a talk of so many turns has so many.
    if seen.len() != turns {
        return Err(format!("{} calls in a talk of {turns} turns", seen.len()).into());
    }
    let lines: Vec<&str> = seen.iter().map(|r| r.body.as_str()).collect();
    std::fs::write(&bodies, lines.join("\n"))?;
    let own = std::env::current_exe()?.display().to_string();
    let bare = || timed(&[&own, "bare-loop", &url, &bodies.display().to_string()], &folder.0);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..count_of_runs() {
        ours.push(once()?);
        theirs.push(bare()?);
    }
    Ok(LoopComparison {
        run: median(&ours),
        bare: median(&theirs),
        connections,
        header_bytes: seen.first().map_or(0, |r| r.head.len()),
        amplification: amplification(&seen),
    })
}

/// Runs a command below a small process of its own, so that its peak memory is its own too: a child
/// starts as a copy of its parent.
fn timed(command: &[&str], folder: &Path) -> Result<Cost> {
    let own = std::env::current_exe()?;
    let mut measured = Command::new(own);
    measured.arg("measure").args(command).current_dir(folder).env("CONSENSUS_RUNS_DIR", "runs");
    let output = measured.output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
    let [wall, cpu, kib] = numbers.as_slice() else { return Err(format!("no figures: {text}").into()) };
    let (wall, cpu) = (Duration::from_micros(*wall), Duration::from_micros(*cpu));
    Ok(Cost { wall, cpu, rss_mib: *kib as f64 / 1024.0 })
}

/// Runs a command and prints its wall time and CPU time in microseconds and its peak memory in KiB.
fn report_cost(command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let began = Instant::now();
    Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let wall = began.elapsed().as_micros();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let (user, system) = (usage.user_time(), usage.system_time());
    let cpu = (user.tv_sec() + system.tv_sec()) * 1_000_000 + user.tv_usec() + system.tv_usec();
    println!("{wall} {cpu} {}", usage.max_rss());
    Ok(())
}

fn median_of(count: usize, once: impl Fn() -> Result<Cost>) -> Result<Cost> {
    (0..count).map(|_| once()).collect::<Result<Vec<Cost>>>().map(|costs| median(&costs))
}

fn median(costs: &[Cost]) -> Cost {
    let pick = |key: fn(&Cost) -> Duration| {
        let mut all: Vec<Duration> = costs.iter().map(key).collect();
        all.sort();
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    let rss_mib = costs.iter().map(|c| c.rss_mib).fold(0.0, f64::max);
    Cost { wall: pick(|c| c.wall), cpu: pick(|c| c.cpu), rss_mib }
}

/// A client for plain HTTP.
fn bare_client() -> Result<reqwest::Client> {
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build()?)
}

/// Sends the recorded bodies, one after another, on one client.
fn bare_loop(url: &str, bodies: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = bare_client()?;
        for body in std::fs::read_to_string(bodies)?.lines() {
            let request = client.post(format!("{url}/chat/completions"));
            let answer =
                request.header("content-type", "application/json").body(body.to_owned()).send().await?;
            answer.bytes().await?;
        }
        Ok(())
    })
}

/// Returns p50 and p99 of what the controller computes for one turn: it reads the reply, checks it,
/// moves the machine, and makes the next prompt with its schema and its digest. The bytes of the next
/// request are in the rows of whole runs, where the bare loop has them ready.
fn compute(runs: &Path) -> Result<(f64, f64)> {
    let run = std::fs::read_dir(runs)?.next().ok_or("no run")??.path();
    let journal = read(&run.join(FILE_NAME))?;
    let mut times = Vec::new();
    for _ in 0..50 {
        let mut ledger = RunState::open(&journal.records[0])?;
        for record in &journal.records[1..] {
            let began = Instant::now();
            ledger.apply(record)?;
            if matches!(record.event, Entry::Replied(_)) {
                times.push(began.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    Ok((at(50), at(99)))
}

/// Prompt bytes that a prefix cache has not seen, over the bytes of distinct messages.
fn amplification(requests: &[Request]) -> f64 {
    let mut seen: Vec<Vec<String>> = Vec::new();
    let mut distinct: BTreeSet<String> = BTreeSet::new();
    let (mut uncached, mut total) = (0, 0);
    for request in requests {
        let messages: Vec<String> =
            request.json()["messages"].as_array().into_iter().flatten().map(Value::to_string).collect();
        let common =
            |earlier: &Vec<String>| earlier.iter().zip(&messages).take_while(|(a, b)| a == b).count();
        let reused = seen.iter().map(common).max().unwrap_or(0);
        uncached += messages[reused..].iter().map(String::len).sum::<usize>();
        for message in &messages {
            if distinct.insert(message.clone()) {
                total += message.len();
            }
        }
        seen.push(messages);
    }
    uncached as f64 / total as f64
}

/// A model that never comes to an end: each turn another message, a reply of about 1 KB. With a text of its own each
/// time it would be asked to weigh it, which is no turn.
fn talkative(request: &Value, turns: usize) -> String {
    let schema = &request["response_format"]["json_schema"]["schema"]["anyOf"][0]["properties"];
    let length = request["messages"].as_array().map_or(0, Vec::len);
    let role = &schema["role"]["enum"][0];
    let long = "x".repeat(600);
    let mut envelope = json!({
        "role": role, "domain": schema["domain"]["enum"][0], "task_understanding": "talk",
        "artifact": {"type": "results", "content": {}}, "needs_from_peer": [],
    });
    // A talk of two turns ends in agreement, as the quick start does.
    let ending = if turns == 2 {
        json!({"public_message": "[SOLVED] yes", "handoff_to": "", "status": "SOLVED", "final_solution": {"canonical_text": long}})
    } else {
        let message = format!("{length} messages so far {long}");
        json!({"public_message": message, "handoff_to": schema["handoff_to"]["enum"][0], "status": "WORKING"})
    };
    if let (Some(envelope), Some(ending)) = (envelope.as_object_mut(), ending.as_object()) {
        envelope.extend(ending.clone());
    }
    envelope.to_string()
}

fn write_roleset(folder: &Path, turns: usize) -> Result<PathBuf> {
    std::fs::create_dir_all(folder.join("packs"))?;
    std::fs::write(folder.join("packs/talk.md"), "You talk.")?;
    let agent = |name: &str| json!({"name": name, "domain": "talk", "pack": "talk.md"});
    // The opening is two turns and one round.
    let params = json!({"max_rounds": turns - 1, "thinking": "none"});
    let roleset =
        json!({"v": 1, "protocol": "pair", "agents": [agent("Ann"), agent("Bob")], "params": params});
    let path = folder.join(format!("talk{turns}.json"));
    std::fs::write(&path, roleset.to_string())?;
    Ok(path)
}

/// A folder on a real disk, gone afterwards.
struct BenchFolder(PathBuf);

impl BenchFolder {
    fn new() -> Result<Self> {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for BenchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
