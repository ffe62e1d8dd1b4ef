//! Many runs at once, beside a bare client that sends the same bytes to the same server in as many tasks.
//!
//! The server is a process of its own that answers after a while, or at once; its answers cost it next to nothing. Every run is a talk
//! of twenty turns between two agents, and its journal is on.

use std::convert::Infallible;
use std::io::BufRead as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;

use super::server::Server;
use super::{Act, BenchFolder, Cost, Result, completion, ms, program, row, talkative, timed, write_roleset};

pub(super) const TURNS: usize = 20;

/// A server in a process of its own; ended when this is dropped.
pub(super) struct Slow {
    child: Child,
    pub(super) url: String,
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Slow {
    pub(super) fn start(delay_ms: u64) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", &delay_ms.to_string()]).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let out = child.stdout.take().ok_or("no stdout")?;
        let mut url = String::new();
        std::io::BufReader::new(out).read_line(&mut url)?;
        Ok(Self { child, url: url.trim().to_owned() })
    }

    /// Connections until now.
    fn connections(&self) -> Result<usize> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let said = super::bare_client()?.get(format!("{}/connections", self.url)).send().await?;
            Ok(said.text().await?.parse()?)
        })
    }
}

/// Prints the rows on batches.
pub(super) fn measure() -> Result<()> {
    let folder = BenchFolder::new()?;
    let roleset = write_roleset(&folder.0, TURNS)?.display().to_string();
    let bodies = folder.0.join("bodies.jsonl");
    record(&folder.0, &roleset, &bodies, |request| talkative(&request.json(), TURNS))?;
    println!("\n{TURNS} turns a run, journal on\n");
    println!("{:52} {:>12} {:>12} {:>8}", "quantity", "consensus", "bare loop", "ratio");
    // Enough runs that the start and the end of the program are a small part.
    for (delay, at_once, runs) in [(50, 64, 256), (50, 256, 1024), (50, 512, 2048), (0, 64, 1024)] {
        let name = format!("{at_once} at once, replies after {delay} ms");
        let (tmpfs, disk) = (Path::new("/dev/shm"), folder.0.as_path());
        // Pairs in turn: the machine is not the same from one minute to the next.
        let mut best: [Option<Cost>; 3] = [None; 3];
        let mut connections = 0;
        for _ in 0..3 {
            let slow = Slow::start(delay)?;
            let bare = bare(&slow.url, &bodies, [runs, at_once], 2, &folder.0)?;
            let before = slow.connections()?;
            let ours = batch(&slow.url, &roleset, [runs, at_once], disk)?;
            connections = slow.connections()? - before - 1;
            let memory =
                if tmpfs.is_dir() { Some(batch(&slow.url, &roleset, [runs, at_once], tmpfs)?) } else { None };
            for (best, cost) in best.iter_mut().zip([Some(bare), Some(ours), memory]) {
                let is_better = |cost: &Cost| best.is_none_or(|best| cost.wall < best.wall);
                *best = cost.filter(is_better).or(*best);
            }
        }
        let [Some(bare), Some(ours), memory] = best else { return Err("nothing was measured".into()) };
        let turns = (runs * TURNS) as f64;
        let rate = |cost: Cost| turns / cost.wall.as_secs_f64();
        row(&format!("{name}: turns/s"), rate(ours), Some(rate(bare)));
        if let Some(memory) = memory {
            row(&format!("{name}, journal in memory: turns/s"), rate(memory), Some(rate(bare)));
        }
        row(&format!("{name}: CPU ms a turn"), ms(ours.cpu) / turns, Some(ms(bare.cpu) / turns));
        row(&format!("{name}: peak resident MiB"), ours.rss_mib, Some(bare.rss_mib));
        row(&format!("{name}: TCP connections"), connections as f64, None);
    }
    Ok(())
}

/// Records what one run sends to a server that answers so.
pub(super) fn record(
    folder: &Path,
    roleset: &str,
    bodies: &Path,
    reply: impl Fn(&super::Request) -> String + Send + Sync + 'static,
) -> Result<()> {
    let server = Server::start(move |request| vec![Act::Send(completion(&reply(request)))]);
    let fixed = ["run", "-q", "--no-stream", "--model", "m", "--seed", "1", "--prompt", "Talk."];
    timed(
        &[&[program()][..], &fixed, &["--roleset", roleset, "--base-url", &server.url()]].concat(),
        folder,
    )?;
    let lines: Vec<String> = server.chats().into_iter().map(|request| request.body).collect();
    if lines.len() != TURNS {
        return Err(format!("{} calls in a run of {TURNS} turns", lines.len()).into());
    }
    Ok(std::fs::write(bodies, lines.join("\n"))?)
}

pub(super) fn batch(url: &str, roleset: &str, [runs, at_once]: [usize; 2], place: &Path) -> Result<Cost> {
    let out = place.join(format!("bench-batch-{}", std::process::id()));
    let tasks = place.join(format!("bench-tasks-{}.jsonl", std::process::id()));
    let line = |id| json!({"id": id, "prompt": "Talk."}).to_string() + "\n";
    std::fs::write(&tasks, (0..runs).map(line).collect::<String>())?;
    let count = at_once.to_string();
    let (tasks_name, out_name) = (tasks.display().to_string(), out.display().to_string());
    let fixed = ["batch", "-q", "--no-stream", "--model", "m", &tasks_name, "--output", &out_name];
    let places = ["--roleset", roleset, "--base-url", url, "--runs-at-once", &count];
    let cost = timed(&[&[program()][..], &fixed, &places].concat(), place);
    let ended = std::fs::read_to_string(out.join("results-0.jsonl")).unwrap_or_default().lines().count();
    let _ = std::fs::remove_dir_all(&out);
    let _ = std::fs::remove_file(&tasks);
    if ended != runs {
        return Err(format!("{ended} of {runs} runs have ended").into());
    }
    cost
}

pub(super) fn bare(
    url: &str,
    bodies: &Path,
    [runs, at_once]: [usize; 2],
    together: usize,
    folder: &Path,
) -> Result<Cost> {
    let own = std::env::current_exe()?.display().to_string();
    let [runs, at_once, together] = [runs, at_once, together].map(|count| count.to_string());
    timed(&[&own, "bare-batch", url, &bodies.display().to_string(), &runs, &at_once, &together], folder)
}

/// Sends the recorded bodies in so many tasks, so many at once, on every core: each thread has its share of the tasks, and a client.
pub(super) fn bare_batch(
    url: &str,
    bodies: &Path,
    [runs, at_once]: [usize; 2],
    together: usize,
) -> Result<()> {
    let threads = std::thread::available_parallelism()?.get();
    let share = |whole: usize, thread: usize| whole * (thread + 1) / threads - whole * thread / threads;
    std::thread::scope(|scope| {
        let started = (0..threads).map(|thread| {
            let counts = [share(runs, thread), share(at_once, thread)];
            scope.spawn(move || bare_talks(url, bodies, counts, together).map_err(|why| why.to_string()))
        });
        let started: Vec<_> = started.collect();
        started.into_iter().try_for_each(|thread| Ok(thread.join().map_err(|_| "a thread panicked")??))
    })
}

/// Sends the recorded bodies in so many tasks on one client, so many at once: the first ones of a task together, as blind drafts are,
/// and then one after another.
fn bare_talks(url: &str, bodies: &Path, [runs, at_once]: [usize; 2], together: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = super::bare_client()?;
        let bodies: Vec<Bytes> =
            std::fs::read_to_string(bodies)?.lines().map(|line| Bytes::from(line.to_owned())).collect();
        let talk = async || -> Result<()> {
            let send = async |body: &Bytes| -> Result<()> {
                let request = client.post(format!("{url}/chat/completions"));
                let request = request.header("content-type", "application/json").body(body.clone());
                request.send().await?.bytes().await?;
                Ok(())
            };
            futures_util::future::try_join_all(bodies[..together].iter().map(send)).await?;
            for body in &bodies[together..] {
                send(body).await?;
            }
            Ok(())
        };
        let mut talks = stream::iter((0..runs).map(|_| talk())).buffer_unordered(at_once);
        while let Some(talk) = talks.next().await {
            talk?;
        }
        Ok(())
    })
}

/// Serves until it is killed; says where first.
pub(super) fn serve(delay: Duration) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/v1", listener.local_addr()?);
        let connections = Arc::new(AtomicUsize::new(0));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            connections.fetch_add(1, Ordering::Relaxed);
            let connections = Arc::clone(&connections);
            let answer = service_fn(move |request| answer(request, delay, Arc::clone(&connections)));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    })
}

async fn answer(
    request: Request<Incoming>,
    delay: Duration,
    connections: Arc<AtomicUsize>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path().ends_with("/connections") {
        let count = connections.load(Ordering::Relaxed).to_string();
        return Ok(Response::new(Full::new(count.into())));
    }
    // What the server says about itself, it says at once, as servers do.
    let delay = if request.method() == http::Method::GET { Duration::ZERO } else { delay };
    let began = Instant::now();
    let body =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let is_ann = body.windows(11).take(20_000).any(|part| part == b"You are Ann");
    let (own, other) = if is_ann { ("Ann", "Bob") } else { ("Bob", "Ann") };
    let message = format!("{} bytes so far {}", body.len(), "x".repeat(600));
    let envelope = format!(
        "{{\"role\":\"{own}\",\"domain\":\"talk\",\"task_understanding\":\"talk\",\"artifact\":{{\"type\":\"results\",\"content\":{{}}}},\
         \"needs_from_peer\":[],\"public_message\":\"{message}\",\"handoff_to\":\"{other}\",\"status\":\"WORKING\"}}"
    );
    let is_vote = body.windows(9).take(20_000).any(|part| part == b"`Answer:`");
    let envelope = if is_vote { super::votes::SAMPLE.to_owned() } else { envelope };
    let text = format!(
        "{{\"model\":\"m\",\"choices\":[{{\"index\":0,\"finish_reason\":\"stop\",\"message\":{{\"role\":\"assistant\",\"content\":{}}}}}],\
         \"usage\":{{\"prompt_tokens\":{},\"completion_tokens\":200}}}}",
        json!(envelope),
        body.len() / 4
    );
    tokio::time::sleep_until((began + delay).into()).await;
    let mut response = Response::new(Full::new(text.into()));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    Ok(response)
}
