//! The change that reviewers have read, with their findings at its lines.
//!
//! The input is the documents of a review and its findings. The output is the lines of the change, each with the findings on it. Of a long
//! change only the surroundings of its findings are shown.

use serde::Serialize;

use crate::protocol::review::{ApprovalSection, DiffLine, DiffSign, Finding, diff_lines};
use crate::protocol::{Document, Section};
use crate::text::escape;

/// The longest change that is shown whole, in lines.
const WHOLE_LINES_MAX: usize = 1_000;

/// The number of lines that are shown before and after a finding in a longer change.
const AROUND: usize = 5;

/// A line of a change.
#[derive(Debug, Serialize)]
pub(super) struct ShownLine {
    /// `added`, `removed`, `kept`, `head`, or `gap` for lines that are left out.
    kind: &'static str,
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

/// Returns the lines of the change, or none if the run is no review.
pub(super) fn change(documents: &[Document], section: &Section) -> Vec<ShownLine> {
    let Section::Approval(section) = section else { return Vec::new() };
    let lines: Vec<DiffLine> = documents.iter().flat_map(|document| diff_lines(&document.text)).collect();
    let found: Vec<Vec<ShownFinding>> = lines.iter().map(|line| findings(section, line)).collect();
    let is_whole = lines.len() <= WHOLE_LINES_MAX;
    let is_near = |at: usize| {
        let near = at.saturating_sub(AROUND)..found.len().min(at + AROUND + 1);
        found[near].iter().any(|findings| !findings.is_empty())
    };
    let is_shown: Vec<bool> = (0..lines.len()).map(|at| is_whole || is_near(at)).collect();
    let mut shown: Vec<ShownLine> = Vec::new();
    for ((line, findings), is_shown) in lines.into_iter().zip(found).zip(is_shown) {
        if is_shown {
            shown.push(ShownLine::new(&line, findings));
        } else if shown.last().is_none_or(|last| last.kind != "gap") {
            shown.push(ShownLine { kind: "gap", number: None, text: "…".to_owned(), findings: Vec::new() });
        }
    }
    shown
}

fn findings(section: &ApprovalSection, line: &DiffLine) -> Vec<ShownFinding> {
    let is_on = |finding: &&Finding| {
        (&finding.path, finding.line, &finding.quote) == (&line.path, line.number, &line.shown)
    };
    let of_all = section.reviews.iter().flat_map(|review| {
        review.findings.iter().filter(is_on).map(|finding| ShownFinding {
            reviewer: escape::terminal(&review.reviewer),
            severity: finding.severity.to_string(),
            problem: escape::terminal(&finding.problem),
        })
    });
    of_all.collect()
}

impl ShownLine {
    fn new(line: &DiffLine, findings: Vec<ShownFinding>) -> Self {
        let kind = match line.sign {
            DiffSign::Added => "added",
            DiffSign::Removed => "removed",
            DiffSign::Kept => "kept",
            DiffSign::Head => "head",
        };
        let number = (line.sign != DiffSign::Head).then_some(line.number);
        Self { kind, number, text: escape::terminal(&line.shown), findings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bft::{Opinion, Severity};
    use crate::protocol::review::Reviewed;

    fn section(line: u64, quote: &str) -> Section {
        let finding = Finding {
            path: "a".to_owned(),
            line,
            quote: quote.to_owned(),
            problem: "It is wrong.".to_owned(),
            severity: Severity::High,
        };
        let opinion = Opinion::Abstain { reason: String::new() };
        let review = Reviewed { reviewer: "Quality".to_owned(), opinion, findings: vec![finding] };
        let reviews = vec![review];
        Section::Approval(Box::new(ApprovalSection { reviewers: 4, faults: 1, quorum: 3, parts: 1, reviews }))
    }

    fn diff(lines: usize) -> Vec<Document> {
        let added: Vec<String> = (1..=lines).map(|line| format!("+line {line}")).collect();
        let added = added.join("\n");
        let text = format!("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1,{lines} @@\n{added}\n");
        vec![Document { name: "change.diff".to_owned(), text: text.into(), redacted: false }]
    }

    #[test]
    fn a_finding_is_at_its_line() {
        let shown = change(&diff(3), &section(2, "+line 2"));
        let with_findings: Vec<_> = shown.iter().filter(|line| !line.findings.is_empty()).collect();
        assert_eq!(with_findings.len(), 1, "{shown:?}");
        assert_eq!((with_findings[0].number, with_findings[0].text.as_str()), (Some(2), "+line 2"));
        assert_eq!(shown.last().map(|line| line.kind), Some("added"), "a short change is shown whole");
    }

    #[test]
    fn of_a_long_change_the_surroundings_of_its_findings_are_shown() {
        let shown = change(&diff(2_000), &section(1_000, "+line 1000"));
        let numbers: Vec<u64> = shown.iter().filter_map(|line| line.number).collect();
        assert_eq!(numbers, (995..=1_005).collect::<Vec<_>>());
        assert_eq!(shown.iter().filter(|line| line.kind == "gap").count(), 2);
    }
}
