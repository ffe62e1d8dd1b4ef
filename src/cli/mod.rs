//! The command line: one file per subcommand, and the only place that prints.
//!
//! stdout carries the answer, stderr the story. Every command returns an [`ExitCode`] or an error
//! with words; [`main`] turns both into what the caller sees.

mod answer;
mod approve;
mod approve_args;
mod args;
mod batch;
mod batch_args;
mod batch_story;
mod bench;
mod completions;
mod desk;
mod docs;
mod doctor;
mod error;
mod global;
mod keys;
mod launch;
mod locate;
mod man;
mod metrics;
mod output;
mod persona;
mod place;
mod plan;
mod progress;
mod quorum;
mod reading;
mod replay;
mod replica;
mod results;
mod results_args;
mod resume;
mod roleset;
mod run;
mod run_args;
mod runs;
mod runtime;
mod schema;
mod settings;
mod show;
mod signals;
mod spread;
mod trust;
mod verify;

use std::ffi::OsString;

use args::{Cli, Command};
use clap::Parser;
use output::Output;

use crate::core::ExitCode;

/// Runs the program with these arguments, the program's name first, and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and versions go to stdout and are no failure; clap knows which is which.
            let _ = error.print();
            if !error.use_stderr() {
                return ExitCode::Success.into();
            }
            let wants_json = |a: &OsString| {
                a.to_str().is_some_and(|a| a.trim_start_matches("--format=").starts_with("json"))
            };
            if arguments.iter().any(wants_json) {
                output::json_error(&error.to_string(), ExitCode::Usage);
            }
            return ExitCode::Usage.into();
        }
    };
    let output = Output::new(&cli.global);
    output.start_logging();
    let result = dispatch(&cli, &output);
    match result {
        Ok(ExitCode::Success) if signals::was_heard() => {
            output.insist("a signal came too late to stop this command; its output is whole, and its exit code is that of a signal");
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

fn dispatch(cli: &Cli, output: &Output) -> anyhow::Result<ExitCode> {
    match &cli.command {
        Command::Run(args) => run::run(args, output),
        Command::Batch(args) => batch::batch(args, output),
        Command::Results(args) => results::tell(args, output),
        Command::Approve(args) => approve::approve(args, output),
        Command::Keys(args) => keys::keys(args, output),
        Command::Resume(args) => resume::resume(args, output),
        Command::Runs(args) => runs::runs(args, output),
        Command::Show(args) => show::show(args, output),
        Command::Verify(args) => verify::verify(args, output),
        Command::Replay(args) => replay::replay(args, output),
        Command::Plan(args) => plan::plan(args, output),
        Command::Roleset(args) => roleset::roleset(args, output),
        Command::Persona(args) => persona::persona(args, output),
        Command::Schema(args) => schema::schema(args, output),
        Command::Docs(args) => docs::docs(args, output),
        Command::Doctor(args) => doctor::doctor(args, output),
        Command::Trust(args) => trust::trust(args, output),
        Command::Completions(args) => completions::completions(args, output),
        Command::Man(args) => man::man(args, output),
        Command::Guard(args) => launch::run_guard(args),
        Command::Leash(args) => launch::run_leash(args),
        Command::ReadPdf(args) => docs::read_pdf(args, output),
    }
}
