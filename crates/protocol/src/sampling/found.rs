//! The answer at the end of a free text, found by rule.
//!
//! The input is what a voter wrote, and the kind of answer. The output is the text of its answer, or `None` if the rule finds none; then
//! the voter is asked for it in a form. The answer is the last thing that the text says about it. A text that says two things, takes one
//! back or goes on to calculate has none. Nothing here decides whether the answer is valid.

use std::borrow::Cow;

use super::mentions::{
    CORRECTS, FoundBy, Mention, TAKES_BACK, announced_answer, before_next_question, last_box, mentions,
};
use super::quantity::{last_number, number};
use crate::text::{CanonicalKind, Canonicalizer};

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
    reply: &str,
    asked: &AskedQuestion<'_, Choice>,
) -> Option<(String, FoundBy)> {
    let reply = after_thoughts(reply)?;
    match asked.canonicalizer.kind() {
        CanonicalKind::Number | CanonicalKind::Choice => asked.short(reply),
        CanonicalKind::Text
        | CanonicalKind::Lines
        | CanonicalKind::Json
        | CanonicalKind::Verbatim
        | CanonicalKind::Behaviour => asked.long(reply),
    }
}

impl<Choice: Fn(&str) -> Option<String>> AskedQuestion<'_, Choice> {
    /// Finds a number or a choice.
    fn short(&self, reply: &str) -> Option<(String, FoundBy)> {
        let reply = before_next_question(reply);
        let mentions = mentions(reply);
        let Some(last) = mentions.last() else {
            let whole = reply.trim();
            if whole.lines().count() != 1 {
                return None;
            }
            return Some((self.read(whole, FoundBy::Whole)?, FoundBy::Whole));
        };
        let found = self.read(&last.words, last.by)?;
        for other in &mentions {
            // A line of its own is what was asked for, so only another such line speaks against it.
            if last.by == FoundBy::Line && other.by != FoundBy::Line {
                continue;
            }
            let words = self.read(&other.words, other.by);
            if words.is_none_or(|words| self.are_equal(&words, &found)) {
                continue;
            }
            let is_corrected = last.by == FoundBy::Line && CORRECTS.is_match(&reply[other.start..last.start]);
            if !is_corrected {
                return None;
            }
        }
        if self.is_undisputed(&found, last) { Some((found, last.by)) } else { None }
    }

    /// Returns true if nothing behind an answer speaks against it.
    fn is_undisputed(&self, found: &str, mention: &Mention<'_>) -> bool {
        let after = mention.after;
        if TAKES_BACK.is_match(after) || mention.by == FoundBy::Sentence && !after.trim().is_empty() {
            return false;
        }
        if self.canonicalizer.kind() == CanonicalKind::Choice {
            let words = after.split(|c: char| !c.is_alphanumeric()).filter(|word| is_letter(word));
            return !after.lines().chain(words).any(|text| self.is_other_choice(text, found));
        }
        if mention.by == FoundBy::Box {
            return !after.contains(|c: char| c.is_ascii_digit());
        }
        // A calculation that ends in the same number is its check.
        last_number(after).is_none_or(|last| self.are_equal(&last, found))
    }

    fn is_other_choice(&self, text: &str, found: &str) -> bool {
        (self.choice)(&without_marks(text, CanonicalKind::Choice)).is_some_and(|other| other != found)
    }

    fn are_equal(&self, one: &str, other: &str) -> bool {
        if one == other {
            return true;
        }
        let canonical = (self.canonicalizer.canonicalize(one), self.canonicalizer.canonicalize(other));
        matches!(canonical, (Ok(one), Ok(other)) if one.text == other.text)
    }

    /// Finds an answer of any length. Where it may have several lines, all that follows belongs to it; prose ends at a blank line.
    fn long(&self, reply: &str) -> Option<(String, FoundBy)> {
        let is_prose = self.canonicalizer.kind() == CanonicalKind::Text;
        let reply = if is_prose { before_next_question(reply) } else { reply };
        let Some((words, after)) = announced_answer(reply, is_prose) else {
            return self.in_box(reply);
        };
        // Such a line may be part of an answer of several lines.
        let lines = mentions(reply).iter().filter(|mention| mention.by == FoundBy::Line).count();
        if !is_prose && lines > 1 {
            return None;
        }
        let found = self.read(&words, FoundBy::Line)?;
        if is_prose {
            let further = words.split_once('\n').map_or("", |(_, further)| further);
            if TAKES_BACK.is_match(after) || CORRECTS.is_match(further) {
                return None;
            }
            for mention in mentions(after) {
                if !self.are_equal(&self.read(&mention.words, mention.by)?, &found) {
                    return None;
                }
            }
        }
        Some((found, FoundBy::Line))
    }

    /// Finds an answer of any length in the last box, if nothing behind it takes it back and no other box has another.
    fn in_box(&self, reply: &str) -> Option<(String, FoundBy)> {
        let last = last_box(reply)?;
        if TAKES_BACK.is_match(last.after) {
            return None;
        }
        let found = self.read(last.content, FoundBy::Box)?;
        for other in reply.lines().filter_map(last_box) {
            if !self.are_equal(&self.read(other.content, FoundBy::Box)?, &found) {
                return None;
            }
        }
        Some((found, FoundBy::Box))
    }

    /// Returns the answer in the words of a mention, if they are one.
    fn read(&self, words: &str, by: FoundBy) -> Option<String> {
        let kind = self.canonicalizer.kind();
        let text = &*without_marks(words, kind);
        match kind {
            CanonicalKind::Number if by == FoundBy::Whole => {
                self.canonicalizer.canonicalize(text).ok()?;
                Some(text.to_owned())
            }
            CanonicalKind::Number => number(text, self.prompt, self.canonicalizer),
            CanonicalKind::Choice => (self.choice)(text),
            CanonicalKind::Text
            | CanonicalKind::Lines
            | CanonicalKind::Json
            | CanonicalKind::Verbatim
            | CanonicalKind::Behaviour => {
                let canonical = self.canonicalizer.canonicalize(text).ok()?;
                if canonical.text.is_empty() { None } else { Some(text.to_owned()) }
            }
        }
    }
}

/// Returns what a voter wrote after its thoughts, where a server leaves these in the reply. Thoughts without an end hold no answer.
fn after_thoughts(reply: &str) -> Option<&str> {
    match reply.rfind("</think>") {
        Some(end) => Some(&reply[end + "</think>".len()..]),
        None if reply.trim_start().starts_with("<think>") => None,
        None => Some(reply),
    }
}

/// Returns the answer where the whole reply is one: all of it but the thoughts that it begins with. Thoughts without an end hold no answer.
pub(super) fn whole_answer(reply: &str) -> Option<&str> {
    let reply = reply.trim();
    if let Some(thoughts) = reply.strip_prefix("<think>") {
        return thoughts.split_once("</think>").map(|(_, answer)| answer.trim());
    }
    // Some servers leave the mark out with which thoughts begin.
    let end = reply.lines().find(|line| line.trim() == "</think>");
    let answer = end.and_then(|line| reply.split_once(line)).map_or(reply, |(_, answer)| answer);
    Some(answer.trim())
}

/// Returns true for a capital, as the letters of options are.
fn is_letter(word: &str) -> bool {
    word.len() == 1 && word.starts_with(|c: char| c.is_ascii_uppercase())
}

fn is_mark(c: char) -> bool {
    c.is_whitespace() || "*_`{}".contains(c)
}

/// Returns a text without the marks of Markdown and mathematics around it, where they cannot belong to the answer.
fn without_marks(text: &str, kind: CanonicalKind) -> Cow<'_, str> {
    match kind {
        CanonicalKind::Number | CanonicalKind::Choice => {
            let text = last_box(text).map_or(Cow::Borrowed(text), |found| Cow::Owned(found.clause()));
            let text = text.trim_matches(is_mark);
            // Several points say that the number goes on.
            let text = text.strip_suffix('.').filter(|text| !text.ends_with('.')).unwrap_or(text);
            let text = text.trim_end_matches(is_mark);
            let text = if text.ends_with('$') { text.trim_matches('$').trim() } else { text };
            Cow::Owned(text.to_owned())
        }
        CanonicalKind::Text => without_emphasis(text),
        CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim | CanonicalKind::Behaviour => {
            Cow::Borrowed(text)
        }
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

    fn found(kind: CanonicalKind, reply: &str) -> Option<String> {
        let canonicalizer = Canonicalizer::new(&kind.into());
        let letter = super::super::quantity::pattern(r"^\(?([A-E])\b");
        let choice = |text: &str| letter.captures(text).map(|found| found[1].to_owned());
        let prompt = "How many bottles and dollars does she have?";
        let asked = AskedQuestion { prompt, canonicalizer: &canonicalizer, choice };
        answer(reply, &asked).map(|(text, _)| text)
    }

    #[test]
    fn whole_answer_begins_after_thoughts() {
        for (reply, answer) in [
            ("<think>Hm.</think>\n Blue. ", Some("Blue.")),
            ("Hm.\n</think>\n\nBlue.", Some("Blue.")),
            ("The tag </think> ends thoughts.", Some("The tag </think> ends thoughts.")),
            ("<think>Hm.", None),
            ("", Some("")),
        ] {
            assert_eq!(whole_answer(reply), answer, "{reply}");
        }
    }

    /// The unit and the marks beside the number are left out.
    #[test]
    fn announced_number_is_found() {
        for reply in [
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
            assert_eq!(found(CanonicalKind::Number, reply).as_deref(), Some("48"), "{reply}");
        }
        for (reply, number) in [
            ("x = -\\boxed{5}", "-5"),
            ("Answer: $-\\boxed{5}$", "-5"),
            ("She has \\(\\boxed{48}\\) bottles, which is enough.", "48"),
            ("\\[ x = \\boxed{48} \\]", "48"),
            ("Answer: -1,080.50 dollars", "-1,080.50"),
            ("Answer: -$5", "-5"),
            ("It is \\boxed{-\\$5}", "-5"),
            ("Answer: 50%", "50"),
        ] {
            assert_eq!(found(CanonicalKind::Number, reply).as_deref(), Some(number), "{reply}");
        }
    }

    /// A number with anything else said is asked for.
    #[test]
    fn ambiguous_number_is_asked_for() {
        for reply in [
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
            assert_eq!(found(CanonicalKind::Number, reply), None, "{reply}");
        }
    }

    /// An answer that is taken back or is not the author's own is asked for.
    #[test]
    fn retracted_answer_is_asked_for() {
        for reply in [
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
            assert_eq!(found(CanonicalKind::Number, reply), None, "{reply}");
        }
        for reply in [
            "Answer: A\n\nHowever, the right one is B.",
            "It is so.\nThe wrong answer is A",
            "Answer: A\nB is the correct answer.",
            "Answer: A\nSo B it is.",
        ] {
            assert_eq!(found(CanonicalKind::Choice, reply), None, "{reply}");
        }
        for reply in [
            "So, therefore, the final answer is 48.",
            "**The correct answer is 48**",
            "Hence \\(\\boxed{48}\\).",
            "It is $\\boxed{48}$",
            "Answer: 48\n\n",
        ] {
            assert_eq!(found(CanonicalKind::Number, reply).as_deref(), Some("48"), "{reply}");
        }
    }

    /// The last words about the answer decide; if they say something else, no answer is found.
    #[test]
    fn later_words_make_an_answer_none() {
        for reply in [
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
            assert_eq!(found(CanonicalKind::Number, reply), None, "{reply}");
        }
        for reply in ["Answer: A\nB", "Answer: A\nSo it is \\boxed{B}.", "The answer is A.\nThe answer is B."]
        {
            assert_eq!(found(CanonicalKind::Choice, reply), None, "{reply}");
        }
        for reply in [
            "Answer: Paris\n\nWait, it is Lyon.",
            "Answer: Paris\n\nThe answer is Lyon.",
            "Answer: Paris\nOn second thought, Lyon.",
            "Answer: Paris\n\nHowever, it may be Lyon.",
            "First \\boxed{Paris}.\nThen \\boxed{Lyon}.",
            "\\boxed{Paris}\nIt should be Lyon.",
        ] {
            assert_eq!(found(CanonicalKind::Text, reply), None, "{reply}");
        }
    }

    #[test]
    fn later_words_may_repeat_or_check_the_answer() {
        for reply in [
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
            assert_eq!(found(CanonicalKind::Number, reply).as_deref(), Some("48"), "{reply}");
        }
        for reply in
            ["B is too small. So the answer is (A).", "Answer: (A)\n(A)", "Answer: (A)\n\nIt has 12 legs."]
        {
            assert_eq!(found(CanonicalKind::Choice, reply).as_deref(), Some("A"), "{reply}");
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
        for reply in
            ["Answer: **Paris**.", "Answer: **Paris.**", "**Answer: Paris.**", "**Answer:** `Paris`."]
        {
            assert_eq!(found(CanonicalKind::Text, reply).as_deref(), Some("Paris."), "{reply}");
        }
        assert_eq!(found(CanonicalKind::Lines, "Answer:\n```python\nx = 1\n```").as_deref(), Some("x = 1"));
    }
}
