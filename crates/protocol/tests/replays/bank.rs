//! Recorded samples of one set of tasks, and what the plain majority of some of them is worth.
//!
//! The input is a file of `tests/experiments/banks`, as `votes.py keep` writes it. The output is samples in drawn orders, and the majority's
//! curve: how often it is right, by the tokens that it takes. No machine is known here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A sample in words. A bank writes it as a list of these three.
#[derive(Debug, Deserialize)]
pub(crate) struct BankSample {
    /// The answer in the layout of the first sample that found it; `None` for a sample that is no vote.
    pub(crate) answer: Option<String>,
    pub(crate) is_right: bool,
    /// The tokens of its replies.
    pub(crate) reply_tokens: u64,
}

/// A task without its question.
#[derive(Debug, Deserialize)]
struct BankTask {
    words: Vec<BankSample>,
}

/// The samples of one set of tasks.
#[derive(Debug)]
pub(crate) struct SampleBank {
    tasks: Vec<BankTask>,
    /// The tokens of the prompt of one sample, as measured for these tasks.
    pub(crate) prompt_tokens: u64,
}

/// The mean over all tasks and orders of what the majority of so many samples is worth and takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MajorityPoint {
    pub(crate) samples: usize,
    /// The share of tasks that are right. A tie counts by the share of its answers that are right.
    pub(crate) right: f64,
    /// The tokens of prompts and replies for a task.
    pub(crate) tokens: f64,
}

/// Returns a path of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

impl SampleBank {
    /// Reads the bank with this name.
    pub(crate) fn read(name: &str, prompt_tokens: u64) -> Self {
        let path = repository(&format!("tests/experiments/banks/{name}.jsonl"));
        let text = std::fs::read_to_string(path).unwrap();
        Self { tasks: text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), prompt_tokens }
    }

    /// Returns the samples of every task in this many orders. Each order is drawn from the task's and its own number.
    pub(crate) fn orders(&self, count: u64) -> impl Iterator<Item = Vec<&BankSample>> {
        let tasks = self.tasks.iter().zip(0_u64..);
        tasks.flat_map(move |(task, number)| {
            (0..count).map(move |order| shuffle(&task.words, number << 32 | order))
        })
    }

    /// Returns the tokens of a sample: those of its prompt, and those of its replies.
    pub(crate) fn tokens(&self, sample: &BankSample) -> u64 {
        self.prompt_tokens + sample.reply_tokens
    }

    /// Returns the curve of the majority: of one sample, of two, and so on, over the same orders.
    pub(crate) fn majorities(&self, orders: u64) -> Vec<MajorityPoint> {
        let most = self.tasks.iter().map(|task| task.words.len()).min().unwrap_or_default();
        let mut curve = Vec::new();
        for samples in 1..=most {
            let (mut right, mut tokens, mut count) = (0.0, 0, 0.0);
            for order in self.orders(orders) {
                right += majority_worth(&order[..samples]);
                tokens += order[..samples].iter().map(|sample| self.tokens(sample)).sum::<u64>();
                count += 1.0;
            }
            curve.push(MajorityPoint { samples, right: right / count, tokens: tokens as f64 / count });
        }
        curve
    }
}

/// Returns the share of right tasks of the majority that takes so many tokens. Between two numbers of samples, their shares are mixed in
/// proportion, and beyond the curve its end counts.
pub(crate) fn right_at(curve: &[MajorityPoint], tokens: f64) -> f64 {
    for two in curve.windows(2) {
        let [low, high] = two else { continue };
        if tokens < high.tokens {
            let share = ((tokens - low.tokens) / (high.tokens - low.tokens)).max(0.0);
            return low.right + share * (high.right - low.right);
        }
    }
    curve.last().map_or(0.0, |last| last.right)
}

/// Returns what the majority of these samples is worth: 1, 0, or the right share of a tie.
fn majority_worth(samples: &[&BankSample]) -> f64 {
    let mut votes: BTreeMap<&str, u32> = BTreeMap::new();
    for answer in samples.iter().filter_map(|sample| sample.answer.as_deref()) {
        *votes.entry(answer).or_default() += 1;
    }
    let Some(most) = votes.values().copied().max() else { return 0.0 };
    let leaders = votes.iter().filter(|(_, count)| **count == most).map(|(answer, _)| *answer);
    let (mut right, mut all) = (0.0, 0.0);
    for leader in leaders {
        let is_right =
            samples.iter().any(|sample| sample.is_right && sample.answer.as_deref() == Some(leader));
        right += f64::from(u8::from(is_right));
        all += 1.0;
    }
    right / all
}

/// Returns samples in an order that follows from the seed alone (Fisher and Yates, with numbers by splitmix64).
fn shuffle(samples: &[BankSample], seed: u64) -> Vec<&BankSample> {
    let (mut order, mut state): (Vec<&BankSample>, u64) = (samples.iter().collect(), seed);
    for last in (1..order.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let place = (mixed ^ (mixed >> 31)) % (last as u64 + 1);
        order.swap(last, usize::try_from(place).unwrap());
    }
    order
}
