//! The flags of `consensus eval`.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use super::batch::{FlowArgs, ReuseArgs, choose_retry, parse_shard, retried_outcomes};
use super::run::{ParamArgs, canonical_kinds};
use super::shared::{CalibrationArgs, LimitArgs, RolesetsArgs, ScriptedArgs, ServerArgs};
use super::task_form::TaskFormArgs;
use crate::batch::ShardOf;
use crate::cli::command_words::command_words;
use crate::eval::{ArmSettings, ArmSpec, Bar, Bars, EvalRequest, MAJORITY_MAX};
use crate::run::RolesetSettings;
use protocol::OutcomeKind;
use protocol::text::CanonicalKind;

const AFTER_HELP: &str = "\
An arm is a way of answering. It is `single` (one sample in words), `sc@K` (the majority of K samples), `vote` (the vote that suits the \
kind of answer), or a roleset, such as `pair:solver_checker`. Settings follow, separated by commas: `model=NAME`, and the flags of \
`consensus batch` on the protocol, votes, checks, programs and a calibration, if they have a value, without their dashes.

Each arm is compared with the majority of as many samples of its model as its tokens would buy. The samples are drawn once, into banks in \
the folder. The plan is written before the first call, and the same command continues what was interrupted.

Examples:
  consensus eval gsm8k.jsonl --limit 200 --arm vote,modes=words,program --arm pair:solver_checker --out study
  consensus eval mine.csv --map prompt=question --canonical number --arm sc@8 --arm single,temperature=0 --out study
  consensus eval gsm8k.jsonl --pilot 40 --arm vote --out study      (how many items are needed)
  consensus eval gsm8k.jsonl --arm vote --out study --shard auto    (in a Slurm array)
  consensus eval report study
  consensus eval show study 17";

/// The heading of the flags that an evaluation must pass.
const BARS: &str = "Bars";

/// Arguments of `eval`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, after_long_help = AFTER_HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    pub(crate) command: Option<EvalCommand>,
    /// A file of tasks with their right answers, in the form of TASKS of `consensus batch`.
    #[arg(value_name = "DATA", required = true)]
    pub(crate) data: Option<PathBuf>,
    /// A way of answering, with its settings; repeatable.
    #[arg(long = "arm", value_name = "ARM", required = true)]
    pub(crate) arms: Vec<ArmSpec>,
    /// The folder of the evaluation.
    #[arg(short, long, value_name = "DIR", required = true)]
    pub(crate) out: Option<PathBuf>,
    /// Use only the first N tasks.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) limit: Option<usize>,
    /// Use only the first N tasks, and report how many would decide. There is no verdict.
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with_all = ["limit", "fail_under", "baseline"])]
    pub(crate) pilot: Option<usize>,
    /// The arm of the primary comparison [default: the first that is not on the curve of `single` and `sc@K`].
    #[arg(long, value_name = "ARM")]
    pub(crate) primary: Option<String>,
    /// The smallest difference of interest, as a share.
    #[arg(long, value_name = "X", value_parser = super::share, default_value = "0.02")]
    pub(crate) effect: f64,
    /// The number of samples of each task in the curve that arms are compared with. An arm that counts more of them has more drawn.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..=i64::from(MAJORITY_MAX)), default_value_t = MAJORITY_MAX)]
    pub(crate) samples: u32,
    /// Draw tasks with the same value of this label together for the intervals; it needs 10 values or more.
    #[arg(long, value_name = "LABEL")]
    pub(crate) cluster: Option<String>,
    /// How answers are compared, for tasks that do not say it [default: number for JSON numbers, and text for others].
    #[arg(long, value_parser = canonical_kinds())]
    pub(crate) canonical: Option<CanonicalKind>,
    /// The seed of all runs and of the intervals.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=1 << 52))]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) bars: BarArgs,
    /// Print the plan with its calls, tokens and cost, and run nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) form: TaskFormArgs,
    #[command(flatten)]
    pub(crate) rolesets: RolesetsArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) scripted: ScriptedArgs,
    #[command(flatten)]
    pub(crate) reuse: ReuseArgs,
    #[command(flatten)]
    pub(crate) flow: FlowArgs,
    /// Evaluate part I, from 0, of N parts of the tasks; `auto` takes both from a Slurm array. `eval report` joins the parts.
    #[arg(long, value_name = "I/N|auto", value_parser = parse_shard, default_value = "0/1")]
    pub(crate) shard: ShardOf,
    /// Continue runs that ended like this as well.
    #[arg(long, value_delimiter = ',', value_parser = retried_outcomes(), value_name = "WHICH,…")]
    pub(crate) retry: Vec<OutcomeKind>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// The bars that a complete evaluation must reach.
#[derive(Args, Clone, Debug)]
pub(crate) struct BarArgs {
    /// Fail with exit code 9 unless the whole interval of the primary arm is at or above this share, such as right=0.80.
    ///
    /// The measures are `right`, `answered` and `right-when-answered`.
    #[arg(long, value_name = "MEASURE=X", value_parser = Bar::parse, help_heading = BARS)]
    pub(crate) fail_under: Vec<Bar>,
    /// Fail with exit code 9 if the primary arm is worse than that of this evaluation, over the tasks that are the same.
    ///
    /// It is worse if the whole interval of the paired difference is below zero, and the exact test is below 5 %.
    #[arg(long, value_name = "DIR", help_heading = BARS)]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the bars and all items as test cases into this file, for CI systems that read `JUnit`.
    ///
    /// A wrong answer is a failed case, an item without an answer is skipped, and a run that failed is an error.
    #[arg(long, value_name = "FILE", help_heading = BARS)]
    pub(crate) junit: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Compute the report of an evaluation again, from its results alone.
    Report {
        /// The folder of the evaluation.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        #[command(flatten)]
        bars: BarArgs,
    },
    /// Show a task with what every arm answered, and why.
    Show {
        /// The folder of the evaluation.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// The id of the task.
        id: String,
    },
}

/// The settings of an arm, as flags.
#[derive(Debug, Parser)]
#[command(name = "arm", no_binary_name = true, disable_help_flag = true)]
struct ArmFlags {
    #[command(flatten)]
    params: ParamArgs,
    #[command(flatten)]
    calibration: CalibrationArgs,
    /// The tokens that the votes of all tasks share.
    #[arg(long, value_name = "N", conflicts_with_all = ["calibration", "ahead"], value_parser = clap::value_parser!(u64).range(1..))]
    budget: Option<u64>,
}

impl EvalArgs {
    /// Returns the request for an evaluation of this data in this folder.
    pub(crate) fn request(&self, data: &Path, folder: &Path) -> EvalRequest {
        EvalRequest {
            data: data.to_owned(),
            form: self.form.form(data, None),
            canonical: self.canonical,
            items_max: self.pilot.or(self.limit),
            is_pilot: self.pilot.is_some(),
            folder: folder.to_owned(),
            arms: self.arms.clone(),
            primary: self.primary.clone(),
            effect: self.effect,
            samples: self.samples,
            cluster: self.cluster.clone(),
            seed: self.seed,
            shard: self.shard,
            bars: self.bars.bars(),
            settings: RolesetSettings {
                rolesets_dir: self.rolesets.rolesets_dir.clone(),
                servers: self.server.chosen(),
                mock: self.scripted.choice(),
                limits: self.limits.limits(),
                ..RolesetSettings::default()
            },
            retry: choose_retry(&self.retry),
            work: self.flow.work(),
            words: command_words(),
            read_settings,
        }
    }
}

impl BarArgs {
    /// Returns the bars.
    pub(crate) fn bars(&self) -> Bars {
        let Self { fail_under, baseline, junit } = self.clone();
        Bars { fail_under, baseline, junit }
    }
}

/// Reads the settings of an arm by the flags of the same names.
fn read_settings(settings: &[(String, String)]) -> Result<ArmSettings, String> {
    let ArmFlags { params, calibration, budget } = parse_settings(settings)?;
    Ok(ArmSettings {
        params: params.changes(),
        no_demands: params.no_inferred_constraints,
        calibration: calibration.request(),
        budget_tokens: budget,
        access: params.sandbox.access(),
    })
}

fn parse_settings(settings: &[(String, String)]) -> Result<ArmFlags, String> {
    let flags = settings.iter().map(|(name, value)| format!("--{name}={value}"));
    ArmFlags::try_parse_from(flags).map_err(|why| {
        let why = why.to_string();
        // The lines after the first blank one speak of `--help`, which an arm does not have.
        let first: Vec<&str> = why.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
        format!("a setting of an arm: {}", first.join(" ").trim_start_matches("error: "))
    })
}

fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=10_000_000).contains(count));
    count.ok_or_else(|| "write a number from 1 to 10,000,000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_is_read_as_its_flag() {
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let read =
            parse_settings(&[setting("thinking", "none"), setting("modes", "words,program")]).unwrap().params;
        assert_eq!(read.modes.len(), 2);
        let why = parse_settings(&[setting("thinkng", "none")]).unwrap_err();
        assert!(why.contains("a setting of an arm: unexpected argument '--thinkng'"), "{why}");
        let why = parse_settings(&[setting("risk", "0.2")]).unwrap_err();
        assert!(why.contains("required") && why.contains("--calibration"), "{why}");
        assert_eq!(parse_settings(&[setting("budget", "500")]).unwrap().budget, Some(500));
        let why = parse_settings(&[setting("budget", "500"), setting("ahead", "2")]).unwrap_err();
        assert!(why.contains("cannot be used with"), "{why}");
        let why = parse_settings(&[setting("max-rounds", "0")]).unwrap_err();
        assert!(why.contains("invalid value '0' for '--max-rounds"), "{why}");
    }
}
