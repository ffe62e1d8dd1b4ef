//! What only somebody who knows the models can say about a panel.
//!
//! In: the section that the protocol makes, and where each member's model was called. Out: the section with models
//! filled in, the preference for one's own kind, and a warning where all members are one model.

use crate::core::Endpoint;
use crate::protocol::panel::{PanelSection, Proposed, preference};

/// Fills in what depends on the models.
pub(super) fn complete(section: &mut PanelSection, endpoints: &[Endpoint]) {
    let name = |proposed: &mut Proposed| {
        if let Some(endpoint) = endpoints.get(proposed.agent) {
            endpoint.provider().clone_into(&mut proposed.provider);
            endpoint.model().clone_into(&mut proposed.model);
        }
    };
    section.responses.iter_mut().for_each(name);
    section.ranking.iter_mut().chain(&mut section.winner).map(|placed| &mut placed.response).for_each(name);
    let families: Vec<String> = endpoints.iter().map(|endpoint| family(endpoint.model())).collect();
    // The members of each iteration are counted on from those of the last.
    let repeated: Vec<String> =
        families.iter().cycle().take(families.len() * section.iterations as usize).cloned().collect();
    section.family_preference = preference(&section.judged, &repeated);
    if let [first, others @ ..] = endpoints
        && others.iter().all(|other| other.model() == first.model())
    {
        let note =
            format!("all members are one model, {}: that copies agree is weak evidence", first.model());
        section.notes.push(note);
    }
}

/// Makers that some names begin with.
const MAKERS: [&str; 8] =
    ["meta", "openai", "google", "microsoft", "mistralai", "anthropic", "ibm", "nvidia"];

/// Returns the kind of model that a name tells: `Qwen/Qwen2.5-7B-Instruct` and `qwen2.5:7b` are of one, and so are
/// `Meta-Llama-3-8B` and `llama3.1`. A name without letters is a kind of its own.
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
