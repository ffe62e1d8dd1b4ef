//! One program of a model: it is run by an interpreter, within limits that its record names.
//!
//! The input is a program and the choice of the interpreter. The output is its result, and the interpreter with its version. The
//! interpreter in this program runs in a process of this program behind a wall without any file. The one of the machine runs in the
//! sandbox as every other command does.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::interpreter::{NAME, VERSION};
use super::job::{CommandJob, CommandResult, Confinement, Sandbox, policy_text};
use super::{SandboxError, WallLimits, WallPolicy};
use crate::files::Scratch;
use crypto::Digest;
use protocol::core::{CommandEnd, ExitCode, InterpreterNote};
use protocol::text::one_line;

/// The longest time that a program may take.
pub const PROGRAM_TIME_MAX: Duration = Duration::from_secs(5);

/// The name of the machine's own interpreter.
pub const PYTHON3: &str = "python3";

/// The most memory that a program may use.
const MEMORY_MAX: u64 = 512 << 20;

/// The most bytes that a program may print.
pub const PRINTED_BYTES_MAX: usize = 4096;

/// The time that the interpreter has beyond the time of the program, to start and to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// The time after which the process of the interpreter is ended.
const PROCESS_TIME_MAX: Duration = PROGRAM_TIME_MAX.saturating_add(GRACE);

/// The signals with which people and systems stop a program. At a limit the kernel sends another one.
const STOP_SIGNALS: [i32; 3] = [Signal::SIGHUP as i32, Signal::SIGINT as i32, Signal::SIGTERM as i32];

/// Returns the limits of the interpreter's process. The kernel ends it at a limit of its CPU time, which a record cannot
/// tell from a lack of memory. So that limit lies above the one of its time, and is for a process that no one ends.
fn interpreter_limits() -> WallLimits {
    let cpu_s = PROCESS_TIME_MAX.saturating_add(GRACE).as_secs();
    WallLimits { cpu_s, memory: MEMORY_MAX, file: 0, ..WallLimits::default() }
}

fn interpreter_note(name: &str, version: &str) -> InterpreterNote {
    let time_ms = u64::try_from(PROGRAM_TIME_MAX.as_millis()).unwrap_or(u64::MAX);
    InterpreterNote { name: name.to_owned(), version: version.to_owned(), time_ms, memory: MEMORY_MAX }
}

/// Returns the note of the interpreter in this program.
pub fn embedded_interpreter() -> InterpreterNote {
    interpreter_note(NAME, VERSION)
}

impl Sandbox {
    /// Runs a program by the interpreter in this program.
    pub async fn interpret(&self, source: &str) -> Result<CommandResult, SandboxError> {
        let _room = self.room.acquire().await.ok();
        let began = Instant::now();
        let mut command = Command::new(&self.program);
        command
            .arg("interpret")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.confinement != Confinement::None {
            let policy =
                WallPolicy { interprets: true, limits: interpreter_limits(), ..WallPolicy::default() };
            command.args(["--policy", &policy_text(&policy)]);
        }
        // Ctrl-C in a terminal is for this program, and not for the interpreter.
        let mut child = command
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(SandboxError::io("start", &self.program))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let talk = async {
            if let Some(mut stdin) = stdin {
                // A process that has ended reads nothing more, and its end says why.
                let _ = stdin.write_all(source.as_bytes()).await;
            }
            let (mut printed, mut report) = (Vec::new(), String::new());
            if let Some(stdout) = stdout {
                let _ = stdout.take(PRINTED_BYTES_MAX as u64).read_to_end(&mut printed).await;
            }
            if let Some(stderr) = stderr {
                let _ = stderr.take(PRINTED_BYTES_MAX as u64).read_to_string(&mut report).await;
            }
            (printed, report, child.wait().await)
        };
        let Ok((output, report, status)) = tokio::time::timeout(PROCESS_TIME_MAX, talk).await else {
            return Ok(CommandResult::new(CommandEnd::Time, Vec::new(), began));
        };
        let status = status.map_err(SandboxError::io("wait for", &self.program))?;
        if status.signal().is_some_and(|signal| STOP_SIGNALS.contains(&signal)) {
            return Err(SandboxError::GuardLost);
        }
        match serde_json::from_str(report.trim()) {
            Ok(end) => Ok(CommandResult::new(end, output, began)),
            // The wall was not built, so the program never began.
            Err(_) if status.code() == Some(ExitCode::Usage as i32) => {
                Err(SandboxError::Unavailable(one_line(report.trim())))
            }
            // A process that could not report its end ran out of memory.
            Err(_) => Ok(CommandResult::new(CommandEnd::Memory, output, began)),
        }
    }

    /// Runs a program by the `python3` of this machine. Returns its version too.
    pub async fn python3(&self, source: &str) -> Result<(CommandResult, InterpreterNote), SandboxError> {
        let parent = std::env::temp_dir();
        let scratch =
            Scratch::new(&parent, "program").map_err(SandboxError::io("make a folder in", &parent))?;
        let file = scratch.path().join("program.py");
        std::fs::write(&file, source).map_err(SandboxError::io("write", &file))?;
        // The version comes first, on a line of its own.
        let show = "import sys; print(sys.version.split()[0], flush=True)";
        // Modules come from the installation alone, as with `-I`, which would ignore the seed of hashes.
        let run = format!(
            "{show}; sys.path[:] = [path for path in sys.path if path]; \
             exec(compile(open(sys.argv[1]).read(), 'program.py', 'exec'), {{'__name__': '__main__'}})"
        );
        let file = file.to_string_lossy().into_owned();
        let words = ["env", "PYTHONHASHSEED=0", PYTHON3, "-s", "-c", &run, &file];
        let command = words.map(str::to_owned);
        let job = CommandJob {
            command: &command,
            folder: Path::new("/"),
            reads_folder: false,
            scratch: scratch.path(),
            stdin: None,
            also_reads: None,
            time_max: PROGRAM_TIME_MAX,
            memory_max: Some(MEMORY_MAX),
        };
        let mut result = self.run(&job).await?;
        let first =
            result.output.iter().position(|byte| *byte == b'\n').map_or(result.output.len(), |at| at + 1);
        let version = String::from_utf8_lossy(&result.output[..first]).trim().to_owned();
        result.output.drain(..first);
        if result.output.len() > PRINTED_BYTES_MAX {
            result.end = CommandEnd::Output;
        }
        result.output_sha256 = Digest::new(&result.output);
        Ok((result, interpreter_note(PYTHON3, &version)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process cannot use more CPU time than its only thread has time, so its end does not depend on a race.
    #[test]
    fn cpu_limit_lies_above_time_limit() {
        assert!(interpreter_limits().cpu_s >= PROCESS_TIME_MAX.as_secs() + 5, "{:?}", interpreter_limits());
    }
}
