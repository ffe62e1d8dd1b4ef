//! The meaning of words for a demand: the classes of the grammar, and how the table of a language gives them.
//!
//! The input is tokens and a [`PhraseTable`], which lists phrases by their [`Sense`]. The output is items: tokens, or several of them where
//! a phrase is longer, with a sense. The longest phrase wins. Nothing is known here of the demands that they make together.

use std::collections::BTreeMap;
use std::ops::Range;

use super::token::{TaskToken, TokenKind};

/// The meaning of a word or phrase for a demand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sense {
    /// Any other word.
    Other,
    Quoted,
    Block,
    LineEnd,
    Sign(char),
    /// A number, in figures or words.
    Number(usize),
    /// A number of times in one word: `once`, `twice`.
    Often(usize),
    Times,
    AtLeast,
    AtMost,
    Above,
    Below,
    Exactly,
    Between,
    /// A number is not meant exactly.
    About,
    /// `or more`, behind a number.
    OrMore,
    /// `or fewer`, behind a number.
    OrLess,
    Unit(Unit),
    /// A word between a number and its unit, such as `short`.
    Adjective,
    /// `do not`, `without`, `no`.
    Not,
    /// Verbs by which a text has something: `use`, `include`, `contain`.
    Use,
    /// `using`, which may also be before a bound.
    Using,
    /// Verbs by which something is in a text: `appear`, `occur`.
    Appear,
    /// `the word`: a word of the answer follows.
    TheWord,
    /// `the words`, `keywords`: words of the answer follow.
    TheWords,
    /// `make sure`.
    Sure,
    /// `must`, `should`.
    Must,
    Be,
    /// First words of an order.
    Order,
    /// Verbs of an order to work on a text that the task holds: `translate`. What follows is that text.
    Rework,
    /// Verbs of an order to answer, whose object is the answer itself.
    ReplyVerb,
    /// `say`, which orders an answer, and has words in it.
    Say,
    /// Verbs and participles by which someone else says something: `replies`, `written`.
    Saying,
    /// Words to the reader before an order: `can you`, `you must`.
    CanYou,
    /// Words around an order that say nothing.
    Polite,
    /// A further demand follows: `then`, `followed by`.
    Then,
    /// The answer itself, by a word that may also order it: `answer`.
    Reply,
    /// The answer itself, by a word that orders nothing: `response`.
    ReplyNoun,
    /// A kind of text, such as `essay`, which may be the answer.
    Piece,
    It,
    There,
    Nothing,
    /// `entire`, `whole`.
    Whole,
    /// `your`, `the`.
    Your,
    Any,
    All,
    Only,
    In,
    With,
    Of,
    For,
    And,
    Or,
    To,
    Around,
    /// `each`, `per`: what follows is about parts of the answer.
    Each,
    /// A word that begins a clause about the thing before it: `that`, `who`, `called`.
    Relative,
    /// A word that begins any other clause: `why`, `how`.
    Clause,
    /// `how to`.
    HowTo,
    /// A part of the answer or of another text: `title`, `section`.
    Part,
    /// Words of programs. A task that has one is about code, whose output may be meant in place of the answer.
    Program,
    /// Words of things with a form of their own: `password`, `file`.
    Field,
    /// `the first`, `these`: a text that is there already.
    Pointing,
    /// `other`.
    OtherOne,
    /// `from`, `missing`, behind a unit: it is counted elsewhere.
    Away,
    /// Other small words: `on`, `their`.
    Small,
    /// `such as`, `for example`: what follows shows a form.
    Like,
    /// `requirements`: demands follow behind a colon.
    Rules,
    Wrap,
    QuoteMarks,
    Begin,
    End,
    Comma,
    /// `are allowed`, behind what is or is not.
    Allowed,
    Markdown,
    Json,
    LowerLetters,
    UpperLetters,
    Phrase,
    OnlyTheLetter,
    JsonList,
    /// A language by its code of ISO 639-3.
    LanguageName(&'static str),
    /// `the language`, behind the name of one.
    LanguageWord,
}

impl Sense {
    /// Returns true for the answer itself.
    pub(super) fn is_reply(self) -> bool {
        matches!(self, Self::Reply | Self::ReplyNoun)
    }

    /// Returns true for the answer itself, and for what may stand for it.
    pub(super) fn is_answer(self) -> bool {
        self.is_reply() || matches!(self, Self::Piece | Self::It)
    }

    /// Returns true for the first word of an order that makes a text.
    pub(super) fn orders(self) -> bool {
        matches!(self, Self::Order | Self::Rework | Self::ReplyVerb | Self::Say)
    }

    /// Returns true for words that may be in a list of keywords without quotation marks.
    pub(super) fn may_be_listed(self) -> bool {
        matches!(
            self,
            Self::Other
                | Self::Adjective
                | Self::Small
                | Self::Piece
                | Self::Order
                | Self::Rework
                | Self::Field
                | Self::ReplyVerb
                | Self::Part
                | Self::Use
                | Self::Saying
        )
    }

    pub(super) fn begins_clause(self) -> bool {
        matches!(self, Self::Clause | Self::Relative | Self::HowTo)
    }
}

/// The things that a demand may count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unit {
    Words,
    Sentences,
    Characters,
    Lines,
    Paragraphs,
    Bullets,
}

/// The words of a language: phrases in small letters, by their sense. Several phrases of one sense are separated by `|`.
pub(super) type PhraseTable = [(Sense, &'static str)];

/// One or several tokens with their meaning.
#[derive(Clone, Debug)]
pub(super) struct TaskItem {
    pub(super) sense: Sense,
    /// The words, or the text between quotation marks.
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

/// The phrases of a language by their first word, the longest first.
pub(super) struct Lexicon {
    by_first: BTreeMap<&'static str, Vec<(Vec<&'static str>, Sense)>>,
}

impl Lexicon {
    /// Makes the lexicon of a table.
    pub(super) fn of(table: &'static PhraseTable) -> Self {
        let mut by_first: BTreeMap<&str, Vec<(Vec<&str>, Sense)>> = BTreeMap::new();
        for (sense, phrases) in table {
            for phrase in phrases.split('|') {
                let words: Vec<&str> = phrase.split(' ').collect();
                by_first.entry(words[0]).or_default().push((words, *sense));
            }
        }
        for phrases in by_first.values_mut() {
            phrases.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
        }
        Self { by_first }
    }

    /// Returns the items of these tokens.
    pub(super) fn items(&self, tokens: &[TaskToken]) -> Vec<TaskItem> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let (sense, count) = match token.kind {
                TokenKind::Word => self.longest(&tokens[at..]),
                TokenKind::Number(number) => (Sense::Number(number), 1),
                TokenKind::Quoted => (Sense::Quoted, 1),
                TokenKind::Block => (Sense::Block, 1),
                TokenKind::Sign(sign) => (Sense::Sign(sign), 1),
                TokenKind::LineEnd => (Sense::LineEnd, 1),
            };
            let words: Vec<&str> = tokens[at..at + count].iter().map(|token| token.text.as_str()).collect();
            let end = tokens[at + count - 1].span.end;
            found.push(TaskItem { sense, text: words.join(" "), span: token.span.start..end });
            at += count;
        }
        found
    }

    /// Returns the sense of the longest phrase at the beginning of these tokens, and its number of tokens. A hyphen between its words does
    /// not count.
    fn longest(&self, tokens: &[TaskToken]) -> (Sense, usize) {
        for (words, sense) in self.by_first.get(tokens[0].text.as_str()).into_iter().flatten() {
            if let Some(count) = phrase_length(words, tokens) {
                return (*sense, count);
            }
        }
        (Sense::Other, 1)
    }
}

fn phrase_length(words: &[&str], tokens: &[TaskToken]) -> Option<usize> {
    let mut count = 0;
    for (number, word) in words.iter().enumerate() {
        if number > 0 && tokens.get(count)?.kind == TokenKind::Sign('-') {
            count += 1;
        }
        let token = tokens.get(count)?;
        if token.kind != TokenKind::Word || token.text != *word {
            return None;
        }
        count += 1;
    }
    Some(count)
}
