//! Real processes in folders of their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use consensus::report::{RECORD_SCHEMA, RESULT_SCHEMA};
use jsonschema::Validator;
use protocol::text::schema::{compile, parse_embedded};
use serde_json::Value;

/// The words of a run by a pair that talks: its replies come in several rounds, one after the other.
pub const TALK: [&str; 4] = ["--roleset", "generalist_critic", "--talk", "always"];

/// A folder that is gone when the test is over.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("consensus-it-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // Memory-backed where there is such a thing: the sweeps sync thousands of times.
        let base = Some(PathBuf::from("/dev/shm")).filter(|p| p.is_dir()).unwrap_or_else(std::env::temp_dir);
        let path = base.join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the one run folder below `runs`.
    pub fn run(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> =
            std::fs::read_dir(self.0.join("runs")).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.pop().unwrap()
    }

    pub fn result(&self) -> Value {
        let text = std::fs::read_to_string(self.run().join("result.json")).unwrap();
        let result = serde_json::from_str(&text).unwrap();
        // Whatever a test is about, a result and its journal are as their schemas say.
        conforms(&RESULT, &result);
        let journal = std::fs::read_to_string(self.run().join("journal.jsonl")).unwrap();
        for line in journal.lines() {
            conforms(&RECORD, &serde_json::from_str(line).unwrap());
        }
        result
    }
}

static RESULT: LazyLock<Validator> = LazyLock::new(|| compile(&parse_embedded(RESULT_SCHEMA)));
static RECORD: LazyLock<Validator> = LazyLock::new(|| compile(&parse_embedded(RECORD_SCHEMA)));

#[track_caller]
fn conforms(schema: &Validator, value: &Value) {
    let errors: Vec<String> = schema.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {value}");
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the program, to be run in `folder` with nothing of the caller's configuration.
pub fn consensus(folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_consensus"));
    command.current_dir(folder.path()).stdin(Stdio::null());
    for name in ["OPENAI_BASE_URL", "OPENAI_API_KEY", "RUST_LOG", "NO_COLOR", "COLUMNS", "LINES"] {
        command.env_remove(name);
    }
    let is_ours = |name: &str| name.starts_with("CONSENSUS_") || name.starts_with("AWS_");
    for (name, _) in std::env::vars().filter(|(name, _)| is_ours(name)) {
        command.env_remove(name);
    }
    command.env("HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path().join("config"));
    command.env("XDG_CACHE_HOME", folder.path().join("cache"));
    // A test says what is asked of a server; those of the look at its models take this away.
    command.env("CONSENSUS_NO_MODEL_CHECK", "1");
    // Runs of one test are in its own folder, unless it says where.
    let says_where = |file: &str| {
        let path = folder.path().join(file);
        // Some of these never end, and some never begin.
        let is_file = std::fs::metadata(&path).is_ok_and(|about| about.is_file() && about.len() < 1 << 16);
        is_file && std::fs::read_to_string(path).is_ok_and(|text| text.contains("runs_dir"))
    };
    if !["consensus.toml", "config/consensus/config.toml"].into_iter().any(says_where) {
        command.env("CONSENSUS_RUNS_DIR", "runs");
    }
    command
}

/// Trusts what the folder's configuration says about servers, programs and places elsewhere, as its user would.
#[track_caller]
pub fn trust(folder: &Folder) {
    Finished::of(consensus(folder).arg("trust")).exits(0);
}

/// Returns the command of the tests' model server with these behaviours.
pub fn fake_llm(behaviours: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_consensus")).with_file_name("examples").join("fake_llm");
    assert!(program.exists(), "`cargo test` builds {}", program.display());
    format!("{} {{port}} {behaviours}", program.display())
}

/// What a process left behind.
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    #[track_caller]
    pub fn of(command: &mut Command) -> Self {
        Self::with(command.output().unwrap())
    }

    /// The same of a process that has ended.
    #[track_caller]
    pub fn with(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        let finished = Self { code, stdout: text(output.stdout), stderr: text(output.stderr) };
        assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
        finished
    }

    /// Asserts the exit code and shows everything if it differs.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }
}

/// Returns `result.json` without what differs between two runs of one kind: id, times, and the head,
/// which covers the times.
pub fn mask(result: &str) -> Value {
    let mut value: Value = serde_json::from_str(result).unwrap();
    for name in ["run", "timing", "journal_head"] {
        value[name] = Value::Null;
    }
    value
}

/// Returns the names of the commands that a help page lists. The page of the program itself has them in groups.
pub fn listed_commands(help: &str, is_root: bool) -> Vec<String> {
    let list = if is_root { Some(help) } else { help.split_once("\nCommands:\n").map(|(_, below)| below) };
    let mut names = Vec::new();
    for line in list.unwrap_or_default().lines().take_while(|line| is_root || !line.is_empty()) {
        let is_entry = line.starts_with("  ") && !line.starts_with("   ");
        let name = line.split_whitespace().next().unwrap_or_default();
        if is_entry && name != "help" {
            names.push(name.to_owned());
        }
    }
    names
}
