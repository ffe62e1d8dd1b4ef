//! The findings of reviewers, for people: plain text, Markdown for a comment, and annotations for GitHub.
//!
//! The input is the section of a review, and its outcome. The output is text. Words that models wrote are quoted as
//! such: they cannot become a heading, a link or a command of the place where they are shown.

use std::fmt::Write as _;

use protocol::OutcomeKind;
use protocol::review::{ApprovalSection, Finding, ReviewedFinding, ReviewerReport};
use protocol::text::{counted, escape};
use quorum::{Opinion, Severity, Vote};

/// Returns the verdict in one line.
pub fn review_verdict(section: &ApprovalSection, outcome: OutcomeKind) -> String {
    let approving = section.reviews.iter().filter(|review| review.opinion.vote() == Vote::Approve).count();
    let ApprovalSection { reviewers, quorum, .. } = section;
    let verdict = match outcome {
        OutcomeKind::Agreed => "approved",
        OutcomeKind::NoAgreement | OutcomeKind::Abstained => "not approved",
        OutcomeKind::Vetoed => "vetoed",
        OutcomeKind::Budget => "stopped at a limit",
        OutcomeKind::Failed => "not reviewed",
        OutcomeKind::Interrupted => "interrupted",
    };
    format!("{verdict}: {approving} of {reviewers} reviewers approved; the quorum is {quorum}")
}

/// Findings of a review under one title.
struct FindingGroup {
    /// The title, with the number of findings.
    title: String,
    findings: Vec<ReviewedFinding>,
}

/// Returns the findings in groups that are not empty: those that a second reviewer has confirmed, those that no other reviewer has judged,
/// and those that others have judged and not confirmed.
fn group_findings(section: &ApprovalSection) -> Vec<FindingGroup> {
    let (mut confirmed, mut unjudged, mut doubted) = (Vec::new(), Vec::new(), Vec::new());
    for found in section.all_findings() {
        if found.judged_by == 0 {
            unjudged.push(found);
        } else if found.is_doubted() {
            doubted.push(found);
        } else {
            confirmed.push(found);
        }
    }
    let is_asked = section.findings.is_some();
    let mut groups = Vec::new();
    for (findings, kind) in [
        (confirmed, ", confirmed by a second reviewer"),
        (unjudged, if is_asked { ", judged by no other reviewer" } else { "" }),
        (doubted, ", not confirmed by another reviewer"),
    ] {
        if !findings.is_empty() {
            groups.push(FindingGroup { title: counted(findings.len(), "finding") + kind, findings });
        }
    }
    groups
}

/// Returns who has found a fault, and how many of those who judged it have confirmed it.
fn describe_finders(found: &ReviewedFinding) -> String {
    let ReviewedFinding { reviewer, judged_by, confirmed_by, .. } = found;
    if *judged_by == 0 {
        return format!("by {reviewer}");
    }
    format!("by {reviewer}, confirmed by {} of {judged_by}", confirmed_by.len())
}

/// Returns a review as text for a terminal or a log.
pub fn review_text(section: &ApprovalSection, outcome: OutcomeKind) -> String {
    let mut out = review_verdict(section, outcome) + "\n";
    for FindingGroup { title, findings } in group_findings(section) {
        let _ = writeln!(out, "\n{title}:");
        for found in &findings {
            let Finding { path, line, quote, problem, severity } = &found.finding;
            let _ = writeln!(out, "  {path}:{line}: {severity}: {}", escape::one_line(problem));
            let _ = writeln!(out, "    {}", quote.trim_end());
            let _ = writeln!(out, "    {}", describe_finders(found));
        }
    }
    out.push('\n');
    for review in &section.reviews {
        let _ = writeln!(out, "{} {}", review.reviewer, describe_opinion(review, section));
    }
    if let Some(name) = describe_silent(section) {
        let _ = writeln!(out, "\n{name}");
    }
    if let Some(tolerance) = &section.tolerance {
        // One sentence a line, as a terminal shows them.
        let _ = writeln!(out, "\nquorum: {}", escape::one_line(tolerance).replace(". ", ".\n"));
    }
    out
}

/// Returns a review as Markdown, for a comment or a summary.
pub fn review_markdown(section: &ApprovalSection, outcome: OutcomeKind) -> String {
    let mut out = format!("### Review: {}\n\n", review_verdict(section, outcome));
    out.push_str("| Reviewer | Verdict |\n|---|---|\n");
    for review in &section.reviews {
        let _ = writeln!(
            out,
            "| {} | {} |",
            escape_markdown(&review.reviewer),
            escape_markdown(&describe_opinion(review, section))
        );
    }
    for FindingGroup { title, findings } in group_findings(section) {
        let _ = writeln!(out, "\n#### {title}\n");
        for found in &findings {
            let Finding { path, line, quote, problem, severity } = &found.finding;
            let place = escape_markdown(&format!("{path}:{line}"));
            let who = escape_markdown(&describe_finders(found));
            let _ = writeln!(out, "- **{severity}** {place}: {} ({who})", escape_markdown(problem));
            let _ = writeln!(out, "\n      {}\n", escape::plain(quote).replace('\n', " ").trim_end());
        }
    }
    if let Some(name) = describe_silent(section) {
        let _ = writeln!(out, "\n{}", escape_markdown(&name));
    }
    if let Some(tolerance) = &section.tolerance {
        let _ = writeln!(out, "\nQuorum: {}", escape_markdown(tolerance));
    }
    out
}

/// Returns a review as workflow commands of GitHub Actions, one per finding. GitHub shows them on the lines of the
/// change. A finding that others have judged and not confirmed is no error.
pub fn review_annotations(section: &ApprovalSection, outcome: OutcomeKind) -> String {
    let mut out = String::new();
    for found in &section.all_findings() {
        let Finding { path, line, quote, problem, severity } = &found.finding;
        let is_doubted = found.is_doubted();
        let level = match severity {
            Severity::Low => "notice",
            Severity::High | Severity::Critical if !is_doubted => "error",
            Severity::Medium | Severity::High | Severity::Critical => "warning",
        };
        // A removed line has no place in the new file, and a line of the diff itself has none at all.
        let has_line = *line > 0 && !quote.starts_with('-');
        let line = if has_line { format!(",line={line}") } else { String::new() };
        let doubt = if is_doubted { ", not confirmed" } else { "" };
        let title = escape_property(&format!("{} ({severity}{doubt})", found.reviewer));
        let file = escape_property(path);
        let _ = writeln!(out, "::{level} file={file}{line},title={title}::{}", escape_data(problem));
    }
    let level = if outcome == OutcomeKind::Agreed { "notice" } else { "error" };
    let tolerance = section.tolerance.as_ref().map(|words| format!("\nquorum: {words}")).unwrap_or_default();
    let verdict = review_verdict(section, outcome) + &tolerance;
    let _ = writeln!(out, "::{level} title=Review::{}", escape_data(&verdict));
    out
}

/// Returns a reviewer's opinion of the whole change. The findings are the reason of a rejection, and are not repeated.
fn describe_opinion(review: &ReviewerReport, section: &ApprovalSection) -> String {
    let (words, why) = match &review.opinion {
        Opinion::Approve { confidence, notes } => (format!("approves, {} % sure", confidence / 100), notes),
        Opinion::Reject { reason, severity } => (format!("rejects ({severity})"), reason),
        Opinion::Abstain { reason } => ("abstains".to_owned(), reason),
    };
    let is_of_findings = matches!(review.opinion, Opinion::Reject { .. }) && !review.findings.is_empty();
    if is_of_findings {
        let all = section.all_findings();
        let mut own = all.iter().filter(|found| found.reviewer == review.reviewer);
        let is_doubted = own.all(ReviewedFinding::is_doubted);
        return if is_doubted { format!("{words}, without a confirmed finding") } else { words };
    }
    format!("{words}: {}", escape::one_line(why))
}

/// Returns a line on the reviewers who did not read the whole change, if there are any.
fn describe_silent(section: &ApprovalSection) -> Option<String> {
    let count = section.reviewers.saturating_sub(section.reviews.len());
    if count == 0 {
        return None;
    }
    Some(format!("{count} of {} reviewers did not read the whole change", section.reviewers))
}

/// Returns a text in one line that Markdown treats as nothing but text.
fn escape_markdown(text: &str) -> String {
    let line = escape::plain(text).replace('\n', " ");
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // The text of a model must not notify a person or link an issue.
            '@' => out.push_str("@\u{2060}"),
            '#' => out.push_str("#\u{2060}"),
            c if c.is_ascii_punctuation() && !".,:;/()%'\"=+-".contains(c) => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    // An address is displayed, but cannot be followed.
    out.replace("://", ":\u{2060}//")
}

/// Returns a text as the message of a workflow command.
fn escape_data(text: &str) -> String {
    escape::plain(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns a text as a property of a workflow command.
fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a finding of Security that these reviewers have confirmed, of three that have judged it.
    fn reviewed(finding: &Finding, confirmed_by: &[&str]) -> ReviewedFinding {
        ReviewedFinding {
            reviewer: "Security".to_owned(),
            finding: finding.clone(),
            judged_by: 3,
            confirmed_by: confirmed_by.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn section() -> ApprovalSection {
        let finding = |quote: &str, severity, problem: &str| Finding {
            path: "src/a,b.rs".to_owned(),
            line: 7,
            quote: quote.to_owned(),
            problem: problem.to_owned(),
            severity,
        };
        let findings = vec![
            finding("+x = 1", Severity::High, "it is 1\n::error::no"),
            finding("-y", Severity::Low, "see [here](https://x.example) @all #1 <b>"),
        ];
        let reject = Opinion::Reject { reason: "it is | wrong".to_owned(), severity: Severity::High };
        let approve = Opinion::Approve { confidence: 9000, notes: "it is fine".to_owned() };
        let of = |reviewer: &str, opinion, findings| ReviewerReport {
            reviewer: reviewer.to_owned(),
            opinion,
            findings,
        };
        let all = vec![reviewed(&findings[0], &["Quality"]), reviewed(&findings[1], &[])];
        let reviews = vec![of("Security", reject, findings), of("Quality", approve, Vec::new())];
        ApprovalSection {
            reviewers: 4,
            faults: 1,
            quorum: 3,
            parts: 1,
            tolerance: None,
            reviews,
            findings: Some(all),
        }
    }

    #[test]
    fn review_text_shows_findings_with_places() {
        let text = review_text(&section(), OutcomeKind::NoAgreement);
        assert!(text.starts_with("not approved: 1 of 4 reviewers approved; the quorum is 3\n"), "{text}");
        let confirmed = "\n1 finding, confirmed by a second reviewer:\n  src/a,b.rs:7: high: it is 1";
        assert!(
            text.contains(confirmed) && text.contains("\n    +x = 1\n    by Security, confirmed by 1 of 3\n"),
            "{text}"
        );
        assert!(
            text.contains("\n1 finding, not confirmed by another reviewer:\n  src/a,b.rs:7: low: see"),
            "{text}"
        );
        assert!(
            text.contains("\nSecurity rejects (high)\nQuality approves, 90 % sure: it is fine\n"),
            "{text}"
        );
        let mut alone = section();
        alone.findings.as_mut().unwrap()[0].confirmed_by.clear();
        let text = review_text(&alone, OutcomeKind::NoAgreement);
        assert!(text.contains("\nSecurity rejects (high), without a confirmed finding\n"), "{text}");
        assert!(text.ends_with("2 of 4 reviewers did not read the whole change\n"), "{text}");
    }

    #[test]
    fn model_text_is_no_command_or_link() {
        let commands = review_annotations(&section(), OutcomeKind::NoAgreement);
        let lines: Vec<&str> = commands.lines().collect();
        assert_eq!(lines.len(), 3, "a line break of a model begins no command: {commands}");
        assert_eq!(lines[0], "::error file=src/a%2Cb.rs,line=7,title=Security (high)::it is 1%0A::error::no");
        assert!(lines[1].starts_with("::notice file=src/a%2Cb.rs,title="), "a line that goes has no place");
        assert_eq!(
            lines[2],
            "::error title=Review::not approved: 1 of 4 reviewers approved; the quorum is 3"
        );
        let page = review_markdown(&section(), OutcomeKind::NoAgreement);
        for live in ["see [here](", "@all", "#1 ", "<b>", "https://", "is | wrong"] {
            assert!(!page.contains(live), "{live}: {page}");
        }
    }
}
