//! Says in words what a quorum tolerates. Nothing is claimed about models that are not known.

use super::record::VotedFor;
use quorum::{Membership, Quorum};

/// Returns in words how many reviewers must approve, how many may be faulty, and how many of their models may be. Reviewers on
/// one model err together, whatever their keys are. `models` has one entry for each reviewer, which is `None` if its model is
/// unknown.
pub fn in_words(quorum: Quorum, models: &[Option<String>]) -> String {
    let (n, f, q) = (quorum.reviewers(), quorum.faults(), quorum.size());
    let faulty = match f {
        0 => "no faulty reviewer".to_owned(),
        1 => "1 faulty reviewer".to_owned(),
        f => format!("{f} faulty reviewers"),
    };
    let models = of_models(quorum, models);
    format!("{q} of {n}; tolerates {faulty}. {models}")
}

/// Returns the same for a decision, by the models that reviewers have signed with their votes.
pub fn of_votes(membership: &Membership, votes: &[VotedFor]) -> String {
    let signed = |name: &str| {
        let vote = votes.iter().find(|vote| vote.reviewer == name)?;
        Some(vote.signed_model.as_ref()?.model.clone())
    };
    let seats = membership.roster().reviewers.iter();
    let models: Vec<Option<String>> = seats.map(|seat| signed(&seat.name)).collect();
    in_words(membership.quorum(), &models)
}

fn of_models(quorum: Quorum, models: &[Option<String>]) -> String {
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
            in_words(four, &[const { None }; 4]),
            "3 of 4; tolerates 1 faulty reviewer. The models of 4 reviewers are unknown, so a shared error is not excluded."
        );
        let words = in_words(four, &known(&["a", "b", "c", "d"]));
        assert!(words.ends_with("They use 4 models, of which 1 may be wrong."), "{words}");
        let words = in_words(four, &known(&["a"; 4]));
        assert!(words.ends_with("All use the same model, so a shared error is not tolerated."), "{words}");
        // The unknown reviewer may be on the model of any other.
        let three = [known(&["a", "b", "c"]), vec![None]].concat();
        let words = in_words(four, &three);
        let expected = "The model of 1 reviewer is unknown, so a shared error is not excluded. \
                        The others use 3 models, of which none may be wrong.";
        assert!(words.ends_with(expected), "{words}");
    }
}
