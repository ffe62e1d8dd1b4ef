//! The check of a reply: it is accepted unchanged, or refused with words for its author.
//!
//! The input is one reply and the knowledge of its author at that time. The output is an accepted envelope or a [`Violation`]. Nothing is
//! repaired here. Only the digest, which models cannot compute, and the text of an adopted handle are filled in. A program is a reply too:
//! it is run, and the value that it prints is its author's answer.

use super::agent::{AgentState, Answer, Better, ProposedText, handle, index_of};
use super::params::{Adopt, PairParams};
use crate::contract::{Executions, Setup, Thinking};
use crate::text::decoding::{self, Offer};
use crate::text::vacuity::{self, Vacuity};
use crate::text::{
    AnswerChange, Artifact, CanonicalKind, Canonicalizer, Envelope, FinalSolution, FinalText, SOLVED_MARKER,
    Status, StrictValue, Violation, escape, listed_sentences, program,
};
use crate::turn::{Valid, program_answer};

/// The knowledge of a reply's author.
pub(super) struct ReplyCheck<'a> {
    pub(super) setup: &'a Setup<PairParams>,
    pub(super) executions: &'a Executions,
    pub(super) canonicalizer: &'a Canonicalizer,
    /// The test for each agent that recognises an answer as an echo of its prompt.
    pub(super) prompt_echo: &'a vacuity::PromptEcho,
    pub(super) seats: &'a [AgentState; 2],
    pub(super) proposals: &'a [ProposedText],
    /// The index of the author.
    pub(super) agent: usize,
    /// Whether the author knows nothing of the peer's text.
    pub(super) blind: bool,
    /// The proposal that an arbiter chose, which both may accept.
    pub(super) arbiter_choice: Option<usize>,
}

/// A reply that counts.
#[derive(Clone, Debug)]
pub(super) struct AcceptedEnvelope {
    /// The envelope with the digest filled in and an adoption resolved.
    pub(super) envelope: Envelope,
    /// The text that it commits to.
    pub(super) answer: Option<Answer>,
    /// The proposal that it names by handle: the peer's to adopt it, or its own to keep it.
    pub(super) adopts: Option<usize>,
}

/// Returns the conclusion of private thoughts: the text after the last `Answer:` that begins a line, or else after the last one anywhere.
///
/// Text that is quoted in the thoughts may contain an `Answer:` of its own, but rarely at the beginning of a line.
pub(super) fn conclusion(thoughts: &str) -> Option<&str> {
    let (mut read, mut begin) = (0, None);
    for line in thoughts.split_inclusive('\n') {
        read += line.len();
        begin = after_answer(line).map(|rest| read - rest.len()).or(begin);
    }
    let begin = begin.or_else(|| thoughts.rfind("Answer:").map(|at| at + "Answer:".len()))?;
    let mut lines = thoughts[begin..].lines().map(|line| line.trim_matches(['*', '`', '"', '\'', ' ', '.']));
    lines.find(|line| !line.is_empty())
}

/// Returns the rest of a line that begins with `Answer:`. Case and decoration are ignored.
fn after_answer(line: &str) -> Option<&str> {
    let (word, rest) =
        line.trim_start_matches(['*', '_', '#', '>', '-', ' ']).split_at_checked("answer".len())?;
    let rest = rest.trim_start_matches(['*', '_', ' ']).strip_prefix(':')?;
    word.eq_ignore_ascii_case("answer").then_some(rest)
}

impl ReplyCheck<'_> {
    /// Returns the proposal that private thoughts end with, by its text or its handle. Returns `None` if they end with another text, with
    /// several handles, or with a proposal that cannot be declared final.
    pub(super) fn read_decision(&self, thoughts: &str) -> Option<usize> {
        let last = conclusion(thoughts)?;
        let handles = self.acceptable().into_iter().chain(self.own_handle());
        let open: Vec<usize> = handles
            .filter_map(|handle| index_of(&handle))
            .filter(|&index| self.check_rules(&self.proposals[index].answer).is_ok())
            .collect();
        if let Ok(canonical) = self.canonicalizer.canonicalize(last)
            && let Some(index) =
                open.iter().find(|&&index| self.proposals[index].answer.canonical == canonical)
        {
            return Some(*index);
        }
        let mut named = last.split(|c: char| !c.is_alphanumeric()).filter_map(index_of);
        let first = named.next().filter(|index| open.contains(index))?;
        named.all(|other| other == first).then_some(first)
    }

    /// Checks one reply, which came after these private thoughts.
    pub(super) fn check(
        &self,
        reply: &str,
        thoughts: Option<&str>,
    ) -> Result<Valid<Box<AcceptedEnvelope>>, Violation> {
        let with_thinking = self.setup.params.thinking == Thinking::Field;
        let parsed = Envelope::parse_with(reply, with_thinking)?;
        let mut envelope = parsed.envelope;
        self.check_names(&envelope)?;
        check_marker(&envelope)?;
        let adopts = self.resolve_adoption(&envelope)?;
        self.check_decision(adopts, thoughts.and_then(|thoughts| self.read_decision(thoughts)))?;
        let answer = self.read_answer(&envelope, adopts)?;
        if !self.blind {
            self.check_answers(&envelope)?;
            self.check_change(&envelope, answer.as_ref())?;
        }
        if let Some(answer) = &answer {
            fill_in(&mut envelope, answer)?;
        }
        let content = Box::new(AcceptedEnvelope { envelope, answer, adopts });
        Ok(Valid { content, object: parsed.object })
    }

    /// Returns the handle by which the author may keep its own text.
    pub(super) fn own_handle(&self) -> Option<String> {
        if self.blind || self.setup.adopt() == Adopt::Text {
            return None;
        }
        self.seats[self.agent].stands_for().map(handle)
    }

    /// Returns the handles that the author may accept, in the order of their numbers.
    pub(super) fn acceptable(&self) -> Vec<String> {
        if self.blind || self.setup.adopt() == Adopt::Text {
            return Vec::new();
        }
        let of_peer = self.seats[1 - self.agent]
            .stands_for()
            .filter(|&index| self.is_solved_by_peer(index) && !self.is_found_worse(index));
        let mut indices: Vec<usize> = of_peer.into_iter().chain(self.arbiter_choice).collect();
        indices.sort_unstable();
        indices.dedup();
        indices.into_iter().map(handle).collect()
    }

    /// Returns the choices of an envelope whose author's thoughts ended with the proposal `decided`.
    pub(super) fn offer(&self, decided: Option<usize>) -> Offer {
        let mut offer =
            Offer { acceptable: self.acceptable(), own: self.own_handle(), is_decided: decided.is_some() };
        if let Some(decided) = decided {
            offer.acceptable.retain(|handle| self.is_handle_of(handle, decided));
            offer.own = offer.own.filter(|handle| self.is_handle_of(handle, decided));
        }
        offer
    }

    /// Returns true if the handle names a proposal with the text of the proposal at `index`.
    fn is_handle_of(&self, handle: &str, index: usize) -> bool {
        let text = &self.proposals[index].answer.canonical;
        let named = index_of(handle).and_then(|named| self.proposals.get(named));
        named.is_some_and(|named| named.answer.canonical == *text)
    }

    /// Returns true if the peer declares the proposal final, and it is not the author's own.
    fn is_solved_by_peer(&self, index: usize) -> bool {
        let peer = &self.seats[1 - self.agent];
        peer.stands_for() == Some(index)
            && peer.status() == Some(Status::Solved)
            && self.proposals[index].author != self.agent
    }

    /// Returns true if the author has compared the proposal with its own text and found its own better. This does not apply to an arbiter's
    /// choice, which another agent has compared.
    pub(super) fn is_found_worse(&self, index: usize) -> bool {
        self.comparison_that_counts(index) == Some(Better::Own)
    }

    /// Returns the result of comparing the proposal with the author's own text, if they were compared and the result still counts.
    pub(super) fn comparison_that_counts(&self, index: usize) -> Option<Better> {
        if self.arbiter_choice == Some(index) {
            return None;
        }
        self.comparison_with(&self.proposals[index].answer)
    }

    /// Returns the result of comparing a text with the author's own, if they were compared.
    pub(super) fn comparison_with(&self, other: &Answer) -> Option<Better> {
        let seat = &self.seats[self.agent];
        let own = seat.last_answer.as_ref()?.canonical.digest;
        let mut compared = seat.compared.iter();
        compared.find(|w| w.own == own && w.other == other.canonical.digest).map(|w| w.better)
    }

    /// Returns the author's own answer, if an envelope with the answer `other` gives it up and the two have to be compared first.
    ///
    /// Every change is checked, not only one to the peer's own words: otherwise a copy with a different full stop would avoid the check. A
    /// text that breaks a rule of the task may be given up without a comparison, and so may any text where nothing is compared.
    pub(super) fn answer_given_up_for(&self, other: Option<&Answer>) -> Option<&Answer> {
        if self.blind || !self.setup.params.weigh {
            return None;
        }
        let own = self.seats[self.agent].last_answer.as_ref()?;
        let other = &other?.canonical;
        let chosen = self.arbiter_choice.map(|index| &self.proposals[index].answer.canonical);
        if own.canonical == *other || chosen == Some(other) || self.check_rules(own).is_err() {
            return None;
        }
        Some(own)
    }

    /// Returns true if accepting the peer's text would change the author's answer.
    pub(super) fn accepting_changes(&self) -> bool {
        let theirs =
            self.seats[1 - self.agent].stands_for().map(|index| &self.proposals[index].answer.canonical);
        let own = self.seats[self.agent].last_answer.as_ref().map(|answer| &answer.canonical);
        own.is_some() && own != theirs
    }

    /// Returns the number of the peer's requests that this reply must answer.
    pub(super) fn owed_answers(&self) -> usize {
        let peer = &self.seats[1 - self.agent];
        if self.blind {
            return 0;
        }
        peer.position.as_ref().map_or(0, |p| p.envelope.needs_from_peer.len())
    }

    fn check_names(&self, envelope: &Envelope) -> Result<(), Violation> {
        let agents = &self.setup.agents;
        let (own, peer) = (&agents[self.agent].name, &agents[1 - self.agent].name);
        let handoff = &envelope.handoff_to;
        let (field, expected, found) = if envelope.role != *own {
            ("role", format!("your own name, `{own}`"), &envelope.role)
        } else if !handoff.is_empty() && handoff != own && handoff != peer {
            ("handoff_to", format!("`{peer}`, or empty to keep the floor"), handoff)
        } else {
            return Ok(());
        };
        Err(Violation::WrongName { field, expected, found: escape::excerpt(found) })
    }

    /// Resolves `accepts` to a proposal that the author may adopt.
    fn resolve_adoption(&self, envelope: &Envelope) -> Result<Option<usize>, Violation> {
        let solution = envelope.final_solution.as_ref();
        let Some(name) = solution.and_then(|s| s.accepts.as_deref()) else {
            return Ok(None);
        };
        if solution.is_some_and(|s| s.canonical_text.is_some()) {
            return Err(Violation::TextAndAdoption);
        }
        if self.blind || self.setup.adopt() == Adopt::Text {
            return Err(Violation::AdoptionOff);
        }
        let mut acceptable = self.acceptable();
        acceptable.extend(self.own_handle());
        acceptable.dedup();
        let known = match acceptable.as_slice() {
            [] => "nothing can be accepted now: write your own text in `canonical_text`".to_owned(),
            names => format!("you may accept {}", names.join(" or ")),
        };
        let handle = escape::excerpt(name);
        let found = index_of(name).filter(|&index| index < self.proposals.len());
        match found {
            Some(index) if acceptable.iter().any(|h| h == name) => Ok(Some(index)),
            // The author's own comparison has rejected this text, and the turn ends as it did then.
            Some(index) if self.is_solved_by_peer(index) => Ok(Some(index)),
            Some(index) if self.proposals[index].author == self.agent => Err(Violation::OwnHandle { handle }),
            Some(_) => Err(Violation::NotCurrent { handle, known }),
            None => Err(Violation::UnknownHandle { handle, known }),
        }
    }

    /// Checks an adoption against the thoughts before it. An author that has just found one text right and names another has mixed up their
    /// names.
    fn check_decision(&self, adopts: Option<usize>, decided: Option<usize>) -> Result<(), Violation> {
        let (Some(named), Some(found)) = (adopts, decided) else { return Ok(()) };
        if self.proposals[named].answer.canonical == self.proposals[found].answer.canonical {
            return Ok(());
        }
        Err(Violation::AgainstThoughts { named: handle(named), found: handle(found) })
    }

    /// Checks and returns the text that the envelope commits to.
    fn read_answer(&self, envelope: &Envelope, adopts: Option<usize>) -> Result<Option<Answer>, Violation> {
        let typed = envelope.final_solution.as_ref().and_then(|s| s.canonical_text.as_ref());
        if envelope.status == Status::Solved && typed.is_none() && adopts.is_none() {
            return Err(Violation::TextMissing);
        }
        if envelope.status < Status::Proposed {
            return Ok(None);
        }
        let answer = match (adopts, typed) {
            (Some(index), _) => self.proposals[index].answer.clone(),
            (None, Some(text)) => self.check_text(text)?,
            (None, None) => return Ok(None),
        };
        if envelope.status == Status::Solved {
            self.check_rules(&answer)?;
        }
        Ok(Some(answer))
    }

    /// Checks a text against the rules that the task states.
    pub(super) fn check_rules(&self, answer: &Answer) -> Result<(), Violation> {
        let rules = &self.setup.params.constraints;
        rules
            .iter()
            .try_for_each(|rule| rule.check(&answer.canonical.text))
            .map_err(Violation::Constraint)?;
        self.executions.check(&answer.in_full(rules))
    }

    fn check_text(&self, written: &FinalText) -> Result<Answer, Violation> {
        let is_listed = listed_sentences(self.canonicalizer.kind(), &self.setup.params.constraints).is_some();
        let joined = if is_listed { written.join_sentences() } else { None };
        if written.is_value && joined.is_none() && self.canonicalizer.kind() != CanonicalKind::Json {
            return Err(Violation::TextNotString);
        }
        let text = joined.as_deref().unwrap_or(&written.text);
        // A choice is checked against its list, which may well contain `P1`.
        let is_choice = self.canonicalizer.kind() == CanonicalKind::Choice;
        if !is_choice && index_of(text.trim()).is_some_and(|index| index < self.proposals.len()) {
            return Err(Violation::HandleAsText { handle: escape::excerpt(text) });
        }
        let canonical = self.canonicalizer.canonicalize(text)?;
        let agent = &self.setup.agents[self.agent];
        let max = match self.canonicalizer.kind() {
            CanonicalKind::Number => decoding::NUMBER_CHARS_MAX,
            CanonicalKind::Text
            | CanonicalKind::Lines
            | CanonicalKind::Json
            | CanonicalKind::Choice
            | CanonicalKind::Verbatim
            | CanonicalKind::Behaviour => agent.text_chars_max(),
        };
        if text.chars().count() >= max {
            // A server that enforces the length closes the string in the middle of a sentence.
            return Err(Violation::TextTooLong { max });
        }
        self.prompt_echo.check(self.canonicalizer.kind(), &canonical.text)?;
        if let Some(handle) = self.handle_in(&canonical.text) {
            return Err(Vacuity::Talk(handle).into());
        }
        Ok(Answer { shown: self.canonicalizer.shown(text), canonical })
    }

    /// Returns the first word of a text that is the handle of a proposal, unless the user has used that word.
    fn handle_in(&self, text: &str) -> Option<String> {
        if self.canonicalizer.kind() == CanonicalKind::Choice {
            return None;
        }
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        let handle = words.find(|word| {
            let is_handle = index_of(word).is_some_and(|index| index < self.proposals.len());
            is_handle && !self.prompt_echo.is_user_word(word)
        });
        handle.map(str::to_owned)
    }

    fn check_answers(&self, envelope: &Envelope) -> Result<(), Violation> {
        let expected = self.owed_answers();
        let answers = envelope.meta.as_ref().map_or(&[][..], |m| &m.answers);
        let found = answers.iter().filter(|a| !a.trim().is_empty()).count();
        if found < expected { Err(Violation::Unanswered { expected, found }) } else { Ok(()) }
    }

    /// Checks a change of answer. An answer that differs from the author's last one needs a named reason, and an answer that the peer has
    /// adopted must stay as it is.
    fn check_change(&self, envelope: &Envelope, answer: Option<&Answer>) -> Result<(), Violation> {
        let Some(answer) = answer else { return Ok(()) };
        if let Some(peer) = &self.seats[1 - self.agent].position
            && let Some(index) = peer.proposal
            && peer.adopted
            && self.proposals[index].author == self.agent
            && self.proposals[index].answer.canonical != answer.canonical
        {
            return Err(Violation::AdoptedReplaced { handle: handle(index) });
        }
        let last = self.seats[self.agent].last_answer.as_ref();
        if last.is_none_or(|last| last.canonical == answer.canonical) {
            return Ok(());
        }
        let change = envelope.meta.as_ref().and_then(|m| m.change.as_ref());
        let names_a_reason = change.is_some_and(AnswerChange::names_a_reason);
        if names_a_reason { Ok(()) } else { Err(Violation::UnnamedChange) }
    }

    /// Checks the program in a reply, and the value that it prints. The prompt says that this value is the final answer, so the program is
    /// its author's declaration.
    pub(super) fn check_program(&self, reply: &str) -> Result<Valid<Box<AcceptedEnvelope>>, Violation> {
        let source = program::runnable_source(reply)?;
        let text = program_answer(&source, &self.setup.canonical, self.executions)?;
        let answer = self.check_text(&FinalText::from(text.as_str()))?;
        self.check_rules(&answer)?;
        let mut envelope = self.wrap_program(&source);
        fill_in(&mut envelope, &answer)?;
        let content = Box::new(AcceptedEnvelope { envelope, answer: Some(answer), adopts: None });
        Ok(Valid { content, object: reply.to_owned() })
    }

    /// Writes an envelope around a program, for the peer and for the record of positions. It adds nothing to the printed value.
    fn wrap_program(&self, source: &str) -> Envelope {
        let own = &self.setup.agents[self.agent];
        let content = serde_json::json!({ "program": source });
        Envelope {
            role: own.name.clone(),
            domain: own.domain.clone(),
            task_understanding: String::new(),
            meta: None,
            public_message: format!("{SOLVED_MARKER} My program prints this."),
            artifact: Artifact { kind: "results".to_owned(), content: StrictValue(content) },
            needs_from_peer: Vec::new(),
            handoff_to: String::new(),
            tags: Vec::new(),
            request: None,
            status: Status::Solved,
            final_solution: None,
        }
    }
}

fn check_marker(envelope: &Envelope) -> Result<(), Violation> {
    match (envelope.status == Status::Solved, envelope.has_solved_marker()) {
        (true, false) => Err(Violation::MarkerMissing),
        (false, true) => Err(Violation::StatusMissing),
        (true, true) | (false, false) => Ok(()),
    }
}

/// Records the digest and the resolved text. A digest that the agent supplied must be right.
fn fill_in(envelope: &mut Envelope, answer: &Answer) -> Result<(), Violation> {
    let digest = answer.canonical.digest.to_string();
    let solution = envelope.final_solution.get_or_insert_with(FinalSolution::default);
    if solution.sha256.as_ref().is_some_and(|supplied| *supplied != digest) {
        return Err(Violation::WrongDigest);
    }
    solution.sha256 = Some(digest);
    solution.canonical_text.get_or_insert_with(|| FinalText::from(answer.shown.as_str()));
    Ok(())
}
