//! The part of a panel's report that depends on the models.
//!
//! The input is the section that the protocol makes, and the state of the run. The output is the
//! section with the models filled in, the preference of models for their own kind, and a warning if all members are
//! one model.

use super::models::counted_models;
use crate::engine::RunState;
use protocol::panel::{PanelSection, preference};

/// Fills in the fields that depend on the models.
pub(super) fn complete(section: &mut PanelSection, state: &RunState) {
    let endpoints = state.endpoints();
    let ranked = section.ranking.iter_mut().chain(&mut section.winner).map(|placed| &mut placed.response);
    for response in section.responses.iter_mut().chain(ranked) {
        if let Some(endpoint) = endpoints.get(response.agent) {
            endpoint.provider().clone_into(&mut response.provider);
            state.model(response.agent).clone_into(&mut response.model);
        }
    }
    let families: Vec<String> = (0..endpoints.len()).map(|agent| family(state.model(agent))).collect();
    // The members of each iteration are numbered on from those of the last.
    let repeated: Vec<String> =
        families.iter().cycle().take(families.len() * section.iterations as usize).cloned().collect();
    section.family_preference = preference(&section.judged, &repeated);
    let counted = counted_models(state, endpoints.len());
    if counted.iter().all(|model| *model == counted[0]) {
        let note =
            format!("all members are one model, {}: that copies agree is weak evidence", state.model(0));
        section.notes.push(note);
    }
}

/// Makers whose names come before some models' own.
const MAKERS: [&str; 8] =
    ["meta", "openai", "google", "microsoft", "mistralai", "anthropic", "ibm", "nvidia"];

/// Returns the family that a model's name shows. `Qwen/Qwen2.5-7B-Instruct` and `qwen2.5:7b` are of one family, and
/// so are `Meta-Llama-3-8B` and `llama3.1`. A name without letters is a family of its own.
fn family(model: &str) -> String {
    let bare = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let words = bare.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.clone().find(|word| !MAKERS.contains(word)).unwrap_or(&bare).to_owned()
}

#[cfg(test)]
mod tests {
    use super::family;

    #[test]
    fn sizes_and_versions_are_of_one_family() {
        assert_eq!(family("Qwen/Qwen2.5-7B-Instruct"), family("qwen2.5:0.5b"));
        assert_eq!(family("meta-llama/Meta-Llama-3-8B"), family("llama3.1:8b"));
        assert_ne!(family("llama3.1:8b"), family("mistral:7b"));
        assert_ne!(family("7"), family("8"));
    }
}
