//! Long texts, compared: the one that is nearest to all others, and what two of them state differently.
//!
//! The input is drafts in their order. The output is derived by code alone, so that `verify` derives it again. Whether a text is good is
//! never judged here: a text that says the same as the others is only what the voters would write again.

use serde::Serialize;

use crate::contract::Answer;
use crate::text::{
    CanonicalKind, LIKE, Likeness, SortedText, TextDifference, TextProfile, TextReading, differences,
    find_medoid,
};

/// The most differences that are listed. Further ones are only counted.
const DIFFERENCES_MAX: usize = 100;

/// What a comparison of drafts has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedTexts {
    /// The number of drafts that were compared.
    pub drafts: usize,
    /// The index among them of the one that is nearest to all others.
    pub medoid: usize,
    /// The text of that draft.
    pub nearest: String,
    /// The mean likeness of that draft to the others, as an exact fraction.
    pub likeness: Likeness,
    /// The same as a number, for people.
    pub likeness_value: f64,
    /// The least likeness of that draft to another one, as an exact fraction.
    pub least: Likeness,
    /// The first 100 differences between two drafts.
    pub differences: Vec<DraftDifference>,
    /// The number of differences beyond them.
    pub further_differences: usize,
}

/// A thing that two drafts state differently.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct DraftDifference {
    /// The indexes of the two drafts.
    pub drafts: [usize; 2],
    #[serde(flatten)]
    pub difference: TextDifference,
}

impl ComparedTexts {
    /// Compares drafts of this kind, each with each. Returns `None` without any.
    pub(crate) fn new(kind: CanonicalKind, drafts: &[&Answer]) -> Option<Self> {
        let readings: Vec<TextReading> = drafts.iter().map(|draft| read(kind, draft)).collect();
        let profiles: Vec<TextProfile> = readings.iter().map(TextProfile::new).collect();
        let nearest = find_medoid(&profiles)?;
        let mut compared = Self {
            drafts: drafts.len(),
            medoid: nearest.index,
            nearest: drafts[nearest.index].shown.clone(),
            likeness: nearest.mean,
            likeness_value: (nearest.mean.value() * 1e6).round() / 1e6,
            least: nearest.least,
            differences: Vec::new(),
            further_differences: 0,
        };
        let texts = SortedText::sort(&readings);
        for (one, first) in texts.iter().enumerate() {
            for (other, second) in texts.iter().enumerate().skip(one + 1) {
                compared.add([one, other], differences(first, second));
            }
        }
        Some(compared)
    }

    fn add(&mut self, drafts: [usize; 2], found: Vec<TextDifference>) {
        for difference in found {
            if self.differences.len() < DIFFERENCES_MAX {
                self.differences.push(DraftDifference { drafts, difference });
            } else {
                self.further_differences += 1;
            }
        }
    }

    /// Returns true if code finds nothing that two drafts state differently, and each is near enough to the medoid for it to look.
    pub fn are_alike(&self) -> bool {
        self.differences.is_empty() && self.least.reaches(LIKE)
    }
}

/// Reads a draft as prose, or as code where the kind says that each character or line counts.
fn read(kind: CanonicalKind, draft: &Answer) -> TextReading {
    match kind {
        CanonicalKind::Text => TextReading::of_prose(&draft.shown),
        CanonicalKind::Lines
        | CanonicalKind::Verbatim
        | CanonicalKind::Behaviour
        | CanonicalKind::Number
        | CanonicalKind::Json
        | CanonicalKind::Choice => TextReading::of_code(&draft.canonical.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{CanonicalRule, Canonicalizer, DifferenceKind, is_short};

    fn compare(kind: CanonicalKind, texts: &[&str]) -> ComparedTexts {
        let canonicalizer = Canonicalizer::new(&CanonicalRule { kind, ..CanonicalRule::default() });
        let answers: Vec<Answer> = texts
            .iter()
            .map(|text| Answer {
                shown: (*text).to_owned(),
                canonical: canonicalizer.canonicalize(text).unwrap(),
            })
            .collect();
        ComparedTexts::new(kind, &answers.iter().collect::<Vec<_>>()).unwrap()
    }

    /// The first pairs explain one thing in other words, and the others do not.
    #[test]
    fn long_answers_must_be_alike() {
        for (are_alike, one, other) in LONG_PAIRS {
            assert!(!is_short(one) && !is_short(other), "{one}");
            let compared = compare(CanonicalKind::Text, &[one, other]);
            assert_eq!(compared.are_alike(), are_alike, "{one} {other} {compared:?}");
        }
    }

    #[test]
    fn every_draft_must_reach_the_medoid() {
        let rain = "rain falls from clouds onto the hills around the harbour";
        let compared = compare(CanonicalKind::Text, &[rain, rain, rain, "yeast makes bread rise"]);
        assert!(compared.likeness.reaches(LIKE) && !compared.least.reaches(LIKE));
        assert!(compared.differences.is_empty() && !compared.are_alike());
        assert_eq!((compared.medoid, compared.nearest.as_str()), (0, rain));
        assert!(compare(CanonicalKind::Text, &[rain]).are_alike());
    }

    /// Each character of code counts, and no word of it is read as prose.
    #[test]
    fn unequal_code_is_a_difference() {
        let (one, other) = ("let limit = first + 1;\nrun(limit);", "let limit = first - 1;\nrun(limit);");
        for kind in [CanonicalKind::Lines, CanonicalKind::Verbatim] {
            let found = compare(kind, &[one, other]).differences;
            assert_eq!(found.len(), 1, "{found:?}");
            let TextDifference { kind: what, one, other } = &found[0].difference;
            assert_eq!(*what, DifferenceKind::Code);
            assert!(one.contains("+ 1") && other.contains("- 1"), "{one} {other}");
        }
        assert!(compare(CanonicalKind::Lines, &[one, &format!("{one}  \n")]).are_alike());
        assert!(!compare(CanonicalKind::Verbatim, &[one, &format!("{one}  \n")]).are_alike());
    }

    #[test]
    fn further_differences_are_counted() {
        let texts: Vec<String> = (0..20).map(|number| format!("The pump needs {number} litres.")).collect();
        let compared = compare(CanonicalKind::Text, &texts.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(compared.drafts, 20);
        assert_eq!(compared.differences.len(), DIFFERENCES_MAX);
        assert_eq!(compared.further_differences, 20 * 19 / 2 - DIFFERENCES_MAX);
    }

    const LONG_PAIRS: [(bool, &str, &str); 15] = [
        (
            true,
            "The sky looks blue because of Rayleigh scattering. Sunlight contains all colours, and the molecules of the air scatter short wavelengths such as blue far more than long wavelengths such as red. The scattered blue light reaches our eyes from every direction.",
            "The sky appears blue because molecules in the air scatter sunlight. Blue light has a shorter wavelength than red light, so it is scattered much more strongly. This effect is called Rayleigh scattering, and the scattered blue light comes to our eyes from all directions.",
        ),
        (
            true,
            "The seasons are caused by the tilt of the Earth's axis, which is about 23.5 degrees. When the northern hemisphere is tilted towards the Sun, it gets more direct sunlight and has summer. Six months later it is tilted away and has winter.",
            "Seasons happen because the axis of the Earth is tilted by about 23.5 degrees. In summer the northern hemisphere leans towards the Sun and receives more direct sunlight. When it leans away from the Sun, the sunlight is weaker and it is winter there.",
        ),
        (
            true,
            "Photosynthesis is the process by which plants make their food. Chlorophyll in the leaves absorbs light, and its energy turns water and carbon dioxide into glucose and oxygen. The plant uses the glucose for growth and releases the oxygen into the air.",
            "In photosynthesis, plants use the energy of light to turn carbon dioxide and water into glucose. The green pigment chlorophyll in the leaves absorbs the light. Oxygen is released into the air, and the plant uses the glucose to grow.",
        ),
        (
            true,
            "Tides are caused by the gravity of the Moon. It pulls the water of the ocean on the near side of the Earth more strongly than the Earth itself, so that a bulge of water forms. A second bulge forms on the far side, and most coasts have two high tides a day.",
            "The gravity of the Moon causes the tides. The ocean on the side of the Earth that faces the Moon is pulled towards it, which makes a bulge of water. There is a second bulge on the opposite side, so most coasts see two high tides each day.",
        ),
        (
            true,
            "A vaccine trains the immune system without causing the disease. It contains a harmless part of a virus or bacterium. The body makes antibodies against it, and memory cells remain, so that the immune system reacts quickly when the real virus arrives.",
            "Vaccines work by showing the immune system a harmless piece of a virus or bacterium. The body responds by making antibodies and memory cells. If the real virus comes later, the immune system recognises it and reacts quickly, before the disease can develop.",
        ),
        (
            true,
            "Run `git reset --soft HEAD~1`. This command removes the last commit from the branch, but keeps all of your changes staged, so that you can commit them again. If you want to keep the changes but unstage them, use `--mixed` instead of `--soft`.",
            "You can undo the last commit and keep your changes with `git reset --soft HEAD~1`. The commit is removed from the branch, and the changes stay staged for the next commit. Use `--mixed` instead if the changes should be kept but not staged.",
        ),
        (
            true,
            "Regen entsteht, wenn warme und feuchte Luft aufsteigt und sich dabei abkühlt. Der Wasserdampf kondensiert zu kleinen Tropfen, aus denen Wolken bestehen. Werden die Tropfen groß und schwer genug, fallen sie als Regen zur Erde.",
            "Wenn feuchte, warme Luft nach oben steigt, kühlt sie sich ab. Dabei kondensiert der Wasserdampf zu winzigen Tropfen, und es bilden sich Wolken. Sobald die Tropfen zu schwer werden, fallen sie als Regen auf die Erde.",
        ),
        (
            true,
            "Ice floats because it is less dense than liquid water. When water freezes, its molecules form a crystal lattice held by hydrogen bonds, and this open structure takes up more space. The same mass therefore has a larger volume, so the ice floats on the water.",
            "Ice floats on water because its density is lower than the density of liquid water. As water freezes, hydrogen bonds hold the molecules in an open crystal structure that takes up more space. So the same mass of ice has a greater volume than the water.",
        ),
        // Two causes of one effect.
        (
            false,
            "The sky looks blue because of Rayleigh scattering. Sunlight contains all colours, and the molecules of the air scatter short wavelengths such as blue far more than long wavelengths such as red. The scattered blue light reaches our eyes from every direction.",
            "The sky looks blue because it reflects the colour of the ocean, which covers most of our planet. Water absorbs the other colours of the sunlight and sends the blue ones back up into the air. Far away from the sea the reflection is weaker, but it is still there.",
        ),
        (
            false,
            "Inflation rises when the central bank prints more money than the economy needs. Each unit of currency then buys fewer goods, and shops raise their prices. The bank can slow this down by raising interest rates, which makes loans more expensive.",
            "Inflation often starts with higher costs of energy and imports. Companies pay more for fuel and parts and pass this on to customers. Workers then ask for higher wages, and this spiral continues until demand falls or supply recovers from the shock.",
        ),
        (
            false,
            "The seasons are caused by the tilt of the Earth's axis, which is about 23.5 degrees. When the northern hemisphere is tilted towards the Sun, it gets more direct sunlight and has summer. Six months later it is tilted away and has winter.",
            "Day and night are caused by the rotation of the Earth around its axis. The side that faces the Sun has day, and the other side is in the dark. One rotation takes about 24 hours, so the Sun seems to rise in the east and set in the west.",
        ),
        (
            false,
            "Yeast makes bread rise. It feeds on the sugar in the dough and produces carbon dioxide, which is trapped by the gluten as small bubbles. In the oven the bubbles expand, the alcohol evaporates, and the crumb becomes firm.",
            "Beer is brewed from malt, hops, water and yeast. The malt is mashed to turn its starch into sugar, and the wort is boiled with hops for an hour. Then yeast ferments the sugar for a week, and the beer matures in cold tanks.",
        ),
        // The same but for a year.
        (
            false,
            "The Apollo 11 mission landed on the Moon on 20 July 1969. Neil Armstrong was the first person to walk on its surface, and Buzz Aldrin followed him. Michael Collins stayed in orbit, and all three returned to the Earth four days later.",
            "The Apollo 11 mission landed on the Moon on 20 July 1970. Neil Armstrong was the first person to walk on its surface, and Buzz Aldrin followed him. Michael Collins stayed in orbit, and all three came back to the Earth four days later.",
        ),
        // One denies the other.
        (
            false,
            "Antibiotics are effective against a common cold. The medicine kills the germs that cause it within days, and patients feel better soon. Doctors recommend to take all tablets of the package, even if the symptoms have disappeared before.",
            "Antibiotics are not effective against a common cold. It is caused by viruses, and the medicine kills only bacteria, so patients do not feel better sooner. Doctors recommend rest, drinks and patience until the symptoms have disappeared.",
        ),
        (
            false,
            "Der Mond umkreist die Erde in etwa 27 Tagen. Er dreht sich in derselben Zeit einmal um seine Achse, deshalb sehen wir immer dieselbe Seite. Seine Anziehung verursacht die Gezeiten der Meere, und Menschen haben ihn zwölfmal betreten.",
            "Der Mars ist der vierte Planet des Sonnensystems und hat zwei kleine Monde. Seine rote Farbe kommt vom Rost in Staub und Gestein. Auf ihm steht der höchste Vulkan, den man kennt, und mehrere Fahrzeuge erforschen heute seine Oberfläche.",
        ),
    ];
}
