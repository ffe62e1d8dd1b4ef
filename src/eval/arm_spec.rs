//! An arm, as a person writes it: a way of answering, with settings of its own.
//!
//! ```text
//!  single                      one sample in words
//!  sc@8                        the majority of eight samples in words
//!  vote,modes=words,program    the vote that suits the kind of answer
//!  vote,budget=500000          the same vote, with this many tokens for all tasks together
//!  pair:solver_checker,thinking=none,model=other
//! ```
//!
//! The input is this text. The output is its parts. What the settings mean is not known here; they are the flags of `consensus batch`
//! without their dashes.

use std::str::FromStr;

/// The most samples of an arm `sc@K`: a larger majority is beyond the curve that arms are compared with.
pub const MAJORITY_MAX: u32 = 16;

/// The longest name of an arm, in characters. The names of a batch's arms are as long.
const NAME_CHARS_MAX: usize = 100;

/// The settings that say how samples are counted, and not how they are drawn.
const COUNTING: [&str; 9] =
    ["stop", "samples-max", "modes", "threshold", "on-disagreement", "ahead", "calibration", "risk", BUDGET];

/// The setting with the tokens that the votes of an arm share.
const BUDGET: &str = "budget";

/// An arm of an evaluation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ArmSpec {
    /// The arm as it was written, which is its name.
    pub name: String,
    /// The way of answering.
    pub way: Way,
    /// The model, if the arm has one of its own.
    pub model: Option<String>,
    /// The settings, by the names of their flags.
    pub settings: Vec<(String, String)>,
}

/// A way of answering.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Way {
    /// The majority of this many samples in words; of one, that sample.
    Majority(u32),
    /// The vote that suits the kind of answer.
    Vote,
    /// A roleset, with the protocol that it must have, if the arm names one.
    Roleset {
        /// The name or path of the roleset.
        name: String,
        protocol: Option<String>,
    },
}

/// The reason why a text is no arm.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadArm {
    /// The text is empty, too long, or has a control character.
    #[error(
        "an arm begins with a way of answering, such as `vote`, and has at most {NAME_CHARS_MAX} characters, none of them a control character"
    )]
    Name,
    /// The number of samples is impossible.
    #[error("`{0}`: write sc@K with K from 2 to {MAJORITY_MAX}, and `single` for one sample")]
    Majority(String),
    /// A setting has no name or no value.
    #[error("`{0}` is no setting; write NAME=VALUE, such as thinking=none")]
    Setting(String),
    /// A kind of answers is given, which all arms share.
    #[error(
        "an arm has no `{0}`, since all arms give answers of one kind; give --canonical beside the arms, and choices in the `canonical` of each task"
    )]
    Kind(String),
    /// A setting is given that the way of answering fixes.
    #[error("`{way}` sets `{setting}` itself; name the roleset to choose it")]
    Fixed { way: String, setting: String },
}

impl FromStr for ArmSpec {
    type Err = BadArm;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.trim();
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.contains(char::is_control) {
            return Err(BadArm::Name);
        }
        let mut parts = name.split(',').map(str::trim);
        let head = parts.next().unwrap_or_default();
        let way = head.parse()?;
        let mut settings = split(parts)?;
        let model = settings.iter().position(|(name, _)| name == "model").map(|at| settings.remove(at).1);
        if matches!(way, Way::Majority(_)) {
            for (setting, _) in &settings {
                if COUNTING.contains(&setting.as_str()) {
                    return Err(BadArm::Fixed { way: head.to_owned(), setting: setting.clone() });
                }
            }
        }
        for (setting, _) in &settings {
            if ["canonical", "choices"].contains(&setting.as_str()) {
                return Err(BadArm::Kind(setting.clone()));
            }
        }
        Ok(Self { name: name.to_owned(), way, model, settings })
    }
}

impl FromStr for Way {
    type Err = BadArm;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(count) = text.strip_prefix("sc@") {
            let count = count.parse().ok().filter(|count| (2..=MAJORITY_MAX).contains(count));
            return count.map(Self::Majority).ok_or_else(|| BadArm::Majority(text.to_owned()));
        }
        match text {
            "" => return Err(BadArm::Name),
            "single" => return Ok(Self::Majority(1)),
            "vote" => return Ok(Self::Vote),
            _ => {}
        }
        // A path may hold a colon; a protocol has none of the signs of a path.
        if let Some((protocol, name)) = text.split_once(':')
            && protocol.chars().all(|c| c.is_ascii_lowercase())
        {
            return Ok(Self::Roleset { name: name.to_owned(), protocol: Some(protocol.to_owned()) });
        }
        Ok(Self::Roleset { name: text.to_owned(), protocol: None })
    }
}

impl ArmSpec {
    /// Returns the tokens that the votes of this arm share, as they were written.
    pub fn budget(&self) -> Option<&str> {
        self.settings.iter().find(|(name, _)| name == BUDGET).map(|(_, tokens)| tokens.as_str())
    }

    /// Returns the settings with which samples of this arm are drawn; the others say how they are counted.
    pub fn drawing(&self) -> Vec<(String, String)> {
        self.settings.iter().filter(|(name, _)| !COUNTING.contains(&name.as_str())).cloned().collect()
    }

    /// Returns all settings, with those that the way of answering implies. An evaluation wants an answer to every question where a way
    /// has one, so a vote that does not settle answers with its leader unless the arm says otherwise.
    pub fn all_settings(&self) -> Vec<(String, String)> {
        let implied = match self.way {
            Way::Majority(count) => vec![
                ("stop", "none".to_owned()),
                ("modes", "words".to_owned()),
                ("samples-max", count.to_string()),
                ("on-disagreement", "leader".to_owned()),
            ],
            Way::Vote => vec![("on-disagreement", "leader".to_owned())],
            Way::Roleset { .. } => Vec::new(),
        };
        let mut settings = self.settings.clone();
        for (name, value) in implied {
            if self.settings.iter().all(|(given, _)| given != name) {
                settings.push((name.to_owned(), value));
            }
        }
        settings
    }
}

/// Splits settings. A part without an equals sign belongs to the value before it, as `program` in `modes=words,program` does.
fn split<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Vec<(String, String)>, BadArm> {
    let mut settings: Vec<(String, String)> = Vec::new();
    for part in parts {
        match (part.split_once('='), settings.last_mut()) {
            (Some((name, value)), _) if !name.trim().is_empty() && !value.trim().is_empty() => {
                settings.push((name.trim().replace('_', "-"), value.trim().to_owned()));
            }
            (None, Some((_, value))) if !part.is_empty() => {
                value.push(',');
                value.push_str(part);
            }
            (Some(_) | None, _) => return Err(BadArm::Setting(part.to_owned())),
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_arm_is_a_way_with_settings() {
        let arm: ArmSpec = "vote, modes=words,program, stop=sure ,model=B".parse().unwrap();
        assert_eq!((&arm.way, arm.model.as_deref()), (&Way::Vote, Some("B")));
        assert_eq!(arm.settings, settings(&[("modes", "words,program"), ("stop", "sure")]));
        assert_eq!(arm.all_settings().last().unwrap().1, "leader");
        assert_eq!(arm.drawing(), []);
        let arm: ArmSpec = "vote,budget=9000".parse().unwrap();
        assert_eq!((arm.budget(), arm.drawing()), (Some("9000"), Vec::new()));
        let arm: ArmSpec = "pair:solver_checker,thinking=none,max_rounds=8".parse().unwrap();
        let way = Way::Roleset { name: "solver_checker".to_owned(), protocol: Some("pair".to_owned()) };
        assert_eq!((arm.way, arm.settings), (way, settings(&[("thinking", "none"), ("max-rounds", "8")])));
        let arm: ArmSpec = "single,temperature=0".parse().unwrap();
        assert_eq!((&arm.way, arm.drawing()), (&Way::Majority(1), settings(&[("temperature", "0")])));
        let path = "C:/mine.json".parse::<ArmSpec>().unwrap().way;
        assert_eq!(path, Way::Roleset { name: "C:/mine.json".to_owned(), protocol: None });
    }

    #[test]
    fn a_text_that_is_no_arm_is_refused() {
        for (text, part) in [
            ("", "begins with a way of answering"),
            ("sc@1", "K from 2 to 16"),
            ("sc@17", "K from 2 to 16"),
            ("vote,sure", "`sure` is no setting"),
            ("vote,=sure", "`=sure` is no setting"),
            ("vote,stop=", "`stop=` is no setting"),
            ("sc@5,stop=sure", "`sc@5` sets `stop` itself"),
            ("vote,canonical=text", "give --canonical beside the arms"),
            ("vote,choices=A,B", "an arm has no `choices`"),
            ("single,samples_max=3", "`single` sets `samples-max` itself"),
            ("sc@5,budget=9000", "`sc@5` sets `budget` itself"),
        ] {
            let why = text.parse::<ArmSpec>().unwrap_err().to_string();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
