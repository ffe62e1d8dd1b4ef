//! `consensus serve`: agreement as a model, for any client of OpenAI's interface.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use tokio::net::TcpListener;

use crate::batch::{OpenColumns, Options, Progress, Retry, Shard, ShardOf, State};
use crate::cli::args::ServeArgs;
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::runtime::block_on;
use crate::cli::signals::{self, Leaves};
use crate::config::{FileConfig, Roleset, find_roleset, list_rolesets, load_roleset};
use crate::core::ExitCode;
use crate::files::private_folder;
use crate::protocol::ProtocolParams as _;
use crate::provider::Flow;
use crate::provider::launch::Launched;
use crate::run::{CheckChange, add_configured_check, rolesets_folders};
use crate::sandbox::{Confinement, Sandbox, SandboxError, system_paths};
use crate::serve::{Guard, ServeError, ServeRequest, Served, Tokens, serve as answer};
use crate::text::counted;

use super::batch::tell_stopping;

/// The messages of a server that is stopped.
const LEAVES: Leaves = Leaves {
    unbegun: "before the server began; nothing was asked",
    begun: "all replies received are kept; runs with a key go on when the same command starts again",
};

pub(crate) fn serve(args: &ServeArgs, output: &Output) -> anyhow::Result<ExitCode> {
    block_on(serve_all(args, output))?
}

async fn serve_all(args: &ServeArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let listening = signals::listen(LEAVES, None, output)?;
    let file = FileConfig::load()?;
    let tokens = args.token_file.as_deref().map(Tokens::read).transpose()?.unwrap_or_default();
    let guard = Guard::new(args.listen, tokens, &args.allow_host)?;
    let out = &args.output;
    let made = private_folder(out);
    made.map_err(|why| UsageError(format!("cannot make the folder `{}`: {why}", out.display())))?;
    let sandbox = Sandbox::new(args.sandbox.confinement(&file))?;
    let rolesets = rolesets(args, &file, sandbox.probe().await, output)?;
    require_elsewhere(args, &file, &rolesets)?;
    let rolesets = rolesets.into_iter().map(|(name, _)| name).collect();
    let mut shard = Shard::open(out, ShardOf::default())?;
    let log = out.join("server.log");
    let (columns, server) = OpenColumns::open(args.columns(), file, None, &log, output).await?;
    let socket = TcpListener::bind(args.listen).await;
    let socket = socket.map_err(|why| ServeError::Listen { address: args.listen, why })?;
    let stop = listening.begin();
    tokio::spawn(tell_stopping(stop.clone(), *output));
    output.line(&format!("http://{}/v1", socket.local_addr()?))?;
    let options = Options { lifeline: server.as_ref().map(Launched::lifeline), ..options(args, sandbox) };
    let request = ServeRequest {
        folder: out.clone(),
        guard,
        rolesets,
        allowed: args.allow_model.clone(),
        queue: args.queue as usize,
        options,
    };
    let ended = Box::pin(answer(request, &mut shard, &columns, socket, stop)).await;
    if let Some(server) = server {
        server.end().await;
    }
    let Served { figures, left } = ended?;
    let state = if left == 0 { State::Ended } else { State::Stopped };
    let ended = figures.ended.all() - figures.before;
    let progress = Progress::new(ShardOf::default(), state, SystemTime::now(), figures);
    progress
        .write(out, ShardOf::default())
        .with_context(|| format!("cannot write into `{}`", out.display()))?;
    let and = if left == 0 {
        String::new()
    } else {
        format!("; the next start continues {}", counted(left, "run"))
    };
    output.status(&format!("stopped after {}{and}", counted(ended, "run")));
    Ok(ExitCode::Success)
}

/// Returns the names of the rolesets that are served. Those of reviewers decide on changes, and those that redact have tokens in their
/// answers; neither is of use to a client.
///
/// Where the sandbox does not work, rolesets that execute something are left out, or refused if they were named.
fn rolesets(
    args: &ServeArgs,
    file: &FileConfig,
    sandbox: Result<(), SandboxError>,
    output: &Output,
) -> anyhow::Result<Vec<(String, Roleset)>> {
    let folders = rolesets_folders(args.rolesets.rolesets_dir.as_ref(), file);
    let is_served = |roleset: &Roleset| roleset.params.protocol() != "approval" && !roleset.redact;
    let (mut served, mut left_out) = (Vec::new(), Vec::new());
    let with_check = |mut roleset: Roleset| {
        add_configured_check(&mut roleset, &CheckChange::default(), file);
        roleset
    };
    let all = if args.roleset.is_empty() { list_rolesets(&folders) } else { Vec::new() };
    for found in all {
        let Ok((roleset, _)) = load_roleset(&found) else { continue };
        let roleset = with_check(roleset);
        if is_served(&roleset) {
            let to = if roleset.executes() && sandbox.is_err() { &mut left_out } else { &mut served };
            to.push((found.name, roleset));
        }
    }
    for name in &args.roleset {
        let (roleset, _) = load_roleset(&find_roleset(name, &folders)?)?;
        if !is_served(&roleset) {
            let why = format!("`{name}` cannot be served: it is for reviewers, or it redacts");
            return Err(UsageError(why).into());
        }
        served.push((name.clone(), with_check(roleset)));
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

/// Refuses to serve a roleset with a check to several callers if the check could read what they asked.
fn require_elsewhere(
    args: &ServeArgs,
    file: &FileConfig,
    served: &[(String, Roleset)],
) -> anyhow::Result<()> {
    let Some((name, _)) = served.iter().find(|(_, roleset)| roleset.check.is_some()) else { return Ok(()) };
    let (Some(tokens), Confinement::Walled(access)) = (&args.token_file, args.sandbox.confinement(file))
    else {
        return Ok(());
    };
    // A check may read the folder in which it starts.
    let given = access.read.into_iter().chain(access.write).chain([".".into()]);
    let readable = given.chain(system_paths()).filter_map(|path| path.canonicalize().ok());
    let readable: Vec<PathBuf> = readable.collect();
    for path in [tokens, &args.output] {
        let real = path.canonicalize().with_context(|| format!("cannot find `{}`", path.display()))?;
        let is_in = |folder: &&PathBuf| real.starts_with(folder);
        if let Some(folder) = readable.iter().find(is_in) {
            let (path, folder) = (path.display(), folder.display());
            let why = format!(
                "`{path}` is in `{folder}`, which the check of the roleset `{name}` may read; name another place, or start the server in another folder"
            );
            return Err(UsageError(why).into());
        }
    }
    Ok(())
}

/// Returns the options of a server's runs.
fn options(args: &ServeArgs, sandbox: Sandbox) -> Options {
    Options {
        shard: ShardOf::default(),
        seeds: 0..0,
        concurrency: args.flow.runs_at_once as usize,
        threads: args.flow.threads(),
        flow: Flow { max: args.flow.calls_at_once as usize },
        reused: Arc::default(),
        limits: args.limits.limits(),
        retry: Retry::default(),
        documents: args.output.clone(),
        tasks_lines: None,
        sandbox,
        grader: None,
        lifeline: None,
        gives_up: false,
        onlooker: None,
    }
}
