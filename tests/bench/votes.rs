//! Votes: many at once beside a bare client that sends the same bytes, and a bank that is played again without a model.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::batch::{Slow, TURNS, bare, batch, record};
use super::{BenchFolder, Cost, Result, is_quick, ms, program, row, timed, write_roleset};

/// The reply of a voter.
pub(super) const SAMPLE: &str = "It follows from the numbers of the task.\nAnswer: 17";

/// The runs at once, and the delay of each reply in milliseconds.
const AT_ONCE: usize = 64;
const DELAY_MS: u64 = 50;

/// Prints the rows on votes.
pub(super) fn measure() -> Result<()> {
    let folder = BenchFolder::new()?;
    println!("{:52} {:>12} {:>12} {:>8}", "quantity", "consensus", "bare loop", "ratio");
    let talk = write_roleset(&folder.0, TURNS)?.display().to_string();
    let vote = write_vote(&folder.0)?.display().to_string();
    let reply = |request: &super::Request| super::talkative(&request.json(), TURNS);
    let talks = folder.0.join("talks.jsonl");
    record(&folder.0, &talk, &talks, reply)?;
    let samples = folder.0.join("samples.jsonl");
    record(&folder.0, &vote, &samples, |_| SAMPLE.to_owned())?;
    for (name, roleset, bodies, together) in [("talks", &talk, &talks, 2), ("votes", &vote, &samples, 1)] {
        let mut best: [Option<Cost>; 2] = [None; 2];
        for _ in 0..3 {
            let slow = Slow::start(DELAY_MS)?;
            let bare = bare(&slow.url, bodies, [AT_ONCE, AT_ONCE], together, &folder.0)?;
            let ours = batch(&slow.url, roleset, [AT_ONCE, AT_ONCE], &folder.0)?;
            for (best, cost) in best.iter_mut().zip([bare, ours]) {
                *best = Some(best.filter(|best| best.wall <= cost.wall).unwrap_or(cost));
            }
        }
        let [Some(bare), Some(ours)] = best else { return Err("nothing was measured".into()) };
        let turns = (AT_ONCE * TURNS) as f64;
        let rate = |cost: Cost| turns / cost.wall.as_secs_f64();
        let name = format!("{AT_ONCE} {name} at once, replies after {DELAY_MS} ms");
        row(&format!("{name}: turns/s"), rate(ours), Some(rate(bare)));
        row(&format!("{name}: CPU ms a turn"), ms(ours.cpu) / turns, Some(ms(bare.cpu) / turns));
    }
    bank(&folder.0)
}

/// A vote without a stop, of one voter.
fn write_vote(folder: &Path) -> Result<PathBuf> {
    let agent = json!({"name": "Ann", "domain": "talk", "pack": "talk.md"});
    let params = json!({"stop": "none", "samples_max": TURNS});
    let canonical = json!({"kind": "number"});
    let roleset =
        json!({"v": 1, "protocol": "vote", "agents": [agent], "canonical": canonical, "params": params});
    let path = folder.join("vote.json");
    std::fs::write(&path, roleset.to_string())?;
    Ok(path)
}

/// Draws a bank with scripts, and plays it again.
fn bank(folder: &Path) -> Result<()> {
    let items = if is_quick() { 100 } else { 10_000 };
    let line = |id| json!({"id": id, "prompt": format!("How much is {id} + 1?")}).to_string() + "\n";
    let tasks = folder.join("items.jsonl").display().to_string();
    std::fs::write(&tasks, (0..items).map(line).collect::<String>())?;
    let drawn = [
        "batch",
        "-q",
        &tasks,
        "--bank",
        "bank",
        "--words",
        "4",
        "--programs",
        "1",
        "--mock",
        "--answer",
        "17",
    ];
    timed(&[&[program()][..], &drawn, &["--roleset", "vote_number"]].concat(), folder)?;
    for (name, modes, most) in
        [("in words", "words", "4"), ("in words and by programs", "words,program", "2")]
    {
        let out = format!("played-{modes}");
        let played = [
            "batch",
            "-q",
            &tasks,
            "--from-bank",
            "bank",
            "--output",
            &out,
            "--modes",
            modes,
            "--samples-max",
            most,
        ];
        let cost = timed(&[&[program()][..], &played, &["--roleset", "vote_number"]].concat(), folder)?;
        let ended = std::fs::read_to_string(folder.join(&out).join("results-0.jsonl"))?.lines().count();
        if ended != items {
            return Err(format!("{ended} of {items} votes have ended").into());
        }
        row(&format!("{items} votes {name} from a bank: s"), cost.wall.as_secs_f64(), None);
        row(&format!("{items} votes {name} from a bank: peak resident MiB"), cost.rss_mib, None);
    }
    Ok(())
}
