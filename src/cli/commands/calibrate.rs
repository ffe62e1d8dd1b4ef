//! `consensus calibrate`: makes a calibration from runs with known answers, and says at which risk answers can be given.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::calibrate_programs::calibrate_programs;
use super::chosen_runs::require_one_variant;
use crate::batch::{GradedRuns, RunFilter, ShardStatus, is_batch, status, without_results};
use crate::calibration::{
    ANSWERS_MIN, CalibratedWay, Calibration, CalibrationError, ItemsNote, KnownParts, RiskStep,
};
use crate::cli::args::{CalibrateArgs, Format};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::eval::{ARMS, EvalPlan, EvalResults, tasks_file};
use crate::files::{HeldFolder, LARGE_BYTES_MAX, read_text, write_whole};
use crate::program::PROGRAM;
use protocol::core::ExitCode;
use protocol::text::{counted, escape, percent};

/// The name of the file in the folder of the runs.
const FILE: &str = "calibration.json";

/// The mode of the file.
const PRIVATE: u32 = 0o600;

/// The risks that are printed besides the one that was given.
const RISKS: [f64; 5] = [0.01, 0.02, 0.05, 0.1, 0.2];

pub(crate) fn calibrate(args: &CalibrateArgs, output: &Output) -> anyhow::Result<ExitCode> {
    if let Some(tasks) = &args.programs {
        return calibrate_programs(args, tasks, output);
    }
    if args.form.is_given() {
        let why = "--map, --answer-regex and --grader are about the tasks of --programs";
        return Err(UsageError(why.to_owned()).into());
    }
    let GradedRuns { ways, runs, left_out, later_seeds, .. } = graded_runs(&args.dir, &args.only)?;
    if later_seeds > 0 {
        output.status(&format!(
            "one run of each task is used; {} with later seeds are not",
            counted(later_seeds, "run")
        ));
    }
    let way = one_way(ways)?;
    if left_out > 0 {
        output.warn(&format!(
            "left out: {} that failed or whose right answer is not known",
            counted(left_out, "run")
        ));
    }
    if way.extras.contains(&None) {
        output.warn("the `body` of the provider is not known, because the runs were played from a bank; a run with any other one will be accepted");
    }
    let path = args.output.clone().unwrap_or_else(|| args.dir.join(FILE));
    require_own(&path)?;
    let made_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let known = runs.len();
    let mut calibration = Calibration::new(way, runs, PROGRAM, made_at)?;
    calibration.only = args.only.iter().map(RunFilter::text).collect();
    let repeated = known - calibration.items.runs;
    if repeated > 0 {
        output.status(&format!(
            "a question counts once; {} that ask one again are not used",
            counted(repeated, "run")
        ));
    }
    // A batch that begins in the folder meanwhile would take the unfinished file for that of a killed process.
    let held = HeldFolder::wait(&args.dir);
    write_whole(&path, &calibration.to_json(), PRIVATE)
        .map_err(|why| UsageError(format!("cannot write `{}`: {why}", path.display())))?;
    drop(held);
    tell(&calibration, args.risk, &path, output)
}

/// Makes a calibration again from the runs of a batch or an evaluation in `dir`.
pub(super) fn calibrated_again(dir: &Path, known: &Calibration) -> anyhow::Result<Calibration> {
    let only: Result<Vec<RunFilter>, String> = known.only.iter().map(|text| RunFilter::parse(text)).collect();
    let GradedRuns { ways, runs, .. } = graded_runs(dir, &only.map_err(CalibrationError::Format)?)?;
    Ok(Calibration::new(one_way(ways)?, runs, PROGRAM, known.made_at.clone())?)
}

/// Reads the runs of a batch or an evaluation in `dir` that fit a choice. They have all ended, and are of one column.
fn graded_runs(dir: &Path, only: &[RunFilter]) -> anyhow::Result<GradedRuns> {
    let batches = batches(dir)?;
    for batch in &batches {
        if !is_batch(batch) && EvalPlan::is_in(dir) {
            return Err(CalibrationError::Incomplete(dir.display().to_string()).into());
        }
        if !status(batch)?.iter().all(ShardStatus::has_ended) {
            return Err(CalibrationError::Incomplete(batch.display().to_string()).into());
        }
    }
    let graded = GradedRuns::read(&batches, only, EvalPlan::is_in(dir))?;
    if graded.without_result > 0 {
        return Err(UsageError(without_results(graded.without_result)).into());
    }
    if graded.variants.is_empty() {
        let shown = dir.display();
        let why = if only.is_empty() {
            format!("no run in `{shown}` has ended")
        } else {
            let batch = batches.first().map_or(dir, PathBuf::as_path).display();
            format!(
                "no run in `{shown}` has ended and fits --only; `consensus results {batch}` shows its runs"
            )
        };
        return Err(UsageError(why).into());
    }
    require_one_variant(&graded.variants)?;
    if graded.calibrated > 0 {
        return Err(CalibrationError::Withheld.into());
    }
    Ok(graded)
}

/// Returns the way in which all runs were made.
fn one_way(ways: Vec<CalibratedWay>) -> Result<CalibratedWay, CalibrationError> {
    let mut ways = ways.into_iter();
    let way = ways.next().ok_or(CalibrationError::TooFew { answered: 0, needed: ANSWERS_MIN })?;
    match ways.find_map(|other| way.difference(&other, KnownParts::All)) {
        Some(difference) => Err(CalibrationError::Mixed(difference)),
        None => Ok(way),
    }
}

/// Refuses to write over a file that is no calibration.
fn require_own(path: &Path) -> Result<(), UsageError> {
    let why = match std::fs::metadata(path) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Ok(there) if !there.is_file() => "it is no file".to_owned(),
        _ => match read_text(path, LARGE_BYTES_MAX).map(|text| Calibration::parse(&text)) {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(why)) => why.to_string(),
            Err(why) => format!("it cannot be read: {why}"),
        },
    };
    Err(UsageError(format!("`{}` is there, and {why}; name another file", path.display())))
}

/// Returns the batches whose runs are used: the folder itself, or those of the arms of an evaluation.
fn batches(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !EvalPlan::is_in(dir) {
        return Ok(vec![dir.to_owned()]);
    }
    let plan = EvalPlan::load(dir)?;
    // A part without a task has no batch.
    let is_empty = |part: &PathBuf| tasks_file(part).metadata().is_ok_and(|file| file.len() == 0);
    let parts = EvalResults::parts(dir, &plan).into_iter().filter(|part| !is_empty(part));
    Ok(parts.map(|part| part.join(ARMS)).collect())
}

/// Prints at which risks answers can be given, and returns exit code 9 if the one that was asked for is not among them.
fn tell(calibration: &Calibration, risk: f64, path: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let mut risks: Vec<f64> = RISKS.into_iter().chain([risk]).collect();
    risks.sort_by(f64::total_cmp);
    risks.dedup();
    if output.format == Format::Text {
        about(calibration).iter().try_for_each(|line| output.line(&escape::terminal(line)))?;
        risks.iter().try_for_each(|risk| output.line(&line(calibration, *risk)))?;
    } else {
        let risks: Vec<Value> = risks.iter().map(|risk| row(calibration, *risk)).collect();
        output.json(&json!({"file": path, "items": calibration.items, "risks": risks}))?;
    }
    output.status(&escape::terminal(&format!("calibration: {}", path.display())));
    let Err(why) = calibration.threshold(risk) else { return Ok(ExitCode::Success) };
    output.warn(&why.to_string());
    Ok(ExitCode::Missed)
}

/// Returns the lines about the runs of a calibration.
fn about(calibration: &Calibration) -> [String; 3] {
    let way = &calibration.way;
    let models: BTreeSet<&str> = way.models.iter().map(String::as_str).collect();
    let models = models.into_iter().collect::<Vec<_>>().join(" and ");
    let ItemsNote { runs, answered, right, fitted, certifying, .. } = calibration.items;
    let certified = calibration.steps.last().map_or(0, |step| step.answered);
    [
        format!("{} on {models}, answers of the kind {}", way.roleset, way.kind.name()),
        format!("{}: {answered} with an answer, {right} of them right", counted(runs, "task")),
        format!(
            "fitted: {} of {}; certifying: {} of {}",
            counted(fitted, "answer"),
            counted(runs - certifying, "task"),
            counted(certified, "answer"),
            counted(certifying, "task")
        ),
    ]
}

/// Returns a risk for programs.
fn row(calibration: &Calibration, risk: f64) -> Value {
    match calibration.threshold(risk) {
        Ok(step) => json!({
            "risk": risk, "threshold": step.from, "answered": step.answered, "errors": step.errors,
            "bound": step.bound(), "coverage": coverage(calibration, &step),
        }),
        Err(why) => json!({
            "risk": risk, "threshold": null, "why": why.to_string(),
            "least_withheld": calibration.least_withheld(risk),
        }),
    }
}

/// Returns a risk in a line.
fn line(calibration: &Calibration, risk: f64) -> String {
    match calibration.threshold(risk) {
        Ok(step) => format!(
            "risk {}: from a confidence of {} on, {:.0} % of tasks answered, {} of {} wrong, so at most {} of such answers are wrong",
            percent(risk),
            percent(step.from.value()),
            coverage(calibration, &step) * 100.0,
            step.errors,
            step.answered,
            percent(step.bound()),
        ),
        Err(CalibrationError::NotCertifiable { why, .. }) => {
            let least = calibration.least_withheld(risk);
            let least = if least < 0.005 {
                String::new()
            } else {
                format!("; at least {:.0} % of answers would be withheld", least * 100.0)
            };
            format!("risk {}: not certifiable, {why}{least}", percent(risk))
        }
        Err(why) => why.to_string(),
    }
}

/// Returns the share of the certifying tasks that are answered.
fn coverage(calibration: &Calibration, step: &RiskStep) -> f64 {
    f64::from(step.answered) / calibration.items.certifying.max(1) as f64
}
