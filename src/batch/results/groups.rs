//! What runs say together: groups of them, with their shares and intervals.
//!
//! In: rows of runs, one after another. Out: groups of those that have something in common. Nothing is read or written.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use super::difference::Difference;
use super::rows::Told;
use super::share::{ByTask, Share, mark};
use crate::batch::batch_stats::EndCounts;
use crate::protocol::OutcomeKind;

/// What a group is called whose runs have no name.
const UNNAMED: &str = "-";

/// By what runs are put together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum By {
    /// Their roleset.
    Roleset,
    /// Their model.
    Model,
    /// Their arm.
    Arm,
    /// Their seed.
    Seed,
    /// Their task.
    Task,
    /// The folder that they are from.
    Folder,
    /// What their tasks are labelled with, under this name.
    Meta(String),
}

impl By {
    /// Reads one: `roleset`, `model`, `arm`, `seed`, `task`, `folder`, or `meta.NAME`.
    ///
    /// # Errors
    ///
    /// What may be written, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "roleset" => Self::Roleset,
            "model" => Self::Model,
            "arm" => Self::Arm,
            "seed" => Self::Seed,
            "task" => Self::Task,
            "folder" => Self::Folder,
            _ => match text.strip_prefix("meta.") {
                Some(name) if !name.is_empty() => Self::Meta(name.to_owned()),
                Some(_) | None => {
                    return Err("write roleset, model, arm, seed, task, folder, or meta.NAME".to_owned());
                }
            },
        })
    }

    fn name(&self) -> String {
        match self {
            Self::Roleset => "roleset".to_owned(),
            Self::Model => "model".to_owned(),
            Self::Arm => "arm".to_owned(),
            Self::Seed => "seed".to_owned(),
            Self::Task => "task".to_owned(),
            Self::Folder => "folder".to_owned(),
            Self::Meta(name) => name.clone(),
        }
    }

    /// What a run has under this name; empty where it has nothing.
    fn of(&self, told: &Told) -> String {
        match self {
            Self::Roleset => told.roleset.clone(),
            Self::Model => told.model.clone(),
            Self::Arm => told.arm.clone(),
            Self::Seed => told.seed.to_string(),
            Self::Task => told.task.clone(),
            Self::Folder => told.folder.clone(),
            Self::Meta(name) => told.meta.get(name).cloned().unwrap_or_default(),
        }
    }
}

/// Runs that have something in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// What they have in common: names and values, as it was asked for.
    #[serde(serialize_with = "as_map")]
    pub of: Vec<(String, String)>,
    /// How they ended.
    pub ended: EndCounts,
    /// Those that agreed, of those that their protocol has ended: what failed or came to a limit says nothing of it, and is in no
    /// figure below.
    pub agreed: Share,
    /// Those that agreed on the right answer, of those with a known one; a run that does not agree is not right.
    pub right: Share,
    /// Those whose plain vote over blind drafts is right, before any talk.
    pub blind_right: Share,
    /// What the talk has changed about what is right.
    pub talk: TalkEffect,
    /// Rounds, on average.
    pub rounds: f64,
    /// How many runs took so many rounds.
    pub by_rounds: BTreeMap<u32, u64>,
    /// Calls of models, on average.
    pub calls: f64,
    /// Tokens of prompts and replies, on average.
    pub tokens: f64,
    /// The same by what they were used for, as far as results say it.
    pub tokens_by_phase: BTreeMap<String, f64>,
    /// Seconds from begin to end within which 5 % have ended.
    pub seconds_p5: f64,
    /// The same of a quarter.
    pub seconds_p25: f64,
    /// Of a half.
    pub seconds_p50: f64,
    /// Of three quarters.
    pub seconds_p75: f64,
    /// Of 95 %.
    pub seconds_p95: f64,
    /// Cost of all in millionths of a US dollar; null if a price is not known.
    pub cost_micro_usd: Option<u64>,
}

/// Runs by whether the plain vote over blind drafts was right, and whether the run was right in the end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct TalkEffect {
    /// Right before any talk and in the end.
    pub kept: u64,
    /// Right before, and not in the end.
    pub lost: u64,
    /// Right in the end alone.
    pub gained: u64,
    /// Never right.
    pub missed: u64,
}

impl TalkEffect {
    fn add(&mut self, before: bool, after: bool) {
        *match (before, after) {
            (true, true) => &mut self.kept,
            (true, false) => &mut self.lost,
            (false, true) => &mut self.gained,
            (false, false) => &mut self.missed,
        } += 1;
    }
}

/// Puts runs together that have these things in common.
#[derive(Debug, Default)]
pub struct Groups {
    by: Vec<By>,
    /// The names of all labels that tasks have.
    labels: BTreeSet<String>,
    sums: BTreeMap<Vec<InOrder>, Sums>,
}

/// A name, behind the number that it is: 2 comes before 10, and both before words.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct InOrder {
    number: u64,
    pub(super) name: String,
}

impl InOrder {
    pub(super) fn new(name: String) -> Self {
        Self { number: name.parse().unwrap_or(u64::MAX), name }
    }
}

/// What a run has in common with others of its group.
pub(super) fn key(by: &[By], told: &Told) -> Vec<InOrder> {
    by.iter().map(|by| InOrder::new(by.of(told))).collect()
}

#[derive(Debug, Default)]
struct Sums {
    ended: EndCounts,
    agreed: ByTask,
    right: ByTask,
    blind_right: ByTask,
    talk: TalkEffect,
    by_phase: BTreeMap<String, u64>,
    rounds: u64,
    by_rounds: BTreeMap<u32, u64>,
    calls: u64,
    tokens: u64,
    milliseconds: Vec<u64>,
    /// `None` once a price was not known.
    cost: Option<u64>,
}

impl Groups {
    /// None yet.
    #[must_use]
    pub fn new(by: &[By]) -> Self {
        Self { by: by.to_vec(), labels: BTreeSet::new(), sums: BTreeMap::new() }
    }

    /// Adds a run.
    pub fn add(&mut self, told: &Told) {
        self.labels.extend(
            told.meta.keys().filter(|name| !self.labels.contains(*name)).cloned().collect::<Vec<_>>(),
        );
        let sums =
            self.sums.entry(key(&self.by, told)).or_insert_with(|| Sums { cost: Some(0), ..Sums::default() });
        sums.ended.add(told.outcome, told.right);
        // Of a run that was cut off nothing is known.
        if !told.outcome.is_final() {
            return;
        }
        let task = mark(&told.task);
        sums.agreed.add(task, told.outcome == OutcomeKind::Agreed);
        // A run that comes to no answer has not found the right one.
        if let Some(right) = told.right {
            sums.right.add(task, right);
        }
        if let Some(right) = told.blind_right {
            sums.blind_right.add(task, right);
        }
        if let Some((before, after)) = told.blind_right.zip(told.right) {
            sums.talk.add(before, after);
        }
        for (phase, used) in &told.phases {
            let tokens = used.prompt.saturating_add(used.completion);
            let sum = sums.by_phase.entry(phase.clone()).or_default();
            *sum = sum.saturating_add(tokens);
        }
        sums.rounds += u64::from(told.rounds);
        *sums.by_rounds.entry(told.rounds).or_default() += 1;
        sums.calls += told.usage.calls;
        let tokens = told.usage.prompt.saturating_add(told.usage.completion);
        sums.tokens = sums.tokens.saturating_add(tokens);
        sums.milliseconds.push(told.timing.total_ms);
        sums.cost = sums.cost.zip(told.usage.cost_micro_usd).map(|(sum, cost)| sum.saturating_add(cost));
    }

    /// Says which label was asked for that no task has, and which there are.
    #[must_use]
    pub fn unknown_label(&self) -> Option<String> {
        let unknown = self.by.iter().find_map(|by| match by {
            By::Meta(name) if !self.labels.contains(name) => Some(name),
            By::Meta(_) | By::Roleset | By::Model | By::Arm | By::Seed | By::Task | By::Folder => None,
        })?;
        let known: Vec<String> = self.labels.iter().map(|name| format!("meta.{name}")).collect();
        let known = if known.is_empty() {
            "no task has a label".to_owned()
        } else {
            format!("there is {}", known.join(", "))
        };
        (!self.sums.is_empty()).then(|| format!("no task has meta.{unknown}; {known}"))
    }

    /// The difference of each other group to the one that is meant: by all that its runs have in common, or by one name of it that no
    /// other group has.
    ///
    /// # Errors
    ///
    /// Which groups there are, in words, if none or several are meant.
    pub fn versus(&self, meant: &str) -> Result<Vec<Difference>, String> {
        let name = |key: &[InOrder]| {
            let names: Vec<&str> =
                key.iter().map(|part| part.name.as_str()).filter(|name| !name.is_empty()).collect();
            if names.is_empty() { UNNAMED.to_owned() } else { names.join(",") }
        };
        let is_meant = |key: &&Vec<InOrder>| name(key) == meant || key.iter().any(|part| part.name == meant);
        let mut found = self.sums.keys().filter(is_meant);
        let (Some(key), None) = (found.next(), found.next()) else {
            let all: Vec<String> = self.sums.keys().map(|key| format!("`{}`", name(key))).collect();
            return Err(format!("`{meant}` names no one group; the groups are {}", all.join(", ")));
        };
        let others = self.sums.iter().filter(|(other, _)| *other != key);
        let difference = |(other, sums): (&Vec<InOrder>, &Sums)| {
            Difference::new([name(other), name(key)], &sums.right, &self.sums[key].right)
        };
        Ok(others.map(difference).collect())
    }

    /// The groups, by what they have in common.
    #[must_use]
    pub fn finish(self) -> Vec<Group> {
        let names: Vec<String> = self.by.iter().map(By::name).collect();
        // What no run has is no column.
        let is_empty = |at: &usize| self.sums.keys().all(|key| key[*at].name.is_empty());
        let optional = |at: &usize| matches!(self.by[*at], By::Arm);
        let shown: Vec<usize> = (0..self.by.len()).filter(|at| !(optional(at) && is_empty(at))).collect();
        let group = |(key, mut sums): (Vec<InOrder>, Sums)| {
            let ended = sums.ended.by_protocol();
            let n = ended.max(1) as f64;
            sums.milliseconds.sort_unstable();
            let seconds = |share: usize| {
                let at = (sums.milliseconds.len() * share).div_ceil(100).saturating_sub(1);
                sums.milliseconds.get(at).copied().unwrap_or_default() as f64 / 1000.0
            };
            Group {
                of: shown.iter().map(|at| (names[*at].clone(), key[*at].name.clone())).collect(),
                ended: sums.ended,
                agreed: sums.agreed.share(),
                right: sums.right.share(),
                blind_right: sums.blind_right.share(),
                talk: sums.talk,
                rounds: sums.rounds as f64 / n,
                by_rounds: sums.by_rounds,
                calls: sums.calls as f64 / n,
                tokens: sums.tokens as f64 / n,
                tokens_by_phase: sums
                    .by_phase
                    .into_iter()
                    .map(|(phase, tokens)| (phase, tokens as f64 / n))
                    .collect(),
                seconds_p5: seconds(5),
                seconds_p25: seconds(25),
                seconds_p50: seconds(50),
                seconds_p75: seconds(75),
                seconds_p95: seconds(95),
                cost_micro_usd: sums.cost,
            }
        };
        self.sums.into_iter().map(group).collect()
    }
}

fn as_map<S: Serializer>(of: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(of.iter().map(|(name, value)| (name, value)))
}
