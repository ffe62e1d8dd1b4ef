//! The words of the program, as a reader meets them: comments, messages, the README and the book.
//!
//! The input is Rust source or Markdown. The output is sentences, their lengths in words, and the turns in them that plain English does
//! not use. Code, tables and headings are not prose, and are not counted.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;
use syn::visit::Visit;
use unicode_segmentation::UnicodeSegmentation as _;

/// A sentence has at most this many words.
pub(crate) const WORDS_MAX: usize = 35;

/// Half of all sentences have at most this many words.
pub(crate) const WORDS_MEDIAN_MAX: usize = 15;

/// Turns that read like a translation, each with a cure.
const TURNS: [(&str, &str); 11] = [
    (r"(?i)\bwhoever\b", "name the person or the part"),
    (r"(?i)\b(nobody|somebody|anybody)\b", "name the person, or write `no one`, `someone`, `anyone`"),
    (r"(?:^|[.:;,] |\band |\bthat )[Ww]hat (?:it|they|he|is|was|has|have|cannot|can)\b", "begin with a noun"),
    (r"(?i)\b(?:is|are|were|was) none\b", "write `there is no`, or `is not a`"),
    (r"(?i)\banother than\b", "write `other than`"),
    (r"(?i)\b(?:held|holds?|holding) against\b", "write `compared with`"),
    (r"(?i)\b(?:is|are|was|were|be|been|being) told\b", "write `printed`, `reported` or `receives`"),
    (r"(?i)\bso far\b", "write `until now`, or leave it out"),
    (r"(?i)\b(?:goes|go|gone|going|went) on with\b", "write `continues`"),
    (r"(?i)\b(?:stands?|stood|standing)\b", "write `is`, `applies` or `remains`"),
    (r"(?i)\bin vain\b", "write `without effect`"),
];

/// Phrases of plain English that have words of [`TURNS`] in them.
const ALLOWED: [&str; 5] = ["so far as", "So far as", "stands for", "stand for", "standard"];

/// A paragraph or a list item, with the place where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Paragraph {
    pub(crate) place: String,
    pub(crate) text: String,
}

impl Paragraph {
    /// Returns the sentences of the paragraph, each with its number of words.
    pub(crate) fn sentences(&self) -> Vec<(&str, usize)> {
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        let sentences = self.text.unicode_sentences().map(str::trim);
        let counted =
            sentences.map(|sentence| (sentence, sentence.split_whitespace().filter(is_word).count()));
        counted.filter(|(_, words)| *words > 0).collect()
    }

    /// Returns the turns in the paragraph that plain English does not use, as lines for a person.
    fn turns(&self, turns: &[(Regex, &str)]) -> Vec<String> {
        let text = ALLOWED.iter().fold(self.text.clone(), |text, phrase| text.replace(phrase, "…"));
        let sentences = text.unicode_sentences();
        let found = sentences.flat_map(|sentence| {
            let of_sentence =
                turns.iter().filter_map(move |(turn, cure)| Some((turn.find(sentence)?.as_str(), cure)));
            of_sentence
                .map(|(turn, cure)| format!("{}: “{turn}”: {cure}: {}", self.place, sentence.trim()))
                .collect::<Vec<_>>()
        });
        found.collect()
    }
}

/// Returns every turn that plain English does not use, and every sentence that is too long, as lines for a person.
pub(crate) fn faults(paragraphs: &[Paragraph]) -> Vec<String> {
    let turns: Vec<(Regex, &str)> =
        TURNS.iter().map(|(turn, cure)| (Regex::new(turn).unwrap(), *cure)).collect();
    let long = |paragraph: &Paragraph| {
        let long = paragraph.sentences().into_iter().filter(|(_, words)| *words > WORDS_MAX);
        long.map(|(sentence, words)| format!("{}: {words} words: {sentence}", paragraph.place))
            .collect::<Vec<_>>()
    };
    paragraphs.iter().flat_map(|paragraph| [paragraph.turns(&turns), long(paragraph)].concat()).collect()
}

/// Returns the numbers of words of all sentences, the shortest first.
pub(crate) fn lengths(paragraphs: &[Paragraph]) -> Vec<usize> {
    let mut lengths: Vec<usize> =
        paragraphs.iter().flat_map(Paragraph::sentences).map(|(_, words)| words).collect();
    lengths.sort_unstable();
    lengths
}

/// Returns the paragraphs and list items of a Markdown text. `line` is the number of its first line.
pub(crate) fn markdown(file: &str, text: &str, line: usize) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let mut open = String::new();
    let (mut begin, mut hidden) = (None, 0_usize);
    let lines_before = |at: usize| text[..at].matches('\n').count();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        #[expect(clippy::wildcard_enum_match_arm, reason = "most events of Markdown are not prose")]
        let is_end = match event {
            Event::Start(Tag::CodeBlock(_) | Tag::Table(_) | Tag::Heading { .. }) => {
                hidden += 1;
                true
            }
            Event::End(TagEnd::CodeBlock | TagEnd::Table | TagEnd::Heading(_)) => {
                hidden -= 1;
                false
            }
            Event::Start(Tag::Paragraph | Tag::Item | Tag::List(_))
            | Event::End(TagEnd::Paragraph | TagEnd::Item) => true,
            Event::Text(words) if hidden == 0 => {
                begin.get_or_insert(range.start);
                open.push_str(&words);
                false
            }
            // A name is one word, whatever characters are in it.
            Event::Code(_) if hidden == 0 => {
                begin.get_or_insert(range.start);
                open.push_str("Name");
                false
            }
            Event::SoftBreak | Event::HardBreak if hidden == 0 => {
                open.push(' ');
                false
            }
            _ => false,
        };
        if is_end && let Some(at) = begin.take() {
            let place = format!("{file}:{}", line + lines_before(at));
            found.push(Paragraph { place, text: std::mem::take(&mut open) });
        }
    }
    found
}

/// Returns the prose of help texts: the descriptions of commands and flags, without names, values and examples.
pub(crate) fn help(name: &str, text: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        let indent = line.len() - line.trim_start().len();
        let words = line.trim();
        // Flags, arguments, commands with their descriptions in a table, headings and examples.
        let is_other = words.starts_with(['-', '<', '[', '$']) || words.ends_with(':') || indent == 2;
        if words.is_empty() || is_other || words.starts_with("Usage") {
            is_open = false;
        } else if is_open && let Some(last) = found.last_mut() {
            last.text.push(' ');
            last.text.push_str(words);
        } else {
            found.push(Paragraph { place: format!("{name}:{number}"), text: words.to_owned() });
            is_open = true;
        }
    }
    found
}

/// Returns the prose of the comments in a source file.
pub(crate) fn comments(file: &str, text: &str) -> Vec<Paragraph> {
    let mut found = Vec::new();
    let mut open: Option<(usize, &str, String)> = None;
    let close = |open: &mut Option<(usize, &str, String)>, found: &mut Vec<Paragraph>| {
        if let Some((line, _, text)) = open.take() {
            found.extend(markdown(file, &text, line));
        }
    };
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let mark = ["//!", "///", "//"].into_iter().find(|mark| line.starts_with(mark));
        if open.as_ref().map(|(_, mark, _)| *mark) != mark {
            close(&mut open, &mut found);
        }
        let Some(mark) = mark else { continue };
        let (_, _, text) = open.get_or_insert_with(|| (number, mark, String::new()));
        let comment = &line[mark.len()..];
        text.push_str(comment.strip_prefix(' ').unwrap_or(comment));
        text.push('\n');
    }
    close(&mut open, &mut found);
    found
}

/// Returns the texts in a source file that are not in its tests.
pub(crate) fn literals(file: &str, text: &str) -> Vec<Paragraph> {
    struct Texts(Vec<String>);
    impl Visit<'_> for Texts {
        fn visit_item_mod(&mut self, module: &syn::ItemMod) {
            let is_test = |attribute: &syn::Attribute| attribute.path().is_ident("cfg");
            if !module.attrs.iter().any(is_test) {
                syn::visit::visit_item_mod(self, module);
            }
        }

        fn visit_attribute(&mut self, attribute: &syn::Attribute) {
            // Comments are attributes too, and are read elsewhere.
            if !attribute.path().is_ident("doc") {
                self.tokens(
                    attribute.meta.require_list().map(|list| list.tokens.clone()).unwrap_or_default(),
                );
            }
        }

        fn visit_macro(&mut self, call: &syn::Macro) {
            self.tokens(call.tokens.clone());
        }

        fn visit_lit_str(&mut self, text: &syn::LitStr) {
            self.0.push(text.value());
        }
    }
    impl Texts {
        fn tokens(&mut self, tokens: proc_macro2::TokenStream) {
            for token in tokens {
                match token {
                    proc_macro2::TokenTree::Group(group) => self.tokens(group.stream()),
                    proc_macro2::TokenTree::Literal(literal) => {
                        if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                            self.0.push(text.value());
                        }
                    }
                    proc_macro2::TokenTree::Ident(_) | proc_macro2::TokenTree::Punct(_) => {}
                }
            }
        }
    }
    let mut texts = Texts(Vec::new());
    texts.visit_file(&syn::parse_file(text).unwrap());
    texts.0.into_iter().map(|text| Paragraph { place: file.to_owned(), text }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_found_and_code_is_not() {
        let source = "//! One thing. Two `x.y()` things,\n//! with `a`.\n//!\n//! ```\n//! nobody\n//! ```\n//! - An item.\n\nfn f() {\n    \
                      // Three.\n    say(\"It is told.\");\n}\n#[cfg(test)]\nmod tests { const X: &str = \"whoever\"; }\n";
        let found = comments("f", source);
        let places: Vec<(&str, &str)> = found.iter().map(|p| (p.place.as_str(), p.text.as_str())).collect();
        let wanted =
            [("f:1", "One thing. Two Name things, with Name."), ("f:7", "An item."), ("f:10", "Three.")];
        assert_eq!(places, wanted);
        assert_eq!(lengths(&found), [1, 2, 2, 5]);
        assert_eq!(
            faults(&literals("f", source)),
            ["f: “is told”: write `printed`, `reported` or `receives`: It is told."]
        );
    }

    #[test]
    fn turns_and_lengths_are_faults() {
        let long = "word ".repeat(WORDS_MAX + 1) + ".";
        let paragraph = |text: &str| vec![Paragraph { place: "f:1".to_owned(), text: text.to_owned() }];
        for text in ["Whoever asks.", "What it says.", "It knows: what is said.", "It stands there.", &long] {
            assert_eq!(faults(&paragraph(text)).len(), 1, "{text}");
        }
        for text in ["It stands for a name.", "It says what it needs.", "So far as it is known."] {
            assert!(faults(&paragraph(text)).is_empty(), "{text}");
        }
    }
}
