//! The runs of batches whose right answers are known, for a calibration.
//!
//! The input is the folders of batches, and a choice among their runs. The output is one run of each task, with the way in which it was
//! made, the features of its answer, and whether it is right. Everything but the last is derived again from the journals, which are
//! verified on the way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::verify::verify;
use crate::batch::folder::BatchError;
use crate::batch::plan::drawn_with;
use crate::batch::results::{RunFilter, results};
use crate::calibration::{CalibratedWay, Features, KnownRun, question_of};
use crate::engine::RunState;
use protocol::core::Endpoint;
use protocol::{DegradedKind, OutcomeKind};

/// The runs whose right answers are known. They may be of several variants, which the caller refuses.
#[derive(Clone, Debug, Default)]
pub struct GradedRuns {
    /// The variants that fit the choice: roleset, model and arm. The runs are those of all of them.
    pub variants: BTreeSet<[String; 3]>,
    /// The different ways in which the runs were made.
    pub ways: Vec<CalibratedWay>,
    /// One run of each task: that with the lowest seed.
    pub runs: Vec<KnownRun>,
    /// The runs that have a calibration of their own, which may have withheld their answers.
    pub calibrated: usize,
    /// The further runs of the same tasks, with later seeds.
    pub later_seeds: usize,
    /// The runs that failed or have no known answer.
    pub left_out: usize,
    /// The runs that have ended without a line of results, which alone holds whether they are right.
    pub without_result: u64,
}

impl GradedRuns {
    /// Reads the batches in these folders. Those of an evaluation have their banks beside them. Any other bank may be elsewhere by now, and
    /// another one in its place.
    ///
    /// Returns [`BatchError`] if there is no batch, or it does not verify.
    pub fn read(folders: &[PathBuf], only: &[RunFilter], of_evaluation: bool) -> Result<Self, BatchError> {
        let mut graded = Self::default();
        let mut of_task: BTreeMap<String, (u64, KnownRun)> = BTreeMap::new();
        for folder in folders {
            let rights = graded.read_rights(folder, only)?;
            let mut banks = HashMap::new();
            let verified = verify(folder, &mut |state| {
                let Some((task, Some(is_right))) = rights.get(state.run()) else { return Ok(()) };
                let mut way = way_of(state);
                for (extra, endpoint) in way.extras.iter_mut().zip(state.endpoints()) {
                    let Endpoint::Bank { folder: bank, model, .. } = endpoint else { continue };
                    if of_evaluation {
                        let known = banks.entry((bank.clone(), model.clone()));
                        let fields = known.or_insert_with(|| drawn_with(&beside(folder, bank)?, model));
                        fields.clone_into(extra);
                    }
                }
                graded.add(state, way, task, *is_right, &mut of_task);
                Ok(())
            })?;
            graded.without_result += verified.unlisted;
        }
        graded.runs = of_task.into_values().map(|(_, run)| run).collect();
        Ok(graded)
    }

    /// Returns the task of each run that fits, by the run's id, and whether it is right if that is known.
    fn read_rights(
        &mut self,
        folder: &Path,
        only: &[RunFilter],
    ) -> Result<HashMap<String, (String, Option<bool>)>, BatchError> {
        let mut rights = HashMap::new();
        results(folder, |row| {
            if only.iter().all(|only| only.has(&row)) {
                // A run that reaches a limit gives no answer, and so would a run like it.
                let right =
                    if row.outcome == OutcomeKind::Budget { row.right.or(Some(false)) } else { row.right };
                self.left_out += usize::from(right.is_none());
                self.variants.insert([row.roleset, row.model, row.arm]);
                rights.insert(row.run, (row.task, right));
            }
        })?;
        Ok(rights)
    }

    fn add(
        &mut self,
        state: &RunState,
        way: CalibratedWay,
        task: &str,
        is_right: bool,
        of_task: &mut BTreeMap<String, (u64, KnownRun)>,
    ) {
        let opened = state.opened();
        let seed = opened.setup.seed;
        let known = of_task.get(task).map(|(known, _)| *known);
        self.later_seeds += usize::from(known.is_some());
        if known.is_some_and(|known| known <= seed) {
            return;
        }
        let Some(cell) = &opened.cell else { return };
        if !self.ways.contains(&way) {
            self.ways.push(way);
        }
        self.calibrated += usize::from(opened.calibration.is_some());
        let features = state.verdict().and_then(|end| Features::new(end, &state.report()));
        let question = question_of(&opened.setup);
        let run = KnownRun { fingerprint: cell.fingerprint, question, features, is_right };
        of_task.insert(task.to_owned(), (seed, run));
    }
}

/// Returns the way in which a run was made, as its journal says it.
fn way_of(state: &RunState) -> CalibratedWay {
    // A run that was resumed under other limits gives the answers of these. One that was resumed on another model has two.
    let mut way = CalibratedWay::new(&state.opened().setup, state.endpoints(), state.limits().on_resources());
    if state.report().degraded.iter().any(|loss| loss.kind == DegradedKind::ModelChanged) {
        way.models.push("another model before the run was resumed".to_owned());
    }
    way
}

/// Returns the bank of this name beside a batch.
fn beside(batch: &Path, bank: &str) -> Option<PathBuf> {
    Some(batch.parent()?.join(Path::new(bank).file_name()?))
}
