//! The flags of `consensus batch`.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use clap::builder::PossibleValue;
use clap::{ArgGroup, Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::run::{ParamArgs, SeatArgs};
use super::shared::{
    CalibrationArgs, LimitArgs, NamedValues, OtlpArgs, RedactArgs, RolesetsArgs, ScriptedArgs, ServerArgs,
    VOTES,
};
use super::task_form::TaskFormArgs;
use crate::batch::{BatchRequest, Draws, Retry, ShardOf, VariantRequest, WorkLoad};
use crate::cli::command_words::command_words;
use crate::cli::completion;
use crate::config::Chosen;
use crate::journal::Limits;
use crate::run::RolesetSettings;
use protocol::OutcomeKind;

const AFTER_HELP: &str = "\
A line of TASKS is a JSON object: {\"id\": …, \"prompt\": …}. It may also have \"documents\" (paths, or {\"name\", \"text\"}), \
\"answer\" (the right one, which no model sees), \"canonical\", \"grader\", \"roleset\" and \"meta\" (labels to group results by).

If you repeat the command, it skips finished runs, continues interrupted ones, and begins missing ones.

Examples:
  consensus batch tasks.jsonl --roleset solver_checker -o results
  consensus batch tasks.jsonl --roleset solver_checker,writer_physicist --model vllm:A,vllm:B --seeds 5 -o results
  consensus batch gsm8k.jsonl --map prompt=question --answer-regex '#### (.*)' --roleset solver_checker -o results
  consensus batch tasks.jsonl --roleset writer_physicist -o results --arm no-thoughts --thinking none
  consensus batch tasks.jsonl -o results --shard auto      (in a Slurm array)
  consensus batch tasks.jsonl -o results --retry failed
  consensus batch tasks.jsonl -o results --roleset vote_number --budget-tokens 500000
  consensus batch status results";

/// The heading of the flags for samples that are drawn once.
const BANKS: &str = "Samples that are drawn once";

/// Arguments of `batch`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, group(ArgGroup::new("draws").args(["words", "programs"]).multiple(true)))]
pub(crate) struct BatchArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BatchCommand>,
    /// A file of tasks, one JSON object a line; `-` reads stdin.
    ///
    /// A list of such objects is read too, a table with the ending `.csv`, and rows of GSM8K, SVAMP, MMLU and `inspect_ai` as they are.
    #[arg(value_name = "TASKS", required = true)]
    pub(crate) tasks: Option<PathBuf>,
    /// The rolesets, separated by commas: names, or paths of their JSON files. [default: `question`]
    #[arg(short, long, value_delimiter = ',', value_name = "A,B,…", env = "CONSENSUS_ROLESET", hide_env_values = true, add = ArgValueCompleter::new(completion::rolesets))]
    pub(crate) roleset: Vec<String>,
    #[command(flatten)]
    pub(crate) rolesets: RolesetsArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) scripted: ScriptedArgs,
    #[command(flatten)]
    pub(crate) redaction: RedactArgs,
    #[command(flatten)]
    pub(crate) params: ParamArgs,
    #[command(flatten)]
    pub(crate) seats: SeatArgs,
    #[command(flatten)]
    pub(crate) calibration: CalibrationArgs,
    #[command(flatten)]
    pub(crate) form: TaskFormArgs,
    /// The command of the grader `command`, such as "python3 tests/{task}.py {file}"; exit code 0 says that a text is right.
    ///
    /// It gets the text as the command of --check does, and the file that {answer} stands for holds the right answer. It is the
    /// grader of every line that names none. --check-timeout is for it too.
    #[arg(long, value_name = "COMMAND", value_parser = parse_command)]
    pub(crate) grader_command: Option<String>,
    /// Grade all texts again, as after a change of the files that the command of --grader-command reads.
    #[arg(long, requires = "grader_command")]
    pub(crate) regrade: bool,
    /// A name for these settings, to compare them with other settings of the same rolesets and models.
    #[arg(long, value_name = "NAME", value_parser = parse_arm_name)]
    pub(crate) arm: Option<String>,
    /// Keep runs of the same name that other settings have made, and make only the missing ones.
    #[arg(long)]
    pub(crate) keep_old: bool,
    /// Print the expected and the maximum cost of the batch, and run nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The number of runs of each task in each column, each with a seed of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) seeds: u64,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=1 << 52))]
    pub(crate) first_seed: u64,
    /// The folder for journals, results and figures.
    #[arg(short, long, value_name = "DIR", required_unless_present = "bank", conflicts_with = "bank")]
    pub(crate) output: Option<PathBuf>,
    /// Draw samples for later: the folder gets --words and --programs samples of each task, of rolesets of `vote`.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["arm", "stop", "modes", "samples_max", "threshold", "on_disagreement", "keep_old", "from_bank"], requires = "draws", help_heading = BANKS, hide_short_help = true)]
    pub(crate) bank: Option<PathBuf>,
    /// The number of samples in words that a bank gets of each task.
    #[arg(long, value_name = "N", requires = "bank", value_parser = clap::value_parser!(u32).range(..=100), help_heading = BANKS, hide_short_help = true)]
    pub(crate) words: Option<u32>,
    /// The number of programs that a bank gets of each task.
    #[arg(long, value_name = "N", requires = "bank", value_parser = clap::value_parser!(u32).range(..=100), help_heading = BANKS, hide_short_help = true)]
    pub(crate) programs: Option<u32>,
    /// Take the replies of this bank in place of calls.
    ///
    /// The tasks, the seeds, the roleset and its settings are those that the bank was drawn with. The stop, the modes and the number
    /// of samples are free.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["bank", "base_url", "launch", "mock", "mock_script"], help_heading = BANKS, hide_short_help = true)]
    pub(crate) from_bank: Option<PathBuf>,
    /// Share this many tokens of prompts and replies among the votes of all tasks, so that unsettled ones draw more samples.
    ///
    /// Each task draws two samples in any case. Then rounds follow, in which the least certain tasks draw one more, as long as a round
    /// fits. Then a strict leader is the answer. A task has at most 12 samples, unless --samples-max says otherwise. With --shard, each of
    /// N parts has one N-th of the tokens. The rolesets are of `vote`.
    #[arg(long, value_name = "N", conflicts_with_all = ["bank", "keep_old", "calibration", "ahead"], value_parser = clap::value_parser!(u64).range(1..), help_heading = VOTES, hide_short_help = true)]
    pub(crate) budget_tokens: Option<u64>,
    #[command(flatten)]
    pub(crate) reuse: ReuseArgs,
    #[command(flatten)]
    pub(crate) flow: FlowArgs,
    #[command(flatten)]
    pub(crate) otlp: OtlpArgs,
    /// Run part I, from 0, of N parts of the batch; `auto` takes both from a Slurm array.
    #[arg(long, value_name = "I/N|auto", value_parser = parse_shard, default_value = "0/1")]
    pub(crate) shard: ShardOf,
    /// Continue runs that ended like this as well.
    #[arg(long, value_delimiter = ',', value_parser = retried_outcomes(), value_name = "WHICH,…")]
    pub(crate) retry: Vec<OutcomeKind>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// The batches whose replies are used again.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReuseArgs {
    /// Use the replies of this earlier batch or evaluation again, where the same model had the same request; repeatable.
    ///
    /// Their tokens count as they did then, and their times are those of reading. A request has the seed of its run in it.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["mock", "mock_script"], help_heading = BANKS, hide_short_help = true)]
    pub(crate) reuse: Vec<PathBuf>,
}

/// The fewest runs at once for which one more thread is of use.
const RUNS_A_THREAD: u32 = 32;

/// The amount of work that is under way at once.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FlowArgs {
    /// The number of runs under way at once.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs_at_once: u32,
    /// The maximum number of calls that one server has at once.
    ///
    /// It has fewer while it refuses calls (429, 503) or is slow to begin its answers.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) calls_at_once: u32,
    /// The number of threads that work on runs [default: one for each 32 runs at once, at most one a core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

impl FlowArgs {
    /// Returns the amount of work that is under way at once.
    pub(crate) fn work(self) -> WorkLoad {
        // A reply on one thread frees its connection for another a moment later. For few runs that costs more connections than a
        // second thread gains, and a small server has few.
        let useful = (self.runs_at_once / RUNS_A_THREAD).max(1) as usize;
        let threads = match self.threads {
            Some(threads) => threads.into(),
            None => available_parallelism().map_or(1, NonZero::get).min(useful),
        };
        WorkLoad { runs: self.runs_at_once, calls: self.calls_at_once as usize, threads }
    }
}

impl BatchArgs {
    /// Returns the folder of the batch.
    pub(crate) fn folder(&self) -> Option<&PathBuf> {
        self.output.as_ref().or(self.bank.as_ref())
    }

    /// Returns the request for a batch of these tasks in this folder. The deadline is for the whole batch.
    pub(crate) fn request(&self, tasks: &Path, folder: &Path) -> BatchRequest {
        BatchRequest {
            variants: self.variant_request(),
            tasks: tasks.to_owned(),
            form: self.form.form(tasks, self.grader_command.as_ref()),
            folder: folder.to_owned(),
            shard: self.shard,
            seeds: self.first_seed..self.first_seed + self.seeds,
            limits: Limits { deadline_ms: None, ..self.limits.limits() },
            budget_tokens: self.budget_tokens,
            retry: choose_retry(&self.retry),
            keep_old: self.keep_old,
            regrade: self.regrade,
            work: self.flow.work(),
            access: self.params.sandbox.access(),
            words: command_words(),
            collector: self.otlp.collector(),
        }
    }

    /// Returns the request for rolesets and models.
    fn variant_request(&self) -> VariantRequest {
        VariantRequest {
            rolesets: self.roleset.clone(),
            settings: RolesetSettings {
                rolesets_dir: self.rolesets.rolesets_dir.clone(),
                servers: Chosen { bank: self.from_bank.clone(), ..self.server.chosen() },
                mock: self.scripted.choice(),
                redaction: self.redaction.request(),
                params: self.params.changes(),
                no_demands: self.params.no_inferred_constraints,
                seats: self.seats.request(),
                calibration: self.calibration.request(),
                limits: self.limits.limits(),
            },
            arm: self.arm.clone(),
            draws: self.bank.as_ref().map(|_| Draws {
                words: self.words.unwrap_or_default(),
                programs: self.programs.unwrap_or_default(),
            }),
            is_paced: self.budget_tokens.is_some(),
        }
    }
}

fn parse_arm_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.chars().count() > 100 || text.contains(char::is_control) {
        return Err("a name has 1 to 100 characters".to_owned());
    }
    Ok(text.to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// Print the progress of every shard of a batch, running or dead, and the sum.
    Status {
        /// The batch's folder.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// Returns which runs that have ended are continued.
pub(super) fn choose_retry(outcomes: &[OutcomeKind]) -> Retry {
    Retry { failed: outcomes.contains(&OutcomeKind::Failed), budget: outcomes.contains(&OutcomeKind::Budget) }
}

pub(super) fn retried_outcomes() -> NamedValues<OutcomeKind> {
    NamedValues::new()
        .with(PossibleValue::new("failed").help("Runs whose provider could not be used"), OutcomeKind::Failed)
        .with(PossibleValue::new("budget").help("Runs that reached a limit"), OutcomeKind::Budget)
}

pub(super) fn parse_shard(text: &str) -> Result<ShardOf, String> {
    if text == "auto" { from_slurm(|name| std::env::var(name).ok()) } else { text.parse() }
}

/// Returns the shard of this process as a task of a Slurm array.
fn from_slurm(variable: impl Fn(&str) -> Option<String>) -> Result<ShardOf, String> {
    let mut numbers = [0_u64; 4];
    let names =
        ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT"];
    for (number, name) in numbers.iter_mut().zip(names) {
        let text = variable(name).ok_or(format!("`auto` is for a Slurm array: {name} is not set"))?;
        *number = text.parse().map_err(|_| format!("{name} is `{text}`, not a number"))?;
    }
    let [id, first, last, count] = numbers;
    let step = last.saturating_sub(first) / count.saturating_sub(1).max(1);
    // An array such as 1,2,7 has no step from which each of its tasks could derive its place.
    let is_even = first + step * count.saturating_sub(1) == last;
    let index = id.saturating_sub(first) / step.max(1);
    if !is_even || id < first || index >= count || first + index * step != id {
        return Err("the numbers of the Slurm array are not evenly spaced: name each shard as I/N".to_owned());
    }
    Ok(ShardOf { index, count })
}

/// Reads a command, which is not empty.
fn parse_command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("it names no command".to_owned()) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slurm(id: u64, first: u64, last: u64, count: u64) -> Result<ShardOf, String> {
        from_slurm(|name| match name {
            "SLURM_ARRAY_TASK_ID" => Some(id.to_string()),
            "SLURM_ARRAY_TASK_MIN" => Some(first.to_string()),
            "SLURM_ARRAY_TASK_MAX" => Some(last.to_string()),
            "SLURM_ARRAY_TASK_COUNT" => Some(count.to_string()),
            _ => None,
        })
    }

    #[test]
    fn each_slurm_task_gets_own_shard() {
        for (first, last, count, step) in [(0, 3, 4, 1), (1, 4, 4, 1), (10, 30, 3, 10), (5, 5, 1, 1)] {
            for index in 0..count {
                let found = slurm(first + index * step, first, last, count);
                assert_eq!(found, Ok(ShardOf { index, count }), "{first}-{last}:{step}");
            }
        }
        assert!(slurm(2, 1, 7, 3).is_err(), "the second of 1,2,7");
        assert!(from_slurm(|_| None).unwrap_err().contains("SLURM_ARRAY_TASK_ID is not set"));
    }
}
