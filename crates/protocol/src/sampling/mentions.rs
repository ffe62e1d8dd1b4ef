//! The places in a free text that say something about its answer.
//!
//! The input is what a voter wrote. The output is each mention in turn: the words that may be the answer, the rule that found them, and
//! the text behind them. Nothing here decides which mention counts, or whether its words are an answer.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::quantity::pattern;
use crate::text::strip_fence;

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
static SAYS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^[\s*_#>`-]*(?:conclusion:\s*|based\s+on\s+[^,]*,\s*)?(?:(?:and|so|thus|hence|then|therefore)[,\s]+)*(?:the\s+)?(?:(?:final|correct|right|best|chosen)\s+)?answer\s+is\s*:?\s*(.+)$",
    )
});

/// A line with which the next question begins, in a text that runs on. Words that an explanation may begin with are not among these.
static NEXT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?im)^(?:[\s*_#>]*(?:q|question|human|user)[*_\s]*:|\s*###\s*(?:instruction|question|input)\b|\s*<\|(?:im_start|user|start_header_id)\|)",
    )
});

/// The beginning of a sentence with which an author corrects itself.
pub(super) static CORRECTS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?im)(?:^|[.!?]\s)[\s*_>#-]*(?:wait|no|hm+|correction|edit|w?h?oops|sorry|my\s+apologies|i\s+apologize|actually|(?:on\s+)?second\s+thoughts?|scratch\s+that|strike\s+that|my\s+bad|let\s+me\s+re\w+|i\s+made\s+(?:a|an)\s+(?:mistake|error)|(?:that|this)(?:\s+is|['’]s)\s+(?:wrong|incorrect|not\s+right))\b",
    )
});

/// Words after an answer that may take it back.
pub(super) static TAKES_BACK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:wait|hm+|reconsider\w*|second\s+thoughts?|edit|correction|corrected|my\s+bad|w?h?oops|sorry|apolog\w+|mistak\w*|misread|miscount\w*|miscalculat\w*|errors?|wrong|incorrect|actually|(?:scratch|strike)\s+that|let\s+me\s+re\w+|re-?(?:check|calculat|count|do|read)\w*|typo|instead|rather|revis\w+|updated?|however|but|not|no|nope|oh|hold\s+on|on\s+reflection|ignore|forgot\w*|false|\w+n['’]t|must\s+be|should\s+be)\b",
    )
});

/// The beginning of a box.
const BOX: &str = "\\boxed{";

/// The end of words before a box that say nothing of its content but that it follows.
static LEADS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:^|[=:,]|\b(?:is|are|was|were|be|gets?|got|have|has|had|takes?|gives?|yields?|equals?|at|by|indeed|therefore|thus|so|hence|answer))$",
    )
});

/// The end of a clause. A point within a number does not end one.
static CLAUSE_END: LazyLock<Regex> = LazyLock::new(|| pattern(r"[,.;:?()](?:[^0-9]|$)"));

/// A box in a text.
pub(super) struct BoxedText<'a> {
    /// The text before it in its line.
    before: &'a str,
    pub(super) content: &'a str,
    /// All that follows it, its line and more.
    pub(super) after: &'a str,
}

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
pub(super) struct Mention<'a> {
    pub(super) by: FoundBy,
    /// The words that may be the answer.
    pub(super) words: String,
    /// The byte at which it begins.
    pub(super) start: usize,
    /// The text behind it.
    pub(super) after: &'a str,
}

/// Returns a text up to the question that a model makes up after it has answered. A box may hold a step.
pub(super) fn before_next_question(reply: &str) -> &str {
    let first = mentions(reply).into_iter().find(|mention| mention.by != FoundBy::Box);
    let Some(first) = first else { return reply };
    let next = NEXT.find_at(reply, first.start).map(|next| next.start());
    &reply[..next.unwrap_or(reply.len())]
}

/// Returns the places that say something about the answer, in their order. A heading with four marks is one only in the last line.
pub(super) fn mentions(reply: &str) -> Vec<Mention<'_>> {
    let mut mentions = Vec::new();
    let last = reply.trim_end().rfind('\n').map_or(0, |at| at + 1);
    let mut start = 0;
    for line in reply.split_inclusive('\n') {
        let after = &reply[start + line.len()..];
        let written = line.trim_end_matches(['\n', '\r']);
        if let Some(rest) = first_group(&ANNOUNCED, written) {
            mentions.push(if rest.trim().is_empty() {
                below(after, start)
            } else {
                Mention { by: FoundBy::Line, words: rest.to_owned(), start, after }
            });
        } else if start >= last
            && let Some(rest) = first_group(&MARKED, written)
        {
            mentions.push(Mention { by: FoundBy::Marks, words: rest.to_owned(), start, after });
        } else if let Some(boxed) = last_box(written) {
            let after = &reply[start + written.len() - boxed.after.len()..];
            mentions.push(Mention { by: FoundBy::Box, words: boxed.clause(), start, after });
        } else {
            for words in sentences(written) {
                mentions.push(Mention { by: FoundBy::Sentence, words: words.to_owned(), start, after });
            }
        }
        start += line.len();
    }
    mentions
}

/// Returns the part of a text that the first group of a pattern matches.
fn first_group<'a>(pattern: &Regex, text: &'a str) -> Option<&'a str> {
    Some(pattern.captures(text)?.get(1)?.as_str())
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
fn sentences(line: &str) -> Vec<&str> {
    let begins = SENTENCE.find_iter(line).map(|begin| begin.end());
    let mut found: Vec<&str> = begins.filter_map(|begin| first_group(&SAYS, &line[begin..])).collect();
    let last = found.pop();
    for words in &mut found {
        let all = *words;
        *words = &all[..all.find(". ").unwrap_or(all.len())];
    }
    found.extend(last);
    found
}

/// Returns what follows the last line that announces an answer, and the text behind it: the rest of that line and further lines, if these
/// belong to the answer.
pub(super) fn announced_answer(reply: &str, is_prose: bool) -> Option<(String, &str)> {
    let mut end = reply.len();
    let (rest, further) = reply.split_inclusive('\n').rev().find_map(|line| {
        let further = &reply[end..];
        end -= line.len();
        let rest = first_group(&ANNOUNCED, line.trim_end_matches(['\n', '\r']))?.trim();
        Some((rest, further))
    })?;
    if !is_prose {
        let text = if rest.is_empty() { further.to_owned() } else { format!("{rest}\n{further}") }
            .replace("\r\n", "\n");
        // The indentation of the first line belongs to the answer.
        return Some((strip_fence(text.trim_start_matches('\n').trim_end()).to_owned(), ""));
    }
    let prose = if rest.is_empty() { further.trim_start() } else { further };
    let lines = prose.split_inclusive('\n').take_while(|line| !line.trim().is_empty());
    let length: usize = lines.map(str::len).sum();
    let (own, after) = prose.split_at(length);
    Some((format!("{rest}\n{own}").replace("\r\n", "\n").trim().to_owned(), after))
}

/// Returns the last box, if its line has no other.
pub(super) fn last_box(reply: &str) -> Option<BoxedText<'_>> {
    let at = reply.rfind(BOX)?;
    let before = &reply[reply[..at].rfind('\n').map_or(0, |end| end + 1)..at];
    let rest = &reply[at + BOX.len()..];
    let mut depth = 1_i32;
    let end = rest.find(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0 || c == '\n'
    })?;
    if depth != 0 || before.contains(BOX) {
        return None;
    }
    Some(BoxedText { before, content: &rest[..end], after: &rest[end + 1..] })
}

impl BoxedText<'_> {
    /// Returns the words of the clause around the box, without the box: a sign or a unit beside it belongs to its content.
    pub(super) fn clause(&self) -> String {
        let Self { before, content, after } = self;
        let before = before.trim_end_matches(['$', '*', '_', '`', ' ', '(', '[', '\\']);
        let before = if LEADS.is_match(before) { "" } else { before };
        let after = after.lines().next().unwrap_or_default();
        let after = after.trim_start_matches(['$', '*', '_', '`']);
        let own = after.trim_start();
        let after = own.strip_prefix("\\)").or_else(|| own.strip_prefix("\\]")).unwrap_or(after);
        let end = CLAUSE_END.find(after).map_or(after.len(), |end| end.start());
        format!("{before}{content}{}", &after[..end])
    }
}
