//! A server of this program under load, beside the same calls of a bare client.
//!
//! The model server answers after 50 ms. Each of 256 clients asks for a vote again and again, and a vote is three calls at once. The bare
//! client makes the same three calls. The other rows are on streams that wait, and on clients that do not read what they asked for.

use std::io::{BufRead as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::{join_all, try_join_all};
use serde_json::json;

use super::batch::Slow;
use super::{BenchFolder, Result, bare_client, is_quick, ms, program, row};

/// The number of clients.
const CLIENTS: usize = 256;

/// The number of calls of a vote that is settled at once.
const CALLS: usize = 3;

/// The number of streams that wait.
const STREAMS: usize = 1000;

/// The number of clients that read nothing, and the number of answers that each has asked for.
const STALLED: usize = 64;
const ANSWERS: usize = 500;

/// A server of this program; killed when this is dropped.
struct BenchServer {
    child: Child,
    url: String,
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl BenchServer {
    fn start(models: &Slow, out: &Path, at_once: usize) -> Result<Self> {
        let at_once = at_once.to_string();
        let mut command = Command::new(program());
        command.args(["serve", "--quiet", "--listen", "127.0.0.1:0", "--model", "m", "--queue", "4096"]);
        command.args(["--roleset", "vote_number", "--runs-at-once", &at_once, "--calls-at-once", "4096"]);
        command.args(["--base-url", &models.url, "--output"]).arg(out);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut url = String::new();
        std::io::BufReader::new(stdout).read_line(&mut url)?;
        Ok(Self { child, url: url.trim().to_owned() })
    }

    /// Returns the resident memory, in MiB.
    fn resident(&self) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib / 1024.0)
    }
}

/// The times of all answers.
struct Load {
    sorted: Vec<Duration>,
    a_second: f64,
}

impl Load {
    /// Returns the time within which so many of a hundred answers came, in milliseconds.
    fn percentile(&self, percent: usize) -> f64 {
        let at = (self.sorted.len() * percent / 100).min(self.sorted.len().saturating_sub(1));
        self.sorted.get(at).copied().map_or(f64::NAN, ms)
    }
}

/// Prints the rows on a server.
pub(super) fn measure() -> Result<()> {
    let time = Duration::from_secs(if is_quick() { 2 } else { 60 });
    let folder = BenchFolder::new()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!(
        "\n{CLIENTS} clients for {} s, replies after 50 ms, {CALLS} calls a vote, journal on\n",
        time.as_secs()
    );
    println!("{:52} {:>12} {:>12} {:>8}", "quantity", "consensus", "bare calls", "ratio");
    let models = Slow::start(50)?;
    let bare =
        runtime.block_on(load(&models.url, &json!({"messages": [{"content": "`Answer:`"}]}), CALLS, time))?;
    let served = BenchServer::start(&models, &folder.0.join("served"), CLIENTS)?;
    let ask =
        json!({"model": "vote_number", "messages": [{"role": "user", "content": "How much is 17 * 23?"}]});
    let begun = runtime.block_on(load(&served.url, &ask, 1, time / 3))?;
    let early = served.resident()?;
    let ours = runtime.block_on(load(&served.url, &ask, 1, time))?;
    row("votes/s", ours.a_second, Some(bare.a_second));
    row("time of a vote, ms p50", ours.percentile(50), Some(bare.percentile(50)));
    row("time of a vote, ms p99", ours.percentile(99), Some(bare.percentile(99)));
    let votes = begun.sorted.len() + ours.sorted.len();
    row(&format!("resident MiB after {} votes", begun.sorted.len()), early, None);
    row(&format!("resident MiB after {votes} votes"), served.resident()?, None);

    let place = served.url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let stalled: Vec<TcpStream> = (0..STALLED).map(|_| stall(&place)).collect::<Result<_>>()?;
    let beside = runtime.block_on(load(&served.url, &ask, 1, time / 3))?;
    row(
        &format!("beside {STALLED} clients that do not read, ms p50"),
        beside.percentile(50),
        Some(bare.percentile(50)),
    );
    row(&format!("beside {STALLED} clients that do not read, MiB"), served.resident()?, None);
    drop(stalled);

    // The models answer long after the streams are counted.
    let models = Slow::start(600_000)?;
    for (at_once, what) in [(16, "wait for their turn"), (STREAMS, "have calls in the air")] {
        let out = folder.0.join(format!("idle-{at_once}"));
        let served = BenchServer::start(&models, &out, at_once)?;
        let open = runtime.block_on(streams(&served))?;
        // Each run that is under way has its first record and that of a call.
        while std::fs::read_to_string(out.join("journal-0.jsonl"))?.lines().count() < 2 * at_once {
            std::thread::yield_now();
        }
        row(&format!("streams of {STREAMS} that {what}"), open.len() as f64, None);
        row("resident MiB with them", served.resident()?, None);
    }
    Ok(())
}

/// Lets all clients ask again and again, each for so many answers at once.
async fn load(url: &str, ask: &serde_json::Value, together: usize, time: Duration) -> Result<Load> {
    let (client, body) = (bare_client()?, ask.to_string());
    let began = Instant::now();
    let one = async || -> Result<()> {
        let request = client.post(format!("{url}/chat/completions"));
        let request = request.header("content-type", "application/json").body(body.clone());
        let answer = request.send().await?.error_for_status()?;
        answer.bytes().await?;
        Ok(())
    };
    let client = async || -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        while began.elapsed() < time {
            let asked = Instant::now();
            try_join_all((0..together).map(|_| one())).await?;
            times.push(asked.elapsed());
        }
        Ok(times)
    };
    let times = try_join_all((0..CLIENTS).map(|_| client())).await?;
    let mut sorted: Vec<Duration> = times.into_iter().flatten().collect();
    sorted.sort();
    Ok(Load { a_second: sorted.len() as f64 / began.elapsed().as_secs_f64(), sorted })
}

/// Returns a client that asks for many long answers on one connection, and reads none.
fn stall(place: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(place)?;
    stream.set_write_timeout(Some(Duration::from_secs(1)))?;
    let request = format!("GET /openapi.json HTTP/1.1\r\nHost: {place}\r\n\r\n");
    // The server stops reading once its answers are not read.
    let _ = stream.write_all(request.repeat(ANSWERS).as_bytes());
    Ok(stream)
}

/// Opens streams whose runs take long. Returns those that have begun.
async fn streams(served: &BenchServer) -> Result<Vec<impl Sized>> {
    let client = bare_client()?;
    let ask = json!({"model": "vote_number", "stream": true, "messages": [{"role": "user", "content": "How much is 17 * 23?"}]});
    let open = async |_: usize| -> Result<_> {
        let request = client
            .post(format!("{}/chat/completions", served.url))
            .header("content-type", "application/json");
        let answer = request.body(ask.to_string()).send().await?.error_for_status()?;
        let mut events = answer.bytes_stream();
        let head = events.next().await.ok_or("the stream ended")??;
        Ok((head, events))
    };
    let open = join_all((0..STREAMS).map(open)).await;
    Ok(open.into_iter().filter_map(std::result::Result::ok).collect())
}
