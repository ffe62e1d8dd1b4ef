//! The setup of a run inside a `map_reduce`, the tasks that such runs are given, and the most that all of them can cost.
//!
//! Documents and facts are beside the task as data, as in every run. The rules of a task state and enforce the form of its answer.

use std::fmt::Write as _;

use super::state::{Job, Material};
use crate::contract::{AgentSetup, Document, ProtocolParams, Setup, Task, WorstCase, tokens};
use crate::text::evidence::{Answers, QUOTES_MAX, Quotes, SENTENCE_BYTES_MAX};
use crate::text::{CanonicalKind, Constraint};

/// The number of bytes for one token: the estimate of a prompt, the other way round.
const BYTES_A_TOKEN: u64 = 3;

/// Returns the setup of a run inside this one. `material` has the sentences that it may choose, and the text that it works from where it
/// reads no piece.
pub(super) fn part_setup<P: ProtocolParams>(setup: &Setup<P>, job: &Job, material: &Material) -> Setup<P> {
    let question = setup.task.prompt.trim();
    let chars_max = setup.agents.iter().map(AgentSetup::text_chars_max).min().unwrap_or(0);
    let (name, text) = match job {
        Job::Read(index) => piece(setup, *index),
        Job::Merge(_) | Job::Answer => ("facts".to_owned(), material.text.as_str()),
    };
    let sentences = material.sentences.iter().cloned();
    let (prompt, constraint) = match job {
        Job::Read(index) => {
            let count = setup.chunk_plan.as_ref().map_or(0, |chunk_plan| chunk_plan.pieces.len());
            let quotes = Quotes::new(sentences, chars_max, QUOTES_MAX);
            (read_prompt(question, index + 1, count), Constraint::Quotes(quotes))
        }
        Job::Merge(facts) => {
            // At most half of the facts are kept, so that the merges come to an end.
            let quotes = Quotes::new(sentences, chars_max, facts.len().div_ceil(2));
            (merge_prompt(question), Constraint::Quotes(quotes))
        }
        Job::Answer => {
            let numbers = material.facts.iter().map(|(number, _)| *number).collect();
            (answer_prompt(question), Constraint::Answers(Answers::new(numbers, chars_max)))
        }
    };
    let mut params = setup.params.clone();
    if let Some(constraints) = params.constraints_mut() {
        *constraints = vec![constraint];
    }
    // Only the answer is a final text.
    let check_command = if matches!(job, Job::Answer) { setup.check_command.clone() } else { None };
    Setup {
        roleset: setup.roleset.clone(),
        task: Task {
            prompt,
            documents: vec![Document { name, text: text.into(), redacted: false }],
            is_searched: false,
        },
        seed: setup.seed,
        agents: setup.agents.clone(),
        arbiter: setup.arbiter.clone(),
        canonical: CanonicalKind::Json.into(),
        params,
        rules: setup.rules.clone(),
        check_command,
        interpreter: setup.interpreter,
        chunk_plan: None,
        memos: setup.memos.clone(),
    }
}

/// Returns a piece's document and text.
fn piece<P>(setup: &Setup<P>, index: usize) -> (String, &str) {
    let chunk_plan = setup.chunk_plan.as_ref();
    let found = chunk_plan.and_then(|chunk_plan| chunk_plan.pieces.get(index)).and_then(|piece| {
        let document = setup.task.documents.get(piece.document)?;
        Some((document.name.clone(), document.text.get(piece.start..piece.end)?))
    });
    // A setup is checked before its machine is made.
    found.unwrap_or_default()
}

/// Returns the task for readers of a piece.
fn read_prompt(question: &str, number: usize, count: usize) -> String {
    format!(
        "The document is part {number} of {count} of a longer text. Somebody asks about the whole text: {question}\n\nList the \
         sentences of this part that answer some of this. If none does, which is often so, the list is empty."
    )
}

/// Returns the task for runs that choose among facts.
fn merge_prompt(question: &str) -> String {
    format!(
        "The document lists sentences of a longer text. Somebody asks about the whole text: {question}\n\nList those of the \
         sentences that answer some of this. If none does, the list is empty."
    )
}

/// Returns the task for the run that answers.
fn answer_prompt(question: &str) -> String {
    format!(
        "{question}\n\nThe document lists the facts that were found in a longer text, each with its number in brackets. Answer \
         from these facts alone."
    )
}

/// Returns facts with their numbers, as one document.
pub(super) fn list_facts(facts: &[(usize, String)]) -> String {
    let mut list = String::new();
    for (number, fact) in facts {
        // Writing to a string cannot fail.
        let _ = writeln!(list, "[{number}] {fact}");
    }
    list
}

/// Returns the most that such a run can use: every piece is read, and there are as many merges as the longest facts need.
pub fn worst_case<P: ProtocolParams>(setup: &Setup<P>) -> WorstCase {
    let mut total = WorstCase::default();
    let Some(chunk_plan) = &setup.chunk_plan else { return total };
    for index in 0..chunk_plan.pieces.len() {
        add(&mut total, part_setup(setup, &Job::Read(index), &Material::default()).worst_case());
    }
    let bytes = usize::try_from(chunk_plan.tokens_max.saturating_mul(BYTES_A_TOKEN)).unwrap_or(usize::MAX);
    let facts = Material { text: "x".repeat(bytes), ..Material::default() };
    let merge = part_setup(setup, &Job::Merge(vec![1]), &facts).worst_case();
    // Every reader names as many sentences as it may, and each sentence is as long as possible.
    let name = setup.task.documents.iter().map(|document| tokens(&document.name)).max().unwrap_or(0);
    let of_one = (SENTENCE_BYTES_MAX as u64).div_ceil(BYTES_A_TOKEN) + name;
    let count = (QUOTES_MAX * chunk_plan.pieces.len()) as u64;
    if count.saturating_mul(of_one) > chunk_plan.tokens_max {
        // Every run leaves out at least one fact. After a run that comes to nothing, there are no further merges.
        for _ in 0..count {
            add(&mut total, merge);
        }
    }
    add(&mut total, part_setup(setup, &Job::Answer, &facts).worst_case());
    total
}

fn add(total: &mut WorstCase, part: WorstCase) {
    total.calls += part.calls;
    total.prompt_tokens += part.prompt_tokens;
    total.completion_tokens += part.completion_tokens;
    total.context_tokens = total.context_tokens.max(part.context_tokens);
}
