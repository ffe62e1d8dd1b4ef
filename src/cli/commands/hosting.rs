//! The parts that `consensus serve` and `consensus mcp` have in common: the rolesets, their models, and the end.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use tokio::sync::watch;

use crate::batch::{Options, ProcessState, Progress, Retry, Shard, ShardOf, VariantSet};
use crate::cli::args::HostingArgs;
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::signals::{StopMessages, print_stopping};
use crate::config::{FileConfig, Roleset, list_rolesets};
use crate::engine::StopRequest;
use crate::otlp::{SpanQueue, SpanTask};
use crate::provider::launch::LaunchedServer;
use crate::run::{NamedRoleset, resolve, rolesets_folders};
use crate::sandbox::{Sandbox, SandboxError};
use crate::serve::{Guard, ServeRequest, ServedRoleset, ServerEnd, WayIn, serve};
use protocol::Params;
use protocol::core::ExitCode;
use protocol::text::counted;

/// The messages of a server that is stopped.
pub(super) const STOP_MESSAGES: StopMessages = StopMessages {
    unbegun: "before the server began; nothing was asked",
    begun: "all replies received are kept; runs with a key go on when the same command starts again",
};

/// A server that is ready to begin.
pub(super) struct Hosting<'a> {
    folder: &'a Path,
    shard: Shard,
    columns: VariantSet,
    launched: Option<LaunchedServer>,
    rolesets: Vec<ServedRoleset>,
    options: Options,
    /// The task that sends spans, if there is a collector.
    sending: Option<SpanTask>,
    allowed: Vec<String>,
    queue: usize,
}

impl<'a> Hosting<'a> {
    /// Finds the models of the rolesets, and starts their server if one is to be started.
    pub(super) async fn open(
        args: &HostingArgs,
        file: FileConfig,
        rolesets: Vec<(String, Roleset)>,
        sandbox: Sandbox,
        folder: &'a Path,
        shard: Shard,
        output: &Output,
    ) -> anyhow::Result<Self> {
        let collector = args.otlp.collector()?;
        let log = folder.join("server.log");
        let (columns, launched) = VariantSet::open(args.variant_request(), file, None, &log, output).await?;
        let (spans, sending) =
            collector.map(|to| SpanQueue::start(shard.journal_path(), to)).transpose()?.unzip();
        let lifeline = launched.as_ref().map(LaunchedServer::lifeline);
        let options = Options { lifeline, spans, ..options(args, folder, sandbox) };
        let rolesets = rolesets.into_iter().map(|(name, roleset)| ServedRoleset {
            name,
            is_for_changes: matches!(roleset.params, Params::Approval(_)),
            description: roleset.description,
        });
        Ok(Self {
            folder,
            shard,
            columns,
            launched,
            rolesets: rolesets.collect(),
            options,
            sending,
            allowed: args.allow_model.clone(),
            queue: args.queue as usize,
        })
    }

    /// Serves until a signal comes, or no request can come any more.
    pub(super) async fn serve(
        self,
        guard: Guard,
        way_in: WayIn,
        stop: watch::Receiver<StopRequest>,
        output: &Output,
    ) -> anyhow::Result<ExitCode> {
        let Self { folder, mut shard, columns, launched, rolesets, options, sending, allowed, queue } = self;
        tokio::spawn(print_stopping(stop.clone(), *output));
        let request = ServeRequest { folder: folder.to_owned(), guard, rolesets, allowed, queue, options };
        let ended = Box::pin(serve(request, &mut shard, &columns, way_in, stop)).await;
        if let Some(sending) = sending {
            sending.end().await;
        }
        if let Some(server) = launched {
            server.end().await;
        }
        let ServerEnd { figures, left } = ended?;
        let state = if left == 0 { ProcessState::Ended } else { ProcessState::Stopped };
        let ended = figures.ended.all() - figures.before;
        let progress = Progress::new(ShardOf::default(), state, SystemTime::now(), figures);
        // A server that was only looked at leaves the report of a batch as it is.
        if ended > 0 || left > 0 {
            progress
                .write(folder, ShardOf::default())
                .with_context(|| format!("cannot write into `{}`", folder.display()))?;
        }
        let and = if left == 0 {
            String::new()
        } else {
            format!("; the next start continues {}", counted(left, "run"))
        };
        output.status(&format!("stopped after {}{and}", counted(ended, "run")));
        Ok(ExitCode::Success)
    }
}

/// Returns the rolesets that are served. Those that redact have tokens in their answers, and are of no use to a client.
///
/// Where the sandbox does not work, rolesets that execute something are left out, or refused if they were named.
pub(super) fn choose_rolesets(
    args: &HostingArgs,
    file: &FileConfig,
    sandbox: Result<(), SandboxError>,
    output: &Output,
) -> anyhow::Result<Vec<(String, Roleset)>> {
    if args.calibration.calibration.is_some() && args.roleset.len() != 1 {
        let why = "a calibration holds for one roleset: name that one with --roleset, and no other";
        return Err(UsageError(why.to_owned()).into());
    }
    let folders = rolesets_folders(args.rolesets.rolesets_dir.as_ref(), file);
    let (mut served, mut left_out) = (Vec::new(), Vec::new());
    let all = if args.roleset.is_empty() { list_rolesets(&folders) } else { Vec::new() };
    let settings = args.variant_request().settings;
    for found in all {
        let named = match NamedRoleset::load(found) {
            Ok(named) => named,
            Err(why) => {
                output.warn(&format!("not served: {why}"));
                continue;
            }
        };
        let NamedRoleset { name, roleset, .. } = resolve(&named, &settings, file)?;
        if !roleset.redact {
            let to = if roleset.executes() && sandbox.is_err() { &mut left_out } else { &mut served };
            to.push((name, roleset));
        }
    }
    for name in &args.roleset {
        let named = NamedRoleset::find(name, &folders)?;
        if named.roleset.redact {
            let why = format!(
                "`{name}` cannot be served: it redacts, and a server does not put the originals back"
            );
            return Err(UsageError(why).into());
        }
        served.push((name.clone(), resolve(&named, &settings, file)?.roleset));
    }
    if let Err(why) = sandbox {
        if served.iter().any(|(_, roleset)| roleset.executes()) {
            return Err(why.into());
        }
        let names: Vec<&str> = left_out.iter().map(|(name, _)| name.as_str()).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            output.warn(&format!("not served, because they run programs or checks: {names}; {why}"));
        }
    }
    Ok(served)
}

fn options(args: &HostingArgs, folder: &Path, sandbox: Sandbox) -> Options {
    let work = args.flow.work();
    Options {
        shard: ShardOf::default(),
        seeds: 0..0,
        concurrency: work.runs as usize,
        threads: work.threads,
        clients: Arc::new(work.clients()),
        limits: args.limits.limits(),
        retry: Retry::default(),
        documents: folder.to_owned(),
        task_lines: None,
        sandbox,
        grader: None,
        lifeline: None,
        gives_up: false,
        spans: None,
        budget: None,
    }
}
