//! The results of one column as an evaluation log of `inspect_ai`, version 2 of its format, for its viewer and its readers.
//!
//! The input is the rows of runs of one roleset on one model in one arm, the prompts from their journals, and the tasks if they are at hand.
//! The output is one JSON document with a sample for each run. A seed is an epoch. The log has the prompt, the answer and its score; what
//! agents said to each other is in the transcript, which can be put into a sample's metadata.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::rows::{Told, UsageTold};
use super::share::{ByTask, mark};
use crypto::Digest;
use protocol::OutcomeKind;
use statistics::standard_error;

/// The parts of a run that its row lacks and its journal has.
#[derive(Clone, Debug, Default)]
pub struct PromptAndTimes {
    /// The prompt of its task.
    pub prompt: String,
    /// The time of its first record.
    pub started_at: String,
    /// The time of its last record.
    pub ended_at: String,
}

/// The samples of one column.
#[derive(Debug, Default)]
pub struct InspectLog {
    columns: BTreeSet<[String; 3]>,
    runs: Vec<(Told, PromptAndTimes)>,
}

impl InspectLog {
    /// Adds a run.
    pub fn add(&mut self, told: Told, times: PromptAndTimes) {
        self.columns.insert([&told.roleset, &told.model, &told.arm].map(Clone::clone));
        self.runs.push((told, times));
    }

    /// Returns the columns of the runs: roleset, model and arm. A log is of one.
    pub fn columns(&self) -> &BTreeSet<[String; 3]> {
        &self.columns
    }

    /// Returns whether the right answer of a task of the log is among these.
    pub fn knows_answers(&self, answers: &BTreeMap<String, String>) -> bool {
        self.runs.iter().any(|(told, _)| answers.contains_key(&told.task))
    }

    /// Returns the log. `program` is the name and the version of the program, and `data` is the name of the tasks. `answers` has the right
    /// answer of a task by its id, and `transcripts` the transcript of a run. `is_whole` says whether every run of the batch has ended.
    pub fn finish(
        self,
        (program, data): (&str, &str),
        answers: &BTreeMap<String, String>,
        transcripts: &BTreeMap<String, String>,
        is_whole: bool,
    ) -> Value {
        let [roleset, model, arm] = self.columns.into_iter().next().unwrap_or_default();
        let seeds: BTreeSet<u64> = self.runs.iter().map(|(told, _)| told.seed).collect();
        let epoch = |told: &Told| seeds.iter().position(|seed| *seed == told.seed).unwrap_or_default() + 1;
        let models: BTreeSet<String> = self.runs.iter().flat_map(|(told, _)| told.models()).collect();
        let models = models.into_iter().collect::<Vec<_>>().join("+");
        let task = if arm.is_empty() { roleset.clone() } else { arm.clone() };
        let id = Digest::new(json!([roleset, model, arm]).to_string().as_bytes()).to_string();
        let tasks: BTreeSet<&str> = self.runs.iter().map(|(told, _)| told.task.as_str()).collect();
        let first = self.runs.iter().map(|(_, times)| times.started_at.as_str()).min().unwrap_or_default();
        let last = self.runs.iter().map(|(_, times)| times.ended_at.as_str()).max().unwrap_or_default();
        let all = self.runs.iter().map(|(told, _)| &told.usage);
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
                "completed_samples": self.runs.iter().filter(|(told, _)| told.outcome.is_final()).count(),
                "scores": [score(&self.runs)],
            },
            "stats": {"started_at": first, "completed_at": last, "model_usage": {(&models): usage(all)}},
            "samples": self.runs.iter().map(|(told, times)| {
                let target = answers.get(&told.task).map_or("", String::as_str);
                sample(told, times, (epoch(told), target), &models, transcripts.get(&told.run))
            }).collect::<Vec<_>>(),
        })
    }
}

/// The name of the scorer and of its score.
const SCORER: &str = "right";

/// Returns the share of right answers, with its standard error over tasks.
fn score(runs: &[(Told, PromptAndTimes)]) -> Value {
    let mut by_task = ByTask::default();
    for (told, _) in runs {
        if let Some(is_right) = told.right {
            by_task.add(mark(&told.task), is_right);
        }
    }
    let share = by_task.share();
    let means: Vec<f64> = by_task.means().map(|(_, mean)| mean).collect();
    let (mean, error) = (share.share.unwrap_or_default(), standard_error(&means).unwrap_or_default());
    let metric = |name: &str, value: f64| json!({"name": name, "value": value});
    json!({
        "name": SCORER,
        "scorer": SCORER,
        "reducer": "mean",
        "scored_samples": share.of,
        "unscored_samples": runs.len() as u64 - share.of,
        "metrics": {"accuracy": metric("accuracy", mean), "stderr": metric("stderr", error)},
    })
}

/// Returns the sum of usages. Of the prompts, those tokens are input that the server had not computed before.
fn usage<'a>(usages: impl Iterator<Item = &'a UsageTold>) -> Value {
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
    told: &Told,
    times: &PromptAndTimes,
    (epoch, target): (usize, &str),
    models: &str,
    transcript: Option<&String>,
) -> Value {
    let text = told.text.as_deref().unwrap_or_default();
    let usage = usage(std::iter::once(&told.usage));
    let mut metadata = Map::new();
    for (name, value) in json!(told.flat()).as_object().into_iter().flatten() {
        if !value.is_null() && !["text", "task", "meta", "folder"].contains(&name.as_str()) {
            metadata.insert(name.clone(), value.clone());
        }
    }
    metadata.extend(told.meta.iter().map(|(name, value)| (name.clone(), json!(value))));
    if let Some(transcript) = transcript {
        metadata.insert("transcript".to_owned(), json!(transcript));
    }
    let grade = told.right.map(|is_right| if is_right { "C" } else { "I" });
    let scores = grade.map(|value| json!({SCORER: {"value": value, "answer": told.text}}));
    let failed = !told.outcome.is_final() && told.outcome != OutcomeKind::Budget;
    let error = failed.then(|| json!({"message": told.reason, "traceback": "", "traceback_ansi": ""}));
    let message = json!({"role": "assistant", "content": text, "source": "generate", "model": models});
    let choice = json!({"message": message, "stop_reason": "stop"});
    let choices = told.text.iter().map(|_| choice.clone()).collect::<Vec<_>>();
    let mut messages = vec![json!({"role": "user", "content": times.prompt, "source": "input"})];
    messages.extend(told.text.iter().map(|_| message.clone()));
    json!({
        "id": told.task,
        "epoch": epoch,
        "input": times.prompt,
        "target": target,
        "messages": messages,
        "output": {"model": models, "choices": choices, "completion": text, "usage": usage},
        "scores": scores,
        "metadata": metadata,
        "model_usage": {models: usage},
        "started_at": times.started_at,
        "completed_at": times.ended_at,
        "total_time": told.timing.total_ms as f64 / 1000.0,
        "uuid": told.run,
        "error": error,
    })
}
