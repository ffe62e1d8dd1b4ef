//! The results of an evaluation, item by item.
//!
//! The input is the folder of an evaluation with its plan and tasks. The output is one record for each item: the graded samples of each
//! bank, and the end of each arm's run. A run that failed says nothing about its arm and is missing. One that reached its
//! limit has given no answer.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::curve::DrawnSample;
use super::error::EvalError;
use super::plan::EvalPlan;
use crate::batch::{ResultRow, TaskLine, WORDS_ARM, is_batch, results, text_is_right};
use crypto::Digest;
use protocol::OutcomeKind;
use protocol::text::escape;

/// The folder of the batch with the runs of all arms.
pub const ARMS: &str = "arms";

/// The longest answer that is kept, in characters.
const ANSWER_CHARS_MAX: usize = 200;

/// Everything that was found out about the items of an evaluation.
#[derive(Clone, Debug)]
pub struct EvalResults {
    /// The items, in the order of the tasks.
    pub items: Vec<Item>,
}

/// One item.
#[derive(Clone, Debug)]
pub struct Item {
    /// The task's id.
    pub id: String,
    /// The name of the item's cluster, if items are drawn together.
    pub cluster: Option<String>,
    /// The samples in words of each bank of the plan.
    pub banks: Vec<Option<BankItem>>,
    /// The run of each arm of the plan.
    pub arms: Vec<Option<ArmItem>>,
}

/// The samples in words that a bank has of an item.
#[derive(Clone, Debug)]
pub struct BankItem {
    /// The samples, in the order in which they were drawn.
    pub samples: Vec<DrawnSample>,
    /// The models of its voters.
    pub models: BTreeSet<String>,
    /// The mean number of tokens of a sample: those of its prompts and those of its replies.
    pub tokens: f64,
}

/// The run of an arm on an item.
#[derive(Clone, Debug)]
pub struct ArmItem {
    /// The run's id.
    pub run: String,
    /// The number of the item's cluster, if items are drawn together.
    pub cluster: Option<usize>,
    /// The models of its agents.
    pub models: BTreeSet<String>,
    /// The end of the run.
    pub outcome: OutcomeKind,
    /// The grounds of the answer: the class of a vote, or the way of an agreement.
    pub grounds: Option<String>,
    /// The probability that the leading answer of a vote is the more frequent one.
    pub certainty: Option<f64>,
    /// The beginning of the answer.
    pub answer: Option<String>,
    /// Whether the answer is right; a run without an answer is not.
    pub is_right: bool,
    /// The answers among its blind drafts, the most votes first.
    pub drafts: Vec<DraftAnswer>,
    /// The plain vote over its blind drafts, for a run whose agents can talk.
    pub blind: Option<BlindLead>,
    /// The number of rounds.
    pub rounds: u32,
    /// The tokens of all prompts.
    pub prompt: u64,
    /// The prompt tokens that servers had computed before.
    pub cached: u64,
    /// The tokens of all replies.
    pub completion: u64,
    /// The number of replies.
    pub calls: u64,
    /// The milliseconds from begin to end.
    pub milliseconds: u64,
    /// The cost in millionths of a US dollar, if it is known.
    pub cost_micro_usd: Option<u64>,
}

/// An answer among the blind drafts of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DraftAnswer {
    /// The beginning of the answer.
    pub answer: String,
    /// The number of drafts with it.
    pub votes: u32,
    /// Whether it is right.
    pub is_right: bool,
}

/// The answers that lead the plain vote over blind drafts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BlindLead {
    /// The right ones of them.
    pub right: u32,
    /// All of them: several if they are tied, and none without a draft.
    pub of: u32,
}

impl BlindLead {
    /// Returns the probability that the vote is right, where chance breaks a tie, as on a curve.
    pub fn share(self) -> f64 {
        f64::from(self.right) / f64::from(self.of.max(1))
    }

    /// Returns whether the vote is right, or `None` if a right answer is tied with another one.
    pub fn is_right(self) -> Option<bool> {
        match self {
            Self { right: 0, .. } => Some(false),
            Self { right, of } if right == of => Some(true),
            Self { .. } => None,
        }
    }
}

impl ArmItem {
    /// Returns the tokens of prompts and replies.
    pub fn tokens(&self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }

    /// Returns the answers among its drafts in words; `None` without a draft.
    pub fn describe_drafts(&self) -> Option<String> {
        let mut words = Vec::new();
        for DraftAnswer { answer, votes, is_right } in &self.drafts {
            let right = if *is_right { "right" } else { "wrong" };
            words.push(format!("{votes} × “{}”, {right}", escape::excerpt(answer)));
        }
        if words.is_empty() { None } else { Some(words.join("; ")) }
    }

    /// Returns in words what the plain vote over the drafts was, if there are drafts.
    pub fn describe_draft_vote(&self) -> &'static str {
        match self.blind.map(BlindLead::is_right) {
            None => "",
            Some(Some(true)) => "; the vote over its drafts was right",
            Some(Some(false)) => "; the vote over its drafts was wrong",
            Some(None) => "; its drafts were tied, and one was right",
        }
    }
}

impl EvalResults {
    /// Reads the results of an evaluation.
    ///
    /// Returns [`EvalError::Batch`] if results cannot be read, and [`EvalError::Changed`] if they were made for another plan.
    pub fn read(folder: &Path, plan: &EvalPlan, tasks: &[TaskLine]) -> Result<Self, EvalError> {
        let place: HashMap<&str, usize> = (0..).zip(tasks).map(|(at, task)| (task.id.as_str(), at)).collect();
        let mut items = Vec::new();
        for task in tasks {
            let cluster = plan.cluster.as_ref();
            items.push(Item {
                id: task.id.clone(),
                cluster: cluster.map(|label| task.meta.get(label).cloned().unwrap_or_default()),
                banks: vec![None; plan.banks.len()],
                arms: vec![None; plan.arms.len()],
            });
        }
        let clusters: BTreeSet<String> = items.iter().filter_map(|item| item.cluster.clone()).collect();
        let clusters: HashMap<String, usize> = clusters.into_iter().zip(0..).collect();
        // The plan that each run was made for.
        let mut plans: BTreeSet<Option<Digest>> = BTreeSet::new();
        for part in Self::parts(folder, plan) {
            for (at, bank) in plan.banks.iter().enumerate() {
                read_rows(&part.join(&bank.folder), |row| {
                    plans.insert(row.plan);
                    if let Some(item) = place.get(row.task.as_str())
                        && row.arm == WORDS_ARM
                    {
                        items[*item].banks[at] = bank_item(&row, &tasks[*item]);
                    }
                })?;
            }
            let arms: HashMap<&str, usize> =
                plan.arms.iter().enumerate().map(|(at, arm)| (arm.name.as_str(), at)).collect();
            read_rows(&part.join(ARMS), |row| {
                plans.insert(row.plan);
                if let (Some(item), Some(arm)) = (place.get(row.task.as_str()), arms.get(row.arm.as_str())) {
                    let cluster = items[*item].cluster.as_ref().and_then(|name| clusters.get(name).copied());
                    items[*item].arms[*arm] = arm_item(row, &tasks[*item], cluster);
                }
            })?;
        }
        plan.require_made_for(folder, &plans)?;
        Ok(Self { items })
    }

    /// Returns the folders of the parts of an evaluation, or its own folder if it has one part.
    pub fn parts(folder: &Path, plan: &EvalPlan) -> Vec<PathBuf> {
        (0..plan.parts).map(|part| plan.part(folder, part)).collect()
    }

    /// Returns the items of which every arm and every curve is known. Only these are compared.
    pub fn complete(&self, plan: &EvalPlan) -> impl Iterator<Item = &Item> {
        let curves: Vec<usize> =
            plan.banks.iter().enumerate().filter(|(_, bank)| bank.is_curve).map(|(at, _)| at).collect();
        self.items.iter().filter(move |item| {
            item.arms.iter().all(Option::is_some) && curves.iter().all(|at| item.banks[*at].is_some())
        })
    }
}

/// Passes each run of a batch to `each`, if the batch has begun.
fn read_rows(folder: &Path, each: impl FnMut(ResultRow)) -> Result<(), EvalError> {
    if is_batch(folder) {
        results(folder, each)?;
    }
    Ok(())
}

fn bank_item(row: &ResultRow, task: &TaskLine) -> Option<BankItem> {
    let vote = row.vote.as_ref()?;
    if !row.outcome.is_final() || vote.samples.is_empty() {
        return None;
    }
    let rule = task.canonical.as_ref()?;
    let graded = vote.samples.iter().map(|sample| DrawnSample {
        answer: sample.sha256,
        is_right: text_is_right(task, rule, sample.text.as_deref(), sample.sha256),
    });
    let tokens = row.usage.prompt.saturating_add(row.usage.completion) as f64;
    Some(BankItem {
        models: row.all_models(),
        samples: graded.collect(),
        tokens: tokens / vote.samples.len() as f64,
    })
}

/// Returns the answers among the blind drafts of a run.
fn drafts(row: &ResultRow, task: &TaskLine) -> Vec<DraftAnswer> {
    let mut drafts = Vec::new();
    for one in &row.blind_vote.tally {
        let rule = task.canonical.as_ref();
        drafts.push(DraftAnswer {
            answer: beginning(&one.text),
            votes: one.votes,
            is_right: rule.is_some_and(|rule| text_is_right(task, rule, Some(&one.text), Some(one.sha256))),
        });
    }
    drafts
}

/// Returns the answers that lead the plain vote over blind drafts.
fn lead(drafts: &[DraftAnswer]) -> BlindLead {
    let most = drafts.iter().map(|one| one.votes).max();
    let mut lead = BlindLead { right: 0, of: 0 };
    for one in drafts.iter().filter(|one| Some(one.votes) == most) {
        lead.right += u32::from(one.is_right);
        lead.of += 1;
    }
    lead
}

fn beginning(text: &str) -> String {
    text.chars().take(ANSWER_CHARS_MAX).collect()
}

fn arm_item(row: ResultRow, task: &TaskLine, cluster: Option<usize>) -> Option<ArmItem> {
    // An arm that reaches the limits of its runs gives no answer.
    if !row.outcome.is_final() && row.outcome != OutcomeKind::Budget {
        return None;
    }
    let drafts = drafts(&row, task);
    let blind = lead(&drafts);
    // The answer is graded here by its digest, as samples are. `consensus verify` compares the digest with that of the journal.
    let is_right = task
        .canonical
        .as_ref()
        .is_some_and(|rule| text_is_right(task, rule, row.text.as_deref(), row.sha256));
    let class = row.vote.as_ref().and_then(|vote| vote.class.clone());
    let can_talk = row.vote.is_none();
    Some(ArmItem {
        models: row.all_models(),
        outcome: row.outcome,
        grounds: class.or(row.how),
        certainty: row.vote.as_ref().map(|vote| vote.certainty_value),
        answer: row.text.as_deref().map(beginning),
        is_right,
        drafts,
        blind: if can_talk { Some(blind) } else { None },
        rounds: row.rounds,
        prompt: row.usage.prompt,
        cached: row.usage.cached,
        completion: row.usage.completion,
        calls: row.usage.calls,
        milliseconds: row.timing.total_ms,
        cost_micro_usd: row.usage.cost_micro_usd,
        run: row.run,
        cluster,
    })
}
