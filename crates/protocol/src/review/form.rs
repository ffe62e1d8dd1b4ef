//! The form of a reviewer on one part, read strictly.
//!
//! The input is a reply's text and the part that its author saw. The output is its findings and its verdict, or a [`Violation`] for its
//! author. Nothing is filled in and nothing is repaired: a verdict that its findings contradict is sent back.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::diff::{DiffLine, faultable, strip_sign};
use crate::text::{CHOICES_MAX, StrictValue, Violation, closed, escape, extract, non_empty_string, read_one};
use crate::turn::Valid;
use quorum::Severity;

/// The maximum number of findings on one part.
const FINDINGS_MAX: usize = 10;

/// The maximum number of tokens of the findings of one reviewer on one part, as another one reads them.
pub(super) const FINDINGS_TOKENS_MAX: u64 = FINDINGS_MAX as u64 * 700;

/// The maximum length of the words about one finding, and about a whole part, in characters.
pub(super) const PROBLEM_CHARS_MAX: usize = 300;
pub(super) const SUMMARY_CHARS_MAX: usize = 400;

/// A fault that a reviewer found.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// The number of the line: in the old file for a removed line, else in the new file.
    pub line: u64,
    /// The line as the diff has it, with its sign.
    pub quote: String,
    /// The problem with the line.
    pub problem: String,
    /// The severity of the problem.
    pub severity: Severity,
}

/// The verdict of a reviewer on a part.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Approve,
    Reject,
    Abstain,
}

/// A valid form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct PartReview {
    pub(super) findings: Vec<Finding>,
    pub(super) summary: String,
    pub(super) verdict: Verdict,
    /// The confidence in per cent, 0 to 100.
    pub(super) confidence: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewForm {
    findings: Vec<WrittenFinding>,
    summary: String,
    verdict: Verdict,
    confidence: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFinding {
    line: String,
    problem: String,
    severity: Severity,
}

/// Returns the schema of a form on this part. The findings come before what follows from them.
pub(super) fn schema(part: &[DiffLine]) -> Value {
    let mut lines: Vec<String> = faultable(part).map(|line| name(line, part)).collect();
    lines.sort_unstable();
    lines.dedup();
    // Where there are more lines, the reviewer's line is looked up and not enforced.
    let line = if lines.is_empty() || lines.len() > CHOICES_MAX {
        non_empty_string(500)
    } else {
        json!({"type": "string", "enum": lines})
    };
    let finding = closed(&json!({
        "line": line,
        "problem": non_empty_string(PROBLEM_CHARS_MAX),
        "severity": {"enum": ["low", "medium", "high", "critical"]},
    }));
    closed(&json!({
        "findings": {"type": "array", "items": finding, "maxItems": if lines.is_empty() { 0 } else { FINDINGS_MAX }},
        "summary": non_empty_string(SUMMARY_CHARS_MAX),
        "verdict": {"enum": ["approve", "reject", "abstain"]},
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
    }))
}

/// Returns the name of a line: the line as it is shown, with its place where another line looks the same.
fn name(line: &DiffLine, part: &[DiffLine]) -> String {
    let is_only = faultable(part).filter(|other| other.shown == line.shown).nth(1).is_none();
    let DiffLine { path, number, shown, .. } = line;
    if is_only { shown.clone() } else { format!("{shown} (line {number} of {path})") }
}

/// Reads a form on this part.
pub(super) fn read(reply: &str, part: &[DiffLine]) -> Result<Valid<PartReview>, Violation> {
    let object = extract(reply)?.object;
    // This refuses repeated keys.
    let StrictValue(value) = read_one(object)?;
    let ReviewForm { findings, summary, verdict, confidence } = serde_json::from_value(value)
        .map_err(|why| Violation::schema("/", escape::message(&why.to_string())))?;
    if findings.len() > FINDINGS_MAX {
        let message = format!("there are {} findings; write the worst {FINDINGS_MAX}", findings.len());
        return Err(Violation::schema("/findings", message));
    }
    let findings = findings.into_iter().enumerate().map(|(at, form)| read_finding(at, form, part));
    let findings = findings.collect::<Result<Vec<_>, _>>()?;
    let summary = read_words(&summary, "/summary", SUMMARY_CHARS_MAX)?;
    if confidence > 100 {
        return Err(Violation::schema("/confidence", "it is a whole number from 0 to 100"));
    }
    let worst = findings.iter().map(|finding| finding.severity).max();
    match verdict {
        Verdict::Reject if worst.is_none() => {
            let message = "whoever rejects names a line and what is wrong with it in `findings`; if no line is wrong, \
                           approve";
            return Err(Violation::schema("/verdict", message));
        }
        Verdict::Approve if worst >= Some(Severity::High) => {
            let message = "you approve, but one of your findings is high or critical; reject, or say how bad it really is";
            return Err(Violation::schema("/verdict", message));
        }
        Verdict::Approve | Verdict::Reject | Verdict::Abstain => {}
    }
    Ok(Valid { content: PartReview { findings, summary, verdict, confidence }, object: object.to_owned() })
}

fn read_finding(at: usize, form: WrittenFinding, part: &[DiffLine]) -> Result<Finding, Violation> {
    let WrittenFinding { line, problem, severity } = form;
    let problem = read_words(&problem, &format!("/findings/{at}/problem"), PROBLEM_CHARS_MAX)?;
    let exact = faultable(part).find(|known| name(known, part) == line);
    // A reviewer may write the line from memory, without its sign and the white space around it.
    let found = exact.or_else(|| faultable(part).find(|known| strip_sign(&known.shown) == strip_sign(&line)));
    let Some(DiffLine { path, number, shown, .. }) = found else {
        let message = format!(
            "`{}` is no changed line of this part; copy one that begins with + or -, as it stands",
            escape::excerpt(&line)
        );
        return Err(Violation::schema(&format!("/findings/{at}/line"), message));
    };
    Ok(Finding { path: path.to_string(), line: *number, quote: shown.clone(), problem, severity })
}

/// Reads a reviewer's words, which must say something and must not be too long.
fn read_words(text: &str, pointer: &str, max: usize) -> Result<String, Violation> {
    let text = text.trim();
    let found = text.chars().count();
    if !text.chars().any(char::is_alphanumeric) {
        return Err(Violation::schema(pointer, "it says nothing"));
    }
    if found > max {
        return Err(Violation::schema(pointer, format!("it has {found} characters; {max} are allowed")));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::diff::parts;
    use super::*;
    use crate::contract::Document;
    use crate::text::schema::compile;

    const DIFF: &str =
        "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n def f(a):\n-    return a + 1\n+    return a - 1\n";

    fn part() -> Vec<DiffLine> {
        let document = Document { name: "d".to_owned(), text: DIFF.into(), redacted: false };
        parts(&[document], 1500).remove(0)
    }

    fn form(findings: &Value, verdict: &str) -> Value {
        json!({"findings": findings, "summary": "The sign was turned.", "verdict": verdict, "confidence": 80})
    }

    fn on(line: &str, severity: &str) -> Value {
        json!([{"line": line, "problem": "it subtracts", "severity": severity}])
    }

    #[test]
    fn equal_lines_are_distinguished_by_place() {
        let diff =
            "--- a/x\n+++ b/x\n@@ -1 +1,3 @@\n+go();\n a\n+go();\n--- a/y\n+++ b/y\n@@ -0,0 +1 @@\n+go();\n";
        let document = Document { name: "d".to_owned(), text: diff.into(), redacted: false };
        let part = parts(&[document], 1500).remove(0);
        for (line, place) in
            [("+go(); (line 3 of x)", ("x", 3)), ("+go(); (line 1 of y)", ("y", 1)), ("go();", ("x", 1))]
        {
            let written = form(&on(line, "high"), "reject");
            let found = read(&written.to_string(), &part).unwrap().content.findings.remove(0);
            assert_eq!((found.path.as_str(), found.line), place);
            assert_eq!(found.quote, "+go();");
        }
        let schema = compile(&schema(&part));
        assert!(schema.is_valid(&form(&on("+go(); (line 3 of x)", "high"), "reject")));
        assert!(!schema.is_valid(&form(&on("+go();", "high"), "reject")), "nobody can leave it open");
    }

    #[test]
    fn finding_is_on_a_diff_line() {
        for line in ["+    return a - 1", "return a - 1", "+ return a - 1"] {
            let written = form(&on(line, "high"), "reject");
            let read = read(&written.to_string(), &part()).unwrap().content;
            let Finding { path, line, quote, .. } = &read.findings[0];
            assert_eq!((path.as_str(), *line, quote.as_str()), ("x.py", 2, "+    return a - 1"));
        }
        let schema = compile(&schema(&part()));
        assert!(schema.is_valid(&form(&on("+    return a - 1", "high"), "reject")));
        assert!(
            !schema.is_valid(&form(&on("+    return b", "high"), "reject")),
            "what the grammar cannot say"
        );
    }

    /// A form that does not hold together counts for nothing.
    #[test]
    fn inconsistent_form_is_refused() {
        let mut sure = form(&json!([]), "approve");
        sure["confidence"] = 101.into();
        let mut silent = form(&json!([]), "approve");
        silent["summary"] = " … ".into();
        let mut more = form(&json!([]), "approve");
        more["approved"] = true.into();
        for (written, why) in [
            (form(&json!([]), "reject"), "names a line"),
            (form(&on("+    return a - 1", "critical"), "approve"), "you approve"),
            (form(&on("def f(a):", "high"), "reject"), "no changed line"),
            (form(&on("+    return evil()", "high"), "reject"), "no changed line"),
            (sure, "/confidence"),
            (silent, "/summary"),
            (more, "unknown field"),
        ] {
            let refused = read(&written.to_string(), &part()).map(|_| ()).unwrap_err().to_string();
            assert!(refused.contains(why), "{written}: {refused}");
        }
        assert!(read(&form(&json!([]), "approve").to_string(), &part()).is_ok());
    }
}
