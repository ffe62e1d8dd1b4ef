//! `consensus serve`: agreement as a model, for any client of OpenAI's interface, and as tools.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use tokio::net::TcpListener;

use super::hosting::{Hosting, STOP_MESSAGES, choose_rolesets};
use crate::batch::{Pruned, Shard, ShardOf, make_folder};
use crate::cli::args::{HealthArgs, ServeArgs};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::run_to_end::block_on;
use crate::cli::signals;
use crate::config::{FileConfig, Roleset};
use crate::sandbox::{Confinement, Sandbox, system_paths};
use crate::serve::{Guard, Pruning, ServeError, Tokens, WayIn, ask_health, prune};
use protocol::core::ExitCode;
use protocol::text::{counted, escape, grouped};

/// The line about a server that wants no token. Such a server listens on a loopback address.
const OPEN: &str = "no token is wanted, so every user of this machine can read all runs and spend on the models; --token-file FILE prevents that";

pub(crate) fn serve(args: &ServeArgs, output: &Output) -> anyhow::Result<ExitCode> {
    block_on(serve_all(args, output))?
}

/// Asks whether a server of this program is there, for `consensus health`.
pub(crate) fn health(args: &HealthArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let version = block_on(ask_health(&args.address))??;
    output.line(&escape::terminal(&format!("{}: consensus {version}", args.address)))?;
    Ok(ExitCode::Success)
}

async fn serve_all(args: &ServeArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let listening = signals::listen(STOP_MESSAGES, None, output)?;
    let file = FileConfig::load()?;
    let tokens = args.token_file.as_deref().map(Tokens::read).transpose()?.unwrap_or_default();
    let guard = Guard::new(args.listen, tokens, &args.allow_host)?;
    let out = &args.output;
    make_folder(out)?;
    let sandbox = Sandbox::new(args.hosting.sandbox.confinement(&file))?;
    let rolesets = choose_rolesets(&args.hosting, &file, sandbox.probe().await, output)?;
    require_elsewhere(args, &file, &rolesets)?;
    if let Some(keep) = args.keep {
        remove_old(out, keep, output)?;
    }
    let shard = Shard::open(out, ShardOf::default())?;
    let hosting = Hosting::open(&args.hosting, file, rolesets, sandbox, out, shard, output).await?;
    let socket = TcpListener::bind(args.listen).await;
    let socket = socket.map_err(|why| ServeError::Listen { address: args.listen, why })?;
    let stop = listening.begin();
    if guard.is_open() {
        output.warn(OPEN);
    }
    output.line(&format!("http://{}/v1", socket.local_addr()?))?;
    hosting.serve(guard, WayIn::Http(socket), stop, output).await
}

/// Removes the runs whose last record is older than `keep`.
fn remove_old(folder: &Path, keep: Duration, output: &Output) -> anyhow::Result<()> {
    match prune(folder, SystemTime::now(), keep)? {
        Pruning::Done(Pruned { runs: 0, .. }) => {}
        Pruning::Done(Pruned { runs, bytes }) => output.status(&format!(
            "removed {} older than {}: {} bytes",
            counted(runs as u64, "run"),
            humantime::format_duration(keep),
            grouped(bytes)
        )),
        Pruning::ClockAhead { newest } => output.warn(&format!(
            "--keep removed nothing: the newest record in `{}` is of {}, more than a year before the time of this machine's clock; correct the clock, or start the server again after a new run",
            folder.display(),
            humantime::format_rfc3339_seconds(newest)
        )),
    }
    Ok(())
}

/// Refuses to serve a roleset with a check to several callers if the check could read what they asked.
fn require_elsewhere(
    args: &ServeArgs,
    file: &FileConfig,
    served: &[(String, Roleset)],
) -> anyhow::Result<()> {
    let Some((name, _)) = served.iter().find(|(_, roleset)| roleset.check.is_some()) else { return Ok(()) };
    let (Some(tokens), Confinement::Walled(access)) =
        (&args.token_file, args.hosting.sandbox.confinement(file))
    else {
        return Ok(());
    };
    // A check may read the folder in which it starts.
    let given = access.read.into_iter().chain(access.write).chain([".".into()]);
    let readable = given.chain(system_paths()).filter_map(|path| path.canonicalize().ok());
    let readable: Vec<PathBuf> = readable.collect();
    for path in [tokens, &args.output] {
        let real = path.canonicalize().with_context(|| format!("cannot find `{}`", path.display()))?;
        if let Some(folder) = readable.iter().find(|folder| real.starts_with(folder)) {
            let (path, folder) = (path.display(), folder.display());
            let why = format!(
                "`{path}` is in `{folder}`, which the check of the roleset `{name}` may read; name another place, or start the server in another folder"
            );
            return Err(UsageError(why).into());
        }
    }
    Ok(())
}
