//! The seats of a panel: the roleset's members, some of them, personas made from a line, one member per model, or copies of one
//! member. The voters of a vote sit on each of several models.
//!
//! The input is a roleset and the requested seats. The output is the roleset with other members, and the packs of the new ones.
//! Nothing is read or written here.

use super::embedded::EMBEDDED_ROLESETS;
use super::error::{ConfigError, did_you_mean};
use super::packs::{COMPARING, Packs};
use super::roleset::{NAME_CHARS_MAX, Roleset, RolesetAgent, self_panel};
use protocol::text::{escape, one_line};

/// The roleset whose members are the built-in personas.
const PERSONAS: &str = "panel_personas.json";

/// The longest label of a field.
const DOMAIN_CHARS_MAX: usize = 80;

/// The members of a panel, in place of the roleset's members or in addition to them.
#[derive(Clone, Debug, Default)]
pub struct SeatRequest {
    /// The only members of the roleset that take part, if any are named.
    pub members: Vec<String>,
    /// The models that each get one member, in place of the roleset's members, if there are any.
    pub models: Vec<String>,
    /// The number of copies of the first member, in place of all members.
    pub copies: Option<usize>,
    /// Further members: built-in personas by name, or lines that each describe a person.
    pub personas: Vec<String>,
}

/// A character for a member of a panel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Persona {
    pub name: String,
    /// The field that it looks at.
    pub domain: String,
    pub pack: String,
}

impl Persona {
    /// Makes a persona from a line such as "a contrary physicist who looks at everything sideways".
    ///
    /// Returns [`ConfigError::Usage`] if the line says nothing, or does not describe a persona.
    pub fn from_line(line: &str) -> Result<Self, ConfigError> {
        let line = one_line(&escape::plain(line));
        let line = line.trim_end_matches('.');
        // A misspelt name is one word; in scripts without spaces, a whole line is one word.
        let is_name = line.is_ascii() && !line.contains(' ');
        if is_name || !line.chars().any(char::is_alphabetic) || line.chars().count() > 1000 {
            let line = escape::excerpt(line);
            return Err(ConfigError::Usage(format!(
                "there is no persona `{line}`; name one of `consensus persona list`, or describe one in several words, such as \
                 \"a contrary physicist\", in at most 1000 characters"
            )));
        }
        let domain: String = line.chars().take(DOMAIN_CHARS_MAX).collect();
        let pack = format!(
            "You are {line}. Look at the task as such a person would, with their knowledge, their habits and their \
             doubts, and say what they would see that others miss. A point of view changes what you look at, not what \
             is so: what is wrong stays wrong.\n\n{COMPARING}\n\nWhen you judge others, judge as that person, by what their \
             answers say.\n"
        );
        Ok(Self { name: name_persona(line), domain, pack })
    }

    /// Returns the personas that come with the program.
    pub fn built_in() -> Vec<Self> {
        let text = EMBEDDED_ROLESETS.iter().find(|(name, _)| *name == PERSONAS).map_or("", |(_, text)| text);
        let Ok(roleset) = serde_json::from_str::<Roleset>(text) else { return Vec::new() };
        let packs = Packs::built_in();
        let mut personas = Vec::new();
        for RolesetAgent { name, domain, pack, .. } in roleset.agents {
            personas.push(Self { name, domain, pack: packs.read(&pack).unwrap_or_default() });
        }
        personas
    }

    /// Returns the built-in persona of that name, in any case and with spaces or underscores.
    pub fn named(name: &str) -> Option<Self> {
        Self::built_in().into_iter().find(|persona| is_same(&persona.name, name))
    }
}

/// Seats the members of a panel. If the run is redacted, text from lines about personas appears only where it is redacted.
///
/// Returns [`ConfigError::Usage`] with the wish that cannot be met.
pub fn seat(
    roleset: &mut Roleset,
    packs: &mut Packs,
    seats: &SeatRequest,
    is_redacted: bool,
) -> Result<(), ConfigError> {
    if !seats.members.is_empty() {
        let known: Vec<String> = roleset.agents.iter().map(|agent| agent.name.clone()).collect();
        for name in &seats.members {
            if !known.iter().any(|member| is_same(member, name)) {
                let hint = did_you_mean(name, known.iter().map(String::as_str));
                let (name, known) = (escape::excerpt(name), known.join(", "));
                return Err(ConfigError::Usage(format!(
                    "no member is named `{name}`{hint}; the members are {known}"
                )));
            }
        }
        roleset.agents.retain(|agent| seats.members.iter().any(|name| is_same(&agent.name, name)));
    }
    if !seats.models.is_empty() {
        require_names(&seats.models)?;
        let old = std::mem::take(&mut roleset.agents);
        for (model, like) in seats.models.iter().zip(old.iter().cycle()) {
            let name = free_name(&name_by_model(model), &roleset.agents);
            roleset.agents.push(RolesetAgent { name, model: Some(model.clone()), ..like.clone() });
        }
    }
    if let Some(copies) = seats.copies {
        roleset.agents = self_panel(&roleset.agents, copies);
    }
    for (index, wish) in seats.personas.iter().enumerate() {
        let persona = match Persona::named(wish) {
            Some(persona) => persona,
            // A name made from the line would reveal the text that is redacted from it.
            None if is_redacted => Persona { name: "Persona".to_owned(), ..Persona::from_line(wish)? },
            None => Persona::from_line(wish)?,
        };
        let is_seated = roleset.agents.iter().any(|agent| is_same(&agent.name, &persona.name));
        if is_seated && Persona::named(wish).is_some() {
            return Err(ConfigError::Usage(format!("`{}` is already a member of this panel", persona.name)));
        }
        let name = free_name(&persona.name, &roleset.agents);
        // No file name has a slash, so this name hides no pack of the roleset.
        let pack = format!("persona/{}", index + 1);
        packs.add(&pack, persona.pack);
        roleset.agents.push(RolesetAgent::new(name, persona.domain, pack));
    }
    Ok(())
}

/// Seats every voter of a roleset on each of these models, so that neighbours are as unlike as possible. Two voters on models A and B
/// become the first on A, the second on B, the first on B, and the second on A.
///
/// Returns [`ConfigError::Usage`] if a model has no name or is named twice.
pub fn seat_voters(roleset: &mut Roleset, models: &[String]) -> Result<(), ConfigError> {
    require_names(models)?;
    let models: Vec<String> = models.iter().map(|model| model.trim().to_owned()).collect();
    for (index, model) in models.iter().enumerate() {
        if models[..index].contains(model) {
            let model = escape::excerpt(model);
            return Err(ConfigError::Usage(format!("--models names `{model}` twice; a model is one voter")));
        }
    }
    let mut seated: Vec<RolesetAgent> = Vec::new();
    for block in 0..models.len() {
        for (place, like) in roleset.agents.iter().enumerate() {
            let model = &models[(block + place) % models.len()];
            let name = free_name(&like.name, &seated);
            seated.push(RolesetAgent { name, model: Some(model.clone()), ..like.clone() });
        }
    }
    roleset.agents = seated;
    Ok(())
}

fn require_names(models: &[String]) -> Result<(), ConfigError> {
    if models.iter().any(|model| model.trim().is_empty()) {
        return Err(ConfigError::Usage("a model's name is empty".to_owned()));
    }
    Ok(())
}

/// Returns whether two names are equal, ignoring case and the separator between words.
fn is_same(a: &str, b: &str) -> bool {
    fold_name(a) == fold_name(b)
}

fn fold_name(name: &str) -> String {
    name.trim().to_lowercase().replace(' ', "_")
}

/// Makes a name that is valid in a prompt and a file: the first meaningful words of a line.
fn name_persona(line: &str) -> String {
    const EMPTY: [&str; 8] = ["a", "an", "the", "who", "that", "very", "of", "is"];
    let words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| {
        word.starts_with(|c: char| c.is_ascii_alphabetic()) && !EMPTY.contains(&word.to_lowercase().as_str())
    });
    let name: String = words.take(2).collect::<Vec<_>>().join("_").chars().take(NAME_CHARS_MAX - 3).collect();
    let mut letters = name.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => "Persona".to_owned(),
    }
}

/// Makes a name from a model reference: `Llama3_1` from `ollama:llama3.1:8b`.
fn name_by_model(reference: &str) -> String {
    let file = reference.rsplit('/').next().unwrap_or(reference);
    // A size begins with a digit, and a provider's name has none.
    let mut parts = file.split(':').filter(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()));
    let first = parts.next().unwrap_or(file);
    let is_provider = first.chars().all(|c| c.is_ascii_alphabetic());
    let model = if is_provider { parts.next().unwrap_or(first) } else { first };
    let mut name = String::new();
    for c in model.chars().take(NAME_CHARS_MAX - 3) {
        name.push(if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' });
    }
    let mut letters = name.chars();
    match letters.next().filter(char::is_ascii_alphabetic) {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => format!("Model_{name}"),
    }
}

/// Returns the name, with a number if it is taken.
fn free_name(name: &str, members: &[RolesetAgent]) -> String {
    let mut free = name.to_owned();
    let mut number = 1;
    while members.iter().any(|member| is_same(&member.name, &free)) {
        number += 1;
        free = format!("{name}_{number}");
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_makes_persona_with_safe_name() {
        let persona = Persona::from_line("a contrary physicist who looks at everything sideways.").unwrap();
        assert_eq!(persona.name, "Contrary_physicist");
        assert!(persona.pack.starts_with("You are a contrary physicist who looks at everything sideways. "));
        assert_eq!(Persona::from_line("物理学者で捻くれ者").unwrap().name, "Persona");
        assert_eq!(Persona::from_line("Sherlock Holmes").unwrap().name, "Sherlock_Holmes");
        assert!(Persona::from_line(" 42 ").is_err());
        assert!(Persona::from_line("analist").unwrap_err().to_string().contains("no persona `analist`"));
        assert!(Persona::from_line(&"x".repeat(2000)).is_err());
    }

    /// There are six, and the case of a name does not matter.
    #[test]
    fn built_in_personas_are_found_by_name() {
        let names: Vec<String> = Persona::built_in().into_iter().map(|persona| persona.name).collect();
        assert_eq!(
            names,
            [
                "Critical_thinker",
                "Creative_thinker",
                "Pragmatist",
                "Optimist",
                "Analyst",
                "Empathetic_thinker"
            ]
        );
        assert!(Persona::named("critical thinker").is_some());
        assert!(Persona::built_in().iter().all(|persona| persona.pack.len() > 100));
    }
}
