//! Records of runs, as a ledger takes them.

use std::collections::HashMap;
use std::path::Path;

use crate::batch::folder::{BatchError, BudgetNote};
use crate::engine::RunState;
use crate::journal::{Entry, Record, RunSpec, read_shared};
use protocol::Outcome;
use protocol::pacing::{BudgetRuling, PacingLedger};

/// Takes a record of a run, where `state` is the state that follows from the record. A run that is not paced changes nothing.
///
/// Returns the fault of a permit, or of the end of permits, that does not follow from the records before it.
pub(in crate::batch) fn take_record(
    ledger: &mut PacingLedger,
    state: &RunState,
    entry: &Entry,
) -> Result<(), String> {
    let Some((name, run)) = state.paced() else { return Ok(()) };
    if let Some(ruling) = ruling_of(entry) {
        ledger.take(&name, ruling).map_err(|why| why.to_string())?;
    }
    ledger.note(name, run);
    Ok(())
}

fn ruling_of(entry: &Entry) -> Option<BudgetRuling> {
    match entry {
        Entry::Permitted(permit) => Some(BudgetRuling::Permit(*permit)),
        Entry::Closed(end) => Some(BudgetRuling::Close(*end)),
        Entry::Opened(_)
        | Entry::Asked(_)
        | Entry::Replied(_)
        | Entry::Lost(_)
        | Entry::Found(_)
        | Entry::Executed(_)
        | Entry::LeftOut(_)
        | Entry::Stopped { .. }
        | Entry::Resumed { .. } => None,
    }
}

/// Reads the ledger of a budget from the journal of a shard.
///
/// Returns [`BatchError::Journal`] if the journal cannot be read, or has a permit that does not follow.
pub(in crate::batch) fn read_ledger(journal: &Path, note: &BudgetNote) -> Result<PacingLedger, BatchError> {
    let mut ledger = PacingLedger::new(note.tokens_a_shard);
    // The runs that can still continue.
    let mut open: HashMap<String, RunState> = HashMap::new();
    read_shared(journal, |record: Record, _| {
        if let Entry::Opened(spec) = &record.event
            && shares(spec, note)
        {
            let state = RunState::open(&record).map_err(|why| why.to_string())?;
            take_record(&mut ledger, &state, &record.event)?;
            open.insert(record.run, state);
            return Ok(());
        }
        let Some(state) = open.get_mut(&record.run) else { return Ok(()) };
        state.apply(&record).map_err(|why| why.to_string())?;
        take_record(&mut ledger, state, &record.event)?;
        if state.outcome().is_some_and(Outcome::is_final) {
            open.remove(&record.run);
        }
        Ok(())
    })?;
    Ok(ledger)
}

/// Returns true if a run shares a budget.
fn shares(spec: &RunSpec, note: &BudgetNote) -> bool {
    spec.setup.params.is_paced() && spec.cell.as_ref().is_some_and(|cell| cell.arm == note.arm)
}
