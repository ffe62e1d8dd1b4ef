//! The worth of an agreement, in one sentence for the person who reads the end of a run.
//!
//! The input is the kind of agreement, the losses of the run, and the endpoints of its agents. The output is a
//! strength with its reasons, in 25 words at most. The sentence never judges the answer itself, and no record holds
//! it. The same result always gives the same sentence.

use std::fmt;

use super::result::RunResult;
use protocol::core::MOCK;
use protocol::vote::StopClass;
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
    let group = Group::from_section(&result.section);
    if group == Group::Reviewers && result.agents.len() < 2 {
        return None;
    }
    let worth =
        result.how.map(|how| Worth { how, group, voices: Voices::new(&result.counted_models), is_degraded });
    worth.map(|worth| worth.to_string())
}

/// The facts that decide the worth of an agreement.
#[derive(Clone, Copy, Debug)]
struct Worth {
    how: How,
    group: Group,
    voices: Voices,
    is_degraded: bool,
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
enum Group {
    Pair,
    Council,
    Panel,
    Reviewers,
    Voters(Option<StopClass>),
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

impl Group {
    /// Returns the group that wrote a section. A document that was read in pieces is answered by the group that read
    /// it.
    fn from_section(section: &Section) -> Self {
        match section {
            Section::Pair(_) => Self::Pair,
            Section::Council(_) => Self::Council,
            Section::Panel(_) => Self::Panel,
            Section::Approval(_) => Self::Reviewers,
            Section::Vote(vote) => Self::Voters(vote.class),
            Section::MapReduce(read) => read.answer.as_deref().map_or(Self::Pair, Self::from_section),
        }
    }

    fn everybody(self) -> &'static str {
        match self {
            Self::Pair => "both agents",
            Self::Council | Self::Panel => "all members",
            Self::Reviewers => "all reviewers",
            Self::Voters(_) => "all voters",
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

impl Worth {
    /// Returns the worth of such an agreement if nothing reduces it, and the reason.
    fn at_best(self) -> (Strength, &'static str) {
        match self.how {
            How::Independent if self.group == Group::Reviewers => {
                (Strength::Strong, "a quorum of reviewers approved the change, each after reading it alone")
            }
            How::Independent => {
                (Strength::Strong, "both wrote this answer independently, before either saw the other's")
            }
            How::Converged => (Strength::Medium, "both wrote this answer, but not at the first try"),
            How::Endorsed => (Strength::Weak, "one agent wrote this text, and the other only accepted it"),
            How::Weighed => (
                Strength::Medium,
                "one member wrote this answer, and the council's confidence reached the threshold",
            ),
            How::Arbitrated => (Strength::Weak, "the members left the answer open, and one arbiter chose it"),
            How::Scored => (Strength::Medium, "the others' scores of this answer reached the threshold"),
            How::Voted => match self.group {
                Group::Voters(Some(StopClass::A)) => {
                    (Strength::Strong, "blind samples of several voters lead clearly to this answer")
                }
                Group::Voters(Some(StopClass::B)) => {
                    (Strength::Medium, "two unlike voters found this answer at the first try")
                }
                Group::Voters(Some(StopClass::C)) => {
                    (Strength::Medium, "blind samples of one voter lead clearly to this answer")
                }
                Group::Voters(Some(StopClass::D) | None)
                | Group::Pair
                | Group::Council
                | Group::Panel
                | Group::Reviewers => (Strength::Weak, "more blind samples gave this answer than any other"),
            },
        }
    }
}

impl fmt::Display for Worth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (best, why) = self.at_best();
        let (after_voices, whose) = match self.voices {
            Voices::Several => (best, None),
            Voices::OneModel => (best.weaker(), Some(format!("{} are one model", self.group.everybody()))),
            Voices::Scripts => (best, Some("scripts played the agents".to_owned())),
            Voices::SomeScripts => (best, Some("a script played an agent".to_owned())),
        };
        let strength = if self.is_degraded { after_voices.weaker() } else { after_voices };
        write!(f, "{} agreement: {why}", strength.name())?;
        if let Some(whose) = whose {
            write!(f, "; {whose}")?;
        }
        if self.is_degraded { f.write_str("; the run is degraded") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(how: How, group: Group, voices: Voices, is_degraded: bool) -> String {
        Worth { how, group, voices, is_degraded }.to_string()
    }

    #[test]
    fn agreement_has_strength_and_reason() {
        for (how, group, expected) in [
            (How::Independent, Group::Pair, "strong agreement: both wrote this answer independently"),
            (How::Converged, Group::Pair, "medium agreement: both wrote this answer, but not at the first"),
            (How::Endorsed, Group::Pair, "weak agreement: one agent wrote this text"),
            (How::Weighed, Group::Council, "medium agreement: one member wrote this answer"),
            (How::Arbitrated, Group::Council, "weak agreement: the members left the answer open"),
            (How::Scored, Group::Panel, "medium agreement: the others' scores of this answer"),
            (How::Independent, Group::Reviewers, "strong agreement: a quorum of reviewers approved"),
        ] {
            let said = said(how, group, Voices::Several, false);
            assert!(said.starts_with(expected), "{said}");
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
            assert_eq!(said(How::Independent, Group::Pair, voices, is_degraded), expected);
        }
        // Nothing is weaker than weak.
        assert!(said(How::Endorsed, Group::Pair, OneModel, true).starts_with("weak agreement"));
    }

    #[test]
    fn no_sentence_is_longer_than_25_words() {
        let hows =
            [How::Independent, How::Converged, How::Endorsed, How::Weighed, How::Arbitrated, How::Scored];
        for how in hows {
            for group in [Group::Pair, Group::Council, Group::Panel, Group::Reviewers] {
                for voices in [Voices::Several, Voices::OneModel, Voices::Scripts, Voices::SomeScripts] {
                    let said = said(how, group, voices, true);
                    assert!(said.split_whitespace().count() <= 25, "{said}");
                }
            }
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
