//! The interval of a figure over items, by drawing the items again (Efron 1979).
//!
//! The input is a number of items, or the clusters in which they come, and a figure that can be computed from any selection of items. The
//! output is the interval between the percentiles 2.5 and 97.5 of the figure over many selections. Items are drawn with replacement;
//! items of one cluster are drawn together, because they share what makes them easy or hard.

use std::collections::BTreeMap;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng as _, SeedableRng as _};

use super::Interval;

/// The number of selections.
const DRAWS: usize = 10_000;

/// The items that are drawn together, by their position.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Clusters(Vec<Vec<u32>>);

impl Clusters {
    /// Makes every item a cluster of its own.
    #[must_use]
    pub fn single(items: u32) -> Self {
        Self((0..items).map(|item| vec![item]).collect())
    }

    /// Puts items with the same name together, in the order of the names.
    #[must_use]
    pub fn by_name<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut clusters: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (item, name) in (0..).zip(names) {
            clusters.entry(name).or_default().push(item);
        }
        Self(clusters.into_values().collect())
    }
}

/// A bootstrap over items.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bootstrap {
    /// The seed of the draws.
    pub seed: u64,
}

impl Bootstrap {
    /// Returns the 95 % interval of each of `N` figures, which are computed together from each selection. A selection has every item as often
    /// as it was drawn. Returns `None` without a cluster.
    pub fn intervals<const N: usize>(
        self,
        clusters: &Clusters,
        mut figures: impl FnMut(&[u32]) -> [f64; N],
    ) -> Option<[Interval; N]> {
        if clusters.0.is_empty() {
            return None;
        }
        let mut random = Pcg64Mcg::seed_from_u64(self.seed);
        let mut drawn: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(DRAWS));
        let mut selection = Vec::new();
        for _ in 0..DRAWS {
            selection.clear();
            for _ in 0..clusters.0.len() {
                let cluster = &clusters.0[below(random.next_u32(), clusters.0.len())];
                selection.extend_from_slice(cluster);
            }
            for (values, figure) in drawn.iter_mut().zip(figures(&selection)) {
                values.push(figure);
            }
        }
        Some(drawn.map(percentiles))
    }

    /// Returns the 95 % interval of the mean of these values, one for each item; `None` without a value.
    #[must_use]
    pub fn mean(self, clusters: &Clusters, values: &[f64]) -> Option<Interval> {
        let mean = |selection: &[u32]| {
            let sum: f64 = selection.iter().map(|item| values[*item as usize]).sum();
            [sum / selection.len() as f64]
        };
        self.intervals(clusters, mean).map(|[interval]| interval)
    }
}

/// Returns a number below `end` that follows from 32 random bits. The numbers differ in their probability by less than one part in 10,000
/// for up to 100,000 items.
fn below(bits: u32, end: usize) -> usize {
    // The product of two numbers below 2^32 fits.
    ((u64::from(bits) * end as u64) >> 32) as usize
}

fn percentiles(mut values: Vec<f64>) -> Interval {
    values.sort_by(f64::total_cmp);
    let cut = values.len() * 25 / 1000;
    Interval { low: values[cut], high: values[values.len() - 1 - cut] }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Bootstrap = Bootstrap { seed: 1 };

    #[test]
    fn the_interval_of_a_mean_is_near_that_of_student() {
        let values: Vec<f64> = (0..200).map(|item| f64::from(item % 7) - 3.0).collect();
        let interval = HERE.mean(&Clusters::single(200), &values).unwrap();
        let exact = super::super::student(&values).unwrap();
        assert!(
            (interval.low - exact.low).abs() < 0.03 && (interval.high - exact.high).abs() < 0.03,
            "{interval:?} {exact:?}"
        );
        assert_eq!(
            HERE.mean(&Clusters::single(200), &values),
            Some(interval),
            "the same seed draws the same"
        );
        assert_ne!(Bootstrap { seed: 2 }.mean(&Clusters::single(200), &values), Some(interval));
    }

    #[test]
    fn items_that_come_together_are_drawn_together() {
        // Ten clusters of twenty items that are alike say as much as ten items.
        let names: Vec<String> = (0..200).map(|item| (item / 20).to_string()).collect();
        let clusters = Clusters::by_name(names.iter().map(String::as_str));
        let values: Vec<f64> = (0..200).map(|item| f64::from(item / 20 % 2)).collect();
        let apart = HERE.mean(&Clusters::single(200), &values).unwrap();
        let together = HERE.mean(&clusters, &values).unwrap();
        assert!(together.high - together.low > 3.0 * (apart.high - apart.low), "{together:?} {apart:?}");
        let ten: Vec<f64> = (0..10).map(|cluster| f64::from(cluster % 2)).collect();
        assert_eq!(HERE.mean(&Clusters::single(10), &ten).unwrap().holds(0.5), together.holds(0.5));
        assert_eq!(HERE.mean(&Clusters::single(0), &[]), None);
    }

    #[test]
    fn every_item_is_drawn() {
        let mut seen = vec![0_u32; 5];
        HERE.intervals(&Clusters::single(5), |selection| {
            for item in selection {
                seen[*item as usize] += 1;
            }
            [0.0]
        });
        assert!(seen.iter().all(|count| (9_000..11_000).contains(count)), "{seen:?}");
    }
}
