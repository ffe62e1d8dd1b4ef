//! Shares of runs, and the intervals that hold the true shares.
//!
//! The input is the task of each run, and whether the run counts. The output is a share with its interval. Runs of one task are not
//! independent: several seeds of a task say little more than one. The unit is therefore the task, and the interval is that of Wilson
//! (1927). Its n is the number of independent runs that would vary as much as the means of tasks do: n = p(1 - p) / var(p).

use std::collections::BTreeMap;

use serde::Serialize;

use crypto::Digest;
use statistics::{Interval, wilson};

/// A share of runs, with the interval that holds the true share with 95 % probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The number of runs that count.
    pub count: u64,
    /// The number of all runs.
    pub of: u64,
    /// The number of tasks of these runs.
    pub tasks: u64,
    /// The number of independent runs that would vary as much.
    pub effective: f64,
    /// The mean over tasks of the share of each task, from 0 to 1; null without a task.
    pub share: Option<f64>,
    /// The lower end of the interval, from 0 to 1.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The numbers of counting runs and of all runs, by task.
#[derive(Clone, Debug, Default)]
pub(super) struct ByTask(BTreeMap<u64, (u32, u32)>);

/// Returns eight bytes of the digest of a task's id. Among ten million tasks two are confused with a probability of three in a
/// million.
pub(super) fn mark(task: &str) -> u64 {
    Digest::new(task.as_bytes()).leading_u64()
}

impl ByTask {
    /// Adds a run of this task.
    pub(super) fn add(&mut self, task: u64, counts: bool) {
        let (count, of) = self.0.entry(task).or_default();
        *count += u32::from(counts);
        *of += 1;
    }

    /// Returns each task with its mean.
    pub(super) fn means(&self) -> impl Iterator<Item = (u64, f64)> {
        self.0.iter().map(|(task, (count, of))| (*task, f64::from(*count) / f64::from(*of)))
    }

    /// Returns the share over all runs.
    pub(super) fn share(&self) -> Share {
        let (count, of) = self
            .0
            .values()
            .fold((0, 0), |(count, of), (more, all)| (count + u64::from(*more), of + u64::from(*all)));
        let tasks = self.0.len() as u64;
        if tasks == 0 {
            return Share { count, of, tasks, effective: 0.0, share: None, low: 0.0, high: 1.0 };
        }
        let k = tasks as f64;
        let p = self.means().map(|(_, mean)| mean).sum::<f64>() / k;
        let variance = self.means().map(|(_, mean)| (mean - p).powi(2)).sum::<f64>() / (k * k);
        let most = of as f64;
        let effective = match p * (1.0 - p) {
            // If all runs are alike, nothing varies: each task then counts as one run.
            certain if certain <= 0.0 => k,
            _ if variance <= 0.0 => most,
            spread => (spread / variance).clamp(k, most),
        };
        let Interval { low, high } = wilson(p, effective);
        Share { count, of, tasks, effective, share: Some(p), low, high }
    }
}

/// Returns a share and its interval in words, such as `80 % [49, 94]`.
pub fn format_share(share: &Share) -> String {
    match share.share {
        Some(of) => format!("{:.0} % [{:.0}, {:.0}]", of * 100.0, share.low * 100.0, share.high * 100.0),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(runs: impl IntoIterator<Item = (u64, bool)>) -> Share {
        let mut by_task = ByTask::default();
        runs.into_iter().for_each(|(task, counts)| by_task.add(task, counts));
        by_task.share()
    }

    #[test]
    fn one_run_per_task_gives_wilson_interval() {
        for (count, of) in [(8, 10), (0, 10), (10, 10), (742, 1319)] {
            let share = share((0..of).map(|task| (task, task < count)));
            let Interval { low, high } = wilson(count as f64 / of as f64, of as f64);
            assert!((share.low - low).abs() < 1e-9 && (share.high - high).abs() < 1e-9, "{share:?}");
            assert!((share.effective - of as f64).abs() < 1e-6, "{share:?}");
        }
        assert_eq!(share([]).share, None);
    }

    /// Seeds of one task that end alike are one run.
    #[test]
    fn agreeing_seeds_count_as_one_run() {
        let once = share((0..20).map(|task| (task, task < 12)));
        let thrice = share((0..60).map(|run| (run / 3, run / 3 < 12)));
        assert!((once.low - thrice.low).abs() < 1e-9 && (once.high - thrice.high).abs() < 1e-9);
        assert_eq!((thrice.count, thrice.of, thrice.tasks), (36, 60, 20));
        // Seeds that differ from each other as much as tasks do count as separate runs.
        let mixed = share((0..60).map(|run| (run / 3, run % 3 == 0)));
        assert!((mixed.effective - 60.0).abs() < 1e-9, "{mixed:?}");
    }

    /// Returns the percentile interval of a bootstrap by task, as a reader would compute it by hand.
    fn bootstrap(means: &[f64], random: &mut fastrand::Rng) -> (f64, f64) {
        let mut shares: Vec<f64> = (0..10_000)
            .map(|_| {
                means.iter().map(|_| means[random.usize(..means.len())]).sum::<f64>() / means.len() as f64
            })
            .collect();
        shares.sort_by(f64::total_cmp);
        (shares[250], shares[9_749])
    }

    /// Intervals of 60 tasks with 3 seeds are within two points of a bootstrap by task.
    #[test]
    fn intervals_are_close_to_task_bootstrap() {
        let mut random = fastrand::Rng::with_seed(7);
        // A realistic set of tasks: each is easy, hard or in between.
        for spread in [0.0, 0.3, 0.6, 1.0] {
            let mut by_task = ByTask::default();
            for task in 0..60 {
                let ease = (0.6 + spread * (random.f64() - 0.5)).clamp(0.02, 0.98);
                (0..3).for_each(|_| by_task.add(task, random.f64() < ease));
            }
            let share = by_task.share();
            let means: Vec<f64> = by_task.means().map(|(_, mean)| mean).collect();
            let (low, high) = bootstrap(&means, &mut random);
            assert!(
                (share.low - low).abs() < 0.02 && (share.high - high).abs() < 0.02,
                "{share:?} {low} {high}"
            );
        }
    }
}
