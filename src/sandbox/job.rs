//! One run of a command: it is started behind a guard, and its output and its end are reported.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

use super::{SandboxError, WallLimits, WallPolicy};
use crate::process::hide_memory;
use crypto::Digest;
use protocol::core::CommandEnd;

/// The most bytes of a command's output that are kept, from its beginning. The rest is read and forgotten.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;

/// The time that the guard may take to end a command whose time is over.
const GRACE: Duration = Duration::from_secs(20);

/// The variables of the environment that a command sees. None of them holds a secret.
const ENVIRONMENT: [&str; 11] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "JAVA_HOME",
    "GOPATH",
];

/// What the user lets commands do, beside what they always may.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Access {
    /// Files and folders that they may read.
    pub read: Vec<PathBuf>,
    /// Files and folders that they may write.
    pub write: Vec<PathBuf>,
    /// Whether they may use the network by IP.
    pub net: bool,
}

/// The choice between a wall and none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Confinement {
    /// Commands run behind a wall, with this access.
    Walled(Access),
    /// Commands run with all rights of their user.
    None,
}

impl Default for Confinement {
    fn default() -> Self {
        Self::Walled(Access::default())
    }
}

/// The way in which commands are run.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub(super) program: PathBuf,
    pub(super) confinement: Confinement,
    /// Room for one command on each core.
    pub(super) room: Arc<Semaphore>,
}

#[derive(Debug)]
pub struct CommandJob<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// The folder that it starts in.
    pub folder: &'a Path,
    /// Whether it may read that folder.
    pub reads_folder: bool,
    /// The folder that belongs to it alone, for its temporary files.
    pub scratch: &'a Path,
    /// The file that it reads as its standard input, if any.
    pub stdin: Option<&'a Path>,
    /// A further file that it may read, if any.
    pub also_reads: Option<&'a Path>,
    /// The longest time that it may take.
    pub time_max: Duration,
    /// The most memory that it may use, in bytes, if that is less than every command may.
    pub memory_max: Option<u64>,
}

/// The result of a command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CommandResult {
    /// The way in which it ended.
    pub end: CommandEnd,
    /// Its output, both streams as they came, up to 16 MiB.
    pub output: Vec<u8>,
    /// The SHA-256 of that output.
    pub output_sha256: Digest,
    /// The time that it took.
    pub took: Duration,
}

impl CommandResult {
    pub(super) fn new(end: CommandEnd, output: Vec<u8>, began: Instant) -> Self {
        Self { end, output_sha256: Digest::new(&output), output, took: began.elapsed() }
    }
}

impl Sandbox {
    /// Runs commands in this way. From here on, no other program of the same user can look into this process.
    ///
    /// Returns [`SandboxError::Io`] if this program does not know its own path, and [`SandboxError::Path`] for a path that
    /// does not exist.
    pub fn new(mut confinement: Confinement) -> Result<Self, SandboxError> {
        hide_memory();
        let program = std::env::current_exe().map_err(SandboxError::io("find", Path::new("this program")))?;
        if let Confinement::Walled(access) = &mut confinement {
            for path in access.read.iter_mut().chain(&mut access.write) {
                make_absolute(path)?;
            }
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self { program, confinement, room: Arc::new(Semaphore::new(cores)) })
    }

    /// Returns true if commands are walled in.
    pub fn is_walled(&self) -> bool {
        self.confinement != Confinement::None
    }

    /// Finds out whether this machine can wall in a command.
    ///
    /// Returns [`SandboxError::Unavailable`] with the reason.
    pub async fn probe(&self) -> Result<(), SandboxError> {
        if !self.is_walled() {
            return Ok(());
        }
        let policy = policy_text(&WallPolicy { interprets: true, ..WallPolicy::default() });
        let mut command = Command::new(&self.program);
        command.args(["wall", "--policy", &policy]).env_clear();
        let output = command.output().await.map_err(SandboxError::io("start", &self.program))?;
        if output.status.success() {
            return Ok(());
        }
        Err(SandboxError::Unavailable(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }

    /// Runs a command to its end, or until its time is over. It waits until a core is free for it.
    ///
    /// Returns [`SandboxError`] if the processes around it cannot be started. A command that cannot be started itself is one
    /// that exited, as in a shell.
    pub async fn run(&self, job: &CommandJob<'_>) -> Result<CommandResult, SandboxError> {
        // The semaphore is never closed.
        let _room = self.room.acquire().await.ok();
        let began = Instant::now();
        let (reader, writer) = std::io::pipe().map_err(SandboxError::io("make a pipe for", &self.program))?;
        let output = tokio::task::spawn_blocking(move || read_output(reader));
        let mut guard = self.spawn(job, writer)?;
        // Waiting for a process closes its standard input, which would end the command.
        let lifeline = guard.stdin.take();
        let report = guard.stderr.take();
        let is_late = tokio::time::timeout(job.time_max, guard.wait()).await.is_err();
        drop(lifeline);
        if is_late && tokio::time::timeout(GRACE, guard.wait()).await.is_err() {
            // A guard that was stopped is killed, and the kernel kills the command.
            guard.start_kill().map_err(SandboxError::io("end", &self.program))?;
        }
        guard.wait().await.map_err(SandboxError::io("wait for", &self.program))?;
        let mut end = String::new();
        if let Some(mut report) = report {
            let _ = report.read_to_string(&mut end).await;
        }
        // A process that escaped a command without a wall may hold the pipe. Its output from here on does not matter.
        let output = tokio::time::timeout(GRACE, output).await.ok().and_then(Result::ok).unwrap_or_default();
        let end = match (is_late, serde_json::from_str(end.trim())) {
            (true, _) => CommandEnd::Time,
            (false, Ok(Some(end))) => end,
            // Something else has ended the guard, which says nothing about the command.
            (false, Ok(None) | Err(_)) => return Err(SandboxError::GuardLost),
        };
        Ok(CommandResult::new(end, output, began))
    }

    fn spawn(&self, job: &CommandJob<'_>, stdout: std::io::PipeWriter) -> Result<Child, SandboxError> {
        let mut command = Command::new(&self.program);
        command.args(["guard", "--report"]);
        if let Confinement::Walled(access) = &self.confinement {
            let policy = job.policy(access);
            command.arg("--memory").arg(policy.limits.memory.to_string());
            command.arg("--wall").arg(policy_text(&policy));
        }
        if let Some(file) = job.stdin {
            command.arg("--stdin").arg(file);
        }
        command.arg("--remove").arg(job.scratch).arg("--").args(job.command);
        let environment = ENVIRONMENT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        command.current_dir(job.folder).env_clear().envs(environment).env("TMPDIR", job.scratch);
        command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
        // Ctrl-C in a terminal is for this program, which decides what becomes of the command.
        command.process_group(0);
        command.spawn().map_err(SandboxError::io("start", &self.program))
    }
}

impl CommandJob<'_> {
    fn policy(&self, access: &Access) -> WallPolicy {
        let mut read = access.read.clone();
        if self.reads_folder {
            read.push(self.folder.to_owned());
        }
        read.extend([self.stdin, self.also_reads].into_iter().flatten().map(Path::to_owned));
        // A process that is not ended by its time is ended by the kernel a little later.
        let limits = WallLimits::default();
        let cpu_s = self.time_max.as_secs().saturating_add(2);
        WallPolicy {
            read,
            write: access.write.clone(),
            scratch: Some(self.scratch.to_owned()),
            net: access.net,
            interprets: false,
            limits: WallLimits { cpu_s, memory: self.memory_max.unwrap_or(limits.memory), ..limits },
        }
    }
}

/// Makes a path absolute, so that it is the same place from whichever folder a command starts.
fn make_absolute(path: &mut PathBuf) -> Result<(), SandboxError> {
    let mut absolute = path.canonicalize();
    // A policy is written as JSON, which has no other paths.
    if absolute.as_ref().is_ok_and(|absolute| absolute.to_str().is_none()) {
        absolute = Err(std::io::Error::other("its name is not UTF-8"));
    }
    *path = absolute.map_err(|source| SandboxError::Path { path: path.clone(), source })?;
    Ok(())
}

pub(super) fn policy_text(policy: &WallPolicy) -> String {
    // The command cannot run behind a policy that cannot be read, as for a path that is not UTF-8.
    serde_json::to_string(policy).unwrap_or_default()
}

/// Reads the output of a command, and keeps its beginning. It reads the rest as well, so that the command is not held
/// up.
fn read_output(mut pipe: std::io::PipeReader) -> Vec<u8> {
    let mut output = Vec::new();
    // A pipe that cannot be read has ended.
    let _ = pipe.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut output);
    let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    output
}
