//! A terminal of a certain width, in which the program runs, and the screen as it is in the end.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::pty::{Winsize, openpty};
use regex::Regex;

/// Enough lines that nothing scrolls away.
const ROWS: u16 = 400;

/// The widths at which every story is printed.
pub const WIDTHS: [u16; 3] = [60, 80, 100];

/// A program in a terminal.
pub struct Terminal {
    child: Child,
    screen: File,
    parser: vt100::Parser,
}

impl Terminal {
    /// Starts a command in a terminal of this width: it reads nothing, and both of its outputs are on the screen.
    pub fn start(command: &mut Command, width: u16) -> Self {
        let size = Winsize { ws_row: ROWS, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let other: OwnedFd = pty.slave.try_clone().unwrap();
        command.env("TERM", "xterm-256color").env_remove("COLUMNS").env_remove("CI");
        command.stdin(Stdio::null()).stdout(Stdio::from(pty.slave)).stderr(Stdio::from(other));
        let child = command.spawn().unwrap();
        // The command holds the terminal's other side as well, and would keep it open.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self { child, screen: File::from(pty.master), parser: parser(width) }
    }

    /// Starts a command with a person before it, who types and can press Ctrl-C.
    pub fn converse(command: &Command, width: u16) -> Self {
        let size = Winsize { ws_row: ROWS, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let far_end = || Stdio::from(pty.slave.try_clone().unwrap());
        // Only the terminal of a session turns Ctrl-C into a signal.
        let mut own = Command::new("setsid");
        own.arg("--ctty").arg(command.get_program()).args(command.get_args());
        own.current_dir(command.get_current_dir().unwrap());
        own.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        own.env("TERM", "xterm-256color").env_remove("COLUMNS").env_remove("CI");
        let child = own.stdin(far_end()).stdout(far_end()).stderr(far_end()).spawn().unwrap();
        Self { child, screen: File::from(pty.master), parser: parser(width) }
    }

    /// Types this.
    pub fn types(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).unwrap();
    }

    /// The program's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads until this text is on the screen.
    pub fn until(&mut self, text: &str) {
        while !self.parser.screen().contents().contains(text) {
            assert!(self.read(), "{text:?} never came: {}", self.parser.screen().contents());
        }
    }

    /// Reads what has come; false at the end.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // Linux says EIO once the last one has closed the other side.
        let count = self.screen.read(&mut bytes).unwrap_or(0);
        self.parser.process(&bytes[..count]);
        count > 0
    }

    /// Lets the program end, and returns its exit code and the screen.
    pub fn finish(mut self) -> (i32, Vec<String>) {
        while self.read() {}
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let screen = self.parser.screen();
        let mut rows: Vec<String> =
            screen.rows(0, screen.size().1.get()).map(|row| row.trim_end().to_owned()).collect();
        let wrapped = (0..ROWS).find(|row| screen.row_wrapped(*row));
        // A path or an address has no place at which it could be broken.
        let is_whole = |row: u16| {
            rows[usize::from(row)].split_whitespace().next_back().is_some_and(|word| word.len() > 40)
        };
        assert!(wrapped.is_none_or(is_whole), "line {wrapped:?} is longer than the terminal: {rows:#?}");
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        (code, rows)
    }
}

fn parser(width: u16) -> vt100::Parser {
    let size = |count| NonZero::new(count).unwrap();
    vt100::Parser::new(size(ROWS), size(width), 0)
}

/// Compares a screen with the one that was looked at.
#[track_caller]
pub fn is_as_before(name: &str, width: u16, folder: &Path, rows: &[String]) {
    let path =
        PathBuf::from(format!("{}/tests/fixtures/terminal/{name}-{width}.txt", env!("CARGO_MANIFEST_DIR")));
    let text: String = rows.iter().map(|row| masked(row, folder) + "\n").collect();
    if std::env::var_os("CONSENSUS_REWRITE").is_some() {
        std::fs::write(path, text).unwrap();
        return;
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, before, "`{}` has another screen than before", path.display());
}

/// A line without what differs from run to run, as long as before.
fn masked(row: &str, folder: &Path) -> String {
    let mut row = row.replace(&folder.display().to_string(), "FOLDER");
    for (pattern, mask) in [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "x"),
        (r"[0-9a-f]{40,64}", "x"),
        (r"seed [0-9]{6,}", "seed N"),
        (r"127\.0\.0\.1:[0-9]+", "127.0.0.1:PORT"),
        (r"[0-9]+\.[0-9] s\b", "0.0 s"),
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "TIME"),
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}", "TIME"),
        (r"^[0-9a-f]{6,8}  [0-9]+s", "ENDOFX  0s"),
        (r"consensus resume [0-9a-f]{6}\b", "consensus resume ENDOFX"),
        (r"s (p50|p95) [0-9]+\.[0-9]{2}", "s $1 0.00"),
    ] {
        row = Regex::new(pattern).unwrap().replace_all(&row, mask).into_owned();
    }
    row
}
