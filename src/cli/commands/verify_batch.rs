//! The part of `consensus verify` that takes folders of many runs: a batch, the plan of its evaluation, and a calibration that was made
//! of such runs.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;

use super::calibrate::calibrated_again;
use super::not_covered::{self, RecordKind};
use super::verified_run::require_output_digests;
use crate::batch::{VerifiedBatch, describe_removals, verify_with_gaps, without_results};
use crate::calibration::{Calibration, CalibrationError};
use crate::cli::args::{Format, VerifyArgs};
use crate::cli::error::{IntegrityError, UsageError};
use crate::cli::output::Output;
use crate::cli::reexecution::{ExecutionCounts, Reexecutor};
use crate::config::FileConfig;
use crate::eval::EvalPlan;
use crate::files::{LARGE_BYTES_MAX, is_damage, read_own};
use crate::journal::GapRule;
use crypto::Digest;
use protocol::Outcome;
use protocol::core::ExitCode;

/// The plan of an evaluation, as far as the runs that name it tell.
#[derive(Clone, Copy, Debug)]
enum NamedPlan {
    /// The runs belong to no evaluation.
    NoName,
    /// It is not beside the batch.
    Missing,
    Same,
}

pub(super) fn verify_batch(args: &VerifyArgs, folder: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let file = FileConfig::load_to_read()?;
    let (mut again, mut reexecutor) = (ExecutionCounts::default(), Reexecutor::new(args, &file));
    let gaps = if args.with_gaps { GapRule::Any } else { GapRule::OfServer };
    let verified = verify_with_gaps(folder, gaps, &mut |state| {
        require_output_digests(state).map_err(|why| why.to_string())?;
        let is_final = state.outcome().is_some_and(Outcome::is_final);
        // The tables of redacted runs stay where the batch was run.
        if is_final && !state.opened().redacted {
            again.add(reexecutor.run(state, folder).map_err(|why| why.to_string())?);
        }
        Ok(())
    })?;
    if verified.without_result > 0 {
        return Err(IntegrityError(without_results(verified.without_result)).into());
    }
    let plan = compare_plan(folder, &verified)?;
    let calibration = match &args.calibration {
        Some(file) => Some(require_same_calibration(file, folder)?),
        None => None,
    };
    let is_calibrated = verified.calibrated > 0;
    let kind = RecordKind { is_batch: true, is_calibrated, is_paced: false };
    if output.format != Format::Text {
        output.json(&json!({
            "verified": true,
            "batch": verified,
            "plan": plan.name(),
            "calibration": calibration,
            "checks": again.checks,
            "checks_run_again": again.checks_again,
            "programs": again.programs,
            "programs_run_again": again.programs_again,
            "not_covered": not_covered::names(kind),
        }))?;
        return Ok(ExitCode::Success);
    }
    output.line(&format!("verified: all {} results match their journals", verified.ended))?;
    output.lines(describe_gaps(&verified, plan))?;
    output.lines(again.lines())?;
    if let Some(sha256) = calibration {
        output.line(&describe_calibration(sha256))?;
    }
    output.lines(not_covered::lines(kind))?;
    Ok(ExitCode::Success)
}

/// Verifies a calibration that was made of the runs of an evaluation, and these runs.
pub(super) fn verify_calibration(file: &Path, dir: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let sha256 = require_same_calibration(file, dir)?;
    let kind = RecordKind { is_batch: true, ..RecordKind::default() };
    if output.format != Format::Text {
        output.json(
            &json!({"verified": true, "calibration": sha256, "not_covered": not_covered::names(kind)}),
        )?;
        return Ok(ExitCode::Success);
    }
    output.line("verified: all results of the arms match their journals")?;
    output.line(&describe_calibration(sha256))?;
    output.lines(not_covered::lines(kind))?;
    Ok(ExitCode::Success)
}

fn describe_calibration(sha256: Digest) -> String {
    format!("  calibration  sha256 {sha256}, which these runs make again")
}

/// Returns the lines about the runs of a batch that are not in its results, and about its plan.
fn describe_gaps(verified: &VerifiedBatch, plan: NamedPlan) -> Vec<String> {
    let mut lines = Vec::new();
    if verified.unlisted > 0 {
        lines.push(format!(
            "  {} more ended, and the process that made them has yet to add their results",
            verified.unlisted
        ));
    }
    if verified.open > 0 {
        lines.push(format!("  {} more under way or cut off", verified.open));
    }
    if let Some(words) = describe_removals(verified.removed) {
        lines.push(format!("  {words}"));
    }
    if verified.absent_shards > 0 {
        lines.push(format!("  {} shards have not begun, or are missing here", verified.absent_shards));
    }
    match plan {
        NamedPlan::NoName => {}
        NamedPlan::Missing => {
            lines.push("  plan         plan.json is not beside the batch, and was not compared".to_owned());
        }
        NamedPlan::Same => lines.push("  plan         plan.json is the one that the runs name".to_owned()),
    }
    lines
}

impl NamedPlan {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::NoName => None,
            Self::Missing => Some("missing"),
            Self::Same => Some("same"),
        }
    }
}

/// Compares the plan of an evaluation with the plans that the runs of its batch name.
fn compare_plan(folder: &Path, verified: &VerifiedBatch) -> anyhow::Result<NamedPlan> {
    if verified.plans.is_empty() {
        return Ok(NamedPlan::NoName);
    }
    let Some(evaluation) = EvalPlan::folder_of(folder) else { return Ok(NamedPlan::Missing) };
    let named: BTreeSet<Option<Digest>> = verified.plans.iter().copied().map(Some).collect();
    EvalPlan::load(&evaluation)?.require_made_for(&evaluation, &named)?;
    Ok(NamedPlan::Same)
}

/// Makes a calibration again of the runs in `dir`, and compares the two. Returns the SHA-256 of the file.
fn require_same_calibration(file: &Path, dir: &Path) -> anyhow::Result<Digest> {
    let bytes = match read_own(file, LARGE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(why) if is_damage(&why) => return Err(other_calibration(file, &why.to_string()).into()),
        Err(why) => {
            let why = format!("the calibration `{}` cannot be read: {why}", file.display());
            return Err(UsageError(why).into());
        }
    };
    let known = match Calibration::parse(&String::from_utf8_lossy(&bytes)) {
        Ok(known) => known,
        Err(why @ CalibrationError::OtherBuild(_)) => return Err(why.into()),
        Err(why) => return Err(other_calibration(file, &why.to_string()).into()),
    };
    let again =
        calibrated_again(dir, &known).map_err(|why| match why.downcast_ref::<CalibrationError>() {
            // No calibration can have been made of these runs.
            Some(
                CalibrationError::Format(_)
                | CalibrationError::TooFew { .. }
                | CalibrationError::Mixed(_)
                | CalibrationError::Withheld,
            ) => other_calibration(file, &why.to_string()).into(),
            Some(_) | None => why,
        })?;
    match known.difference(&again) {
        Some(part) => Err(other_calibration(file, &format!("its `{part}` is not what they give")).into()),
        None => Ok(Digest::new(&bytes)),
    }
}

fn other_calibration(file: &Path, why: &str) -> IntegrityError {
    IntegrityError(format!("`{}` is not the calibration of these runs: {why}", file.display()))
}
