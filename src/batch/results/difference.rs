//! The difference between two groups of runs on the same tasks.
//!
//! The input is the means of both groups, by task. The output is the mean difference over the tasks that both have, with the
//! interval of a paired t-test (Student 1908; for evaluations, Miller 2024, arXiv:2411.00640). It also has the exact two-sided sign
//! test over tasks, which for one run per task is the exact test of `McNemar` (1947).

use std::collections::BTreeMap;

use serde::Serialize;

use super::share::ByTask;
use statistics::{Interval, PairedTest, student};

/// The difference between two groups of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The name of the first group.
    pub of: String,
    /// The name of the other group, from which the difference is measured.
    pub versus: String,
    /// The tasks with runs in both groups.
    pub tasks: u64,
    /// The mean difference of the shares of right runs, from -1 to 1; null without a task.
    pub mean: Option<f64>,
    /// The lower end of the 95 % interval of the mean.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The tasks on which the first group has a greater share of right runs.
    pub better: u64,
    /// The tasks on which it has a smaller share.
    pub worse: u64,
    /// The probability of so uneven a split if neither group were better.
    pub p: f64,
}

impl Difference {
    /// Computes the difference between two groups with these names.
    pub(super) fn new([of, versus]: [String; 2], first: &ByTask, other: &ByTask) -> Self {
        let other: BTreeMap<u64, f64> = other.means().collect();
        let both = first.means().filter_map(|(task, mean)| Some(mean - other.get(&task)?));
        let differences: Vec<f64> = both.collect();
        let n = differences.len() as f64;
        let mean = if differences.is_empty() { None } else { Some(differences.iter().sum::<f64>() / n) };
        let Interval { low, high } = bounds(&differences);
        let better = differences.iter().filter(|difference| **difference > 0.0).count() as u64;
        let worse = differences.iter().filter(|difference| **difference < 0.0).count() as u64;
        let tasks = differences.len() as u64;
        Self { of, versus, tasks, mean, low, high, better, worse, p: PairedTest::new(better, worse).p }
    }

    /// Returns the difference as a line of text.
    pub fn summary(&self) -> String {
        let Self { of, versus, tasks, low, high, better, worse, p, .. } = self;
        let Some(mean) = self.mean else { return format!("{of} and {versus} have no task in common") };
        let [mean, low, high] = [mean, *low, *high].map(|share| share * 100.0);
        format!(
            "{of} is {mean:+.1} points [{low:+.1}, {high:+.1}] from {versus} on {tasks} tasks: better on {better}, worse on {worse}, sign test p = {p:.3}"
        )
    }
}

/// Returns the ends of the interval of these differences. Where all are equal, one more task on either side is counted, since an interval
/// without width would say that no further task can differ.
fn bounds(differences: &[f64]) -> Interval {
    let is_even = differences.windows(2).all(|two| (two[0] - two[1]).abs() < f64::EPSILON);
    let (below, above) = if is_even {
        let (below, above) = ([differences, &[-1.0]].concat(), [differences, &[1.0]].concat());
        (student(&below), student(&above))
    } else {
        (student(differences), student(differences))
    };
    let (Some(below), Some(above)) = (below, above) else { return Interval { low: -1.0, high: 1.0 } };
    Interval { low: below.low.max(-1.0), high: above.high.min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_taken_task_by_task() {
        let (mut first, mut other) = (ByTask::default(), ByTask::default());
        for task in 0..10 {
            first.add(task, task < 8);
            other.add(task, task < 5);
        }
        other.add(99, true);
        let names = ["first", "other"].map(str::to_owned);
        let difference = Difference::new(names, &first, &other);
        assert_eq!((difference.tasks, difference.better, difference.worse), (10, 3, 0));
        // From R: t.test(c(rep(1, 3), rep(0, 7)))$conf.int.
        assert!((difference.mean.unwrap() - 0.3).abs() < 1e-9);
        assert!((difference.low + 0.045_55).abs() < 1e-4, "{difference:?}");
        assert!((difference.high - 0.645_55).abs() < 1e-4, "{difference:?}");
        assert!(difference.summary().contains("+30.0 points [-4.6, +64.6]"), "{}", difference.summary());
    }

    /// Two tasks that agree prove little.
    #[test]
    fn equal_differences_have_an_interval() {
        let (mut first, mut other) = (ByTask::default(), ByTask::default());
        for task in 0..2 {
            first.add(task, false);
            other.add(task, true);
        }
        let difference = Difference::new(["a", "b"].map(str::to_owned), &first, &other);
        assert_eq!((difference.mean, difference.low, difference.high), (Some(-1.0), -1.0, 1.0));
    }
}
