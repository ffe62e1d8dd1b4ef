//! The report of an evaluation: many items with several arms that count the samples of one bank.

use serde_json::json;

use super::{BenchFolder, Result, is_quick, program, row, timed};

/// The ways of answering.
const ARMS: [&str; 6] = ["single", "sc@3", "sc@5", "vote", "vote,stop=sure", "vote,samples-max=4"];

/// Most samples are 4, and some are another number, by their place, so that every item flips between arms.
const SCRIPT: &str = r#"{"draft": 1, "reply": "It is odd.\nAnswer: 5"}
{"draft": 2, "reply": "It is odd.\nAnswer: 5"}
{"draft": 7, "reply": "It is odd.\nAnswer: 6"}
{"reply": "It is even.\nAnswer: 4"}
"#;

/// Prints the rows on evaluations.
pub(super) fn measure() -> Result<()> {
    let folder = BenchFolder::new()?;
    let items = if is_quick() { 100 } else { 10_000 };
    let line = |id: usize| {
        let answer = if id.is_multiple_of(5) { 5 } else { 4 };
        json!({"id": id, "prompt": format!("How much is {id} - {id} + {answer}?"), "answer": answer, "canonical": "number"}).to_string()
            + "\n"
    };
    std::fs::write(folder.0.join("items.jsonl"), (0..items).map(line).collect::<String>())?;
    std::fs::write(folder.0.join("script.jsonl"), SCRIPT)?;
    let mut command =
        vec![program(), "eval", "-q", "items.jsonl", "--out", "study", "--mock-script", "script.jsonl"];
    command.extend(ARMS.iter().flat_map(|arm| ["--arm", arm]));
    println!("{:52} {:>12} {:>12} {:>8}", "quantity", "consensus", "bare loop", "ratio");
    let drawn = timed(&command, &folder.0)?;
    row(&format!("{items} items, {} arms, drawn by scripts: s", ARMS.len()), drawn.wall.as_secs_f64(), None);
    let report = timed(&[program(), "eval", "report", "study"], &folder.0)?;
    let rows = std::fs::read_to_string(folder.0.join("study/items.jsonl"))?.lines().count();
    if rows != items * ARMS.len() {
        return Err(format!("{rows} rows of {items} items").into());
    }
    row(&format!("{items} items, {} arms, the report: s", ARMS.len()), report.wall.as_secs_f64(), None);
    row(&format!("{items} items, {} arms, the report: peak resident MiB", ARMS.len()), report.rss_mib, None);
    let calibrate = timed(&[program(), "calibrate", "study", "--only", "arm=vote"], &folder.0)?;
    row(&format!("a calibration of {items} votes: s"), calibrate.wall.as_secs_f64(), None);
    row(&format!("a calibration of {items} votes: peak resident MiB"), calibrate.rss_mib, None);
    Ok(())
}
