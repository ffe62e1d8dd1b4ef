//! The facts that no record can prove, which `verify` names: as words for programs, and as lines for people.
//!
//! The input is the kind of the record. The output is its facts. All other facts are derived again and compared.

/// The kind of a record, as far as it adds facts that the record cannot prove.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordKind {
    /// Whether it is of many runs.
    pub(super) is_batch: bool,
    /// Whether a run has a calibration.
    pub(super) is_calibrated: bool,
    /// Whether it is of a single run that shared a budget of tokens with others.
    pub(super) is_paced: bool,
}

/// The facts of every run, by their names.
const OF_RUN: [&str; 15] = [
    "endpoint",
    "model",
    "tokens",
    "cost",
    "times",
    "receipts",
    "attempts",
    "failures",
    "structured",
    "labels",
    "session_without_file",
    "documents_without_file",
    "check_output",
    "programs_not_run_again",
    "unused_settings",
];

/// The further facts of a batch.
const OF_BATCH: [&str; 4] = ["batch_notes", "refused", "progress", "right"];

/// The name of the permits of a single run.
const PERMIT: &str = "permit";

/// The name of the calibration.
const CALIBRATION: &str = "calibration";

/// The facts of every run in words.
const RUN_IN_WORDS: [&str; 5] = [
    "endpoints, model names, token counts, costs and times: only the file's holder vouches for them",
    "how requests were sent: receipts, attempts, retries, timeouts, failures and forms of replies",
    "labels, and sessions and searched documents whose files are not here",
    "the output of checks, and programs that are not run again",
    "settings and words that neither a prompt nor the outcome depends on, such as the name of the roleset",
];

/// The further facts of a batch in words.
const BATCH_IN_WORDS: [&str; 2] = [
    "refused-N.jsonl, progress-N.json and, of batch.json, all but the number of shards and the digests of columns",
    "whether texts are right, which depends on answers and on commands that no journal holds",
];

/// Returns the names of the facts about a record of this kind.
pub(super) fn names(kind: RecordKind) -> Vec<&'static str> {
    let RecordKind { is_batch, is_calibrated, is_paced } = kind;
    let mut names = OF_RUN.to_vec();
    if is_batch {
        names.extend(OF_BATCH);
    }
    if is_paced {
        names.push(PERMIT);
    }
    if is_calibrated {
        names.push(CALIBRATION);
    }
    names
}

/// Returns the same facts in lines.
pub(super) fn lines(kind: RecordKind) -> Vec<String> {
    let RecordKind { is_batch, is_calibrated, is_paced } = kind;
    let mut words = RUN_IN_WORDS.to_vec();
    if is_batch {
        words.extend(BATCH_IN_WORDS);
    }
    if is_paced {
        words.push("permit: whether its samples were permitted follows from the other runs of its batch");
    }
    if is_calibrated {
        words.push("the calibration; `consensus verify --calibration FILE DIR` makes it again of its runs");
    }
    let mut lines = Vec::new();
    for words in words {
        let heading = if lines.is_empty() { "not covered" } else { "" };
        lines.push(format!("  {heading:11}  {words}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_record_adds_its_facts() {
        assert_eq!(names(RecordKind::default()), OF_RUN);
        let batch = RecordKind { is_batch: true, is_calibrated: true, ..RecordKind::default() };
        assert_eq!(names(batch).len(), OF_RUN.len() + OF_BATCH.len() + 1);
        let paced = RecordKind { is_paced: true, ..RecordKind::default() };
        assert_eq!(names(paced).last(), Some(&PERMIT));
        let lines = lines(batch);
        assert_eq!(lines.len(), 8);
        assert!(lines[0].starts_with("  not covered  endpoints, model names"), "{}", lines[0]);
        assert!(lines[1..].iter().all(|line| line.starts_with("               ")), "{lines:?}");
    }
}
