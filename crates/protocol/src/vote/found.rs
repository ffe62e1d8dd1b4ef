//! The answer at the end of a free text, found by rule.
//!
//! The input is what a voter wrote, and the kind of answer. The output is the text of its answer, or `None` if the rule finds none; then
//! the voter is asked for it in a form. The answer is the last thing that the text says about it. A text that says two things, takes one
//! back or goes on to calculate has none. Nothing here decides whether the answer is valid.

use std::borrow::Cow;

use super::mentions::{
    CORRECTS, FoundBy, Mention, TAKES_BACK, announced, before_next_question, boxed, mentions,
};
use super::quantity::{last_number, number};
use crate::text::{Canonical, CanonicalKind, Canonicalizer};

/// The question that a voter was asked, as far as it decides how an answer is read.
pub(super) struct AskedQuestion<'a, Choice> {
    pub(super) prompt: &'a str,
    pub(super) canonicalizer: &'a Canonicalizer,
    /// Reads a letter or an option, for a question with options.
    pub(super) choice: Choice,
}

/// Returns the text of the answer in what a voter wrote, and the rule that found it.
///
/// The order of the rules is that of the reference that agrees with 5,276 solutions of GSM8K. Its last resort, the last number of a text,
/// is left out. A vote for a number that was not meant as the answer is worse than a further question, because all samples of one model
/// err alike.
pub(super) fn answer<Choice: Fn(&str) -> Option<String>>(
    said: &str,
    asked: &AskedQuestion<'_, Choice>,
) -> Option<(String, FoundBy)> {
    let said = after_thoughts(said)?;
    match asked.canonicalizer.kind() {
        CanonicalKind::Number | CanonicalKind::Choice => asked.short(said),
        CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => {
            asked.long(said)
        }
    }
}

impl<Choice: Fn(&str) -> Option<String>> AskedQuestion<'_, Choice> {
    /// Finds a number or a choice.
    fn short(&self, said: &str) -> Option<(String, FoundBy)> {
        let said = before_next_question(said);
        let mentions = mentions(said);
        let Some(last) = mentions.last() else {
            let whole = said.trim();
            if whole.lines().count() != 1 {
                return None;
            }
            return Some((self.read(whole, FoundBy::Whole)?, FoundBy::Whole));
        };
        let found = self.read(&last.words, last.by)?;
        let is_other = |mention: &Mention<'_>| {
            self.read(&mention.words, mention.by).is_some_and(|other| !self.are_equal(&other, &found))
        };
        // A line of its own is what was asked for, so only another such line speaks against it.
        let others = mentions.iter().filter(|other| last.by != FoundBy::Line || other.by == FoundBy::Line);
        let is_corrected = |other: &Mention<'_>| {
            last.by == FoundBy::Line && CORRECTS.is_match(&said[other.start..last.start])
        };
        let is_disputed = others.into_iter().any(|other| is_other(other) && !is_corrected(other));
        (!is_disputed && self.stands(&found, last)).then_some((found, last.by))
    }

    /// Returns true if nothing behind an answer speaks against it.
    fn stands(&self, found: &str, mention: &Mention<'_>) -> bool {
        let after = mention.after;
        if TAKES_BACK.is_match(after) || mention.by == FoundBy::Sentence && !after.trim().is_empty() {
            return false;
        }
        if self.canonicalizer.kind() == CanonicalKind::Choice {
            let is_other = |line: &str| {
                (self.choice)(&without_marks(line, CanonicalKind::Choice)).is_some_and(|other| other != found)
            };
            let mut words = after.split(|c: char| !c.is_alphanumeric());
            return !after.lines().any(is_other) && !words.any(|word| is_letter(word) && is_other(word));
        }
        if mention.by == FoundBy::Box {
            return !after.contains(|c: char| c.is_ascii_digit());
        }
        // A calculation that ends in the same number is its check.
        last_number(after).is_none_or(|last| self.are_equal(&last, found))
    }

    fn are_equal(&self, one: &str, other: &str) -> bool {
        let canonical =
            |text: &str| self.canonicalizer.canonicalize(text).ok().map(|Canonical { text, .. }| text);
        one == other || canonical(one).is_some_and(|text| Some(text) == canonical(other))
    }

    /// Finds an answer of any length. Where it may have several lines, all that follows belongs to it; prose ends at a blank line.
    fn long(&self, said: &str) -> Option<(String, FoundBy)> {
        let is_prose = self.canonicalizer.kind() == CanonicalKind::Text;
        let said = if is_prose { before_next_question(said) } else { said };
        let Some((words, after)) = announced(said, is_prose) else {
            return self.in_box(said);
        };
        // Such a line may be part of an answer of several lines.
        let lines = mentions(said).iter().filter(|mention| mention.by == FoundBy::Line).count();
        if !is_prose && lines > 1 {
            return None;
        }
        let found = self.read(&words, FoundBy::Line)?;
        let is_other = |mention: &Mention<'_>| {
            self.read(&mention.words, mention.by).is_none_or(|other| !self.are_equal(&other, &found))
        };
        let is_disputed = is_prose
            && (TAKES_BACK.is_match(after)
                || CORRECTS.is_match(words.split_once('\n').map_or("", |(_, further)| further))
                || mentions(after).iter().any(is_other));
        (!is_disputed).then_some((found, FoundBy::Line))
    }

    /// Finds an answer of any length in the last box, if nothing behind it takes it back and no other box has another.
    fn in_box(&self, said: &str) -> Option<(String, FoundBy)> {
        let last = boxed(said)?;
        if TAKES_BACK.is_match(last.after) {
            return None;
        }
        let found = self.read(last.content, FoundBy::Box)?;
        let mut boxes = said.lines().filter_map(boxed);
        let are_one = boxes.all(|one| {
            self.read(one.content, FoundBy::Box).is_some_and(|other| self.are_equal(&other, &found))
        });
        are_one.then_some((found, FoundBy::Box))
    }

    /// Returns the answer in the words of a mention, if they are one.
    fn read(&self, words: &str, by: FoundBy) -> Option<String> {
        let kind = self.canonicalizer.kind();
        let text = &*without_marks(words, kind);
        match kind {
            CanonicalKind::Number if by == FoundBy::Whole => {
                self.canonicalizer.canonicalize(text).is_ok().then(|| text.to_owned())
            }
            CanonicalKind::Number => number(text, self.prompt, self.canonicalizer),
            CanonicalKind::Choice => (self.choice)(text),
            CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => {
                let read = self.canonicalizer.canonicalize(text);
                read.is_ok_and(|read| !read.text.is_empty()).then(|| text.to_owned())
            }
        }
    }
}

/// Returns what a voter wrote after its thoughts, where a server leaves these in the reply. Thoughts without an end hold no answer.
fn after_thoughts(said: &str) -> Option<&str> {
    match said.rfind("</think>") {
        Some(end) => Some(&said[end + "</think>".len()..]),
        None => (!said.trim_start().starts_with("<think>")).then_some(said),
    }
}

/// Returns true for a capital, as the letters of options are.
fn is_letter(word: &str) -> bool {
    word.len() == 1 && word.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns a text without the marks of Markdown and mathematics around it, where they cannot belong to the answer.
fn without_marks(text: &str, kind: CanonicalKind) -> Cow<'_, str> {
    let is_in = |marks: &'static str| move |c: char| c.is_whitespace() || marks.contains(c);
    match kind {
        CanonicalKind::Number | CanonicalKind::Choice => {
            let is_mark = is_in("*_`{}");
            let text = boxed(text).map_or(Cow::Borrowed(text), |found| Cow::Owned(found.clause()));
            let text = text.trim_matches(is_mark);
            // Several points say that the number goes on.
            let text = text.strip_suffix('.').filter(|text| !text.ends_with('.')).unwrap_or(text);
            let text = text.trim_end_matches(is_mark);
            let text = if text.ends_with('$') { text.trim_matches('$').trim() } else { text };
            Cow::Owned(text.to_owned())
        }
        CanonicalKind::Text => without_emphasis(text),
        CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => Cow::Borrowed(text),
    }
}

/// Returns a text without the marks around it. The first of a pair may have been read with the word `Answer`.
fn without_emphasis(text: &str) -> Cow<'_, str> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || "*_`".contains(c));
    let mut text = Cow::Borrowed(text);
    for mark in ["**", "`"] {
        if text.matches(mark).count() % 2 == 1 {
            text = Cow::Owned(text.replace(mark, ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: CanonicalKind, said: &str) -> Option<String> {
        let canonicalizer = Canonicalizer::new(&kind.into());
        let letter = super::super::quantity::pattern(r"^\(?([A-E])\b");
        let choice = |text: &str| letter.captures(text).map(|found| found[1].to_owned());
        let prompt = "How many bottles and dollars does she have?";
        let asked = AskedQuestion { prompt, canonicalizer: &canonicalizer, choice };
        answer(said, &asked).map(|(text, _)| text)
    }

    /// The unit and the marks beside the number are left out.
    #[test]
    fn announced_number_is_found() {
        for said in [
            "4 * 12 = 48\nAnswer: 48",
            "**Answer:** 48",
            "### Final Answer: $48$",
            "Answer:\n\n48 bottles",
            "Answer: 4 × 12 = 48 bottles.",
            "Answer: x = 48",
            "The answer is: **48**.",
            "Answer: 12\nWait, no.\nAnswer: 48",
            "So it is \\boxed{48}.",
            "Answer: \\boxed{48}",
            "Answer: \\(48\\)",
            "answer: $48",
            "She makes 6 * 8 = $48 a day.\n#### 48",
            "{final answer: 48}",
            "answer = 48",
            "So the answer is 48 bottles.",
            "The correct answer is 48.",
            "48",
            "<think>\nAnswer: 12\nhmm, no.\n</think>\n\nAnswer: 48",
        ] {
            assert_eq!(found(CanonicalKind::Number, said).as_deref(), Some("48"), "{said}");
        }
        for (said, number) in [
            ("x = -\\boxed{5}", "-5"),
            ("Answer: $-\\boxed{5}$", "-5"),
            ("She has \\(\\boxed{48}\\) bottles, which is enough.", "48"),
            ("\\[ x = \\boxed{48} \\]", "48"),
            ("Answer: -1,080.50 dollars", "-1,080.50"),
            ("Answer: -$5", "-5"),
            ("It is \\boxed{-\\$5}", "-5"),
            ("Answer: 50%", "50"),
        ] {
            assert_eq!(found(CanonicalKind::Number, said).as_deref(), Some(number), "{said}");
        }
    }

    /// A number with anything else said is asked for.
    #[test]
    fn ambiguous_number_is_asked_for() {
        for said in [
            "It is 48.",
            "Answer: four",
            "Answer: 4 of 48",
            "Answer:",
            "",
            "Answer: between 3 and 5",
            "I get 12 first, then 48",
            "48 bottles, I think",
            "#### Step 2: Multiply\n4 * 12 = 48",
            "#### 4. Total\nThe total is 48.",
            "<think>\nAnswer: 12",
            "Answer: –5",
            "Answer: minus 5",
            "Answer: 18 (check: 18 + 18 = 36)",
            "Answer: 5 (so 2x = 10)",
            "Answer: John = 5, Mary = 6",
            "Answer: 2 million",
            "Answer: 3 dozen",
            "Answer: $1.5k",
            "Answer: 3 or 4",
            "Answer:\nFirst, 4 * 12 = 48.\nThen 48 - 3 = 45.\nHe has 45 left.",
            "price = 12\nanswer = price * 3\nprint(answer)",
            "So the answer is not 48.\nWe must subtract 4, which is 44.",
            "The answer is 40.\nWait, I forgot 2. Final: 42",
            "The answer is rounded to 2 decimal places.",
            "The answer is twice 24.",
            "The answer is 24 doubled.",
            "Answer: It cannot be determined, because the 3 pens have no price.",
            "Answer: None of the 12 apples are left.",
            "Answer: seven (out of 12)",
            "First \\boxed{3}, then \\boxed{\\frac{3}{4}}",
            "\\boxed{x = 5} and \\boxed{y = 7}",
            "It is \\boxed{2} million dollars.",
            "So $\\boxed{3}$ dozen.",
            "It is \\boxed{3}\\pi.",
            "It is \\frac{\\boxed{3}}{x}.",
            "It is at least \\boxed{3}.",
            "Answer: x > \\boxed{3}",
        ] {
            assert_eq!(found(CanonicalKind::Number, said), None, "{said}");
        }
    }

    /// An answer that is taken back or is not the author's own is asked for.
    #[test]
    fn retracted_answer_is_asked_for() {
        for said in [
            "The total is 42.\nA common wrong answer is 40.",
            "I doubt the answer is 40",
            "The wrong answer is 40",
            "\\boxed{40} is wrong, since it must be 42.",
            "First \\boxed{12}.\nThen 12 + 30 = 42.",
            "Answer: 40\nWait, that is not right. The total is 42.",
            "Answer: 40\n\nHowever, it may be 42.",
            "Answer: 40\nThat isn't it.",
            "Answer: 40 isn't it.",
            "Answer: 40\nThis doesn’t add up.",
            "Answer: 40\nNope, it is forty-two.",
            "Answer: 40\nOh! I forgot the two of Tim, so forty-two.",
            "Answer: 40\nHold on.",
        ] {
            assert_eq!(found(CanonicalKind::Number, said), None, "{said}");
        }
        for said in [
            "Answer: A\n\nHowever, the right one is B.",
            "It is so.\nThe wrong answer is A",
            "Answer: A\nB is the correct answer.",
            "Answer: A\nSo B it is.",
        ] {
            assert_eq!(found(CanonicalKind::Choice, said), None, "{said}");
        }
        for said in [
            "So, therefore, the final answer is 48.",
            "**The correct answer is 48**",
            "Hence \\(\\boxed{48}\\).",
            "It is $\\boxed{48}$",
            "Answer: 48\n\n",
        ] {
            assert_eq!(found(CanonicalKind::Number, said).as_deref(), Some("48"), "{said}");
        }
    }

    /// The last words about the answer decide; if they say something else, no answer is found.
    #[test]
    fn later_words_make_an_answer_none() {
        for said in [
            "Answer: 40.\n\nBraylen wrote 4 times 40 stories.\nTherefore, the answer is 160.",
            "Answer: 12\nSo it is \\boxed{48}.",
            "Answer: 12\n#### 48",
            "Answer: 7 * 40 = 280.\nThen 280 / 7 = 40, and 40 + 2 is 42",
            "Answer: 9\n12\n15\n4",
            "Answer: 12\nHmm, let me reconsider.",
            "Answer: 12\nOn second thought, it is 48.",
            "Answer: 12\nEdit: 48",
            "Answer: 12\nMy bad, 48.",
            "Answer: 12\nOops.",
            "Answer: 0.333...",
            "Answer: 48…",
            "Answer: 12\n\nAnswer: 48",
            "The answer is 12. No, the answer is 48.",
            "The answer is 12.\nSo the answer is 48.",
            "Answer: 48\nQuestion 2: How much is 3 * 4?\nAnswer: 12",
            "Answer: 12\nMiss Lee then buys more.\nAnswer: 48",
            "The answer is 12.\nProblem: this ignores the three friends.\nAnswer: 48\n#### 12",
        ] {
            assert_eq!(found(CanonicalKind::Number, said), None, "{said}");
        }
        for said in ["Answer: A\nB", "Answer: A\nSo it is \\boxed{B}.", "The answer is A.\nThe answer is B."]
        {
            assert_eq!(found(CanonicalKind::Choice, said), None, "{said}");
        }
        for said in [
            "Answer: Paris\n\nWait, it is Lyon.",
            "Answer: Paris\n\nThe answer is Lyon.",
            "Answer: Paris\nOn second thought, Lyon.",
            "Answer: Paris\n\nHowever, it may be Lyon.",
            "First \\boxed{Paris}.\nThen \\boxed{Lyon}.",
            "\\boxed{Paris}\nIt should be Lyon.",
        ] {
            assert_eq!(found(CanonicalKind::Text, said), None, "{said}");
        }
    }

    #[test]
    fn later_words_may_repeat_or_check_the_answer() {
        for said in [
            "Answer: 48\nCheck: 6 * 8 = 48",
            "Answer: 48.\n\nShe has 48 bottles.",
            "Answer: 48.\nI hope this helps!",
            "Answer: 48.\nThe answer (words) is forty-eight.",
            "Answer: 48\n\\boxed{48}",
            "Answer: 48\n\nQ: How much is 3 * 4?\nA: It is 12.\nAnswer: 12",
            "Answer: 48\n\n### Question\nHow much is 3 * 4?\n#### 12",
            "Answer: 48\n<|im_start|>user\nHow much is 3 * 4?",
            "12 * 4 is 48. So the answer is 48.",
            "4 * 12 = 48. She has 48 bottles. The answer is 48",
        ] {
            assert_eq!(found(CanonicalKind::Number, said).as_deref(), Some("48"), "{said}");
        }
        for said in
            ["B is too small. So the answer is (A).", "Answer: (A)\n(A)", "Answer: (A)\n\nIt has 12 legs."]
        {
            assert_eq!(found(CanonicalKind::Choice, said).as_deref(), Some("A"), "{said}");
        }
    }

    #[test]
    fn text_spans_lines_but_choice_does_not() {
        assert_eq!(
            found(CanonicalKind::Lines, "so\nAnswer:\na = 1\nb = 2\n").as_deref(),
            Some("a = 1\nb = 2")
        );
        assert_eq!(found(CanonicalKind::Text, "so\nAnswer: to be\nor not").as_deref(), Some("to be\nor not"));
        assert_eq!(found(CanonicalKind::Choice, "Answer: B) Rome\n").as_deref(), Some("B"));
        assert_eq!(found(CanonicalKind::Text, "no answer here"), None);
        assert_eq!(found(CanonicalKind::Text, "#### Step 2: combine\nSo it is Paris."), None);
        assert_eq!(
            found(CanonicalKind::Text, "Answer: Paris\n\nIt is the capital.").as_deref(),
            Some("Paris")
        );
        assert_eq!(
            found(CanonicalKind::Json, "Answer:\n```json\n{\"a\": 1}\n```").as_deref(),
            Some("{\"a\": 1}")
        );
        assert_eq!(found(CanonicalKind::Json, "Answer: something"), None, "it is asked for in a form");
        let two = "Answer:\nname: x\nanswer: 5\nunit: kg";
        assert_eq!(found(CanonicalKind::Lines, two), None, "either line may announce it");
        for said in ["Answer: **Paris**.", "Answer: **Paris.**", "**Answer: Paris.**", "**Answer:** `Paris`."]
        {
            assert_eq!(found(CanonicalKind::Text, said).as_deref(), Some("Paris."), "{said}");
        }
        assert_eq!(found(CanonicalKind::Lines, "Answer:\n```python\nx = 1\n```").as_deref(), Some("x = 1"));
    }
}
