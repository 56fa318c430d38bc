//! Least squares with non-negative coefficients, for few terms.
//!
//! With at most four terms, all subsets are tried: the best subset whose unrestricted solution is
//! non-negative is the solution of non-negative least squares (Lawson and Hanson, Solving Least
//! Squares Problems, ch. 23).
//!
//! The errors come from refits of the fitted values with other residuals (Efron and Tibshirani, An
//! Introduction to the Bootstrap, §9.4). Where the observations hardly tell two terms apart, some refits
//! have the first, and some the second.

use super::estimate::Estimate;
use fastrand::Rng;

/// Terms whose correlation is greater can't be told apart: only the first is fitted.
const MOST_CORRELATED: f64 = 0.98;

/// Observations needed beyond the number of terms.
const SPARE: usize = 3;

/// Number of refits.
pub const REFITS: usize = 48;

/// Most residuals that a sum draws. Longer sums are scaled.
const MOST_DRAWN: usize = 100;

/// Least number of observations of a fit: one term needs so many.
pub const LEAST_OBSERVATIONS: usize = 1 + SPARE;

/// A fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// A coefficient for each term: the mean of the refits. Terms outside the fit have 0, without an error.
    pub coefficients: Vec<Estimate>,
    /// Coefficients of [`REFITS`] refits.
    pub refits: Vec<Vec<f64>>,
    /// Share of the values' variance that the terms explain (R²): 0 to 1.
    pub explained: f64,
    /// What the terms do not explain of each value, scaled by the number of fitted terms.
    pub residuals: Vec<f64>,
}

impl Fit {
    /// Sum of the residuals of so many new observations, drawn at random.
    #[must_use]
    pub fn noise(&self, observations: f64, rng: &mut Rng) -> f64 {
        let drawn = (observations.round() as usize).min(MOST_DRAWN);
        let residuals = (0..drawn).map(|_| self.residuals[rng.usize(..self.residuals.len())]);
        let scale = (observations / drawn.max(1) as f64).sqrt();
        scale * residuals.sum::<f64>()
    }

    /// The fit of `values` by the terms of `rows`: a row of equally many terms for each value. A
    /// constant term is a column of ones. `None` with too few observations, or without a usable
    /// term.
    #[must_use]
    pub fn of(rows: &[Vec<f64>], values: &[f64]) -> Option<Self> {
        let terms = rows.first()?.len().min(4);
        let subsets = Subset::all(rows, &usable(rows, terms));
        let best = Solution::best(rows, values, &subsets, terms)?;
        let fitted: Vec<f64> = rows.iter().map(|row| best.value(row)).collect();
        let freedom = rows.len() - best.fitted_terms;
        let spread = (rows.len() as f64 / freedom as f64).sqrt();
        let pairs = values.iter().zip(&fitted);
        let residuals: Vec<f64> = pairs.map(|(one, fitted)| spread * (one - fitted)).collect();
        let mut rng = Rng::with_seed(1);
        let refits: Vec<Vec<f64>> = (0..REFITS)
            .map(|_| {
                let other = |fitted: &f64| fitted + residuals[rng.usize(..rows.len())];
                let values: Vec<f64> = fitted.iter().map(other).collect();
                let refit = Solution::best(rows, &values, &subsets, terms);
                refit.map_or_else(|| best.coefficients.clone(), |one| one.coefficients)
            })
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let all: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let explained = if all > 0.0 {
            1.0 - best.squares / all
        } else {
            1.0
        };
        let of_term =
            |term: usize| Estimate::of_samples(refits.iter().map(move |refit| refit[term]));
        Some(Fit {
            coefficients: (0..terms).map(of_term).collect(),
            explained: explained.clamp(0.0, 1.0),
            residuals,
            refits,
        })
    }
}

/// Terms that vary, or are constant and not 0, and that differ from earlier terms.
fn usable(rows: &[Vec<f64>], terms: usize) -> Vec<usize> {
    let column = |term: usize| rows.iter().map(move |row| value(row, term));
    let count = rows.len() as f64;
    let mut usable: Vec<usize> = Vec::new();
    for term in 0..terms {
        let is_zero = column(term).all(|value| value == 0.0);
        let is_like = |other: &usize| {
            let (mean, of_other) = (
                column(term).sum::<f64>() / count,
                column(*other).sum::<f64>() / count,
            );
            let centred = column(term)
                .zip(column(*other))
                .map(|(a, b)| (a - mean, b - of_other));
            let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
            for (a, b) in centred {
                ab += a * b;
                aa += a * a;
                bb += b * b;
            }
            // Two constants are alike; a constant and a variable term are not.
            match (aa > 0.0, bb > 0.0) {
                (true, true) => ab * ab > MOST_CORRELATED * MOST_CORRELATED * aa * bb,
                (a_varies, b_varies) => !a_varies && !b_varies,
            }
        };
        if !is_zero && !usable.iter().any(is_like) {
            usable.push(term);
        }
    }
    usable
}

/// A subset of the terms, with the values common to all of its fits.
struct Subset {
    terms: Vec<usize>,
    /// Greatest absolute value of each term. Scaled columns keep the equations well conditioned: bytes
    /// stand beside ones.
    scale: Vec<f64>,
    /// Inverse of the normal equations' matrix, of the scaled columns.
    inverse: Vec<Vec<f64>>,
}

impl Subset {
    /// The subsets of the `usable` terms for which there are enough observations.
    fn all(rows: &[Vec<f64>], usable: &[usize]) -> Vec<Self> {
        let chosen = |subset: u32| -> Vec<usize> {
            let chosen = (0..usable.len()).filter(|at| subset >> at & 1 == 1);
            chosen.map(|at| usable[at]).collect()
        };
        (1_u32..1 << usable.len())
            .map(chosen)
            .filter(|terms| rows.len() >= terms.len() + SPARE)
            .filter_map(|terms| Subset::of(rows, terms))
            .collect()
    }

    fn of(rows: &[Vec<f64>], terms: Vec<usize>) -> Option<Self> {
        let greatest = |term: &usize| {
            rows.iter()
                .fold(0.0_f64, |most, row| most.max(value(row, *term).abs()))
        };
        let scale: Vec<f64> = terms.iter().map(greatest).collect();
        if scale.contains(&0.0) {
            return None;
        }
        let count = terms.len();
        let mut matrix = vec![vec![0.0; count]; count];
        for row in rows {
            for i in 0..count {
                for j in 0..count {
                    matrix[i][j] +=
                        value(row, terms[i]) / scale[i] * value(row, terms[j]) / scale[j];
                }
            }
        }
        let inverse = inverse(matrix)?;
        Some(Subset {
            terms,
            scale,
            inverse,
        })
    }
}

/// A term of a row; 0 if the row is too short.
fn value(row: &[f64], term: usize) -> f64 {
    row.get(term).copied().unwrap_or(0.0)
}

/// A solution.
struct Solution {
    /// A coefficient for each term; terms without a fit have 0.
    coefficients: Vec<f64>,
    fitted_terms: usize,
    /// Sum of the squared residuals.
    squares: f64,
}

impl Solution {
    /// The non-negative solution with the terms of a subset; `None` with too few observations.
    fn best(rows: &[Vec<f64>], values: &[f64], subsets: &[Subset], terms: usize) -> Option<Self> {
        let mut best: Option<Solution> = None;
        for subset in subsets {
            let solution = Solution::of(rows, values, subset, terms);
            let is_valid = solution.coefficients.iter().all(|one| *one >= 0.0);
            let is_better = |best: &Solution| solution.squares < best.squares * (1.0 - 1e-9);
            if is_valid && best.as_ref().is_none_or(is_better) {
                best = Some(solution);
            }
        }
        best
    }

    /// The unrestricted solution with the subset of all `terms`.
    fn of(rows: &[Vec<f64>], values: &[f64], subset: &Subset, terms: usize) -> Self {
        let Subset {
            terms: chosen,
            scale,
            inverse,
        } = subset;
        let mut right = vec![0.0; chosen.len()];
        for (row, wanted) in rows.iter().zip(values) {
            for (i, term) in chosen.iter().enumerate() {
                right[i] += value(row, *term) / scale[i] * wanted;
            }
        }
        let mut solution = Solution {
            coefficients: vec![0.0; terms],
            fitted_terms: chosen.len(),
            squares: 0.0,
        };
        for (i, term) in chosen.iter().enumerate() {
            let products = inverse[i].iter().zip(&right).map(|(a, b)| a * b);
            solution.coefficients[*term] = products.sum::<f64>() / scale[i];
        }
        let square = |(row, value): (&Vec<f64>, &f64)| (value - solution.value(row)).powi(2);
        solution.squares = rows.iter().zip(values).map(square).sum();
        solution
    }

    /// The value of a row.
    fn value(&self, row: &[f64]) -> f64 {
        let products = self.coefficients.iter().zip(row);
        products.map(|(one, term)| one * term).sum()
    }
}

/// The inverse of a small matrix (Gauss-Jordan with pivots); `None` if it is nearly singular.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let count = matrix.len();
    let unit = |i: usize| (0..count).map(|j| f64::from(u8::from(i == j))).collect();
    let mut inverse: Vec<Vec<f64>> = (0..count).map(unit).collect();
    for column in 0..count {
        let pivot = (column..count).max_by(|a, b| {
            matrix[*a][column]
                .abs()
                .total_cmp(&matrix[*b][column].abs())
        })?;
        if matrix[pivot][column].abs() < 1e-12 {
            return None;
        }
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let by = matrix[column][column];
        for j in 0..count {
            matrix[column][j] /= by;
            inverse[column][j] /= by;
        }
        for row in (0..count).filter(|row| *row != column) {
            let times = matrix[row][column];
            for j in 0..count {
                matrix[row][j] -= times * matrix[column][j];
                inverse[row][j] -= times * inverse[column][j];
            }
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with a constant and two terms.
    fn rows(count: u32) -> Vec<Vec<f64>> {
        let row = |n: u32| vec![1.0, f64::from(n % 7) * 1e6, f64::from(n * n % 11) * 1e3];
        (0..count).map(row).collect()
    }

    fn values(rows: &[Vec<f64>], coefficients: [f64; 3]) -> Vec<f64> {
        let value =
            |row: &Vec<f64>| -> f64 { row.iter().zip(coefficients).map(|(a, b)| a * b).sum() };
        rows.iter().map(value).collect()
    }

    #[test]
    fn exact_values_give_their_coefficients() {
        let rows = rows(40);
        let fit = Fit::of(&rows, &values(&rows, [50.0, 0.002, 3.0])).unwrap();
        for (found, wanted) in fit.coefficients.iter().zip([50.0, 0.002, 3.0]) {
            assert!((found.value / wanted - 1.0).abs() < 1e-6, "{found:?}");
        }
        assert!(fit.explained > 0.999_999);
    }

    #[test]
    fn no_coefficient_is_negative() {
        let rows = rows(40);
        let fit = Fit::of(&rows, &values(&rows, [50_000.0, 0.002, -3.0])).unwrap();
        assert!(fit.refits.iter().flatten().all(|one| *one >= 0.0));
        let Estimate { value, error } = fit.coefficients[2];
        assert!(value < error, "{fit:?}");
    }

    #[test]
    fn terms_that_can_not_be_told_apart_are_not_both_fitted() {
        let row = |n: u32| vec![1.0, f64::from(n), 2.0 * f64::from(n) + 1e-6];
        let rows: Vec<Vec<f64>> = (0..20).map(row).collect();
        let fit = Fit::of(&rows, &values(&rows, [1.0, 1.0, 1.0])).unwrap();
        assert!((fit.coefficients[1].value - 3.0).abs() < 1e-3, "{fit:?}");
        assert_eq!(fit.coefficients[2], Estimate::default());
    }

    #[test]
    fn errors_cover_the_noise() {
        let rows = rows(400);
        let mut values = values(&rows, [50.0, 0.002, 3.0]);
        let mut state = 1_u64;
        for value in &mut values {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *value += f64::from((state >> 40) as u32 % 1000) - 499.5;
        }
        let fit = Fit::of(&rows, &values).unwrap();
        for (found, wanted) in fit.coefficients.iter().zip([50.0, 0.002, 3.0]) {
            assert!(
                (found.value - wanted).abs() < 2.0 * found.error,
                "{found:?}"
            );
        }
        assert!(fit.explained > 0.9 && fit.explained < 1.0);
    }

    /// A constant, and a term that hardly varies: the sum is known, its parts are not.
    #[test]
    fn errors_cover_terms_that_look_alike() {
        let row = |n: u32| vec![1.0, 5e6 + f64::from(n * n % 11)];
        let rows: Vec<Vec<f64>> = (0..40).map(row).collect();
        let noise = |n: usize| (n * 7 % 5) as f64 * 50.0 - 100.0;
        let values: Vec<f64> = (0..40).map(|n| 5000.0 + noise(n)).collect();
        let fit = Fit::of(&rows, &values).unwrap();
        let [fixed, per_byte] = [fit.coefficients[0], fit.coefficients[1]];
        assert!(fixed.error > 4000.0 && per_byte.error > 0.8e-3, "{fit:?}");
        let sums = fit.refits.iter().map(|refit| refit[0] + refit[1] * 5e6);
        assert!(sums.clone().all(|sum| (sum - 5000.0).abs() < 100.0));
    }

    #[test]
    fn too_few_observations_give_no_fit() {
        let rows = rows(3);
        assert_eq!(Fit::of(&rows, &values(&rows, [1.0, 1.0, 1.0])), None);
        assert_eq!(Fit::of(&[], &[]), None);
    }
}
