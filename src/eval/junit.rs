//! The bars of an evaluation as a `JUnit` file, which CI systems show.
//!
//! The input is a summary, and the bars with whether each was reached. The output is XML with a case for each bar, and one for whether every
//! item is complete. An item with a wrong answer is no failed case, because the bars say how many there may be. The figures of each arm are
//! properties.

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::bar::JudgedBar;
use super::error::EvalError;
use super::notes::points;
use super::summary::{ArmSummary, Summary};
use crate::text::counted;

/// Returns the text of a `JUnit` file.
///
/// # Errors
///
/// Returns [`EvalError::Junit`] if the writer of XML fails.
pub fn junit(summary: &Summary, bars: &[JudgedBar]) -> Result<String, EvalError> {
    let mut suite = TestSuite::new(format!("{}: {}", summary.data, summary.primary));
    for arm in &summary.arms {
        let figure = |(name, value): (&str, String)| Property::new(format!("{}: {name}", arm.name), value);
        suite.add_properties(figures(arm).into_iter().map(figure));
    }
    let complete = JudgedBar {
        name: "every item is complete".to_owned(),
        is_reached: summary.is_complete(),
        words: format!("{} of {} are complete", summary.items, counted(summary.planned, "item")),
    };
    suite.add_test_case(case(&complete, true));
    for bar in bars {
        suite.add_test_case(case(bar, summary.is_complete()));
    }
    let mut report = Report::new("consensus eval");
    report.add_test_suite(suite);
    report.to_string().map_err(|why| EvalError::Junit(why.to_string()))
}

/// Returns the case of a bar. One that is not judged is skipped.
fn case(bar: &JudgedBar, is_judged: bool) -> TestCase {
    let status = match (is_judged, bar.is_reached) {
        (false, _) => TestCaseStatus::skipped(),
        (true, true) => TestCaseStatus::success(),
        (true, false) => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    let mut case = TestCase::new(&bar.name, status);
    case.status.set_message(&bar.words);
    case.set_classname("consensus.eval").set_system_out(&bar.words);
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
        figures.push(("verdict", verdict.in_words()));
    }
    figures
}
