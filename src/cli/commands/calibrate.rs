//! `consensus calibrate`: makes a calibration from runs with known answers, and says at which risk answers can be given.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::json;

use crate::batch::GradedRuns;
use crate::calibration::{Calibration, CalibrationError, ItemsNote, RiskStep};
use crate::cli::args::{CalibrateArgs, Format};
use crate::cli::error::UsageError;
use crate::cli::one_column::require_one_column;
use crate::cli::output::Output;
use crate::core::{ExitCode, PROGRAM};
use crate::eval::{ARMS, EvalPlan, EvalResults};
use crate::files::write_whole;
use crate::text::{counted, escape};

/// The name of the file in the folder of the runs.
const FILE: &str = "calibration.json";

/// The mode of the file.
const PRIVATE: u32 = 0o600;

/// The risks that are printed besides the one that was given.
const RISKS: [f64; 5] = [0.01, 0.02, 0.05, 0.1, 0.2];

pub(crate) fn calibrate(args: &CalibrateArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let graded = GradedRuns::read(&batches(&args.dir)?, &args.only)?;
    if graded.columns.is_empty() {
        let dir = args.dir.display();
        return Err(UsageError(format!(
            "no run in `{dir}` has ended and fits; `consensus results {dir}` shows them"
        ))
        .into());
    }
    require_one_column(&graded.columns)?;
    if graded.withheld > 0 {
        return Err(CalibrationError::Withheld.into());
    }
    let GradedRuns { ways, runs, left_out, .. } = graded;
    let mut ways = ways.into_iter();
    let way = ways.next().ok_or(CalibrationError::TooFew { answered: 0, needed: 1 })?;
    if let Some(difference) = ways.find_map(|other| way.difference(&other, true)) {
        return Err(CalibrationError::Mixed(difference).into());
    }
    if left_out > 0 {
        output.warn(&format!(
            "{} failed, reached a limit or has no known answer, and is left out",
            counted(left_out, "run")
        ));
    }
    let made_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let calibration = Calibration::new(way, runs, PROGRAM, made_at)?;
    let path = args.output.clone().unwrap_or_else(|| args.dir.join(FILE));
    write_whole(&path, &calibration.to_json(), PRIVATE)
        .map_err(|why| UsageError(format!("cannot write `{}`: {why}", path.display())))?;
    tell(&calibration, args.risk, &path, output)
}

/// Returns the batches whose runs are used: the folder itself, or those of the arms of an evaluation.
fn batches(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !EvalPlan::is_in(dir) {
        return Ok(vec![dir.to_owned()]);
    }
    let plan = EvalPlan::load(dir)?;
    Ok(EvalResults::parts(dir, &plan).into_iter().map(|part| part.join(ARMS)).collect())
}

/// Prints at which risks answers can be given, and returns exit code 9 if the one that was asked for is not among them.
fn tell(calibration: &Calibration, risk: f64, path: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let mut risks: Vec<f64> = RISKS.into_iter().chain([risk]).collect();
    risks.sort_by(f64::total_cmp);
    risks.dedup();
    let found: Vec<(f64, Result<RiskStep, CalibrationError>)> =
        risks.iter().map(|risk| (*risk, calibration.threshold(*risk))).collect();
    let ItemsNote { runs, answered, right, fitted, certifying, .. } = calibration.items;
    if output.format == Format::Text {
        let way = &calibration.way;
        let models: BTreeSet<&str> = way.models.iter().map(String::as_str).collect();
        let models = models.into_iter().collect::<Vec<_>>().join(" and ");
        output.line(&escape::terminal(&format!(
            "{} on {models}, answers of the kind {}",
            way.roleset,
            way.kind.name()
        )))?;
        output.line(&format!("{answered} of {runs} tasks answered, {right} of them right"))?;
        output.line(&format!("{fitted} answers fitted, {} certify", counted(certifying, "task")))?;
        for (risk, found) in &found {
            output.line(&line(calibration, *risk, found))?;
        }
    } else {
        let row = |(risk, found): &(f64, Result<RiskStep, CalibrationError>)| match found {
            Ok(RiskStep { from, answered, errors, .. }) => json!({
                "risk": risk, "threshold": from, "answered": answered, "errors": errors,
                "coverage": f64::from(*answered) / certifying as f64,
            }),
            Err(why) => json!({
                "risk": risk, "threshold": null, "why": why.to_string(),
                "least_withheld": calibration.least_withheld(*risk),
            }),
        };
        let risks: Vec<_> = found.iter().map(row).collect();
        output.json(&json!({"file": path, "items": calibration.items, "risks": risks}))?;
    }
    output.status(&escape::terminal(&format!("calibration: {}", path.display())));
    let asked = found.iter().find(|(of, _)| of.total_cmp(&risk).is_eq());
    let Some((_, Err(why))) = asked else { return Ok(ExitCode::Success) };
    output.warn(&why.to_string());
    Ok(ExitCode::Missed)
}

/// Returns what a risk takes, in a line.
fn line(calibration: &Calibration, risk: f64, found: &Result<RiskStep, CalibrationError>) -> String {
    let risk_told = format!("risk {:>4.1} %:", risk * 100.0);
    let Ok(RiskStep { from, answered, errors, .. }) = found else {
        let least = match calibration.least_withheld(risk) {
            0.0 => String::new(),
            least => format!("; at least {:.0} % of the answers would have to be withheld", least * 100.0),
        };
        return format!("{risk_told} not certifiable{least}");
    };
    let coverage = f64::from(*answered) / calibration.items.certifying.max(1) as f64;
    format!(
        "{risk_told} answers from {:.2} % confidence on, {:.0} % of the tasks, {errors} of {answered} wrong",
        from.value() * 100.0,
        coverage * 100.0,
    )
}
