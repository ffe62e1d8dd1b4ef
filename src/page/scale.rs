//! The scales of a page's drawings: the position of a figure on an axis, and the round numbers along the axis.
//!
//! The input is figures. The output is positions as percentages of an axis, so that a drawing fits any screen and its marks keep
//! their size.

use serde::Serialize;

/// A line of an axis, and the number at it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tick {
    /// The position, in percent of the axis.
    pub at: f64,
    pub label: String,
}

/// An axis from its first number to its last.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    /// Makes an axis from zero to the first round number that no figure exceeds.
    pub fn up_to(most: f64) -> Self {
        // An axis has its numbers even if there is nothing to measure.
        let most = if most > 0.0 { most.max(1e-6) } else { 1.0 };
        let step = step(most);
        Self { low: 0.0, high: (most / step).ceil() * step, step }
    }

    /// Makes an axis of the same length on both sides of zero.
    pub fn around_zero(most: f64) -> Self {
        let Self { high, step, .. } = Self::up_to(most);
        // A small screen has room for five numbers, and zero must be one of them.
        let step = if high / step > 2.0 { high / 2.0 } else { step };
        Self { low: -high, high, step }
    }

    /// Returns the position of a figure, in percent of the axis.
    pub fn at(&self, figure: f64) -> f64 {
        (figure - self.low) / (self.high - self.low) * 100.0
    }

    /// Returns the lines of the axis.
    pub fn ticks(&self) -> Vec<Tick> {
        let values = std::iter::successors(Some(self.low), |value| Some(value + self.step));
        let values = values.take_while(|value| *value <= self.high + self.step / 2.0);
        values.map(|value| Tick { at: self.at(value), label: brief(value, self.step) }).collect()
    }
}

/// The powers of ten that an axis of equal factors can have.
const POWERS: std::ops::RangeInclusive<i32> = -6..=15;

/// An axis on which equal distances are equal factors.
#[derive(Clone, Copy, Debug)]
pub struct LogScale {
    low: f64,
    high: f64,
}

impl LogScale {
    /// Makes an axis that holds all figures above zero, with room at both ends.
    pub fn around(figures: impl IntoIterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for figure in figures.into_iter().filter(|figure| *figure > 0.0 && figure.is_finite()) {
            (low, high) = (low.min(figure), high.max(figure));
        }
        if low > high { Self { low: 1.0, high: 10.0 } } else { Self { low: low / 1.25, high: high * 1.25 } }
    }

    /// Returns the position of a figure, in percent of the axis; a figure that is not above zero is at its beginning.
    pub fn at(&self, figure: f64) -> f64 {
        ((figure.max(self.low) / self.low).ln() / (self.high / self.low).ln() * 100.0).min(100.0)
    }

    /// Returns the lines of the axis: 1, 2 and 5 times the powers of ten, or the powers alone on a long axis.
    pub fn ticks(&self) -> Vec<Tick> {
        let factors: &[f64] = if self.high / self.low > 100.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let figures = POWERS.flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
        let figures = figures.filter(|figure| (self.low..=self.high).contains(figure));
        figures.map(|figure| Tick { at: self.at(figure), label: brief(figure, figure) }).collect()
    }
}

/// Returns the distance between two lines of an axis: 1, 2 or 5 times a power of ten, for about five lines.
fn step(most: f64) -> f64 {
    let rough = most / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// Formats a number as briefly as its axis allows.
fn brief(value: f64, step: f64) -> String {
    if step >= 1000.0 && value > 0.0 {
        return format!("{} k", value / 1000.0);
    }
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale) -> String {
        scale.ticks().into_iter().map(|tick| tick.label).collect::<Vec<_>>().join(" ")
    }

    /// The axis ends at or behind the last point.
    #[test]
    fn axis_has_few_round_numbers() {
        for (most, expected) in [
            (0.0, "0 0.2 0.4 0.6 0.8 1"),
            (0.9, "0 0.2 0.4 0.6 0.8 1"),
            (100.0, "0 20 40 60 80 100"),
            (12_345.0, "0 5 k 10 k 15 k"),
            (7.2, "0 2 4 6 8"),
        ] {
            assert_eq!(labels(Scale::up_to(most)), expected, "{most}");
            assert!(Scale::up_to(most).at(most) <= 100.0, "{most}");
        }
    }

    #[test]
    fn equal_factors_have_equal_distances() {
        let scale = LogScale::around([400.0, 9_000.0]);
        let at = |figure: f64| scale.at(figure);
        assert!((at(2_000.0) - at(1_000.0) - (at(8_000.0) - at(4_000.0))).abs() < 1e-9);
        let labels: Vec<String> = scale.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels.join(" "), "500 1 k 2 k 5 k 10 k");
        assert!(at(400.0) > 0.0 && at(9_000.0) < 100.0 && at(0.0) <= 0.0 && at(1e9) >= 100.0);
        assert!(!LogScale::around([]).ticks().is_empty());
    }

    #[test]
    fn a_difference_has_zero_in_the_middle() {
        for (most, expected) in
            [(23.0, "-25 -12.5 0 12.5 25"), (100.0, "-100 -50 0 50 100"), (0.0, "-1 -0.5 0 0.5 1")]
        {
            assert_eq!(labels(Scale::around_zero(most)), expected, "{most}");
            assert!((Scale::around_zero(most).at(0.0) - 50.0).abs() < 1e-9, "{most}");
        }
    }
}
