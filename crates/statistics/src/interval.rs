//! Intervals of shares and of means.
//!
//! The input is a share or values, one for each independent item. The output is a 95 % interval: of 100 that are made like
//! this, 95 hold the true figure.

use serde::Serialize;
use statrs::distribution::{Beta, Binomial, ContinuousCDF as _, DiscreteCDF as _, StudentsT};

/// The normal quantile of a two-sided 95 % interval.
const Z: f64 = 1.959_963_984_540_054;

/// The two ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Returns the 95 % interval of Wilson (1927) for a share, from 0 to 1, of `n` independent items. `n` need not be a whole number; it is
/// above 0.
pub fn wilson(share: f64, n: f64) -> Interval {
    let z2 = Z * Z;
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    Interval { low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

/// Returns the 95 % interval for a share of items that depend on each other within clusters: that of Wilson at the effective number of
/// items of Korn and Graubard (Survey Methodology 1998). Each cluster is given as the items that count and all of its items, which are above 0.
///
/// The interval of a single cluster is from 0 to 1. If all items are alike, nothing tells how far the items of a cluster depend on each
/// other, so each cluster then counts as one item.
pub fn wilson_of_clusters(clusters: &[(f64, f64)]) -> Interval {
    let groups = clusters.len() as f64;
    let (count, of) = clusters.iter().fold((0.0, 0.0), |(count, of), one| (count + one.0, of + one.1));
    let share = count / of;
    let Ok(student) = StudentsT::new(0.0, 1.0, groups - 1.0) else { return Interval { low: 0.0, high: 1.0 } };
    let squares: f64 = clusters.iter().map(|(count, of)| (count - share * of).powi(2)).sum();
    let variance = squares * groups / (groups - 1.0) / (of * of);
    let is_alike = count <= 0.0 || count >= of;
    let effective = if is_alike { groups } else { (share * (1.0 - share) / variance).min(of) };
    wilson(share, effective * (Z / student.inverse_cdf(0.975)).powi(2))
}

/// Returns the 95 % interval of Student (1908) for the mean of these values, or `None` for fewer than two.
pub fn student(values: &[f64]) -> Option<Interval> {
    let error = standard_error(values)?;
    let n = values.len() as f64;
    Some(student_around(values.iter().sum::<f64>() / n, error, n - 1.0))
}

/// Returns the 95 % interval of Student around a figure with this standard error and so many degrees of freedom, which are above 0.
pub fn student_around(figure: f64, error: f64, freedom: f64) -> Interval {
    let quantile = StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |of| of.inverse_cdf(0.975));
    let half = quantile * error;
    Interval { low: figure - half, high: figure + half }
}

/// Returns the probability of a figure as far from zero as this one, if zero were the true one, by Student's test with this standard error
/// and so many degrees of freedom.
pub fn student_p(figure: f64, error: f64, freedom: f64) -> f64 {
    let Ok(student) = StudentsT::new(0.0, 1.0, freedom) else { return 1.0 };
    match figure.abs() {
        0.0 => 1.0,
        far if error > 0.0 => 2.0 * student.cdf(-far / error),
        _ => 0.0,
    }
}

/// Returns the standard error of the mean of these values, or `None` for fewer than two.
pub fn standard_error(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if values.len() > 1 { Some((squares / (n - 1.0) / n).sqrt()) } else { None }
}

/// Returns the upper end of the one-sided interval of Clopper and Pearson (1934) for a share: the largest one under which at most `count`
/// of `of` independent items occur with the probability `doubt`. `count` need not be a whole number, and is from 0 to `of`; `of` is
/// above 0.
pub fn clopper_pearson_upper(count: f64, of: f64, doubt: f64) -> f64 {
    let beta = Beta::new(count + 1.0, of - count);
    beta.map_or(1.0, |beta| beta.inverse_cdf(1.0 - doubt))
}

/// Returns the probability of at most `count` of `of` independent items, each with the probability `share`, from 0 to 1.
pub fn at_most(count: u64, of: u64, share: f64) -> f64 {
    Binomial::new(share, of).map_or(1.0, |binomial| binomial.cdf(count))
}

/// Returns the greatest count of `of` independent items for which [`clopper_pearson_upper`] is at most `share`; `None` if it is above for
/// a count of 0. `share` and `doubt` are above 0 and below 1.
pub fn count_within(of: u64, share: f64, doubt: f64) -> Option<u64> {
    let binomial = Binomial::new(share, of).ok()?;
    let least = binomial.inverse_cdf(doubt);
    if binomial.cdf(least) <= doubt {
        return Some(least);
    }
    least.checked_sub(1).filter(|count| binomial.cdf(*count) <= doubt)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From R: `2 * pt(-2.5, 9)` and `qt(0.975, 9)`.
    #[test]
    fn student_test_follows_degrees_of_freedom() {
        assert!((student_p(0.5, 0.2, 9.0) - 0.033_862).abs() < 1e-5, "{}", student_p(0.5, 0.2, 9.0));
        let Interval { low, high } = student_around(0.5, 0.2, 9.0);
        assert!((low - 0.047_569).abs() < 1e-5 && (high - 0.952_431).abs() < 1e-5, "{low} {high}");
        for (figure, error, freedom, p) in [(0.0, 0.0, 9.0, 1.0), (0.1, 0.0, 9.0, 0.0), (0.1, 0.1, 0.0, 1.0)]
        {
            assert!((student_p(figure, error, freedom) - p).abs() < 1e-12, "{figure} {error} {freedom}");
        }
    }

    /// The bar of a continuous integration must not pass by what 200 items of ten texts seem to say.
    #[test]
    fn dependent_items_count_as_fewer() {
        let halves: Vec<(f64, f64)> = (0..10).map(|cluster| (f64::from(cluster % 2) * 20.0, 20.0)).collect();
        let Interval { low, high } = wilson_of_clusters(&halves);
        assert!((0.15..0.25).contains(&low) && (0.75..0.85).contains(&high), "{low} {high}");
        let alike: Vec<(f64, f64)> = (0..10).map(|_| (10.0, 20.0)).collect();
        let (dependent, plain) = (wilson_of_clusters(&alike), wilson(0.5, 200.0));
        assert!(dependent.low < plain.low && dependent.low > plain.low - 0.02, "{dependent:?} {plain:?}");
        let right = wilson_of_clusters(&[(20.0, 20.0); 10]);
        assert!(right.low < wilson(1.0, 10.0).low && right.high > 0.999, "{right:?}");
        assert_eq!(wilson_of_clusters(&[(20.0, 20.0)]), Interval { low: 0.0, high: 1.0 });
    }

    fn near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 1e-6
    }

    #[test]
    fn wilson_gives_the_intervals_of_r() {
        // From R: binom::binom.confint(…, methods = "wilson").
        for (count, of, low, high) in [
            (0.0, 10.0, 0.0, 0.277_533),
            (8.0, 10.0, 0.490_162, 0.943_318),
            (10.0, 10.0, 0.722_467, 1.0),
            (5.0, 10.0, 0.236_593, 0.763_407),
            (85.0, 100.0, 0.767_164, 0.906_940),
            (742.0, 1319.0, 0.535_633, 0.589_099),
        ] {
            let interval = wilson(count / of, of);
            assert!(near(interval.low, low) && near(interval.high, high), "{count} of {of}: {interval:?}");
        }
    }

    #[test]
    fn clopper_and_pearson_give_the_bounds_of_r() {
        // From R: binom.test(k, n, alternative = "less")$conf.int[2].
        for (count, of, bound) in [
            (0.0, 10.0, 0.258_866),
            (1.0, 10.0, 0.394_163),
            (3.0, 153.0, 0.049_895),
            (10.0, 10.0, 1.0),
            (40.0, 1000.0, 0.051_753),
        ] {
            let found = clopper_pearson_upper(count, of, 0.05);
            assert!(near(found, bound), "{count} of {of}: {found}");
        }
        for (of, share) in [(59, 0.05), (92, 0.05), (93, 0.05), (150, 0.1), (1000, 0.02)] {
            let count = count_within(of, share, 0.05).unwrap();
            let bound = |count: u64| clopper_pearson_upper(count as f64, of as f64, 0.05);
            assert!(bound(count) <= share && bound(count + 1) > share, "{count} of {of}");
            assert!(at_most(count, of, share) <= 0.05 && at_most(count + 1, of, share) > 0.05);
        }
        assert_eq!(count_within(58, 0.05, 0.05), None);
        // So many items with so few errors bound the risk by 5 %, and by 10 %.
        for (errors, five, ten) in
            [(0.0, 59.0, 29.0), (1.0, 93.0, 46.0), (2.0, 124.0, 61.0), (3.0, 153.0, 76.0)]
        {
            for (risk, items) in [(0.05, five), (0.1, ten)] {
                assert!(clopper_pearson_upper(errors, items, 0.05) <= risk, "{errors} of {items}");
                assert!(
                    clopper_pearson_upper(errors, items - 1.0, 0.05) > risk,
                    "{errors} of {items} less one"
                );
            }
        }
    }

    #[test]
    fn student_gives_the_interval_of_r() {
        // From R: t.test(c(rep(1, 3), rep(0, 7)))$conf.int.
        let values: Vec<f64> = (0..10).map(|item| f64::from(item < 3)).collect();
        let interval = student(&values).unwrap();
        assert!(
            (interval.low + 0.045_55).abs() < 1e-4 && (interval.high - 0.645_55).abs() < 1e-4,
            "{interval:?}"
        );
        assert_eq!(student(&[1.0]), None);
    }
}
