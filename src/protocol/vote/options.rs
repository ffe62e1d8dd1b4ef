//! The options of a question with lettered choices, in an order of their own for each sample.
//!
//! The input is the task's prompt, the letters, and a call. The output is the prompt with its options in another order, and the letter of the
//! task for a letter that a voter names. A small model names one letter more often than the others, whatever option it is for, so each
//! sample sees another order. The order follows from the run's seed and the call alone, so that a replay draws the same.

use crate::crypto::Hasher;
use crate::protocol::contract::CallId;

/// A prompt whose lines hold one option each, under letters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct LetteredOptions {
    lines: Vec<String>,
    options: Vec<LetteredOption>,
}

/// One option of a prompt.
#[derive(Clone, Debug, Eq, PartialEq)]
struct LetteredOption {
    /// The line that holds it, from 0.
    line: usize,
    /// The choice, as the task names it.
    choice: String,
    /// The part of the line before its text: the letter and its sign.
    label: String,
    text: String,
}

/// The order of the options that one sample sees: for each place the index of the option that is shown there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Arrangement(Vec<usize>);

impl LetteredOptions {
    /// Finds the options in a prompt. Returns `None` unless each of the choices begins exactly one line, as in `A) Rome` or `(b) Rome`.
    pub(super) fn find(prompt: &str, choices: &[String]) -> Option<Self> {
        let lines: Vec<String> = prompt.lines().map(str::to_owned).collect();
        let mut options = Vec::new();
        for choice in choices {
            let mut found = lines.iter().enumerate().filter_map(|(line, text)| {
                let label = label_of(text, choice)?;
                let (label, text) = text.split_at(label);
                let (label, text) = (label.to_owned(), text.trim_end().to_owned());
                Some(LetteredOption { line, choice: choice.clone(), label, text })
            });
            let (Some(option), None) = (found.next(), found.next()) else { return None };
            options.push(option);
        }
        (options.len() >= 2).then_some(Self { lines, options })
    }

    /// Draws the order that a sample sees.
    pub(super) fn draw(&self, seed: u64, call: CallId) -> Arrangement {
        let lot = |option: &usize| {
            let mut hasher = Hasher::default();
            hasher.part(b"options").part(&seed.to_be_bytes()).part(&(call.agent as u64).to_be_bytes());
            hasher.part(&call.draft.to_be_bytes()).part(&(*option as u64).to_be_bytes()).finish()
        };
        let mut order: Vec<usize> = (0..self.options.len()).collect();
        order.sort_by_key(lot);
        Arrangement(order)
    }

    /// Returns the prompt with its options in this order. The letters stay in their places.
    pub(super) fn arranged(&self, arrangement: &Arrangement) -> String {
        let mut lines = self.lines.clone();
        for (place, shown) in self.options.iter().zip(&arrangement.0) {
            lines[place.line] = format!("{}{}", place.label, self.options[*shown].text);
        }
        lines.join("\n")
    }

    /// Returns the choice of the task behind an answer of a voter who saw this order: the letter of a place, with or without the text
    /// of its option, or that text alone. `None` for anything else.
    pub(super) fn choice(&self, arrangement: &Arrangement, answer: &str) -> Option<&str> {
        let behind = |place: usize| Some(self.options[*arrangement.0.get(place)?].choice.as_str());
        let answer = answer.trim().trim_end_matches('.').trim();
        let is_letter = |option: &LetteredOption| plain(answer) == plain(&option.choice);
        if let Some(place) = self.options.iter().position(is_letter) {
            return behind(place);
        }
        let folded = |text: &str| text.trim().trim_end_matches('.').to_lowercase();
        if let Some(option) = self.options.iter().find(|option| folded(&option.text) == folded(answer)) {
            return Some(&option.choice);
        }
        let begins = self.options.iter().position(|option| label_of(answer, &option.choice).is_some())?;
        behind(begins)
    }
}

/// Returns a letter without the signs around it.
fn plain(text: &str) -> String {
    text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// Returns the length of the label at the beginning of a line, with its sign and the space after it, if the line is that of this choice.
fn label_of(line: &str, choice: &str) -> Option<usize> {
    let indent = line.len() - line.trim_start().len();
    let rest = &line[indent..];
    let open = rest.strip_prefix('(').unwrap_or(rest);
    let after = open.get(..choice.len()).filter(|label| label.eq_ignore_ascii_case(choice))?.len();
    let after = &open[after..];
    let sign = after.chars().next().filter(|sign| matches!(sign, ')' | '.' | ':'))?;
    let text = after[sign.len_utf8()..].trim_start();
    (!text.trim().is_empty()).then(|| line.len() - text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::protocol::contract::Step;
    use proptest::prelude::*;

    const PROMPT: &str = "Which is the capital of Italy?\nA) Rome\nB) Milan.\n  (C) Naples\nD: Turin, the first one\nChoose one.";

    fn letters() -> Vec<String> {
        ["A", "B", "C", "D"].map(str::to_owned).to_vec()
    }

    fn call(draft: u32) -> CallId {
        CallId { part: 0, round: 1, agent: 0, draft, step: Step::Sample, attempt: 0 }
    }

    proptest! {
        #[test]
        fn an_answer_leads_back_to_the_option_that_the_voter_saw(seed: u64, draft in 0..100_u32, place in 0..4_usize) {
            let options = LetteredOptions::find(PROMPT, &letters()).unwrap();
            let arrangement = options.draw(seed, call(draft));
            let shown = options.arranged(&arrangement);
            let line = shown.lines().nth(place + 1).unwrap();
            let text = line.trim_start_matches([' ', '(']).trim_start_matches(['A', 'B', 'C', 'D', ')', ':', '.', ' ']);
            let meant = ["Rome", "Milan.", "Naples", "Turin, the first one"].iter().position(|known| *known == text);
            let expected = letters()[meant.unwrap()].clone();
            let letter = letters()[place].clone();
            for answer in [letter.clone(), format!("({letter})"), format!("{}.", letter.to_lowercase()), line.to_owned(), text.to_owned()] {
                prop_assert_eq!(options.choice(&arrangement, &answer), Some(expected.as_str()), "{}", answer);
            }
        }
    }

    #[test]
    fn every_option_comes_to_every_place_about_as_often() {
        let options = LetteredOptions::find(PROMPT, &letters()).unwrap();
        let mut counts = [[0_u32; 4]; 4];
        for draft in 0..4000 {
            for (place, option) in options.draw(7, call(draft)).0.iter().enumerate() {
                counts[place][*option] += 1;
            }
        }
        // 1000 expected, standard deviation 27.
        assert!(counts.iter().flatten().all(|count| (880..1120).contains(count)), "{counts:?}");
    }

    #[test]
    fn options_are_found_only_where_each_letter_begins_one_line() {
        for prompt in
            ["Yes or no?", "A) one\nB) two", "A) a\nB) b\nC) c\nD) d\nA) again", "A a\nB b\nC c\nD d"]
        {
            assert_eq!(LetteredOptions::find(prompt, &letters()), None, "{prompt}");
        }
    }

    #[test]
    fn what_names_no_option_is_no_choice() {
        let options = LetteredOptions::find(PROMPT, &letters()).unwrap();
        let arrangement = options.draw(1, call(0));
        for answer in ["", "E", "A or B", "none of them", "Florence"] {
            assert_eq!(options.choice(&arrangement, answer), None, "{answer}");
        }
    }
}
