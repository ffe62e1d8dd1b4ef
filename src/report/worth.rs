//! The worth of an agreement, in one sentence for the person who reads the end of a run.
//!
//! The input is the kind of agreement, the losses of the run, and the endpoints of its agents. The output is a
//! strength with its reasons, in 25 words at most. The sentence never judges the answer itself, and no record holds
//! it. The same result always gives the same sentence.

use super::result::RunResult;
use protocol::core::MOCK;
use protocol::sampling::StopClass;
use protocol::{DegradedKind, How, Section};

/// The kinds of losses that concern a server and not the answer: every reply was checked here.
const OF_SERVERS: [DegradedKind; 5] = [
    DegradedKind::ModelNotListed,
    DegradedKind::SamplingNotAsAsked,
    DegradedKind::SchemaIgnored,
    DegradedKind::StructuredOutput,
    DegradedKind::UsageEstimated,
];

/// Returns the worth of a run's agreement in one sentence.
///
/// Returns `None` for a run without agreement, and for a single reviewer, since a single reviewer has no other to
/// agree with.
pub fn worth(result: &RunResult) -> Option<String> {
    let is_degraded = result.degraded.iter().any(|loss| !OF_SERVERS.contains(&loss.kind));
    let group = GroupKind::from_section(&result.section);
    if group == GroupKind::Reviewers && result.agents.len() < 2 {
        return None;
    }
    let class = result.section.votes().and_then(|vote| vote.class);
    Some(describe_worth(result.how?, class, group, Voices::new(&result.counted_models), is_degraded))
}

/// The strength of an agreement, in ascending order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Strength {
    Weak,
    Medium,
    Strong,
}

/// The kind of group that agreed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GroupKind {
    Pair,
    Council,
    Panel,
    Reviewers,
    Voters,
}

/// The number of different minds behind the agents.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Voices {
    Several,
    OneModel,
    Scripts,
    SomeScripts,
}

impl Strength {
    fn weaker(self) -> Self {
        match self {
            Self::Strong => Self::Medium,
            Self::Medium | Self::Weak => Self::Weak,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Medium => "medium",
            Self::Weak => "weak",
        }
    }
}

impl GroupKind {
    /// Returns the group that wrote a section. A document that was read in pieces is answered by the group that read
    /// it.
    fn from_section(section: &Section) -> Self {
        match section {
            Section::Pair(_) => Self::Pair,
            Section::Council(_) => Self::Council,
            Section::Panel(_) => Self::Panel,
            Section::Approval(_) => Self::Reviewers,
            Section::Vote(_) => Self::Voters,
            Section::MapReduce(read) => read.answer.as_deref().map_or(Self::Pair, Self::from_section),
        }
    }

    fn everybody(self) -> &'static str {
        match self {
            Self::Pair => "both agents",
            Self::Council | Self::Panel => "all members",
            Self::Reviewers => "all reviewers",
            Self::Voters => "all voters",
        }
    }

    /// Returns the strength of such an agreement if nothing reduces it, and the reason. `class` is that of its votes.
    fn best_strength(self, how: How, class: Option<StopClass>) -> (Strength, &'static str) {
        match how {
            How::Independent if self == Self::Reviewers => {
                (Strength::Strong, "a quorum of reviewers approved the change, each after reading it alone")
            }
            How::Independent if self == Self::Panel => {
                (Strength::Strong, "all members found this answer, each alone")
            }
            How::Independent if self == Self::Council => {
                (Strength::Medium, "the first two blind samples of one member gave this answer")
            }
            How::Independent => {
                (Strength::Strong, "both wrote this answer independently, before either saw the other's")
            }
            How::Converged => (Strength::Medium, "both wrote this answer, but not at the first try"),
            How::Endorsed if self == Self::Council => (
                Strength::Medium,
                "code found this answer's quotes in the sources, and another member checked it",
            ),
            How::Endorsed => (Strength::Weak, "one agent wrote this text, and the other only accepted it"),
            How::Weighed => (
                Strength::Medium,
                "one member wrote this answer, and the council's confidence reached the threshold",
            ),
            How::Arbitrated => (Strength::Weak, "the members left the answer open, and one arbiter chose it"),
            How::Scored => (Strength::Medium, "the others' scores of this answer reached the threshold"),
            How::Medoid if class == Some(StopClass::D) => {
                (Strength::Weak, "the drafts differ, and this one is the nearest to all others")
            }
            How::Medoid => (Strength::Medium, "the drafts say the same, as far as code finds it"),
            How::Voted | How::Behaved => match class {
                Some(StopClass::A) => {
                    (Strength::Strong, "blind samples of several voters lead clearly to this answer")
                }
                Some(StopClass::B) => {
                    (Strength::Medium, "two unlike voters found this answer at the first try")
                }
                Some(StopClass::C) => {
                    (Strength::Medium, "blind samples of one voter lead clearly to this answer")
                }
                Some(StopClass::D) => (Strength::Weak, "the blind samples did not settle on one answer"),
                None => (Strength::Weak, "more blind samples gave this answer than any other"),
            },
        }
    }
}

impl Voices {
    /// Counts the voices of agents by the models as which they count.
    fn new(models: &[String]) -> Self {
        let scripts = models.iter().filter(|model| *model == MOCK).count();
        let is_one_model = models.windows(2).all(|two| two[0] == two[1]);
        match (scripts, is_one_model) {
            (0, true) => Self::OneModel,
            (0, false) => Self::Several,
            (count, _) if count == models.len() => Self::Scripts,
            (_, _) => Self::SomeScripts,
        }
    }
}

fn describe_worth(
    how: How,
    class: Option<StopClass>,
    group: GroupKind,
    voices: Voices,
    is_degraded: bool,
) -> String {
    let (best, why) = group.best_strength(how, class);
    let (after_voices, whose) = match voices {
        Voices::Several => (best, String::new()),
        Voices::OneModel => (best.weaker(), format!("; {} are one model", group.everybody())),
        Voices::Scripts => (best, "; scripts played the agents".to_owned()),
        Voices::SomeScripts => (best, "; a script played an agent".to_owned()),
    };
    let strength = if is_degraded { after_voices.weaker() } else { after_voices };
    let losses = if is_degraded { "; the run is degraded" } else { "" };
    format!("{} agreement: {why}{whose}{losses}", strength.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_has_strength_and_reason() {
        for (how, class, group, expected) in [
            (
                How::Independent,
                None,
                GroupKind::Pair,
                "strong agreement: both wrote this answer independently",
            ),
            (
                How::Converged,
                None,
                GroupKind::Pair,
                "medium agreement: both wrote this answer, but not at the first",
            ),
            (How::Endorsed, None, GroupKind::Pair, "weak agreement: one agent wrote this text"),
            (How::Weighed, None, GroupKind::Council, "medium agreement: one member wrote this answer"),
            (How::Endorsed, None, GroupKind::Council, "medium agreement: code found this answer's quotes"),
            (How::Independent, None, GroupKind::Council, "medium agreement: the first two blind samples"),
            (How::Arbitrated, None, GroupKind::Council, "weak agreement: the members left the answer open"),
            (How::Scored, None, GroupKind::Panel, "medium agreement: the others' scores of this answer"),
            (
                How::Independent,
                None,
                GroupKind::Reviewers,
                "strong agreement: a quorum of reviewers approved",
            ),
            (
                How::Independent,
                None,
                GroupKind::Panel,
                "strong agreement: all members found this answer, each alone",
            ),
            (How::Medoid, None, GroupKind::Voters, "medium agreement: the drafts say the same"),
            (How::Voted, None, GroupKind::Panel, "weak agreement: more blind samples gave this answer"),
            (How::Voted, Some(StopClass::D), GroupKind::Panel, "weak agreement: the blind samples did not"),
            (How::Voted, Some(StopClass::A), GroupKind::Pair, "strong agreement: blind samples of several"),
            (How::Voted, Some(StopClass::B), GroupKind::Voters, "medium agreement: two unlike voters"),
            (How::Voted, Some(StopClass::C), GroupKind::Voters, "medium agreement: blind samples of one"),
        ] {
            let sentence = describe_worth(how, class, group, Voices::Several, false);
            assert!(sentence.starts_with(expected), "{sentence}");
        }
    }

    /// The sentence names copies of one model, scripts and losses, and nothing is weaker than weak.
    #[test]
    fn one_model_and_losses_weaken_agreement() {
        use Voices::{OneModel, Scripts, Several, SomeScripts};
        let why = "both wrote this answer independently, before either saw the other's";
        for (voices, is_degraded, strength, clauses) in [
            (Several, false, "strong", ""),
            (Several, true, "medium", "; the run is degraded"),
            (OneModel, false, "medium", "; both agents are one model"),
            (OneModel, true, "weak", "; both agents are one model; the run is degraded"),
            (Scripts, false, "strong", "; scripts played the agents"),
            (SomeScripts, true, "medium", "; a script played an agent; the run is degraded"),
        ] {
            let expected = format!("{strength} agreement: {why}{clauses}");
            assert_eq!(
                describe_worth(How::Independent, None, GroupKind::Pair, voices, is_degraded),
                expected
            );
        }
        // Nothing is weaker than weak.
        let sentence = describe_worth(How::Endorsed, None, GroupKind::Pair, OneModel, true);
        assert!(sentence.starts_with("weak agreement"));
    }

    #[test]
    fn no_sentence_is_longer_than_25_words() {
        use GroupKind::{Council, Pair, Panel, Reviewers, Voters};
        use How::{Arbitrated, Converged, Endorsed, Independent, Medoid, Scored, Voted, Weighed};
        let classes = [None, Some(StopClass::A), Some(StopClass::B), Some(StopClass::C), Some(StopClass::D)];
        let mut sentences = Vec::new();
        for how in [Independent, Converged, Endorsed, Weighed, Arbitrated, Scored, Voted, Medoid] {
            for group in [Pair, Council, Panel, Reviewers, Voters] {
                let by_class = classes.map(|class| describe_worth(how, class, group, Voices::OneModel, true));
                sentences.extend(by_class);
            }
        }
        for sentence in sentences {
            assert!(sentence.split_whitespace().count() <= 25, "{sentence}");
        }
    }

    #[test]
    fn agents_on_one_model_are_one_voice() {
        for (models, expected) in [
            (["m", "m"].as_slice(), Voices::OneModel),
            (&["m", "n"], Voices::Several),
            (&["m", "m", "n"], Voices::Several),
            (&["mock", "mock"], Voices::Scripts),
            (&["mock", "m"], Voices::SomeScripts),
        ] {
            let models: Vec<String> = models.iter().map(|model| (*model).to_owned()).collect();
            assert_eq!(Voices::new(&models), expected, "{models:?}");
        }
    }
}
