//! `consensus docs`: prints the passages that a run would find in the user's documents.

use serde_json::json;

use crate::cli::args::{DocsArgs, DocsCommand, Format, ReadPdfArgs};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::run_to_end::block_on;
use crate::retrieval::read_pdf_within_limits;
use crate::run::open_documents;
use protocol::core::ExitCode;
use protocol::text::escape;

pub(crate) fn docs(args: &DocsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let DocsCommand::Search { words, docs, tokens } = &args.command;
    let Some((corpus, _)) = block_on(open_documents(docs, output))?? else {
        return Err(UsageError("there are no documents to search".to_owned()).into());
    };
    let passages = corpus.search(words, *tokens)?;
    if output.format != Format::Text {
        output.json(&json!(passages))?;
        return Ok(ExitCode::Success);
    }
    for passage in &passages {
        output.line(&format!("{}, from byte {}:", escape::json_string(&passage.document), passage.start))?;
        output.line(&format!("{}\n", escape::terminal(&passage.text)))?;
    }
    if passages.is_empty() {
        output.status("no passage matches these words within --tokens");
    }
    Ok(ExitCode::Success)
}

/// Prints the text of a PDF file, for `consensus read-pdf`, which no person calls.
pub(crate) fn read_pdf(args: &ReadPdfArgs, output: &Output) -> anyhow::Result<ExitCode> {
    match read_pdf_within_limits(&args.file) {
        Ok(text) => {
            output.print(&text)?;
            Ok(ExitCode::Success)
        }
        Err(why) => {
            output.print(&why)?;
            Ok(ExitCode::Usage)
        }
    }
}
