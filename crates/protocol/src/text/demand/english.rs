//! The English words of demands.
//!
//! A table for another language lists its own phrases under the same senses. Phrases are in small letters, and a hyphen between two words
//! may be missing in a task. Where a phrase could have two senses, this table has the one that demands less.

use super::sense::{PhraseTable, Sense, Unit};

/// Words at the beginning of a sentence that may take back what the one before it demands.
pub(super) const TAKING_BACK: [&str; 8] =
    ["if", "unless", "except", "otherwise", "below", "underneath", "before", "instead"];

pub(super) const ENGLISH: &PhraseTable = &[
    (Sense::Number(1), "one"),
    (Sense::Number(2), "two"),
    (Sense::Number(3), "three"),
    (Sense::Number(4), "four"),
    (Sense::Number(5), "five"),
    (Sense::Number(6), "six"),
    (Sense::Number(7), "seven"),
    (Sense::Number(8), "eight"),
    (Sense::Number(9), "nine"),
    (Sense::Number(10), "ten"),
    (Sense::Number(11), "eleven"),
    (Sense::Number(12), "twelve"),
    (Sense::Often(1), "once"),
    (Sense::Often(2), "twice"),
    (Sense::Times, "time|times"),
    (
        Sense::AtLeast,
        "at least|no fewer than|no less than|not less than|not fewer than|a minimum of|minimum of",
    ),
    (
        Sense::AtMost,
        "at most|no more than|not more than|a maximum of|maximum of|maximum|max|up to|not exceed|\
         not exceeding",
    ),
    (Sense::Above, "more than|longer than|over"),
    (Sense::Below, "fewer than|less than|under|below"),
    (Sense::Exactly, "exactly|precisely"),
    (Sense::Between, "between"),
    (Sense::About, "about|around|roughly|approximately|nearly|almost"),
    (Sense::OrMore, "or more|or longer|at minimum|minimum"),
    (Sense::OrLess, "or fewer|or less|or shorter|at maximum|tops"),
    (Sense::Unit(Unit::Words), "word|words"),
    (Sense::Unit(Unit::Sentences), "sentence|sentences"),
    (Sense::Unit(Unit::Characters), "character|characters"),
    (Sense::Unit(Unit::Lines), "line|lines"),
    (Sense::Unit(Unit::Paragraphs), "paragraph|paragraphs|stanza|stanzas"),
    (Sense::Unit(Unit::Bullets), "bullet point|bullet points|bullets|bulleted points"),
    (Sense::Adjective, "short|simple|complete|full|plain|clear|concise|very|brief|different"),
    (
        Sense::Not,
        "do not|don't|does not|doesn't|never|must not|mustn't|should not|shouldn't|cannot|can not|\
         can't|without|avoid|avoiding|refrain from|not|no",
    ),
    (
        Sense::Use,
        "use|include|including|includes|contain|contains|mention|mentioning|mentions|have|having|\
         has|feature|featuring|consist|consists|comprise|comprises|range|be limited",
    ),
    (Sense::Using, "using|by using"),
    (Sense::Appear, "appear|appears|appearing|occur|occurs|show up|be used|be included|be mentioned"),
    (Sense::TheWord, "the word|the following word|the term"),
    (
        Sense::TheWords,
        "the words|the keyword|the keywords|keyword|keywords|the following words|\
         the following keyword|the following keywords|these words|these keywords|the terms",
    ),
    (
        Sense::Sure,
        "make sure|make sure that|be sure|be sure that|be sure to|ensure|ensure that|making sure|\
         making sure that|make sure to|remember|remember to|remember that|don't forget to|\
         do not forget to|please make sure|it is important that",
    ),
    (Sense::Must, "must|should|shall|has to|have to|needs to|need to|ought to|can only|may only"),
    (Sense::Be, "be|is|are"),
    (
        Sense::Order,
        "add|aim|append|attach|brainstorm|cite|come up with|compare|compose|craft|create|define|\
         describe|design|develop|discuss|draft|elaborate|expand|explain|generate|help|highlight|\
         imagine|italicize|justify|make|mark|label|list|name|outline|plan|prepare|present|produce|\
         propose|provide|quote|recommend|repeat|separate|show|solve|state|suggest|tell|tldr",
    ),
    (
        Sense::Rework,
        "analyze|check|convert|correct|critique|criticize|criticise|edit|extract|improve|\
         paraphrase|proofread|rate|review this|rewrite|summarise|summarize|translate|turn this",
    ),
    (Sense::ReplyVerb, "respond|write|give|return|keep|limit|restrict|put it"),
    (Sense::Say, "say"),
    (
        Sense::Saying,
        "written|found|spelled|spelt|expressed|explained|stated|summarised|summarized|replies|\
         speak|speaks|sing|sings|puts|talks|expresses|cut|came",
    ),
    (
        Sense::CanYou,
        "can you|can you please|could you|could you please|would you|would you please|will you|\
         i want you to|i need you to|i'd like you to|i would like you to|you must|you should|\
         you have to|you need to",
    ),
    (
        Sense::Polite,
        "please|kindly|now|so|finally|briefly|also|additionally|in addition|furthermore|moreover|\
         just|in particular|basically|but|throughout|explicitly|firstly|second|secondly|third|\
         thirdly",
    ),
    (
        Sense::Then,
        "then|followed by|plus|along with|apiece|after that|afterwards|as well|unless|if|when|\
         while|not counting|excluding|instead of|rather than|except",
    ),
    (Sense::Reply, "answer|reply|output"),
    (Sense::ReplyNoun, "answers|response|responses"),
    (
        Sense::Piece,
        "ad|advertisement|advice|article|bio|biography|blog|blog post|caption|cover letter|\
         description|email|essay|explanation|itinerary|joke|letter|limerick|message|paper|pitch|\
         poem|post|proposal|rap|report|resume|review|riddle|rubric|short story|song|speech|story|\
         summary|tale|template|thread|tweet|translation",
    ),
    (Sense::It, "it"),
    (Sense::There, "there"),
    (Sense::Nothing, "nothing"),
    (Sense::Whole, "entire|whole|complete text of"),
    (Sense::Your, "your|the|this"),
    (Sense::Any, "any|a|an|the use of|use of"),
    (Sense::All, "all|all of the|all the|every single"),
    (Sense::Only, "only|entirely|completely|exclusively|solely"),
    (Sense::In, "in|within|into|inside"),
    (Sense::With, "with"),
    (Sense::Of, "of"),
    (Sense::For, "for|containing"),
    (Sense::And, "and"),
    (Sense::Or, "or|nor"),
    (Sense::To, "to"),
    (Sense::Around, "around your|around the|around my"),
    (Sense::Each, "some|each|every|per|both|several|respectively|either"),
    (
        Sense::Relative,
        "that|which|who|whose|whom|told|tells|said|says|wrote|writes|spoken|described|called|\
         titled|named",
    ),
    (Sense::Clause, "why|how|whether|where|what|because"),
    (Sense::HowTo, "how to"),
    (
        Sense::Part,
        "title|titles|heading|headings|headline|subject|section|sections|names|item|items|step|\
         steps|point|points|chapter|chapters|row|rows|column|columns|part|parts|verse|chorus|moral|\
         table|subject line|intro|introduction|conclusion|beginning|postscript|abstract|body|\
         tagline|opening|closing",
    ),
    (
        Sense::Program,
        "function|functions|program|programs|script|scraper|regex|regular expression|parser|parse|\
         sql|python|javascript|java|php|rust|bash|csv|html|css|api|algorithm|code|bot|macro|plugin",
    ),
    (
        Sense::Field,
        "query|class|method|validator|linter|string|strings|password|passwords|username|field|\
         input|column name|file|files|test|tests|database|spreadsheet|formula|command",
    ),
    (Sense::Pointing, "these|those|first|last|next|following|previous|above|remaining|same"),
    (Sense::Away, "from|missing|removed|apart|later|earlier|ago|long|longer|or so"),
    (Sense::Small, "on|by|as|at|their|its|his|her|my|our|you|i|we|they|than|was|were|text|topic"),
    (
        Sense::Like,
        "divider|asterisks|asterisk symbols|symbols|symbol|markers|such as|like|for example|e.g|\
         i.e|as follows|example|examples|the format below|the exact format below|\
         the following format|the format",
    ),
    (Sense::Rules, "requirements|rules|constraints|conditions|request|instructions|guidelines|note|prompt"),
    (Sense::Wrap, "wrap|wrapped|enclose|enclosed|put|place|placed|surround|surrounded"),
    (
        Sense::QuoteMarks,
        "double quotation marks|double quotations marks|quotation marks|double quotes|\
         double quote marks|quotes",
    ),
    (Sense::Begin, "start|begin|starts|begins"),
    (Sense::End, "end|finish|conclude|ends|close"),
    (Sense::Comma, "comma|commas"),
    (Sense::Allowed, "is allowed|are allowed|allowed"),
    (Sense::Markdown, "markdown|markdown format"),
    (Sense::Json, "json format|json|a json block|valid json"),
    (
        Sense::LowerLetters,
        "lowercase|lowercases|lowercase letters|lower case|lower case letters|lowercased|\
         small letters|letters lowercased|lowercase only",
    ),
    (
        Sense::UpperLetters,
        "uppercase|uppercase letters|upper case|upper case letters|capital letters|capital letter|\
         capitals|caps|all caps|capitalized",
    ),
    (
        Sense::Phrase,
        "the exact phrase|the exact words|this exact phrase|this phrase|the phrase|\
         the exact sentence|the sentence|the line|exact phrase|this exact sentence|phrase",
    ),
    (Sense::OnlyTheLetter, "only the letter|just the letter"),
    (Sense::JsonList, "a json array|as a json array|only a json array|with a json array|a json list"),
    (Sense::LanguageWord, "language"),
    (Sense::LanguageName("ara"), "arabic"),
    (Sense::LanguageName("ben"), "bengali"),
    (Sense::LanguageName("bul"), "bulgarian"),
    (Sense::LanguageName("ces"), "czech"),
    (Sense::LanguageName("cmn"), "chinese|mandarin"),
    (Sense::LanguageName("dan"), "danish"),
    (Sense::LanguageName("deu"), "german"),
    (Sense::LanguageName("ell"), "greek"),
    (Sense::LanguageName("eng"), "english"),
    (Sense::LanguageName("fin"), "finnish"),
    (Sense::LanguageName("fra"), "french"),
    (Sense::LanguageName("guj"), "gujarati"),
    (Sense::LanguageName("heb"), "hebrew"),
    (Sense::LanguageName("hin"), "hindi"),
    (Sense::LanguageName("hun"), "hungarian"),
    (Sense::LanguageName("ind"), "indonesian"),
    (Sense::LanguageName("ita"), "italian"),
    (Sense::LanguageName("jpn"), "japanese"),
    (Sense::LanguageName("kan"), "kannada"),
    (Sense::LanguageName("kor"), "korean"),
    (Sense::LanguageName("mar"), "marathi"),
    (Sense::LanguageName("nep"), "nepali"),
    (Sense::LanguageName("nld"), "dutch"),
    (Sense::LanguageName("nob"), "norwegian"),
    (Sense::LanguageName("pan"), "punjabi"),
    (Sense::LanguageName("pes"), "persian|farsi"),
    (Sense::LanguageName("pol"), "polish"),
    (Sense::LanguageName("por"), "portuguese"),
    (Sense::LanguageName("ron"), "romanian"),
    (Sense::LanguageName("rus"), "russian"),
    (Sense::LanguageName("spa"), "spanish"),
    (Sense::LanguageName("swe"), "swedish"),
    (Sense::LanguageName("tam"), "tamil"),
    (Sense::LanguageName("tel"), "telugu"),
    (Sense::LanguageName("tha"), "thai"),
    (Sense::LanguageName("tur"), "turkish"),
    (Sense::LanguageName("ukr"), "ukrainian"),
    (Sense::LanguageName("urd"), "urdu"),
    (Sense::LanguageName("vie"), "vietnamese"),
];
