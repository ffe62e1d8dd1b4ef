//! The command line: one file per subcommand, and the only place that prints.
//!
//! The answer goes to stdout, and the story to stderr. Every command returns an [`ExitCode`] or an error with a message. [`main`]
//! turns both into the output and the exit code of the process.

mod answer;
mod args;
mod batch_story;
mod command_words;
mod commands;
mod completion;
mod error;
mod eval_table;
mod journals;
mod live;
mod manual;
mod metrics;
mod output;
mod pager;
mod progress;
mod reexecution;
mod run_to_end;
mod signals;
mod spinner;
mod table;

use std::ffi::OsString;
use std::time::SystemTime;

use args::{Cli, Command};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use error::UsageError;
use output::Output;

use protocol::core::ExitCode;

/// Runs the program with these arguments, the program's name first, and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // If a shell asks for completions, the program does nothing else.
    let completing =
        CompleteEnv::with_factory(Cli::command).var(completion::VARIABLE).shells(completion::SHELLS);
    match completing.try_complete(&arguments, std::env::current_dir().ok().as_deref()) {
        Ok(false) => {}
        Ok(true) => return ExitCode::Success.into(),
        Err(why) => {
            let _ = why.print();
            return ExitCode::Usage.into();
        }
    }
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and versions go to stdout and are not failures; clap tells them apart.
            if !error.use_stderr() {
                let _ = error.print();
                return ExitCode::Success.into();
            }
            if wants_json(&arguments, "--log-format") {
                output::log_as_json("ERROR", error.to_string().trim());
            } else {
                let _ = error.print();
            }
            if wants_json(&arguments, "--format") {
                output::json_error(&error.to_string(), ExitCode::Usage);
            }
            return ExitCode::Usage.into();
        }
    };
    let is_server = matches!(&cli.command, Command::Serve(_) | Command::Mcp(_));
    let is_service = is_server || matches!(&cli.command, Command::Approve(args) if args.replica.is_some());
    let output = Output::new(&cli.global);
    let output = if is_service { output.with_times() } else { output };
    output.start_logging();
    let result = check_clock(SystemTime::now()).and_then(|()| dispatch(&cli, &arguments, &output));
    match result {
        // A signal is the way to end a server.
        Ok(ExitCode::Success) if signals::was_heard() && !is_server => {
            output.warn("a signal came too late to stop this command; its output is complete, but its exit code is that of a signal");
            ExitCode::Interrupted.into()
        }
        Ok(code) => code.into(),
        Err(error) => {
            let code = error::exit_code(&error);
            output.error(&error, code);
            code.into()
        }
    }
}

/// Returns whether arguments that could not be parsed set this flag to `json` or `jsonl`.
fn wants_json(arguments: &[OsString], flag: &str) -> bool {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    for (at, word) in words.iter().enumerate() {
        let Some(rest) = word.strip_prefix(flag) else { continue };
        let value = if rest.is_empty() { words.get(at + 1).copied() } else { rest.strip_prefix('=') };
        if value.is_some_and(|value| value.starts_with("json")) {
            return true;
        }
    }
    false
}

/// Parses the arguments. A question without a command is answered as if `run` came before it.
fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut why = match Cli::try_parse_from(arguments) {
        Ok(cli) => return Ok(cli),
        Err(why) => why,
    };
    let is_unknown = matches!(why.kind(), ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument);
    if !is_unknown || !has_question(arguments) {
        if why.kind() == ErrorKind::InvalidSubcommand && arguments.len() > 2 {
            let tip = "to ask a question, put it in quotes: consensus \"How much is 2 + 2?\"";
            why.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.to_owned().into()]));
        }
        return Err(why);
    }
    let run = [OsString::from("run")];
    let (program, rest) = arguments.split_at(1.min(arguments.len()));
    Cli::try_parse_from(program.iter().chain(&run).chain(rest))
}

/// Returns whether an argument has white space inside and no command before it. A lone word is a mistyped command, never a question.
fn has_question(arguments: &[OsString]) -> bool {
    let commands = Cli::command();
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        if !word.starts_with('-') && word.trim().contains(char::is_whitespace) {
            return true;
        }
        if commands.find_subcommand(word).is_some() {
            return false;
        }
    }
    false
}

/// Refuses a clock before 1970, with which records and ids could not hold the time at which they were made.
fn check_clock(now: SystemTime) -> anyhow::Result<()> {
    if now < SystemTime::UNIX_EPOCH {
        let why = "the clock of this machine is set to a time before 1970; correct it first";
        return Err(UsageError(why.to_owned()).into());
    }
    Ok(())
}

fn dispatch(cli: &Cli, words: &[OsString], output: &Output) -> anyhow::Result<ExitCode> {
    match &cli.command {
        Command::Run(args) => commands::run::run(args, output),
        Command::Chat(args) => commands::chat::chat(args, words, output),
        Command::Sessions(args) => commands::sessions::sessions(args, output),
        Command::Batch(args) => commands::batch::batch(args, output),
        Command::Results(args) => commands::results::results(args, output),
        Command::Eval(args) => commands::eval::eval(args, output),
        Command::Serve(args) => commands::serve::serve(args, output),
        Command::Mcp(args) => commands::mcp::mcp(args, output),
        Command::Health(args) => commands::serve::health(args, output),
        Command::Calibrate(args) => commands::calibrate::calibrate(args, output),
        Command::Approve(args) => commands::approve::approve(args, output),
        Command::Review(args) => commands::review::review(args, output),
        Command::Keys(args) => commands::keys::keys(args, output),
        Command::Resume(args) => commands::resume::resume(args, output),
        Command::Runs(args) => commands::runs::runs(args, output),
        Command::Show(args) => commands::show::show(args, output),
        Command::Export(args) => commands::export::export(args, output),
        Command::Verify(args) => commands::verify::verify(args, output),
        Command::Roleset(args) => commands::roleset::roleset(args, output),
        Command::Persona(args) => commands::persona::persona(args, output),
        Command::Schema(args) => commands::generate::schema(args, output),
        Command::Docs(args) => commands::docs::docs(args, output),
        Command::Doctor(args) => commands::doctor::doctor(args, output),
        Command::Trust(args) => commands::trust::trust(args, output),
        Command::Completions(args) => commands::generate::completions(args, output),
        Command::Man(args) => commands::generate::man(args, output),
        Command::Guard(args) => commands::children::run_guard(args),
        Command::Leash(args) => commands::children::run_leash(args),
        Command::Wall(args) => commands::children::run_wall(args),
        Command::Interpret(args) => commands::children::run_interpret(args),
        Command::ReadPdf(args) => commands::docs::read_pdf(args, output),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The error says in words that the clock is before 1970.
    #[test]
    fn clock_before_1970_is_refused() {
        let why = check_clock(SystemTime::UNIX_EPOCH - Duration::from_secs(1)).unwrap_err();
        assert!(why.to_string().contains("before 1970"), "{why}");
        assert_eq!(error::exit_code(&why), ExitCode::Usage);
        assert!(check_clock(SystemTime::UNIX_EPOCH).is_ok());
    }
}
