//! The rounds of votes that share a budget of tokens: which run gets one more sample, and with what work.
//!
//! The input is the journal of the shard, and the runs of each pass as they end. The output is the work of the next round, one run after
//! another. The ledger decides who draws. Here its names become work, and a run without work stops the batch: its task is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::batch::folder::{BatchError, BudgetNote};
use crate::batch::pacing::read_ledger;
use crate::batch::plan::Work;
use protocol::pacing::{BudgetRuling, PacedName, PacedRun, PacingLedger, RoundPlan, RunPosition};

/// The rounds of a shard that is under way.
pub(super) struct Rounds {
    ledger: PacingLedger,
    /// The work of each run that waits.
    waiting: BTreeMap<PacedName, Work>,
    /// The ruling that is carried out.
    ruling: Option<BudgetRuling>,
    /// The runs that it has yet to reach.
    left: BTreeSet<PacedName>,
}

impl Rounds {
    /// Reads the rounds that the journal of a shard has.
    ///
    /// Returns [`BatchError::Journal`] if it cannot be read, or has a permit that does not follow.
    pub(super) fn open(journal: &Path, note: &BudgetNote) -> Result<Self, BatchError> {
        let ledger = read_ledger(journal, note)?;
        Ok(Self { ledger, waiting: BTreeMap::new(), ruling: None, left: BTreeSet::new() })
    }

    /// Keeps the work of a run that waits.
    pub(super) fn keep(&mut self, work: Work) {
        self.waiting.insert(name_of(&work), work);
    }

    /// Notes how a pass has left a run. Returns the work unless the run waits, in which case it is kept.
    pub(super) fn note(&mut self, work: Work, run: PacedRun) -> Option<Work> {
        self.ledger.note(name_of(&work), run);
        match run.position {
            RunPosition::Waiting(_) => {
                self.keep(work);
                None
            }
            RunPosition::UnderWay | RunPosition::Ended => Some(work),
        }
    }

    /// Begins the next round, or the rest of one that was interrupted. Returns `None` if no run waits.
    ///
    /// Returns [`BatchError::Usage`] if a run has begun and its task is missing, so that no round can be planned or made whole.
    pub(super) fn begin_next(&mut self) -> Result<Option<&RoundPlan>, BatchError> {
        let plan = match self.ledger.begin_next() {
            Ok(Some(plan)) => plan,
            Ok(None) => return Ok(None),
            Err(why) => return Err(BatchError::Usage(format!("{why}; give the tasks with which it began"))),
        };
        if let Some(missing) = plan.runs.iter().find(|run| !self.waiting.contains_key(*run)) {
            let why = format!(
                "{missing} waits for its budget, and TASKS does not have it; give the tasks with which it began"
            );
            return Err(BatchError::Usage(why));
        }
        self.ruling = Some(plan.ruling);
        self.left.clone_from(&plan.runs);
        Ok(Some(plan))
    }

    /// Returns the work of the next run that the ruling is about, with the ruling.
    pub(super) fn next_run(&mut self) -> Option<(Work, BudgetRuling)> {
        let (name, ruling) = (self.left.pop_first()?, self.ruling?);
        let work = self.waiting.remove(&name)?;
        // The round has begun with this run, so its ruling is due.
        self.ledger.take(&name, ruling).ok()?;
        Some((work, ruling))
    }
}

/// Returns the name of a run in the ledger.
fn name_of(work: &Work) -> PacedName {
    let cell = work.cell();
    PacedName {
        task: cell.task.id.clone(),
        roleset: cell.variant.roleset.clone(),
        model: cell.variant.model.clone(),
        seed: cell.seed,
    }
}
