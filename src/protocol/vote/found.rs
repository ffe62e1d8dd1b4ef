//! The answer at the end of a free text, found by rule.
//!
//! The input is what a voter wrote, and the kind of answer. The output is the text of its answer, or `None` if the rule finds none; then
//! the voter is asked for it in a form. The answer is the last thing that the text says about it. A text that says two things, takes one
//! back or goes on to calculate has none. Nothing here decides whether the answer is valid.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::quantity::{last_number, number, pattern};
use crate::text::{Canonical, CanonicalKind, Canonicalizer};

/// A line that announces the answer, with the marks of Markdown around the word.
static ANNOUNCED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^[\s*_#>`{-]*(?:the\s+)?(?:final\s+|correct\s+)?answer(?:\s+is)?\s*[*_`]*\s*[:=]\s*[*_`]*\s*(.*)$",
    )
});

/// A line that holds the answer after four marks, as the solutions of GSM8K end.
static MARKED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*####\s*([^#].*)$"));

/// The beginning of a sentence in a line.
static SENTENCE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^|[.!?:;]["')*\]]*\s+"#));

/// A sentence that says the answer and nothing else.
static SAID: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^[\s*_#>`-]*(?:conclusion:\s*|based\s+on\s+[^,]*,\s*)?(?:(?:and|so|thus|hence|then|therefore)[,\s]+)*(?:the\s+)?(?:(?:final|correct|right|best|chosen)\s+)?answer\s+is\s*:?\s*(.+)$",
    )
});

/// A line with which the next question begins, in a text that runs on.
static NEXT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?im)^(?:[\s*_#>]*(?:q|question|problem|exercise|human|user|input|instruction)[*_\s]*:|\s*###\s*(?:instruction|question|input)\b|\s*<\|(?:im_start|user|start_header_id)\|)",
    )
});

/// Words with which an author takes back what it wrote.
const RETRACTS: &str = r"wait|hm+|reconsider\w*|second\s+thoughts?|edit|correction|corrected|my\s+bad|w?h?oops|sorry|apolog\w+|mis\w*|errors?|wrong|incorrect|actually|(?:scratch|strike)\s+that|let\s+me\s+re\w+|re-?(?:check|calculat|count|do|read)\w*|typo|instead|rather|revis\w+|updated?";

static RETRACTED: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"(?i)\b(?:{RETRACTS})\b")));

/// Words after an answer that may take it back.
static TAKES_BACK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(r"(?i)\b(?:{RETRACTS}|however|but|not|no|\w+n['’]t|must\s+be|should\s+be)\b"))
});

/// The beginning of a box.
const BOX: &str = "\\boxed{";

/// The rule by which an answer was found in a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// It follows a line such as `Answer: 48`.
    Line,
    /// It follows `####`.
    Marks,
    /// It is in a `\boxed{}`.
    Box,
    /// A sentence says that the answer is this.
    Sentence,
    /// It is the whole text.
    Whole,
    /// No rule found it, so the voter was asked for it in a form.
    Form,
    /// A program printed it.
    Program,
}

/// A place in a text that says something about the answer.
struct Mention<'a> {
    by: FoundBy,
    /// The words that may be the answer.
    words: String,
    /// The byte at which it begins.
    start: usize,
    /// The text behind it.
    after: &'a str,
}

/// The question that a voter was asked, as far as it decides how an answer is read.
pub(super) struct Asked<'a, Choice> {
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
    asked: &Asked<'_, Choice>,
) -> Option<(String, FoundBy)> {
    let said = after_thoughts(said)?;
    match asked.canonicalizer.kind() {
        CanonicalKind::Number | CanonicalKind::Choice => asked.short(said),
        CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => {
            asked.long(said)
        }
    }
}

impl<Choice: Fn(&str) -> Option<String>> Asked<'_, Choice> {
    /// Finds a number or a choice.
    fn short(&self, said: &str) -> Option<(String, FoundBy)> {
        let said = before_next_question(said);
        let mentions = mentions(said);
        let Some(last) = mentions.last() else {
            let whole = said.trim();
            let is_line = whole.lines().count() == 1;
            return self.read(whole, FoundBy::Whole).filter(|_| is_line).map(|found| (found, FoundBy::Whole));
        };
        let found = self.read(&last.words, last.by)?;
        let is_other = |mention: &Mention<'_>| {
            self.read(&mention.words, mention.by).is_some_and(|other| !self.are_equal(&other, &found))
        };
        // A line of its own is what was asked for, so only another such line speaks against it.
        let others = mentions.iter().filter(|other| last.by != FoundBy::Line || other.by == FoundBy::Line);
        let is_corrected = |other: &Mention<'_>| {
            last.by == FoundBy::Line && RETRACTED.is_match(&said[other.start..last.start])
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
                (self.choice)(without_marks(line, CanonicalKind::Choice)).is_some_and(|other| other != found)
            };
            return !after.lines().any(is_other);
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
            return Some((self.read(boxed(said)?, FoundBy::Box)?, FoundBy::Box));
        };
        let found = self.read(&words, FoundBy::Line)?;
        let is_other = |mention: &Mention<'_>| {
            self.read(&mention.words, mention.by).is_none_or(|other| !self.are_equal(&other, &found))
        };
        let is_disputed = is_prose && (RETRACTED.is_match(after) || mentions(after).iter().any(is_other));
        (!is_disputed).then_some((found, FoundBy::Line))
    }

    /// Returns the answer in the words of a mention, if they are one.
    fn read(&self, words: &str, by: FoundBy) -> Option<String> {
        let kind = self.canonicalizer.kind();
        let text = without_marks(words, kind);
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

/// Returns a text up to the question that a model makes up after it has answered.
fn before_next_question(said: &str) -> &str {
    let Some(first) = mentions(said).into_iter().next() else { return said };
    let next = NEXT.find_at(said, first.start).map(|next| next.start());
    &said[..next.unwrap_or(said.len())]
}

/// Returns the places that say something about the answer, in their order. A heading with four marks is one only in the last line.
fn mentions(said: &str) -> Vec<Mention<'_>> {
    let mut mentions = Vec::new();
    let last = said.trim_end().rfind('\n').map_or(0, |at| at + 1);
    let mut start = 0;
    for line in said.split_inclusive('\n') {
        let after = &said[start + line.len()..];
        let written = line.trim_end_matches(['\n', '\r']);
        let mention = |by, words: &str| Mention { by, words: words.to_owned(), start, after };
        let rest = |pattern: &Regex| Some(pattern.captures(written)?.get(1)?.as_str());
        if let Some(rest) = rest(&ANNOUNCED) {
            mentions.push(if rest.trim().is_empty() {
                below(after, start)
            } else {
                mention(FoundBy::Line, rest)
            });
        } else if let Some(rest) = rest(&MARKED).filter(|_| start >= last) {
            mentions.push(mention(FoundBy::Marks, rest));
        } else if let Some(content) = boxed(written) {
            let behind = written.rsplit_once(BOX).map_or(written.len(), |(before, _)| before.len());
            let behind = start + behind + BOX.len() + content.len();
            mentions.push(Mention { after: &said[behind..], ..mention(FoundBy::Box, content) });
        } else {
            mentions.extend(sentences(written).map(|words| mention(FoundBy::Sentence, words)));
        }
        start += line.len();
    }
    mentions
}

/// Returns the mention of a line that announces an answer below it: the only line that follows, if there is one.
fn below(after: &str, start: usize) -> Mention<'_> {
    let mut whole = after.lines().filter(|line| !line.trim().is_empty());
    let words = match (whole.next(), whole.next()) {
        (Some(only), None) => only.to_owned(),
        (None | Some(_), _) => String::new(),
    };
    Mention { by: FoundBy::Line, words, start, after: "" }
}

/// Returns the words of each sentence in a line that says the answer. Only the last one has all that follows it.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let words = |begins: regex::Match<'_>| Some(SAID.captures(&line[begins.end()..])?.get(1)?.as_str());
    let mut said: Vec<&str> = SENTENCE.find_iter(line).filter_map(words).collect();
    let last = said.pop();
    let first_sentence = |words: &str| words.find(". ").unwrap_or(words.len());
    said.into_iter().map(move |words| &words[..first_sentence(words)]).chain(last)
}

/// Returns what follows the last line that announces an answer, and the text behind it: the rest of that line and further lines, if these
/// belong to the answer.
fn announced(said: &str, is_prose: bool) -> Option<(String, &str)> {
    let mut end = said.len();
    let (rest, further) = said.split_inclusive('\n').rev().find_map(|line| {
        let further = &said[end..];
        end -= line.len();
        let rest = ANNOUNCED.captures(line.trim_end_matches(['\n', '\r']))?.get(1)?.as_str().trim();
        Some((rest, further))
    })?;
    if !is_prose {
        let text = if rest.is_empty() { further.to_owned() } else { format!("{rest}\n{further}") }
            .replace("\r\n", "\n");
        // The indentation of the first line belongs to the answer.
        return Some((unfenced(text.trim_start_matches('\n').trim_end()).to_owned(), ""));
    }
    let prose = if rest.is_empty() { further.trim_start() } else { further };
    let is_blank = |line: &&str| line.trim().is_empty();
    let length: usize = prose.split_inclusive('\n').take_while(|line| !is_blank(line)).map(str::len).sum();
    let (own, after) = prose.split_at(length);
    Some((format!("{rest}\n{own}").replace("\r\n", "\n").trim().to_owned(), after))
}

/// Returns a text without the one fence around it.
fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    let inside = inside.and_then(|text| text.split_once('\n')).map(|(_, code)| code.trim_end());
    inside.filter(|code| !code.contains("```")).unwrap_or(text)
}

/// Returns the content of the last box, if its line has no other.
fn boxed(said: &str) -> Option<&str> {
    let line = said.lines().rfind(|line| line.contains(BOX))?;
    let (before, rest) = line.rsplit_once(BOX)?;
    let mut depth = 1_i32;
    let end = rest.find(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    })?;
    (!before.contains(BOX)).then(|| &rest[..end])
}

/// Returns the content of the last box, if nothing after it takes it back or goes on to calculate.
fn boxed_at_the_end(said: &str) -> Option<&str> {
    let found = boxed(said)?;
    let (_, from_box) = said.rsplit_once(BOX)?;
    let after = &from_box[found.len()..];
    (!TAKES_BACK.is_match(after) && !after.contains(|c: char| c.is_ascii_digit())).then_some(found)
}

/// Returns a text without the marks of Markdown and mathematics around it, where they cannot belong to the answer.
fn without_marks(text: &str, kind: CanonicalKind) -> &str {
    let is_in = |marks: &'static str| move |c: char| c.is_whitespace() || marks.contains(c);
    match kind {
        CanonicalKind::Number | CanonicalKind::Choice => {
            let is_mark = is_in("*_`{}");
            let text = boxed_at_the_end(text).unwrap_or(text).trim_matches(is_mark);
            // Several points say that the number goes on.
            let text = text.strip_suffix('.').filter(|text| !text.ends_with('.')).unwrap_or(text);
            let text = text.trim_end_matches(is_mark);
            let text = if text.ends_with('$') { text.trim_matches('$').trim() } else { text };
            boxed_at_the_end(text).unwrap_or(text)
        }
        CanonicalKind::Text => text.trim_matches(is_in("*_`")),
        CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: CanonicalKind, said: &str) -> Option<String> {
        let canonicalizer = Canonicalizer::new(&kind.into());
        let letter = pattern(r"^\(?[A-E]\b");
        let choice = |text: &str| letter.is_match(text).then(|| text.to_owned());
        let prompt = "How many bottles, more apples, full-time workers and points does she have?";
        let asked = Asked { prompt, canonicalizer: &canonicalizer, choice };
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
        ] {
            assert_eq!(found(CanonicalKind::Number, said), None, "{said}");
        }
    }

    /// A word that changes the number is asked about.
    #[test]
    fn unit_belongs_to_its_number() {
        for unit in [
            " bottles",
            "%",
            " %",
            "kg",
            " kg",
            "cm²",
            " m²",
            "°C",
            " miles per hour",
            " km/h",
            " dollars a day",
            " seconds",
            " times",
            " more apples",
            " of them",
            " in total",
            " full-time workers",
            " points",
        ] {
            let said = format!("Answer: 48{unit}");
            assert_eq!(found(CanonicalKind::Number, &said).as_deref(), Some("48"), "{said}");
        }
        for rest in [
            "π",
            " π",
            " pi",
            "²",
            "³",
            " squared",
            " dozens",
            " millions",
            " Millionen",
            " lakh",
            "bn",
            "m",
            " m",
            "k",
            "x",
            " x",
            "i",
            " quarters",
            " fifths",
            " is incorrect",
            " is wrong",
            " was not",
            " plus two",
            " divided by seven",
            "-dimensional",
            " thousand-fold",
            " πr²",
            " point five",
            "!",
        ] {
            let said = format!("Answer: 48{rest}");
            assert_eq!(found(CanonicalKind::Number, &said), None, "{said}");
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
        ] {
            assert_eq!(found(CanonicalKind::Number, said), None, "{said}");
        }
        for said in ["Answer: A\n\nHowever, the right one is B.", "It is so.\nThe wrong answer is A"] {
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

    /// The last words about the answer decide; if they are others than the answer, there is none.
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
        ] {
            assert_eq!(found(CanonicalKind::Number, said), None, "{said}");
        }
        for said in ["Answer: A\nB", "Answer: A\nSo it is \\boxed{B}.", "The answer is A.\nThe answer is B."]
        {
            assert_eq!(found(CanonicalKind::Choice, said), None, "{said}");
        }
        for said in ["Answer: Paris\n\nWait, it is Lyon.", "Answer: Paris\n\nThe answer is Lyon."] {
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
            assert_eq!(found(CanonicalKind::Choice, said).as_deref(), Some("(A)"), "{said}");
        }
    }

    /// A word that is no unit of the question may change the number, in any language.
    #[test]
    fn unknown_word_beside_number_is_asked_about() {
        for word in [
            "juta",
            "milyon",
            "tusen",
            "tuhat",
            "tys.",
            "tisíc",
            "ezer",
            "triệu",
            "مليون",
            "quadrillion",
            "gross",
            "trn",
            "miljoner",
            "milionów",
            "万",
            "億",
            "लाख",
            "colder",
            "decrease",
            "points down",
            "dollar deficit",
            "years younger",
            "BCE",
            "at most",
            "at least",
            "approximately",
            "fewer apples",
            "Schock",
        ] {
            let said = format!("Answer: 48 {word}");
            assert_eq!(found(CanonicalKind::Number, &said), None, "{said}");
        }
        for word in
            ["apples", "apple", "boxes of bottles", "dollars per week", "cubic inches", "bottles left"]
        {
            let said = format!("Answer: 48 {word}");
            let expected = if word.starts_with("box") { None } else { Some("48") };
            assert_eq!(found(CanonicalKind::Number, &said).as_deref(), expected, "{said}");
        }
    }

    #[test]
    fn text_spans_lines_but_choice_does_not() {
        assert_eq!(
            found(CanonicalKind::Lines, "so\nAnswer:\na = 1\nb = 2\n").as_deref(),
            Some("a = 1\nb = 2")
        );
        assert_eq!(found(CanonicalKind::Text, "so\nAnswer: to be\nor not").as_deref(), Some("to be\nor not"));
        assert_eq!(found(CanonicalKind::Choice, "Answer: B) Rome\n").as_deref(), Some("B) Rome"));
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
        assert_eq!(found(CanonicalKind::Lines, "Answer:\n```python\nx = 1\n```").as_deref(), Some("x = 1"));
    }
}
