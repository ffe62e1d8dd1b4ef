//! Manual pages with the usual sections.
//!
//! The input is the description of the command line. The output is a page in roff for each command. NAME, SYNOPSIS, DESCRIPTION,
//! OPTIONS and COMMANDS come from that description. ENVIRONMENT lists the variables that the flags read, and EXIT STATUS the codes of
//! errors. EXAMPLES holds the text that is printed under the help.

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, line_break, roman};

use protocol::core::ExitCode;

/// The heading of the examples under a command's help.
const EXAMPLES: &str = "Examples:";

/// The heading of the exit codes there. On a page they have a section of their own.
const EXIT_CODES: &str = "Exit codes:";

/// The variables that no flag reads.
const VARIABLES: [(&str, &str); 6] = [
    (
        "OPENAI_API_KEY",
        "The key of a server, unless the configuration names another variable. Other providers have keys of their own.",
    ),
    ("OPENAI_BASE_URL", "The address of a server, if no flag, file or other variable names one."),
    ("NO_COLOR", "If it is not empty, the output has no colours."),
    ("PAGER", "The program that shows long transcripts on a terminal; the default is less."),
    ("RUST_LOG", "A filter for the log, finer than --verbose, which it overrides."),
    (
        "XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_CACHE_HOME",
        "The user's folders for configuration, state and caches.",
    ),
];

/// The files that commands read and write.
const FILES: [(&str, &str); 5] = [
    (
        "consensus.toml",
        "The configuration of the current folder. Its settings for programs, servers and keys apply after `consensus trust`.",
    ),
    ("$XDG_CONFIG_HOME/consensus/config.toml", "The user's configuration."),
    ("rolesets/, $XDG_CONFIG_HOME/consensus/rolesets/", "Your own rolesets, with their packs."),
    ("runs/", "Runs, if this folder already has some."),
    (
        "$XDG_STATE_HOME/consensus/runs/",
        "Otherwise the runs: a folder for each, with its journal and its result, and the sessions.",
    ),
];

/// Returns the page of a command. Its description must have been built.
pub(super) fn page(command: &Command) -> std::io::Result<String> {
    // Without this, a page would lack the flags that the short help hides.
    let whole = command.clone().mut_args(|arg| arg.hide_short_help(false));
    let man = Man::new(whole).manual("consensus");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    let (notes, examples) = under_help(command);
    notes.to_writer(&mut text)?;
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    text.extend(grouped(&String::from_utf8_lossy(&options)).into_bytes());
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    for section in [exit_status(), environment(command), listed("FILES", &FILES), examples] {
        section.to_writer(&mut text)?;
    }
    man.render_version_section(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns a file name and a page for a built command and for each command below it that is not hidden.
pub(super) fn pages(command: &Command) -> std::io::Result<Vec<(String, String)>> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let mut all = vec![(format!("{name}.1"), page(command)?)];
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        all.extend(pages(sub)?);
    }
    Ok(all)
}

fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    for (at, line) in usage.trim_start_matches("Usage:").lines().map(str::trim).enumerate() {
        if at > 0 {
            roff.control("br", []);
        }
        roff.text([roman(line)]);
    }
    roff
}

/// Returns the options under one heading, with their groups below it.
fn grouped(options: &str) -> String {
    let heading = ".SH OPTIONS\n";
    let groups = options.replace(heading, "").replace("\n.SH ", "\n.SS ");
    let groups = groups.strip_prefix(".SH ").map_or_else(|| groups.clone(), |first| format!(".SS {first}"));
    if groups.trim().is_empty() { String::new() } else { format!("{heading}{groups}") }
}

/// Returns the text under a command's help in two parts: paragraphs of its description, and its examples.
fn under_help(command: &Command) -> (Roff, Roff) {
    let text = command.get_after_long_help().or_else(|| command.get_after_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    let (mut notes, mut examples) = (Roff::new(), Roff::new());
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.starts_with(EXIT_CODES)) {
        if let Some(lines) = paragraph.strip_prefix(EXAMPLES) {
            examples.control("SH", ["EXAMPLES"]);
            examples.control("nf", []);
            lines.lines().filter(|line| !line.trim().is_empty()).for_each(|line| {
                examples.text([roman(line.trim())]);
            });
            examples.control("fi", []);
        } else if !paragraph.trim().is_empty() {
            notes.control("PP", []);
            notes.text([roman(paragraph.trim().replace('\n', " "))]);
        }
    }
    (notes, examples)
}

fn exit_status() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for code in ExitCode::ALL {
        roff.control("TP", []);
        roff.text([bold(u8::from(code).to_string())]);
        roff.text([roman(code.meaning())]);
    }
    roff
}

/// Returns the variables that a command's flags read, and those of every command.
fn environment(command: &Command) -> Roff {
    let of_flag = |arg: &Arg| {
        let variable = arg.get_env()?.to_str()?.to_owned();
        let flag = arg.get_long().map(|name| format!("--{name}")).unwrap_or_default();
        Some((variable, flag))
    };
    let flags = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(of_flag);
    let mut roff = Roff::new();
    roff.control("SH", ["ENVIRONMENT"]);
    for (variable, flag) in flags {
        roff.control("TP", []);
        roff.text([bold(variable)]);
        roff.text([roman("The value of "), italic(flag), roman(" if that flag is not given.")]);
    }
    entries(&mut roff, &VARIABLES);
    roff
}

fn listed(heading: &str, of: &[(&str, &str)]) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    entries(&mut roff, of);
    roff
}

fn entries(roff: &mut Roff, of: &[(&str, &str)]) {
    for (name, meaning) in of {
        roff.control("TP", []);
        roff.text([bold(*name)]);
        roff.text([roman(*meaning), line_break()]);
    }
}
