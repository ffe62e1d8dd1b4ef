//! What takes minutes: ten thousand runs that are open at once, a hundred thousand short ones, and what a record costs.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use consensus::journal::{PlacedRecord, Record, SharedJournal, Writer};
use crypto::Digest;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::batch::{Slow, TURNS};
use super::{BenchFolder, Result, program, row, write_roleset};

/// Prints the rows.
pub(super) fn measure() -> Result<()> {
    let folder = BenchFolder::new()?;
    println!("{:52} {:>12} {:>12} {:>8}", "quantity", "consensus", "bare loop", "ratio");
    journal(&folder.0)?;
    short(&folder.0)?;
    open(&folder.0)
}

/// What a record costs where 64 runs share a journal, and where each syncs its own.
fn journal(folder: &Path) -> Result<()> {
    const RUNS: usize = 64;
    const EACH: usize = 200;
    let record = json!({"type": "replied", "text": "x".repeat(1500)});
    let records = (RUNS * EACH) as f64;
    let shared =
        SharedJournal::open(&folder.join("shared.jsonl"), |_: Record<Value>, _: PlacedRecord| Ok(()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let began = Instant::now();
    let work = async |run: usize| -> Result<()> {
        let mut strand = shared.writer(&run.to_string(), Digest::ZERO);
        for _ in 0..EACH {
            strand.append(record.clone())?;
            strand.sync().await?;
        }
        Ok(())
    };
    runtime.block_on(join_all((0..RUNS).map(work))).into_iter().collect::<Result<()>>()?;
    let together = began.elapsed();
    let path = folder.join("own.jsonl");
    let mut own = Writer::create(&path, "run")?;
    let began = Instant::now();
    // As many as one can wait for.
    for _ in 0..EACH * 5 {
        own.append(record.clone())?;
        own.sync()?;
    }
    let alone = began.elapsed();
    let us = |time: Duration, count: f64| time.as_secs_f64() * 1e6 / count;
    row("a record, 64 runs share a journal, µs", us(together, records), None);
    row("a record, one run that syncs each, µs", us(alone, (EACH * 5) as f64), None);
    Ok(())
}

/// A hundred thousand runs of scripted agents: how fast, and how much more memory the last ones take than the first.
fn short(folder: &Path) -> Result<()> {
    const RUNS: usize = 100_000;
    tasks(folder, RUNS, "How much is 2+2?")?;
    let began = Instant::now();
    let fixed = ["--mock", "--answer", "4", "--roleset", "solver_checker", "--runs-at-once", "64"];
    let (samples, _) = watch(start(folder, &fixed)?, folder)?;
    row("100,000 short runs, runs/s", RUNS as f64 / began.elapsed().as_secs_f64(), None);
    // Once everything is in place: the second half.
    let late = &samples[samples.len() / 2..];
    row(
        "100,000 short runs: resident MiB at the end",
        late.last().map_or(0.0, |(_, kib)| kib / 1024.0),
        None,
    );
    row(
        "100,000 short runs: more KiB a thousand runs",
        slope(late) * 1000.0 * bytes_a_run(folder, RUNS)?,
        None,
    );
    Ok(())
}

/// Ten thousand conversations of twenty turns that are open at the same time.
fn open(folder: &Path) -> Result<()> {
    const RUNS: usize = 10_000;
    tasks(folder, RUNS, "Talk.")?;
    let roleset = write_roleset(folder, TURNS)?.display().to_string();
    // So slow that all have begun before the first has ended.
    let slow = Slow::start(1000)?;
    let count = RUNS.to_string();
    let fixed = ["--no-stream", "--model", "m", "--calls-at-once", "8000", "--roleset", &roleset];
    let flags = [&fixed[..], &["--base-url", &slow.url, "--runs-at-once", &count]].concat();
    let (_, peak) = watch(start(folder, &flags)?, folder)?;
    row("10,000 open runs of 20 turns: peak resident MiB", peak / 1024.0, None);
    row("10,000 open runs of 20 turns: KiB a run", peak / RUNS as f64, None);
    Ok(())
}

fn tasks(folder: &Path, count: usize, prompt: &str) -> Result<()> {
    let lines: String = (0..count).map(|id| json!({"id": id, "prompt": prompt}).to_string() + "\n").collect();
    let _ = std::fs::remove_dir_all(folder.join("out"));
    Ok(std::fs::write(folder.join("tasks.jsonl"), lines)?)
}

fn start(folder: &Path, flags: &[&str]) -> Result<Child> {
    let mut command = Command::new(program());
    command.args(["batch", "-q", "tasks.jsonl", "--output", "out"]).args(flags);
    Ok(command.current_dir(folder).stdout(Stdio::null()).spawn()?)
}

/// Watches a batch until it has ended well: bytes of its results and its resident KiB at many moments, and the most it had.
fn watch(mut child: Child, folder: &Path) -> Result<(Vec<(f64, f64)>, f64)> {
    let status = format!("/proc/{}/status", child.id());
    let (mut samples, mut peak) = (Vec::new(), 0f64);
    loop {
        if let Some(ended) = child.try_wait()? {
            return if ended.success() {
                Ok((samples, peak))
            } else {
                Err(format!("the batch ended: {ended}").into())
            };
        }
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let kib = text
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
        let bytes = std::fs::metadata(folder.join("out/results-0.jsonl")).map_or(0, |about| about.len());
        if let Some(kib) = kib {
            samples.push((bytes as f64, kib));
            peak = peak.max(kib);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The slope of the straight line that is nearest to these points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let one: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    both / one
}

fn bytes_a_run(folder: &Path, runs: usize) -> Result<f64> {
    Ok(std::fs::metadata(folder.join("out/results-0.jsonl"))?.len() as f64 / runs as f64)
}
