//! An evaluation as a `JUnit` file, which CI systems show.
//!
//! The input is the results, and the bars with whether each was reached. The output is XML with a suite for the bars, and one for each arm
//! with a case for each item. A wrong answer is a failure, an item without an answer is skipped, and a run that is missing is an error.
//! Only the bars say whether so many failures are too many.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::bar::JudgedBar;
use super::error::EvalError;
use super::items::{ArmItem, EvalResults, Item};
use super::notes::points;
use super::summary::{ArmSummary, Summary};
use crate::batch::TaskLine;
use protocol::text::{counted, escape};

/// The name of the report.
const NAME: &str = "consensus eval";

/// Returns the text of a `JUnit` file about an evaluation with these tasks.
///
/// Returns [`EvalError::Junit`] if the writer of XML fails.
pub(super) fn junit(
    summary: &Summary,
    tasks: &[TaskLine],
    results: &EvalResults,
    bars: &[JudgedBar],
) -> Result<String, EvalError> {
    let mut report = Report::new(NAME);
    report.add_test_suite(bar_suite(summary, bars));
    for (at, arm) in summary.arms.iter().enumerate() {
        let mut suite = TestSuite::new(xml(&arm.name));
        for (name, value) in figures(arm) {
            suite.add_property(Property::new(name, value));
        }
        for (task, item) in tasks.iter().zip(&results.items) {
            suite.add_test_case(item_case(&arm.name, task, item, item.arms[at].as_ref()));
        }
        report.add_test_suite(suite);
    }
    report.to_string().map_err(|why| EvalError::Junit(why.to_string()))
}

/// Returns whether a text is a `JUnit` file of an evaluation.
pub(super) fn is_junit(text: &str) -> bool {
    text.starts_with("<?xml") && text.contains(&format!("<testsuites name=\"{NAME}\""))
}

/// Returns the suite of the bars. Whether every item is complete is one of them.
fn bar_suite(summary: &Summary, bars: &[JudgedBar]) -> TestSuite {
    let mut suite = TestSuite::new("bars");
    let complete = JudgedBar {
        name: "every item is complete".to_owned(),
        is_reached: summary.is_complete(),
        words: format!("{} of {} are complete", summary.items, counted(summary.planned, "item")),
    };
    suite.add_test_case(bar_case(&complete, true));
    for bar in bars {
        suite.add_test_case(bar_case(bar, summary.is_complete()));
    }
    suite
}

/// Returns the case of a bar. One that is not judged is skipped.
fn bar_case(bar: &JudgedBar, is_judged: bool) -> TestCase {
    let (status, words) = match (is_judged, bar.is_reached) {
        (false, _) => (TestCaseStatus::skipped(), "not judged, since items are missing"),
        (true, true) => (TestCaseStatus::success(), bar.words.as_str()),
        (true, false) => (TestCaseStatus::non_success(NonSuccessKind::Failure), bar.words.as_str()),
    };
    let mut case = TestCase::new(xml(&bar.name), status);
    case.status.set_message(xml(words));
    case.set_classname("bars").set_system_out(xml(words));
    case
}

/// Returns the case of an item in an arm.
fn item_case(arm: &str, task: &TaskLine, item: &Item, run: Option<&ArmItem>) -> TestCase {
    let right = task
        .answer
        .as_deref()
        .map_or(String::new(), |answer| format!("; the right answer is “{}”", escape::excerpt(answer)));
    let (status, message) = match run {
        None => (
            TestCaseStatus::non_success(NonSuccessKind::Error),
            "no run has ended, or it has failed".to_owned(),
        ),
        Some(run) if run.is_right => (TestCaseStatus::success(), String::new()),
        Some(run) => match &run.answer {
            None => (TestCaseStatus::skipped(), format!("no answer: {}", run.outcome.name())),
            Some(answer) => (
                TestCaseStatus::non_success(NonSuccessKind::Failure),
                format!("answered “{}”{right}", escape::excerpt(answer)),
            ),
        },
    };
    let mut case = TestCase::new(xml(&item.id), status);
    case.status.set_message(xml(&message));
    case.set_classname(xml(arm));
    if let Some(run) = run {
        case.set_time(Duration::from_millis(run.milliseconds));
    }
    case
}

/// Returns the figures of an arm, by name.
fn figures(arm: &ArmSummary) -> Vec<(&'static str, String)> {
    let mut figures = vec![
        ("right", format!("{} of {}", arm.right.count, arm.right.of)),
        ("tokens", format!("{:.0}", arm.cost.tokens)),
    ];
    if let Some((verdict, against)) = arm.verdict.zip(arm.against) {
        figures.push(("difference", points(against.difference, against.found.interval)));
        figures.push(("verdict", verdict.summary()));
    }
    figures
}

/// Returns a text without the characters that XML cannot have and the writer leaves.
fn xml(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\u{fffe}' | '\u{ffff}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_no_invalid_xml_character() {
        let bar = JudgedBar {
            name: "a\u{0}b\u{fffe}c".to_owned(),
            is_reached: false,
            words: "]]> \u{ffff}<".to_owned(),
        };
        let mut suite = TestSuite::new("bars");
        suite.add_test_case(bar_case(&bar, true));
        let mut report = Report::new(NAME);
        report.add_test_suite(suite);
        let text = report.to_string().unwrap();
        assert!(is_junit(&text) && !is_junit("{}"));
        let is_allowed = |c: char| !matches!(c, '\0'..='\u{8}' | '\u{fffe}' | '\u{ffff}');
        assert!(text.chars().all(is_allowed), "{text}");
        assert!(text.contains("]]&gt; &lt;"), "{text}");
    }
}
