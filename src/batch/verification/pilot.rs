//! A pilot: how good the samples of a bank are, for each model and kind of answer, in words and by programs.
//!
//! The input is the folder of a bank and the tasks with their right answers. The output is the counts from which
//! [`Pilot::programs_help`] concludes. The bank is verified on the way. No model is asked.

use std::collections::BTreeMap;
use std::path::Path;

use super::verify::verify;
use crate::batch::folder::BatchError;
use crate::batch::plan::{BANK_ARMS, text_is_right};
use crate::batch::tasks::TaskLine;
use crate::config::{Pilot, RightOf};
use crate::engine::RunState;
use crypto::Digest;
use protocol::sampling::SampleReport;
use protocol::text::CanonicalKind;
use protocol::{Method, Outcome, Section};

/// The samples of one task by one model.
#[derive(Debug, Default)]
struct TaskSamples {
    words: Vec<GradedSample>,
    programs: Vec<GradedSample>,
}

/// The samples of the tasks that are of one kind of answer.
struct KindSamples {
    kind: CanonicalKind,
    by_task: BTreeMap<String, TaskSamples>,
}

/// One sample: the digest of its answer, if it has one, and whether it is right.
type GradedSample = (Option<Digest>, bool);

/// Returns the finding for each model and kind of answer in a bank.
///
/// Returns [`BatchError`] if the bank cannot be read or does not verify.
pub fn pilots(bank: &Path, tasks: &BTreeMap<String, TaskLine>) -> Result<Vec<Pilot>, BatchError> {
    // By the model and the name of the kind.
    let mut groups: BTreeMap<(String, &'static str), KindSamples> = BTreeMap::new();
    verify(bank, &mut |state| {
        if !state.outcome().is_some_and(Outcome::is_final) {
            return Ok(());
        }
        let opened = state.opened();
        let Some(cell) = &opened.cell else { return Ok(()) };
        let Some(task) = tasks.get(&cell.task) else { return Ok(()) };
        let is_bank = BANK_ARMS.iter().any(|(arm, _)| *arm == cell.arm);
        if !is_bank || opened.setup.task.prompt != task.prompt {
            return Ok(());
        }
        let rule = &opened.setup.canonical;
        for sample in samples(state) {
            let model = state.endpoints()[sample.call.agent].model().to_owned();
            let group = (model, rule.kind.name());
            let samples = groups
                .entry(group)
                .or_insert_with(|| KindSamples { kind: rule.kind, by_task: BTreeMap::new() });
            let of_task = samples.by_task.entry(task.id.clone()).or_default();
            let list = match sample.method {
                Method::Words => &mut of_task.words,
                Method::Program => &mut of_task.programs,
            };
            let is_right = text_is_right(task, rule, sample.text.as_deref(), sample.sha256);
            list.push((sample.sha256, is_right));
        }
        Ok(())
    })?;
    Ok(groups.into_iter().map(|((model, _), samples)| count(model, &samples)).collect())
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

/// Counts the right samples of a model, and those of two samples with the same answer.
fn count(model: String, samples: &KindSamples) -> Pilot {
    let mut pilot = Pilot {
        model,
        kind: samples.kind,
        tasks: 0,
        words: RightOf::default(),
        programs: RightOf::default(),
        equal_words: RightOf::default(),
        equal_unlike: RightOf::default(),
    };
    for TaskSamples { words, programs } in samples.by_task.values() {
        // A task with one kind of samples alone would make that kind look better or worse than the other one.
        if words.is_empty() || programs.is_empty() {
            continue;
        }
        pilot.tasks += 1;
        for (_, is_right) in words {
            pilot.words.count(*is_right);
        }
        for (_, is_right) in programs {
            pilot.programs.count(*is_right);
        }
        for (at, (one, is_right)) in words.iter().enumerate() {
            // A sample without an answer equals no other one.
            if one.is_none() {
                continue;
            }
            for (other, _) in &words[at + 1..] {
                if one == other {
                    pilot.equal_words.count(*is_right);
                }
            }
            for (other, _) in programs {
                if one == other {
                    pilot.equal_unlike.count(*is_right);
                }
            }
        }
    }
    pilot
}
