//! The default roleset: the one that suits the question of a run that names none.
//!
//! The input is what a command line reveals about the question. The output is the name of a built-in roleset, and a short reason for
//! the first line of the run. The words of the question are never read, since code cannot distinguish a sum from a story. No file is
//! read, so the same command makes the same choice everywhere. A way of agreeing that lost at equal tokens on a kind of answer is not
//! the default of that kind. The page "Ways of agreeing" of the book has the figures.

use super::embedded::EMBEDDED_ROLESETS;
use super::roleset::Roleset;
use protocol::text::CanonicalKind;

/// A roleset that was chosen because none was named.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DefaultRoleset {
    pub name: &'static str,
    /// The reason for the choice, in a few words.
    pub why: &'static str,
}

/// What a command line reveals about a question.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuestionHints<'a> {
    /// The agents of the mock script.
    pub script_agents: &'a [&'a str],
    /// Whether the allowed answers are listed.
    pub has_choices: bool,
    /// The kind of the answer, if it is named.
    pub canonical: Option<CanonicalKind>,
    /// Whether documents belong to it, which may be too long for one prompt.
    pub has_documents: bool,
}

/// Chooses the roleset of a run that names none.
///
/// A script comes before the flags: a run whose roleset lacks an agent of the script is refused, while every pair takes `--choices`
/// and `--canonical`. A script whose names fit no roleset, or more than one, decides nothing.
pub fn default_roleset(hints: QuestionHints<'_>) -> DefaultRoleset {
    if let Some(name) = find_only_roleset(hints.script_agents) {
        return DefaultRoleset { name, why: "it has the agents of the script" };
    }
    if hints.has_choices {
        return DefaultRoleset { name: "vote_choice", why: "for --choices" };
    }
    match hints.canonical {
        Some(CanonicalKind::Number) => DefaultRoleset { name: "vote_number", why: "for --canonical number" },
        Some(CanonicalKind::Behaviour) => {
            DefaultRoleset { name: "vote_code", why: "for --canonical behaviour" }
        }
        Some(CanonicalKind::Json) => {
            DefaultRoleset { name: "json_author_auditor", why: "for --canonical json" }
        }
        Some(
            CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Choice | CanonicalKind::Verbatim,
        )
        | None => {
            if hints.has_documents {
                let why = "for documents, which a pair can read in pieces; --roleset names another";
                return DefaultRoleset { name: "generalist_critic", why };
            }
            DefaultRoleset { name: "question", why: "the default for any question; --roleset names another" }
        }
    }
}

/// A vote that was right more often than another roleset, for fewer tokens, on a small model. It answered with its leader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BetterVote {
    pub name: &'static str,
    /// The kind of tasks on which the two were compared, in the plural.
    pub tasks: &'static str,
    /// How many times the vote's tokens the other roleset took.
    pub times: &'static str,
}

/// Returns the vote that was measured to be better than this roleset, if there is one.
///
/// The page "Ways of agreeing" of the book has the measurements.
pub fn better_vote(roleset: &str) -> Option<BetterVote> {
    match roleset {
        "council_tripartite" => Some(BetterVote {
            name: "vote_number",
            tasks: "numbers without documents",
            times: "nearly three",
        }),
        "panel_personas" => {
            Some(BetterVote { name: ANY_VOTE, tasks: "choices and numbers", times: "fifteen to eighteen" })
        }
        _ => None,
    }
}

/// The name that stands for the roleset of a vote that suits the question.
pub const ANY_VOTE: &str = "vote";

/// Returns the roleset of a vote for this kind of answer.
pub fn vote_roleset(has_choices: bool, canonical: Option<CanonicalKind>) -> &'static str {
    if has_choices {
        return "vote_choice";
    }
    match canonical {
        Some(CanonicalKind::Choice) => "vote_choice",
        Some(CanonicalKind::Number) => "vote_number",
        Some(CanonicalKind::Behaviour) => "vote_code",
        Some(CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim)
        | None => "vote_short",
    }
}

/// Returns the only built-in roleset that has all these agents, if there are names and such a roleset.
fn find_only_roleset(names: &[&str]) -> Option<&'static str> {
    if names.is_empty() {
        return None;
    }
    // A roleset `…_agree` has the agents of another one, which a script for them is about.
    let mut fitting = EMBEDDED_ROLESETS
        .iter()
        .filter(|(file, text)| !file.ends_with("_agree.json") && has_agents(text, names));
    match (fitting.next(), fitting.next()) {
        (Some((file, _)), None) => Some(file.trim_end_matches(".json")),
        (Some(_), Some(_)) | (None, _) => None,
    }
}

fn has_agents(roleset: &str, names: &[&str]) -> bool {
    let roleset: Roleset =
        serde_json::from_str(roleset).expect("the built-in rolesets are read by the program's tests");
    names.iter().all(|name| roleset.agents.iter().chain(&roleset.arbiter).any(|agent| agent.name == *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_kind_chooses_vote_roleset() {
        assert_eq!(vote_roleset(true, None), "vote_choice");
        assert_eq!(vote_roleset(false, Some(CanonicalKind::Choice)), "vote_choice");
        assert_eq!(vote_roleset(false, Some(CanonicalKind::Number)), "vote_number");
        assert_eq!(vote_roleset(false, None), "vote_short");
    }

    #[test]
    fn command_line_chooses_roleset() {
        let none: &[&str] = &[];
        let number = Some(CanonicalKind::Number);
        for (script_agents, has_choices, canonical, name, why) in [
            (none, false, None, "question", "the default for any question"),
            (none, false, Some(CanonicalKind::Text), "question", "the default"),
            (none, false, Some(CanonicalKind::Lines), "question", "the default"),
            (none, false, Some(CanonicalKind::Verbatim), "question", "the default"),
            // A choice without its list is a mistake, which no list of letters may hide.
            (none, false, Some(CanonicalKind::Choice), "question", "the default"),
            (none, true, None, "vote_choice", "for --choices"),
            (none, true, Some(CanonicalKind::Choice), "vote_choice", "for --choices"),
            (none, false, number, "vote_number", "for --canonical number"),
            (none, false, Some(CanonicalKind::Json), "json_author_auditor", "for --canonical json"),
            (&["Physicist"], false, None, "writer_physicist", "of the script"),
            (&["Writer", "Physicist", "Writer"], true, number, "writer_physicist", "of the script"),
            (&["Critic"], false, number, "generalist_critic", "of the script"),
            (&["Pathos", "Ethos"], false, None, "council_tripartite", "of the script"),
            (&["Quality_2"], false, None, "reviewers_f2", "of the script"),
            // Names of two rolesets, of several rolesets each, or of no roleset.
            (&["Writer", "Solver"], false, number, "vote_number", "for --canonical number"),
            (&["Auditor"], true, None, "vote_choice", "for --choices"),
            (&["Auditor"], false, None, "question", "the default"),
            (&["writer"], false, None, "question", "the default"),
        ] {
            let given = format!("{script_agents:?} {has_choices} {canonical:?}");
            let hints = QuestionHints { script_agents, has_choices, canonical, has_documents: false };
            let chosen = default_roleset(hints);
            assert_eq!(chosen.name, name, "{given}");
            assert!(chosen.why.contains(why), "{given}: {}", chosen.why);
        }
        let with_documents = QuestionHints { has_documents: true, ..QuestionHints::default() };
        assert_eq!(default_roleset(with_documents).name, "generalist_critic");
        assert_eq!(
            default_roleset(QuestionHints { canonical: number, ..with_documents }).name,
            "vote_number"
        );
    }
}
