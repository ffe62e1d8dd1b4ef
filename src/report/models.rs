//! The models behind the agents of a run: which agents count as one, and what a quorum of reviewers tolerates.
//!
//! The input is the models that were named, and those that have answered. The output is words for people. Agents on one model err
//! together, so they count as one if either name is the same. Nothing is claimed about models that are not known.

use crate::engine::RunState;
use protocol::core::bare_model;
use quorum::Quorum;

/// Returns the model as which each of the first `agents` counts.
pub(super) fn counted_models(state: &RunState, agents: usize) -> Vec<String> {
    let mut counted: Vec<String> = (0..agents).map(|agent| state.model(agent).to_owned()).collect();
    let named: Vec<(&str, &str)> = state.endpoints().iter().map(|at| (at.place(), at.model())).collect();
    for agent in 0..agents {
        for earlier in 0..agent {
            let is_named_alike = named[agent] == named[earlier];
            if is_named_alike || bare_model(&counted[agent]) == bare_model(&counted[earlier]) {
                let (from, to) = (counted[agent].clone(), counted[earlier].clone());
                counted.iter_mut().filter(|model| **model == from).for_each(|model| model.clone_from(&to));
            }
        }
    }
    counted
}

/// Returns in words how many reviewers must approve, how many may be faulty, and how many of their models may be. Reviewers on
/// one model err together, whatever their keys are. `models` has one entry for each reviewer, which is `None` if its model is
/// unknown.
pub fn describe_quorum(quorum: Quorum, models: &[Option<String>]) -> String {
    let (n, f, q) = (quorum.reviewers(), quorum.faults(), quorum.size());
    let faulty = match f {
        0 => "no faulty reviewer".to_owned(),
        1 => "1 faulty reviewer".to_owned(),
        f => format!("{f} faulty reviewers"),
    };
    let models = describe_models(quorum, models);
    format!("{q} of {n}; tolerates {faulty}. {models}")
}

fn describe_models(quorum: Quorum, models: &[Option<String>]) -> String {
    let mut domains: Vec<(&str, usize)> = Vec::new();
    for model in models.iter().flatten() {
        match domains.iter_mut().find(|(known, _)| known == model) {
            Some((_, count)) => *count += 1,
            None => domains.push((model, 1)),
        }
    }
    let sizes: Vec<usize> = domains.iter().map(|(_, count)| *count).collect();
    let unknown = models.iter().filter(|model| model.is_none()).count();
    let faulty = match quorum.faulty_domains(&sizes, unknown) {
        0 => "none".to_owned(),
        count => count.to_string(),
    };
    let not_known = match unknown {
        0 => String::new(),
        1 => "The model of 1 reviewer is unknown, so a shared error is not excluded.".to_owned(),
        _ => format!("The models of {unknown} reviewers are unknown, so a shared error is not excluded."),
    };
    match (sizes.len(), unknown) {
        (0, _) => not_known,
        (1, 0) => "All use the same model, so a shared error is not tolerated.".to_owned(),
        (count, 0) => format!("They use {count} models, of which {faulty} may be wrong."),
        (1, _) => format!(
            "{not_known} The others use the same model, so a shared error of theirs is not tolerated."
        ),
        (count, _) => {
            format!("{not_known} The others use {count} models, of which {faulty} may be wrong.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_claimed_about_unknown_models() {
        let four = Quorum::new(4).unwrap();
        let known = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
        assert_eq!(
            describe_quorum(four, &[const { None }; 4]),
            "3 of 4; tolerates 1 faulty reviewer. The models of 4 reviewers are unknown, so a shared error is not excluded."
        );
        let words = describe_quorum(four, &known(&["a", "b", "c", "d"]));
        assert!(words.ends_with("They use 4 models, of which 1 may be wrong."), "{words}");
        let words = describe_quorum(four, &known(&["a"; 4]));
        assert!(words.ends_with("All use the same model, so a shared error is not tolerated."), "{words}");
        // The unknown reviewer may be on the model of any other.
        let three = [known(&["a", "b", "c"]), vec![None]].concat();
        let words = describe_quorum(four, &three);
        let expected = "The model of 1 reviewer is unknown, so a shared error is not excluded. \
                        The others use 3 models, of which none may be wrong.";
        assert!(words.ends_with(expected), "{words}");
    }
}
