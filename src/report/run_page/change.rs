//! The change that reviewers have read, with their findings at its lines.
//!
//! The input is the documents of a review and its findings. The output is the files of the change with their lines, each line with the
//! findings on it. Of a long change only the surroundings of its findings are shown.

use std::collections::HashMap;

use serde::Serialize;

use protocol::review::{ApprovalSection, DiffLine, DiffSign, ReviewedFinding, diff_lines};
use protocol::text::{counted, escape};
use protocol::{Document, Section};

/// The longest change that is shown whole, in lines.
const WHOLE_LINES_MAX: usize = 1_000;

/// The number of lines that are shown before and after a finding in a longer change.
const AROUND: usize = 5;

/// A file of the change.
#[derive(Debug, Serialize)]
pub(super) struct ShownFile {
    pub(super) path: String,
    lines: Vec<ShownLine>,
}

/// A line of a file.
#[derive(Debug, Serialize)]
struct ShownLine {
    /// The kind of the line; `None` for a line in place of others that are left out.
    kind: Option<DiffSign>,
    /// The number of the line in its file; `None` for a line of the diff itself.
    number: Option<u64>,
    text: String,
    findings: Vec<ShownFinding>,
}

/// A finding on a line.
#[derive(Debug, Serialize)]
struct ShownFinding {
    reviewer: String,
    severity: String,
    problem: String,
}

/// Returns the files of the change, or none if the run is no review.
pub(super) fn change(documents: &[Document], section: &Section) -> Vec<ShownFile> {
    let Section::Approval(section) = section else { return Vec::new() };
    let lines: Vec<DiffLine> = documents.iter().flat_map(|document| diff_lines(&document.text)).collect();
    let is_whole = lines.len() <= WHOLE_LINES_MAX;
    let files = lines.chunk_by(|one, other| one.path == other.path);
    let shown = files.map(|lines| ShownFile {
        path: escape::terminal(&lines[0].path),
        lines: show_lines(lines, section, is_whole),
    });
    shown.collect()
}

/// Returns the lines of a file: all of them, or those around its findings.
fn show_lines(lines: &[DiffLine], section: &ApprovalSection, is_whole: bool) -> Vec<ShownLine> {
    let mut by_line: HashMap<u64, Vec<ReviewedFinding>> = HashMap::new();
    for found in section.all_findings().into_iter().filter(|found| *found.finding.path == *lines[0].path) {
        by_line.entry(found.finding.line).or_default().push(found);
    }
    let mut shown = Vec::new();
    for line in lines {
        let findings = by_line.get(&line.number).map(Vec::as_slice).unwrap_or_default();
        shown.push(ShownLine::new(line, findings));
    }
    let mut is_shown = vec![is_whole; lines.len()];
    for at in (0..shown.len()).filter(|at| !shown[*at].findings.is_empty()) {
        is_shown[at.saturating_sub(AROUND)..shown.len().min(at + AROUND + 1)].fill(true);
    }
    let mut visible = Vec::new();
    let mut left_out = 0;
    for (line, is_shown) in shown.into_iter().zip(is_shown) {
        if !is_shown {
            left_out += 1;
            continue;
        }
        visible.extend(ShownLine::gap(std::mem::take(&mut left_out)));
        visible.push(line);
    }
    visible.extend(ShownLine::gap(left_out));
    visible
}

impl ShownLine {
    fn new(line: &DiffLine, findings: &[ReviewedFinding]) -> Self {
        let number = (line.sign != DiffSign::Head).then_some(line.number);
        let mut of_line = Vec::new();
        for found in findings.iter().filter(|found| found.finding.quote == line.shown) {
            let doubt = if found.is_doubted() { ", not confirmed" } else { "" };
            of_line.push(ShownFinding {
                reviewer: escape::terminal(&found.reviewer),
                severity: format!("{}{doubt}", found.finding.severity),
                problem: escape::terminal(&found.finding.problem),
            });
        }
        let text = escape::terminal(&line.shown);
        Self { kind: Some(line.sign), number, text, findings: of_line }
    }

    /// Returns the line in place of so many others, if there are any.
    fn gap(left_out: u64) -> Option<Self> {
        if left_out == 0 {
            return None;
        }
        let text = format!("… {} left out", counted(left_out, "line"));
        Some(Self { kind: None, number: None, text, findings: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::review::{Finding, ReviewerReport};
    use quorum::{Opinion, Severity};

    fn section(line: u64, quote: &str) -> Section {
        let finding = Finding {
            path: "b".to_owned(),
            line,
            quote: quote.to_owned(),
            problem: "It is wrong.".to_owned(),
            severity: Severity::High,
        };
        let opinion = Opinion::Abstain { reason: String::new() };
        let review = ReviewerReport { reviewer: "Quality".to_owned(), opinion, findings: vec![finding] };
        let reviews = vec![review];
        Section::Approval(Box::new(ApprovalSection {
            reviewers: 4,
            faults: 1,
            quorum: 3,
            parts: 1,
            tolerance: None,
            reviews,
            findings: None,
        }))
    }

    /// Returns a diff that adds so many lines to each of two files.
    fn diff(lines: usize) -> Vec<Document> {
        let added: Vec<String> = (1..=lines).map(|line| format!("+line {line}")).collect();
        let added = added.join("\n");
        let file = |name| {
            format!(
                "diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,{lines} @@\n{added}\n"
            )
        };
        let text = [file("a"), file("b")].concat();
        vec![Document { name: "change.diff".to_owned(), text: text.into(), redacted: false }]
    }

    #[test]
    fn finding_is_shown_at_its_line() {
        let shown = change(&diff(3), &section(2, "+line 2"));
        let [first, second] = &shown[..] else { panic!("a short change is shown whole: {shown:?}") };
        assert!(first.lines.iter().all(|line| line.findings.is_empty()), "{first:?}");
        let found = second.lines.iter().find(|line| !line.findings.is_empty()).unwrap();
        assert_eq!((second.path.as_str(), found.number, found.text.as_str()), ("b", Some(2), "+line 2"));
        assert_eq!(second.lines.last().map(|line| line.kind), Some(Some(DiffSign::Added)));
    }

    #[test]
    fn long_change_shows_surroundings_of_findings() {
        let shown = change(&diff(2_000), &section(1_000, "+line 1000"));
        let [other, file] = &shown[..] else { panic!("each file is named: {}", shown.len()) };
        assert_eq!((other.path.as_str(), other.lines.len()), ("a", 1));
        let numbers: Vec<u64> = file.lines.iter().filter_map(|line| line.number).collect();
        assert_eq!((file.path.as_str(), numbers), ("b", (995..=1_005).collect()));
        let gaps: Vec<&str> =
            file.lines.iter().filter(|line| line.kind.is_none()).map(|line| line.text.as_str()).collect();
        assert_eq!(gaps, ["… 998 lines left out", "… 995 lines left out"]);
    }
}
