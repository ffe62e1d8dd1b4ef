//! The results of one variant as an evaluation log that `inspect_ai` can show and read, in version 2 of its format.
//!
//! The input is the rows of runs of one roleset on one model in one arm, the prompts from their journals, and the tasks if they are at
//! hand. The output is one JSON document with a sample for each run; each seed becomes an epoch. The log has the prompt, the answer and its
//! score. The words of agents to each other are in the transcript, which a sample's metadata can hold.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::rows::{ResultRow, UsageRow};
use super::share::{ByTask, mark};
use crypto::Digest;
use protocol::OutcomeKind;
use statistics::standard_error;

/// The parts of a run that are in its journal but not in its row.
#[derive(Clone, Debug, Default)]
pub struct PromptAndTimes {
    /// The prompt of its task.
    pub prompt: String,
    /// The time of its first record.
    pub started_at: String,
    /// The time of its last record.
    pub ended_at: String,
}

/// The samples of one variant.
#[derive(Debug, Default)]
pub struct InspectLog {
    variants: BTreeSet<[String; 3]>,
    runs: Vec<(ResultRow, PromptAndTimes)>,
}

impl InspectLog {
    /// Adds a run.
    pub fn add(&mut self, row: ResultRow, journaled: PromptAndTimes) {
        self.variants.insert([&row.roleset, &row.model, &row.arm].map(Clone::clone));
        self.runs.push((row, journaled));
    }

    /// Returns the roleset, the model and the arm of each variant that was added. [`Self::finish`] writes a log of one variant only.
    pub fn variants(&self) -> &BTreeSet<[String; 3]> {
        &self.variants
    }

    /// Returns whether `answers` has the right answer of at least one task of the log.
    pub fn has_answer_in(&self, answers: &BTreeMap<String, String>) -> bool {
        self.runs.iter().any(|(row, _)| answers.contains_key(&row.task))
    }

    /// Returns the finished log. `program` is the name and the version of the program, and `data` is the name of the tasks. `answers` has
    /// the right answer of a task by its id, and `transcripts` has the transcript of a run by its id. `is_whole` says whether every run of
    /// the batch has ended.
    pub fn finish(
        self,
        program: &str,
        data: &str,
        answers: &BTreeMap<String, String>,
        transcripts: &BTreeMap<String, String>,
        is_whole: bool,
    ) -> Value {
        let [roleset, model, arm] = self.variants.into_iter().next().unwrap_or_default();
        let seeds: BTreeSet<u64> = self.runs.iter().map(|(row, _)| row.seed).collect();
        let models: BTreeSet<String> = self.runs.iter().flat_map(|(row, _)| row.models()).collect();
        let models = models.into_iter().collect::<Vec<_>>().join("+");
        let task = if arm.is_empty() { roleset.clone() } else { arm.clone() };
        let id = Digest::new(json!([roleset, model, arm]).to_string().as_bytes()).to_string();
        let tasks: BTreeSet<&str> = self.runs.iter().map(|(row, _)| row.task.as_str()).collect();
        let first =
            self.runs.iter().map(|(_, journaled)| journaled.started_at.as_str()).min().unwrap_or_default();
        let last =
            self.runs.iter().map(|(_, journaled)| journaled.ended_at.as_str()).max().unwrap_or_default();
        let usages = self.runs.iter().map(|(row, _)| &row.usage);
        let mut samples = Vec::new();
        for (row, journaled) in &self.runs {
            let epoch = seeds.iter().position(|seed| *seed == row.seed).unwrap_or_default() + 1;
            let target = answers.get(&row.task).map_or("", String::as_str);
            samples.push(sample(row, journaled, epoch, target, &models, transcripts.get(&row.run)));
        }
        json!({
            "version": 2,
            "status": if is_whole { "success" } else { "cancelled" },
            "eval": {
                "eval_id": &id[..22],
                "run_id": &id[22..44],
                "created": first,
                "task": task,
                "task_id": &id[..22],
                "solver": roleset,
                "model": models,
                "dataset": {"name": data, "samples": tasks.len(), "sample_ids": tasks},
                "config": {"epochs": seeds.len(), "epochs_reducer": ["mean"]},
                "packages": {"consensus": program},
                "metadata": {"roleset": roleset, "model": model, "arm": arm},
                "scorers": [{"name": SCORER}],
            },
            "plan": {"name": "plan", "steps": [{"solver": roleset}]},
            "results": {
                "total_samples": self.runs.len(),
                "completed_samples": self.runs.iter().filter(|(row, _)| row.outcome.is_final()).count(),
                "scores": [score(&self.runs)],
            },
            "stats": {"started_at": first, "completed_at": last, "model_usage": {(&models): usage(usages)}},
            "samples": samples,
        })
    }
}

/// The name of the scorer and of its score.
const SCORER: &str = "right";

/// Returns the share of right answers, with its standard error over tasks.
fn score(runs: &[(ResultRow, PromptAndTimes)]) -> Value {
    let mut by_task = ByTask::default();
    for (row, _) in runs {
        if let Some(is_right) = row.right {
            by_task.add(mark(&row.task), is_right);
        }
    }
    let share = by_task.share();
    let means: Vec<f64> = by_task.means().map(|(_, mean)| mean).collect();
    let (mean, error) = (share.share.unwrap_or_default(), standard_error(&means).unwrap_or_default());
    json!({
        "name": SCORER,
        "scorer": SCORER,
        "reducer": "mean",
        "scored_samples": share.of,
        "unscored_samples": runs.len() as u64 - share.of,
        "metrics": {
            "accuracy": {"name": "accuracy", "value": mean},
            "stderr": {"name": "stderr", "value": error},
        },
    })
}

/// Returns the sum of usages. Input tokens are those tokens of prompts that the server did not take from its cache.
fn usage<'a>(usages: impl Iterator<Item = &'a UsageRow>) -> Value {
    let (mut prompt, mut cached, mut completion) = (0_u64, 0_u64, 0_u64);
    for one in usages {
        prompt = prompt.saturating_add(one.prompt);
        cached = cached.saturating_add(one.cached);
        completion = completion.saturating_add(one.completion);
    }
    json!({
        "input_tokens": prompt.saturating_sub(cached),
        "input_tokens_cache_read": cached,
        "output_tokens": completion,
        "total_tokens": prompt.saturating_add(completion),
    })
}

fn sample(
    row: &ResultRow,
    journaled: &PromptAndTimes,
    epoch: usize,
    target: &str,
    models: &str,
    transcript: Option<&String>,
) -> Value {
    let text = row.text.as_deref().unwrap_or_default();
    let usage = usage(std::iter::once(&row.usage));
    let mut metadata = Map::new();
    for (name, value) in json!(row.flat()).as_object().into_iter().flatten() {
        if !value.is_null() && !["text", "task", "meta", "folder"].contains(&name.as_str()) {
            metadata.insert(name.clone(), value.clone());
        }
    }
    metadata.extend(row.meta.iter().map(|(name, value)| (name.clone(), json!(value))));
    if let Some(transcript) = transcript {
        metadata.insert("transcript".to_owned(), json!(transcript));
    }
    let grade = row.right.map(|is_right| if is_right { "C" } else { "I" });
    let scores = grade.map(|value| json!({SCORER: {"value": value, "answer": row.text}}));
    let has_failed = !row.outcome.is_final() && row.outcome != OutcomeKind::Budget;
    let error = if has_failed {
        json!({"message": row.reason, "traceback": "", "traceback_ansi": ""})
    } else {
        Value::Null
    };
    let message = json!({"role": "assistant", "content": text, "source": "generate", "model": models});
    let choice = json!({"message": message, "stop_reason": "stop"});
    let choices = row.text.iter().map(|_| choice.clone()).collect::<Vec<_>>();
    let mut messages = vec![json!({"role": "user", "content": journaled.prompt, "source": "input"})];
    messages.extend(row.text.iter().map(|_| message.clone()));
    json!({
        "id": row.task,
        "epoch": epoch,
        "input": journaled.prompt,
        "target": target,
        "messages": messages,
        "output": {"model": models, "choices": choices, "completion": text, "usage": usage},
        "scores": scores,
        "metadata": metadata,
        "model_usage": {models: usage},
        "started_at": journaled.started_at,
        "completed_at": journaled.ended_at,
        "total_time": row.timing.total_ms as f64 / 1000.0,
        "uuid": row.run,
        "error": error,
    })
}
