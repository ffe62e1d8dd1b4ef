//! Logistic regression with a small penalty: the probability of yes, from the numbers of a row.
//!
//! The input is rows of numbers, each with yes or no. The output is a weight for each number, and from these the probability for any row.
//! The weights minimise the log-loss plus a twentieth of the sum of their squares, the first one left out, by the steps of Newton (le
//! Cessie and van Houwelingen 1992). The penalty keeps them finite where the rows separate yes from no.

/// The most steps. Ten are usually enough.
const STEPS_MAX: usize = 50;

/// The weight of half the sum of squares.
const PENALTY: f64 = 0.1;

/// The length of a step that ends the search.
const STEP_MIN: f64 = 1e-9;

/// Returns the weights of a fit. All rows have the same length, and the first number of each is 1.
pub fn logistic_fit(rows: &[(Vec<f64>, bool)]) -> Vec<f64> {
    let width = rows.first().map_or(0, |(row, _)| row.len());
    let mut weights = vec![0.0; width];
    for _ in 0..STEPS_MAX {
        let (gradient, curvature) = slope(rows, &weights);
        let step = solve(curvature, gradient);
        weights.iter_mut().zip(&step).for_each(|(weight, step)| *weight -= step);
        if step.iter().map(|step| step.abs()).fold(0.0, f64::max) < STEP_MIN {
            break;
        }
    }
    weights
}

/// Returns the probability of yes for a row that is as long as the weights.
pub fn logistic_value(weights: &[f64], row: &[f64]) -> f64 {
    let sum: f64 = weights.iter().zip(row).map(|(weight, value)| weight * value).sum();
    1.0 / (1.0 + (-sum).exp())
}

/// Returns the gradient and the matrix of second derivatives of what is minimised.
fn slope(rows: &[(Vec<f64>, bool)], weights: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let width = weights.len();
    let mut gradient = vec![0.0; width];
    let mut curvature = vec![vec![0.0; width]; width];
    // The first weight belongs to the constant, which has no penalty.
    for at in 1..width {
        gradient[at] = PENALTY * weights[at];
        curvature[at][at] = PENALTY;
    }
    for (row, is_yes) in rows {
        let value = logistic_value(weights, row);
        let error = value - f64::from(u8::from(*is_yes));
        // A row that is certain would leave a matrix that cannot be inverted.
        let weight = (value * (1.0 - value)).max(1e-9);
        for at in 0..width {
            gradient[at] += error * row[at];
            for other in 0..width {
                curvature[at][other] += weight * row[at] * row[other];
            }
        }
    }
    (gradient, curvature)
}

/// Solves a system of linear equations whose matrix is symmetric and positive, by elimination.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let width = right.len();
    for at in 0..width {
        for below in at + 1..width {
            let factor = matrix[below][at] / matrix[at][at];
            let (above, rest) = matrix.split_at_mut(below);
            rest[0].iter_mut().zip(&above[at]).for_each(|(value, known)| *value -= factor * known);
            right[below] -= factor * right[at];
        }
    }
    for at in (0..width).rev() {
        let known: f64 = (at + 1..width).map(|column| matrix[at][column] * right[column]).sum();
        right[at] = (right[at] - known) / matrix[at][at];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_one_number_gives_its_share() {
        let rows: Vec<(Vec<f64>, bool)> = (0..100).map(|item| (vec![1.0], item < 80)).collect();
        let weights = logistic_fit(&rows);
        assert!((logistic_value(&weights, &[1.0]) - 0.8).abs() < 1e-9, "{weights:?}");
        assert!(logistic_fit(&[]).is_empty());
    }

    #[test]
    fn the_fit_is_that_of_scikit_learn() {
        // From scikit-learn: LogisticRegression(C=10, tol=1e-12).fit([[0], [1], [2], [3], [4], [5]], [0, 0, 1, 0, 1, 1]).
        let labels = [false, false, true, false, true, true];
        let rows: Vec<(Vec<f64>, bool)> =
            (0..).zip(labels).map(|(item, label)| (vec![1.0, f64::from(item)], label)).collect();
        let weights = logistic_fit(&rows);
        assert!(
            (weights[0] + 2.815_968).abs() < 1e-5 && (weights[1] - 1.126_387).abs() < 1e-5,
            "{weights:?}"
        );
    }

    #[test]
    fn separated_rows_keep_weights_finite() {
        let rows: Vec<(Vec<f64>, bool)> =
            (0..40).map(|item| (vec![1.0, f64::from(u8::from(item < 20))], item < 20)).collect();
        let weights = logistic_fit(&rows);
        assert!(weights.iter().all(|weight| weight.is_finite()), "{weights:?}");
        let [yes, no] = [1.0, 0.0].map(|value| logistic_value(&weights, &[1.0, value]));
        assert!(yes > 0.85 && yes < 1.0 && no < 0.15, "{yes} {no}");
    }
}
