//! The plan of an evaluation, which is written before the first call.
//!
//! The input is the arms and banks that a person's command comes to. The output is `plan.json`, and the tasks beside it. A later command in
//! the same folder must have the same plan, except that it may have more arms, and that a pilot may become the whole. A person who sees
//! results and then changes the comparison finds something in any noise. The p-values of further arms are corrected for their number.
//!
//! Each run records the digest of the plan that it was made for, and the file keeps the plans of earlier commands. So a plan that was
//! changed by hand is the plan of none of the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::EvalError;
use super::folder::{digest, hold, read_tasks, write, write_held_tasks};
use crate::batch::TaskLine;
use crate::calibration::RunLimits;
use crate::files::{LARGE_BYTES_MAX, is_unfinished, read_own};
use crypto::Digest;
use protocol::text::CanonicalKind;

/// The name of the plan in the folder of an evaluation.
const FILE: &str = "plan.json";

/// The plan of an evaluation.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EvalPlan {
    /// The version of the format.
    pub v: u32,
    /// The name of the data, as it was given.
    pub data: String,
    /// The SHA-256 of the data.
    pub data_sha256: Digest,
    /// The SHA-256 of the tasks as they are used, with their answers.
    pub tasks_sha256: Digest,
    /// The kind of all answers.
    pub kind: CanonicalKind,
    /// The number of items.
    pub items: usize,
    /// The number of parts in which the items are evaluated.
    pub parts: u64,
    /// The label of tasks whose items are drawn together, because they share what makes them easy or hard.
    pub cluster: Option<String>,
    /// The seed of all runs, and of the intervals.
    pub seed: u64,
    /// The number of samples of each item in the curve that arms are compared with.
    pub samples: u32,
    /// The arm of the primary comparison. It is with the majority of as many samples as its tokens would buy.
    pub primary: String,
    /// The smallest difference of interest, as a share.
    pub effect: f64,
    /// Whether the items only show how many are needed, so that no arm has a verdict.
    pub pilot: bool,
    /// The limits of each run of an arm on tokens and cost.
    pub limits: RunLimits,
    pub arms: Vec<PlannedArm>,
    /// The banks of samples.
    pub banks: Vec<PlannedBank>,
}

/// An arm of a plan.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PlannedArm {
    pub name: String,
    /// The name or path of the roleset.
    pub roleset: String,
    pub protocol: String,
    /// The model as it was named; empty for that of the roleset or the server.
    pub model: String,
    /// The settings, by the names of their flags.
    pub settings: Vec<(String, String)>,
    /// The place among the banks of that whose samples it counts, if it counts samples.
    pub bank: Option<usize>,
    /// The place among the banks of that whose curve it is compared with.
    pub curve: usize,
    /// Whether it is itself a point of that curve.
    pub is_on_curve: bool,
}

/// A bank of a plan.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PlannedBank {
    /// The folder, within that of the evaluation.
    pub folder: String,
    /// The name or path of the roleset.
    pub roleset: String,
    /// The model as it was named.
    pub model: String,
    /// The settings with which its samples are drawn.
    pub settings: Vec<(String, String)>,
    /// The samples in words of each item.
    pub words: u32,
    /// The programs of each item.
    pub programs: u32,
    /// Whether arms are compared with the majorities of its samples in words.
    pub is_curve: bool,
}

/// The file of a plan.
#[derive(Deserialize, Serialize)]
struct PlanFile {
    #[serde(flatten)]
    plan: EvalPlan,
    /// The plans of earlier commands in the same folder, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<EvalPlan>,
}

/// The most parts of an evaluation.
const PARTS_MAX: u64 = 100_000;

impl EvalPlan {
    /// The version of the format.
    pub const VERSION: u32 = 1;

    /// Writes the plan and the tasks into the folder of an evaluation, or checks that the same plan is there.
    ///
    /// Returns [`EvalError::OtherPlan`] if the folder has another plan, [`EvalError::NotEmpty`] if it has no plan and other files, and
    /// [`EvalError`] if files cannot be read or written.
    pub fn put(&self, folder: &Path, tasks: &[TaskLine]) -> Result<(), EvalError> {
        let held = hold(folder)?;
        held.remove_unfinished();
        self.require_room(folder, tasks)?;
        let mut earlier = Vec::new();
        if Self::is_in(folder) {
            let known = read_file(folder)?;
            earlier = known.earlier;
            if known.plan != *self && !earlier.contains(&known.plan) {
                earlier.push(known.plan);
            }
        }
        let file = PlanFile { plan: self.clone(), earlier };
        // A folder with a plan and no tasks yet is taken up by the same command.
        write(&folder.join(FILE), &(serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"))?;
        write_held_tasks(folder, tasks)
    }

    /// Returns the SHA-256 of the plan, which each of its runs records.
    pub fn sha256(&self) -> Digest {
        Digest::new(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// Checks that the runs of the evaluation in `folder`, which record the plans of these digests, were made for this plan or for earlier
    /// plans that may have grown into it.
    ///
    /// Returns [`EvalError::Changed`] with the contradiction, and [`EvalError`] if files cannot be read.
    pub fn require_made_for(
        &self,
        folder: &Path,
        recorded: &BTreeSet<Option<Digest>>,
    ) -> Result<(), EvalError> {
        if recorded.is_empty() {
            return Ok(());
        }
        let mut plans = read_file(folder)?.earlier;
        plans.push(self.clone());
        let known: Vec<Option<Digest>> = plans.iter().map(|plan| Some(plan.sha256())).collect();
        if !recorded.iter().all(|plan| known.contains(plan)) {
            let why = "it is not the plan that the runs were made for".to_owned();
            return Err(EvalError::Changed { path: folder.join(FILE), why });
        }
        if let [_] = plans[..] {
            return Ok(());
        }
        let tasks = self.load_tasks(folder)?;
        for pair in plans.windows(2) {
            if let Some(what) = pair[1].difference(&pair[0], &tasks) {
                let why = format!("an earlier plan cannot have grown into it: {what}");
                return Err(EvalError::Changed { path: folder.join(FILE), why });
            }
        }
        Ok(())
    }

    /// Finds the evaluation to which a batch belongs: in the folder above it, or above its part.
    pub fn folder_of(batch: &Path) -> Option<PathBuf> {
        let batch = batch.canonicalize().ok()?;
        batch.ancestors().skip(1).take(2).find(|folder| Self::is_in(folder)).map(Path::to_owned)
    }

    /// Refuses a folder that has another plan, or no plan and other files.
    ///
    /// Returns [`EvalError::OtherPlan`], [`EvalError::NotEmpty`], and [`EvalError`] if files cannot be read.
    pub fn require_room(&self, folder: &Path, tasks: &[TaskLine]) -> Result<(), EvalError> {
        match Self::load(folder) {
            Ok(known) => match self.difference(&known, tasks) {
                Some(what) => Err(EvalError::OtherPlan { folder: folder.to_owned(), what }),
                None => Ok(()),
            },
            Err(EvalError::NoPlan(_)) if !folder.exists() => Ok(()),
            Err(EvalError::NoPlan(_)) => require_empty(folder),
            Err(why) => Err(why),
        }
    }

    /// Returns whether a folder is that of an evaluation.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Reads the plan of the evaluation in a folder.
    ///
    /// Returns [`EvalError::NoPlan`] without one, and [`EvalError::Plan`] if it cannot be read.
    pub fn load(folder: &Path) -> Result<Self, EvalError> {
        if !Self::is_in(folder) {
            return Err(EvalError::NoPlan(folder.to_owned()));
        }
        let plan = read_file(folder)?.plan;
        match plan.fault() {
            Some(why) => Err(EvalError::Plan { path: folder.join(FILE), why: why.to_owned() }),
            None => Ok(plan),
        }
    }

    /// Returns what is impossible about a plan in a file, if anything is.
    fn fault(&self) -> Option<&'static str> {
        if self.v != Self::VERSION {
            return Some("it is of another version of the program");
        }
        if !(1..=PARTS_MAX).contains(&self.parts) {
            return Some("it has an impossible number of parts");
        }
        for arm in &self.arms {
            let has_curve = self.banks.get(arm.curve).is_some_and(|bank| bank.is_curve);
            if !has_curve || arm.bank.is_some_and(|bank| bank >= self.banks.len()) {
                return Some("an arm names a bank that is not there");
            }
        }
        None
    }

    /// Reads the tasks of the evaluation in a folder.
    ///
    /// Returns [`EvalError`] if they cannot be read, and [`EvalError::Changed`] if they are not those of the plan.
    pub fn load_tasks(&self, folder: &Path) -> Result<Vec<TaskLine>, EvalError> {
        let tasks = read_tasks(folder)?;
        if digest(&tasks) != self.tasks_sha256 || tasks.len() != self.items {
            let why = "the tasks beside it are not those that it was made for".to_owned();
            return Err(EvalError::Changed { path: folder.join(FILE), why });
        }
        Ok(tasks)
    }

    /// Refuses data of this name that has no task in common with the evaluation in `folder`.
    ///
    /// Returns [`EvalError::OtherKind`], [`EvalError::OtherData`], and [`EvalError`] if its tasks cannot be read.
    pub fn require_shared(
        &self,
        folder: &Path,
        name: &str,
        kind: CanonicalKind,
        tasks: &[TaskLine],
    ) -> Result<(), EvalError> {
        if self.kind != kind {
            return Err(EvalError::OtherKind { now: kind.name(), before: self.kind.name() });
        }
        let known = self.load_tasks(folder)?;
        let known: BTreeMap<&str, &TaskLine> = known.iter().map(|task| (task.id.as_str(), task)).collect();
        if tasks.iter().any(|task| known.get(task.id.as_str()) == Some(&task)) {
            return Ok(());
        }
        Err(EvalError::OtherData { now: name.to_owned(), before: self.data.clone() })
    }

    /// Refuses the folder of an evaluation where one batch is wanted.
    pub fn require_batch(folder: &Path) -> Result<(), EvalError> {
        if Self::load(folder).is_ok() {
            return Err(EvalError::SeveralBatches(folder.to_owned()));
        }
        Ok(())
    }

    /// Returns the folder of a part of the evaluation in `folder`: that folder itself if there is one part.
    pub fn part(&self, folder: &Path, part: u64) -> PathBuf {
        if self.parts == 1 { folder.to_owned() } else { folder.join(format!("part-{part}")) }
    }

    /// Returns the first difference from a known plan that is not allowed, in words.
    fn difference(&self, known: &Self, tasks: &[TaskLine]) -> Option<String> {
        if self.data_sha256 != known.data_sha256 {
            let (old, new) = (known.data_sha256, self.data_sha256);
            return Some(format!("the SHA-256 of the data is {old} there and {new} here"));
        }
        if self.kind != known.kind {
            let (old, new) = (known.kind.name(), self.kind.name());
            return Some(format!("the kind of answers is {old} there (--canonical {old}) and {new} here"));
        }
        // A person who may add items whenever the verdict is not yet the wanted one will reach it.
        let may_grow = known.pilot && self.items > known.items;
        if self.items != known.items && !may_grow {
            return Some(format!("the number of items is {} there and {} here", known.items, self.items));
        }
        if digest(&tasks[..known.items.min(tasks.len())]) != known.tasks_sha256 {
            return Some("the tasks or their answers are read in another way".to_owned());
        }
        let [cluster, old_cluster] = [self, known].map(|plan| plan.cluster.as_deref().unwrap_or("none"));
        for (name, old, new) in [
            ("the number of parts", known.parts.to_string(), self.parts.to_string()),
            ("the label of clusters", old_cluster.to_owned(), cluster.to_owned()),
            ("the seed", known.seed.to_string(), self.seed.to_string()),
            ("the number of samples", known.samples.to_string(), self.samples.to_string()),
            ("the primary arm", known.primary.clone(), self.primary.clone()),
            ("the smallest effect of interest", known.effect.to_string(), self.effect.to_string()),
            ("the limit of each run", known.limits.to_string(), self.limits.to_string()),
        ] {
            if old != new {
                return Some(format!("{name} is {old} there and {new} here"));
            }
        }
        if let Some(lost) = known.arms.iter().find(|arm| !self.arms.contains(arm)) {
            let is_named = self.arms.iter().any(|arm| arm.name == lost.name);
            let how = if is_named { "has another model or roleset there" } else { "is missing here" };
            return Some(format!("the arm `{}` {how}", lost.name));
        }
        let mut banks = known.banks.iter().zip(&self.banks);
        if self.banks.len() < known.banks.len() || !banks.all(|(known, new)| known.may_become(new)) {
            return Some("the banks have other samples".to_owned());
        }
        // The items of a pilot may become a part of the whole, but not the other way round.
        if self.pilot && !known.pilot {
            return Some("it is no pilot there".to_owned());
        }
        // A person has seen the figures of the pilot's items.
        if known.pilot && !self.pilot && !may_grow {
            let why = "it is a pilot of all these items there, and the whole needs more of them";
            return Some(why.to_owned());
        }
        None
    }
}

/// Reads the file of the plan in a folder.
fn read_file(folder: &Path) -> Result<PlanFile, EvalError> {
    let path = folder.join(FILE);
    let why = match read_own(&path, LARGE_BYTES_MAX) {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(file) => return Ok(file),
            Err(why) => why.to_string(),
        },
        Err(why) => why.to_string(),
    };
    Err(EvalError::Plan { path, why })
}

/// Refuses a folder that holds something else, which the files of an evaluation would replace. An unfinished file of a killed process
/// does not count.
fn require_empty(folder: &Path) -> Result<(), EvalError> {
    for entry in std::fs::read_dir(folder).map_err(EvalError::io("read", folder))? {
        if !entry.is_ok_and(|entry| is_unfinished(&entry.file_name())) {
            return Err(EvalError::NotEmpty(folder.to_owned()));
        }
    }
    Ok(())
}

impl PlannedBank {
    /// Returns true if another bank is this one with as many samples or more.
    fn may_become(&self, new: &Self) -> bool {
        let grown = Self { words: new.words, programs: new.programs, is_curve: new.is_curve, ..self.clone() };
        grown == *new && new.words >= self.words && new.programs >= self.programs
    }
}
