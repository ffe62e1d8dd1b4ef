//! The tokens of a task: words, numbers, quoted texts and signs.
//!
//! The input is a task, and the output are its tokens in order. A quoted text is one token, because its words are not the task's own.
//! Nothing is known here of what a word means.

use std::ops::Range;

/// The longest quoted text in bytes. A quotation mark without its partner within that many is a sign like any other.
const QUOTED_BYTES_MAX: usize = 2000;

/// Pairs of quotation marks. Two straight ones may not span lines.
const QUOTES: [(char, &[char]); 7] = [
    ('"', &['"']),
    ('“', &['”']),
    ('„', &['“', '”']),
    ('«', &['»']),
    ('‘', &['’']),
    ('‚', &['‘']),
    ('`', &['`']),
];

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TokenKind {
    Word,
    Number(usize),
    /// A text in quotation marks.
    Quoted,
    /// A text between two lines of three backticks.
    Block,
    Sign(char),
    LineEnd,
}

/// A token with its place in the task.
#[derive(Clone, Debug)]
pub(super) struct TaskToken {
    pub(super) kind: TokenKind,
    /// A word in small letters with a straight apostrophe; of a quoted text the words between the marks; else nothing.
    pub(super) text: String,
    /// The bytes of the token with its marks.
    pub(super) span: Range<usize>,
}

/// Returns the tokens of a task.
pub(super) fn split_into_tokens(task: &str) -> Vec<TaskToken> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = task[at..].chars().next() {
        let rest = &task[at..];
        let (kind, text, length) = if first == '\n' {
            (TokenKind::LineEnd, String::new(), 1)
        } else if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if let Some(length) = block_length(rest) {
            (TokenKind::Block, String::new(), length)
        } else if let Some((text, length)) = quoted(task, at) {
            (TokenKind::Quoted, text.to_owned(), length)
        } else if first.is_alphanumeric() {
            let length = word_length(rest);
            let word = &rest[..length];
            let kind = word.parse().map_or(TokenKind::Word, TokenKind::Number);
            (kind, word.to_lowercase().replace('’', "'"), length)
        } else {
            (TokenKind::Sign(first), String::new(), first.len_utf8())
        };
        found.push(TaskToken { kind, text, span: at..at + length });
        at += length;
    }
    found
}

/// Returns the length of a block between lines of backticks at the beginning of a text.
fn block_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("```")?;
    Some(inner.find("```").map_or(text.len(), |end| end + 6))
}

/// Returns the text between the quotation marks that begin at a place, and its length with them.
fn quoted(task: &str, at: usize) -> Option<(&str, usize)> {
    let rest = &task[at..];
    let first = rest.chars().next()?;
    let inner = &rest[first.len_utf8()..];
    let length = if first == '\'' { single_quoted(task, at)? } else { closed_length(inner, first)? };
    let text = &inner[..length];
    let closing = inner[length..].chars().next()?;
    let is_one_line = !matches!(first, '"' | '\'' | '`') || !text.contains('\n');
    let is_text = is_one_line && !text.is_empty() && length <= QUOTED_BYTES_MAX;
    is_text.then_some((text, first.len_utf8() + length + closing.len_utf8()))
}

fn closed_length(inner: &str, first: char) -> Option<usize> {
    let (_, closing) = QUOTES.iter().find(|(opening, _)| *opening == first)?;
    inner.find(*closing)
}

/// Returns the length of a text in single quotation marks. An apostrophe inside a word neither opens nor closes one.
fn single_quoted(task: &str, at: usize) -> Option<usize> {
    if task[..at].chars().next_back().is_some_and(char::is_alphanumeric) {
        return None;
    }
    let inner = &task[at + 1..];
    inner.match_indices('\'').map(|(end, _)| end).find(|end| {
        let is_inside = inner[end + 1..].chars().next().is_some_and(char::is_alphanumeric);
        !is_inside && !inner[..*end].ends_with(char::is_whitespace)
    })
}

/// Returns the length of the word at the beginning of a text. An apostrophe between letters belongs to it, and so do the points and
/// commas inside of a number, and the points of `e.g`.
fn word_length(text: &str) -> usize {
    let mut length = 0;
    let mut signs = text.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        let next = signs.peek().map(|(_, next)| *next);
        let is_inner = match sign {
            '\'' | '’' => next.is_some_and(char::is_alphabetic),
            '.' if is_one_letter(&text[..at]) => next.is_some_and(char::is_alphabetic),
            '.' | ',' => {
                let is_number = text[..at].ends_with(|c: char| c.is_ascii_digit());
                is_number && next.is_some_and(|next| next.is_ascii_digit())
            }
            _ => false,
        };
        if !sign.is_alphanumeric() && !is_inner {
            break;
        }
        length = at + sign.len_utf8();
    }
    length
}

/// Returns true if a text ends with one letter, behind nothing or a point.
fn is_one_letter(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or_default();
    last.chars().count() == 1 && last.chars().all(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(task: &str) -> Vec<String> {
        let name = |token: TaskToken| match token.kind {
            TokenKind::Word => token.text,
            TokenKind::Number(number) => number.to_string(),
            TokenKind::Quoted => format!("<{}>", token.text),
            TokenKind::Block => "block".to_owned(),
            TokenKind::Sign(sign) => sign.to_string(),
            TokenKind::LineEnd => "/".to_owned(),
        };
        split_into_tokens(task).into_iter().map(name).collect()
    }

    #[test]
    fn words_numbers_and_quotes() {
        assert_eq!(kinds("Don’t use 'a b' twice.\n"), ["don't", "use", "<a b>", "twice", ".", "/"]);
        assert_eq!(kinds("300+ words, 1,200.5 of it"), ["300", "+", "words", ",", "1,200.5", "of", "it"]);
        assert_eq!(kinds("the boys' \"x\ny\""), ["the", "boys", "'", "\"", "x", "/", "y", "\""]);
        assert_eq!(kinds("„so“ ‘it’ ```\nlet x;\n``` end"), ["<so>", "<it>", "block", "end"]);
    }
}
