//! The findings of reviewers, for code hosts, as SARIF 2.1.0 (OASIS) with one run for each reviewer.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crypto::Digest;
use protocol::review::{ApprovalSection, Finding, ReviewedFinding, ReviewerReport};
use quorum::Severity;

/// Returns the findings of a review as a SARIF document.
///
/// A finding that others have judged and not confirmed is no error. A finding on a removed line has no place in the new file, so it refers to
/// the file alone.
pub fn sarif(section: &ApprovalSection) -> Value {
    let mut runs: Vec<Value> = section.reviews.iter().map(|review| run(review, section)).collect();
    if let Some(tolerance) = &section.tolerance {
        for run in &mut runs {
            run["properties"] = json!({"quorum": tolerance});
        }
    }
    json!({"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": runs})
}

fn run(review: &ReviewerReport, section: &ApprovalSection) -> Value {
    let rule = format!("review/{}", review.reviewer);
    let all = section.all_findings();
    let own = all.iter().filter(|found| found.reviewer == review.reviewer);
    let results: Vec<Value> = own.map(|found| result(&rule, found)).collect();
    json!({
        "tool": {"driver": {
            "name": "consensus",
            "version": env!("CARGO_PKG_VERSION"),
            "rules": [{"id": rule, "shortDescription": {"text": format!("Found by the reviewer {}", review.reviewer)}}],
        }},
        // Code hosts use the id to keep the runs of one commit apart.
        "automationDetails": {"id": format!("consensus/{}/", review.reviewer)},
        "results": results,
    })
}

fn result(rule: &str, found: &ReviewedFinding) -> Value {
    let Finding { path, line, quote, problem, severity } = &found.finding;
    let level = match severity {
        Severity::Low => "note",
        Severity::High | Severity::Critical if !found.is_doubted() => "error",
        Severity::Medium | Severity::High | Severity::Critical => "warning",
    };
    let mut place = json!({"artifactLocation": {"uri": encode_path(path)}});
    if quote.starts_with('+') && *line > 0 {
        place["region"] = json!({"startLine": line, "snippet": {"text": &quote[1..]}});
    }
    json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": problem},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"primaryLocationLineHash": Digest::new(format!("{path}\n{quote}").as_bytes())},
        "properties": {"severity": severity, "confirmedBy": found.confirmed_by, "judgedBy": found.judged_by},
    })
}

/// The characters that are not percent-encoded in a relative URI.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');

/// Returns a path as a relative URI.
fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PLAIN).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorum::Opinion;

    #[test]
    fn finding_points_into_new_file() {
        let finding = |quote: &str, severity| Finding {
            path: "src/a b.rs".to_owned(),
            line: 7,
            quote: quote.to_owned(),
            problem: "it is wrong".to_owned(),
            severity,
        };
        let found = |finding: Finding, confirmed_by: Vec<String>| ReviewedFinding {
            reviewer: "Quality".to_owned(),
            finding,
            judged_by: 3,
            confirmed_by,
        };
        let findings = vec![
            found(finding("+x", Severity::Critical), vec!["Security".to_owned()]),
            found(finding("-y", Severity::Low), Vec::new()),
            found(finding("+z", Severity::High), Vec::new()),
        ];
        let review = ReviewerReport {
            reviewer: "Quality".to_owned(),
            opinion: Opinion::Abstain { reason: "x".to_owned() },
            findings: findings.iter().map(|found| found.finding.clone()).collect(),
        };
        let section = ApprovalSection {
            reviewers: 1,
            faults: 0,
            quorum: 1,
            parts: 1,
            tolerance: None,
            reviews: vec![review],
            findings: Some(findings),
        };
        let document = sarif(&section);
        let results = &document["runs"][0]["results"];
        let place = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "src/a%20b.rs");
        assert_eq!((&place["region"]["startLine"], &results[0]["level"]), (&json!(7), &json!("error")));
        assert!(results[1]["locations"][0]["physicalLocation"]["region"].is_null(), "the line is gone");
        assert_eq!((&results[1]["level"], &results[2]["level"]), (&json!("note"), &json!("warning")));
        assert_eq!(results[0]["properties"]["confirmedBy"], json!(["Security"]));
    }
}
