//! The marks of a drawing: figures with their intervals, and the labels of points.
//!
//! The input is positions in percent of an axis. The output is values for templates.

use serde::Serialize;

/// The distance, in percent of either axis, below which the labels of two points overlap on a small screen.
const NEAR: f64 = 6.0;

/// A figure and its interval, in percent of its axis.
#[derive(Debug, Serialize)]
pub struct PlotMark {
    /// The position of the figure; `None` if it is not known.
    pub at: Option<f64>,
    /// The position of the lower end.
    pub low: f64,
    /// The position of the upper end.
    pub high: f64,
    /// The figure in words.
    pub words: String,
}

/// Returns the label of each point: its number, from 1. The numbers of points that lie close together become one list at the first of them,
/// and the others have none.
pub fn point_labels(places: &[Option<(f64, f64)>]) -> Vec<String> {
    let mut labels: Vec<Vec<String>> = vec![Vec::new(); places.len()];
    for (index, place) in places.iter().enumerate() {
        let Some((x, y)) = place else { continue };
        let mut at = index;
        for (other, numbers) in labels[..index].iter().enumerate() {
            if let Some((other_x, other_y)) = places[other]
                && !numbers.is_empty()
                && (other_x - x).abs() < NEAR
                && (other_y - y).abs() < NEAR
            {
                at = other;
                break;
            }
        }
        labels[at].push((index + 1).to_string());
    }
    labels.into_iter().map(|numbers| numbers.join(", ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_lie_close_together_share_a_label() {
        let places = [Some((10.0, 10.0)), None, Some((12.0, 14.0)), Some((50.0, 10.0))];
        assert_eq!(point_labels(&places), ["1, 3", "", "", "4"]);
    }
}
