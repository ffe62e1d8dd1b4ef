//! A pilot: how good the samples of a bank are, for each model and kind of answer, in words and by programs.
//!
//! The input is the folder of a bank and the tasks with their right answers. The output is the counts from which
//! [`Pilot::programs_help`] concludes. The bank is verified on the way. No model is asked.

use std::collections::BTreeMap;
use std::path::Path;

use super::bank::BANK_ARMS;
use super::error::BatchError;
use super::matrix::text_is_right;
use super::task::TaskLine;
use super::verify::verify;
use crate::config::{Pilot, RightOf};
use crate::engine::RunState;
use crypto::Digest;
use protocol::text::CanonicalKind;
use protocol::vote::SampleReport;
use protocol::{Method, Outcome, Section};

/// The samples of one task by one model.
#[derive(Debug, Default)]
struct TaskSamples {
    words: Vec<GradedSample>,
    programs: Vec<GradedSample>,
}

/// One sample: the digest of its answer, if it has one, and whether it is right.
type GradedSample = (Option<Digest>, bool);

/// A model and a kind of answer.
type Group = (String, &'static str);

/// Returns the finding for each model and kind of answer in a bank.
///
/// # Errors
///
/// Returns [`BatchError`] if the bank cannot be read or does not verify.
pub fn pilots(bank: &Path, tasks: &BTreeMap<String, TaskLine>) -> Result<Vec<Pilot>, BatchError> {
    let mut groups: BTreeMap<Group, (CanonicalKind, BTreeMap<String, TaskSamples>)> = BTreeMap::new();
    verify(bank, &mut |state| {
        if !state.outcome().is_some_and(Outcome::is_final) {
            return Ok(());
        }
        let opened = state.opened();
        let Some(task) = opened.cell.as_ref().and_then(|cell| tasks.get(&cell.task)) else { return Ok(()) };
        let is_bank =
            opened.cell.as_ref().is_some_and(|cell| BANK_ARMS.iter().any(|(arm, _)| *arm == cell.arm));
        if !is_bank || opened.setup.task.prompt != task.prompt {
            return Ok(());
        }
        let rule = &opened.setup.canonical;
        for sample in samples(state) {
            let model = state.endpoints()[sample.call.agent].model().to_owned();
            let group = (model, rule.kind.name());
            let (_, by_task) = groups.entry(group).or_insert_with(|| (rule.kind, BTreeMap::new()));
            let of_task = by_task.entry(task.id.clone()).or_default();
            let list = match sample.method {
                Method::Words => &mut of_task.words,
                Method::Program => &mut of_task.programs,
            };
            let is_right = text_is_right(task, rule, sample.text.as_deref(), sample.sha256);
            list.push((sample.sha256, is_right));
        }
        Ok(())
    })?;
    let found = groups.into_iter().map(|((model, _), (kind, by_task))| found(model, kind, &by_task));
    Ok(found.collect())
}

/// Returns every sample of a run of `vote` that counts.
fn samples(state: &RunState) -> Vec<SampleReport> {
    match state.report().section {
        Section::Vote(section) => section.samples.into_iter().filter(|sample| sample.counts).collect(),
        Section::Pair(_)
        | Section::Council(_)
        | Section::Panel(_)
        | Section::Approval(_)
        | Section::MapReduce(_) => Vec::new(),
    }
}

fn found(model: String, kind: CanonicalKind, by_task: &BTreeMap<String, TaskSamples>) -> Pilot {
    let mut pilot = Pilot {
        model,
        kind,
        tasks: 0,
        words: RightOf::default(),
        programs: RightOf::default(),
        equal_words: RightOf::default(),
        equal_unlike: RightOf::default(),
    };
    // A task with one kind of samples alone would make that kind look better or worse than the other one.
    let has_both = |task: &&TaskSamples| !task.words.is_empty() && !task.programs.is_empty();
    for TaskSamples { words, programs } in by_task.values().filter(has_both) {
        pilot.tasks += 1;
        for (_, is_right) in words {
            pilot.words.count(*is_right);
        }
        for (_, is_right) in programs {
            pilot.programs.count(*is_right);
        }
        let equal = |(one, is_right): &GradedSample, (other, _): &GradedSample| {
            one.filter(|_| one == other).map(|_| *is_right)
        };
        for (at, one) in words.iter().enumerate() {
            words[at + 1..]
                .iter()
                .filter_map(|other| equal(one, other))
                .for_each(|is| pilot.equal_words.count(is));
            programs.iter().filter_map(|other| equal(one, other)).for_each(|is| pilot.equal_unlike.count(is));
        }
    }
    pilot
}
