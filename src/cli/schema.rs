//! `consensus schema`.

use super::args::{SchemaArgs, SchemaName};
use super::output::Output;
use crate::config::ROLESET_SCHEMA;
use crate::core::ExitCode;
use crate::report::{RECORD_SCHEMA, RESULT_SCHEMA};
use crate::text::schema::ENVELOPE;

pub(super) fn schema(args: &SchemaArgs, output: &Output) -> anyhow::Result<ExitCode> {
    output.print(match args.name {
        SchemaName::Envelope => ENVELOPE,
        SchemaName::Roleset => ROLESET_SCHEMA,
        SchemaName::Result => RESULT_SCHEMA,
        SchemaName::Record => RECORD_SCHEMA,
    })?;
    Ok(ExitCode::Success)
}
