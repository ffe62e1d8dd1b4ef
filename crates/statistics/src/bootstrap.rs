//! The interval of figures over items, by drawing the items again (Efron 1979).
//!
//! The input is a row of numbers for each unit: an item, or a cluster of items that share what makes them easy or hard, with their sums.
//! The output is the interval between the percentiles 2.5 and 97.5 of each figure over many selections of as many units, drawn with
//! replacement. A figure is computed from the sums of the rows of a selection, so that figures of one selection belong together.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::{ScopedJoinHandle, available_parallelism, scope};

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng as _, SeedableRng as _};
use serde::Serialize;

use super::{Interval, student_around};

/// The number of selections.
const DRAWS: usize = 10_000;

/// The numbers of all units, in rows of one width.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitRows {
    width: usize,
    values: Vec<f64>,
}

/// A figure over many selections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Resampled {
    /// The 95 % interval: of 100 that are made like this, 95 hold the true figure.
    pub interval: Interval,
    /// The standard error of the figure.
    pub error: f64,
    /// The share of selections whose figure is at or below zero.
    pub below: f64,
    /// The share of selections whose figure is at or above zero.
    pub above: f64,
}

impl Resampled {
    /// Returns the same with the interval of Student around the figure, which is a share or a difference of shares, for few units such as
    /// clusters. Selections of these vary too little, so the error of G units is corrected by √(G/(G−1)), and there are G−1 degrees of
    /// freedom (Cameron and Miller 2015). Units that are all alike say nothing finer than one of `items` does. One unit says nothing.
    pub fn of_few_units(self, figure: f64, units: usize, items: usize) -> Self {
        if units < 2 {
            return Self { interval: Interval { low: -1.0, high: 1.0 }, ..self };
        }
        let units = units as f64;
        let error = self.error * (units / (units - 1.0)).sqrt();
        let error = error.max(1.0 / items.max(1) as f64);
        let Interval { low, high } = student_around(figure, error, units - 1.0);
        Self { interval: Interval { low: low.max(-1.0), high: high.min(1.0) }, error, ..self }
    }
}

impl UnitRows {
    /// Makes a table without rows. `width` is above 0.
    pub fn new(width: usize) -> Self {
        Self { width, values: Vec::new() }
    }

    /// Makes a table of rows of items. The rows of items of the same cluster are added up; an item without one is a unit of its own.
    pub fn of_items<'a>(width: usize, items: impl Iterator<Item = (Option<&'a str>, Vec<f64>)>) -> Self {
        let mut rows = Self::new(width);
        let mut clusters: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (cluster, row) in items {
            match cluster {
                None => rows.push(&row),
                Some(name) => add(clusters.entry(name).or_insert_with(|| vec![0.0; width]), &row),
            }
        }
        for sums in clusters.values() {
            rows.push(sums);
        }
        rows
    }

    /// Adds the row of a unit. It must have the table's width.
    pub fn push(&mut self, row: &[f64]) {
        debug_assert_eq!(row.len(), self.width);
        self.values.extend_from_slice(row);
    }

    /// Returns the number of units.
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// Returns true if there is no unit.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the sum of all rows.
    pub fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.width];
        self.values.chunks_exact(self.width).for_each(|row| add(&mut sums, row));
        sums
    }

    /// Returns each figure over many selections. `figures` computes them from the sums of a selection and adds them to the list, always in
    /// the same order and number. The draws follow from the seed, and not from the number of cores. Returns nothing without a unit.
    pub fn resample(&self, seed: u64, figures: impl Fn(&[f64], &mut Vec<f64>) + Sync) -> Vec<Resampled> {
        if self.is_empty() {
            return Vec::new();
        }
        let part = DRAWS.div_ceil(available_parallelism().map_or(1, NonZero::get));
        let parts = (0..DRAWS).step_by(part).map(|start| start..DRAWS.min(start + part));
        let figures = &figures;
        let drawn: Vec<f64> = scope(|scope| {
            let threads: Vec<_> =
                parts.map(|part| scope.spawn(move || self.draw(seed, part, figures))).collect();
            threads.into_iter().flat_map(join_thread).collect()
        });
        let count = drawn.len() / DRAWS;
        (0..count).map(|at| summarise(drawn.iter().skip(at).step_by(count).copied().collect())).collect()
    }

    /// Returns the figures of some of the selections, one selection after the other.
    fn draw(&self, seed: u64, selections: Range<usize>, figures: impl Fn(&[f64], &mut Vec<f64>)) -> Vec<f64> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        // Each selection before these has taken a number for each of its units.
        random.advance(selections.start as u128 * self.len() as u128);
        let mut drawn = Vec::new();
        let mut sums = vec![0.0; self.width];
        for _ in selections {
            sums.fill(0.0);
            for _ in 0..self.len() {
                let at = below(random.next_u32(), self.len()) * self.width;
                add(&mut sums, &self.values[at..at + self.width]);
            }
            figures(&sums, &mut drawn);
        }
        drawn
    }
}

/// Returns what a thread has made, or continues its panic.
fn join_thread<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|why| resume_unwind(why))
}

fn add(sums: &mut [f64], row: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += value;
    }
}

/// Returns a number below `end` that follows from 32 random bits. The numbers differ in their probability by less than one part in 10,000
/// for up to 100,000 units.
fn below(bits: u32, end: usize) -> usize {
    // The product of two numbers below 2^32 fits.
    ((u64::from(bits) * end as u64) >> 32) as usize
}

fn summarise(mut values: Vec<f64>) -> Resampled {
    values.sort_by(f64::total_cmp);
    let cut = values.len() * 25 / 1000;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let below = values.iter().filter(|value| **value <= 0.0).count();
    let above = values.iter().filter(|value| **value >= 0.0).count();
    Resampled {
        interval: Interval { low: values[cut], high: values[values.len() - 1 - cut] },
        error: (squares / values.len() as f64).sqrt(),
        below: below as f64 / values.len() as f64,
        above: above as f64 / values.len() as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[f64]) -> UnitRows {
        let mut rows = UnitRows::new(2);
        for value in values {
            rows.push(&[*value, 1.0]);
        }
        rows
    }

    fn mean(sums: &[f64], figures: &mut Vec<f64>) {
        figures.push(sums[0] / sums[1]);
    }

    #[test]
    fn mean_interval_is_near_student() {
        let values: Vec<f64> = (0..200).map(|item| f64::from(item % 7) - 3.0).collect();
        let found = rows(&values).resample(1, mean);
        let Resampled { interval, error, below, above } = found[0];
        let exact = super::super::student(&values).unwrap();
        let is_near = |one: f64, other: f64| (one - other).abs() < 0.03;
        assert!(
            is_near(interval.low, exact.low) && is_near(interval.high, exact.high),
            "{interval:?} {exact:?}"
        );
        assert!(is_near(error, (exact.high - exact.low) / 2.0 / 1.96), "{error}");
        assert!(below > 0.15 && above > 0.15, "the mean is near zero: {below} {above}");
        let far: Vec<f64> = values.iter().map(|value| value + 5.0).collect();
        let far = rows(&far).resample(1, mean)[0];
        assert!(far.below < 1e-9 && far.above > 1.0 - 1e-9, "{far:?}");
        assert_eq!(rows(&values).resample(1, mean), found, "the same seed draws the same");
        assert_ne!(rows(&values).resample(2, mean), found);
        assert_eq!(UnitRows::new(2).resample(1, mean), []);
    }

    /// Selections of ten units vary too little: their plain interval holds the mean in 90 of 100 cases.
    #[test]
    fn corrected_interval_holds_mean_as_stated() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut normal =
            || (0..12).map(|_| f64::from(random.next_u32()) / f64::from(u32::MAX)).sum::<f64>() / 60.0 - 0.1;
        let (mut plain, mut corrected) = (0, 0);
        for seed in 0..200 {
            let values: Vec<f64> = (0..10).map(|_| normal()).collect();
            let found = rows(&values).resample(seed, mean)[0];
            let holds = |interval: Interval| u32::from(interval.low <= 0.0 && interval.high >= 0.0);
            plain += holds(found.interval);
            corrected += holds(found.of_few_units(values.iter().sum::<f64>() / 10.0, 10, 1000).interval);
        }
        assert!(plain < 187 && (187..199).contains(&corrected), "{plain} {corrected}");
    }

    /// One unit says nothing, and units that are alike say no more than one item does.
    #[test]
    fn lone_or_alike_units_say_little() {
        let found =
            Resampled { interval: Interval { low: 0.2, high: 0.2 }, error: 0.0, below: 0.0, above: 1.0 };
        assert_eq!(found.of_few_units(0.2, 1, 5).interval, Interval { low: -1.0, high: 1.0 });
        let Resampled { interval, error, .. } = found.of_few_units(0.2, 10, 50);
        assert!((error - 0.02).abs() < 1e-12 && interval.low < 0.16 && interval.high > 0.24, "{interval:?}");
        let wide = Resampled { error: 0.5, ..found }.of_few_units(0.9, 10, 50).interval;
        assert!(wide.low > -1.0 && wide.high <= 1.0, "{wide:?}");
    }

    #[test]
    fn figures_of_one_selection_belong_together() {
        let values: Vec<f64> = (0..50).map(f64::from).collect();
        let found = rows(&values).resample(1, |sums, figures| {
            figures.push(sums[0]);
            figures.push(sums[0] - sums[0]);
        });
        assert!(found[0].error > 0.0);
        assert_eq!(found[1].interval, Interval { low: 0.0, high: 0.0 });
    }

    #[test]
    fn every_unit_is_drawn_as_often() {
        let mut rows = UnitRows::new(5);
        for unit in 0..5 {
            rows.push(&std::array::from_fn::<f64, 5, _>(|at| f64::from(u8::from(at == unit))));
        }
        let drawn = rows.draw(1, 0..DRAWS, |sums, figures| figures.extend(sums));
        let mut counts = [0.0; 5];
        drawn.chunks_exact(5).for_each(|sums| add(&mut counts, sums));
        assert!(counts.iter().all(|count| (9_000.0..11_000.0).contains(count)), "{counts:?}");
    }

    /// The selections are therefore the same on any number of cores.
    #[test]
    fn selections_in_parts_equal_whole() {
        let rows = rows(&(0..7).map(f64::from).collect::<Vec<f64>>());
        let whole = rows.draw(3, 0..100, mean);
        let in_parts: Vec<f64> =
            [0..1, 1..34, 34..100].into_iter().flat_map(|part| rows.draw(3, part, mean)).collect();
        assert_eq!(whole, in_parts);
    }
}
