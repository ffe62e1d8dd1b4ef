//! `consensus persona`: lists, shows and makes personas.

use serde_json::json;

use crate::cli::args::Format;
use crate::cli::args::{PersonaAction, PersonaArgs};
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
            if output.format == Format::Text {
                output.line(&format!("# {} ({})\n\n{}", found.name, found.domain, found.pack.trim()))?;
            } else {
                output.json(&json!({"name": found.name, "domain": found.domain, "pack": found.pack}))?;
            }
        }
        PersonaAction::New { line, name, folder } => {
            let made = Persona::from_line(line)?;
            let name = name.as_ref().unwrap_or(&made.name);
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || name.len() > 40 || !name.chars().all(plain) {
                let name = escape::excerpt(name);
                return Err(UsageError(format!(
                    "`{name}` is not a valid name; use letters, digits, `-` and `_`, at most 40"
                ))
                .into());
            }
            let path = folder.join(format!("{}.md", name.to_lowercase()));
            let cannot = |why| UsageError(format!("cannot write `{}`: {why}", path.display()));
            std::fs::create_dir_all(folder).map_err(cannot)?;
            // An existing file is never overwritten.
            let mut file = std::fs::File::create_new(&path).map_err(cannot)?;
            std::io::Write::write_all(&mut file, made.pack.as_bytes()).map_err(cannot)?;
            if output.format == Format::Text {
                output.line(&path.display().to_string())?;
            } else {
                output.json(&json!({"name": name, "path": path}))?;
            }
        }
    }
    Ok(ExitCode::Success)
}

fn list(all: &[Persona], output: &Output) -> anyhow::Result<()> {
    if output.format != Format::Text {
        let rows: Vec<_> = all.iter().map(|p| json!({"name": p.name, "domain": p.domain})).collect();
        output.json(&json!(rows))?;
        return Ok(());
    }
    for persona in all {
        output.line(&format!("{:20} {}", persona.name, persona.domain))?;
    }
    Ok(())
}
