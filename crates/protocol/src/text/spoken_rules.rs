//! Rules about the answer that a task states in plain words: "in exactly three sentences", "in at most 50 words", "only
//! the letter".
//!
//! The input is a task. The output is the rules that it states, each with its words. A sentence of the task counts only
//! if it tells the agents to do something. Words that are quoted, asked about or described do not count. A rule that is
//! missed takes nothing away, and one that was not meant stops a right answer. If there is doubt, there is no rule.
//!
//! The words are in a table, [`ENGLISH`]; another language is another table. A number is a figure, or one to twelve in
//! words. A bare number of sentences or lines is exact. A bare number of words or characters is the most, as people
//! mean it; up to ten it is exact.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::constraint::{Bounds, Constraint};

/// The longest text in which a person would state rules, in bytes. The text behind it is material.
const TASK_BYTES_MAX: usize = 4000;

/// The largest bare number of words or characters that is exact.
const EXACT_MAX: usize = 10;

/// The fewest characters that a rule can count. Fewer are people in a story, or the characters of a password.
const CHARACTERS_MIN: usize = 20;

/// A rule, and the words that state it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SpokenRule {
    pub rule: Constraint,
    pub words: String,
}

/// The words of a language.
struct Language {
    /// The first words of orders, as alternatives of a regular expression.
    verbs: &'static str,
    /// The words that may come before them.
    polite: &'static str,
    /// The numbers in words, from one.
    numbers: [&'static str; 12],
    sentences: &'static str,
    words: &'static str,
    characters: &'static str,
    lines: &'static str,
    exactly: &'static str,
    at_most: &'static str,
    below: &'static str,
    at_least: &'static str,
    between: (&'static str, &'static str),
    /// The words before a bare number.
    within: &'static str,
    /// Words that begin a clause of their own. A count in such a clause is not about the answer.
    clauses: &'static str,
    /// First words of a question.
    questions: &'static str,
    /// First words of a further demand, after which an earlier rule is about a part of the answer.
    demands: &'static str,
    /// Verbs of saying. In a clause they are about the words of someone else.
    sayings: &'static str,
    /// Words before several things, for each of which a rule may be meant, or before a part of a thing.
    several: &'static str,
    /// Words in front of a rule that turn it around. A few words may come between.
    turned: &'static str,
    /// Words right behind a rule that add to it or weaken it.
    weakened: &'static str,
    /// Words right behind a rule that strengthen it.
    kept: &'static str,
    /// Words that share a rule out, so that it does not apply to the whole answer.
    shares: &'static str,
    /// Verbs whose object is the answer itself.
    replies: &'static str,
    /// The word between such a verb and its object.
    with: &'static str,
    /// Names of the answer itself, between a verb and a bound.
    itself: &'static str,
    /// Words after which the task asks for something else as well.
    more: &'static str,
    /// Bounds behind a unit.
    or_more: &'static str,
    or_less: &'static str,
    /// Words before a number that give it another meaning.
    not_after: &'static str,
    /// Words behind its unit that do the same.
    not_before: &'static str,
    letter: &'static str,
    code: &'static str,
    json_list: &'static str,
}

const ENGLISH: Language = Language {
    verbs: "answer|compare|compose|define|describe|discuss|draft|explain|give|justify|keep|limit|list|name|outline|paraphrase|present|produce|provide|reply|respond|return|rewrite|say|state|summari[sz]e|tell|translate|use|write|output",
    polite: "please|now|then|and|but|so|finally|briefly|(?:can|could|would|will) you(?: please)?|in (?:your|the) (?:answer|reply|response),?",
    numbers: [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    ],
    sentences: "sentences?",
    words: "words?",
    characters: "characters?",
    lines: "lines?",
    exactly: "exactly|precisely",
    at_most: "at most|no more than|not more than|a maximum of|maximum|max\\.?|up to",
    below: "fewer than|less than|under",
    at_least: "at least|no fewer than|no less than|not less than|a minimum of",
    between: ("between", "and|to"),
    within: "in|within|using|with",
    clauses: "that|which|who|whose|why|how|whether|if|where|when|what|has|have|had|is|are|was|were|should|must|may|can|counts?|checks?|matches|finds?|prints?|wraps?|splits?|shows?",
    questions: "what|why|how|who|whom|whose|where|when|which|is|are|was|were|do|does|did|can|could|should|would|will|has|have|i (?:want|need)",
    demands: "also|add|include|attach|cite|append|mention|show|quote|highlight|start|begin|end|finish",
    sayings: "tells?|told|says?|said|writes?|wrote|repl(?:y|ies|ied)|answers?|answered|responds?|speaks?|describes?|expresses|talks?|sings?|puts?",
    several: "with|both|all|several|some|many|few|these|those|two|three|four|five|six|seven|eight|nine|ten|[0-9]+",
    turned: "not|never|instead of|rather than|without",
    weakened: "and|or|but|plus|unless|if|when|while|then|as well|not counting|excluding|with",
    kept: "and nothing|and no|but no|with no",
    shares: "each|every|per",
    replies: "answer|reply|respond|return|output|give|write|state|use",
    with: "with",
    itself: "it|(?:your|the) (?:answer|reply|response|explanation|summary)",
    more: "then|followed by|plus|along with|apiece|with (?:an?|the)",
    or_more: "or more|or longer|at least|at minimum|minimum",
    or_less: "or fewer|or less|or shorter|at most|at maximum|maximum|max|tops",
    not_after: "told|described|stated|summari[sz]ed|explained|put|written|spelled|spelt|expressed|said|divided|split|contained|found|hidden|differs?|words?|sentences?|characters?|lines?|errors?|mistakes?|each|every|per|the|these|those|first|last|next|other|following|about|around|roughly|approximately",
    not_before: "of|per|each|every|that|which|who|from|below|above|removed|missing|long ago|apart|later|earlier|or more examples",
    letter: "(?:only|just) the letter",
    code: "(?:only|just) (?:the )?code",
    json_list: "(?:as |with )?(?:only )?an? json array",
};

/// The patterns that find a rule.
struct Patterns {
    order: Regex,
    opening: Regex,
    count: Regex,
    hyphen: Regex,
    clause: Regex,
    question: Regex,
    demand: Regex,
    saying: Regex,
    several: Regex,
    turned: Regex,
    weakened: Regex,
    kept: Regex,
    and: Regex,
    share: Regex,
    reply: Regex,
    with: Regex,
    itself: Regex,
    more: Regex,
    or_more: Regex,
    or_less: Regex,
    named_behind: Regex,
    how_to: Regex,
    before: Regex,
    behind: Regex,
    letter: Regex,
    code: Regex,
    json_list: Regex,
    quoted: Regex,
    pieces: Regex,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::of(&ENGLISH));

impl Patterns {
    fn of(l: &Language) -> Self {
        let number = format!("[0-9]{{1,5}}|{}", l.numbers.join("|"));
        let unit = format!(
            "(?P<sentences>{})|(?P<words>{})|(?P<characters>{})|(?P<lines>{})",
            l.sentences, l.words, l.characters, l.lines
        );
        let bound = format!(
            "(?P<exactly>{})|(?P<most>{})|(?P<below>{})|(?P<least>{})",
            l.exactly, l.at_most, l.below, l.at_least
        );
        let (between, and) = l.between;
        let adjective = "(?:short |simple |complete |full |plain |clear |concise |english )?";
        let regex =
            |text: &str| Regex::new(&format!("(?i){text}")).unwrap_or_else(|_| unreachable!("it is tested"));
        Self {
            order: regex(&format!(r"^\W*(?:(?:{})\b\W*)*(?:{})\b", l.polite, l.verbs)),
            opening: regex(&format!(r"^\W*(?:{})\b[^,;:]{{0,60}}[,:]", l.within)),
            count: regex(&format!(
                r"\b(?:(?:{within}) )?(?:(?:{between}) (?P<from>{number}) (?:{and}) (?P<to>{number})|(?:(?P<bound>{bound}) )?(?P<number>{number})) {adjective}(?:{unit})\b",
                within = l.within
            )),
            hyphen: regex(&format!(r"\b(?:an?|(?P<exactly>{})) (?P<number>{number})-sentence\b", l.exactly)),
            clause: regex(&format!(r"\b(?:{})\b", l.clauses)),
            question: regex(&format!(r"^\W*(?:(?:{})\b\W*)*(?:{}|{})\b", l.polite, l.questions, l.verbs)),
            demand: regex(&format!(r"^\W*(?:(?:{})\b\W*)*(?:{})\b", l.polite, l.demands)),
            saying: regex(&format!(r"\b(?:{})\b", l.sayings)),
            several: regex(&format!(r"\b(?:{})\b", l.several)),
            turned: regex(&format!(r"\b(?:{})\b(?:\W+\w+){{0,2}}\W*$", l.turned)),
            weakened: regex(&format!(r"^(?:[^\w(]*\(|\W*(?:{})\b)", l.weakened)),
            kept: regex(&format!(r"^\W*(?:{})\b", l.kept)),
            and: regex(r"\band\b"),
            share: regex(&format!(r"\b(?:{})\b", l.shares)),
            reply: regex(&format!(r"\b(?:{})\b(?:\W+\w+){{0,2}}\W*$", l.replies)),
            with: regex(&format!(r"^(?:{})\b", l.with)),
            itself: regex(&format!(r"^\W*(?:{})?\W*(?:to|at)?\W*$", l.itself)),
            more: regex(&format!(r"\b(?:{})\b|(?:\band|,)\W+(?:\w+\W+){{0,2}}(?:{})\b", l.more, l.verbs)),
            or_more: regex(&format!(r"^\W*(?:{})\b", l.or_more)),
            or_less: regex(&format!(r"^\W*(?:{})\b", l.or_less)),
            how_to: regex(r"\bhow to\b"),
            named_behind: regex(r"^\W*(?:$|(?:of|for|with|containing|and nothing|without|no)\b)"),
            before: regex(&format!(r"\b(?:{})\W*$", l.not_after)),
            behind: regex(&format!(r"^\W*(?:{})\b", l.not_before)),
            letter: regex(&format!(r"\b{}\b", l.letter)),
            code: regex(&format!(r"\b{}\b", l.code)),
            json_list: regex(&format!(r"\b{}\b", l.json_list)),
            quoted: regex(
                "(?s)```.*?```|(?:^|\\s)'[^'\\n]+'|‘[^’]*’|‚[^‘]*‘|„[^“”]*[“”]|\"[^\"\\n]*\"|“[^”]*”|«[^»]*»|`[^`\\n]*`|(?m:^>.*$)",
            ),
            pieces: regex(r"(?:[.!?;:]['\x22)]*\s+|\n+)"),
        }
    }
}

/// Returns the rules that a task states in plain words.
pub fn spoken_rules(task: &str) -> Vec<SpokenRule> {
    let p = &*PATTERNS;
    let end = task.floor_char_boundary(TASK_BYTES_MAX);
    let task = p.quoted.replace_all(&task[..end], "…");
    // The text behind a colon is material, not an order.
    let order = task.split_once(": ").or_else(|| task.split_once(":\n")).map_or(&*task, |(order, _)| order);
    let mut found: Vec<SpokenRule> = Vec::new();
    for piece in p.pieces.split(order) {
        let is_order = p.order.is_match(piece);
        if is_order || p.demand.is_match(piece) {
            // An earlier rule is about a part of the answer if the task asks for more.
            found.clear();
        }
        // A question may begin with a rule, and a story as well.
        let rest = p.opening.find(piece).map(|opening| &piece[opening.end()..]);
        if !is_order && !rest.is_some_and(|rest| p.question.is_match(rest)) {
            continue;
        }
        for rule in counted(p, piece, is_order).chain(named(p, piece, is_order)) {
            let is_same = |other: &SpokenRule| {
                std::mem::discriminant(&other.rule) == std::mem::discriminant(&rule.rule)
            };
            // Two rules about one thing cannot both be meant for the whole answer.
            if found.iter().any(is_same) {
                found.retain(|other| !is_same(other));
            } else {
                found.push(rule);
            }
        }
    }
    found
}

/// Returns the rules of a piece that count something.
fn counted<'a>(p: &'a Patterns, piece: &'a str, is_order: bool) -> impl Iterator<Item = SpokenRule> + 'a {
    let head = p.opening.find(piece).map_or(0, |opening| opening.end());
    let of = move |found: Captures<'_>| {
        let whole = found.get(0)?;
        let (before, behind) = (&piece[..whole.start()], &piece[whole.end()..]);
        let bounds = bounds(p, &found, behind)?;
        let rule = [
            ("sentences", Constraint::Sentences(bounds)),
            ("words", Constraint::Words(bounds)),
            ("characters", Constraint::Characters(bounds)),
            ("lines", Constraint::Lines(bounds)),
        ];
        let (_, rule) = rule.into_iter().find(|(name, _)| found.name(name).is_some())?;
        // A few characters are people in a story, or the characters of a password.
        let is_few = bounds.max.or(bounds.min).is_some_and(|count| count < CHARACTERS_MIN);
        let is_person = found.name("characters").is_some() && is_few;
        // If the sentence is not an order itself, its opening alone may be one: `In one sentence, what is …`.
        let is_meant = is_order || whole.end() <= head;
        let is_it = is_meant && !is_person && is_of_the_answer(p, piece, &found);
        let is_else = p.before.is_match(before) || p.behind.is_match(behind);
        (is_it && !is_else).then(|| SpokenRule { rule, words: whole.as_str().to_owned() })
    };
    let hyphened = move |found: Captures<'_>| {
        let count = number(&found["number"])?;
        let rule = Constraint::Sentences(Bounds { min: Some(count), max: Some(count) });
        is_order.then(|| SpokenRule { rule, words: found[0].to_owned() })
    };
    p.count.captures_iter(piece).filter_map(of).chain(p.hyphen.captures_iter(piece).filter_map(hyphened))
}

/// Returns true if a match is about the whole answer, and not about the subject of the answer.
fn is_of_the_answer(p: &Patterns, piece: &str, found: &Captures<'_>) -> bool {
    let Some(whole) = found.get(0) else { return false };
    let (before, behind) = (&piece[..whole.start()], &piece[whole.end()..]);
    let order = p.order.find(piece).map_or(0, |order| order.end()).min(whole.start());
    let between = &piece[order..whole.start()];
    if p.share.is_match(piece)
        || p.more.is_match(between)
        || p.more.is_match(behind)
        || is_doubtful(p, before, between, behind)
    {
        return false;
    }
    let first = whole.as_str().split_whitespace().next().unwrap_or_default();
    let is_first = |group: &str| found.name(group).is_some_and(|part| part.start() == whole.start());
    let rest = behind.trim_matches(|c: char| !c.is_alphanumeric());
    let is_last = rest.is_empty() || p.or_more.is_match(rest) || p.or_less.is_match(rest);
    if is_first("number") {
        // A number alone says nothing. "Keep it to two sentences" has a word before it.
        return is_last && !between.trim().is_empty() && p.itself.is_match(between);
    }
    if is_first("bound")
        || found.name("from").is_some_and(|from| from.start() < whole.start() + first.len() + 2)
    {
        return is_last && (p.itself.is_match(between) || between.trim_end().ends_with(','));
    }
    if p.with.is_match(whole.as_str()) {
        return p.reply.is_match(before) && p.itself.is_match(between);
    }
    // A rule at the very end applies to the whole sentence: "Explain why the sky is blue in two sentences."
    !p.clause.is_match(between) || is_last && !p.how_to.is_match(between)
}

/// Returns true if the words around a rule turn it around, share it out, or add to it.
fn is_doubtful(p: &Patterns, before: &str, between: &str, behind: &str) -> bool {
    let is_bounded = p.or_more.is_match(behind) || p.or_less.is_match(behind) || p.kept.is_match(behind);
    p.turned.is_match(before)
        || p.several.is_match(between)
        || p.count.is_match(between)
        || p.clause.is_match(between) && p.saying.is_match(between)
        || p.weakened.is_match(behind) && !is_bounded
}

/// Returns the rules of a piece that name a form.
fn named<'a>(p: &'a Patterns, piece: &'a str, is_order: bool) -> impl Iterator<Item = SpokenRule> + 'a {
    let one = Bounds { min: Some(1), max: Some(1) };
    let forms = [
        (&p.letter, Constraint::Characters(one)),
        (&p.code, Constraint::Excludes { text: "```".to_owned() }),
        (&p.json_list, Constraint::StartsWith { text: "[".to_owned() }),
    ];
    forms.into_iter().filter(move |_| is_order).filter_map(move |(pattern, rule)| {
        let found = pattern.find(piece)?;
        let (before, behind) = (&piece[..found.start()], &piece[found.end()..]);
        let is_reply = p.reply.is_match(before) && p.named_behind.is_match(behind);
        // A form that is asked for in addition, or of several things, is not that of the whole answer.
        let is_whole = !p.and.is_match(before) && !p.turned.is_match(before) && !p.share.is_match(piece);
        (is_reply && is_whole).then(|| SpokenRule { rule, words: found.as_str().to_owned() })
    })
}

fn bounds(p: &Patterns, found: &Captures<'_>, behind: &str) -> Option<Bounds> {
    if let (Some(from), Some(to)) = (found.name("from"), found.name("to")) {
        let (min, max) = (number(from.as_str())?, number(to.as_str())?);
        return (min <= max).then_some(Bounds { min: Some(min), max: Some(max) });
    }
    let count = number(&found["number"])?;
    let is = |group: &str| found.name(group).is_some();
    let is_loose = is("words") || is("characters");
    Some(match () {
        () if is("exactly") => Bounds { min: Some(count), max: Some(count) },
        () if is("most") => Bounds { min: None, max: Some(count) },
        () if is("below") => Bounds { min: None, max: Some(count.checked_sub(1).filter(|max| *max > 0)?) },
        () if is("least") || p.or_more.is_match(behind) => Bounds { min: Some(count), max: None },
        () if p.or_less.is_match(behind) => Bounds { min: None, max: Some(count) },
        () if is_loose && count > EXACT_MAX => Bounds { min: None, max: Some(count) },
        () => Bounds { min: Some(count), max: Some(count) },
    })
}

fn number(text: &str) -> Option<usize> {
    let in_words =
        || ENGLISH.numbers.iter().position(|word| word.eq_ignore_ascii_case(text)).map(|at| at + 1);
    text.parse().ok().or_else(in_words).filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(task: &str) -> Vec<String> {
        spoken_rules(task).iter().map(|found| serde_json::to_string(&found.rule).unwrap()).collect()
    }

    #[test]
    fn words_around_a_rule_can_take_it_back() {
        for task in [
            "Explain why the sky is blue, but not in one word.",
            "Explain it in full instead of answering in one word.",
            "Answer with only the letter for each of these two questions.",
            "Tell me why my son replies in one word.",
            "Explain why Hemingway could tell a whole story in six words.",
            "Give a definition of entropy in one sentence and an example.",
            "Explain the phrase ‘answer in one word’.",
            "Explain the phrase „answer in one word“.",
            "Write three taglines in five words.",
            "Summarise both articles in two sentences.",
            "Name films with titles in two words.",
            "In two sentences, the judge dismissed the case. Why is that rare?",
            "Answer in one word unless it is unclear.",
            "Answer in one sentence or two.",
            "Explain it in 3 sentences (4 is fine too).",
            "Summarise it in 50 words or so.",
            "Give the title in one word and the plot in three sentences.",
            "Answer in one word. Also add your reasoning.",
            "Answer in two sentences. Include sources below.",
            "Explain your reasoning and return a JSON array.",
        ] {
            assert!(said(task).is_empty(), "{task}: {:?}", said(task));
        }
        for task in [
            "In one sentence, what is entropy?",
            "Answer in two sentences and nothing else.",
            "Answer in 50 words or fewer.",
        ] {
            assert_eq!(said(task).len(), 1, "{task}");
        }
    }

    #[test]
    fn plain_words_of_task_become_rule() {
        let exactly = |kind: &str, n: u32| format!("{{\"kind\":\"{kind}\",\"min\":{n},\"max\":{n}}}");
        let most = |kind: &str, n: u32| format!("{{\"kind\":\"{kind}\",\"max\":{n}}}");
        for (task, rule) in [
            ("Explain in exactly three sentences why the sky is blue.", exactly("sentences", 3)),
            ("Please summarise the report in 2 sentences.", exactly("sentences", 2)),
            ("Why is the sky blue? Answer in one sentence.", exactly("sentences", 1)),
            ("Explain why the sky is blue in exactly three sentences.", exactly("sentences", 3)),
            ("Tell me what inflation is, in at most 30 words.", most("words", 30)),
            ("In one sentence, what is inflation?", exactly("sentences", 1)),
            ("Write a two-sentence summary of the text.", exactly("sentences", 2)),
            ("Describe the plot in at most 50 words.", most("words", 50)),
            ("Can you explain it in no more than four sentences?", most("sentences", 4)),
            ("Write a haiku in three lines.", exactly("lines", 3)),
            ("Answer in 40 words.", most("words", 40)),
            ("Answer with one word.", exactly("words", 1)),
            ("Answer in fewer than 60 characters.", most("characters", 59)),
            ("Limit your answer to 50 words.", most("words", 50)),
            ("Keep it under 50 words.", most("words", 49)),
            ("Answer in 50 words or more.", "{\"kind\":\"words\",\"min\":50}".to_owned()),
            ("Answer in 3 sentences or fewer.", most("sentences", 3)),
            ("Use between 20 and 30 words.", "{\"kind\":\"words\",\"min\":20,\"max\":30}".to_owned()),
            ("Write at least 100 words.", "{\"kind\":\"words\",\"min\":100}".to_owned()),
            ("Reply with only the letter.", exactly("characters", 1)),
            ("Return only the code.", "{\"kind\":\"excludes\",\"text\":\"```\"}".to_owned()),
            ("Return a JSON array with the names.", "{\"kind\":\"starts_with\",\"text\":\"[\"}".to_owned()),
        ] {
            assert_eq!(said(task), [rule], "{task}");
        }
    }

    /// Tasks that mention sentences, words and lines, but state no rule.
    const NO_RULE: &str = include_str!("spoken_rules_none.txt");

    /// Two hundred tasks that state no rule get none.
    #[test]
    fn no_unstated_rule_is_found() {
        let tasks: Vec<&str> = NO_RULE.lines().filter(|line| !line.trim().is_empty()).collect();
        assert!(tasks.len() >= 200, "{}", tasks.len());
        let alarms: Vec<_> = tasks
            .iter()
            .map(|task| (task, spoken_rules(task)))
            .filter(|(_, rules)| !rules.is_empty())
            .collect();
        assert!(alarms.is_empty(), "{alarms:#?}");
    }
}
