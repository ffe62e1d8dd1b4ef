//! Untrusted text, shown to a model or to a person as data.
//!
//! Peer text enters a prompt as a JSON string. Control, bidirectional and zero-width characters and the openings of
//! chat-role tokens become `\u` escapes. These lose nothing, and no chat template mistakes them for structure.
//! Delimiters alone stop few injections, because everything that a model reads is text to it. For this reason no
//! verdict is ever read from quoted text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The longest excerpt of untrusted text in a message, in characters.
const EXCERPT_CHARS_MAX: usize = 60;

/// The longest message from another program that is passed on, in characters.
const MESSAGE_CHARS_MAX: usize = 300;

/// The tokens with which chat templates mark roles and turns, or the openings of such tokens, matched without regard to case.
///
/// Closings such as `|>` are left alone. A token without its opening is not a token, and `|>` is an operator in several
/// languages.
const ROLE_TOKENS: [&str; 22] = [
    "<|",
    "<｜",
    "<s>",
    "</s>",
    "<<sys>>",
    "<</sys>>",
    "<sop>",
    "<tool_call>",
    "[|",
    "[inst]",
    "[/inst]",
    "[system_prompt]",
    "[/system_prompt]",
    "[available_tools]",
    "[tool_results]",
    "[tool_calls]",
    "<start_of_turn>",
    "<end_of_turn>",
    "<think>",
    "</think>",
    "<bos>",
    "<eos>",
];

/// Returns `text` as a JSON string literal in which nothing can act as structure.
///
/// Reading the literal as JSON returns `text`, character for character.
pub fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    out.push('"');
    let mut copied = 0;
    // Most characters need no escape, and are copied in long pieces.
    for (at, c) in text.char_indices() {
        let is_kept = match c {
            '"' | '\\' | '\n' | '\t' => false,
            '<' | '[' => !begins_role_token(&text[at..]),
            c => !is_invisible(c),
        };
        if is_kept {
            continue;
        }
        out.push_str(&text[copied..at]);
        copied = at + c.len_utf8();
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => push_escape(&mut out, c),
        }
    }
    out.push_str(&text[copied..]);
    out.push('"');
    out
}

/// Returns true if a byte is an ASCII character that [`plain`] keeps. Most texts have no other bytes.
fn is_visible_ascii(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | b' '..=b'~')
}

/// Returns `text` for display as plain prose, with role tokens broken and invisible characters dropped.
///
/// This form is for the user's own task, which remains readable prose in the prompt. Line breaks and tabs are kept.
pub fn plain(text: &str) -> String {
    // Invisible characters go first, so that dropping one cannot join the parts of a token.
    let visible = if text.bytes().all(is_visible_ascii) {
        Cow::Borrowed(text)
    } else {
        text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_invisible(*c)).collect()
    };
    let mut out = String::with_capacity(visible.len());
    let mut copied = 0;
    for (at, opening) in visible.match_indices(['<', '[']) {
        if begins_role_token(&visible[at..]) {
            out.push_str(&visible[copied..at]);
            out.push(if opening == "<" { '‹' } else { '(' });
            copied = at + 1;
        }
    }
    out.push_str(&visible[copied..]);
    out
}

/// Returns `text` for display as code, with role tokens broken. Invisible characters and line breaks become their
/// code points, such as `⟦U+202E⟧`, because an unseen character may be the one that matters. Tabs are kept.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // A variation selector changes how the character before it looks, so a reader may take it for another one.
        if c != '\t' && (is_invisible(c) || matches!(c, '\u{FE00}'..='\u{FE0F}')) {
            let _ = write!(out, "⟦U+{:04X}⟧", u32::from(c));
        } else {
            out.push(c);
        }
    }
    plain(&out)
}

/// Returns a message that may quote untrusted text, in the form of [`plain`] and with a bounded length.
pub fn message(text: &str) -> String {
    let mut short: String = plain(text).chars().take(MESSAGE_CHARS_MAX).collect();
    if short.chars().count() == MESSAGE_CHARS_MAX {
        short.push('…');
    }
    short
}

/// Returns `text` for a terminal. Control characters, which begin every escape sequence, and bidirectional characters
/// become visible escapes. Line breaks and tabs are kept.
pub fn terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_bidi(c) => push_escape(&mut out, c),
            c => out.push(c),
        }
    }
    out
}

/// Returns the first characters of `text` on one line, for use between backticks in a message.
pub fn excerpt(text: &str) -> String {
    let words = one_line(text);
    let safe: String =
        words.chars().filter(|c| !is_invisible(*c)).map(|c| if c == '`' { '\'' } else { c }).collect();
    let mut short: String = plain(&safe).chars().take(EXCERPT_CHARS_MAX).collect();
    if safe.chars().count() > EXCERPT_CHARS_MAX {
        short.push('…');
    }
    // A code fence is the most common use of backticks, and is easier to recognise in its own characters.
    short.replace("'''", "```")
}

/// Returns a JSON text with its invisible characters beyond ASCII written as escapes. Its writer has escaped those of ASCII.
pub fn json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() || !is_invisible(c) {
            escaped.push(c);
        } else {
            push_escape(&mut escaped, c);
        }
    }
    escaped
}

/// Returns true for characters that have no shape of their own: control, bidirectional, zero-width and tag characters.
pub fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    c.is_control()
        || is_bidi(c)
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200D}' | '\u{2028}' | '\u{2029}'
            | '\u{2060}'..='\u{2065}' | '\u{206A}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
}

fn is_bidi(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

fn push_escape(out: &mut String, c: char) {
    let mut units = [0; 2];
    for unit in c.encode_utf16(&mut units) {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// Returns true if a text begins with a role token.
fn begins_role_token(text: &str) -> bool {
    ROLE_TOKENS.iter().any(|token| {
        text.as_bytes().get(..token.len()).is_some_and(|start| start.eq_ignore_ascii_case(token.as_bytes()))
    })
}

/// Returns the words of a text, with single spaces between them.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quoting_loses_nothing(text in "\\PC*|[\\x00-\\x1f\u{200b}-\u{202e}<|\\[\"\\\\a-z]*") {
            let quoted = json_string(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
        }

        #[test]
        fn no_role_token_and_no_invisible_character_survives(
            parts in prop::collection::vec(prop::sample::select(ROLE_TOKENS.to_vec()), 1..4),
            filler in "[a-z\u{202e}\u{200b}\u{1b}]{0,5}",
        ) {
            let hostile = parts.join(&filler).to_uppercase() + &parts.join(&filler);
            for shown in [json_string(&hostile), plain(&hostile)] {
                let lower = shown.to_ascii_lowercase();
                prop_assert!(ROLE_TOKENS.iter().all(|token| !lower.contains(token)), "{}", shown);
                prop_assert!(!shown.chars().any(is_invisible), "{:?}", shown);
            }
        }
    }

    #[test]
    fn invisible_character_hides_no_role_token() {
        assert!(!plain("<\u{200b}|im_end|>").contains("<|"));
        assert!(!plain("[\u{200d}INST]").to_lowercase().contains("[inst]"));
    }

    #[test]
    fn ordinary_prose_and_code_are_left_alone() {
        let text = "if a < b && c[0] > 1 { x } // naïve 漢字 🙂";
        assert_eq!(plain(text), text);
        assert_eq!(json_string(text), format!("\"{text}\""));
    }

    #[test]
    fn a_terminal_escape_is_shown_not_sent() {
        assert_eq!(terminal("a\u{1b}[31mb\nc"), "a\\u001b[31mb\nc");
    }
}
