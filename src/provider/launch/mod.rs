//! A model server that belongs to a run: started for it, watched during it, and gone after it.
//!
//! The input is a [`LaunchCommand`], a log file, and the time to wait. The output is the base URL of a server that
//! answers, and a [`Lifeline`] from which calls learn its state. A server that dies is started again once, on the same
//! port. Calls that failed because it died wait for the restart, and are made again.
//!
//! The server belongs to a [guard](crate::process), which ends it however this program ends. So no code here has to end
//! it when the program exits. If the guard itself is killed, the children of the server have to notice on their own.
//!
//! Commands come from the user alone, never from a journal, a roleset or a folder that the user has not trusted, and no
//! shell reads them. A server inherits the environment without the keys of other services; the module `environment` has
//! the list.

mod command;
mod environment;
pub(super) mod error;
mod lifeline;

pub use command::{LAUNCHERS, LaunchCommand, Launcher};
pub use error::LaunchError;
pub use lifeline::Lifeline;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use self::lifeline::Life;
use super::Probe;
use protocol::core::Timeouts;
use protocol::text::escape;

/// The interval at which a starting server is asked whether it is ready.
const POLL: Duration = Duration::from_millis(250);

/// The time that the guard has to end the server, with some room beyond its own grace.
const END_MAX: Duration = Duration::from_secs(15);

/// The part of the log's end that is shown when a server ends, in bytes and in lines.
const TAIL_BYTES: u64 = 8 << 10;
const TAIL_LINES: usize = 12;

/// A running server that this program started.
#[derive(Debug)]
pub struct LaunchedServer {
    lifeline: Lifeline,
    stop: Option<oneshot::Sender<()>>,
    watcher: JoinHandle<()>,
}

impl LaunchedServer {
    /// Starts a server and waits until it answers.
    ///
    /// The server's output is appended to `log`. The function `on_wait` is called at intervals with the time that has
    /// passed since the start. The names in `key_variables` are environment variables with keys of other servers, which
    /// this one does not get.
    ///
    /// Returns [`LaunchError`] if the server does not start, in which case no process is left.
    pub async fn start(
        command: &LaunchCommand,
        log: &Path,
        timeouts: Timeouts,
        key_variables: &BTreeSet<String>,
        on_wait: impl Fn(Duration),
    ) -> Result<Self, LaunchError> {
        let plan = ServerPlan::new(command, log, timeouts, key_variables)?;
        let mut guarded = plan.spawn().map_err(|why| cannot_start(&why))?;
        if let Err(why) = plan.wait_until_ready(&mut guarded, on_wait).await {
            guarded.end().await;
            return Err(why);
        }
        let (sender, life) = watch::channel(Life::Ready(1));
        let (stop, stopped) = oneshot::channel();
        let lifeline = Lifeline { life, base_url: plan.base_url.clone() };
        let watcher = tokio::spawn(plan.watch(guarded, sender, stopped));
        Ok(Self { lifeline, stop: Some(stop), watcher })
    }

    /// Returns the server's base URL, up to and including `/v1`.
    pub fn base_url(&self) -> &str {
        &self.lifeline.base_url
    }

    /// Returns the lifeline for calls to the server.
    pub fn lifeline(&self) -> Lifeline {
        self.lifeline.clone()
    }

    /// Ends the server and waits until it is gone.
    pub async fn end(mut self) {
        // If the watcher has ended already, the server has ended too.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.watcher.await;
    }
}

/// A guard and the pipe that it watches. The pipe is taken out of the guard, because waiting for a child closes its standard input.
struct GuardedServer {
    guard: Child,
    pipe: Option<ChildStdin>,
}

impl GuardedServer {
    /// Closes the pipe, and waits until the guard has ended the server.
    async fn end(mut self) {
        drop(self.pipe.take());
        if tokio::time::timeout(END_MAX, self.guard.wait()).await.is_err() {
            tracing::warn!("the model server takes long to stop; its guard process will stop it");
        }
    }
}

/// The data that every start of one server needs.
struct ServerPlan {
    words: Vec<String>,
    log: PathBuf,
    base_url: String,
    probe: Probe,
    ready_max: Duration,
    /// The variables that the server does not get.
    withheld: Vec<OsString>,
}

impl ServerPlan {
    fn new(
        command: &LaunchCommand,
        log: &Path,
        timeouts: Timeouts,
        key_variables: &BTreeSet<String>,
    ) -> Result<Self, LaunchError> {
        // The port is free now. If another program takes it before the server does, the server's log says so.
        let address = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
        let port = address.map_err(|why| cannot_start(&why))?.port();
        let base_url = format!("http://127.0.0.1:{port}/v1");
        let probe = Probe::new(&base_url).map_err(|why| cannot_start(&why))?;
        if let Some(folder) = log.parent() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder).map_err(|why| cannot_start(&why))?;
        }
        let ready_max = Duration::from_millis(timeouts.ready_ms);
        let withheld = environment::withheld_variables(key_variables);
        Ok(Self { words: command.words(port), log: log.to_owned(), base_url, probe, ready_max, withheld })
    }

    fn program(&self) -> String {
        self.words.first().cloned().unwrap_or_default()
    }

    /// Starts a guard that starts the server.
    fn spawn(&self) -> std::io::Result<GuardedServer> {
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.log)?;
        let this_program = std::env::current_exe()?;
        let mut command = Command::new(this_program);
        for name in &self.withheld {
            command.env_remove(name);
        }
        command.arg("guard").arg("--").args(&self.words);
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        // The guard has a group of its own, so that Ctrl-C in a terminal reaches this process alone.
        let mut guard = command.process_group(0).spawn()?;
        let pipe = guard.stdin.take();
        Ok(GuardedServer { guard, pipe })
    }

    /// Waits until the server answers or ends.
    async fn wait_until_ready(
        &self,
        guarded: &mut GuardedServer,
        on_wait: impl Fn(Duration),
    ) -> Result<(), LaunchError> {
        let began = Instant::now();
        loop {
            if let Some(status) = guarded.guard.try_wait().map_err(|why| cannot_start(&why))? {
                return Err(self.describe_end("before it was ready", status));
            }
            // A server that accepts a connection but sends no reply is not ready either.
            let left = self.ready_max.saturating_sub(began.elapsed());
            if tokio::time::timeout(left, self.probe.is_ready()).await == Ok(true) {
                return Ok(());
            }
            let after = began.elapsed();
            if after >= self.ready_max {
                let (program, log, tail) = (self.program(), self.log.clone(), show_tail(&self.log));
                return Err(LaunchError::NotReady { program, after: self.ready_max, log, tail });
            }
            on_wait(after);
            tokio::time::sleep(POLL).await;
        }
    }

    /// Watches a server until it is to end, and starts it again once.
    async fn watch(
        self,
        mut guarded: GuardedServer,
        life: watch::Sender<Life>,
        mut stop: oneshot::Receiver<()>,
    ) {
        let mut starts = 1;
        loop {
            let status = tokio::select! {
                // An owner that was dropped has closed this channel, and the server is to end as well.
                _ = &mut stop => return guarded.end().await,
                status = guarded.guard.wait() => status.unwrap_or_default(),
            };
            let ended = self.describe_end("during the run", status);
            if starts > 1 {
                life.send_replace(Life::Dead(ended));
                return;
            }
            tracing::warn!("{ended}\nrestarting the model server");
            starts += 1;
            life.send_replace(Life::Starting);
            guarded = match self.spawn() {
                Ok(guarded) => guarded,
                Err(why) => {
                    life.send_replace(Life::Dead(cannot_start(&why)));
                    return;
                }
            };
            let ready = tokio::select! {
                _ = &mut stop => None,
                ready = self.wait_until_ready(&mut guarded, |_| {}) => Some(ready),
            };
            match ready {
                None => return guarded.end().await,
                Some(Ok(())) => drop(life.send_replace(Life::Ready(starts))),
                Some(Err(why)) => {
                    life.send_replace(Life::Dead(why));
                    return guarded.end().await;
                }
            }
        }
    }

    fn describe_end(&self, when: &'static str, status: ExitStatus) -> LaunchError {
        let (program, log, tail) = (self.program(), self.log.clone(), show_tail(&self.log));
        LaunchError::Ended { program, when, status: status.to_string(), log, tail }
    }
}

fn cannot_start(why: &dyn std::fmt::Display) -> LaunchError {
    LaunchError::Start(why.to_string())
}

fn read_tail(log: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the last lines of a log, in a form that is safe to print.
fn show_tail(log: &Path) -> String {
    let bytes = read_tail(log).unwrap_or_default();
    let text = escape::terminal(&String::from_utf8_lossy(&bytes));
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    if last.is_empty() { "  (nothing)".to_owned() } else { format!("  {}", last.join("\n  ")) }
}
