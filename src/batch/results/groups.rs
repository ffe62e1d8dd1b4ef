//! Groups of runs, with their shares and intervals.
//!
//! The input is rows of runs, one after another. The output is groups of runs with values in common. Nothing is read or written.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use super::difference::Difference;
use super::rows::ResultRow;
use super::share::{ByTask, Share, mark};
use crate::batch::store::EndCounts;
use protocol::OutcomeKind;

/// The name of a group whose runs have no name.
const UNNAMED: &str = "-";

/// A property by which runs are grouped.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum By {
    Roleset,
    Model,
    Arm,
    Seed,
    Task,
    /// The folder of the batch.
    Folder,
    /// The way in which the run ended.
    Outcome,
    /// The task's label with this name.
    Meta(String),
}

impl By {
    /// Parses `roleset`, `model`, `arm`, `seed`, `task`, `folder`, `outcome`, or `meta.NAME`.
    ///
    /// Returns the accepted forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "roleset" => Self::Roleset,
            "model" => Self::Model,
            "arm" => Self::Arm,
            "seed" => Self::Seed,
            "task" => Self::Task,
            "folder" => Self::Folder,
            "outcome" => Self::Outcome,
            _ => match text.strip_prefix("meta.") {
                Some(name) if !name.is_empty() => Self::Meta(name.to_owned()),
                Some(_) | None => {
                    return Err(
                        "write roleset, model, arm, seed, task, folder, outcome, or meta.NAME".to_owned()
                    );
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
            Self::Outcome => "outcome".to_owned(),
            Self::Meta(name) => name.clone(),
        }
    }

    /// Returns the value of this property for a run; empty if the run has none.
    fn of(&self, row: &ResultRow) -> String {
        match self {
            Self::Roleset => row.roleset.clone(),
            Self::Model => row.model.clone(),
            Self::Arm => row.arm.clone(),
            Self::Seed => row.seed.to_string(),
            Self::Task => row.task.clone(),
            Self::Folder => row.folder.clone(),
            Self::Outcome => row.outcome.name().to_owned(),
            Self::Meta(name) => row.meta.get(name).cloned().unwrap_or_default(),
        }
    }
}

/// A choice of runs with one value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunFilter {
    by: By,
    value: String,
}

impl RunFilter {
    /// Parses a property and its value, such as `arm=sc@5`.
    ///
    /// Returns the accepted forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (by, value) = text.split_once('=').ok_or("write WHAT=VALUE, such as arm=sc@5")?;
        Ok(Self { by: By::parse(by)?, value: value.to_owned() })
    }

    /// Returns the text that [`RunFilter::parse`] takes for this choice.
    pub fn text(&self) -> String {
        let by = match &self.by {
            By::Meta(name) => format!("meta.{name}"),
            by @ (By::Roleset | By::Model | By::Arm | By::Seed | By::Task | By::Folder | By::Outcome) => {
                by.name()
            }
        };
        format!("{by}={}", self.value)
    }

    /// Returns whether a run has the value.
    pub fn has(&self, row: &ResultRow) -> bool {
        self.by.of(row) == self.value
    }

    /// Returns the choice of the value that a run has in its place.
    pub fn instead(&self, row: &ResultRow) -> String {
        format!("{}={}", self.by.name(), self.by.of(row))
    }
}

/// A group of runs with values in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The names and values that the runs have in common, in the requested order.
    #[serde(serialize_with = "as_map")]
    pub of: Vec<(String, String)>,
    /// The numbers of runs, by how they ended.
    pub ended: EndCounts,
    /// The share of agreed runs among those that their protocol has ended. Runs that failed or reached a limit say nothing about it,
    /// and are in no figure below.
    pub agreed: Share,
    /// The share of runs that agreed on the right answer, among those with a known one. A run without agreement is not right.
    pub right: Share,
    /// The share of runs with the right answer among those that agreed on one.
    pub right_when_agreed: Share,
    /// The share of runs whose plain vote over blind drafts is right, before any talk.
    pub blind_right: Share,
    /// The effect of the talk on which runs are right. A vote has no talk, and is not in it.
    pub talk: TalkEffect,
    /// The average number of rounds.
    pub rounds: f64,
    /// The number of runs for each number of rounds.
    pub by_rounds: BTreeMap<u32, u64>,
    /// The average number of model calls.
    pub calls: f64,
    /// The average number of tokens, prompts and replies together.
    pub tokens: f64,
    /// The average number of tokens by phase, as far as the results have it.
    pub tokens_by_phase: BTreeMap<String, f64>,
    /// The 5th percentile of the seconds from begin to end.
    pub seconds_p5: f64,
    /// The 25th percentile.
    pub seconds_p25: f64,
    pub seconds_p50: f64,
    /// The 75th percentile.
    pub seconds_p75: f64,
    /// The 95th percentile.
    pub seconds_p95: f64,
    /// The cost of all runs in millionths of a US dollar; null if a price is not known.
    pub cost_micro_usd: Option<u64>,
}

/// The numbers of runs by whether the plain vote over blind drafts was right, and whether the run was right in the end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct TalkEffect {
    /// The runs that were right before any talk and in the end.
    pub kept: u64,
    /// The runs that were right before any talk, and not in the end.
    pub lost: u64,
    /// The runs that were right only in the end.
    pub gained: u64,
    /// The runs that were never right.
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

/// A collector that groups runs by these properties.
#[derive(Debug, Default)]
pub struct Groups {
    by: Vec<By>,
    /// The names of all labels that tasks have.
    labels: BTreeSet<String>,
    sums: BTreeMap<Vec<InOrder>, Sums>,
}

/// A name that sorts by the number that it is: 2 comes before 10, and both come before words.
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

/// Returns the values that a run has in common with the others of its group.
pub(super) fn key(by: &[By], row: &ResultRow) -> Vec<InOrder> {
    by.iter().map(|by| InOrder::new(by.of(row))).collect()
}

#[derive(Debug, Default)]
struct Sums {
    ended: EndCounts,
    agreed: ByTask,
    right: ByTask,
    right_when_agreed: ByTask,
    blind_right: ByTask,
    talk: TalkEffect,
    by_phase: BTreeMap<String, u64>,
    rounds: u64,
    by_rounds: BTreeMap<u32, u64>,
    calls: u64,
    tokens: u64,
    milliseconds: Vec<u64>,
    /// The sum of costs; `None` once a price was not known.
    cost: Option<u64>,
}

impl Groups {
    /// Makes a collector without runs.
    pub fn new(by: &[By]) -> Self {
        Self { by: by.to_vec(), labels: BTreeSet::new(), sums: BTreeMap::new() }
    }

    /// Adds a run.
    pub fn add(&mut self, row: &ResultRow) {
        self.labels.extend(row.meta.keys().cloned());
        let sums =
            self.sums.entry(key(&self.by, row)).or_insert_with(|| Sums { cost: Some(0), ..Sums::default() });
        sums.ended.add(row.outcome, row.right);
        // Nothing is known about a run that was cut off.
        if !row.outcome.is_final() {
            return;
        }
        let task = mark(&row.task);
        sums.agreed.add(task, row.outcome == OutcomeKind::Agreed);
        // A run without an answer has not found the right one.
        if let Some(right) = row.right {
            sums.right.add(task, right);
            if row.outcome == OutcomeKind::Agreed {
                sums.right_when_agreed.add(task, right);
            }
        }
        if let Some(right) = row.blind_right {
            sums.blind_right.add(task, right);
        }
        if let (Some(before), Some(after)) = (row.blind_right, row.right)
            && row.can_talk()
        {
            sums.talk.add(before, after);
        }
        for (phase, used) in &row.phases {
            let tokens = used.prompt.saturating_add(used.completion);
            let sum = sums.by_phase.entry(phase.clone()).or_default();
            *sum = sum.saturating_add(tokens);
        }
        sums.rounds = sums.rounds.saturating_add(u64::from(row.rounds));
        *sums.by_rounds.entry(row.rounds).or_default() += 1;
        sums.calls = sums.calls.saturating_add(row.usage.calls);
        let tokens = row.usage.prompt.saturating_add(row.usage.completion);
        sums.tokens = sums.tokens.saturating_add(tokens);
        sums.milliseconds.push(row.timing.total_ms);
        sums.cost = sums.cost.zip(row.usage.cost_micro_usd).map(|(sum, cost)| sum.saturating_add(cost));
    }

    /// Reports a requested label that no task has, together with the labels that exist.
    pub fn unknown_label(&self) -> Option<String> {
        if self.sums.is_empty() {
            return None;
        }
        let unknown = self.by.iter().find_map(|by| match by {
            By::Meta(name) if !self.labels.contains(name) => Some(name),
            By::Meta(_)
            | By::Roleset
            | By::Model
            | By::Arm
            | By::Seed
            | By::Task
            | By::Folder
            | By::Outcome => None,
        })?;
        let known: Vec<String> = self.labels.iter().map(|name| format!("meta.{name}")).collect();
        let known = if known.is_empty() {
            "no task has a label".to_owned()
        } else {
            format!("there is {}", known.join(", "))
        };
        Some(format!("no task has meta.{unknown}; {known}"))
    }

    /// Returns the difference of each other group from the meant one. A group is meant by all of its values, or by one value that no
    /// other group has.
    ///
    /// Returns the names of the groups, if no group or several are meant.
    pub fn versus(&self, meant: &str) -> Result<Vec<Difference>, String> {
        let mut found: Vec<_> = self.sums.keys().filter(|key| group_name(key) == meant).collect();
        if found.is_empty() {
            found = self.sums.keys().filter(|key| key.iter().any(|part| part.name == meant)).collect();
        }
        let [meant_key] = found[..] else {
            let all: Vec<String> = self.sums.keys().map(|key| format!("`{}`", group_name(key))).collect();
            return Err(format!(
                "`{meant}` does not name exactly one group; the groups are {}",
                all.join(", ")
            ));
        };
        let mut differences = Vec::new();
        for (key, sums) in &self.sums {
            if key != meant_key {
                let names = [group_name(key), group_name(meant_key)];
                differences.push(Difference::new(names, &sums.right, &self.sums[meant_key].right));
            }
        }
        Ok(differences)
    }

    /// Returns the groups, in the order of their values.
    pub fn finish(self) -> Vec<Group> {
        let names: Vec<String> = self.by.iter().map(By::name).collect();
        // A property that no run has gets no column.
        let shown: Vec<usize> = (0..self.by.len())
            .filter(|at| self.by[*at] != By::Arm || self.sums.keys().any(|key| !key[*at].name.is_empty()))
            .collect();
        let mut groups = Vec::new();
        for (key, sums) in self.sums {
            let of = shown.iter().map(|at| (names[*at].clone(), key[*at].name.clone())).collect();
            groups.push(sums.finish(of));
        }
        groups
    }
}

impl Sums {
    /// Returns the figures of a group with these names and values.
    fn finish(mut self, of: Vec<(String, String)>) -> Group {
        let n = self.ended.by_protocol().max(1) as f64;
        self.milliseconds.sort_unstable();
        let seconds = [5, 25, 50, 75, 95].map(|percent| {
            let at = (self.milliseconds.len() * percent).div_ceil(100).saturating_sub(1);
            self.milliseconds.get(at).copied().unwrap_or_default() as f64 / 1000.0
        });
        let tokens_by_phase = self.by_phase.into_iter().map(|(phase, tokens)| (phase, tokens as f64 / n));
        Group {
            of,
            ended: self.ended,
            agreed: self.agreed.share(),
            right: self.right.share(),
            right_when_agreed: self.right_when_agreed.share(),
            blind_right: self.blind_right.share(),
            talk: self.talk,
            rounds: self.rounds as f64 / n,
            by_rounds: self.by_rounds,
            calls: self.calls as f64 / n,
            tokens: self.tokens as f64 / n,
            tokens_by_phase: tokens_by_phase.collect(),
            seconds_p5: seconds[0],
            seconds_p25: seconds[1],
            seconds_p50: seconds[2],
            seconds_p75: seconds[3],
            seconds_p95: seconds[4],
            cost_micro_usd: self.cost,
        }
    }
}

/// Returns the values that the runs of a group have in common, as one name.
fn group_name(key: &[InOrder]) -> String {
    let names: Vec<&str> =
        key.iter().map(|part| part.name.as_str()).filter(|name| !name.is_empty()).collect();
    if names.is_empty() { UNNAMED.to_owned() } else { names.join(",") }
}

fn as_map<S: Serializer>(of: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(of.iter().map(|(name, value)| (name, value)))
}
