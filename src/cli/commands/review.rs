//! `consensus review`: prints what reviewers find in a change. Nothing is decided.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;

use crate::approval::{ChangeReview, ReadChange, ReviewRequest};
use crate::cli::answer::{exit_code, print_losses, print_record, print_usage};
use crate::cli::args::{Format, ReviewArgs};
use crate::cli::commands::plan;
use crate::cli::metrics;
use crate::cli::output::Output;
use crate::cli::run_to_end::block_on;
use crate::cli::signals::{self, RESUMABLE, StopMessages};
use crate::config::FileConfig;
use crate::engine::RunObserver;
use crate::report::{RunResult, review_annotations, review_markdown, review_text, sarif};
use crate::run::{Reporter, RolesetSettings, named_models};
use protocol::core::{Endpoint, ExitCode};
use protocol::review::ApprovalSection;
use protocol::text::escape;
use protocol::{OutcomeKind, Section};

/// The message if a signal or the deadline comes before anything is asked.
const UNBEGUN: &str = "before the review began; nothing was asked, and there is nothing to resume";

/// The variable with which GitHub Actions names the summary of a job.
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";

pub(crate) fn review(args: &ReviewArgs, output: &Output) -> anyhow::Result<ExitCode> {
    if args.dry_run {
        let file = FileConfig::load_to_read()?;
        return plan_review(&args.request(&file), &file, output);
    }
    let began = Instant::now();
    let listening =
        signals::listen(StopMessages { unbegun: UNBEGUN, begun: RESUMABLE }, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let request = args.request(&file);
    block_on(async {
        // The output files are opened before anything is paid for, so that none of them fails afterwards.
        let mut sarif_file = create(args.sarif.as_deref())?;
        let mut markdown_file = create(args.markdown.as_deref())?;
        let change = ReadChange::read(&request, &file, output)?;
        let ChangeReview { result, dir } =
            Box::pin(change.review(listening.begin(), began, &ReviewStory(*output))).await?;
        let Section::Approval(section) = &result.section else {
            anyhow::bail!("a review has no reviewers; this is a bug in this program")
        };
        if let Some((file, path)) = &mut sarif_file {
            write(file, path, &(serde_json::to_string_pretty(&sarif(section))? + "\n"))?;
        }
        if let Some((file, path)) = &mut markdown_file {
            write(file, path, &review_markdown(section, result.outcome))?;
        }
        print_review(args.format, section, &result, output)?;
        metrics::write(args.metrics.metrics_file.as_deref(), &dir, output);
        Ok(exit_code(result.outcome))
    })?
}

/// The story of a review whose findings are its answer: they are printed once, on stdout.
struct ReviewStory(Output);

impl Reporter for ReviewStory {
    fn status(&self, line: &str) {
        self.0.status(line);
    }

    fn warn(&self, line: &str) {
        self.0.warn(line);
    }

    fn wait_for(&self, what: &str) -> Box<dyn Reporter + '_> {
        self.0.wait_for(what)
    }

    fn observe_run(&self) -> Box<dyn RunObserver + '_> {
        self.0.observe_run()
    }

    fn report_run(&self, result: &RunResult, dir: &Path, endpoints: &[Endpoint]) {
        print_usage(&self.0, result);
        print_losses(&self.0, result);
        print_record(&self.0, result, dir, endpoints);
    }
}

pub(super) fn plan_review(
    request: &ReviewRequest,
    file: &FileConfig,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let (setup, roleset) = ReadChange::read(request, file, output)?.setup()?;
    let RolesetSettings { servers, mock, limits, .. } = &request.settings;
    let models = named_models(servers, file, &roleset);
    let prices = plan::find_prices(servers, file, &models)?;
    let is_mock = mock.is_wanted || mock.script.is_some();
    plan::print_plan(&setup, None, &models, prices.as_deref(), is_mock, limits, output)
}

fn print_review(
    format: Format,
    section: &ApprovalSection,
    result: &RunResult,
    output: &Output,
) -> anyhow::Result<()> {
    let outcome: OutcomeKind = result.outcome;
    match format {
        Format::Markdown => output.print(&review_markdown(section, outcome)),
        Format::Sarif => output.print(&(serde_json::to_string_pretty(&sarif(section))? + "\n")),
        Format::Github => {
            output.print(&review_annotations(section, outcome))?;
            // The verdict does not depend on whether the summary can be written.
            if let Some(path) = std::env::var_os(SUMMARY)
                && !path.is_empty()
                && let Err(why) = summarise(Path::new(&path), &review_markdown(section, outcome))
            {
                output.warn(&escape::terminal(&format!("the summary of the job cannot be written: {why:#}")));
            }
            Ok(())
        }
        Format::Json | Format::Jsonl => output.print(&result.to_json()),
        Format::Text | Format::Csv | Format::Calls | Format::Html | Format::Inspect => {
            output.print(&escape::terminal(&review_text(section, outcome)))
        }
    }
}

/// Appends to the summary of a job, which must be a file: a write to a pipe may wait for a reader for ever.
fn summarise(path: &Path, text: &str) -> anyhow::Result<()> {
    let is_other = std::fs::metadata(path).is_ok_and(|about| !about.is_file());
    anyhow::ensure!(!is_other, "`{}`, which {SUMMARY} names, is not a file", path.display());
    let file = File::options().append(true).create(true).open(path);
    let mut file =
        file.with_context(|| format!("cannot open `{}`, which {SUMMARY} names", path.display()))?;
    write(&mut file, path, text)
}

fn create(path: Option<&Path>) -> anyhow::Result<Option<(File, &Path)>> {
    let Some(path) = path else { return Ok(None) };
    let file = File::create(path).with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(Some((file, path)))
}

fn write(file: &mut File, path: &Path, text: &str) -> anyhow::Result<()> {
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))
}
