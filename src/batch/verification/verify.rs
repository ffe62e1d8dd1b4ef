//! The verification of a batch: everything that it claims is derived again from its journals and compared.
//!
//! The input is a folder. The output is how many runs hold, or the first fault. Runs are followed through a journal record by
//! record, so only runs that have not ended are in memory.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use serde::Serialize;
use uuid::Uuid;

use super::evidence::ResultLines;
use super::noted_variants::NotedVariant;
use crate::batch::folder::manifest::noted_budgets;
use crate::batch::folder::{BatchError, BudgetNote, ShardOf, layout, require_no_stray_file};
use crate::batch::pacing::take_record;
use crate::batch::plan::run_id;
use crate::batch::store::{OPENED_TWICE, is_live};
use crate::engine::RunState;
use crate::journal::{Entry, GapRule, Record, RemovedLines, read_with_gaps, require_own_build};
use crypto::Digest;
use protocol::Outcome;
use protocol::pacing::PacingLedger;

/// The fault of a run in the journal of a batch that is of no cell.
pub(super) const NO_CELL: &str = "its run names no task of a batch";

/// The fault of a run that shares a budget which the manifest does not have.
const NO_BUDGET: &str = "its run shares a budget of tokens, and `batch.json` has no budget of its arm";

/// The result of a verification.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct VerifiedBatch {
    /// The runs whose records follow from each other and lead to their line of results.
    pub ended: u64,
    /// The runs that have ended without a line of results yet.
    #[serde(rename = "untold")]
    pub unlisted: u64,
    /// Those of them whose shard no process is running, so that their lines are lost.
    #[serde(skip)]
    pub without_result: u64,
    /// The runs that are under way, or were cut off.
    pub open: u64,
    /// The shards without any file.
    pub absent_shards: u64,
    /// The shards from whose journals runs were removed.
    pub shards_with_gaps: u64,
    /// The lines that were removed.
    #[serde(flatten)]
    pub removed: RemovedLines,
    /// The runs with a calibration.
    #[serde(skip)]
    pub calibrated: u64,
    /// The SHA-256 of each plan of an evaluation that runs were made for.
    #[serde(skip)]
    pub plans: BTreeSet<Digest>,
}

impl VerifiedBatch {
    fn count(&mut self, run: &ReplayedState) {
        let has_ended = run.state.outcome().is_some_and(|outcome| *outcome != Outcome::Interrupted);
        if run.is_reported {
            self.ended += 1;
        } else if has_ended {
            self.unlisted += 1;
        } else {
            self.open += 1;
        }
    }
}

/// A run that can still continue.
struct ReplayedState {
    state: RunState,
    /// The SHA-256 of its last line.
    head: Digest,
    /// Whether its line of results states its end, and no record has come since then.
    is_reported: bool,
}

/// Verifies the batch in a folder. The function `examine` sees each run that has ended, for good or at a limit, and may find a
/// fault that records alone do not show.
///
/// Returns [`BatchError`] for a broken chain, an impossible record, a line of results that differs, or a fault that `examine` finds. The
/// same holds for a permit that does not follow from the records before it. It holds for a variant of the manifest that its runs
/// contradict, and for a file of a shard that the batch does not count.
pub fn verify(
    folder: &Path,
    examine: &mut dyn FnMut(&RunState) -> Result<(), String>,
) -> Result<VerifiedBatch, BatchError> {
    verify_with_gaps(folder, GapRule::OfServer, examine)
}

/// Verifies the batch in a folder, and takes those gaps in its journals that this rule allows.
///
/// Returns the errors of [`verify`].
pub fn verify_with_gaps(
    folder: &Path,
    gaps: GapRule,
    examine: &mut dyn FnMut(&RunState) -> Result<(), String>,
) -> Result<VerifiedBatch, BatchError> {
    let count = layout::count(folder)?;
    let mut verification = BatchVerification {
        folder,
        gaps,
        verified: VerifiedBatch::default(),
        variants: NotedVariant::read_all(folder)?,
        budgets: noted_budgets(folder)?,
        examine,
    };
    for index in 0..count {
        verification.add_shard(ShardOf { index, count })?;
    }
    let BatchVerification { verified, variants, .. } = verification;
    for variant in variants {
        variant.require_confirmed(folder)?;
    }
    require_no_stray_file(folder, count)?;
    Ok(verified)
}

/// A verification that is under way.
struct BatchVerification<'a> {
    folder: &'a Path,
    gaps: GapRule,
    verified: VerifiedBatch,
    variants: Vec<NotedVariant>,
    budgets: Vec<BudgetNote>,
    examine: &'a mut dyn FnMut(&RunState) -> Result<(), String>,
}

impl BatchVerification<'_> {
    fn add_shard(&mut self, which: ShardOf) -> Result<(), BatchError> {
        let (results, journal) =
            (layout::results_file(self.folder, which.index), layout::journal_file(self.folder, which.index));
        require_own_build(&journal)?;
        let (was_in_use, unlisted) = (is_live(&journal) != Some(false), self.verified.unlisted);
        let mut claims = ResultLines::read(&results)?;
        if !journal.exists() {
            self.verified.absent_shards += 1;
            return claims.require_all_found(&journal);
        }
        let mut open: HashMap<Uuid, ReplayedState> = HashMap::new();
        let mut ended: HashSet<Uuid> = HashSet::new();
        let mut differs: Option<BatchError> = None;
        let mut ledgers = new_ledgers(&self.budgets);
        let removed = read_with_gaps(&journal, self.gaps, |record: Record, line| {
            let run: Uuid =
                record.run.parse().map_err(|_| "its `run` is not the id of a batch run".to_owned())?;
            if ended.contains(&run) {
                return Err(OPENED_TWICE.to_owned());
            }
            let head = open.get(&run).map_or(Digest::ZERO, |this| this.head);
            if record.run_prev.is_some_and(|before| before != head) {
                return Err(
                    "its `run_prev` is not the digest of the line before it of the same run".to_owned()
                );
            }
            let this = match open.entry(run) {
                Slot::Occupied(slot) => {
                    let this = slot.into_mut();
                    this.state.apply(&record).map_err(|why| why.to_string())?;
                    this
                }
                Slot::Vacant(slot) => {
                    let state = RunState::open(&record).map_err(|why| why.to_string())?;
                    require_own_id(run, &state, which)?;
                    self.begin(&state);
                    slot.insert(ReplayedState { state, head, is_reported: false })
                }
            };
            take_permit(&mut ledgers, &this.state, &record.event)?;
            (this.head, this.is_reported) = (line.sha256, false);
            if let Entry::Stopped { outcome } = &record.event {
                match claims.check(run, &this.state, line.sha256) {
                    Ok(is_reported) => this.is_reported = is_reported,
                    // The first difference is the fault, unless the journal itself is damaged further on.
                    Err(why) => {
                        differs.get_or_insert(why);
                    }
                }
                // A run that has ended for good is dropped from memory, but for its id.
                if outcome.is_final() {
                    (self.examine)(&this.state)?;
                    self.verified.count(this);
                    open.remove(&run);
                    ended.insert(run);
                }
            }
            Ok(())
        })?;
        if let Some(why) = differs {
            return Err(why);
        }
        self.verified.shards_with_gaps += u64::from(removed.places > 0);
        self.verified.removed.merge(removed);
        let mut open: Vec<(Uuid, ReplayedState)> = open.into_iter().collect();
        open.sort_by_key(|(run, _)| *run);
        for (_, run) in &open {
            if matches!(run.state.outcome(), Some(Outcome::Budget { .. })) {
                let examined = (self.examine)(&run.state);
                examined.map_err(|why| BatchError::Stray { path: journal.clone(), why })?;
            }
            self.verified.count(run);
        }
        // A process that has run the shard meanwhile adds the lines of its runs after their records.
        if !was_in_use && is_live(&journal) == Some(false) {
            self.verified.without_result += self.verified.unlisted - unlisted;
        }
        claims.require_all_found(&journal)
    }

    /// Takes the first record of a run.
    fn begin(&mut self, state: &RunState) {
        let opened = state.opened();
        for variant in &mut self.variants {
            variant.compare(opened);
        }
        self.verified.calibrated += u64::from(opened.calibration.is_some());
        self.verified.plans.extend(opened.cell.as_ref().and_then(|cell| cell.plan));
    }
}

/// Returns an empty ledger for each budget of a shard, by the name of its arm.
fn new_ledgers(budgets: &[BudgetNote]) -> BTreeMap<String, PacingLedger> {
    let ledgers = budgets.iter().map(|note| (note.arm.clone(), PacingLedger::new(note.tokens_a_shard)));
    ledgers.collect()
}

/// Takes a record into the ledger of its budget, if its run shares one.
///
/// Returns the fault of a permit that does not follow, or of a run whose budget the manifest does not have.
fn take_permit(
    ledgers: &mut BTreeMap<String, PacingLedger>,
    state: &RunState,
    entry: &Entry,
) -> Result<(), String> {
    let opened = state.opened();
    if !opened.setup.params.is_paced() {
        return Ok(());
    }
    let arm = opened.cell.as_ref().map(|cell| cell.arm.as_str()).unwrap_or_default();
    let ledger = ledgers.get_mut(arm).ok_or(NO_BUDGET)?;
    take_record(ledger, state, entry)
}

/// Checks that the id of a run follows from its record, and that the run belongs to this shard.
fn require_own_id(run: Uuid, state: &RunState, which: ShardOf) -> Result<(), String> {
    if !which.has(run) {
        return Err(format!("its run does not belong to shard {which}"));
    }
    let setup = &state.opened().setup;
    let cell = state.opened().cell.as_ref().ok_or(NO_CELL)?;
    if run_id(&cell.task, &setup.roleset, &cell.model, &cell.arm, setup.seed) != run {
        return Err("its run has the id of another task, model, arm or seed".to_owned());
    }
    Ok(())
}
