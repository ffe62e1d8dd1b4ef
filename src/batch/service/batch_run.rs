//! A batch as a service: a plain request is prepared, and its runs are made until they have ended or are to stop.
//!
//! Messages for people go to the caller's reporter and observer. The folder has the results.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use crate::batch::folder::{
    BatchError, BatchNote, BudgetNote, CommandNote, DataNote, ShardOf, note, note_servers,
};
use crate::batch::plan::{VariantRequest, VariantSet, feed};
use crate::batch::schedule::{BatchObserver, CommandGrader, Options, run};
use crate::batch::store::{BatchStats, Retry, Shard};
use crate::batch::tasks::TaskForm;
use crate::config::{CHECK_TIMEOUT_MS, FileConfig};
use crate::engine::StopRequest;
use crate::files::private_folder;
use crate::journal::Limits;
use crate::otlp::{Collector, OtlpError, SpanQueue, SpanTask};
use crate::program::VERSION;
use crate::provider::launch::LaunchedServer;
use crate::provider::{Clients, Flow, ReusedReplies};
use crate::run::Reporter;
use crate::sandbox::{Access, Confinement, Sandbox};
use protocol::core::ExitCode;
use protocol::text::grouped;

/// A request for a batch.
pub struct BatchRequest {
    /// The rolesets and models.
    pub variants: VariantRequest,
    /// The file of tasks; `-` is standard input.
    pub tasks: PathBuf,
    /// How the tasks are read and graded.
    pub form: TaskForm,
    /// The folder of the batch.
    pub folder: PathBuf,
    /// The shard to run.
    pub shard: ShardOf,
    /// The seeds of each task in each variant.
    pub seeds: Range<u64>,
    /// The limits of each run.
    pub limits: Limits,
    /// The tokens that the votes of all shards share, if they share a budget. The variants must be paced then.
    pub budget_tokens: Option<u64>,
    /// The ends that are tried again.
    pub retry: Retry,
    /// Whether runs of the same name that other settings have made are kept.
    pub keep_old: bool,
    /// Whether texts are graded again whose grade is on record.
    pub regrade: bool,
    pub work: WorkLoad,
    /// What commands in the sandbox may do; `None` if they have all rights of their user.
    pub access: Option<Access>,
    /// The words of the command for the manifest, without secrets.
    pub words: Vec<String>,
    /// The collector of traces. A fault in its address ends the batch once everything else is ready.
    pub collector: Result<Option<Collector>, OtlpError>,
}

/// The amount of work that is under way at once.
#[derive(Clone, Copy, Debug)]
pub struct WorkLoad {
    /// The most runs.
    pub runs: u32,
    /// The most calls that one server has.
    pub calls: usize,
    /// The most threads that work on runs.
    pub threads: usize,
}

/// A batch whose servers, folder and sandbox are ready.
pub struct ReadyBatch {
    pub folder: PathBuf,
    shard: Shard,
    variants: VariantSet,
    source: Box<dyn Read + Send>,
    form: TaskForm,
    options: Options,
    /// The task that sends spans, if there is a collector.
    sending: Option<SpanTask>,
    /// The server that was launched for the batch.
    server: Option<LaunchedServer>,
}

/// The end of a batch.
pub struct BatchEnd {
    pub figures: BatchStats,
    pub is_stopped: bool,
    /// The server that was launched for it, still running.
    pub server: Option<LaunchedServer>,
}

/// A source of tasks: a file, a pipe or standard input.
pub(super) struct OpenTasks {
    pub(super) source: Box<dyn Read + Send>,
    /// The manifest's note about the source and the number of its lines, if it is a file.
    data: Option<DataNote>,
    lines: Option<u64>,
    /// The folder of the documents that the tasks name.
    pub(super) documents: PathBuf,
}

impl WorkLoad {
    /// Returns connections that send one server at most this many calls at once.
    pub fn clients(self) -> Clients {
        Clients::new(Flow { max: self.calls })
    }
}

impl BatchRequest {
    /// Prepares the batch: opens its tasks and its folder, finds or starts its servers, and tries its sandbox. `running` is a server that
    /// was launched before, and `reused` has the replies that are used again.
    pub async fn prepare(
        self,
        file: FileConfig,
        running: Option<LaunchedServer>,
        reused: Arc<ReusedReplies>,
        reporter: &dyn Reporter,
    ) -> Result<ReadyBatch, BatchError> {
        let OpenTasks { source, data, lines, documents } = open_tasks(&self.tasks)?;
        make_folder(&self.folder)?;
        let shard = Shard::open(&self.folder, self.shard)?;
        let log = self.folder.join(self.shard.file_name("server", "log"));
        let confinement = match &self.access {
            Some(own) => Confinement::Walled(file.sandbox.and(own.clone())),
            None => Confinement::None,
        };
        let (variants, server) =
            VariantSet::open(self.variants.clone(), file, running, &log, reporter).await?;
        let budget = self.budget();
        let is_redacted = variants.all().iter().any(|variant| variant.sought.is_some());
        let batch_note = BatchNote {
            shards: self.shard.count,
            command: CommandNote {
                at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
                program: format!("consensus {VERSION}"),
                words: self.words.clone(),
            },
            variants: variants.notes().to_vec(),
            data: if is_redacted { None } else { data },
            budget: budget.clone(),
            keep_old: self.keep_old,
        };
        note(&self.folder, &batch_note).map_err(|why| self.explain(why))?;
        self.report_share(reporter);
        // A line of TASKS may name a roleset with a check, so there is a sandbox in any case.
        let sandbox = Sandbox::new(confinement)?;
        let grader = self.grader(&sandbox);
        if grader.is_some() || variants.all().iter().any(|variant| variant.setup.executes()) {
            sandbox.probe().await?;
        }
        let traced = self.collector?.map(|to| SpanQueue::start(shard.journal_path(), to)).transpose()?;
        let (spans, sending) = traced.unzip();
        let options = Options {
            shard: self.shard,
            seeds: self.seeds,
            concurrency: self.work.runs as usize,
            threads: self.work.threads,
            clients: Arc::new(self.work.clients().reusing(reused)),
            limits: self.limits,
            retry: self.retry,
            documents,
            task_lines: lines,
            sandbox,
            grader,
            lifeline: server.as_ref().map(LaunchedServer::lifeline),
            gives_up: true,
            spans,
            budget,
        };
        Ok(ReadyBatch {
            folder: self.folder,
            shard,
            variants,
            source,
            form: self.form,
            options,
            sending,
            server,
        })
    }

    /// Returns the budget of tokens that the votes share, if they share one.
    pub(super) fn budget(&self) -> Option<BudgetNote> {
        let arm = self.variants.arm.as_deref().unwrap_or_default();
        self.budget_tokens.map(|tokens| BudgetNote::new(arm, tokens, self.shard.count))
    }

    /// Reports the part of the budget that this shard has, if there are others.
    fn report_share(&self, reporter: &dyn Reporter) {
        if let Some(BudgetNote { tokens, tokens_a_shard, .. }) = self.budget()
            && self.shard.count > 1
        {
            let (share, tokens) = (grouped(tokens_a_shard), grouped(tokens));
            reporter.status(&format!(
                "shard {} has {share} of the {tokens} tokens of --budget-tokens",
                self.shard
            ));
        }
    }

    /// Returns the command that grades texts, if one is given.
    fn grader(&self, sandbox: &Sandbox) -> Option<CommandGrader> {
        let command = self.form.grader_command.clone()?;
        let time_max = self.variants.settings.params.check_timeout_ms.unwrap_or(CHECK_TIMEOUT_MS);
        let time_max = Duration::from_millis(time_max);
        Some(CommandGrader { command, time_max, sandbox: sandbox.clone(), again: self.regrade })
    }

    /// Returns the error in the words of a bank, which has neither arms nor another folder to choose.
    fn explain(&self, why: BatchError) -> BatchError {
        if self.variants.draws.is_some() && matches!(why, BatchError::Settings { .. }) {
            let bank = self.folder.display();
            return BatchError::Usage(format!(
                "the bank `{bank}` was drawn with other settings, and cannot grow; name another folder for --bank"
            ));
        }
        why
    }
}

impl ReadyBatch {
    /// Returns the shard that is run.
    pub fn shard(&self) -> ShardOf {
        self.options.shard
    }

    /// Runs the batch to its end or until it is to stop. Returns its figures, and the server that was launched for it.
    pub async fn run(
        mut self,
        stop: &watch::Receiver<StopRequest>,
        observer: &impl BatchObserver,
    ) -> (Result<BatchStats, BatchError>, Option<LaunchedServer>) {
        let tasks = feed(self.source, self.form);
        let ended =
            Box::pin(run(&mut self.shard, tasks, Some(&self.variants), self.options, stop.clone(), observer));
        let mut ended = ended.await;
        if let Some(sending) = self.sending {
            sending.end().await;
        }
        // Servers describe themselves after the runs, so that a slow one delays no run.
        if ended.is_ok() && *stop.borrow() == StopRequest::None {
            let noted = note_servers(&self.folder, &self.variants.servers().await);
            ended = noted.and(ended);
        }
        (ended, self.server)
    }
}

impl BatchEnd {
    /// Returns the exit code of a program that ends with this batch. `is_late` is whether its deadline has passed.
    pub fn exit_code(&self, is_late: bool) -> ExitCode {
        let BatchStats { refused, ended, .. } = &self.figures;
        if self.is_stopped {
            if is_late { ExitCode::Budget } else { ExitCode::Interrupted }
        } else if *refused > 0 {
            ExitCode::Usage
        } else if ended.failed > 0 {
            ExitCode::Provider
        } else if ended.budget > 0 {
            ExitCode::Budget
        } else {
            ExitCode::Success
        }
    }
}

/// Makes the folder of a batch, or of a server's runs.
pub fn make_folder(folder: &Path) -> Result<(), BatchError> {
    private_folder(folder)
        .map_err(|why| BatchError::Usage(format!("cannot make the folder `{}`: {why}", folder.display())))
}

pub(super) fn open_tasks(tasks: &Path) -> Result<OpenTasks, BatchError> {
    if tasks.as_os_str() == "-" {
        let source = Box::new(std::io::stdin());
        return Ok(OpenTasks { source, data: None, lines: None, documents: PathBuf::new() });
    }
    let file = std::fs::File::open(tasks).map_err(|why| cannot_read_tasks(tasks, &why))?;
    let about = file.metadata().map_err(|why| cannot_read_tasks(tasks, &why))?;
    if about.is_dir() {
        return Err(cannot_read_tasks(tasks, &std::io::ErrorKind::IsADirectory.into()));
    }
    let documents = tasks.parent().map(Path::to_owned).unwrap_or_default();
    let (mut data, mut lines) = (None, None);
    // A pipe can be read only once.
    if about.is_file() {
        let (note, count) = DataNote::read(tasks).map_err(|why| cannot_read_tasks(tasks, &why))?;
        (data, lines) = (Some(note), Some(count));
    }
    Ok(OpenTasks { source: Box::new(file), data, lines, documents })
}

fn cannot_read_tasks(tasks: &Path, why: &std::io::Error) -> BatchError {
    BatchError::Usage(format!("cannot read the tasks `{}`: {why}", tasks.display()))
}
