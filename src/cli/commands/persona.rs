//! `consensus persona`: lists, shows and makes personas.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use serde_json::json;

use crate::cli::args::{Format, PersonaAction, PersonaArgs};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::config::Persona;
use protocol::core::ExitCode;
use protocol::text::escape;

pub(crate) fn persona(args: &PersonaArgs, output: &Output) -> anyhow::Result<ExitCode> {
    match &args.action {
        PersonaAction::List => list(&Persona::built_in(), output)?,
        PersonaAction::Show { persona } => {
            let found = Persona::named(persona).map_or_else(|| Persona::from_line(persona), Ok)?;
            let text = format!("# {} ({})\n\n{}", found.name, found.domain, found.pack.trim());
            let row = json!({"name": found.name, "domain": found.domain, "pack": found.pack});
            output.line_or_json(&text, &row)?;
        }
        PersonaAction::New { line, name, folder } => {
            let persona = Persona::from_line(line)?;
            let name = name.as_ref().unwrap_or(&persona.name);
            let has_other = name.chars().any(|c| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
            if name.is_empty() || name.len() > 40 || has_other {
                let name = escape::excerpt(name);
                return Err(UsageError(format!(
                    "`{name}` is not a valid name; use letters, digits, `-` and `_`, at most 40"
                ))
                .into());
            }
            let path = folder.join(format!("{}.md", name.to_lowercase()));
            write_new(folder, &path, &persona.pack)
                .map_err(|why| UsageError(format!("cannot write `{}`: {why}", path.display())))?;
            output.line_or_json(&path.display().to_string(), &json!({"name": name, "path": path}))?;
        }
    }
    Ok(ExitCode::Success)
}

/// Writes a file into a folder. An existing file is never overwritten.
fn write_new(folder: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    File::create_new(path)?.write_all(text.as_bytes())
}

fn list(all: &[Persona], output: &Output) -> anyhow::Result<()> {
    if output.format != Format::Text {
        let rows: Vec<_> = all.iter().map(|p| json!({"name": p.name, "domain": p.domain})).collect();
        return output.json(&json!(rows));
    }
    for persona in all {
        output.line(&format!("{:20} {}", persona.name, persona.domain))?;
    }
    Ok(())
}
