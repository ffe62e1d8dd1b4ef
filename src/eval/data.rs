//! The items of an evaluation: tasks whose right answers are known.
//!
//! The input is a file in the form of a batch's tasks or of a known public set. The output is its tasks, all of one kind of answer. Every
//! row must be usable: a figure over the rows that happened to be readable would be one over other items than the person meant.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use super::error::EvalError;
use crate::batch::{DataNote, DocumentLine, Grader, TaskForm, TaskLine, TaskLines, TaskRow, require_answer};
use protocol::text::{CanonicalKind, CanonicalRule, counted};

/// The parts of names of public sets, which models may have read while they were trained.
const PUBLIC_SETS: [&str; 6] = ["gsm8k", "svamp", "mmlu", "humaneval", "bbh", "truthfulqa"];

/// The fewest clusters that are drawn again for an interval: of fewer, the draws say too little about others.
const CLUSTERS_MIN: usize = 10;

/// The items of an evaluation.
#[derive(Clone, Debug)]
pub struct EvalData {
    /// The note about the file.
    pub note: DataNote,
    /// The tasks, in the order of the file. Each has an answer and the rule by which it is compared.
    pub tasks: Vec<TaskLine>,
    /// The kind of all answers.
    pub kind: CanonicalKind,
}

/// Reads the items of an evaluation: at most `limit`. `kind` is for rows that name none.
/// Without it, an answer that is a JSON number is compared as a number, unless its grader reads texts. Any other is compared as text.
///
/// Returns [`EvalError`] with the line of the first row that cannot be used.
pub(super) fn read_data(
    path: &Path,
    form: TaskForm,
    kind: Option<CanonicalKind>,
    limit: Option<usize>,
) -> Result<EvalData, EvalError> {
    let (note, _) = DataNote::read(path).map_err(EvalError::data(path))?;
    let file = File::open(path).map_err(EvalError::data(path))?;
    let lines = TaskLines::open(file, form).map_err(EvalError::data(path))?;
    let whole = std::path::absolute(path).map_err(EvalError::data(path))?;
    let folder = whole.parent().unwrap_or(&whole);
    let mut tasks: Vec<TaskLine> = Vec::new();
    let mut is_guessed = false;
    for line in lines.take(limit.unwrap_or(usize::MAX)) {
        let TaskRow { number, task, .. } = line.map_err(EvalError::data(path))?;
        let mut task = task.map_err(|(_, why)| EvalError::row(path, number, why))?;
        is_guessed |= kind.is_none() && task.canonical.is_none();
        let is_number = task.answer_is_number && task.grader == Grader::Exact;
        let guess = if is_number { CanonicalKind::Number } else { CanonicalKind::Text };
        let rule = task.canonical.get_or_insert_with(|| CanonicalRule::from(kind.unwrap_or(guess))).clone();
        require_usable(&task, &rule).map_err(|why| EvalError::row(path, number, why))?;
        if let Some(first) = tasks.first().and_then(|first| first.canonical.as_ref())
            && first.kind != rule.kind
        {
            let (kind, other) = (rule.kind.name(), first.kind.name());
            let remedy = if is_guessed { "name one with --canonical, or " } else { "" };
            let why = format!(
                "its answer is of kind {kind}, and those before are of kind {other}; {remedy}evaluate each kind by itself"
            );
            return Err(EvalError::row(path, number, why));
        }
        for document in &mut task.documents {
            if let DocumentLine::File(path) = document {
                *path = folder.join(&path);
            }
        }
        tasks.push(task);
    }
    let kind = tasks.first().and_then(|task| task.canonical.as_ref()).map(|rule| rule.kind);
    let kind = kind.ok_or_else(|| EvalError::Empty(path.to_owned()))?;
    Ok(EvalData { note, tasks, kind })
}

/// Refuses a label of clusters that a task lacks, or that has too few values for an interval over clusters.
pub(super) fn require_clusters(tasks: &[TaskLine], label: &str) -> Result<(), EvalError> {
    let mut values = BTreeSet::new();
    for task in tasks {
        let Some(value) = task.meta.get(label) else {
            let why = format!("is not in the `meta` of task `{}`; add it, or choose another label", task.id);
            return Err(EvalError::Clusters { label: label.to_owned(), why });
        };
        values.insert(value);
    }
    if values.len() < CLUSTERS_MIN {
        let found = counted(values.len(), "value");
        let why = format!("has {found}, and an interval over clusters needs {CLUSTERS_MIN} or more");
        return Err(EvalError::Clusters { label: label.to_owned(), why });
    }
    Ok(())
}

/// Refuses a task without an answer that code can compare.
fn require_usable(task: &TaskLine, rule: &CanonicalRule) -> Result<(), String> {
    if task.answer.is_none() {
        return Err(
            "it has no `answer`; add the right one, because an evaluation counts right answers".to_owned()
        );
    }
    if task.grader == Grader::Command {
        return Err(
            "its grader is a command, and an evaluation compares with an answer; name another grader"
                .to_owned(),
        );
    }
    if task.roleset.is_some() {
        return Err("it names a roleset; remove it, because the arms of an evaluation do".to_owned());
    }
    require_answer(task, rule)
}

/// Returns true if the name of a file says that it is a known public set.
pub(super) fn is_public(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    PUBLIC_SETS.iter().any(|set| words.iter().any(|word| word == set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_set_is_known_by_its_name() {
        for name in ["data/gsm8k_test.jsonl", "MMLU-redux-8.jsonl", "SVAMP.json"] {
            assert!(is_public(name), "{name}");
        }
        for name in ["my-math.jsonl", "search.jsonl", "mine.csv"] {
            assert!(!is_public(name), "{name}");
        }
    }
}
