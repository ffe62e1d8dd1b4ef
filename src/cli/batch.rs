//! `consensus batch`: many runs, in shards.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::watch;

use super::batch_args::{BatchArgs, BatchCommand, RetryArg};
use super::batch_story::{BatchStory, in_words};
use super::error::UsageError;
use super::global::Format;
use super::output::Output;
use super::runtime::block_on;
use super::{launch, settings, signals};
use crate::batch::{Column, Columns, EndCounts, Options, Retry, Shard, State, feed, run, status};
use crate::config::{Chosen, ConfigError, FileConfig, check_meaning, launch_command, resolve_endpoints};
use crate::core::ExitCode;
use crate::engine::StopRequest;
use crate::journal::Limits;
use crate::protocol::Task;
use crate::provider::Flow;
use crate::provider::launch::Launched;

/// What a signal or the deadline leaves before anything is asked.
const UNBEGUN: &str = "before the batch began; nothing was asked, and the same command begins it";

pub(super) fn batch(args: &BatchArgs, output: &Output) -> anyhow::Result<ExitCode> {
    match (&args.command, &args.tasks, &args.out) {
        (Some(BatchCommand::Status { dir }), ..) => tell_status(dir, output),
        (None, Some(tasks), Some(out)) => block_on(run_all(args, tasks, out, output))?,
        (None, ..) => Err(UsageError("a batch needs TASKS and --out DIR".to_owned()).into()),
    }
}

async fn run_all(args: &BatchArgs, tasks: &Path, out: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let listening = signals::listen(UNBEGUN, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let (source, tasks_bytes, documents) = source(tasks)?;
    settings::private_folder(out).map_err(|why| UsageError(format!("{why:#}")))?;
    let mut shard = Shard::open(out, args.shard)?;
    let (matrix, server) = Matrix::open(args, file, out, output).await?;
    let stop = stopped_by(listening.begin(), args.limits.deadline, began);
    tokio::spawn(tell_stopping(stop.clone(), *output));
    let options = Options {
        shard: args.shard,
        seeds: args.seed..args.seed + args.seeds,
        concurrency: args.concurrency as usize,
        flow: Flow { max: args.requests_at_once as usize },
        // The deadline is that of the whole batch.
        limits: Limits { deadline_ms: None, ..settings::limits(&args.limits) },
        retry: Retry {
            failed: args.retry.contains(&RetryArg::Failed),
            budget: args.retry.contains(&RetryArg::Budget),
        },
        documents,
        tasks_bytes,
        lifeline: server.as_ref().map(Launched::lifeline),
    };
    let story = BatchStory::new(*output, out, args.shard)?;
    let ended = run(&mut shard, feed(source), &matrix, options, stop.clone(), &story).await;
    if let Some(server) = server {
        server.end().await;
    }
    let is_stopped = *stop.borrow() != StopRequest::None;
    let figures = story.finish(ended, is_stopped)?;
    if output.format != Format::Text {
        output.json(&json!({"shard": args.shard.to_string(), "figures": figures}))?;
    }
    let is_late = args.limits.deadline.is_some_and(|deadline| began.elapsed() >= deadline);
    Ok(match () {
        () if is_stopped && is_late => ExitCode::Budget,
        () if is_stopped => ExitCode::Interrupted,
        () if figures.refused > 0 => ExitCode::Usage,
        () if figures.ended.failed > 0 => ExitCode::Provider,
        () if figures.ended.budget > 0 => ExitCode::Budget,
        () => ExitCode::Success,
    })
}

/// A source of tasks, its length if that is known, and where documents are that they name.
type Source = (Box<dyn std::io::Read + Send>, Option<u64>, std::path::PathBuf);

fn source(tasks: &Path) -> anyhow::Result<Source> {
    if tasks.as_os_str() == "-" {
        return Ok((Box::new(std::io::stdin()), None, std::path::PathBuf::new()));
    }
    let wrong = |why| UsageError(format!("cannot read the tasks `{}`: {why}", tasks.display()));
    let file = std::fs::File::open(tasks).map_err(wrong)?;
    let about = file.metadata().map_err(wrong)?;
    if about.is_dir() {
        return Err(wrong(std::io::ErrorKind::IsADirectory.into()).into());
    }
    let documents = tasks.parent().map(Path::to_owned).unwrap_or_default();
    Ok((Box::new(file), about.is_file().then_some(about.len()), documents))
}

/// Tells that a signal was heard, since the open calls may take minutes.
async fn tell_stopping(mut stop: watch::Receiver<StopRequest>, output: Output) {
    if stop.changed().await.is_ok() && *stop.borrow() == StopRequest::Finish {
        output.tell("stopping after the open calls; once more to stop at once");
    }
}

/// Stops at a signal, or when the time is over.
fn stopped_by(
    mut signals: watch::Receiver<StopRequest>,
    deadline: Option<Duration>,
    began: Instant,
) -> watch::Receiver<StopRequest> {
    let Some(deadline) = deadline else { return signals };
    let (sender, stop) = watch::channel(StopRequest::None);
    tokio::spawn(async move {
        let late = tokio::time::sleep_until((began + deadline).into());
        tokio::pin!(late);
        let mut is_late = false;
        loop {
            tokio::select! {
                () = &mut late, if !is_late => is_late = true,
                Ok(()) = signals.changed() => {}
            }
            let asked = *signals.borrow_and_update();
            let request = if is_late { StopRequest::Abort } else { asked };
            if sender.send(request).is_err() || request == StopRequest::Abort {
                return;
            }
        }
    });
    stop
}

/// So many rolesets of single tasks are kept ready.
const NAMED_MAX: usize = 256;

/// Columns, or why there are none.
type Found = Result<Rc<[Column]>, String>;

/// Rolesets and models, ready to run.
struct Matrix<'a> {
    args: &'a BatchArgs,
    file: FileConfig,
    chosen: Chosen,
    models: Vec<Option<String>>,
    /// Those of the batch.
    all: Rc<[Column]>,
    /// Those of rolesets that single tasks have named.
    named: RefCell<HashMap<String, Found>>,
}

impl<'a> Matrix<'a> {
    async fn open(
        args: &'a BatchArgs,
        file: FileConfig,
        out: &Path,
        output: &Output,
    ) -> anyhow::Result<(Self, Option<Launched>)> {
        if args.mock.mock && args.answer.is_none() && args.mock.mock_script.is_none() {
            let why = "--mock needs --answer TEXT, or a script with --mock-script FILE";
            return Err(UsageError(why.to_owned()).into());
        }
        let script = settings::mock_script(args.mock.mock_script.as_deref(), args.answer.as_deref())?;
        let mut chosen = settings::chosen(&args.server, script);
        let models: Vec<Option<String>> = match &args.server.model {
            Some(models) => {
                let named = models.split(',').map(str::trim).filter(|model| !model.is_empty());
                named.map(|model| Some(model.to_owned())).collect()
            }
            None => vec![None],
        };
        if models.is_empty() {
            return Err(UsageError("--model names no model".to_owned()).into());
        }
        if args.server.launch.is_some() && models.len() > 1 {
            let why = "--launch starts a server of one model; give one --model";
            return Err(UsageError(why.to_owned()).into());
        }
        let command = launch_command(&chosen, &file, None)?;
        let log = out.join(args.shard.file_name("server", "log"));
        let server = launch::launch(command.as_ref(), &mut chosen, &file, &log, output).await?;
        let named = RefCell::default();
        let mut matrix = Self { args, file, chosen, models, all: Rc::default(), named };
        let mut all: Vec<Column> = Vec::new();
        let rolesets: Vec<Option<&String>> =
            if args.roleset.is_empty() { vec![None] } else { args.roleset.iter().map(Some).collect() };
        for roleset in rolesets {
            all.extend(matrix.columns(roleset).await?);
        }
        // A run is told from others by its task, roleset, model and seed, by their names.
        for (at, column) in all.iter().enumerate() {
            let Column { roleset, model, .. } = column;
            if all[..at].iter().any(|other| other.roleset == *roleset && other.model == *model) {
                let model = if model.is_empty() { String::new() } else { format!(" on `{model}`") };
                let why = format!(
                    "the roleset `{roleset}`{model} is named twice; give a copy a name of its own, or leave it out"
                );
                return Err(UsageError(why).into());
            }
        }
        matrix.all = all.into();
        Ok((matrix, server))
    }

    /// A roleset on each of the models.
    async fn columns(&self, roleset: Option<&String>) -> anyhow::Result<Vec<Column>> {
        let folder = self.args.rolesets.rolesets_dir.as_ref();
        let (name, mut roleset, packs) = settings::roleset(roleset, folder, &self.file)?;
        if roleset.redact || !roleset.redact_patterns.is_empty() {
            let why = format!(
                "the roleset `{name}` redacts, and a batch does not: use `consensus run` for its tasks"
            );
            return Err(UsageError(why).into());
        }
        settings::check_params(&roleset, &self.args.params)?;
        settings::override_params(&mut roleset, &self.args.params)?;
        let problems = check_meaning(&roleset);
        if !problems.is_empty() {
            return Err(ConfigError::Roleset(problems).into());
        }
        let setup = roleset.setup(&name, &packs, Task::default(), 0);
        let mut columns = Vec::new();
        for model in &self.models {
            let chosen = Chosen { model: model.clone(), ..self.chosen.clone() };
            let endpoints = resolve_endpoints(&chosen, &self.file, &roleset).await?;
            settings::check_prices(settings::limits(&self.args.limits), &endpoints)?;
            columns.push(Column::new(model.clone().unwrap_or_default(), setup.clone(), endpoints));
        }
        Ok(columns)
    }
}

impl Columns for Matrix<'_> {
    async fn of(&self, roleset: Option<&str>) -> Found {
        let Some(name) = roleset else { return Ok(Rc::clone(&self.all)) };
        if let Some(known) = self.named.borrow().get(name) {
            return known.clone();
        }
        let columns = self.columns(Some(&name.to_owned())).await;
        let columns = columns.map(Rc::from).map_err(|why| format!("{why:#}"));
        let mut named = self.named.borrow_mut();
        // A file of tasks may name any number that nobody has.
        if named.len() < NAMED_MAX {
            named.insert(name.to_owned(), columns.clone());
        }
        columns
    }
}

/// `consensus batch status`.
fn tell_status(dir: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let shards = status(dir)?;
    let mut sum = EndCounts::default();
    for shard in &shards {
        sum.merge(&shard.ended);
    }
    if output.format != Format::Text {
        output.json(&json!({"ended": sum, "shards": shards}))?;
        return Ok(ExitCode::Success);
    }
    for shard in &shards {
        let state = match &shard.progress {
            None => "not begun".to_owned(),
            Some(progress) => match progress.state {
                State::Ended => "ended".to_owned(),
                State::Stopped => format!("stopped {}", progress.updated_at),
                State::Running if shard.is_live == Some(false) => {
                    format!("died after {}; the same command goes on with it", progress.updated_at)
                }
                State::Running => {
                    format!("{} under way at {}", progress.figures.under_way, progress.updated_at)
                }
            },
        };
        output.line(&format!(
            "shard {:>4}  {:>8}  {}; {state}",
            shard.index,
            shard.ended.all(),
            in_words(&shard.ended)
        ))?;
    }
    output.line(&format!("all         {:>8}  {}", sum.all(), in_words(&sum)))?;
    Ok(ExitCode::Success)
}
