//! What only somebody who knows the models can say about a panel.
//!
//! In: the section that the protocol makes, and where each member's model was called. Out: the section with models
//! filled in, the preference for one's own kind, and a warning where all members are one model.

use crate::protocol::panel::{PanelSection, Proposed, preference};
use crate::provider::Endpoint;

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

/// Returns the kind of model that a name tells: `Qwen/Qwen2.5-7B-Instruct` and `qwen2.5:7b` are of one.
fn family(model: &str) -> String {
    let bare = model.rsplit('/').next().unwrap_or(model);
    bare.chars().take_while(|c| c.is_alphabetic()).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::family;

    #[test]
    fn sizes_and_versions_are_of_one_family() {
        assert_eq!(family("Qwen/Qwen2.5-7B-Instruct"), family("qwen2.5:0.5b"));
        assert_ne!(family("llama3.1:8b"), family("mistral:7b"));
    }
}
