//! The threshold at a risk: the least confidence of an answer that is given.
//!
//! The input is the answers of the half that was not fitted: the confidence of each, and whether it is right. The output is the errors
//! among the surest answers, step by step, and the lowest threshold above which the share of errors is at most the risk, but for a doubt of
//! 5 %.
//!
//! The bound of Clopper and Pearson (1934) on the share of errors is tested at one threshold after the other, from sure to less sure, until
//! it first exceeds the risk. So ordered, the tests need no correction for their number (fixed sequence: Maurer, Hothorn and Lehmacher
//! 1995). The first threshold tested follows from the fit alone: it is the surest one that is likely to hold if there are as many errors as
//! the fit expects. The errors that were found have no part in the choice.

use serde::{Deserialize, Serialize};

use protocol::core::BasisPoints;
use protocol::text::{counted, percent};
use statistics::{at_most, clopper_pearson_upper, count_within};

/// The probability that the errors exceed the risk all the same.
pub const DOUBT: f64 = 0.05;

/// The probability from which a threshold is likely to hold.
const LIKELY: f64 = 0.95;

/// The answers that are at least so sure.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RiskStep {
    /// Their least confidence.
    pub from: BasisPoints,
    /// Their number.
    pub answered: u32,
    /// The wrong ones of them.
    pub errors: u32,
    /// The number of errors that the fit expects among them.
    pub expected: f64,
}

/// The reason why no threshold holds a risk.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NotCertifiable {
    /// There are too few answers, even if none were wrong.
    #[error(
        "at least {} without an error are needed, and the half of the tasks that certifies has {found}; it takes {} tasks or more",
        counted(*needed, "answer"),
        needed.saturating_mul(2)
    )]
    TooFew {
        /// The fewest answers that are needed.
        needed: u64,
        /// The answers that there are.
        found: u32,
    },
    /// Too many of the surest answers are wrong.
    #[error("of the {} that are surest, {} wrong, so that up to {} of such answers may be wrong; take a higher risk, or more tasks", counted(*answered, "answer"), are(*errors), percent(*bound))]
    TooManyErrors {
        /// The surest answers.
        answered: u32,
        /// The wrong ones of them.
        errors: u32,
        /// The bound on the share of errors.
        bound: f64,
    },
}

fn are(errors: u32) -> String {
    if errors == 1 { "1 is".to_owned() } else { format!("{errors} are") }
}

/// Returns the steps of answers, the surest first. Answers with the same confidence are one step.
pub(super) fn steps(mut answers: Vec<(BasisPoints, bool)>) -> Vec<RiskStep> {
    answers.sort_by_key(|(value, _)| std::cmp::Reverse(*value));
    let mut sum = RiskStep { from: BasisPoints::ZERO, answered: 0, errors: 0, expected: 0.0 };
    let mut steps = Vec::new();
    for same in answers.chunk_by(|one, other| one.0 == other.0) {
        for (value, is_right) in same {
            sum.from = *value;
            sum.answered += 1;
            sum.errors += u32::from(!is_right);
            sum.expected += 1.0 - value.value();
        }
        steps.push(RiskStep { expected: (sum.expected * 1e4).round() / 1e4, ..sum });
    }
    steps
}

/// Returns the fewest answers, none of them wrong, that certify a risk. `risk` is above 0 and below 1.
pub fn items_without_error(risk: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of floats saturates")]
    let needed = (DOUBT.ln() / (-risk).ln_1p()).ceil() as u64;
    needed
}

/// Returns the step with the lowest threshold that holds a risk. `risk` is above 0 and below 1.
///
/// Returns [`NotCertifiable`] if no threshold does.
pub fn threshold(steps: &[RiskStep], risk: f64) -> Result<RiskStep, NotCertifiable> {
    let Some(first) = first_tested(steps, risk) else {
        let found = steps.last().map_or(0, |step| step.answered);
        return Err(NotCertifiable::TooFew { needed: items_without_error(risk), found });
    };
    let mut lowest = None;
    for step in &steps[first..] {
        let holds = errors_allowed(step, risk).is_some_and(|most| u64::from(step.errors) <= most);
        if !holds {
            break;
        }
        lowest = Some(*step);
    }
    lowest.ok_or_else(|| {
        let RiskStep { answered, errors, .. } = steps[first];
        NotCertifiable::TooManyErrors { answered, errors, bound: steps[first].bound() }
    })
}

/// Returns the most errors with which a step holds a risk, if it can.
fn errors_allowed(step: &RiskStep, risk: f64) -> Option<u64> {
    count_within(u64::from(step.answered), risk, DOUBT)
}

/// Returns the place of the step that is tested first: the surest one that is likely to hold a risk or, if none is, the likeliest. Returns
/// `None` if no step has enough answers.
fn first_tested(steps: &[RiskStep], risk: f64) -> Option<usize> {
    let mut likeliest: Option<(usize, f64)> = None;
    for (at, step) in steps.iter().enumerate() {
        let Some(most) = errors_allowed(step, risk) else { continue };
        let expected = (step.expected / f64::from(step.answered)).clamp(0.0, 1.0);
        let likely = at_most(most, u64::from(step.answered), expected);
        if likely >= LIKELY {
            return Some(at);
        }
        if likeliest.is_none_or(|(_, known)| likely > known) {
            likeliest = Some((at, likely));
        }
    }
    likeliest.map(|(at, _)| at)
}

impl RiskStep {
    /// Returns the bound on the share of errors among such answers.
    pub fn bound(&self) -> f64 {
        clopper_pearson_upper(f64::from(self.errors), f64::from(self.answered), DOUBT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(value: f64) -> BasisPoints {
        BasisPoints::new(value).unwrap()
    }

    /// A step has all answers that are at least as sure as its least confidence.
    #[test]
    fn step_counts_all_surer_answers() {
        let answers = [(0.6, false), (0.9, true), (0.9, false), (0.99, true)];
        let steps = steps(answers.map(|(value, is_right)| (share(value), is_right)).to_vec());
        let found: Vec<_> =
            steps.iter().map(|step| (step.from.value(), step.answered, step.errors)).collect();
        assert_eq!(found, [(0.99, 1, 0), (0.9, 3, 1), (0.6, 4, 2)]);
        assert!((steps[2].expected - 0.61).abs() < 1e-9, "{steps:?}");
    }

    #[test]
    fn risk_needs_enough_answers_without_error() {
        assert_eq!([0.05, 0.1, 0.01, 0.2].map(items_without_error), [59, 29, 299, 14]);
        assert_eq!([1e-9, 1e-12].map(items_without_error), [2_995_732_273, 2_995_732_273_553]);
        let why = threshold(&[], f64::MIN_POSITIVE).unwrap_err().to_string();
        assert!(why.starts_with("at least 18,446,744,073,709,551,615 answers"), "{why}");
        let sure = |count| steps(vec![(share(0.99), true); count]);
        assert_eq!(threshold(&sure(58), 0.05), Err(NotCertifiable::TooFew { needed: 59, found: 58 }));
        assert_eq!(threshold(&sure(59), 0.05).map(|step| step.answered), Ok(59));
        let why = threshold(&[], 0.05).unwrap_err().to_string();
        assert_eq!(
            why,
            "at least 59 answers without an error are needed, and the half of the tasks that certifies has 0; it takes 118 tasks or more"
        );
    }

    /// The table in the guide.
    #[test]
    fn guide_counts_certify_four_of_five_calibrations() {
        for (wrong, at_five, at_ten) in [
            (0.0, Some(59), 29),
            (0.01, Some(124), 46),
            (0.02, Some(234), 61),
            (0.03, Some(601), 76),
            (0.05, None, 179),
        ] {
            let chance = |answered: u32, risk: f64| {
                let step = RiskStep { from: BasisPoints::ZERO, answered, errors: 0, expected: 0.0 };
                errors_allowed(&step, risk).map_or(0.0, |most| at_most(most, u64::from(answered), wrong))
            };
            let needed = |risk: f64| (1..2000).find(|answered| chance(*answered, risk) >= 0.8);
            assert_eq!((needed(0.05), needed(0.1)), (at_five, Some(at_ten)), "{wrong}");
            let known = [(0.05, at_five), (0.1, Some(at_ten))];
            for (risk, first) in known.into_iter().filter_map(|(risk, first)| Some((risk, first?))) {
                assert!((first..2000).all(|answered| chance(answered, risk) >= 0.72), "{wrong} {risk}");
            }
        }
    }

    #[test]
    fn threshold_is_lowest_that_errors_allow() {
        let mut answers = vec![(share(0.99), true); 100];
        answers.extend(vec![(share(0.97), true); 53]);
        answers.extend(vec![(share(0.97), false); 2]);
        answers.extend(vec![(share(0.5), false); 10]);
        let known = steps(answers);
        let found = threshold(&known, 0.05).unwrap();
        assert_eq!((found.from.value(), found.answered, found.errors), (0.97, 155, 2));
        assert_eq!(percent(found.bound()), "4.01 %");
        let why = threshold(&known, 0.01).unwrap_err().to_string();
        assert_eq!(
            why,
            "at least 299 answers without an error are needed, and the half of the tasks that certifies has 165; it takes 598 tasks or more"
        );
    }

    #[test]
    fn wrong_surest_answers_prevent_certification() {
        let mut answers = vec![(share(0.99), true); 90];
        answers.extend(vec![(share(0.99), false); 10]);
        let why = threshold(&steps(answers), 0.05).unwrap_err().to_string();
        assert_eq!(
            why,
            "of the 100 answers that are surest, 10 are wrong, so that up to 16.37 % of such answers may be wrong; take a higher risk, or more tasks"
        );
    }
}
