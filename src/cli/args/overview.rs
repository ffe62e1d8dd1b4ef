//! The help of the program itself: its commands, grouped by what a person wants.

use std::fmt::Write as _;

use clap::{ColorChoice, Subcommand};

use super::Command;

/// What a person wants, and the commands for it.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Ask", &["run", "chat", "sessions", "resume"]),
    ("Many tasks", &["batch", "results"]),
    ("How good it is", &["eval", "calibrate"]),
    ("Behind an interface", &["serve", "mcp", "health"]),
    ("Changes to a repository", &["review", "approve", "keys"]),
    ("Records", &["runs", "show", "verify", "export"]),
    ("Set up", &["roleset", "persona", "docs", "doctor", "trust", "schema", "completions", "man"]),
];

/// The lines below the commands.
const FOOT: &str = "\
`consensus help COMMAND` explains a command, and the options of all commands. `-V` prints the version.
Exit codes: 0 agreed, 1 internal error, 2 usage, 3 no agreement or withheld, 4 vetoed, 5 budget or deadline,
6 provider unusable, 7 does not verify, 8 degraded, 9 bar missed, 130 interrupted.";

/// Returns the template of the help of the program itself.
pub(super) fn overview() -> String {
    let commands = Command::augment_subcommands(clap::Command::new("consensus").color(ColorChoice::Never));
    let mut text = "{about-with-newline}\n{usage-heading} {usage}, or consensus \"QUESTION\"\n\n".to_owned();
    for (wish, names) in GROUPS {
        let _ = writeln!(text, "{wish}:");
        for name in names {
            let about = commands.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<12} {about}");
        }
    }
    text + FOOT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The help fits on a screen of forty lines, and has every command once.
    #[test]
    fn overview_has_every_command_once() {
        let commands = Command::augment_subcommands(clap::Command::new("consensus"));
        let mut visible: Vec<&str> = commands
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
        // The first line of the template is the sentence about the program, and an empty line.
        assert!(overview().lines().count() < 40);
        assert!(overview().lines().all(|line| line.chars().count() <= 108));
    }
}
