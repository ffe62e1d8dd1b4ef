//! The same conversations as others hold them in Python: two agents, 20 turns, all that was said in each request.
//!
//! `tests/bench/batch.sh` makes the environment with their packages and names its Python in `RIVALS_PYTHON`.

use std::path::Path;

use super::batch::{Slow, TURNS, batch};
use super::{BenchFolder, Cost, Result, ms, timed, write_roleset};

/// Conversations at once.
const RUNS: usize = 64;

/// How long the server takes for a reply, in milliseconds.
const DELAY_MS: u64 = 50;

/// Prints how they compare.
pub(super) fn measure() -> Result<()> {
    let python =
        std::env::var("RIVALS_PYTHON").map_err(|_| "RIVALS_PYTHON is not set; run tests/bench/batch.sh")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/rivals.py").display().to_string();
    let folder = BenchFolder::new()?;
    let roleset = write_roleset(&folder.0, TURNS)?.display().to_string();
    let slow = Slow::start(DELAY_MS)?;
    let turns = (RUNS * TURNS) as f64;
    println!("\n{RUNS} conversations of {TURNS} turns at once, replies after {DELAY_MS} ms\n");
    println!("{:40} {:>10} {:>14} {:>12} {:>8}", "", "turns/s", "CPU ms a turn", "peak MiB", "ours is");
    let ours = batch(&slow.url, &roleset, [RUNS, RUNS], &folder.0)?;
    let print = |name: &str, cost: Cost| {
        let (rate, cpu) = (turns / cost.wall.as_secs_f64(), ms(cost.cpu) / turns);
        let faster = cost.wall.as_secs_f64() / ours.wall.as_secs_f64();
        println!("{name:40} {rate:>10.0} {cpu:>14.2} {:>12.0} {faster:>7.1}×", cost.rss_mib);
    };
    print("consensus batch, journal on disk", ours);
    for (which, name) in [
        ("openai", "openai"),
        ("langgraph", "LangGraph, nothing kept"),
        ("langgraph-sqlite", "LangGraph, SQLite checkpointer"),
        ("autogen", "AutoGen AgentChat"),
    ] {
        let place = folder.0.display().to_string();
        let (runs, each) = (RUNS.to_string(), TURNS.to_string());
        let cost = timed(&[&python, &script, which, &slow.url, &runs, &each, &place], &folder.0)?;
        let done = std::fs::read_to_string(folder.0.join("turns")).unwrap_or_default();
        if done.trim() != (RUNS * TURNS).to_string() {
            return Err(format!("{name} made `{done}` turns").into());
        }
        std::fs::remove_file(folder.0.join("turns"))?;
        print(name, cost);
    }
    Ok(())
}
